//! Reads the looks of one sheet.

use std::collections::BTreeMap;
use std::sync::Arc;

use archie_agent::printable::{counted, summary_line};
use quick_xml::events::{BytesStart, Event};

use super::super::patch::parts::Parts;
use super::super::tree::Element;
use super::super::xml::{Pieces, attribute};
use super::super::{BookError, Place};
use super::allowed::kept;
use super::charts::{Chart, read_drawing};
use super::styles::{CellStyle, StyleSheet};
use crate::changes::reaches_out;

/// The looks of a sheet.
#[derive(Debug, Clone, Default)]
pub(super) struct SheetLooks {
    pub(super) name: String,
    /// Whether it is a sheet with cells; a sheet that consists of a chart is not.
    pub(super) has_cells: bool,
    /// Formats of cells that have another than the first one.
    pub(super) styles: BTreeMap<Place, Arc<CellStyle>>,
    /// Format of all other cells.
    pub(super) usual: Arc<CellStyle>,
    pub(super) columns: BTreeMap<u32, ColumnLook>,
    pub(super) conditional: Vec<ConditionalFormat>,
    /// How many rules the sheet has, including those that are left out.
    pub(super) rules: usize,
    pub(super) charts: Vec<Chart>,
    /// Everything else, as XML by what it is called: never carried over, but the person is told when it changes.
    pub(super) others: BTreeMap<&'static str, String>,
    /// Parts of what is carried over that cannot be, as text for the person.
    pub(super) left_out: Vec<String>,
}

/// Look of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ColumnLook {
    /// Width in characters, as it is written; empty for the default.
    pub(crate) width: String,
    pub(crate) is_hidden: bool,
}

/// A rule that formats cells by their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionalFormat {
    /// Ranges, separated by spaces.
    pub(crate) ranges: String,
    /// The rule as XML, without its priority and its format.
    pub(in super::super) rule: Element,
    /// The format as XML, if the rule has one.
    pub(crate) format: Option<String>,
}

impl SheetLooks {
    pub(super) fn read(
        name: &str,
        part: &str,
        styles: &StyleSheet,
        parts: &mut Parts<'_>,
        charts_room: &mut usize,
    ) -> Result<Self, BookError> {
        let mut sheet = Self {
            name: name.to_owned(),
            usual: styles.cells.first().cloned().unwrap_or_default(),
            ..Self::default()
        };
        let Some(text) = parts.text(part)? else {
            return Ok(sheet);
        };
        let mut drawing = None;
        let mut heights = String::new();
        let mut pieces = Pieces::of(&text);
        let mut is_inside = false;
        while let Some(piece) = pieces.next()? {
            let (element, is_empty) = match &piece.event {
                Event::Start(element) => (element, false),
                Event::Empty(element) => (element, true),
                _ => continue,
            };
            let tag = element.local_name().as_ref().to_owned();
            if !is_inside {
                sheet.has_cells = tag == "worksheet";
                is_inside = true;
                continue;
            }
            match tag.as_str() {
                "sheetData" => {}
                "row" => heights.push_str(&height(element)),
                "c" => {
                    sheet.cell(element, styles);
                    if !is_empty {
                        pieces.rest_of("c")?;
                    }
                }
                _ => {
                    let rest = match is_empty {
                        true => "",
                        false => pieces.rest_of(&tag)?,
                    };
                    let element = Element::fragment(&format!("{}{rest}", piece.raw))?;
                    if tag == "drawing" {
                        drawing = element.relation.clone();
                    }
                    sheet.child(&element, styles);
                }
            }
        }
        if !heights.is_empty() {
            sheet.others.insert("row heights", heights);
        }
        if sheet.rules > RULES_MAX {
            // First, because a long list is cut when it is shown.
            let what = format!(
                "{} beyond the first {RULES_MAX} of the sheet",
                counted(sheet.rules - RULES_MAX, "conditional format")
            );
            sheet.left_out.insert(0, what);
        }
        if let Some(relation) = drawing {
            let content = read_drawing(parts, part, &relation, charts_room)?;
            sheet.charts = content.charts;
            sheet.left_out.extend(content.left_out);
        }
        Ok(sheet)
    }

    fn cell(&mut self, element: &BytesStart<'_>, styles: &StyleSheet) {
        let style = attribute(element, "s").and_then(|style| style.parse::<usize>().ok());
        let place = attribute(element, "r").and_then(|at| Place::parse(&at));
        let style = style.and_then(|style| styles.cells.get(style));
        if let (Some(place), Some(style)) = (place, style)
            && *style != self.usual
        {
            self.styles.insert(place, style.clone());
        }
    }

    fn child(&mut self, element: &Element, styles: &StyleSheet) {
        match element.name.as_str() {
            "cols" => element
                .children
                .iter()
                .for_each(|column| self.column(column)),
            "conditionalFormatting" => self.conditional(element, styles),
            name => {
                if let Some((_, what)) = OTHERS.iter().find(|(known, _)| *known == name) {
                    let others = self.others.entry(what).or_default();
                    others.push_str(&element.written(&[]));
                }
            }
        }
    }

    fn column(&mut self, column: &Element) {
        let number = |name: &str| column.attribute(name).and_then(|at| at.parse::<u32>().ok());
        let (Some(first), Some(last)) = (number("min"), number("max")) else {
            return;
        };
        if last > super::super::COLUMNS_MAX {
            self.others
                .entry("widths of columns that no sheet has")
                .or_default()
                .push_str(&column.written(&[]));
            return;
        }
        if first == 0 || last < first || last - first >= COLUMNS_MAX {
            self.others
                .entry("widths of very many columns")
                .or_default()
                .push_str(&column.written(&[]));
            return;
        }
        let is_set = |name: &str| matches!(column.attribute(name), Some("1" | "true"));
        let width = column.attribute("width").filter(|_| is_set("customWidth"));
        let width = width.filter(|width| {
            width
                .parse::<f64>()
                .is_ok_and(|width| (0.0..=255.0).contains(&width))
        });
        let look = ColumnLook {
            width: width.unwrap_or_default().to_owned(),
            is_hidden: is_set("hidden"),
        };
        if look != ColumnLook::default() {
            (first..=last).for_each(|at| {
                self.columns.insert(at, look.clone());
            });
        }
    }

    fn conditional(&mut self, element: &Element, styles: &StyleSheet) {
        let ranges = element.attribute("sqref").unwrap_or_default().to_owned();
        let is_range = |range: &str| {
            let (first, last) = range.split_once(':').unwrap_or((range, range));
            Place::parse(first).is_some() && Place::parse(last).is_some()
        };
        let is_short = ranges.len() <= RANGES_BYTES_MAX;
        let are_ranges = is_short && !ranges.is_empty() && ranges.split(' ').all(is_range);
        for rule in &element.children {
            self.rules += 1;
            if self.rules > RULES_MAX {
                continue;
            }
            let format = rule.attribute("dxfId").and_then(|id| id.parse().ok());
            let format = format.and_then(|id: usize| styles.conditional.get(id));
            let kept = kept(rule).filter(|rule| rule.name == "cfRule");
            match kept.filter(|rule| are_ranges && is_inert(rule)) {
                Some(rule) => self.conditional.push(ConditionalFormat {
                    ranges: ranges.clone(),
                    rule,
                    format: format.filter(|format| !format.is_empty()).cloned(),
                }),
                None => {
                    let shown = summary_line(&ranges, RANGES_CHARS);
                    let why = match is_short {
                        true => "",
                        false => ", whose list of ranges is longer than 8 KB",
                    };
                    self.left_out
                        .push(format!("a conditional format on {shown}{why}"));
                }
            }
        }
    }
}

/// Returns whether no formula of a rule reaches outside the workbook.
fn is_inert(rule: &Element) -> bool {
    rule.all().iter().all(|element| {
        let value = element.attribute("val").unwrap_or_default();
        !reaches_out(&element.text) && !reaches_out(value)
    })
}

fn height(row: &BytesStart<'_>) -> String {
    let is_set = |name: &str| matches!(attribute(row, name).as_deref(), Some("1" | "true"));
    let text = |name: &str| attribute(row, name).unwrap_or_default();
    match is_set("customHeight") || is_set("hidden") {
        true => format!("{} {} {};", text("r"), text("ht"), text("hidden")),
        false => String::new(),
    }
}

/// Elements of a sheet that are not carried over, and what a person calls them.
const OTHERS: &[(&str, &str)] = &[
    ("sheetViews", "frozen panes or the view"),
    ("sheetProtection", "protection of the sheet"),
    ("autoFilter", "filters"),
    ("mergeCells", "merged cells"),
    ("dataValidations", "validation of input"),
    ("hyperlinks", "links"),
    ("pageSetup", "page setup"),
    ("headerFooter", "headers and footers"),
    ("legacyDrawing", "comments"),
    ("picture", "background picture"),
    ("oleObjects", "embedded objects"),
    ("controls", "controls"),
    ("tableParts", "tables"),
];
const COLUMNS_MAX: u32 = 1_024;
/// How many rules of conditional formats are read of a sheet.
const RULES_MAX: usize = 1_000;
const RANGES_BYTES_MAX: usize = 8 * 1_024;
const RANGES_CHARS: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet_with(rules: usize, ranges: &str) -> SheetLooks {
        let rule = r#"<cfRule type="expression"><formula>1</formula></cfRule>"#;
        let raw = format!(
            r#"<conditionalFormatting sqref="{ranges}">{}</conditionalFormatting>"#,
            rule.repeat(rules)
        );
        let mut sheet = SheetLooks::default();
        sheet.conditional(&Element::fragment(&raw).unwrap(), &StyleSheet::default());
        sheet
    }

    #[test]
    fn rules_and_ranges_beyond_the_limits_are_left_out() {
        let sheet = sheet_with(RULES_MAX + 5, "A1:B2");
        assert_eq!(sheet.conditional.len(), RULES_MAX);
        assert_eq!(sheet.rules, RULES_MAX + 5);
        let long = "A1 ".repeat(RANGES_BYTES_MAX);
        let sheet = sheet_with(1, &long);
        assert!(sheet.conditional.is_empty());
        assert!(sheet.left_out[0].ends_with("longer than 8 KB"));
        assert!(sheet.left_out[0].len() < 250);
    }

    #[test]
    fn columns_that_no_sheet_has_are_left_out() {
        let mut sheet = SheetLooks::default();
        let raw = r#"<col min="16384" max="16385" width="9" customWidth="1"/>"#;
        sheet.column(&Element::fragment(raw).unwrap());
        assert!(sheet.columns.is_empty());
        assert_eq!(sheet.others.len(), 1);
    }
}
