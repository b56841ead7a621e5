//! Threads: create, search, change, copy, delete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::format::EntryKind;
use superstep::checkpoint::{
    Head, NewThread, Page, Status, ThreadAnnotation, ThreadLifetime, ThreadQuery, ThreadRow,
    ThreadSort,
};
use superstep::driver::{ThreadEdit, ThreadRequest};
use superstep::graph::Definition;
use superstep::registry::{RunQuery, RunRow};
use superstep::run::{Edit, OpenInterrupt, RunOptions, ThreadState};
use superstep::{FramePath, START, Seq, ThreadId};

use crate::caller::{Caller, Payload, QueryFields, ThreadPath};
use crate::error::{ApiError, ApiResult};
use crate::idempotency::{CreationKey, Keyed, new_id};
use crate::permission::Permission;
use crate::retention::TtlStrategy;
use crate::routes::paging::{page, paged};
use crate::routes::state::{INPUT, UpdateBody, edit_of};
use crate::wire::ThreadParts;
use crate::{App, Shared, background, start, thread, wire};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/threads", post(create))
        .route("/threads/search", post(search))
        .route("/threads/count", post(count))
        .route("/threads/prune", post(prune))
        .route(
            "/threads/{thread_id}",
            get(read).patch(change).delete(delete),
        )
        .route("/threads/{thread_id}/copy", post(copy))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CreateBody {
    thread_id: Option<String>,
    metadata: Option<Map<String, Json>>,
    if_exists: Option<String>,
    ttl: Option<TtlBody>,
    supersteps: Option<Vec<SuperstepBody>>,
    graph_id: Option<String>,
}

/// How long a thread is kept: minutes, with or without what happens then.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum TtlBody {
    Minutes(f64),
    Full {
        ttl: f64,
        #[serde(default)]
        strategy: TtlStrategy,
    },
}

impl TtlBody {
    fn lifetime(&self) -> ApiResult<ThreadLifetime> {
        let (minutes, strategy) = match self {
            TtlBody::Minutes(minutes) => (*minutes, TtlStrategy::Delete),
            TtlBody::Full { ttl, strategy } => (*ttl, *strategy),
        };
        let lifetime = strategy.lifetime(minutes);
        lifetime.ok_or_else(|| ApiError::invalid("`ttl` is not a positive number of minutes"))
    }
}

/// Updates that a new thread begins with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SuperstepBody {
    updates: Vec<UpdateBody>,
}

impl SuperstepBody {
    /// Whether its only update is in this name.
    fn is_by(&self, name: &str) -> bool {
        matches!(self.updates.as_slice(), [update] if update.as_node.as_deref() == Some(name))
    }
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    Keyed { key, body }: Keyed<CreateBody>,
) -> ApiResult<JsonBody<Json>> {
    let id = match &body.thread_id {
        Some(text) => caller.thread(text)?,
        None => caller.thread(&new_id(key.as_ref(), "thread").to_string())?,
    };
    let mut metadata = body.metadata.unwrap_or_default();
    if let Some(graph) = body.graph_id {
        metadata.insert("graph_id".to_owned(), graph.into());
    }
    caller.mark_own(&mut metadata);
    let begins_with = match &body.supersteps {
        Some(supersteps) => first_edits(&app, &metadata, supersteps)?,
        None => None,
    };
    if begins_with.is_some() {
        caller.require(Permission::Edit)?;
    }
    let new = NewThread {
        // Decided by the first run: the metadata may name an assistant that does not exist yet.
        graph: String::new(),
        metadata: metadata.into_iter().collect(),
        lifetime: match &body.ttl {
            Some(ttl) => Some(app.retention.chosen(id.tenant(), ttl.lifetime()?)),
            None => app.retention.lifetime(id.tenant(), ""),
        },
        at: app.runtime.now(),
    };
    let is_new = app.runtime.checkpointer().create(&id, &new).await?;
    if !is_new
        && body.if_exists.as_deref() != Some("do_nothing")
        && !was_created_by(&app, &id, key.as_ref()).await?
    {
        return Err(exists(&id));
    }
    if is_new && begins_with.is_none() {
        // Nothing has happened on it, so nothing has to be read.
        let (row, busy) = (new_row(&id, new), BTreeSet::new());
        let options = ShowOptions {
            busy: Some(&busy),
            ..ShowOptions::default()
        };
        return Ok(JsonBody(show(&app, &row, &options).await?));
    }
    if let Some((graph, supersteps)) = begins_with.filter(|_| is_new) {
        // Each is a checkpoint of its own.
        for updates in supersteps {
            let request = ThreadRequest::Edit(ThreadEdit {
                at: None,
                frame: FramePath::root(),
                updates,
            });
            let options = RunOptions::default();
            let edited = app.runtime.driver().execute(&id, &graph, request, &options);
            if let Err(error) = edited.await {
                // A thread without what it was to begin with is not what the caller asked for.
                background::delete_thread(&app, &id).await?;
                return Err(error.into());
            }
        }
    }
    let row = thread::get(&app, &id).await?;
    if !caller.owns_thread(&row) {
        return Err(exists(&id));
    }
    Ok(JsonBody(show(&app, &row, &ShowOptions::default()).await?))
}

fn exists(id: &ThreadId) -> ApiError {
    ApiError::conflict(format!("Thread with ID {} already exists", id.name()))
}

/// Whether the thread was created by an earlier request with this key.
async fn was_created_by(app: &Shared, id: &ThreadId, key: Option<&CreationKey>) -> ApiResult<bool> {
    let Some(key) = key else {
        return Ok(false);
    };
    let row = thread::find(app, id).await?;
    Ok(row.is_some_and(|row| key.created(row.created)))
}

/// Returns the row of a thread that was just created, apart from its epoch, which is not shown.
fn new_row(id: &ThreadId, new: NewThread) -> ThreadRow {
    ThreadRow {
        thread: id.clone(),
        head: Head::default(),
        graph: new.graph,
        metadata: new.metadata,
        values: None,
        created: new.at,
        updated: new.at,
        lifetime: new.lifetime,
    }
}

/// The graph of a new thread, and the updates of each superstep that it begins with.
type FirstEdits = Option<(Arc<Definition>, Vec<Vec<Edit>>)>;

/// Reads the updates that a new thread begins with. The first one acts as the input, if it names no node.
fn first_edits(
    app: &Shared,
    metadata: &Map<String, Json>,
    supersteps: &[SuperstepBody],
) -> ApiResult<FirstEdits> {
    if supersteps.iter().all(|step| step.updates.is_empty()) {
        return Ok(None);
    }
    let graph = metadata.get("graph_id").and_then(Json::as_str);
    let graph = graph.and_then(|graph| app.graphs.get(graph));
    let graph = graph.ok_or_else(|| {
        ApiError::bad_request("Updates of a new thread need `graph_id` in its metadata")
    })?;
    let mut edits = Vec::new();
    let mut has_run = false;
    let mut steps = supersteps
        .iter()
        .filter(|step| !step.updates.is_empty())
        .peekable();
    while let Some(step) = steps.next() {
        // Clients write an input and its application as two checkpoints; here they are one entry, which is shown as two.
        let is_applied_next = steps.peek().is_some_and(|next| next.is_by(START));
        if step.is_by(INPUT) && is_applied_next {
            continue;
        }
        let mut of_step = Vec::with_capacity(step.updates.len());
        for update in &step.updates {
            of_step.push(edit_of(graph, update, has_run)?);
            has_run = true;
        }
        edits.push(of_step);
    }
    Ok(Some((graph.clone(), edits)))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SearchBody {
    metadata: Option<Map<String, Json>>,
    values: Option<Map<String, Json>>,
    status: Option<String>,
    ids: Option<Vec<String>>,
    limit: Option<u32>,
    offset: Option<u32>,
    sort_by: Option<String>,
    sort_order: Option<String>,
    select: Option<Vec<String>>,
    extract: Option<BTreeMap<String, String>>,
}

impl SearchBody {
    async fn query(
        &self,
        app: &Shared,
        caller: &Caller,
        busy: &BTreeSet<ThreadId>,
    ) -> ApiResult<ThreadQuery> {
        let sort = match self.sort_by.as_deref() {
            None | Some("updated_at" | "state_updated_at") => ThreadSort::Updated,
            Some("created_at") => ThreadSort::Created,
            Some("thread_id") => ThreadSort::Id,
            Some("status") => ThreadSort::Status,
            Some(other) => {
                return Err(ApiError::invalid(format!("Cannot sort by `{other}`")));
            }
        };
        let ids = match &self.ids {
            Some(ids) => {
                check_count("ids", ids)?;
                let ids = ids.iter().map(|id| caller.thread(id));
                Some(ids.collect::<ApiResult<Vec<_>>>()?)
            }
            None => None,
        };
        let contains = |fields: &Option<Map<String, Json>>| {
            let fields = fields.clone().filter(|fields| !fields.is_empty());
            fields.map(Json::Object)
        };
        let mut query = ThreadQuery {
            tenant: caller.tenant.clone(),
            ids,
            metadata_contains: caller.own_only(self.metadata.clone())?,
            values_contains: contains(&self.values),
            sort,
            is_ascending: self.sort_order.as_deref() == Some("asc"),
            page: page(self.limit, self.offset)?,
            ..ThreadQuery::default()
        };
        match self.status.as_deref() {
            None => {}
            Some("busy") => only_busy(app, caller, busy, &mut query).await?,
            Some(name) => {
                let statuses = wire::read_thread_status(name);
                query.statuses = statuses.ok_or_else(|| {
                    ApiError::invalid(format!("`{name}` is not a status of a thread"))
                })?;
                query.except = busy.iter().cloned().collect();
            }
        }
        Ok(query)
    }
}

/// Limits a query to busy threads: those with active runs, and those that something else runs.
async fn only_busy(
    app: &Shared,
    caller: &Caller,
    busy: &BTreeSet<ThreadId>,
    query: &mut ThreadQuery,
) -> ApiResult<()> {
    let mut running = ThreadQuery {
        tenant: caller.tenant.clone(),
        statuses: vec![Status::Running],
        // Those that the caller may not see must not fill the pages.
        metadata_contains: query.metadata_contains.clone(),
        page: Page {
            limit: RUNNING_AT_ONCE,
            offset: 0,
        },
        ..ThreadQuery::default()
    };
    let mut all = busy.clone();
    while running.page.offset < thread::ACTIVE_MAX {
        let found = app.runtime.threads(&running).await?;
        let is_last = found.len() < RUNNING_AT_ONCE as usize;
        all.extend(found.into_iter().map(|row| row.thread));
        if is_last {
            break;
        }
        running.page.offset += RUNNING_AT_ONCE;
    }
    let wanted = query.ids.take();
    let is_wanted =
        |thread: &ThreadId| wanted.as_ref().is_none_or(|wanted| wanted.contains(thread));
    all.retain(is_wanted);
    query.ids = Some(all.into_iter().collect());
    Ok(())
}

async fn search(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<SearchBody>,
) -> ApiResult<Response> {
    let busy = thread::busy_threads(&app, &caller.tenant).await?;
    let mut query = body.query(&app, &caller, &busy).await?;
    let page = query.page;
    // One more, to see whether another page follows. To count all matches would take longer the more threads there are.
    query.page.limit += 1;
    let mut rows = app.runtime.threads(&query).await?;
    let total = u64::from(page.offset) + rows.len() as u64;
    rows.truncate(page.limit as usize);
    let select = body.select.clone().unwrap_or_default();
    let extract = body.extract.clone().unwrap_or_default();
    if extract.len() > EXTRACTS_MAX {
        return Err(ApiError::invalid(format!(
            "`extract` has more than {EXTRACTS_MAX} paths"
        )));
    }
    let options = ShowOptions {
        busy: Some(&busy),
        select: &select,
        extract: Some(&extract),
        interrupts: None,
    };
    let interrupts = match options.needs("interrupts") {
        true => open_interrupts(&app, &caller, &rows).await?,
        false => BTreeMap::new(),
    };
    let options = ShowOptions {
        interrupts: Some(&interrupts),
        ..options
    };
    let mut shown = Vec::with_capacity(rows.len());
    for row in &rows {
        shown.push(show(&app, row, &options).await?);
    }
    Ok(paged(shown, page, total))
}

/// Returns the open interrupts of those of the threads that wait for answers, all in one query.
async fn open_interrupts(
    app: &Shared,
    caller: &Caller,
    rows: &[ThreadRow],
) -> ApiResult<BTreeMap<ThreadId, Vec<OpenInterrupt>>> {
    let paused = rows.iter().filter(|row| row.head.status == Status::Paused);
    let paused: Vec<ThreadId> = paused.map(|row| row.thread.clone()).collect();
    match paused.is_empty() {
        true => Ok(BTreeMap::new()),
        false => wire::open_interrupts_of(app, &caller.tenant, paused).await,
    }
}

async fn count(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<SearchBody>,
) -> ApiResult<JsonBody<u64>> {
    let busy = thread::busy_threads(&app, &caller.tenant).await?;
    let query = body.query(&app, &caller, &busy).await?;
    let count = app.runtime.count_threads(&query).await?;
    Ok(JsonBody(count))
}

/// What of a thread is shown.
#[derive(Debug, Default)]
struct ShowOptions<'a> {
    /// Threads with active runs, if they were looked up.
    busy: Option<&'a BTreeSet<ThreadId>>,
    /// Only these fields; all if empty.
    select: &'a [String],
    /// Paths to show under names of the caller.
    extract: Option<&'a BTreeMap<String, String>>,
    /// The open interrupts of threads, if they were looked up.
    interrupts: Option<&'a BTreeMap<ThreadId, Vec<OpenInterrupt>>>,
}

impl ShowOptions<'_> {
    /// Whether the configuration of the last run is shown, which needs a look at the run. A list of threads has it only for those who
    /// ask for it by name.
    fn needs_config(&self) -> bool {
        self.busy.is_none() || self.select.iter().any(|name| name == "config")
    }

    /// Whether a field is shown, or needed for a path.
    fn needs(&self, field: &str) -> bool {
        let is_selected = self.select.is_empty() || self.select.iter().any(|name| name == field);
        let mut paths = self.extract.into_iter().flat_map(BTreeMap::values);
        is_selected || paths.any(|path| path.starts_with(field))
    }
}

/// Returns a thread as clients read it.
async fn show(app: &Shared, row: &ThreadRow, options: &ShowOptions<'_>) -> ApiResult<Json> {
    let has_runs = match options.busy {
        Some(busy) => busy.contains(&row.thread),
        None => !thread::active_runs(app, &row.thread).await?.is_empty(),
    };
    let status = match has_runs {
        true => "busy",
        false => wire::thread_status(row.head.status),
    };
    let interrupts = match row.head.status == Status::Paused && options.needs("interrupts") {
        true => {
            let open = match options.interrupts {
                Some(known) => known.get(&row.thread).cloned().unwrap_or_default(),
                None => wire::open_interrupts(app, &row.thread, None).await?,
            };
            wire::interrupts_by_task(open)
        }
        false => json!({}),
    };
    let stopped_badly = matches!(
        row.head.status,
        Status::Failed | Status::StepLimit | Status::Cancelled
    );
    let shows_error = stopped_badly && !has_runs && options.needs("error");
    let has_run = row.metadata.contains_key("assistant_id");
    let last = match shows_error || (has_run && options.needs_config()) {
        true => last_run(app, &row.thread).await?,
        false => None,
    };
    let error = last.as_ref().filter(|_| shows_error);
    let mut error = error.map_or(Json::Null, wire::run_error);
    let (mut interrupts, mut values) = (Some(interrupts), Json::Null);
    if options.needs("values") {
        match stored_values(app, row).await? {
            StoredValues::Values(found) => values = found,
            StoredValues::None => {}
            StoredValues::RolledBack => {
                // No run has ended on the thread, so nothing has asked.
                interrupts = None;
                if !has_runs {
                    error =
                        json!({ "error": "UserRollback", "message": "the run was rolled back" });
                }
            }
        }
    }
    let mut shown = wire::thread(ThreadParts {
        row,
        status,
        config: last.as_ref().map(wire::thread_config),
        values,
        error,
        interrupts,
    });
    let paths = options.extract.into_iter().flatten();
    let extracted: Map<String, Json> = paths
        .map(|(name, path)| (name.clone(), wire::extract(&shown, path)))
        .collect();
    wire::select(&mut shown, options.select);
    if !extracted.is_empty() {
        shown["extracted"] = Json::Object(extracted);
    }
    Ok(shown)
}

/// What is known of the state of a thread.
enum StoredValues {
    /// The state, as clients read it.
    Values(Json),
    /// Nothing has happened, or it is not known what may be shown.
    None,
    /// The first run was rolled back, so there is no state.
    RolledBack,
}

/// Returns the state of a thread. A state that is too large for the list is read from the log.
async fn stored_values(app: &Shared, row: &ThreadRow) -> ApiResult<StoredValues> {
    if row.head.seq == Seq(0) {
        return Ok(StoredValues::None);
    }
    match (thread::graph_of(app, row), &row.values) {
        (Some(graph), Some(values)) => Ok(StoredValues::Values(wire::values(graph, values))),
        (Some(graph), None) => {
            let state = app.runtime.state_of(graph, &row.thread, None).await?;
            let is_emptied = |state: &ThreadState| {
                state.kind == EntryKind::Fork && state.parent == Seq(0) && state.next.is_empty()
            };
            Ok(match state {
                None => StoredValues::None,
                Some(state) if is_emptied(&state) => StoredValues::RolledBack,
                Some(state) => StoredValues::Values(wire::values(graph, &state.values)),
            })
        }
        // Of a graph that this server does not serve: it does not know what may be shown.
        (None, _) => Ok(StoredValues::None),
    }
}

/// Returns the last run of a thread.
async fn last_run(app: &Shared, thread: &ThreadId) -> ApiResult<Option<RunRow>> {
    let query = RunQuery {
        tenant: thread.tenant().to_owned(),
        thread: Some(thread.clone()),
        page: Page {
            limit: 1,
            offset: 0,
        },
        ..RunQuery::default()
    };
    Ok(app.registry().runs(&query).await?.into_iter().next())
}

async fn read(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let row = thread::get(&app, &id).await?;
    let mut shown = show(&app, &row, &ShowOptions::default()).await?;
    if query.list("include").iter().any(|field| field == "ttl") {
        shown["ttl"] = wire::lifetime(&row);
    }
    Ok(JsonBody(shown))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChangeBody {
    metadata: Option<Map<String, Json>>,
    ttl: Option<TtlBody>,
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(id): ThreadPath,
    headers: HeaderMap,
    Payload(body): Payload<ChangeBody>,
) -> ApiResult<Response> {
    let lifetime = body.ttl.as_ref().map(TtlBody::lifetime).transpose()?;
    let mut metadata = body.metadata.unwrap_or_default();
    caller.mark_own(&mut metadata);
    let change = ThreadAnnotation {
        metadata: metadata.into_iter().collect(),
        graph: None,
        lifetime: lifetime.map(|chosen| Some(app.retention.chosen(id.tenant(), chosen))),
        at: app.runtime.now(),
    };
    let found = app.runtime.annotate_thread(&id, &change).await?;
    if !found {
        return Err(ApiError::no_thread(&id));
    }
    let prefer = headers.get("prefer").and_then(|value| value.to_str().ok());
    if prefer.is_some_and(|prefer| prefer.contains("return=minimal")) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let row = thread::get(&app, &id).await?;
    let shown = show(&app, &row, &ShowOptions::default()).await?;
    Ok(JsonBody(shown).into_response())
}

async fn delete(State(app): State<App>, ThreadPath(id): ThreadPath) -> ApiResult<StatusCode> {
    thread::get(&app, &id).await?;
    delete_busy(&app, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a thread, also one with active runs.
async fn delete_busy(app: &Shared, id: &ThreadId) -> ApiResult<()> {
    let active = thread::active_runs(app, id).await?;
    start::cancel_runs(app, &active).await?;
    background::delete_thread(app, id).await
}

async fn copy(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    request: Keyed<IgnoredAny>,
) -> ApiResult<JsonBody<Json>> {
    let id = caller.thread(&name)?;
    let row = thread::find(&app, &id).await?;
    let row = row.filter(|row| caller.owns_thread(row));
    // The status that clients of LangGraph's server know for it.
    let row =
        row.ok_or_else(|| ApiError::conflict(format!("Thread with ID {} not found", id.name())))?;
    let to = caller.copy_of(&id, new_id(request.key.as_ref(), "copy"))?;
    if request.key.is_none() || thread::find(&app, &to).await?.is_none() {
        copy_to(&app, row, &to).await?;
    }
    let row = thread::get(&app, &to).await?;
    let options = ShowOptions {
        select: &COPY_FIELDS.map(str::to_owned),
        ..ShowOptions::default()
    };
    let mut shown = show(&app, &row, &options).await?;
    // No run has left a configuration on the copy.
    shown["config"] = json!({});
    Ok(JsonBody(shown))
}

/// Copies a thread with its files.
async fn copy_to(app: &Shared, row: ThreadRow, to: &ThreadId) -> ApiResult<()> {
    let id = row.thread;
    let checkpointer = app.runtime.checkpointer();
    match row.head.seq {
        // Nothing has happened on it that could be copied.
        Seq(0) => {
            let new = NewThread {
                graph: row.graph,
                metadata: row.metadata,
                lifetime: row.lifetime,
                at: app.runtime.now(),
            };
            checkpointer.create(to, &new).await?;
        }
        _ => checkpointer.copy(&id, None, to).await?,
    }
    if let Some(files) = &app.files {
        files.copy_all(&id, to).await?;
    }
    Ok(())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PruneBody {
    thread_ids: Vec<String>,
    strategy: TtlStrategy,
}

async fn prune(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<PruneBody>,
) -> ApiResult<JsonBody<Json>> {
    check_count("thread_ids", &body.thread_ids)?;
    let mut pruned = 0_u64;
    for text in &body.thread_ids {
        let id = caller.thread(text)?;
        let row = thread::find(&app, &id).await?;
        if !row.is_some_and(|row| caller.owns_thread(&row)) {
            continue;
        }
        match body.strategy {
            TtlStrategy::Delete => delete_busy(&app, &id).await?,
            TtlStrategy::KeepLatest => {
                app.runtime.checkpointer().prune(&id, 1).await?;
            }
        }
        pruned += 1;
    }
    Ok(JsonBody(json!({ "pruned_count": pruned })))
}

fn check_count(name: &str, ids: &[String]) -> ApiResult<()> {
    match ids.len() > IDS_MAX {
        true => Err(ApiError::invalid(format!(
            "`{name}` names more than {IDS_MAX} threads"
        ))),
        false => Ok(()),
    }
}

/// What a copy of a thread shows. Its state is that of the original.
const COPY_FIELDS: [&str; 7] = [
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "config",
    "status",
];
/// Number of running threads that are listed at once.
const RUNNING_AT_ONCE: u32 = 1_000;
/// Highest number of threads that a request names.
const IDS_MAX: usize = 1_000;
/// Highest number of paths that a search extracts.
const EXTRACTS_MAX: usize = 10;
