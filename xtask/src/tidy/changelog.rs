//! A change that users see has a place to be written down, and is written there once.
//!
//! Two branches that both add a heading, or reword one entry, merge without a conflict. What comes out is a
//! release with two sections of one name, or with one change listed twice.

use std::collections::HashMap;

use super::assert_tidy;

/// Entries that begin with this many equal words are versions of one entry.
const SAME_WORDS: usize = 8;

/// An entry of a list, with the line where it begins.
struct Entry {
    line: usize,
    words: Vec<String>,
}

/// The words of a text, without punctuation and marks of links and code.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let plain = |word: &str| {
        let is_mark = |c: char| !c.is_alphanumeric();
        word.trim_matches(is_mark).to_lowercase()
    };
    let words = text.split_whitespace().map(plain);
    words.filter(|word| !word.is_empty())
}

/// The entries of a release, which begin with `- ` and may go over several lines.
fn entries<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut is_inside = false;
    for (line, text) in lines {
        if let Some(first) = text.strip_prefix("- ") {
            let words = words(first).collect();
            entries.push(Entry { line, words });
            is_inside = true;
        } else if !text.starts_with("  ") {
            is_inside = false;
        } else if let Some(entry) = entries.last_mut().filter(|_| is_inside) {
            entry.words.extend(words(text));
        }
    }
    entries
}

/// Headings and entries that one release has more than once.
fn repeated(changelog: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let lines: Vec<(usize, &str)> = (1..).zip(changelog.lines()).collect();
    for release in lines.split(|(_, text)| text.starts_with("## ")) {
        let mut headings = HashMap::new();
        for (line, text) in release {
            let Some(name) = text.strip_prefix("### ") else {
                continue;
            };
            if let Some(first) = headings.insert(name.trim(), *line) {
                faults.push(format!(
                    "CHANGELOG.md:{line}: `### {}` is already in line {first}; move the entries there",
                    name.trim()
                ));
            }
        }
        let mut beginnings = HashMap::new();
        for Entry { line, mut words } in entries(release.iter().copied()) {
            words.truncate(SAME_WORDS);
            if let Some(first) = beginnings.insert(words.join(" "), line) {
                faults.push(format!(
                    "CHANGELOG.md:{line}: the entry begins like the one in line {first}; keep one"
                ));
            }
        }
    }
    faults
}

fn faults_of(changelog: &str) -> Vec<String> {
    let is_unreleased =
        |line: &&str| matches!(line.trim_end(), "## [Unreleased]" | "## Unreleased");
    match changelog.lines().filter(is_unreleased).count() {
        1 => Vec::new(),
        0 => vec!["CHANGELOG.md has no section `## [Unreleased]`".to_owned()],
        _ => vec!["CHANGELOG.md has the section `## [Unreleased]` more than once".to_owned()],
    }
}

fn read() -> String {
    let path = harness::workspace::root().join("CHANGELOG.md");
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn the_changelog_has_a_place_for_what_is_new() {
    assert_tidy(&faults_of(&read()));
}

#[test]
fn a_changelog_without_that_place_is_found() {
    assert_eq!(faults_of("# Changelog\n\n## [0.1.0]\n").len(), 1);
    assert_eq!(faults_of("## [Unreleased]\n## [Unreleased]\n").len(), 1);
    assert!(faults_of("# Changelog\n\n## [Unreleased]\n").is_empty());
}

#[test]
fn a_release_has_each_heading_and_each_entry_once() {
    let changelog = read();
    let lines = (1..).zip(changelog.lines());
    assert!(entries(lines).len() > 100, "the entries are not recognised");
    assert_tidy(&repeated(&changelog));
}

#[test]
fn a_repeated_heading_is_found_within_one_release() {
    let twice = "## [Unreleased]\n### Added\n- One.\n### Fixed\n- Two.\n### Added\n- Three.\n";
    let found = repeated(twice);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(":6:") && found[0].contains("`### Added`"));
    assert!(repeated("## [0.2.0]\n### Added\n- A.\n## [0.1.0]\n### Added\n- A.\n").is_empty());
}

#[test]
fn a_repeated_entry_is_found_also_if_one_of_them_was_reworded() {
    let same = "## [0.2.0]\n### Added\n- A new method.\n### Changed\n- A new method.\n";
    assert_eq!(repeated(same).len(), 1);
    let links = "## [0.2.0]\n\
        - `archie erase TENANT` and `erase_tenant` delete everything of a\n  tenant.\n\
        - `archie erase TENANT` and `erase_tenant` [delete everything\n  of a tenant](page.md), also.\n";
    let found = repeated(links);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(":4:") && found[0].contains("line 2"));
    let others =
        "## [0.2.0]\n- `Registry` has a new method, `a`.\n- `Registry` has a new method, `b`.\n";
    assert!(repeated(others).is_empty());
}
