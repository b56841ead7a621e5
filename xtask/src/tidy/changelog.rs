//! A change that users see has a place to be written down.

use super::assert_tidy;

fn faults_of(changelog: &str) -> Vec<String> {
    let is_unreleased =
        |line: &&str| matches!(line.trim_end(), "## [Unreleased]" | "## Unreleased");
    match changelog.lines().filter(is_unreleased).count() {
        1 => Vec::new(),
        0 => vec!["CHANGELOG.md has no section `## [Unreleased]`".to_owned()],
        _ => vec!["CHANGELOG.md has the section `## [Unreleased]` more than once".to_owned()],
    }
}

#[test]
fn the_changelog_has_a_place_for_what_is_new() {
    let path = harness::workspace::root().join("CHANGELOG.md");
    assert_tidy(&faults_of(
        &std::fs::read_to_string(path).unwrap_or_default(),
    ));
}

#[test]
fn a_changelog_without_that_place_is_found() {
    assert_eq!(faults_of("# Changelog\n\n## [0.1.0]\n").len(), 1);
    assert_eq!(faults_of("## [Unreleased]\n## [Unreleased]\n").len(), 1);
    assert!(faults_of("# Changelog\n\n## [Unreleased]\n").is_empty());
}
