//! States of threads: read them at any checkpoint, list them, change them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::{Page, ThreadRow};
use superstep::driver::{ThreadEdit, ThreadRequest};
use superstep::graph::Definition;
use superstep::registry::{RunQuery, RunStatus, json_contains};
use superstep::run::{Edit, EditNode, RunOptions};
use superstep::{END, FramePath, NodeName, RunId, START, Seq, ThreadId, Value};

use crate::caller::{Payload, QueryFields, ThreadPath};
use crate::error::{ApiError, ApiResult};
use crate::history::{self, Checkpoint};
use crate::start::{CheckpointBody, no_checkpoint, no_payload, pairs_as_object, read_goto};
use crate::wire::{self, BEFORE_INPUT, CheckpointId, StateOptions};
use crate::{App, Shared, thread};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/threads/{thread_id}/state", get(read).post(update))
        .route(
            "/threads/{thread_id}/state/checkpoint",
            post(read_checkpoint),
        )
        .route("/threads/{thread_id}/state/{checkpoint_id}", get(read_at))
        .route(
            "/threads/{thread_id}/history",
            get(list_by_query).post(list),
        )
}

async fn read(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let wanted = WantedState {
        with_subgraphs: query.flag("subgraphs"),
        select: query.list("select"),
        ..WantedState::default()
    };
    Ok(JsonBody(wanted.read(&app, &id).await?))
}

async fn read_at(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    Path((_, checkpoint)): Path<(String, String)>,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let wanted = WantedState {
        checkpoint: Some(checkpoint),
        with_subgraphs: query.flag("subgraphs"),
        select: query.list("select"),
        ..WantedState::default()
    };
    Ok(JsonBody(wanted.read(&app, &id).await?))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReadBody {
    checkpoint: CheckpointBody,
    subgraphs: Option<bool>,
}

async fn read_checkpoint(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    Payload(body): Payload<ReadBody>,
) -> ApiResult<JsonBody<Json>> {
    let wanted = WantedState {
        checkpoint: body.checkpoint.checkpoint_id,
        namespace: body.checkpoint.checkpoint_ns.unwrap_or_default(),
        with_subgraphs: body.subgraphs.unwrap_or(false),
        select: Vec::new(),
    };
    Ok(JsonBody(wanted.read(&app, &id).await?))
}

/// Which state a client wants to read.
#[derive(Debug, Default)]
struct WantedState {
    /// Id of the checkpoint; `None` for the newest.
    checkpoint: Option<String>,
    /// Path of a subgraph; empty for the root.
    namespace: String,
    with_subgraphs: bool,
    /// Only these fields; all if empty.
    select: Vec<String>,
}

impl WantedState {
    async fn read(&self, app: &Shared, id: &ThreadId) -> ApiResult<Json> {
        let row = thread::get(app, id).await?;
        let Some(graph) = thread::graph_of(app, &row) else {
            return Ok(wire::empty_state());
        };
        let mut shown = match self.namespace.is_empty() {
            true => {
                let Some((found, is_newest)) = self.find(app, graph, id).await? else {
                    return Ok(wire::empty_state());
                };
                let options = StateOptions {
                    is_newest,
                    with_subgraphs: self.with_subgraphs,
                    ..found.options()
                };
                wire::thread_state(app, graph, id, &found.state, options).await?
            }
            false => self.read_subgraph(app, graph, id).await?,
        };
        wire::select(&mut shown, &self.select);
        Ok(shown)
    }

    async fn read_subgraph(
        &self,
        app: &Shared,
        graph: &Arc<Definition>,
        id: &ThreadId,
    ) -> ApiResult<Json> {
        let namespace = self.namespace.as_str();
        let frame = wire::read_namespace(namespace).filter(|frame| graph.at(frame).is_some());
        let frame = frame.ok_or_else(|| no_subgraph(namespace))?;
        let wanted = match &self.checkpoint {
            Some(text) => {
                let wanted = CheckpointId::parse_in(id, namespace, text);
                Some(wanted.ok_or_else(|| no_checkpoint(text))?)
            }
            None => None,
        };
        let with_subgraphs = self.with_subgraphs;
        let found = wire::subgraph_state(app, graph, id, &frame, wanted, with_subgraphs).await?;
        found.ok_or_else(|| match &self.checkpoint {
            Some(text) => no_checkpoint(text),
            None => no_subgraph(namespace),
        })
    }

    /// Returns the wanted checkpoint, and whether it is the newest; `None` if nothing has happened.
    async fn find(
        &self,
        app: &Shared,
        graph: &Arc<Definition>,
        id: &ThreadId,
    ) -> ApiResult<Option<(Checkpoint, bool)>> {
        let newest = history::newest(app, graph, id).await?;
        let Some(text) = &self.checkpoint else {
            return Ok(newest.map(|newest| (newest, true)));
        };
        let wanted = CheckpointId::parse(id, text).ok_or_else(|| no_checkpoint(text))?;
        if let Some(newest) = newest.filter(|newest| newest.id == wanted) {
            return Ok(Some((newest, true)));
        }
        let found = history::at(app, graph, id, wanted).await?;
        let found = found.ok_or_else(|| no_checkpoint(text))?;
        Ok(Some((found, false)))
    }
}

fn no_subgraph(namespace: &str) -> ApiError {
    ApiError::not_found(format!("The thread is not inside of subgraph {namespace}"))
}

/// A change of a state.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UpdateBody {
    values: Option<Json>,
    /// `{"update", "goto"}`, in updates of new threads.
    command: Option<Json>,
    pub(super) as_node: Option<String>,
    checkpoint: Option<CheckpointBody>,
    checkpoint_id: Option<String>,
}

impl UpdateBody {
    /// Returns the id of the checkpoint to continue from, wherever the body has it.
    fn checkpoint_id(&self) -> Option<&str> {
        let named = self.checkpoint.as_ref();
        let named = named.and_then(|named| named.checkpoint_id.as_deref());
        named.or(self.checkpoint_id.as_deref())
    }

    /// Returns the path of the subgraph to change; `None` for the root graph.
    fn namespace(&self) -> Option<&str> {
        let named = self.checkpoint.as_ref()?;
        let namespace = named.checkpoint_ns.as_deref();
        namespace.filter(|namespace| !namespace.is_empty())
    }
}

async fn update(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    Payload(body): Payload<UpdateBody>,
) -> ApiResult<JsonBody<Json>> {
    let row = thread::get(&app, &id).await?;
    let Some(graph) = thread::graph_of(&app, &row) else {
        return Err(no_graph(&row));
    };
    // A run that has not begun would begin with another state than it was submitted on. One that has is refused by the driver.
    let active = thread::active_runs(&app, &id).await?;
    if active.iter().any(|run| run.status == RunStatus::Pending) {
        return Err(ApiError::busy());
    }
    let at = match body.namespace() {
        Some(namespace) => base_in_subgraph(&app, graph, &id, &body, namespace).await?,
        None => base_of(&app, graph, &id, &body).await?,
    };
    let frame = frame_named(&app, graph, &id, &body, at).await?;
    let inner = graph
        .at(&frame)
        .ok_or_else(|| no_subgraph(&wire::namespace(&frame)))?;
    let request = match (body.as_node.as_deref(), at) {
        (Some("__copy__"), at) => ThreadRequest::Fork {
            at: at.unwrap_or(row.head.seq),
        },
        _ => ThreadRequest::Edit(ThreadEdit {
            at,
            frame: frame.clone(),
            updates: edits_of(&inner, &body, row.head.seq > Seq(0))?,
        }),
    };
    let options = RunOptions::default();
    let driver = app.runtime.driver();
    // Twice: those who watch the thread see the change, also if making it took long and the reader rests again.
    app.feeds.began_unwatched(&app, graph, &id);
    let end = driver.execute(&id, graph, request, &options).await?;
    app.feeds.began_unwatched(&app, graph, &id);
    let seq = end.map_or(row.head.seq, |end| end.seq);
    let checkpoint = match frame.is_root() {
        true => wire::checkpoint(&id, &frame, CheckpointId::after(seq), &[]),
        false => {
            let newest = history::subgraph_at(&app.runtime, graph, &id, &frame, None).await?;
            let written = newest.map_or(CheckpointId::after(seq), |newest| newest.checkpoint.id);
            let outer = history::outer_of(&app, graph, &id, &frame, written).await?;
            wire::checkpoint(&id, &frame, written, &outer)
        }
    };
    Ok(JsonBody(json!({
        "checkpoint": checkpoint,
        "configurable": checkpoint,
        "checkpoint_id": checkpoint["checkpoint_id"],
    })))
}

fn no_graph(row: &ThreadRow) -> ApiError {
    ApiError::bad_request(format!(
        "Thread {} has no graph that this server knows; run it once, or create it with `graph_id` in its metadata",
        row.thread.name()
    ))
}

/// Returns the entry that an update continues from; `None` for the newest.
async fn base_of(
    app: &Shared,
    graph: &Arc<Definition>,
    id: &ThreadId,
    body: &UpdateBody,
) -> ApiResult<Option<Seq>> {
    let Some(text) = body.checkpoint_id() else {
        return Ok(None);
    };
    let wanted = CheckpointId::parse(id, text).ok_or_else(|| no_checkpoint(text))?;
    let newest = history::newest(app, graph, id).await?;
    if newest.is_some_and(|newest| newest.id == wanted) {
        return Ok(None);
    }
    let found = history::at(app, graph, id, wanted).await?;
    let found = found.filter(|found| found.id == wanted);
    let found = found.ok_or_else(|| no_checkpoint(text))?;
    Ok(Some(match wanted.place {
        BEFORE_INPUT => found.state.parent,
        _ => wanted.seq,
    }))
}

/// Returns the entry that an update of a subgraph continues from; `None` for the newest.
async fn base_in_subgraph(
    app: &Shared,
    graph: &Arc<Definition>,
    id: &ThreadId,
    body: &UpdateBody,
    namespace: &str,
) -> ApiResult<Option<Seq>> {
    let Some(text) = body.checkpoint_id() else {
        return Ok(None);
    };
    let wanted = CheckpointId::parse_in(id, namespace, text);
    let wanted = wanted.ok_or_else(|| no_checkpoint(text))?;
    let frame = wire::read_namespace(namespace).filter(|frame| graph.at(frame).is_some());
    let frame = frame.ok_or_else(|| no_subgraph(namespace))?;
    let runtime = &app.runtime;
    let newest = history::subgraph_at(runtime, graph, id, &frame, None).await?;
    if newest.is_some_and(|newest| newest.checkpoint.id == wanted) {
        return Ok(None);
    }
    let above = CheckpointId {
        seq: wanted.seq.next(),
        place: BEFORE_INPUT,
    };
    let found = history::of_subgraph(runtime, graph, id, &frame, Some(above), 1).await?;
    let last = found.first().map(|found| found.checkpoint.id);
    if last.is_none_or(|last| last.seq != wanted.seq) {
        return Err(no_checkpoint(text));
    }
    // A thread continues from an entry, and the state of the subgraph there is the last one of the entry.
    match last == Some(wanted) {
        true => Ok(Some(wanted.seq)),
        false => Err(ApiError::invalid(
            "The state of the subgraph cannot be changed at this checkpoint, because it was stored together with a later one",
        )),
    }
}

/// Returns the path of the graph that an update is for.
async fn frame_named(
    app: &Shared,
    graph: &Arc<Definition>,
    id: &ThreadId,
    body: &UpdateBody,
    at: Option<Seq>,
) -> ApiResult<FramePath> {
    let Some(namespace) = body.namespace() else {
        return Ok(FramePath::root());
    };
    let inside = app.runtime.subgraphs_of(graph, id, at).await?;
    let mut frames = inside.into_iter().map(|inside| inside.frame);
    let found = frames.find(|frame| wire::namespace(frame) == namespace);
    found.ok_or_else(|| no_subgraph(namespace))
}

/// Reads the changes of an update: one, or a list that is applied in order.
fn edits_of(graph: &Arc<Definition>, body: &UpdateBody, has_run: bool) -> ApiResult<Vec<Edit>> {
    let is_list = |values: &&Vec<Json>| values.iter().all(Json::is_object) && !values.is_empty();
    let list = body.values.as_ref().and_then(Json::as_array);
    let Some(list) = list.filter(is_list) else {
        return Ok(vec![edit_of(graph, body, has_run)?]);
    };
    let edits = list.iter().enumerate().map(|(index, values)| {
        let one = UpdateBody {
            values: Some(values.clone()),
            as_node: body.as_node.clone(),
            ..UpdateBody::default()
        };
        edit_of(graph, &one, has_run || index > 0)
    });
    edits.collect()
}

/// Reads one change. Without a node, it acts as the node that ran last, or as the input of a thread on which nothing has happened.
pub(super) fn edit_of(
    graph: &Arc<Definition>,
    body: &UpdateBody,
    has_run: bool,
) -> ApiResult<Edit> {
    let command = body.command.as_ref().filter(|command| command.is_object());
    let written = command.and_then(|command| command.get("update"));
    let written = written.or(body.values.as_ref()).unwrap_or(&Json::Null);
    let goto = command.and_then(|command| command.get("goto"));
    let goto = goto.filter(|goto| !goto.is_null()).map(read_goto);
    let goto = goto.transpose()?.unwrap_or_default();
    if goto.iter().any(|to| to.payload.is_some()) {
        return Err(no_payload());
    }
    let node = match body.as_node.as_deref() {
        Some(END) => EditNode::End,
        Some(START | INPUT) => EditNode::Input,
        Some(name) => EditNode::Node(NodeName::new(name)?),
        None if has_run => EditNode::Last,
        None => EditNode::Input,
    };
    let update = match node {
        // Whatever was planned is dropped; nothing can be written with it.
        EditNode::End => Value::from_json_bytes(b"{}"),
        _ => wire::read_input(graph, &pairs_as_object(written))?.update,
    };
    Ok(Edit { node, update, goto })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HistoryBody {
    limit: Option<u32>,
    before: Option<Json>,
    metadata: Option<Map<String, Json>>,
    checkpoint: Option<CheckpointBody>,
    select: Option<Vec<String>>,
}

async fn list(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    Payload(body): Payload<HistoryBody>,
) -> ApiResult<JsonBody<Vec<Json>>> {
    Ok(JsonBody(history_of(&app, &id, &body).await?))
}

async fn list_by_query(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    query: QueryFields,
) -> ApiResult<JsonBody<Vec<Json>>> {
    let body = HistoryBody {
        limit: query.number("limit")?,
        before: query.text("before").map(Json::from),
        select: Some(query.list("select")),
        ..HistoryBody::default()
    };
    Ok(JsonBody(history_of(&app, &id, &body).await?))
}

async fn history_of(app: &Shared, id: &ThreadId, body: &HistoryBody) -> ApiResult<Vec<Json>> {
    let row = thread::get(app, id).await?;
    let Some(graph) = thread::graph_of(app, &row) else {
        return Ok(Vec::new());
    };
    let named = body.checkpoint.as_ref();
    let namespace = named.and_then(|named| named.checkpoint_ns.as_deref());
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    let limit = body.limit.unwrap_or(1).clamp(1, HISTORY_MAX) as usize;
    let before = match body.before.as_ref().filter(|before| !before.is_null()) {
        Some(before) => {
            let found = history::named_checkpoint(id, namespace.unwrap_or_default(), before);
            Some(found.ok_or_else(|| no_checkpoint(&before.to_string()))?)
        }
        None => None,
    };
    let select = body.select.clone().unwrap_or_default();
    if let Some(namespace) = namespace {
        let frame = wire::read_namespace(namespace).filter(|frame| graph.at(frame).is_some());
        let frame = frame.ok_or_else(|| no_subgraph(namespace))?;
        let runtime = &app.runtime;
        let found = history::of_subgraph(runtime, graph, id, &frame, before, limit).await?;
        let mut shown = wire::past_subgraph_states(app, graph, id, &frame, &found).await?;
        for state in &mut shown {
            wire::select(state, &select);
        }
        return Ok(shown);
    }
    let wanted = body.metadata.clone().filter(|wanted| !wanted.is_empty());
    let wanted = wanted.map(Json::Object);
    let runs = match &wanted {
        Some(_) => metadata_of_runs(app, id).await?,
        None => BTreeMap::new(),
    };
    let keep = |checkpoint: &Checkpoint| {
        let Some(wanted) = &wanted else {
            return true;
        };
        let run = &checkpoint.state.run.run;
        let mut metadata = runs.get(run).cloned().unwrap_or_else(|| json!({}));
        metadata["source"] = checkpoint.source.into();
        metadata["step"] = checkpoint.step.into();
        metadata["run_id"] = wire::uuid(run.to_bytes()).into();
        json_contains(&metadata, wanted)
    };
    let page = history::read(app, graph, id, before, limit, keep).await?;
    let newest = match before.is_none() && wanted.is_none() {
        true => page.newest(),
        false => history::newest(app, graph, id).await?,
    };
    let newest_id = newest.as_ref().map(|newest| newest.id);
    let states: Vec<_> = page
        .checkpoints
        .iter()
        .map(|found| {
            let is_newest = newest_id == Some(found.id);
            let options = StateOptions {
                is_newest,
                ..found.options()
            };
            // The newest says why the run stopped, which is in a later entry.
            match newest.as_ref().filter(|_| is_newest) {
                Some(newest) => (&newest.state, options),
                None => (&found.state, options),
            }
        })
        .collect();
    let mut shown = wire::past_states(app, graph, id, &states).await?;
    for state in &mut shown {
        wire::select(state, &select);
    }
    Ok(shown)
}

/// Returns the metadata of a thread's runs: clients look for the checkpoints of a run by it.
async fn metadata_of_runs(app: &Shared, id: &ThreadId) -> ApiResult<BTreeMap<RunId, Json>> {
    let query = RunQuery {
        tenant: id.tenant().to_owned(),
        thread: Some(id.clone()),
        page: Page {
            limit: RUNS_MAX,
            offset: 0,
        },
        ..RunQuery::default()
    };
    let rows = app.registry().runs(&query).await?;
    let objects = rows.into_iter().filter(|row| row.metadata.is_object());
    Ok(objects.map(|row| (row.id, row.metadata)).collect())
}

/// The name of the input, as clients write it.
pub(super) const INPUT: &str = "__input__";

/// Number of runs whose metadata is looked at.
const RUNS_MAX: u32 = 10_000;

/// Longest page of a history.
const HISTORY_MAX: u32 = 1_000;
