//! What is delivered when a run ends: the run as clients read it, with the times, the values and the error.

use std::sync::{Arc, Weak};

use http::StatusCode;
use serde_json::Value as Json;
use superstep::checkpoint::BoxFuture;
use superstep::registry::{NewDelivery, RunEnd, RunRow, RunStatus};
use superstep::{DeliveryId, RunEndHook, RunEndHookError};
use tokio::sync::{Notify, watch};

use crate::start::final_values;
use crate::{App, Shared, wire};

/// Makes the delivery of a run that ends.
#[derive(Debug)]
pub(crate) struct EndHook {
    /// The server, which is complete only after its queue has started: the queue may end a run before.
    app: watch::Sender<Option<Weak<Shared>>>,
    /// Notified when a delivery was stored.
    changed: Arc<Notify>,
}

impl EndHook {
    pub(crate) fn new(changed: Arc<Notify>) -> Self {
        Self {
            app: watch::Sender::new(None),
            changed,
        }
    }

    /// Tells the hook which server it belongs to.
    pub(crate) fn attach(&self, app: &App) {
        self.app.send_replace(Some(Arc::downgrade(app)));
    }

    async fn app(&self) -> Result<App, RunEndHookError> {
        let mut receiver = self.app.subscribe();
        let attached = receiver.wait_for(Option::is_some).await;
        let app = attached.ok().and_then(|app| app.as_ref()?.upgrade());
        app.ok_or_else(|| RunEndHookError("the server is shutting down".to_owned()))
    }

    async fn delivery(
        &self,
        run: &RunRow,
        end: &RunEnd,
        address: &str,
    ) -> Result<NewDelivery, RunEndHookError> {
        let app = self.app().await?;
        let ended = RunRow {
            status: end.status,
            error: end.error.clone(),
            updated: end.at,
            ..run.clone()
        };
        let values = values(&app, &ended).await?;
        Ok(NewDelivery {
            id: delivery_id(run),
            run: run.id,
            thread: run.thread.clone(),
            address: address.to_owned(),
            event: RUN_ENDED.to_owned(),
            body: body(run, &ended, values).to_string(),
            at: end.at,
        })
    }
}

/// Returns the address to which the end of a run is delivered.
fn webhook_of(run: &RunRow) -> Option<&str> {
    run.arguments.get("webhook").and_then(Json::as_str)
}

/// Whether the end of a run is delivered.
pub(crate) fn has_webhook(run: &RunRow) -> bool {
    webhook_of(run).is_some()
}

impl RunEndHook for EndHook {
    fn before_end<'a>(
        &'a self,
        run: &'a RunRow,
        end: &'a RunEnd,
    ) -> BoxFuture<'a, Result<Vec<NewDelivery>, RunEndHookError>> {
        Box::pin(async move {
            match webhook_of(run) {
                Some(address) => Ok(vec![self.delivery(run, end, address).await?]),
                None => Ok(Vec::new()),
            }
        })
    }

    fn deliveries_stored(&self) {
        self.changed.notify_one();
    }
}

/// Returns the values at the end of a run; `null` if they can never be read, because a run must end all the same.
async fn values(app: &Shared, ended: &RunRow) -> Result<Json, RunEndHookError> {
    let graph = ended.metadata.get("graph_id").and_then(Json::as_str);
    let Some(graph) = graph.and_then(|name| app.graphs.get(name)) else {
        return Ok(Json::Null);
    };
    // The error has its own field, so a run that failed has values, too.
    let row = RunRow {
        status: RunStatus::Success,
        ..ended.clone()
    };
    match final_values(app, graph, &ended.thread, &row).await {
        Ok(values) => Ok(values),
        Err(error) if error.status == StatusCode::SERVICE_UNAVAILABLE => {
            Err(RunEndHookError(error.detail))
        }
        Err(error) => {
            let run = ended.id;
            tracing::error!(%run, detail = %error.detail, "a webhook gets no values, because they cannot be read");
            Ok(Json::Null)
        }
    }
}

fn body(run: &RunRow, ended: &RunRow, values: Json) -> Json {
    let mut body = wire::run(ended);
    // When it was taken from the queue, the last time if there were several.
    body["run_started_at"] = wire::time(run.updated).into();
    body["run_ended_at"] = wire::time(ended.updated).into();
    // Set when it is sent.
    body[SENT_AT] = Json::Null;
    body["values"] = values;
    let error = wire::run_error(ended);
    if !error.is_null() {
        body["error"] = error;
    }
    body
}

/// Returns the id of the delivery of a run's end: one id, however many processes end the run.
fn delivery_id(run: &RunRow) -> DeliveryId {
    let name = format!("{RUN_ENDED} {}", run.thread.tenant());
    let id = wire::uuid_of_name(run.id.to_bytes(), name.as_bytes());
    DeliveryId::from_bytes(id.into_bytes())
}

/// What is delivered.
const RUN_ENDED: &str = "run.ended";
/// Name of the field with the time of the attempt.
pub(super) const SENT_AT: &str = "webhook_sent_at";
