//! `docs/guarantees.md` names tests that exist, and figures that are those of the recorded results.

use std::fs;

use serde_json::{Value as Json, json};

use super::assert_tidy;
use crate::coverage::fault_of_test;
use crate::results::steps_of;
use harness::console::chapters;
use harness::workspace::root;

const PAGE: &str = "docs/guarantees.md";

/// Words of a promise about how often something happens.
const PROMISES: &[&str] = &[
    "exactly once",
    "effectively once",
    "at most once",
    "at least once",
];

/// Pages that need no link: the table itself, and lists of what others promise or what was done when.
const EXEMPT: &[&str] = &[PAGE, "CHANGELOG.md", "docs/coverage.md"];

/// Whether a page promises how often something happens and does not say what shows it.
fn promises_without_a_link(page: &str) -> bool {
    // A promise may be broken over two lines.
    let words = page
        .to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    PROMISES.iter().any(|promise| words.contains(promise)) && !page.contains("guarantees.md)")
}

/// What is wrong with the rows of the table. `source` returns the text of a file by its path from the root, `recorded` the last
/// figure of a step.
fn faults(
    page: &str,
    source: impl Fn(&str) -> Option<String>,
    recorded: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(2);
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [promise, tests, figure] = cells[..] else {
            faults.push(format!("`{row}` has not three cells"));
            continue;
        };
        let mut tests = tests.split("[`").skip(1).peekable();
        if tests.peek().is_none() {
            faults.push(format!("`{promise}` has no test"));
        }
        for test in tests {
            let (name, rest) = test.split_once("`](../").unwrap_or((test, ""));
            let path = rest.split(')').next().unwrap_or_default();
            let fault = fault_of_test(&format!("{path}::{name}"), &source);
            faults.extend(fault);
        }
        let figure = figure.trim_end_matches('|').trim();
        let Some(rest) = figure.strip_prefix('`') else {
            continue;
        };
        let (step, claimed) = rest.split_once("`: ").unwrap_or((rest, ""));
        let found = recorded(step);
        if found.as_deref() != Some(claimed) {
            let found = found.unwrap_or_else(|| "nothing".to_owned());
            faults.push(format!("`{step}`: the results have {found}, not {claimed}"));
        }
    }
    faults
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The last figure of a step in the files of `results/`.
fn recorded(step: &str) -> Option<String> {
    let read = |name: &str| -> Option<Json> {
        let text = fs::read_to_string(root().join("results").join(name)).ok()?;
        serde_json::from_str(&text).ok()
    };
    figure_of(&match step {
        "crash cluster" => json!({ "report": read("crash-cluster.json")? }),
        step => {
            let mut steps = steps_of(&read("verify-long.json")?).into_iter();
            steps.find(|one| one["name"] == step)?
        }
    })
}

/// The trials and violations of a step, and the commit that was tried if the record has it, as the page writes them.
fn figure_of(step: &Json) -> Option<String> {
    let trials = with_commas(step["report"]["trials"].as_u64()?);
    let violations = step["report"]["violations"].as_u64()?;
    let mut figure = format!("{trials} trials, {violations} violations");
    if let Some(commit) = step["commit"].as_str().and_then(|commit| commit.get(..8)) {
        figure += &format!(" at `{commit}`");
    }
    if step["dirty"] == true {
        figure += " with uncommitted changes";
    }
    Some(figure)
}

#[test]
fn every_promise_has_its_tests_and_its_figure() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let source = |path: &str| fs::read_to_string(root().join(path)).ok();
    assert_tidy(&faults(&page, source, recorded));
}

#[test]
fn a_promise_without_a_test_and_a_wrong_figure_are_found() {
    let page = "| promise | shown by | last figure |\n| --- | --- | --- |\n\
        | A | [`a`](../a.rs) | `trial`: 1,000 trials, 0 violations |\n| B | [`b`](../a.rs) | |\n| C | | |\n\
        | D | [`a`](../a.rs) | `trial`: 1,000 trials, 0 violations at `abc` |\n";
    let source = |_: &str| Some("#[test]\nfn a() {}\n".to_owned());
    let last = || "1,000 trials, 0 violations".to_owned();
    let found = faults(page, source, |_| Some(last()));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(faults(page, source, |_| None).len() > 3);
}

#[test]
fn a_page_that_promises_how_often_links_to_the_table() {
    let pages = chapters().unwrap().into_iter();
    let pages = pages.filter(|page| !EXEMPT.contains(&page.as_str()));
    let faults = pages.filter(|page| {
        promises_without_a_link(&fs::read_to_string(root().join(page)).unwrap_or_default())
    });
    let faults = faults.map(|page| format!("{page} promises how often, without a link to {PAGE}"));
    assert_tidy(&faults.collect::<Vec<_>>());
}

#[test]
fn a_promise_without_a_link_is_found() {
    assert!(promises_without_a_link("It is **exactly\nonce**."));
    assert!(!promises_without_a_link(
        "It is [at most once](../guarantees.md)."
    ));
    assert!(!promises_without_a_link("It is once."));
}

#[test]
fn a_figure_names_its_commit() {
    let mut step = json!({ "report": { "trials": 12_000, "violations": 1 } });
    let figure = |step: &Json| figure_of(step).unwrap();
    assert_eq!(figure(&step), "12,000 trials, 1 violations");
    step["commit"] = json!("0123456789abcdef");
    step["dirty"] = json!(false);
    assert_eq!(figure(&step), "12,000 trials, 1 violations at `01234567`");
    step["dirty"] = json!(true);
    assert!(figure(&step).ends_with("`01234567` with uncommitted changes"));
    // A step that failed before its end, or counts nothing.
    assert_eq!(
        figure_of(&json!({ "commit": "0123456789", "report": null })),
        None
    );
}
