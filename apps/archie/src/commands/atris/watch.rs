//! `archie atris watch`: repeats a question and prints what changed.

use std::time::Duration;

use anyhow::{Context, bail};
use archie_agent::clock::now;
use archie_agent::{Agent, Exit, InterruptRequest, json_of, state_of};
use archie_atris::watch::{Look, NAME, TIMER, WatchState, WatchStateUpdate, agent_with};
use archie_atris::{NO_MODEL, Options};
use superstep::AnyThread;

use super::reported::ReportedLooks;
use super::{addressed, refuse_offline_elsewhere};
use crate::cli::interval::interval;
use crate::ctrl_c;
use crate::inbox::display;
use crate::session::Session;

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct WatchArgs {
    /// Your question, with every value that the call needs
    #[arg(required_unless_present = "resume")]
    pub query: Option<String>,
    /// API to ask
    #[arg(long, value_name = "NAME")]
    pub api: Option<String>,
    /// Time between two checks: 30s, 10m, 2h, 1d
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = interval)]
    pub every: Duration,
    /// Exit after N checks; the thread stays paused
    #[arg(long, value_name = "N")]
    pub looks: Option<u64>,
    /// Resume a watch
    #[arg(long, value_name = "THREAD", conflicts_with_all = ["query", "api"])]
    pub resume: Option<String>,
    /// Answer only from recorded responses
    #[arg(long)]
    pub offline: bool,
    /// Print one JSON object for each check
    #[arg(long)]
    pub json: bool,
}

/// Runs `archie atris watch` until it is stopped.
pub async fn handle_watch_command(args: &WatchArgs, session: &Session<'_>) -> anyhow::Result<Exit> {
    refuse_offline_elsewhere(args.offline, session.app)?;
    let options = Options {
        offline: args.offline,
        ..Options::default()
    };
    watch_with(args, session, &options).await
}

/// Runs `archie atris watch` with these options, which include how to reach the network.
pub async fn watch_with(
    args: &WatchArgs,
    session: &Session<'_>,
    options: &Options,
) -> anyhow::Result<Exit> {
    let agent = agent_with(&session.app.deps(), options)?;
    agent.register(&session.app.runtime);
    let thread = match &args.resume {
        Some(prefix) => {
            let (_, row) = session.app.find(prefix).await?;
            if row.graph != NAME {
                bail!("{} is not a watch", row.thread);
            }
            let thread = agent.thread(
                &session.app.runtime,
                &row.thread.to_string(),
                Default::default(),
            )?;
            if thread.interrupts().await?.is_empty() {
                thread.recover_or_resume().await?;
            }
            thread
        }
        None => {
            let query = addressed(
                args.query.as_deref().unwrap_or_default(),
                args.api.as_deref(),
            )?;
            let thread = session.new_thread(&agent, &query)?;
            session.terminal.aside(&format!("thread {}", thread.id()));
            let start = WatchStateUpdate::default()
                .llm(
                    session
                        .app
                        .settings
                        .model
                        .as_deref()
                        .unwrap_or(NO_MODEL)
                        .to_owned(),
                )
                .query(query)
                .every_ms(args.every.as_millis() as u64);
            thread
                .start_or_recover(serde_json::to_value(start)?)
                .await?;
            thread
        }
    };
    let watched = watch(&agent, &*thread, args, session);
    tokio::select! {
        exit = watched => exit,
        () = ctrl_c::pressed() => {
            session.terminal.aside(&format!("the watch is kept; resume it with `archie atris watch --resume {}`", thread.id()));
            Ok(Exit::Paused)
        }
    }
}

async fn watch(
    agent: &Agent,
    thread: &dyn AnyThread,
    args: &WatchArgs,
    session: &Session<'_>,
) -> anyhow::Result<Exit> {
    let reported = ReportedLooks::of(session.app, thread);
    let first = reported.looks().await?;
    let mut count = first;
    loop {
        let state: WatchState = state_of(thread).await?;
        // A thread that was rolled back has fewer looks than were printed.
        count = count.min(state.looks.len());
        for look in state.looks.iter().skip(count) {
            tell(look, session);
            count += 1;
            reported.up_to(count).await?;
        }
        let looked = state.looks.len().saturating_sub(first);
        if args.looks.is_some_and(|looks| looked as u64 >= looks) || state.stopped {
            return Ok(Exit::Done);
        }
        let open = thread.interrupts().await?;
        let timer = open.iter().find(|open| open.interrupt.kind == TIMER);
        let Some(timer) = timer else {
            let asked = open
                .first()
                .map(|open| InterruptRequest::of(&open.interrupt))
                .transpose()?;
            let asked = asked.context("the watch has stopped; `archie resume` resumes it")?;
            display::display(session, agent, &asked).await?;
            display::announce(session.app, session.terminal, thread.id()).await?;
            return Ok(Exit::Paused);
        };
        let deadline = timer.interrupt.deadline.map_or(0, |deadline| deadline.0);
        let left = u64::try_from(deadline.saturating_sub(now().0)).unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(left)).await;
        session.app.runtime.expire_interrupts().await?;
    }
}

fn tell(look: &Look, session: &Session<'_>) {
    if session.json {
        return session.terminal.json(&json_of(look));
    }
    if let Some(says) = &look.says {
        session.terminal.line(says);
    }
    look.came
        .iter()
        .for_each(|item| session.terminal.line(&format!("+ {item}")));
    look.went
        .iter()
        .for_each(|item| session.terminal.line(&format!("- {item}")));
    if look.is_quiet() {
        session.terminal.aside("nothing has changed");
    }
}
