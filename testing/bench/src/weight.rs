//! What threads weigh on disk: one long conversation, and many that wait for an answer.

use super::contest::{BYTES, BYTES_EACH, Contest, Measure};
use super::findings::{Findings, Which};
use super::lab::Lab;
use super::report::Goal;
use super::side::{ADK_GRAPH, GRAPH_FLOW, JAVASCRIPT, OURS, PYTHON, PYTHON_DELTA, Side};

/// A planner and a tool, two hundred turns.
pub(super) fn of_a_loop(lab: &Lab, found: &mut Findings) -> anyhow::Result<()> {
    for (store, sides) in LOOP {
        let contest = Contest {
            title: TURNS.to_owned(),
            work: "loop",
            store,
            settings: vec!["turns=200".to_owned()],
            rounds: lab.rounds(),
            measure: Measure::Bytes,
            sides,
        };
        found.hold(lab, &contest)?;
        let which = Which {
            title: TURNS,
            store,
            figure: BYTES,
        };
        found.weigh(which, PYTHON, Goal::RatioAtMost(1.0 / 100.0));
        // On PostgreSQL the first pages of every table and index are most of a single thread.
        if store == "sqlite" {
            found.weigh(which, PYTHON_DELTA, Goal::RatioAtMost(1.0 / 5.0));
        }
    }
    of_one_more(lab, found)
}

/// What one more conversation weighs where there are many.
fn of_one_more(lab: &Lab, found: &mut Findings) -> anyhow::Result<()> {
    let threads = lab.size(64, 8);
    let contest = Contest {
        title: ONE_MORE.to_owned(),
        work: "marginal",
        store: "postgres",
        settings: vec!["turns=200".to_owned(), format!("threads={threads}")],
        rounds: 1,
        measure: Measure::BytesEach,
        sides: &[OURS, PYTHON_DELTA],
    };
    found.hold(lab, &contest)?;
    let which = Which {
        title: ONE_MORE,
        store: "postgres",
        figure: BYTES_EACH,
    };
    // Of few threads it says little, so a quick look does not judge it.
    found.limit(which, 180_000.0);
    found.judge(which, PYTHON_DELTA, Goal::RatioAtMost(1.0 / 5.0));
    Ok(())
}

/// Ten thousand that wait. They weigh the same in every round, so there is one.
pub(super) fn of_parked(lab: &Lab, found: &mut Findings) -> anyhow::Result<()> {
    let threads = lab.size(10_000, 300);
    for (store, sides) in PARKED {
        let contest = Contest {
            title: format!("{threads} parked threads"),
            work: "parked",
            store,
            settings: vec![format!("threads={threads}")],
            rounds: 1,
            measure: Measure::BytesEach,
            sides,
        };
        found.hold(lab, &contest)?;
    }
    Ok(())
}

const TURNS: &str = "loop of 200 turns";
const ONE_MORE: &str = "one more loop of 200 turns";

const LOOP: [(&str, &[Side]); 2] = [
    (
        "sqlite",
        &[OURS, ADK_GRAPH, PYTHON, PYTHON_DELTA, JAVASCRIPT],
    ),
    (
        "postgres",
        &[OURS, GRAPH_FLOW, PYTHON, PYTHON_DELTA, JAVASCRIPT],
    ),
];
const PARKED: [(&str, &[Side]); 2] = [
    ("sqlite", &[OURS, ADK_GRAPH, PYTHON, JAVASCRIPT]),
    ("postgres", &[OURS, GRAPH_FLOW, PYTHON, JAVASCRIPT]),
];
