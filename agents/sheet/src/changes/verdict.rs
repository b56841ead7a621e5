//! A person's verdict on a change set.

use std::collections::BTreeSet;

use archie_agent::printable::summary_line;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::book::diff::{Cell, Change, Diff};
use crate::book::looks::LookChanges;
use crate::book::{Content, Place, ROWS_MAX};

/// A person's verdict on a change set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether to accept, to reject, or to accept with the exceptions below.
    #[serde(rename = "type")]
    pub kind: VerdictKind,
    /// Ranges that are not saved: `Sheet!A1:B5`, `Sheet!A1`, the columns `Sheet!A:C`, or a whole `Sheet`. With its cells, a range
    /// loses the conditional formats that touch it, the charts that begin in it, and the widths of columns without other changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reject: Vec<String>,
    /// Cells that are saved with another value. Applied after `reject`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<SetCell>,
}

/// Kind of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Save all changes.
    Accept,
    /// Save nothing.
    Reject,
    /// Save the changes with exceptions.
    Edit,
}

/// A cell with the value that the person wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetCell {
    /// Sheet and cell, such as `Sheet!A1`.
    pub cell: String,
    /// A number, a text, a boolean, or null to empty the cell. Text is never read as a formula, even if it begins with `=`.
    pub value: Json,
}

/// Why a verdict cannot be parsed or applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadVerdict(String);

impl Verdict {
    /// Returns the verdict that saves all changes.
    pub fn accept() -> Self {
        Self {
            kind: VerdictKind::Accept,
            reject: Vec::new(),
            set: Vec::new(),
        }
    }

    /// Returns the JSON Schema of a verdict.
    pub fn schema() -> Json {
        json!({
            "type": "object",
            "properties": {
                "type": { "enum": ["accept", "reject", "edit"] },
                "reject": { "type": "array", "items": { "type": "string" } },
                "set": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "cell": { "type": "string" }, "value": {} },
                    "required": ["cell", "value"],
                    "additionalProperties": false
                } }
            },
            "required": ["type"],
            "additionalProperties": false
        })
    }

    /// Parses a line that a person typed: `y`, `n`, or `e` with `reject RANGE` and `set CELL=VALUE`, separated by `;`.
    pub fn from_line(line: &str) -> Result<Self, BadVerdict> {
        let line = line.trim();
        match line.to_lowercase().as_str() {
            "y" | "yes" | "accept" => return Ok(Self::accept()),
            "n" | "no" | "reject" => {
                return Ok(Self {
                    kind: VerdictKind::Reject,
                    ..Self::accept()
                });
            }
            _ => {}
        }
        let edits = line
            .strip_prefix("e ")
            .or_else(|| line.strip_prefix("edit "));
        let Some(edits) = edits else {
            return Err(BadVerdict(format!(
                "`{line}` is not an answer: say y, n, or e with `reject Sheet!A1:B2` and `set Sheet!A1=12`, separated by `;`"
            )));
        };
        let mut verdict = Self {
            kind: VerdictKind::Edit,
            ..Self::accept()
        };
        for edit in edits
            .split(';')
            .map(str::trim)
            .filter(|edit| !edit.is_empty())
        {
            if let Some(range) = edit.strip_prefix("reject ") {
                verdict.reject.push(range.trim().to_owned());
            } else if let Some((cell, value)) = edit
                .strip_prefix("set ")
                .and_then(|set| set.split_once('='))
            {
                let value = value.trim();
                let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
                verdict.set.push(SetCell {
                    cell: cell.trim().to_owned(),
                    value,
                });
            } else {
                return Err(BadVerdict(format!(
                    "`{edit}` is neither `reject Sheet!A1:B2` nor `set Sheet!A1=12`"
                )));
            }
        }
        Ok(verdict)
    }

    /// Returns the changes to save. Fails if a rejected range contains no change, or a cell or value is invalid.
    pub fn apply(
        &self,
        diff: &Diff,
        looks: &LookChanges,
    ) -> Result<(Diff, LookChanges), BadVerdict> {
        let (mut kept, mut looks) = (diff.clone(), looks.clone());
        if self.kind == VerdictKind::Reject {
            return Ok((Diff::default(), LookChanges::default()));
        }
        for range in &self.reject {
            let area = Area::parse(range)?;
            let before = kept.changes.len();
            let touched = touched_columns(&area.sheet, &kept, &looks);
            kept.changes
                .retain(|change| !area.holds(&change.sheet, change.cell.0));
            let mut is_rejected = reject_looks(&area, &mut kept, &mut looks);
            let left = touched_columns(&area.sheet, &kept, &looks);
            is_rejected |= reject_widths(&area, &mut looks, |column| {
                touched.contains(&column) && !left.contains(&column)
            });
            if kept.changes.len() == before && !is_rejected {
                return Err(BadVerdict(format!(
                    "nothing was changed in `{range}`, so nothing in it can be rejected"
                )));
            }
        }
        for set in &self.set {
            let area = Area::parse(&set.cell)?;
            let Some((first, last)) = area.cells.filter(|(first, last)| first == last) else {
                return Err(BadVerdict(format!("`{}` is not one cell", set.cell)));
            };
            debug_assert_eq!(first, last);
            let content = content_of(&set.value)?;
            let found = kept
                .changes
                .iter_mut()
                .find(|change| change.sheet == area.sheet && change.cell.0 == first);
            match found {
                Some(change) => change.new = content,
                None => kept.changes.push(Change {
                    sheet: area.sheet,
                    cell: Cell(first),
                    old: None,
                    new: content,
                    step: 0,
                    line: 0,
                }),
            }
        }
        // A new sheet whose cells are all rejected is not saved; one that never had cells is.
        let had_any = |sheet: &String| diff.changes.iter().any(|change| change.sheet == *sheet);
        let holds_any = |sheet: &String| kept.changes.iter().any(|change| change.sheet == *sheet);
        let is_kept =
            |sheet: &&String| holds_any(sheet) || (!had_any(sheet) && kept.added.contains(sheet));
        let added: Vec<String> = diff.added.iter().filter(is_kept).cloned().collect();
        kept.added = added;
        let dropped = diff
            .added
            .iter()
            .filter(|sheet| !kept.added.contains(sheet));
        drop_sheets(&mut looks, &dropped.collect::<Vec<_>>());
        Ok((kept, looks))
    }
}

/// Removes the looks in a rejected area. Returns whether there were any, or the area is a whole new sheet.
fn reject_looks(area: &Area, kept: &mut Diff, looks: &mut LookChanges) -> bool {
    let mut is_rejected = false;
    if area.cells.is_none() {
        let (sheets, added) = (looks.sheets.len(), kept.added.len());
        looks.sheets.retain(|sheet| sheet.sheet != area.sheet);
        kept.added.retain(|sheet| *sheet != area.sheet);
        is_rejected = looks.sheets.len() < sheets || kept.added.len() < added;
    }
    for sheet in &mut looks.sheets {
        let before = sheet.dresses.len();
        let name = sheet.sheet.clone();
        sheet.dresses.retain(|place, _| !area.holds(&name, *place));
        is_rejected |= sheet.dresses.len() < before;
        let before = sheet.charts.len();
        sheet
            .charts
            .retain(|chart| !area.holds(&name, chart.anchor.place()));
        is_rejected |= sheet.charts.len() < before;
        let (lost, kept) = std::mem::take(&mut sheet.conditional)
            .into_iter()
            .partition::<Vec<_>, _>(|format| area.meets(&name, &format.ranges));
        sheet.conditional = kept;
        is_rejected |= !lost.is_empty();
        let lost = lost
            .iter()
            .map(|format| summary_line(&format.ranges, RANGES_CHARS))
            .map(|ranges| format!("a conditional format on {ranges}, which is rejected"));
        sheet.left_out.extend(lost);
    }
    is_rejected
}

/// Returns the columns of a sheet in which the content or the format of a cell changes.
fn touched_columns(sheet: &str, kept: &Diff, looks: &LookChanges) -> BTreeSet<u32> {
    let cells = kept.changes.iter().filter(|change| change.sheet == sheet);
    let cells = cells.map(|change| change.cell.0);
    let looks = looks.of(sheet).into_iter();
    let dresses = looks.flat_map(|looks| looks.dresses.keys().copied());
    cells.chain(dresses).map(|place| place.column).collect()
}

/// Removes the widths of columns that a rejected area covers: from the first to the last row, or all that changed in them.
fn reject_widths(area: &Area, looks: &mut LookChanges, is_bare: impl Fn(u32) -> bool) -> bool {
    let Some((first, last)) = area.cells else {
        return false;
    };
    let is_whole = first.row == 1 && last.row == ROWS_MAX;
    let mut is_rejected = false;
    for sheet in &mut looks.sheets {
        if sheet.sheet != area.sheet {
            continue;
        }
        let before = sheet.columns.len();
        sheet.columns.retain(|column, _| {
            let is_inside = (first.column..=last.column).contains(column);
            !(is_inside && (is_whole || is_bare(*column)))
        });
        is_rejected |= sheet.columns.len() < before;
    }
    is_rejected
}

/// Removes the looks of sheets that are not saved, and the charts that show their cells.
fn drop_sheets(looks: &mut LookChanges, dropped: &[&String]) {
    let is_dropped = |name: &String| dropped.contains(&name);
    looks.sheets.retain(|sheet| !is_dropped(&sheet.sheet));
    for sheet in &mut looks.sheets {
        let (kept, lost) = std::mem::take(&mut sheet.charts)
            .into_iter()
            .partition::<Vec<_>, _>(|chart| !chart.shows.iter().any(is_dropped));
        sheet.charts = kept;
        let lost = lost
            .iter()
            .map(|chart| format!("{}, whose cells are rejected", chart.about));
        sheet.left_out.extend(lost);
    }
}

fn content_of(value: &Json) -> Result<Option<Content>, BadVerdict> {
    Ok(match value {
        Json::Null => None,
        Json::Bool(yes) => Some(Content::Bool(*yes)),
        Json::Number(number) => number.as_f64().map(Content::Number),
        Json::String(text) => Some(Content::Text(text.clone())),
        other => return Err(BadVerdict(format!("{other} does not fit into a cell"))),
    })
}

/// A range of cells, or a whole sheet.
struct Area {
    sheet: String,
    /// First and last cell; `None` for the whole sheet.
    cells: Option<(Place, Place)>,
}

impl Area {
    fn parse(text: &str) -> Result<Self, BadVerdict> {
        let bare = |sheet: &str| sheet.trim_matches('\'').to_owned();
        let Some((sheet, cells)) = text.rsplit_once('!') else {
            return Ok(Self {
                sheet: bare(text),
                cells: None,
            });
        };
        let (first, last) = cells.split_once(':').unwrap_or((cells, cells));
        let is_column = |text: &str| text.chars().all(|c| c.is_ascii_alphabetic());
        let (first, last) = match cells.contains(':') && is_column(first) && is_column(last) {
            true => (format!("{first}1"), format!("{last}{ROWS_MAX}")),
            false => (first.to_owned(), last.to_owned()),
        };
        match (Place::parse(&first), Place::parse(&last)) {
            (Some(first), Some(last)) => Ok(Self {
                sheet: bare(sheet),
                cells: Some((first, last)),
            }),
            _ => Err(BadVerdict(format!(
                "`{text}` is not a range; write Sheet!A1:B2"
            ))),
        }
    }

    fn holds(&self, sheet: &str, place: Place) -> bool {
        let is_inside = |(first, last): (Place, Place)| {
            (first.row..=last.row).contains(&place.row)
                && (first.column..=last.column).contains(&place.column)
        };
        self.sheet == sheet && self.cells.is_none_or(is_inside)
    }

    /// Returns whether one of the ranges, which are separated by spaces, has a cell of the area.
    fn meets(&self, sheet: &str, ranges: &str) -> bool {
        let touches = |(first, last): (Place, Place)| {
            ranges.split(' ').any(|range| {
                let (from, to) = range.split_once(':').unwrap_or((range, range));
                let (Some(from), Some(to)) = (Place::parse(from), Place::parse(to)) else {
                    return false;
                };
                from.row.min(to.row) <= last.row
                    && first.row <= from.row.max(to.row)
                    && from.column.min(to.column) <= last.column
                    && first.column <= from.column.max(to.column)
            })
        };
        self.sheet == sheet && self.cells.is_none_or(touches)
    }
}

const RANGES_CHARS: usize = 120;

#[cfg(test)]
mod tests {
    use super::super::line;
    use super::super::tests::diff;
    use super::*;
    use crate::book::looks::{Anchor, Chart, ColumnLook, Corner, SheetLookChanges};

    #[test]
    fn a_range_can_be_rejected_and_a_cell_be_set() {
        let verdict =
            Verdict::from_line("e reject Counts!A2:B2; set Counts!B1=12; set Counts!C1==1+1")
                .unwrap();
        let none = LookChanges::default();
        let (kept, _) = verdict.apply(&diff(), &none).unwrap();
        let lines: Vec<_> = kept.changes.iter().map(line).collect();
        assert_eq!(
            lines,
            [
                "Counts!A1: empty → 1 (step 3, line 4)",
                "Counts!B1: empty → 12 (step 3, line 4)",
                "Counts!C1: empty → \"=1+1\"",
            ]
        );
        assert!(
            Verdict::from_line("n")
                .unwrap()
                .apply(&diff(), &none)
                .unwrap()
                .0
                .changes
                .is_empty()
        );
        for wrong in ["maybe", "e reject", "e drop Counts!A1", ""] {
            Verdict::from_line(wrong).expect_err(wrong);
        }
        Verdict::from_line("e reject Other!A1")
            .unwrap()
            .apply(&diff(), &none)
            .expect_err("nothing was changed there");
    }

    fn applied(line: &str, diff: &Diff, looks: &LookChanges) -> (Diff, LookChanges) {
        let verdict = Verdict::from_line(line).unwrap();
        verdict.apply(diff, looks).unwrap()
    }

    #[test]
    fn a_rejected_range_loses_its_charts_and_the_widths_of_its_columns() {
        let corner = Corner {
            column: 4,
            row: 1,
            ..Corner::default()
        };
        let chart = Chart {
            anchor: Anchor::OneCell {
                from: corner,
                size: (1, 1),
            },
            xml: String::new(),
            about: "a chart at E2".to_owned(),
            shows: BTreeSet::new(),
            cells: BTreeSet::new(),
        };
        let sheet = SheetLookChanges {
            sheet: "Counts".to_owned(),
            columns: [1, 9].map(|at| (at, ColumnLook::default())).into(),
            charts: vec![chart],
            ..SheetLookChanges::default()
        };
        let looks = LookChanges {
            sheets: vec![sheet],
        };
        let diff = Diff {
            added: Vec::new(),
            ..diff()
        };
        let (_, kept) = applied("e reject Counts!E2", &diff, &looks);
        assert!(kept.sheets[0].charts.is_empty());
        assert_eq!(kept.sheets[0].columns.len(), 2);
        let (_, kept) = applied("e reject Counts!A1:B5", &diff, &looks);
        assert_eq!(kept.sheets[0].charts.len(), 1);
        assert!(kept.sheets[0].columns.keys().eq(&[9]));
        let (_, kept) = applied("e reject Counts!I:J", &diff, &looks);
        assert!(kept.sheets[0].columns.keys().eq(&[1]));
    }

    #[test]
    fn conditional_formats_are_rejected_with_any_of_their_cells() {
        let area = Area::parse("Counts!B2:C3").unwrap();
        for (ranges, meets) in [
            ("A1:B2", true),
            ("A1 C3:D9", true),
            ("A1:Z99", true),
            ("A1:A9 D1:D9", false),
            ("B4:C9", false),
        ] {
            assert_eq!(area.meets("Counts", ranges), meets, "{ranges}");
        }
        assert!(!area.meets("Other", "B2"));
    }

    #[test]
    fn a_rejected_new_sheet_stays_if_one_of_its_cells_is_set() {
        let none = LookChanges::default();
        let (kept, _) = applied("e reject Counts; set Counts!A1=5", &diff(), &none);
        assert_eq!(kept.added, ["Counts"]);
        assert_eq!(kept.changes.len(), 1);
        let (kept, _) = applied("e reject Counts", &diff(), &none);
        assert!(kept.added.is_empty());
    }
}
