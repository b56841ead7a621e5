//! Workbooks: looked at with care, read, compared, and patched.
//!
//! A workbook comes from anybody. [`guard`] looks at the package before anything else does; [`read`] takes cells one by one, so that
//! a sheet whose only cells are its first and its last costs two cells; [`patch`] writes a change set into a copy of the package
//! and leaves every other byte of it alone.

pub mod diff;
pub mod guard;
pub mod layout;
pub mod mirror;
mod numbers;
pub mod patch;
mod read;
pub(crate) mod style;
mod xml;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use read::{read, snapshot_id};

/// What is in a workbook.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Book {
    /// Its sheets, in order.
    pub sheets: Vec<Sheet>,
}

/// What is in a sheet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sheet {
    /// Its name.
    pub name: String,
    /// Its cells that are not empty. Of a formula this is what it had come to when it was saved, if that is known.
    pub values: BTreeMap<Place, Content>,
    /// Its formulas.
    pub formulas: BTreeMap<Place, String>,
    /// Which cells are one: the first and the last of each.
    pub merged: Vec<(Place, Place)>,
}

/// What is in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "is", rename_all = "snake_case")]
pub enum Content {
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// Days since the end of 1899, as spreadsheets count.
    Date(f64),
    /// What could not be computed.
    Error(String),
    /// A formula, without its `=`.
    Formula(String),
}

/// Where a cell is, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Its row.
    pub row: u32,
    /// Its column.
    pub column: u32,
}

impl Book {
    /// The sheet of this name.
    pub fn sheet(&self, name: &str) -> Option<&Sheet> {
        self.sheets.iter().find(|sheet| sheet.name == name)
    }
}

impl Sheet {
    /// What is in a cell: its formula if it has one, or else its value.
    pub fn content(&self, place: Place) -> Option<Content> {
        match self.formulas.get(&place) {
            Some(formula) => Some(Content::Formula(formula.clone())),
            None => self.values.get(&place).cloned(),
        }
    }

    /// Every cell that is not empty.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let formulas = self.formulas.keys().copied();
        let only_values = self.values.keys().copied();
        let only_values = only_values.filter(|place| !self.formulas.contains_key(place));
        formulas.chain(only_values)
    }

    /// The last row and the last column that are used.
    pub fn size(&self) -> (u32, u32) {
        let places = self.values.keys().chain(self.formulas.keys());
        places.fold((0, 0), |(rows, columns), place| {
            (rows.max(place.row), columns.max(place.column))
        })
    }
}

impl Place {
    /// From `B7`, or `$B$7`.
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

/// The letters of a column.
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

/// A date as text, with its time if it has one. Days count from the end of 1899.
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

/// From the end of 1899 to the first of 1970.
const EPOCH_DAYS: f64 = 25_569.0;
const ROWS_MAX: u32 = 1_048_576;
const COLUMNS_MAX: u32 = 16_384;

/// What is wrong with a workbook.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookError {
    /// It may be meant to do harm, or is too large for us.
    #[error("the workbook is refused: {why}")]
    Refused {
        /// Why.
        why: String,
    },
    /// It cannot be read.
    #[error("the workbook cannot be read: {why}")]
    Unreadable {
        /// Why.
        why: String,
    },
    /// A change cannot be made in it.
    #[error("the change cannot be written: {why}")]
    Unwritable {
        /// Why.
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
