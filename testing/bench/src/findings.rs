//! What a bench found: every figure of every side, and the rows that goals are set on.

use serde_json::{Value as Json, json};

use super::contest::{Contest, Measured};
use super::lab::Lab;
use super::report::{Goal, Row};
use super::side::{OURS, Side};

#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    pub(super) bench: &'static str,
    pub(super) rows: Vec<Row>,
    pub(super) measured: Vec<Measured>,
    /// A few rounds beside other work say nothing about speed: what they say is shown and not judged.
    is_quick: bool,
}

/// Which figure of which contest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Which<'a> {
    pub(super) title: &'a str,
    pub(super) store: &'a str,
    pub(super) figure: &'static str,
}

impl Findings {
    pub(super) fn new(bench: &'static str, is_quick: bool) -> Self {
        Self {
            bench,
            is_quick,
            ..Self::default()
        }
    }

    pub(super) fn hold(&mut self, lab: &Lab, contest: &Contest<'_>) -> anyhow::Result<()> {
        self.measured.extend(contest.hold(lab)?);
        Ok(())
    }

    /// Sets a goal on the speed of ours beside another side's, if that took part.
    pub(super) fn judge(&mut self, which: Which<'_>, side: Side, goal: Goal) {
        self.judge_best(which, &[side], goal);
    }

    /// The same, beside the fastest of several.
    pub(super) fn judge_best(&mut self, which: Which<'_>, sides: &[Side], goal: Goal) {
        if let Some(row) = self.beside_best(which, sides) {
            self.push(row, goal);
        }
    }

    /// Adds a row without a goal, beside the fastest of several sides that do less than ours.
    pub(super) fn show_best(&mut self, which: Which<'_>, sides: &[Side]) {
        let row = self.beside_best(which, sides);
        self.rows.extend(row);
    }

    /// Sets a goal on a figure of one side beside another side's.
    pub(super) fn judge_between(&mut self, which: Which<'_>, one: Side, other: Side, goal: Goal) {
        if let (Some(ours), Some(theirs)) = (self.of(which, one), self.of(which, other)) {
            let row = self.row(which, ours, theirs);
            self.push(row, goal);
        }
    }

    fn beside_best(&self, which: Which<'_>, sides: &[Side]) -> Option<Row> {
        let others = sides.iter().filter_map(|side| self.of(which, *side));
        let best = others.max_by(|a, b| a.median().total_cmp(&b.median()))?;
        Some(self.row(which, self.of(which, OURS)?, best))
    }

    /// Sets a limit on a figure of ours, whatever the others need.
    pub(super) fn limit(&mut self, which: Which<'_>, at_most: f64) {
        if let Some(ours) = self.of(which, OURS) {
            let work = format!("{}, {}", which.title, which.store);
            let row = Row::new(work, which.figure, ours.median());
            self.push(row, Goal::AtMost(at_most));
        }
    }

    /// Adds a row, with a goal unless this is a quick look.
    pub(super) fn push(&mut self, row: Row, goal: Goal) {
        self.rows.push(match self.is_quick {
            true => row,
            false => row.with_goal(goal),
        });
    }

    /// Sets a goal on what ours weighs: bytes are the same on a busy machine.
    pub(super) fn weigh(&mut self, which: Which<'_>, side: Side, goal: Goal) {
        if let (Some(theirs), Some(ours)) = (self.of(which, side), self.of(which, OURS)) {
            let row = self.row(which, ours, theirs);
            self.rows.push(row.with_goal(goal));
        }
    }

    fn row(&self, which: Which<'_>, ours: &Measured, theirs: &Measured) -> Row {
        let work = format!("{}, {}", which.title, which.store);
        Row::new(work, which.figure, ours.median()).against(theirs.side, theirs.median())
    }

    fn of(&self, which: Which<'_>, side: Side) -> Option<&Measured> {
        self.measured.iter().find(|measured| {
            measured.title == which.title
                && measured.store == which.store
                && measured.figure == which.figure
                && measured.side == side.label
        })
    }

    pub(super) fn missed(&self) -> usize {
        let missed = self.rows.iter().filter(|row| row.met() == Some(false));
        missed.count()
    }

    pub(super) fn to_json(&self) -> Json {
        json!({
            "bench": self.bench,
            "rows": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
            "measured": self.measured.iter().map(Measured::to_json).collect::<Vec<_>>(),
        })
    }
}
