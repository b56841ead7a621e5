//! Assistants: graphs with a configuration, in versions.

use std::sync::Arc;

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::{Page, ThreadQuery};
use superstep::graph::{Definition, Drawing};
use superstep::registry::{
    AssistantChange, AssistantQuery, AssistantSort, CreatedAssistant, NewAssistant, json_contains,
};
use superstep::{AssistantId, ChannelKind, FramePath};

use crate::caller::{Caller, Payload, QueryFields, assistant_id};
use crate::error::{ApiError, ApiResult};
use crate::idempotency::{Keyed, new_id};
use crate::permission::Permission;
use crate::routes::drawing;
use crate::routes::paging::{page, paged};
use crate::{App, Shared, assistant, background, cron, start, thread, wire};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/assistants", post(create))
        .route("/assistants/search", post(search))
        .route("/assistants/count", post(count))
        .route(
            "/assistants/{assistant_id}",
            get(read).patch(change).delete(delete),
        )
        .route("/assistants/{assistant_id}/graph", get(draw))
        .route("/assistants/{assistant_id}/schemas", get(schemas))
        .route("/assistants/{assistant_id}/subgraphs", get(subgraphs))
        .route(
            "/assistants/{assistant_id}/subgraphs/{namespace}",
            get(subgraph),
        )
        .route("/assistants/{assistant_id}/versions", post(versions))
        .route("/assistants/{assistant_id}/latest", post(set_latest))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CreateBody {
    graph_id: String,
    assistant_id: Option<String>,
    config: Option<Map<String, Json>>,
    context: Option<Map<String, Json>>,
    metadata: Option<Map<String, Json>>,
    name: Option<String>,
    description: Option<String>,
    if_exists: Option<String>,
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    Keyed { key, body }: Keyed<CreateBody>,
) -> ApiResult<JsonBody<Json>> {
    check_graph(&app, &body.graph_id)?;
    let id = match &body.assistant_id {
        Some(text) => assistant_id(text)
            .ok_or_else(|| ApiError::invalid("Invalid assistant ID: must be a UUID"))?,
        None => AssistantId::from_bytes(new_id(key.as_ref(), "assistant").into_bytes()),
    };
    if let Some(found) = assistant::default_with_id(&app, &caller, id).await? {
        // Also if the tenant has not used it yet: everyone who names the graph would get what is created here instead.
        let is_wanted = body.if_exists.as_deref() == Some("do_nothing");
        return match is_wanted && caller.owns_assistant(&found) {
            true => Ok(JsonBody(wire::assistant(&found))),
            false => Err(exists(id)),
        };
    }
    let mut config = Json::Object(body.config.unwrap_or_default());
    let mut context = Json::Object(body.context.unwrap_or_default());
    wire::mirror(&mut config, &mut context);
    let mut metadata = body.metadata.unwrap_or_default();
    caller.mark_own(&mut metadata);
    let new = NewAssistant {
        tenant: caller.tenant.clone(),
        id,
        graph: body.graph_id,
        name: body.name.unwrap_or_else(|| "Untitled".to_owned()),
        description: body.description.unwrap_or_default(),
        config,
        context,
        metadata: Json::Object(metadata),
        at: app.runtime.now(),
    };
    match app.registry().create_assistant(&new).await? {
        CreatedAssistant::Stored(created) => Ok(JsonBody(wire::assistant(&created))),
        CreatedAssistant::Exists(found)
            if caller.owns_assistant(&found)
                && (body.if_exists.as_deref() == Some("do_nothing")
                    || key.as_ref().is_some_and(|key| key.created(found.created))) =>
        {
            Ok(JsonBody(wire::assistant(&found)))
        }
        CreatedAssistant::Exists(_) => Err(exists(id)),
    }
}

fn exists(id: AssistantId) -> ApiError {
    let id = wire::uuid(id.to_bytes());
    ApiError::conflict(format!("Assistant with ID {id} already exists"))
}

fn check_graph(app: &Shared, name: &str) -> ApiResult<()> {
    match app.graphs.contains_key(name) {
        true => Ok(()),
        false => Err(ApiError::not_found(format!("Graph '{name}' not found"))),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SearchBody {
    metadata: Option<Map<String, Json>>,
    graph_id: Option<String>,
    name: Option<String>,
    limit: Option<u32>,
    offset: Option<u32>,
    sort_by: Option<String>,
    sort_order: Option<String>,
    select: Option<Vec<String>>,
}

impl SearchBody {
    fn query(&self, caller: &Caller) -> ApiResult<AssistantQuery> {
        let sort = match self.sort_by.as_deref() {
            None | Some("created_at") => AssistantSort::Created,
            Some("updated_at") => AssistantSort::Updated,
            Some("name") => AssistantSort::Name,
            Some("graph_id") => AssistantSort::Graph,
            Some("assistant_id") => AssistantSort::Id,
            Some(other) => {
                return Err(ApiError::invalid(format!("Cannot sort by `{other}`")));
            }
        };
        Ok(AssistantQuery {
            tenant: caller.tenant.clone(),
            graph: self.graph_id.clone(),
            name: self.name.clone(),
            metadata: caller.own_only(self.metadata.clone())?,
            sort,
            is_descending: self.sort_order.as_deref() != Some("asc"),
            page: page(self.limit, self.offset)?,
        })
    }
}

async fn search(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<SearchBody>,
) -> ApiResult<Response> {
    let query = body.query(&caller)?;
    assistant::create_defaults(&app, &caller).await?;
    let total = app.registry().count_assistants(&query).await?;
    let found = app.registry().assistants(&query).await?;
    let select = body.select.unwrap_or_default();
    let rows = found.iter().map(|found| {
        let mut row = wire::assistant(found);
        wire::select(&mut row, &select);
        row
    });
    Ok(paged(rows.collect(), query.page, total))
}

async fn count(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<SearchBody>,
) -> ApiResult<JsonBody<u64>> {
    let query = body.query(&caller)?;
    assistant::create_defaults(&app, &caller).await?;
    Ok(JsonBody(app.registry().count_assistants(&query).await?))
}

async fn read(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<JsonBody<Json>> {
    let found = assistant::get(&app, &caller, &name).await?;
    Ok(JsonBody(wire::assistant(&found)))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChangeBody {
    graph_id: Option<String>,
    config: Option<Map<String, Json>>,
    context: Option<Map<String, Json>>,
    metadata: Option<Map<String, Json>>,
    name: Option<String>,
    description: Option<String>,
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Payload(body): Payload<ChangeBody>,
) -> ApiResult<JsonBody<Json>> {
    let found = assistant::get_own(&app, &caller, &name).await?;
    if let Some(graph) = &body.graph_id {
        check_graph(&app, graph)?;
    }
    let configured = match (body.config, body.context) {
        (None, None) => None,
        (config, context) => {
            // Each is the mirror of the other, so what is not named is not kept there either.
            let kept = || {
                let mut kept = found.config.as_object().cloned().unwrap_or_default();
                kept.remove("configurable");
                kept
            };
            let mut config = Json::Object(config.unwrap_or_else(kept));
            let mut context = Json::Object(context.unwrap_or_default());
            wire::mirror(&mut config, &mut context);
            Some((config, context))
        }
    };
    let (config, context) = configured.unzip();
    let change = AssistantChange {
        graph: body.graph_id,
        name: body.name,
        description: body.description,
        config,
        context,
        metadata: body.metadata.map(|mut metadata| {
            caller.mark_own(&mut metadata);
            Json::Object(metadata)
        }),
    };
    let now = app.runtime.now();
    let changed = app
        .registry()
        .change_assistant(&caller.tenant, found.id, &change, now)
        .await?;
    let changed = changed.ok_or_else(|| assistant::no_assistant(&name))?;
    Ok(JsonBody(wire::assistant(&changed)))
}

async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    query: QueryFields,
) -> ApiResult<StatusCode> {
    let found = assistant::get_own(&app, &caller, &name).await?;
    if query.flag("delete_threads") {
        caller.require(Permission::Edit)?;
        delete_threads(&app, &caller, found.id).await?;
    }
    cron::delete_of_assistant(&app, &caller, found.id).await?;
    app.registry()
        .delete_assistant(&caller.tenant, found.id)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn delete_threads(app: &Shared, caller: &Caller, id: AssistantId) -> ApiResult<()> {
    let id = Json::from(wire::uuid(id.to_bytes()));
    let of_assistant = Map::from_iter([("assistant_id".to_owned(), id)]);
    let query = ThreadQuery {
        tenant: caller.tenant.clone(),
        metadata_contains: caller.own_only(Some(of_assistant))?,
        page: Page {
            limit: 100,
            offset: 0,
        },
        ..ThreadQuery::default()
    };
    loop {
        let rows = app.runtime.threads(&query).await?;
        for row in &rows {
            let active = thread::active_runs(app, &row.thread).await?;
            start::cancel_runs(app, &active).await?;
            background::delete_thread(app, &row.thread).await?;
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}

async fn draw(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let graph = graph_named(&app, &caller, &name).await?;
    let depth = match query.text("xray") {
        Some("true" | "True") => u32::MAX,
        Some(text) => text.parse().unwrap_or(0),
        None => 0,
    };
    Ok(JsonBody(drawing::show(&graph.drawing(), depth)))
}

async fn graph_named(app: &Shared, caller: &Caller, name: &str) -> ApiResult<Arc<Definition>> {
    let found = assistant::get(app, caller, name).await?;
    assistant::graph_of(app, &found)
}

async fn schemas(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<JsonBody<Json>> {
    let graph = graph_named(&app, &caller, &name).await?;
    let mut shown = schemas_of(&graph);
    shown["graph_id"] = graph.name().into();
    Ok(JsonBody(shown))
}

fn schemas_of(graph: &Definition) -> Json {
    let state = with_message_channels(graph, graph.state_schema());
    json!({
        "input_schema": with_message_channels(graph, graph.input_schema()),
        "output_schema": state,
        "state_schema": state,
        // Settings in `config.configurable` and in `context` are one.
        "config_schema": graph.context_schema().cloned().unwrap_or_else(|| json!({})),
        "context_schema": graph.context_schema(),
    })
}

/// Marks the channels of messages in a schema, so that Studio shows them as a conversation.
fn with_message_channels(graph: &Definition, mut schema: Json) -> Json {
    for channel in graph.channels() {
        if channel.kind == ChannelKind::Messages
            && let Some(property) = schema.pointer_mut(&format!("/properties/{}", channel.name))
            && let Some(property) = property.as_object_mut()
        {
            property.insert("langgraph_type".to_owned(), "messages".into());
        }
    }
    schema
}

async fn subgraphs(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let graph = graph_named(&app, &caller, &name).await?;
    let mut found = Map::new();
    let is_deep = query.flag("recurse");
    collect_subgraphs(
        &graph,
        &graph.drawing(),
        &mut Vec::new(),
        is_deep,
        &mut found,
    );
    Ok(JsonBody(Json::Object(found)))
}

async fn subgraph(
    State(app): State<App>,
    caller: Caller,
    Path((name, namespace)): Path<(String, String)>,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let graph = graph_named(&app, &caller, &name).await?;
    let mut found = Map::new();
    collect_subgraphs(&graph, &graph.drawing(), &mut Vec::new(), true, &mut found);
    let below = format!("{namespace}|");
    let is_deep = query.flag("recurse");
    found.retain(|path, _| *path == namespace || (is_deep && path.starts_with(&below)));
    Ok(JsonBody(Json::Object(found)))
}

/// Adds the schemas of the subgraphs of a graph, by their paths.
fn collect_subgraphs(
    graph: &Arc<Definition>,
    drawing: &Drawing,
    path: &mut Vec<String>,
    is_deep: bool,
    found: &mut Map<String, Json>,
) {
    for node in &drawing.nodes {
        let Some(inner) = &node.subgraph else {
            continue;
        };
        path.push(node.id.clone());
        if let Some(child) = frame_of(path).and_then(|frame| graph.at(&frame)) {
            found.insert(path.join("|"), schemas_of(&child));
        }
        if is_deep {
            collect_subgraphs(graph, inner, path, is_deep, found);
        }
        path.pop();
    }
}

/// Returns the path of the subgraph in these nodes, without the tasks that enter it.
fn frame_of(nodes: &[String]) -> Option<FramePath> {
    let segments = nodes
        .iter()
        .map(|node| json!({ "node": node, "task": null }));
    serde_json::from_value(segments.collect()).ok()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VersionsBody {
    metadata: Option<Map<String, Json>>,
    limit: Option<u32>,
    offset: Option<u32>,
}

async fn versions(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Payload(body): Payload<VersionsBody>,
) -> ApiResult<Response> {
    let found = assistant::get(&app, &caller, &name).await?;
    let page = page(body.limit, body.offset)?;
    let versions = app
        .registry()
        .assistant_versions(&caller.tenant, found.id, page)
        .await?;
    let wanted = Json::Object(body.metadata.unwrap_or_default());
    let versions = versions.iter();
    let versions = versions.filter(|version| json_contains(&version.metadata, &wanted));
    Ok(JsonBody(versions.map(wire::assistant_version).collect::<Vec<_>>()).into_response())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LatestBody {
    version: Option<u32>,
}

async fn set_latest(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    query: QueryFields,
    Payload(body): Payload<LatestBody>,
) -> ApiResult<JsonBody<Json>> {
    // LangGraph's document has the version in the query string, and its clients send it in the body.
    let version = body.version.or(query.number("version")?);
    let version = version.ok_or_else(|| ApiError::invalid("`version` is missing"))?;
    let found = assistant::get_own(&app, &caller, &name).await?;
    let now = app.runtime.now();
    let used = app
        .registry()
        .use_assistant_version(&caller.tenant, found.id, version, now)
        .await?;
    let used = used.ok_or_else(|| {
        ApiError::not_found(format!("Assistant with ID {name} has no version {version}"))
    })?;
    Ok(JsonBody(wire::assistant(&used)))
}
