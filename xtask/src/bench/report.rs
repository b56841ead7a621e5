//! The rows of a bench, as a table for people and as one JSON object for programs.

use serde_json::{Value as Json, json};

/// One figure.
#[derive(Debug, Clone)]
pub(super) struct Row {
    work: String,
    unit: &'static str,
    ours: f64,
    against: Option<(&'static str, f64)>,
    goal: Option<Goal>,
}

#[derive(Debug, Clone, Copy)]
enum Goal {
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
    pub(super) fn against(mut self, what: &'static str, theirs: f64) -> Self {
        self.against = Some((what, theirs));
        self
    }

    pub(super) fn at_most(mut self, limit: f64) -> Self {
        self.goal = Some(Goal::AtMost(limit));
        self
    }

    pub(super) fn ratio_at_least(mut self, limit: f64) -> Self {
        self.goal = Some(Goal::RatioAtLeast(limit));
        self
    }

    pub(super) fn ratio_at_most(mut self, limit: f64) -> Self {
        self.goal = Some(Goal::RatioAtMost(limit));
        self
    }

    fn ratio(&self) -> Option<f64> {
        self.against.map(|(_, theirs)| self.ours / theirs)
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
            Goal::RatioAtMost(limit) => format!("ratio at most {limit}"),
        })
    }

    fn to_json(&self) -> Json {
        json!({
            "work": self.work,
            "unit": self.unit,
            "ours": rounded(self.ours),
            "against": self.against.map(|(what, _)| what),
            "theirs": self.against.map(|(_, theirs)| rounded(theirs)),
            "ratio": self.ratio().map(rounded),
            "goal": self.goal_in_words(),
            "met": self.met(),
        })
    }

    fn in_words(&self) -> String {
        let against = self.against.map_or(String::new(), |(what, theirs)| {
            format!("{what} {}", rounded(theirs))
        });
        let ratio = self
            .ratio()
            .map_or(String::new(), |ratio| format!("{ratio:.3}"));
        let verdict = match (self.goal_in_words(), self.met()) {
            (Some(goal), Some(true)) => format!("met: {goal}"),
            (Some(goal), _) => format!("MISSED: {goal}"),
            _ => String::new(),
        };
        let ours = format!("{} {}", rounded(self.ours), self.unit);
        format!(
            "{:<46} {ours:>22}  {against:<34} {ratio:>7}  {verdict}",
            self.work
        )
    }
}

/// Three digits are more than a shared machine can tell apart.
fn rounded(figure: f64) -> f64 {
    if figure.abs() >= 1_000.0 {
        figure.round()
    } else {
        (figure * 1_000.0).round() / 1_000.0
    }
}

#[expect(clippy::print_stdout, reason = "the report that was asked for is data")]
pub(super) fn publish(bench: &str, rows: &[Row], as_json: bool) {
    for row in rows {
        eprintln!("{}", row.in_words());
    }
    if as_json {
        let rows: Vec<Json> = rows.iter().map(Row::to_json).collect();
        println!("{}", json!({ "bench": bench, "rows": rows }));
    }
}
