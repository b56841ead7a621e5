//! Every block of code of the book's pages is compiled, executed, or one of those that are only read.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use example_book::PAGES;
use harness::console::FOLDERS;

/// Blocks that nothing runs: output, data, and files that other tools read.
const ONLY_READ: &[&str] = &["text", "json", "toml"];

/// Pages with commands that no test runs, and why.
const NOT_RUN: &[(&str, &str)] = &[(
    "start/install.md",
    "`cargo install` builds the program; CI builds it in the same way",
)];

/// The languages of a page's blocks, each with its line.
fn languages(text: &str) -> Vec<(usize, String)> {
    let mut is_open = false;
    let mut languages = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(language) = line.strip_prefix("```") else {
            continue;
        };
        if !is_open {
            languages.push((at + 1, language.to_owned()));
        }
        is_open = !is_open;
    }
    languages
}

fn pages() -> Vec<(String, String)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut pages = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(docs.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.ends_with(".md") {
                pages.push((
                    format!("{folder}/{name}"),
                    fs::read_to_string(&path).unwrap(),
                ));
            }
        }
    }
    pages
}

#[test]
fn every_block_is_compiled_or_executed_or_only_read() {
    let compiled: BTreeSet<&str> = PAGES.iter().copied().collect();
    let mut faults = Vec::new();
    for (page, text) in pages() {
        for (line, language) in languages(&text) {
            let is_rust = language == "rust" || language == "rust,no_run";
            let is_allowed = match language.as_str() {
                "console" => true,
                "sh" => NOT_RUN.iter().any(|(path, _)| *path == page),
                language => ONLY_READ.contains(&language),
            };
            if is_rust && !compiled.contains(page.as_str()) {
                faults.push(format!("{page}:{line} is not in src/lib.rs"));
            } else if !is_rust && !is_allowed {
                faults.push(format!("{page}:{line}: nothing runs ```{language}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_page_is_listed_if_it_has_rust_code() {
    for (page, text) in pages() {
        let has_rust = languages(&text)
            .iter()
            .any(|(_, language)| language.starts_with("rust"));
        let is_listed = PAGES.contains(&page.as_str());
        assert!(has_rust || !is_listed, "{page} has no Rust code");
    }
    for (page, _) in NOT_RUN {
        assert!(pages().iter().any(|(path, _)| path == page), "{page}");
    }
}

#[test]
fn the_languages_of_blocks_are_found() {
    let page = "```rust\nfn a() {}\n```\n\n```\nb\n```\n";
    let found = [(1, "rust".to_owned()), (5, String::new())];
    assert_eq!(languages(page), found);
}
