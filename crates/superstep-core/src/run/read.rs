//! Reads threads without running them: states as of any entry, open interrupts, and whether this program can resume a thread.

use std::sync::Arc;

use crate::checkpoint::format::{
    Body, Change, Entry, EntryKind, InterruptRecord, RunRecord, Snapshot, Stop,
};
use crate::checkpoint::{History, InterruptRow, Loaded, StoredBody};
use crate::error::{FormatError, OpenError};
use crate::graph::Definition;
use crate::ids::{FramePath, NodeName, Seq, TaskId, ThreadId, Timestamp};
use crate::run::position::Position;
use crate::value::Value;

/// A thread as of one entry.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadState {
    /// Sequence number of the entry.
    pub seq: Seq,
    /// Run that wrote the entry.
    pub run: RunRecord,
    /// State of the root graph, as a JSON object.
    pub values: Value,
    /// Number of the root graph's next superstep, from 0. It rises with every superstep, and with every start of a run.
    pub step: u64,
    /// Tasks that run next, those of subgraphs included, parents first.
    pub next: Vec<NextTask>,
    /// What wrote the entry.
    pub kind: EntryKind,
    /// The entry that it follows: the one before, or an older one after a fork.
    pub parent: Seq,
    /// Time of the entry, by the driver's clock.
    pub at: Timestamp,
    /// How a run stopped, if one stopped here.
    pub stop: Option<Stop>,
}

impl ThreadState {
    /// Sets what the entry itself says: its kind, the entry before it, its time, and how a run stopped. Needed for a state that
    /// was read from a snapshot alone.
    #[must_use]
    pub fn with_entry(mut self, entry: &Entry) -> Self {
        self.kind = entry.kind;
        self.parent = entry.parent;
        self.at = entry.at;
        self.stop = entry.stop.clone();
        self
    }
}

/// State of a subgraph that a thread is inside of.
#[derive(Debug, Clone, PartialEq)]
pub struct SubgraphState {
    /// Path of the subgraph.
    pub frame: FramePath,
    /// State of the subgraph, as a JSON object.
    pub values: Value,
}

/// A task that runs next.
#[derive(Debug, Clone, PartialEq)]
pub struct NextTask {
    /// Path of the task's graph; empty for the root.
    pub frame: FramePath,
    /// Name of the task's node.
    pub node: NodeName,
    /// Id of the task.
    pub task: TaskId,
    /// Payload that was sent to the task; `None` for a node that reads the state.
    pub payload: Option<Value>,
}

/// Reads the state at the end of a history; `None` if nothing has happened.
///
/// A history that is a snapshot alone does not have the entry that the snapshot was taken with. Then the state has the kind of a
/// step, no time and no stop, until [`ThreadState::with_entry`] sets them.
pub fn read_state(
    graph: &Arc<Definition>,
    thread: &ThreadId,
    history: &History,
) -> Result<Option<ThreadState>, OpenError> {
    let Some(position) = Position::read(graph, thread, history)? else {
        return Ok(None);
    };
    let newest = history.entries.last();
    let seq = newest.or(history.snapshot.as_ref());
    let state = state_of(&position, seq.map_or(Seq(0), |stored| stored.seq));
    match (state, newest) {
        (Some(state), Some(newest)) => Ok(Some(state.with_entry(&Entry::read(newest, thread)?))),
        (state, _) => Ok(state),
    }
}

/// Reads the states at many entries with one replay, oldest first. Entries without a state of the root graph are left out.
///
/// `entries` follow one another in the log, and `history` ends with the first of them. A fork continues from its own snapshot, so
/// only the first entry may be one.
pub fn read_states(
    graph: &Arc<Definition>,
    thread: &ThreadId,
    history: &History,
    entries: &[StoredBody],
) -> Result<Vec<ThreadState>, OpenError> {
    let mut position = Position::read(graph, thread, history)?;
    let mut states = Vec::with_capacity(entries.len());
    for (index, stored) in entries.iter().enumerate() {
        let entry = Entry::read(stored, thread)?;
        if index > 0 {
            position = Position::replay_entry(position, graph, thread, entry.clone())?;
        }
        let state = position
            .as_ref()
            .and_then(|position| state_of(position, stored.seq));
        states.extend(state.map(|state| state.with_entry(&entry)));
    }
    Ok(states)
}

/// Returns the state of a thread at a position, without what the entry says; `None` if its graph was never entered.
fn state_of(position: &Position, seq: Seq) -> Option<ThreadState> {
    let root = position.root()?;
    let mut next = Vec::new();
    for (path, frame) in &position.frames {
        for (index, task) in (0..).zip(&frame.next.tasks) {
            let id = position.task_id(path, &task.node, index);
            next.push(NextTask {
                frame: path.clone(),
                node: task.node.clone(),
                task: id,
                payload: task.payload.clone(),
            });
        }
    }
    let values = root
        .graph
        .ops
        .encode_state(&root.state)
        .expect("every value in it was read back when it was written");
    Some(ThreadState {
        seq,
        run: position.run.clone(),
        values,
        step: root.step,
        next,
        kind: EntryKind::Step,
        parent: Seq(seq.0.saturating_sub(1)),
        at: Timestamp::default(),
        stop: None,
    })
}

/// Reads the states of the subgraphs that are open at the end of a history, parents first. A subgraph that has ended has none:
/// what it returned is in the state of its parent.
pub fn read_subgraphs(
    graph: &Arc<Definition>,
    thread: &ThreadId,
    history: &History,
) -> Result<Vec<SubgraphState>, OpenError> {
    let Some(position) = Position::read(graph, thread, history)? else {
        return Ok(Vec::new());
    };
    let inner = position.frames.iter().filter(|(path, _)| !path.is_root());
    let read = inner.map(|(path, frame)| SubgraphState {
        frame: path.clone(),
        values: frame
            .graph
            .ops
            .encode_state(&frame.state)
            .expect("every value in it was read back when it was written"),
    });
    Ok(read.collect())
}

/// Checks whether this program could resume a thread. Runs nothing and writes nothing.
pub fn check(graph: &Arc<Definition>, thread: &ThreadId, loaded: &Loaded) -> Result<(), OpenError> {
    if let Some(position) = Position::read(graph, thread, &loaded.history)? {
        position.check()?;
    }
    Ok(())
}

/// Returns the name of the graph that a history belongs to; `None` if nothing has happened.
pub fn graph_name(thread: &ThreadId, history: &History) -> Result<Option<String>, FormatError> {
    for stored in history.entries.iter().rev() {
        let entry = Entry::read(stored, thread)?;
        let started = entry.changes.into_iter().find_map(|change| match change {
            Change::RunStarted(run) => Some(run.graph),
            _ => None,
        });
        if started.is_some() {
            return Ok(started);
        }
    }
    match &history.snapshot {
        Some(stored) => Ok(Some(
            Snapshot::unseal(&stored.body, thread, stored.seq)?
                .run
                .graph,
        )),
        None => Ok(None),
    }
}

/// A decoded interrupt with its stored row.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenInterrupt {
    /// What the node asks.
    pub interrupt: InterruptRecord,
    /// The stored row: when the interrupt was raised, and who answered what.
    pub row: InterruptRow,
}

/// Decodes stored interrupts, answered ones included.
pub fn open_interrupts(rows: Vec<InterruptRow>) -> Result<Vec<OpenInterrupt>, FormatError> {
    let read = |row: InterruptRow| {
        let interrupt = InterruptRecord::unseal(&row.body, &row.thread, row.seq)?;
        Ok(OpenInterrupt { interrupt, row })
    };
    rows.into_iter().map(read).collect()
}

impl Entry {
    /// Decodes a stored entry.
    pub fn read(stored: &StoredBody, thread: &ThreadId) -> Result<Self, FormatError> {
        Self::unseal(&stored.body, thread, stored.seq)
    }
}
