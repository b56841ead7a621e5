//! Adds the styles that cells need to a workbook's style sheet: formats of numbers, fonts, fills, borders and alignments.

use std::collections::BTreeMap;

use super::BookError;
use super::tree::Element;
use super::xml::{Pieces, attribute, escaped};
use quick_xml::events::Event;

/// Format of a cell: the parts of its style that are set. The parts are XML, except for the number format.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dress {
    /// Number format.
    pub format: Option<NumberFormat>,
    pub(crate) font: Option<String>,
    pub(crate) fill: Option<String>,
    pub(crate) border: Option<String>,
    /// Alignment; empty text removes it.
    pub(crate) alignment: Option<String>,
}

/// Format of a number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumberFormat {
    /// A format that every program knows by its number.
    BuiltIn(u32),
    /// A format code, such as `0.00`.
    Code(String),
}

impl NumberFormat {
    /// Returns the format code, or the number of a format whose code is not known.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Code(code) => code.clone(),
            Self::BuiltIn(0) => "General".to_owned(),
            Self::BuiltIn(id) => {
                let known = BUILT_IN.iter().find(|(_, known)| known == id);
                known.map_or_else(|| format!("built-in {id}"), |(code, _)| (*code).to_owned())
            }
        }
    }
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
            format: Some(NumberFormat::Code(format.to_owned())),
            ..Self::default()
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// The style sheet of a workbook, to which styles can be added.
pub(super) struct Styles {
    text: String,
    formats: Vec<(u32, String)>,
    styles: Vec<String>,
    added_formats: Vec<(u32, String)>,
    fonts: AddedItems,
    fills: AddedItems,
    borders: AddedItems,
    conditional: AddedItems,
    added: Vec<String>,
    known: BTreeMap<(Option<usize>, Dress), usize>,
}

/// A list of the style sheet: how many items it has, and those to add.
#[derive(Default)]
struct AddedItems {
    count: usize,
    added: Vec<String>,
}

impl AddedItems {
    /// Returns the index of an item, adding it if it was not added before.
    fn number(&mut self, item: &str) -> usize {
        let known = self.added.iter().position(|known| known == item);
        let at = known.unwrap_or_else(|| {
            self.added.push(item.to_owned());
            self.added.len() - 1
        });
        self.count + at
    }
}

impl Styles {
    pub(super) fn read(text: &str) -> Result<Self, BookError> {
        let mut styles = Self {
            text: text.to_owned(),
            formats: Vec::new(),
            styles: Vec::new(),
            added_formats: Vec::new(),
            fonts: AddedItems::default(),
            fills: AddedItems::default(),
            borders: AddedItems::default(),
            conditional: AddedItems::default(),
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
            // Extensions have lists with the same names.
            if name == "extLst" && !is_empty {
                pieces.rest_of(&name)?;
                continue;
            }
            let parent = within.last().map(String::as_str).unwrap_or_default();
            match (parent, name.as_str()) {
                ("numFmts", "numFmt") => {
                    let id = attribute(&element, "numFmtId").and_then(|id| id.parse().ok());
                    styles
                        .formats
                        .extend(id.zip(attribute(&element, "formatCode")));
                }
                ("fonts", "font") | ("fills", "fill") | ("borders", "border") | ("dxfs", "dxf") => {
                    match parent {
                        "fonts" => styles.fonts.count += 1,
                        "fills" => styles.fills.count += 1,
                        "borders" => styles.borders.count += 1,
                        _ => styles.conditional.count += 1,
                    }
                    if !is_empty {
                        pieces.rest_of(&name)?;
                    }
                    continue;
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
            Some(style) => Element::fragment(style)?,
            None => Element::fragment(PLAIN_STYLE)?,
        };
        let written = self.dressed(written, dress)?.written(&[]);
        let number = self.styles.len() + self.added.len();
        self.added.push(written);
        self.known.insert(key, number);
        Ok(number)
    }

    /// Returns a style with the parts of the dress in the place of its own.
    fn dressed(&mut self, mut style: Element, dress: &Dress) -> Result<Element, BookError> {
        if let Some(format) = &dress.format {
            let id = match format {
                NumberFormat::BuiltIn(id) => *id,
                NumberFormat::Code(code) => self.format(code),
            };
            style.set("numFmtId", &id.to_string());
            style.set("applyNumberFormat", "1");
        }
        // Programs show the first two fills in their own way, whatever the list says, so no other may take their places.
        while dress.fill.is_some()
            && self.fills.count + self.fills.added.len() < RESERVED_FILLS.len()
        {
            let at = self.fills.count + self.fills.added.len();
            self.fills.added.push(RESERVED_FILLS[at].to_owned());
        }
        let lists = [
            (&dress.font, &mut self.fonts, "fontId", "applyFont"),
            (&dress.fill, &mut self.fills, "fillId", "applyFill"),
            (&dress.border, &mut self.borders, "borderId", "applyBorder"),
        ];
        for (part, list, id, applies) in lists {
            let part = part.as_ref().filter(|part| !part.is_empty());
            if let Some(part) = part {
                style.set(id, &list.number(part).to_string());
                style.set(applies, "1");
            }
        }
        if let Some(alignment) = &dress.alignment {
            style.children.retain(|child| child.name != "alignment");
            if !alignment.is_empty() {
                let alignment = Element::fragment(alignment)?;
                style.children.insert(0, alignment);
                style.set("applyAlignment", "1");
            }
        }
        Ok(style)
    }

    /// Returns the index of a format for conditional formats, adding it if necessary.
    pub(super) fn conditional(&mut self, format: &str) -> Result<usize, BookError> {
        let mut format = Element::fragment(format)?;
        // Its id must not be one that the workbook uses for something else.
        for child in format
            .children
            .iter_mut()
            .filter(|child| child.name == "numFmt")
        {
            let code = child
                .attribute("formatCode")
                .unwrap_or("General")
                .to_owned();
            child.set("numFmtId", &self.format(&code).to_string());
        }
        Ok(self.conditional.number(&format.written(&[])))
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

    /// Returns the style sheet with the additions, or `None` if there are none.
    pub(super) fn written(&self) -> Result<Option<String>, BookError> {
        if self.added.is_empty() && self.conditional.added.is_empty() {
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
        let lists = [
            ("fonts", &self.fonts),
            ("fills", &self.fills),
            ("borders", &self.borders),
            ("dxfs", &self.conditional),
        ];
        for (name, list) in lists.into_iter().filter(|(_, list)| !list.added.is_empty()) {
            let items = list.added.concat();
            text = match append(&text, name, &items, list.added.len())? {
                Some(text) => text,
                None => {
                    let list = format!(r#"<{name} count="{}">{items}</{name}>"#, list.added.len());
                    before(&text, &list, LATER_THAN_CONDITIONAL)?
                }
            };
        }
        if self.added.is_empty() {
            return Ok(Some(text));
        }
        let added = append(&text, "cellXfs", &self.added.concat(), self.added.len())?;
        added
            .map(Some)
            .ok_or_else(|| BookError::unwritable("the list of styles has no formats of cells"))
    }
}

/// Appends items to a list and updates its count. Returns `None` if there is no such list.
fn append(text: &str, list: &str, items: &str, count: usize) -> Result<Option<String>, BookError> {
    let mut pieces = Pieces::of(text);
    let mut out = String::with_capacity(text.len() + items.len());
    let mut is_done = false;
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(element) if element.local_name().as_ref() == "extLst" => {
                out.push_str(piece.raw);
                out.push_str(pieces.rest_of("extLst")?);
            }
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
            Event::Empty(element) if element.local_name().as_ref() == list && !is_done => {
                let name = element.name().as_ref().to_owned();
                out.push_str(&format!(r#"<{name} count="{count}">{items}</{name}>"#));
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

/// Inserts a list before the first of these, or at the end.
fn before(text: &str, list: &str, later: &[&str]) -> Result<String, BookError> {
    let mut pieces = Pieces::of(text);
    let mut out = String::new();
    let mut is_done = false;
    while let Some(piece) = pieces.next()? {
        let is_it = match &piece.event {
            Event::Start(element) | Event::Empty(element) => {
                later.contains(&element.local_name().as_ref())
            }
            Event::End(element) => element.local_name().as_ref() == "styleSheet",
            _ => false,
        };
        if is_it && !is_done {
            out.push_str(list);
            is_done = true;
        }
        out.push_str(piece.raw);
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
pub(super) const FIRST_OWN: u32 = 164;
const RESERVED_FILLS: [&str; 2] = [
    r#"<fill><patternFill patternType="none"/></fill>"#,
    r#"<fill><patternFill patternType="gray125"/></fill>"#,
];
const PLAIN_STYLE: &str = r#"<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>"#;
/// What comes after the formats of conditional formats in a style sheet.
const LATER_THAN_CONDITIONAL: &[&str] = &["tableStyles", "colors", "extLst"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_extensions_are_not_those_of_the_workbook() {
        let extension = "<extLst><ext><x14:dxfs><x14:dxf/><x14:dxf/></x14:dxfs></ext></extLst>";
        let text = format!("<styleSheet><cellXfs><xf/></cellXfs>{extension}</styleSheet>");
        let mut styles = Styles::read(&text).unwrap();
        assert_eq!(styles.conditional("<dxf/>").unwrap(), 0);
        let written = styles.written().unwrap().unwrap();
        let list = format!(r#"<dxfs count="1"><dxf/></dxfs>{extension}"#);
        assert!(written.contains(&list), "{written}");
    }
}
