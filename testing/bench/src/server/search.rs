//! Searches among many threads, and a long history, over HTTP.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::ensure;
use serde_json::Value as Json;
use tokio::runtime::Runtime;

use super::connection::Connection;
use super::prepared;
use super::server_process::ServerProcess;
use crate::contest::quantile;
use crate::findings::Findings;
use crate::lab::Lab;
use crate::report::{Goal, Row};

pub(super) fn run(lab: &Lab, tokio: &Runtime, found: &mut Findings) -> anyhow::Result<()> {
    let folder = lab.fresh_folder()?;
    let (threads, steps) = (lab.size(100_000, 10_000), lab.size(1_000, 100));
    eprintln!("{threads} threads to search among");
    tokio.block_on(prepared::orders(&folder, threads))?;
    let long = tokio.block_on(prepared::counted(&folder, steps as u64))?;
    let server = ServerProcess::over_file(lab, &folder)?;
    let times = lab.size(300, 50);
    for &(name, body, rows) in SEARCHES {
        let wanted = ListRequest {
            request: ("/threads/search", body),
            rows,
        };
        let took = tokio.block_on(wanted.times_ms(server.address, times))?;
        let work = format!("{threads} threads: {name}, p99");
        found.push(
            Row::new(work, "ms", quantile(&took, 0.99)),
            Goal::AtMost(50.0),
        );
    }
    let (path, body) = (
        format!("/threads/{long}/history"),
        format!(r#"{{"limit":{steps}}}"#),
    );
    let wanted = ListRequest {
        request: (path.as_str(), body.as_str()),
        rows: steps,
    };
    let took = tokio.block_on(wanted.times_ms(server.address, lab.size(50, 5)))?;
    let work = format!("{steps} checkpoints of a history, p50");
    found.push(
        Row::new(work, "ms", quantile(&took, 0.5)),
        Goal::AtMost(200.0),
    );
    Ok(())
}

/// A request for a list, and how long the list must be.
struct ListRequest<'a> {
    request: (&'a str, &'a str),
    rows: usize,
}

impl ListRequest<'_> {
    /// Asks so many times, one after the other, and once before that does not count.
    async fn times_ms(&self, address: SocketAddr, times: usize) -> anyhow::Result<Vec<f64>> {
        let mut connection = Connection::open(address).await?;
        let (path, body) = self.request;
        let mut took = Vec::new();
        for _ in 0..=times {
            let begun = Instant::now();
            let reply = connection.call("POST", path, body).await?;
            took.push(begun.elapsed().as_secs_f64() * 1e3);
            let list: Vec<Json> = serde_json::from_slice(&reply)?;
            let (found, rows) = (list.len(), self.rows);
            ensure!(found == rows, "{path} {body}: {found} rows, not {rows}");
        }
        took.remove(0);
        Ok(took)
    }
}

/// What clients search for, with the number of rows that the answer has.
const SEARCHES: &[(&str, &str, usize)] = &[
    ("the newest page", r#"{"sort_by":"updated_at"}"#, 10),
    (
        "a value of one in fifty, oldest first",
        r#"{"values":{"city":"city-8"},"sort_by":"created_at","sort_order":"asc"}"#,
        10,
    ),
    (
        "an owner's threads that wait, by id",
        r#"{"metadata":{"owner":"user-8"},"status":"interrupted","sort_by":"thread_id","limit":5}"#,
        5,
    ),
    (
        "what Agent Inbox asks for",
        r#"{"metadata":{"graph_id":"order"},"status":"interrupted","limit":10,"offset":0}"#,
        10,
    ),
];
