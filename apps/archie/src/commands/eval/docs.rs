//! Scores `docs`: what the pages say about five small repositories, and which names they invent.

use archie_agent::AgentDeps;
use archie_docs::evaluation::{
    FoundCount, RepositoryScore, evaluate, evaluate_plain, repositories,
};

use super::progress::Progress;
use super::report::Scores;
use super::sample;
use super::share::Share;
use crate::app::App;
use crate::cli::args::EvalArgs;

pub(super) async fn evaluate_docs(
    args: &EvalArgs,
    app: &App,
    deps: &AgentDeps,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Scores> {
    let name = app.settings.model()?;
    let repositories = sample(repositories()?, args.cases);
    let of = repositories.len();
    let on_done = |done| progress.set(done, of);
    let scored = match args.plain {
        true => {
            let model = app.models.get(name)?;
            evaluate_plain(&repositories, model.as_ref(), on_done).await?
        }
        false => {
            let folder = tempfile::Builder::new().prefix("archie-eval-").tempdir()?;
            evaluate(&repositories, deps, name, folder.path(), on_done).await?
        }
    };
    let total = |count: fn(&RepositoryScore) -> FoundCount| {
        let FoundCount { found, of } = scored.total(count);
        Share { right: found, of }
    };
    let wrong = scored.repositories.iter().filter(|score| !score.is_full());
    Ok(Scores {
        measures: vec![
            ("symbols found", total(|score| score.symbols)),
            ("relations found", total(|score| score.relations)),
            ("entry points found", total(|score| score.entry_points)),
            ("names that exist", total(|score| score.names)),
            ("pages complete", total(|score| score.pages)),
        ],
        forbidden: None,
        wrong: wrong.map(line).collect(),
    })
}

/// Formats what is missing and invented in a line.
fn line(score: &RepositoryScore) -> String {
    let mut parts = Vec::new();
    if let Some(failed) = &score.failed {
        parts.push(format!("failed: {failed}"));
    }
    if !score.pages.is_full() {
        let FoundCount { found, of } = score.pages;
        parts.push(format!("{found} of {of} pages complete"));
    }
    for (what, names) in [("missing", &score.missing), ("invented", &score.invented)] {
        if !names.is_empty() {
            parts.push(format!("{what} {}", names.join(", ")));
        }
    }
    format!("{}: {}", score.name, parts.join("; "))
}
