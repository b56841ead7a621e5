//! A run that continues from an older checkpoint: time travel.

use std::sync::Arc;

use superstep::driver::{ThreadEdit, ThreadRequest};
use superstep::graph::Definition;
use superstep::run::RunOptions;
use superstep::{FramePath, Seq, ThreadId};

use crate::error::{ApiError, ApiResult};
use crate::start::body::{RunBody, no_checkpoint};
use crate::wire::BEFORE_INPUT;
use crate::{Shared, history, thread};

/// Goes back to the checkpoint that a run names. Returns whether it did: the newest checkpoint, which some clients always name, is
/// where the thread is already.
pub(super) async fn go_back(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    body: &RunBody,
) -> ApiResult<bool> {
    let Some(id) = body.checkpoint(thread)? else {
        return Ok(false);
    };
    let newest = history::newest(app, graph, thread).await?;
    if newest.is_some_and(|newest| newest.id == id) {
        return Ok(false);
    }
    let command = body.command.as_ref();
    if command.is_some_and(|command| command.resume.is_some()) {
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
    let to = match id.place == BEFORE_INPUT && body.input.is_some() {
        true => found.state.parent,
        false => id.seq,
    };
    let request = match to {
        // There is no entry before the first, so the thread becomes an empty one again.
        Seq(0) => ThreadRequest::Edit(ThreadEdit {
            at: Some(to),
            frame: FramePath::root(),
            updates: Vec::new(),
        }),
        at => ThreadRequest::Fork { at },
    };
    let options = RunOptions::default();
    let driver = app.runtime.driver();
    driver.execute(thread, graph, request, &options).await?;
    Ok(true)
}
