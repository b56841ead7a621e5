//! `compatibility`: `docs/compatibility.md`, what the server supports of each method of the official clients.
//!
//! The table is data here, because the suites that show it are here. A test compares the page with it.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, bail};
use harness::workspace::root;

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

The integration suite of the Python client runs unmodified against the server (`testing/server-suites`): 53 of its 55 tests pass, and
the other two are about crons. `cargo run -p server-suites -- compatibility` writes this page from the table in
`testing/server-suites/src/compatibility.rs`, and a test compares the two.
";

/// What every method that creates a run lacks.
const RUN_NOTE: &str = "no webhooks, feedback or `goto` to nodes ([limits](server.md#limits))";
/// What every method of crons lacks, apart from the one whose path the server knows.
const CRON_NOTE: &str = "no crons; the server answers 404";

#[rustfmt::skip]
const CLIENTS: &[Client] = &[
    Client { title: "Python: `langgraph-sdk` 0.4.14", methods: &[
        supported("assistants.get", ""),
        supported("assistants.get_graph", ""),
        partly("assistants.get_schemas", "input, output and state; the schemas of `config` and `context` are empty"),
        partly("assistants.get_subgraphs", "as `get_schemas`"),
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
        partly("threads.get_history", "of a subgraph only its current state"),
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
        not_yet("crons.create_for_thread", "no crons; the server answers 405"),
        not_yet("crons.create", CRON_NOTE),
        not_yet("crons.delete", CRON_NOTE),
        not_yet("crons.update", CRON_NOTE),
        not_yet("crons.search", CRON_NOTE),
        not_yet("crons.count", CRON_NOTE),
        partly("store.put_item", "ignores `index`"),
        partly("store.get_item", "ignores `refresh_ttl`: reading an item always extends its lifetime"),
        supported("store.delete_item", ""),
        partly("store.search_items", "filters only: ignores `query` and `refresh_ttl`, and `score` is `null`"),
        supported("store.list_namespaces", ""),
    ] },
    Client { title: "JavaScript: `@langchain/langgraph-sdk` 1.9.31", methods: &[
        supported("assistants.get", ""),
        supported("assistants.getGraph", ""),
        partly("assistants.getSchemas", "input, output and state; the schemas of `config` and `context` are empty"),
        partly("assistants.getSubgraphs", "as `getSchemas`"),
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
        partly("threads.getHistory", "of a subgraph only its current state"),
        supported("threads.joinStream", ""),
        supported("threads.stream", "over server-sent events and over WebSocket"),
        partly("runs.stream", "no webhooks, feedback or `goto` to nodes ([limits](server.md#limits)); the mode `tools` is refused (422)"),
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
        not_yet("crons.createForThread", "no crons; the server answers 405"),
        not_yet("crons.create", CRON_NOTE),
        not_yet("crons.update", CRON_NOTE),
        not_yet("crons.delete", CRON_NOTE),
        not_yet("crons.search", CRON_NOTE),
        not_yet("crons.count", CRON_NOTE),
        partly("store.putItem", "ignores `index`"),
        partly("store.getItem", "ignores `refreshTtl`: reading an item always extends its lifetime"),
        supported("store.deleteItem", ""),
        partly("store.searchItems", "filters only: ignores `query` and `refreshTtl`, and `score` is `null`"),
        supported("store.listNamespaces", ""),
        not_yet("~ui.getComponent", "no components of user interfaces; the server answers 404"),
    ] },
];

/// What the server does otherwise than LangGraph's, and why.
#[rustfmt::skip]
const DIFFERENCES: &[&str] = &[
    "`POST …/runs*`, `POST /threads`, `POST …/state`: callers write only the channels that the graph declares as inputs; another channel is refused with 422. A state may hold a folder, a model or a sandbox, and those are not for callers to choose.",
    "The same requests: a key that the state does not have is dropped, as LangGraph does. The response of a run names it in the header `x-superstep-dropped-keys`, so that a typing error is not silent.",
    "Messages: callers cannot set labels, and do not see them. Labels say where a text comes from, and policies rely on them.",
    "`POST …/runs*` with `command.resume`: 400 if no interrupt is open or the named one is not, 422 if the answer does not fit the interrupt's schema; a run without an input is 400 if nothing has run on the thread. LangGraph starts a run that does nothing or fails. A person should learn that an answer came too late.",
    "`durability` is `sync` by default, not `async`: a superstep that a client has seen survives a crash.",
    "Streams of runs: every event has an id, and every stream can be resumed with it, whatever `stream_resumable` says. The events are in the thread's log anyway.",
    "`POST …/stream/events`: `seq` is the same on every connection and after a restart, so `since` works on each of them. In LangGraph it counts the events of one connection.",
    "`POST …/runs*`: a thread keeps its graph; a run of an assistant of another graph is refused with 409. A state has the type of its graph.",
    "All requests: pages must be local and clients must name the server by `localhost` or an address, unless you allow more; otherwise 403. LangGraph allows every origin. The server has no authentication, so any page that a person visits could start runs.",
    "`POST …/search`: `X-Pagination-Total` is the number of matches, not an estimate.",
    "All requests: if the server is to blame, `detail` is an error code, and the log has the sentence. The sentence may name hosts and files.",
    "More than LangGraph has: paths take the name of a graph where they take the id of an assistant; `GET /runs/{run_id}/stream` exists, which the JavaScript client calls; the header `Idempotency-Key` creates a run on a thread once.",
    "`on_disconnect: cancel` of a stream waits 10 seconds for the client to come back. A proxy that drops an idle connection is not a client that lost interest.",
    "`/store`: namespaces that begin with `superstep` are refused or hidden. Superstep keeps budgets there.",
    "`values` of a state: a channel that was never written has its default value, where LangGraph leaves out the key. The state is a struct.",
];

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
    for (index, difference) in DIFFERENCES.iter().enumerate() {
        let _ = writeln!(page, "{}. {difference}", index + 1);
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
        assert!(DIFFERENCES.len() <= 15);
    }
}
