//! Runs one attempt of a node until it ends or asks.
//!
//! Core builds the future and a driver polls it. When a question is open and nothing that must not be
//! cut is under way, the node's future is dropped: user code cannot swallow a pause, and every question
//! the node could ask has been asked.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

use crate::checkpoint::format::{
    Body, Draft, EndRecord, EndedHow, Extensions, Record, RecordContent, TaskRecord,
};
use crate::checkpoint::{BoxFuture, RESULT_KEY, RecordRow, RecordWrite};
use crate::driver::Door;
use crate::error::{FailureKind, FormatError, InvalidUpdate, NodeError};
use crate::graph::{
    AnyUpdate, CacheKey, Definition, Input, Live, NodeFn, RawOutput, ReadError, RefusedUpdate,
    Siblings, StateOps, Timeout, panic_text,
};
use crate::ids::{Epoch, FramePath, NodeName, TaskId, ThreadId};
use crate::label::Floor;
use crate::node::cx::{NodeCx, RECORD_SEQ, TaskInfo, changed};
use crate::node::{Answers, StepKept, TaskRecords};

/// One node in one superstep, to be run once.
///
/// It holds a handle on the state: the driver drops it, and the [`Execution`], before telling the
/// machine that it ended, so that the state is changed in place and not copied.
pub struct Task {
    // In a box, for a task changes hands a few times before it runs.
    parts: Box<TaskParts>,
}

/// What a task is made of.
pub(crate) struct TaskParts {
    pub(crate) info: TaskInfo,
    pub(crate) graph: Arc<Definition>,
    pub(crate) call: NodeFn,
    pub(crate) input: Input,
    pub(crate) records: TaskRecords,
    pub(crate) answers: Answers,
    /// Whether the result is recorded at once, because siblings may outlive it.
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

    /// Its id.
    pub fn id(&self) -> TaskId {
        self.parts.info.task
    }

    /// Its node.
    pub fn node(&self) -> &NodeName {
        &self.parts.info.node
    }

    /// Its graph, empty for the root.
    pub fn frame(&self) -> &FramePath {
        &self.parts.info.frame
    }

    /// The superstep of its graph.
    pub fn step(&self) -> u64 {
        self.parts.info.step
    }

    /// Which attempt this is, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.parts.info.attempt
    }

    /// How long it may take. The driver drops it then and says [`TaskEnd::TimedOut`].
    pub fn timeout(&self) -> Timeout {
        self.parts.timeout
    }

    /// Where its result may be found, so that it need not run: see [`TaskEnd::Cached`].
    pub fn cache(&self) -> Option<&CacheKey> {
        self.parts.cache.as_ref()
    }

    /// Whether another worker can run it: whatever becomes of it is stored, and its siblings do not wait for the
    /// news to be dropped.
    pub fn can_move(&self) -> bool {
        let parts = &self.parts;
        parts.store_result
            && parts.cache.is_none()
            && parts.input.failure.is_none()
            && parts.graph.siblings == Siblings::Finish
    }

    /// The task with what it has recorded in steps since it was made.
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

    /// What it takes to write down how it ended, for a run that is not here to be told.
    pub fn receipt(&self) -> Receipt {
        let info = &self.parts.info;
        Receipt {
            thread: info.thread.clone(),
            epoch: info.epoch,
            task: info.task,
            attempt: info.attempt,
        }
    }

    /// Makes the future that runs it.
    pub fn execute(self, door: Arc<dyn Door>) -> Execution {
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
        let cx = NodeCx::new(info, door, records, answers);
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

/// One attempt of a task, to be told of in writing.
#[derive(Debug, Clone)]
pub struct Receipt {
    thread: ThreadId,
    epoch: Epoch,
    task: TaskId,
    attempt: u32,
}

impl Receipt {
    /// The record that tells how the attempt ended; none if its end is stored by itself, as every result is.
    pub fn record(&self, end: &TaskEnd) -> Option<RecordWrite> {
        let how = match end {
            TaskEnd::Done(_) | TaskEnd::Stored(_) | TaskEnd::Cached(_) => return None,
            TaskEnd::Paused(drafts) => EndedHow::Paused(drafts.clone()),
            TaskEnd::Failed(error) => EndedHow::Failed {
                kind: error.kind(),
                message: error.message().to_owned(),
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

/// One attempt of a task under way. Dropping it stops the node.
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
    /// The task's signs of life, for an idle time limit.
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }
}

impl Future for Execution {
    type Output = TaskEnd;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<TaskEnd> {
        if let Doing::Asking(asking) = &mut self.doing {
            let asked = ready!(asking.poll(context));
            // What the node's future held is dropped here, before anybody is told that it ended.
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

/// Counts a task's signs of life.
#[derive(Debug, Clone)]
pub struct Pulse(NodeCx);

impl Pulse {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.0.heartbeats()
    }
}

/// How an attempt of a task ended.
#[derive(Debug)]
pub enum TaskEnd {
    /// The node returned.
    Done(Output),
    /// Its result was recorded by another worker: the record's bytes.
    Stored(Vec<u8>),
    /// Its result was in the node cache: the bytes of [`Output::to_cache`].
    Cached(Vec<u8>),
    /// It asks.
    Paused(Vec<Draft>),
    /// It failed.
    Failed(NodeError),
    /// The driver dropped it because it took too long.
    TimedOut,
}

impl From<EndedHow> for TaskEnd {
    fn from(how: EndedHow) -> Self {
        match how {
            EndedHow::Paused(drafts) => TaskEnd::Paused(drafts),
            EndedHow::Failed { kind, message } => {
                TaskEnd::Failed(NodeError::of_kind(kind, message))
            }
            EndedHow::TimedOut => TaskEnd::TimedOut,
        }
    }
}

/// What is recorded as the result of a task.
pub(crate) enum Stored {
    /// What its node gave back.
    Output(Output),
    /// That an attempt ended without a result.
    End(EndRecord),
}

/// What a node gave back, checked and encoded.
pub struct Output {
    pub(crate) record: TaskRecord,
    pub(crate) update: AnyUpdate,
}

impl Output {
    /// The bytes to put into a node cache.
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

/// A cached result belongs to no thread.
fn cache_thread() -> ThreadId {
    ThreadId::new("cache").expect("a thread name")
}

/// Polls a node, and ends it when it is quiet with a question open.
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
        let watch = Arc::new(Watch {
            inner: context.waker().clone(),
            woken: AtomicBool::new(false),
        });
        let waker = Waker::from(watch.clone());
        let polled = catch_unwind(AssertUnwindSafe(|| {
            self.node.as_mut().poll(&mut Context::from_waker(&waker))
        }));
        match polled {
            Ok(Poll::Ready(returned)) => Poll::Ready(Asked::Returned(returned)),
            // Woken while it was polled: it yielded on purpose and will be polled again.
            Ok(Poll::Pending) if watch.woken.load(Ordering::SeqCst) => Poll::Pending,
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

/// Remembers a wake that comes while the node is being polled.
struct Watch {
    inner: Waker,
    woken: AtomicBool,
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

/// What is left to do when the node has returned: check, encode, record.
struct Ending {
    cx: NodeCx,
    state: Live,
    graph: Arc<Definition>,
    /// It is the error handler of its node.
    handles: bool,
    store_result: bool,
}

enum Ended {
    Now(TaskEnd),
    /// When its result is recorded.
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

    /// Every labeled value that it writes or sends must have the labels of what it has read.
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

    /// The places it goes to must have been declared, and there must be a parent for it to command.
    fn check_targets(&self, record: &TaskRecord) -> Result<(), NodeError> {
        let node = self.cx.node();
        if record.parent.is_some() && self.cx.frame().is_root() {
            let why = format!(
                "`{node}` is not inside a subgraph, so there is no parent graph to command"
            );
            return Err(NodeError::of_kind(FailureKind::NoParent, why));
        }
        let def = self.graph.node(node);
        def.check_goto(&self.graph, node, &record.goto, self.handles)
    }

    /// What is stored is what counts: another worker may have been first.
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
