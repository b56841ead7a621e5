//! Deliveries to webhooks: which there are, and sending one again.

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use serde_json::Value as Json;
use superstep::DeliveryId;
use superstep::checkpoint::Page;
use superstep::registry::{Delivery, DeliveryQuery, RunQuery};

use crate::caller::{Caller, QueryFields, delivery_id, run_id};
use crate::error::{ApiError, ApiResult};
use crate::routes::paging::page;
use crate::webhooks::has_webhook;
use crate::{App, Shared, wire};

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
        tenant: caller.tenant.clone(),
        run: query.text("run_id").map(run_id).transpose()?,
        statuses,
        page: page(query.number("limit")?, query.number("offset")?)?,
        ..DeliveryQuery::default()
    };
    let found = match (&caller.owner, wanted.run) {
        (Some(_), None) => of_own_runs(&app, &caller, &wanted).await?,
        (Some(_), Some(_)) | (None, _) => app.registry().deliveries(&wanted).await?,
    };
    // All deliveries of a run have the same owner, so pages are not shortened.
    let own = found.iter().filter(|found| caller.owns_delivery(found));
    Ok(JsonBody(own.map(wire::delivery).collect()))
}

/// Returns the deliveries of the caller's own runs, newest run first. Those of deleted runs are left out.
async fn of_own_runs(
    app: &Shared,
    caller: &Caller,
    wanted: &DeliveryQuery,
) -> ApiResult<Vec<Delivery>> {
    let (mut found, mut offset) = (Vec::new(), 0);
    let end = wanted.page.offset as usize + wanted.page.limit as usize;
    while found.len() < end {
        let query = RunQuery {
            tenant: caller.tenant.clone(),
            metadata: caller.own_only(None)?,
            page: Page {
                limit: RUNS_AT_ONCE,
                offset,
            },
            ..RunQuery::default()
        };
        let runs = app.registry().runs(&query).await?;
        for run in runs.iter().filter(|run| has_webhook(run)) {
            let of_run = DeliveryQuery {
                run: Some(run.id),
                page: Page {
                    limit: RUNS_AT_ONCE,
                    offset: 0,
                },
                ..wanted.clone()
            };
            found.extend(app.registry().deliveries(&of_run).await?);
        }
        offset += RUNS_AT_ONCE;
        if runs.len() < RUNS_AT_ONCE as usize {
            break;
        }
    }
    let page = found.into_iter().skip(wanted.page.offset as usize);
    Ok(page.take(wanted.page.limit as usize).collect())
}

async fn repeat(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<JsonBody<Json>> {
    let id = delivery_id(&id)?;
    let repeated = match is_own(&app, &caller, id).await? {
        true => {
            let now = app.runtime.now();
            let repeated = app.registry().repeat_delivery(&caller.tenant, id, now);
            repeated.await?
        }
        false => None,
    };
    let repeated = repeated.ok_or_else(|| {
        let id = wire::uuid(id.to_bytes());
        ApiError::not_found(format!("Delivery with ID {id} not found"))
    })?;
    app.webhooks.changed.notify_one();
    Ok(JsonBody(wire::delivery(&repeated)))
}

/// Whether the caller may repeat a delivery. One that does not exist is nobody's.
async fn is_own(app: &App, caller: &Caller, id: DeliveryId) -> ApiResult<bool> {
    if caller.owner.is_none() {
        return Ok(true);
    }
    let query = DeliveryQuery {
        tenant: caller.tenant.clone(),
        id: Some(id),
        page: Page {
            limit: 1,
            offset: 0,
        },
        ..DeliveryQuery::default()
    };
    let found = app.registry().deliveries(&query).await?;
    Ok(found
        .first()
        .is_some_and(|found| caller.owns_delivery(found)))
}

/// Number of runs that are read at once.
const RUNS_AT_ONCE: u32 = 500;
