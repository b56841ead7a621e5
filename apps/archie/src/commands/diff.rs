//! `archie diff`: compares two states, those of open subgraphs included.

use std::collections::BTreeSet;

use anyhow::Context;
use archie_agent::value_diff::differences;
use archie_agent::{Exit, Terminal};
use serde_json::{Map, Value as Json, json};
use superstep::Seq;
use superstep::diff::{StateFields, compared_graphs};

use super::sheet_diff;
use crate::app::App;
use crate::cli::args::DiffArgs;

pub(super) async fn run(
    args: &DiffArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (one, other) = (load(&args.one, app).await?, load(&args.other, app).await?);
    let (one, other) = paired(one, other);
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
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
        for found in differences(name, one.get(name), other.get(name)) {
            terminal.line(&format!("{}:", found.path));
            for line in found.lines {
                terminal.line(&format!("  {line}"));
            }
        }
    }
    if let Some(compared) = workbooks {
        terminal.line("contents of the workbooks:");
        sheet_diff::print(&compared, terminal);
    }
    Ok(Exit::Done)
}

/// Loads the state of `THREAD` or `THREAD@ENTRY`.
async fn load(named: &str, app: &App) -> anyhow::Result<StateFields> {
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
    let mut fields = StateFields::new(state.values.decode()?);
    for inner in thread.subgraphs(at).await? {
        fields = fields.with_subgraph(&inner.frame, inner.values.decode()?);
    }
    Ok(fields)
}

/// Puts the fields of both sides under the same names: those of a subgraph after its path.
fn paired(one: StateFields, other: StateFields) -> (Map<String, Json>, Map<String, Json>) {
    let (mut left, mut right) = (Map::new(), Map::new());
    for graph in compared_graphs(one, other) {
        add(&mut left, &graph.subgraph, graph.one);
        add(&mut right, &graph.subgraph, graph.other);
    }
    (left, right)
}

fn add(all: &mut Map<String, Json>, subgraph: &str, fields: Option<Map<String, Json>>) {
    let named = fields.into_iter().flatten();
    all.extend(named.map(|(name, value)| match subgraph {
        "" => (name, value),
        subgraph => (format!("{subgraph}/{name}"), value),
    }));
}
