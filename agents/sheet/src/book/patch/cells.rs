//! Writes cells as XML, and creates sheets that consist of new cells only.

use std::collections::BTreeMap;

use super::super::style::Styles;
use super::super::xml::escaped;
use super::super::{BookError, Content, Place};
use super::{Dress, NewCell};

/// Writes cells, and adds the styles that they need.
pub(super) struct Dresser<'a> {
    pub(super) styles: Option<&'a mut Styles>,
    pub(super) is_1904: bool,
}

impl Dresser<'_> {
    fn number(&mut self, base: Option<usize>, dress: &Dress) -> Result<Option<usize>, BookError> {
        match &mut self.styles {
            Some(styles) if !dress.is_plain() => Ok(Some(styles.number(base, dress)?)),
            _ => Ok(base),
        }
    }

    /// Returns the index of the style of a cell that only changes its format.
    pub(super) fn style(
        &mut self,
        cell: &NewCell,
        base: Option<usize>,
    ) -> Result<Option<usize>, BookError> {
        self.number(base, &cell.dress)
    }

    /// Returns the XML of a cell; empty if the cell has neither content nor style.
    pub(super) fn cell(
        &mut self,
        place: Place,
        cell: &NewCell,
        base: Option<usize>,
    ) -> Result<String, BookError> {
        let mut dress = cell.dress.clone();
        if let Some(Content::Date(days)) = cell.content
            && !cell.was_date
        {
            let usual = || Dress::of_date(days.fract() != 0.0).format;
            dress.format = cell.dress.format.clone().or_else(usual);
        }
        let style = self.number(base, &dress)?;
        let style = style
            .map(|style| format!(r#" s="{style}""#))
            .unwrap_or_default();
        let head = format!(r#"<c r="{place}"{style}"#);
        Ok(match &cell.content {
            None if style.is_empty() => String::new(),
            None => format!("{head}/>"),
            Some(Content::Number(number)) if number.is_finite() => {
                format!("{head}><v>{number}</v></c>")
            }
            Some(Content::Number(_)) => format!(r##"{head} t="e"><v>#NUM!</v></c>"##),
            Some(Content::Date(days)) => {
                let days = if self.is_1904 { days - 1_462.0 } else { *days };
                format!("{head}><v>{days}</v></c>")
            }
            Some(Content::Bool(yes)) => format!(r#"{head} t="b"><v>{}</v></c>"#, u8::from(*yes)),
            Some(Content::Error(error)) => format!(r#"{head} t="e"><v>{}</v></c>"#, escaped(error)),
            Some(Content::Formula(formula)) => format!("{head}><f>{}</f></c>", escaped(formula)),
            Some(Content::Text(text)) => format!(
                r#"{head} t="inlineStr"><is><t xml:space="preserve">{}</t></is></c>"#,
                escaped(text)
            ),
        })
    }
}

pub(super) fn new_sheet(
    cells: &BTreeMap<Place, NewCell>,
    dresser: &mut Dresser<'_>,
) -> Result<String, BookError> {
    let rows = write_rows(&by_row(cells), dresser)?;
    let mut widths: BTreeMap<u32, usize> = BTreeMap::new();
    for (place, cell) in cells {
        let width = match &cell.content {
            Some(Content::Text(text)) => text.chars().count(),
            Some(Content::Date(_)) => 11,
            Some(content) => content.to_string().chars().count(),
            None => 0,
        };
        let widest = widths.entry(place.column).or_default();
        *widest = (*widest).max(width);
    }
    let columns: String = widths
        .iter()
        .map(|(column, width)| {
            let width = width.clamp(&8, &60) + 2;
            format!(r#"<col min="{column}" max="{column}" width="{width}" customWidth="1"/>"#)
        })
        .collect();
    let columns = if columns.is_empty() {
        columns
    } else {
        format!("<cols>{columns}</cols>")
    };
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<worksheet xmlns=\"{MAIN}\">{columns}<sheetData>{rows}</sheetData></worksheet>"
    ))
}

pub(super) type Rows<'a> = BTreeMap<u32, BTreeMap<u32, &'a NewCell>>;

pub(super) fn by_row(cells: &BTreeMap<Place, NewCell>) -> Rows<'_> {
    let mut rows: Rows<'_> = BTreeMap::new();
    for (place, cell) in cells {
        rows.entry(place.row)
            .or_default()
            .insert(place.column, cell);
    }
    rows
}

pub(super) fn write_rows(rows: &Rows<'_>, dresser: &mut Dresser<'_>) -> Result<String, BookError> {
    let mut text = String::new();
    for (row, cells) in rows {
        let cells = write_cells(*row, cells, dresser)?;
        if !cells.is_empty() {
            text.push_str(&format!(r#"<row r="{row}">{cells}</row>"#));
        }
    }
    Ok(text)
}

pub(super) fn write_cells(
    row: u32,
    cells: &BTreeMap<u32, &NewCell>,
    dresser: &mut Dresser<'_>,
) -> Result<String, BookError> {
    cells
        .iter()
        .map(|(column, cell)| {
            dresser.cell(
                Place {
                    row,
                    column: *column,
                },
                cell,
                None,
            )
        })
        .collect()
}

const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
