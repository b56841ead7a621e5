//! The stored form of a thread: log entries, snapshots and records. **Everything persisted is here**, except for the archive of
//! a whole thread (`archive.rs`) and the requests to one (`driver/request.rs`).
//!
//! A body is `format · kind · envelope · checksum · content`, sealed for its place (`seal.rs`). The content is postcard:
//! compact, and read by position, so
//!
//! - fields are never reordered or removed, and new variants go last;
//! - later additions go into [`Extensions`], by tag;
//! - any other change is a new format number with its own golden files.
//!
//! User values inside are [`Value`]s: JSON behind a codec byte.

use serde::{Deserialize, Serialize};

use crate::checkpoint::seal::Seal;
use crate::checkpoint::{AnswerBody, AtLifetimeEnd, ThreadLifetime};
use crate::error::{Failure, FailureKind, FormatError};
use crate::ids::{FramePath, InterruptId, NodeName, RunId, Seq, TaskId, ThreadId, Timestamp};
use crate::label::Labels;
use crate::trace::CallerSpan;
use crate::value::Value;

/// Newest format that this program writes and reads.
pub const FORMAT: u8 = 1;

/// Kind of a body, so that a snapshot is never read as an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BodyKind {
    /// A log entry: an [`Entry`].
    Entry = 1,
    /// A whole thread at one entry: a [`Snapshot`].
    Snapshot = 2,
    /// An interrupt: a [`InterruptRecord`].
    Interrupt = 3,
    /// The result of a task or a step: a [`Record`].
    Record = 4,
    /// A whole thread: a [`checkpoint::Archive`](crate::checkpoint::Archive).
    Archive = 5,
    /// A request that waits for a worker: a [`driver::QueuedRequest`](crate::driver::QueuedRequest).
    Request = 6,
}

/// A type that is stored as a body.
pub trait Body: Serialize + for<'de> Deserialize<'de> {
    /// Kind of the body, which is part of its seal.
    const KIND: BodyKind;

    /// Odd tags of extensions that a reader of this body understands. Default: none.
    const UNDERSTOOD: &'static [u16] = &[];

    /// Returns the extensions, which are checked when the body is read.
    fn extensions(&self) -> &Extensions;

    /// Returns the stored bytes.
    fn seal(&self, thread: &ThreadId, seq: Seq) -> Vec<u8> {
        Seal::of_row(Self::KIND, thread, seq).close(self)
    }

    /// Decodes stored bytes, or says what is wrong with them.
    fn unseal(bytes: &[u8], thread: &ThreadId, seq: Seq) -> Result<Self, FormatError> {
        let body: Self = Seal::of_row(Self::KIND, thread, seq).read(bytes)?;
        body.extensions().check(Self::UNDERSTOOD)?;
        Ok(body)
    }
}

/// Returns the stored form of a body that was encrypted outside of this crate: in the envelope for it, with a checksum that binds
/// it to its thread and sequence. Stores and archives carry and check it like a plain body, without the key.
///
/// The whole plain body is encrypted, so decrypting it yields what [`Body::unseal`] takes.
pub fn wrap_encrypted(kind: BodyKind, thread: &ThreadId, seq: Seq, content: &[u8]) -> Vec<u8> {
    Seal::of_row(kind, thread, seq).wrap_encrypted(content)
}

/// Returns what [`wrap_encrypted`] was given; `None` if the body is not in that envelope, and an error if it is and was changed, or
/// belongs elsewhere.
pub fn unwrap_encrypted<'a>(
    kind: BodyKind,
    thread: &ThreadId,
    seq: Seq,
    bytes: &'a [u8],
) -> Result<Option<&'a [u8]>, FormatError> {
    Seal::of_row(kind, thread, seq).unwrap_encrypted(bytes)
}

/// Sequence for which records are sealed: they have no place in their thread's log.
pub const RECORD_SEQ: Seq = Seq(0);

/// Extensions of the format, by tag. A reader must understand an odd tag and may skip an even one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Extensions(Vec<(u16, Vec<u8>)>);

impl Extensions {
    /// In the record of a step: the labels of what its node had read by then. Odd, because a reader that drops them would lose
    /// labels. (Labels of a value are in the value itself.)
    pub const LABELS: u16 = 1;
    /// In the archive that an [`ArchiveStore`](crate::checkpoint::ArchiveStore) keeps: until when the thread's owner holds it. Even,
    /// because a lease fences nobody.
    pub const LEASE: u16 = 2;
    /// In the archive that an [`ArchiveStore`](crate::checkpoint::ArchiveStore) keeps: how long the thread is kept. Even, because a
    /// reader without it keeps the thread longer.
    pub const LIFETIME: u16 = 4;
    /// In a snapshot: how often the root graph was started again. Even, because it is only shown.
    pub const RESTARTS: u16 = 6;
    /// In the entry of a fork that an edit made: the number of its updates. Even, because it is only shown.
    pub const EDITS: u16 = 8;
    /// In the entry in which a run starts: the span of its caller. Even, because it is only shown.
    pub const CALLER: u16 = 10;

    pub(super) fn check(&self, understood: &[u16]) -> Result<(), FormatError> {
        let unknown = |tag: &u16| tag % 2 == 1 && !understood.contains(tag);
        match self.0.iter().map(|(tag, _)| *tag).find(unknown) {
            Some(tag) => Err(FormatError::Extension { tag }),
            None => Ok(()),
        }
    }

    pub(super) fn of_lease(lease: Option<Timestamp>) -> Self {
        let bytes = |lease: Timestamp| lease.0.to_le_bytes().to_vec();
        Self(Vec::from_iter(
            lease.map(|lease| (Self::LEASE, bytes(lease))),
        ))
    }

    pub(super) fn lease(&self) -> Option<Timestamp> {
        let (_, bytes) = self.0.iter().find(|(tag, _)| *tag == Self::LEASE)?;
        let bytes = bytes.as_slice().try_into().ok()?;
        Some(Timestamp(i64::from_le_bytes(bytes)))
    }

    /// Adds how long a thread is kept: eight bytes of milliseconds, one for what happens then.
    pub(super) fn with_lifetime(mut self, lifetime: Option<ThreadLifetime>) -> Self {
        if let Some(ThreadLifetime { ms, at_end }) = lifetime {
            let mut bytes = ms.to_le_bytes().to_vec();
            bytes.push(at_end as u8);
            self.0.push((Self::LIFETIME, bytes));
        }
        self
    }

    pub(super) fn lifetime(&self) -> Option<ThreadLifetime> {
        let (_, bytes) = self.0.iter().find(|(tag, _)| *tag == Self::LIFETIME)?;
        let (ms, rest) = bytes.split_first_chunk()?;
        Some(ThreadLifetime {
            ms: u64::from_le_bytes(*ms),
            at_end: AtLifetimeEnd::from_number(*rest.first()?)?,
        })
    }

    /// Creates the extensions of a snapshot; no restarts take no room.
    pub(crate) fn of_restarts(restarts: u64) -> Self {
        let restarts = (restarts > 0).then(|| (Self::RESTARTS, restarts.to_le_bytes().to_vec()));
        Self(Vec::from_iter(restarts))
    }

    pub(crate) fn restarts(&self) -> u64 {
        let found = self.0.iter().find(|(tag, _)| *tag == Self::RESTARTS);
        let bytes = found.and_then(|(_, bytes)| bytes.as_slice().try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    /// Creates the extensions of the entry of a fork that an edit with so many updates made.
    pub(crate) fn of_edits(edits: u32) -> Self {
        Self(vec![(Self::EDITS, edits.to_le_bytes().to_vec())])
    }

    pub(crate) fn edits(&self) -> Option<u32> {
        let (_, bytes) = self.0.iter().find(|(tag, _)| *tag == Self::EDITS)?;
        bytes.as_slice().try_into().ok().map(u32::from_le_bytes)
    }

    /// Creates the extensions of the entry in which a run of this caller starts.
    pub(crate) fn of_caller(caller: CallerSpan) -> Self {
        Self(vec![(Self::CALLER, caller.to_bytes())])
    }

    pub(crate) fn caller(&self) -> Option<CallerSpan> {
        let (_, bytes) = self.0.iter().find(|(tag, _)| *tag == Self::CALLER)?;
        CallerSpan::from_bytes(bytes)
    }

    /// Adds labels; an empty set takes no room.
    pub(crate) fn with_labels(mut self, labels: &Labels) -> Self {
        if !labels.is_empty() {
            let bytes = postcard::to_allocvec(labels).expect("plain data in memory always encodes");
            self.0.push((Self::LABELS, bytes));
        }
        self
    }
}

/// One entry of a thread's log: what changed, and what runs next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What wrote the entry.
    pub kind: EntryKind,
    /// The entry it follows: the one before, or an older one after a fork.
    pub parent: Seq,
    /// Time of the entry, by the driver's clock. Shown to people; never used for order.
    pub at: Timestamp,
    /// What changed, in order.
    pub changes: Vec<Change>,
    /// How the run stopped, if it stopped here.
    pub stop: Option<Stop>,
    /// Fields that later versions of the format add.
    pub extensions: Extensions,
}

/// What wrote an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A run started with an input.
    Input,
    /// One or more supersteps ended.
    Step,
    /// A task failed and will be retried or handled.
    Attempt,
    /// The run stopped without a superstep: paused, failed, cancelled.
    Stop,
    /// A person or a program changed the state.
    Update,
    /// The thread continues from an older entry, or from another thread's.
    Fork,
    /// A run with an id given by the caller resumed a thread that had stopped.
    Resume,
}

/// One change. Applied in order to a checkpoint, changes yield the next checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Change {
    /// A run started, or an update from outside created the thread.
    RunStarted(RunRecord),
    /// A subgraph was entered, or the root graph for the first time.
    FrameOpened(FrameOpened),
    /// A superstep of a graph ended.
    FrameAdvanced(FrameAdvanced),
    /// An attempt of a task failed.
    AttemptFailed(AttemptFailed),
    /// The thread continues from an older entry: the snapshot stored with this entry holds everything.
    Forked(Forked),
    /// A run with this id resumed the thread where it had stopped.
    RunResumed(RunId),
    /// The caller of a resume wrote into the state of the root graph; what runs next stays.
    StateWritten(StateWritten),
    /// The caller of a resume sent the root graph to nodes: what runs next now.
    Replanned(Next),
}

/// A run, as stored with its thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Id of the run.
    pub run: RunId,
    /// Name of the run's graph.
    pub graph: String,
    /// What the caller passed besides the input, for nodes to read.
    pub context: Option<Value>,
    /// Number of supersteps that the root graph may execute.
    pub step_limit: u64,
}

/// A graph or subgraph was entered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameOpened {
    /// Path of the graph; empty for the root.
    pub frame: FramePath,
    /// Task that entered it; `None` for the root.
    pub entered_by: Option<TaskId>,
    /// Version of its state.
    pub version: u32,
    /// What was written before its first superstep; `None` for a subgraph that shares its parent's state.
    pub input: Option<Value>,
    /// What runs in its first superstep.
    pub next: Next,
}

/// A superstep of a graph ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameAdvanced {
    /// Path of the graph whose superstep ended; empty for the root.
    pub frame: FramePath,
    /// What each task wrote, in task order.
    pub writes: Vec<TaskWrite>,
    /// What runs in the next superstep, and what waits for a later one.
    pub next: Next,
}

/// What runs in the next superstep, and what waits for a later one.
#[derive(Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Next {
    /// Tasks in task order: nodes by name, then sends in the order they were made.
    pub tasks: Vec<PlannedTask>,
    /// Joins of which some, but not all, sources have run.
    pub joins: Vec<JoinSeen>,
    /// Deferred nodes, which run when nothing else is left.
    pub deferred: Vec<NodeName>,
    /// Nodes whose route failed: it is called again before anything runs.
    pub reroute: Vec<NodeName>,
    /// Command to the parent graph with which the subgraph was left.
    pub leave: Option<ParentRecord>,
}

/// By hand, because each superstep replaces the plan of the one before: `clone_from` uses the memory of its lists again, which
/// a derived one does not.
impl Clone for Next {
    fn clone(&self) -> Self {
        let mut next = Self::default();
        next.clone_from(self);
        next
    }

    fn clone_from(&mut self, from: &Self) {
        let Self {
            tasks,
            joins,
            deferred,
            reroute,
            leave,
        } = from;
        self.tasks.clone_from(tasks);
        self.joins.clone_from(joins);
        self.deferred.clone_from(deferred);
        self.reroute.clone_from(reroute);
        self.leave.clone_from(leave);
    }
}

/// A task that is planned to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// Name of the node.
    pub node: NodeName,
    /// Payload that was sent to it; `None` for a node that reads the state.
    pub payload: Option<Value>,
}

/// A join that still waits for sources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinSeen {
    /// Target of the join. With its sources, it identifies the join within the graph.
    pub target: NodeName,
    /// All sources of the join.
    pub sources: Vec<NodeName>,
    /// Sources that have run.
    pub seen: Vec<NodeName>,
}

/// What one task wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskWrite {
    /// Name of the task's node.
    pub node: NodeName,
    /// Position among the tasks of its superstep, from 0.
    pub index: u32,
    /// Updates in order: one for a node, one per superstep for a subgraph that shares the state.
    pub updates: Vec<Value>,
    /// Events that the task emitted for watchers.
    pub events: Vec<Value>,
    /// Whether the result came from the node cache.
    pub cached: bool,
}

/// An attempt of a task failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptFailed {
    /// Path of the task's graph; empty for the root.
    pub frame: FramePath,
    /// Position among the tasks of its superstep, from 0.
    pub index: u32,
    /// Why the attempt failed, and how many attempts there were.
    pub failure: Failure,
    /// Whether the task is retried or its error handler runs.
    pub then: AfterFailure,
}

/// What happens after a failed attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AfterFailure {
    /// The task is retried, not before this time.
    Retry {
        /// Earliest time of the next attempt.
        at: Timestamp,
    },
    /// The error handler of the node runs instead.
    Handle,
}

/// Where a fork comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// Thread that was forked; `None` for this one.
    pub thread: Option<String>,
    /// Entry that was forked.
    pub seq: Seq,
}

/// What the caller of a resume wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateWritten {
    /// What was written to the state of the root graph; `None` for nothing.
    pub update: Option<Value>,
    /// Context of the run from here on; `None` keeps the one it had.
    pub context: Option<Value>,
}

/// How a run stopped, in its stored form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Stop {
    /// Nothing is left to run.
    Finished,
    /// The run waits for answers to interrupts.
    Paused {
        /// All open interrupts, in task order.
        asked: Vec<InterruptId>,
    },
    /// The run stopped at a breakpoint.
    Breakpoint(Breakpoint),
    /// The run reached its step limit.
    StepLimit,
    /// These tasks failed permanently.
    Failed(Vec<Failure>),
    /// The run was cancelled.
    Cancelled,
    /// The run was drained, so that another worker can recover it.
    Drained,
}

/// A breakpoint that stopped a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakpoint {
    /// Path of the graph with the breakpoint; empty for the root.
    pub frame: FramePath,
    /// Whether the run stopped before or after the nodes.
    pub side: BreakpointSide,
    /// Nodes at whose breakpoints the run stopped.
    pub nodes: Vec<NodeName>,
}

/// Which side of a node a breakpoint is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BreakpointSide {
    /// Before the node runs.
    Before,
    /// After the node's superstep ended.
    After,
}

/// The whole of a thread at one entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Entry where this branch began: part of every task's id.
    pub branch: Seq,
    /// The current or last run.
    pub run: RunRecord,
    /// The root graph and every open subgraph, parents first.
    pub frames: Vec<FrameSnapshot>,
    /// Fields that later versions of the format add.
    pub extensions: Extensions,
}

/// One graph or subgraph within a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameSnapshot {
    /// Path of the graph; empty for the root.
    pub path: FramePath,
    /// Version of its state.
    pub version: u32,
    /// State of the graph; `None` for a subgraph that shares its parent's.
    pub state: Option<Value>,
    /// For a subgraph that shares its parent's state: the updates it made so far, superstep by superstep.
    pub forwarded: Vec<Vec<Value>>,
    /// Task that entered it and has not ended; `None` for the root, and for a subgraph at rest.
    pub entered_by: Option<TaskId>,
    /// Number of the next superstep, from 0. It rises with every superstep, and whenever the graph is entered again.
    pub step: u64,
    /// Nodes that ran last.
    pub last: Vec<NodeName>,
    /// What runs in the next superstep, and what waits for a later one.
    pub next: Next,
    /// Failed attempts of the tasks that run next.
    pub failed: Vec<AttemptFailed>,
}

/// An interrupt, in its stored form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterruptRecord {
    /// Id of the interrupt, derived from its task and key.
    pub id: InterruptId,
    /// Path of the graph of the node that interrupts; empty for the root.
    pub frame: FramePath,
    /// Name of the node that interrupts.
    pub node: NodeName,
    /// Task that raised the interrupt.
    pub task: TaskId,
    /// Key that the node gave the interrupt, unique within its task.
    pub key: String,
    /// Kind of the interrupt, which user interfaces go by when they show it.
    pub kind: String,
    /// What the node asks, as plain JSON.
    pub request: Value,
    /// JSON Schema that an answer must fit; `None` for any answer.
    pub schema: Option<Value>,
    /// When the interrupt is overdue; `None` if it never is.
    pub deadline: Option<Timestamp>,
    /// What happens when the deadline passes.
    pub on_deadline: OnDeadline,
    /// Fields that later versions of the format add.
    pub extensions: Extensions,
}

impl InterruptRecord {
    /// Returns the answer that takes effect when the deadline passes; `None` if the interrupt stays open.
    pub fn answer_at_deadline(&self) -> Option<AnswerBody> {
        match &self.on_deadline {
            OnDeadline::Wait => None,
            OnDeadline::Answer(value) => Some(AnswerBody::Value(value.clone())),
            OnDeadline::Fail => Some(AnswerBody::Expired),
        }
    }
}

/// What happens when no person answers in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum OnDeadline {
    /// The interrupt stays open, and is shown as overdue.
    Wait,
    /// This value becomes the answer.
    Answer(Value),
    /// The node fails with [`FailureKind::Expired`].
    Fail,
}

/// The stored result of a task or of a step inside one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The result, or how an attempt ended without one.
    pub content: RecordContent,
    /// Fields that later versions of the format add.
    pub extensions: Extensions,
}

impl Record {
    /// Returns the labels of what the node had read when this was recorded.
    pub(crate) fn labels(&self) -> Result<Labels, FormatError> {
        let found = self
            .extensions
            .0
            .iter()
            .find(|(tag, _)| *tag == Extensions::LABELS);
        let Some((tag, bytes)) = found else {
            return Ok(Labels::NONE);
        };
        postcard::from_bytes(bytes).map_err(|_| FormatError::Extension { tag: *tag })
    }
}

/// The content of a [`Record`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RecordContent {
    /// The result of a `cx.step`.
    Step(StepRecord),
    /// The result of a whole task.
    Task(TaskRecord),
    /// A dispatched task's attempt that ended without a result.
    End(EndRecord),
}

/// How an attempt ended that has no result, for the worker that resumes the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndRecord {
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
    /// How the attempt ended.
    pub how: EndedHow,
}

/// How an attempt ended that has no result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum EndedHow {
    /// The node raised interrupts.
    Paused(Vec<Draft>),
    /// The node failed, or its update was refused.
    Failed {
        /// Kind of the failure, which decides about retries.
        kind: FailureKind,
        /// Message of the failure, preceded by the code that the node gave it; see `NodeError::to_stored`.
        message: String,
    },
    /// The attempt exceeded its timeout.
    TimedOut,
}

/// An interrupt that a node raised and that the thread has not stored yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// Key that the node gave the interrupt, unique within its task.
    pub key: String,
    /// Kind of the interrupt, which user interfaces go by when they show it.
    pub kind: String,
    /// What the node asks, as plain JSON.
    pub request: Value,
    /// JSON Schema that an answer must fit; `None` for any answer.
    pub schema: Option<Value>,
    /// How long to wait for an answer, in milliseconds; `None` for no deadline.
    pub within_ms: Option<u64>,
    /// What happens when the deadline passes.
    pub on_deadline: OnDeadline,
}

/// The result of one `cx.step`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Number of steps that the node had called before this one.
    pub ordinal: u32,
    /// Whether steps of the node had been in flight at the same time, so that their order means nothing.
    pub overlapped: bool,
    /// What the step returned, encoded.
    pub value: Value,
}

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// What the task wrote: an encoded update.
    pub update: Value,
    /// Targets of the node's command; empty if it routes by edges.
    pub goto: Vec<GotoRecord>,
    /// Command to the parent graph, which replaces update and targets.
    pub parent: Option<ParentRecord>,
    /// Events that the task emitted.
    pub events: Vec<Value>,
}

/// One target of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GotoRecord {
    /// Name of the node; `None` for the end.
    pub node: Option<NodeName>,
    /// Payload for the node; `None` for a node that reads the state.
    pub payload: Option<Value>,
}

/// A command to the parent graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParentRecord {
    /// What to write to the parent's state: an encoded update.
    pub update: Value,
    /// Where the parent goes.
    pub goto: Vec<GotoRecord>,
}

macro_rules! body {
    ($($type:ident => $kind:ident [$($tag:ident)*]),*) => {
        $(impl Body for $type {
            const KIND: BodyKind = BodyKind::$kind;
            const UNDERSTOOD: &'static [u16] = &[$(Extensions::$tag)*];
            fn extensions(&self) -> &Extensions {
                &self.extensions
            }
        })*
    };
}

body!(Entry => Entry [], Snapshot => Snapshot [], InterruptRecord => Interrupt [], Record => Record [LABELS]);
