//! Writes column widths, conditional formats and charts into a sheet.

use std::collections::BTreeMap;

use quick_xml::events::Event;

use super::super::BookError;
use super::super::looks::{Anchor, Chart, ColumnLook, ConditionalFormat, Corner, SheetLookChanges};
use super::super::style::Styles;
use super::super::tree::{Element, RELATIONS, Space};
use super::super::xml::{Pieces, escaped};
use super::parts::Parts;
use super::relations::{relate, relations_of, resolve};
use super::workbook::{Workbook, append, highest};

/// Writes the looks of a sheet other than the formats of its cells.
pub(super) fn write_looks(
    part: &str,
    looks: &SheetLookChanges,
    parts: &mut Parts<'_>,
    workbook: &mut Workbook,
    styles: Option<&mut Styles>,
) -> Result<(), BookError> {
    let Some(mut text) = parts.text(part)? else {
        return Ok(());
    };
    if !looks.columns.is_empty() {
        text = with_columns(&text, &looks.columns)?;
    }
    if let (false, Some(styles)) = (looks.conditional.is_empty(), styles) {
        text = with_conditional(&text, &looks.conditional, styles)?;
    }
    if !looks.charts.is_empty() {
        text = with_charts(text, part, &looks.charts, parts, workbook)?;
    }
    parts.put(part, text);
    Ok(())
}

/// Rewrites the list of columns: one entry for each changed column, and the others as they were.
fn with_columns(text: &str, changed: &BTreeMap<u32, ColumnLook>) -> Result<String, BookError> {
    let (without, old) = cut_child(text, "cols")?;
    let mut columns: BTreeMap<u32, Element> = BTreeMap::new();
    let old = match old {
        Some(raw) => Element::fragment(&raw)?.children,
        None => Vec::new(),
    };
    for column in old {
        let number = |name: &str| column.attribute(name).and_then(|at| at.parse::<u32>().ok());
        let (Some(mut first), Some(last)) = (number("min"), number("max")) else {
            continue;
        };
        // Split the entry around the columns that change.
        for at in changed.range(first..=last.max(first)).map(|(at, _)| *at) {
            if at > first {
                columns.insert(first, spanning(&column, first, at - 1));
            }
            columns.insert(at, spanning(&column, at, at));
            first = at + 1;
        }
        if first <= last {
            columns.insert(first, spanning(&column, first, last));
        }
    }
    for (at, look) in changed {
        let column = columns.entry(*at).or_insert_with(|| {
            let column = Element {
                name: "col".to_owned(),
                ..Element::default()
            };
            spanning(&column, *at, *at)
        });
        match look.width.as_str() {
            "" => {
                let is_other = |(name, _): &(String, String)| name != "customWidth";
                column.attributes.retain(is_other);
                column.set("width", DEFAULT_WIDTH);
            }
            width => {
                column.set("width", width);
                column.set("customWidth", "1");
            }
        }
        match look.is_hidden {
            true => column.set("hidden", "1"),
            false => column.attributes.retain(|(name, _)| name != "hidden"),
        }
    }
    let columns: String = columns.values().map(|column| column.written(&[])).collect();
    insert_child(&without, &format!("<cols>{columns}</cols>"), "cols")
}

fn spanning(column: &Element, first: u32, last: u32) -> Element {
    let mut column = column.clone();
    column.set("min", &first.to_string());
    column.set("max", &last.to_string());
    column
}

fn with_conditional(
    text: &str,
    added: &[ConditionalFormat],
    styles: &mut Styles,
) -> Result<String, BookError> {
    let mut priority = highest(text, "cfRule", "priority")?;
    let mut items = String::new();
    for conditional in added {
        let mut rule = conditional.rule.clone();
        priority += 1;
        rule.set("priority", &priority.to_string());
        if let Some(format) = &conditional.format {
            rule.set("dxfId", &styles.conditional(format)?.to_string());
        }
        items.push_str(&format!(
            r#"<conditionalFormatting sqref="{}">{}</conditionalFormatting>"#,
            escaped(&conditional.ranges),
            rule.written(&[])
        ));
    }
    insert_child(text, &items, "conditionalFormatting")
}

fn with_charts(
    mut text: String,
    part: &str,
    charts: &[Chart],
    parts: &mut Parts<'_>,
    workbook: &mut Workbook,
) -> Result<String, BookError> {
    let drawing = match drawing_of(&text, part, parts)? {
        Some(drawing) => drawing,
        None => {
            let drawing = free_name(parts, "xl/drawings/drawing");
            let id = relate(parts, part, "drawing", &drawing)?;
            let item = format!(r#"<drawing xmlns:r="{RELATIONS}" r:id="{id}"/>"#);
            text = insert_child(&text, &item, "drawing")?;
            let uri = Space::SheetDrawing.uri();
            let empty = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<xdr:wsDr xmlns:xdr=\"{uri}\"></xdr:wsDr>"
            );
            parts.put(&drawing, empty);
            workbook.add_type(&drawing, DRAWING_TYPE)?;
            drawing
        }
    };
    for chart in charts {
        let chart_part = free_name(parts, "xl/charts/chart");
        parts.put(&chart_part, chart.xml.clone());
        workbook.add_type(&chart_part, CHART_TYPE)?;
        let id = relate(parts, &drawing, "chart", &chart_part)?;
        let whole = parts.text(&drawing)?.unwrap_or_default();
        let number = highest(&whole, "cNvPr", "id")? + 1;
        parts.put(
            &drawing,
            append(&whole, "wsDr", &frame(chart, &id, number))?,
        );
    }
    Ok(text)
}

/// Returns the part with the drawings of a sheet, if it has one.
fn drawing_of(text: &str, part: &str, parts: &mut Parts<'_>) -> Result<Option<String>, BookError> {
    let Some(raw) = cut_child(text, "drawing")?.1 else {
        return Ok(None);
    };
    let unusable =
        || BookError::unwritable("the drawings of a sheet cannot be found; reject its chart");
    let id = Element::fragment(&raw)?.relation.ok_or_else(unusable)?;
    let relations = parts.text(&relations_of(part))?.ok_or_else(unusable)?;
    let relations = Element::parse(&relations)?;
    let found = relations
        .children
        .iter()
        .find(|found| found.attribute("Id") == Some(&id));
    let target = found.and_then(|found| found.attribute("Target"));
    let drawing = resolve(part, target.ok_or_else(unusable)?);
    match parts.has(&drawing) {
        true => Ok(Some(drawing)),
        false => Err(unusable()),
    }
}

fn free_name(parts: &Parts<'_>, start: &str) -> String {
    (1..)
        .map(|number| format!("{start}{number}.xml"))
        .find(|name| !parts.has(name))
        .unwrap_or_default()
}

/// Returns the frame of a chart, with its own declarations, because those of the drawing may have other prefixes.
fn frame(chart: &Chart, id: &str, number: u32) -> String {
    let corner = |name: &str, at: Corner| {
        format!(
            "<xdr:{name}><xdr:col>{}</xdr:col><xdr:colOff>{}</xdr:colOff><xdr:row>{}</xdr:row><xdr:rowOff>{}</xdr:rowOff></xdr:{name}>",
            at.column, at.column_offset, at.row, at.row_offset
        )
    };
    let size = |(x, y): (i64, i64)| format!(r#"<xdr:ext cx="{x}" cy="{y}"/>"#);
    let (tag, place) = match chart.anchor {
        Anchor::OneCell { from, size: of } => (
            "oneCellAnchor",
            format!("{}{}", corner("from", from), size(of)),
        ),
        Anchor::TwoCells { from, to } => (
            "twoCellAnchor",
            format!("{}{}", corner("from", from), corner("to", to)),
        ),
        Anchor::Absolute {
            at: (x, y),
            size: of,
        } => (
            "absoluteAnchor",
            format!(r#"<xdr:pos x="{x}" y="{y}"/>{}"#, size(of)),
        ),
    };
    let (xdr, a, c) = (
        Space::SheetDrawing.uri(),
        Space::Drawing.uri(),
        Space::Chart.uri(),
    );
    format!(
        r#"<xdr:{tag} xmlns:xdr="{xdr}" xmlns:a="{a}" xmlns:r="{RELATIONS}">{place}<xdr:graphicFrame macro=""><xdr:nvGraphicFramePr><xdr:cNvPr id="{number}" name="Chart {number}"/><xdr:cNvGraphicFramePr/></xdr:nvGraphicFramePr><xdr:xfrm><a:off x="0" y="0"/><a:ext cx="0" cy="0"/></xdr:xfrm><a:graphic><a:graphicData uri="{c}"><c:chart xmlns:c="{c}" r:id="{id}"/></a:graphicData></a:graphic></xdr:graphicFrame><xdr:clientData/></xdr:{tag}>"#
    )
}

/// Removes the first child of the root with this name, and returns it.
fn cut_child(text: &str, name: &str) -> Result<(String, Option<String>), BookError> {
    let mut out = String::with_capacity(text.len());
    let mut found = None;
    let mut pieces = Pieces::of(text);
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(element) if found.is_none() && element.local_name().as_ref() == name => {
                found = Some(format!("{}{}", piece.raw, pieces.rest_of(name)?));
            }
            Event::Empty(element) if found.is_none() && element.local_name().as_ref() == name => {
                found = Some(piece.raw.to_owned());
            }
            _ => out.push_str(piece.raw),
        }
    }
    Ok((out, found))
}

/// Inserts a child of a sheet before everything that has to come after it.
fn insert_child(text: &str, item: &str, name: &str) -> Result<String, BookError> {
    let at = ORDER.iter().position(|known| *known == name);
    let later = &ORDER[at.map_or(ORDER.len(), |at| at + 1)..];
    let mut out = String::with_capacity(text.len() + item.len());
    let mut is_done = false;
    let mut pieces = Pieces::of(text);
    while let Some(piece) = pieces.next()? {
        let is_later = |found: &str| later.contains(&found);
        match &piece.event {
            Event::Start(element) if !is_done && is_later(element.local_name().as_ref()) => {
                out.push_str(item);
                is_done = true;
            }
            Event::Empty(element) if !is_done && is_later(element.local_name().as_ref()) => {
                out.push_str(item);
                is_done = true;
            }
            Event::End(element) if !is_done && element.local_name().as_ref() == "worksheet" => {
                out.push_str(item);
                is_done = true;
            }
            // The children of these have names that occur in the order, too.
            Event::Start(element) if NESTED.contains(&element.local_name().as_ref()) => {
                let nested = element.local_name().as_ref().to_owned();
                out.push_str(piece.raw);
                out.push_str(pieces.rest_of(&nested)?);
                continue;
            }
            _ => {}
        }
        out.push_str(piece.raw);
    }
    match is_done {
        true => Ok(out),
        false => Err(BookError::unwritable("a sheet has no end")),
    }
}

/// The children of a sheet, in the order in which they have to be.
const ORDER: &[&str] = &[
    "sheetPr",
    "dimension",
    "sheetViews",
    "sheetFormatPr",
    "cols",
    "sheetData",
    "sheetCalcPr",
    "sheetProtection",
    "protectedRanges",
    "scenarios",
    "autoFilter",
    "sortState",
    "dataConsolidate",
    "customSheetViews",
    "mergeCells",
    "phoneticPr",
    "conditionalFormatting",
    "dataValidations",
    "hyperlinks",
    "printOptions",
    "pageMargins",
    "pageSetup",
    "headerFooter",
    "rowBreaks",
    "colBreaks",
    "customProperties",
    "cellWatches",
    "ignoredErrors",
    "smartTags",
    "drawing",
    "legacyDrawing",
    "legacyDrawingHF",
    "drawingHF",
    "picture",
    "oleObjects",
    "controls",
    "webPublishItems",
    "tableParts",
    "extLst",
];

/// Children that come early and may hold an `extLst` or a `pageSetup` of their own.
const NESTED: &[&str] = &[
    "sheetPr",
    "sheetViews",
    "customSheetViews",
    "autoFilter",
    "conditionalFormatting",
];
const DEFAULT_WIDTH: &str = "9.140625";
const DRAWING_TYPE: &str = "application/vnd.openxmlformats-officedocument.drawing+xml";
const CHART_TYPE: &str = "application/vnd.openxmlformats-officedocument.drawingml.chart+xml";
