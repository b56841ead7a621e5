//! The databases of one command. None outlives it.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::Backend;
use crate::services;
use crate::workspace::output_of;

#[derive(Debug)]
pub(super) enum Database {
    /// A file for each try: making one costs nothing.
    Files(TempDir),
    /// One schema for all tries, for making its tables takes seconds. They are told apart by their threads.
    Schema(Schema),
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
            Backend::Postgres => Ok(Self::Schema(Schema {
                url: services::address("postgres")?,
                // Of this process, and of nobody else's trials.
                name: format!("crash_{}", std::process::id()),
            })),
        }
    }

    /// Where a try finds nothing of another one. Tries are numbered from 1; the one before the last may be forgotten.
    pub(super) fn fresh(&self, number: u64) -> anyhow::Result<Address> {
        match self {
            Self::Files(folder) => fresh_file(folder.path(), number),
            Self::Schema(schema) => Ok(schema.address()),
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
