//! Opens every parked thread with this program, before it matters.

use std::ops::ControlFlow;

use serde_json::json;
use superstep::checkpoint::Status;

use crate::cli::args::JsonArgs;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;

pub(super) async fn run(args: &JsonArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let waiting = say.waiting("opening paused threads");
    let mut parked = Vec::new();
    home.each_row(|row| {
        if row.head.status != Status::Idle {
            parked.push(row);
        }
        ControlFlow::Continue(())
    })
    .await?;
    let mut bad = Vec::new();
    for row in &parked {
        let opened = match home.thread_of(row) {
            Ok(thread) => thread.state(None).await.map_err(anyhow::Error::from),
            Err(error) => Err(error),
        };
        if let Err(error) = opened {
            bad.push((row.thread.to_string(), format!("{error:#}")));
        }
    }
    let looked = parked.len();
    drop(waiting);
    if args.json {
        let bad: Vec<_> = bad
            .iter()
            .map(|(thread, why)| json!({ "thread": thread, "why": why }))
            .collect();
        say.json(&json!({ "opened": looked, "bad": bad }));
    } else {
        for (thread, why) in &bad {
            say.line(&format!("{thread}: {why}"));
        }
        say.line(&format!(
            "{looked} paused threads, {} cannot be resumed",
            bad.len()
        ));
    }
    Ok(if bad.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}
