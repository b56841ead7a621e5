//! Converts accepted changes into edits of the package, with cell formats, and disarms formulas that reach outside the
//! workbook.

use std::collections::BTreeMap;

use super::formulas::reaches_out;
use crate::book::Content;
use crate::book::diff::Diff;
use crate::book::looks::LookChanges;
use crate::book::patch::{NewCell, SheetEdits};

/// Returns the edits that write the changes into the package.
pub fn edits(diff: &Diff, looks: &LookChanges) -> Vec<SheetEdits> {
    let mut sheets: BTreeMap<&str, SheetEdits> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    let names = diff.added.iter().map(String::as_str);
    let names = names.chain(diff.changes.iter().map(|change| change.sheet.as_str()));
    let names = names.chain(looks.sheets.iter().map(|sheet| sheet.sheet.as_str()));
    for name in names {
        sheets.entry(name).or_insert_with(|| {
            order.push(name);
            SheetEdits {
                name: name.to_owned(),
                is_new: diff.added.iter().any(|added| added == name),
                cells: BTreeMap::new(),
                looks: looks.of(name).cloned().unwrap_or_default(),
            }
        });
    }
    for change in &diff.changes {
        let Some(sheet) = sheets.get_mut(change.sheet.as_str()) else {
            continue;
        };
        let cell = NewCell {
            content: change.new.clone().map(inert),
            was_date: matches!(change.old, Some(Content::Date(_))),
            ..NewCell::default()
        };
        sheet.cells.insert(change.cell.0, cell);
    }
    let edits = order.iter().filter_map(|name| sheets.remove(name));
    // A sheet that is a chart has no cells to write.
    let edits = edits.filter(|sheet| !sheet.looks.is_chart_sheet);
    let writes = |sheet: &SheetEdits| {
        sheet.is_new || !sheet.cells.is_empty() || !sheet.looks.carries_nothing()
    };
    edits.filter(writes).collect()
}

/// Turns a formula that reaches outside the workbook, or that runs something, into text.
fn inert(content: Content) -> Content {
    match content {
        Content::Formula(formula) if reaches_out(&formula) => Content::Text(format!("={formula}")),
        other => other,
    }
}
