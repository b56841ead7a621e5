//! What is saved: cells, dressed as they were, and no formula that reaches out.

use std::collections::BTreeMap;

use super::formulas::reaches_out;
use crate::book::diff::Diff;
use crate::book::patch::{NewCell, SheetEdits};
use crate::book::style::dresses;
use crate::book::{BookError, Content};

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
