//! What is saved: cells, dressed as they were, and no formula that reaches out.

use std::collections::BTreeMap;

use crate::agents::sheet::book::diff::Diff;
use crate::agents::sheet::book::patch::{NewCell, SheetEdits};
use crate::agents::sheet::book::style::dresses;
use crate::agents::sheet::book::{BookError, Content};

/// What is to be written into the package. A new sheet is dressed as it was in the workbook that the code saved.
pub fn edits(diff: &Diff, snapshot: &[u8]) -> Result<Vec<SheetEdits>, BookError> {
    let mut sheets: BTreeMap<&str, SheetEdits> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for change in &diff.changes {
        let sheet = sheets.entry(&change.sheet).or_insert_with(|| {
            order.push(&change.sheet);
            SheetEdits {
                name: change.sheet.clone(),
                is_new: diff.added.contains(&change.sheet),
                cells: BTreeMap::new(),
            }
        });
        let cell = NewCell {
            content: change.new.clone().map(inert),
            was_date: matches!(change.old, Some(Content::Date(_))),
            ..NewCell::default()
        };
        sheet.cells.insert(change.cell.0, cell);
    }
    for (name, sheet) in &mut sheets {
        let dresses = dresses(snapshot, name)?;
        for (place, cell) in &mut sheet.cells {
            if let Some(dress) = dresses.get(place) {
                cell.dress = dress.clone();
            }
        }
    }
    Ok(order
        .iter()
        .filter_map(|name| sheets.remove(name))
        .collect())
}

/// A formula that reaches out of the workbook, or that runs something, becomes text.
fn inert(content: Content) -> Content {
    match content {
        Content::Formula(formula) if reaches_out(&formula) => Content::Text(format!("={formula}")),
        other => other,
    }
}

/// Whether a formula does more than compute over its own workbook.
pub fn reaches_out(formula: &str) -> bool {
    let upper = formula.to_uppercase();
    // Names of sheets and texts may say anything.
    let mut bare = String::new();
    let mut quote = None;
    for c in upper.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' => quote = Some(c),
            None => bare.push(c),
        }
    }
    bare.contains('|')
        || names_other_workbook(&bare)
        || REACHING.iter().any(|name| bare.contains(name))
}

/// `[other.xlsx]Sheet!A1`. Brackets alone are columns of a table.
fn names_other_workbook(formula: &str) -> bool {
    formula.split(']').skip(1).any(|rest| {
        let rest = rest.trim_start_matches(|c: char| {
            c.is_alphanumeric() || matches!(c, '_' | ' ' | '.' | '-' | '\'')
        });
        rest.starts_with('!')
    })
}

const REACHING: &[&str] = &[
    "WEBSERVICE(",
    "FILTERXML(",
    "HYPERLINK(",
    "IMAGE(",
    "RTD(",
    "CALL(",
    "REGISTER",
    "EXEC(",
    "SQL.REQUEST",
    "IMPORTXML(",
    "IMPORTDATA(",
    "IMPORTHTML(",
    "IMPORTRANGE(",
    "IMPORTFEED(",
    "CUBEVALUE(",
    "CUBEMEMBER(",
    "STOCKHISTORY(",
    "COPILOT(",
];

#[test]
fn a_formula_that_reaches_out_is_text() {
    for formula in [
        "cmd|'/c calc'!A1",
        "WEBSERVICE(\"http://x\")",
        "HYPERLINK(\"http://x\")",
        "[1]Sheet1!A1",
        "SUM('[other.xlsx]S'!A1)",
    ] {
        assert!(reaches_out(formula), "{formula}");
    }
    for formula in [
        "SUM(A1:A3)",
        "SUM(Sales[Amount])+Other!A1",
        "IF(A1=\"a|b [c]\",1,2)",
        "VLOOKUP(A2,'My sheet'!A:B,2,FALSE)",
    ] {
        assert!(!reaches_out(formula), "{formula}");
    }
}
