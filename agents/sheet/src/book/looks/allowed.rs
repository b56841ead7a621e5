//! The elements and attributes of styles and conditional formats that may be carried over. Everything else is dropped.

use super::super::BookError;
use super::super::tree::{Element, Space};

/// Returns the element with only what is on the list, or `None` if it is not on the list itself.
pub(super) fn kept(element: &Element) -> Option<Element> {
    if element.space != Space::Main {
        return None;
    }
    let (_, attributes) = ALLOWED.iter().find(|(name, _)| *name == element.name)?;
    let is_kept = |(name, _): &&(String, String)| attributes.contains(&name.as_str());
    Some(Element {
        name: element.name.clone(),
        attributes: element.attributes.iter().filter(is_kept).cloned().collect(),
        children: element.children.iter().filter_map(kept).collect(),
        text: match element.name.as_str() {
            "formula" => element.text.clone(),
            _ => String::new(),
        },
        ..Element::default()
    })
}

/// Parses an element, and returns it as XML with only what is on the list; empty if it is not on the list itself.
pub(super) fn rebuilt(raw: &str) -> Result<String, BookError> {
    let element = Element::fragment(raw)?;
    Ok(kept(&element).map_or_else(String::new, |element| element.written(&[])))
}

const COLOR: &[&str] = &["rgb", "theme", "indexed", "tint", "auto"];
const VALUE: &[&str] = &["val"];
const SIDE: &[&str] = &["style"];

const ALLOWED: &[(&str, &[&str])] = &[
    ("font", &[]),
    ("b", VALUE),
    ("i", VALUE),
    ("u", VALUE),
    ("strike", VALUE),
    ("outline", VALUE),
    ("shadow", VALUE),
    ("condense", VALUE),
    ("extend", VALUE),
    ("sz", VALUE),
    ("name", VALUE),
    ("family", VALUE),
    ("charset", VALUE),
    ("scheme", VALUE),
    ("vertAlign", VALUE),
    ("color", COLOR),
    ("fill", &[]),
    ("patternFill", &["patternType"]),
    ("fgColor", COLOR),
    ("bgColor", COLOR),
    (
        "gradientFill",
        &["type", "degree", "left", "right", "top", "bottom"],
    ),
    ("stop", &["position"]),
    ("border", &["diagonalUp", "diagonalDown", "outline"]),
    ("left", SIDE),
    ("right", SIDE),
    ("top", SIDE),
    ("bottom", SIDE),
    ("start", SIDE),
    ("end", SIDE),
    ("diagonal", SIDE),
    ("vertical", SIDE),
    ("horizontal", SIDE),
    (
        "alignment",
        &[
            "horizontal",
            "vertical",
            "textRotation",
            "wrapText",
            "shrinkToFit",
            "indent",
            "relativeIndent",
            "justifyLastLine",
            "readingOrder",
        ],
    ),
    ("numFmt", &["numFmtId", "formatCode"]),
    ("dxf", &[]),
    (
        "cfRule",
        &[
            "type",
            "stopIfTrue",
            "aboveAverage",
            "percent",
            "bottom",
            "operator",
            "text",
            "timePeriod",
            "rank",
            "stdDev",
            "equalAverage",
        ],
    ),
    ("formula", &[]),
    ("colorScale", &[]),
    ("dataBar", &["minLength", "maxLength", "showValue"]),
    ("iconSet", &["iconSet", "showValue", "percent", "reverse"]),
    ("cfvo", &["type", "val", "gte"]),
];
