//! What pages point to is there: linked files, figures of the README, and places in the table of CONTRIBUTING.md.

use std::fs;
use std::path::Path;

use super::assert_tidy;
use super::files;
use crate::markdown::{is_elsewhere, links};
use harness::workspace::root;

/// Links to files that are not there. `folder` is where the page is.
fn broken_links(page: &str, folder: &Path) -> Vec<String> {
    let mut broken = Vec::new();
    for (_, link) in links(page) {
        let path = link.split('#').next().unwrap_or_default();
        if !is_elsewhere(&link) && !path.is_empty() && !folder.join(path).exists() {
            broken.push(link);
        }
    }
    broken
}

#[test]
fn every_link_of_a_page_leads_to_a_file() {
    // Inputs of fuzzers and tests, and what models are told, link to nothing.
    let is_other = |path: &str| {
        path.starts_with("testing/fuzz/") || path.contains("/tests/") || path.contains("/prompts/")
    };
    let mut faults = Vec::new();
    for page in files::all() {
        if !page.path.ends_with(".md") || is_other(&page.path) {
            continue;
        }
        let path = root().join(&page.path);
        let folder = path.parent().expect("a file is in a folder");
        let broken = broken_links(&page.text, folder);
        let told = |link: &String| format!("{}: `{link}` is not there", page.path);
        faults.extend(broken.iter().map(told));
    }
    assert_tidy(&faults);
}

#[test]
fn a_broken_link_is_found() {
    let here = &root().join("xtask");
    assert!(broken_links("[a](Cargo.toml) [b](https://example.com) [c](#d)", here).is_empty());
    assert_eq!(
        broken_links("[a](Cargo.tom) [b](src/main.rs#x)", here),
        ["Cargo.tom"]
    );
    assert!(broken_links("```\n[a](Cargo.tom)\n```\n", here).is_empty());
}

/// The first six cells of each figure in the README's table.
fn figures(readme: &str) -> Vec<&str> {
    let table = readme.split("## Measured").nth(1).unwrap_or_default();
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    rows.skip(2)
        .map(|row| row.trim_end_matches('|').trim_end())
        .collect()
}

#[test]
fn the_figures_of_the_readme_are_those_of_the_benchmarks() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap_or_default();
    let (readme, benchmarks) = (read("README.md"), read("docs/benchmarks.md"));
    let figures = figures(&readme);
    assert_eq!(figures.len(), 3, "the README shows three figures");
    let faults = figures.iter().filter(|row| !benchmarks.contains(**row));
    let faults = faults.map(|row| format!("README.md: `{row}` is not in docs/benchmarks.md"));
    assert_tidy(&faults.collect::<Vec<_>>());
}

#[test]
fn a_figure_is_read_without_its_last_bar() {
    let readme = "## Measured\n\n| a | b |\n| --- | --- |\n| loop | 3 |\n\n## Next\n| no | 1 |\n";
    assert_eq!(figures(readme), ["| loop | 3"]);
}

/// The file that each change of CONTRIBUTING.md's table begins in.
fn places(contributing: &str) -> Vec<&str> {
    let table = contributing
        .split("## Where do I change")
        .nth(1)
        .unwrap_or_default();
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    rows.skip(2)
        .filter_map(|row| row.split('`').nth_back(1))
        .collect()
}

#[test]
fn the_places_to_change_are_there() {
    let contributing = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap_or_default();
    let places = places(&contributing);
    assert!(places.len() >= 15, "{} likely changes", places.len());
    let faults = places.iter().filter(|place| !root().join(place).exists());
    let faults = faults.map(|place| format!("CONTRIBUTING.md: `{place}` is not there"));
    assert_tidy(&faults.collect::<Vec<_>>());
}

#[test]
fn a_place_is_the_last_code_of_its_row() {
    let table =
        "## Where do I change …?\n\n| a | b |\n| --- | --- |\n| `--x` | `src/x.rs` |\n\n## Next\n";
    assert_eq!(places(table), ["src/x.rs"]);
}
