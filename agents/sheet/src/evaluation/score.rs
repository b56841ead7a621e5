//! Judges the result of a run.

use super::{CellValue, Expected, Task};
use crate::book::diff::diff;
use crate::book::{Book, BookError, Content, Place, Sheet, read};
use crate::figures::figures_in;

/// Verdict on a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Score {
    /// Whether the run came to the expected result.
    pub is_right: bool,
    /// What is wrong; empty if nothing is.
    pub why: String,
}

impl Task {
    /// Judges a run by its answer and its resulting workbook; `None` if it wrote none.
    pub fn score(&self, answer: &str, result: Option<&[u8]>) -> Result<Score, BookError> {
        let input = read(&self.workbook()?)?;
        let result = match result {
            Some(bytes) => read(bytes)?,
            None => input.clone(),
        };
        let wrong = match &self.expected {
            Expected::Figures(figures) => wrong_figures(answer, figures),
            Expected::Names { named, others } => wrong_names(answer, named, others),
            Expected::NewTable(rows) => wrong_table(&input, &result, rows),
            Expected::Cells(cells) => wrong_cells(&input, &result, cells),
        };
        // A question is answered without changing what was asked about.
        let wrong = wrong.or_else(|| damaged(&input, &result));
        Ok(Score {
            is_right: wrong.is_none(),
            why: wrong.unwrap_or_default(),
        })
    }
}

fn wrong_figures(answer: &str, figures: &[f64]) -> Option<String> {
    let stated = figures_in(answer);
    let missing = figures
        .iter()
        .find(|figure| !stated.iter().any(|stated| close(*stated, **figure)))?;
    Some(format!("the answer does not state {missing}"))
}

fn wrong_names(answer: &str, named: &[String], others: &[String]) -> Option<String> {
    let answer = words(answer);
    let names = |name: &String| answer.contains(&words(name));
    let missing = named.iter().find(|name| !names(name));
    let extra = others.iter().find(|name| names(name));
    match (missing, extra) {
        (Some(missing), _) => Some(format!("the answer does not name {missing}")),
        (None, Some(extra)) => Some(format!("the answer names {extra}, too")),
        (None, None) => None,
    }
}

fn words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" ").to_lowercase())
}

fn wrong_table(input: &Book, result: &Book, rows: &[(String, f64)]) -> Option<String> {
    let is_new = |sheet: &&Sheet| input.sheet(&sheet.name).is_none();
    let new: Vec<_> = result.sheets.iter().filter(is_new).collect();
    if new.is_empty() {
        return Some("there is no new sheet".to_owned());
    }
    let holds = |sheet: &Sheet| rows.iter().all(|row| has_row(sheet, row));
    match new.iter().any(|sheet| holds(sheet)) {
        true => None,
        false => {
            let missing = rows.iter().find(|row| !has_row(new[0], row));
            Some(format!("no row with {missing:?} in a new sheet"))
        }
    }
}

fn has_row(sheet: &Sheet, (text, figure): &(String, f64)) -> bool {
    let wanted = words(text);
    sheet.values.iter().any(|(place, content)| {
        let is_text = matches!(content, Content::Text(text) if words(text) == wanted);
        is_text
            && sheet.values.iter().any(|(other, content)| {
                other.row == place.row
                    && matches!(content, Content::Number(found) if close(*found, *figure))
            })
    })
}

fn wrong_cells(
    input: &Book,
    result: &Book,
    cells: &[(&'static str, &'static str, CellValue)],
) -> Option<String> {
    for (sheet, at, expected) in cells {
        let place = Place::parse(at)?;
        let found = result.sheet(sheet).and_then(|sheet| sheet.content(place));
        let is_right = match (&found, expected) {
            (Some(Content::Number(found)), CellValue::Figure(figure)) => close(*found, *figure),
            (Some(Content::Text(found)), CellValue::Text(text)) => words(found) == words(text),
            (Some(Content::Formula(_)), CellValue::Formula) => true,
            _ => false,
        };
        if !is_right {
            return Some(format!("{sheet}!{at} is {found:?}, not {expected:?}"));
        }
    }
    let expected = |sheet: &str, place: Place| {
        let at = place.to_string();
        cells
            .iter()
            .any(|(name, cell, _)| *name == sheet && *cell == at)
    };
    let changes = diff(input, result).changes;
    let lost = changes
        .iter()
        .find(|change| change.old.is_some() && !expected(&change.sheet, change.cell.0))?;
    Some(format!("{}!{} was changed", lost.sheet, lost.cell.0))
}

/// Returns what the run lost of the input: a sheet, or the content of a cell.
fn damaged(input: &Book, result: &Book) -> Option<String> {
    let diff = diff(input, result);
    if let Some(sheet) = diff.removed.first() {
        return Some(format!("sheet {sheet} is gone"));
    }
    let emptied = diff.changes.iter().find(|change| change.new.is_none())?;
    Some(format!("{}!{} was emptied", emptied.sheet, emptied.cell.0))
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.006_f64.max(other.abs() * 1e-9)
}
