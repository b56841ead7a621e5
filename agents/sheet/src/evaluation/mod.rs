//! An evaluation set: thirty tasks on ten small workbooks, with answers that are computed here and not by an agent.
//!
//! [`tasks`] lists the tasks. [`Task::workbook`] generates the workbook of one, always with the same content, and
//! [`Task::score`] judges what a run came to: its answer, and its workbook. [`evaluate`] runs the agent on tasks, and
//! [`evaluate_plain`] asks a model with a plain prompt instead.

mod catalogue;
mod data;
mod run;
mod score;

use crate::book::BookError;
use crate::book::blank::workbook_of;
pub use run::{Evaluation, ScoredTask, evaluate, evaluate_plain};
pub use score::Score;

/// A task with its expected result.
#[derive(Debug, Clone)]
pub struct Task {
    /// Unique name, such as `orders-total`.
    pub id: &'static str,
    /// Instruction for the agent.
    pub instruction: &'static str,
    /// A solution: SQL for a question, Python for a change. For tests of the set itself, never for the agent.
    pub reference: &'static str,
    sheets: Vec<data::SheetData>,
    expected: Expected,
}

/// What a run must come to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expected {
    /// The answer states these figures.
    Figures(Vec<f64>),
    /// The answer names these, and none of the others.
    Names {
        named: Vec<String>,
        others: Vec<String>,
    },
    /// A sheet that was not there before has a row with each of these texts and figures.
    NewTable(Vec<(String, f64)>),
    /// These cells have these figures or texts, and all cells of the input are unchanged.
    Cells(Vec<(&'static str, &'static str, CellValue)>),
}

/// Expected content of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CellValue {
    Figure(f64),
    Text(String),
    /// Any formula.
    Formula,
}

impl Task {
    /// Returns whether the task is a question, which is answered in words. The others change the workbook.
    pub fn is_question(&self) -> bool {
        matches!(self.expected, Expected::Figures(_) | Expected::Names { .. })
    }

    /// Generates the workbook.
    pub fn workbook(&self) -> Result<Vec<u8>, BookError> {
        let sheets: Vec<_> = self
            .sheets
            .iter()
            .map(|sheet| (sheet.name, sheet.cells()))
            .collect();
        workbook_of(&sheets)
    }
}

/// Returns all tasks: three on each of ten workbooks.
pub fn tasks() -> Vec<Task> {
    catalogue::all()
}

#[cfg(test)]
mod tests;
