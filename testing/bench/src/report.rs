//! The rows of a bench, as a table for people and as one JSON object for programs.

use serde_json::{Value as Json, json};

use super::findings::Findings;

/// One figure.
#[derive(Debug, Clone)]
pub(super) struct Row {
    work: String,
    unit: &'static str,
    ours: f64,
    against: Option<(String, f64)>,
    goal: Option<Goal>,
}

/// What a figure has to reach.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal {
    /// Ours is at most this.
    AtMost(f64),
    /// Ours divided by theirs is at least this.
    RatioAtLeast(f64),
    /// Ours divided by theirs is at most this.
    RatioAtMost(f64),
}

impl Row {
    pub(super) fn new(work: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self {
            work: work.into(),
            unit,
            ours,
            against: None,
            goal: None,
        }
    }

    /// What it was measured beside.
    pub(super) fn against(mut self, what: impl Into<String>, theirs: f64) -> Self {
        self.against = Some((what.into(), theirs));
        self
    }

    pub(super) fn with_goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    pub(super) fn at_most(self, limit: f64) -> Self {
        self.with_goal(Goal::AtMost(limit))
    }

    pub(super) fn ratio_at_least(self, limit: f64) -> Self {
        self.with_goal(Goal::RatioAtLeast(limit))
    }

    pub(super) fn ratio_at_most(self, limit: f64) -> Self {
        self.with_goal(Goal::RatioAtMost(limit))
    }

    fn ratio(&self) -> Option<f64> {
        let (_, theirs) = self.against.as_ref()?;
        Some(self.ours / theirs)
    }

    /// Whether the goal was met, if there is one.
    pub(super) fn met(&self) -> Option<bool> {
        let ratio = self.ratio().unwrap_or(f64::NAN);
        self.goal.map(|goal| match goal {
            Goal::AtMost(limit) => self.ours <= limit,
            Goal::RatioAtLeast(limit) => ratio >= limit,
            Goal::RatioAtMost(limit) => ratio <= limit,
        })
    }

    fn goal_in_words(&self) -> Option<String> {
        self.goal.map(|goal| match goal {
            Goal::AtMost(limit) => format!("at most {limit} {}", self.unit),
            Goal::RatioAtLeast(limit) => format!("ratio at least {limit}"),
            Goal::RatioAtMost(limit) if limit < 1.0 => {
                format!("ratio at most 1/{}", (1.0 / limit).round())
            }
            Goal::RatioAtMost(limit) => format!("ratio at most {limit}"),
        })
    }

    pub(super) fn to_json(&self) -> Json {
        json!({
            "work": self.work,
            "unit": self.unit,
            "ours": rounded(self.ours),
            "against": self.against.as_ref().map(|(what, _)| what),
            "theirs": self.against.as_ref().map(|(_, theirs)| rounded(*theirs)),
            "ratio": self.ratio().map(rounded),
            "goal": self.goal_in_words(),
            "met": self.met(),
        })
    }

    fn in_words(&self) -> String {
        let against = self
            .against
            .as_ref()
            .map_or(String::new(), |(what, theirs)| {
                format!("{what} {}", rounded(*theirs))
            });
        let ratio = self
            .ratio()
            .map_or(String::new(), |ratio| rounded(ratio).to_string());
        let verdict = match (self.goal_in_words(), self.met()) {
            (Some(goal), Some(true)) => format!("met: {goal}"),
            (Some(goal), _) => format!("MISSED: {goal}"),
            _ => String::new(),
        };
        let ours = format!("{} {}", rounded(self.ours), self.unit);
        format!(
            "{:<46} {ours:>26}  {against:<46} {ratio:>9}  {verdict}",
            self.work
        )
    }
}

/// Four digits are more than a shared machine can tell apart.
pub(super) fn rounded(figure: f64) -> f64 {
    if figure == 0.0 || !figure.is_finite() {
        return figure;
    }
    let digits = (3 - figure.abs().log10().floor() as i32).max(0);
    let scale = 10_f64.powi(digits);
    (figure * scale).round() / scale
}

#[expect(clippy::print_stdout, reason = "the report that was asked for is data")]
pub(super) fn publish(found: &Findings, as_json: bool) {
    for row in &found.rows {
        eprintln!("{}", row.in_words());
    }
    if as_json {
        println!("{}", found.to_json());
    }
}

#[test]
fn a_figure_keeps_four_digits() {
    assert_eq!(
        [0.012_345_6, 12.345_6, 123_456.7].map(rounded),
        [0.012_35, 12.35, 123_457.0]
    );
}
