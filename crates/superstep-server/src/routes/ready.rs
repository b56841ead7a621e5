//! Whether the server should get requests: for load balancers and orchestrators.

use std::time::Duration;

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::Timestamp;
use superstep::checkpoint::{Page, ThreadQuery};

use crate::error::{ApiError, ApiResult};
use crate::{App, Shared};

pub(super) fn routes() -> Router<App> {
    Router::new().route("/superstep/ready", get(ready))
}

async fn ready(State(app): State<App>) -> ApiResult<JsonBody<Json>> {
    let not_ready = |why: &str| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, why);
    if app.queue.health().is_draining {
        return Err(not_ready("The server is shutting down"));
    }
    let answered = tokio::time::timeout(STORE_TIME_MAX, check_stores(&app)).await;
    let Ok(oldest) = answered else {
        return Err(not_ready("The store does not answer"));
    };
    if is_stalled(app.queue.health().since_progress, age(&app, oldest?)) {
        return Err(not_ready("Runs wait, and none begins or ends"));
    }
    Ok(JsonBody(json!({ "ready": true })))
}

/// Reads from the stores. Returns when the oldest waiting run was due.
pub(super) async fn check_stores(app: &Shared) -> ApiResult<Option<Timestamp>> {
    let any = ThreadQuery {
        page: Page {
            limit: 1,
            offset: 0,
        },
        ..ThreadQuery::default()
    };
    app.runtime.threads(&any).await?;
    Ok(app.registry().next_due().await?)
}

/// Returns how long something is due; zero if it is not.
pub(super) fn age(app: &Shared, due: Option<Timestamp>) -> Duration {
    let late = due.map_or(0, |due| app.runtime.now().0.saturating_sub(due.0));
    Duration::from_millis(u64::try_from(late).unwrap_or(0))
}

/// Whether the queue does not move. A run may wait long for another one of its thread, so its age alone says nothing.
fn is_stalled(since_progress: Duration, oldest: Duration) -> bool {
    since_progress.min(oldest) > STALLED_AFTER
}

/// How long the stores may take to answer.
const STORE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a run may wait while the queue makes no progress.
const STALLED_AFTER: Duration = Duration::from_secs(300);

#[test]
fn a_queue_is_stalled_if_a_run_waits_and_nothing_moves() {
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(301));
    assert!(is_stalled(long, long));
    assert!(!is_stalled(short, long), "it waits for its thread");
    assert!(!is_stalled(long, short), "nothing was to do until now");
}
