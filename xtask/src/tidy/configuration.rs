//! `docs/configuration.md` names every environment variable and every setting that the programs read, and the glossary is short.

use std::collections::BTreeSet;
use std::fs;

use super::assert_tidy;
use super::files::{self, File};
use harness::workspace::root;

const PAGE: &str = "docs/configuration.md";
/// Where the settings file is read.
const SETTINGS: &str = "apps/archie/src/cli/settings.rs";
const GLOSSARY: &str = "docs/glossary.md";
/// More than this, nobody learns.
const WORDS_MAX: usize = 30;

/// The beginnings of the names of variables that programs of this repository read.
const PREFIXES: &[&str] = &[
    "ANTHROPIC_",
    "ARCHIE_",
    "GEMINI_",
    "LANGSMITH_",
    "OLLAMA_",
    "OPENAI_",
    "OTEL_",
    "SUPERSTEP_",
    "PG",
    "XDG_",
];

/// Variables without such a beginning.
const OTHERS: &[&str] = &["EDITOR", "NO_COLOR", "VISUAL"];

/// The variables whose names are texts of a file, outside of its tests.
fn variables(file: &File) -> BTreeSet<String> {
    let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
    let texts = code.split('"').skip(1).step_by(2);
    let is_name = |text: &&str| {
        let is_like = text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        is_like
            && (OTHERS.contains(text)
                || PREFIXES
                    .iter()
                    .any(|start| text.starts_with(start) && text.len() > start.len()))
    };
    texts.filter(is_name).map(str::to_owned).collect()
}

/// Whether a program that people run or build on is made of the file.
fn is_shipped(file: &File) -> bool {
    let is_ours = !file.path.starts_with("crates/superstep-conformance/");
    let is_test = ["/tests/", "/benches/", "_tests/", "tests.rs"]
        .iter()
        .any(|part| file.path.contains(part));
    file.is_rust() && file.is_of_a_crate() && file.path.contains("/src/") && is_ours && !is_test
}

/// The fields of the settings file.
fn settings(code: &str) -> Vec<&str> {
    let fields = code
        .split("\nstruct Written {\n")
        .nth(1)
        .unwrap_or_default();
    let fields = fields.split("\n}").next().unwrap_or_default();
    let fields = fields
        .lines()
        .filter_map(|line| line.trim().split_once(": "));
    fields.map(|(name, _)| name).collect()
}

fn missing<'a>(page: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let names = names.into_iter();
    let missing = names.filter(|name| !page.contains(&format!("`{name}`")));
    missing
        .map(|name| format!("{PAGE} does not name `{name}`"))
        .collect()
}

fn glossary_faults(page: &str) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    // Behind the head and the line below it.
    let words = rows.skip(2).count();
    match words {
        1..=WORDS_MAX => Vec::new(),
        words => vec![format!(
            "{GLOSSARY} has {words} words; {WORDS_MAX} are the limit"
        )],
    }
}

#[test]
fn every_variable_and_every_setting_is_on_the_page() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let files = files::all();
    let shipped = files.iter().filter(|file| is_shipped(file));
    let variables: BTreeSet<String> = shipped.flat_map(variables).collect();
    assert!(variables.len() >= 30, "{variables:?}");
    let mut faults = missing(&page, variables.iter().map(String::as_str));
    let code = fs::read_to_string(root().join(SETTINGS)).unwrap();
    let settings = settings(&code);
    assert!(settings.len() >= 10, "{settings:?}");
    faults.extend(missing(&page, settings));
    assert_tidy(&faults);
}

#[test]
fn every_variable_of_the_page_is_read() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let files = files::all();
    let shipped = files.iter().filter(|file| is_shipped(file));
    let read: BTreeSet<String> = shipped.flat_map(variables).collect();
    // As if the page were code: its names are between backticks.
    let named = variables(&File::new(PAGE, &page.replace('`', "\"")));
    let unread = named.difference(&read);
    let faults = unread.map(|name| format!("{PAGE}: nothing reads `{name}`"));
    assert_tidy(&faults.collect::<Vec<_>>());
}

#[test]
fn the_glossary_has_at_most_thirty_words() {
    let page = fs::read_to_string(root().join(GLOSSARY)).unwrap();
    assert_tidy(&glossary_faults(&page));
}

#[test]
fn a_variable_that_the_page_lacks_is_found() {
    let code =
        "let a = var(\"ARCHIE_A\"); let b = \"b\";\n#[cfg(test)]\nmod tests { \"ARCHIE_B\" }\n";
    let found = variables(&File::new("apps/a/src/a.rs", code));
    assert_eq!(found, BTreeSet::from(["ARCHIE_A".to_owned()]));
    assert_eq!(missing("`ARCHIE_B`", ["ARCHIE_A"]).len(), 1);
    assert!(missing("`ARCHIE_A`", ["ARCHIE_A"]).is_empty());
    let code =
        "\nstruct Written {\n    model: Option<String>,\n    #[serde(default)]\n    mcp: Map,\n}\n";
    assert_eq!(settings(code), ["model", "mcp"]);
}

#[test]
fn a_long_glossary_is_found() {
    let head = "| word | meaning |\n| --- | --- |\n";
    let words = |count: usize| format!("{head}{}", "| a | b |\n".repeat(count));
    assert!(glossary_faults(&words(30)).is_empty());
    assert_eq!(glossary_faults(&words(31)).len(), 1);
    assert_eq!(glossary_faults(&words(0)).len(), 1);
}
