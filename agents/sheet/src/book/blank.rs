//! Creates workbooks from nothing.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::patch::{NewCell, SheetEdits, patch};
use super::{BookError, Content, Place};

/// Returns a workbook of these sheets. The same cells always give the same bytes.
pub fn workbook_of(sheets: &[(&str, BTreeMap<Place, Content>)]) -> Result<Vec<u8>, BookError> {
    let edits: Vec<_> = sheets
        .iter()
        .map(|(name, cells)| {
            let cells = cells.iter().map(|(place, content)| {
                let cell = NewCell {
                    content: Some(content.clone()),
                    ..NewCell::default()
                };
                (*place, cell)
            });
            SheetEdits {
                name: (*name).to_owned(),
                is_new: true,
                cells: cells.collect(),
                ..SheetEdits::default()
            }
        })
        .collect();
    patch(&blank()?, &edits)
}

/// Returns a package without sheets, which no program opens before it has some.
fn blank() -> Result<Vec<u8>, BookError> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().last_modified_time(zip::DateTime::default());
    for (name, text) in PARTS {
        out.start_file(*name, options)
            .map_err(BookError::unwritable)?;
        out.write_all(text.as_bytes())
            .map_err(BookError::unwritable)?;
    }
    Ok(out.finish().map_err(BookError::unwritable)?.into_inner())
}

const PARTS: &[(&str, &str)] = &[
    (
        "[Content_Types].xml",
        r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/></Types>"#,
    ),
    (
        "_rels/.rels",
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#,
    ),
    (
        "xl/workbook.xml",
        r#"<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheets></sheets></workbook>"#,
    ),
    (
        "xl/_rels/workbook.xml.rels",
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/></Relationships>"#,
    ),
    (
        "xl/styles.xml",
        r#"<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts><fills count="1"><fill><patternFill patternType="none"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/></cellXfs></styleSheet>"#,
    ),
];
