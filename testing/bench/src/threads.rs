//! Many threads at once over PostgreSQL, each doing the chain.

use super::contest::{Contest, Measure, STEPS_PER_SECOND};
use super::findings::{Findings, Which};
use super::lab::Lab;
use super::report::Goal;
use super::side::{
    GRAPH_FLOW, JAVASCRIPT, ONE_ROW_16, ONE_ROW_64, OURS, PYTHON, SAME_ROWS_16, SAME_ROWS_64, Side,
};

pub(super) fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut found = Findings::new("threads", lab.quick);
    let few = Contest {
        settings: vec!["at_once=64".to_owned(), lab.seconds()],
        rounds: lab.short_rounds(),
        ..contest(64, FEW)
    };
    found.hold(lab, &few)?;
    let one_row = [ONE_ROW_16, ONE_ROW_64];
    found.show_best(speed(&few), &one_row);
    let same_rows = [SAME_ROWS_16, SAME_ROWS_64];
    found.judge_best(speed(&few), &same_rows, Goal::RatioAtLeast(0.9));

    let threads = lab.size(1_000, 100);
    let many = Contest {
        // Every thread does the chain once.
        settings: vec![format!("at_once={threads}"), "seconds=0".to_owned()],
        rounds: lab.rounds(),
        ..contest(threads, MANY)
    };
    found.hold(lab, &many)?;
    found.judge(speed(&many), PYTHON, Goal::RatioAtLeast(30.0));
    found.judge(speed(&many), GRAPH_FLOW, Goal::RatioAtLeast(2.5));
    Ok(found)
}

fn contest(threads: usize, sides: &[Side]) -> Contest<'_> {
    Contest {
        title: format!("{threads} threads at once"),
        work: "chain",
        store: "postgres",
        settings: Vec::new(),
        rounds: 1,
        measure: Measure::Speed,
        sides,
    }
}

fn speed<'a>(contest: &'a Contest<'_>) -> Which<'a> {
    Which {
        title: &contest.title,
        store: contest.store,
        figure: STEPS_PER_SECOND,
    }
}

/// As many as there are writers, or as many connections as ours has: the faster one counts.
const FEW: &[Side] = &[OURS, ONE_ROW_16, ONE_ROW_64, SAME_ROWS_16, SAME_ROWS_64];
const MANY: &[Side] = &[OURS, GRAPH_FLOW, PYTHON, JAVASCRIPT];
