//! Parses the command line, runs the command, and maps its result to an exit code.

use std::process::ExitCode;

use archie_agent::printable::is_hidden;
use archie_agent::{AgentFactory, Exit};
use clap::Parser;

use crate::agents::AGENTS;
use crate::app::App;
use crate::cli::args::Args;
use crate::cli::settings::Settings;
use crate::terminal::{self, Console};
use crate::{commands, shell};

/// Runs the whole program, with the agents `own` in addition to the built-in ones.
pub fn run(own: &[AgentFactory]) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| terminal::print_error(&panic.to_string())));
    let args = Args::try_parse().unwrap_or_else(|error| refuse(&error));
    log();
    let makers: Vec<AgentFactory> = AGENTS.iter().chain(own).copied().collect();
    match obey(&args, &makers) {
        Ok(exit) => exit.into(),
        Err(error) => {
            complain(&error);
            Exit::Failed.into()
        }
    }
}

fn obey(args: &Args, makers: &[AgentFactory]) -> anyhow::Result<Exit> {
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
            let app = App::open(settings, makers).await?;
            commands::run(command, &app, &Console::new()).await
        }),
        None => {
            let app = runtime.block_on(App::open(settings, makers))?;
            shell::start_shell(app, makers, &runtime)
        }
    }
}

/// Logs to stderr. Default: errors only; `ARCHIE_LOG` sets the filter.
fn log() {
    let wanted = std::env::var("ARCHIE_LOG").unwrap_or_else(|_| "error".to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(wanted)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        // No colours: they could not be distinguished from escape sequences in a field's value.
        .with_ansi(false)
        .with_writer(|| terminal::LogWriter)
        .init();
}

/// Exits with clap's error message, or with the help that was requested.
fn refuse(error: &clap::Error) -> ! {
    let is_plain = std::env::args_os().all(|arg| !arg.to_string_lossy().chars().any(is_hidden));
    if is_plain {
        error.exit();
    }
    // An argument may contain a hostile file name, and clap prints arguments unchanged.
    terminal::print_error(&error.to_string());
    std::process::exit(error.exit_code());
}

/// Prints an error and its causes to stderr, one per line.
pub(crate) fn complain(error: &anyhow::Error) {
    complain_with(error, str::to_owned);
}

/// Prints an error like [`complain`], with each line as `edit` returns it.
pub(crate) fn complain_with(error: &anyhow::Error, edit: impl Fn(&str) -> String) {
    let mut said = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        // Some error messages already include their cause.
        if said.contains(&cause) {
            continue;
        }
        let begin = if said.is_empty() {
            "error: "
        } else {
            "  because: "
        };
        terminal::print_error(&edit(&format!("{begin}{cause}")));
        said.push_str(&cause);
    }
}
