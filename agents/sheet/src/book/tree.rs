//! A tree of XML elements, for content that is rebuilt from a list of known elements instead of being copied.
//!
//! The source may be hostile: depth and number of elements are limited, prefixes are resolved, and an attribute with a prefix
//! survives only as the [`relation`](Element::relation) of its element.

use std::collections::BTreeSet;

use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};

use super::BookError;
use super::xml::escaped;

/// An element with everything in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) space: Space,
    pub(super) name: String,
    /// Attributes without a prefix, in order.
    pub(super) attributes: Vec<(String, String)>,
    /// Id of the relationship that the element refers to (`r:id`), if it does.
    pub(super) relation: Option<String>,
    pub(super) children: Vec<Self>,
    pub(super) text: String,
}

/// Namespace of an element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Space {
    /// Workbooks, sheets and styles.
    #[default]
    Main,
    /// Charts.
    Chart,
    /// Shapes and text, in charts and drawings.
    Drawing,
    /// Where a drawing is in a sheet.
    SheetDrawing,
    Other,
}

impl Space {
    fn of(found: &ResolveResult<'_>) -> Self {
        match found {
            ResolveResult::Bound(Namespace(MAIN)) => Self::Main,
            ResolveResult::Bound(Namespace(CHART)) => Self::Chart,
            ResolveResult::Bound(Namespace(DRAWING)) => Self::Drawing,
            ResolveResult::Bound(Namespace(SHEET_DRAWING)) => Self::SheetDrawing,
            _ => Self::Other,
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Main | Self::Other => "",
            Self::Chart => "c:",
            Self::Drawing => "a:",
            Self::SheetDrawing => "xdr:",
        }
    }
}

impl Element {
    /// Parses a part.
    pub(super) fn parse(text: &str) -> Result<Self, BookError> {
        let mut reader = NsReader::from_str(text);
        let mut open: Vec<Self> = vec![Self::default()];
        let mut room = ELEMENTS_MAX;
        loop {
            let (space, event) = reader
                .read_resolved_event()
                .map_err(BookError::unreadable)?;
            let space = Space::of(&space);
            let top = open.len() - 1;
            match event {
                Event::Start(start) => {
                    room = room.checked_sub(1).ok_or_else(too_large)?;
                    open.push(Self::started(space, &start)?);
                    if open.len() > DEPTH_MAX {
                        return Err(too_large());
                    }
                }
                Event::Empty(start) => {
                    room = room.checked_sub(1).ok_or_else(too_large)?;
                    open[top].children.push(Self::started(space, &start)?);
                }
                Event::End(_) => {
                    let (Some(mut done), true) = (open.pop(), top > 0) else {
                        return Err(BookError::unreadable("an element ends that never began"));
                    };
                    let text = quick_xml::escape::unescape(&done.text);
                    done.text = text.map_err(BookError::unreadable)?.into_owned();
                    open[top - 1].children.push(done);
                }
                Event::Text(text) => open[top].text.push_str(text.as_ref()),
                Event::GeneralRef(name) => {
                    let name: &str = name.as_ref();
                    open[top].text.push_str(&format!("&{name};"));
                }
                Event::CData(text) => open[top].text.push_str(&escaped(text.as_ref())),
                Event::Eof => break,
                _ => {}
            }
        }
        match (
            open.len(),
            open.pop().and_then(|mut root| root.children.pop()),
        ) {
            (1, Some(root)) => Ok(root),
            _ => Err(BookError::unreadable("a part has no complete element")),
        }
    }

    /// Parses an element of a sheet or a style sheet, whose prefixes are declared outside of it.
    pub(super) fn fragment(raw: &str) -> Result<Self, BookError> {
        let mut outer = Self::parse(&format!(
            r#"<outer xmlns="{MAIN}" xmlns:r="{RELATIONS}">{raw}</outer>"#
        ))?;
        let found = outer.children.pop();
        found.ok_or_else(|| BookError::unreadable("an element is missing"))
    }

    fn started(space: Space, start: &BytesStart<'_>) -> Result<Self, BookError> {
        let mut element = Self {
            space,
            name: start.local_name().as_ref().to_owned(),
            ..Self::default()
        };
        if !is_name(&element.name) {
            return Err(BookError::unreadable("the name of an element is not valid"));
        }
        let mut known = BTreeSet::new();
        for attribute in start.attributes().with_checks(false).flatten() {
            let key: &str = attribute.key.as_ref();
            if !known.insert(key.to_owned()) {
                return Err(BookError::unreadable("an element has an attribute twice"));
            }
            let (name, prefix) = attribute.key.decompose();
            if prefix.is_none() && !is_name(name.as_ref()) {
                return Err(BookError::unreadable(
                    "the name of an attribute is not valid",
                ));
            }
            let Ok(value) = quick_xml::escape::unescape(&attribute.value) else {
                continue;
            };
            match prefix {
                None if name.as_ref() != "xmlns" => element
                    .attributes
                    .push((name.as_ref().to_owned(), value.into_owned())),
                Some(_) if name.as_ref() == "id" => element.relation = Some(value.into_owned()),
                _ => {}
            }
        }
        Ok(element)
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        match self.attributes.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value.to_owned(),
            None => self.attributes.push((name.to_owned(), value.to_owned())),
        }
    }

    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns this element and everything in it, in document order.
    pub(super) fn all(&self) -> Vec<&Self> {
        let (mut found, mut open) = (Vec::new(), vec![self]);
        while let Some(element) = open.pop() {
            found.push(element);
            open.extend(element.children.iter().rev());
        }
        found
    }

    /// Returns the element as XML. Every namespace but the main one is written with its usual prefix, which `declared` declares
    /// on this element.
    pub(super) fn written(&self, declared: &[Space]) -> String {
        let mut out = String::new();
        self.write(&mut out, declared);
        out
    }

    fn write(&self, out: &mut String, declared: &[Space]) {
        let name = format!("{}{}", self.space.prefix(), self.name);
        out.push_str(&format!("<{name}"));
        for space in declared {
            let prefix = space.prefix().trim_end_matches(':');
            out.push_str(&format!(r#" xmlns:{prefix}="{}""#, space.uri()));
        }
        for (attribute, value) in &self.attributes {
            out.push_str(&format!(r#" {attribute}="{}""#, escaped(value)));
        }
        if self.children.is_empty() && self.text.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        match self.children.is_empty() {
            true => out.push_str(&escaped(&self.text)),
            false => self.children.iter().for_each(|child| child.write(out, &[])),
        }
        out.push_str(&format!("</{name}>"));
    }
}

impl Space {
    pub(super) fn uri(self) -> &'static str {
        match self {
            Self::Main | Self::Other => MAIN,
            Self::Chart => CHART,
            Self::Drawing => DRAWING,
            Self::SheetDrawing => SHEET_DRAWING,
        }
    }
}

/// Returns whether a name, without its prefix, is one that the format uses. Names are written as they are, so no other may pass.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn too_large() -> BookError {
    BookError::refused("one of its parts has too many elements, or too many within each other")
}

const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const CHART: &str = "http://schemas.openxmlformats.org/drawingml/2006/chart";
const DRAWING: &str = "http://schemas.openxmlformats.org/drawingml/2006/main";
const SHEET_DRAWING: &str = "http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing";
pub(super) const RELATIONS: &str =
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const ELEMENTS_MAX: usize = 500_000;
const DEPTH_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_not_be_written_as_they_were_read_are_refused() {
        let good = Element::fragment(r#"<col min="1" r:id="rId1" max="2"/>"#).unwrap();
        assert_eq!(good.attribute("max"), Some("2"));
        for wrong in [
            r#"<col min="1" min="2"/>"#,
            r#"<col mi&n="1"/>"#,
            r#"<col mi"n="1"/>"#,
            "<c&l/>",
            "<c-l/>",
        ] {
            Element::fragment(wrong).expect_err(wrong);
        }
    }
}
