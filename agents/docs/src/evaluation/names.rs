//! The names that a text puts in code spans, and whether a repository has them.

use std::collections::BTreeMap;

use archie_agent::markdown::DIALECT;
use pulldown_cmark::{Event, Parser};

use super::blocks::mentions;
use super::repository::SampleRepository;

/// Returns every name and path in the code spans of a text, and whether it is in the repository. A trap counts wherever the text
/// mentions it. Words of the language and of tools that are not in the repository do not count.
pub(super) fn judged_names(text: &str, repository: &SampleRepository) -> BTreeMap<String, bool> {
    let mut judged = BTreeMap::new();
    for event in Parser::new_ext(text, DIALECT) {
        if let Event::Code(code) = event
            && let Some(name) = name_of(&code)
            && let Some(exists) = verdict(name, repository)
        {
            judged.insert(name.to_owned(), exists);
        }
    }
    for trap in repository.traps.iter().filter(|trap| mentions(text, trap)) {
        if !judged.keys().any(|name| mentions(name, trap)) {
            judged.insert(trap.clone(), false);
        }
    }
    judged
}

/// Returns the name or path at the beginning of a code span, without arguments and line numbers. `None` for literals, options,
/// addresses and commands with arguments.
fn name_of(code: &str) -> Option<&str> {
    let code = code.trim().trim_start_matches("./");
    let code = code.split(['(', '<', '{', '[', '=', '!', ';']).next()?;
    let code = match code.rsplit_once(':') {
        Some((path, line)) if line.chars().all(|c| c.is_ascii_digit()) => path,
        _ => code,
    };
    let name = code.trim_end_matches(['.', ',', ':', '/', '?', '*']);
    let is_plain = |c: char| c.is_alphanumeric() || "_.:/-#".contains(c);
    let is_name = name.len() > 1
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(is_plain)
        && !name.contains("//");
    is_name.then_some(name)
}

/// Returns whether the repository has a name. `None` if the name says nothing about the repository.
fn verdict(name: &str, repository: &SampleRepository) -> Option<bool> {
    if repository.has(name) {
        return Some(true);
    }
    if is_path(name) {
        return Some(false);
    }
    let segments: Vec<&str> = name
        .split([':', '.', '#'])
        .filter(|segment| !segment.is_empty())
        .collect();
    let has = |segment: &&&str| repository.has(segment);
    let is_known = |segment: &&str| KNOWN.split_ascii_whitespace().any(|word| word == *segment);
    let unknown: Vec<_> = segments.iter().filter(|segment| !has(segment)).collect();
    match unknown.iter().all(|segment| is_known(segment)) {
        true if unknown.is_empty() => Some(true),
        true => None,
        false => Some(false),
    }
}

/// Returns whether a name is a path, by its form. The parts of a path may exist where the path does not.
fn is_path(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    name.contains('/') || ENDINGS.contains(&ending)
}

const ENDINGS: [&str; 18] = [
    "rs", "py", "ts", "tsx", "js", "mjs", "go", "toml", "json", "md", "mod", "sum", "lock", "yaml",
    "yml", "html", "sql", "txt",
];

/// Words of languages and tools.
const KNOWN: &str = "self Self this true false null None nil undefined void any object number string boolean String Vec Option \
    Some Result Ok Err Box Arc Rc HashMap BTreeMap usize isize u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 str bool int float list \
    dict tuple set bytes error rune byte Promise Map Set Array Object Record Date Math JSON Error Exception ValueError std fs \
    env io os net http https json path fmt crate mod use pub fn func function def class struct enum trait interface impl type \
    const let var import export from return async await static main package cargo rustc npm npx node tsc pip python python3 \
    pytest go git make docker bash sh HTTP HTTPS HTML CSS CSV TOML JSON YAML SQL API REST URL CLI GET POST PUT PATCH DELETE \
    UTF-8 stdin stdout stderr Rust Python TypeScript JavaScript Go";
