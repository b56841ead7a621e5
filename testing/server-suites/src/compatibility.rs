//! `compatibility`: `docs/compatibility.md`, what the server supports of each method of the official clients.
//!
//! The table is data here, because the suites that show it are here. A test compares the page with it.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, bail};
use harness::workspace::root;
use serde::Deserialize;

/// The page, from the root of the workspace.
const PAGE: &str = "docs/compatibility.md";

/// How far a method works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Support {
    /// As the client's documentation says.
    Supported,
    /// Except for what the note says.
    Partly,
    /// The server refuses it.
    NotYet,
}

impl Support {
    fn as_str(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Partly => "partly",
            Self::NotYet => "not yet",
        }
    }
}

/// A method of a client.
#[derive(Debug)]
struct Method {
    name: &'static str,
    support: Support,
    /// What the reader has to know about it; often nothing.
    note: &'static str,
}

/// An official client.
#[derive(Debug)]
struct Client {
    title: &'static str,
    methods: &'static [Method],
}

const fn supported(name: &'static str, note: &'static str) -> Method {
    method(name, Support::Supported, note)
}

const fn partly(name: &'static str, note: &'static str) -> Method {
    method(name, Support::Partly, note)
}

const fn not_yet(name: &'static str, note: &'static str) -> Method {
    method(name, Support::NotYet, note)
}

const fn method(name: &'static str, support: Support, note: &'static str) -> Method {
    Method {
        name,
        support,
        note,
    }
}

const INTRODUCTION: &str = "\
# Compatibility with LangGraph's clients

What `superstep-server` supports of the official clients, method by method. [The server](server.md) says how to use it.

- **supported**: works as the client's documentation says, apart from the [differences on purpose](#differences-on-purpose).
- **partly**: works, except for what the note says.
- **not yet**: the server refuses it.

The integration suite of the Python client runs unmodified against the server (`testing/server-suites`): all of its 55 tests pass, on
SQLite, on PostgreSQL, and on PostgreSQL with a Restate cluster.
`cargo run -p server-suites -- compatibility` writes this page from the table in `testing/server-suites/src/compatibility.rs`, and a
test compares the two.
";

/// What every method that creates a run lacks.
const RUN_NOTE: &str = "no feedback or `goto` with an `input` ([limits](server.md#limits))";

#[rustfmt::skip]
const CLIENTS: &[Client] = &[
    Client { title: "Python: `langgraph-sdk` 0.4.14", methods: &[
        supported("assistants.get", ""),
        supported("assistants.get_graph", ""),
        supported("assistants.get_schemas", "`config` and `context` as the graph declares them"),
        supported("assistants.get_subgraphs", ""),
        supported("assistants.create", ""),
        supported("assistants.update", ""),
        supported("assistants.delete", "the default assistant of a graph is created again when it is used"),
        supported("assistants.search", ""),
        supported("assistants.count", ""),
        supported("assistants.get_versions", ""),
        supported("assistants.set_latest", ""),
        supported("threads.get", ""),
        supported("threads.create", ""),
        supported("threads.update", ""),
        supported("threads.delete", ""),
        supported("threads.search", "at most 10 paths in `extract`"),
        supported("threads.count", ""),
        supported("threads.copy", ""),
        supported("threads.prune", ""),
        supported("threads.get_state", ""),
        supported("threads.update_state", ""),
        supported("threads.get_history", ""),
        supported("threads.stream", "over server-sent events and over WebSocket"),
        supported("threads.join_stream", ""),
        partly("runs.stream", RUN_NOTE),
        partly("runs.create", RUN_NOTE),
        partly("runs.create_batch", RUN_NOTE),
        partly("runs.wait", RUN_NOTE),
        supported("runs.list", ""),
        supported("runs.get", ""),
        supported("runs.cancel", ""),
        supported("runs.cancel_many", ""),
        supported("runs.join", ""),
        supported("runs.join_stream", ""),
        supported("runs.delete", ""),
        supported("crons.create_for_thread", ""),
        supported("crons.create", ""),
        supported("crons.delete", ""),
        supported("crons.update", ""),
        supported("crons.search", ""),
        supported("crons.count", ""),
        partly("store.put_item", "ignores `index`"),
        partly("store.get_item", "ignores `refresh_ttl`: reading an item always extends its lifetime"),
        supported("store.delete_item", ""),
        partly("store.search_items", "filters only: ignores `query` and `refresh_ttl`, and `score` is `null`"),
        supported("store.list_namespaces", ""),
    ] },
    Client { title: "JavaScript: `@langchain/langgraph-sdk` 1.9.31", methods: &[
        supported("assistants.get", ""),
        supported("assistants.getGraph", ""),
        supported("assistants.getSchemas", "`config` and `context` as the graph declares them"),
        supported("assistants.getSubgraphs", ""),
        supported("assistants.create", ""),
        supported("assistants.update", ""),
        supported("assistants.delete", "the default assistant of a graph is created again when it is used"),
        supported("assistants.search", ""),
        supported("assistants.count", ""),
        supported("assistants.getVersions", ""),
        supported("assistants.setLatest", ""),
        supported("threads.get", ""),
        supported("threads.create", ""),
        supported("threads.copy", ""),
        supported("threads.update", ""),
        supported("threads.delete", ""),
        supported("threads.prune", ""),
        supported("threads.search", "at most 10 paths in `extract`"),
        supported("threads.count", ""),
        supported("threads.getState", ""),
        supported("threads.updateState", ""),
        not_yet("threads.patchState", "405, as on LangGraph's server"),
        supported("threads.getHistory", ""),
        supported("threads.joinStream", ""),
        supported("threads.stream", "over server-sent events and over WebSocket"),
        partly("runs.stream", "no feedback or `goto` with an `input` ([limits](server.md#limits)); the mode `tools` is refused (422)"),
        partly("runs.create", RUN_NOTE),
        partly("runs.createBatch", RUN_NOTE),
        partly("runs.wait", RUN_NOTE),
        supported("runs.list", ""),
        supported("runs.get", ""),
        supported("runs.cancel", ""),
        supported("runs.cancelMany", ""),
        supported("runs.join", ""),
        partly("runs.joinStream", "the mode `tools` is refused (422)"),
        supported("runs.delete", ""),
        supported("crons.createForThread", ""),
        supported("crons.create", ""),
        supported("crons.update", ""),
        supported("crons.delete", ""),
        supported("crons.search", ""),
        supported("crons.count", ""),
        partly("store.putItem", "ignores `index`"),
        partly("store.getItem", "ignores `refreshTtl`: reading an item always extends its lifetime"),
        supported("store.deleteItem", ""),
        partly("store.searchItems", "filters only: ignores `query` and `refreshTtl`, and `score` is `null`"),
        supported("store.listNamespaces", ""),
        not_yet("~ui.getComponent", "no components of user interfaces; the server answers 404"),
    ] },
];

/// What the server does otherwise than LangGraph's, and why: the list by which `differential` compares the two.
const DIFFERENCES: &str = include_str!("../differential/differences.json");

/// An entry of that list.
#[derive(Deserialize)]
struct Difference {
    text: String,
}

fn differences() -> Vec<Difference> {
    serde_json::from_str(DIFFERENCES).expect("the list is in the repository, and a test reads it")
}

/// Writes the page, or only checks that it is what the table gives.
pub(crate) fn run(is_check: bool) -> anyhow::Result<()> {
    let (path, text) = (root().join(PAGE), page());
    if !is_check {
        fs::write(&path, text).with_context(|| format!("`{PAGE}` cannot be written"))?;
        eprintln!("{PAGE} is written");
    } else if fs::read_to_string(&path).unwrap_or_default() != text {
        bail!("`{PAGE}` is stale; run `cargo run -p server-suites -- compatibility`");
    }
    Ok(())
}

/// Returns the page.
fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for client in CLIENTS {
        write_client(&mut page, client);
    }
    page.push_str("\n## Differences on purpose\n\n");
    for (index, difference) in differences().iter().enumerate() {
        let _ = writeln!(page, "{}. {}", index + 1, difference.text);
    }
    page
}

fn write_client(page: &mut String, client: &Client) {
    let count = |support: Support| {
        let methods = client.methods.iter();
        methods.filter(|method| method.support == support).count()
    };
    let _ = write!(
        page,
        "\n## {}\n\n{} methods: {} supported, {} partly, {} not yet.\n\n",
        client.title,
        client.methods.len(),
        count(Support::Supported),
        count(Support::Partly),
        count(Support::NotYet),
    );
    page.push_str("| method | support | note |\n| --- | --- | --- |\n");
    for method in client.methods {
        let support = method.support.as_str();
        let note = match method.note {
            "" => String::new(),
            note => format!("{note} "),
        };
        let _ = writeln!(page, "| `{}` | {support} | {note}|", method.name);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_is_what_the_table_gives() {
        let written = fs::read_to_string(root().join(PAGE)).unwrap();
        assert_eq!(
            written,
            page(),
            "run `cargo run -p server-suites -- compatibility`"
        );
    }

    #[test]
    fn every_method_is_listed_once_and_what_is_missing_is_said() {
        let counts: Vec<usize> = CLIENTS.iter().map(|client| client.methods.len()).collect();
        assert_eq!(counts, [46, 48]);
        for client in CLIENTS {
            let names: BTreeSet<&str> = client.methods.iter().map(|method| method.name).collect();
            assert_eq!(names.len(), client.methods.len(), "{}", client.title);
            let is_open = |method: &&Method| method.support != Support::Supported;
            for method in client.methods.iter().filter(is_open) {
                assert!(!method.note.is_empty(), "`{}` has no note", method.name);
            }
        }
        assert!(differences().len() <= 15);
    }
}
