//! Compares two workbooks in everything that a person sees: sheets, cells, formulas, formats and charts.

use serde::Serialize;

use super::diff::{Change, Diff, diff};
use super::looks::{LookChanges, Looks};
use super::{BookError, read};
use crate::changes::{ChangedSheet, SheetChange, changed_sheets, line};

/// Differences between two workbooks.
#[derive(Debug, Clone)]
pub struct Comparison {
    diff: Diff,
    looks: LookChanges,
    /// Number of cells in each removed sheet.
    removed: Vec<(String, usize)>,
}

/// A [`Comparison`], as JSON.
#[derive(Debug, Clone, Serialize)]
struct ComparisonJson<'a> {
    same: bool,
    sheets: Vec<ChangedSheet>,
    cells: &'a [Change],
    /// Differences in formats, column widths, conditional formats and charts.
    formats: Vec<String>,
    /// Differences in anything else, such as comments, links or merged cells.
    others: Vec<String>,
}

impl Comparison {
    /// Compares two workbooks. The result of a formula is not compared, only the formula.
    pub fn of(one: &[u8], other: &[u8]) -> Result<Self, BookError> {
        let (before, after) = (read(one)?, read(other)?);
        let diff = diff(&before, &after);
        let cells = |name: &String| {
            let sheet = before.sheet(name);
            sheet.map_or(0, |sheet| sheet.places().count())
        };
        let removed = diff.removed.iter().map(|name| (name.clone(), cells(name)));
        Ok(Self {
            removed: removed.collect(),
            diff,
            looks: Looks::read(one)?.changes(&Looks::read(other)?),
        })
    }

    /// Returns whether no difference was found.
    pub fn is_same(&self) -> bool {
        self.diff.is_empty() && self.looks.sheets.is_empty()
    }

    /// Returns the differences as lines of text: every sheet with its number of cells, then cells, then formats.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.sheets().iter().map(sheet_line).collect();
        let cells = self.diff.changes.iter().map(line);
        let looks = self.looks.lines().into_iter();
        let others = self.others().into_iter();
        let detail = cells.chain(looks).chain(others);
        lines.extend(detail.map(|line| format!("  {line}")));
        lines
    }

    /// Returns the differences as JSON.
    pub fn json(&self) -> serde_json::Value {
        let json = ComparisonJson {
            same: self.is_same(),
            sheets: self.sheets(),
            cells: &self.diff.changes,
            formats: self.looks.lines(),
            others: self.others(),
        };
        serde_json::to_value(json).unwrap_or_default()
    }

    fn sheets(&self) -> Vec<ChangedSheet> {
        let mut sheets = changed_sheets(&self.diff);
        for sheet in &mut sheets {
            let gone = self.removed.iter().find(|(name, _)| *name == sheet.sheet);
            if let (SheetChange::Removed, Some((_, cells))) = (sheet.what, gone) {
                sheet.cells = *cells;
            }
        }
        let is_known = |name: &str| sheets.iter().any(|sheet| sheet.sheet == name);
        let looks = self.looks.sheets.iter().map(|sheet| &sheet.sheet);
        let only_looks: Vec<_> = looks.filter(|name| !is_known(name)).collect();
        sheets.extend(only_looks.into_iter().map(|name| ChangedSheet {
            sheet: name.clone(),
            what: SheetChange::Changed,
            cells: 0,
        }));
        sheets
    }

    fn others(&self) -> Vec<String> {
        self.looks.left_out()
    }
}

fn sheet_line(sheet: &ChangedSheet) -> String {
    use archie_agent::printable::{counted, one_line};
    let (name, cells) = (one_line(&sheet.sheet), counted(sheet.cells, "cell"));
    match sheet.what {
        SheetChange::New => format!("+ sheet {name} ({cells})"),
        SheetChange::Removed => format!("- sheet {name} ({cells})"),
        SheetChange::Changed => format!("~ sheet {name} ({cells})"),
    }
}
