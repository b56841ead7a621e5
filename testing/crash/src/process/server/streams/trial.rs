//! One stream: its runs, the client that is cut off, and the one that is not.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde_json::{Value as Json, json};

use crate::process::server::api::{Api, Weather};
use crate::process::server::http::HttpRequest;
use crate::process::server::load::PATIENCE;
use crate::process::server::sse::StreamedEvent;
use crate::process::server::watcher::{StreamKind, Watched, Watcher};
use harness::prng::Prng;

/// One stream, and how it is cut.
pub(super) struct StreamTrial {
    pub(super) port: u16,
    pub(super) kind: StreamKind,
    /// After how many bytes connections are cut, the first one last.
    pub(super) cuts: Vec<u64>,
    /// What the runs are submitted with.
    pub(super) body: Json,
    pub(super) thread: String,
    pub(super) is_killed: bool,
    pub(super) mutant: Option<String>,
}

/// What both clients saw.
pub(super) struct WatchedStream {
    pub(super) pieced: Vec<StreamedEvent>,
    pub(super) whole: Vec<StreamedEvent>,
    pub(super) cuts: u64,
    pub(super) lost: u64,
    /// Of the client that was cut off.
    pub(super) bytes: u64,
}

impl StreamTrial {
    /// Submits the runs and watches them twice. `begun` counts the trials whose runs are accepted; `is_past_the_kill` says that the
    /// server will not be killed any more.
    pub(super) fn perform(
        mut self,
        begun: &AtomicU64,
        is_past_the_kill: &AtomicBool,
    ) -> anyhow::Result<WatchedStream> {
        let mut api = Api::new(&[self.port], Weather::Kills, PATIENCE);
        api.create_thread(&self.thread);
        let (pieced, whole) = match self.kind {
            StreamKind::Run => self.watch_run(&mut api, begun),
            StreamKind::Thread | StreamKind::Protocol => self.watch_thread(&mut api, begun),
        }?;
        let whole = match whole {
            Some(whole) => whole,
            None => {
                // After a kill, no client has read everything over one connection: one reads it now. A stream may have ended
                // before the kill.
                while !is_past_the_kill.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let mut whole = Watcher::new(self.port, self.watched(pieced.run()), None);
                whole.continue_to_end(&mut Vec::new())?;
                whole
            }
        };
        if let Some((kind, what)) = api.faults.first() {
            bail!("{kind}: {what}");
        }
        if whole.lost > 0 {
            bail!("the server broke a connection that nobody cut");
        }
        Ok(WatchedStream {
            cuts: pieced.cuts,
            lost: pieced.lost,
            bytes: pieced.bytes,
            pieced: pieced.events,
            whole: whole.events,
        })
    }

    /// A run whose stream is the reply to the request that submits it.
    fn watch_run(
        &mut self,
        api: &mut Api,
        begun: &AtomicU64,
    ) -> anyhow::Result<(Watcher, Option<Watcher>)> {
        let mut cuts = std::mem::take(&mut self.cuts);
        let path = format!("/threads/{}/runs/stream", self.thread);
        let request = HttpRequest::post(path, self.body.clone());
        let mut pieced = Watcher::new(self.port, self.watched(None), self.mutant.as_deref());
        let find_run = || {
            let rows = api.runs(&self.thread).unwrap_or_default();
            let run = rows.first().and_then(|row| row["run_id"].as_str());
            run.map(str::to_owned).context("the run was not stored")
        };
        std::thread::scope(|scope| -> anyhow::Result<_> {
            let mut other = None;
            let on_run = |run: &str| {
                begun.fetch_add(1, Ordering::SeqCst);
                if !self.is_killed {
                    let watched = self.watched(Some(run.to_owned()));
                    let port = self.port;
                    other = Some(scope.spawn(move || watch_whole(port, watched)));
                }
            };
            let is_complete = pieced.submit_and_stream(request, cuts.pop(), find_run, on_run)?;
            if !is_complete {
                pieced.continue_to_end(&mut cuts)?;
            }
            let whole = match other {
                Some(other) => Some(other.join().map_err(|_| anyhow!("a client panicked"))??),
                None => None,
            };
            Ok((pieced, whole))
        })
    }

    /// A thread that is watched before anything runs on it, and two runs on it.
    fn watch_thread(
        &mut self,
        api: &mut Api,
        begun: &AtomicU64,
    ) -> anyhow::Result<(Watcher, Option<Watcher>)> {
        let mut cuts = std::mem::take(&mut self.cuts);
        let mut pieced = Watcher::new(self.port, self.watched(None), self.mutant.as_deref());
        let mut whole = Watcher::new(self.port, self.watched(None), None);
        let (opened, opened_whole) = (pieced.open(cuts.pop()), whole.open(None));
        for number in 0..self.kind.runs() {
            let path = format!("/threads/{}/runs", self.thread);
            let key = format!("{}-{number}", self.thread);
            let request = HttpRequest::post(path, self.body.clone()).header("idempotency-key", key);
            match api.insist(&request) {
                Some((head, _)) if head.is_success() => {}
                other => bail!("a run was not accepted: {other:?}"),
            }
        }
        begun.fetch_add(1, Ordering::SeqCst);
        std::thread::scope(|scope| -> anyhow::Result<_> {
            let is_killed = self.is_killed;
            let other = scope.spawn(move || -> anyhow::Result<Option<Watcher>> {
                if is_killed {
                    return Ok(None);
                }
                if !whole.read(opened_whole)? {
                    whole.continue_to_end(&mut Vec::new())?;
                }
                Ok(Some(whole))
            });
            if !pieced.read(opened)? {
                pieced.continue_to_end(&mut cuts)?;
            }
            let whole = other.join().map_err(|_| anyhow!("a client panicked"))??;
            Ok((pieced, whole))
        })
    }

    fn watched(&self, run: Option<String>) -> Watched {
        Watched {
            kind: self.kind,
            thread: self.thread.clone(),
            run,
        }
    }
}

/// Reads a stream over one connection.
fn watch_whole(port: u16, watched: Watched) -> anyhow::Result<Watcher> {
    let mut whole = Watcher::new(port, watched, None);
    whole.continue_to_end(&mut Vec::new())?;
    Ok(whole)
}

/// Returns what a run of the graph `chat` is submitted with. What it streams depends on the modes: one message in growing parts,
/// in tokens or not at all.
pub(super) fn run_body(prng: &mut Prng) -> Json {
    let modes = *prng.pick(&MODES);
    json!({
        "assistant_id": "chat",
        "input": { "prompt": prng.text(12), "asks": prng.below(4) == 0 },
        "stream_mode": modes,
    })
}

/// Sets of modes in which runs are streamed.
const MODES: [&[&str]; 3] = [
    &["values", "messages-tuple", "custom"],
    &["updates", "messages", "tasks"],
    &["values", "updates", "checkpoints", "messages-tuple"],
];
