//! `archie fork`: copies a thread to try another answer or model.

use anyhow::Context;
use archie_agent::{Exit, InterruptRequest, Terminal};
use serde_json::{Value as Json, json};
use superstep::checkpoint::Metadata;
use superstep::{Seq, ThreadId, Value};
use superstep_llm::ModelName;
use superstep_server::ThreadFiles as _;

use super::threads::short_id;
use crate::app::App;
use crate::cli::args::ForkArgs;
use crate::cli::settings::Engine;
use crate::inbox::{self, Naming, approval};
use crate::session::Session;
use crate::thread_files::AgentFiles;

pub(super) async fn run(
    args: &ForkArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (thread, row) = app.find(&args.thread).await?;
    let agent = app.agent(&row.graph)?;
    let model = args.with_model.as_deref().map(ModelName::from_typed);
    let model = model.transpose()?.map(|model| model.to_string());
    if let Some(model) = &model
        && app.settings.engine == Engine::Local
    {
        // Before anything is copied: the copy could not use a model without its key.
        app.models.get(model)?;
    }
    let to = uuid::Uuid::now_v7().to_string();
    // Copy the files first, so that the new thread always has them.
    let files = AgentFiles::of(app);
    files.copy_all(&row.thread, &ThreadId::new(&to)?).await?;
    let found = thread.state(args.at.map(Seq)).await?;
    let context = found.as_ref().and_then(|state| state.run.context.clone());
    let state: Json = found.map_or(Ok(Json::Null), |state| state.values.decode())?;
    let mut other = agent.ui().in_copy(&state, &ThreadId::new(&to)?);
    if let Some(model) = &model {
        let update = agent.ui().with_model(&state, model);
        let update =
            update.with_context(|| format!("`{}` cannot resume with another model", row.graph))?;
        other = Some(merged(other, update));
    }
    let at = args.at.map(Seq);
    match model.and(context).map(without_model).transpose()?.flatten() {
        Some(context) => {
            let other = other.unwrap_or_else(|| json!({}));
            thread.copy_with_context(&to, at, other, context).await?
        }
        None => thread.copy_to(&to, at, other).await?,
    };
    let copy = app.thread(agent, &to, Metadata::new())?;
    if let Some(answer) = &args.answer {
        // The copy raises the interrupt of its original again.
        let rest = copy.recover_or_resume().await?;
        let question = match rest.outcome {
            superstep::Outcome::Paused(questions) => questions.into_iter().next(),
            _ => None,
        };
        let question =
            question.context("the copy does not stand at a question; leave --answer out")?;
        let asked = InterruptRequest::of(&question)?;
        let answer = agent.ui().read_answer(&asked, answer);
        let answer = answer.map_err(anyhow::Error::msg)?;
        if asked.permits_effect(&answer) {
            // The copy's interrupt has a new id, so no person has been shown it yet.
            let (item, _) = inbox::find(app, &asked.id.to_string()).await?;
            let session = Session {
                app,
                terminal,
                json: args.json,
            };
            let agreed = approval::require(&session, agent, &item, &Naming::ShortId).await;
            if let Err(refusal) = agreed {
                let done = Err(refusal.context(format!(
                    "{to} is a copy of {}, and its question stays open",
                    row.thread
                )));
                return approval::exit_of_refusal(done);
            }
        }
        let by = app.settings.person.clone();
        copy.answer_as(&by, vec![(question.id, answer)]).await?;
    }
    match args.json {
        true => terminal.json(&json!({ "thread": to, "of": row.thread.to_string() })),
        false => {
            // Short enough to be typed, and two of them fit a line.
            let original = short_id(app, &row.thread).await?;
            let copy = short_id(app, copy.id()).await?;
            terminal.line(&format!("{copy} is a copy of {original}"));
            terminal.hint(&format!("resume it with `archie resume {copy}`"));
        }
    }
    Ok(Exit::Done)
}

/// Returns the context of a run without the model that its caller chose, which would go before that of the state. `None` if it
/// chose none.
fn without_model(context: Value) -> anyhow::Result<Option<Json>> {
    let mut context: Json = context.decode()?;
    let removed = context
        .as_object_mut()
        .and_then(|fields| fields.remove("model"));
    Ok(removed.map(|_| context))
}

/// Adds the fields of one update to those of another.
fn merged(one: Option<Json>, other: Json) -> Json {
    match (one, other) {
        (Some(Json::Object(mut one)), Json::Object(other)) => {
            one.extend(other);
            Json::Object(one)
        }
        (_, other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_the_context_makes_way_for_that_of_the_copy() {
        let without = |context: Json| without_model(Value::plain(&context).unwrap()).unwrap();
        let chosen = json!({ "model": "script:a", "tone": "dry" });
        assert_eq!(without(chosen), Some(json!({ "tone": "dry" })));
        assert_eq!(without(json!({ "tone": "dry" })), None);
        assert_eq!(without(json!("ada")), None);
    }
}
