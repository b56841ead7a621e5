//! `archie atris`: answers a question with an API.

pub mod health;
mod reported;
mod state_log;
pub mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use archie_agent::{Agent, Exit};
use archie_atris::state::AtrisState;
use archie_atris::{Extraction, NAME, NO_MODEL, Options, agent_with};

use crate::app::App;
use crate::cli::settings::Engine;
use crate::session::Session;
use health::{HealthArgs, handle_health_command};
use watch::{WatchArgs, handle_watch_command};

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct AtrisArgs {
    /// Your question. Default: asks for it
    pub query: Option<String>,
    /// API to ask, see `archie api list`. Default: the one that fits
    #[arg(long, value_name = "NAME")]
    pub api: Option<String>,
    /// Call to make, by its id. Default: the one that fits
    #[arg(long, value_name = "ID", requires = "api")]
    pub call: Option<String>,
    /// Who reads the question: rules, model or auto. Default: auto
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub extract: Option<Extract>,
    /// Continue this thread, which remembers hosts and errors
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Answer only from recorded responses
    #[arg(long)]
    pub offline: bool,
    /// Show each node's update and the counts of errors
    #[arg(long)]
    pub debug: bool,
    /// Append the state before and after each node to FILE as JSON lines
    #[arg(long, value_name = "FILE")]
    pub log_state: Option<PathBuf>,
    /// Print the result as JSON, and everything else to stderr
    #[arg(long)]
    pub json: bool,
    /// What else.
    #[command(subcommand)]
    pub command: Option<AtrisCommand>,
}

/// Who reads category, call and parameters out of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Extract {
    /// The rules alone
    Rules,
    /// The model, checked by the rules
    Model,
    /// The rules, and the model in case of doubt
    Auto,
}

impl From<Extract> for Extraction {
    fn from(extract: Extract) -> Self {
        match extract {
            Extract::Rules => Self::Rules,
            Extract::Model => Self::Model,
            Extract::Auto => Self::Auto,
        }
    }
}

/// What else can be done.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub enum AtrisCommand {
    /// Repeat a question and report what changed
    Watch(WatchArgs),
    /// Check that hosts answer and keys are set
    Health(HealthArgs),
}

/// Runs `archie atris`.
pub async fn handle_atris_command(args: &AtrisArgs, session: &Session<'_>) -> anyhow::Result<Exit> {
    match &args.command {
        Some(AtrisCommand::Watch(args)) => return handle_watch_command(args, session).await,
        Some(AtrisCommand::Health(args)) => return handle_health_command(args, session).await,
        None => {}
    }
    let query = match &args.query {
        Some(query) => query.clone(),
        None => session
            .terminal
            .ask("What do you want to know? ")?
            .unwrap_or_default(),
    };
    let address = match (&args.api, &args.call) {
        (Some(api), Some(call)) => Some(format!("{api}/{call}")),
        (api, _) => api.clone(),
    };
    let query = addressed(&query, address.as_deref())?;
    refuse_offline_elsewhere(args.offline, session.app)?;
    refuse_extract(args.extract, session.app)?;
    let model = usable_model(args.extract, session)?;
    let llm = llm_of(args.extract, model.as_deref());
    let options = Options {
        offline: args.offline,
        debug: args.debug,
        extraction: args.extract.map(Extraction::from).unwrap_or_default(),
        ..Options::default()
    };
    let mut log = match &args.log_state {
        Some(file) => Some(state_log::open(file)?),
        None => None,
    };
    let agent = agent_of(session.app, &options)?;
    let thread = match &args.thread {
        Some(prefix) => {
            let (_, row) = session.app.find(prefix).await?;
            if row.graph != NAME {
                bail!(
                    "{} is a thread of `{}`, not of `{NAME}`",
                    row.thread,
                    row.graph
                );
            }
            agent.thread(
                &session.app.runtime,
                &row.thread.to_string(),
                Default::default(),
            )?
        }
        None => session.new_thread(&agent, &query)?,
    };
    let start = AtrisState::ask_with(llm, &query, options.extraction);
    let exit = session
        .begin(&agent, &*thread, serde_json::to_value(start)?)
        .await;
    // A run that failed is logged too. The log never changes what the run came to.
    if let Some(log) = &mut log
        && let Err(error) = state_log::append(log, &*thread, session.app).await
    {
        session
            .terminal
            .aside(&format!("the states were not logged: {error:#}"));
    }
    exit
}

/// Returns the chosen model if it can be used. Without it, the rules answer, unless the model has to.
fn usable_model(extract: Option<Extract>, session: &Session<'_>) -> anyhow::Result<Option<String>> {
    let app = session.app;
    let Some(name) = &app.settings.model else {
        return Ok(None);
    };
    if extract == Some(Extract::Rules) || app.settings.engine != Engine::Local {
        return Ok(Some(name.clone()));
    }
    match app.models.get(name) {
        Ok(_) => Ok(Some(name.clone())),
        Err(error) if extract == Some(Extract::Model) => Err(error.into()),
        Err(error) => {
            session
                .terminal
                .aside(&format!("{error}; the rules answer without a model"));
            Ok(None)
        }
    }
}

/// Returns the model that the thread stores. With the rules alone it is none, so that a process that resumes the thread does not
/// ask a model either.
fn llm_of(extract: Option<Extract>, model: Option<&str>) -> &str {
    match extract {
        Some(Extract::Rules) => NO_MODEL,
        Some(Extract::Model | Extract::Auto) | None => model.unwrap_or(NO_MODEL),
    }
}

/// Refuses a choice that cannot be carried out.
fn refuse_extract(extract: Option<Extract>, app: &App) -> anyhow::Result<()> {
    match extract {
        Some(Extract::Model) if app.settings.model.is_none() => {
            bail!("`--extract model` needs a model; name it with `--model`")
        }
        Some(_) if app.settings.engine != Engine::Local => {
            bail!("`--extract` cannot be combined with `--engine`")
        }
        _ => Ok(()),
    }
}

/// Prefixes the question with the name of the API, if one was given.
pub(super) fn addressed(query: &str, api: Option<&str>) -> anyhow::Result<String> {
    if query.trim().is_empty() {
        bail!("nothing was asked; say it as in `archie atris \"What are the trending tracks?\"`");
    }
    Ok(match api {
        Some(name) => format!("@{name} {}", query.trim()),
        None => query.trim().to_owned(),
    })
}

/// Refuses `--offline` with an engine: the option does not reach the workers of a cluster, which use their own network access.
pub(super) fn refuse_offline_elsewhere(offline: bool, app: &App) -> anyhow::Result<()> {
    if offline && app.settings.engine != Engine::Local {
        bail!("`--offline` cannot be combined with `--engine`");
    }
    Ok(())
}

/// Builds an agent with these options and registers it, so that the runtime uses it for its threads from now on.
fn agent_of(app: &App, options: &Options) -> anyhow::Result<Arc<Agent>> {
    let agent = agent_with(&app.deps(), options)?;
    agent.register(&app.runtime);
    Ok(agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_the_rules_alone_stores_no_model() {
        let model = Some("fake/script");
        assert_eq!(llm_of(Some(Extract::Rules), model), NO_MODEL);
        assert_eq!(llm_of(Some(Extract::Model), model), "fake/script");
        assert_eq!(llm_of(None, model), "fake/script");
        assert_eq!(llm_of(None, None), NO_MODEL);
    }
}
