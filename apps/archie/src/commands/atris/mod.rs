//! `archie atris`: from its arguments to its answer.

use std::sync::Arc;

use anyhow::bail;
use serde_json::{Value as Json, json};

use super::state::{AtrisState, OFTEN};
use super::watch::{WatchArgs, handle_watch_command};
use super::{NAME, NO_MODEL, Options, agent_with, answer, log, write};
use crate::agents::{AnyAgent, AnyThread, BoxFuture, Workshop, state_of};
use crate::cli::settings::Engine;
use crate::exit::Exit;
use crate::home::Home;
use crate::questions::Asked;
use crate::talk::{Manner, Talk};

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct AtrisArgs {
    /// Your question. Default: asks for it
    pub query: Option<String>,
    /// API to ask, see `archie api list`. Default: audius
    #[arg(long, value_name = "NAME")]
    pub api: Option<String>,
    /// Continue this thread, which remembers hosts and errors
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Answer only from recorded responses
    #[arg(long)]
    pub offline: bool,
    /// Show each node's update and the counts of errors
    #[arg(long)]
    pub debug: bool,
    /// Print the result as JSON, and everything else to stderr
    #[arg(long)]
    pub json: bool,
    /// What else.
    #[command(subcommand)]
    pub command: Option<AtrisCommand>,
}

/// What else can be done.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub enum AtrisCommand {
    /// Repeat a question and report what changed
    Watch(WatchArgs),
}

/// `atris` from its arguments to its end.
pub async fn handle_atris_command(args: &AtrisArgs, talk: &Talk<'_>) -> anyhow::Result<Exit> {
    if let Some(AtrisCommand::Watch(args)) = &args.command {
        return handle_watch_command(args, talk).await;
    }
    let query = match &args.query {
        Some(query) => query.clone(),
        None => talk
            .say
            .ask("What do you want to know? ")?
            .unwrap_or_default(),
    };
    let query = addressed(&query, args.api.as_deref())?;
    refuse_offline_elsewhere(args.offline, talk.home)?;
    let options = Options {
        offline: args.offline,
        debug: args.debug,
        ..Options::default()
    };
    let agent = agent_of(talk.home, options)?;
    let thread = match &args.thread {
        Some(prefix) => {
            let (_, row) = talk.home.find(prefix).await?;
            if row.graph != NAME {
                bail!(
                    "{} is a thread of `{}`, not of `{NAME}`",
                    row.thread,
                    row.graph
                );
            }
            agent.thread(
                &talk.home.runtime,
                &row.thread.to_string(),
                Default::default(),
            )?
        }
        None => talk.new_thread(&*agent, &query)?,
    };
    let start = AtrisState::ask(
        talk.home.settings.model.as_deref().unwrap_or(NO_MODEL),
        &query,
    );
    talk.begin(&*agent, &*thread, serde_json::to_value(start)?)
        .await
}

/// The question with the name of the API before it, if it is not the usual one.
pub(super) fn addressed(query: &str, api: Option<&str>) -> anyhow::Result<String> {
    if query.trim().is_empty() {
        bail!("nothing was asked; say it as in `archie atris \"What are the trending tracks?\"`");
    }
    Ok(match api {
        Some(name) => format!("@{name} {}", query.trim()),
        None => query.trim().to_owned(),
    })
}

/// Workers of a cluster reach the world in their own way; that they must not has to be said to them.
pub(super) fn refuse_offline_elsewhere(offline: bool, home: &Home) -> anyhow::Result<()> {
    if offline && home.settings.engine != Engine::Local {
        bail!("`--offline` cannot be combined with `--engine`");
    }
    Ok(())
}

/// An agent for this command, which the runtime goes on with from now on.
fn agent_of(home: &Home, options: Options) -> anyhow::Result<Arc<dyn AnyAgent>> {
    let agent = agent_with(&workshop(home), options)?;
    agent.register(&home.runtime);
    Ok(agent)
}

pub(super) fn workshop(home: &Home) -> Workshop {
    let spending = home.settings.budget.as_ref();
    Workshop {
        settings: home.settings.clone(),
        models: home.models.clone(),
        store: home.memory.clone(),
        spending: spending.map(|limits| {
            superstep_agent::Spending::new(home.memory.clone()).per_thread(limits.clone())
        }),
    }
}

/// How atris meets a person.
pub(super) struct Asking {
    pub(super) debug: bool,
}

impl Manner for Asking {
    fn put(&self, asked: &Asked) -> String {
        write::put(asked)
    }

    fn read(&self, asked: &Asked, line: &str) -> Result<Json, String> {
        read_outcome(asked, line).unwrap_or_else(|| asked.read(line))
    }

    fn prompt(&self, asked: &Asked) -> String {
        match asked.kind.as_str() {
            OUTCOME_UNKNOWN => "happened, call or response …: ".to_owned(),
            _ => asked.prompt(),
        }
    }

    /// The model only picks from lists.
    fn shows_words(&self) -> bool {
        false
    }

    fn is_finished(&self, state: &Json) -> bool {
        state["query"].is_null()
    }

    fn with_model(&self, _state: &Json, model: &str) -> Option<Json> {
        Some(json!({ "llm": model }))
    }

    fn finish<'a>(
        &'a self,
        talk: &'a Talk<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(finish(thread, talk, self.debug))
    }
}

/// What a person says of a call whose outcome is unknown, in a word.
pub(super) fn read_outcome(asked: &Asked, line: &str) -> Option<Result<Json, String>> {
    let word = line.trim();
    match (asked.kind.as_str(), word) {
        (OUTCOME_UNKNOWN, "happened" | "call") => Some(Ok(json!({ "type": word }))),
        _ => None,
    }
}

async fn finish(thread: &dyn AnyThread, talk: &Talk<'_>, debug: bool) -> anyhow::Result<Exit> {
    let state: AtrisState = state_of(thread).await?;
    let written = log::last_run(thread).await?;
    let wrote = |field: &str| {
        written
            .iter()
            .rev()
            .map(|written| &written.update[field])
            .find(|value| !value.is_null())
    };
    let error = wrote("error").cloned();
    let answer = state
        .message_history
        .last()
        .map(|said| said.content.clone())
        .unwrap_or_default();
    if talk.json {
        talk.say.json(&json!({
            "thread": thread.id(),
            "answer": answer,
            "error": error,
            "response": wrote("secondaryResponse").or_else(|| wrote("response")),
            "bestApi": wrote("bestApi").map(|api| &api["id"]),
            "parameters": wrote("parameters"),
            "selectedHost": state.selected_host,
            "notes": wrote("messages"),
            "requests": written.iter().flat_map(|written| written.requests.clone()).collect::<Vec<_>>(),
            "errors": frequency(&state),
            "nodes": debug.then_some(&written),
        }));
    } else {
        if debug {
            written
                .iter()
                .for_each(|written| talk.say.line(&log::line(written)));
        }
        for note in wrote("messages")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
        {
            talk.say.aside(&format!(
                "note: {}",
                answer::shown(note["content"].as_str().unwrap_or_default())
            ));
        }
        talk.say.line(&answer);
        if debug {
            state.error_frequency().iter().for_each(|(entry, count)| {
                let often = if *count > OFTEN { "  (often)" } else { "" };
                talk.say.line(&format!(
                    "{count:>4} × {}: {}{often}",
                    entry.node, entry.error
                ));
            });
        }
        talk.say.aside(&format!("thread {}", thread.id()));
    }
    Ok(if error.is_some() {
        Exit::Failed
    } else {
        Exit::Done
    })
}

fn frequency(state: &AtrisState) -> Json {
    let counted = state.error_frequency();
    counted.iter().map(|(entry, count)| json!({ "node": entry.node, "error": entry.error, "count": count, "often": *count > OFTEN })).collect()
}

const OUTCOME_UNKNOWN: &str = "outcome_unknown";
