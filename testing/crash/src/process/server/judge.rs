//! What must hold of threads whose clients were told something, wherever the server was killed.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::api::{Api, Fault, Told};
use super::order::{ACTS, Ask, EFFECTS, STEPS};
use crate::process::ledger::{Line, acknowledged_again};

/// What a client was told about a thread that no other client uses.
#[derive(Debug, Clone)]
pub(super) struct ThreadLog {
    pub(super) id: String,
    /// In the order in which they were made.
    pub(super) requests: Vec<RequestLog>,
}

/// A run that a client asked for.
#[derive(Debug, Clone)]
pub(super) struct RequestLog {
    pub(super) mark: String,
    pub(super) ask: Ask,
    pub(super) told: Told,
    /// Whether it may be refused because another run is active.
    pub(super) may_be_refused: bool,
    /// Whether the client asked for something later that cancels it.
    pub(super) may_be_cancelled: bool,
    /// Whether the client asked for something later that deletes it.
    pub(super) may_be_deleted: bool,
    /// When the client was told that it is cancelled, in milliseconds since 1970.
    pub(super) cancelled_at: Option<u64>,
}

impl RequestLog {
    pub(super) fn is_accepted(&self) -> bool {
        matches!(self.told, Told::Accepted { .. })
    }
}

/// What the server shows of a thread in the end.
#[derive(Debug, Clone, Default)]
pub(super) struct ThreadSight {
    pub(super) rows: Vec<RowSight>,
    pub(super) done: Vec<String>,
    pub(super) answers: Vec<u64>,
}

/// What the server shows of a run in the end.
#[derive(Debug, Clone)]
pub(super) struct RowSight {
    pub(super) mark: String,
    pub(super) status: String,
}

impl ThreadSight {
    /// Looks at a thread; nothing if the server does not know it.
    pub(super) fn look(api: &mut Api, thread: &str) -> Option<Self> {
        let rows = api.runs(thread)?;
        let values = api.state(thread)?;
        let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
        let list = |name: &str| values[name].as_array().cloned().unwrap_or_default();
        Some(Self {
            rows: rows
                .iter()
                .map(|row| RowSight {
                    mark: text(&row["metadata"]["mark"]),
                    status: text(&row["status"]),
                })
                .collect(),
            done: list("done").iter().map(text).collect(),
            answers: list("answers").iter().filter_map(Json::as_u64).collect(),
        })
    }

    /// Whether no run is pending or running.
    pub(super) fn is_at_rest(&self) -> bool {
        self.rows.iter().all(RowSight::has_ended)
    }

    fn row(&self, mark: &str) -> Option<&RowSight> {
        self.rows.iter().find(|row| row.mark == mark)
    }
}

impl RowSight {
    fn has_ended(&self) -> bool {
        !["pending", "running"].contains(&self.status.as_str())
    }
}

/// Returns the nodes of a run that wrote into the state, in order, and whether nothing of another run is between them.
pub(super) fn parts_of<'a>(done: &'a [String], mark: &str) -> (Vec<&'a str>, bool) {
    let parts = done.iter().enumerate().filter_map(|(at, entry)| {
        let (found, node) = entry.split_once(':')?;
        (found == mark).then_some((at, node))
    });
    let (places, nodes): (Vec<usize>, Vec<&str>) = parts.unzip();
    let is_together = places.windows(2).all(|two| two[0] + 1 == two[1]);
    (nodes, is_together)
}

/// Judges a thread by what its client was told and by what the server shows of it. `None` if the server does not know it.
pub(super) fn judge_thread(log: &ThreadLog, sight: Option<&ThreadSight>) -> Vec<Fault> {
    let Some(sight) = sight else {
        return vec![("thread_lost", log.id.clone())];
    };
    let mut faults = Vec::new();
    for request in &log.requests {
        judge_request(log, request, sight, &mut faults);
    }
    judge_answers(log, sight, &mut faults);
    faults
}

fn judge_request(
    log: &ThreadLog,
    request: &RequestLog,
    sight: &ThreadSight,
    faults: &mut Vec<Fault>,
) {
    let what = |why: &str| format!("{}: {}: {why}", log.id, request.mark);
    let rows = sight.rows.iter().filter(|row| row.mark == request.mark);
    let count = rows.count();
    if count > 1 {
        faults.push(("run_doubled", what(&format!("{count} runs"))));
    }
    let row = sight.row(&request.mark);
    match (&request.told, row) {
        (Told::Accepted { .. }, None) if !request.may_be_deleted => {
            faults.push(("run_lost", what("it was accepted")));
        }
        (Told::Refused(status), None) if !(request.may_be_refused && *status == 409) => {
            faults.push(("unexpected_refusal", what(&status.to_string())));
        }
        (Told::Refused(status), Some(_)) => {
            faults.push(("refused_but_ran", what(&status.to_string())));
        }
        _ => {}
    }
    let is_cut_short = match row.map(|row| row.status.as_str()) {
        None => true,
        Some("pending" | "running") => {
            faults.push(("unfinished", what("it is still active")));
            return;
        }
        Some("interrupted") if request.may_be_cancelled => true,
        // Also of a run that asks: its answer is another run.
        Some("success") => false,
        Some("error" | "timeout") => {
            faults.push(("failed", what("it ended with an error")));
            return;
        }
        Some(status) => {
            faults.push(("wrong_status", what(status)));
            return;
        }
    };
    let (nodes, is_together) = parts_of(&sight.done, &request.mark);
    let is_right = match request.ask {
        Ask::Steps { .. } if row.is_none() => nodes.is_empty(),
        Ask::Steps { .. } if is_cut_short => STEPS.starts_with(&nodes),
        Ask::Steps { .. } => nodes == STEPS,
        // What follows the questions is of one run after the other.
        Ask::Questions => nodes == ACTS[..sight.answers.len().min(ACTS.len())],
        Ask::Answer { .. } => nodes.is_empty(),
    };
    if !is_right || !is_together {
        faults.push(("wrong_state", what(&format!("{:?}", sight.done))));
    }
}

/// Every answer that was accepted is in the state, once and in its place; one of which nothing is known may be.
fn judge_answers(log: &ThreadLog, sight: &ThreadSight, faults: &mut Vec<Fault>) {
    let mut accepted = Vec::new();
    let mut unknown = Vec::new();
    for request in &log.requests {
        let Ask::Answer { value } = request.ask else {
            continue;
        };
        match &request.told {
            Told::Accepted { .. } => accepted.push(value),
            Told::Unknown => unknown.push(value),
            Told::Refused(_) => {}
        }
    }
    let is_certain = |value: &&u64| !unknown.contains(*value);
    let certain: Vec<u64> = sight.answers.iter().filter(is_certain).copied().collect();
    let times = |value: &u64| sight.answers.iter().filter(|found| *found == value).count();
    if certain != accepted || unknown.iter().any(|value| times(value) > 1) {
        let what = format!("{}: {:?}, accepted {accepted:?}", log.id, sight.answers);
        faults.push(("wrong_answers", what));
    }
}

/// What the ledger must say of the runs of a trial.
#[derive(Debug, Default)]
pub(super) struct EffectJudge {
    /// Marks of runs with steps that ended well, or whose client was told so.
    finished: Vec<String>,
    refused: Vec<String>,
    /// Marks of runs that were cancelled, and when their clients were told so.
    cancelled: BTreeMap<String, u64>,
    /// Whether no node may run again and no effect may be repeated.
    is_exact: bool,
}

/// What the ledger says of a trial.
#[derive(Debug, Default)]
pub(super) struct EffectFindings {
    pub(super) faults: Vec<Fault>,
    pub(super) started: u64,
    pub(super) redone: u64,
}

impl EffectJudge {
    /// Creates the judge of a trial in which nothing is killed, so that nothing has to be done again.
    pub(super) fn exact() -> Self {
        Self {
            is_exact: true,
            ..Self::default()
        }
    }

    /// Adds a thread, as the server shows it.
    pub(super) fn add(&mut self, log: &ThreadLog, sight: &ThreadSight) {
        for request in &log.requests {
            let is_ended_well = |row: &RowSight| row.status == "success";
            if matches!(request.ask, Ask::Steps { .. })
                && sight.row(&request.mark).is_some_and(is_ended_well)
            {
                self.finished.push(request.mark.clone());
            }
            if matches!(request.told, Told::Refused(_)) {
                self.refused.push(request.mark.clone());
            }
            if let Some(at) = request.cancelled_at {
                self.cancelled.insert(request.mark.clone(), at);
            }
        }
    }

    /// Adds a run with steps whose thread is gone, as that of a stateless run.
    pub(super) fn add_finished(&mut self, mark: &str) {
        self.finished.push(mark.to_owned());
    }

    pub(super) fn judge(&self, lines: &[Line]) -> EffectFindings {
        let starts = counts_of(lines, "start");
        let again = acknowledged_again(lines).into_iter();
        let mut faults: Vec<Fault> = again.map(|key| ("acknowledged_step_again", key)).collect();
        faults.extend(supersteps_again(lines));
        for mark in &self.finished {
            faults.extend(missing_effects(mark, &starts));
        }
        for line in lines.iter().filter(|line| line.phase == "start") {
            let mark = mark_of(&line.key);
            if self.refused.iter().any(|refused| refused == mark) {
                faults.push(("refused_but_ran", line.key.clone()));
            }
            let cancelled_at = self.cancelled.get(mark);
            if cancelled_at.is_some_and(|at| line.at > at + CLOCK_MS) {
                faults.push(("ran_after_cancel", line.key.clone()));
            }
        }
        if self.is_exact {
            faults.extend(repeated("effect_doubled", &starts));
            faults.extend(repeated("node_again", &counts_of(lines, "body")));
        }
        EffectFindings {
            faults,
            started: starts.values().sum(),
            redone: starts.values().map(|count| count - 1).sum(),
        }
    }
}

/// How often each thing was reported in a phase.
fn counts_of<'a>(lines: &'a [Line], phase: &str) -> BTreeMap<&'a str, u64> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.phase == phase) {
        *counts.entry(line.key.as_str()).or_default() += 1;
    }
    counts
}

fn repeated(kind: &'static str, counts: &BTreeMap<&str, u64>) -> Vec<Fault> {
    let repeated = counts.iter().filter(|(_, count)| **count > 1);
    repeated
        .map(|(key, count)| (kind, format!("{key}, {count} times")))
        .collect()
}

fn missing_effects(mark: &str, starts: &BTreeMap<&str, u64>) -> Vec<Fault> {
    let keys = STEPS
        .iter()
        .flat_map(|node| EFFECTS.map(|effect| format!("{mark}/{node}/{effect}")));
    keys.filter(|key| !starts.contains_key(key.as_str()))
        .map(|key| ("effect_missing", key))
        .collect()
}

/// Bodies that started after one of a later superstep of their run: that one started, so theirs had been acknowledged.
fn supersteps_again(lines: &[Line]) -> Vec<Fault> {
    let mut newest: BTreeMap<&str, usize> = BTreeMap::new();
    let mut again = Vec::new();
    for line in lines.iter().filter(|line| line.phase == "body") {
        let newest = newest.entry(mark_of(&line.key)).or_default();
        let rank = rank(&line.key);
        if rank < *newest {
            again.push(("acknowledged_superstep_again", line.key.clone()));
        }
        *newest = rank.max(*newest);
    }
    again
}

/// A key is `MARK/NODE`, or `MARK/NODE/EFFECT`.
fn mark_of(key: &str) -> &str {
    key.split('/').next().unwrap_or_default()
}

/// The superstep of a body, from its key.
fn rank(key: &str) -> usize {
    let node = key.split('/').nth(1).unwrap_or_default();
    let mut nodes = STEPS.iter().zip(0..).chain(ACTS.iter().zip(0..));
    nodes
        .find(|(name, _)| **name == node)
        .map_or(0, |(_, at)| at)
}

/// A line may be noted this much after what it reports.
const CLOCK_MS: u64 = 50;

#[cfg(test)]
mod tests;
