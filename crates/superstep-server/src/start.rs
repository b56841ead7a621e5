//! The one way to submit a run: every route that creates one comes through here.
//!
//! A run is stored with its request before the caller gets a reply. What the request means is decided before that: which interrupts
//! it answers, which checkpoint it continues from, what it may write.

mod answer_turns;
mod body;
mod config;
mod fork;
mod permissions;
mod request;
mod rollback;
mod temporary;
mod tick;

pub(crate) use answer_turns::AnswerTurns;
pub(crate) use body::{
    CheckpointBody, CommandBody, IfNotExists, MultitaskStrategy, OnCompletion, OnDisconnect,
    RunBody, no_checkpoint,
};
pub(crate) use config::USER;
pub(crate) use request::{no_payload, pairs_as_object, read_goto};
pub(crate) use rollback::{cancel_runs, roll_back};
pub(crate) use temporary::discard;
pub(crate) use tick::{check_cron, fire_tick};

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::{HeaderName, HeaderValue};
use serde_json::{Value as Json, json};
use superstep::checkpoint::format::Stop;
use superstep::checkpoint::{Head, Metadata, NewThread, ThreadAnnotation, ThreadRow};
use superstep::driver::QueuedRequest;
use superstep::error::OpenError;
use superstep::graph::Definition;
use superstep::registry::{Assistant, CreatedRun, NewRun, RunRow, RunStatus, WhenBusy};
use superstep::{RunId, ThreadId};

use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::idempotency::{CreationKey, new_id};
use crate::request_scope::RequestScope;
use crate::start::answer_turns::AnswerTurn;
use crate::start::config::RunConfig;
use crate::start::permissions::check_permissions;
use crate::start::request::RequestPlan;
use crate::{App, Shared, assistant, audit, thread, wire};

/// Which thread a run is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThreadTarget {
    /// This thread, which the run creates only if its body says so.
    Thread(ThreadId),
    /// A new thread, deleted after the run unless the body says otherwise: a stateless run.
    Temporary,
    /// The same, under this id: a cron's tick that is fired again must not make a second thread.
    TemporaryNamed(ThreadId),
}

/// A run that was submitted.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) row: RunRow,
    pub(crate) thread: ThreadId,
    pub(crate) graph: Arc<Definition>,
    /// Whether the thread is deleted after the run. A handler that has shown the result deletes it with [`discard`]; if none does,
    /// the server deletes it some seconds after the end.
    pub(crate) is_temporary: bool,
    /// Names in the input that the graph does not know.
    pub(crate) dropped: Vec<String>,
}

impl Submitted {
    /// Returns the path of the run, for the header `Content-Location`.
    pub(crate) fn path(&self) -> String {
        let run = wire::uuid(self.row.id.to_bytes());
        match self.is_temporary {
            true => format!("/runs/{run}"),
            false => format!("/threads/{}/runs/{run}", self.thread.name()),
        }
    }

    /// Returns the header with the names of the keys that were dropped from the input.
    pub(crate) fn dropped_header(&self) -> Option<(HeaderName, HeaderValue)> {
        let names = self.dropped.iter().map(String::as_str);
        // A header is short, and not for every text; the first names tell enough.
        let names = names.filter(|name| name.is_ascii() && name.len() <= DROPPED_BYTES_MAX);
        let text = names.take(DROPPED_MAX).collect::<Vec<_>>().join(", ");
        let value = HeaderValue::from_str(&text)
            .ok()
            .filter(|_| !text.is_empty())?;
        Some((HeaderName::from_static("x-superstep-dropped-keys"), value))
    }
}

/// What the caller of a run is interested in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// Its events, now or later.
    Events,
    /// Its end alone.
    End,
}

/// Submits a run.
pub(crate) async fn submit(
    app: &App,
    caller: &Caller,
    target: ThreadTarget,
    body: RunBody,
    awaits: Awaits,
) -> ApiResult<Submitted> {
    app.quotas.submit_run(app, &caller.tenant).await?;
    let prepared = match prepare(app, caller, &target, &body, None).await? {
        Preparation::Ready(prepared) => *prepared,
        Preparation::Repeated(submitted) => return Ok(*submitted),
    };
    let PreparedRun {
        new,
        naming,
        place,
        graph,
        dropped,
        turn,
    } = prepared;
    // Before the run can begin, so that its first events are not missed.
    place.announce(app, &graph, awaits);
    // Side by side, so that a store can make both durable at once.
    let (created, ()) = tokio::join!(app.queue.submit(&new), place.name(app, naming.as_ref()));
    drop(turn);
    let id = new.id;
    let row = match created? {
        // A client sees a new run as pending, also if it began at once.
        CreatedRun::Stored(_) | CreatedRun::Begun => pending_row(new),
        CreatedRun::Exists(row, _) => *row,
        CreatedRun::Busy => return Err(request::busy_error(app, &place.thread, id, &body).await),
    };
    place.run_was_stored(app, &graph, row.id, awaits);
    Ok(Submitted {
        row,
        thread: place.thread,
        graph,
        is_temporary: place.is_temporary,
        dropped,
    })
}

/// A run that can be stored.
struct PreparedRun {
    new: NewRun,
    /// What the thread's metadata do not say yet.
    naming: Option<ThreadAnnotation>,
    place: RunPlace,
    graph: Arc<Definition>,
    /// Names in the input that the graph does not know.
    dropped: Vec<String>,
    /// Of a run that answers interrupts: held until the run is stored.
    turn: Option<AnswerTurn>,
}

/// What a request for a run has come to before anything is stored for it.
enum Preparation {
    Ready(Box<PreparedRun>),
    /// The request was sent again under its key, and has a run.
    Repeated(Box<Submitted>),
}

/// Decides everything about a run. `id` is the id of the run; `None` if it has a new one, or that of its key.
async fn prepare(
    app: &Shared,
    caller: &Caller,
    target: &ThreadTarget,
    body: &RunBody,
    id: Option<RunId>,
) -> ApiResult<Preparation> {
    check_permissions(caller, body)?;
    if let Some(address) = &body.webhook {
        app.webhooks.check(address)?;
    }
    let (assistant, place) = tokio::join!(
        assistant::find(app, caller, &body.assistant_id),
        RunPlace::find(app, caller, target, body)
    );
    let assistant = assistant?.ok_or_else(nothing_to_run_on)?;
    let graph = assistant::graph_of(app, &assistant)?;
    let place = place?;
    place.check_graph(&graph)?;
    let mut config = RunConfig::of(&assistant, body);
    config.check_context(&graph, body)?;
    config.name_user(&graph, caller);
    let mut options = config.options(&graph, body)?;
    options.caller = RequestScope::current().and_then(|scope| scope.caller_span);
    let delay = delay_ms(body)?;
    let mut arguments = body.arguments(&config.config, &config.context, place.is_temporary);
    let key = body.creation_key.as_ref();
    let id = id.unwrap_or_else(|| RunId::from_bytes(new_id(key, "run").into_bytes()));
    // Before the run is looked up: the same request may be under way.
    let turn = match body.is_answer() {
        true => Some(app.answer_turns.take(&place.thread).await),
        false => None,
    };
    if key.is_some()
        && let Some(row) = app.registry().run(&caller.tenant, id).await?
    {
        let submitted = repeated(row, place, graph);
        return Ok(Preparation::Repeated(Box::new(submitted)));
    }
    if body.strategy().ends_others() || body.checkpoint(&place.thread)?.is_some() {
        // Before anything is undone: a request that is refused must have no effect.
        request::check(&graph, body)?;
    }
    place.make_room(app, body, id).await?;
    let is_forked = fork::go_back(app, &graph, &place.thread, body).await?;
    let plan = RequestPlan {
        app,
        caller,
        graph: &graph,
        thread: &place.thread,
        run: id,
        head: place.head(),
        is_forked,
        body,
        config: &config,
    };
    let planned = plan.make().await?;
    let answers = planned.request.answers();
    wire::note_answers(&mut arguments, answers);
    audit::record_answers(app, caller, &place.thread, answers).await?;
    let naming = place
        .create_or_plan_name(app, caller, &assistant, body)
        .await?;
    let now = app.runtime.now();
    let new = NewRun {
        id,
        thread: place.thread.clone(),
        assistant: assistant.id,
        principal: caller.principal.clone(),
        request: QueuedRequest::new(graph.name(), planned.request, &options)?
            .to_bytes(&place.thread),
        arguments,
        metadata: run_metadata(caller, body, &assistant, place.row.as_ref()),
        when_busy: match body.strategy() {
            MultitaskStrategy::Reject => WhenBusy::Reject,
            _ => WhenBusy::Enqueue,
        },
        at: now,
        due: now.plus_ms(delay),
    };
    Ok(Preparation::Ready(Box::new(PreparedRun {
        new,
        naming,
        place,
        graph,
        dropped: planned.dropped,
        turn,
    })))
}

/// Returns the values that a run ended with: with `__interrupt__` if it waits for answers, or `__error__` instead if it failed.
pub(crate) async fn final_values(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    row: &RunRow,
) -> ApiResult<Json> {
    if matches!(row.status, RunStatus::Error | RunStatus::Timeout) {
        return Ok(json!({ "__error__": wire::run_error(row) }));
    }
    let Some(mut state) = app.runtime.state_of(graph, thread, None).await? else {
        return Ok(json!({}));
    };
    if state.run.run != row.id {
        // The next run may have begun; what it did is not the result of this one.
        let before = Some(state.seq);
        let states = app.runtime.states_of(graph, thread, before, LOOKED_BACK);
        let last = states
            .await?
            .into_iter()
            .find(|found| found.run.run == row.id);
        state = last.unwrap_or(state);
    }
    let mut values = wire::values(graph, &state.values);
    if matches!(state.stop, Some(Stop::Paused { .. })) {
        let open = wire::open_interrupts(app, thread, state.stop.as_ref()).await?;
        let shown = open.iter();
        let shown = shown.map(|open| wire::streamed_interrupt(&open.interrupt));
        if !open.is_empty() && values.is_object() {
            values["__interrupt__"] = shown.collect();
        }
    }
    Ok(values)
}

fn nothing_to_run_on() -> ApiError {
    ApiError::not_found("Thread or assistant not found.")
}

/// Where a run takes place.
struct RunPlace {
    thread: ThreadId,
    /// Row of the thread; `None` if the run creates it.
    row: Option<ThreadRow>,
    is_temporary: bool,
}

impl RunPlace {
    async fn find(
        app: &Shared,
        caller: &Caller,
        target: &ThreadTarget,
        body: &RunBody,
    ) -> ApiResult<Self> {
        let thread = match target {
            ThreadTarget::Thread(thread) => thread,
            ThreadTarget::Temporary => {
                let thread = match &body.creation_key {
                    Some(key) => keyed_thread(caller, body, key)?,
                    None => caller.new_thread()?,
                };
                return Ok(Self::new(thread, body));
            }
            ThreadTarget::TemporaryNamed(thread) => return Ok(Self::new(thread.clone(), body)),
        };
        let row = thread::find(app, thread).await?;
        if row.as_ref().is_some_and(|row| !caller.owns_thread(row)) {
            return Err(nothing_to_run_on());
        }
        if row.is_none() && body.if_not_exists.unwrap_or_default() == IfNotExists::Reject {
            return Err(nothing_to_run_on());
        }
        Ok(Self {
            thread: thread.clone(),
            row,
            is_temporary: false,
        })
    }

    /// Refuses a run of another graph than those before it on the thread.
    fn check_graph(&self, graph: &Definition) -> ApiResult<()> {
        match &self.row {
            Some(row) if !row.graph.is_empty() && row.graph != graph.name() => {
                Err(ApiError::from(OpenError::OtherGraph {
                    thread: self.thread.clone(),
                    found: row.graph.clone(),
                    wanted: graph.name().to_owned(),
                }))
            }
            _ => Ok(()),
        }
    }

    /// Returns a thread that the run creates.
    fn new(thread: ThreadId, body: &RunBody) -> Self {
        Self {
            thread,
            row: None,
            is_temporary: body.on_completion.unwrap_or_default() == OnCompletion::Delete,
        }
    }

    fn head(&self) -> Head {
        self.row.as_ref().map(|row| row.head).unwrap_or_default()
    }

    /// Deals with the active runs of the thread, as the caller wants it.
    async fn make_room(&self, app: &Shared, body: &RunBody, id: RunId) -> ApiResult<()> {
        if self.row.is_none() || body.strategy() == MultitaskStrategy::Enqueue {
            return Ok(());
        }
        let mut active = thread::active_runs(app, &self.thread).await?;
        // The run itself, if another process has just fired the same tick.
        active.retain(|run| run.id != id);
        match body.strategy() {
            MultitaskStrategy::Reject if !active.is_empty() => {
                Err(request::busy_error(app, &self.thread, id, body).await)
            }
            MultitaskStrategy::Interrupt => {
                // A late answer must not cancel the run that continues with the first one. At another checkpoint it is not late.
                if body.checkpoint(&self.thread)?.is_none() {
                    request::refuse_late_answers(app, &self.thread, id, body, false).await?;
                }
                cancel_runs(app, &active).await
            }
            MultitaskStrategy::Rollback => roll_back(app, &self.thread, &active).await,
            MultitaskStrategy::Enqueue | MultitaskStrategy::Reject => Ok(()),
        }
    }

    /// Creates the thread, or returns what to add to its metadata: which assistant runs on it, because clients filter by it.
    async fn create_or_plan_name(
        &self,
        app: &Shared,
        caller: &Caller,
        assistant: &Assistant,
        body: &RunBody,
    ) -> ApiResult<Option<ThreadAnnotation>> {
        let named = Metadata::from([
            ("graph_id".to_owned(), Json::from(assistant.graph.clone())),
            (
                "assistant_id".to_owned(),
                Json::from(wire::uuid(assistant.id.to_bytes())),
            ),
        ]);
        let at = app.runtime.now();
        if let Some(row) = &self.row {
            let is_named = |(name, value): (&String, &Json)| row.metadata.get(name) == Some(value);
            if named.iter().all(is_named) {
                return Ok(None);
            }
            // Later runs, of other assistants, change nothing: the lifetime may have been chosen since, or be over.
            let is_first = row.graph.is_empty() || !row.metadata.contains_key("assistant_id");
            let (tenant, graph) = (self.thread.tenant(), &assistant.graph);
            let lifetime = || {
                let policy = &app.retention;
                policy.lifetime_with_graph(tenant, graph, row.lifetime)
            };
            return Ok(Some(ThreadAnnotation {
                metadata: named,
                graph: Some(assistant.graph.clone()),
                lifetime: is_first.then(lifetime).flatten(),
                at,
            }));
        }
        let mut metadata = body.metadata.clone().unwrap_or_default();
        caller.mark_own(&mut metadata);
        let mut metadata: Metadata = metadata.into_iter().collect();
        metadata.extend(named);
        let new = NewThread {
            graph: assistant.graph.clone(),
            metadata,
            lifetime: match self.is_temporary {
                true => Some(temporary::LIFETIME),
                false => app
                    .retention
                    .lifetime(self.thread.tenant(), &assistant.graph),
            },
            at,
        };
        // Another request may have created it meanwhile, of another caller even.
        if !app.runtime.create_thread(&self.thread, &new).await? {
            caller.check_thread(app, &self.thread).await?;
        }
        Ok(None)
    }

    /// Adds to the metadata of the thread which assistant runs on it.
    async fn name(&self, app: &Shared, naming: Option<&ThreadAnnotation>) {
        let Some(naming) = naming else { return };
        let named = app.runtime.annotate_thread(&self.thread, naming).await;
        if let Err(error) = named {
            // The run may be stored, and the next one on the thread names it again.
            tracing::warn!(thread = %self.thread, ?error, "a thread does not say which assistant runs on it");
        }
    }

    /// Lets the feed of the thread read what the run does.
    fn announce(&self, app: &App, graph: &Arc<Definition>, awaits: Awaits) {
        match awaits {
            Awaits::Events => app.feeds.began(app, graph, &self.thread),
            Awaits::End => app.feeds.began_unwatched(app, graph, &self.thread),
        }
    }

    /// Does what follows once the run is stored.
    fn run_was_stored(&self, app: &App, graph: &Arc<Definition>, run: RunId, awaits: Awaits) {
        // Again: if storing the run took long, the reader has found no active run and rests.
        self.announce(app, graph, awaits);
        app.counters.runs.fetch_add(1, Ordering::Relaxed);
        if self.is_temporary {
            temporary::delete_afterwards(app, &self.thread, run);
        }
    }
}

/// Returns the thread of a stateless run under a key: the same for every request with this key.
fn keyed_thread(caller: &Caller, body: &RunBody, key: &CreationKey) -> ApiResult<ThreadId> {
    if body.on_completion.unwrap_or_default() == OnCompletion::Delete {
        // A request that is sent again after the run would start it again.
        return Err(ApiError::invalid(
            "`Idempotency-Key` needs a thread that is kept, because a deleted one is forgotten; run on a thread, or set \
             `on_completion` to `keep`",
        ));
    }
    caller.thread(&key.id("thread").to_string())
}

/// Returns the run of a request that was sent again under its key.
fn repeated(row: RunRow, place: RunPlace, graph: Arc<Definition>) -> Submitted {
    Submitted {
        row,
        thread: place.thread,
        graph,
        is_temporary: place.is_temporary,
        dropped: Vec::new(),
    }
}

/// Returns the metadata of a run: the assistant's, the thread's on top, then what the request says.
fn run_metadata(
    caller: &Caller,
    body: &RunBody,
    assistant: &Assistant,
    thread: Option<&ThreadRow>,
) -> Json {
    let mut metadata = assistant.metadata.as_object().cloned().unwrap_or_default();
    metadata.extend(thread.into_iter().flat_map(|row| row.metadata.clone()));
    let configured = body
        .config
        .as_ref()
        .and_then(|config| config.get("metadata"));
    metadata.extend(
        configured
            .and_then(Json::as_object)
            .cloned()
            .unwrap_or_default(),
    );
    metadata.extend(body.metadata.clone().unwrap_or_default());
    metadata.insert("graph_id".to_owned(), assistant.graph.clone().into());
    let id = wire::uuid(assistant.id.to_bytes());
    metadata.insert("assistant_id".to_owned(), id.into());
    caller.mark_own(&mut metadata);
    Json::Object(metadata)
}

fn delay_ms(body: &RunBody) -> ApiResult<u64> {
    match body.after_seconds {
        None => Ok(0),
        // A cast saturates.
        Some(seconds) if seconds >= 0.0 => Ok(((seconds * 1_000.0) as u64).min(wire::MS_MAX)),
        Some(_) => Err(ApiError::invalid("`after_seconds` is below zero")),
    }
}

/// Number of entries of later runs behind which the result of a run is found.
const LOOKED_BACK: u32 = 64;
/// Highest number of dropped names that a response lists, and the longest of them.
const DROPPED_MAX: usize = 20;
const DROPPED_BYTES_MAX: usize = 64;

/// Returns the row of a run that was just stored.
fn pending_row(new: NewRun) -> RunRow {
    RunRow {
        id: new.id,
        thread: new.thread,
        assistant: new.assistant,
        principal: new.principal,
        status: RunStatus::Pending,
        attempts: 0,
        arguments: new.arguments,
        metadata: new.metadata,
        error: Json::Null,
        created: new.at,
        updated: new.at,
        due: new.due,
    }
}
