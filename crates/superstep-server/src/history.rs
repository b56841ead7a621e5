//! The checkpoints of a thread as clients see them, newest first.
//!
//! The log has entries of several kinds, and clients know checkpoints of the root graph:
//!
//! | entry | checkpoints |
//! | --- | --- |
//! | a run started with an input | two: before the input was applied, and after |
//! | a superstep ended, an update | one, if it was one of the root graph; two for an update in the name of the first input |
//! | a fork | one; none if the thread only went back, before another input or to undo a run |
//! | a failed attempt, a stop, a resume | none: they change no state that clients see |

mod subgraphs;

use std::sync::Arc;

use serde_json::Value as Json;
use superstep::checkpoint::format::EntryKind;
use superstep::graph::Definition;
use superstep::run::ThreadState;
use superstep::{DriveError, Runtime, Seq, ThreadId, Value};

use crate::Shared;
use crate::error::ApiResult;
use crate::wire::{AFTER, BEFORE_INPUT, CheckpointId, StateOptions};

pub(crate) use subgraphs::{
    OuterCheckpoint, SubgraphCheckpoint, of_subgraph, outer_of, subgraph_at,
};

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

impl HistoryPage {
    /// Returns the newest checkpoint of the thread, for a page that begins with it.
    pub(crate) fn newest(&self) -> Option<Checkpoint> {
        let newest = self.checkpoints.first()?.clone();
        // What happened since changed no channel, but it says why the run stopped.
        Some(match &self.head {
            Some(head) if newest.id.place == AFTER => Checkpoint {
                state: ThreadState {
                    at: newest.state.at,
                    run: newest.state.run.clone(),
                    kind: newest.state.kind,
                    edits: newest.state.edits,
                    ..head.clone()
                },
                ..newest
            },
            _ => newest,
        })
    }
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
    Ok(read_from(&app.runtime, graph, thread, before, limit, keep).await?)
}

/// Reads checkpoints as [`read`] does, without the server.
pub(crate) async fn read_from(
    runtime: &Runtime,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    before: Option<CheckpointId>,
    limit: usize,
    keep: impl Fn(&Checkpoint) -> bool,
) -> Result<HistoryPage, DriveError> {
    let is_older = |checkpoint: &Checkpoint| before.is_none_or(|before| checkpoint.id < before);
    let mut states: Vec<ThreadState> = Vec::new();
    // Most entries are checkpoints; a thread inside of subgraphs has many that are not.
    let mut page = u32::try_from(limit).unwrap_or(PAGE_MAX).clamp(4, PAGE_MAX) + 4;
    loop {
        let newest = before.map(|before| before.seq.next());
        let above = states.last().map(|state| state.seq).or(newest);
        let more = runtime.states_of(graph, thread, above, page).await?;
        let is_all = more.len() < page as usize;
        states.extend(more);
        let mut found = checkpoints_of(&states, is_all);
        found.retain(|checkpoint| is_older(checkpoint) && keep(checkpoint));
        if let Some(head) = states
            .first()
            .filter(|head| before.is_none() && went_back(head))
        {
            // The thread is where it went back to. What it left is shown again once something happens there.
            found.retain(|checkpoint| checkpoint.id.seq <= head.parent);
        }
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
    Ok(page.newest())
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
        let newer = index.checked_sub(1).map(|newer| &states[newer]);
        let continued = newer.filter(|newer| source == FORK && newer.kind == EntryKind::Resume);
        // For clients, the run that continues from a fork wrote it.
        let run = continued.map_or(&state.run, |newer| &newer.run).clone();
        let after = Checkpoint {
            id: CheckpointId::after(state.seq),
            parent,
            source,
            step: i64::try_from(state.step + state.restarts).unwrap_or(i64::MAX),
            state: ThreadState {
                run,
                ..state.clone()
            },
        };
        found.extend(with_input(after, older));
    }
    found
}

/// Returns a checkpoint, and the one before its input if it has one.
fn with_input(after: Checkpoint, older: Option<&ThreadState>) -> Vec<Checkpoint> {
    // Clients know an update as one checkpoint, whichever node it acts as.
    let is_update = after.state.kind == EntryKind::Update && older.is_some();
    if !after.state.is_input || is_update {
        return vec![after];
    }
    let id = CheckpointId {
        seq: after.id.seq,
        place: after.id.place - 1,
    };
    // A thread that went back to its beginning has older entries, but nothing was written before this input.
    let followed = older.filter(|_| after.parent.is_some());
    let before = Checkpoint {
        id,
        parent: after.parent,
        source: "input",
        step: after.step - 1,
        state: before_input(&after.state, followed),
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
        EntryKind::Fork if went_back(state) => None,
        EntryKind::Fork if state.edits.is_some() => Some("update"),
        // Nothing is left before a thread that an older server rolled back to its beginning.
        EntryKind::Fork => (older.is_some() || state.parent > Seq(0)).then_some(FORK),
        EntryKind::Attempt | EntryKind::Stop | EntryKind::Resume => None,
    }
}

/// Whether an entry is that of a thread that went back, and did nothing else.
pub(crate) fn went_back(state: &ThreadState) -> bool {
    state.kind == EntryKind::Fork && state.edits == Some(0)
}

/// Returns the checkpoint that an entry follows: the newest at or before its parent.
fn parent_of(state: &ThreadState, older: &[ThreadState]) -> Option<CheckpointId> {
    let mut parent = state.parent;
    for (index, found) in older.iter().enumerate() {
        if found.seq > parent {
            continue;
        }
        if source_of(found, older.get(index + 1)).is_some() {
            return Some(CheckpointId::after(found.seq));
        }
        if found.kind == EntryKind::Fork {
            parent = found.parent;
        }
    }
    // A fork may continue from an entry that was not read.
    (parent > Seq(0)).then(|| CheckpointId::after(parent))
}

/// Reads which checkpoint of a graph a client names: a string, `{"checkpoint_id"}`, or a `config` around it.
pub(crate) fn named_checkpoint(
    thread: &ThreadId,
    namespace: &str,
    value: &Json,
) -> Option<CheckpointId> {
    let text = value
        .as_str()
        .or_else(|| value.get("checkpoint_id")?.as_str())
        .or_else(|| value.get("configurable")?.get("checkpoint_id")?.as_str())?;
    CheckpointId::parse_in(thread, namespace, text)
}

/// What made the checkpoint of a thread that continues from an older one.
pub(crate) const FORK: &str = "fork";
/// Highest number of entries that are read at once.
const PAGE_MAX: u32 = 1_000;
