//! What user interfaces ask about threads and runs, and LangGraph's API does not answer: the inbox, interrupts with their answers, the
//! tree of checkpoints, state diffs, what a fork would repeat, test cases, the trace, labels, the queue, budgets. All of it is read from the log and
//! the registry; nothing is stored for it, and nothing here writes.

mod budgets;
pub(crate) mod calls;
mod case_reader;
mod checkpoint_tree;
mod fork_preview;
mod inbox;
mod interrupts;
mod labels;
mod log_branch;
mod newest_trace;
mod queue;
mod span_tree;
mod state_diff;

pub(crate) use budgets::{budget, budget_namespace, budgets};
pub(crate) use case_reader::test_case;
pub(crate) use checkpoint_tree::checkpoint_tree;
pub(crate) use fork_preview::fork_preview;
pub(crate) use inbox::{InboxQuery, inbox};
pub(crate) use interrupts::interrupts;
pub(crate) use labels::labels;
pub(crate) use newest_trace::{TraceLimits, newest_trace};
pub(crate) use queue::queue;
pub(crate) use span_tree::span_tree;
pub(crate) use state_diff::{DiffSide, state_diff};

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::ThreadId;
use superstep::graph::Definition;

use self::calls::CallTotals;
use crate::Shared;
use crate::error::ApiResult;
use crate::history::{self, Checkpoint};
use crate::start::no_checkpoint;
use crate::wire::CheckpointId;

/// Returns sums over model calls as clients read them.
fn totals(totals: CallTotals) -> Json {
    json!({
        "model_calls": totals.calls,
        "input_tokens": totals.input_tokens,
        "output_tokens": totals.output_tokens,
        "nano_dollars": totals.nano_dollars,
        // The cost is a lower bound unless this is zero.
        "calls_of_unknown_cost": totals.unknown,
    })
}

/// Returns the checkpoint that a caller names by its id, or the newest.
pub(crate) async fn checkpoint_named(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    name: Option<&str>,
) -> ApiResult<Option<Checkpoint>> {
    let Some(name) = name else {
        return history::newest(app, graph, thread).await;
    };
    let id = CheckpointId::parse(thread, name).ok_or_else(|| no_checkpoint(name))?;
    let found = history::at(app, graph, thread, id).await?;
    let found = found.filter(|found| found.id == id);
    Ok(Some(found.ok_or_else(|| no_checkpoint(name))?))
}
