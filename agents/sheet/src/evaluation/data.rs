//! The content of the workbooks, generated from a fixed seed, as plain values from which the expected results are computed.

use std::collections::BTreeMap;

use crate::book::{Content, Place, date_text};

/// A sheet as rows of plain values. The first row is the header.
#[derive(Debug, Clone)]
pub(super) struct SheetData {
    pub(super) name: &'static str,
    rows: Vec<Vec<Value>>,
}

/// A plain value.
#[derive(Debug, Clone)]
pub(super) enum Value {
    None,
    Text(String),
    Figure(f64),
    /// Days since 1899-12-30.
    Day(f64),
}

impl SheetData {
    pub(super) fn new(name: &'static str, header: &[&str], rows: Vec<Vec<Value>>) -> Self {
        let header = header.iter().map(|text| Value::from(*text)).collect();
        Self {
            name,
            rows: std::iter::once(header).chain(rows).collect(),
        }
    }

    pub(super) fn cells(&self) -> BTreeMap<Place, Content> {
        let mut cells = BTreeMap::new();
        for (row, values) in (1..).zip(&self.rows) {
            for (column, value) in (1..).zip(values) {
                let content = match value {
                    Value::None => continue,
                    Value::Text(text) => Content::Text(text.clone()),
                    Value::Figure(figure) => Content::Number(*figure),
                    Value::Day(day) => Content::Date(*day),
                };
                cells.insert(Place { row, column }, content);
            }
        }
        cells
    }

    /// Returns the sheet as CSV, a line per row.
    pub(super) fn csv(&self) -> String {
        let line = |row: &Vec<Value>| {
            let fields: Vec<_> = row.iter().map(Value::csv).collect();
            format!("{}\n", fields.join(","))
        };
        self.rows.iter().map(line).collect()
    }
}

impl Value {
    fn csv(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Text(text) if text.contains([',', '"', '\n']) => {
                format!("\"{}\"", text.replace('"', "\"\""))
            }
            Self::Text(text) => text.clone(),
            Self::Figure(figure) => figure.to_string(),
            Self::Day(day) => date_text(*day),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<f64> for Value {
    fn from(figure: f64) -> Self {
        Self::Figure(figure)
    }
}

/// A stream of numbers that is the same in every run.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub(super) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Formats a number as Germans write it: `1.234,50`.
pub(super) fn german(figure: f64) -> String {
    let cents = (figure * 100.0).round() as i64;
    let (whole, cents) = (cents / 100, cents % 100);
    let digits = whole.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push('.');
        }
        grouped.push(digit);
    }
    format!("{grouped},{cents:02}")
}
