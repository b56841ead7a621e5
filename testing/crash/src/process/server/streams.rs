//! Streams that are cut at random bytes and resumed with the id of the last event, tokens included.
//!
//! While the server lives, what a client reads over all its connections is what another client reads over one: every event, in
//! the same order, under the same id. Only `metadata` is left out: it opens each connection to the stream of a run.
//!
//! If the server is killed in between, the promise is smaller, because tokens are not stored: what comes from the log is the
//! same, under the same ids; what nodes show while they run (messages in pieces, custom events) may be missing, may come again
//! when a node runs again, and a message may come as a whole instead. So there only events of the log are compared, with those
//! that a client reads from the beginning when the runs have ended.

mod compare;
mod trial;
mod uncut;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use free_ports::free_port;
use serde_json::{Value as Json, json};

use self::compare::difference;
use self::trial::{StreamTrial, WatchedStream, run_body};
pub(super) use self::uncut::{StreamCounts, watch_uncut};
use super::host::Host;
use super::load::{PATIENCE, random_uuid};
use super::sse::StreamedEvent;
use super::watcher::{StreamKind, draw_cuts};
use crate::process::lab::Lab;
use crate::process::tally::Tally;
use crate::process::{Found, Plan};
use harness::prng::Prng;

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let mut lab = Lab::new(plan)?;
    let store = lab.fresh_place("streams")?.store;
    let port = free_port();
    let mut streams = Streams {
        host: Host::start(&lab, &store, port, None)?,
        lab,
        plan,
        port,
        tally: Tally::new("streams", plan.trials, KINDS),
        figures: Figures::default(),
        calm_bytes: BTreeMap::new(),
    };
    streams.host.wait_until_ready()?;
    streams.calm_streams()?;
    let mut trial = 0;
    while trial < plan.trials {
        let end = plan.trials.min(trial + BATCH);
        streams.batch(trial, end)?;
        trial = end;
        streams.tally.progress(trial);
    }
    Ok(Found {
        violations: streams.tally.violations(),
        detail: streams.tally.detail(streams.figures.to_json()),
    })
}

struct Streams<'a> {
    lab: Lab,
    host: Host,
    plan: &'a Plan,
    port: u16,
    tally: Tally,
    figures: Figures,
    /// How many bytes a stream has that nobody cuts.
    calm_bytes: BTreeMap<StreamKind, u64>,
}

#[derive(Debug, Default)]
struct Figures {
    streams: BTreeMap<&'static str, u64>,
    killed: u64,
    cuts: u64,
    /// Streams whose connections all lasted to their ends.
    uncut: u64,
    connections_lost: u64,
    kills: u64,
    events: u64,
    tokens: u64,
    bytes: u64,
}

impl Figures {
    fn to_json(&self) -> Json {
        json!({
            "streams": self.streams,
            "streams_with_a_kill": self.killed,
            "streams_without_a_cut": self.uncut,
            "cuts": self.cuts,
            "kills": self.kills,
            "connections_lost_to_kills": self.connections_lost,
            "events": self.events,
            "events_of_messages": self.tokens,
            "bytes": self.bytes,
        })
    }
}

impl Streams<'_> {
    /// One stream of each kind, of which nothing is cut.
    fn calm_streams(&mut self) -> anyhow::Result<()> {
        for (number, kind) in (0..).zip(StreamKind::ALL) {
            let mut prng = Prng::new(self.plan.seed ^ (number + 1));
            let trial = StreamTrial {
                port: self.port,
                kind,
                cuts: Vec::new(),
                body: run_body(&mut prng),
                thread: random_uuid(&mut prng),
                is_killed: false,
                mutant: None,
            };
            let watched = trial.perform(&AtomicU64::new(0), &AtomicBool::new(true));
            let watched = watched.context("a calm stream")?;
            if let Some(difference) = difference(&watched.pieced, &watched.whole, false) {
                bail!("two clients that nobody cuts off see different streams: {difference}");
            }
            self.calm_bytes.insert(kind, watched.bytes + HEAD_BYTES);
        }
        Ok(())
    }

    /// Some streams at once. In every fourth batch the server is killed.
    fn batch(&mut self, first: u64, end: u64) -> anyhow::Result<()> {
        let is_killed = (first / BATCH) % 4 == 3;
        let trials: Vec<StreamTrial> = (first..end)
            .map(|trial| self.planned(trial, is_killed))
            .collect();
        let kinds: Vec<StreamKind> = trials.iter().map(|trial| trial.kind).collect();
        let begun = &AtomicU64::new(0);
        let is_past_the_kill = &AtomicBool::new(!is_killed);
        let (killed, watched) = std::thread::scope(|scope| {
            let clients: Vec<_> = trials
                .into_iter()
                .map(|trial| scope.spawn(move || trial.perform(begun, is_past_the_kill)))
                .collect();
            let killed = match is_killed {
                true => self.kill(first, end - first, begun),
                false => Ok(()),
            };
            // Also if the kill failed: nobody waits for it in vain.
            is_past_the_kill.store(true, Ordering::SeqCst);
            let watched: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
            (killed, watched)
        });
        killed?;
        for ((trial, kind), watched) in (first..end).zip(kinds).zip(watched) {
            let watched = watched.map_err(|_| anyhow!("a client panicked"))?;
            match watched {
                Ok(watched) => self.judge(trial, kind, &watched, is_killed),
                Err(error) => {
                    let what = format!("{kind:?}: {error:#}");
                    self.tally.violation("incomplete", trial, what);
                }
            }
        }
        Ok(())
    }

    fn planned(&self, trial: u64, is_killed: bool) -> StreamTrial {
        let mut prng = Prng::of_trial(self.plan.seed, trial);
        let kind = StreamKind::ALL[(trial % 3) as usize];
        let bytes = self.calm_bytes.get(&kind).copied().unwrap_or(1);
        StreamTrial {
            port: self.port,
            kind,
            cuts: draw_cuts(&mut prng, bytes),
            body: run_body(&mut prng),
            thread: random_uuid(&mut prng),
            is_killed,
            mutant: self.plan.mutant.clone(),
        }
    }

    /// Kills the server some time after all runs of a batch were accepted, and starts it again.
    fn kill(&mut self, first: u64, clients: u64, begun: &AtomicU64) -> anyhow::Result<()> {
        let started = Instant::now();
        while begun.load(Ordering::SeqCst) < clients {
            if started.elapsed() > PATIENCE {
                bail!("not all runs of a batch were accepted within {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut prng = Prng::of_trial(self.plan.seed, u64::MAX - first);
        std::thread::sleep(Duration::from_millis(prng.below(BATCH_MS)));
        if let Some(status) = self.host.kill()? {
            let what = format!("the server ended by itself, {status}");
            self.tally.violation("server_ended", first, what);
        }
        self.figures.kills += 1;
        self.host.start_again(&mut self.lab)?;
        self.host.wait_until_ready()
    }

    fn judge(&mut self, trial: u64, kind: StreamKind, watched: &WatchedStream, is_killed: bool) {
        if let Some(difference) = difference(&watched.pieced, &watched.whole, is_killed) {
            let what = format!("{kind:?} after {} cuts: {difference}", watched.cuts);
            let kind = match is_killed {
                true => "differs_after_a_kill",
                false => "differs",
            };
            self.tally.violation(kind, trial, what);
        }
        let name = match kind {
            StreamKind::Run => "run",
            StreamKind::Thread => "thread",
            StreamKind::Protocol => "protocol",
        };
        *self.figures.streams.entry(name).or_default() += 1;
        self.figures.killed += u64::from(is_killed);
        self.figures.uncut += u64::from(watched.cuts + watched.lost == 0);
        self.figures.cuts += watched.cuts;
        self.figures.connections_lost += watched.lost;
        self.figures.events += watched.pieced.len() as u64;
        self.figures.bytes += watched.bytes;
        let is_of_message = |event: &&StreamedEvent| event.name.starts_with("messages");
        let tokens = watched.pieced.iter().filter(is_of_message).count();
        self.figures.tokens += tokens as u64;
    }
}

/// How many streams there are at once.
const BATCH: u64 = 10;
/// About how long the runs of a batch take.
const BATCH_MS: u64 = 900;
/// About how many bytes the head of a reply has, which may be cut, too.
const HEAD_BYTES: u64 = 300;
const KINDS: &[&str] = &[
    "differs",
    "differs_after_a_kill",
    "incomplete",
    "server_ended",
];
