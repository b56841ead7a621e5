//! `archie mail memory`: shows, reverts and deletes what the assistant learned.

use anyhow::Context;
use archie_agent::{Exit, Terminal};
use archie_email_assistant::memory::{KEY, Preferences, diff, get_memory};
use serde_json::{Value as Json, json};
use superstep_agent::memory::Source;

use super::MemoryCommand;
use crate::app::App;

pub(super) async fn handle_memory(
    command: &MemoryCommand,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let store = &app.memory;
    match command {
        MemoryCommand::Show { which, json } => {
            let lists = which.map_or(Preferences::ALL.to_vec(), |which| vec![which.into()]);
            let mut shown = serde_json::Map::new();
            for which in lists {
                let (lines, labels) = get_memory(store, which, which.default_lines()).await?;
                if *json {
                    shown.insert(
                        which.name().to_owned(),
                        json!({ "lines": lines, "labels": labels }),
                    );
                    continue;
                }
                terminal.line(&format!("{}:", which.name()));
                lines
                    .iter()
                    .for_each(|line| terminal.line(&format!("  {line}")));
            }
            if *json {
                terminal.json(&Json::Object(shown));
            }
        }
        MemoryCommand::History { which, json } => {
            let past = Preferences::from(*which)
                .memories(store)?
                .history(KEY)
                .await?;
            if *json {
                terminal.json(&serde_json::to_value(&past)?);
                return Ok(Exit::Done);
            }
            let mut before = Json::Null;
            for revision in past {
                let why = revision
                    .source
                    .why
                    .split(" [")
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                terminal.line(&format!("{:>4}  {why}", revision.revision));
                diff(&before, &revision.value)
                    .iter()
                    .for_each(|line| terminal.line(&format!("      {line}")));
                before = revision.value;
            }
        }
        MemoryCommand::Revert { which, revision } => {
            let memories = Preferences::from(*which).memories(store)?;
            let before = memories
                .get(KEY)
                .await?
                .context("nothing was learned yet")?;
            let source = Source::person(format!("back to {revision}"));
            let after = memories.revert(KEY, *revision, source).await?;
            let changed = diff(before.value.parts().0, after.value.parts().0);
            changed.iter().for_each(|line| terminal.line(line));
        }
        MemoryCommand::Forget { which } => {
            let there = Preferences::from(*which)
                .memories(store)?
                .forget(KEY)
                .await?;
            terminal.line(if there {
                "forgotten"
            } else {
                "nothing was learned"
            });
        }
    }
    Ok(Exit::Done)
}
