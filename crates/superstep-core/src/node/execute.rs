//! Runs one attempt of a node until it ends or asks.
//!
//! Core builds the future and a driver polls it. When a question is open and nothing that must not be
//! cut is under way, the node's future is dropped: user code cannot swallow a pause, and every question
//! the node could ask has been asked.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::checkpoint::format::{Body, Extensions, Record, RecordContent, TaskRecord};
use crate::checkpoint::{BoxFuture, RESULT_KEY};
use crate::driver::Door;
use crate::error::{FailureKind, FormatError, NodeError};
use crate::graph::{
    AnyUpdate, CacheKey, Input, Live, NodeFn, RawOutput, ReadError, RefusedUpdate, StateOps,
    Timeout, panic_text,
};
use crate::ids::{FramePath, NodeName, TaskId, ThreadId};
use crate::node::cx::{NodeCx, RECORD_SEQ, TaskInfo, changed};
use crate::node::interrupt::Draft;
use crate::node::{Answers, TaskRecords};

/// One node in one superstep, to be run once.
///
/// It holds a handle on the state: whoever runs it drops it, and the [`Execution`], before telling the
/// machine that it ended, so that the state is changed in place and not copied.
pub struct Task {
    info: Arc<TaskInfo>,
    parts: TaskParts,
}

/// What a task is made of.
pub(crate) struct TaskParts {
    pub(crate) call: NodeFn,
    pub(crate) input: Input,
    pub(crate) ops: Arc<dyn StateOps>,
    pub(crate) targets: Targets,
    pub(crate) records: TaskRecords,
    pub(crate) answers: Answers,
    /// Whether the result is recorded at once, because siblings may outlive it.
    pub(crate) store_result: bool,
    pub(crate) timeout: Timeout,
    pub(crate) cache: Option<CacheKey>,
}

/// Decides whether the places a task wants to go were declared.
pub(crate) type Targets = Arc<dyn Fn(&TaskRecord) -> Result<(), NodeError> + Send + Sync>;

impl Task {
    pub(crate) fn new(info: TaskInfo, parts: TaskParts) -> Self {
        Self {
            info: Arc::new(info),
            parts,
        }
    }

    /// Its id.
    pub fn id(&self) -> TaskId {
        self.info.task
    }

    /// Its node.
    pub fn node(&self) -> &NodeName {
        &self.info.node
    }

    /// Its graph, empty for the root.
    pub fn frame(&self) -> &FramePath {
        &self.info.frame
    }

    /// The superstep of its graph.
    pub fn step(&self) -> u64 {
        self.info.step
    }

    /// Which attempt this is, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.info.attempt
    }

    /// How long it may take. The driver drops it then and says [`TaskEnd::TimedOut`].
    pub fn timeout(&self) -> Timeout {
        self.parts.timeout
    }

    /// Where its result may be found, so that it need not run: see [`TaskEnd::Cached`].
    pub fn cache(&self) -> Option<&CacheKey> {
        self.parts.cache.as_ref()
    }

    /// Makes the future that runs it.
    pub fn execute(self, door: Arc<dyn Door>) -> Execution {
        let TaskParts {
            call,
            input,
            ops,
            targets,
            records,
            answers,
            store_result,
            ..
        } = self.parts;
        let cx = NodeCx::new(self.info.clone(), door, records, answers);
        let pulse = Pulse(cx.pulse());
        let state = input.state.clone();
        let running = Asking {
            // Called when it is first polled, so that a panic before its first await is caught too.
            node: Some(Box::pin({
                let cx = cx.clone();
                async move { call(input, cx).await }
            })),
            cx: cx.clone(),
        };
        let ending = Ending {
            info: self.info,
            cx,
            state,
            ops,
            targets,
            store_result,
        };
        Execution {
            running: Box::pin(async move { ending.end(running.await).await }),
            pulse,
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// One attempt of a task under way. Dropping it stops the node.
pub struct Execution {
    running: BoxFuture<'static, TaskEnd>,
    pulse: Pulse,
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
        self.running.as_mut().poll(context)
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
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
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
        Self::read(ops, bytes, &cache_thread())
    }

    pub(crate) fn read(
        ops: &dyn StateOps,
        bytes: &[u8],
        thread: &ThreadId,
    ) -> Result<Self, NodeError> {
        let unreadable = |why: String| {
            NodeError::of_kind(
                FailureKind::RecordUnreadable,
                format!("a recorded result cannot be read: {why}"),
            )
        };
        let record = Record::unseal(bytes, thread, RECORD_SEQ)
            .map_err(|e: FormatError| unreadable(e.to_string()))?;
        let RecordContent::Task(record) = record.content else {
            return Err(unreadable("it is the record of a step".to_owned()));
        };
        let update = ops
            .decode_update(&record.update, ops.version())
            .map_err(|e| unreadable(crate::error::chain(&e)))?;
        Ok(Self { record, update })
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.record, f)
    }
}

/// A cached result belongs to no thread.
fn cache_thread() -> ThreadId {
    ThreadId::new("cache").expect("a thread name")
}

/// Polls a node, and drops it when it is quiet with a question open.
struct Asking {
    node: Option<BoxFuture<'static, Result<RawOutput, NodeError>>>,
    cx: NodeCx,
}

enum Asked {
    Returned(Result<RawOutput, NodeError>),
    Questions(Vec<Draft>),
}

impl Future for Asking {
    type Output = Asked;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Asked> {
        let watch = Arc::new(Watch {
            inner: context.waker().clone(),
            woken: AtomicBool::new(false),
        });
        let waker = Waker::from(watch.clone());
        let node = self.node.as_mut().expect("not polled after it ended");
        let polled = catch_unwind(AssertUnwindSafe(|| {
            node.as_mut().poll(&mut Context::from_waker(&waker))
        }));
        let returned = match polled {
            Ok(Poll::Ready(returned)) => returned,
            Ok(Poll::Pending) => {
                // Woken while it was polled: it yielded on purpose and will be polled again.
                let ripe = if watch.woken.load(Ordering::SeqCst) {
                    None
                } else {
                    self.cx.scope().ripe_questions()
                };
                let Some(questions) = ripe else {
                    return Poll::Pending;
                };
                self.node = None;
                return Poll::Ready(Asked::Questions(questions));
            }
            Err(panic) => Err(NodeError::of_kind(
                FailureKind::Panicked,
                format!("the node panicked: {}", panic_text(&*panic)),
            )),
        };
        self.node = None;
        Poll::Ready(Asked::Returned(returned))
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
    info: Arc<TaskInfo>,
    cx: NodeCx,
    state: Live,
    ops: Arc<dyn StateOps>,
    targets: Targets,
    store_result: bool,
}

impl Ending {
    async fn end(self, asked: Asked) -> TaskEnd {
        let raw = match asked {
            Asked::Questions(questions) => return TaskEnd::Paused(questions),
            Asked::Returned(Err(error)) => return TaskEnd::Failed(error),
            Asked::Returned(Ok(raw)) => raw,
        };
        let output = match self.check(raw) {
            Ok(output) => output,
            Err(error) => return TaskEnd::Failed(error),
        };
        if !self.store_result {
            return TaskEnd::Done(output);
        }
        match self.store(output).await {
            Ok(output) => TaskEnd::Done(output),
            Err(error) => TaskEnd::Failed(error),
        }
    }

    fn check(&self, raw: RawOutput) -> Result<Output, NodeError> {
        if let Some(key) = self.cx.scope().unused_record() {
            return Err(changed(format!(
                "step `{key}` was recorded, and the node no longer comes to it"
            )));
        }
        let (update, read_back) = self
            .ops
            .prepare(&self.state, raw.update, self.info.task)
            .map_err(RefusedUpdate::of_node)?;
        let events = self.cx.scope().take_events();
        let record = TaskRecord {
            update,
            goto: raw.goto,
            parent: raw.parent,
            events,
        };
        (self.targets)(&record)?;
        Ok(Output {
            record,
            update: read_back,
        })
    }

    /// What is stored is what counts: another worker may have been first.
    async fn store(&self, output: Output) -> Result<Output, NodeError> {
        let record = Record {
            content: RecordContent::Task(output.record.clone()),
            extensions: Extensions::default(),
        };
        let stored = self.cx.record(RESULT_KEY, record).await?;
        match stored.content {
            RecordContent::Task(record) if record == output.record => Ok(output),
            RecordContent::Task(record) => {
                let update = self
                    .ops
                    .decode_update(&record.update, self.ops.version())
                    .map_err(ReadError::of_record)?;
                Ok(Output { record, update })
            }
            RecordContent::Step(_) => Err(changed("the result is recorded as a step".to_owned())),
        }
    }
}
