//! A superstep of many tasks and a join.

use super::contest::{Contest, MS_PER_RUN, Measure};
use super::findings::{Findings, Which};
use super::lab::Lab;
use super::report::Goal;
use super::side::{ADK_GRAPH, GRAPH_FLOW, JAVASCRIPT, OURS, PYTHON, Side};

pub(super) fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut found = Findings::new("fanout", lab.quick);
    for (store, of_python, sides) in STORES {
        for branches in [100, 1_000] {
            let contest = Contest {
                title: title(branches),
                work: "fanout",
                store,
                settings: vec![format!("branches={branches}")],
                rounds: lab.rounds(),
                measure: Measure::Run,
                sides,
            };
            found.hold(lab, &contest)?;
        }
        let which = Which {
            title: &title(1_000),
            store,
            figure: MS_PER_RUN,
        };
        found.judge(which, PYTHON, Goal::RatioAtMost(1.0 / of_python));
    }
    Ok(found)
}

fn title(branches: u32) -> String {
    format!("fan-out of {branches} and a join")
}

/// Each with how many times as long LangGraph in Python is to take.
const STORES: [(&str, f64, &[Side]); 3] = [
    (
        "none",
        250.0,
        &[OURS, GRAPH_FLOW, ADK_GRAPH, PYTHON, JAVASCRIPT],
    ),
    ("sqlite", 150.0, &[OURS, ADK_GRAPH, PYTHON, JAVASCRIPT]),
    ("postgres", 80.0, &[OURS, GRAPH_FLOW, PYTHON, JAVASCRIPT]),
];
