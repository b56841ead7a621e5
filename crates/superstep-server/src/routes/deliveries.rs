//! Deliveries to webhooks: which there are, and sending one again.

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use serde_json::Value as Json;
use superstep::registry::DeliveryQuery;

use crate::App;
use crate::caller::{Caller, QueryFields, delivery_id, run_id};
use crate::error::{ApiError, ApiResult};
use crate::routes::paging::page;
use crate::wire;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/superstep/deliveries", get(list))
        .route("/superstep/deliveries/{delivery_id}/repeat", post(repeat))
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    query: QueryFields,
) -> ApiResult<JsonBody<Vec<Json>>> {
    caller.refuse_restricted()?;
    let statuses = match query.text("status") {
        Some(name) => {
            let status = wire::read_delivery_status(name).ok_or_else(|| {
                ApiError::invalid(format!(
                    "`{name}` is not a status of a delivery; use `pending`, `delivered` or `dead`"
                ))
            })?;
            vec![status]
        }
        None => Vec::new(),
    };
    let wanted = DeliveryQuery {
        tenant: caller.tenant,
        run: query.text("run_id").map(run_id).transpose()?,
        statuses,
        page: page(query.number("limit")?, query.number("offset")?)?,
    };
    let found = app.registry().deliveries(&wanted).await?;
    Ok(JsonBody(found.iter().map(wire::delivery).collect()))
}

async fn repeat(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<JsonBody<Json>> {
    caller.refuse_restricted()?;
    let id = delivery_id(&id)?;
    let now = app.runtime.now();
    let repeated = app.registry().repeat_delivery(&caller.tenant, id, now);
    let repeated = repeated.await?.ok_or_else(|| {
        let id = wire::uuid(id.to_bytes());
        ApiError::not_found(format!("Delivery with ID {id} not found"))
    })?;
    app.webhooks.changed.notify_one();
    Ok(JsonBody(wire::delivery(&repeated)))
}
