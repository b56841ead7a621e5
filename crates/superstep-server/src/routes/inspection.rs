//! What user interfaces ask besides LangGraph's API, under `/superstep`: the inbox, the queue, budgets, and of a thread its
//! interrupts, its tree of checkpoints, state diffs, what a fork would repeat, a branch as a test case, its trace and its labels.

use std::sync::Arc;

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::Value as Json;
use superstep::ThreadId;
use superstep::graph::Definition;

use crate::caller::{Caller, Payload, QueryFields, ThreadPath};
use crate::error::{ApiError, ApiResult};
use crate::inspect::{self, DiffSide, InboxQuery, TraceLimits};
use crate::routes::paging::{page, paged, searched};
use crate::start::no_checkpoint;
use crate::test_case::TestCase;
use crate::wire::CheckpointId;
use crate::{App, Shared, assistant, thread, wire};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/superstep/inbox", get(inbox))
        .route("/superstep/queue", get(queue))
        .route("/superstep/budgets", get(budgets))
        .route("/superstep/threads/{thread_id}/interrupts", get(interrupts))
        .route("/superstep/threads/{thread_id}/tree", get(tree))
        .route("/superstep/threads/{thread_id}/diff", post(diff))
        .route(
            "/superstep/threads/{thread_id}/fork/preview",
            post(fork_preview),
        )
        .route("/superstep/threads/{thread_id}/case", get(case))
        .route("/superstep/threads/{thread_id}/trace", get(trace))
        .route("/superstep/threads/{thread_id}/labels", get(labels))
}

async fn inbox(State(app): State<App>, caller: Caller, query: QueryFields) -> ApiResult<Response> {
    let page = page(query.number("limit")?, query.number("offset")?)?;
    if page.limit > INBOX_MAX {
        // The cost of every item is read from the log of its thread.
        return Err(ApiError::invalid(format!(
            "`limit` is {}; the inbox has pages of at most {INBOX_MAX}",
            page.limit
        )));
    }
    let named = query.text("assistant_id");
    let assistant = match named {
        Some(name) => Some(assistant::get(&app, &caller, name).await?),
        None => None,
    };
    let wanted = InboxQuery {
        graph: query.text("graph_id").map(str::to_owned),
        assistant: assistant.map(|found| wire::uuid(found.id.to_bytes())),
        page,
    };
    let (items, total) = inspect::inbox(&app, &caller, &wanted).await?;
    Ok(paged(items, page, total))
}

async fn queue(
    State(app): State<App>,
    caller: Caller,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let page = page(query.number("limit")?, query.number("offset")?)?;
    let shown = inspect::queue(&app, &caller, page).await?;
    Ok(JsonBody(shown))
}

async fn budgets(
    State(app): State<App>,
    caller: Caller,
    query: QueryFields,
) -> ApiResult<Response> {
    let page = page(query.number("limit")?, query.number("offset")?)?;
    let (shown, is_complete) = inspect::budgets(&app, &caller, page).await?;
    Ok(searched(shown, is_complete))
}

async fn interrupts(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    query: QueryFields,
) -> ApiResult<Response> {
    thread::get(&app, &id).await?;
    let page = page(query.number("limit")?, query.number("offset")?)?;
    let (rows, total) = inspect::interrupts(&app, &id, page).await?;
    Ok(paged(rows, page, total))
}

async fn tree(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let graph = graph_of(&app, &id).await?;
    let limit = page(query.number("limit")?.or(Some(TREE_DEFAULT)), None)?.limit;
    let before = match query.text("before") {
        Some(name) => Some(CheckpointId::parse(&id, name).ok_or_else(|| no_checkpoint(name))?),
        None => None,
    };
    let shown = inspect::checkpoint_tree(&app, &graph, &id, before, limit as usize).await?;
    Ok(JsonBody(shown))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiffBody {
    from: Option<String>,
    to: Option<String>,
    other_thread: Option<String>,
}

async fn diff(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(id): ThreadPath,
    Payload(body): Payload<DiffBody>,
) -> ApiResult<JsonBody<Json>> {
    let graph = graph_of(&app, &id).await?;
    let (from, to) = (body.from.as_deref(), body.to.as_deref());
    let (from, to) = match body.other_thread {
        Some(other) => {
            let other = caller.thread(&other)?;
            caller.check_thread(&app, &other).await?;
            let of_other = graph_of(&app, &other).await?;
            let to = DiffSide::named(&app, &of_other, &other, to).await?;
            (DiffSide::named(&app, &graph, &id, from).await?, to)
        }
        None => {
            let to = DiffSide::named(&app, &graph, &id, to).await?;
            let from = match from {
                Some(_) => DiffSide::named(&app, &graph, &id, from).await?,
                None => to.parent(&app).await?,
            };
            (from, to)
        }
    };
    Ok(JsonBody(inspect::state_diff(&app, &from, &to).await?))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PreviewBody {
    checkpoint: Option<String>,
}

async fn fork_preview(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    Payload(body): Payload<PreviewBody>,
) -> ApiResult<JsonBody<Json>> {
    let graph = graph_of(&app, &id).await?;
    let named = body.checkpoint.as_deref();
    let named = named.ok_or_else(|| ApiError::invalid("`checkpoint` is missing"))?;
    let found = inspect::checkpoint_named(&app, &graph, &id, Some(named)).await?;
    let found = found.ok_or_else(nothing_happened)?;
    let shown = inspect::fork_preview(&app, &graph, &id, found.id).await?;
    Ok(JsonBody(shown))
}

async fn case(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    query: QueryFields,
) -> ApiResult<JsonBody<TestCase>> {
    let graph = graph_of(&app, &id).await?;
    let named = query.text("checkpoint_id");
    let end = inspect::checkpoint_named(&app, &graph, &id, named).await?;
    let end = end.ok_or_else(nothing_happened)?;
    Ok(JsonBody(inspect::test_case(&app, &graph, &id, &end).await?))
}

async fn trace(State(app): State<App>, ThreadPath(id): ThreadPath) -> ApiResult<JsonBody<Json>> {
    thread::get(&app, &id).await?;
    let store = app.runtime.checkpointer();
    let newest = inspect::newest_trace(&**store, &id, TraceLimits::OF_REPLY).await?;
    if newest.trace.runs.is_empty() && !newest.is_complete {
        return Err(ApiError::invalid(
            "The log of the newest run is too long for one reply. Read its trace with `archie trace`.",
        ));
    }
    Ok(JsonBody(inspect::span_tree(&id, &newest)))
}

async fn labels(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let graph = graph_of(&app, &id).await?;
    let named = query.text("checkpoint_id");
    let found = inspect::checkpoint_named(&app, &graph, &id, named).await?;
    let found = found.ok_or_else(nothing_happened)?;
    let shown = inspect::labels(&app, &id, &found).await?;
    Ok(JsonBody(shown))
}

/// Returns the graph of a thread, which is needed to read its states.
async fn graph_of(app: &Shared, id: &ThreadId) -> ApiResult<Arc<Definition>> {
    let row = thread::get(app, id).await?;
    let graph = thread::graph_of(app, &row).cloned();
    graph.ok_or_else(nothing_happened)
}

fn nothing_happened() -> ApiError {
    ApiError::not_found("The thread has no checkpoints of a graph that this server serves")
}

/// Longest page of the inbox.
const INBOX_MAX: u32 = 100;
/// Number of checkpoints in a page of a tree, unless the caller names another.
const TREE_DEFAULT: u32 = 1_000;
