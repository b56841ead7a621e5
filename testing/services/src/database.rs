//! A PostgreSQL database for one measurement, so that its tables meet no others. It is deleted when it is dropped.

use std::process::Command;

use harness::workspace::output_of;

#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
}

impl Database {
    /// Creates the database of this number, which no other process uses.
    pub fn create(number: u32) -> anyhow::Result<Self> {
        let server = crate::address("postgres")?;
        let name = format!("bench_{}_{number}", std::process::id());
        let before = server
            .rsplit_once('/')
            .map_or(server.as_str(), |(server, _)| server);
        let url = format!("{before}/{name}");
        ask(&server, &format!("CREATE DATABASE {name}"))?;
        Ok(Self { name, url })
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // A database that stays is in no one's way: the next process has its own.
        let _ = crate::address("postgres").and_then(|server| ask(&server, &drop));
    }
}

/// Returns what a database answers, without headings.
pub fn ask(url: &str, statement: &str) -> anyhow::Result<String> {
    let mut psql = Command::new("psql");
    psql.arg(url)
        .args(["--quiet", "--no-psqlrc", "--tuples-only"]);
    psql.args([
        "--no-align",
        "--set",
        "ON_ERROR_STOP=1",
        "--command",
        statement,
    ]);
    psql.env("PGOPTIONS", "--client-min-messages=warning");
    Ok(output_of(&mut psql)?.trim().to_owned())
}
