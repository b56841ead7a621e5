//! Adds the styles that new cells need to a workbook's style sheet: number formats, date formats, and bold.

use std::collections::BTreeMap;

use quick_xml::events::Event;
use serde::{Deserialize, Serialize};

use super::xml::{Pieces, attribute, escaped};
use super::{BookError, Place};

/// Format of a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dress {
    /// Number format code; `None` for the general format.
    pub format: Option<String>,
    /// Whether the text is bold.
    pub bold: bool,
}

impl Dress {
    /// Returns the default format for dates.
    pub(super) fn of_date(has_time: bool) -> Self {
        let format = if has_time {
            "yyyy\\-mm\\-dd hh:mm:ss"
        } else {
            "yyyy\\-mm\\-dd"
        };
        Self {
            format: Some(format.to_owned()),
            bold: false,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the formats of a sheet's cells that differ from the default.
pub(crate) fn dresses(bytes: &[u8], sheet: &str) -> Result<BTreeMap<Place, Dress>, BookError> {
    use calamine::Reader;
    let book = calamine::Xlsx::new(std::io::Cursor::new(bytes));
    let mut book = book.map_err(BookError::unreadable)?;
    let mut cells = book
        .worksheet_cells_reader(sheet)
        .map_err(BookError::unreadable)?;
    let mut found = BTreeMap::new();
    while let Some((row, column, id)) = cells.next_style_id().map_err(BookError::unreadable)? {
        let Some(style) = cells.styles().get(id) else {
            continue;
        };
        let format = style
            .number_format
            .as_ref()
            .map(|format| format.format_code.clone());
        let dress = Dress {
            format: format.filter(|format| !format.is_empty() && format != "General"),
            bold: style.font.as_ref().is_some_and(|font| font.is_bold()),
        };
        if !dress.is_plain() {
            found.insert(
                Place {
                    row: row + 1,
                    column: column + 1,
                },
                dress,
            );
        }
    }
    Ok(found)
}

/// The style sheet of a workbook, to which styles can be added.
pub(super) struct Styles {
    text: String,
    formats: Vec<(u32, String)>,
    fonts: usize,
    styles: Vec<String>,
    first_font: String,
    added_formats: Vec<(u32, String)>,
    bold_font: Option<usize>,
    added: Vec<String>,
    known: BTreeMap<(Option<usize>, Dress), usize>,
}

impl Styles {
    pub(super) fn read(text: &str) -> Result<Self, BookError> {
        let mut styles = Self {
            text: text.to_owned(),
            formats: Vec::new(),
            fonts: 0,
            styles: Vec::new(),
            first_font: String::new(),
            added_formats: Vec::new(),
            bold_font: None,
            added: Vec::new(),
            known: BTreeMap::new(),
        };
        let mut pieces = Pieces::of(text);
        let mut within = Vec::new();
        while let Some(piece) = pieces.next()? {
            let (element, is_empty) = match piece.event {
                Event::Start(element) => (element, false),
                Event::Empty(element) => (element, true),
                Event::End(_) => {
                    within.pop();
                    continue;
                }
                _ => continue,
            };
            let name = element.local_name().as_ref().to_owned();
            let parent = within.last().map(String::as_str).unwrap_or_default();
            match (parent, name.as_str()) {
                ("numFmts", "numFmt") => {
                    let id = attribute(&element, "numFmtId").and_then(|id| id.parse().ok());
                    styles
                        .formats
                        .extend(id.zip(attribute(&element, "formatCode")));
                }
                ("fonts", "font") => {
                    styles.fonts += 1;
                    if !is_empty {
                        let rest = pieces.rest_of("font")?;
                        if styles.fonts == 1 {
                            styles.first_font = rest.trim_end_matches("</font>").to_owned();
                        }
                        continue;
                    }
                }
                ("cellXfs", "xf") => {
                    let whole = match is_empty {
                        true => piece.raw.to_owned(),
                        false => format!("{}{}", piece.raw, pieces.rest_of("xf")?),
                    };
                    styles.styles.push(whole);
                    continue;
                }
                _ => {}
            }
            if !is_empty {
                within.push(name);
            }
        }
        Ok(styles)
    }

    /// Returns the index of a style that applies the format on top of the style `base`, adding it if necessary.
    pub(super) fn number(
        &mut self,
        base: Option<usize>,
        dress: &Dress,
    ) -> Result<usize, BookError> {
        let key = (base, dress.clone());
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let written = match base.and_then(|base| self.styles.get(base)) {
            Some(style) => style.clone(),
            None => r#"<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>"#.to_owned(),
        };
        let mut changes = Vec::new();
        if let Some(format) = &dress.format {
            changes.push(("numFmtId", self.format(format).to_string()));
            changes.push(("applyNumberFormat", "1".to_owned()));
        }
        if dress.bold {
            changes.push(("fontId", self.bold().to_string()));
            changes.push(("applyFont", "1".to_owned()));
        }
        let written = rewrite(&written, &changes)?;
        let number = self.styles.len() + self.added.len();
        self.added.push(written);
        self.known.insert(key, number);
        Ok(number)
    }

    fn format(&mut self, code: &str) -> u32 {
        if let Some((_, id)) = BUILT_IN.iter().find(|(known, _)| *known == code) {
            return *id;
        }
        let all = self.formats.iter().chain(&self.added_formats);
        if let Some((id, _)) = all.clone().find(|(_, known)| known == code) {
            return *id;
        }
        let id = all
            .map(|(id, _)| id + 1)
            .max()
            .unwrap_or_default()
            .max(FIRST_OWN);
        self.added_formats.push((id, code.to_owned()));
        id
    }

    fn bold(&mut self) -> usize {
        *self.bold_font.get_or_insert(self.fonts)
    }

    /// Returns the style sheet with the additions, or `None` if there are none.
    pub(super) fn written(&self) -> Result<Option<String>, BookError> {
        if self.added.is_empty() {
            return Ok(None);
        }
        let mut text = self.text.clone();
        if !self.added_formats.is_empty() {
            let formats: String = self
                .added_formats
                .iter()
                .map(|(id, code)| {
                    format!(
                        r#"<numFmt numFmtId="{id}" formatCode="{}"/>"#,
                        escaped(code)
                    )
                })
                .collect();
            text = match append(&text, "numFmts", &formats, self.added_formats.len())? {
                Some(text) => text,
                // `numFmts` must be the first of the lists.
                None => {
                    let list = format!(
                        r#"<numFmts count="{}">{formats}</numFmts>"#,
                        self.added_formats.len()
                    );
                    after_root(&text, &list)?
                }
            };
        }
        if self.bold_font.is_some() {
            let font = format!("<font><b/>{}</font>", self.first_font.replace("<b/>", ""));
            text = append(&text, "fonts", &font, 1)?
                .ok_or_else(|| BookError::unwritable("the list of styles has no fonts"))?;
        }
        let added = append(&text, "cellXfs", &self.added.concat(), self.added.len())?;
        added
            .map(Some)
            .ok_or_else(|| BookError::unwritable("the list of styles has no formats of cells"))
    }
}

fn rewrite(style: &str, changes: &[(&str, String)]) -> Result<String, BookError> {
    let mut pieces = Pieces::of(style);
    let Some(first) = pieces.next()? else {
        return Err(BookError::unreadable("a style is empty"));
    };
    let rest = &style[first.raw.len()..];
    let mut tag = first.raw.to_owned();
    for (name, value) in changes {
        let mut pieces = Pieces::of(&tag);
        let piece = pieces.next()?;
        let Some(Event::Start(element) | Event::Empty(element)) = piece.map(|piece| piece.event)
        else {
            return Err(BookError::unreadable("a style is no element"));
        };
        tag = super::xml::with_attribute(&tag.clone(), &element, name, value);
    }
    Ok(format!("{tag}{rest}"))
}

/// Appends items to a list and updates its count. Returns `None` if there is no such list.
fn append(text: &str, list: &str, items: &str, count: usize) -> Result<Option<String>, BookError> {
    let mut pieces = Pieces::of(text);
    let mut out = String::with_capacity(text.len() + items.len());
    let mut is_done = false;
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(element) if element.local_name().as_ref() == list && !is_done => {
                let before: usize = attribute(element, "count")
                    .and_then(|count| count.parse().ok())
                    .unwrap_or_default();
                let tag = match attribute(element, "count") {
                    Some(_) => super::xml::with_attribute(
                        piece.raw,
                        element,
                        "count",
                        &(before + count).to_string(),
                    ),
                    None => piece.raw.to_owned(),
                };
                let end = format!("</{}>", element.name().as_ref());
                let rest = pieces.rest_of(list)?;
                let inner = rest.strip_suffix(end.as_str()).unwrap_or(rest);
                out.push_str(&format!("{tag}{inner}{items}{end}"));
                is_done = true;
            }
            _ => out.push_str(piece.raw),
        }
    }
    Ok(is_done.then_some(out))
}

fn after_root(text: &str, list: &str) -> Result<String, BookError> {
    let mut pieces = Pieces::of(text);
    let mut out = String::new();
    let mut is_done = false;
    while let Some(piece) = pieces.next()? {
        out.push_str(piece.raw);
        if let (Event::Start(_), false) = (&piece.event, is_done) {
            out.push_str(list);
            is_done = true;
        }
    }
    Ok(out)
}

/// Number formats with a fixed id, which need no entry in the list.
const BUILT_IN: &[(&str, u32)] = &[
    ("0", 1),
    ("0.00", 2),
    ("#,##0", 3),
    ("#,##0.00", 4),
    ("0%", 9),
    ("0.00%", 10),
    ("mm-dd-yy", 14),
];
const FIRST_OWN: u32 = 164;
