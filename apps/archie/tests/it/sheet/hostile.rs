//! Workbooks that are meant to do harm: refused, or of no effect, and never large in memory.

use std::io::Write;

use archie_sheet::book::diff::diff;
use archie_sheet::book::looks::LookChanges;
use archie_sheet::book::patch::{NewCell, SheetEdits, patch};
use archie_sheet::book::{BookError, Content, guard, read};
use archie_sheet::changes::edits;

use super::kit::{empty_parts, package, place, sales, workbook};

fn refused(bytes: &[u8]) -> String {
    match guard::look(bytes) {
        Err(BookError::Refused { why }) => why,
        other => panic!("{other:?}"),
    }
}

/// The package of a workbook, and this in it.
fn with_part(name: &str, bytes: Vec<u8>) -> Vec<u8> {
    let mut parts = empty_parts();
    parts.push((name.to_owned(), bytes));
    package(&parts)
}

/// What this process has had in memory at most, in bytes.
fn memory_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

#[test]
fn a_zip_bomb_is_refused_and_never_in_memory() {
    let before = memory_peak();
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    out.start_file("xl/workbook.xml", options).unwrap();
    out.start_file("xl/worksheets/sheet1.xml", options).unwrap();
    // Two gigabytes of zeros, in two megabytes.
    let nothing = vec![b'0'; 1 << 20];
    for _ in 0..2_048 {
        out.write_all(&nothing).unwrap();
    }
    let bomb = out.finish().unwrap().into_inner();
    assert!(bomb.len() < 4 << 20);
    let why = refused(&bomb);
    assert!(
        why.contains("larger than 1024 MB") || why.contains("is packed"),
        "{why}"
    );
    assert!(
        memory_peak().saturating_sub(before) < 64 << 20,
        "{} bytes",
        memory_peak().saturating_sub(before)
    );
}

#[test]
fn a_bomb_below_the_limit_is_known_by_how_it_is_packed() {
    let bomb = with_part("xl/media/image1.png", vec![0; 32 << 20]);
    assert!(refused(&bomb).contains("is packed"));
}

#[test]
fn a_billion_laughs_are_refused() {
    let laughs = r#"<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><sst>&b;</sst>"#;
    assert!(
        refused(&with_part("xl/sharedStrings.xml", laughs.into())).contains("declares entities")
    );
    let external = r#"<!DOCTYPE x SYSTEM "file:///etc/passwd"><sst/>"#;
    assert!(
        refused(&with_part("xl/sharedStrings.xml", external.into())).contains("declares entities")
    );
    let wide: Vec<u8> = laughs.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(refused(&with_part("xl/sharedStrings.xml", wide)).contains("declares entities"));
}

#[test]
fn entities_are_found_behind_any_number_of_comments() {
    let laughs = r#"<!DOCTYPE l [<!ENTITY a "ha">]><sst>&a;</sst>"#;
    for before in [0, 65_531, 65_536, 200_000, 1_000_000] {
        let text = format!("<?xml version=\"1.0\"?><!--{}-->{laughs}", noise(before));
        let why = refused(&with_part("xl/sharedStrings.xml", text.into_bytes()));
        assert!(why.contains("declares entities"), "{before}: {why}");
    }
}

/// Text that does not pack so well that it would be refused for that.
fn noise(bytes: usize) -> String {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (state >> 24) as u8 % 26)
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn a_sheet_of_two_cells_at_its_ends_costs_two_cells() {
    let before = memory_peak();
    let edits = SheetEdits {
        name: "Far".to_owned(),
        is_new: true,
        cells: [("A1", 1.0), ("XFD1048576", 2.0)]
            .map(|(at, number)| {
                (
                    place(at),
                    NewCell {
                        content: Some(Content::Number(number)),
                        ..NewCell::default()
                    },
                )
            })
            .into(),
        ..SheetEdits::default()
    };
    let far = patch(&sales(), &[edits]).unwrap();
    assert_eq!(read(&far).unwrap().sheet("Far").unwrap().values.len(), 2);
    assert!(memory_peak().saturating_sub(before) < 64 << 20);
}

#[test]
fn what_is_no_workbook_is_said_to_be_none() {
    for bytes in [&b"PK\x03\x04 and then nothing"[..], b"", b"a,b\n1,2\n"] {
        assert!(matches!(
            guard::look(bytes),
            Err(BookError::Unreadable { .. })
        ));
    }
    let no_book = package(&[("a.txt".to_owned(), b"x".to_vec())]);
    let error = guard::look(&no_book).unwrap_err().to_string();
    assert!(error.contains("only .xlsx and .xlsm"), "{error}");
}

#[test]
fn links_to_other_workbooks_and_macros_are_told_and_left_alone() {
    let mut parts = empty_parts();
    parts.push((
        "xl/externalLinks/externalLink1.xml".to_owned(),
        b"<externalLink/>".to_vec(),
    ));
    parts.push(("xl/vbaProject.bin".to_owned(), b"macro".to_vec()));
    let seen = guard::look(&package(&parts)).unwrap();
    assert_eq!(seen.external_links, 1);
    assert!(seen.has_macros);
    assert_eq!(seen.remarks().len(), 2);
}

#[test]
fn text_that_looks_like_a_formula_is_written_as_text() {
    let before = workbook(&[("S", &[&["a"]])]);
    let mut after = read(&before).unwrap();
    let sheet = &mut after.sheets[0];
    let dangerous = [
        "=1+1",
        "+49 30",
        "-2+3",
        "@SUM(A1)",
        "=cmd|' /C calc'!A0",
        "\t=1+1",
    ];
    for (row, text) in dangerous.iter().enumerate() {
        let at = place(&format!("B{}", row + 1));
        sheet.values.insert(at, Content::Text((*text).to_owned()));
    }
    sheet
        .formulas
        .insert(place("C1"), "WEBSERVICE(\"http://evil\")".to_owned());
    sheet.formulas.insert(place("C2"), "SUM(A1:A9)".to_owned());
    let changes = diff(&read(&before).unwrap(), &after);
    let written = patch(&before, &edits(&changes, &LookChanges::default())).unwrap();
    let found = read(&written).unwrap();
    let found = found.sheet("S").unwrap();
    for (row, text) in dangerous.iter().enumerate() {
        let at = place(&format!("B{}", row + 1));
        assert_eq!(found.content(at), Some(Content::Text((*text).to_owned())));
    }
    assert_eq!(
        found.content(place("C1")),
        Some(Content::Text("=WEBSERVICE(\"http://evil\")".to_owned()))
    );
    assert_eq!(
        found.content(place("C2")),
        Some(Content::Formula("SUM(A1:A9)".to_owned()))
    );
    assert_eq!(found.formulas.len(), 1);
}
