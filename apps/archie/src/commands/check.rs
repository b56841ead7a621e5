//! Opens every parked thread with this program, before it matters.

use serde_json::json;
use superstep::checkpoint::{Page, Status, ThreadQuery};

use crate::cli::args::JsonArgs;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;

pub(super) async fn run(args: &JsonArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let waiting = say.waiting("opening parked threads");
    let mut looked = 0u64;
    let mut bad = Vec::new();
    let mut offset = 0;
    loop {
        let query = ThreadQuery {
            page: Page {
                limit: PAGE,
                offset,
            },
            ..ThreadQuery::default()
        };
        let rows = home.runtime.threads(&query).await?;
        let count = rows.len();
        for row in rows {
            if row.head.status == Status::Idle {
                continue;
            }
            looked += 1;
            let id = row.thread.to_string();
            let opened = match home.agent(&row.graph) {
                Ok(agent) => {
                    let thread = agent.thread(&home.runtime, &id)?;
                    thread
                        .state(None)
                        .await
                        .map(drop)
                        .map_err(anyhow::Error::from)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = opened {
                bad.push((id, format!("{error:#}")));
            }
        }
        if count < PAGE as usize {
            break;
        }
        offset += PAGE;
    }
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
            "{looked} parked threads, {} would not go on",
            bad.len()
        ));
    }
    Ok(if bad.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

const PAGE: u32 = 1_000;
