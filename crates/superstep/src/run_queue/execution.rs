//! One run from the moment it was taken to the row that says how it ended.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::{Loaded, Status};
use superstep_core::driver::{QueuedRequest, ThreadRequest};
use superstep_core::error::{CheckpointError, FailureKind, OpenError};
use superstep_core::graph::Definition;
use superstep_core::registry::{RunEnd, RunRow, RunStatus, TakenRun};
use superstep_core::run::read_state;
use superstep_core::{Outcome, Timestamp};
use tokio::sync::watch;

use super::{
    ATTEMPTS_MAX, CANCEL_AGAIN, HAND_BACK_MAX, LOOK_AGAIN, LOOKED_BACK, QueueState, RunSlot,
    SHORTEST_WAIT,
};
use crate::drive::{DriveError, RequestEnd};

/// Executes a run and stores how it ended. Leaves it running if the process drains: the next queue recovers it. In a
/// shared queue it is handed back instead.
pub(super) async fn execute_to_its_end(shared: Arc<QueueState>, run: TakenRun, mut slot: RunSlot) {
    let key = slot.key.clone();
    let mut ended = None;
    if let Some(end) = execute(&shared, &run, &mut slot.cancelled).await {
        let mut pause = SHORTEST_WAIT;
        loop {
            match store_end(&shared, &run, &end).await {
                Ok(is_first) => {
                    ended = is_first.then(|| ended_row(&run, &end));
                    break;
                }
                // A store that does not answer now will later; until then the run counts as running.
                Err(error) => {
                    tracing::warn!(run = %key.1, %error, "the end of a run was not stored");
                }
            }
            if *shared.is_draining.borrow() {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_AGAIN);
        }
    } else if shared.is_shared && *shared.is_draining.borrow() {
        // The engine goes on with it. Another process need not wait for the lease to take its end.
        let runs = [key.1];
        let handed_back = shared.hand_back(&runs);
        match tokio::time::timeout(HAND_BACK_MAX, handed_back).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(run = %key.1, ?error, "a run was not handed back"),
            Err(_) => tracing::warn!(run = %key.1, "a run was not handed back in time"),
        }
    }
    drop(slot);
    shared.mark_progress();
    match ended {
        Some(row) => shared.report_end(&key, &row),
        None => shared.wake_waiting(&key),
    }
    // The next run of the thread can start.
    shared.wake.notify_one();
}

/// Stores the end of a run with what is to be delivered because of it. Returns whether it was the first end.
async fn store_end(
    shared: &QueueState,
    run: &TakenRun,
    end: &RunEnd,
) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let (tenant, id) = (run.row.thread.tenant(), run.row.id);
    let mut end = end.clone();
    for hook in &shared.options.end_hooks {
        let deliveries = hook.before_end(&run.row, &end).await?;
        end.deliveries.extend(deliveries);
    }
    let is_first = shared.registry.end_run(tenant, id, &end).await?;
    if is_first && !end.deliveries.is_empty() {
        for hook in &shared.options.end_hooks {
            hook.deliveries_stored();
        }
    }
    Ok(is_first)
}

/// Returns the row of a run after its end was stored.
fn ended_row(run: &TakenRun, end: &RunEnd) -> RunRow {
    RunRow {
        status: end.status,
        error: end.error.clone(),
        updated: end.at,
        ..run.row.clone()
    }
}

async fn drains(shared: &QueueState) {
    let mut draining = shared.is_draining.subscribe();
    // It fails only if the queue is gone, with which this ends.
    let _ = draining.wait_for(|is_draining| *is_draining).await;
}

/// Executes a run until it stops. `None` if the process drains.
async fn execute(
    shared: &QueueState,
    run: &TakenRun,
    cancelled: &mut watch::Receiver<bool>,
) -> Option<RunEnd> {
    let mut pause = SHORTEST_WAIT;
    // The first execution may have stored something before a crash.
    let mut is_repeated = run.row.attempts > 1;
    loop {
        let executed = tokio::select! {
            executed = execute_once(shared, run, is_repeated) => executed,
            () = cancel_until_it_stops(shared, run, cancelled) => unreachable!("it never returns"),
            // The engine goes on with it, and another process takes its end.
            () = drains(shared), if shared.is_shared => return None,
        };
        match executed {
            Ok(Some(end)) => return Some(end),
            // Drained, or about to be.
            Ok(None) | Err(DriveError::Draining) => return None,
            // Another process runs the thread, or the store did not answer: its turn comes later.
            Err(
                error @ (DriveError::Open(OpenError::Busy { .. })
                | DriveError::Checkpoint(
                    CheckpointError::Store { .. } | CheckpointError::Fenced { .. },
                )
                | DriveError::Engine {
                    is_refusal: false, ..
                }),
            ) => {
                tracing::debug!(run = %run.row.id, ?error, "a run is tried again");
                let is_begun = !matches!(error, DriveError::Open(OpenError::Busy { .. }));
                if *cancelled.borrow() && !is_begun {
                    return Some(cancelled_end(shared.now()));
                }
                // Of a run that may have begun, the thread says how it ends, also if it is cancelled.
                is_repeated = true;
            }
            // What a worker said.
            Err(DriveError::Engine { code, message, .. }) => {
                return Some(failed(&code, &message, shared.now()));
            }
            Err(error) => return Some(failed(error.code(), &error.to_string(), shared.now())),
        }
        let mut draining = shared.is_draining.subscribe();
        if *draining.borrow_and_update() {
            return None;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = draining.changed() => return None,
            _ = cancelled.changed() => {}
        }
        pause = (pause * 2).min(LOOK_AGAIN);
    }
}

/// Cancels the run whenever that was requested, again and again: a request that arrives before the run has claimed its thread is
/// forgotten by the claim.
async fn cancel_until_it_stops(
    shared: &QueueState,
    run: &TakenRun,
    cancelled: &mut watch::Receiver<bool>,
) {
    loop {
        if *cancelled.borrow_and_update() {
            // Only this run can be running on its thread here; a failure is retried like a request that came too early.
            let _ = shared.runtime.cancel(&run.row.thread).await;
            tokio::time::sleep(CANCEL_AGAIN).await;
        } else if cancelled.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn execute_once(
    shared: &QueueState,
    run: &TakenRun,
    is_repeated: bool,
) -> Result<Option<RunEnd>, DriveError> {
    let (thread, id) = (&run.row.thread, run.row.id);
    let queued = QueuedRequest::from_bytes(&run.request, thread).map_err(CheckpointError::from)?;
    let graph = shared.runtime.local.graph(&queued.graph, thread)?;
    let options = queued.options(id)?;
    let mut request = queued.request;
    // An engine that gets a request again replies as it did before.
    if is_repeated && !shared.is_shared {
        let loaded = shared.runtime.local.store().load(thread).await?;
        let mut may_begin = run.row.attempts <= ATTEMPTS_MAX;
        if let Some(loaded) = loaded {
            // Another process runs the thread, so this run had to wait, however often it was taken.
            may_begin |= loaded.head.status == Status::Running;
            let state = read_state(&graph, thread, &loaded.history)?;
            if state.is_some_and(|state| state.run.run == id) {
                if loaded.head.status != Status::Running {
                    let outcome = stored_outcome(shared, &graph, run, &loaded).await?;
                    return Ok(run_end(&outcome, shared.now()));
                }
                // The thread itself counts how often it was recovered without progress.
                request = ThreadRequest::Recover;
            }
        }
        if !may_begin {
            return Ok(Some(never_began(shared.now())));
        }
    }
    let driver = shared.runtime.driver();
    match driver.execute(thread, &graph, request, &options).await {
        Ok(Some(RequestEnd {
            driven: Some(driven),
            ..
        })) => Ok(run_end(&driven.0, shared.now())),
        Ok(Some(RequestEnd { seq, .. })) if shared.is_shared => {
            let loaded = shared.runtime.loaded(thread).await?;
            let stop = shared.runtime.local.stop_at(thread, seq, &loaded).await?;
            // A change has no stop.
            let outcome = stop.unwrap_or(Outcome::Finished);
            Ok(run_end(&outcome, shared.now()))
        }
        // A change without a run, or answers that the thread's owner takes in. After a crash before its end was stored, a
        // change is made again: the log does not have the ids of changes.
        Ok(_) => Ok(Some(ended(RunStatus::Success, Json::Null, shared.now()))),
        Err(DriveError::Open(OpenError::Taken { .. })) => {
            let loaded = shared.runtime.loaded(thread).await?;
            let outcome = stored_outcome(shared, &graph, run, &loaded).await?;
            Ok(run_end(&outcome, shared.now()))
        }
        Err(error) => Err(error),
    }
}

/// Returns how a run stopped, which its thread is done with. Its state may have been changed since.
async fn stored_outcome(
    shared: &QueueState,
    graph: &Arc<Definition>,
    run: &TakenRun,
    loaded: &Loaded,
) -> Result<Outcome, DriveError> {
    let (thread, id) = (&run.row.thread, run.row.id);
    let local = &shared.runtime.local;
    if let Some(outcome) = local.stop_at(thread, loaded.head.seq, loaded).await? {
        return Ok(outcome);
    }
    let states = shared.runtime.states_of(graph, thread, None, LOOKED_BACK);
    let states = states.await?;
    let mut of_run = states.iter().filter(|state| state.run.run == id);
    let stopped = of_run.find(|state| state.stop.is_some());
    let outcome = match stopped {
        Some(stopped) => local.stop_at(thread, stopped.seq, loaded).await?,
        None => None,
    };
    // A request that only changes the thread has no stop.
    Ok(outcome.unwrap_or(Outcome::Finished))
}

/// Returns how a run with this outcome ended; `None` if it did not.
fn run_end(outcome: &Outcome, at: Timestamp) -> Option<RunEnd> {
    Some(match outcome {
        // A run that waits for a person has done its part: the answer is a run of its own.
        Outcome::Finished | Outcome::Paused(_) | Outcome::Breakpoint(_) => {
            ended(RunStatus::Success, Json::Null, at)
        }
        Outcome::Cancelled => cancelled_end(at),
        Outcome::StepLimit => failed(
            "step-limit",
            "the run reached its step limit; resume it to allow as many supersteps again",
            at,
        ),
        Outcome::Failed(failures) => {
            let first = failures.first();
            let code = first.map_or("failed", |first| {
                first.code.as_deref().unwrap_or(first.kind.code())
            });
            let message = first.map_or("", |first| first.message.as_str());
            failed(code, message, at)
        }
        Outcome::Drained => return None,
    })
}

/// The end of a run that takes its process down before it begins.
fn never_began(at: Timestamp) -> RunEnd {
    let message = format!(
        "the process died {ATTEMPTS_MAX} times before the run began; check what it reports about its end, then request the run again"
    );
    failed(FailureKind::Poisoned.code(), &message, at)
}

fn cancelled_end(at: Timestamp) -> RunEnd {
    let error = json!({ "error": "cancelled", "message": "the run was cancelled" });
    ended(RunStatus::Interrupted, error, at)
}

fn failed(code: &str, message: &str, at: Timestamp) -> RunEnd {
    let error = json!({ "error": code, "message": message });
    ended(RunStatus::Error, error, at)
}

fn ended(status: RunStatus, error: Json, at: Timestamp) -> RunEnd {
    RunEnd {
        status,
        error,
        at,
        deliveries: Vec::new(),
    }
}
