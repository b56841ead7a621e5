//! `archie serve`: the agents over HTTP, for the clients and web pages of LangGraph's Agent Server.

mod open_files;
mod traces;
mod webhooks;

use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use archie_agent::{AgentFactory, Exit, Terminal};
use clap::CommandFactory;
use clap::error::ErrorKind;
use superstep::registry::Registry;
use superstep_server::{
    AccessRecord, Authentication, RetentionPolicy, Server, ServerBuilder, TenantLimits,
};
use tokio::sync::oneshot;

use crate::app::App;
use crate::cli::args::{Args, ServeArgs};
use crate::cli::settings::{Engine, KeySource, Settings, Store};
use crate::commands::audit::read_audit_key;
use crate::commands::serve::traces::EndedRuns;
use crate::commands::worker::stop;
use crate::storage::{Database, Storage};
use crate::terminal::{Console, print_error};
use crate::thread_files::AgentFiles;

pub(super) fn run(
    args: &ServeArgs,
    settings: &Settings,
    makers: &[AgentFactory],
    terminal: &Console,
    on_listen: &dyn Fn(SocketAddr),
) -> anyhow::Result<Exit> {
    check_exposure(args);
    let authentication = args.auth.as_deref().map(read_policy).transpose()?;
    if let Some(warning) = open_files::raise_limit() {
        print_error(&warning);
    }
    let mut settings = settings.allowing(&args.allow_model);
    if let Some(files) = &args.files {
        settings.files.clone_from(files);
    }
    if let Some(file) = &args.encryption_key_file {
        settings.encryption.keys = Some(KeySource::File(file.clone()));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let args = ServedArgs {
        args,
        authentication,
        on_listen,
    };
    runtime.block_on(open_and_serve(&args, &settings, makers, terminal))
}

/// What was typed, with the policy file read.
struct ServedArgs<'a> {
    args: &'a ServeArgs,
    authentication: Option<Authentication>,
    /// Called when the server listens, with its address.
    on_listen: &'a dyn Fn(SocketAddr),
}

/// Serves an open app to callers on this machine, until the person ends it.
pub(super) async fn serve_app(
    args: &ServeArgs,
    app: App,
    registry: Arc<dyn Registry>,
    terminal: &Console,
) -> anyhow::Result<Exit> {
    let args = ServedArgs {
        args,
        authentication: None,
        on_listen: &|_| {},
    };
    serve(&args, app, registry, terminal, std::future::pending()).await
}

/// Reads who may call the server.
fn read_policy(file: &Path) -> anyhow::Result<Authentication> {
    let shown = file.display();
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read the policy file {shown}"))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let read = Authentication::from_json(&text, folder);
    read.with_context(|| format!("the policy file {shown} is not valid"))
}

/// Reads how long threads are kept.
fn read_retention(file: &Path) -> anyhow::Result<RetentionPolicy> {
    let shown = file.display();
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read the retention policy {shown}"))?;
    let read = RetentionPolicy::from_json(&text);
    read.with_context(|| format!("the retention policy {shown} is not valid"))
}

/// Opens the models that callers may choose, so that none of them fails in a run that was accepted.
fn check_models(app: &App) -> anyhow::Result<()> {
    // On a cluster, the workers open the models, and they have the keys.
    if app.settings.engine != Engine::Local {
        return Ok(());
    }
    for model in &app.settings.models {
        let opened = app.models.get(model);
        opened.with_context(|| {
            format!("callers may choose the model `{model}`, but it cannot be opened")
        })?;
    }
    Ok(())
}

/// Exits with a usage error if other machines could reach the agents without authentication.
fn check_exposure(args: &ServeArgs) {
    let listen = args.listen;
    if listen.ip().is_loopback() || args.auth.is_some() {
        return;
    }
    let why = format!(
        "`--listen {listen}` can be reached from other machines, and the server does not authenticate its callers.\n\
         Say who may call it with `--auth FILE`, or listen at a loopback address such as 127.0.0.1:2024"
    );
    Args::command().error(ErrorKind::InvalidValue, why).exit()
}

async fn open_and_serve(
    args: &ServedArgs<'_>,
    settings: &Settings,
    makers: &[AgentFactory],
    terminal: &Console,
) -> anyhow::Result<Exit> {
    let storage = Storage::open(settings).await?;
    let registry = storage.registry();
    if settings.engine != Engine::Local {
        // Workers of the cluster run the threads, and servers share the queue in front of it.
        let app = App::open(settings.clone(), makers).await?;
        return serve(args, app, registry, terminal, std::future::pending()).await;
    }
    // The owner of the queue is dropped after the server: until then no other process may execute its runs.
    match &storage.database {
        Database::Sqlite(store) => {
            let try_own = async || Ok(store.try_own_queue()?);
            let place = place_of(&settings.store);
            let Some(_owner) = own_queue(args.args, &place, terminal, try_own).await? else {
                return Ok(Exit::Done);
            };
            let app = App::of(settings.clone(), &storage, makers).await?;
            serve(args, app, registry, terminal, std::future::pending()).await
        }
        Database::Postgres(store) => {
            let try_own = async || Ok(store.try_own_queue().await?);
            let place = place_of(&settings.store);
            let own = own_queue(args.args, &place, terminal, try_own);
            let Some(owner) = own.await? else {
                return Ok(Exit::Done);
            };
            // With connections of its own.
            let app = App::open(settings.clone(), makers).await?;
            let queue_lost = store.keep_queue(owner);
            Box::pin(serve(args, app, registry, terminal, queue_lost)).await
        }
    }
}

/// Returns what a person calls the database, without its address, which may have a password.
fn place_of(store: &Store) -> String {
    match store {
        Store::Sqlite(path) => path.display().to_string(),
        Store::Postgres(_) => "the database".to_owned(),
    }
}

const QUEUE_LOST: &str = "lost the lock of the queue of runs: its connection to the database ended, and another process has the lock now. \
     That process executes the runs; if there is none, start `archie serve` again";

fn owned_elsewhere(store: &str) -> String {
    format!(
        "another `archie serve` executes the runs of {store}; stop it first, or wait for its end with `--standby`"
    )
}

/// Takes the queue of runs for this process; with `--standby` when its owner has stopped. Returns `None` if this process is stopped
/// before that.
async fn own_queue<T>(
    args: &ServeArgs,
    store: &str,
    terminal: &Console,
    try_own: impl AsyncFn() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    if let Some(owner) = try_own().await? {
        return Ok(Some(owner));
    }
    if !args.standby {
        bail!(owned_elsewhere(store));
    }
    terminal.aside(&format!(
        "another `archie serve` executes the runs of {store}; waiting until it has stopped"
    ));
    let report = |problem: &str| terminal.aside(problem);
    tokio::select! {
        owner = wait_for_queue(&try_own, &report) => Ok(Some(owner)),
        () = stop() => Ok(None),
    }
}

/// Tries to own the queue until it has no other owner. Errors do not end this: what a database that restarts does to the server is
/// what a standby is there for. Reports the first error of several, and when the store answers again.
async fn wait_for_queue<T>(
    try_own: &impl AsyncFn() -> anyhow::Result<Option<T>>,
    report: &dyn Fn(&str),
) -> T {
    let mut pause = STANDBY_POLL;
    loop {
        tokio::time::sleep(pause).await;
        let is_first = pause == STANDBY_POLL;
        match try_own().await {
            Ok(Some(owner)) => return owner,
            Ok(None) => {
                if !is_first {
                    report(
                        "the store answers again; another `archie serve` still executes its runs",
                    );
                }
                pause = STANDBY_POLL;
            }
            Err(error) => {
                if is_first {
                    report(&format!(
                        "the store does not answer, the standby keeps trying: {error:#}"
                    ));
                }
                pause = (pause * 2).min(STANDBY_PAUSE_MAX);
            }
        }
    }
}

/// How often a server on standby looks whether it may begin.
const STANDBY_POLL: Duration = Duration::from_millis(250);
/// How often it looks at most while the store fails.
const STANDBY_PAUSE_MAX: Duration = Duration::from_secs(5);

async fn serve(
    served: &ServedArgs<'_>,
    app: App,
    registry: Arc<dyn Registry>,
    terminal: &Console,
    queue_lost: impl Future<Output = ()>,
) -> anyhow::Result<Exit> {
    let args = served.args;
    check_models(&app)?;
    let listener = tokio::net::TcpListener::bind(args.listen).await;
    let listener = listener.with_context(|| format!("cannot listen at {}", args.listen))?;
    let mut server = server_of(&app, registry)
        .public_routes(superstep_studio::routes())
        .concurrent_runs(args.concurrent_runs)
        .tenant_limits(tenant_limits(args));
    if let Some(file) = &args.retention {
        server = server.retention(read_retention(file)?);
    }
    if args.access_log {
        server = server.access_log(print_access);
    }
    if args.audit {
        let key = args.audit_key_file.as_deref().map(read_audit_key);
        server = server.audit(key.transpose()?);
    }
    for origin in &args.allow_origin {
        server = server.allow_origin(origin);
    }
    for host in &args.allow_host {
        server = server.allow_host(host);
    }
    if let Some(authentication) = &served.authentication {
        server = server.authentication(authentication.clone());
    }
    let ended_runs = EndedRuns::of(&app);
    if let Some(ended_runs) = &ended_runs {
        server = server.end_hook(ended_runs.clone());
    }
    let server = webhooks::configure(server, args)?.start().await?;
    let agents: Vec<_> = app.agents.iter().map(|agent| agent.name()).collect();
    let address = listener.local_addr()?;
    terminal.line(&format!("{} at http://{address}", agents.join(", ")));
    terminal.line(&format!("Studio at http://{address}/studio/"));
    (served.on_listen)(address);
    let (running, lost) = oneshot::channel::<()>();
    let until = async move {
        tokio::select! {
            () = stop() => {}
            _ = lost => {}
        }
    };
    let serving = async {
        let serving = server.serve(listener, until);
        let Some(ended_runs) = &ended_runs else {
            return serving.await;
        };
        let served = tokio::select! {
            served = serving => served,
            never = ended_runs.forward_forever(&app) => match never {},
        };
        ended_runs.forward(&app);
        served
    };
    let mut serving = pin!(app.traces.during(serving, terminal));
    // It holds the queue, and so it is not dropped before the server has drained.
    let mut queue_lost = pin!(queue_lost);
    let mut running = Some(running);
    loop {
        tokio::select! {
            served = &mut serving => break served?,
            () = &mut queue_lost, if running.is_some() => running = None,
        }
    }
    if running.is_none() {
        bail!(QUEUE_LOST);
    }
    Ok(Exit::Done)
}

fn tenant_limits(args: &ServeArgs) -> TenantLimits {
    let mut limits = TenantLimits::default();
    if let Some(requests) = args.tenant_requests {
        limits = limits.requests_per_second(requests);
    }
    if let Some(runs) = args.tenant_runs {
        limits = limits.runs_per_minute(runs);
    }
    if let Some(requests) = args.tenant_streams {
        limits = limits.open_requests(requests);
    }
    if let Some(runs) = args.tenant_active {
        limits = limits.active_runs(runs);
    }
    if let Some(runs) = args.tenant_concurrent {
        limits = limits.concurrent_runs(runs);
    }
    limits
}

/// Prints a line of the access log to stderr, next to the log.
fn print_access(record: &AccessRecord) {
    match serde_json::to_string(record) {
        Ok(line) => print_error(&line),
        Err(error) => print_error(&format!("the access log cannot be written: {error}")),
    }
}

/// Configures a server of an app's agents.
///
/// Callers cannot reach what the agents and the program keep in the long-term store: it says which hosts are called with which
/// secrets, what was learned from a person, and what a person has seen.
pub fn server_of(app: &App, registry: Arc<dyn Registry>) -> ServerBuilder {
    let mut server = Server::builder(app.runtime.clone(), registry)
        .store(app.memory.clone())
        .files(Arc::new(AgentFiles::of(app)));
    for namespace in ["archie", "inbox"] {
        server = server.reserve_namespace(namespace);
    }
    for agent in &app.agents {
        server = server
            .graph(agent.definition())
            .reserve_namespace(agent.name());
    }
    server
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_standby_survives_a_store_that_fails_for_a_minute() {
        let begun = tokio::time::Instant::now();
        let tries = Cell::new(0);
        let try_own = async || {
            tries.set(tries.get() + 1);
            match begun.elapsed().as_secs() {
                0 => Ok(None),
                1..60 => Err(anyhow::anyhow!("the database restarts")),
                60..70 => Ok(None),
                _ => Ok(Some("owner")),
            }
        };
        let reports = RefCell::new(Vec::new());
        let report = |problem: &str| reports.borrow_mut().push(problem.to_owned());
        assert_eq!(wait_for_queue(&try_own, &report).await, "owner");
        let reports = reports.into_inner();
        assert_eq!(reports.len(), 2, "{reports:?}");
        assert!(reports[0].contains("the database restarts"), "{reports:?}");
        assert!(reports[1].contains("answers again"), "{reports:?}");
        // Every quarter of a second while the store answers, and seldom while it does not.
        assert!((20..70).contains(&tries.get()), "{tries:?}");
    }
}
