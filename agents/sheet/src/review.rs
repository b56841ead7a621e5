//! The change set with its checks, as a person reviews it.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use superstep::ThreadId;

use super::book::diff::{Diff, diff};
use super::book::looks::{LookChanges, Looks};
use super::book::{Book, Place};
use super::changes::{changed_sheets, grouped, line, ranges};
use super::checks::{self, Check};
use super::snapshots::{SnapshotError, SnapshotStore};
use super::state::{GraphState, Stopped};

/// A change set to review.
#[derive(Debug, Clone)]
pub struct Review {
    /// Changed cells, relative to the baseline.
    pub diff: Diff,
    /// Changes of formats, column widths, conditional formats and charts.
    pub looks: LookChanges,
    /// Names of the sheets that did not change.
    unchanged: Vec<String>,
    /// Results of the checks, including those of a recipe.
    pub checks: Vec<Check>,
    /// Why the analysis ended, if it has.
    stopped: Option<Stopped>,
}

/// Computes the review of a thread's current workbook. The review is empty if no code has run yet.
pub fn of(
    snapshots: &SnapshotStore,
    thread: &ThreadId,
    state: &GraphState,
) -> Result<Review, SnapshotError> {
    let mut review = Review {
        diff: Diff::default(),
        looks: LookChanges::default(),
        unchanged: Vec::new(),
        checks: Vec::new(),
        stopped: state.stopped,
    };
    if state.workbook.baseline.is_empty() {
        return Ok(review);
    }
    let before = snapshots.read(thread, &state.workbook.baseline)?;
    let after = snapshots.read(thread, &state.workbook.snapshot)?;
    review.diff = diff(&before, &after);
    review.diff.attribute(&written(snapshots, thread, state)?);
    let looks = |id: &str| -> Result<Looks, SnapshotError> {
        Ok(Looks::read(&snapshots.book(thread, id)?)?)
    };
    review.looks = looks(&state.workbook.baseline)?.changes(&looks(&state.workbook.snapshot)?);
    // A sheet that is a chart is not saved; the looks name it as left out.
    review.diff.added.retain(|name| {
        let looks = review.looks.of(name);
        !looks.is_some_and(|looks| looks.is_chart_sheet)
    });
    review.unchanged = review.unchanged_of(&after);
    let input = snapshots.read(thread, &state.problem.workbook.hash)?;
    review.checks = checks::check(&input, &review.diff);
    if let Some(recipe) = &state.recipe {
        review.checks.extend(recipe.check(&input, &after));
    }
    Ok(review)
}

/// Step and line of code that last wrote each cell, by sheet and cell.
type LastWriters = BTreeMap<(String, Place), (u32, u32)>;

fn written(
    snapshots: &SnapshotStore,
    thread: &ThreadId,
    state: &GraphState,
) -> Result<LastWriters, SnapshotError> {
    let mut written = LastWriters::new();
    for done in state.journal.iter().filter(|done| done.ok) {
        let Some(name) = &done.lines else { continue };
        let bytes = snapshots.file(thread, name)?;
        // We wrote this file ourselves from validated data. If it cannot be parsed, the cells just have no line.
        let lines: Vec<(String, u32, u32, u32)> =
            serde_json::from_slice(&bytes).unwrap_or_default();
        for (sheet, row, column, line) in lines {
            written.insert((sheet, Place { row, column }), (done.step, line));
        }
    }
    Ok(written)
}

impl Review {
    /// Returns whether every check passed.
    pub fn is_well(&self) -> bool {
        self.checks.iter().all(|check| check.ok)
    }

    /// Returns the message that tells the planner which checks failed.
    pub fn complaint(&self) -> String {
        let failed = self.checks.iter().filter(|check| !check.ok);
        let failed: Vec<_> = failed
            .map(|check| format!("- {}: {}", check.name, check.found))
            .collect();
        format!(
            "Your result was checked, and this does not hold:\n{}\nFix it. If it is meant to be so, finish again and say why.",
            failed.join("\n")
        )
    }

    /// Returns whether there is nothing to save.
    pub fn is_empty(&self) -> bool {
        self.diff.changes.is_empty() && self.diff.added.is_empty() && self.looks.is_empty()
    }

    fn unchanged_of(&self, after: &Book) -> Vec<String> {
        let changed = changed_sheets(&self.diff);
        let is_changed = |name: &String| {
            changed.iter().any(|sheet| sheet.sheet == *name)
                || self
                    .looks
                    .of(name)
                    .is_some_and(|looks| looks.is_chart_sheet || !looks.carries_nothing())
        };
        let names = after.sheets.iter().map(|sheet| &sheet.name);
        names.filter(|name| !is_changed(name)).cloned().collect()
    }

    /// Returns a one-line summary, such as `new sheet Counts (10 cells): Counts!A1:B5 added (10 cells); unchanged: Sales`.
    ///
    /// It names every sheet that changed, with its number of cells, before the ranges.
    pub fn summary(&self) -> String {
        let sheets = changed_sheets(&self.diff);
        if self.is_empty() && sheets.is_empty() {
            return "nothing changed".to_owned();
        }
        let mut parts: Vec<String> = sheets.iter().map(ToString::to_string).collect();
        let mut ranges = grouped(&ranges(&self.diff));
        if ranges.len() > RANGES_MAX {
            let more = ranges.len() - RANGES_MAX;
            ranges.truncate(RANGES_MAX);
            ranges.push(format!("{more} more ranges"));
        }
        let mut summary = parts.join(", ");
        if !ranges.is_empty() {
            summary.push_str(&format!(": {}", ranges.join(", ")));
        }
        parts = self.looks.lines();
        if parts.len() > LOOKS_MAX {
            let more = parts.len() - LOOKS_MAX;
            parts.truncate(LOOKS_MAX);
            parts.push(format!("{more} more"));
        }
        if !parts.is_empty() {
            let formats = format!("formats and charts: {}", parts.join(", "));
            summary = match summary.is_empty() {
                true => formats,
                false => format!("{summary}; {formats}"),
            };
        }
        match self.unchanged.len() {
            0 => summary,
            1..=UNCHANGED_MAX => format!("{summary}; unchanged: {}", self.unchanged.join(", ")),
            many => format!("{summary}; unchanged: {many} other sheets"),
        }
    }

    /// Returns the payload of the interrupt. It lists every changed cell, so that the person sees everything that will be
    /// saved.
    pub fn request(&self) -> Json {
        let ranges = ranges(&self.diff);
        json!({
            "summary": format!("Changes: {}.", self.summary()),
            "stopped": self.stopped.map(Stopped::says),
            "cells": self.diff.changes.len(),
            "ranges": ranges,
            "sheets_added": self.diff.added,
            "sheets": changed_sheets(&self.diff),
            "looks": self.looks.lines(),
            "left_out": self.looks.left_out(),
            "checks": self.checks,
            "answers": { "accept": { "type": "accept" }, "reject": { "type": "reject" },
                "edit": { "type": "edit", "reject": ["Sheet!A1:B2"], "set": [{ "cell": "Sheet!A1", "value": 12 }] } },
        })
    }

    /// Returns one line per changed cell, for a file.
    pub fn lines(&self) -> Vec<String> {
        self.diff.changes.iter().map(line).collect()
    }
}

const RANGES_MAX: usize = 12;
const LOOKS_MAX: usize = 12;
const UNCHANGED_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::CHANGE_SET_NODE;
    use super::super::book::Content;
    use super::super::book::diff::{Cell, Change};
    use super::super::ui::SheetUi;
    use super::*;
    use archie_agent::{AgentUi, InterruptRequest};

    fn review(cells: u32) -> Review {
        let change = |row| Change {
            sheet: "Data".to_owned(),
            cell: Cell(Place {
                row,
                column: 1 + row % 3,
            }),
            old: Some(Content::Number(f64::from(row))),
            new: Some(Content::Text(format!("{row}\n{}", "x".repeat(200)))),
            step: 1,
            line: 2,
        };
        let diff = Diff {
            changes: (1..=cells).map(change).collect(),
            ..Diff::default()
        };
        Review {
            diff,
            looks: LookChanges::default(),
            unchanged: Vec::new(),
            checks: Vec::new(),
            stopped: Some(Stopped::Finished),
        }
    }

    fn asked(request: Json) -> InterruptRequest {
        InterruptRequest {
            id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            node: CHANGE_SET_NODE.to_owned(),
            kind: "approval".to_owned(),
            request,
            schema: None,
        }
    }

    #[test]
    fn every_changed_cell_is_shown_whole_and_bound_by_the_digest() {
        let ui = SheetUi {
            snapshots: SnapshotStore::under(Path::new("unused")),
            folders: None,
        };
        let review = review(1_000);
        let question = asked(review.request());
        let shown = ui.describe(&question);
        assert!(shown.contains("1,000 changed cells"));
        for change in &review.diff.changes {
            assert!(shown.contains(&format!("  {}\n", line(change))));
        }
        assert!(line(&review.diff.changes[0]).contains(&"x".repeat(200)));
        assert!(ui.is_complete(&question));
        let mut other = review.clone();
        other.diff.changes[999].new = Some(Content::Number(1.0));
        assert_ne!(asked(other.request()).digest(), question.digest());
    }

    #[test]
    fn a_question_of_an_older_version_is_known_to_hold_less() {
        let ui = SheetUi {
            snapshots: SnapshotStore::under(Path::new("unused")),
            folders: None,
        };
        let range = json!({ "range": "Data!A1:A30", "what": "changed", "cells": 30, "shown": ["Data!A1: 1 → 2"] });
        let old = asked(json!({ "summary": "Changes.", "cells": 30, "ranges": [range] }));
        assert!(!ui.is_complete(&old));
        assert!(
            ui.describe(&old)
                .contains("29 cells of Data!A1:A30 not shown")
        );
        let cut = asked(json!({ "summary": "Changes.", "ranges": [], "ranges_left_out": 1 }));
        assert!(!ui.is_complete(&cut));
    }
}
