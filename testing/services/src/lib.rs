//! The servers that tests need, started on loopback with ports and folders of their own.
//!
//! [`run`] does what `cargo xtask services` is asked for, and [`address`] says where a service is. Each service is one struct in
//! the list of `all`; what it has running is found on the disk and among the
//! processes, so `up` after `up` changes nothing, `down` stops what `up` started and nothing else, and both
//! survive a crash in between. What clients need to know is written to a folder that tests read.
//!
//! Trials that kill servers get their own: [`Cluster::private`] and [`restate::Restate::private`]. Nothing here knows our crates.

#![expect(
    missing_docs,
    reason = "it is not published, and many fields and variants say all in their names"
)]

mod account;
mod clients;
mod cluster;
mod daemon;
pub mod database;
mod drill;
mod google;
mod http;
mod mail;
mod mcp;
mod model;
mod npm;
mod packages;
mod phoenix;
mod postgres;
mod python;
mod redis;
pub mod restate;
mod sandbox;
mod single;
mod status;

pub use cluster::{Cluster, PrivateCluster, Stop};
pub use npm::{install_npm, is_installed, npm};
pub use packages::require_program;
pub use python::make_python;
pub use redis::PrivateRedis;

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use anyhow::Context;

use account::Account;
use restate::{Layout, Restate};
use status::{Member, Status, print_exports, print_json, print_lines};

use harness::workspace::cache;

/// What to do with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Those of these names.
    Up(Vec<String>),
    Down(Vec<String>),
    Status {
        json: bool,
    },
    /// For a shell to take in.
    Env,
    /// Breaks a Restate of its own on purpose.
    Drill,
}

/// All there are.
pub const NAMES: &[&str] = &[
    "postgres",
    "redis",
    "restate",
    "mcp",
    SANDBOX,
    CLIENTS,
    "google",
    "mail",
    CLUSTER,
    "model",
    "embeddings",
    MODEL_LARGE,
    PHOENIX,
];

/// Those that only come when they are asked for: they are heavy.
pub const ASKED_FOR: &[&str] = &[CLUSTER, MODEL_LARGE, PHOENIX];

/// The service that is three Restate nodes.
pub const CLUSTER: &str = "restate-cluster";
const MODEL_LARGE: &str = "model-large";
const PHOENIX: &str = "phoenix";
const SANDBOX: &str = "sandbox";
const CLIENTS: &str = "clients";

/// Where a service that runs can be reached.
pub fn address(name: &str) -> anyhow::Result<String> {
    let path = Places::find()?.file(name, "url");
    std::fs::read_to_string(path)
        .with_context(|| format!("{name} does not run; start it with `cargo xtask services up`"))
}

/// A server that tests need.
trait Service {
    fn name(&self) -> &'static str;

    /// Installs, makes and starts what is missing, and waits until it is well.
    fn up(&self) -> anyhow::Result<()>;

    /// Stops it if it runs. Says whether it did.
    fn down(&self) -> anyhow::Result<bool>;

    fn status(&self) -> anyhow::Result<Status>;
}

fn all(places: &Places) -> Vec<Box<dyn Service>> {
    vec![
        Box::new(postgres::Postgres::new(places)),
        Box::new(redis::Redis::new(places)),
        Box::new(Restate::shared(places, Layout::Single)),
        Box::new(mcp::Mcp::new(places)),
        Box::new(sandbox::Sandbox::new(places)),
        Box::new(clients::Clients::new(places)),
        Box::new(google::Google::new(places)),
        Box::new(mail::Mail::new(places)),
        Box::new(Restate::shared(places, Layout::Cluster)),
        Box::new(model::Model::new(places, &model::SMALL)),
        Box::new(model::Model::new(places, &model::EMBEDDINGS)),
        Box::new(model::Model::new(places, &model::LARGE)),
        Box::new(phoenix::Phoenix::new(places)),
    ]
}

/// Does what `cargo xtask services` was asked for.
pub fn run(action: Action) -> anyhow::Result<()> {
    let places = Places::find()?;
    let services = all(&places);
    match action {
        Action::Up(names) => {
            let _lock = places.lock()?;
            chosen(&services, &names).try_for_each(|service| up(&places, service))
        }
        Action::Down(names) => {
            let _lock = places.lock()?;
            chosen(&services, &names).try_for_each(|service| down(&places, service))
        }
        Action::Status { json } => {
            let found = services
                .iter()
                .map(|service| Ok((service.name(), service.status()?)))
                .collect::<anyhow::Result<Vec<_>>>()?;
            match json {
                true => print_json(&found),
                false => print_lines(&found),
            }
            Ok(())
        }
        Action::Env => {
            for service in &services {
                print_exports(service.name(), &service.status()?);
            }
            Ok(())
        }
        Action::Drill => drill::run(),
    }
}

fn chosen<'a>(
    services: &'a [Box<dyn Service>],
    names: &'a [String],
) -> impl Iterator<Item = &'a dyn Service> {
    let services = services.iter().map(Box::as_ref);
    services.filter(|service| names.iter().any(|name| name == service.name()))
}

fn up(places: &Places, service: &dyn Service) -> anyhow::Result<()> {
    let name = service.name();
    service
        .up()
        .with_context(|| format!("{name} cannot be started"))?;
    let status = service.status()?;
    places.publish(name, &status)?;
    for line in status.lines(name) {
        eprintln!("{line}");
    }
    Ok(())
}

fn down(places: &Places, service: &dyn Service) -> anyhow::Result<()> {
    let name = service.name();
    // First, so that no test is sent to a server that is going down.
    places.withdraw(name)?;
    let ran = service
        .down()
        .with_context(|| format!("{name} cannot be stopped"))?;
    eprintln!("{name}: {}", if ran { "stopped" } else { "did not run" });
    Ok(())
}

/// Where services keep things.
#[derive(Debug)]
struct Places {
    /// Of whoever asks: what tests read about each service, and the folders of those that run as whoever asks.
    addresses: PathBuf,
    /// Of whoever PostgreSQL runs as.
    data: PathBuf,
    account: Account,
}

impl Places {
    fn find() -> anyhow::Result<Self> {
        let addresses = cache()?.join("services");
        std::fs::create_dir_all(&addresses)
            .with_context(|| format!("{} cannot be made", addresses.display()))?;
        let account = Account::find();
        // A home folder is often closed to the account the servers run as; the folder for temporary files is not.
        let data = std::env::temp_dir().join(format!("superstep-services-{}", account.caller()));
        Ok(Self {
            addresses,
            data,
            account,
        })
    }

    /// Two at once would both find nothing running.
    fn lock(&self) -> anyhow::Result<File> {
        let path = self.addresses.join("lock");
        let lock =
            File::create(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            eprintln!("waiting for another `cargo xtask services` to end");
            lock.lock()?;
        }
        Ok(lock)
    }

    /// `NAME.json` tells all; `NAME.url` is there where one address is all there is to know.
    fn publish(&self, name: &str, status: &Status) -> anyhow::Result<()> {
        let write = |path: PathBuf, text: &str| {
            std::fs::write(&path, text)
                .with_context(|| format!("{} cannot be written", path.display()))
        };
        if let Some(url) = status.only_url() {
            write(self.file(name, "url"), url)?;
        }
        write(self.file(name, "json"), &status.to_json(name).to_string())
    }

    fn withdraw(&self, name: &str) -> anyhow::Result<()> {
        for kind in ["url", "json"] {
            match std::fs::remove_file(self.file(name, kind)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.addresses.join(format!("{name}.{kind}"))
    }
}
