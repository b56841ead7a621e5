//! A change set larger than anybody reads at a glance: every cell is displayed, and exactly these are saved.

use std::collections::BTreeSet;
use std::fs;

use archie_sheet::book::{Content, Place, read};
use serde_json::json;

use super::acceptance::with_sales;
use super::kit::{code, says};

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
