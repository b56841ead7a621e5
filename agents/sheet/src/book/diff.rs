//! What is different between two workbooks, cell by cell.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Book, Content, Place, Sheet};

/// One cell that is not as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The sheet.
    pub sheet: String,
    /// The cell.
    pub cell: Cell,
    /// What was there.
    pub old: Option<Content>,
    /// What is there now.
    pub new: Option<Content>,
    /// Which step wrote it, and in which line of its code; noughts if nobody knows.
    pub step: u32,
    /// The line.
    pub line: u32,
}

/// A place, written as people do.
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

/// What is different, and which sheets came and went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// The cells, by sheet and place.
    pub changes: Vec<Change>,
    /// Sheets that were not there before, in order.
    pub added: Vec<String>,
    /// Sheets that are gone.
    pub removed: Vec<String>,
}

/// Compares two workbooks.
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

/// A number that became a date, or a date a number, is the same figure in other clothes.
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
    /// Says of each cell who wrote it last. `written` is asked in the order of the steps.
    pub fn attribute(&mut self, written: &BTreeMap<(String, Place), (u32, u32)>) {
        for change in &mut self.changes {
            if let Some((step, line)) = written.get(&(change.sheet.clone(), change.cell.0)) {
                (change.step, change.line) = (*step, *line);
            }
        }
    }
}
