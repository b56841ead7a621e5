//! A copy of a thread, to try something else.

use anyhow::{Context, bail};
use serde_json::json;
use superstep::Seq;

use crate::agents::analyze;
use crate::agents::analyze::state::AppStateUpdate;
use crate::cli::args::ForkArgs;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;

pub(super) async fn run(args: &ForkArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let (thread, row) = home.find(&args.thread).await?;
    let to = uuid::Uuid::now_v7().to_string();
    thread.copy_to(to.clone(), args.at.map(Seq)).await?;
    if let Some(model) = &args.with_model {
        if row.graph != analyze::NAME {
            bail!("only an analysis can go on with another model");
        }
        let model: superstep_llm::ModelName = model.parse()?;
        let update = AppStateUpdate::default().model_name(model.to_string());
        home.runtime
            .thread(&home.analyze, &to)?
            .update(update)
            .await?;
    }
    let copy = home.agent(&row.graph)?.thread(&home.runtime, &to)?;
    if let Some(answer) = &args.answer {
        // The copy asks again what its original asked there.
        let rest = copy.resume().await?;
        let question = match rest.outcome {
            superstep::Outcome::Paused(questions) => questions.into_iter().next(),
            _ => None,
        };
        let question =
            question.context("the copy does not stand at a question; leave --answer out")?;
        copy.answer(
            home.settings.person.clone(),
            vec![(question.id, json!(answer))],
        )
        .await?;
    }
    match args.json {
        true => say.json(&json!({ "thread": to, "of": row.thread.to_string() })),
        false => say.line(&format!(
            "{to} is a copy of {}; go on with `archie resume {to}`",
            row.thread
        )),
    }
    Ok(Exit::Done)
}
