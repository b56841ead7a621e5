//! The real program over workbooks that scripts make: what it computes is compared with a computation of the script's own, and
//! every part of the package with the one it came from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use archie_sheet::book::{Content, Place, read};
use serde_json::{Value as Json, json};

use super::kit::python;
use crate::kit::Workdir;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/sheet");

/// Runs one of the scripts beside this file.
fn script(name: &str, args: &[&str]) -> Vec<u8> {
    let ran = Command::new(python())
        .arg(format!("{FOLDER}/{name}"))
        .args(args)
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    ran.stdout
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    instruction: String,
    code: String,
    expected: BTreeMap<String, Json>,
}

/// A desk on which a model does as the case says, and the workbook lies.
fn workdir(case: &Case, made: &Path) -> Workdir {
    let replies = json!([
        { "at": "planner_node", "expect": &case.instruction, "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": &case.code } }] },
        { "at": "planner_node", "text": "Finish: done" }
    ]);
    let mut replies = replies;
    if case.name == "formulas" {
        // One is written over on purpose, and the planner is asked whether it was.
        let meant = json!({ "at": "planner_node", "expect": "no formula became a value: 1 did: Calc!C2", "text": "Finish: it is meant" });
        replies.as_array_mut().unwrap().push(meant);
    }
    let workdir = Workdir::scripted(&replies)
        .with_environment("ARCHIE_PYTHON", &python().display().to_string());
    fs::copy(
        made.join(format!("{}.xlsx", case.name)),
        workdir.path("book.xlsx"),
    )
    .unwrap();
    workdir
}

fn cases(made: &Path, rows: &str) -> Vec<Case> {
    script("make.py", &[made.to_str().unwrap(), rows]);
    serde_json::from_slice(&fs::read(made.join("cases.json")).unwrap()).unwrap()
}

#[test]
fn eleven_workbooks_come_out_as_computed_and_nothing_else_is_touched() {
    let made = tempfile::tempdir().unwrap();
    let cases = cases(made.path(), "1000");
    assert!(cases.len() >= 10);
    cases.iter().for_each(|case| is_done(case, made.path()));
}

#[test]
fn a_workbook_of_a_hundred_thousand_rows_comes_out_as_computed() {
    let made = tempfile::tempdir().unwrap();
    let cases = cases(made.path(), "100000");
    let large = cases.iter().find(|case| case.name == "large").unwrap();
    is_done(large, made.path());
}

fn is_done(case: &Case, made: &Path) {
    let workdir = workdir(case, made);
    let before = fs::read(workdir.path("book.xlsx")).unwrap();
    let args = [
        "sheet",
        "book.xlsx",
        "--instruction",
        &case.instruction,
        "--output-dir",
        "out",
        "--yes",
        // A hundred thousand rows on a busy machine.
        "--time-limit",
        "600",
    ];
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(0), "{}: {ran:?}", case.name);
    assert_eq!(
        fs::read(workdir.path("book.xlsx")).unwrap(),
        before,
        "{}: the input was written",
        case.name
    );
    let new = workdir.path("out/workbook_new.xlsx");
    is_as_computed(case, &new);
    is_untouched(case, &workdir, &new);
}

fn is_as_computed(case: &Case, new: &Path) {
    let book = read(&fs::read(new).unwrap()).unwrap();
    for (at, expected) in &case.expected {
        let (sheet, cell) = at.rsplit_once('!').unwrap();
        let found = book
            .sheet(sheet)
            .and_then(|sheet| sheet.content(Place::parse(cell).unwrap()));
        let found = match found {
            Some(Content::Number(number)) => json!(number),
            Some(Content::Text(text)) => json!(text),
            Some(other) => json!(other.to_string()),
            None => Json::Null,
        };
        let is_same = match (found.as_f64(), expected.as_f64()) {
            (Some(found), Some(expected)) => (found - expected).abs() < 1e-6,
            _ => found == *expected,
        };
        assert!(is_same, "{}: {at} is {found}, not {expected}", case.name);
    }
}

/// What differs between the packages are the cells that the change set names, and the parts that tell of new sheets and styles.
fn is_untouched(case: &Case, workdir: &Workdir, new: &Path) {
    let old = workdir.path("book.xlsx");
    let compared = script(
        "compare.py",
        &[old.to_str().unwrap(), new.to_str().unwrap()],
    );
    let compared: Json = serde_json::from_slice(&compared).unwrap();
    let differing: BTreeSet<String> = serde_json::from_value(compared["cells"].clone()).unwrap();
    let named: BTreeSet<String> = fs::read_to_string(workdir.path("out/changes.txt"))
        .unwrap()
        .lines()
        .map(|line| line.split(": ").next().unwrap().to_owned())
        .collect();
    let mut unnamed: BTreeSet<_> = differing.difference(&named).cloned().collect();
    if case.name == "formulas" {
        // They shared the formula of a cell that was written over, and now have it themselves.
        for cell in ["Calc!C3", "Calc!C4", "Calc!C5"] {
            assert!(
                unnamed.remove(cell),
                "{cell} still shares a formula that is gone"
            );
        }
    }
    assert!(
        unnamed.is_empty(),
        "{}: {unnamed:?} differ and are not named",
        case.name
    );
    let parts: Vec<String> = serde_json::from_value(compared["parts"].clone()).unwrap();
    let may_differ = [
        "[Content_Types].xml",
        "xl/_rels/workbook.xml.rels",
        "xl/styles.xml",
        "xl/workbook.xml",
    ];
    let others: Vec<_> = parts
        .iter()
        .filter(|part| !may_differ.contains(&part.as_str()))
        .collect();
    assert!(others.is_empty(), "{}: {others:?} differ", case.name);
    assert_eq!(compared["gone"], json!([]));
}

#[test]
fn a_picture_is_left_beside_the_workbook() {
    let made = tempfile::tempdir().unwrap();
    script("make.py", &[made.path().to_str().unwrap(), "10"]);
    let cases: Vec<Case> =
        serde_json::from_slice(&fs::read(made.path().join("cases.json")).unwrap()).unwrap();
    let case = cases.iter().find(|case| case.name == "chart").unwrap();
    let workdir = workdir(case, made.path());
    workdir.run(
        &[
            "sheet",
            "book.xlsx",
            "--instruction",
            &case.instruction,
            "--yes",
        ],
        "",
    );
    assert!(
        fs::read(workdir.path("out/sales.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    let report = fs::read_to_string(workdir.path("out/report.md")).unwrap();
    assert!(report.contains("![sales.png](sales.png)"), "{report}");
}

#[test]
fn open_posts_are_analysed_by_rules_without_a_model() {
    let made = tempfile::tempdir().unwrap();
    let told = script("open_posts.py", &[made.path().to_str().unwrap()]);
    let expected: BTreeMap<String, Json> = serde_json::from_slice(&told).unwrap();
    let workdir = Workdir::with_model("script:none.json")
        .with_environment("ARCHIE_PYTHON", &python().display().to_string());
    let file = made.path().join("opos.xlsx");
    let args = [
        "sheet",
        "open-posts",
        file.to_str().unwrap(),
        "--as-of",
        "2024-12-31",
        "--yes",
    ];
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("0 model calls"), "{ran:?}");
    let case = Case {
        name: "opos".to_owned(),
        instruction: String::new(),
        code: String::new(),
        expected,
    };
    is_as_computed(&case, &workdir.path("out/workbook_new.xlsx"));
}
