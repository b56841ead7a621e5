//! Compares two workbooks, cell by cell.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Book, Content, Place, Sheet};

/// One changed cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Name of the sheet.
    pub sheet: String,
    /// Position of the cell.
    pub cell: Cell,
    /// Content before; `None` if the cell was empty.
    pub old: Option<Content>,
    /// Content after; `None` if the cell is empty now.
    pub new: Option<Content>,
    /// Step that last wrote the cell; 0 if unknown.
    pub step: u32,
    /// Line in the code of that step; 0 if unknown.
    pub line: u32,
}

/// Position of a cell, serialized as text such as `B7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cell(pub Place);

impl From<Cell> for String {
    fn from(cell: Cell) -> Self {
        cell.0.to_string()
    }
}

impl TryFrom<String> for Cell {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let place = Place::parse(&text);
        place
            .map(Cell)
            .ok_or_else(|| format!("`{text}` is not a cell"))
    }
}

/// Differences between two workbooks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// Changed cells, in the order of the new workbook's sheets, then by position. Cells of removed sheets are not included.
    pub changes: Vec<Change>,
    /// Names of new sheets, in order.
    pub added: Vec<String>,
    /// Names of removed sheets.
    pub removed: Vec<String>,
}

/// Returns the differences from `old` to `new`. Their steps and lines are not set yet; see [`Diff::attribute`].
pub fn diff(old: &Book, new: &Book) -> Diff {
    let mut diff = Diff::default();
    let empty = Sheet::default();
    for sheet in &new.sheets {
        let before = old.sheet(&sheet.name);
        if before.is_none() {
            diff.added.push(sheet.name.clone());
        }
        compare(before.unwrap_or(&empty), sheet, &mut diff.changes);
    }
    let gone = old
        .sheets
        .iter()
        .filter(|sheet| new.sheet(&sheet.name).is_none());
    diff.removed = gone.map(|sheet| sheet.name.clone()).collect();
    diff
}

fn compare(old: &Sheet, new: &Sheet, changes: &mut Vec<Change>) {
    let places: BTreeSet<Place> = old.places().chain(new.places()).collect();
    for place in places {
        let (before, after) = (old.content(place), new.content(place));
        if same(before.as_ref(), after.as_ref()) {
            continue;
        }
        changes.push(Change {
            sheet: new.name.clone(),
            cell: Cell(place),
            old: before,
            new: after,
            step: 0,
            line: 0,
        });
    }
}

/// Compares two contents. A number that became a date, or the reverse, only changed its format and counts as equal.
fn same(old: Option<&Content>, new: Option<&Content>) -> bool {
    match (old, new) {
        (
            Some(Content::Number(old) | Content::Date(old)),
            Some(Content::Number(new) | Content::Date(new)),
        ) => old == new,
        (old, new) => old == new,
    }
}

impl Diff {
    /// Returns whether the workbooks have the same sheets with the same content.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }

    /// Sets the step and line of each change. `written` holds the step and line that last wrote each cell.
    pub fn attribute(&mut self, written: &BTreeMap<(String, Place), (u32, u32)>) {
        for change in &mut self.changes {
            if let Some((step, line)) = written.get(&(change.sheet.clone(), change.cell.0)) {
                (change.step, change.line) = (*step, *line);
            }
        }
    }
}
