//! What must hold of a thread that many had, whoever was killed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::process::ledger::Line;

/// What the processes were told, beside what the store holds.
pub(super) struct History<'a> {
    lines: &'a [Line],
    pub(super) entries: u64,
    fault: Option<&'a str>,
    /// The marks in the state, and how often each is there.
    marks: BTreeMap<&'a str, u64>,
    /// Every stored answer, and whether the run went on with it: an update or a new input drops a question.
    answers: BTreeMap<&'a str, bool>,
}

type Violation = (&'static str, String);

/// When a line was said: its own epoch, or that under which its process had the thread last, then its place. Reports may come late;
/// epochs say who had the thread after whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    epoch: u64,
    place: usize,
}

impl<'a> History<'a> {
    pub(super) fn new(lines: &'a [Line], stored: &'a Json) -> Self {
        let list = |list: &'a Json| list.as_array().into_iter().flatten();
        let mut marks = BTreeMap::new();
        for mark in list(&stored["state"]["marks"]).filter_map(Json::as_str) {
            *marks.entry(mark).or_default() += 1;
        }
        let answers = list(&stored["answers"])
            .filter_map(|answer| Some((answer["value"].as_str()?, answer["closed_by"] == "Step")));
        Self {
            lines,
            entries: stored["entries"].as_u64().unwrap_or(0),
            fault: stored["fault"].as_str(),
            marks,
            answers: answers.collect(),
        }
    }

    /// What was reported in a phase.
    pub(super) fn of(&self, phase: &'static str) -> impl Iterator<Item = &'a Line> {
        self.lines.iter().filter(move |line| line.phase == phase)
    }

    pub(super) fn violations(&self) -> Vec<Violation> {
        let fault = self.fault.map(|fault| ("history", fault.to_owned()));
        let doubled = self.marks.iter().filter(|(_, count)| **count > 1);
        let unexpected = self.of("unexpected");
        fault
            .into_iter()
            .chain(doubled.map(|(mark, count)| ("doubled", format!("{mark}, {count} times"))))
            .chain(self.steps_again())
            .chain(self.lost())
            .chain(self.there_although_refused())
            .chain(self.owners())
            .chain(unexpected.map(|line| ("unexpected_error", line.key.clone())))
            .collect()
    }

    /// Marks and effects that somebody was told of, and that are not there.
    fn lost(&self) -> impl Iterator<Item = Violation> {
        let is_there = |line: &&Line| {
            let mark = line.key.as_str();
            let is_answer = mark.starts_with("answer:");
            match self.answers.get(mark) {
                Some(was_used) => *was_used == self.marks.contains_key(mark),
                None => !is_answer && self.marks.contains_key(mark),
            }
        };
        let told = self.of("applied").chain(self.of("acked"));
        told.filter(move |line| !is_there(line))
            .map(|line| ("lost", line.key.clone()))
    }

    fn there_although_refused(&self) -> impl Iterator<Item = Violation> {
        self.of("refused")
            .filter(|line| self.marks.contains_key(line.key.as_str()))
            .map(|line| ("refused_but_there", line.key.clone()))
    }

    /// Effects that an owner started although it, or one before it, was told that they are done.
    fn steps_again(&self) -> impl Iterator<Item = Violation> {
        self.starts_and_ends()
            .into_iter()
            .filter(|(_, start, end)| end < start)
            .map(|(key, ..)| ("acknowledged_step_again", key.to_owned()))
    }

    /// How many effects a former owner started that did not know yet. A fence stops commits, not a call that is as good
    /// as on the wire.
    pub(super) fn late_calls(&self) -> u64 {
        let pairs = self.starts_and_ends().into_iter();
        let late = pairs.filter(|(_, start, end)| start < end && start.place > end.place);
        late.count() as u64
    }

    /// Each start of an effect, with the first moment at which somebody was told that it is done.
    fn starts_and_ends(&self) -> Vec<(&'a str, Moment, Moment)> {
        let moments = self.moments();
        let in_phase = |phase: &'static str| {
            let all = self.lines.iter().zip(&moments);
            all.filter(move |(line, _)| line.phase == phase)
        };
        let mut ends = BTreeMap::new();
        for (line, moment) in in_phase("acked") {
            let first = ends.entry(line.key.as_str()).or_insert(*moment);
            *first = (*first).min(*moment);
        }
        in_phase("start")
            .filter_map(|(line, start)| {
                let key = line.key.as_str();
                Some((key, *start, *ends.get(key)?))
            })
            .collect()
    }

    fn moments(&self) -> Vec<Moment> {
        let mut epochs: BTreeMap<u32, u64> = BTreeMap::new();
        let mut moments = Vec::new();
        for (place, line) in self.lines.iter().enumerate() {
            let epoch = epochs.entry(line.pid).or_default();
            if line.phase == "claimed" {
                *epoch = line.key.parse().unwrap_or(0);
            }
            // Effects say themselves under which epoch they are; their lines may come late.
            let is_effect = matches!(line.phase.as_str(), "start" | "acked");
            let epoch = match is_effect && line.detail > 0 {
                true => line.detail,
                false => *epoch,
            };
            moments.push(Moment { epoch, place });
        }
        moments
    }

    /// An entry was acknowledged to one process only, under an epoch not below those before, and is there.
    fn owners(&self) -> Vec<Violation> {
        let mut owners: BTreeMap<u64, BTreeSet<(u64, u32)>> = BTreeMap::new();
        for line in self.of("saved") {
            let epoch = line.key.parse().unwrap_or(0);
            owners
                .entry(line.detail)
                .or_default()
                .insert((epoch, line.pid));
        }
        let mut violations = Vec::new();
        let mut newest = 0;
        for (seq, of_entry) in owners {
            if of_entry.len() > 1 {
                violations.push(("two_owners", format!("entry {seq}: {of_entry:?}")));
            }
            if of_entry.iter().any(|(epoch, _)| *epoch < newest) {
                violations.push((
                    "epoch_fell",
                    format!("entry {seq}: {of_entry:?} after {newest}"),
                ));
            }
            if seq > self.entries {
                violations.push(("entry_lost", format!("entry {seq} of {}", self.entries)));
            }
            newest = of_entry
                .iter()
                .map(|(epoch, _)| *epoch)
                .fold(newest, u64::max);
        }
        violations
    }
}

pub(super) const KINDS: &[&str] = &[
    "unfinished",
    "history",
    "two_owners",
    "epoch_fell",
    "entry_lost",
    "lost",
    "doubled",
    "refused_but_there",
    "acknowledged_step_again",
    "unexpected_error",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(phase: &str, key: &str, pid: u32, detail: u64) -> Line {
        Line {
            at: 0,
            thread: "t".to_owned(),
            pid,
            phase: phase.to_owned(),
            key: key.to_owned(),
            detail,
        }
    }

    fn violations(lines: &[Line], stored: Json) -> Vec<&'static str> {
        let found = History::new(lines, &stored).violations();
        found.into_iter().map(|(kind, _)| kind).collect()
    }

    fn stored(marks: &[&str]) -> Json {
        json!({ "entries": 2, "fault": null, "state": { "marks": marks }, "answers": [
            { "value": "answer:used", "closed_by": "Step" },
            { "value": "answer:dropped", "closed_by": "Update" },
        ] })
    }

    #[test]
    fn what_was_told_and_is_there_once_is_no_violation() {
        let lines = [
            line("applied", "start:1", 1, 0),
            line("applied", "answer:used", 1, 0),
            line("applied", "answer:dropped", 2, 0),
            line("refused", "update:1", 2, 0),
            line("saved", "7", 1, 1),
            line("saved", "9", 2, 2),
        ];
        let stored = stored(&["start:1", "answer:used", "start:nobody-was-told"]);
        assert!(violations(&lines, stored).is_empty());
    }

    #[test]
    fn an_owner_repeats_no_step_and_a_former_one_may_be_late() {
        let first = [line("claimed", "7", 1, 0), line("start", "effect:1", 1, 0)];
        let second = [
            line("claimed", "9", 2, 0),
            line("start", "effect:1", 2, 0),
            line("acked", "effect:1", 2, 0),
        ];
        let late = [&first[..1], &second, &first[1..]].concat();
        let there = stored(&["effect:1"]);
        assert!(violations(&late, there.clone()).is_empty());
        assert_eq!(History::new(&late, &there).late_calls(), 1);
        let again = [late, vec![line("start", "effect:1", 2, 0)]].concat();
        assert_eq!(
            violations(&again, there.clone()),
            ["acknowledged_step_again"]
        );
        // Its process has taken the thread again before the line arrived; the effect is of its former life.
        let former = [line("claimed", "11", 1, 0), line("start", "effect:1", 1, 7)];
        let overtaken = [&second[..], &former].concat();
        assert!(violations(&overtaken, there.clone()).is_empty());
        let after = [
            line("claimed", "11", 1, 0),
            line("start", "effect:1", 1, 11),
        ];
        let next = [&second[..], &after].concat();
        assert_eq!(violations(&next, there), ["acknowledged_step_again"]);
    }

    #[test]
    fn each_violation_has_its_name() {
        let there = stored(&["start:1", "start:1", "update:1", "answer:dropped"]);
        for (line, kind) in [
            (line("applied", "start:2", 1, 0), "lost"),
            (line("acked", "effect:2", 1, 0), "lost"),
            (line("applied", "answer:used", 1, 0), "lost"),
            (line("applied", "answer:dropped", 1, 0), "lost"),
            (line("applied", "answer:unknown", 1, 0), "lost"),
            (line("refused", "update:1", 1, 0), "refused_but_there"),
            (line("saved", "1", 1, 3), "entry_lost"),
            (line("unexpected", "open-format", 1, 0), "unexpected_error"),
        ] {
            assert_eq!(violations(&[line], there.clone()), ["doubled", kind]);
        }
        let fell = [line("saved", "9", 1, 1), line("saved", "7", 1, 2)];
        assert_eq!(violations(&fell, stored(&[])), ["epoch_fell"]);
        let two = [line("saved", "9", 1, 1), line("saved", "9", 2, 1)];
        assert_eq!(violations(&two, stored(&[])), ["two_owners"]);
    }
}
