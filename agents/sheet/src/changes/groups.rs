//! Shortens a change set for a line of text: which sheets changed and by how many cells, then ranges, those of one column
//! together when there are many.

use std::collections::{BTreeMap, BTreeSet};

use archie_agent::printable::{self, counted, one_line};
use serde::{Deserialize, Serialize};

use super::{ChangeKind, Range};
use crate::book::diff::Diff;
use crate::book::patch::range_text;
use crate::book::{Place, letters};

/// A sheet with changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedSheet {
    /// Name of the sheet.
    pub sheet: String,
    /// What happened to it.
    pub what: SheetChange,
    /// Number of changed cells; for a removed sheet 0.
    pub cells: usize,
}

/// What happened to a sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SheetChange {
    /// The sheet is new.
    New,
    /// Cells in it changed.
    Changed,
    /// The code removed it. The saved file keeps it.
    Removed,
}

/// Returns every new, changed and removed sheet.
pub fn changed_sheets(diff: &Diff) -> Vec<ChangedSheet> {
    let mut cells: BTreeMap<&str, usize> = BTreeMap::new();
    let mut order: Vec<&str> = diff.added.iter().map(String::as_str).collect();
    for change in &diff.changes {
        *cells.entry(&change.sheet).or_default() += 1;
        if !order.contains(&change.sheet.as_str()) {
            order.push(&change.sheet);
        }
    }
    let is_new = |sheet: &str| diff.added.iter().any(|added| added == sheet);
    let changed = order.iter().map(|sheet| ChangedSheet {
        sheet: (*sheet).to_owned(),
        what: match is_new(sheet) {
            true => SheetChange::New,
            false => SheetChange::Changed,
        },
        cells: cells.get(sheet).copied().unwrap_or_default(),
    });
    let removed = diff.removed.iter().map(|sheet| ChangedSheet {
        sheet: sheet.clone(),
        what: SheetChange::Removed,
        cells: 0,
    });
    changed.chain(removed).collect()
}

impl std::fmt::Display for ChangedSheet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sheet, cells) = (one_line(&self.sheet), counted(self.cells, "cell"));
        match self.what {
            SheetChange::New => write!(f, "new sheet {sheet} ({cells})"),
            SheetChange::Changed => write!(f, "sheet {sheet} ({cells})"),
            SheetChange::Removed => write!(
                f,
                "sheet {sheet} is removed by the code and stays in the file"
            ),
        }
    }
}

/// Returns the ranges as text. More than a few of the same columns and kind become one: `Data!B6:B3004 changed (550 cells in
/// 547 ranges)`.
pub fn grouped(ranges: &[Range]) -> Vec<String> {
    let mut groups: Vec<RangeGroup<'_>> = Vec::new();
    let mut known: BTreeMap<(&str, ChangeKind, u32, u32), usize> = BTreeMap::new();
    for range in ranges {
        let Some((sheet, first, last)) = corners(range) else {
            continue;
        };
        let key = (sheet, range.what, first.column, last.column);
        let at = *known.entry(key).or_insert_with(|| {
            groups.push(RangeGroup {
                sheet,
                what: range.what,
                columns: (first.column, last.column),
                ranges: Vec::new(),
            });
            groups.len() - 1
        });
        groups[at].ranges.push(range);
    }
    let mut told = Vec::new();
    for group in groups {
        let RangeGroup {
            sheet,
            what,
            columns: (first, last),
            ranges: group,
        } = group;
        if group.len() <= ALONE_MAX {
            told.extend(group.iter().map(ToString::to_string));
            continue;
        }
        let rows = || group.iter().filter_map(|range| corners(range));
        let from = rows().map(|(_, first, _)| first.row).min().unwrap_or(1);
        let to = rows().map(|(_, _, last)| last.row).max().unwrap_or(1);
        let cells = group.iter().map(|range| range.cells).sum();
        told.push(format!(
            "{sheet}!{}{from}:{}{to} {what} ({} in {} ranges)",
            letters(first),
            letters(last),
            counted(cells, "cell"),
            printable::grouped(group.len()),
        ));
    }
    told
}

/// Ranges of the same columns that changed in the same way.
struct RangeGroup<'a> {
    sheet: &'a str,
    what: ChangeKind,
    columns: (u32, u32),
    ranges: Vec<&'a Range>,
}

fn corners(range: &Range) -> Option<(&str, Place, Place)> {
    let (sheet, cells) = range.range.rsplit_once('!')?;
    let (first, last) = cells.split_once(':').unwrap_or((cells, cells));
    Some((sheet, Place::parse(first)?, Place::parse(last)?))
}

/// Returns cells as ranges with their number: `A1:B1, D3 (3 cells)`.
pub(crate) fn areas(places: &BTreeSet<Place>) -> String {
    let mut found: Vec<(Place, Place)> = Vec::new();
    for place in places {
        match found.last_mut() {
            Some((_, last)) if last.row == place.row && last.column + 1 == place.column => {
                *last = *place;
            }
            _ => found.push((*place, *place)),
        }
    }
    // Runs of the same columns in rows below each other are one rectangle.
    let mut areas: Vec<(Place, Place)> = Vec::new();
    let mut open: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (first, last) in found {
        let span = (first.column, last.column);
        let above = open.get(&span).copied();
        match above.filter(|at| areas[*at].1.row + 1 == first.row) {
            Some(at) => areas[at].1 = last,
            None => {
                open.insert(span, areas.len());
                areas.push((first, last));
            }
        }
    }
    let shown = areas.iter().take(AREAS_MAX);
    let shown: Vec<_> = shown
        .map(|(first, last)| range_text(*first, *last))
        .collect();
    let more = match areas.len() > AREAS_MAX {
        true => format!(" and {} more ranges", areas.len() - AREAS_MAX),
        false => String::new(),
    };
    format!(
        "{}{more} ({})",
        shown.join(", "),
        counted(places.len(), "cell")
    )
}

/// So many ranges of the same columns are named one by one.
const ALONE_MAX: usize = 3;
const AREAS_MAX: usize = 8;
