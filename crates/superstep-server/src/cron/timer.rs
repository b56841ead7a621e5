//! The timer: fires crons when they are due.
//!
//! It sleeps until the next cron is due, and looks again when one is created or changed. Whether a tick is fired is decided by the
//! registry, in one write, so it does no harm if two servers look at the same cron.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use superstep::registry::{CreatedRun, CronRow, CronTick, FiredTick, TickRun};
use superstep::{ScheduleError, Timestamp};

use crate::cron::CronTimes;
use crate::error::ApiResult;
use crate::start::fire_tick;
use crate::{App, Shared, wire};

/// Starts to fire crons, for as long as the server exists.
pub(crate) fn start_timer(app: &App) {
    // The task belongs to what it works for, so it must not keep that alive.
    let weak = Arc::downgrade(app);
    app.background.run(fire_until_gone(weak));
}

async fn fire_until_gone(app: Weak<Shared>) {
    loop {
        let Some(app) = app.upgrade() else {
            return;
        };
        let wait = match fire_due(&app).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!(detail = %error.detail, "the crons that are due were not found");
                TRY_AGAIN
            }
        };
        let changed = app.cron_changed.clone();
        drop(app);
        tokio::select! {
            () = changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Fires what is due, and returns how long to wait until the next cron is.
async fn fire_due(app: &App) -> ApiResult<Duration> {
    let now = app.runtime.now();
    let due = app.registry().due_crons(now, FIRED_AT_ONCE).await?;
    let fired = join_all(due.iter().map(|cron| fire(app, cron, now))).await;
    if fired.contains(&false) {
        return Ok(TRY_AGAIN);
    }
    let Some(next) = app.registry().next_cron_due().await? else {
        return Ok(LOOK_AGAIN);
    };
    let left = next.0.saturating_sub(app.runtime.now().0);
    // Negative if more are due than are fired at once.
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
    Ok(left.min(LOOK_AGAIN))
}

/// Fires the tick that a cron is due for. Ticks that were missed before it, because no server ran, are not made up for: the next
/// one counts from now. Returns whether the tick is done with.
async fn fire(app: &App, cron: &CronRow, now: Timestamp) -> bool {
    let Some(due) = cron.next else {
        return true;
    };
    let fired = match CronTimes::of(cron).next_after(now) {
        Ok(_) if cron.end.is_some_and(|end| end < now) => fail(app, cron, due, &ended(cron)).await,
        Ok(next) => fire_tick(app, cron, due, next).await,
        // A newer program may know other time zones.
        Err(error) => fail(app, cron, due, &unreadable(&error)).await,
    };
    let id = wire::uuid(cron.id.to_bytes());
    match fired {
        Ok(FiredTick::Run(CreatedRun::Stored(_) | CreatedRun::Begun | CreatedRun::Exists(..))) => {
            tracing::debug!(cron = %id, "a cron made a run");
            true
        }
        Ok(FiredTick::Run(CreatedRun::Busy) | FiredTick::NoRun) => {
            tracing::warn!(cron = %id, "a tick of a cron made no run; its `last_error` says why");
            true
        }
        Ok(FiredTick::Passed) => true,
        Err(error) => {
            tracing::warn!(cron = %id, detail = %error.detail, "a cron was not fired");
            false
        }
    }
}

/// Ends a cron without a run.
async fn fail(
    app: &Shared,
    cron: &CronRow,
    due: Timestamp,
    (name, message): &(&str, String),
) -> ApiResult<FiredTick> {
    let tick = CronTick {
        tenant: cron.tenant.clone(),
        cron: cron.id,
        due,
        seen: cron.updated,
        next: None,
        run: TickRun::Failed(json!({ "error": name, "message": message })),
    };
    Ok(app.queue.fire(&tick).await?)
}

fn ended(cron: &CronRow) -> (&'static str, String) {
    let end = cron.end.map(wire::time).unwrap_or_default();
    let message = format!("no server ran when the cron was last due, and it ended at {end}");
    ("ended", message)
}

fn unreadable(error: &ScheduleError) -> (&'static str, String) {
    (error.code(), error.to_string())
}

/// How often the timer looks for crons that another process has changed, and for a clock that was set.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How long the timer waits after a store did not answer.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// Number of crons that are fired at the same time.
const FIRED_AT_ONCE: u32 = 100;

#[cfg(test)]
mod tests {
    use superstep::CronId;
    use superstep::checkpoint::ThreadQuery;
    use superstep::prelude::*;
    use superstep::registry::{MemoryRegistry, NewCron, Registry as _, RunQuery};

    use super::*;
    use crate::Server;
    use crate::assistant::default_id;

    #[derive(Clone, Debug, Default, State)]
    struct Greeting {
        name: String,
    }

    async fn greet(_: View<Greeting>, _: NodeCx) -> Result<GreetingUpdate, NodeError> {
        Ok(GreetingUpdate::default())
    }

    async fn server(store: &Memory, registry: &MemoryRegistry) -> Server {
        let graph = Graph::builder("greeting")
            .node("greet", greet)
            .edge(START, "greet")
            .edge("greet", END)
            .inputs(["name"])
            .build()
            .unwrap();
        let runtime = Runtime::new(store.clone());
        let builder = Server::builder(runtime, Arc::new(registry.clone()));
        builder.graph(graph.definition()).start().await.unwrap()
    }

    /// Both have read the cron before one of them fires it.
    #[tokio::test]
    async fn a_tick_that_two_servers_have_read_is_one_run() {
        let (store, registry) = (Memory::default(), MemoryRegistry::new());
        let first = server(&store, &registry).await;
        let second = server(&store, &registry).await;
        let new = NewCron {
            tenant: String::new(),
            id: CronId::from_bytes([7; 16]),
            assistant: default_id("greeting"),
            thread: None,
            principal: String::new(),
            schedule: "* * * * *".to_owned(),
            zone: None,
            end: None,
            is_enabled: true,
            next: Some(Timestamp(0)),
            arguments: json!({ "input": { "name": "Ada" }, "on_run_completed": "keep" }),
            metadata: json!({}),
            at: Timestamp(0),
        };
        registry.create_cron(&new).await.unwrap();
        let row = new.row();
        let now = first.app.runtime.now();
        let (one, two) = tokio::join!(fire(&first.app, &row, now), fire(&second.app, &row, now));
        assert!(one && two);
        let runs = registry.runs(&RunQuery::default()).await.unwrap();
        assert_eq!(runs.len(), 1, "{runs:?}");
        assert_eq!(runs[0].metadata["cron_id"], wire::uuid([7; 16]));
        let moved = registry.cron("", new.id).await.unwrap().unwrap();
        assert!(moved.next > Some(now), "{moved:?}");
        // Both gave the thread of the run the same id, so the second made none.
        let threads = second.app.runtime.threads(&ThreadQuery::default()).await;
        assert_eq!(threads.unwrap().len(), 1);
    }
}
