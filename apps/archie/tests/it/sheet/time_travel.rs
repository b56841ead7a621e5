//! Other branches of an analysis, and what differs between two workbooks.

use std::fs;

use archie_sheet::book::{Content, read};
use serde_json::{Value as Json, json};

use super::acceptance::with_sales;
use super::kit::{code, place, says, workbook};
use crate::kit::Workdir;

const STEPS: [&str; 2] = [
    "ws = workbook.create_sheet('Counts')\nws['A1'] = 1",
    "workbook['Counts']['A2'] = 2",
];

fn analysed(more: &[Json]) -> Workdir {
    let mut replies = vec![code(STEPS[0]), code(STEPS[1]), says("Finish: counted")];
    replies.extend_from_slice(more);
    let workdir = with_sales(&Json::Array(replies));
    let ran = workdir.run(
        &["sheet", "sales.xlsx", "--instruction", "count", "--yes"],
        "",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    workdir
}

#[test]
fn another_instruction_begins_after_a_step_of_another_thread() {
    let workdir = analysed(&[
        code("workbook['Counts']['A3'] = 3"),
        says("Finish: another branch"),
    ]);
    let from = format!("{}@1", workdir.thread());
    let begin = [
        "sheet",
        "--from",
        &from,
        "--instruction",
        "add a three",
        "--yes",
        "--output-dir",
        "branch",
    ];
    let ran = workdir.run(&begin, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let saved = read(&fs::read(workdir.path("branch/workbook_new.xlsx")).unwrap()).unwrap();
    let counts = saved.sheet("Counts").unwrap();
    let at = |cell: &str| counts.content(place(cell));
    assert_eq!(at("A1"), Some(Content::Number(1.0)), "of step 1");
    assert_eq!(at("A2"), None, "step 2 is not in it");
    assert_eq!(at("A3"), Some(Content::Number(3.0)));
    for (wrong, why) in [
        (format!("{}@9", workdir.thread()), "there is no step 9"),
        (workdir.thread(), "write THREAD@STEP"),
        (format!("{}@x", workdir.thread()), "the step is a number"),
    ] {
        let ran = workdir.run(&["sheet", "--from", &wrong, "--instruction", "x"], "");
        assert_eq!(ran.code(), Some(1), "{ran:?}");
        assert!(ran.err().contains(why), "{ran:?}");
    }
}

#[test]
fn the_workbooks_of_two_threads_are_compared() {
    let workdir = analysed(&[
        code("ws = workbook.create_sheet('Counts')\nws['A1'] = 7"),
        says("Finish: another count"),
    ]);
    let first = workdir.thread();
    let again = [
        "sheet",
        "sales.xlsx",
        "--instruction",
        "count again",
        "--yes",
        "--output-dir",
        "again",
    ];
    let ran = workdir.run(&again, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let threads = workdir.json(&["threads", "--json"]);
    let ids: Vec<_> = threads
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["thread"].as_str().unwrap().to_owned())
        .collect();
    let second = ids.iter().find(|id| **id != first).unwrap();
    let told = workdir.run(&["diff", &first, second], "");
    assert_eq!(told.code(), Some(0), "{told:?}");
    let out = told.out();
    for line in [
        "contents of the workbooks:\n~ sheet Counts (2 cells)\n",
        "  Counts!A1: 1 → 7\n",
        "  Counts!A2: 2 → empty\n",
    ] {
        assert!(out.contains(line), "{line:?} is not in {out}");
    }
    let told = workdir.json(&["diff", &first, second, "--json"]);
    let cells = &told["workbook_content"]["differences"]["cells"];
    assert_eq!(cells.as_array().unwrap().len(), 2, "{told}");
    // A thread has the same workbook as itself.
    let told = workdir.run(&["diff", &first, &first], "");
    assert_eq!(told.out(), "the two are the same\n");
}

#[test]
fn two_files_are_compared_in_sheets_cells_formulas_and_formats() {
    let dress = "from openpyxl.styles import PatternFill
ws = workbook['Sales']
ws['B2'] = 4
ws['C2'] = formula('=B2*2')
ws['A1'].fill = PatternFill('solid', fgColor='FFFF00')
workbook.create_sheet('Counts')['A1'] = 'x'
";
    let workdir = with_sales(&json!([code(dress), says("Finish: changed")]));
    let ran = workdir.run(
        &["sheet", "sales.xlsx", "--instruction", "change it", "--yes"],
        "",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let new = "out/workbook_new.xlsx";
    let told = workdir.run(&["sheet", "diff", "sales.xlsx", new], "");
    assert_eq!(told.code(), Some(0), "{told:?}");
    assert_eq!(
        told.out(),
        "+ sheet Counts (1 cell)\n~ sheet Sales (2 cells)\n  Sales!B2: 3 → 4\n  Sales!C2: empty → =B2*2\n  Counts!A1: empty → \"x\"\n  Sales: fill of A1 (1 cell)\n  Counts: width of columns A\n"
    );
    let back = workdir.json(&["sheet", "diff", new, "sales.xlsx", "--json"]);
    assert_eq!(back["same"], false);
    assert_eq!(
        back["sheets"][1],
        json!({ "sheet": "Counts", "what": "removed", "cells": 1 })
    );
    assert_eq!(back["formats"], json!(["Sales: fill of A1 (1 cell)"]));
    let told = workdir.run(&["sheet", "diff", new, new], "");
    assert_eq!(told.out(), "the two are the same\n");
    fs::write(workdir.path("broken.xlsx"), "no workbook").unwrap();
    let told = workdir.run(&["sheet", "diff", "broken.xlsx", new], "");
    assert_eq!(told.code(), Some(1), "{told:?}");
    assert!(
        told.err().contains("the workbook cannot be read"),
        "{told:?}"
    );
}

#[test]
fn a_removed_sheet_is_a_difference_with_its_cells() {
    let workdir = with_sales(&json!([]));
    let two = workbook(&[
        ("Sales", &[&["A"], &["1"]]),
        ("Old", &[&["B"], &["2"], &["3"]]),
    ]);
    let one = workbook(&[("Sales", &[&["A"], &["1"]])]);
    fs::write(workdir.path("two.xlsx"), two).unwrap();
    fs::write(workdir.path("one.xlsx"), one).unwrap();
    let told = workdir.run(&["sheet", "diff", "two.xlsx", "one.xlsx"], "");
    assert_eq!(told.out(), "- sheet Old (3 cells)\n");
}
