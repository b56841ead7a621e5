//! Reads threads without running them: states as of any entry, open interrupts, and whether this program can resume a thread.

use std::sync::Arc;

use crate::checkpoint::format::{
    Body, Change, Entry, EntryKind, InterruptRecord, RunRecord, Snapshot, Stop,
};
use crate::checkpoint::{History, InterruptRow, Loaded, StoredBody};
use crate::error::{FormatError, OpenError};
use crate::graph::{Definition, Live};
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
    /// State of the root graph, as a JSON object: the empty state if the thread went back to its beginning.
    pub values: Value,
    /// Number of the root graph's next superstep, from 0. It rises with every superstep, and with every start of a run.
    pub step: u64,
    /// How often the root graph was started again, by an input after the first or by a fork. Logs that older programs shortened may
    /// lack some.
    pub restarts: u64,
    /// Tasks that run next, those of subgraphs included, parents first.
    pub next: Vec<NextTask>,
    /// What wrote the entry.
    pub kind: EntryKind,
    /// Whether the entry applied an input: it started a run, or was a state update in the name of the input.
    pub is_input: bool,
    /// For a fork that an edit made: the number of its updates, 0 if the thread only went back. `None` for every other entry.
    pub edits: Option<u32>,
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
        self.is_input = applies_input(entry);
        self.edits = entry.extensions.edits();
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
    Ok(Some(match newest {
        Some(newest) => state.with_entry(&Entry::read(newest, thread)?),
        None => state,
    }))
}

/// Reads the states at many entries with one replay, oldest first.
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
            .map(|position| state_of(position, stored.seq));
        states.extend(state.map(|state| state.with_entry(&entry)));
    }
    Ok(states)
}

/// Reads the states of a subgraph after each of its changes in many entries, with one replay, oldest first. An entry may have
/// several: it is entered together with its first superstep. Values, step and next tasks are those of the subgraph and of what is
/// inside of it.
///
/// `entries` follow one another in the log, right after the end of `history`, and none of them is a fork. (So a subgraph can be
/// read that ended within its entry, together with the superstep of its parent.)
pub fn read_subgraph_states(
    graph: &Arc<Definition>,
    thread: &ThreadId,
    frame: &FramePath,
    history: &History,
    entries: &[StoredBody],
) -> Result<Vec<ThreadState>, OpenError> {
    let mut position = Position::read(graph, thread, history)?;
    let mut states = Vec::new();
    for stored in entries {
        let entry = Entry::read(stored, thread)?;
        for change in &entry.changes {
            let changed = Position::replay(position, graph, thread, change.clone())?;
            if changes_frame(change, frame) {
                let state = frame_state(&changed, frame, stored.seq);
                states.extend(state.map(|state| ThreadState {
                    is_input: matches!(change, Change::FrameOpened(_)),
                    ..state.with_entry(&entry)
                }));
            }
            position = Some(changed);
        }
    }
    Ok(states)
}

/// Whether an entry applied an input to the root graph, as the last that happened to it.
fn applies_input(entry: &Entry) -> bool {
    let mut changes = entry.changes.iter().rev();
    let last = changes.find(|change| changes_frame(change, &FramePath::root()));
    // A run that is stored when it stops has its supersteps in the same entry.
    matches!(last, Some(Change::FrameOpened(_)))
}

fn changes_frame(change: &Change, frame: &FramePath) -> bool {
    match change {
        Change::FrameOpened(opened) => opened.frame == *frame,
        Change::FrameAdvanced(advanced) => advanced.frame == *frame,
        _ => false,
    }
}

/// Returns the state of a thread at a position, without what the entry says.
fn state_of(position: &Position, seq: Seq) -> ThreadState {
    let root = FramePath::root();
    let found = frame_state(position, &root, seq);
    found.unwrap_or_else(|| {
        let values = encoded(&position.graph, &position.graph.ops.initial());
        bare_state(position, seq, values)
    })
}

/// Returns a state with these values, in which nothing has run and nothing is planned.
fn bare_state(position: &Position, seq: Seq, values: Value) -> ThreadState {
    ThreadState {
        seq,
        run: position.run.clone(),
        values,
        step: 0,
        restarts: position.restarts,
        next: Vec::new(),
        kind: EntryKind::Step,
        is_input: false,
        edits: None,
        parent: Seq(seq.0.saturating_sub(1)),
        at: Timestamp::default(),
        stop: None,
    }
}

/// Returns the state of one graph of a thread, with the tasks that run next in it and inside of it; `None` if it is not open.
fn frame_state(position: &Position, frame: &FramePath, seq: Seq) -> Option<ThreadState> {
    let found = position.frames.get(frame)?;
    let mut next = Vec::new();
    let inside = position.frames.iter();
    for (path, inner) in inside.filter(|(path, _)| *path == frame || path.is_below(frame)) {
        for (index, task) in (0..).zip(&inner.next.tasks) {
            let id = position.task_id(path, &task.node, index);
            next.push(NextTask {
                frame: path.clone(),
                node: task.node.clone(),
                task: id,
                payload: task.payload.clone(),
            });
        }
    }
    Some(ThreadState {
        step: found.step,
        next,
        ..bare_state(position, seq, encoded(&found.graph, &found.state))
    })
}

fn encoded(graph: &Definition, state: &Live) -> Value {
    let values = graph.ops.encode_state(state);
    values.expect("every value in it was read back when it was written")
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
        values: encoded(&frame.graph, &frame.state),
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

impl OpenInterrupt {
    /// Decodes a stored interrupt, answered or not.
    pub fn read(row: InterruptRow) -> Result<Self, FormatError> {
        let interrupt = InterruptRecord::unseal(&row.body, &row.thread, row.seq)?;
        Ok(Self { interrupt, row })
    }
}

/// Decodes stored interrupts, answered ones included.
pub fn open_interrupts(rows: Vec<InterruptRow>) -> Result<Vec<OpenInterrupt>, FormatError> {
    rows.into_iter().map(OpenInterrupt::read).collect()
}

impl Entry {
    /// Decodes a stored entry.
    pub fn read(stored: &StoredBody, thread: &ThreadId) -> Result<Self, FormatError> {
        Self::unseal(&stored.body, thread, stored.seq)
    }
}
