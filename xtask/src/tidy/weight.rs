//! What the examples are built from stays small: the README's first command has a limit, and recorded numbers of crates are those
//! of today's dependencies.

use std::fs;

use serde_json::Value as Json;

use super::assert_tidy;
use crate::weight::{RESULTS, ROWS, Source, crates};
use harness::workspace::root;

/// The most crates that the README's first command may compile.
const CRATES_MAX: usize = 60;

const REMEDY: &str = "run `cargo xtask weight NAME --record`, then `UPDATE_GUIDE=1 cargo test -p example-migrate --test guide`";

/// The package and the features of the first command that runs something.
fn first_command(readme: &str) -> Option<(&str, Vec<&str>)> {
    let mut lines = readme.lines().map(|line| line.trim_start_matches("$ "));
    let is_run = |line: &&str| line.starts_with("cargo run ");
    let command = lines.find(is_run)?.split('#').next()?;
    let words: Vec<&str> = command.split_whitespace().collect();
    let value = |option: &str| {
        let at = words.iter().position(|word| *word == option)?;
        words.get(at + 1).copied()
    };
    let features = value("--features").map(|names| names.split(',').collect());
    Some((value("-p")?, features.unwrap_or_default()))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_first_command_of_the_readme_compiles_few_crates() {
    let readme = read("README.md");
    let (package, features) = first_command(&readme).expect("the README runs a package by name");
    let crates = crates(package, &features).unwrap();
    let count = crates.len();
    let listed: Vec<_> = crates.into_iter().collect();
    assert!(
        count <= CRATES_MAX,
        "`{package}` is built from {count} crates, more than {CRATES_MAX}:\n  {}",
        listed.join("\n  ")
    );
    let sentence = format!("compiles {count} crates");
    assert!(
        readme.contains(&sentence),
        "the README does not say that its first command {sentence}"
    );
}

#[test]
fn recorded_numbers_of_crates_are_those_of_cargo() {
    let recorded: Json = serde_json::from_str(&read(RESULTS)).unwrap();
    let rows: Vec<&Json> = recorded["rows"].as_array().into_iter().flatten().collect();
    let mut faults = Vec::new();
    for row in ROWS {
        let found = rows.iter().find(|found| found["name"] == row.name);
        let Some(found) = found.filter(|found| found["programs"] == row.programs) else {
            faults.push(format!("{RESULTS}: no `{}`; {REMEDY}", row.name));
            continue;
        };
        let Source::Cargo {
            package, features, ..
        } = &row.source
        else {
            continue;
        };
        let (recorded, now) = (&found["crates"], crates(package, features).unwrap().len());
        if *recorded != now {
            faults.push(format!(
                "{RESULTS}: `{}` has {recorded} crates, and now it is {now}; {REMEDY}",
                row.name
            ));
        }
    }
    assert_tidy(&faults);
}

#[test]
fn the_first_command_is_read_with_its_features() {
    let readme = "## Try it\n\ncargo run -p a --features b,c --bin d # -p x\ncargo run -p e\n";
    assert_eq!(first_command(readme), Some(("a", vec!["b", "c"])));
    let command = first_command("$ cargo run -q -p a --bin b\n");
    assert_eq!(command, Some(("a", vec![])));
    assert_eq!(first_command("cargo run --example first\n"), None);
}
