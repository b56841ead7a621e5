//! Twenty nodes in a row, one thread after the other: what a superstep costs.

use super::contest::{CPU_PER_STEP, Contest, Measure, STEPS_PER_SECOND};
use super::findings::{Findings, Which};
use super::lab::Lab;
use super::report::Goal;
use super::side::{
    ADK_GRAPH, GRAPH_FLOW, JAVASCRIPT, JAVASCRIPT_SYNC, ONE_ROW, OURS, PYTHON, PYTHON_SYNC,
    SAME_ROWS, Side,
};

pub(super) fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut found = Findings::new("chain", lab.quick);
    for (store, sides) in STORES {
        let contest = Contest {
            title: TITLE.to_owned(),
            work: "chain",
            store,
            settings: vec!["at_once=1".to_owned(), lab.seconds()],
            rounds: lab.short_rounds(),
            measure: Measure::Speed,
            sides,
        };
        found.hold(lab, &contest)?;
    }
    set_goals(&mut found);
    Ok(found)
}

fn set_goals(found: &mut Findings) {
    let of = |store, figure| Which {
        title: TITLE,
        store,
        figure,
    };
    let unkept = of("none", STEPS_PER_SECOND);
    found.judge(unkept, PYTHON, Goal::RatioAtLeast(100.0));
    found.judge(unkept, JAVASCRIPT, Goal::RatioAtLeast(100.0));
    // It keeps no log in memory, so it is a ceiling.
    found.show_best(unkept, &[GRAPH_FLOW]);
    for (store, cpu) in [("sqlite", 40.0), ("postgres", 25.0)] {
        let speed = of(store, STEPS_PER_SECOND);
        // The floor that writes what ours writes does not reach the other one either.
        found.show_best(speed, &[ONE_ROW]);
        found.judge(speed, SAME_ROWS, Goal::RatioAtLeast(0.85));
        let cost = of(store, CPU_PER_STEP);
        found.judge(cost, PYTHON, Goal::RatioAtMost(1.0 / cpu));
    }
}

const TITLE: &str = "chain of 20 nodes";

const STORES: [(&str, &[Side]); 3] = [
    ("none", &[OURS, GRAPH_FLOW, ADK_GRAPH, PYTHON, JAVASCRIPT]),
    (
        "sqlite",
        &[
            OURS,
            ONE_ROW,
            SAME_ROWS,
            ADK_GRAPH,
            PYTHON,
            PYTHON_SYNC,
            JAVASCRIPT,
            JAVASCRIPT_SYNC,
        ],
    ),
    (
        "postgres",
        &[
            OURS,
            ONE_ROW,
            SAME_ROWS,
            GRAPH_FLOW,
            PYTHON,
            PYTHON_SYNC,
            JAVASCRIPT,
            JAVASCRIPT_SYNC,
        ],
    ),
];
