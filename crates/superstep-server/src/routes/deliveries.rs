//! Deliveries to webhooks: which there are, and sending one again.

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::Value as Json;
use superstep::DeliveryId;
use superstep::checkpoint::Page;
use superstep::registry::{Delivery, DeliveryQuery, RunQuery};

use crate::caller::{Caller, QueryFields, delivery_id, run_id};
use crate::error::{ApiError, ApiResult};
use crate::routes::paging::{page, searched};
use crate::webhooks::has_webhook;
use crate::{App, Shared, wire};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/superstep/deliveries", get(list))
        .route("/superstep/deliveries/{delivery_id}/repeat", post(repeat))
}

async fn list(State(app): State<App>, caller: Caller, query: QueryFields) -> ApiResult<Response> {
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
    let (found, is_complete) = match (&caller.owner, wanted.run) {
        (Some(_), None) => of_own_runs(&app, &caller, &wanted).await?,
        (Some(_), Some(_)) | (None, _) => (app.registry().deliveries(&wanted).await?, true),
    };
    // All deliveries of a run have the same owner, so pages are not shortened.
    let own = found.iter().filter(|found| caller.owns_delivery(found));
    Ok(searched(own.map(wire::delivery).collect(), is_complete))
}

/// Returns the deliveries of the caller's own runs, newest run first, and whether the page is complete: only so many runs are searched.
/// Those of deleted runs are left out.
async fn of_own_runs(
    app: &Shared,
    caller: &Caller,
    wanted: &DeliveryQuery,
) -> ApiResult<(Vec<Delivery>, bool)> {
    let (mut found, mut offset, mut asked) = (Vec::new(), 0, 0);
    let end = wanted.page.offset as usize + wanted.page.limit as usize;
    let mut is_complete = true;
    'search: while found.len() < end {
        if offset >= RUNS_MAX {
            is_complete = false;
            break;
        }
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
            if found.len() >= end {
                break 'search;
            }
            if asked >= ASKED_MAX {
                is_complete = false;
                break 'search;
            }
            asked += 1;
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
    let page = page.take(wanted.page.limit as usize);
    Ok((page.collect(), is_complete))
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
/// Number of runs that are searched for deliveries.
const RUNS_MAX: u32 = 10_000;
/// Number of runs whose deliveries are looked up, each by a query of its own.
const ASKED_MAX: u32 = 2_000;
