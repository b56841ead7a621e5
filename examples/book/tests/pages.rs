//! Every block of code of the book is compiled, executed, only read, or says why not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use example_book::PAGES;
use harness::console::{chapters, marked};

/// Blocks that nothing runs: output, data, and files that other tools read.
const ONLY_READ: &[&str] = &["text", "json", "toml", "yaml", "mermaid"];

/// Pages whose Rust or Python code is checked elsewhere, and the file that does it.
const CHECKED_ELSEWHERE: &[(&str, &str)] = &[
    ("README.md", "crates/superstep/src/lib.rs"),
    ("docs/moving.md", "crates/superstep/src/lib.rs"),
    ("docs/agents.md", "crates/superstep-agent/src/lib.rs"),
    ("docs/streaming.md", "crates/superstep-agent/src/lib.rs"),
    ("docs/traces.md", "crates/superstep-agent/src/lib.rs"),
    ("docs/models.md", "crates/superstep-llm/src/lib.rs"),
    ("docs/cluster.md", "crates/superstep-restate/src/lib.rs"),
    ("docs/server.md", "crates/superstep-server/src/lib.rs"),
    ("docs/testing.md", "examples/testing/tests/guide.rs"),
    (
        "docs/migrate-from-a-queue.md",
        "examples/book/tests/pages.rs",
    ),
    (
        "docs/migrate-from-temporal.md",
        "examples/book/tests/pages.rs",
    ),
    (
        "docs/migrate-from-langgraph.md",
        "examples/migrate/tests/guide.rs",
    ),
];

/// Code in other languages that a test executes as the page has it: the page, the language, and the file of the test.
const OTHER_LANGUAGES: &[(&str, &str, &str)] = &[
    // Its twins are files, too.
    (
        "docs/migrate-from-langgraph.md",
        "python",
        "examples/migrate/tests/guide.rs",
    ),
    (
        "docs/howto/erase-a-tenant.md",
        "sql",
        "crates/superstep-server/tests/it/erasure.rs",
    ),
];

/// Packages whose tests execute the commands that begin with `cargo run -q -p PACKAGE`.
const PROGRAMS: &[&str] = &["example-agents", "example-book", "example-graphs"];

/// Programs that a page shows as a whole: the page, and the file.
const LISTINGS: &[(&str, &str)] = &[
    ("docs/server.md", "src/bin/support.rs"),
    ("docs/migrate-from-a-queue.md", "src/bin/queue.rs"),
    ("docs/migrate-from-temporal.md", "src/bin/refund.rs"),
];

/// What stands before a block that no test runs, with the reason.
const NOT_RUN: &str = "not run";

/// What stands before a block that becomes a file, with its name.
const FILE: &str = "file";

/// A block of code of a page.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    line: usize,
    language: String,
    /// Why no test runs it, as the comment before it says.
    not_run: Option<String>,
    /// The file that it becomes in the session of the page.
    file: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn blocks(text: &str) -> Vec<Block> {
    let mut is_open = false;
    let mut before = "";
    let mut blocks = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            if !is_open {
                blocks.push(Block {
                    line: at + 1,
                    language: language.to_owned(),
                    not_run: marked(before, NOT_RUN),
                    file: marked(before, FILE),
                });
            }
            is_open = !is_open;
            before = "";
        } else if !is_open && !line.is_empty() {
            before = line;
        }
    }
    blocks
}

/// What is wrong with the blocks of a page. `is_compiled` says whether its Rust and Python code is.
fn faults(page: &str, text: &str, is_compiled: bool) -> Vec<String> {
    let mut faults = Vec::new();
    for block in blocks(text) {
        let Block {
            line,
            language,
            not_run,
            file,
        } = block;
        let is_rust = ["rust", "rust,no_run"].contains(&language.as_str());
        let is_executed_elsewhere = OTHER_LANGUAGES
            .iter()
            .any(|(other, its, _)| *other == page && *its == language);
        if let Some(file) = &file
            && !uses(text, line, file)
        {
            faults.push(format!("{page}:{line}: no command after it uses `{file}`"));
        }
        let is_checked = language == "console"
            || ONLY_READ.contains(&language.as_str())
            || (is_rust && is_compiled)
            || is_executed_elsewhere
            || file.is_some();
        match not_run {
            None if !is_checked => faults.push(format!(
                "{page}:{line}: nothing runs ```{language}; make it `console` or a `<!-- {FILE}: … -->`, or say why with `<!-- {NOT_RUN}: … -->` before it"
            )),
            Some(_) if is_checked => faults.push(format!("{page}:{line}: it is run")),
            Some(reason) if reason.split_whitespace().count() < 3 => {
                faults.push(format!("{page}:{line}: `{reason}` is no reason"));
            }
            _ => {}
        }
    }
    let marks = text.lines().filter(|line| marked(line, NOT_RUN).is_some());
    let used = blocks(text)
        .into_iter()
        .filter(|block| block.not_run.is_some());
    if marks.count() != used.count() {
        faults.push(format!("{page}: `<!-- {NOT_RUN}: … -->` without a block"));
    }
    faults
}

/// Whether a command after this line names this file.
fn uses(text: &str, line: usize, file: &str) -> bool {
    let is_command = |line: &&str| line.starts_with("$ ") || marked(line, "run").is_some();
    let mut commands = text.lines().skip(line).filter(is_command);
    commands.any(|command| command.contains(file))
}

fn checks(page: &str) -> bool {
    let below_docs = page.strip_prefix("docs/").unwrap_or(page);
    PAGES.contains(&below_docs) || CHECKED_ELSEWHERE.iter().any(|(path, _)| *path == page)
}

#[test]
fn every_block_is_compiled_or_executed_or_only_read_or_says_why_not() {
    let chapters = chapters().unwrap();
    assert!(chapters.len() >= 100, "{} chapters", chapters.len());
    let faults: Vec<String> = chapters
        .iter()
        .flat_map(|page| faults(page, &read(page), checks(page)))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_page_is_listed_if_it_has_rust_code() {
    for page in PAGES {
        let text = read(&format!("docs/{page}"));
        let has_rust = blocks(&text)
            .iter()
            .any(|block| block.language.starts_with("rust"));
        assert!(has_rust, "{page} has no Rust code");
    }
    let others = OTHER_LANGUAGES.iter().map(|(page, _, file)| (page, file));
    for (page, file) in CHECKED_ELSEWHERE
        .iter()
        .map(|(page, file)| (page, file))
        .chain(others)
    {
        let name = page.rsplit('/').next().unwrap();
        assert!(read(file).contains(name), "{file} does not name {name}");
    }
}

#[test]
fn a_program_that_a_page_shows_is_the_one_that_runs() {
    for (page, file) in LISTINGS {
        let program = read(&format!("examples/book/{file}"));
        // The first paragraph says what the file is.
        let (_, program) = program.split_once("\n\n").unwrap();
        let is_shown = read(page).contains(&format!("\n{program}```\n"));
        assert!(is_shown, "{page} shows another program than {file}");
    }
}

#[test]
fn every_program_that_a_page_starts_is_run_by_a_test() {
    let started = "$ cargo run ";
    for page in chapters().unwrap() {
        let text = read(&page);
        for command in text.lines().filter(|line| line.starts_with(started)) {
            let is_run = PROGRAMS
                .iter()
                .any(|package| command.starts_with(&format!("{started}-q -p {package} --bin ")));
            assert!(is_run, "{page}: `{command}`");
        }
    }
    let folders = PROGRAMS.iter().map(|package| {
        let folder = package.trim_start_matches("example-");
        read(&format!("examples/{folder}/tests/book.rs"))
    });
    for (test, package) in folders.zip(PROGRAMS) {
        assert!(test.contains(&format!("\"{package}\"")), "{package}");
    }
}

#[test]
fn blocks_are_found_with_their_reasons() {
    let page = "```rust\nfn a() {}\n```\n\n<!-- not run: needs a cluster -->\n\n```sh\nb\n```\n";
    let found = blocks(page);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].language, "rust");
    assert_eq!(found[1].line, 7);
    assert_eq!(found[1].not_run.as_deref(), Some("needs a cluster"));
}

#[test]
fn a_block_without_a_check_or_a_reason_is_found() {
    let faulty = |text: &str| faults("a.md", text, false).len();
    assert_eq!(faulty("```sh\na\n```\n"), 1);
    assert_eq!(faulty("```rust\na\n```\n"), 1);
    assert_eq!(faults("a.md", "```rust\na\n```\n", true).len(), 0);
    assert_eq!(
        faulty("<!-- not run: needs a cluster -->\n```sh\na\n```\n"),
        0
    );
    assert_eq!(faulty("<!-- not run: so -->\n```sh\na\n```\n"), 1);
    assert_eq!(
        faulty("<!-- not run: needs a cluster -->\n```console\n$ a\n```\n"),
        1
    );
    assert_eq!(faulty("<!-- not run: needs a cluster -->\n\nText.\n"), 1);
    assert_eq!(faulty("```console\n$ a\n```\n\n```json\n{}\n```\n"), 0);
    let program = "<!-- file: a.py -->\n\n```python\nprint(1)\n```\n";
    assert_eq!(faulty(program), 1);
    assert_eq!(
        faulty(&format!("{program}\n```console\n$ python3 a.py\n```\n")),
        0
    );
    assert_eq!(faulty(&format!("{program}\n<!-- run: node a.py -->\n")), 0);
}

#[test]
fn no_page_is_listed_twice() {
    let listed: BTreeSet<&&str> = PAGES.iter().collect();
    assert_eq!(listed.len(), PAGES.len());
}
