//! Whether the book's own search finds the page that answers a question.
//!
//! The program that searches is the one of the pages (elasticlunr), with the index that mdBook wrote, in Node.js.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail};
use harness::workspace::program;

/// What a person types, and the page that answers it. Most are in the words of the problem and not in those of the page's title.
const SEARCHES: &[(&str, &str)] = &[
    (
        "how do I resume after a crash",
        "docs/howto/resume-after-a-crash.html",
    ),
    (
        "approve a tool call from another program",
        "docs/howto/approve-over-http.html",
    ),
    ("limit the cost of an agent", "docs/howto/cap-cost.html"),
    (
        "my server was OOM killed, continue the run",
        "docs/howto/resume-after-a-crash.html",
    ),
    (
        "send the approval request to Slack",
        "docs/howto/approve-over-http.html",
    ),
    (
        "button in a web page for yes and no",
        "docs/howto/approve-in-a-browser.html",
    ),
    ("OpenAI costs got out of hand", "docs/howto/cap-cost.html"),
    (
        "customer charged twice when the worker is killed",
        "docs/howto/make-an-effect-once.html",
    ),
    (
        "is a payment made exactly once",
        "docs/concepts/durability.html",
    ),
    (
        "conversation exceeds the token limit of the model",
        "docs/howto/trim-a-conversation.html",
    ),
    (
        "start a job every monday at nine",
        "docs/howto/run-on-a-schedule.html",
    ),
    ("right to be forgotten", "docs/howto/erase-a-tenant.html"),
    (
        "live typing effect in React",
        "docs/howto/stream-to-a-browser.html",
    ),
    (
        "thread makes no progress, is it hanging",
        "docs/howto/debug-a-stuck-run.html",
    ),
    (
        "send telemetry to Grafana Tempo",
        "docs/howto/export-traces.html",
    ),
    (
        "no internet, only a local LLM",
        "docs/howto/run-a-local-model.html",
    ),
    (
        "process a list of items concurrently",
        "docs/howto/fan-out-and-join.html",
    ),
    (
        "an API returns 503 now and then",
        "docs/howto/retry-and-time-out.html",
    ),
    ("mock the LLM in CI", "docs/howto/test-an-agent.html"),
    (
        "chaos testing of my workflow",
        "docs/howto/test-with-kill-points.html",
    ),
    (
        "typed JSON response with serde",
        "docs/howto/get-structured-output.html",
    ),
    (
        "see what another decision would have changed",
        "docs/howto/fork-and-compare.html",
    ),
    (
        "revoke the access of a client",
        "docs/howto/rotate-keys.html",
    ),
    (
        "router agent with sub agents",
        "docs/howto/hand-off-between-agents.html",
    ),
    (
        "long-term memory of user preferences",
        "docs/howto/remember-across-threads.html",
    ),
    (
        "disaster recovery from yesterday's copy",
        "docs/howto/back-up-and-restore.html",
    ),
    (
        "malicious mail tells the agent to send secrets",
        "docs/howto/keep-private-data-inside.html",
    ),
    (
        "duplicate runs after a network timeout",
        "docs/howto/repeat-a-request-safely.html",
    ),
    (
        "agent loops forever and never stops",
        "docs/howto/limit-steps.html",
    ),
    (
        "we have RabbitMQ consumers today",
        "docs/migrate-from-a-queue.html",
    ),
    (
        "LangGraph alternative in Rust",
        "docs/migrate-from-langgraph.html",
    ),
    (
        "schema change of the state in production",
        "docs/howto/migrate-state.html",
    ),
    (
        "zero downtime deploy with unfinished runs",
        "docs/howto/upgrade.html",
    ),
    (
        "who changed this and when, for auditors",
        "docs/howto/verify-the-audit-log.html",
    ),
    (
        "wait for a human at most two days",
        "docs/howto/ask-with-a-deadline.html",
    ),
    (
        "stop a run that is going wrong",
        "docs/howto/cancel-a-run.html",
    ),
    ("connect a GitHub MCP server", "docs/howto/use-mcp.html"),
    (
        "switch from SQLite to PostgreSQL",
        "docs/howto/move-threads.html",
    ),
    ("clean up old threads", "docs/howto/delete-threads.html"),
    ("rotate api keys", "docs/howto/rotate-keys.html"),
    (
        "run agent offline with local model",
        "docs/howto/run-a-local-model.html",
    ),
    ("webhook signature", "docs/howto/receive-a-webhook.html"),
    (
        "notify my backend when a run has finished",
        "docs/howto/receive-a-webhook.html",
    ),
    ("migrate from langgraph", "docs/migrate-from-langgraph.html"),
    ("approve from slack", "docs/howto/approve-over-http.html"),
    (
        "use GPT-4 for one request and a cheap model for the rest",
        "docs/howto/choose-the-model-of-a-run.html",
    ),
    ("upload an Excel file over HTTP", "docs/sheet.html"),
    ("write my first graph", "docs/start/first-graph.html"),
    ("add a tool", "docs/howto/add-a-tool.html"),
    (
        "write a checkpointer",
        "docs/inside/write-a-checkpointer.html",
    ),
];

/// The right page is among this many different pages.
const RESULTS_MAX: usize = 3;

/// Fails with every search that does not find its page. `folder` is where the book's pages are.
pub(crate) fn check(folder: &Path) -> anyhow::Result<()> {
    let words: Vec<&str> = SEARCHES.iter().map(|(words, _)| *words).collect();
    let found = search(folder, &words)?;
    let mut faults = Vec::new();
    for ((words, wanted), found) in SEARCHES.iter().zip(&found) {
        let pages = first_pages(found);
        if !pages.contains(wanted) {
            let pages = pages.join(", ");
            faults.push(format!("`{words}` finds {pages} and not {wanted}"));
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => bail!("the book's search:\n  {}", faults.join("\n  ")),
    }
}

/// The addresses of what is found for each search, best first.
fn search(folder: &Path, searches: &[&str]) -> anyhow::Result<Vec<Vec<String>>> {
    let script = folder.join("search.mjs");
    fs::write(&script, include_str!("search.mjs"))?;
    let mut node = program("node");
    node.arg(&script).arg(folder);
    let mut process = node
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("Node.js cannot be started; the search of the book needs it")?;
    let mut input = process.stdin.take().context("node has an input")?;
    input.write_all(searches.join("\n").as_bytes())?;
    drop(input);
    let output = process.wait_with_output()?;
    fs::remove_file(&script)?;
    serde_json::from_slice(&output.stdout).context("node printed no results")
}

/// The first pages, each once: a page has several places, and may be found with all of them.
fn first_pages(found: &[String]) -> Vec<&str> {
    let mut pages = Vec::new();
    for address in found {
        let page = address.split('#').next().unwrap_or_default();
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    pages.truncate(RESULTS_MAX);
    pages
}

#[test]
fn a_page_counts_once_however_many_places_are_found() {
    let found = ["a.html#1", "a.html#2", "b.html", "c.html#1", "d.html"];
    let found = found.map(str::to_owned);
    assert_eq!(first_pages(&found), ["a.html", "b.html", "c.html"]);
}

#[test]
fn every_search_is_for_a_page_of_the_book_and_at_least_twelve_are_in_other_words_than_its_title() {
    let mut own_words = 0;
    for (words, page) in SEARCHES {
        let path = harness::workspace::root().join(page.replace(".html", ".md"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
        let title = text.lines().next().unwrap_or_default();
        own_words += usize::from(shared_words(words, title) < 2);
    }
    assert!(own_words >= 12, "{own_words}");
}

/// Returns how many words of four or more letters a search shares with a title.
#[cfg(test)]
fn shared_words(search: &str, title: &str) -> usize {
    let words = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| word.len() >= 4);
        words
            .map(str::to_lowercase)
            .collect::<std::collections::BTreeSet<_>>()
    };
    words(search).intersection(&words(title)).count()
}

#[test]
fn a_search_that_repeats_a_title_is_seen_as_such() {
    assert_eq!(
        shared_words("limit the cost of an agent", "# Limit the cost of an agent"),
        3
    );
    assert_eq!(
        shared_words(
            "OpenAI costs got out of hand",
            "# Limit the cost of an agent"
        ),
        0
    );
}
