//! The change set: what the person reviews before anything is saved, their verdict, and the resulting edits.

mod edits;
mod formulas;
mod groups;
mod verdict;

use std::collections::BTreeMap;

use archie_agent::printable::{counted, one_line};
use serde::{Deserialize, Serialize};

use super::book::diff::{Change, Diff};
use super::book::patch::range_text;
use super::book::{Content, Place};
pub use edits::edits;
pub use formulas::reaches_out;
pub(crate) use groups::areas;
pub use groups::{ChangedSheet, SheetChange, changed_sheets, grouped};
pub use verdict::{BadVerdict, SetCell, Verdict, VerdictKind};

/// A rectangle of cells that changed in the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Sheet and cells, such as `Sheet!A1:B5`.
    pub range: String,
    /// How the cells changed.
    pub what: ChangeKind,
    /// Number of cells.
    pub cells: usize,
    /// One line per cell: `Sheet!A1: old → new (step 3, line 4)`.
    pub shown: Vec<String>,
}

/// How cells changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The cells were empty before.
    Added,
    /// The cells had other content before.
    Changed,
    /// The cells are empty now.
    Emptied,
}

impl std::fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Emptied => "emptied",
        })
    }
}

/// Returns one change as a single line, in full, with line breaks escaped.
pub fn line(change: &Change) -> String {
    let told = |content: &Option<Content>| {
        let content = content.as_ref();
        content.map_or("empty".to_owned(), ToString::to_string)
    };
    let by = match change.step {
        0 => String::new(),
        step => format!(" (step {step}, line {})", change.line),
    };
    // A line break in a cell must not look like another change.
    one_line(&format!(
        "{}!{}: {} → {}{by}",
        change.sheet,
        change.cell.0,
        told(&change.old),
        told(&change.new)
    ))
}

/// Groups the change set into rectangles, sheet by sheet, and by kind of change within a sheet.
pub fn ranges(diff: &Diff) -> Vec<Range> {
    let mut groups: BTreeMap<(usize, ChangeKind), Vec<&Change>> = BTreeMap::new();
    let mut sheets: Vec<&str> = Vec::new();
    for change in &diff.changes {
        let at = sheets
            .iter()
            .position(|sheet| *sheet == change.sheet)
            .unwrap_or_else(|| {
                sheets.push(&change.sheet);
                sheets.len() - 1
            });
        groups.entry((at, what(change))).or_default().push(change);
    }
    let mut ranges = Vec::new();
    for ((_, what), changes) in groups {
        for rectangle in rectangles(&changes) {
            ranges.push(range(what, &rectangle));
        }
    }
    ranges
}

fn what(change: &Change) -> ChangeKind {
    match (&change.old, &change.new) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Emptied,
        _ => ChangeKind::Changed,
    }
}

/// Groups cells that are adjacent in a row into runs, and runs with the same columns in adjacent rows into rectangles.
fn rectangles<'a>(changes: &[&'a Change]) -> Vec<Vec<&'a Change>> {
    let mut runs: Vec<Vec<&Change>> = Vec::new();
    for change in changes {
        match runs.last_mut() {
            Some(run) if follows(run, change) => run.push(change),
            _ => runs.push(vec![change]),
        }
    }
    let mut found: Vec<Vec<&Change>> = Vec::new();
    // For each span of columns, the index of the rectangle that may still grow.
    let mut open: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for run in runs {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            continue;
        };
        let span = (first.cell.0.column, last.cell.0.column);
        let above = open.get(&span).copied().filter(|at| {
            found[*at]
                .last()
                .is_some_and(|end| end.cell.0.row + 1 == first.cell.0.row)
        });
        match above {
            Some(at) => found[at].extend(run),
            None => {
                open.insert(span, found.len());
                found.push(run);
            }
        }
    }
    found
}

fn follows(run: &[&Change], change: &Change) -> bool {
    run.last().is_some_and(|last| {
        let (last, next) = (last.cell.0, change.cell.0);
        last.row == next.row && last.column + 1 == next.column
    })
}

fn range(what: ChangeKind, changes: &[&Change]) -> Range {
    let places = || changes.iter().map(|change| change.cell.0);
    let first = Place {
        row: places().map(|place| place.row).min().unwrap_or(1),
        column: places().map(|place| place.column).min().unwrap_or(1),
    };
    let last = Place {
        row: places().map(|place| place.row).max().unwrap_or(1),
        column: places().map(|place| place.column).max().unwrap_or(1),
    };
    let sheet = changes
        .first()
        .map(|change| change.sheet.clone())
        .unwrap_or_default();
    Range {
        range: format!("{sheet}!{}", range_text(first, last)),
        what,
        cells: changes.len(),
        shown: changes.iter().map(|change| line(change)).collect(),
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cells = counted(self.cells, "cell");
        write!(f, "{} {} ({cells})", self.range, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::diff::Cell;

    fn change(at: &str, old: Option<f64>, new: Option<f64>) -> Change {
        Change {
            sheet: "Counts".to_owned(),
            cell: Cell(Place::parse(at).unwrap()),
            old: old.map(Content::Number),
            new: new.map(Content::Number),
            step: 3,
            line: 4,
        }
    }

    pub(super) fn diff() -> Diff {
        Diff {
            changes: ["A1", "B1", "A2", "B2"]
                .map(|at| change(at, None, Some(1.0)))
                .into(),
            added: vec!["Counts".to_owned()],
            removed: Vec::new(),
        }
    }

    #[test]
    fn a_change_set_is_told_in_ranges_and_cells() {
        let ranges = ranges(&diff());
        assert_eq!(ranges.len(), 1);
        assert_eq!(ranges[0].to_string(), "Counts!A1:B2 added (4 cells)");
        assert_eq!(ranges[0].shown[0], "Counts!A1: empty → 1 (step 3, line 4)");
    }
}
