//! Runs one attempt of a node until it ends or interrupts.
//!
//! Core builds the future and a driver polls it. When an interrupt is open and nothing runs that must not be interrupted, core
//! drops the node's future. So user code cannot swallow a pause, and every interrupt that the node could raise has been raised.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

use crate::checkpoint::format::{
    Body, Draft, EndRecord, EndedHow, Extensions, RECORD_SEQ, Record, RecordContent, TaskRecord,
};
use crate::checkpoint::{BoxFuture, RESULT_KEY, RecordRow, RecordWrite};
use crate::driver::NodeHost;
use crate::error::{FailureKind, FormatError, InvalidUpdate, NodeError};
use crate::graph::{
    AnyUpdate, CacheKey, Definition, Input, Live, NodeFn, RawOutput, ReadError, RefusedUpdate,
    Siblings, StateOps, Timeout, panic_text,
};
use crate::ids::{Epoch, FramePath, NodeName, TaskId, ThreadId};
use crate::label::Floor;
use crate::node::cx::{NodeCx, TaskInfo, changed};
use crate::node::{Answers, StepKept, TaskRecords};

/// One attempt of a node in one superstep, ready to run.
///
/// It holds a handle on the state. The driver drops it, and the [`Execution`], before it reports the end to the state machine,
/// so that the machine can change the state in place instead of copying it.
pub struct Task {
    // Boxed, because a task is moved several times before it runs.
    parts: Box<TaskParts>,
}

/// The parts of a task.
pub(crate) struct TaskParts {
    pub(crate) info: TaskInfo,
    pub(crate) graph: Arc<Definition>,
    pub(crate) call: NodeFn,
    pub(crate) input: Input,
    pub(crate) records: TaskRecords,
    pub(crate) answers: Answers,
    /// Whether the result is recorded at once, because siblings may run longer than this task.
    pub(crate) store_result: bool,
    pub(crate) timeout: Timeout,
    pub(crate) cache: Option<CacheKey>,
}

impl Task {
    pub(crate) fn new(parts: TaskParts) -> Self {
        Self {
            parts: Box::new(parts),
        }
    }

    /// Returns the task's id, the same in every attempt.
    pub fn id(&self) -> TaskId {
        self.parts.info.task
    }

    /// Returns the name of the task's node.
    pub fn node(&self) -> &NodeName {
        &self.parts.info.node
    }

    /// Returns the path of the task's graph; empty for the root.
    pub fn frame(&self) -> &FramePath {
        &self.parts.info.frame
    }

    /// Returns the number of the superstep, counted within the task's graph.
    pub fn step(&self) -> u64 {
        self.parts.info.step
    }

    /// Returns the number of this attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.parts.info.attempt
    }

    /// Returns how long the attempt may take. When that time is over, the driver drops it and reports [`TaskEnd::TimedOut`].
    pub fn timeout(&self) -> Timeout {
        self.parts.timeout
    }

    /// Returns the cache key of the task's result, if its node is cached. On a hit the driver reports [`TaskEnd::Cached`]
    /// instead of running the task.
    pub fn cache(&self) -> Option<&CacheKey> {
        self.parts.cache.as_ref()
    }

    /// Whether another worker can run the task: any end of it is stored, and its siblings need not be dropped as soon as it
    /// fails.
    pub fn can_move(&self) -> bool {
        let parts = &self.parts;
        parts.store_result
            && parts.cache.is_none()
            && parts.input.failure.is_none()
            && parts.graph.siblings == Siblings::Finish
    }

    /// Adds the steps that the task recorded since it was built.
    pub fn with_records(self, rows: &[RecordRow]) -> Result<Self, FormatError> {
        for row in rows {
            let record = Record::unseal(&row.body, &self.parts.info.thread, RECORD_SEQ)?;
            let read = record.labels()?;
            if let RecordContent::Step(step) = record.content {
                let kept = StepKept { step, read };
                self.parts.records.insert(row.key.clone(), kept);
            }
        }
        Ok(self)
    }

    /// Returns what it takes to record how the task ended, for a run that is not in this process.
    pub fn receipt(&self) -> Receipt {
        let info = &self.parts.info;
        Receipt {
            thread: info.thread.clone(),
            epoch: info.epoch,
            task: info.task,
            attempt: info.attempt,
        }
    }

    /// Returns the future that runs the task.
    pub fn execute(self, host: Arc<dyn NodeHost>) -> Execution {
        let TaskParts {
            info,
            graph,
            call,
            input,
            records,
            answers,
            store_result,
            ..
        } = *self.parts;
        let handles = input.failure.is_some();
        let cx = NodeCx::new(info, host, records, answers);
        let state = input.state.clone();
        Execution {
            doing: Doing::Asking(Asking {
                node: call(input, cx.clone()),
                ending: Ending {
                    cx: cx.clone(),
                    state,
                    graph,
                    handles,
                    store_result,
                },
            }),
            pulse: Pulse(cx),
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("info", &self.parts.info)
            .finish_non_exhaustive()
    }
}

/// Identifies one attempt of a task, to record how it ended.
#[derive(Debug, Clone)]
pub struct Receipt {
    thread: ThreadId,
    epoch: Epoch,
    task: TaskId,
    attempt: u32,
}

impl Receipt {
    /// Returns the record of how the attempt ended; `None` for an end that is recorded by itself, as every result is.
    pub fn record(&self, end: &TaskEnd) -> Option<RecordWrite> {
        let how = match end {
            TaskEnd::Done(_) | TaskEnd::Stored(_) | TaskEnd::Cached(_) => return None,
            TaskEnd::Paused(drafts) => EndedHow::Paused(drafts.clone()),
            TaskEnd::Failed(error) => EndedHow::Failed {
                kind: error.kind(),
                message: error.to_stored(),
            },
            TaskEnd::TimedOut => EndedHow::TimedOut,
        };
        let attempt = self.attempt;
        let record = Record {
            content: RecordContent::End(EndRecord { attempt, how }),
            extensions: Extensions::default(),
        };
        Some(RecordWrite {
            thread: self.thread.clone(),
            epoch: self.epoch,
            task: self.task,
            key: RESULT_KEY.to_owned(),
            body: record.seal(&self.thread, RECORD_SEQ),
        })
    }
}

/// One attempt of a task in progress. Dropping it stops the node.
pub struct Execution {
    doing: Doing,
    pulse: Pulse,
}

enum Doing {
    Asking(Asking),
    Storing(BoxFuture<'static, TaskEnd>),
    Ended,
}

impl Execution {
    /// Returns the counter of the task's signs of life, for an idle timeout.
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }
}

impl Future for Execution {
    type Output = TaskEnd;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<TaskEnd> {
        if let Doing::Asking(asking) = &mut self.doing {
            let asked = ready!(asking.poll(context));
            // Drops everything the node's future held before the end is reported.
            let Doing::Asking(Asking { ending, node }) =
                std::mem::replace(&mut self.doing, Doing::Ended)
            else {
                unreachable!("it was just asked")
            };
            drop(node);
            match ending.end(asked) {
                Ended::Now(end) => return Poll::Ready(end),
                Ended::Stores(storing) => self.doing = Doing::Storing(storing),
            }
        }
        match &mut self.doing {
            Doing::Storing(storing) => storing.as_mut().poll(context),
            Doing::Asking(_) | Doing::Ended => unreachable!("not polled after it ended"),
        }
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution")
            .field("pulse", &self.pulse)
            .finish_non_exhaustive()
    }
}

/// Counter of a task's signs of life: steps, events and heartbeats.
#[derive(Debug, Clone)]
pub struct Pulse(NodeCx);

impl Pulse {
    /// Returns the number of signs of life so far.
    pub fn count(&self) -> u64 {
        self.0.heartbeats()
    }
}

/// How an attempt of a task ended.
#[derive(Debug)]
pub enum TaskEnd {
    /// The node returned, and its output was checked.
    Done(Output),
    /// Another worker recorded the result; these are the record's bytes.
    Stored(Vec<u8>),
    /// The result was in the node cache; these are the bytes of [`Output::to_cache`].
    Cached(Vec<u8>),
    /// The node raised interrupts and waits for answers.
    Paused(Vec<Draft>),
    /// The node failed, or its output was refused.
    Failed(NodeError),
    /// The driver dropped the attempt because it exceeded its timeout.
    TimedOut,
}

impl From<EndedHow> for TaskEnd {
    fn from(how: EndedHow) -> Self {
        match how {
            EndedHow::Paused(drafts) => TaskEnd::Paused(drafts),
            EndedHow::Failed { kind, message } => {
                TaskEnd::Failed(NodeError::from_stored(kind, message))
            }
            EndedHow::TimedOut => TaskEnd::TimedOut,
        }
    }
}

/// What is recorded as the result of a task.
pub(crate) enum Stored {
    /// What the node returned.
    Output(Output),
    /// An attempt that ended without a result.
    End(EndRecord),
}

/// What a node returned, checked and encoded.
pub struct Output {
    pub(crate) record: TaskRecord,
    pub(crate) update: AnyUpdate,
}

impl Output {
    /// Returns the bytes to put into a node cache.
    pub fn to_cache(&self) -> Vec<u8> {
        let record = Record {
            content: RecordContent::Task(self.record.clone()),
            extensions: Extensions::default(),
        };
        record.seal(&cache_thread(), RECORD_SEQ)
    }

    pub(crate) fn from_cache(ops: &dyn StateOps, bytes: &[u8]) -> Result<Self, NodeError> {
        match Self::read(ops, bytes, &cache_thread())? {
            Stored::Output(output) => Ok(output),
            Stored::End(_) => Err(unreadable("it is not a result")),
        }
    }

    pub(crate) fn read(
        ops: &dyn StateOps,
        bytes: &[u8],
        thread: &ThreadId,
    ) -> Result<Stored, NodeError> {
        let record = Record::unseal(bytes, thread, RECORD_SEQ)
            .map_err(|error: FormatError| unreadable(error.to_string()))?;
        let record = match record.content {
            RecordContent::Task(record) => record,
            RecordContent::End(end) => return Ok(Stored::End(end)),
            RecordContent::Step(_) => return Err(unreadable("it is the record of a step")),
        };
        let update = ops
            .decode_update(&record.update, ops.version())
            .map_err(|error| unreadable(crate::error::chain(&error)))?;
        Ok(Stored::Output(Self { record, update }))
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.record, f)
    }
}

fn unreadable(why: impl fmt::Display) -> NodeError {
    NodeError::of_kind(
        FailureKind::RecordUnreadable,
        format!("a recorded result cannot be read: {why}"),
    )
}

/// A cached result belongs to no thread, so it is sealed for this constant one.
fn cache_thread() -> ThreadId {
    ThreadId::new("cache").expect("a thread name")
}

/// Polls a node, and ends it when it is idle with an interrupt open.
struct Asking {
    node: BoxFuture<'static, Result<RawOutput, NodeError>>,
    ending: Ending,
}

enum Asked {
    Returned(Result<RawOutput, NodeError>),
    Questions(Vec<Draft>),
}

impl Asking {
    fn poll(&mut self, context: &Context<'_>) -> Poll<Asked> {
        // A driver that runs tasks on the spot polls them once without a waker of its own. Most end then, so that poll takes
        // no memory for one.
        let watch = (!context.waker().will_wake(Waker::noop())).then(|| Watch::new(context));
        let waker = match &watch {
            Some(watch) => Waker::from(watch.clone()),
            None => self.ending.cx.noting_waker(),
        };
        let polled = catch_unwind(AssertUnwindSafe(|| {
            self.node.as_mut().poll(&mut Context::from_waker(&waker))
        }));
        let was_woken = || match &watch {
            Some(watch) => watch.woken.load(Ordering::SeqCst),
            None => self.ending.cx.was_woken(),
        };
        match polled {
            Ok(Poll::Ready(returned)) => Poll::Ready(Asked::Returned(returned)),
            // Woken while it was polled: the node yielded on purpose and will be polled again.
            Ok(Poll::Pending) if was_woken() => Poll::Pending,
            Ok(Poll::Pending) => match self.ending.cx.scope().ripe_questions() {
                Some(questions) => Poll::Ready(Asked::Questions(questions)),
                None => Poll::Pending,
            },
            Err(panic) => Poll::Ready(Asked::Returned(Err(NodeError::of_kind(
                FailureKind::Panicked,
                format!("the node panicked: {}", panic_text(&*panic)),
            )))),
        }
    }
}

/// Remembers a wake-up that arrives while the node is being polled.
struct Watch {
    inner: Waker,
    woken: AtomicBool,
}

impl Watch {
    fn new(context: &Context<'_>) -> Arc<Self> {
        Arc::new(Self {
            inner: context.waker().clone(),
            woken: AtomicBool::new(false),
        })
    }
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.inner.wake_by_ref();
    }
}

/// What remains to do once the node has returned: check, encode, record.
struct Ending {
    cx: NodeCx,
    state: Live,
    graph: Arc<Definition>,
    /// Whether this is the error handler of its node.
    handles: bool,
    store_result: bool,
}

enum Ended {
    Now(TaskEnd),
    /// The result is being recorded.
    Stores(BoxFuture<'static, TaskEnd>),
}

impl Ending {
    fn end(self, asked: Asked) -> Ended {
        let raw = match asked {
            Asked::Questions(questions) => return Ended::Now(TaskEnd::Paused(questions)),
            Asked::Returned(Err(error)) => return Ended::Now(TaskEnd::Failed(error)),
            Asked::Returned(Ok(raw)) => raw,
        };
        match self.check(raw) {
            Err(error) => Ended::Now(TaskEnd::Failed(error)),
            Ok(output) if !self.store_result => Ended::Now(TaskEnd::Done(output)),
            Ok(output) => Ended::Stores(Box::pin(async move {
                match self.store(output).await {
                    Ok(end) => end,
                    Err(error) => TaskEnd::Failed(error),
                }
            })),
        }
    }

    fn check(&self, raw: RawOutput) -> Result<Output, NodeError> {
        if let Some(key) = self.cx.scope().unused_record() {
            return Err(changed(format!(
                "step `{key}` was recorded, and the node no longer comes to it"
            )));
        }
        let prepared = self
            .graph
            .ops
            .prepare(&self.state, raw.update, self.cx.task())
            .map_err(RefusedUpdate::of_node)?;
        self.check_labels([&prepared.floor, &raw.floor])?;
        let events = self.cx.scope().take_events();
        let record = TaskRecord {
            update: prepared.stored,
            goto: raw.goto,
            parent: raw.parent,
            events,
        };
        self.check_targets(&record)?;
        Ok(Output {
            record,
            update: prepared.read_back,
        })
    }

    /// Checks that every labeled value that the node writes or sends has the labels of everything it has read.
    fn check_labels(&self, floors: [&Floor; 2]) -> Result<(), NodeError> {
        let read = self.cx.read_so_far();
        match floors.iter().find_map(|floor| floor.lacks(&read)) {
            Some(labels) => {
                let lost = RefusedUpdate::from(InvalidUpdate::LabelLost { labels });
                Err(lost.of_node())
            }
            None => Ok(()),
        }
    }

    /// Checks that the targets were declared, and that there is a parent graph if the node commands one.
    fn check_targets(&self, record: &TaskRecord) -> Result<(), NodeError> {
        let node = self.cx.node();
        if record.parent.is_some() && self.cx.frame().is_root() {
            let why = format!(
                "`{node}` is not inside a subgraph, so there is no parent graph to command"
            );
            return Err(NodeError::of_kind(FailureKind::NoParent, why));
        }
        if record.goto.is_empty() {
            return Ok(());
        }
        let def = self.graph.node(node);
        def.check_goto(&self.graph, node, &record.goto, self.handles)
    }

    /// Records the result. The stored one counts: another worker may have recorded it first.
    async fn store(&self, output: Output) -> Result<TaskEnd, NodeError> {
        let record = Record {
            content: RecordContent::Task(output.record.clone()),
            extensions: Extensions::default(),
        };
        let stored = self.cx.record(RESULT_KEY, record).await?;
        match stored.content {
            RecordContent::Task(record) if record == output.record => Ok(TaskEnd::Done(output)),
            RecordContent::Task(record) => {
                let ops = &self.graph.ops;
                let update = ops
                    .decode_update(&record.update, ops.version())
                    .map_err(ReadError::of_record)?;
                Ok(TaskEnd::Done(Output { record, update }))
            }
            RecordContent::End(end) => Ok(end.how.into()),
            RecordContent::Step(_) => Err(changed("the result is recorded as a step".to_owned())),
        }
    }
}
