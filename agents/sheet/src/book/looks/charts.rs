//! Charts: read from a drawing, rebuilt without anything that refers to something outside of the chart's own workbook.

use std::collections::BTreeSet;

use archie_agent::printable::counted;

use super::super::patch::parts::Parts;
use super::super::patch::relations::{relations_of, resolve};
use super::super::tree::{Element, Space};
use super::super::{BookError, Place};
use crate::changes::reaches_out;

/// A chart, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chart {
    pub(crate) anchor: Anchor,
    /// The chart part. It refers to no other part.
    pub(crate) xml: String,
    /// Kind, title and position, as text for the person.
    pub(crate) about: String,
    /// Names of the sheets whose cells it shows.
    pub(crate) shows: BTreeSet<String>,
    /// The references to the cells it shows, as they are written.
    pub(crate) cells: BTreeSet<String>,
}

/// Where a drawing is in its sheet. Columns and rows count from 0, lengths are in EMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// Its upper left corner, and its size.
    OneCell { from: Corner, size: (i64, i64) },
    /// Its upper left and its lower right corner.
    TwoCells { from: Corner, to: Corner },
    /// Its position in the sheet, and its size.
    Absolute { at: (i64, i64), size: (i64, i64) },
}

/// A corner of a drawing: a cell, and an offset in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Corner {
    pub(crate) column: u32,
    pub(crate) column_offset: i64,
    pub(crate) row: u32,
    pub(crate) row_offset: i64,
}

/// What a sheet's drawing holds.
#[derive(Debug, Clone, Default)]
pub(super) struct DrawingContent {
    pub(super) charts: Vec<Chart>,
    /// What cannot be carried over, as text for the person.
    pub(super) left_out: Vec<String>,
}

/// Reads the drawing of a sheet. `room` is how many charts may still be read; a chart counts as often as it is shown.
pub(super) fn read_drawing(
    parts: &mut Parts<'_>,
    sheet_part: &str,
    relation: &str,
    room: &mut usize,
) -> Result<DrawingContent, BookError> {
    let mut found = DrawingContent::default();
    let Some(part) = related(parts, sheet_part, relation)? else {
        return Ok(found);
    };
    let Some(text) = parts.text(&part)? else {
        return Ok(found);
    };
    let mut excess = 0_usize;
    for element in Element::parse(&text)?.children {
        let Some(anchor) = Anchor::read(&element) else {
            found.left_out.push("a drawing".to_owned());
            continue;
        };
        let all = element.all();
        let chart = all.iter().find(|element| {
            element.name == "chart" && element.space == Space::Chart && element.relation.is_some()
        });
        let Some(relation) = chart.and_then(|chart| chart.relation.as_deref()) else {
            let is_picture = all.iter().any(|element| element.name == "pic");
            let what = if is_picture { "a picture" } else { "a drawing" };
            found.left_out.push(format!("{what} at {}", anchor.place()));
            continue;
        };
        let Some(left) = room.checked_sub(1) else {
            excess += 1;
            continue;
        };
        *room = left;
        let chart_part = related(parts, &part, relation)?;
        let text = chart_part.map(|part| parts.text(&part)).transpose()?;
        match text.flatten() {
            Some(text) => match Chart::read(&text, anchor)? {
                Ok(chart) => found.charts.push(chart),
                Err(why) => found.left_out.push(why),
            },
            None => found.left_out.push(format!(
                "a chart at {}, whose content is missing",
                anchor.place()
            )),
        }
    }
    if excess > 0 {
        // First, because a long list is cut when it is shown.
        let what = format!(
            "{} beyond the first {CHARTS_MAX} of the workbook",
            counted(excess, "chart")
        );
        found.left_out.insert(0, what);
    }
    Ok(found)
}

fn related(parts: &mut Parts<'_>, part: &str, relation: &str) -> Result<Option<String>, BookError> {
    let Some(text) = parts.text(&relations_of(part))? else {
        return Ok(None);
    };
    let relations = Element::parse(&text)?;
    let found = relations.children.iter().find(|found| {
        found.attribute("Id") == Some(relation) && found.attribute("TargetMode") != Some("External")
    });
    Ok(found
        .and_then(|found| found.attribute("Target"))
        .map(|target| resolve(part, target)))
}

impl Chart {
    /// Rebuilds a chart. The inner error says why it cannot be carried over, as text for the person.
    fn read(text: &str, anchor: Anchor) -> Result<Result<Self, String>, BookError> {
        let whole = Element::parse(text)?;
        let kept = match kept(&whole) {
            Some(kept) if kept.name == "chartSpace" => kept,
            _ => {
                return Ok(Err(format!(
                    "a chart at {}, which is not one",
                    anchor.place()
                )));
            }
        };
        let about = about(&kept, anchor);
        let (mut shows, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for formula in kept.all().iter().filter(|element| element.name == "f") {
            match reference(&formula.text) {
                Some(sheet) => {
                    shows.insert(sheet);
                    cells.insert(formula.text.clone());
                }
                None => {
                    return Ok(Err(format!(
                        "{about}, which refers to something else than cells of the workbook"
                    )));
                }
            }
        }
        let xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n{}",
            kept.written(&[Space::Chart, Space::Drawing])
        );
        Ok(Ok(Self {
            anchor,
            xml,
            about,
            shows,
            cells,
        }))
    }
}

/// Returns an element of a chart without what refers to other parts or addresses.
fn kept(element: &Element) -> Option<Element> {
    let is_known = matches!(element.space, Space::Chart | Space::Drawing);
    if !is_known || DROPPED.contains(&element.name.as_str()) {
        return None;
    }
    Some(Element {
        relation: None,
        children: element.children.iter().filter_map(kept).collect(),
        ..element.clone()
    })
}

/// Returns the sheet of a reference such as `'Sales 2026'!$A$1:$B$5`; `None` for every other formula.
fn reference(formula: &str) -> Option<String> {
    let (sheet, cells) = formula.rsplit_once('!')?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let sheet = match sheet.strip_prefix('\'') {
        Some(quoted) => {
            let quoted = quoted.strip_suffix('\'')?;
            // A single quote would end the name, and something else would follow it.
            if quoted.replace("''", "").contains('\'') {
                return None;
            }
            quoted.replace("''", "'")
        }
        None if sheet.chars().all(is_plain) => sheet.to_owned(),
        None => return None,
    };
    let is_name = !sheet.is_empty() && !sheet.contains(['[', ']', '\\', '/', ':', '|']);
    let (first, last) = cells.split_once(':').unwrap_or((cells, cells));
    let is_range = is_cell(first) && is_cell(last);
    (is_name && is_range && !reaches_out(formula)).then_some(sheet)
}

/// Returns whether a text is a cell, such as `B7` or `$B$7`, and nothing else.
fn is_cell(text: &str) -> bool {
    let bare = text.strip_prefix('$').unwrap_or(text);
    let digits = bare.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let digits = digits.strip_prefix('$').unwrap_or(digits);
    digits.chars().all(|c| c.is_ascii_digit()) && Place::parse(text).is_some()
}

fn about(chart: &Element, anchor: Anchor) -> String {
    let all = chart.all();
    let kind = all.iter().find_map(|element| {
        let kind = element.name.strip_suffix("Chart")?;
        (element.space == Space::Chart).then(|| kind.trim_end_matches("3D").to_lowercase())
    });
    let title = all.iter().find(|element| element.name == "title");
    let title: String = title
        .map(|title| title.all())
        .unwrap_or_default()
        .iter()
        .filter(|element| element.name == "t")
        .map(|element| element.text.as_str())
        .collect();
    let title = match title.trim() {
        "" => String::new(),
        title => format!(" {:?}", title.chars().take(TITLE_CHARS).collect::<String>()),
    };
    let kind = kind.map(|kind| format!("{kind} ")).unwrap_or_default();
    format!("a {kind}chart{title} at {}", anchor.place())
}

impl Anchor {
    fn read(element: &Element) -> Option<Self> {
        let number = |of: &Element, name: &str| -> Option<i64> { of.attribute(name)?.parse().ok() };
        let pair = |name: &str, one: &str, other: &str| {
            let of = element.child(name)?;
            Some((number(of, one)?, number(of, other)?))
        };
        let corner = |name: &str| {
            let of = element.child(name)?;
            let text = |name: &str| Some(of.child(name)?.text.trim().to_owned());
            Some(Corner {
                column: text("col")?.parse().ok().filter(|at| *at < 16_384)?,
                column_offset: text("colOff")?.parse().ok()?,
                row: text("row")?.parse().ok().filter(|at| *at < 1_048_576)?,
                row_offset: text("rowOff")?.parse().ok()?,
            })
        };
        match element.name.as_str() {
            "oneCellAnchor" => Some(Self::OneCell {
                from: corner("from")?,
                size: pair("ext", "cx", "cy")?,
            }),
            "twoCellAnchor" => Some(Self::TwoCells {
                from: corner("from")?,
                to: corner("to")?,
            }),
            "absoluteAnchor" => Some(Self::Absolute {
                at: pair("pos", "x", "y")?,
                size: pair("ext", "cx", "cy")?,
            }),
            _ => None,
        }
    }

    /// Returns the cell of its upper left corner.
    pub(crate) fn place(&self) -> Place {
        match self {
            Self::OneCell { from, .. } | Self::TwoCells { from, .. } => Place {
                row: from.row + 1,
                column: from.column + 1,
            },
            Self::Absolute { .. } => Place { row: 1, column: 1 },
        }
    }
}

/// Elements of charts that refer to other parts, to files or to addresses.
const DROPPED: &[&str] = &[
    "externalData",
    "userShapes",
    "pivotSource",
    "printSettings",
    "extLst",
    "blip",
    "blipFill",
    "hlinkClick",
    "hlinkHover",
    "hlinkMouseOver",
    "snd",
];
const TITLE_CHARS: usize = 60;

/// How many charts of a workbook are read.
pub(super) const CHARTS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use super::super::super::tree::RELATIONS;
    use super::*;

    #[test]
    fn only_references_to_cells_of_the_workbook_are_followed() {
        for (formula, sheet) in [
            ("'Sales'!$B$2:$B$3", "Sales"),
            ("Sales!B1", "Sales"),
            ("'It''s 2026'!$A$1", "It's 2026"),
            ("Data_1.x!$A1:B$2", "Data_1.x"),
        ] {
            assert_eq!(reference(formula), Some(sheet.to_owned()), "{formula}");
        }
        for other in [
            "[1]Sales!A1",
            r"'\\host\share\[x.xlsx]S'!A1",
            "cmd|' /C calc'!A0",
            "WEBSERVICE(\"http://x\")",
            "Sales!A1+1",
            "Data!A1+WEBSERVICE(Data!B1)+Data!A1",
            "'Data'!A1+WEBSERVICE('Data'!A1",
            "'Data'!A1+WEBSERVICE(Data!B1)+'Data'!A1",
            "Data!A$$1",
            "Data!A1$",
            "{1,2}",
            "",
        ] {
            assert_eq!(reference(other), None, "{other}");
        }
    }

    #[test]
    fn a_chart_counts_as_often_as_it_is_shown() {
        let (xdr, c) = (Space::SheetDrawing.uri(), Space::Chart.uri());
        let anchor = r#"<xdr:absoluteAnchor><xdr:pos x="0" y="0"/><xdr:ext cx="1" cy="1"/><c:chart r:id="r1"/></xdr:absoluteAnchor>"#;
        let relation = |target: &str| {
            format!(r#"<Relationships><Relationship Id="r1" Target="{target}"/></Relationships>"#)
        };
        let drawing = format!(
            r#"<xdr:wsDr xmlns:xdr="{xdr}" xmlns:c="{c}" xmlns:r="{RELATIONS}">{}</xdr:wsDr>"#,
            anchor.repeat(5)
        );
        let mut package = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in [
            ("x/_rels/sheet.xml.rels", relation("drawing.xml")),
            ("x/drawing.xml", drawing),
            ("x/_rels/drawing.xml.rels", relation("chart.xml")),
            ("x/chart.xml", format!(r#"<chartSpace xmlns="{c}"/>"#)),
        ] {
            let options = zip::write::SimpleFileOptions::default();
            package.start_file(name, options).unwrap();
            package.write_all(text.as_bytes()).unwrap();
        }
        let package = package.finish().unwrap().into_inner();
        let mut parts = Parts::open(&package).unwrap();
        let mut room = 3;
        let found = read_drawing(&mut parts, "x/sheet.xml", "r1", &mut room).unwrap();
        assert_eq!((found.charts.len(), room), (3, 0));
        assert_eq!(
            found.left_out,
            ["2 charts beyond the first 100 of the workbook"]
        );
    }

    #[test]
    fn what_refers_to_other_parts_is_dropped() {
        let text = r#"<chartSpace xmlns="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:mc="http://evil.example"><mc:AlternateContent><x/></mc:AlternateContent><chart><plotArea><barChart><ser><val><numRef><f>Sales!$A$1</f></numRef></val><spPr><a:blipFill><a:blip r:embed="rId9"/></a:blipFill></spPr></ser></barChart></plotArea></chart><externalData r:id="rId1"/><userShapes r:id="rId2"/></chartSpace>"#;
        let anchor = Anchor::Absolute {
            at: (0, 0),
            size: (1, 1),
        };
        let chart = Chart::read(text, anchor).unwrap().unwrap();
        assert_eq!(chart.about, "a bar chart at A1");
        for dropped in ["externalData", "userShapes", "blip", "evil", "rId"] {
            assert!(!chart.xml.contains(dropped), "{}", chart.xml);
        }
        assert!(chart.xml.contains("<c:f>Sales!$A$1</c:f>"), "{}", chart.xml);
    }
}
