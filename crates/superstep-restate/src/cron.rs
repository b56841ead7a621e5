//! Requests that repeat on a schedule.
//!
//! A cron is a virtual object that calls itself with a delay. Its request is stored in the queue under the cron's id and
//! never swept; every tick stores a copy under an id derived from the tick, so a retried tick makes no second request. A
//! stopped cron has a reply in the queue, and its next tick is its last.

use std::sync::Arc;
use std::time::Duration;

use croner::Cron as Pattern;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use superstep::driver::QueuedRequest;
use superstep::{DriveError, RunId, ThreadId, Timestamp};

use crate::client::Restate;
use crate::handlers::{HandlerState, ThreadClient, derived, now};

/// Schedule of a repeated request, and its thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cron {
    /// Cron expression in UTC: five fields as in crontab, or six with seconds first.
    pub pattern: String,
    /// Thread that each request is sent to.
    pub thread: ThreadId,
}

/// Error from setting up a cron.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CronError {
    /// Not a valid cron expression, or one that never fires.
    #[error("`{pattern}` is an invalid cron expression, or one that never fires: {why}")]
    BadPattern {
        /// The rejected expression.
        pattern: String,
        /// Why the parser rejected it, or why it never fires.
        why: String,
    },
    /// The cron could not be stored or sent to the cluster.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

impl CronError {
    /// Codes that only this error has.
    pub const CODES: &'static [&'static str] = &["cron-bad-pattern"];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            CronError::BadPattern { .. } => "cron-bad-pattern",
            CronError::Drive(error) => error.code(),
        }
    }
}

impl Cron {
    /// Returns the first time after `after` when the cron fires.
    pub fn next_after(&self, after: Timestamp) -> Result<Timestamp, CronError> {
        let bad = |why: String| CronError::BadPattern {
            pattern: self.pattern.clone(),
            why,
        };
        // croner takes an empty part for a set without members, and searches every second of three thousand years for one.
        let mut parts = self
            .pattern
            .split_whitespace()
            .flat_map(|field| field.split(','));
        if parts.any(|part| part.is_empty() || part.starts_with('/')) {
            return Err(bad("a field has an empty part".to_owned()));
        }
        let pattern: Pattern = croner::parser::CronParser::builder()
            .seconds(croner::parser::Seconds::Optional)
            .build()
            .parse(&self.pattern)
            .map_err(|error| bad(error.to_string()))?;
        let after = chrono::DateTime::from_timestamp_millis(after.0)
            .ok_or_else(|| bad("the clock is out of range".to_owned()))?;
        let next = pattern
            .find_next_occurrence(&after, false)
            .map_err(|error| bad(error.to_string()))?;
        Ok(Timestamp(next.timestamp_millis()))
    }
}

/// One tick of a cron, as journaled by Restate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tick {
    cron: Cron,
    at: Timestamp,
}

impl Restate {
    /// Starts a cron, which makes the request on every tick. Idempotent under the same id.
    pub async fn start_cron(
        &self,
        id: RunId,
        cron: &Cron,
        request: &QueuedRequest,
    ) -> Result<(), CronError> {
        let first = cron.next_after(now())?;
        let bytes = request.to_bytes(&cron.thread);
        let kept = self
            .queue
            .put(id, &cron.thread, &bytes, KEPT_FOR_EVER)
            .await
            .map_err(DriveError::from)?;
        if kept != bytes {
            return Err(DriveError::IdReused { run: id }.into());
        }
        let tick = Tick {
            cron: cron.clone(),
            at: first,
        };
        let body = serde_json::to_vec(&tick).expect("a tick always encodes");
        let wait = wait_ms(first);
        let path = format!("/SuperstepCron/{id}/tick/send?delay={wait}ms");
        let first = format!("first-{id}");
        self.ingress
            .call(&path, &first, body)
            .await
            .map_err(DriveError::from)?;
        Ok(())
    }

    /// Stops a cron. Requests that it already made are still executed.
    pub async fn stop_cron(&self, id: RunId) -> Result<(), DriveError> {
        Ok(self.queue.reply(id, b"stopped").await?)
    }
}

/// The virtual object of a cron.
pub(crate) struct CronObject(pub(crate) Arc<HandlerState>);

#[object(name = "SuperstepCron", client_visibility = "pub(crate)")]
impl CronObject {
    /// Makes the request, and calls itself for the next time.
    #[handler]
    async fn tick(&self, ctx: ObjectContext<'_>, Json(tick): Json<Tick>) -> HandlerResult<()> {
        let desk = &self.0;
        let cron: RunId = ctx
            .key()
            .parse()
            .map_err(|_| TerminalError::new_with_code(400, "not the id of a cron"))?;
        let Json(next) = ctx
            .run(|| async { Ok(Json(desk.queue_request(cron, &tick).await?)) })
            .name("order")
            .await?;
        let Some((request, next)) = next else {
            return Ok(());
        };
        ctx.object_client::<ThreadClient<'_>>(tick.cron.thread.to_string())
            .run(Json(request))
            .idempotency_key(request.to_string())
            .send();
        let wait = Duration::from_millis(wait_ms(next));
        let tick = Tick {
            at: next,
            ..tick.clone()
        };
        ctx.object_client::<CronObjectClient<'_>>(ctx.key())
            .tick(Json(tick))
            .idempotency_key(format!("{}-{}", ctx.key(), next.0))
            .send_after(wait);
        Ok(())
    }
}

impl HandlerState {
    /// Stores this tick's request, and returns its id with the time of the next tick; `None` if the cron was stopped.
    async fn queue_request(
        &self,
        cron: RunId,
        tick: &Tick,
    ) -> HandlerResult<Option<(RunId, Timestamp)>> {
        let Some(kept) = self.queue.get(cron).await? else {
            return Ok(None);
        };
        if kept.reply.is_some() {
            return Ok(None);
        }
        let id = derived(&[&cron.to_bytes(), &tick.at.0.to_be_bytes()]);
        self.queue
            .put(id, &tick.cron.thread, &kept.request, now())
            .await?;
        // Ticks that were missed while no worker was available are skipped.
        let after = Timestamp(tick.at.0.max(now().0));
        let next = tick
            .cron
            .next_after(after)
            .map_err(|error| TerminalError::new_with_code(400, error.to_string()))?;
        Ok(Some((id, next)))
    }
}

fn wait_ms(until: Timestamp) -> u64 {
    crate::handlers::wait_ms(now(), until)
}

const KEPT_FOR_EVER: Timestamp = Timestamp(i64::MAX);
