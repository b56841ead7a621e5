//! Checks of a result before a person reviews it: code that runs without an error can still be wrong.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::book::diff::Diff;
use super::book::layout::{Layout, Type};
use super::book::{Book, Content, Place, Sheet};

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked, as a statement that should hold.
    pub name: String,
    /// Whether the statement holds.
    pub ok: bool,
    /// Details of what was found, as text for the person.
    pub found: String,
}

/// Checks a change set against the input workbook.
pub fn check(input: &Book, diff: &Diff) -> Vec<Check> {
    vec![
        formulas_kept(diff),
        sheets_kept(diff),
        rows_kept(input, diff),
        totals(input, diff),
    ]
}

fn formulas_kept(diff: &Diff) -> Check {
    let lost = diff.changes.iter().filter(|change| {
        matches!(change.old, Some(Content::Formula(_)))
            && !matches!(change.new, Some(Content::Formula(_)))
    });
    let lost: Vec<_> = lost
        .map(|change| format!("{}!{}", change.sheet, change.cell.0))
        .collect();
    told(
        "no formula became a value",
        lost.is_empty(),
        match lost.as_slice() {
            [] => "none did".to_owned(),
            some => format!("{} did: {}", some.len(), first_of(some)),
        },
    )
}

fn sheets_kept(diff: &Diff) -> Check {
    let found = match diff.removed.as_slice() {
        [] => "all are there".to_owned(),
        some => format!(
            "missing: {}; what is missing in the result stays in the file",
            some.join(", ")
        ),
    };
    told("no sheet was removed", diff.removed.is_empty(), found)
}

fn rows_kept(input: &Book, diff: &Diff) -> Check {
    let mut emptied: BTreeMap<(&str, u32), usize> = BTreeMap::new();
    for change in diff.changes.iter().filter(|change| change.new.is_none()) {
        *emptied
            .entry((&change.sheet, change.cell.0.row))
            .or_default() += 1;
    }
    let is_gone = |((name, row), count): (&(&str, u32), &usize)| {
        input
            .sheet(name)
            .is_some_and(|sheet| cells_in(sheet, *row) == *count)
    };
    let gone = emptied.iter().filter(|found| is_gone(*found)).count();
    told(
        "no row of the input was emptied",
        gone == 0,
        match gone {
            0 => "none was".to_owned(),
            some => format!("{some} were"),
        },
    )
}

fn cells_in(sheet: &Sheet, row: u32) -> usize {
    let row = Place { row, column: 0 }..Place {
        row: row + 1,
        column: 0,
    };
    let values = sheet
        .values
        .range(row.clone())
        .filter(|(place, _)| !sheet.formulas.contains_key(place));
    values.count() + sheet.formulas.range(row).count()
}

/// Finds totals in the result that count everything twice: they equal the sum of a column including its subtotal rows.
fn totals(input: &Book, diff: &Diff) -> Check {
    let mut doubled = Vec::new();
    for sheet in &input.sheets {
        let layout = Layout::of(sheet);
        for (at, kind) in layout.types.iter().enumerate() {
            if !matches!(kind, Type::Number | Type::GermanNumber) {
                continue;
            }
            let column = layout.first_column + u32::try_from(at).unwrap_or_default();
            let Some((with, without)) = sums(sheet, &layout, column) else {
                continue;
            };
            let new = diff.changes.iter().filter_map(|change| match change.new {
                Some(Content::Number(number)) => Some((change, number)),
                _ => None,
            });
            for (change, number) in new {
                if close(number, with) && !close(with, without) {
                    doubled.push(format!(
                        "{}!{} is {number}, {:?} with its subtotals; without them it is {without}",
                        change.sheet, change.cell.0, layout.columns[at]
                    ));
                }
            }
        }
    }
    told(
        "no subtotal was counted twice",
        doubled.is_empty(),
        match doubled.as_slice() {
            [] => "none was".to_owned(),
            some => first_of(some),
        },
    )
}

/// Returns the sum of a column with and without its subtotal rows, or `None` if the sheet has no such rows.
pub fn sums(sheet: &Sheet, layout: &Layout, column: u32) -> Option<(f64, f64)> {
    let rows = subtotal_rows(sheet, layout);
    if rows.is_empty() {
        return None;
    }
    let (mut with, mut without) = (0.0, 0.0);
    let from = Place {
        row: layout.first_row,
        column: 0,
    };
    for (place, content) in sheet
        .values
        .range(from..)
        .filter(|(place, _)| place.column == column)
    {
        let number = match content {
            Content::Number(number) => *number,
            Content::Text(text) => super::book::layout::german_number(text).unwrap_or_default(),
            _ => 0.0,
        };
        with += number;
        if rows.binary_search(&place.row).is_err() {
            without += number;
        }
    }
    Some((with, without))
}

/// Returns the rows that are labelled as totals or subtotals, in ascending order.
pub fn subtotal_rows(sheet: &Sheet, layout: &Layout) -> Vec<u32> {
    let from = Place {
        row: layout.first_row,
        column: 0,
    };
    let is_total = |content: &Content| match content {
        Content::Text(text) => {
            let text = text.trim().to_lowercase();
            TOTALS.iter().any(|word| text.starts_with(word))
        }
        _ => false,
    };
    let mut rows: Vec<u32> = sheet
        .values
        .range(from..)
        .filter(|(_, content)| is_total(content))
        .map(|(place, _)| place.row)
        .collect();
    rows.dedup();
    rows
}

fn told(name: &str, ok: bool, found: String) -> Check {
    Check {
        name: name.to_owned(),
        ok,
        found,
    }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.005 && one != 0.0
}

fn first_of(some: &[String]) -> String {
    let shown = some.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
    match some.len() > 5 {
        true => format!("{shown} and {} more", some.len() - 5),
        false => shown,
    }
}

/// Prefixes of labels that mark total rows, in German and English.
const TOTALS: &[&str] = &[
    "summe",
    "zwischensumme",
    "gesamt",
    "endsumme",
    "total",
    "subtotal",
    "sub-total",
    "grand total",
    "sum of",
];
