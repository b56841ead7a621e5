//! The databases of one command. None outlives it.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use super::Backend;
use harness::workspace::output_of;

#[derive(Debug)]
pub(super) enum Database {
    /// A file for each try: making one costs nothing.
    Files(TempDir),
    /// One schema for all tries, for making its tables takes seconds. They are told apart by their threads.
    Schema(Schema),
    /// A server that the trial made and looks after.
    Server(Address),
}

/// Where a worker finds its database.
#[derive(Debug, Clone)]
pub(super) struct Address(String);

/// A schema of a PostgreSQL server, dropped with this value.
#[derive(Debug)]
pub(super) struct Schema {
    url: String,
    name: String,
}

impl Database {
    pub(super) fn new(backend: Backend) -> anyhow::Result<Self> {
        match backend {
            Backend::Sqlite => Ok(Self::Files(TempDir::with_prefix("superstep-crash-")?)),
            Backend::Postgres | Backend::Cluster => Ok(Self::Schema(Schema {
                url: services::address("postgres")?,
                name: fresh_name(),
            })),
        }
    }

    /// All of a server that is nobody else's and goes away with its data.
    pub(super) fn on_server(url: &str) -> Self {
        Self::Server(Address(format!("postgres:superstep:{url}")))
    }

    /// Where a try finds nothing of another one. Tries are numbered from 1; the one before the last may be forgotten.
    pub(super) fn fresh(&self, number: u64) -> anyhow::Result<Address> {
        match self {
            Self::Files(folder) => fresh_file(folder.path(), number),
            Self::Schema(schema) => Ok(schema.address()),
            Self::Server(address) => Ok(address.clone()),
        }
    }
}

fn fresh_file(folder: &Path, number: u64) -> anyhow::Result<Address> {
    let of_try = |number: u64| folder.join(number.to_string());
    if number > 2 {
        std::fs::remove_dir_all(of_try(number - 2))?;
    }
    std::fs::create_dir(of_try(number))?;
    let path = of_try(number).join("threads.db");
    Ok(Address(format!("sqlite:{}", path.display())))
}

/// Of these trials and of no others, in this process or another one.
fn fresh_name() -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    format!("crash_{}_{made}", std::process::id())
}

impl Address {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Schema {
    fn address(&self) -> Address {
        Address(format!("postgres:{}:{}", self.name, self.url))
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let statement = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        let mut psql = Command::new("psql");
        psql.args([&self.url, "--quiet", "--no-psqlrc", "--command", &statement]);
        psql.env("PGOPTIONS", "--client-min-messages=warning");
        // What is left behind is in nobody's way: the next command has a schema of its own.
        let _ = output_of(&mut psql);
    }
}
