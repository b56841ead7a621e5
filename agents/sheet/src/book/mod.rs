//! Workbooks: validated, read, compared, and patched.
//!
//! A workbook may come from anyone. [`guard`] inspects the package before any other code does. [`read`] reads cells one by one,
//! so that a sheet with only a first and a last cell costs two cells. [`patch`] writes a change set into a copy of the package
//! and leaves everything else in it unchanged.

pub mod blank;
pub mod compare;
pub mod diff;
pub mod guard;
pub mod layout;
pub mod looks;
pub mod mirror;
mod numbers;
pub mod patch;
mod read;
mod style;
mod tree;
mod xml;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use read::{read, snapshot_id};

/// Content of a workbook.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Book {
    /// Sheets in the order of the workbook.
    pub sheets: Vec<Sheet>,
}

/// Content of a sheet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sheet {
    /// Name of the sheet, as shown on its tab.
    pub name: String,
    /// Values of the cells that are not empty. For a formula, the result at the time it was saved, if there is one.
    pub values: BTreeMap<Place, Content>,
    /// Formulas by cell, without the `=`.
    pub formulas: BTreeMap<Place, String>,
    /// Merged ranges: first and last cell of each.
    pub merged: Vec<(Place, Place)>,
}

/// Content of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "is", rename_all = "snake_case")]
pub enum Content {
    /// A number that is not formatted as a date.
    Number(f64),
    /// Text; never empty when read from a workbook.
    Text(String),
    /// A boolean, shown as `TRUE` or `FALSE`.
    Bool(bool),
    /// A date as days since 1899-12-30, with the time as a fraction, even in workbooks that count from 1904.
    Date(f64),
    /// An error value, such as `#DIV/0!`.
    Error(String),
    /// A formula, without its `=`.
    Formula(String),
}

/// Position of a cell. Rows and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Row number, from 1.
    pub row: u32,
    /// Column number, from 1.
    pub column: u32,
}

impl Book {
    /// Returns the sheet with this name.
    pub fn sheet(&self, name: &str) -> Option<&Sheet> {
        self.sheets.iter().find(|sheet| sheet.name == name)
    }
}

impl Sheet {
    /// Returns the content of a cell: its formula if it has one, otherwise its value.
    pub fn content(&self, place: Place) -> Option<Content> {
        match self.formulas.get(&place) {
            Some(formula) => Some(Content::Formula(formula.clone())),
            None => self.values.get(&place).cloned(),
        }
    }

    /// Returns every cell that is not empty: first those with formulas, then the others.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let formulas = self.formulas.keys().copied();
        let only_values = self.values.keys().copied();
        let only_values = only_values.filter(|place| !self.formulas.contains_key(place));
        formulas.chain(only_values)
    }

    /// Returns the last used row and the last used column, or zeros for an empty sheet.
    pub fn size(&self) -> (u32, u32) {
        let places = self.values.keys().chain(self.formulas.keys());
        places.fold((0, 0), |(rows, columns), place| {
            (rows.max(place.row), columns.max(place.column))
        })
    }
}

impl Place {
    /// Parses `B7` or `$B$7`. Returns `None` if no sheet can have such a cell.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.replace('$', "");
        let digits = text.find(|c: char| c.is_ascii_digit())?;
        let (letters, digits) = text.split_at(digits);
        if letters.is_empty() || letters.len() > 3 {
            return None;
        }
        let mut column = 0;
        for letter in letters.chars() {
            let letter = letter.to_ascii_uppercase();
            if !letter.is_ascii_uppercase() {
                return None;
            }
            column = column * 26 + (letter as u32 - 'A' as u32 + 1);
        }
        let row = digits.parse().ok()?;
        let is_there = (1..=ROWS_MAX).contains(&row) && (1..=COLUMNS_MAX).contains(&column);
        is_there.then_some(Self { row, column })
    }
}

/// Returns the letters of a column, such as `AB` for 28.
pub fn letters(mut column: u32) -> String {
    let mut letters = Vec::new();
    while column > 0 {
        column -= 1;
        letters.push(char::from(
            b'A' + u8::try_from(column % 26).unwrap_or_default(),
        ));
        column /= 26;
    }
    letters.iter().rev().collect()
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", letters(self.column), self.row)
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bool(yes) => write!(f, "{}", if *yes { "TRUE" } else { "FALSE" }),
            Self::Date(days) => f.write_str(&date_text(*days)),
            Self::Error(error) => f.write_str(error),
            Self::Formula(formula) => write!(f, "={formula}"),
        }
    }
}

/// Formats a date, with its time if it has one. `days` counts from 1899-12-30.
pub fn date_text(days: f64) -> String {
    let seconds = ((days - EPOCH_DAYS) * 86_400.0).round() as i64;
    let Some(moment) = chrono::DateTime::from_timestamp(seconds, 0) else {
        return days.to_string();
    };
    let form = match seconds.rem_euclid(86_400) {
        0 => "%Y-%m-%d",
        _ => "%Y-%m-%d %H:%M:%S",
    };
    moment.format(form).to_string()
}

/// Days from 1899-12-30 to 1970-01-01.
const EPOCH_DAYS: f64 = 25_569.0;
pub(crate) const ROWS_MAX: u32 = 1_048_576;
const COLUMNS_MAX: u32 = 16_384;

/// Why a workbook cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookError {
    /// The workbook may be malicious, or exceeds a limit.
    #[error("the workbook is refused: {why}")]
    Refused {
        /// Reason, as text for the person.
        why: String,
    },
    /// The file cannot be parsed as a workbook.
    #[error("the workbook cannot be read: {why}")]
    Unreadable {
        /// Reason, as text for the person.
        why: String,
    },
    /// A change cannot be written into the workbook.
    #[error("the change cannot be written: {why}")]
    Unwritable {
        /// Reason, as text for the person.
        why: String,
    },
}

impl BookError {
    fn refused(why: impl Into<String>) -> Self {
        Self::Refused { why: why.into() }
    }

    fn unreadable(why: impl fmt::Display) -> Self {
        Self::Unreadable {
            why: why.to_string(),
        }
    }

    fn unwritable(why: impl fmt::Display) -> Self {
        Self::Unwritable {
            why: why.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for (text, row, column) in [
            ("A1", 1, 1),
            ("Z10", 10, 26),
            ("AA3", 3, 27),
            ("XFD1048576", 1_048_576, 16_384),
        ] {
            let place = Place::parse(text).unwrap();
            assert_eq!((place.row, place.column), (row, column));
            assert_eq!(place.to_string(), text);
        }
        for wrong in ["", "A", "1", "A0", "XFE1", "A1048577", "ÄA1", "AAAA1"] {
            assert_eq!(Place::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_date_is_told_as_people_write_it() {
        assert_eq!(date_text(45_657.0), "2024-12-31");
        assert_eq!(date_text(45_351.0), "2024-02-29");
        assert_eq!(date_text(45_351.5), "2024-02-29 12:00:00");
    }
}
