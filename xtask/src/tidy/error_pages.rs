//! Every error code has a page, every page a code, and the index lists them all.

use std::collections::{BTreeMap, BTreeSet};

use crate::error_index;

use super::assert_tidy;

/// A crate that has error codes, and where to ask for them.
struct Source {
    name: &'static str,
    codes: fn() -> Vec<&'static str>,
}

/// A crate with errors of its own adds its line here.
const SOURCES: &[Source] = &[
    Source {
        name: "superstep-core",
        codes: || superstep_core::error::all_codes().collect(),
    },
    Source {
        name: "superstep",
        codes: || {
            [
                superstep::DriveError::CODES,
                superstep::ScheduleError::CODES,
            ]
            .concat()
        },
    },
    Source {
        name: "superstep-encryption",
        codes: || superstep_encryption::EncryptionError::CODES.to_vec(),
    },
    Source {
        name: "superstep-llm",
        codes: || superstep_llm::ModelError::CODES.to_vec(),
    },
    Source {
        name: "superstep-agent",
        codes: || {
            [
                superstep_agent::ToolFault::CODES,
                superstep_agent::mcp::McpError::CODES,
                superstep_agent::memory::MemoryError::CODES,
                superstep_agent::budget::BudgetError::CODES,
                superstep_agent::budget::CallKeyError::CODES,
            ]
            .concat()
        },
    },
    Source {
        name: "superstep-restate",
        codes: || {
            let client = superstep_restate::RestateError::CODES;
            let worker = superstep_restate::WorkerError::CODES;
            let redis = superstep_restate::RedisError::CODES;
            [client, worker, redis, superstep_restate::CronError::CODES].concat()
        },
    },
];

const SECTIONS: &[&str] = &["## What happened", "## Why", "## What to do"];

fn faults_of(codes: &[&str], pages: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut known = BTreeSet::new();
    for code in codes {
        if !known.insert(*code) {
            faults.push(format!("two errors have the code `{code}`"));
        }
        if !pages.contains_key(*code) {
            faults.push(format!(
                "the error `{code}` has no page {}/{code}.md",
                error_index::FOLDER
            ));
        }
    }
    for (code, page) in pages {
        if !known.contains(code.as_str()) {
            faults.push(format!("the page `{code}` is about no error"));
        }
        faults.extend(page_faults(code, page));
    }
    faults
}

fn page_faults(code: &str, page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if page.lines().next() != Some(&format!("# {code}")) {
        faults.push(format!("the page `{code}` does not begin with `# {code}`"));
    }
    let summary = error_index::summary(page);
    if summary.is_empty() || summary.starts_with('#') || summary.contains('|') {
        faults.push(format!(
            "the page `{code}` has no first paragraph that fits a line of the index"
        ));
    }
    let headings: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    if headings != SECTIONS {
        faults.push(format!(
            "the page `{code}` has the sections {headings:?}, not {SECTIONS:?}"
        ));
    }
    for section in page.split("\n## ").skip(1) {
        let (heading, body) = section.split_once('\n').unwrap_or((section, ""));
        if body.trim().is_empty() {
            faults.push(format!("the page `{code}` says nothing under `{heading}`"));
        }
    }
    faults
}

#[test]
fn every_error_code_has_a_page_and_every_page_a_code() {
    let codes: Vec<&str> = SOURCES.iter().flat_map(|source| (source.codes)()).collect();
    assert_tidy(&faults_of(&codes, &error_index::pages().unwrap()));
}

/// The code of pages is too short to be compiled. It is Rust at least.
fn faults_of_code(pages: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (code, page) in pages {
        let blocks = page.split("\n```rust\n").skip(1);
        for block in blocks.filter_map(|rest| rest.split("\n```").next()) {
            let parsed = syn::parse_str::<syn::Block>(&format!("{{ {block}\n}}"));
            let fault = parsed.err();
            faults.extend(fault.map(|fault| format!("the page `{code}`: {fault} in `{block}`")));
        }
    }
    faults
}

#[test]
fn the_code_of_the_pages_is_rust() {
    assert_tidy(&faults_of_code(&error_index::pages().unwrap()));
}

#[test]
fn code_that_is_not_rust_is_found() {
    let page = |code: &str| {
        let page = format!("# a\n\n```rust\n{code}\n```\n");
        BTreeMap::from([("a".to_owned(), page)])
    };
    assert!(faults_of_code(&page("let a = b(1).await?;")).is_empty());
    assert!(faults_of_code(&page("struct A { b: u8 }")).is_empty());
    assert_eq!(faults_of_code(&page("let a = b(1)\nc()")).len(), 1);
}

#[test]
fn every_source_of_codes_has_some() {
    for source in SOURCES {
        assert!(
            !(source.codes)().is_empty(),
            "{} lists no error codes",
            source.name
        );
    }
}

#[test]
fn the_index_is_fresh() {
    let path = harness::workspace::root()
        .join(error_index::FOLDER)
        .join("README.md");
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == error_index::index(&error_index::pages().unwrap()),
        "the index is stale; run `cargo xtask error-index`"
    );
}

#[test]
fn a_bad_page_is_found() {
    let good = |code: &str| {
        format!(
            "# {code}\n\nIn one line.\n\n## What happened\n\nA.\n\n## Why\n\nB.\n\n## What to do\n\nC.\n"
        )
    };
    let pages = BTreeMap::from([
        ("a-good".to_owned(), good("a-good")),
        ("b-no-code".to_owned(), good("b-no-code")),
        ("c-title".to_owned(), good("c-titel")),
        (
            "d-sections".to_owned(),
            good("d-sections").replace("## Why\n\nB.\n\n", ""),
        ),
        ("e-empty".to_owned(), good("e-empty").replace("B.", "")),
        (
            "f-summary".to_owned(),
            good("f-summary").replace("In one line.\n\n", ""),
        ),
    ]);
    let codes = [
        "a-good",
        "a-good",
        "c-title",
        "d-sections",
        "e-empty",
        "f-summary",
        "g-no-page",
    ];
    assert_eq!(
        faults_of(&codes, &pages),
        [
            "two errors have the code `a-good`",
            "the error `g-no-page` has no page docs/errors/g-no-page.md",
            "the page `b-no-code` is about no error",
            "the page `c-title` does not begin with `# c-title`",
            "the page `d-sections` has the sections [\"## What happened\", \"## What to do\"], not [\"## What happened\", \"## Why\", \"## What to do\"]",
            "the page `e-empty` says nothing under `Why`",
            "the page `f-summary` has no first paragraph that fits a line of the index",
        ]
    );
}
