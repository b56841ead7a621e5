//! Workbooks: the package, what is in it, and a patch of it.
//!
//! An input that begins with `@@ ` is a list of parts, each behind a line `@@ name`, which is packed here: a mutation of
//! packed bytes would mostly break a checksum. Everything else is tried as the package itself.

use std::io::{Cursor, Write};

use archie_sheet::book::patch::{NewCell, SheetEdits, patch};
use archie_sheet::book::{Content, Place, diff, guard, layout, read, snapshot_id};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

pub(super) fn run(bytes: &[u8]) {
    match bytes.starts_with(MARK) {
        true => {
            if let Some(package) = pack(bytes) {
                check(&package);
            }
        }
        false => check(bytes),
    }
}

fn check(package: &[u8]) {
    if guard::look(package).is_err() {
        assert!(read(package).is_err(), "what is refused is read");
        assert!(
            patch(package, &[]).is_err(),
            "what is refused is written to"
        );
        return;
    }
    let Ok(id) = snapshot_id(package) else {
        return;
    };
    assert_eq!(snapshot_id(package).ok(), Some(id));
    let Ok(book) = read(package) else {
        return;
    };
    for sheet in &book.sheets {
        for place in sheet.places() {
            assert_eq!(Place::parse(&place.to_string()), Some(place));
        }
        layout::Layout::of(sheet).summary(&sheet.name);
    }
    assert!(diff::diff(&book, &book).changes.is_empty());
    let Some(sheet) = book.sheets.first() else {
        return;
    };
    let place = Place { row: 3, column: 2 };
    let text = Content::Text("a <b> & \"c\"".to_owned());
    let edits = SheetEdits {
        name: sheet.name.clone(),
        is_new: false,
        cells: [(place, cell(&text))].into(),
        looks: Default::default(),
    };
    let Ok(patched) = patch(package, &[edits]) else {
        return;
    };
    let patched = read(&patched).expect("what was written is read");
    let written = patched
        .sheet(&sheet.name)
        .and_then(|sheet| sheet.content(place));
    assert_eq!(written, Some(text), "the cell is not what was written");
}

fn cell(content: &Content) -> NewCell {
    NewCell {
        content: Some(content.clone()),
        ..NewCell::default()
    }
}

fn pack(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = super::text(bytes)?;
    let mut package = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let text = text.strip_prefix("@@ ").unwrap_or(text);
    for part in text.split("\n@@ ") {
        let (name, content) = part.split_once('\n').unwrap_or((part, ""));
        package.start_file(name.trim_end(), options).ok()?;
        package.write_all(content.as_bytes()).ok()?;
    }
    Some(package.finish().ok()?.into_inner())
}

const MARK: &[u8] = b"@@ ";
