//! Runs that crons make. A tick submits the run that a caller would get for the cron's arguments, under an id that follows from the
//! tick.

use http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::registry::{Assistant, CreatedRun, CronRow, CronTick, FiredTick, TickRun};
use superstep::{RunId, ThreadId, Timestamp};

use crate::auth::Credential;
use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::owner::OWNER;
use crate::permission::Permissions;
use crate::start::config::RunConfig;
use crate::start::{
    Awaits, Preparation, PreparedRun, RunBody, RunPlace, ThreadTarget, prepare, request,
};
use crate::{App, Shared, assistant, wire};

/// Checks what the runs of a cron are made from, by the rules for runs, as far as they can be known before a tick. Returns the
/// assistant.
pub(crate) async fn check_cron(
    app: &Shared,
    caller: &Caller,
    thread: Option<&ThreadId>,
    body: &RunBody,
) -> ApiResult<Assistant> {
    if let Some(address) = &body.webhook {
        app.webhooks.check(address)?;
    }
    let assistant = assistant::get(app, caller, &body.assistant_id).await?;
    let graph = assistant::graph_of(app, &assistant)?;
    match thread {
        Some(thread) => {
            let target = ThreadTarget::Thread(thread.clone());
            let place = RunPlace::find(app, caller, &target, body).await?;
            place.check_graph(&graph)?;
        }
        None if body.input.is_none() => {
            return Err(ApiError::invalid(
                "A cron without a thread needs an `input`: each of its runs has a new thread, with nothing to resume",
            ));
        }
        None => {}
    }
    let config = RunConfig::of(&assistant, body);
    config.check_context(&graph, body)?;
    config.options(&graph, body)?;
    request::check(&graph, body)?;
    Ok(assistant)
}

/// Fires a tick of a cron. If its run is refused, or can never be stored, the tick has none and the cron says why: the next tick may
/// fare better. An error means that the tick is still to be fired.
pub(crate) async fn fire_tick(
    app: &App,
    cron: &CronRow,
    due: Timestamp,
    next: Option<Timestamp>,
) -> ApiResult<FiredTick> {
    let tick = |run: TickRun| CronTick {
        tenant: cron.tenant.clone(),
        cron: cron.id,
        due,
        seen: cron.updated,
        next,
        run,
    };
    let PreparedRun {
        new,
        naming,
        place,
        graph,
        turn: _turn,
        ..
    } = match prepare_run(app, cron, due).await {
        Ok(prepared) => prepared,
        Err(error) if is_transient(&error) => return Err(error),
        Err(error) => {
            if is_for_others(app, cron, due).await? {
                return Err(error);
            }
            return Ok(app.queue.fire(&tick(failed(&error))).await?);
        }
    };
    let run = new.id;
    // Before the run can begin, so that its first events are not missed.
    place.announce(app, &graph, Awaits::Events);
    place.name(app, naming.as_ref()).await;
    let fired = app.queue.fire(&tick(TickRun::Run(Box::new(new)))).await;
    let fired = match fired.map_err(ApiError::from) {
        Ok(fired) => fired,
        Err(error) if is_transient(&error) => return Err(error),
        Err(error) => app.queue.fire(&tick(failed(&error))).await?,
    };
    if let FiredTick::Run(CreatedRun::Stored(_)) = fired {
        place.run_was_stored(app, &graph, run, Awaits::Events);
    }
    Ok(fired)
}

/// Whether a store did not answer, so that the same call may succeed later.
fn is_transient(error: &ApiError) -> bool {
    error.status == StatusCode::SERVICE_UNAVAILABLE
}

/// Whether a tick is of a graph that only other servers of the queue may serve, as while two versions of a program run side by side.
/// If none of them has fired it after a while, it has no run.
async fn is_for_others(app: &Shared, cron: &CronRow, due: Timestamp) -> ApiResult<bool> {
    if !app.queue.is_shared() || app.runtime.now() > due.plus_ms(LEFT_TO_OTHERS_MS) {
        return Ok(false);
    }
    let assistant = app
        .registry()
        .assistant(&cron.tenant, cron.assistant)
        .await?;
    Ok(assistant.is_some_and(|assistant| !app.graphs.contains_key(&assistant.graph)))
}

fn failed(error: &ApiError) -> TickRun {
    let name = error.status.canonical_reason().unwrap_or_default();
    TickRun::Failed(json!({ "error": name, "message": error.detail }))
}

async fn prepare_run(app: &Shared, cron: &CronRow, due: Timestamp) -> ApiResult<PreparedRun> {
    let caller = Caller {
        tenant: cron.tenant.clone(),
        principal: cron.principal.clone(),
        // Checked when the cron was created.
        permissions: Permissions::ALL,
        owner: owner_of(cron),
        credential: Credential::None,
    };
    let target = match &cron.thread {
        Some(thread) => ThreadTarget::Thread(thread.clone()),
        None => ThreadTarget::TemporaryNamed(thread_of(cron, due)?),
    };
    let body = body_of(cron)?;
    let id = RunId::of_tick(&cron.tenant, cron.id, due);
    match prepare(app, &caller, &target, &body, Some(id)).await? {
        Preparation::Ready(prepared) => Ok(*prepared),
        // Only a request with a key of its caller is found to be repeated.
        Preparation::Repeated(submitted) => Err(ApiError::conflict(format!(
            "Run {} exists",
            wire::uuid(submitted.row.id.to_bytes())
        ))),
    }
}

/// Returns the owner of a cron, if its principal reaches only what it owns.
fn owner_of(cron: &CronRow) -> Option<String> {
    let owner = cron.metadata.get(OWNER).and_then(Json::as_str);
    let owner = owner.filter(|owner| *owner == cron.principal);
    owner.map(str::to_owned)
}

/// Returns the thread of a tick whose run has one of its own: the same one, however often the tick is fired.
fn thread_of(cron: &CronRow, due: Timestamp) -> ApiResult<ThreadId> {
    let name = wire::uuid_of_name(cron.id.to_bytes(), due.0.to_string().as_bytes());
    Ok(ThreadId::of_tenant(&cron.tenant, &name.to_string())?)
}

/// Returns the request that a cron repeats. Its run names the cron in its metadata, and where nodes of LangGraph find it.
fn body_of(cron: &CronRow) -> ApiResult<RunBody> {
    let mut body = RunBody::of_cron(&cron.arguments)?;
    let id = Json::from(wire::uuid(cron.id.to_bytes()));
    body.assistant_id = wire::uuid(cron.assistant.to_bytes());
    let mut metadata = cron.metadata.as_object().cloned().unwrap_or_default();
    metadata.insert("cron_id".to_owned(), id.clone());
    body.metadata = Some(metadata);
    let config = body.config.get_or_insert_default();
    let configurable = config.entry("configurable").or_insert_with(|| json!({}));
    if let Some(fields) = configurable.as_object_mut() {
        fields.insert("cron_id".to_owned(), id);
    }
    Ok(body)
}

/// How long a tick of a graph that is not served here is left to other servers: each looks for crons once a minute.
const LEFT_TO_OTHERS_MS: u64 = 120_000;
