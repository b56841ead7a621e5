//! Scores `sheet`: questions about workbooks, and changes of them.

use anyhow::Context;
use archie_agent::AgentDeps;
use archie_agent::printable::summary_line;
use archie_sheet::evaluation::{ScoredTask, evaluate, evaluate_plain, tasks};

use super::progress::Progress;
use super::report::Scores;
use super::sample;
use super::share::Share;
use crate::app::App;
use crate::cli::args::EvalArgs;

/// Scores the agent, or with `--plain` a prompt that holds the sheets as CSV.
///
/// A plain prompt cannot change a workbook, so those tasks count as wrong. To compare it with the agent, take `right, questions`,
/// which it reports first.
pub(super) async fn evaluate_sheet(
    args: &EvalArgs,
    app: &App,
    deps: &AgentDeps,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Scores> {
    let name = app.settings.model()?;
    let mut tasks = tasks();
    // Every third task changes its workbook. In that order, a sample of a third would have no questions.
    tasks.sort_by_key(|task| !task.is_question());
    let tasks = sample(tasks, args.cases);
    let of = tasks.len();
    let scored = match args.plain {
        true => {
            let model = app.models.get(name)?;
            evaluate_plain(model.as_ref(), &tasks, |done| progress.set(done, of)).await?
        }
        false => {
            // Waits for commands, for a minute if it has to make a Python environment.
            progress.note("preparing Python for the sandbox");
            let ready = tokio::task::spawn_blocking(|| archie_sheet::make_ready(|_| ()));
            ready.await?.context("its code cannot run here")?;
            let folder = tempfile::Builder::new().prefix("archie-eval-").tempdir()?;
            let deps = AgentDeps {
                data_folder: folder.path().to_owned(),
                ..deps.clone()
            };
            evaluate(&deps, name, &tasks, |done| progress.set(done, of)).await?
        }
    };
    let share = |is_counted: &dyn Fn(&ScoredTask) -> bool, is_met: &dyn Fn(&ScoredTask) -> bool| {
        let counted: Vec<_> = scored
            .tasks
            .iter()
            .filter(|task| is_counted(task))
            .collect();
        Share {
            right: counted.iter().filter(|task| is_met(task)).count(),
            of: counted.len(),
        }
    };
    let right = |is_counted: &dyn Fn(&ScoredTask) -> bool| share(is_counted, &|task| task.is_right);
    let mut measures = vec![
        ("right", right(&|_| true)),
        ("right, questions", right(&|task| task.is_question)),
        ("right, changes", right(&|task| !task.is_question)),
    ];
    match args.plain {
        true => measures.swap(0, 1),
        false => measures.push((
            "ended with a result",
            share(&|_| true, &|task| task.has_result),
        )),
    }
    Ok(Scores {
        measures,
        forbidden: (!args.plain).then(|| ("inputs changed", scored.inputs_changed())),
        wrong: scored.wrong().map(line).collect(),
    })
}

fn line(task: &ScoredTask) -> String {
    let answer = match task.answer.is_empty() {
        true => "no answer".to_owned(),
        false => summary_line(&task.answer, ANSWER_CHARS),
    };
    format!("{}: {}: {answer}", task.id, task.why)
}

/// Maximum length of an answer in the report, in characters.
const ANSWER_CHARS: usize = 120;
