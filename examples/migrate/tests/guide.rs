//! The migration guide shows the programs as they are: its listings and its tables are written from the files.
//!
//! After a change: `UPDATE_GUIDE=1 cargo test -p example-migrate --test guide`

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Programs that are not in `src/bin`: name in the table, the twin in Python, and the file.
const ELSEWHERE: [(&str, &str, &str); 2] = [
    (
        "tests (`examples/migrate/tests/testing.rs`)",
        "testing",
        "examples/migrate/tests/testing.rs",
    ),
    (
        "a web service (`examples/service`)",
        "service",
        "examples/service/src/main.rs",
    ),
];

/// Programs with a limit of their own: the name in Python, and how many lines of Rust they may have.
const LIMITS: [(&str, usize); 3] = [
    // One and a half times the twin.
    ("functional", 30),
    ("react_approval", 45),
    ("service", 60),
];

/// Lines that are neither blank nor a comment.
fn lines(code: &str, comment: &str) -> usize {
    let counts = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with(comment);
    code.lines().filter(counts).count()
}

fn programs() -> Vec<String> {
    let files = fs::read_dir(root().join("examples/migrate/src/bin")).unwrap();
    let name = |file: fs::DirEntry| {
        file.path()
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let mut names: Vec<_> = files.map(|file| name(file.unwrap())).collect();
    names.sort();
    names
}

fn table() -> String {
    let mut rows = String::from("| program | Python | Rust | ratio |\n| --- | --- | --- | --- |\n");
    let (mut python_all, mut rust_all) = (0, 0);
    let mut row = |name: &str, twin: &str, path: &str| {
        let python = lines(&read(&format!("examples/python/{twin}.py")), "#");
        let rust = lines(&read(path), "//");
        if let Some((_, limit)) = LIMITS.iter().find(|(limited, _)| *limited == twin) {
            assert!(rust <= *limit, "{path} has {rust} lines, more than {limit}");
        }
        (python_all, rust_all) = (python_all + python, rust_all + rust);
        rows += &format!(
            "| {name} | {python} | {rust} | {:.1} |\n",
            rust as f64 / python as f64
        );
    };
    for name in programs() {
        let path = format!("examples/migrate/src/bin/{name}.rs");
        row(&format!("`{name}`"), &name, &path);
    }
    for (name, twin, path) in ELSEWHERE {
        row(name, twin, path);
    }
    let ratio = rust_all as f64 / python_all as f64;
    assert!(
        ratio <= 1.6,
        "the programs have {ratio:.2} times the lines of their twins in Python"
    );
    rows + &format!("| all | {python_all} | {rust_all} | {ratio:.1} |\n")
}

/// What `cargo xtask weight --record` measured. A test of `xtask` holds the numbers of crates to those of cargo.
fn weights() -> String {
    let recorded: Json = serde_json::from_str(&read("results/weight.json")).unwrap();
    let mut rows = String::from(
        "| programs | depend on | compiled or installed | CPU seconds |\n| --- | --- | --- | --- |\n",
    );
    for row in recorded["rows"].as_array().unwrap() {
        let programs = row["programs"].as_str().unwrap();
        let names = row["dependencies"].as_array().unwrap().iter();
        let names: Vec<_> = names
            .map(|name| format!("`{}`", name.as_str().unwrap()))
            .collect();
        let built = match row["crates"].as_u64() {
            Some(crates) => format!("{crates} crates"),
            None => format!("{} packages", row["packages"]),
        };
        let seconds = row["cpu_seconds"].as_f64().unwrap();
        rows += &format!(
            "| {programs} | {} | {built} | {seconds:.0} |\n",
            names.join(", ")
        );
    }
    rows
}

/// Returns a page with every listing and table written again.
fn written(page: &str) -> String {
    let (mut text, mut rest) = (String::new(), page);
    while let Some((before, after)) = rest.split_once("<!-- from ") {
        let (what, after) = after.split_once(" -->\n").expect("a whole marker");
        let (_, after) = after
            .split_once("<!-- end -->")
            .expect("the end of a listing");
        let listing = match what {
            "table" => table(),
            "weights" => weights(),
            path if path.ends_with(".py") => format!("```python\n{}```\n", read(path)),
            path => format!("```rust\n{}```\n", read(path)),
        };
        text += &format!("{before}<!-- from {what} -->\n{listing}<!-- end -->");
        rest = after;
    }
    text + rest
}

#[test]
fn listings_and_table_are_those_of_the_programs() {
    let guide = check("docs/migrate-from-langgraph.md");
    let listings = guide.matches("<!-- from examples/migrate").count();
    assert!(listings >= 12, "the guide shows {listings} programs");
}

/// Checks that the listings of a page are up to date, or updates them, and returns the page.
fn check(path: &str) -> String {
    let page = read(path);
    let fresh = written(&page);
    if std::env::var_os("UPDATE_GUIDE").is_some() {
        fs::write(root().join(path), &fresh).unwrap();
        return fresh;
    }
    assert!(
        page == fresh,
        "{path} is out of date: run this test with UPDATE_GUIDE=1"
    );
    page
}
