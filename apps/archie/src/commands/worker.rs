//! `archie worker`: a worker process for a Restate cluster, with the agents of this program.

use anyhow::{Context, bail};
use archie_agent::{AgentFactory, Exit, Terminal};
use clap::CommandFactory;
use clap::error::ErrorKind;
use serde_json::json;
use superstep_restate::Worker;
use superstep_tls::{TlsParameters, client_config};
use tokio::signal::unix::{SignalKind, signal};

use crate::app::App;
use crate::cli::args::{Args, WorkerArgs};
use crate::cli::settings::{Engine, KeySource, Settings, Store, refuse_credentials};
use crate::ctrl_c;
use crate::storage::Storage;
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
    let Store::Postgres(_) = &settings.store else {
        bail!("workers share their threads: give --store postgres://…");
    };
    // Before anything starts: registration begins when the worker serves, and its error would come when the worker stops.
    let admin = args.register.as_deref().map(Admin::parse).transpose()?;
    let mut settings = Settings {
        // A worker runs threads itself instead of sending requests to the cluster.
        engine: Engine::Local,
        ..settings.allowing(&args.allow_model)
    };
    if let Some(file) = &args.encryption_key_file {
        settings.encryption.keys = Some(KeySource::File(file.clone()));
    }
    let inbox = Storage::open(&settings).await?;
    let app = App::open(settings, makers).await?;
    let mut worker = inbox.worker(app.runtime.clone())?;
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
        if let Some(admin) = &admin {
            admin.register(&args.listen.to_string()).await?;
            terminal.line(&format!("{} knows", admin.address));
        }
        anyhow::Ok(())
    };
    // Restate calls the worker during registration, so serve and register concurrently.
    let (served, registered) = tokio::join!(serving, registering);
    registered?;
    served?;
    Ok(Exit::Done)
}

/// Restate's admin API.
#[derive(Debug)]
struct Admin {
    /// Without parameters.
    address: String,
    /// Trusts what the parameters say.
    client: reqwest::Client,
}

impl Admin {
    fn parse(given: &str) -> anyhow::Result<Self> {
        refuse_credentials("--register", given)?;
        Self::open(given).context("the address in `--register` cannot be called")
    }

    fn open(given: &str) -> anyhow::Result<Self> {
        let (address, parameters) = TlsParameters::take_from_url(given)?;
        if address.contains('?') || parameters.passfile.is_some() {
            bail!(
                "it can have the parameters sslmode, sslrootcert, sslcert and sslkey, and no others"
            );
        }
        let mut client = reqwest::Client::builder();
        if address.starts_with("https://") {
            let config = client_config(&parameters.required()?)?;
            client = client.tls_backend_preconfigured(config);
        } else {
            parameters.refused()?;
        }
        let client = client.build()?;
        Ok(Self { address, client })
    }

    /// Makes the worker known to the cluster.
    async fn register(&self, worker: &str) -> anyhow::Result<()> {
        let admin = self.address.trim_end_matches('/');
        let known = json!({ "uri": format!("http://{worker}"), "force": true });
        let told = self.client.post(format!("{admin}/deployments"));
        let told = told.json(&known).send().await;
        let told = told.with_context(|| format!("{admin} cannot be reached"))?;
        let status = told.status();
        if !status.is_success() {
            let why = told.text().await.unwrap_or_default();
            bail!("{admin} does not take the worker: {status}: {why}");
        }
        Ok(())
    }
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
    let admin = Admin::parse("http://127.0.0.1:9070").unwrap();
    assert_eq!(admin.address, "http://127.0.0.1:9070");
    let admin = Admin::parse("https://h:9070?sslmode=require").unwrap();
    assert_eq!(admin.address, "https://h:9070");
    for (wrong, why) in [
        ("http://h:9070?sslrootcert=/a", "does not encrypt"),
        ("https://h:9070?sslrootcert=/absent", "/absent"),
        ("https://h:9070?sslmode=disable", "contradicts"),
        ("https://h:9070?sslmode=require&sslrootcrt=/a", "no others"),
        ("http://h:9070?passfile=/a", "no others"),
        ("https://ada:secret@h:9070", "has a user or a password"),
    ] {
        let error = format!("{:#}", Admin::parse(wrong).unwrap_err());
        assert!(error.contains(why), "{wrong}: {error}");
        assert!(!error.contains("secret"), "{wrong}: {error}");
    }
}
