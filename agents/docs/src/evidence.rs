//! Evidence for questions: excerpts of the files that they name, and of the definitions of the symbols that they name.

use super::scan::{SourceFile, Tree};
use super::state::FileRead;

/// Excerpts that were found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Evidence {
    /// Excerpts with paths and line numbers, for the prompt.
    pub(super) text: String,
    /// Files that the excerpts come from.
    pub(super) reads: Vec<FileRead>,
}

/// Collects evidence for these questions.
pub(super) fn of<'a>(questions: impl IntoIterator<Item = &'a str>, tree: &Tree) -> Evidence {
    let mut found = Evidence::default();
    for question in questions {
        for word in words(question) {
            if found.reads.len() >= PLACES_MAX {
                return found;
            }
            for (file, line) in places(word, tree) {
                found.add(file, line, tree);
            }
        }
    }
    found
}

/// Returns the places that a word may refer to: the file of that path, or up to two definitions of that name outside tests.
fn places<'a>(word: &str, tree: &'a Tree) -> Vec<(&'a SourceFile, u32)> {
    if let Some(file) = tree.file(word.trim_start_matches("./")) {
        return vec![(file, 1)];
    }
    let last = word.rsplit([':', '.']).next().unwrap_or(word);
    let defined = tree.defined(last).into_iter();
    let defined = defined.filter(|(file, _)| !file.is_test());
    defined
        .take(2)
        .map(|(file, symbol)| (file, symbol.line))
        .collect()
}

/// Returns the words of a question that may be names: everything in backticks, and words that look like code.
fn words(question: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.' | ':');
    let mut found = Vec::new();
    for (at, part) in question.split('`').enumerate() {
        let words = part.split(|c: char| !is_part(c));
        let words = words.map(|word| word.trim_matches(['.', ':', '-']));
        let is_name = |word: &&str| {
            let looks_so =
                word.contains(['_', ':', '/', '.']) || word.chars().any(char::is_uppercase);
            word.len() > 1 && (at % 2 == 1 || looks_so)
        };
        found.extend(words.filter(is_name));
    }
    found
}

impl Evidence {
    fn add(&mut self, file: &SourceFile, line: u32, tree: &Tree) {
        let mark = format!("=== {} from line {line}\n", file.path);
        if self.text.contains(&mark) || self.reads.len() >= PLACES_MAX {
            return;
        }
        let Some(text) = tree.read(&file.path) else {
            return;
        };
        self.text.push_str(&mark);
        self.text.push_str(&excerpt(&text, line, LINES));
        self.reads.push(FileRead {
            path: file.path.clone(),
            hash: file.hash_text(),
        });
    }
}

/// Returns up to `lines` lines of `text` from line `from`, numbered and cut to 200 characters each.
pub(super) fn excerpt(text: &str, from: u32, lines: usize) -> String {
    let mut found = String::new();
    let first = usize::try_from(from.max(1) - 1).unwrap_or(0);
    for (number, line) in text.lines().enumerate().skip(first).take(lines) {
        let short: String = line.chars().take(LINE_CHARS).collect();
        found.push_str(&format!("{}: {short}\n", number + 1));
    }
    found
}

const PLACES_MAX: usize = 8;
const LINES: usize = 40;
const LINE_CHARS: usize = 200;
