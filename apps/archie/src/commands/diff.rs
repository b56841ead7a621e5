//! `archie diff`: compares two states.

use anyhow::Context;
use archie_agent::{Exit, Terminal};
use serde_json::{Map, Value as Json, json};
use superstep::Seq;

use super::sheet_diff;
use super::threads::short;
use crate::app::App;
use crate::cli::args::DiffArgs;

pub(super) async fn run(
    args: &DiffArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (one, other) = (state(&args.one, app).await?, state(&args.other, app).await?);
    let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differ: Vec<_> = names
        .into_iter()
        .filter(|name| one.get(*name) != other.get(*name))
        .collect();
    let workbooks = sheet_diff::threads(&args.one, &args.other, app).await?;
    let workbooks = workbooks.filter(|compared| !compared.is_same());
    if args.json {
        let fields = differ.iter().map(|name| {
            let sides = json!({ "one": one.get(*name), "other": other.get(*name) });
            ((*name).clone(), sides)
        });
        let fields = fields.chain(workbooks.iter().map(sheet_diff::field));
        terminal.json(&Json::Object(fields.collect()));
        return Ok(Exit::Done);
    }
    if differ.is_empty() {
        terminal.line("the two are the same");
    }
    for name in differ {
        terminal.line(&format!("{name}:"));
        let (before, after) = (lines(one.get(name)), lines(other.get(name)));
        for line in before.iter().filter(|line| !after.contains(line)) {
            terminal.line(&format!("  - {line}"));
        }
        for line in after.iter().filter(|line| !before.contains(line)) {
            terminal.line(&format!("  + {line}"));
        }
    }
    if let Some(compared) = workbooks {
        terminal.line("contents of the workbooks:");
        sheet_diff::print(&compared, terminal);
    }
    Ok(Exit::Done)
}

/// Loads the state of `THREAD` or `THREAD@ENTRY`.
async fn state(named: &str, app: &App) -> anyhow::Result<Map<String, Json>> {
    let (prefix, at) = match named.split_once('@') {
        Some((prefix, entry)) => {
            let entry = entry
                .parse()
                .with_context(|| format!("`{entry}` is not an entry"))?;
            (prefix, Some(Seq(entry)))
        }
        None => (named, None),
    };
    let (thread, _) = app.find(prefix).await?;
    let state = thread
        .state(at)
        .await?
        .with_context(|| format!("`{named}` has no state"))?;
    Ok(state.values.decode()?)
}

/// Splits a value into the units of comparison: lines of text, items of a list, otherwise the whole value.
fn lines(value: Option<&Json>) -> Vec<String> {
    match value {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::String(text)) => text.lines().map(str::to_owned).collect(),
        Some(Json::Array(items)) => items.iter().map(short).collect(),
        Some(other) => vec![short(other)],
    }
}
