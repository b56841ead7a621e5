//! `archie mail memory`: shows what the assistant learned, confirms proposals, reverts and deletes.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use archie_agent::printable::one_line;
use archie_agent::{Exit, Terminal};
use archie_email_assistant::memory::{KEY, Preferences, diff, get_memory};
use archie_email_assistant::proposals::{Proposal, accept, proposals, reject};
use serde_json::{Value as Json, json};
use superstep_agent::memory::Source;

use super::{MemoryCommand, PreferencesArg};
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
            revert(*which, *revision, app, terminal).await?;
        }
        MemoryCommand::Undo { which } => {
            let memories = Preferences::from(*which).memories(store)?;
            let past = memories.history(KEY).await?;
            let [.., before, _] = past.as_slice() else {
                bail!("nothing was learned yet, so there is no change to take back");
            };
            revert(*which, before.revision, app, terminal).await?;
        }
        MemoryCommand::Proposed { json } => {
            let (open, labels) = proposals(store).await?;
            if *json {
                terminal.json(&json!({ "proposals": open, "labels": labels }));
                return Ok(Exit::Done);
            }
            if open.is_empty() {
                terminal.line("No proposed lines.");
            }
            open.iter()
                .for_each(|(id, proposal)| show(id, proposal, terminal));
        }
        MemoryCommand::Accept { ids } => {
            for (id, proposal) in named(app, ids).await? {
                let learned = accept(store, &id, &proposal, &app.settings.person).await?;
                match learned {
                    Some(learned) => {
                        terminal.line(&format!("{}:", learned.memory));
                        let lines = learned
                            .diff
                            .iter()
                            .map(|line| format!("  {}", one_line(line)));
                        lines.for_each(|line| terminal.line(&line));
                    }
                    None => terminal.line(&format!(
                        "{}: the line is there already",
                        proposal.list.name()
                    )),
                }
            }
        }
        MemoryCommand::Reject { ids } => {
            for (id, proposal) in named(app, ids).await? {
                reject(store, &id, &app.settings.person).await?;
                terminal.line(&format!("discarded: {}", one_line(&proposal.line)));
            }
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

async fn revert(
    which: PreferencesArg,
    revision: u64,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<()> {
    let memories = Preferences::from(which).memories(&app.memory)?;
    let before = memories
        .get(KEY)
        .await?
        .context("nothing was learned yet")?;
    let source = Source::person(format!("back to {revision}"));
    let after = memories.revert(KEY, revision, source).await?;
    let changed = diff(before.value.parts().0, after.value.parts().0);
    changed.iter().for_each(|line| terminal.line(line));
    Ok(())
}

fn show(id: &str, proposal: &Proposal, terminal: &dyn Terminal) {
    let Proposal {
        list,
        line,
        replaces,
        ..
    } = proposal;
    terminal.line(&format!(
        "{id}  {}  {}",
        list.name(),
        one_line(&proposal.why)
    ));
    if !replaces.is_empty() {
        terminal.line(&format!("  - {}", one_line(replaces)));
    }
    terminal.line(&format!("  + {}", one_line(line)));
}

/// Returns the proposals that these ids, or prefixes of ids, name. `all` names all of them.
async fn named(app: &App, ids: &[String]) -> anyhow::Result<BTreeMap<String, Proposal>> {
    let (open, _) = proposals(&app.memory).await?;
    if ids.iter().any(|id| id == "all") {
        return Ok(open);
    }
    let mut found = BTreeMap::new();
    for wanted in ids {
        let wanted = wanted.to_ascii_lowercase();
        let mut fits = open.iter().filter(|(id, _)| id.starts_with(&wanted));
        match (fits.next(), fits.next()) {
            (Some((id, proposal)), None) => found.insert(id.clone(), proposal.clone()),
            (None, _) => {
                bail!("there is no proposal `{wanted}`; `archie mail memory proposed` lists them")
            }
            (Some(_), Some(_)) => bail!("`{wanted}` names several proposals; type more of the id"),
        };
    }
    Ok(found)
}
