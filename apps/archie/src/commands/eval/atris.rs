//! Scores `atris`: the right call, with the right parameters.

use archie_agent::AgentDeps;
use archie_atris::evaluation::{Half, evaluate, evaluate_plain, questions};

use super::progress::Progress;
use super::report::Scores;
use super::sample;
use super::share::Share;
use crate::app::App;
use crate::cli::args::EvalArgs;

pub(super) async fn evaluate_atris(
    args: &EvalArgs,
    app: &App,
    deps: &AgentDeps,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Scores> {
    let questions = sample(questions()?, args.cases);
    let of = questions.len();
    let on_done = |done| progress.set(done, of);
    let scored = match args.plain {
        true => {
            let model = app.models.get(app.settings.model()?)?;
            evaluate_plain(model.as_ref(), questions, on_done).await?
        }
        false => {
            let llm = deps.model.as_deref().unwrap_or(archie_atris::NO_MODEL);
            let options = archie_atris::Options::default();
            evaluate(deps, llm, &options, questions, on_done).await?
        }
    };
    let right = |half| {
        let (right, of) = scored.score(half);
        Share { right, of }
    };
    let calls = scored.results.iter().filter(|result| result.right_call);
    let calls = Share {
        right: calls.count(),
        of: scored.results.len(),
    };
    let wrong = scored.results.iter().filter(|result| !result.right);
    Ok(Scores {
        measures: vec![
            ("right", right(None)),
            ("right, tuned half", right(Some(Half::Tuned))),
            ("right, held-out half", right(Some(Half::HeldOut))),
            ("right call", calls),
        ],
        forbidden: (!args.plain)
            .then_some(("writes without approval", scored.writes_without_approval)),
        wrong: wrong
            .map(|result| {
                format!(
                    "@{} {}: {} instead of {}",
                    result.api, result.question, result.became, result.expected
                )
            })
            .collect(),
    })
}
