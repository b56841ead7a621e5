//! The checkpoints of subgraphs, newest first. An entry of the log may hold several: it may enter a subgraph and end its first
//! superstep.

use std::sync::Arc;

use superstep::checkpoint::format::EntryKind;
use superstep::graph::Definition;
use superstep::run::{NextTask, ThreadState};
use superstep::{DriveError, FramePath, FrameSegment, Runtime, ThreadId, Value};

use crate::Shared;
use crate::error::ApiResult;
use crate::history::{Checkpoint, read, with_input};
use crate::wire::{BEFORE_INPUT, CheckpointId};

/// A checkpoint of a subgraph.
#[derive(Debug, Clone)]
pub(crate) struct SubgraphCheckpoint {
    pub(crate) checkpoint: Checkpoint,
    /// For a checkpoint before an input: the state that the input led to.
    pub(crate) input: Option<Value>,
}

/// The checkpoint of a graph around a subgraph, from which the task runs that is in the subgraph.
#[derive(Debug, Clone)]
pub(crate) struct OuterCheckpoint {
    pub(crate) frame: FramePath,
    pub(crate) id: CheckpointId,
    /// Number of the step, in the count of clients.
    pub(crate) step: i64,
    /// Place of the task among those of the superstep that were sent a payload; `None` if it was not.
    pub(crate) sent: Option<u32>,
}

/// Reads at most `limit` checkpoints of a subgraph that are older than `before`, newest first.
pub(crate) async fn of_subgraph(
    runtime: &Runtime,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    frame: &FramePath,
    before: Option<CheckpointId>,
    limit: usize,
) -> Result<Vec<SubgraphCheckpoint>, DriveError> {
    let above = before.map(|before| match before.place {
        BEFORE_INPUT => before.seq,
        _ => before.seq.next(),
    });
    let mut wanted = limit;
    loop {
        let states = runtime.subgraph_states_of(graph, thread, frame, above, wanted);
        let states = states.await?;
        let mut found = checkpoints_of(&states);
        found.retain(|found| before.is_none_or(|before| found.checkpoint.id < before));
        // One more than wanted: it is the parent of the last, unless that is the first.
        let is_entered = states.last().is_some_and(|oldest| oldest.is_input);
        let is_enough = found.len() > limit || (found.len() == limit && is_entered);
        if is_enough || states.len() < wanted {
            found.truncate(limit);
            return Ok(found);
        }
        wanted = states.len() + limit;
    }
}

/// Returns the checkpoints of the states of a subgraph, all newest first.
fn checkpoints_of(states: &[ThreadState]) -> Vec<SubgraphCheckpoint> {
    let mut found = Vec::new();
    let mut older: Option<(&ThreadState, CheckpointId)> = None;
    for state in states.iter().rev() {
        let id = CheckpointId::of_subgraph(state.seq, older.map(|(_, id)| id));
        let source = match state.kind {
            EntryKind::Update => "update",
            _ => "loop",
        };
        let after = Checkpoint {
            id,
            parent: older.map(|(_, id)| id),
            source,
            step: i64::try_from(state.step).unwrap_or(i64::MAX),
            state: state.clone(),
        };
        let shown = with_input(after, older.map(|(older, _)| older));
        found.extend(shown.into_iter().rev().map(|checkpoint| {
            let is_before = checkpoint.id.is_before_input();
            SubgraphCheckpoint {
                checkpoint,
                input: is_before.then(|| state.values.clone()),
            }
        }));
        older = Some((state, id));
    }
    found.reverse();
    found
}

/// Reads the checkpoint of a subgraph with this id, or the newest; `None` if there is no such checkpoint.
pub(crate) async fn subgraph_at(
    runtime: &Runtime,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    frame: &FramePath,
    id: Option<CheckpointId>,
) -> Result<Option<SubgraphCheckpoint>, DriveError> {
    let above = id.map(|id| CheckpointId {
        place: id.place.saturating_add(1),
        ..id
    });
    let found = of_subgraph(runtime, graph, thread, frame, above, 1).await?;
    let is_it = |found: &SubgraphCheckpoint| id.is_none_or(|id| found.checkpoint.id == id);
    Ok(found.into_iter().next().filter(is_it))
}

/// Returns the checkpoints of the graphs around a subgraph at one of its checkpoints, outermost first. Those that were pruned are
/// left out.
pub(crate) async fn outer_of(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    frame: &FramePath,
    at: CheckpointId,
) -> ApiResult<Vec<OuterCheckpoint>> {
    let above = CheckpointId {
        seq: at.seq.next(),
        place: BEFORE_INPUT,
    };
    let mut outer = Vec::new();
    for (depth, entered) in frame.segments().iter().enumerate() {
        let path: FramePath = frame.segments()[..depth].iter().cloned().collect();
        // The superstep of the task may have ended with the same entry.
        let has_task = |found: &Checkpoint| entering_task(&found.state, &path, entered).is_some();
        let found = match path.is_root() {
            true => {
                let page = read(app, graph, thread, Some(above), 1, has_task).await?;
                page.checkpoints.into_iter().next()
            }
            false => {
                let runtime = &app.runtime;
                let found = of_subgraph(runtime, graph, thread, &path, Some(above), OUTER_MAX);
                let mut found = found.await?.into_iter().map(|found| found.checkpoint);
                found.find(has_task)
            }
        };
        if let Some(found) = found {
            outer.push(OuterCheckpoint {
                id: found.id,
                step: found.step,
                sent: sent_place(&found.state, &path, entered),
                frame: path,
            });
        }
    }
    Ok(outer)
}

/// Returns the task of a graph that is in a subgraph.
fn entering_task<'a>(
    state: &'a ThreadState,
    path: &FramePath,
    entered: &FrameSegment,
) -> Option<&'a NextTask> {
    state.next.iter().find(|task| {
        task.frame == *path
            && task.node == entered.node
            && entered.task.is_none_or(|entered| entered == task.task)
    })
}

fn sent_place(state: &ThreadState, path: &FramePath, entered: &FrameSegment) -> Option<u32> {
    let task = entering_task(state, path, entered)?;
    let next = state.next.iter().filter(|task| task.frame == *path);
    let mut sent = next.filter(|task| task.payload.is_some());
    let place = sent.position(|sent| sent.task == task.task)?;
    u32::try_from(place).ok()
}

/// Number of checkpoints of a subgraph among which the one is looked for from which a subgraph inside of it was entered.
const OUTER_MAX: usize = 8;
