//! Detects the header and the column types of a sheet, with rules instead of a model.
//!
//! The layout names the columns of the SQL mirror and of the tables in the planner's code, so that both agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use super::{Content, EPOCH_DAYS, Place, Sheet, letters};

/// Layout of a sheet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Rows of the header; empty if there is none.
    pub header_rows: Vec<u32>,
    /// First row of data.
    pub first_row: u32,
    /// Last used row.
    pub last_row: u32,
    /// First used column.
    pub first_column: u32,
    /// Column names: the header rows joined with ` / `, with whitespace normalized and duplicates numbered. A column without a
    /// header is named by its letters.
    pub columns: Vec<String>,
    /// Type of each column.
    pub types: Vec<Type>,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// The column has no values; errors do not count.
    Empty,
    /// Every value is a number.
    Number,
    /// Every value is a date.
    Date,
    /// Every value is a boolean.
    Bool,
    /// Every value is text, and it is neither German numbers nor German dates.
    Text,
    /// Text such as `1.234,56`, possibly next to numbers; read as numbers. At least one text has a comma.
    GermanNumber,
    /// Text such as `31.12.2024`, possibly next to dates; read as dates.
    GermanDate,
    /// Values of several types.
    Mixed,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "empty",
            Self::Number => "number",
            Self::Date => "date",
            Self::Bool => "yes or no",
            Self::Text => "text",
            Self::GermanNumber => "number, written as text the German way",
            Self::GermanDate => "date, written as text the German way",
            Self::Mixed => "mixed",
        })
    }
}

impl Layout {
    /// Detects the layout of a sheet. Considers at most 256 columns.
    pub fn of(sheet: &Sheet) -> Self {
        let (rows, _) = sheet.size();
        let columns = used_columns(sheet);
        let (first_column, last_column) = columns.unwrap_or((1, 0));
        let last_column = last_column.min(first_column + COLUMNS_MAX - 1);
        let header_rows = header_rows(sheet, first_column, last_column);
        let first_used = sheet.values.keys().next().map_or(1, |place| place.row);
        let first_row = header_rows.last().map_or(first_used, |last| last + 1);
        let names = names(sheet, &header_rows, first_column, last_column);
        let types = types(sheet, first_row, first_column, last_column);
        Self {
            header_rows,
            first_row,
            last_row: rows,
            first_column,
            columns: names,
            types,
        }
    }

    /// Returns a one-line summary for a prompt.
    pub fn summary(&self, name: &str) -> String {
        let columns = self.columns.iter().zip(&self.types);
        let columns: Vec<_> = columns
            .map(|(column, kind)| format!("{column:?} ({kind})"))
            .collect();
        let header = match self.header_rows.as_slice() {
            [] => "no header".to_owned(),
            [row] => format!("header in row {row}"),
            [first, .., last] => format!("header in rows {first} to {last}"),
        };
        let rows = (self.last_row + 1).saturating_sub(self.first_row);
        let cut = match columns.len() > SUMMARY_COLUMNS {
            true => format!(" and {} more", columns.len() - SUMMARY_COLUMNS),
            false => String::new(),
        };
        let shown = columns
            .iter()
            .take(SUMMARY_COLUMNS)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        format!(
            "sheet {name:?}: {rows} rows, {} columns, {header}: {shown}{cut}",
            columns.len()
        )
    }
}

fn used_columns(sheet: &Sheet) -> Option<(u32, u32)> {
    let columns = || {
        sheet
            .values
            .keys()
            .chain(sheet.formulas.keys())
            .map(|place| place.column)
    };
    Some((columns().min()?, columns().max()?))
}

/// Returns the texts of a row by column, with `None` for other content. A merged cell has the same text in all its columns.
fn texts(sheet: &Sheet, row: u32, first: u32, last: u32) -> BTreeMap<u32, Option<String>> {
    let mut found = BTreeMap::new();
    for column in first..=last {
        let anchor = anchor(sheet, Place { row, column });
        match sheet.content(anchor) {
            None => {}
            Some(Content::Text(text)) => {
                found.insert(column, Some(text));
            }
            Some(_) => {
                found.insert(column, None);
            }
        }
    }
    found
}

/// Returns the cell whose content is shown at a position: the first cell of a merged range, otherwise the cell itself.
fn anchor(sheet: &Sheet, place: Place) -> Place {
    let covers = |(first, last): &&(Place, Place)| {
        (first.row..=last.row).contains(&place.row)
            && (first.column..=last.column).contains(&place.column)
    };
    sheet
        .merged
        .iter()
        .find(covers)
        .map_or(place, |(first, _)| *first)
}

fn header_rows(sheet: &Sheet, first: u32, last: u32) -> Vec<u32> {
    let rows: BTreeSet<u32> = sheet.values.keys().map(|place| place.row).collect();
    let width = last.saturating_sub(first) as usize + 1;
    let enough = (width / 2).max(width.min(2));
    let is_header = |row: u32| {
        let texts = texts(sheet, row, first, last);
        let different: BTreeSet<_> = texts.values().collect();
        texts.len() >= enough
            && texts.values().all(Option::is_some)
            && (different.len() > 1 || width == 1)
    };
    let Some(top) = rows
        .iter()
        .copied()
        .take(HEADER_SEARCH)
        .find(|row| is_header(*row))
    else {
        return Vec::new();
    };
    let mut header = vec![top];
    while header.len() < HEADER_ROWS_MAX {
        let row = top + u32::try_from(header.len()).unwrap_or_default();
        if !continues(sheet, row, first, last) {
            break;
        }
        header.push(row);
    }
    header
}

/// Returns whether a row continues the header: the row above has cells that are merged across columns, or down into this row.
fn continues(sheet: &Sheet, row: u32, first: u32, last: u32) -> bool {
    let texts = texts(sheet, row, first, last);
    let is_text = !texts.is_empty() && texts.values().all(Option::is_some);
    let above = row - 1;
    let leads_here = |(from, to): &(Place, Place)| {
        let is_above =
            (from.row..=to.row).contains(&above) && from.column >= first && to.column <= last;
        is_above && (to.column > from.column || to.row >= row)
    };
    is_text && sheet.merged.iter().any(leads_here)
}

fn names(sheet: &Sheet, header: &[u32], first: u32, last: u32) -> Vec<String> {
    let mut used: BTreeMap<String, u32> = BTreeMap::new();
    let rows: Vec<_> = header
        .iter()
        .map(|row| texts(sheet, *row, first, last))
        .collect();
    let mut names = Vec::new();
    for column in first..=last {
        let mut parts: Vec<String> = Vec::new();
        for row in &rows {
            let part = row.get(&column).cloned().flatten().unwrap_or_default();
            let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
            if !part.is_empty() && parts.last() != Some(&part) {
                parts.push(part);
            }
        }
        let name = match parts.is_empty() {
            true => letters(column),
            false => parts.join(" / "),
        };
        let count = used.entry(name.to_lowercase()).or_default();
        *count += 1;
        names.push(match *count {
            1 => name,
            again => format!("{name} ({again})"),
        });
    }
    names
}

fn types(sheet: &Sheet, first_row: u32, first: u32, last: u32) -> Vec<Type> {
    let mut seen: Vec<ColumnStats> = (first..=last).map(|_| ColumnStats::default()).collect();
    let from = Place {
        row: first_row,
        column: 0,
    };
    for (place, content) in sheet.values.range(from..) {
        if let Some(column) = place
            .column
            .checked_sub(first)
            .and_then(|at| seen.get_mut(at as usize))
        {
            column.note(content);
        }
    }
    seen.iter().map(ColumnStats::verdict).collect()
}

/// Statistics about the values of a column.
#[derive(Default)]
struct ColumnStats {
    kinds: BTreeSet<u8>,
    texts: u64,
    german_numbers: u64,
    german_dates: u64,
    has_comma: bool,
}

impl ColumnStats {
    fn note(&mut self, content: &Content) {
        match content {
            Content::Number(_) => drop(self.kinds.insert(0)),
            Content::Date(_) => drop(self.kinds.insert(1)),
            Content::Bool(_) => drop(self.kinds.insert(2)),
            Content::Error(_) | Content::Formula(_) => {}
            Content::Text(text) => {
                self.kinds.insert(3);
                self.texts += 1;
                self.german_numbers += u64::from(german_number(text).is_some());
                self.german_dates += u64::from(german_date(text).is_some());
                self.has_comma = self.has_comma || text.contains(',');
            }
        }
    }

    fn verdict(&self) -> Type {
        let kinds: Vec<u8> = self.kinds.iter().copied().collect();
        let all_numbers = self.texts > 0 && self.german_numbers == self.texts && self.has_comma;
        match kinds.as_slice() {
            [] => Type::Empty,
            [0] => Type::Number,
            [1] => Type::Date,
            [2] => Type::Bool,
            // Without any comma they may be account numbers, which must not be added up.
            [3] | [0, 3] if all_numbers => Type::GermanNumber,
            [3] | [1, 3] if self.german_dates == self.texts => Type::GermanDate,
            [3] => Type::Text,
            _ => Type::Mixed,
        }
    }
}

/// Parses a number in German notation: `1.234,56`, `12,00-`, `1.234,56 €`.
pub fn german_number(text: &str) -> Option<f64> {
    let text = text.replace("EUR", "");
    let bare: String = text
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '€' | '\''))
        .collect();
    let (is_negative, bare) = match (bare.strip_prefix('-'), bare.strip_suffix('-')) {
        (Some(rest), _) | (None, Some(rest)) => (true, rest.to_owned()),
        (None, None) => (false, bare.clone()),
    };
    let (whole, fraction) = bare.split_once(',').unwrap_or((&bare, "0"));
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let mut groups = whole.split('.');
    let first = groups.next()?;
    let is_grouped = whole.contains('.');
    let fits = digits(first)
        && (!is_grouped || first.len() <= 3)
        && groups.all(|group| digits(group) && group.len() == 3);
    if !fits || !digits(fraction) {
        return None;
    }
    let number: f64 = format!("{}.{fraction}", whole.replace('.', ""))
        .parse()
        .ok()?;
    Some(if is_negative { -number } else { number })
}

/// Parses a date in German notation, such as `31.12.2024`. Returns days since 1899-12-30.
pub fn german_date(text: &str) -> Option<f64> {
    let mut parts = text.trim().split('.');
    let mut next = |lengths: std::ops::RangeInclusive<usize>| {
        let part = parts.next()?;
        lengths.contains(&part.len()).then_some(part)?.parse().ok()
    };
    let (day, month, year) = (next(1..=2)?, next(1..=2)?, next(4..=4)?);
    if parts.next().is_some() {
        return None;
    }
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    Some((date - NaiveDate::default()).num_days() as f64 + EPOCH_DAYS)
}

const COLUMNS_MAX: u32 = 256;
const HEADER_SEARCH: usize = 30;
const HEADER_ROWS_MAX: usize = 3;
const SUMMARY_COLUMNS: usize = 40;

#[cfg(test)]
mod tests {
    use super::super::date_text;
    use super::*;

    #[test]
    fn german_figures_are_read_and_account_numbers_are_not() {
        for (text, number) in [
            ("1.234,56", 1234.56),
            ("12,00-", -12.0),
            ("-3,5", -3.5),
            ("1.000.000,00 €", 1e6),
            ("7", 7.0),
        ] {
            assert_eq!(german_number(text), Some(number), "{text}");
        }
        for text in ["", "1.23,4", "1,2,3", "12 Stück", "A1", "1234.567,0"] {
            assert_eq!(german_number(text), None, "{text}");
        }
        assert_eq!(
            german_date("31.12.2024").map(date_text).as_deref(),
            Some("2024-12-31")
        );
        assert_eq!(
            german_date("1.3.1900").map(date_text).as_deref(),
            Some("1900-03-01")
        );
        for text in ["31.13.2024", "2024-12-31", "1.2.24", "1.2.2024.5"] {
            assert_eq!(german_date(text), None, "{text}");
        }
    }

    fn sheet(rows: &[&[&str]], merged: &[(&str, &str)]) -> Sheet {
        let mut sheet = Sheet::default();
        for (row, cells) in rows.iter().enumerate() {
            for (column, text) in cells
                .iter()
                .enumerate()
                .filter(|(_, text)| !text.is_empty())
            {
                let place = Place {
                    row: row as u32 + 1,
                    column: column as u32 + 1,
                };
                let content = match text.parse() {
                    Ok(number) => Content::Number(number),
                    Err(_) => Content::Text((*text).to_owned()),
                };
                sheet.values.insert(place, content);
            }
        }
        let place = |text: &str| Place::parse(text).unwrap();
        sheet.merged = merged
            .iter()
            .map(|(first, last)| (place(first), place(last)))
            .collect();
        sheet
    }

    #[test]
    fn a_title_is_no_header_and_merged_rows_are_one() {
        let found = Layout::of(&sheet(
            &[
                &["Sales of 2024", "", "", ""],
                &["", "", "", ""],
                &["Region ", "Q1", "", "Q1"],
                &["", "Plan", "Actual", "  Plan"],
                &["North", "1", "2", "3"],
            ],
            &[("A1", "D1"), ("B3", "C3"), ("A3", "A4")],
        ));
        assert_eq!(found.header_rows, [3, 4]);
        assert_eq!(found.first_row, 5);
        assert_eq!(
            found.columns,
            ["Region", "Q1 / Plan", "Q1 / Actual", "Q1 / Plan (2)"]
        );
        assert_eq!(
            found.types,
            [Type::Text, Type::Number, Type::Number, Type::Number]
        );
    }

    #[test]
    fn without_a_header_columns_have_their_letters() {
        let found = Layout::of(&sheet(&[&["1", "2"], &["3", "4"]], &[]));
        assert_eq!((found.header_rows.len(), found.first_row), (0, 1));
        assert_eq!(found.columns, ["A", "B"]);
    }
}
