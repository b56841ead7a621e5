//! `judge`: what became of random programs, by what the ledger and the store hold when all is quiet.
//!
//! A step is acknowledged when its node went past it: then its record was stored. One that was acknowledged and begins once
//! more is a violation; one whose process died before the record may begin again, and is only counted.
//!
//! Recovery is the time from a kill to the next sign of each run that it hit: a line of the ledger of that thread, or its
//! client being told. A killed worker hit the runs whose last line before was its own, a killed node all that were under way.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::sync::Arc;

use serde_json::json;
use superstep::checkpoint::Status;
use superstep::{Checkpointer, Runtime};

use super::program::{Expected, Program};
use super::store::Place;
use super::work::{self, Work};
use crate::ledger::{Ledger, Line};
use crate::{AnyError, Args};

pub(crate) async fn judge(args: &Args) -> Result<(), AnyError> {
    let kills: Vec<Kill> = std::io::stdin()
        .lock()
        .lines()
        .map_while(Result::ok)
        .take_while(|line| line != ".")
        .filter_map(|line| Kill::parse(&line))
        .collect();
    let ledger = Arc::new(Ledger::connect(args).await?);
    let mut by_thread: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for line in ledger.lines().await? {
        by_thread.entry(line.thread.clone()).or_default().push(line);
    }
    let store = Place::of(args)?.open().await?;
    let runtime = Runtime::new(store.clone());
    let graph = work::graph(&ledger)?;
    let mut verdict = Verdict::default();
    for number in 0..args.programs {
        let expected = Program::random(args.seed, number).expected();
        let name = format!("program-{number}");
        let lines = by_thread.remove(&name).unwrap_or_default();
        verdict.judge_effects(number, &expected, &lines);
        verdict.judge_recovery(&kills, &lines);
        let thread = runtime.thread(&graph, &name)?;
        let status = store.load(thread.id()).await?;
        let status = status.map(|loaded| loaded.head.status);
        let state = thread.state().await?;
        let state = state
            .map(|state| state.values.decode::<Work>())
            .transpose()?;
        verdict.judge_state(number, &expected, status, state.as_ref());
    }
    println!("{}", verdict.told());
    Ok(())
}

/// Something that was killed.
struct Kill {
    at: i64,
    /// The worker; none if it was a node.
    worker: Option<String>,
}

impl Kill {
    /// `MILLISECONDS worker NAME` or `MILLISECONDS node NUMBER`.
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, kind, name] = words.as_slice() else {
            return None;
        };
        Some(Self {
            at: at.parse().ok()?,
            worker: (*kind == "worker").then(|| (*name).to_owned()),
        })
    }
}

#[derive(Default)]
struct Verdict {
    violations: Vec<(&'static str, u64, String)>,
    started: u64,
    redone: u64,
    /// Of runs that a worker's end hit, and of those that a node's did.
    by_worker_ms: Vec<i64>,
    by_node_ms: Vec<i64>,
    failed_as_planned: u64,
    by_worker: BTreeMap<String, u64>,
}

impl Verdict {
    fn violation(&mut self, kind: &'static str, number: u64, what: impl Into<String>) {
        self.violations.push((kind, number, what.into()));
    }

    fn judge_effects(&mut self, number: u64, expected: &Expected, lines: &[Line]) {
        let mut acked = BTreeSet::new();
        let mut starts: BTreeMap<&str, u64> = BTreeMap::new();
        for line in lines {
            match line.phase.as_str() {
                "acked" => drop(acked.insert(line.key.as_str())),
                "start" => {
                    if acked.contains(line.key.as_str()) {
                        self.violation("acknowledged_again", number, &line.key);
                    }
                    *starts.entry(&line.key).or_default() += 1;
                    let worker = line.worker.split('.').next().unwrap_or_default();
                    *self.by_worker.entry(worker.to_owned()).or_default() += 1;
                }
                _ => {}
            }
        }
        for effect in &expected.effects {
            if !acked.contains(effect.as_str()) {
                self.violation("effect_lost", number, effect);
            }
        }
        for (key, count) in starts {
            if !expected.effects.contains(key) {
                self.violation("effect_not_planned", number, key);
            }
            self.started += count;
            self.redone += count - 1;
        }
    }

    fn judge_state(
        &mut self,
        number: u64,
        expected: &Expected,
        status: Option<Status>,
        state: Option<&Work>,
    ) {
        let wanted = match expected.fails {
            true => Status::Failed,
            false => Status::Idle,
        };
        self.failed_as_planned += u64::from(expected.fails && status == Some(Status::Failed));
        if status != Some(wanted) {
            self.violation("wrong_end", number, format!("{status:?}, not {wanted:?}"));
        }
        let found = state.map(|work| (&work.done, work.sum));
        if found != Some((&expected.done, expected.sum)) {
            let what = format!("{found:?}, not {:?} {}", expected.done, expected.sum);
            self.violation("wrong_state", number, what);
        }
    }

    fn judge_recovery(&mut self, kills: &[Kill], lines: &[Line]) {
        for kill in kills {
            let before = lines.iter().rev().find(|line| line.at <= kill.at);
            let after = lines.iter().find(|line| line.at > kill.at);
            let (Some(before), Some(after)) = (before, after) else {
                continue;
            };
            // Nobody was doing anything for it.
            if before.phase == "told" {
                continue;
            }
            let waited = after.at - kill.at;
            match &kill.worker {
                Some(worker) if *worker == before.worker => self.by_worker_ms.push(waited),
                Some(_) => {}
                None => self.by_node_ms.push(waited),
            }
        }
    }

    fn told(mut self) -> serde_json::Value {
        let mut all: Vec<i64> = [&self.by_worker_ms[..], &self.by_node_ms[..]].concat();
        json!({
            "violations": self.violations,
            "effects_started": self.started,
            "effects_redone": self.redone,
            "effects_by_worker": self.by_worker,
            "failed_as_planned": self.failed_as_planned,
            "runs_hit_by_worker_kills": self.by_worker_ms.len(),
            "runs_hit_by_node_kills": self.by_node_ms.len(),
            "recovery_ms_p50": percentile(&mut all, 50),
            "recovery_ms_p99": percentile(&mut all, 99),
            "recovery_ms_max": percentile(&mut all, 100),
            "recovery_from_worker_ms_p99": percentile(&mut self.by_worker_ms, 99),
            "recovery_from_node_ms_p99": percentile(&mut self.by_node_ms, 99),
        })
    }
}

/// By the nearest rank; 0 if there is nothing.
fn percentile(values: &mut [i64], percent: usize) -> i64 {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(0)
}
