//! What a feed holds: everything that happens on a thread, decoded once, in the order in which LangGraph streams it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep::{FramePath, RunId, Timestamp};

use crate::feed::FeedId;
use crate::wire::{self, CheckpointId};

/// Something that happened on a thread.
#[derive(Debug)]
pub(crate) struct FeedEvent {
    pub(crate) id: FeedId,
    pub(crate) run: RunId,
    /// Graph in which it happened.
    pub(crate) namespace: Namespace,
    pub(crate) at: Timestamp,
    /// About how many bytes the event occupies, for the bound of the ring.
    pub(crate) bytes: usize,
    pub(crate) body: FeedBody,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum FeedBody {
    /// A run began or resumed the thread.
    RunBegan,
    /// The run entered a subgraph, whose namespace the event has.
    SubgraphBegan {
        /// Name of the subgraph.
        graph: String,
    },
    /// The run left a subgraph, or stopped in it.
    SubgraphEnded(SubgraphEnd),
    /// A checkpoint was written, or is continued from.
    Checkpoint(Box<StreamedCheckpoint>),
    TaskStarted(Box<StartedTask>),
    TaskEnded(Box<EndedTask>),
    /// What a task wrote.
    Update {
        origin: Arc<TaskOrigin>,
        update: Arc<Json>,
        is_cached: bool,
    },
    /// What a node showed with a writer of its own.
    Custom {
        origin: Arc<TaskOrigin>,
        payload: Arc<Json>,
    },
    /// The state of the graph.
    Values(Arc<Json>),
    /// Tasks of the graph wait for answers; empty at a breakpoint.
    Interrupts {
        interrupts: Vec<Json>,
        values: Arc<Json>,
    },
    /// One open interrupt, in the graph that raised it.
    InputRequested(Json),
    /// A part of a message that a model is writing.
    Message(MessagePart),
    /// A message that a node wrote and that was not streamed in parts.
    MessageWhole {
        origin: Arc<TaskOrigin>,
        message: Arc<Json>,
        /// Whether a model wrote the message, as far as is known.
        is_of_model: bool,
    },
    /// A tool call.
    Tool(ToolPart),
    /// The run stopped.
    Stopped(RunStop),
    /// The state of the graph in which a run paused, after the event that it did.
    PausedValues(Arc<Json>),
}

/// Which graph of a run: the path of `node:task` from the root to it, empty for the root. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Namespace(Arc<[String]>);

impl Namespace {
    /// Returns the namespace of a frame.
    pub(crate) fn of(frame: &FramePath) -> Self {
        match frame.is_root() {
            true => Self::default(),
            false => Self(
                wire::namespace(frame)
                    .split('|')
                    .map(str::to_owned)
                    .collect(),
            ),
        }
    }

    /// Returns the segments, outermost first.
    pub(crate) fn segments(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the namespace of the graph around this one, with the segment that leads from there to this one.
    pub(crate) fn parent(&self) -> Option<(Self, &str)> {
        let (last, above) = self.0.split_last()?;
        Some((Self(Arc::from(above)), last))
    }

    /// Whether this graph is `outer`, or inside of it.
    pub(crate) fn is_within(&self, outer: &Self) -> bool {
        self.0.starts_with(&outer.0)
    }

    /// Returns the namespaces of the graphs around this one and of this one, outermost first, without the root.
    pub(crate) fn path(&self) -> impl Iterator<Item = Self> {
        (1..=self.0.len()).map(move |length| Self(Arc::from(&self.0[..length])))
    }
}

/// In the form in which clients write it: `outer:1234|inner:5678`.
impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("|"))
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Namespace({self})")
    }
}

/// Splits a segment of a namespace into the node and the task that entered the graph. A subgraph that lives as long as its
/// thread has no task.
pub(crate) fn split_segment(segment: &str) -> (&str, Option<&str>) {
    match segment.split_once(':') {
        Some((node, task)) => (node, Some(task)),
        None => (segment, None),
    }
}

/// The task that an event comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskOrigin {
    pub(crate) node: String,
    pub(crate) task: String,
    /// Number of the superstep as LangGraph counts: the first one after an input of a new thread is 1.
    pub(crate) step: i64,
    /// Place among the tasks of the superstep that were sent a payload; `None` if the task was not.
    pub(crate) sent: Option<u32>,
}

/// A checkpoint as it is streamed.
#[derive(Debug)]
pub(crate) struct StreamedCheckpoint {
    pub(crate) id: CheckpointId,
    pub(crate) parent: Option<CheckpointId>,
    /// What wrote it: `input`, `loop`, `update` or `fork`.
    pub(crate) source: &'static str,
    pub(crate) step: i64,
    pub(crate) values: Arc<Json>,
    /// Tasks that run next.
    pub(crate) tasks: Vec<CheckpointTask>,
    /// Checkpoints of the graphs around this one, outermost first.
    pub(crate) outer: Vec<(Namespace, CheckpointId)>,
    /// For a checkpoint from which the run continues. Default: the run wrote it.
    pub(crate) found: Option<FoundCheckpoint>,
}

/// What is known of a checkpoint that was there before the run.
#[derive(Debug, Clone)]
pub(crate) struct FoundCheckpoint {
    /// The run that wrote it; `None` for an edit.
    pub(crate) run: Option<RunId>,
    /// The older checkpoint that an edit continued from, if it did not continue from the newest.
    pub(crate) base: Option<CheckpointId>,
    /// For a subgraph: the task that is in it.
    pub(crate) entered_by: Option<TaskOrigin>,
}

/// A task that runs after a checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointTask {
    pub(crate) id: String,
    pub(crate) node: String,
    /// What the task asked before the run stopped.
    pub(crate) interrupts: Vec<Json>,
    /// Why the task failed in the run before.
    pub(crate) error: Option<String>,
    /// Whether the task enters a subgraph.
    pub(crate) is_subgraph: bool,
}

/// A task that starts.
#[derive(Debug)]
pub(crate) struct StartedTask {
    pub(crate) origin: Arc<TaskOrigin>,
    pub(crate) input: Arc<Json>,
    pub(crate) triggers: Vec<String>,
}

/// A task that ended, failed, or waits for an answer.
#[derive(Debug)]
pub(crate) struct EndedTask {
    pub(crate) origin: Arc<TaskOrigin>,
    pub(crate) result: Arc<Json>,
    /// `{"error", "message"}`.
    pub(crate) error: Option<Json>,
    pub(crate) interrupts: Vec<Json>,
    pub(crate) is_cached: bool,
}

/// How a subgraph was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubgraphEnd {
    Completed,
    Failed,
    Interrupted,
}

/// How a run stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunStop {
    Finished,
    /// It waits for answers, or at a breakpoint.
    Paused,
    Cancelled,
    Failed {
        /// Name of the error, as clients know it.
        error: String,
        message: String,
    },
}

/// A part of a message that a model is writing. The parts of one message come in order; those of two messages may alternate.
#[derive(Debug)]
pub(crate) struct MessagePart {
    pub(crate) origin: Arc<TaskOrigin>,
    /// Id that the message will have.
    pub(crate) message: Arc<str>,
    pub(crate) change: MessageChange,
}

/// What a part of a message changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MessageChange {
    Began,
    /// A block of content begins. Blocks are numbered from 0.
    BlockBegan {
        block: u32,
        kind: BlockKind,
    },
    /// Text to append to the block: of the answer, of the reasoning, or of the arguments of a call.
    Delta {
        block: u32,
        kind: BlockKind,
        text: String,
    },
    /// The block is complete.
    BlockEnded {
        block: u32,
        content: Json,
    },
    /// The message is complete, or void: the model is called again, and writes the message again under the same id.
    Ended {
        usage: Option<Json>,
        is_void: bool,
    },
}

/// Kind of a block of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Text,
    Reasoning,
    ToolCall {
        /// Position among the calls of the message, from 0.
        index: u32,
        id: String,
        name: String,
    },
}

/// What happened to a tool call.
#[derive(Debug)]
pub(crate) struct ToolPart {
    pub(crate) origin: Arc<TaskOrigin>,
    /// Id of the call.
    pub(crate) call: String,
    pub(crate) name: String,
    pub(crate) change: ToolChange,
}

/// A change of a tool call.
#[derive(Debug)]
pub(crate) enum ToolChange {
    Started { input: Json },
    Progress { text: String },
    Ended { is_error: bool, output: String },
}
