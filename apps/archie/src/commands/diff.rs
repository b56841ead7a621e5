//! `archie diff`: compares two states, those of open subgraphs included.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use archie_agent::{Exit, Terminal};
use serde_json::{Map, Value as Json, json};
use superstep::Seq;

use super::sheet_diff;
use super::value_diff::differences;
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

/// A thread at one point in time.
struct LoadedState {
    fields: Map<String, Json>,
    /// States of open subgraphs, by the names of the nodes on the path. A node that was sent to several times has several,
    /// each with the id of its tasks.
    subgraphs: BTreeMap<String, Vec<Invocation>>,
}

/// State of one invocation of a subgraph.
struct Invocation {
    tasks: String,
    fields: Map<String, Json>,
}

/// Loads the state of `THREAD` or `THREAD@ENTRY`.
async fn load(named: &str, app: &App) -> anyhow::Result<LoadedState> {
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
    let mut subgraphs: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for inner in thread.subgraphs(at).await? {
        let segments = inner.frame.segments();
        let nodes: Vec<String> = segments
            .iter()
            .map(|level| level.node.to_string())
            .collect();
        let tasks = segments.iter().map(|level| format!("{:?}", level.task));
        let of_node = subgraphs.entry(nodes.join("/")).or_default();
        of_node.push(Invocation {
            tasks: tasks.collect(),
            fields: inner.values.decode()?,
        });
    }
    Ok(LoadedState {
        fields: state.values.decode()?,
        subgraphs,
    })
}

/// Puts the fields of both sides under the same names: those of a subgraph after its path. Invocations of the same node are the
/// same if their tasks are, as in two entries of a thread or in its copy; others are paired in order.
fn paired(one: LoadedState, other: LoadedState) -> (Map<String, Json>, Map<String, Json>) {
    let (mut left, mut right) = (one.fields, other.fields);
    let (mut one, mut other) = (one.subgraphs, other.subgraphs);
    let nodes: BTreeSet<String> = one.keys().chain(other.keys()).cloned().collect();
    for node in nodes {
        let first = one.remove(&node).unwrap_or_default();
        let mut second = other.remove(&node).unwrap_or_default();
        let several = first.len().max(second.len()) > 1;
        let known: Vec<String> = first.iter().map(|of| of.tasks.clone()).collect();
        let mut number = 0;
        let mut name = || {
            number += 1;
            match several {
                true => format!("{node}#{number}"),
                false => node.clone(),
            }
        };
        for Invocation { tasks, fields } in first {
            let same = second.iter().position(|of| of.tasks == tasks);
            let free = || second.iter().position(|of| !known.contains(&of.tasks));
            let pair = same.or_else(free).map(|at| second.remove(at));
            let name = name();
            add(&mut left, &name, fields);
            if let Some(pair) = pair {
                add(&mut right, &name, pair.fields);
            }
        }
        for only in second {
            add(&mut right, &name(), only.fields);
        }
    }
    (left, right)
}

fn add(all: &mut Map<String, Json>, subgraph: &str, fields: Map<String, Json>) {
    let named = fields.into_iter();
    all.extend(named.map(|(name, value)| (format!("{subgraph}/{name}"), value)));
}
