//! What each command does.

mod backup;
mod check;
mod demo;
mod diff;
mod doctor;
mod files;
mod fork;
mod graph;
mod inbox;
mod new;
mod resume;
mod threads;
mod trace;
mod worker;

use clap::CommandFactory;

use crate::agents::MakeAgent;
use crate::agents::analyze::command::handle_analyze_command;
use crate::agents::atris::api_command::handle_api_command;
use crate::agents::atris::command::{AtrisCommand, handle_atris_command};
use crate::agents::docs::command::handle_docs_command;
use crate::agents::email_assistant::command::handle_mail_command;
use crate::agents::sheet::command::handle_sheet_command;
use crate::cli::args::{Args, Command};
use crate::cli::settings::Settings;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::{Console, Say};
use crate::talk::Talk;

/// Does what was asked for.
pub async fn run(command: &Command, home: &mut Home, say: &dyn Say) -> anyhow::Result<Exit> {
    match command {
        Command::Analyze(args) => {
            let model = match &args.recheck {
                Some(_) => String::new(),
                None => home.settings.model()?.to_owned(),
            };
            let talk = Talk {
                home,
                say,
                json: args.json,
            };
            handle_analyze_command(args, &model, &talk).await
        }
        Command::Docs(args) => {
            let model = match args.check {
                true => String::new(),
                false => home.settings.model()?.to_owned(),
            };
            let talk = Talk {
                home,
                say,
                json: args.json,
            };
            handle_docs_command(args, &model, &talk).await
        }
        Command::Sheet(args) => {
            let json = args.json();
            handle_sheet_command(args, &Talk { home, say, json }).await
        }
        Command::Atris(args) => {
            let json = match &args.command {
                Some(AtrisCommand::Watch(watch)) => watch.json,
                None => args.json,
            };
            handle_atris_command(args, &Talk { home, say, json }).await
        }
        Command::Api(args) => handle_api_command(args, home, say).await,
        Command::Mail(args) => handle_mail_command(args, home, say).await,
        Command::Run(args) => resume::run(args, home, say).await,
        Command::Resume(args) => resume::resume(args, home, say).await,
        Command::Threads(args) => threads::list(args, home, say).await,
        Command::Show(args) => threads::show(args, home, say).await,
        Command::History(args) => threads::history(args, home, say).await,
        Command::Fork(args) => fork::run(args, home, say).await,
        Command::Diff(args) => diff::run(args, home, say).await,
        Command::Inbox(args) => inbox::run(args, home, say).await,
        Command::Trace(args) => trace::trace(args, home, say).await,
        Command::Graph(args) => graph::run(args, home, say),
        Command::Export(args) => threads::export(args, home, say).await,
        Command::Import(args) => threads::import(args, home, say).await,
        Command::Delete(args) => threads::delete(args, home, say).await,
        Command::Check(args) => check::run(args, home, say).await,
        Command::Doctor(args) => doctor::run(args, home, say).await,
        Command::Backup(args) => backup::run(args, home, say).await,
        Command::Demo(_) | Command::New(_) | Command::Worker(_) | Command::Completions { .. } => {
            anyhow::bail!("this command is not for an open store")
        }
    }
}

/// Does what needs no store.
pub fn without_home(
    command: &Command,
    settings: &Settings,
    makers: &[MakeAgent],
) -> anyhow::Result<Exit> {
    match command {
        Command::Demo(args) => demo::run(args),
        Command::New(args) => new::run(args, &Console::new()),
        Command::Worker(args) => worker::run(args, settings, makers, &Console::new()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "archie", &mut script);
            Console::new().line(String::from_utf8_lossy(&script).trim_end());
            Ok(Exit::Done)
        }
        _ => anyhow::bail!("this command needs the store"),
    }
}
