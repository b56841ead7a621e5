//! Reads a workbook, cell by cell.

use std::io::{Cursor, Read};

use calamine::{DataRef, Reader, Xlsx, XlsxError};
use xxhash_rust::xxh3::Xxh3;
use zip::ZipArchive;

use super::{Book, BookError, COLUMNS_MAX, Content, Place, ROWS_MAX, Sheet, guard};

/// Reads a workbook, after [`guard::look`] has accepted it.
pub fn read(bytes: &[u8]) -> Result<Book, BookError> {
    guard::look(bytes)?;
    let mut book: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(BookError::unreadable)?;
    let is_1904 = book.has_1904_epoch();
    let mut read = Book::default();
    let mut room = CELLS_MAX;
    for name in book.sheet_names() {
        let merged = book.merge_cells_by_sheet_name(&name);
        let merged = merged.map_err(BookError::unreadable)?;
        let merged = merged
            .iter()
            .filter_map(|at| Some((place(at.start)?, place(at.end)?)));
        let mut sheet = Sheet {
            merged: merged.collect(),
            name,
            ..Sheet::default()
        };
        let cells = match book.worksheet_cells_reader(&sheet.name) {
            // A chart sheet has no cells. A sheet that cannot be read is an error, not an empty sheet.
            Err(XlsxError::NotAWorksheet(_)) => None,
            cells => Some(cells.map_err(BookError::unreadable)?),
        };
        if let Some(mut cells) = cells {
            while let Some(cell) = cells
                .next_cell_with_formula()
                .map_err(BookError::unreadable)?
            {
                let place = place(cell.pos).ok_or_else(|| {
                    BookError::unreadable("a cell lies outside of what a sheet can hold")
                })?;
                if let Some(formula) = cell.formula.filter(|formula| !formula.is_empty()) {
                    sheet.formulas.insert(place, formula);
                }
                if let Some(content) = content(&cell.value, is_1904) {
                    sheet.values.insert(place, content);
                }
                room = room.checked_sub(1).ok_or_else(|| {
                    BookError::refused(format!("it has more than {CELLS_MAX} cells"))
                })?;
            }
        }
        read.sheets.push(sheet);
    }
    Ok(read)
}

/// Converts a zero-based position. Returns `None` if no sheet can have such a cell.
fn place((row, column): (u32, u32)) -> Option<Place> {
    let is_there = row < ROWS_MAX && column < COLUMNS_MAX;
    is_there.then(|| Place {
        row: row + 1,
        column: column + 1,
    })
}

fn content(value: &DataRef<'_>, is_1904: bool) -> Option<Content> {
    Some(match value {
        DataRef::Empty => return None,
        DataRef::Int(number) => Content::Number(*number as f64),
        DataRef::Float(number) => Content::Number(*number),
        DataRef::String(text) if text.is_empty() => return None,
        DataRef::String(text) => Content::Text(text.clone()),
        DataRef::SharedString("") => return None,
        DataRef::SharedString(text) => Content::Text((*text).to_owned()),
        DataRef::Bool(yes) => Content::Bool(*yes),
        DataRef::DateTime(date) => {
            let shift = if is_1904 { DAYS_TO_1904 } else { 0.0 };
            Content::Date(date.as_f64() + shift)
        }
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => Content::Text(text.clone()),
        DataRef::Error(error) => Content::Error(error.to_string()),
    })
}

/// Returns the id of a workbook's content. It does not depend on how the parts are packed, nor on the document properties
/// (`docProps`), such as who saved it and when.
pub fn snapshot_id(bytes: &[u8]) -> Result<String, BookError> {
    guard::look(bytes)?;
    let mut package = ZipArchive::new(Cursor::new(bytes)).map_err(BookError::unreadable)?;
    let names = package
        .file_names()
        .map(|name| name.map(|name| name.into_owned()));
    let mut names: Vec<String> = names
        .collect::<Result<_, _>>()
        .map_err(BookError::unreadable)?;
    names.sort();
    let mut hash = Xxh3::new();
    for name in names.iter().filter(|name| !name.starts_with("docProps/")) {
        let mut part = Vec::new();
        let mut file = package.by_name(name).map_err(BookError::unreadable)?;
        file.read_to_end(&mut part).map_err(BookError::unreadable)?;
        hash.update(&(name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(&part);
    }
    Ok(format!("{:032x}", hash.digest128()))
}

const CELLS_MAX: u64 = 8_000_000;
const DAYS_TO_1904: f64 = 1_462.0;
