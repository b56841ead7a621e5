//! The stored form of a thread: log entries, snapshots and records. **Everything persisted is here**, in
//! `archive.rs` what a thread is as a whole, and in `driver/request.rs` what is asked of one.
//!
//! A body is `format · kind · envelope · checksum · content`, sealed for its place (`seal.rs`). The content is
//! postcard: compact, and read by position, so
//!
//! - fields are never reordered or removed, and new variants go last;
//! - what comes later goes into [`Extensions`], by tag;
//! - any other change is a new format number with its own golden files.
//!
//! User values inside are [`Value`]s: JSON behind a codec byte.

use serde::{Deserialize, Serialize};

use crate::checkpoint::AnswerBody;
use crate::checkpoint::seal::Seal;
use crate::error::{Failure, FailureKind, FormatError};
use crate::ids::{FramePath, InterruptId, NodeName, RunId, Seq, TaskId, ThreadId, Timestamp};
use crate::label::Labels;
use crate::value::Value;

/// The newest format this program writes and reads.
pub const FORMAT: u8 = 1;

/// What a body is, so that a snapshot is never read as an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BodyKind {
    /// An [`Entry`].
    Entry = 1,
    /// A [`Snapshot`].
    Snapshot = 2,
    /// A [`Question`].
    Question = 3,
    /// A task's result or a step's result.
    Record = 4,
    /// A whole thread: a [`checkpoint::Archive`](crate::checkpoint::Archive).
    Archive = 5,
    /// A request that waits for a worker: a [`driver::QueuedRequest`](crate::driver::QueuedRequest).
    Request = 6,
}

/// Something that is stored as a body.
pub trait Body: Serialize + for<'de> Deserialize<'de> {
    /// What it is.
    const KIND: BodyKind;

    /// The odd tags of extensions that a reader of such a body understands.
    const UNDERSTOOD: &'static [u16] = &[];

    /// The extensions, which are checked when it is read.
    fn extensions(&self) -> &Extensions;

    /// The stored bytes.
    fn seal(&self, thread: &ThreadId, seq: Seq) -> Vec<u8> {
        Seal::of_row(Self::KIND, thread, seq).close(self)
    }

    /// Reads stored bytes, or says what is wrong with them.
    fn unseal(bytes: &[u8], thread: &ThreadId, seq: Seq) -> Result<Self, FormatError> {
        let body: Self = Seal::of_row(Self::KIND, thread, seq).read(bytes)?;
        body.extensions().check(Self::UNDERSTOOD)?;
        Ok(body)
    }
}

/// Room for what comes later, by tag. A reader must understand an odd tag; an even one may be passed over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Extensions(Vec<(u16, Vec<u8>)>);

impl Extensions {
    /// With the record of a step: the labels of what its node had read by then. A reader that loses them would
    /// break a promise. (Labels of a value stand in the value itself.)
    pub const LABELS: u16 = 1;

    pub(super) fn check(&self, understood: &[u16]) -> Result<(), FormatError> {
        let unknown = |tag: &u16| tag % 2 == 1 && !understood.contains(tag);
        match self.0.iter().map(|(tag, _)| *tag).find(unknown) {
            Some(tag) => Err(FormatError::Extension { tag }),
            None => Ok(()),
        }
    }

    /// With labels; none take no room.
    pub(crate) fn with_labels(mut self, labels: &Labels) -> Self {
        if !labels.is_empty() {
            let bytes = postcard::to_allocvec(labels).expect("plain data in memory always encodes");
            self.0.push((Self::LABELS, bytes));
        }
        self
    }
}

/// One entry of a thread's log: what changed, and what is to run next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What made it.
    pub kind: EntryKind,
    /// The entry it follows: the one before, or an older one after a fork.
    pub parent: Seq,
    /// When, by the driver's clock. Shown to people; never used for order.
    pub at: Timestamp,
    /// What changed, in order.
    pub changes: Vec<Change>,
    /// How the run stopped, if it stopped here.
    pub stop: Option<Stop>,
    /// What comes later.
    pub extensions: Extensions,
}

/// What made an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A run began with an input.
    Input,
    /// One or more supersteps ended.
    Step,
    /// A task failed and will be tried again or handled.
    Attempt,
    /// The run stopped without a superstep: paused, failed, cancelled.
    Stop,
    /// A person or a program changed the state.
    Update,
    /// The thread goes on from an older entry, or from another thread's.
    Fork,
    /// A run that was given an id went on with a thread that had stopped.
    Resume,
}

/// One change. Applied in order to a checkpoint, changes give the next checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Change {
    /// A run began.
    RunStarted(RunRecord),
    /// A subgraph was entered, or the root graph for the first time.
    FrameOpened(FrameOpened),
    /// A superstep of a graph ended.
    FrameAdvanced(FrameAdvanced),
    /// An attempt of a task failed.
    AttemptFailed(AttemptFailed),
    /// The thread goes on from an older entry: everything is as the snapshot beside this entry says.
    Forked(Forked),
    /// A run with this id went on where the thread had stopped.
    RunResumed(RunId),
}

/// A run, as it is kept with its thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its id.
    pub run: RunId,
    /// The graph's name.
    pub graph: String,
    /// What the caller gave beside the input, for nodes to read.
    pub context: Option<Value>,
    /// How many supersteps the root graph may make.
    pub step_limit: u64,
}

/// A graph or subgraph was entered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameOpened {
    /// Which.
    pub frame: FramePath,
    /// The task that entered it; none for the root.
    pub entered_by: Option<TaskId>,
    /// The version of its state.
    pub version: u32,
    /// What was written before its first superstep; none for a subgraph that shares its parent's state.
    pub input: Option<Value>,
    /// What runs first.
    pub next: Next,
}

/// A superstep ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameAdvanced {
    /// Of which graph.
    pub frame: FramePath,
    /// What each task wrote, in task order.
    pub writes: Vec<TaskWrite>,
    /// What runs next.
    pub next: Next,
}

/// What runs in the next superstep, and what waits for a later one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Next {
    /// In task order: nodes by name, then sends in the order they were made.
    pub tasks: Vec<PlannedTask>,
    /// Joins that have seen some of their sources.
    pub joins: Vec<JoinSeen>,
    /// Deferred nodes that run when nothing else does.
    pub deferred: Vec<NodeName>,
    /// Nodes whose route could not be followed: it is asked again before anything runs.
    pub reroute: Vec<NodeName>,
    /// The subgraph was left with a command to its parent.
    pub leave: Option<ParentRecord>,
}

/// A task that is to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// The node.
    pub node: NodeName,
    /// What was sent to it; none for a node that reads the state.
    pub payload: Option<Value>,
}

/// A join that still waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinSeen {
    /// Which join of the graph, by its target and its sources.
    pub target: NodeName,
    /// All sources of the join.
    pub sources: Vec<NodeName>,
    /// Those that have run.
    pub seen: Vec<NodeName>,
}

/// What one task wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskWrite {
    /// The node.
    pub node: NodeName,
    /// Its place among the tasks of its superstep.
    pub index: u32,
    /// Its updates in order: one for a node, one per superstep for a subgraph that shares the state.
    pub updates: Vec<Value>,
    /// What it emitted for those who watch.
    pub events: Vec<Value>,
    /// Whether the result came from the node cache.
    pub cached: bool,
}

/// An attempt of a task failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptFailed {
    /// Its graph.
    pub frame: FramePath,
    /// Its place among the tasks of its superstep.
    pub index: u32,
    /// Why, and how many attempts there were.
    pub failure: Failure,
    /// What happens now.
    pub then: AfterFailure,
}

/// What happens after an attempt failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AfterFailure {
    /// It is tried again, not before this time.
    Retry {
        /// When.
        at: Timestamp,
    },
    /// Its error handler runs instead.
    Handle,
}

/// Where a fork comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// Another thread, or none for this one.
    pub thread: Option<String>,
    /// The entry.
    pub seq: Seq,
}

/// How a run stopped, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Stop {
    /// Nothing is left to run.
    Finished,
    /// It waits for answers to these questions.
    Paused {
        /// All that are open, in task order.
        asked: Vec<InterruptId>,
    },
    /// It stands at a breakpoint.
    Breakpoint(Breakpoint),
    /// The step limit was reached.
    StepLimit,
    /// Tasks failed.
    Failed(Vec<Failure>),
    /// It was cancelled.
    Cancelled,
    /// It was asked to hand the thread back.
    Drained,
}

/// A breakpoint that stopped a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakpoint {
    /// In which graph.
    pub frame: FramePath,
    /// Before or after.
    pub side: BreakpointSide,
    /// Which of its nodes.
    pub nodes: Vec<NodeName>,
}

/// Which side of a node a breakpoint is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BreakpointSide {
    /// Before it runs.
    Before,
    /// After its superstep ended.
    After,
}

/// The whole of a thread at one entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The entry where this branch began: part of every task's id.
    pub branch: Seq,
    /// The current or last run.
    pub run: RunRecord,
    /// The root graph and every open subgraph, parents first.
    pub frames: Vec<FrameSnapshot>,
    /// What comes later.
    pub extensions: Extensions,
}

/// One graph or subgraph within a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameSnapshot {
    /// Which.
    pub path: FramePath,
    /// The version of its state.
    pub version: u32,
    /// Its state; none for a subgraph that shares its parent's.
    pub state: Option<Value>,
    /// For such a subgraph: the updates it made so far, superstep by superstep.
    pub forwarded: Vec<Vec<Value>>,
    /// The task that entered it and has not ended; none for the root, and for a subgraph at rest.
    pub entered_by: Option<TaskId>,
    /// How many supersteps it has made.
    pub step: u64,
    /// The nodes that ran last.
    pub last: Vec<NodeName>,
    /// What runs next.
    pub next: Next,
    /// Failed attempts of the tasks that run next.
    pub failed: Vec<AttemptFailed>,
}

/// A question to a person, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its id.
    pub id: InterruptId,
    /// The graph of the node that asks.
    pub frame: FramePath,
    /// The node that asks.
    pub node: NodeName,
    /// The task that asks.
    pub task: TaskId,
    /// The key that the node gave it.
    pub key: String,
    /// What kind of question it is, for those who show it.
    pub kind: String,
    /// What is asked.
    pub request: Value,
    /// The JSON schema of an answer, if it has one.
    pub schema: Option<Value>,
    /// Until when an answer is waited for.
    pub deadline: Option<Timestamp>,
    /// What happens when the deadline passes.
    pub on_deadline: OnDeadline,
    /// What comes later.
    pub extensions: Extensions,
}

impl Question {
    /// Returns the answer that the interrupt gives itself when its deadline passes; none if it stays open.
    pub fn answer_at_deadline(&self) -> Option<AnswerBody> {
        match &self.on_deadline {
            OnDeadline::Wait => None,
            OnDeadline::Answer(value) => Some(AnswerBody::Value(value.clone())),
            OnDeadline::Fail => Some(AnswerBody::Expired),
        }
    }
}

/// What happens when nobody answers in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum OnDeadline {
    /// The question stays open, and is shown as overdue.
    Wait,
    /// This is the answer then.
    Answer(Value),
    /// The node fails.
    Fail,
}

/// The stored result of a task or of a step inside one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What was recorded.
    pub content: RecordContent,
    /// What comes later.
    pub extensions: Extensions,
}

impl Record {
    /// The labels of what the node had read when this was recorded.
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

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RecordContent {
    /// The result of `cx.step`.
    Step(StepRecord),
    /// The result of a whole task.
    Task(TaskRecord),
    /// An attempt of a task that was run for another worker ended without a result.
    End(EndRecord),
}

/// How an attempt ended that gave no result, for the worker whose run it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndRecord {
    /// Which attempt, counted from 1.
    pub attempt: u32,
    /// How.
    pub how: EndedHow,
}

/// How an attempt ended that gave no result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum EndedHow {
    /// It asks.
    Paused(Vec<Draft>),
    /// It failed.
    Failed {
        /// Which kind of failure.
        kind: FailureKind,
        /// In words.
        message: String,
    },
    /// It took too long.
    TimedOut,
}

/// A question that no thread asks yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The key that the node gave it.
    pub key: String,
    /// What kind of question it is, for those who show it.
    pub kind: String,
    /// What is asked.
    pub request: Value,
    /// The JSON schema of an answer, if it has one.
    pub schema: Option<Value>,
    /// How long an answer is waited for.
    pub within_ms: Option<u64>,
    /// What happens when the deadline passes.
    pub on_deadline: OnDeadline,
}

/// The result of one `cx.step`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// How many steps the node had called before this one.
    pub ordinal: u32,
    /// Whether steps of the node had been in flight at the same time, so that their order means nothing.
    pub overlapped: bool,
    /// The result.
    pub value: Value,
}

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// What it wrote.
    pub update: Value,
    /// Where it goes, if it said so.
    pub goto: Vec<GotoRecord>,
    /// A command to the parent graph, instead of the above.
    pub parent: Option<ParentRecord>,
    /// What it emitted.
    pub events: Vec<Value>,
}

/// One target of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GotoRecord {
    /// The node, or none for the end.
    pub node: Option<NodeName>,
    /// What is sent to it; none for a node that reads the state.
    pub payload: Option<Value>,
}

/// A command to the parent graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParentRecord {
    /// What is written to the parent's state.
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

body!(Entry => Entry [], Snapshot => Snapshot [], Question => Question [], Record => Record [LABELS]);
