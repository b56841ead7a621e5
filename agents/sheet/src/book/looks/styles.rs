//! Reads a style sheet into the format of each style, part by part.

use std::collections::BTreeMap;
use std::sync::Arc;

use quick_xml::events::Event;

use super::super::BookError;
use super::super::style::{Dress, FIRST_OWN, NumberFormat};
use super::super::xml::{Pieces, attribute};
use super::allowed::rebuilt;

/// Format of a cell. All parts but the first are XML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CellStyle {
    pub(super) format: NumberFormat,
    font: String,
    fill: String,
    border: String,
    /// Empty if the style has none.
    alignment: String,
}

impl Default for CellStyle {
    fn default() -> Self {
        Self {
            format: NumberFormat::BuiltIn(0),
            font: String::new(),
            fill: String::new(),
            border: String::new(),
            alignment: String::new(),
        }
    }
}

impl CellStyle {
    /// Returns the parts that differ from another style.
    pub(super) fn changed_from(&self, old: &Self) -> Dress {
        let changed = |new: &String, old: &String| (new != old).then(|| new.clone());
        Dress {
            format: (self.format != old.format).then(|| self.format.clone()),
            font: changed(&self.font, &old.font),
            fill: changed(&self.fill, &old.fill),
            border: changed(&self.border, &old.border),
            alignment: changed(&self.alignment, &old.alignment),
        }
    }
}

/// The formats of a workbook.
#[derive(Debug, Clone, Default)]
pub(super) struct StyleSheet {
    /// Formats of cells, by the index that cells refer to.
    pub(super) cells: Vec<Arc<CellStyle>>,
    /// Formats that conditional formats refer to, as XML.
    pub(super) conditional: Vec<String>,
}

impl StyleSheet {
    pub(super) fn read(text: &str) -> Result<Self, BookError> {
        let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut codes: BTreeMap<u32, String> = BTreeMap::new();
        let mut pieces = Pieces::of(text);
        let mut list = String::new();
        while let Some(piece) = pieces.next()? {
            let (element, is_empty) = match &piece.event {
                Event::Start(element) => (element, false),
                Event::Empty(element) => (element, true),
                _ => continue,
            };
            let name = element.local_name().as_ref().to_owned();
            // Extensions have lists with the same names.
            if name == "extLst" && !is_empty {
                pieces.rest_of(&name)?;
                continue;
            }
            if LISTS.iter().any(|(known, _)| *known == name) {
                list = if is_empty { String::new() } else { name };
                continue;
            }
            let is_item = LISTS.contains(&(list.as_str(), name.as_str()));
            if !is_item {
                continue;
            }
            if let ("numFmt", Some(id), Some(code)) = (
                name.as_str(),
                attribute(element, "numFmtId").and_then(|id| id.parse().ok()),
                attribute(element, "formatCode"),
            ) {
                codes.insert(id, code);
            }
            let raw = match is_empty {
                true => piece.raw.to_owned(),
                false => format!("{}{}", piece.raw, pieces.rest_of(&name)?),
            };
            lists.entry(list.clone()).or_default().push(raw);
        }
        let take = |name: &str| lists.get(name).cloned().unwrap_or_default();
        let whole = |name: &str| -> Result<Vec<String>, BookError> {
            take(name).iter().map(|raw| rebuilt(raw)).collect()
        };
        let (fonts, fills, borders) = (whole("fonts")?, whole("fills")?, whole("borders")?);
        let cells = take("cellXfs");
        let cells = cells.iter().map(|raw| {
            let xf = super::Element::fragment(raw)?;
            let number = |name: &str| -> usize {
                let value = xf.attribute(name).and_then(|value| value.parse().ok());
                value.unwrap_or_default()
            };
            let at = |list: &[String], name: &str| list.get(number(name)).cloned();
            let id = u32::try_from(number("numFmtId")).unwrap_or_default();
            let alignment = xf.child("alignment").and_then(super::allowed::kept);
            Ok(Arc::new(CellStyle {
                format: match codes.get(&id) {
                    Some(code) => NumberFormat::Code(code.clone()),
                    // A format that the list does not have is shown as no format.
                    None if id >= FIRST_OWN => NumberFormat::BuiltIn(0),
                    None => NumberFormat::BuiltIn(id),
                },
                font: at(&fonts, "fontId").unwrap_or_default(),
                fill: at(&fills, "fillId").unwrap_or_default(),
                border: at(&borders, "borderId").unwrap_or_default(),
                alignment: alignment
                    .filter(|alignment| !alignment.attributes.is_empty())
                    .map(|alignment| alignment.written(&[]))
                    .unwrap_or_default(),
            }))
        });
        Ok(Self {
            cells: cells.collect::<Result<_, BookError>>()?,
            conditional: whole("dxfs")?,
        })
    }
}

/// The lists of a style sheet, and what they are lists of.
const LISTS: &[(&str, &str)] = &[
    ("numFmts", "numFmt"),
    ("fonts", "font"),
    ("fills", "fill"),
    ("borders", "border"),
    ("cellStyleXfs", "xf"),
    ("cellXfs", "xf"),
    ("cellStyles", "cellStyle"),
    ("dxfs", "dxf"),
    ("tableStyles", "tableStyle"),
    ("colors", "color"),
    ("extLst", "ext"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_number_formats_and_extensions_are_not_read() {
        let text = r#"<styleSheet><cellXfs><xf numFmtId="14"/><xf numFmtId="170"/></cellXfs><dxfs><dxf><font><b/></font></dxf></dxfs><extLst><ext><x14:dxfs><x14:dxf/></x14:dxfs></ext></extLst></styleSheet>"#;
        let sheet = StyleSheet::read(text).unwrap();
        assert_eq!(sheet.cells[0].format, NumberFormat::BuiltIn(14));
        assert_eq!(sheet.cells[1].format, NumberFormat::BuiltIn(0));
        assert_eq!(sheet.conditional.len(), 1);
    }
}
