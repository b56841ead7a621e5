//! Parses, builds, runs, and maps to an exit code.

use std::io::IsTerminal;
use std::process::ExitCode;

use archie::cli::args::Args;
use archie::cli::settings::Settings;
use archie::exit::Exit;
use archie::home::Home;
use archie::say::Console;
use archie::{commands, shell};
use clap::Parser;

fn main() -> ExitCode {
    let args = Args::parse();
    log();
    match run(&args) {
        Ok(exit) => exit.into(),
        Err(error) => {
            archie::complain(&error);
            Exit::Failed.into()
        }
    }
}

fn run(args: &Args) -> anyhow::Result<Exit> {
    let settings = Settings::read(&args.given())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    match &args.command {
        Some(command) if !command.needs_home() => commands::without_home(command, &settings),
        Some(command) => runtime.block_on(async {
            let mut home = Home::open(settings).await?;
            commands::run(command, &mut home, &Console::new()).await
        }),
        None => {
            let home = runtime.block_on(Home::open(settings))?;
            shell::start_shell(home, &runtime)
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
