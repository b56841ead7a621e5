//! `archie resume` and `archie run`: resume a thread, or start one of any agent.

use anyhow::Context;
use archie_agent::{Exit, Terminal};
use serde_json::Value as Json;

use crate::app::App;
use crate::cli::args::{RunArgs, ThreadArgs};
use crate::session::Session;

pub(super) async fn resume(
    args: &ThreadArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (thread, row) = app.find(&args.thread).await?;
    let agent = app.agent(&row.graph)?;
    let session = Session {
        app,
        terminal,
        json: args.json,
    };
    session.resume(agent, &*thread).await
}

pub(super) async fn run(
    args: &RunArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let agent = app.agent(&args.agent)?;
    let input: Json = serde_json::from_str(&args.input)
        .context("--input is not JSON; give an object of fields of the agent's state")?;
    let session = Session {
        app,
        terminal,
        json: args.json,
    };
    let thread = session.new_thread(agent, &args.title)?;
    session.tell(&format!("thread {}", thread.id()));
    session.begin(agent, &*thread, input).await
}
