//! Converts accepted changes into edits of the package, with cell formats, and disarms formulas that reach outside the
//! workbook.

use std::collections::BTreeMap;

use super::formulas::reaches_out;
use crate::book::diff::Diff;
use crate::book::patch::{NewCell, SheetEdits};
use crate::book::style::dresses;
use crate::book::{BookError, Content};

/// Returns the edits that write the changes into the package. New cells get the number format and bold that they have in
/// `snapshot`, the workbook that the code saved.
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

/// Turns a formula that reaches outside the workbook, or that runs something, into text.
fn inert(content: Content) -> Content {
    match content {
        Content::Formula(formula) if reaches_out(&formula) => Content::Text(format!("={formula}")),
        other => other,
    }
}
