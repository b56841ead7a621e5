//! What an evaluation came to, for people and as JSON.

use archie_agent::{Exit, Terminal};
use serde_json::{Value as Json, json};

use super::share::Share;

/// What an agent, or a plain prompt, scored.
#[derive(Debug)]
pub(super) struct Scores {
    /// Shares of cases, most important first.
    pub(super) measures: Vec<(&'static str, Share)>,
    /// Something that must not happen at all, and how often it did. A plain prompt only writes, so it has none.
    pub(super) forbidden: Option<(&'static str, usize)>,
    /// A line per case that went wrong.
    pub(super) wrong: Vec<String>,
}

impl Scores {
    /// Returns how the command ends: what must not happen at all is a failure, a low score is not.
    pub(super) fn exit(&self) -> Exit {
        match self.forbidden {
            None | Some((_, 0)) => Exit::Done,
            Some(_) => Exit::Failed,
        }
    }
}

/// Scores, and what was scored.
#[derive(Debug)]
pub(super) struct Report {
    /// Name of the agent.
    pub(super) agent: &'static str,
    /// Whether a plain prompt was scored instead of the agent.
    pub(super) is_plain: bool,
    /// Name of the model, or `none`.
    pub(super) model: String,
    pub(super) seconds: u64,
    pub(super) scores: Scores,
}

impl Report {
    pub(super) fn json(&self) -> Json {
        let measures = self.scores.measures.iter().map(|(name, share)| {
            let (low, high) = share.interval();
            json!({ "name": name, "right": share.right, "of": share.of, "share": share.value(), "low": low, "high": high })
        });
        let forbidden = self
            .scores
            .forbidden
            .map(|(name, count)| json!({ "name": name, "count": count }));
        json!({
            "agent": self.agent,
            "plain": self.is_plain,
            "model": self.model,
            "measures": measures.collect::<Vec<_>>(),
            "forbidden": forbidden,
            "wrong": self.scores.wrong,
            "seconds": self.seconds,
        })
    }

    pub(super) fn print(&self, terminal: &dyn Terminal) {
        let plain = if self.is_plain { " (plain prompt)" } else { "" };
        terminal.line(&format!(
            "{}{plain}, model {}, {} s",
            self.agent, self.model, self.seconds
        ));
        for (name, share) in &self.scores.measures {
            terminal.line(&format!("  {name:<24} {share}"));
        }
        if let Some((forbidden, count)) = self.scores.forbidden {
            terminal.line(&format!("  {forbidden:<24} {count}"));
        }
        for wrong in &self.scores.wrong {
            terminal.line(&format!("  wrong: {wrong}"));
        }
    }
}

#[test]
fn only_what_must_not_happen_is_a_failure() {
    for (forbidden, exit) in [
        (None, Exit::Done),
        (Some(("replies to fraud", 0)), Exit::Done),
        (Some(("replies to fraud", 1)), Exit::Failed),
    ] {
        let scores = Scores {
            measures: Vec::new(),
            forbidden,
            wrong: vec!["everything".to_owned()],
        };
        assert_eq!(scores.exit(), exit);
    }
}
