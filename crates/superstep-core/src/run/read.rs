//! Reads threads without running them: states as of any entry, open interrupts, and whether this program can resume a thread.

use std::sync::Arc;

use crate::checkpoint::format::{Body, Change, Entry, InterruptRecord, RunRecord, Snapshot};
use crate::checkpoint::{History, InterruptRow, Loaded};
use crate::error::{FormatError, OpenError};
use crate::graph::Definition;
use crate::ids::{FramePath, NodeName, Seq, TaskId, ThreadId};
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
pub fn read_state(
    graph: &Arc<Definition>,
    thread: &ThreadId,
    history: &History,
) -> Result<Option<ThreadState>, OpenError> {
    let Some(position) = Position::read(graph, thread, history)? else {
        return Ok(None);
    };
    let Some(root) = position.root() else {
        return Ok(None);
    };
    let last = history
        .entries
        .last()
        .or(history.snapshot.as_ref())
        .map_or(Seq(0), |stored| stored.seq);
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
    Ok(Some(ThreadState {
        seq: last,
        run: position.run.clone(),
        values,
        step: root.step,
        next,
    }))
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
    pub fn read(
        stored: &crate::checkpoint::StoredBody,
        thread: &ThreadId,
    ) -> Result<Self, FormatError> {
        Self::unseal(&stored.body, thread, stored.seq)
    }
}
