//! Crons: runs that repeat on a schedule.

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use superstep::AssistantId;
use superstep::registry::{CronQuery, CronRow};

use crate::caller::{Caller, Payload, ThreadPath, assistant_id, cron_id};
use crate::cron::{self, CronBody};
use crate::error::ApiResult;
use crate::idempotency::Keyed;
use crate::routes::paging::{page, paged};
use crate::{App, Shared, assistant, thread, wire};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/runs/crons", post(create))
        .route("/runs/crons/search", post(search))
        .route("/runs/crons/count", post(count))
        .route(
            "/runs/crons/{cron_id}",
            get(read).patch(change).delete(delete),
        )
        .route("/threads/{thread_id}/runs/crons", post(create_for_thread))
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    request: Keyed<Map<String, Json>>,
) -> ApiResult<JsonBody<Json>> {
    let body = CronBody::read(request.body)?;
    let created = cron::create(&app, caller, None, body, request.key.as_ref()).await?;
    shown(&app, created).await
}

async fn create_for_thread(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(id): ThreadPath,
    request: Keyed<Map<String, Json>>,
) -> ApiResult<JsonBody<Json>> {
    thread::get(&app, &id).await?;
    let body = CronBody::read(request.body)?;
    let created = cron::create(&app, caller, Some(id), body, request.key.as_ref()).await?;
    shown(&app, created).await
}

async fn read(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<JsonBody<Json>> {
    let found = cron::get(&app, &caller, cron_id(&id)?).await?;
    shown(&app, found).await
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Payload(fields): Payload<Map<String, Json>>,
) -> ApiResult<JsonBody<Json>> {
    let body = CronBody::read(fields)?;
    let changed = cron::change(&app, &caller, cron_id(&id)?, &body).await?;
    shown(&app, changed).await
}

async fn shown(app: &Shared, cron: CronRow) -> ApiResult<JsonBody<Json>> {
    let mut shown = cron::show(app, &cron.tenant, std::slice::from_ref(&cron)).await?;
    Ok(JsonBody(shown.pop().unwrap_or_default()))
}

async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<StatusCode> {
    let id = cron_id(&id)?;
    cron::get(&app, &caller, id).await?;
    match app.registry().delete_cron(&caller.tenant, id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(cron::no_cron(id)),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SearchBody {
    assistant_id: Option<String>,
    thread_id: Option<String>,
    enabled: Option<bool>,
    metadata: Option<Map<String, Json>>,
    limit: Option<u32>,
    offset: Option<u32>,
    sort_by: Option<String>,
    sort_order: Option<String>,
    select: Option<Vec<String>>,
}

impl SearchBody {
    async fn query(&self, app: &Shared, caller: &Caller) -> ApiResult<CronQuery> {
        let assistant = match &self.assistant_id {
            Some(name) => Some(assistant_named(app, caller, name).await?),
            None => None,
        };
        let thread = self.thread_id.as_deref().map(|id| caller.thread(id));
        Ok(CronQuery {
            tenant: caller.tenant.clone(),
            assistant,
            thread: thread.transpose()?,
            is_enabled: self.enabled,
            metadata: caller.own_only(self.metadata.clone())?,
            sort: cron::read_sort(self.sort_by.as_deref())?,
            is_descending: self.sort_order.as_deref() != Some("asc"),
            page: page(self.limit, self.offset)?,
        })
    }
}

/// Returns the id of an assistant, which need not exist, or of the default one of a graph.
async fn assistant_named(app: &Shared, caller: &Caller, name: &str) -> ApiResult<AssistantId> {
    match assistant_id(name) {
        Some(id) => Ok(id),
        None => Ok(assistant::get(app, caller, name).await?.id),
    }
}

async fn search(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<SearchBody>,
) -> ApiResult<Response> {
    let query = body.query(&app, &caller).await?;
    let total = app.registry().count_crons(&query).await?;
    let found = app.registry().crons(&query).await?;
    let select = body.select.unwrap_or_default();
    let mut rows = cron::show(&app, &caller.tenant, &found).await?;
    for row in &mut rows {
        wire::select(row, &select);
    }
    Ok(paged(rows, query.page, total))
}

async fn count(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<SearchBody>,
) -> ApiResult<JsonBody<u64>> {
    let query = body.query(&app, &caller).await?;
    Ok(JsonBody(app.registry().count_crons(&query).await?))
}
