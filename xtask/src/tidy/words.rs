//! Pages, doc comments, help and messages use the field's own words. Each old word of ours has a replacement.

use super::files::{self, File};
use super::{assert_tidy, rust_code};
use crate::markdown::{self, prose};

/// What is not written, and what is written instead.
const OLD_WORDS: &[(&str, &str)] = &[
    ("anew", "again, or from the start"),
    ("nought", "zero"),
    ("hence", "so"),
    ("unless said", "default"),
    ("for good", "permanently"),
    ("whoever", "the actor: the caller, the worker, the owner"),
    ("go on with", "resume, or continue"),
    ("goes on with", "resumes, or continues"),
    ("gone on with", "resumed"),
    ("taken up", "resumed, or recovered"),
    ("takes up", "resumes, or recovers"),
    ("put down", "suspended"),
    ("puts down", "suspends"),
    ("handed over", "dispatched"),
    ("abroad", "on another worker"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("parked", "paused"),
    ("throw of the dice", "random value"),
    ("is no more", "is gone, or was deleted"),
    ("or is none", "or is not one"),
];

/// The text of `docs/benchmarks.md`.
const WORDS_OF_BENCHMARKS: &str = "testing/bench/src/page/words.rs";

/// What is held to the list: the prose of pages; doc comments and strings (errors, log lines, questions) of the crates, the
/// agents and the program; help; what the page on benchmarks says besides figures. That page itself has labels of recorded figures,
/// and a changelog has old names.
fn prose_of(file: &File) -> Vec<(usize, String)> {
    let path = file.path.as_str();
    let is_page = path.ends_with(".md")
        && !path.starts_with("testing/fuzz/")
        && !["/tests/", "/prompts/", "/src/"]
            .iter()
            .any(|folder| path.contains(folder))
        && !matches!(path, "docs/benchmarks.md" | "CHANGELOG.md");
    if is_page || path.contains("/snapshots/help") {
        return vec![(1, prose(&file.text))];
    }
    let is_held = ["crates/", "agents/", "apps/", WORDS_OF_BENCHMARKS]
        .iter()
        .any(|start| path.starts_with(start));
    if !(is_held && path.contains("/src/") && file.is_rust()) {
        return Vec::new();
    }
    // A string without a blank is a key or a name, which programs may depend on.
    let strings = rust_code::strings(&file.text).into_iter();
    let messages = strings.filter(|(_, text)| text.contains(' '));
    let messages = messages.map(|(line, text)| (line, prose(text)));
    let comments = prose(&markdown::of_doc_comments(&file.text));
    messages.chain([(1, comments)]).collect()
}

/// Old words in the prose of a file. What is in code is code.
fn faults_of(file: &File) -> Vec<String> {
    let parts = prose_of(file).into_iter();
    parts
        .flat_map(|(line, prose)| old_words(&prose, line))
        .map(|(line, old, new)| format!("{}:{line}: `{old}`; write: {new}", file.path))
        .collect()
}

/// Old words with their lines, also where one goes over the end of a line. `first` is the number of the first line.
fn old_words(prose: &str, first: usize) -> Vec<(usize, &'static str, &'static str)> {
    // Every word with a blank around it, so that an old word is never found inside of another; where the lines begin.
    let mut text = " ".to_owned();
    let mut starts = Vec::new();
    for line in prose.lines() {
        starts.push(text.len());
        // Nothing goes over the end of a paragraph.
        if line.trim().is_empty() {
            text.push_str("| ");
        }
        let line = line.to_lowercase();
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '`');
        for word in words.filter(|word| !word.is_empty()) {
            text.push_str(word);
            text.push(' ');
        }
    }
    let mut found = Vec::new();
    for (old, new) in OLD_WORDS {
        for (place, _) in text.match_indices(&format!(" {old} ")) {
            let line = starts.partition_point(|start| *start <= place + 1);
            found.push((first + line - 1, *old, *new));
        }
    }
    found
}

#[test]
fn pages_docs_and_messages_use_the_words_of_the_field() {
    let files = files::all();
    assert_tidy(&files.iter().flat_map(faults_of).collect::<Vec<_>>());
}

#[test]
fn an_old_word_is_found_in_prose_and_not_in_code() {
    let page = |text: &str| faults_of(&File::new("README.md", text));
    let faults = page("It begins Anew.\nThe run is put\ndown, then\n");
    assert_eq!(
        faults,
        [
            "README.md:1: `anew`; write: again, or from the start",
            "README.md:2: `put down`; write: suspended",
        ]
    );
    assert!(page("`anew` and newly\n```\nanew\n```\n").is_empty());
    assert!(page("commend the put `x` down, put\n\ndown").is_empty());
}

#[test]
fn an_old_word_is_found_in_comments_and_messages_of_a_crate() {
    let rust =
        "/// Begins anew.\nfn anew() { // anew\n    fail(\"gone for good\", \"put_down\")\n}\n";
    let faults = |path: &str| faults_of(&File::new(path, rust)).len();
    assert_eq!(faults("crates/superstep/src/lib.rs"), 2);
    assert_eq!(faults(WORDS_OF_BENCHMARKS), 2);
    assert_eq!(faults("crates/superstep/tests/it/main.rs"), 0);
    assert_eq!(faults("testing/bench/src/page.rs"), 0);
}
