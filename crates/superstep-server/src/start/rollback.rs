//! Makes room for a run: cancels active runs, and undoes what they did.

use std::collections::BTreeSet;

use superstep::registry::RunRow;
use superstep::run::RunOptions;
use superstep::{RunId, Seq, ThreadId};

use crate::error::{ApiError, ApiResult};
use crate::start::fork::go_back_to;
use crate::{Shared, thread};

/// Cancels runs, and returns when all have stopped.
pub(crate) async fn cancel_runs(app: &Shared, runs: &[RunRow]) -> ApiResult<()> {
    // Newest first, as they are listed: a pending run must not begin because the one before it was cancelled.
    for run in runs {
        app.queue.cancel(run.thread.tenant(), run.id).await?;
    }
    Ok(())
}

/// Cancels runs of a thread, goes back to the state before them, and deletes them.
pub(crate) async fn roll_back(app: &Shared, thread: &ThreadId, runs: &[RunRow]) -> ApiResult<()> {
    cancel_runs(app, runs).await?;
    let ids: BTreeSet<RunId> = runs.iter().map(|run| run.id).collect();
    undo(app, thread, &ids).await?;
    for run in runs {
        app.registry().delete_run(thread.tenant(), run.id).await?;
    }
    Ok(())
}

async fn undo(app: &Shared, thread: &ThreadId, runs: &BTreeSet<RunId>) -> ApiResult<()> {
    let row = thread::get(app, thread).await?;
    let Some(graph) = thread::graph_of(app, &row) else {
        return Ok(());
    };
    let mut oldest: Option<(Seq, Seq)> = None;
    loop {
        let above = oldest.map(|(seq, _)| seq);
        let states = app.runtime.states_of(graph, thread, above, PAGE).await?;
        let is_all = states.len() < PAGE as usize;
        for state in states {
            if runs.contains(&state.run.run) {
                oldest = Some((state.seq, state.parent));
                continue;
            }
            if oldest.is_some() {
                let request = go_back_to(state.seq);
                let options = RunOptions::default();
                let driver = app.runtime.driver();
                driver.execute(thread, graph, request, &options).await?;
            }
            return Ok(());
        }
        if is_all {
            break;
        }
    }
    match oldest {
        // The runs were the thread's first: before them there was nothing.
        Some((_, beginning @ Seq(0))) => {
            let request = go_back_to(beginning);
            let options = RunOptions::default();
            let driver = app.runtime.driver();
            driver.execute(thread, graph, request, &options).await?;
            app.runtime.checkpointer().prune(thread, 1).await?;
            Ok(())
        }
        Some(_) => Err(ApiError::conflict(
            "The run cannot be rolled back: the history before it was pruned",
        )),
        None => Ok(()),
    }
}

/// Number of entries that are read at once.
const PAGE: u32 = 64;
