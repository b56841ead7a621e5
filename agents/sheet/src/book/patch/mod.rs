//! Writes changes into a copy of a package, and leaves every other byte of it alone.
//!
//! A sheet is copied piece by piece; only the cells that change are written anew. So styles, formulas, charts, pictures, comments
//! and whatever else is in the package survive, whether we know of them or not.

mod cells;
mod parts;
mod sheet;
mod workbook;

use std::collections::BTreeMap;

use super::style::Styles;
use super::{BookError, Content, Place, guard, letters};
use cells::{Dresser, new_sheet};
use parts::Parts;
use sheet::patch_sheet;
use workbook::Workbook;

pub use super::style::Dress;

/// What is to be written into a sheet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SheetEdits {
    /// Its name.
    pub name: String,
    /// Whether it is to be made.
    pub is_new: bool,
    /// The cells. None empties one.
    pub cells: BTreeMap<Place, NewCell>,
}

/// What a cell becomes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewCell {
    /// What it holds; nothing if it is emptied.
    pub content: Option<Content>,
    /// How it is shown, if it was not there before.
    pub dress: Dress,
    /// Whether there was a date before, and so a style that shows one.
    pub was_date: bool,
}

/// The package with these changes in it. Packed the same way each time, so that the same changes give the same bytes.
pub fn patch(package: &[u8], edits: &[SheetEdits]) -> Result<Vec<u8>, BookError> {
    guard::look(package)?;
    let mut parts = Parts::open(package)?;
    let mut workbook = Workbook::read(&mut parts)?;
    let mut styles = match parts.text(&workbook.styles)? {
        Some(text) => Some(Styles::read(&text)?),
        None => None,
    };
    let mut writes_formula = false;
    let mut drops_formula = false;
    for edits in edits
        .iter()
        .filter(|edits| !edits.cells.is_empty() || edits.is_new)
    {
        let mut dresser = Dresser {
            styles: styles.as_mut(),
            is_1904: workbook.is_1904,
        };
        writes_formula |= edits
            .cells
            .values()
            .any(|cell| matches!(cell.content, Some(Content::Formula(_))));
        match edits.is_new {
            true => {
                let sheet = new_sheet(edits, &mut dresser)?;
                workbook.add(&edits.name, sheet, &mut parts)?;
            }
            false => {
                let part = workbook.part_of(&edits.name)?;
                let text = parts
                    .text(&part)?
                    .ok_or_else(|| BookError::unreadable(format!("`{part}` is missing")))?;
                let patched = patch_sheet(&text, &edits.cells, &mut dresser)?;
                drops_formula |= patched.touched_formula;
                parts.put(&part, patched.text);
            }
        }
    }
    if let Some(styles) = styles.as_ref()
        && let Some(text) = styles.written()?
    {
        parts.put(&workbook.styles, text);
    }
    if drops_formula || writes_formula {
        workbook.drop_calculation_chain(&mut parts)?;
    }
    // What formulas had come to may no longer hold; whoever opens the file computes them anew.
    workbook.compute_when_opened();
    workbook.write(&mut parts)?;
    parts.written()
}

/// A range, as people write it.
pub fn range_text(first: Place, last: Place) -> String {
    match first == last {
        true => first.to_string(),
        false => format!(
            "{}{}:{}{}",
            letters(first.column),
            first.row,
            letters(last.column),
            last.row
        ),
    }
}
