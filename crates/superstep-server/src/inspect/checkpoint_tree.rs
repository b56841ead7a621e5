//! The checkpoints of a thread as a tree: which follows which, where it was forked, which branch is current.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::graph::Definition;
use superstep::{NodeName, Seq, ThreadId};

use super::log_branch::entries_before;
use crate::Shared;
use crate::error::ApiResult;
use crate::history::{self, Checkpoint};
use crate::wire::{self, CheckpointId};

/// Returns the newest checkpoints of a thread with their branches, or a page of those older than `before`. A checkpoint is newer than
/// the one that it follows, so of every checkpoint among the newest, all branches are. An older page names no branches: what
/// follows its checkpoints is in the pages before it.
pub(crate) async fn checkpoint_tree(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    before: Option<CheckpointId>,
    limit: usize,
) -> ApiResult<Json> {
    // Above every checkpoint: without it, those that the thread went back from are left out.
    let above = before.unwrap_or(CheckpointId::after(Seq(1 << 48)));
    let page = history::read(app, graph, thread, Some(above), limit + 1, |_| true).await?;
    let mut checkpoints = page.checkpoints;
    let is_complete = checkpoints.len() <= limit;
    checkpoints.truncate(limit);
    resolve_parents(app, graph, thread, &mut checkpoints).await?;
    let current = history::newest(app, graph, thread).await?;
    let current = current.map(|current| current.id);
    let log = app.runtime.log_of(thread).await?;
    let path = entries_before(&log, log.last().map_or(Seq(0), |newest| newest.seq));
    let branches = match before {
        Some(_) => Vec::new(),
        None => branches(&checkpoints, current),
    };
    let shown = checkpoints.iter().map(|checkpoint| {
        let state = &checkpoint.state;
        let next = state.next.iter().filter(|task| task.frame.is_root());
        let next: Vec<&str> = next.map(|task| NodeName::as_str(&task.node)).collect();
        json!({
            "checkpoint_id": checkpoint.id.to_uuid(thread),
            "parent_checkpoint_id": checkpoint.parent.map(|parent| parent.to_uuid(thread)),
            "source": checkpoint.source,
            "step": checkpoint.step,
            "next": next,
            "run_id": wire::uuid(state.run.run.to_bytes()),
            "created_at": wire::time(state.at),
            "is_on_current_branch": path.contains(&checkpoint.id.seq)
                && current.is_none_or(|current| checkpoint.id <= current),
        })
    });
    let id = |id: &CheckpointId| id.to_uuid(thread);
    let ends = branches.iter().map(|branch| {
        json!({
            "checkpoint_id": id(&branch.end),
            "forked_from": branch.forked_from.as_ref().map(id),
            "is_current": current == Some(branch.end),
        })
    });
    Ok(json!({
        "thread_id": thread.name(),
        "current": current.as_ref().map(id),
        "checkpoints": shown.collect::<Vec<_>>(),
        "branches": ends.collect::<Vec<_>>(),
        "is_complete": is_complete,
    }))
}

/// Replaces parents that were not read by the checkpoints that they stand for. A fork may continue from an entry of another page,
/// and a reader of one page cannot know whether that entry is a checkpoint; with the right ids, pages join.
async fn resolve_parents(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    checkpoints: &mut [Checkpoint],
) -> ApiResult<()> {
    let read: BTreeSet<CheckpointId> = checkpoints.iter().map(|read| read.id).collect();
    // Many branches may leave the same checkpoint.
    let mut resolved: BTreeMap<CheckpointId, CheckpointId> = BTreeMap::new();
    for checkpoint in checkpoints {
        let Some(parent) = checkpoint.parent.filter(|parent| !read.contains(parent)) else {
            continue;
        };
        let found = match resolved.get(&parent) {
            Some(found) => *found,
            None => {
                let found = history::at(app, graph, thread, parent).await?;
                let found = found.map_or(parent, |found| found.id);
                resolved.insert(parent, found);
                found
            }
        };
        checkpoint.parent = Some(found);
    }
    Ok(())
}

struct Branch {
    /// Its newest checkpoint.
    end: CheckpointId,
    /// The checkpoint at which it left another branch; `None` for the only branch.
    forked_from: Option<CheckpointId>,
}

/// Returns the branches, newest first: every checkpoint that none follows ends one, and so does the one where the thread is.
fn branches(checkpoints: &[Checkpoint], current: Option<CheckpointId>) -> Vec<Branch> {
    let parents: BTreeMap<CheckpointId, Option<CheckpointId>> = checkpoints
        .iter()
        .map(|checkpoint| (checkpoint.id, checkpoint.parent))
        .collect();
    let mut followers: BTreeMap<CheckpointId, u32> = BTreeMap::new();
    for parent in parents.values().flatten() {
        *followers.entry(*parent).or_default() += 1;
    }
    let ends = parents
        .keys()
        .filter(|id| !followers.contains_key(id) || Some(**id) == current);
    let ends: BTreeSet<CheckpointId> = ends.copied().collect();
    let forked_from = |end: CheckpointId| {
        let mut parent = parents.get(&end).copied().flatten();
        while let Some(id) = parent {
            if followers.get(&id).is_some_and(|count| *count > 1) {
                return Some(id);
            }
            parent = parents.get(&id).copied().flatten();
        }
        None
    };
    let branches = ends.into_iter().rev().map(|end| Branch {
        end,
        forked_from: forked_from(end),
    });
    branches.collect()
}
