//! A change set larger than anybody reads at a glance: every cell is displayed, and exactly these are saved.

use std::collections::BTreeSet;
use std::fs;

use archie_sheet::book::{Content, Place, read};
use serde_json::json;

use super::acceptance::with_sales;
use super::kit::{code, says};
use crate::tmux::Terminal;

const ROWS: u32 = 1_200;

/// Rows that alternate between two columns, so that the changes are no single range, and one of them far from the others.
const WRITES: &str = "
for row in range(1, 1201):
    workbook['Sales'].cell(row=row, column=4 + row % 2, value=row)
workbook['Sales']['Z5000'] = 'the last one'
";

#[test]
fn each_of_more_than_a_thousand_cells_is_displayed_and_saved() {
    let workdir = with_sales(&json!([code(WRITES), says("Finish: numbered")]));
    let ran = workdir.run(
        &[
            "sheet",
            "sales.xlsx",
            "--instruction",
            "Number the rows",
            "--output-dir",
            "out",
        ],
        "",
    );
    let id = workdir.items().remove(0);
    let shown = workdir.run(&["inbox", &id], "");
    assert_eq!(shown.code(), Some(0), "{ran:?} {shown:?}");
    let out = shown.out();
    assert!(out.contains("1,201 changed cells"), "{out}");
    let displayed: BTreeSet<&str> = out
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("Sales!"))
        .filter(|line| line.contains(": empty \u{2192} "))
        .collect();
    assert_eq!(displayed.len(), 1_201, "{out}");
    for row in 1..=ROWS {
        let column = if row % 2 == 0 { 'D' } else { 'E' };
        let cell = format!("Sales!{column}{row}: empty \u{2192} {row} ");
        assert!(
            displayed.iter().any(|line| line.starts_with(&cell)),
            "{cell}"
        );
    }
    assert!(
        !workdir.path("out/workbook_new.xlsx").exists(),
        "nothing is saved before the yes"
    );

    let accepted = workdir.run(&["inbox", &id, "accept"], "");
    assert_eq!(accepted.code(), Some(0), "{accepted:?}");
    let written = workdir.run(&["resume", &workdir.thread()], "");
    assert_eq!(written.code(), Some(0), "{written:?}");
    let saved = read(&fs::read(workdir.path("out/workbook_new.xlsx")).unwrap()).unwrap();
    let before = read(&fs::read(workdir.path("sales.xlsx")).unwrap()).unwrap();
    let (saved, before) = (&saved.sheets[0].values, &before.sheets[0].values);
    assert_eq!(saved.len(), before.len() + 1_201);
    for row in 1..=ROWS {
        let place = Place {
            row,
            column: 4 + row % 2,
        };
        assert_eq!(saved.get(&place), Some(&Content::Number(f64::from(row))));
    }
    let changes = fs::read_to_string(workdir.path("out/changes.txt")).unwrap();
    assert_eq!(changes.lines().collect::<BTreeSet<_>>(), displayed);
}

/// 12,000 cells of a sheet in blocks of three rows, and 3,000 of a new one.
const LARGE: &str = "
for row in range(1, 5334):
    if row % 4:
        for column in (4, 5, 6):
            workbook['Sales'].cell(row=row, column=column, value=row)
totals = workbook.create_sheet('Totals')
for row in range(1, 1001):
    totals.append([row, row * 2, row * 3])
";

/// What comes before the cells, in this order.
const OVERVIEW: [&str; 6] = [
    "new sheet Totals (3,000 cells)",
    "sheet Sales (12,000 cells)",
    "Sales!D1:F5333 added (12,000 cells in 1,334 ranges)",
    "Totals!A1:C1000 added (3,000 cells)",
    "15,000 changed cells",
    "Every changed cell:",
];

#[test]
fn fifteen_thousand_cells_are_named_by_sheet_and_range_first_and_then_page_by_page() {
    let workdir = with_sales(&json!([code(LARGE), says("Finish: numbered")]));
    let args = ["sheet", "sales.xlsx", "--instruction", "Number the rows"];
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(3), "{:.3000}", ran.err());
    let id = workdir.items().remove(0);

    let shown = workdir.run(&["inbox", &id], "").out();
    let beginning: Vec<_> = shown.lines().take(20).collect();
    let place = |text: &str| beginning.iter().position(|line| line.trim() == text);
    let places: Vec<_> = OVERVIEW.iter().map(|text| place(text)).collect();
    assert!(places.iter().all(Option::is_some), "{beginning:?}");
    // The line above it names the item.
    assert_eq!(places[0], Some(1), "{beginning:?}");
    assert!(places.is_sorted(), "{beginning:?}");
    let cells = shown
        .lines()
        .filter(|line| line.contains(": empty \u{2192} "));
    assert_eq!(cells.count(), 15_000);

    // At a terminal, the overview is on the first page.
    let program = workdir.command();
    let program = program.get_program().to_str().unwrap().to_owned();
    let terminal = Terminal::open_sized(&workdir, "one", &[&program, "inbox", &id], [80, 24]);
    let screen = terminal.until("q: stop --");
    for text in OVERVIEW {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    assert!(!screen.contains("Totals!C1000: empty"), "{screen}");
    terminal.types("a");
    let screen = terminal.shows("Accept? [y/n/e]");
    assert!(screen.contains("Totals!C1000: empty"), "{screen}");
}
