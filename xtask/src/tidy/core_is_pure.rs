//! The core names no runtime, clock, randomness or I/O. What it is built from is `arrows.rs`.

use super::assert_tidy;
use super::files::{self, File};
use super::rust_code::{code_only, line_of, words};

/// Words that have no other meaning than the refused one, wherever they stand in code.
const WORDS: &[(&str, &str)] = &[
    ("Instant", "a clock; time comes in as an argument"),
    ("SystemTime", "a clock; time comes in as an argument"),
    ("UNIX_EPOCH", "a clock; time comes in as an argument"),
    ("tokio", "a runtime; a driver has one"),
    ("async_std", "a runtime; a driver has one"),
    ("smol", "a runtime; a driver has one"),
    ("rand", "randomness; ids are derived"),
    ("getrandom", "randomness; ids are derived"),
    ("fastrand", "randomness; ids are derived"),
    ("RandomState", "randomness; use a `BTreeMap`"),
    (
        "HashMap",
        "an order that differs from run to run; use a `BTreeMap`",
    ),
    (
        "HashSet",
        "an order that differs from run to run; use a `BTreeSet`",
    ),
    ("println", "I/O; return a value"),
    ("eprintln", "I/O; return a value"),
];

/// Modules of the standard library. Their names mean other things here (a thread is a history), so only after `std`.
const STD_MODULES: &[&str] = &["env", "fs", "io", "net", "os", "process", "thread"];

fn faults_of(file: &File) -> Vec<String> {
    let code = code_only(&file.text);
    let mut found: Vec<(usize, String)> = words(&code)
        .filter_map(|(place, word)| {
            let (_, why) = WORDS.iter().find(|(refused, _)| *refused == word)?;
            Some((place, format!("`{word}` is {why}")))
        })
        .collect();
    for (place, module) in std_modules(&code) {
        if STD_MODULES.contains(&module) {
            found.push((
                place,
                format!("`std::{module}` is I/O or a thread; a driver has those"),
            ));
        }
    }
    found.sort();
    found
        .into_iter()
        .map(|(place, what)| format!("{}:{}: {what}", file.path, line_of(&code, place)))
        .collect()
}

/// The modules that are named after `std::`, alone or in braces.
fn std_modules(code: &str) -> Vec<(usize, &str)> {
    let mut modules = Vec::new();
    for (place, _) in words(code).filter(|(_, word)| *word == "std") {
        let Some(path) = after_colons(code, place + "std".len()) else {
            continue;
        };
        if code[path..].starts_with('{') {
            modules.extend(heads_of_group(code, path));
        } else {
            modules.extend(
                words(&code[path..])
                    .next()
                    .map(|(at, word)| (path + at, word)),
            );
        }
    }
    modules
}

/// The place after `::`, blanks skipped.
fn after_colons(code: &str, from: usize) -> Option<usize> {
    let rest = code[from..].trim_start().strip_prefix("::")?.trim_start();
    Some(code.len() - rest.len())
}

/// The first words of the paths in `{a::b, c::{d, e}}`: `a` and `c`.
fn heads_of_group(code: &str, open: usize) -> Vec<(usize, &str)> {
    let (mut depth, mut heads, mut at_head) = (0, Vec::new(), true);
    for (offset, c) in code[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' => at_head = depth == 1,
            _ if c.is_whitespace() => {}
            _ if at_head && depth == 1 => {
                heads.extend(
                    words(&code[open + offset..])
                        .next()
                        .map(|(at, word)| (open + offset + at, word)),
                );
                at_head = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    heads
}

#[test]
fn the_core_names_no_runtime_clock_randomness_or_io() {
    let files = files::all();
    let core: Vec<_> = files
        .iter()
        .filter(|f| f.path.starts_with("crates/superstep-core/src/") && f.is_rust())
        .collect();
    assert!(core.len() > 5, "the core was not found");
    assert_tidy(&core.into_iter().flat_map(faults_of).collect::<Vec<_>>());
}

#[test]
fn clocks_threads_files_and_dice_are_found() {
    let text = "use std::time::{Duration, Instant};\nuse std::{fmt, fs::File, sync::{Arc, thread}, net};\n\
                let t = std :: thread::spawn(f);\nlet n: u64 = rand::random();\nlet m = HashMap::new();\n";
    assert_eq!(
        faults_of(&File::new("a.rs", text)),
        [
            "a.rs:1: `Instant` is a clock; time comes in as an argument",
            "a.rs:2: `std::fs` is I/O or a thread; a driver has those",
            "a.rs:2: `std::net` is I/O or a thread; a driver has those",
            "a.rs:3: `std::thread` is I/O or a thread; a driver has those",
            "a.rs:4: `rand` is randomness; ids are derived",
            "a.rs:5: `HashMap` is an order that differs from run to run; use a `BTreeMap`",
        ]
    );
}

#[test]
fn words_of_our_own_are_fine() {
    let text = "// no tokio, no std::fs\nuse std::sync::Arc;\nlet thread = operand(\"std::fs\");\nfn net(env: &str) {}\n";
    assert!(faults_of(&File::new("a.rs", text)).is_empty());
}
