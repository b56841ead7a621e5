//! One tenant sends ten times the requests that it may: what the others notice of it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::interval;

use super::connection::Connection;
use super::load::{self, RUN};
use super::server_process::ServerProcess;
use crate::contest::quantile;
use crate::findings::Findings;
use crate::lab::Lab;
use crate::ours::served::KEYS_FILE;
use crate::report::{Goal, Row};

pub(super) fn run(lab: &Lab, tokio: &Runtime, found: &mut Findings) -> anyhow::Result<()> {
    let folder = lab.fresh_folder()?;
    let server = ServerProcess::for_tenants(lab, &folder, TENANTS, LIMIT)?;
    let keys = std::fs::read_to_string(folder.join(KEYS_FILE))?;
    let keys: Vec<String> = keys.lines().map(str::to_owned).collect();
    let (flooding, others) = keys.split_first().context("there are tenants")?;
    let time = Duration::from_secs(lab.size(8, 2) as u64);
    let (mut quiet, mut flooded, mut refused) = (Vec::new(), Vec::new(), 0);
    // The two take turns, so that both have the same weather. The first turn warms up.
    for round in 0..=lab.rounds() {
        let calm = tokio.block_on(work_of(server.address, others, time))?;
        let (storm, flood) = tokio.block_on(async {
            let storm = work_of(server.address, others, time);
            let flood = flood(server.address, flooding, time);
            tokio::try_join!(storm, flood)
        })?;
        if round == 0 {
            continue;
        }
        let (calm, storm) = (quantile(&calm, 0.99), quantile(&storm, 0.99));
        eprintln!(
            "tenants, round {round}: p99 {calm:.2} ms, with {} of {} requests of another refused {storm:.2} ms",
            flood.refused, flood.sent
        );
        refused += flood.refused;
        quiet.push(calm);
        flooded.push(storm);
    }
    ensure!(refused > 0, "no request was refused");
    let row = Row::new(
        "one tenant sends 10 times its limit: p99 of the runs of others",
        "ms",
        quantile(&flooded, 0.5),
    );
    let row = row.against("without it, ms", quantile(&quiet, 0.5));
    found.push(row, Goal::RatioAtMost(1.5));
    Ok(())
}

/// What each of these tenants does: runs, one after the other, well below its limit. Returns how long each took, in milliseconds.
async fn work_of(address: SocketAddr, keys: &[String], time: Duration) -> anyhow::Result<Vec<f64>> {
    let begun = Instant::now();
    let mut working = JoinSet::new();
    for key in keys {
        let key = key.clone();
        working.spawn(async move {
            let mut connection = Connection::open_with_key(address, &key).await?;
            let mut ticks = interval(WORK);
            let mut times = Vec::new();
            while begun.elapsed() < time {
                ticks.tick().await;
                let took = load::run(&mut connection).await?;
                times.push(took.as_secs_f64() * 1e3);
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(tenant) = working.join_next().await {
        times.extend(tenant??);
    }
    Ok(times)
}

/// What a flood came to.
#[derive(Debug, Default)]
struct Flood {
    sent: usize,
    refused: usize,
}

/// Sends ten times as many requests as a tenant may, over several connections. Each creates a run, the costliest thing that a
/// request can ask for.
async fn flood(address: SocketAddr, key: &str, time: Duration) -> anyhow::Result<Flood> {
    let begun = Instant::now();
    let mut flooding = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let key = key.to_owned();
        flooding.spawn(async move {
            let mut connection = Connection::open_with_key(address, &key).await?;
            let mut ticks = interval(Duration::from_secs(1) * CONNECTIONS / (10 * LIMIT));
            let mut flood = Flood::default();
            while begun.elapsed() < time {
                ticks.tick().await;
                let status = connection.status_of("POST", "/runs", RUN).await?;
                ensure!(status == 200 || status == 429, "the status is {status}");
                flood.sent += 1;
                flood.refused += usize::from(status == 429);
            }
            anyhow::Ok(flood)
        });
    }
    let mut all = Flood::default();
    while let Some(flood) = flooding.join_next().await {
        let flood = flood??;
        all.sent += flood.sent;
        all.refused += flood.refused;
    }
    Ok(all)
}

const TENANTS: usize = 5;
/// Requests per second of each tenant. Its runs at once are limited too, see `served.rs`.
const LIMIT: u32 = 100;
const CONNECTIONS: u32 = 20;
/// How often each of the others begins a run, which is two requests.
const WORK: Duration = Duration::from_millis(50);
