//! `cargo xtask prose`: spelling and grammar of what people read: pages, error pages, help and doc comments.
//!
//! [typos](https://github.com/crate-ci/typos) knows common misspellings and reads every file of the repository;
//! [Harper](https://writewithharper.com) checks English, with `docs/dictionary.txt`. Harper's Rust crate brings a machine-learning
//! framework and some 260 crates to build; its WebAssembly build is the same code and installs in seconds.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};

use crate::markdown;
use crate::programs::{install_npm, install_wheel};
use harness::workspace::{self, in_words, program, root};

/// Fails with every fault at once. With `files`, given by their paths from the root, checks only those.
pub(crate) fn run(files: &[String]) -> anyhow::Result<()> {
    check_spelling()?;
    let mut texts = texts(files)?;
    if texts.is_empty() {
        bail!("no page, help text or doc comment is in these files");
    }
    let (count, folder) = (texts.len(), harper()?);
    let dictionary = fs::read_to_string(root().join(DICTIONARY))?;
    let words = words_of(&dictionary);
    let mut clean = CleanTexts::read(&folder.join("clean.txt"), &words);
    texts.retain(|text| !clean.contains(text));
    let new = texts.len();
    eprintln!("checking {new} of {count} texts; the others were clean before");
    texts.push(sample());
    let found = check_grammar(&folder, &words, &texts)?;
    if !found.iter().any(|fault| fault["path"] == SAMPLE) {
        bail!("Harper finds nothing wrong with `{SAMPLE_TEXT}`, so it finds nothing at all");
    }
    texts.retain(|text| !found.iter().any(|fault| fault["path"] == text.path));
    clean.add(&texts)?;
    let faults = found.iter().filter(|fault| fault["path"] != SAMPLE);
    let faults: Vec<String> = faults.map(in_line).collect();
    if !faults.is_empty() {
        bail!(
            "{} fault(s); a word that is meant belongs into {DICTIONARY}:\n  {}",
            faults.len(),
            faults.join("\n  ")
        );
    }
    Ok(())
}

fn harper() -> anyhow::Result<PathBuf> {
    let files = [
        ("package.json", include_str!("prose/package.json")),
        ("package-lock.json", include_str!("prose/package-lock.json")),
        ("check.mjs", include_str!("prose/check.mjs")),
    ];
    install_npm("harper", HARPER_VERSION, &files)
}

/// The hashes of texts in which nothing was found: all of them take a minute of a core, and few change. Other rules make other
/// hashes, and so does another dictionary for the texts that use its words. Another version of Harper is another folder.
struct CleanTexts<'a> {
    path: PathBuf,
    words: &'a [&'a str],
    hashes: BTreeSet<String>,
}

impl<'a> CleanTexts<'a> {
    fn read(path: &Path, words: &'a [&'a str]) -> Self {
        // Without the file nothing is known to be clean.
        let hashes = fs::read_to_string(path).unwrap_or_default();
        let mut hashes: BTreeSet<String> = hashes.lines().map(str::to_owned).collect();
        if hashes.len() > CLEAN_MAX {
            hashes.clear();
        }
        Self {
            path: path.to_owned(),
            words,
            hashes,
        }
    }

    fn hash(&self, text: &Text) -> String {
        let lower = text.text.to_lowercase();
        let words = self.words.iter();
        let used: Vec<_> = words
            .filter(|word| lower.contains(&word.to_lowercase()))
            .collect();
        let mut hasher = DefaultHasher::new();
        (OFF, used, text.language, &text.text).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    fn contains(&self, text: &Text) -> bool {
        self.hashes.contains(&self.hash(text))
    }

    fn add(&mut self, texts: &[Text]) -> anyhow::Result<()> {
        let new: Vec<String> = texts.iter().map(|text| self.hash(text)).collect();
        self.hashes.extend(new);
        let lines = self.hashes.iter().map(|hash| format!("{hash}\n"));
        fs::write(&self.path, lines.collect::<String>())
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

fn check_spelling() -> anyhow::Result<()> {
    let typos = install_wheel("typos", TYPOS_VERSION)?;
    let mut command = program(&typos.display().to_string());
    let output = command.args(["--format", "brief"]).output();
    let output = output.with_context(|| format!("`{}` cannot be started", in_words(&command)))?;
    match output.status.success() {
        true => Ok(()),
        false => bail!(
            "typos finds misspellings (typos.toml lists what is meant):\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}

/// What is checked, and what it is written in.
#[derive(Debug)]
struct Text {
    path: String,
    text: String,
    language: &'static str,
}

impl Text {
    /// None if nobody reads this file as text, or if what people read of it is not checked yet.
    fn of(path: &str, text: &str) -> Option<Self> {
        let is_page = path.ends_with(".md")
            && !path.starts_with("testing/fuzz/")
            && !["/tests/", "/prompts/"]
                .iter()
                .any(|part| path.contains(part));
        let is_help = path.contains("/snapshots/help");
        let is_shipped = ["agents/", "apps/", "crates/"]
            .iter()
            .any(|folder| path.starts_with(folder));
        let is_source = is_shipped && path.ends_with(".rs") && path.contains("/src/");
        let (text, language) = if is_page {
            (text.to_owned(), "markdown")
        } else if is_help {
            (descriptions(text), "plaintext")
        } else if is_source {
            (markdown::of_doc_comments(text), "markdown")
        } else {
            return None;
        };
        let path = path.to_owned();
        (!text.trim().is_empty()).then_some(Self {
            path,
            text,
            language,
        })
    }
}

/// What a help text says, without the names of commands and options before it, each on its line.
fn descriptions(help: &str) -> String {
    let mut text = String::new();
    for line in help.lines() {
        let indent = line.len() - line.trim_start().len();
        let column = line[indent..].find("  ").map_or(0, |gap| indent + gap);
        let is_name = indent > 0
            && line[indent..].starts_with(|c: char| c.is_lowercase() || "-<[".contains(c));
        let is_whole = column == 0 && line.trim_start().starts_with('-');
        match (is_name, is_whole) {
            (_, true) => {}
            (true, false) => text.push_str(line[column..].trim_start()),
            (false, false) => text.push_str(line.trim_start()),
        }
        text.push('\n');
    }
    text
}

fn texts(files: &[String]) -> anyhow::Result<Vec<Text>> {
    let mut texts = Vec::new();
    for path in workspace::files()? {
        if !files.is_empty() && !files.contains(&path) {
            continue;
        }
        // Deleted and not yet committed as such, or not text.
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            continue;
        };
        texts.extend(Text::of(&path, &text));
    }
    Ok(texts)
}

fn sample() -> Text {
    Text {
        path: SAMPLE.to_owned(),
        text: SAMPLE_TEXT.to_owned(),
        language: "plaintext",
    }
}

/// Splits the texts among the cores.
fn check_grammar(folder: &Path, words: &[&str], texts: &[Text]) -> anyhow::Result<Vec<Json>> {
    let off: Vec<&str> = OFF.iter().flat_map(|(_, rules)| *rules).copied().collect();
    // The longest first, dealt like cards.
    let mut texts: Vec<&Text> = texts.iter().collect();
    texts.sort_by_key(|text| Reverse(text.text.len()));
    let processes = thread::available_parallelism().map_or(1, |cores| cores.get().min(4));
    let mut hands = vec![Vec::new(); processes];
    for (number, text) in texts.iter().enumerate() {
        let Text {
            path,
            text,
            language,
        } = text;
        hands[number % processes].push(json!({ "path": path, "text": text, "language": language }));
    }
    let check = |texts: Vec<Json>| {
        let mut node = Command::new("node");
        node.current_dir(folder).arg("check.mjs");
        let asked = json!({ "words": words, "off": off, "texts": texts });
        ask(&mut node, &asked)
    };
    let found = thread::scope(|scope| {
        let check = &check;
        let spawn = |texts| scope.spawn(move || check(texts));
        let hands = hands.into_iter().map(spawn);
        let hands: Vec<_> = hands.collect();
        let found = hands.into_iter().map(|hand| match hand.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        found.collect::<anyhow::Result<Vec<Vec<Json>>>>()
    })?;
    let mut found = found.concat();
    found.sort_by_key(|fault| (fault["path"].to_string(), fault["line"].as_u64()));
    Ok(found)
}

fn ask(command: &mut Command, asked: &Json) -> anyhow::Result<Vec<Json>> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{}` cannot be started", in_words(command)))?;
    let mut stdin = child.stdin.take().context("it was piped")?;
    stdin.write_all(asked.to_string().as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("`{}` failed", in_words(command));
    }
    serde_json::from_slice(&output.stdout).context("Harper's answer is not JSON")
}

fn in_line(fault: &Json) -> String {
    let text = |name: &str| fault[name].as_str().unwrap_or_default();
    let suggestion = match text("suggestion") {
        "" => String::new(),
        suggestion => format!("; perhaps: `{suggestion}`"),
    };
    format!(
        "{}:{}: {}: `{}`: {}{suggestion}",
        text("path"),
        fault["line"],
        text("rule"),
        text("text").replace('\n', " "),
        text("message")
    )
}

/// One word a line, `#` begins a remark.
fn words_of(dictionary: &str) -> Vec<&str> {
    let lines = dictionary.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// Rules of Harper that are off, and why.
const OFF: &[(&str, &[&str])] = &[
    (
        "our headings are sentences, and table cells and list items begin in lower case",
        &["UseTitleCase", "SentenceCapitalization"],
    ),
    (
        "a name is written as it is typed: `sqlite`, `json`",
        &["OrthographicConsistency"],
    ),
    (
        "help and tables are laid out with blanks, dashes and dots",
        &[
            "Spaces",
            "NoFrenchSpaces",
            "Dashes",
            "NumericRangeEnDash",
            "UseEllipsisCharacter",
        ],
    ),
    (
        "taste: commas that may be left out, and how long a list in a sentence gets",
        &["OxfordComma", "DiscourseMarkers", "LongSentences"],
    ),
    (
        "units and shorthand that every reader of ours knows",
        &[
            "ExpandControl",
            "ExpandDirectory",
            "ExpandMemoryShorthands",
            "ExpandMinimum",
            "ExpandStandardInputAndOutput",
            "ExpandTimeShorthands",
        ],
    ),
    (
        "two words or one, both are right: under way, hash map, a while, every one of them",
        &[
            "AWhile",
            "CompoundNouns",
            "DisjointPrefixes",
            "Everyone",
            "MergeWords",
            "Overall",
        ],
    ),
    (
        "guesses from single words, and was wrong wherever it spoke",
        &[
            "LetsConfusion",
            "MassNouns",
            "MissingPreposition",
            "MissingTo",
            "NounVerbConfusion",
            "OneOfTheSingular",
            "QuantifierNumeralConflict",
            "SingleBe",
            "ToTwoToo",
        ],
    ),
];

/// More than that are from long ago.
const CLEAN_MAX: usize = 10_000;
const DICTIONARY: &str = "docs/dictionary.txt";
const SAMPLE: &str = "a sample with a mistake";
const SAMPLE_TEXT: &str = "It is an mistake to write the the same word twice.";
/// Another one may have other rules.
const HARPER_VERSION: &str = "2.10.0";
const TYPOS_VERSION: &str = "1.51.1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_read_is_checked() {
        let language = |path: &str, text: &str| Text::of(path, text).map(|text| text.language);
        assert_eq!(language("docs/scale.md", "a"), Some("markdown"));
        let help = "apps/archie/tests/it/snapshots/help-run.snap";
        assert_eq!(language(help, "a"), Some("plaintext"));
        let source = "crates/superstep/src/lib.rs";
        assert_eq!(language(source, "//! A"), Some("markdown"));
        assert_eq!(language(source, "fn a() {} // b"), None);
        assert_eq!(language("apps/archie/src/prompts/a.md", "a"), None);
        assert_eq!(language("xtask/src/main.rs", "//! A"), None);
    }

    #[test]
    fn a_clean_text_is_checked_again_when_it_or_the_dictionary_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clean.txt");
        let (old, new) = (sample(), Text::of("a.md", "new").unwrap());
        let mut clean = CleanTexts::read(&path, &["Twice"]);
        assert!(!clean.contains(&old));
        clean.add(std::slice::from_ref(&old)).unwrap();
        let clean = CleanTexts::read(&path, &["Twice", "thrice"]);
        assert!(clean.contains(&old) && !clean.contains(&new));
        assert!(!CleanTexts::read(&path, &["thrice"]).contains(&old));
    }

    #[test]
    fn names_of_commands_are_not_prose() {
        let help = "Do it\n\nCommands:\n  backup  Back it up\n      --model <MODEL>\n          The model,\n          or a script\n";
        assert_eq!(
            descriptions(help),
            "Do it\n\nCommands:\nBack it up\n\nThe model,\nor a script\n"
        );
    }

    #[test]
    fn the_dictionary_holds_each_word_once() {
        let text = fs::read_to_string(root().join(DICTIONARY)).unwrap();
        let words = words_of(&text);
        // Harper keeps one spelling, and would refuse the other.
        let mut unique: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(words.len(), unique.len());
        assert_eq!(words_of("# a\n\n b \n"), ["b"]);
    }

    #[test]
    fn the_packages_are_pinned_and_come_from_the_registry_that_is_set() {
        let lock: Json = serde_json::from_str(include_str!("prose/package-lock.json")).unwrap();
        let packages = lock["packages"].as_object().unwrap();
        assert_eq!(
            packages["node_modules/harper.js"]["version"],
            HARPER_VERSION
        );
        for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
            assert!(package["integrity"].is_string(), "{name}");
            assert!(package.get("resolved").is_none(), "{name}");
        }
    }
}
