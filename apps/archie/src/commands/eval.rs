//! `archie eval`: scores an agent, with the model that is set, on the cases that come with it.

mod analyze;
mod atris;
mod docs;
mod mail;
mod progress;
mod report;
mod share;
mod sheet;

use std::sync::Arc;
use std::time::Instant;

use archie_agent::{AgentDeps, Exit, Terminal};
use superstep::store::MemoryStore;

use self::analyze::evaluate_analyze;
use self::atris::evaluate_atris;
use self::docs::evaluate_docs;
use self::mail::evaluate_mail;
use self::progress::Progress;
use self::report::Report;
use self::sheet::evaluate_sheet;
use crate::app::App;
use crate::cli::args::{EvalAgent, EvalArgs};

pub(super) async fn run(
    args: &EvalArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    // Nothing that the person's agents have stored or learned takes part.
    let deps = AgentDeps {
        store: Arc::new(MemoryStore::default()),
        // A budget is counted in the person's store, by thread, and the threads of every evaluation have the same names.
        spending: None,
        thread_folders: None,
        web: None,
        ..app.deps()
    };
    let begun = Instant::now();
    let mut progress = Progress::new(terminal);
    let (agent, scores) = match args.agent {
        EvalAgent::Analyze => (
            "analyze",
            evaluate_analyze(args, app, &deps, &mut progress).await?,
        ),
        EvalAgent::Sheet => (
            "sheet",
            evaluate_sheet(args, app, &deps, &mut progress).await?,
        ),
        EvalAgent::Docs => (
            "docs",
            evaluate_docs(args, app, &deps, &mut progress).await?,
        ),
        EvalAgent::Atris => (
            "atris",
            evaluate_atris(args, app, &deps, &mut progress).await?,
        ),
        EvalAgent::Mail => (
            "mail",
            evaluate_mail(args, app, &deps, &mut progress).await?,
        ),
    };
    drop(progress);
    let report = Report {
        agent,
        is_plain: args.plain,
        model: deps.model.unwrap_or_else(|| "none".to_owned()),
        seconds: begun.elapsed().as_secs(),
        scores,
    };
    match args.json {
        true => terminal.json(&report.json()),
        false => report.print(terminal),
    }
    Ok(report.scores.exit())
}

/// Takes this many cases from all over a set; all of them without a number.
fn sample<T>(cases: Vec<T>, count: Option<usize>) -> Vec<T> {
    let Some(count) = count else { return cases };
    let all = cases.len();
    let is_taken = |at: usize| at * count / all != (at + 1) * count / all;
    let numbered = cases.into_iter().enumerate();
    numbered
        .filter(|(at, _)| count >= all || is_taken(*at))
        .map(|(_, case)| case)
        .collect()
}

#[test]
fn a_sample_comes_from_all_over_the_set() {
    let taken = |count| sample((0..10).collect(), count);
    assert_eq!(taken(Some(2)), [4, 9]);
    assert_eq!(taken(Some(99)).len(), 10);
    assert_eq!(taken(None).len(), 10);
    for count in 0..=10 {
        assert_eq!(taken(Some(count)).len(), count);
    }
}
