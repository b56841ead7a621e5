//! The servers that tests need, started on loopback with ports and folders of their own.
//!
//! Each service is one struct in the list of [`all`]; what it has running is found on the disk and among the
//! processes, so `up` after `up` changes nothing, `down` stops what `up` started and nothing else, and both
//! survive a crash in between. What clients need to know is written to a folder that tests read.

mod account;
mod cluster;
mod postgres;

pub(crate) use cluster::{Cluster, PrivateCluster, Stop};

use std::fs::File;
use std::path::PathBuf;

use anyhow::Context;

use account::Account;

use crate::workspace::cache;

/// What to do with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Up,
    Down,
    Status,
}

/// Where a service that runs can be reached.
pub(crate) fn address(name: &str) -> anyhow::Result<String> {
    let path = Places::find()?.address_file(name);
    std::fs::read_to_string(path)
        .with_context(|| format!("{name} does not run; start it with `cargo xtask services up`"))
}

/// A server that tests need.
trait Service {
    fn name(&self) -> &'static str;

    /// Installs, makes and starts what is missing. Gives the address for clients.
    fn up(&self) -> anyhow::Result<String>;

    /// Stops it if it runs. Says whether it did.
    fn down(&self) -> anyhow::Result<bool>;

    /// The address for clients, if it runs.
    fn status(&self) -> anyhow::Result<Option<String>>;
}

fn all(places: &Places) -> Vec<Box<dyn Service>> {
    vec![Box::new(postgres::Postgres::new(places))]
}

pub(crate) fn run(action: Action) -> anyhow::Result<()> {
    let places = Places::find()?;
    // Two at once would both find nothing running.
    let lock = places.addresses.join("lock");
    let lock = File::create(&lock).with_context(|| format!("{} cannot be made", lock.display()))?;
    lock.lock()?;
    for service in all(&places) {
        let name = service.name();
        match action {
            Action::Up => {
                let address = service
                    .up()
                    .with_context(|| format!("{name} cannot be started"))?;
                places.publish(name, &address)?;
                eprintln!("{name}: runs, {address}");
            }
            Action::Down => {
                // First, so that no test is sent to a server that is going down.
                places.withdraw(name)?;
                let ran = service
                    .down()
                    .with_context(|| format!("{name} cannot be stopped"))?;
                eprintln!("{name}: {}", if ran { "stopped" } else { "did not run" });
            }
            Action::Status => match service.status()? {
                Some(address) => eprintln!("{name}: runs, {address}"),
                None => eprintln!("{name}: does not run; `cargo xtask services up` starts it"),
            },
        }
    }
    Ok(())
}

/// Where services keep things.
#[derive(Debug)]
struct Places {
    /// Of whoever asks: one file per service with its address, which tests read.
    addresses: PathBuf,
    /// Of whoever the servers run as.
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

    fn publish(&self, name: &str, address: &str) -> anyhow::Result<()> {
        let path = self.address_file(name);
        std::fs::write(&path, address)
            .with_context(|| format!("{} cannot be written", path.display()))
    }

    fn withdraw(&self, name: &str) -> anyhow::Result<()> {
        match std::fs::remove_file(self.address_file(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn address_file(&self, name: &str) -> PathBuf {
        self.addresses.join(format!("{name}.url"))
    }
}
