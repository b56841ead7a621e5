//! A database of PostgreSQL for one side, so that nobody's tables meet another's. It goes when it is dropped.

use std::process::Command;

use harness::workspace::output_of;

#[derive(Debug)]
pub(super) struct Database {
    name: String,
    url: String,
}

impl Database {
    /// Makes the database of that number: of this process, and of nobody else's benches.
    pub(super) fn create(number: u32) -> anyhow::Result<Self> {
        let server = services::address("postgres")?;
        let name = format!("bench_{}_{number}", std::process::id());
        let before = server
            .rsplit_once('/')
            .map_or(server.as_str(), |(server, _)| server);
        let url = format!("{before}/{name}");
        ask(&server, &format!("CREATE DATABASE {name}"))?;
        Ok(Self { name, url })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // What is left behind is in nobody's way: the next bench has databases of its own.
        let _ = services::address("postgres").and_then(|server| ask(&server, &drop));
    }
}

/// What a database answers, without headings.
pub(super) fn ask(url: &str, statement: &str) -> anyhow::Result<String> {
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
