//! Pages use the field's own words. Each old word of ours has a replacement.

use super::assert_tidy;
use super::files::{self, File};

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

/// Whether a page is held to the list. The benchmarks are written by a program, and a changelog tells of old names.
fn is_held(path: &str) -> bool {
    let is_ours = !path.starts_with("testing/fuzz/")
        && !path.contains("/tests/")
        && !path.contains("/prompts/")
        && !path.contains("/src/");
    let is_generated = matches!(path, "docs/benchmarks.md" | "CHANGELOG.md");
    path.ends_with(".md") && is_ours && !is_generated
}

/// Old words in the prose of a page. What is in code is code.
fn faults_of(page: &File) -> Vec<String> {
    let mut faults = Vec::new();
    let mut in_code = false;
    for (number, line) in page.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let prose: Vec<&str> = line.split('`').step_by(2).collect();
        let words: Vec<String> = prose
            .join(" ` ")
            .to_lowercase()
            .split(|c: char| !c.is_alphanumeric() && c != '`')
            .filter(|word| !word.is_empty())
            .map(ToOwned::to_owned)
            .collect();
        let text = format!(" {} ", words.join(" "));
        for (old, new) in OLD_WORDS {
            if text.contains(&format!(" {old} ")) {
                let place = format!("{}:{}", page.path, number + 1);
                faults.push(format!("{place}: `{old}`; write: {new}"));
            }
        }
    }
    faults
}

#[test]
fn pages_use_the_words_of_the_field() {
    let pages = files::all();
    let held = pages.iter().filter(|page| is_held(&page.path));
    assert_tidy(&held.flat_map(faults_of).collect::<Vec<_>>());
}

#[test]
fn an_old_word_is_found_in_prose_and_not_in_code() {
    let page = |text: &str| faults_of(&File::new("README.md", text));
    assert_eq!(
        page("It begins Anew.\nThe run is put down, then\n").len(),
        2
    );
    assert!(page("`anew` and newly\n```\nanew\n```\n").is_empty());
    assert!(page("commend the put `x` down").is_empty());
}
