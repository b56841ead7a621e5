//! Finds the claims of a text: splits it into sentences, and finds what they name.

use super::super::scan::Tree;
use super::spans::{claims_of, is_path};
use super::{Claim, CountKind};

/// Splits a text into sentences, without losing anything between them. A code block is one sentence; the end of a line always
/// ends one.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut in_block) = (0, false);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let is_fence = line.trim_start().starts_with("```");
        if is_fence && !in_block {
            if start < at {
                found.push(&text[start..at]);
            }
            start = at;
        }
        if is_fence {
            in_block = !in_block;
        }
        if !in_block {
            if is_fence {
                found.push(&text[start..end]);
            } else {
                split_line(&text[at..end], &mut found);
            }
            start = end;
        }
        at = end;
    }
    if start < text.len() {
        found.push(&text[start..]);
    }
    found
}

fn split_line<'a>(line: &'a str, found: &mut Vec<&'a str>) {
    let mut start = 0;
    let mut in_code = false;
    let bytes = line.as_bytes();
    for (at, c) in line.char_indices() {
        if c == '`' {
            in_code = !in_code;
        }
        if at < start {
            continue;
        }
        let is_end = matches!(c, '.' | '!' | '?') && !in_code && bytes.get(at + 1) == Some(&b' ');
        // `e.g. x` and `1. x` do not end a sentence.
        let before = line[start..at].trim();
        let goes_on = before.len() <= 2 || before.ends_with("e.g") || before.ends_with("i.e");
        if is_end && !goes_on {
            found.push(&line[start..at + 2]);
            start = at + 2;
        }
    }
    if start < line.len() {
        found.push(&line[start..]);
    }
}

pub(super) fn claims_in(sentence: &str, tree: &Tree) -> Vec<Claim> {
    let mut found = Vec::new();
    if sentence.trim_start().starts_with("```") {
        // A code block is a diagram or an example. Diagrams have their own checks.
        return found;
    }
    let mut within = Vec::new();
    for (at, part) in sentence.split('`').enumerate() {
        match at % 2 {
            1 => found.extend(claims_of(part)),
            _ => found.extend(part.split_whitespace().filter_map(bare_path)),
        }
    }
    for claim in &found {
        match claim {
            Claim::Path(path) => within.push(path.clone()),
            Claim::Symbol(name) if tree.has_path(name) => within.push(name.clone()),
            _ => {}
        }
    }
    let words: Vec<&str> = sentence.split_whitespace().collect();
    for language in tree.languages().into_keys() {
        let is_named = words.iter().any(|word| trimmed(word) == language.word());
        if is_named {
            within.push(language.word().to_owned());
        }
    }
    found.extend(counts(&words, &within));
    found.extend(versions(&words, tree));
    found
}

/// Returns a claim if a word outside of backticks looks like a path.
fn bare_path(word: &str) -> Option<Claim> {
    let word = trimmed(word);
    let is_url = word.contains("://") || word.starts_with("www.");
    let place = word.split_once(':').map_or(word, |(path, _)| path);
    let (_, name) = place.rsplit_once('/')?;
    let ending = name.rsplit_once('.').map(|(_, ending)| ending)?;
    let is_ending = (1..=5).contains(&ending.len())
        && ending.chars().all(|c| c.is_ascii_alphanumeric())
        && ending.chars().any(|c| c.is_ascii_lowercase());
    (is_ending && !is_url && is_path(word)).then(|| Claim::Path(word.to_owned()))
}

fn trimmed(word: &str) -> &str {
    word.trim_matches(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '_' | '#' | '+' | '.')))
        .trim_end_matches('.')
}

fn counts(words: &[&str], within: &[String]) -> Vec<Claim> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let bare = word
            .trim_matches(|c: char| !c.is_ascii_alphanumeric())
            .replace([',', '_'], "");
        let Ok(number) = bare.parse::<u64>() else {
            continue;
        };
        // Also matches `3 source files`: one word may come between the number and the noun.
        let next = words.iter().skip(at + 1).take(2).map(|word| {
            word.trim_matches(|c: char| !c.is_alphanumeric())
                .to_lowercase()
        });
        if let Some(of) = next.into_iter().find_map(|word| CountKind::of(&word)) {
            found.push(Claim::Count {
                number,
                of,
                within: within.to_vec(),
            });
        }
    }
    found
}

/// Finds versions, written as `serde 1.0`, `serde (1.0)` or `serde v1.0`.
fn versions(words: &[&str], tree: &Tree) -> Vec<Claim> {
    let known = tree.dependencies();
    let mut found = Vec::new();
    for pair in words.windows(2) {
        let name = pair[0]
            .trim_matches(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '@' | '/')));
        let version = pair[1]
            .trim_matches(|c: char| !c.is_ascii_alphanumeric())
            .trim_start_matches('v');
        let is_version =
            version.contains('.') && version.chars().all(|c| c.is_ascii_digit() || c == '.');
        if is_version && known.contains_key(name) {
            found.push(Claim::Version {
                name: name.to_owned(),
                version: version.to_owned(),
            });
        }
    }
    found
}
