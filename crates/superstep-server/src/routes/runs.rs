//! Runs: in the background, awaited, cancelled, deleted. Streams are elsewhere.

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header::{CONTENT_LOCATION, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::checkpoint::Page;
use superstep::registry::{RunQuery, RunRow, RunStatus};
use superstep::{RunId, ThreadId};

use crate::caller::{Caller, Payload, QueryFields, RunPath, ThreadPath, run_id};
use crate::error::{ApiError, ApiResult};
use crate::idempotency::Keyed;
use crate::permission::Permission;
use crate::routes::paging::page;
use crate::start::{
    Awaits, OnDisconnect, RunBody, Submitted, ThreadTarget, cancel_runs, discard, final_values,
    roll_back, submit,
};
use crate::{App, Shared, thread, wire};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/threads/{thread_id}/runs", get(list).post(create))
        .route("/threads/{thread_id}/runs/wait", post(wait))
        .route(
            "/threads/{thread_id}/runs/{run_id}",
            get(read).delete(delete),
        )
        .route("/threads/{thread_id}/runs/{run_id}/join", get(join))
        .route("/threads/{thread_id}/runs/{run_id}/cancel", post(cancel))
        .route("/runs", post(create_stateless))
        .route("/runs/wait", post(wait_stateless))
        .route("/runs/batch", post(create_batch))
        .route("/runs/cancel", post(cancel_many))
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(id): ThreadPath,
    request: Keyed<RunBody>,
) -> ApiResult<Response> {
    let target = ThreadTarget::Thread(id);
    let submitted = submit(&app, &caller, target, request.into(), Awaits::Events).await?;
    let response = JsonBody(wire::run(&submitted.row)).into_response();
    Ok(located(response, &submitted, None))
}

async fn create_stateless(
    State(app): State<App>,
    caller: Caller,
    request: Keyed<RunBody>,
) -> ApiResult<Response> {
    let target = ThreadTarget::Temporary;
    let submitted = submit(&app, &caller, target, request.into(), Awaits::Events).await?;
    let response = JsonBody(wire::run(&submitted.row)).into_response();
    Ok(located(response, &submitted, None))
}

async fn create_batch(
    State(app): State<App>,
    caller: Caller,
    Keyed { key, body: bodies }: Keyed<Vec<RunBody>>,
) -> ApiResult<JsonBody<Vec<Json>>> {
    if bodies.len() > BATCH_MAX {
        return Err(ApiError::invalid(format!(
            "A batch has at most {BATCH_MAX} runs"
        )));
    }
    let mut created = Vec::with_capacity(bodies.len());
    for (place, mut body) in bodies.into_iter().enumerate() {
        body.creation_key = key.as_ref().map(|key| key.nth(place));
        let submitted =
            submit(&app, &caller, ThreadTarget::Temporary, body, Awaits::Events).await?;
        created.push(wire::run(&submitted.row));
    }
    Ok(JsonBody(created))
}

async fn wait(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(id): ThreadPath,
    request: Keyed<RunBody>,
) -> ApiResult<Response> {
    submit_and_wait(&app, &caller, ThreadTarget::Thread(id), request.into()).await
}

async fn wait_stateless(
    State(app): State<App>,
    caller: Caller,
    request: Keyed<RunBody>,
) -> ApiResult<Response> {
    submit_and_wait(&app, &caller, ThreadTarget::Temporary, request.into()).await
}

async fn submit_and_wait(
    app: &App,
    caller: &Caller,
    target: ThreadTarget,
    body: RunBody,
) -> ApiResult<Response> {
    let leaves = body.on_disconnect.unwrap_or_default();
    let submitted = submit(app, caller, target, body, Awaits::End).await?;
    let (thread, run) = (&submitted.thread, submitted.row.id);
    let guard = Disconnect::watch(app, thread, run, leaves == OnDisconnect::Cancel);
    let row = app.queue.wait(&caller.tenant, run).await?;
    guard.disarm();
    let row = row.ok_or_else(ApiError::no_run)?;
    let values = final_values(app, &submitted.graph, thread, &row).await?;
    if submitted.is_temporary {
        discard(app, thread).await;
    }
    let location = format!(
        "/threads/{}/runs/{}/join",
        thread.name(),
        wire::uuid(run.to_bytes())
    );
    let response = JsonBody(values).into_response();
    Ok(located(response, &submitted, Some(&location)))
}

/// Adds the headers that say where the run is.
fn located(mut response: Response, submitted: &Submitted, location: Option<&str>) -> Response {
    let headers = response.headers_mut();
    if let Ok(path) = HeaderValue::from_str(&submitted.path()) {
        headers.insert(CONTENT_LOCATION, path);
    }
    if let Some(Ok(location)) = location.map(HeaderValue::from_str) {
        headers.insert(LOCATION, location);
    }
    if let Some((name, value)) = submitted.dropped_header() {
        headers.insert(name, value);
    }
    response
}

/// Cancels a run if it is dropped: the server drops a handler whose client has gone.
struct Disconnect {
    run: Option<(App, ThreadId, RunId)>,
}

impl Disconnect {
    fn watch(app: &App, thread: &ThreadId, run: RunId, cancels: bool) -> Self {
        Self {
            run: cancels.then(|| (app.clone(), thread.clone(), run)),
        }
    }

    fn disarm(mut self) {
        self.run = None;
    }
}

impl Drop for Disconnect {
    fn drop(&mut self) {
        if let Some((app, thread, run)) = self.run.take() {
            // A server that shuts down drops its handlers; the next one continues the run.
            if app.feeds.is_broken() {
                return;
            }
            let shared = app.clone();
            app.background.run(async move {
                if let Err(error) = shared.queue.cancel(thread.tenant(), run).await {
                    tracing::warn!(%run, ?error, "a run was not cancelled");
                }
            });
        }
    }
}

async fn list(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    query: QueryFields,
) -> ApiResult<JsonBody<Vec<Json>>> {
    thread::get(&app, &id).await?;
    let statuses = match query.text("status") {
        Some(name) => vec![wire::read_status(name).ok_or_else(|| unknown_status(name))?],
        None => Vec::new(),
    };
    let wanted = RunQuery {
        tenant: id.tenant().to_owned(),
        thread: Some(id),
        statuses,
        page: page(query.number("limit")?, query.number("offset")?)?,
        ..RunQuery::default()
    };
    let select = query.list("select");
    let rows = app.registry().runs(&wanted).await?;
    let shown = rows.iter().map(|row| {
        let mut shown = wire::run(row);
        wire::select(&mut shown, &select);
        shown
    });
    Ok(JsonBody(shown.collect()))
}

fn unknown_status(name: &str) -> ApiError {
    ApiError::invalid(format!("`{name}` is not a status of a run"))
}

/// Returns a run of a thread.
async fn run_of(app: &Shared, thread: &ThreadId, run: RunId) -> ApiResult<RunRow> {
    let found = app.registry().run(thread.tenant(), run).await?;
    let found = found.filter(|row| row.thread == *thread);
    found.ok_or_else(ApiError::no_run)
}

async fn read(State(app): State<App>, RunPath(thread, run): RunPath) -> ApiResult<JsonBody<Json>> {
    Ok(JsonBody(wire::run(&run_of(&app, &thread, run).await?)))
}

async fn delete(State(app): State<App>, RunPath(thread, run): RunPath) -> ApiResult<StatusCode> {
    let row = run_of(&app, &thread, run).await?;
    if row.status.is_active() {
        app.queue.cancel(thread.tenant(), run).await?;
    }
    app.registry().delete_run(thread.tenant(), run).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn join(
    State(app): State<App>,
    RunPath(thread, run): RunPath,
    query: QueryFields,
) -> ApiResult<Response> {
    run_of(&app, &thread, run).await?;
    let guard = Disconnect::watch(&app, &thread, run, query.flag("cancel_on_disconnect"));
    let row = app.queue.wait(thread.tenant(), run).await?;
    guard.disarm();
    let row = row.ok_or_else(ApiError::no_run)?;
    let found = thread::get(&app, &thread).await?;
    let graph = thread::graph_of(&app, &found).ok_or_else(ApiError::no_run)?;
    let values = final_values(&app, graph, &thread, &row).await?;
    Ok((paths_of(&row), JsonBody(values)).into_response())
}

/// Returns the headers that say where a run of a thread is, and where its result is.
fn paths_of(row: &RunRow) -> [(HeaderName, String); 2] {
    let run = wire::uuid(row.id.to_bytes());
    let path = format!("/threads/{}/runs/{run}", row.thread.name());
    let result = format!("{path}/join");
    [(CONTENT_LOCATION, path), (LOCATION, result)]
}

async fn cancel(
    State(app): State<App>,
    caller: Caller,
    RunPath(thread, run): RunPath,
    query: QueryFields,
) -> ApiResult<Response> {
    let row = run_of(&app, &thread, run).await?;
    let action = CancelAction::of(&query, &caller)?;
    if !row.status.is_active() {
        return Err(ApiError::not_found(format!(
            "Run {} has ended; there is nothing to cancel",
            wire::uuid(run.to_bytes())
        )));
    }
    if query.flag("wait") {
        let paths = paths_of(&row);
        action.carry_out(&app, &[row]).await?;
        return Ok((paths, JsonBody(json!({}))).into_response());
    }
    match row.status {
        // There is nothing to wait for, and a client that asks next sees the run cancelled.
        RunStatus::Pending => action.carry_out(&app, &[row]).await?,
        _ => cancel_in_background(&app, vec![row], action),
    }
    Ok(StatusCode::ACCEPTED.into_response())
}

/// What becomes of cancelled runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CancelAction {
    /// They stay, with what they did.
    Interrupt,
    /// They are deleted, and what they did is undone.
    Rollback,
}

impl CancelAction {
    fn of(query: &QueryFields, caller: &Caller) -> ApiResult<Self> {
        match query.text("action") {
            None | Some("interrupt") => Ok(Self::Interrupt),
            Some("rollback") => {
                caller.require(Permission::Edit)?;
                Ok(Self::Rollback)
            }
            Some(other) => Err(ApiError::invalid(format!(
                "`{other}` is not an action; use `interrupt` or `rollback`"
            ))),
        }
    }

    async fn carry_out(self, app: &Shared, runs: &[RunRow]) -> ApiResult<()> {
        match self {
            Self::Interrupt => cancel_runs(app, runs).await,
            Self::Rollback => {
                for run in runs {
                    roll_back(app, &run.thread, std::slice::from_ref(run)).await?;
                }
                Ok(())
            }
        }
    }
}

fn cancel_in_background(app: &App, runs: Vec<RunRow>, action: CancelAction) {
    let shared = app.clone();
    app.background.run(async move {
        if let Err(error) = action.carry_out(&shared, &runs).await {
            tracing::warn!(detail = %error.detail, "runs were not cancelled");
        }
    });
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CancelBody {
    status: Option<String>,
    thread_id: Option<String>,
    run_ids: Option<Vec<String>>,
}

async fn cancel_many(
    State(app): State<App>,
    caller: Caller,
    query: QueryFields,
    Payload(body): Payload<CancelBody>,
) -> ApiResult<StatusCode> {
    let statuses = match body.status.as_deref() {
        Some("pending") => vec![RunStatus::Pending],
        Some("running") => vec![RunStatus::Running],
        None | Some("all") => vec![RunStatus::Pending, RunStatus::Running],
        Some(other) => return Err(unknown_status(other)),
    };
    let action = CancelAction::of(&query, &caller)?;
    let thread = body.thread_id.as_deref().map(|id| caller.thread(id));
    let ids = body.run_ids.as_ref();
    if ids.is_some_and(|ids| ids.len() > CANCELLED_MAX as usize) {
        return Err(ApiError::invalid(format!(
            "`run_ids` names more than {CANCELLED_MAX} runs"
        )));
    }
    let read_all = |ids: &Vec<String>| ids.iter().map(|id| run_id(id)).collect();
    let ids: Option<ApiResult<Vec<RunId>>> = ids.map(read_all);
    if body.status.is_none() && (thread.is_none() || ids.is_none()) {
        return Err(ApiError::invalid(
            "Name the runs by `status`, or by `thread_id` and `run_ids`",
        ));
    }
    let wanted = RunQuery {
        tenant: caller.tenant.clone(),
        thread: thread.transpose()?,
        statuses,
        ids: ids.transpose()?,
        metadata: caller.own_only(None)?,
        page: Page {
            limit: CANCELLED_MAX,
            offset: 0,
        },
    };
    let found = app.registry().runs(&wanted).await?;
    if found.is_empty() {
        return Err(ApiError::not_found("No runs found to cancel."));
    }
    action.carry_out(&app, &found).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Highest number of runs that one request creates.
const BATCH_MAX: usize = 1_000;
/// Number of runs that one request cancels.
const CANCELLED_MAX: u32 = 10_000;
