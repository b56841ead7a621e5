//! Recipes: approved runs that can be replayed on another file, without a model.
//!
//! A recipe is the `code.py` of a run. It contains the code of every step that changed the workbook or made a picture, in
//! runnable order. Comments at the top record the layout of the workbook and which figures must agree. If the next file has
//! another layout, a person is asked; if the figures no longer agree, the result says so.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::book::diff::Diff;
use super::book::layout::{Layout, Type, german_number};
use super::book::{Book, Content, Place, Sheet};
use super::checks::{Check, subtotal_rows};
use super::state::GraphState;
use super::tools::PYTHON;

/// A run that can be replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Instruction of the original run, in the person's words.
    pub instruction: String,
    /// Whether at least one change of the run was kept, so that a person has approved it.
    pub approved: bool,
    /// Column names by sheet that the recipe expects; empty if its code finds the columns itself.
    #[serde(default)]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Figures of the result that agreed with the input of the original run.
    #[serde(default)]
    pub agrees: Vec<Agreement>,
    /// Code of each step, in order. In a file, the steps follow the header comments.
    #[serde(default)]
    pub steps: Vec<String>,
}

/// A column of the result whose sum agreed with a figure of the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Name of the sheet in the result.
    pub sheet: String,
    /// Column of that sheet; its sum is compared.
    pub column: String,
    /// Name of the sheet in the input.
    pub input: String,
    /// Column of the input sheet with the same sum; `None` if the figure is the number of its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum_of: Option<String>,
}

/// Error for a file that is not a valid recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not a recipe: {0}; a recipe is the `code.py` that `archie sheet` writes")]
pub struct NoRecipe(String);

impl Recipe {
    /// Creates the recipe of a run. `kept` are the changes that the person accepted.
    pub fn of(state: &GraphState, input: &Book, result: &Book, kept: &Diff) -> Self {
        let mut before = state.workbook.baseline.as_str();
        let mut steps = Vec::new();
        for done in state
            .journal
            .iter()
            .filter(|done| done.tool == PYTHON && done.ok)
        {
            if done.snapshot != before || !done.pictures.is_empty() {
                steps.push(done.input.clone());
            }
            before = &done.snapshot;
        }
        let headers = input
            .sheets
            .iter()
            .map(|sheet| (sheet.name.clone(), Layout::of(sheet).columns));
        Self {
            instruction: state.problem.instruction.clone(),
            approved: !kept.changes.is_empty(),
            headers: headers.collect(),
            agrees: agreements(input, result, &kept.added),
            steps,
        }
    }

    /// Returns the recipe as the text of a `code.py` file.
    pub fn written(&self) -> String {
        let mut text = format!("{MARK}\n");
        let above = Self {
            steps: Vec::new(),
            ..self.clone()
        };
        let known = serde_json::to_string_pretty(&above).unwrap_or_default();
        known
            .lines()
            .for_each(|line| text.push_str(&format!("# {line}\n")));
        for (at, step) in self.steps.iter().enumerate() {
            text.push_str(&format!("\n{STEP}{}\n{}\n", at + 1, step.trim_end()));
        }
        text
    }

    /// Parses a `code.py` file. Fails if its first line, its header or its steps are missing.
    pub fn read(text: &str) -> Result<Self, NoRecipe> {
        let mut lines = text.lines();
        if lines.next().map(str::trim) != Some(MARK) {
            return Err(NoRecipe(format!("its first line is not `{MARK}`")));
        }
        let mut known = String::new();
        let mut steps: Vec<Vec<&str>> = Vec::new();
        for line in lines {
            match (line.starts_with(STEP), steps.last_mut()) {
                (true, _) => steps.push(Vec::new()),
                (false, Some(step)) => step.push(line),
                (false, None) => known.push_str(line.trim_start_matches('#')),
            }
        }
        let mut recipe: Self =
            serde_json::from_str(&known).map_err(|error| NoRecipe(error.to_string()))?;
        recipe.steps = steps
            .iter()
            .map(|lines| lines.join("\n").trim().to_owned())
            .collect();
        match recipe.steps.is_empty() {
            true => Err(NoRecipe("it has no steps".to_owned())),
            false => Ok(recipe),
        }
    }

    /// Returns the differences between a workbook's layout and the one that the recipe expects, as text for the person.
    pub fn differences(&self, book: &Book) -> Vec<String> {
        let mut found = Vec::new();
        for (name, columns) in &self.headers {
            let Some(sheet) = book.sheet(name) else {
                found.push(format!("there is no sheet {name:?}"));
                continue;
            };
            let here = Layout::of(sheet).columns;
            if here != *columns {
                let missing: Vec<_> = columns
                    .iter()
                    .filter(|column| !here.contains(column))
                    .collect();
                let new: Vec<_> = here
                    .iter()
                    .filter(|column| !columns.contains(column))
                    .collect();
                found.push(match missing.is_empty() && new.is_empty() {
                    true => format!("the columns of {name:?} are in another order"),
                    false => {
                        format!("the columns of {name:?} differ: missing {missing:?}, new {new:?}")
                    }
                });
            }
        }
        found
    }

    /// Checks whether the figures that agreed in the original run still do.
    pub fn check(&self, input: &Book, result: &Book) -> Vec<Check> {
        self.agrees
            .iter()
            .map(|agreement| agreement.check(input, result))
            .collect()
    }
}

impl Agreement {
    fn check(&self, input: &Book, result: &Book) -> Check {
        let total = result.sheet(&self.sheet).map(Figures::of);
        let total = total.and_then(|figures| figures.sum(&self.column));
        let source = input.sheet(&self.input).map(Figures::of);
        let (wanted, of) = match &self.sum_of {
            Some(column) => (
                source.and_then(|figures| figures.sum(column)),
                format!("the sum of {column:?} in {:?}", self.input),
            ),
            None => (
                source.map(|figures| figures.rows),
                format!("the number of rows of {:?}", self.input),
            ),
        };
        let (ok, found) = match (total, wanted) {
            (Some(total), Some(wanted)) => (close(total, wanted), format!("{total} and {wanted}")),
            _ => (false, "one of the two is missing".to_owned()),
        };
        Check {
            name: format!("{:?} in {:?} comes to {of}", self.column, self.sheet),
            ok,
            found,
        }
    }
}

/// Finds the columns of new sheets whose sum equals that of an input column, or the number of rows of an input sheet.
fn agreements(input: &Book, result: &Book, added: &[String]) -> Vec<Agreement> {
    let sources: Vec<_> = input
        .sheets
        .iter()
        .map(|sheet| (&sheet.name, Figures::of(sheet)))
        .collect();
    let mut found = Vec::new();
    for sheet in result
        .sheets
        .iter()
        .filter(|sheet| added.contains(&sheet.name))
    {
        for (column, total) in Figures::of(sheet).sums {
            if total == 0.0 {
                continue;
            }
            for (name, source) in &sources {
                let agreement = |sum_of: Option<&String>| Agreement {
                    sheet: sheet.name.clone(),
                    column: column.clone(),
                    input: (*name).clone(),
                    sum_of: sum_of.cloned(),
                };
                if close(total, source.rows) {
                    found.push(agreement(None));
                }
                let same = source.sums.iter().filter(|(_, sum)| close(*sum, total));
                found.extend(same.map(|(column, _)| agreement(Some(column))));
            }
        }
    }
    found
}

/// Totals of a sheet, without its subtotal rows.
struct Figures {
    rows: f64,
    /// Sum of each numeric column, by column name.
    sums: Vec<(String, f64)>,
}

impl Figures {
    fn of(sheet: &Sheet) -> Self {
        let layout = Layout::of(sheet);
        let totals = subtotal_rows(sheet, &layout);
        let mut sums = vec![0.0; layout.columns.len()];
        let mut rows: Vec<u32> = Vec::new();
        let from = Place {
            row: layout.first_row,
            column: 0,
        };
        for (place, content) in sheet.values.range(from..) {
            if totals.binary_search(&place.row).is_ok() {
                continue;
            }
            if rows.last() != Some(&place.row) {
                rows.push(place.row);
            }
            let at = place.column.checked_sub(layout.first_column);
            let Some(sum) = at.and_then(|at| sums.get_mut(at as usize)) else {
                continue;
            };
            *sum += match content {
                Content::Number(number) => *number,
                Content::Text(text) => german_number(text).unwrap_or_default(),
                _ => 0.0,
            };
        }
        let columns = layout.columns.into_iter().zip(layout.types).zip(sums);
        let numeric =
            columns.filter(|((_, kind), _)| matches!(kind, Type::Number | Type::GermanNumber));
        Self {
            rows: rows.len() as f64,
            sums: numeric.map(|((column, _), sum)| (column, sum)).collect(),
        }
    }

    fn sum(&self, column: &str) -> Option<f64> {
        let found = self.sums.iter().find(|(name, _)| name == column);
        found.map(|(_, sum)| *sum)
    }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.005
}

/// Returns the built-in recipe for German lists of open items, which finds its columns itself. `as_of` is the date on which the
/// age of an item is computed.
pub fn open_posts(as_of: &str) -> Recipe {
    Recipe {
        instruction: "Analyse the open posts: sums, ageing, the ten largest, duplicates".to_owned(),
        approved: true,
        headers: BTreeMap::new(),
        agrees: Vec::new(),
        steps: vec![format!("AS_OF = {as_of:?}\n{OPEN_POSTS}")],
    }
}

const MARK: &str = "# archie recipe 1";
const STEP: &str = "# --- step ";
const OPEN_POSTS: &str = include_str!("open_posts.py");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_read_as_it_was_written() {
        let recipe = Recipe {
            instruction: "Count \"it\"\nall".to_owned(),
            approved: true,
            headers: [("Sales".to_owned(), vec!["Product".to_owned()])].into(),
            agrees: vec![Agreement {
                sheet: "Counts".to_owned(),
                column: "Count".to_owned(),
                input: "Sales".to_owned(),
                sum_of: None,
            }],
            steps: vec![
                "a = 1\n\nprint(a)".to_owned(),
                "# a comment\nb = 2".to_owned(),
            ],
        };
        assert_eq!(Recipe::read(&recipe.written()).unwrap(), recipe);
        assert!(recipe.written().starts_with("# archie recipe 1\n# {\n"));
        Recipe::read("print(1)").unwrap_err();
    }
}
