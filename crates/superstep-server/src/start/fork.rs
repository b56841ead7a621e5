//! A run that continues from an older checkpoint: time travel.

use std::sync::Arc;

use superstep::driver::{ThreadEdit, ThreadRequest};
use superstep::graph::Definition;
use superstep::run::RunOptions;
use superstep::{FramePath, Seq, ThreadId};

use crate::error::{ApiError, ApiResult};
use crate::history::FORK;
use crate::start::body::{RunBody, no_checkpoint};
use crate::wire::BEFORE_INPUT;
use crate::{Shared, history, thread};

/// Goes back to the checkpoint that a run names, on a new branch. Returns whether it did.
///
/// Some clients always name the newest checkpoint. An input and an answer continue there. A run without them runs again what was
/// planned there, unless that was never run: an edit or a fork wrote the checkpoint.
pub(super) async fn go_back(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    body: &RunBody,
) -> ApiResult<bool> {
    let Some(id) = body.checkpoint(thread)? else {
        return Ok(false);
    };
    let has_input = body.has_input();
    let command = body.command.as_ref();
    let resumes = command.is_some_and(|command| command.resume.is_some());
    let newest = history::newest(app, graph, thread).await?;
    if let Some(newest) = newest.filter(|newest| newest.id == id) {
        let is_untouched = matches!(newest.source, "update" | FORK);
        let is_replay = !has_input && !resumes && !is_untouched;
        if !is_replay || newest.state.next.is_empty() {
            return Ok(false);
        }
    }
    if resumes {
        return Err(ApiError::invalid(
            "Answering an interrupt at an older checkpoint is not supported yet; run from the checkpoint without `resume`, and answer the interrupt when it is raised again",
        ));
    }
    if !thread::active_runs(app, thread).await?.is_empty() {
        return Err(ApiError::busy());
    }
    let found = history::at(app, graph, thread, id).await?;
    let found = found.filter(|found| found.id == id);
    let found = found.ok_or_else(|| no_checkpoint(&id.to_uuid(thread)))?;
    // Before the input: another input takes its place. Without one, the input is applied again.
    let request = match has_input {
        true if id.place == BEFORE_INPUT => go_back_to(found.state.parent),
        true => go_back_to(id.seq),
        false => ThreadRequest::Fork { at: id.seq },
    };
    let options = RunOptions::default();
    let driver = app.runtime.driver();
    driver.execute(thread, graph, request, &options).await?;
    Ok(true)
}

/// Returns the request that lets a thread go back to an entry, and that clients do not see as a step; 0 is the beginning, before
/// anything happened.
pub(super) fn go_back_to(at: Seq) -> ThreadRequest {
    ThreadRequest::Edit(ThreadEdit {
        at: Some(at),
        frame: FramePath::root(),
        updates: Vec::new(),
    })
}
