//! From the answer to a paused thread to its end.

use super::contest::{Contest, Measure, P50};
use super::findings::{Findings, Which};
use super::lab::Lab;
use super::report::Goal;
use super::side::{ADK_GRAPH, GRAPH_FLOW, JAVASCRIPT, OURS, PYTHON, Side};

pub(super) fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut found = Findings::new("resume", lab.quick);
    for (store, sides) in STORES {
        let contest = Contest {
            title: TITLE.to_owned(),
            work: "resume",
            store,
            settings: vec![format!("threads={}", lab.size(200, 20))],
            rounds: lab.rounds(),
            measure: Measure::Answers,
            sides,
        };
        found.hold(lab, &contest)?;
        let which = Which {
            title: TITLE,
            store,
            figure: P50,
        };
        found.judge(which, PYTHON, Goal::RatioAtMost(1.0 / 6.0));
        found.judge(which, JAVASCRIPT, Goal::RatioAtMost(1.0 / 6.0));
    }
    Ok(found)
}

const TITLE: &str = "answer to a paused thread";

const STORES: [(&str, &[Side]); 2] = [
    ("sqlite", &[OURS, ADK_GRAPH, PYTHON, JAVASCRIPT]),
    ("postgres", &[OURS, GRAPH_FLOW, PYTHON, JAVASCRIPT]),
];
