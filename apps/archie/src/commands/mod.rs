//! Commands, one module each.

pub mod analyze;
pub mod api;
pub mod atris;
pub mod audit;
mod backup;
mod check;
mod demo;
mod diff;
pub mod docs;
mod docs_versions;
mod doctor;
pub mod encryption;
mod erase;
mod eval;
pub(crate) mod files;
mod fork;
mod graph;
mod history;
mod inbox;
pub mod inquiry;
pub mod keys;
pub mod mail;
pub mod mcp;
mod models;
mod new;
mod questions;
mod resume;
pub mod serve;
pub mod setup;
pub mod sheet;
mod sheet_diff;
mod size;
mod studio;
mod test;
mod threads;
mod trace;
mod undo;
mod worker;

use archie_agent::{AgentFactory, Exit, Terminal};
use clap::CommandFactory;

use crate::app::App;
use crate::cli::args::{Args, Command};
use crate::cli::settings::Settings;
use crate::session::Session;
use crate::terminal::Console;
use analyze::handle_analyze_command;
use api::handle_api_command;
use atris::{AtrisCommand, handle_atris_command};
use docs::handle_docs_command;
use inquiry::{handle_ask_command, handle_build_context_command};
use mail::handle_mail_command;
use mcp::handle_mcp_command;
use sheet::handle_sheet_command;

/// Runs a command that needs an open store, and exports the traces of its threads.
pub async fn run(command: &Command, app: &App, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let work = Box::pin(obey(command, app, terminal));
    app.traces.during(work, terminal).await
}

async fn obey(command: &Command, app: &App, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let session = |json| Session {
        app,
        terminal,
        json,
    };
    match command {
        Command::Analyze(args) => {
            let model = match &args.recheck {
                Some(_) => String::new(),
                None => app.ready_model().await?,
            };
            handle_analyze_command(args, &model, &session(args.json)).await
        }
        Command::Ask(args) => handle_ask_command(args, &session(args.json)).await,
        Command::BuildContext(args) => {
            handle_build_context_command(args, &session(args.json)).await
        }
        Command::Docs(args) => {
            // Only a run that writes needs a model.
            let model = match args.check || args.command.is_some() {
                true => String::new(),
                false => app.ready_model().await?,
            };
            handle_docs_command(args, &model, &session(args.json)).await
        }
        Command::Sheet(args) => handle_sheet_command(args, &session(args.json())).await,
        Command::Atris(args) => {
            let json = match &args.command {
                Some(AtrisCommand::Watch(watch)) => watch.json,
                Some(AtrisCommand::Health(health)) => health.json,
                None => args.json,
            };
            handle_atris_command(args, &session(json)).await
        }
        Command::Api(args) => handle_api_command(args, app, terminal).await,
        Command::Mcp(args) => handle_mcp_command(args, app, terminal).await,
        Command::Mail(args) => handle_mail_command(args, app, terminal).await,
        Command::Run(args) => resume::run(args, app, terminal).await,
        Command::Resume(args) => resume::resume(args, app, terminal).await,
        Command::Threads(args) => threads::list(args, app, terminal).await,
        Command::Show(args) => threads::show(args, app, terminal).await,
        Command::History(args) => history::run(args, app, terminal).await,
        Command::Fork(args) => fork::run(args, app, terminal).await,
        Command::Undo(args) => undo::run(args, app, terminal).await,
        Command::Diff(args) => diff::run(args, app, terminal).await,
        Command::Inbox(args) => inbox::run(args, app, terminal).await,
        Command::Trace(args) => trace::trace(args, app, terminal).await,
        Command::Graph(args) => graph::run(args, app, terminal),
        Command::Export(args) => threads::export(args, app, terminal).await,
        Command::Import(args) => threads::import(args, app, terminal).await,
        Command::Delete(args) => threads::delete(args, app, terminal).await,
        Command::Check(args) => check::run(args, app, terminal).await,
        Command::Models(args) => models::run(args, app, terminal).await,
        Command::Setup(args) => setup::run(args, app, terminal).await,
        Command::Doctor(args) => doctor::run(args, app, terminal).await,
        Command::Eval(args) => eval::run(args, app, terminal).await,
        Command::Backup(args) => backup::run(args, app, terminal).await,
        Command::Erase(args) => erase::run(args, app, terminal).await,
        Command::Size(args) => size::run(args, app, terminal).await,
        Command::Audit(_)
        | Command::Demo(_)
        | Command::Encryption(_)
        | Command::Keys(_)
        | Command::New(_)
        | Command::Serve(_)
        | Command::Studio(_)
        | Command::Test(_)
        | Command::Worker(_)
        | Command::Completions { .. } => {
            anyhow::bail!("this command is not for an open store")
        }
    }
}

/// Runs a command that does not need an open store.
pub fn without_home(
    command: &Command,
    settings: &Settings,
    makers: &[AgentFactory],
) -> anyhow::Result<Exit> {
    match command {
        Command::Audit(args) => audit::run(args, settings, &Console::new()),
        Command::Demo(args) => demo::run(args),
        Command::Encryption(args) => encryption::run(args, settings, &Console::new()),
        Command::New(args) => new::run(args, &Console::new()),
        Command::Keys(args) => keys::run(args, settings, &Console::new()),
        Command::Serve(args) => serve::run(args, settings, makers, &Console::new(), &|_| {}),
        Command::Studio(args) => studio::run(args, settings, makers, &Console::new()),
        Command::Test(args) => test::run(args, makers, &Console::new()),
        Command::Worker(args) => worker::run(args, settings, makers, &Console::new()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "archie", &mut script);
            Console::new().verbatim(String::from_utf8_lossy(&script).trim_end());
            Ok(Exit::Done)
        }
        _ => anyhow::bail!("this command needs the store"),
    }
}
