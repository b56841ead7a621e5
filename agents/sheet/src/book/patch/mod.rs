//! Writes changes into a copy of a package, and leaves everything else in it unchanged.
//!
//! A sheet is copied event by event, and only changed cells are rewritten. So styles, formulas, charts, pictures, comments and
//! everything else in the package survive, whether we know them or not.

mod cells;
mod looks;
pub(super) mod parts;
pub(super) mod relations;
mod sheet;
pub(super) mod workbook;

use std::collections::BTreeMap;

use super::looks::SheetLookChanges;
use super::style::Styles;
use super::{BookError, Content, Place, guard, letters};
use cells::{Dresser, new_sheet};
use looks::write_looks;
use parts::Parts;
use sheet::patch_sheet;
use workbook::Workbook;

pub use super::style::{Dress, NumberFormat};

/// Edits of one sheet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SheetEdits {
    /// Name of the sheet.
    pub name: String,
    /// Whether to create the sheet.
    pub is_new: bool,
    /// New cells by position. A cell without content is emptied.
    pub cells: BTreeMap<Place, NewCell>,
    /// Formats of other cells, column widths, conditional formats and charts.
    pub looks: SheetLookChanges,
}

/// New content and format of a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewCell {
    /// New content; `None` empties the cell.
    pub content: Option<Content>,
    /// What changes in the format of the cell.
    pub dress: Dress,
    /// Whether the cell held a date before, so that its style already shows dates.
    pub was_date: bool,
    /// Whether only the format changes and the cell keeps its content.
    pub keeps_content: bool,
}

impl SheetEdits {
    /// Returns the cells together with those of which only the format changes.
    fn dressed_cells(&self) -> BTreeMap<Place, NewCell> {
        let mut cells = self.cells.clone();
        for (place, dress) in &self.looks.dresses {
            let cell = cells.entry(*place).or_insert_with(|| NewCell {
                keeps_content: true,
                ..NewCell::default()
            });
            cell.dress = dress.clone();
        }
        cells
    }
}

/// Returns the package with the edits applied. The same edits always give the same bytes.
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
        .filter(|edits| !edits.cells.is_empty() || edits.is_new || !edits.looks.carries_nothing())
    {
        let cells = edits.dressed_cells();
        let mut dresser = Dresser {
            styles: styles.as_mut(),
            is_1904: workbook.is_1904,
        };
        writes_formula |= edits
            .cells
            .values()
            .any(|cell| matches!(cell.content, Some(Content::Formula(_))));
        let part = match edits.is_new {
            true => {
                let sheet = new_sheet(&cells, &mut dresser)?;
                workbook.add(&edits.name, sheet, &mut parts)?
            }
            false => {
                let part = workbook.part_of(&edits.name)?;
                let text = parts
                    .text(&part)?
                    .ok_or_else(|| BookError::unreadable(format!("`{part}` is missing")))?;
                let patched = patch_sheet(&text, &cells, &mut dresser)?;
                drops_formula |= patched.touched_formula;
                parts.put(&part, patched.text);
                part
            }
        };
        write_looks(
            &part,
            &edits.looks,
            &mut parts,
            &mut workbook,
            styles.as_mut(),
        )?;
    }
    if let Some(styles) = styles.as_ref()
        && let Some(text) = styles.written()?
    {
        parts.put(&workbook.styles, text);
    }
    if drops_formula || writes_formula {
        workbook.drop_calculation_chain(&mut parts)?;
    }
    // Stored results of formulas may be outdated, so ask the program that opens the file to compute them again.
    workbook.compute_when_opened();
    workbook.write(&mut parts)?;
    parts.written()
}

/// Returns a range as spreadsheets write it, such as `A1:B5`, or `A1` for a single cell.
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
