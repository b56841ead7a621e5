//! The checkpoints of a thread as clients see them, newest first.
//!
//! The log has entries of several kinds, and clients know checkpoints of the root graph:
//!
//! | entry | checkpoints |
//! | --- | --- |
//! | a run started with an input | two: before the input was applied, and after |
//! | a superstep ended, an update | one, if it was one of the root graph; two for an update in the name of the input |
//! | a fork | one |
//! | a failed attempt, a stop, a resume | none: they change no state that clients see |

use std::sync::Arc;

use serde_json::Value as Json;
use superstep::checkpoint::format::EntryKind;
use superstep::graph::Definition;
use superstep::run::ThreadState;
use superstep::{FramePath, Seq, ThreadId, Value};

use crate::Shared;
use crate::error::ApiResult;
use crate::wire::{AFTER, BEFORE_INPUT, CheckpointId, StateOptions};

/// A checkpoint as clients see it.
#[derive(Debug, Clone)]
pub(crate) struct Checkpoint {
    pub(crate) id: CheckpointId,
    /// The checkpoint that it follows; `None` for the first.
    pub(crate) parent: Option<CheckpointId>,
    /// What made it: `input`, `loop`, `update` or `fork`.
    pub(crate) source: &'static str,
    /// Number of the step, in the count of clients: -1 for the first input.
    pub(crate) step: i64,
    /// The state at its entry; before the input, for a checkpoint before the input.
    pub(crate) state: ThreadState,
}

impl Checkpoint {
    /// Returns what the JSON form of the checkpoint's state needs besides the state.
    pub(crate) fn options(&self) -> StateOptions {
        StateOptions {
            id: self.id,
            parent: self.parent,
            source: self.source,
            step: self.step,
            is_newest: false,
            with_subgraphs: false,
        }
    }
}

/// A part of a thread's history.
#[derive(Debug, Default)]
pub(crate) struct HistoryPage {
    /// State at the newest entry that was read.
    pub(crate) head: Option<ThreadState>,
    /// Checkpoints, newest first.
    pub(crate) checkpoints: Vec<Checkpoint>,
}

/// Reads at most `limit` checkpoints that are older than `before`, newest first; those that `keep` refuses are left out.
pub(crate) async fn read(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    before: Option<CheckpointId>,
    limit: usize,
    keep: impl Fn(&Checkpoint) -> bool,
) -> ApiResult<HistoryPage> {
    let is_older = |checkpoint: &Checkpoint| before.is_none_or(|before| checkpoint.id < before);
    let mut states: Vec<ThreadState> = Vec::new();
    // Most entries are checkpoints; a thread inside of subgraphs has many that are not.
    let mut page = u32::try_from(limit).unwrap_or(PAGE_MAX).clamp(4, PAGE_MAX) + 4;
    loop {
        let newest = before.map(|before| before.seq.next());
        let above = states.last().map(|state| state.seq).or(newest);
        let more = app.runtime.states_of(graph, thread, above, page).await?;
        let is_all = more.len() < page as usize;
        states.extend(more);
        let mut found = checkpoints_of(&states, is_all);
        found.retain(|checkpoint| is_older(checkpoint) && keep(checkpoint));
        // One more than wanted: it is the parent of the last.
        if is_all || found.len() > limit {
            found.truncate(limit);
            let head = states.into_iter().next();
            return Ok(HistoryPage {
                head,
                checkpoints: found,
            });
        }
        page = (page * 2).min(PAGE_MAX);
    }
}

/// Reads the newest checkpoint; `None` if nothing has happened.
pub(crate) async fn newest(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
) -> ApiResult<Option<Checkpoint>> {
    let page = read(app, graph, thread, None, 1, |_| true).await?;
    let newest = page.checkpoints.into_iter().next();
    // What happened since changed no channel, but it says why the run stopped.
    Ok(newest.map(|newest| match page.head {
        Some(head) if newest.id.place == AFTER => Checkpoint {
            state: ThreadState {
                at: newest.state.at,
                run: newest.state.run.clone(),
                ..head
            },
            ..newest
        },
        _ => newest,
    }))
}

/// Reads the checkpoint with this id, or the one that it stands for.
pub(crate) async fn at(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    id: CheckpointId,
) -> ApiResult<Option<Checkpoint>> {
    let above = CheckpointId {
        seq: id.seq.next(),
        place: BEFORE_INPUT,
    };
    // An entry has at most two checkpoints.
    let page = read(app, graph, thread, Some(above), 2, |_| true).await?;
    let mut found = page.checkpoints.into_iter();
    Ok(found.find(|checkpoint| checkpoint.id <= id))
}

/// Returns the checkpoints of entries, all newest first. Without the whole history, the oldest entry is left out: what it changed
/// shows only in comparison with the one before.
fn checkpoints_of(states: &[ThreadState], is_all: bool) -> Vec<Checkpoint> {
    let mut found = Vec::new();
    for (index, state) in states.iter().enumerate() {
        let older = states.get(index + 1);
        if older.is_none() && !is_all {
            break;
        }
        let Some(source) = source_of(state, older) else {
            continue;
        };
        let parent = parent_of(state, &states[index + 1..]);
        let after = Checkpoint {
            id: CheckpointId::after(state.seq),
            parent,
            source,
            step: i64::try_from(state.step + state.restarts).unwrap_or(i64::MAX),
            state: state.clone(),
        };
        found.extend(with_input(after, older));
    }
    found
}

/// Returns a checkpoint, and the one before its input if it has one.
fn with_input(after: Checkpoint, older: Option<&ThreadState>) -> Vec<Checkpoint> {
    if !after.state.is_input {
        return vec![after];
    }
    let id = CheckpointId {
        seq: after.id.seq,
        place: after.id.place - 1,
    };
    let before = Checkpoint {
        id,
        parent: after.parent,
        source: "input",
        step: after.step - 1,
        state: before_input(&after.state, older),
    };
    let parent = Some(id);
    vec![Checkpoint { parent, ..after }, before]
}

fn before_input(state: &ThreadState, older: Option<&ThreadState>) -> ThreadState {
    let values = older.map(|older| older.values.clone());
    ThreadState {
        values: values.unwrap_or_else(|| Value::from_json_bytes(b"{}")),
        next: Vec::new(),
        stop: None,
        ..state.clone()
    }
}

/// Returns what made the checkpoint of an entry; `None` if the entry has none.
fn source_of(state: &ThreadState, older: Option<&ThreadState>) -> Option<&'static str> {
    let changes_root = || state.is_input || older.is_none_or(|older| older.step != state.step);
    match state.kind {
        EntryKind::Input => Some("loop"),
        // A superstep of a subgraph leaves the count of the root graph as it was.
        EntryKind::Step => changes_root().then_some("loop"),
        EntryKind::Update => changes_root().then_some("update"),
        // Nothing is left before a thread that was rolled back to its beginning.
        EntryKind::Fork => (older.is_some() || state.parent > Seq(0)).then_some("fork"),
        EntryKind::Attempt | EntryKind::Stop | EntryKind::Resume => None,
    }
}

/// Returns the checkpoint that an entry follows: the newest at or before its parent.
fn parent_of(state: &ThreadState, older: &[ThreadState]) -> Option<CheckpointId> {
    if state.parent == Seq(0) {
        return None;
    }
    let mut candidates = (0..older.len()).filter(|index| older[*index].seq <= state.parent);
    let found = candidates.find(|index| source_of(&older[*index], older.get(index + 1)).is_some());
    // A fork may continue from an entry that was not read.
    let seq = found.map_or(state.parent, |index| older[index].seq);
    Some(CheckpointId::after(seq))
}

/// Reads at most `limit` checkpoints of a subgraph that are older than `before`, newest first.
pub(crate) async fn of_subgraph(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    frame: &FramePath,
    before: Option<CheckpointId>,
    limit: usize,
) -> ApiResult<Vec<Checkpoint>> {
    let is_older = |checkpoint: &Checkpoint| before.is_none_or(|before| checkpoint.id < before);
    let above = before.map(|before| before.seq.next());
    let runtime = &app.runtime;
    // One more than wanted, which is the parent of the last. Some may be as new as `before`.
    let states = runtime.subgraph_states_of(graph, thread, frame, above, limit + PLACES_MAX);
    let states = states.await?;
    let mut found: Vec<Checkpoint> = Vec::new();
    let mut older: Option<(&ThreadState, CheckpointId)> = None;
    for state in states.iter().rev() {
        // The states of an entry are two places apart: one is before the input, if there is one.
        let place = match older {
            Some((older, id)) if older.seq == state.seq => id.place.saturating_add(2),
            _ => AFTER,
        };
        let id = CheckpointId {
            seq: state.seq,
            place,
        };
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
        found.extend(shown.into_iter().rev());
        older = Some((state, id));
    }
    found.reverse();
    found.retain(is_older);
    found.truncate(limit);
    Ok(found)
}

/// Reads which checkpoint a client names: a string, `{"checkpoint_id"}`, or a `config` around it.
pub(crate) fn named_checkpoint(thread: &ThreadId, value: &Json) -> Option<CheckpointId> {
    let text = value
        .as_str()
        .or_else(|| value.get("checkpoint_id")?.as_str())
        .or_else(|| value.get("configurable")?.get("checkpoint_id")?.as_str())?;
    CheckpointId::parse(thread, text)
}

/// Number of states of a subgraph that may be in the entry of a checkpoint, where they are newer than it.
const PLACES_MAX: usize = 128;
/// Highest number of entries that are read at once.
const PAGE_MAX: u32 = 1_000;
