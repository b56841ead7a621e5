//! Many open streams: what each costs while nothing happens, and how soon what happens reaches it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value as Json;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::connection::Connection;
use super::server_process::ServerProcess;
use super::{open_files, prepared};
use crate::contest::quantile;
use crate::findings::Findings;
use crate::lab::Lab;
use crate::ours::served::graphs::now_us;
use crate::report::{Goal, Row};

pub(super) fn run(lab: &Lab, tokio: &Runtime, found: &mut Findings) -> anyhow::Result<()> {
    let streams = lab.size(10_000, 1_000);
    open_files::allow(streams)?;
    let folder = lab.fresh_folder()?;
    let threads = tokio.block_on(prepared::stamped(&folder, streams))?;
    // A fresh process: it has nothing of these threads in memory.
    let mut server = ServerProcess::over_file(lab, &folder)?;
    let address = server.address;
    // What the first streams make the server load is not what a stream costs.
    drop(tokio.block_on(open_all(address, &threads[..FIRST]))?);
    let before = server.usage()?.bytes;
    let begun = Instant::now();
    let watching = tokio.block_on(open_all(address, &threads))?;
    let opened_s = begun.elapsed().as_secs_f64();
    std::thread::sleep(REST);
    let kilobytes = |bytes: f64| (bytes - before) / streams as f64 / 1e3;
    found.rows.push(Row::new(
        format!("{streams} streams on as many threads: opened"),
        "s",
        opened_s,
    ));
    let each = Row::new(
        format!("{streams} open streams: memory of each"),
        "KB",
        kilobytes(server.usage()?.bytes),
    );
    found.push(each, Goal::AtMost(20.0));
    let idle = Row::new(
        format!("{streams} open streams: CPU at rest"),
        "% of a core",
        percent_at_rest(&mut server, lab.size(20, 5))?,
    );
    found.push(idle, Goal::AtMost(2.0));

    let steps = tokio.block_on(step_each(address, &threads, watching, 1))?;
    let work = format!("a step on each of {streams} threads: until its stream has it, p99");
    found.push(
        Row::new(work, "ms", quantile(&steps.late_ms, 0.99)),
        Goal::AtMost(1_000.0),
    );
    found.rows.push(Row::new(
        format!("a step on each of {streams} threads"),
        "steps/s",
        streams as f64 / steps.wall_s,
    ));
    found.rows.push(Row::new(
        format!("{streams} open streams after a step: memory of each"),
        "KB",
        kilobytes(server.usage()?.bytes),
    ));
    drop(steps);
    watchers_of_one(lab, tokio, address, &threads[0], found)
}

/// Returns what a server uses of a core while nobody asks it for anything.
fn percent_at_rest(server: &mut ServerProcess, seconds: usize) -> anyhow::Result<f64> {
    server.usage()?;
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let used = server.usage()?;
    Ok(used.cpu_s / begun.elapsed().as_secs_f64() * 100.0)
}

/// Many clients watch one thread. The server reads and decodes what happens on it once, however many they are.
fn watchers_of_one(
    lab: &Lab,
    tokio: &Runtime,
    address: SocketAddr,
    thread: &str,
    found: &mut Findings,
) -> anyhow::Result<()> {
    let watchers = lab.size(1_000, 100);
    let (alone, _) = tokio.block_on(watched_step(address, thread, 1, 2))?;
    let (together, late_ms) = tokio.block_on(watched_step(address, thread, watchers, 3))?;
    if together.is_nan() {
        eprintln!("`{METRICS}` has no `{DECODED}`, so what a watcher costs cannot be counted");
    }
    let work = format!("{watchers} watchers of one thread, one step");
    // A count is the same on a busy machine.
    let decoded = Row::new(work.clone(), "entries decoded", together);
    found
        .rows
        .push(decoded.against("1 watcher", alone).ratio_at_most(1.0));
    found.rows.push(Row::new(
        format!("{work}: until a stream has it, p99"),
        "ms",
        quantile(&late_ms, 0.99),
    ));
    Ok(())
}

/// Runs one step on a thread with so many watchers. Returns how many entries of the log the server decoded for them, and how
/// late each of them got the step.
async fn watched_step(
    address: SocketAddr,
    thread: &str,
    watchers: usize,
    number: u64,
) -> anyhow::Result<(f64, Vec<f64>)> {
    let thread = thread.to_owned();
    let watching = open_all(address, &vec![thread.clone(); watchers]).await?;
    let before = decoded(address).await?;
    let steps = step_each(address, &[thread], watching, number).await?;
    let after = decoded(address).await?;
    Ok((after - before, steps.late_ms))
}

/// Returns how many entries of logs the server has decoded for its streams; not a number if it does not tell.
async fn decoded(address: SocketAddr) -> anyhow::Result<f64> {
    let mut connection = Connection::open(address).await?;
    let figures = connection.json("GET", METRICS, "").await?;
    Ok(figures[DECODED].as_f64().unwrap_or(f64::NAN))
}

/// What came of a step on each thread.
struct StepArrivals {
    /// How long it took until all steps had run.
    wall_s: f64,
    /// From the step, before it was stored, to its arrival at each stream.
    late_ms: Vec<f64>,
    /// The streams, still open.
    _watching: Vec<Connection>,
}

/// Runs one step on each thread, by a few clients one after the other, and waits until every stream has seen one.
async fn step_each(
    address: SocketAddr,
    threads: &[String],
    watching: Vec<Connection>,
    number: u64,
) -> anyhow::Result<StepArrivals> {
    let mut arriving = JoinSet::new();
    for connection in watching {
        arriving.spawn(arrival(connection, number));
    }
    let begun = Instant::now();
    run_each(address, threads, number).await?;
    let wall_s = begun.elapsed().as_secs_f64();
    let (mut watching, mut late_ms) = (Vec::new(), Vec::new());
    while let Some(arrived) = arriving.join_next().await {
        let (connection, late) = arrived??;
        watching.push(connection);
        late_ms.push(late);
    }
    Ok(StepArrivals {
        wall_s,
        late_ms,
        _watching: watching,
    })
}

async fn run_each(address: SocketAddr, threads: &[String], number: u64) -> anyhow::Result<()> {
    let (threads, next): (Arc<[String]>, Arc<AtomicUsize>) = (threads.into(), Arc::default());
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS.min(threads.len()) {
        let (threads, next) = (threads.clone(), next.clone());
        clients.spawn(async move {
            let mut connection = Connection::open(address).await?;
            let body = format!(r#"{{"assistant_id":"stamp","input":{{"number":{number}}}}}"#);
            while let Some(thread) = threads.get(next.fetch_add(1, Ordering::Relaxed)) {
                let path = format!("/threads/{thread}/runs/wait");
                connection.call("POST", &path, &body).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(())
}

/// Waits for the step of this number. Returns the stream, and how late it got the step in milliseconds.
async fn arrival(mut connection: Connection, number: u64) -> anyhow::Result<(Connection, f64)> {
    let late = tokio::time::timeout(PATIENCE, late_ms(&mut connection, number)).await;
    let late = late.context("a step did not reach its stream")??;
    Ok((connection, late))
}

async fn late_ms(connection: &mut Connection, number: u64) -> anyhow::Result<f64> {
    while let Some(event) = connection.next_event().await? {
        let arrived = now_us();
        if event.name != "values" {
            continue;
        }
        let state: Json = serde_json::from_str(&event.data)?;
        if state["done"] == number {
            let at = state["at"].as_u64().context("a step says when it ran")?;
            return Ok(arrived.saturating_sub(at) as f64 / 1e3);
        }
    }
    bail!("a stream ended before its step came")
}

/// Opens the streams of these threads, a few at a time.
async fn open_all(address: SocketAddr, threads: &[String]) -> anyhow::Result<Vec<Connection>> {
    let mut opening = JoinSet::new();
    for part in threads.chunks(threads.len().div_ceil(CLIENTS).max(1)) {
        let part = part.to_vec();
        opening.spawn(async move {
            let mut open = Vec::with_capacity(part.len());
            for thread in &part {
                let mut connection = Connection::open(address).await?;
                let path = format!("/threads/{thread}/stream");
                connection.open_stream("GET", &path, "").await?;
                open.push(connection);
            }
            anyhow::Ok(open)
        });
    }
    let mut open = Vec::with_capacity(threads.len());
    while let Some(part) = opening.join_next().await {
        open.extend(part??);
    }
    Ok(open)
}

const CLIENTS: usize = 16;
/// Number of streams that are opened and closed before the memory is looked at.
const FIRST: usize = 20;
const REST: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(300);
const METRICS: &str = "/metrics?format=json";
/// Name of the counter, see `Counters` of the server.
const DECODED: &str = "streamed_entries";
