//! The load: what clients of a server do, the same for every server.
//!
//! Each client has a connection that it keeps, creates a thread, runs the chain on it, and begins again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value as Json;
use tokio::task::JoinSet;

use super::connection::Connection;
use crate::ours::served::graphs::NODES;

/// What a client does again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientAction {
    /// Creates a thread and waits for a run on it. Both requests count.
    Run,
    /// Streams a run on a new thread. What counts is the time from the request to the first event with a state.
    FirstEvent,
}

/// What all clients did together.
#[derive(Debug, Clone, Default)]
pub(super) struct LoadResult {
    pub(super) wall_s: f64,
    /// How long each action took, in seconds.
    pub(super) times_s: Vec<f64>,
}

/// Lets so many clients at once repeat an action until the time is over.
pub(super) async fn load(
    address: SocketAddr,
    clients: usize,
    action: ClientAction,
    time: Duration,
) -> anyhow::Result<LoadResult> {
    let begun = Instant::now();
    let mut working = JoinSet::new();
    for _ in 0..clients {
        working.spawn(async move {
            let mut connection = Connection::open(address).await?;
            let mut times_s = Vec::new();
            while times_s.is_empty() || begun.elapsed() < time {
                let took = action.carry_out(&mut connection).await?;
                times_s.push(took.as_secs_f64());
            }
            anyhow::Ok(times_s)
        });
    }
    let mut times_s = Vec::new();
    while let Some(client) = working.join_next().await {
        times_s.extend(client??);
    }
    Ok(LoadResult {
        wall_s: begun.elapsed().as_secs_f64(),
        times_s,
    })
}

impl ClientAction {
    async fn carry_out(self, connection: &mut Connection) -> anyhow::Result<Duration> {
        match self {
            ClientAction::Run => run(connection).await,
            ClientAction::FirstEvent => first_event(connection).await,
        }
    }
}

pub(super) async fn run(connection: &mut Connection) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let thread = new_thread(connection).await?;
    let path = format!("/threads/{thread}/runs/wait");
    let state = connection.json("POST", &path, RUN).await?;
    let took = begun.elapsed();
    ensure!(state["n"] == NODES, "{path}: the state is {state}");
    Ok(took)
}

async fn first_event(connection: &mut Connection) -> anyhow::Result<Duration> {
    let thread = new_thread(connection).await?;
    let path = format!("/threads/{thread}/runs/stream");
    let (begun, mut took, mut last) = (Instant::now(), None, String::new());
    connection.open_stream("POST", &path, STREAM).await?;
    while let Some(event) = connection.next_event().await? {
        if event.name == "values" {
            took.get_or_insert_with(|| begun.elapsed());
            last = event.data;
        }
    }
    let state: Json = serde_json::from_str(&last).with_context(|| format!("{path}: no state"))?;
    ensure!(state["n"] == NODES, "{path}: the state is {state}");
    took.context("a state came, so its time was taken")
}

async fn new_thread(connection: &mut Connection) -> anyhow::Result<String> {
    let thread = connection.json("POST", "/threads", "{}").await?;
    let id = thread["thread_id"].as_str();
    Ok(id.context("a thread has an id")?.to_owned())
}

/// The body of a request for a run of the chain.
pub(super) const RUN: &str = r#"{"assistant_id":"chain","input":{"n":0,"log":[]}}"#;
const STREAM: &str =
    r#"{"assistant_id":"chain","input":{"n":0,"log":[]},"stream_mode":["values"]}"#;
