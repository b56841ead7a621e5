//! What a node receives besides its input: recorded steps, interrupts, events.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Wake, Waker};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checkpoint::format::{
    Body, Draft, Extensions, RECORD_SEQ, Record, RecordContent, StepRecord,
};
use crate::checkpoint::{AnswerBody, RecordWrite};
use crate::driver::{LiveEvent, NodeHost};
use crate::error::{FailureKind, NodeError, ValueError};
use crate::ids::{Epoch, FramePath, InterruptId, NodeName, RunId, TaskId, ThreadId, Timestamp};
use crate::label::Labels;
use crate::lock::lock;
use crate::node::interrupt::{Interrupt, plain};
use crate::node::records::{StepKept, TaskRecords};
use crate::schema;
use crate::state::MessageIds;
use crate::store::{Store, TenantStore};
use crate::value::Value;

/// The answers to one task's interrupts, by key.
pub(crate) type Answers = BTreeMap<String, AnswerBody>;

/// The place of a task in its run, for the node and for watchers.
#[derive(Debug, Clone)]
pub(crate) struct TaskInfo {
    pub(crate) thread: ThreadId,
    pub(crate) epoch: Epoch,
    pub(crate) run: RunId,
    pub(crate) task: TaskId,
    pub(crate) frame: FramePath,
    pub(crate) node: NodeName,
    pub(crate) step: u64,
    pub(crate) attempt: u32,
    /// Id of this execution of the task, unique across executions.
    pub(crate) go: u64,
    pub(crate) remaining_steps: u64,
    pub(crate) context: Option<Value>,
    pub(crate) stateless: bool,
}

/// What a node receives besides its input: recorded steps, interrupts, events, and where it runs. Cheap to clone.
///
/// ```
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// # async fn publish(_: &str, _key: &str) -> Result<String, NodeError> { Ok(String::new()) }
/// async fn release(essay: View<Essay>, cx: NodeCx) -> Result<EssayUpdate, NodeError> {
///     cx.emit(format!("{} parts are ready", essay.parts.len()))?;
///     let approval = Interrupt::new("approve", format!("Publish `{}`?", essay.topic));
///     let is_approved: bool = cx.interrupt(approval).await?;
///     if !is_approved {
///         return Ok(EssayUpdate::default());
///     }
///     // Recorded: after a crash the node runs again, and the step returns what it returned before.
///     let key = cx.effect_key("publish");
///     let address: String = cx.step("publish", || publish(&essay.topic, &key)).await?;
///     Ok(EssayUpdate::default().parts(address))
/// }
/// # Graph::builder("essay").node("release", release).edge(START, "release").edge("release", END).build()?;
/// # Ok::<(), superstep_core::error::BuildError>(())
/// ```
#[derive(Clone)]
pub struct NodeCx(Arc<Attempt>);

/// One attempt of a task, as its node sees it.
struct Attempt {
    info: TaskInfo,
    host: Arc<dyn NodeHost>,
    scope: Mutex<Scope>,
    heartbeats: AtomicU64,
    /// Whether the node was woken during a poll without a waker.
    woken: AtomicBool,
    /// Whether a unit test called the node: then nobody will ever answer.
    is_test: bool,
}

/// What one attempt of a node has done so far.
#[derive(Debug)]
pub(super) struct Scope {
    records: TaskRecords,
    answers: Answers,
    /// Number of steps called so far.
    ordinal: u32,
    overlapped: bool,
    /// Apart, because most attempts call no step and raise no interrupt.
    called: Option<Box<AttemptCalls>>,
    holds: u32,
    events: Vec<Value>,
    /// Labels of everything that the attempt has read.
    pub(super) read: Labels,
    /// Number of events shown so far.
    shown: u64,
}

/// The steps that an attempt called, and the interrupts that it raised.
#[derive(Debug)]
struct AttemptCalls {
    /// Number of calls of each step name.
    calls: BTreeMap<String, u32>,
    used: BTreeSet<String>,
    in_flight: BTreeSet<String>,
    asked: BTreeSet<String>,
    open: BTreeMap<String, Draft>,
}

impl AttemptCalls {
    const NOTHING: Self = Self {
        calls: BTreeMap::new(),
        used: BTreeSet::new(),
        in_flight: BTreeSet::new(),
        asked: BTreeSet::new(),
        open: BTreeMap::new(),
    };
}

impl Scope {
    fn called(&self) -> &AttemptCalls {
        static NOTHING: AttemptCalls = AttemptCalls::NOTHING;
        self.called.as_deref().unwrap_or(&NOTHING)
    }

    fn called_mut(&mut self) -> &mut AttemptCalls {
        let nothing = || Box::new(AttemptCalls::NOTHING);
        self.called.get_or_insert_with(nothing)
    }

    /// Returns the open interrupts, once nothing runs that must not be interrupted: no step in flight and no [`Hold`].
    pub(super) fn ripe_questions(&self) -> Option<Vec<Draft>> {
        let AttemptCalls {
            in_flight, open, ..
        } = self.called();
        let quiet = in_flight.is_empty() && self.holds == 0;
        (quiet && !open.is_empty()).then(|| open.values().cloned().collect())
    }

    pub(super) fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    /// Returns a recorded step that this attempt never reached: the code changed under the thread.
    pub(super) fn unused_record(&self) -> Option<String> {
        self.records
            .keys()
            .into_iter()
            .find(|key| !self.called().used.contains(key))
    }
}

impl Attempt {
    fn new(
        info: TaskInfo,
        host: Arc<dyn NodeHost>,
        records: TaskRecords,
        answers: Answers,
    ) -> Self {
        let overlapped = records.any_overlapped();
        let scope = Scope {
            records,
            answers,
            ordinal: 0,
            overlapped,
            called: None,
            holds: 0,
            events: Vec::new(),
            read: Labels::NONE,
            shown: 0,
        };
        Self {
            info,
            host,
            scope: Mutex::new(scope),
            heartbeats: AtomicU64::new(0),
            woken: AtomicBool::new(false),
            is_test: false,
        }
    }
}

/// Wakes nothing: see [`NodeCx::noting_waker`]. One that did would hold its task, and the task this attempt.
impl Wake for Attempt {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
    }
}

impl NodeCx {
    pub(super) fn new(
        info: TaskInfo,
        host: Arc<dyn NodeHost>,
        records: TaskRecords,
        answers: Answers,
    ) -> Self {
        Self(Arc::new(Attempt::new(info, host, records, answers)))
    }

    pub(super) fn of_test(
        info: TaskInfo,
        host: Arc<dyn NodeHost>,
        records: TaskRecords,
        answers: Answers,
    ) -> Self {
        let attempt = Attempt::new(info, host, records, answers);
        Self(Arc::new(Attempt {
            is_test: true,
            ..attempt
        }))
    }

    /// Returns a waker that only notes that it was called, for a poll whose caller polls again by itself.
    pub(super) fn noting_waker(&self) -> Waker {
        self.0.woken.store(false, Ordering::SeqCst);
        Waker::from(self.0.clone())
    }

    /// Whether a [`noting_waker`](Self::noting_waker) was called since the last one was made.
    pub(super) fn was_woken(&self) -> bool {
        self.0.woken.load(Ordering::SeqCst)
    }

    pub(super) fn heartbeats(&self) -> u64 {
        self.0.heartbeats.load(Ordering::Relaxed)
    }

    pub(super) fn node(&self) -> &NodeName {
        &self.0.info.node
    }

    pub(super) fn frame(&self) -> &FramePath {
        &self.0.info.frame
    }

    pub(super) fn scope(&self) -> MutexGuard<'_, Scope> {
        // A panic while the lock is held ends the attempt, and the next attempt has its own scope.
        lock(&self.0.scope)
    }

    /// Does something once. The result is stored before the node continues; after a pause, a crash or a retry, the stored
    /// result is returned and `work` does not run again.
    ///
    /// The name is part of the stored history: if the steps of a node are renamed or reordered under a waiting thread, the node
    /// fails with a typed error. Steps that run at the same time need different names. An error is not stored: the step runs
    /// again when the node does.
    ///
    /// A crash between the effect and its record is the one window in which an effect can repeat. Pass [`NodeCx::effect_key`]
    /// to a receiver that drops duplicates.
    pub async fn step<T, F, Fut>(&self, name: impl AsRef<str>, work: F) -> Result<T, NodeError>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, NodeError>>,
    {
        let called = self.call_step(name.as_ref())?;
        let (key, ordinal) = match called {
            Called::Before { key, record } => return read_step(&key, &record),
            Called::Now { key, ordinal } => (key, ordinal),
        };
        let _in_flight = InFlight {
            cx: self,
            name: name.as_ref(),
        };
        self.heartbeat();
        let value = work().await?;
        let value = Value::encode(&value).map_err(|e| {
            NodeError::of_kind(
                FailureKind::InvalidUpdate,
                format!("step `{key}`: {}", crate::error::chain(&e)),
            )
        })?;
        let record = self.store_step(&key, ordinal, value).await?;
        self.heartbeat();
        read_step(&key, &record)
    }

    fn call_step(&self, name: &str) -> Result<Called, NodeError> {
        let mut scope = self.scope();
        if name.is_empty() || name.starts_with('=') || name.len() > STEP_NAME_BYTES_MAX {
            return Err(NodeError::fatal(format!(
                "`{name}` is not a step name: use 1 to 200 bytes, not beginning with `=`"
            )));
        }
        if scope.called().in_flight.contains(name) {
            let why = format!(
                "two steps named `{name}` are in flight at once; give them names of their own"
            );
            return Err(NodeError::of_kind(FailureKind::AmbiguousStep, why));
        }
        let call = scope.called_mut().calls.entry(name.to_owned()).or_default();
        let key = if *call == 0 {
            name.to_owned()
        } else {
            format!("{name}#{call}")
        };
        *call += 1;
        let ordinal = scope.ordinal;
        scope.ordinal += 1;
        scope.called_mut().used.insert(key.clone());
        if let Some(StepKept { step: record, read }) = scope.records.find(&key) {
            if !record.overlapped && record.ordinal != ordinal {
                return Err(changed(format!(
                    "step `{key}` was number {}, now it is number {ordinal}",
                    record.ordinal
                )));
            }
            scope.read.add(&read);
            return Ok(Called::Before { key, record });
        }
        if let Some(recorded) = scope.records.key_at(ordinal) {
            return Err(changed(format!(
                "step number {ordinal} was `{recorded}`, now it is `{key}`"
            )));
        }
        if !scope.called().in_flight.is_empty() {
            scope.overlapped = true;
        }
        scope.called_mut().in_flight.insert(name.to_owned());
        Ok(Called::Now { key, ordinal })
    }

    async fn store_step(
        &self,
        key: &str,
        ordinal: u32,
        value: Value,
    ) -> Result<StepRecord, NodeError> {
        let (overlapped, stored_key, read) = {
            let scope = self.scope();
            let stored_key = scope.records.stored_key(key);
            (scope.overlapped, stored_key, scope.read.clone())
        };
        let content = RecordContent::Step(StepRecord {
            ordinal,
            overlapped,
            value,
        });
        let extensions = Extensions::default().with_labels(&read);
        let record = Record {
            content,
            extensions,
        };
        let stored = self.record(&stored_key, record).await?;
        let read = stored.labels().map_err(|error| {
            NodeError::of_kind(FailureKind::RecordFailed, crate::error::chain(&error))
        })?;
        let RecordContent::Step(record) = stored.content else {
            return Err(changed(format!(
                "record `{key}` is not the record of a step"
            )));
        };
        let mut scope = self.scope();
        scope.read.add(&read);
        let step = record.clone();
        scope.records.insert(stored_key, StepKept { step, read });
        Ok(record)
    }

    /// Stores a record unless there is one under its key, and returns the stored one.
    pub(super) async fn record(&self, key: &str, record: Record) -> Result<Record, NodeError> {
        let thread = &self.0.info.thread;
        let body = record.seal(thread, RECORD_SEQ);
        let write = RecordWrite {
            thread: thread.clone(),
            epoch: self.0.info.epoch,
            task: self.0.info.task,
            key: key.to_owned(),
            body: body.clone(),
        };
        let refused = |error: &dyn std::error::Error| {
            NodeError::of_kind(FailureKind::RecordFailed, crate::error::chain(error))
        };
        let stored = self
            .0
            .host
            .record(write)
            .await
            .map_err(|error| refused(&error))?;
        if stored == body {
            return Ok(record);
        }
        Record::unseal(&stored, thread, RECORD_SEQ).map_err(|error| refused(&error))
    }

    /// Asks a person and returns the answer.
    ///
    /// In the attempt that asks, this never returns: the node ends here and its thread waits in the store. Once the answer is
    /// stored, the node runs again from the top, and its recorded steps return their results. All interrupts that a node raises
    /// at the same time are shown together.
    pub async fn interrupt<A: DeserializeOwned>(
        &self,
        interrupt: Interrupt,
    ) -> Result<A, NodeError> {
        let draft = interrupt.inner?;
        let key = draft.key.clone();
        match self.ask(draft)? {
            Some(AnswerBody::Value(answer)) => decode_answer(&answer).map_err(|error| {
                let why = format!(
                    "the answer to `{key}` does not fit what the node expects: {}",
                    crate::error::chain(&error)
                );
                NodeError::of_kind(FailureKind::RecordUnreadable, why)
            }),
            Some(AnswerBody::Expired) => Err(NodeError::of_kind(
                FailureKind::Expired,
                format!("`{key}` was not answered before its deadline"),
            )),
            None if self.0.is_test => Err(NodeError::fatal(format!(
                "the test has no answer to `{key}`; add `.answer({key:?}, ..)` to its `TestCx`"
            ))),
            None => pending().await,
        }
    }

    fn ask(&self, draft: Draft) -> Result<Option<AnswerBody>, NodeError> {
        let mut scope = self.scope();
        if !scope.called_mut().asked.insert(draft.key.clone()) {
            let why = format!(
                "the key `{}` is used for two questions; give each a key of its own",
                draft.key
            );
            return Err(NodeError::of_kind(FailureKind::AmbiguousInterrupt, why));
        }
        if let Some(answer) = scope.answers.get(&draft.key) {
            return Ok(Some(answer.clone()));
        }
        if self.0.info.stateless {
            let why = "a stateless subgraph cannot ask: nothing of it is stored to resume from";
            return Err(NodeError::of_kind(FailureKind::StatelessInterrupt, why));
        }
        scope.called_mut().open.insert(draft.key.clone(), draft);
        Ok(None)
    }

    /// Keeps the node running while one of its interrupts is open, until the returned guard is dropped.
    ///
    /// For a node that makes several calls concurrently and wants those that need no person to complete before it pauses.
    #[must_use = "the node is only held while this lives"]
    pub fn hold(&self) -> Hold {
        self.scope().holds += 1;
        Hold { cx: self.clone() }
    }

    /// Emits an event to watchers: shown at once, and stored with the superstep.
    #[doc(alias = "get_stream_writer")]
    pub fn emit(&self, event: impl Serialize) -> Result<(), NodeError> {
        let event = plain(event)?;
        self.scope().events.push(event.clone());
        self.show(event, true);
        Ok(())
    }

    /// Shows an event to current watchers, such as a token of a model. It is not stored.
    pub fn emit_live(&self, event: impl Serialize) -> Result<(), NodeError> {
        self.show(plain(event)?, false);
        Ok(())
    }

    fn show(&self, payload: Value, stored: bool) {
        self.heartbeat();
        // The lock is held while the event is shown, so that events leave in the order of their numbers.
        let mut scope = self.scope();
        let index = scope.shown;
        scope.shown += 1;
        self.0.host.emit(LiveEvent {
            frame: self.0.info.frame.clone(),
            node: self.0.info.node.clone(),
            task: self.0.info.task,
            step: self.0.info.step,
            attempt: self.0.info.attempt,
            epoch: self.0.info.epoch,
            go: self.0.info.go,
            index,
            stored,
            payload,
        });
    }

    /// Returns the store of the thread's tenant.
    pub(super) fn host_store(&self) -> Option<(Arc<dyn Store>, Timestamp)> {
        let (store, now) = self.0.host.store()?;
        Some((Arc::new(TenantStore::new(store, self.thread())), now))
    }

    /// Reports a sign of life, for a node with an idle timeout.
    pub fn heartbeat(&self) {
        self.0.heartbeats.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a key for an effect of this task: the same across retries, resumes, workers and upgrades, but new on a fork.
    pub fn effect_key(&self, effect: &str) -> String {
        InterruptId::derive(self.0.info.task, &format!("effect:{effect}")).to_string()
    }

    /// Decodes what the caller passed to the run besides the input; `None` if there was nothing. Fails if it does not fit the
    /// type.
    pub fn context<T: DeserializeOwned>(&self) -> Result<Option<T>, NodeError> {
        self.0
            .info
            .context
            .as_ref()
            .map(Value::decode)
            .transpose()
            .map_err(NodeError::from)
    }

    /// Returns the id of the thread that this task belongs to.
    pub fn thread(&self) -> &ThreadId {
        &self.0.info.thread
    }

    /// Returns the id of the run.
    pub fn run(&self) -> RunId {
        self.0.info.run
    }

    /// Returns the id of the task: the same in every attempt.
    pub fn task(&self) -> TaskId {
        self.0.info.task
    }

    /// Returns the id that a message of this task gets if the node writes it without one: `number` counts those messages from 0,
    /// in the order in which the update writes them. So a node can show a message live under the id that it will have.
    pub fn message_id(&self, number: u32) -> String {
        MessageIds::nth(self.0.info.task, number)
    }

    /// Returns the epoch under which this task runs. It rises with every claim of the thread: a receiver that has seen a higher
    /// one knows that this call comes from a process that no longer owns the thread.
    pub fn epoch(&self) -> Epoch {
        self.0.info.epoch
    }

    /// Returns the number of this attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.0.info.attempt
    }

    /// Returns how many supersteps this graph may execute after this one before the step limit.
    pub fn remaining_steps(&self) -> u64 {
        self.0.info.remaining_steps
    }

    /// Whether this is the last superstep before the step limit.
    pub fn is_last_step(&self) -> bool {
        self.0.info.remaining_steps == 0
    }
}

impl fmt::Debug for NodeCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeCx")
            .field("info", &self.0.info)
            .finish_non_exhaustive()
    }
}

/// Longest name of a step, in bytes.
const STEP_NAME_BYTES_MAX: usize = 200;

enum Called {
    /// The step was recorded in an earlier execution.
    Before { key: String, record: StepRecord },
    /// The step has no record yet.
    Now { key: String, ordinal: u32 },
}

fn read_step<T: DeserializeOwned>(key: &str, record: &StepRecord) -> Result<T, NodeError> {
    record.value.decode().map_err(|error| {
        let why = format!(
            "the record of step `{key}` no longer fits its type: {}",
            crate::error::chain(&error)
        );
        NodeError::of_kind(FailureKind::RecordUnreadable, why)
    })
}

/// Decodes an answer. A schema accepts `1.0` as an integer, but a type with an integer field does not. The answer is already
/// stored and cannot be given again, so it is read the way the schema reads it.
fn decode_answer<A: DeserializeOwned>(answer: &Value) -> Result<A, ValueError> {
    answer.decode().or_else(|error| {
        let whole = schema::with_integers(answer.decode()?);
        serde_json::from_value(whole).map_err(|_| error)
    })
}

pub(super) fn changed(why: String) -> NodeError {
    NodeError::of_kind(
        FailureKind::StepChanged,
        format!("the node changed under a waiting thread: {why}"),
    )
}

/// Marks a step as in flight until dropped, also if the node is dropped in the middle of it.
struct InFlight<'a> {
    cx: &'a NodeCx,
    name: &'a str,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.cx.scope().called_mut().in_flight.remove(self.name);
    }
}

/// Keeps a node running although one of its interrupts is open. See [`NodeCx::hold`].
#[derive(Debug)]
pub struct Hold {
    cx: NodeCx,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.cx.scope().holds -= 1;
    }
}
