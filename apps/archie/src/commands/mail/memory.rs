//! Shows, follows and takes back what was learned.

use anyhow::Context;
use serde_json::{Value as Json, json};
use superstep_agent::memory::Source;

use super::MemoryCommand;
use crate::agents::email_assistant::memory::{KEY, Preferences, diff, get_memory};
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;

pub(super) async fn handle_memory(
    command: &MemoryCommand,
    home: &Home,
    say: &dyn Say,
) -> anyhow::Result<Exit> {
    let store = &home.memory;
    match command {
        MemoryCommand::Show { which, json } => {
            let lists = which.map_or(Preferences::ALL.to_vec(), |which| vec![which]);
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
                say.line(&format!("{}:", which.name()));
                lines.iter().for_each(|line| say.line(&format!("  {line}")));
            }
            if *json {
                say.json(&Json::Object(shown));
            }
        }
        MemoryCommand::History { which, json } => {
            let past = which.memories(store)?.history(KEY).await?;
            if *json {
                say.json(&serde_json::to_value(&past)?);
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
                say.line(&format!("{:>4}  {why}", revision.revision));
                diff(&before, &revision.value)
                    .iter()
                    .for_each(|line| say.line(&format!("      {line}")));
                before = revision.value;
            }
        }
        MemoryCommand::Revert { which, revision } => {
            let memories = which.memories(store)?;
            let before = memories
                .get(KEY)
                .await?
                .context("nothing was learned yet")?;
            let source = Source::person(format!("back to {revision}"));
            let after = memories.revert(KEY, *revision, source).await?;
            let changed = diff(before.value.parts().0, after.value.parts().0);
            changed.iter().for_each(|line| say.line(line));
        }
        MemoryCommand::Forget { which } => {
            let there = which.memories(store)?.forget(KEY).await?;
            say.line(if there {
                "forgotten"
            } else {
                "nothing was learned"
            });
        }
    }
    Ok(Exit::Done)
}
