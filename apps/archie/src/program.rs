//! Parses, builds, runs, and maps to an exit code.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::agents::{AGENTS, MakeAgent};
use crate::cli::args::Args;
use crate::cli::settings::Settings;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Console;
use crate::{commands, shell};

/// The whole program, with agents of one's own beside those that come with it.
pub fn run(own: &[MakeAgent]) -> ExitCode {
    let args = Args::parse();
    log();
    let makers: Vec<MakeAgent> = AGENTS.iter().chain(own).copied().collect();
    match obey(&args, &makers) {
        Ok(exit) => exit.into(),
        Err(error) => {
            complain(&error);
            Exit::Failed.into()
        }
    }
}

fn obey(args: &Args, makers: &[MakeAgent]) -> anyhow::Result<Exit> {
    let settings = Settings::read(&args.given())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    match &args.command {
        Some(command) if !command.needs_home() => {
            commands::without_home(command, &settings, makers)
        }
        Some(command) => runtime.block_on(async {
            let mut home = Home::open(settings, makers).await?;
            commands::run(command, &mut home, &Console::new()).await
        }),
        None => {
            let home = runtime.block_on(Home::open(settings, makers))?;
            shell::start_shell(home, makers, &runtime)
        }
    }
}

/// To stderr, and only what is worth a person's time unless they ask for more.
fn log() {
    let wanted = std::env::var("ARCHIE_LOG").unwrap_or_else(|_| "error".to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(wanted)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}

/// Says what went wrong: what, why, and what to do, one below the other, on stderr.
pub(crate) fn complain(error: &anyhow::Error) {
    let mut err = std::io::stderr().lock();
    let mut said = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        // Some errors end with their cause already.
        if said.contains(&cause) {
            continue;
        }
        let begin = if said.is_empty() {
            "error: "
        } else {
            "  because: "
        };
        // Nobody is left to tell if this fails.
        let _ = writeln!(err, "{begin}{cause}");
        said.push_str(&cause);
    }
}
