//! Whether the book's own search finds the page that answers a question.
//!
//! The program that searches is the one of the pages (elasticlunr), with the index that mdBook wrote, in Node.js.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail};
use harness::workspace::program;

/// What a person types, and the page that answers it.
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
    ("write my first graph", "docs/start/first-graph.html"),
    (
        "retry a node and set a timeout",
        "docs/howto/retry-and-time-out.html",
    ),
    (
        "is a payment made exactly once",
        "docs/concepts/durability.html",
    ),
    ("add a tool", "docs/howto/add-a-tool.html"),
    (
        "migrate state under paused threads",
        "docs/howto/migrate-state.html",
    ),
    (
        "back up and restore the database",
        "docs/howto/back-up-and-restore.html",
    ),
    ("rotate an API key", "docs/howto/rotate-keys.html"),
    (
        "fork a thread and compare",
        "docs/howto/fork-and-compare.html",
    ),
    (
        "write a checkpointer",
        "docs/inside/write-a-checkpointer.html",
    ),
    (
        "stream tokens to a browser",
        "docs/howto/stream-to-a-browser.html",
    ),
    (
        "hand off between agents",
        "docs/howto/hand-off-between-agents.html",
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
fn there_are_at_least_twelve_searches_each_for_a_page_of_the_book() {
    assert!(SEARCHES.len() >= 12);
    for (_, page) in SEARCHES {
        let path = harness::workspace::root().join(page.replace(".html", ".md"));
        assert!(path.is_file(), "{page}");
    }
}
