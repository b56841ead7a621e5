//! What each command does.

mod check;
mod demo;
mod diff;
mod doctor;
mod fork;
mod graph;
mod inbox;
mod resume;
mod threads;

use clap::CommandFactory;

use crate::agents::analyze::command::handle_analyze_command;
use crate::cli::args::{Args, Command};
use crate::cli::settings::Settings;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;

/// Does what was asked for.
pub async fn run(command: &Command, home: &mut Home, say: &dyn Say) -> anyhow::Result<Exit> {
    match command {
        Command::Analyze(args) => {
            let model = match &args.recheck {
                Some(_) => String::new(),
                None => home.settings.model()?.to_owned(),
            };
            handle_analyze_command(args, &model, home, say).await
        }
        Command::Resume(args) => resume::run(args, home, say).await,
        Command::Threads(args) => threads::list(args, home, say).await,
        Command::Show(args) => threads::show(args, home, say).await,
        Command::History(args) => threads::history(args, home, say).await,
        Command::Fork(args) => fork::run(args, home, say).await,
        Command::Diff(args) => diff::run(args, home, say).await,
        Command::Inbox(args) => inbox::run(args, home, say).await,
        Command::Trace(args) => threads::trace(args, home, say).await,
        Command::Graph(args) => graph::run(args, home, say),
        Command::Export(args) => threads::export(args, home, say).await,
        Command::Import(args) => threads::import(args, home, say).await,
        Command::Delete(args) => threads::delete(args, home, say).await,
        Command::Check(args) => check::run(args, home, say).await,
        Command::Doctor(args) => doctor::run(args, home, say).await,
        Command::Demo(_) | Command::Completions { .. } => without_home(command, &home.settings),
    }
}

/// Does what needs no store.
pub fn without_home(command: &Command, _settings: &Settings) -> anyhow::Result<Exit> {
    match command {
        Command::Demo(args) => demo::run(args),
        Command::Completions { shell } => {
            let mut out = std::io::stdout().lock();
            clap_complete::generate(*shell, &mut Args::command(), "archie", &mut out);
            Ok(Exit::Done)
        }
        _ => anyhow::bail!("this command needs the store"),
    }
}
