//! Copies a sheet event by event, and rewrites the cells that change.

use std::collections::BTreeMap;

use quick_xml::events::{BytesStart, Event};

use super::super::xml::{Pieces, attribute, with_attribute};
use super::super::{BookError, Content, Place};
use super::NewCell;
use super::cells::{Dresser, Rows, by_row, write_cells, write_rows};

/// A patched sheet.
pub(super) struct Patched {
    pub(super) text: String,
    /// Whether the patch replaced a cell that had a formula.
    pub(super) touched_formula: bool,
}

/// Returns the sheet with these cells written into it.
pub(super) fn patch_sheet(
    text: &str,
    cells: &BTreeMap<Place, NewCell>,
    dresser: &mut Dresser<'_>,
) -> Result<Patched, BookError> {
    let mut cells = cells.clone();
    unshare(text, &mut cells)?;
    let mut sheet = Patching {
        rows: by_row(&cells),
        row: 0,
        column: 0,
        out: String::with_capacity(text.len()),
        touched_formula: false,
        dresser,
    };
    let mut pieces = Pieces::of(text);
    while let Some(piece) = pieces.next()? {
        let name = |element: &BytesStart<'_>| element.local_name().as_ref().to_owned();
        match &piece.event {
            Event::Start(element) | Event::Empty(element)
                if name(element) == "sheetData" && element.name().as_ref() != "sheetData" =>
            {
                return Err(BookError::unwritable(
                    "its sheets are written with a prefix, which is not known here",
                ));
            }
            Event::Start(element) | Event::Empty(element) if name(element) == "dimension" => {
                sheet.out.push_str(&dimension(piece.raw, element, &cells));
            }
            Event::Start(element) if name(element) == "row" => {
                sheet.begin_row(piece.raw, element)?
            }
            Event::Empty(element) if name(element) == "row" => {
                sheet.empty_row(piece.raw, element)?
            }
            Event::End(element) if element.local_name().as_ref() == "row" => {
                sheet.end_row(piece.raw)?
            }
            Event::Start(element) if name(element) == "c" => {
                let rest = pieces.rest_of("c")?;
                sheet.cell(piece.raw, rest, element)?;
            }
            Event::Empty(element) if name(element) == "c" => sheet.cell(piece.raw, "", element)?,
            Event::End(element) if element.local_name().as_ref() == "sheetData" => {
                sheet.finish()?;
                sheet.out.push_str(piece.raw);
            }
            Event::Empty(element) if name(element) == "sheetData" => {
                let tag = element.name().as_ref().to_owned();
                sheet.out.push_str(&format!("<{tag}>"));
                sheet.finish()?;
                sheet.out.push_str(&format!("</{tag}>"));
            }
            _ => sheet.out.push_str(piece.raw),
        }
    }
    if !sheet.rows.is_empty() {
        return Err(BookError::unwritable("the sheet has no place for cells"));
    }
    Ok(Patched {
        text: sheet.out,
        touched_formula: sheet.touched_formula,
    })
}

/// State of a sheet while it is being copied.
struct Patching<'a, 'd, 's> {
    /// Cells that still have to be written.
    rows: Rows<'a>,
    row: u32,
    column: u32,
    out: String,
    touched_formula: bool,
    dresser: &'d mut Dresser<'s>,
}

impl Patching<'_, '_, '_> {
    fn begin_row(&mut self, raw: &str, element: &BytesStart<'_>) -> Result<(), BookError> {
        self.rows_before(element)?;
        // The `spans` attribute is a hint that may no longer be true.
        let is_touched = self.rows.contains_key(&self.row);
        let raw = match (is_touched, attribute(element, "spans")) {
            (true, Some(spans)) => raw.replacen(&format!(r#" spans="{spans}""#), "", 1),
            _ => raw.to_owned(),
        };
        self.out.push_str(&raw);
        Ok(())
    }

    fn empty_row(&mut self, raw: &str, element: &BytesStart<'_>) -> Result<(), BookError> {
        self.rows_before(element)?;
        match self.rows.remove(&self.row) {
            None => self.out.push_str(raw),
            Some(cells) => {
                let cells = write_cells(self.row, &cells, self.dresser)?;
                let tag = element.name().as_ref().to_owned();
                let open = raw.trim_end_matches("/>").trim_end();
                self.out.push_str(&format!("{open}>{cells}</{tag}>"));
            }
        }
        Ok(())
    }

    /// Writes new rows that come before this one.
    fn rows_before(&mut self, element: &BytesStart<'_>) -> Result<(), BookError> {
        let row = attribute(element, "r").and_then(|row| row.parse().ok());
        let row = row.unwrap_or(self.row + 1);
        if row <= self.row {
            return Err(out_of_order(format!(
                "row {row} comes after row {}",
                self.row
            )));
        }
        self.row = row;
        self.column = 0;
        let later = self.rows.split_off(&self.row);
        let before = std::mem::replace(&mut self.rows, later);
        let text = write_rows(&before, self.dresser)?;
        self.out.push_str(&text);
        Ok(())
    }

    fn cell(&mut self, raw: &str, rest: &str, element: &BytesStart<'_>) -> Result<(), BookError> {
        let place = attribute(element, "r").and_then(|at| Place::parse(&at));
        let place = place.unwrap_or(Place {
            row: self.row,
            column: self.column + 1,
        });
        if place.row != self.row || place.column <= self.column {
            return Err(out_of_order(format!("{place} is not where it belongs")));
        }
        self.column = place.column;
        self.cells_before(self.column)?;
        let new = self
            .rows
            .get_mut(&self.row)
            .and_then(|row| row.remove(&self.column));
        let Some(new) = new else {
            self.out.push_str(raw);
            self.out.push_str(rest);
            return Ok(());
        };
        if new.keeps_content {
            let base = attribute(element, "s").and_then(|style| style.parse().ok());
            let text = match self.dresser.style(new, base)? {
                Some(style) => with_attribute(raw, element, "s", &style.to_string()),
                None => raw.to_owned(),
            };
            self.out.push_str(&text);
            self.out.push_str(rest);
            return Ok(());
        }
        self.touched_formula |= rest.contains("<f") || rest.contains(":f>");
        let base = attribute(element, "s").and_then(|style| style.parse().ok());
        let text = self.dresser.cell(place, new, base)?;
        self.out.push_str(&text);
        Ok(())
    }

    fn cells_before(&mut self, column: u32) -> Result<(), BookError> {
        let Some(row) = self.rows.get_mut(&self.row) else {
            return Ok(());
        };
        let later = row.split_off(&column);
        let before = std::mem::replace(row, later);
        let text = write_cells(self.row, &before, self.dresser)?;
        self.out.push_str(&text);
        Ok(())
    }

    fn end_row(&mut self, raw: &str) -> Result<(), BookError> {
        if let Some(cells) = self.rows.remove(&self.row) {
            let text = write_cells(self.row, &cells, self.dresser)?;
            self.out.push_str(&text);
        }
        self.out.push_str(raw);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), BookError> {
        let rows = std::mem::take(&mut self.rows);
        let text = write_rows(&rows, self.dresser)?;
        self.out.push_str(&text);
        Ok(())
    }
}

/// The copy writes each new cell before the first one that comes after it, so an order that is wrong would put a second
/// cell beside the old one, and readers differ in which of the two they believe.
fn out_of_order(what: String) -> BookError {
    BookError::unwritable(format!(
        "its cells are not in order ({what}); open it in a spreadsheet program and save it again"
    ))
}

/// Handles shared formulas, which are stored in one cell and used by others: if that cell is replaced, the other cells get
/// their own copy. Fails if a cell of an array formula would be replaced.
fn unshare(text: &str, cells: &mut BTreeMap<Place, NewCell>) -> Result<(), BookError> {
    if !text.contains("shared") && !text.contains("array") {
        return Ok(());
    }
    let is_replaced = |cells: &BTreeMap<Place, NewCell>, place: &Place| {
        cells.get(place).is_some_and(|cell| !cell.keeps_content)
    };
    let mut masters: BTreeMap<String, (Place, String)> = BTreeMap::new();
    let mut pieces = Pieces::of(text);
    let mut at = None;
    while let Some(piece) = pieces.next()? {
        let (element, is_empty) = match &piece.event {
            Event::Start(element) => (element, false),
            Event::Empty(element) => (element, true),
            _ => continue,
        };
        match element.local_name().as_ref() {
            "c" => at = attribute(element, "r").and_then(|at| Place::parse(&at)),
            "f" => {
                let Some(place) = at else { continue };
                let kind = attribute(element, "t").unwrap_or_default();
                if kind == "array" && is_replaced(cells, &place) {
                    return Err(BookError::unwritable(format!(
                        "{place} belongs to a formula over several cells; reject the change of it"
                    )));
                }
                let (true, Some(index)) = (kind == "shared", attribute(element, "si")) else {
                    continue;
                };
                if !is_empty {
                    let body = pieces.rest_of("f")?;
                    let body = body
                        .strip_suffix(&format!("</{}>", element.name().as_ref()))
                        .unwrap_or(body);
                    let formula = quick_xml::escape::unescape(body)
                        .map_err(BookError::unreadable)?
                        .into_owned();
                    if !formula.is_empty() {
                        if is_replaced(cells, &place) {
                            masters.insert(index, (place, formula));
                        }
                        continue;
                    }
                }
                if let Some((master, formula)) = masters.get(&index)
                    && !is_replaced(cells, &place)
                {
                    let zero = |place: Place| (place.row - 1, place.column - 1);
                    let own = calamine::expand_shared_formula(formula, zero(*master), zero(place))
                        .map_err(BookError::unreadable)?;
                    let cell = cells.entry(place).or_default();
                    cell.content = Some(Content::Formula(own));
                    cell.keeps_content = false;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the tag of the sheet's used range, extended if new cells lie outside of it.
fn dimension(raw: &str, element: &BytesStart<'_>, cells: &BTreeMap<Place, NewCell>) -> String {
    let Some(range) = attribute(element, "ref") else {
        return raw.to_owned();
    };
    let (first, last) = range.split_once(':').unwrap_or((&range, &range));
    let (Some(mut first), Some(mut last)) = (Place::parse(first), Place::parse(last)) else {
        return raw.to_owned();
    };
    for place in cells
        .iter()
        .filter(|(_, cell)| cell.content.is_some())
        .map(|(place, _)| place)
    {
        first = Place {
            row: first.row.min(place.row),
            column: first.column.min(place.column),
        };
        last = Place {
            row: last.row.max(place.row),
            column: last.column.max(place.column),
        };
    }
    let grown = if first == last {
        first.to_string()
    } else {
        format!("{first}:{last}")
    };
    match grown == range {
        true => raw.to_owned(),
        false => with_attribute(raw, element, "ref", &grown),
    }
}
