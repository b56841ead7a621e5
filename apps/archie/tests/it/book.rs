//! The commands of the book's pages are executed, and print what the pages say.

use std::fs;
use std::path::Path;

use archie::cli::args::Args;
use clap::Parser as _;
use clap::error::ErrorKind;
use harness::console::{POSTGRES, Page, RESTATE, Session, chapters, faults, free_addresses, pages};
use harness::workspace::root;
use superstep_conformance::services;

use crate::cluster::Place;

#[test]
fn every_command_of_the_book_prints_what_its_page_says() {
    let archie = Path::new(env!("CARGO_BIN_EXE_archie"));
    let pages = pages().unwrap();
    // The programs of the examples are run by their own tests.
    let pages: Vec<&Page> = pages
        .iter()
        .filter(|page| !page.uses("cargo run"))
        .collect();
    assert!(pages.len() >= 20, "{} pages", pages.len());
    // Otherwise the demo makes an environment, for which pip loads 260 MB.
    let python = services::program("sandbox");
    let faults = faults(&pages, |page| {
        let folder = tempfile::tempdir()?;
        let mut replaced = free_addresses()?;
        // A database of its own, and the turn at Restate.
        let place = page.uses(POSTGRES).then(Place::new);
        if let Some(place) = &place {
            replaced.push((POSTGRES, place.store()));
            let parts = ["admin", "ingress"].map(|part| services::address("restate", part));
            replaced.extend(RESTATE.into_iter().zip(parts));
        }
        page.check(&Session {
            folder: folder.path(),
            programs: &[("archie", archie)],
            replaced: &replaced,
            environment: &[("ARCHIE_PYTHON", python.clone())],
        })
    });
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Blocks of `sh` and tables are not executed. Their commands of this program have arguments that it takes.
#[test]
fn every_command_that_a_page_only_shows_is_one_of_this_program() {
    let mut count = 0;
    let mut faults = Vec::new();
    for page in chapters().unwrap() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for words in shown_commands(&text) {
            count += 1;
            if let Err(error) = Args::try_parse_from(&words)
                // Tables also name commands without their arguments.
                && error.kind() != ErrorKind::MissingRequiredArgument
            {
                let first = error.to_string().lines().next().map(str::to_owned);
                faults.push(format!("{page}: `{}`: {first:?}", words.join(" ")));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count >= 30, "{count} commands");
}

/// Returns the words of each command of this program in blocks of `sh`, and of those with which rows of tables begin.
fn shown_commands(page: &str) -> Vec<Vec<String>> {
    let blocks = page.split("\n```sh\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("\n```").next());
    let lines = blocks.flat_map(|block| {
        let joined = block.replace("\\\n", " ");
        joined.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `").or(line.strip_prefix("| [`")));
    let cells = rows.filter_map(|row| row.split('`').next().map(str::to_owned));
    lines
        .chain(cells)
        .filter_map(|line| command_of(&line))
        .collect()
}

/// Returns the words from `archie` to the end of the command. Before it, there may be variables, another command or `$(`.
fn command_of(line: &str) -> Option<Vec<String>> {
    let start = ["archie ", "$(archie ", "-- archie "]
        .iter()
        .filter_map(|start| {
            let at = line.find(start)?;
            let is_first = line[..at].split_whitespace().all(|word| word.contains('='));
            (is_first || *start != "archie ").then(|| at + start.len() - "archie ".len())
        })
        .max()?;
    let mut command = &line[start..];
    if line[..start].ends_with("$(") {
        command = command.split(')').next()?;
    }
    // What begins with ` #` is a comment to it, too.
    let words = shlex::split(command)?;
    let is_end = |word: &String| ["|", "||", "&", "&&", ">", ";"].contains(&word.as_str());
    let end = words.iter().position(is_end).unwrap_or(words.len());
    Some(words[..end].to_vec())
}

#[test]
fn a_command_is_found_with_its_words() {
    let words = |line: &str| command_of(line).map(|words| words.join(" "));
    let found = words("A=b archie --model x:y serve --listen 127.0.0.1:1 &   # c");
    assert_eq!(
        found.as_deref(),
        Some("archie --model x:y serve --listen 127.0.0.1:1")
    );
    let found = words("key=$(archie keys list --tenant 'a b') # c");
    assert_eq!(found.as_deref(), Some("archie keys list --tenant a b"));
    assert_eq!(words("cargo install --path apps/archie"), None);
    assert_eq!(words("echo \"run archie docs --incremental\""), None);
    let page = "\n```sh\narchie inbox \\\n  --all\n```\n```text\narchie x\n```\n";
    assert_eq!(shown_commands(page), [["archie", "inbox", "--all"]]);
    let page = "| `archie inbox` | shows `archie x` |\n| [`archie demo`](demo.md) | a tour |\n| no | `archie y` |\n";
    assert_eq!(
        shown_commands(page),
        [["archie", "inbox"], ["archie", "demo"]]
    );
}
