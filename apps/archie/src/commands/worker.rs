//! `archie worker`: a worker process for a Restate cluster, with the agents of this program.

use anyhow::{Context, bail};
use archie_agent::{AgentFactory, Exit, Terminal};
use clap::CommandFactory;
use clap::error::ErrorKind;
use serde_json::json;
use superstep_restate::Worker;
use superstep_tls::{TlsParameters, client_config};
use tokio::signal::unix::{SignalKind, signal};

use crate::app::{App, connect};
use crate::cli::args::{Args, WorkerArgs};
use crate::cli::settings::{Engine, Settings, Store};
use crate::ctrl_c;
use crate::terminal::Console;

pub(super) fn run(
    args: &WorkerArgs,
    settings: &Settings,
    makers: &[AgentFactory],
    terminal: &Console,
) -> anyhow::Result<Exit> {
    check_exposure(args);
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(serve(args, settings, makers, terminal))
}

/// Exits with a usage error if any machine on the network could run threads. The worker would refuse this too, but only after
/// it has connected to everything else.
fn check_exposure(args: &WorkerArgs) {
    let is_safe = args.listen.ip().is_loopback()
        || args.identity_key.is_some()
        || args.insecure_no_identity_key;
    if is_safe {
        return;
    }
    let why = format!(
        "`--listen {}` can be reached from other machines, and without an identity key everybody who reaches it can run threads.\n\
         Give `--identity-key publickeyv1_…` (Restate prints the key when it starts with `request-identity-private-key-pem-file`),\n\
         or listen at 127.0.0.1. `--insecure-no-identity-key` serves without, for a network that nobody else is on",
        args.listen
    );
    Args::command()
        .error(ErrorKind::MissingRequiredArgument, why)
        .exit()
}

async fn serve(
    args: &WorkerArgs,
    settings: &Settings,
    makers: &[AgentFactory],
    terminal: &Console,
) -> anyhow::Result<Exit> {
    let Store::Postgres(url) = &settings.store else {
        bail!("workers share their threads: give --store postgres://…");
    };
    let inbox = connect(url).await?;
    let app = App::open(
        Settings {
            // A worker runs threads itself instead of sending requests to the cluster.
            engine: Engine::Local,
            ..settings.allowing(&args.allow_model)
        },
        makers,
    )
    .await?;
    let mut worker = Worker::new(app.runtime.clone(), inbox);
    if let Some(address) = args.operations {
        worker = worker.operations(Worker::listen(address)?);
    }
    if let Some(key) = &args.identity_key {
        worker = worker.identity_key(key);
    }
    if args.insecure_no_identity_key {
        worker = worker.take_unsigned_calls();
    }
    let listener = Worker::listen(args.listen)
        .with_context(|| format!("{} cannot be listened at", args.listen))?;
    let agents: Vec<_> = app.agents.iter().map(|agent| agent.name()).collect();
    terminal.line(&format!("{} at {}", agents.join(", "), args.listen));
    let serving = worker.serve(listener, stop());
    let registering = async {
        if let Some(admin) = &args.register {
            register(admin, &args.listen.to_string()).await?;
            terminal.line(&format!("{admin} knows"));
        }
        anyhow::Ok(())
    };
    // Restate calls the worker during registration, so serve and register concurrently.
    let (served, registered) = tokio::join!(serving, registering);
    registered?;
    served?;
    Ok(Exit::Done)
}

async fn register(admin: &str, address: &str) -> anyhow::Result<()> {
    let (admin, client) = admin_client(admin)
        .with_context(|| format!("`--register {admin}` is not an address that can be called"))?;
    let url = format!("{}/deployments", admin.trim_end_matches('/'));
    let known = json!({ "uri": format!("http://{address}"), "force": true });
    let told = client.post(&url).json(&known).send().await;
    let told = told.with_context(|| format!("{admin} cannot be reached"))?;
    let status = told.status();
    if !status.is_success() {
        let why = told.text().await.unwrap_or_default();
        bail!("{admin} does not take the worker: {status}: {why}");
    }
    Ok(())
}

/// Returns the address of Restate's admin API without its parameters, and a client that trusts what they say.
fn admin_client(admin: &str) -> anyhow::Result<(String, reqwest::Client)> {
    let (address, parameters) = TlsParameters::take_from_url(admin)?;
    let mut client = reqwest::Client::builder();
    if address.starts_with("https://") {
        let config = client_config(&parameters.required()?)?;
        client = client.tls_backend_preconfigured(config);
    } else {
        parameters.refused()?;
    }
    Ok((address, client.build()?))
}

/// Waits for Ctrl-C or SIGTERM.
pub(super) async fn stop() {
    let asked = async {
        match signal(SignalKind::terminate()) {
            Ok(mut asked) => drop(asked.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = asked => {}
        () = ctrl_c::pressed() => {}
    }
}

#[test]
fn an_admin_address_with_parameters_of_tls_must_be_one_with_tls() {
    let (address, _) = admin_client("http://127.0.0.1:9070").unwrap();
    assert_eq!(address, "http://127.0.0.1:9070");
    let (address, _) = admin_client("https://h:9070?sslmode=require").unwrap();
    assert_eq!(address, "https://h:9070");
    for (wrong, why) in [
        ("http://h:9070?sslrootcert=/a", "does not encrypt"),
        ("https://h:9070?sslrootcert=/absent", "/absent"),
        ("https://h:9070?sslmode=disable", "contradicts"),
    ] {
        let error = admin_client(wrong).unwrap_err().to_string();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}
