//! `archie check`: opens every thread that is not idle, to find those that this version cannot resume.

use std::ops::ControlFlow;

use archie_agent::printable::counted;
use archie_agent::{Exit, Terminal};
use serde_json::json;
use superstep::checkpoint::Status;

use crate::app::App;
use crate::cli::args::JsonArgs;

pub(super) async fn run(
    args: &JsonArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let waiting = terminal.waiting("opening paused threads");
    let mut paused = Vec::new();
    app.each_row(|row| {
        if row.head.status != Status::Idle {
            paused.push(row);
        }
        ControlFlow::Continue(())
    })
    .await?;
    let mut bad = Vec::new();
    for row in &paused {
        let opened = match app.thread_of(row) {
            Ok(thread) => thread.state(None).await.map_err(anyhow::Error::from),
            Err(error) => Err(error),
        };
        if let Err(error) = opened {
            bad.push((row.thread.to_string(), format!("{error:#}")));
        }
    }
    let looked = paused.len();
    drop(waiting);
    if args.json {
        let bad: Vec<_> = bad
            .iter()
            .map(|(thread, why)| json!({ "thread": thread, "why": why }))
            .collect();
        terminal.json(&json!({ "opened": looked, "bad": bad }));
    } else {
        for (thread, why) in &bad {
            terminal.line(&format!("{thread}: {why}"));
        }
        terminal.line(&format!(
            "{}, {} cannot be resumed",
            counted(looked, "paused thread"),
            bad.len()
        ));
    }
    Ok(if bad.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}
