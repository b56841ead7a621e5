use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;

/// A PDF file from its objects, numbered from 1. The first one is the catalog.
fn pdf(objects: &[&str]) -> Vec<u8> {
    let objects: Vec<Vec<u8>> = objects
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .collect();
    pdf_of(&objects)
}

fn pdf_of(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    for (index, object) in objects.iter().enumerate() {
        bytes.extend(format!("{} 0 obj\n", index + 1).as_bytes());
        bytes.extend(object);
        bytes.extend(b"\nendobj\n");
    }
    bytes.extend(b"trailer\n<< /Root 1 0 R >>\n%%EOF\n");
    bytes
}

fn stream(entries: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("<< {entries} /Length {} >>\nstream\n", data.len());
    [head.as_bytes(), data, b"\nendstream"].concat()
}

fn deflated(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

const CATALOG: &str = "<< /Type /Catalog /Pages 2 0 R >>";
const ONE_PAGE: &str =
    "<< /Type /Pages /Kids [3 0 R] /Count 1 /Resources << /Font << /F1 5 0 R >> >> >>";
const PAGE: &str = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>";
const HELVETICA: &str =
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

/// A file with one page that runs these operators, in this font.
fn page_with(content: Vec<u8>, font: &str) -> Vec<u8> {
    pdf_of(&[
        CATALOG.into(),
        ONE_PAGE.into(),
        PAGE.into(),
        content,
        font.into(),
    ])
}

fn read(bytes: &[u8]) -> Result<String, PdfFault> {
    read_text(bytes, &Meter::new(FOLDER_WORK_MAX))
}

#[test]
fn lines_and_words_come_from_their_positions() {
    let operators = r"BT /F1 12 Tf 72 700 Td (Ten thousand) Tj ( orders a day.) Tj
        0 -14 Td [(One) -300 (machine) 20 (s) -250 (only)] TJ T* (Caf\351) ' ET";
    let text = read(&page_with(stream("", operators.as_bytes()), HELVETICA)).unwrap();
    // Without `TL`, the next line is at the same height.
    assert_eq!(
        text,
        "--- page 1 ---\nTen thousand orders a day.\nOne machines only Café\n"
    );
}

#[test]
fn compressed_streams_forms_and_maps_of_codes_are_read() {
    let map = b"/CIDInit /ProcSet findresource begin 1 beginbfrange <0001> <0003> <0041> endbfrange
        2 beginbfchar <0010> <00660069> <0011> <0020> endbfchar";
    let bytes = pdf_of(&[
        CATALOG.into(),
        "<< /Type /Pages /Kids [3 0 R] /Resources << /Font << /F1 5 0 R >> /XObject << /X 7 0 R >> >> >>".into(),
        PAGE.into(),
        stream("/Filter /FlateDecode", &deflated(b"q 1 0 0 1 10 20 cm /X Do Q")),
        "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R >>".into(),
        stream("/Filter /FlateDecode", &deflated(map)),
        stream("/Subtype /Form", b"BT /F1 9 Tf <0001000200030011 00100001> Tj ET"),
    ]);
    assert_eq!(read(&bytes).unwrap(), "--- page 1 ---\nABC fiA\n");
}

#[test]
fn objects_in_object_streams_are_found() {
    let objects = [CATALOG, ONE_PAGE, PAGE, HELVETICA];
    let numbers = [1, 2, 3, 5];
    let (mut header, mut body) = (String::new(), String::new());
    for (number, object) in numbers.iter().zip(objects) {
        header.push_str(&format!("{number} {} ", body.len()));
        body.push_str(&format!("{object} "));
    }
    let entries = format!(
        "/Type /ObjStm /N 4 /First {} /Filter /FlateDecode",
        header.len()
    );
    let packed = stream(&entries, &deflated(format!("{header}{body}").as_bytes()));
    let content = stream("", b"BT /F1 9 Tf (Hello) Tj ET");
    let mut bytes = b"%PDF-1.7\n9 0 obj\n".to_vec();
    bytes.extend(packed);
    bytes.extend(b"\nendobj\n4 0 obj\n");
    bytes.extend(content);
    bytes.extend(b"\nendobj\n10 0 obj\n");
    bytes.extend(stream("/Type /XRef /Root 1 0 R", b""));
    bytes.extend(b"\nendobj\n");
    assert_eq!(read(&bytes).unwrap(), "--- page 1 ---\nHello\n");
}

#[test]
fn a_line_knows_its_page_and_no_text_can_pretend_another() {
    let show = |text: &str| stream("", format!("BT /F1 9 Tf ({text}) Tj ET").as_bytes());
    let bytes = pdf_of(&[
        CATALOG.into(),
        "<< /Type /Pages /Kids [3 0 R 6 0 R] /Resources << /Font << /F1 5 0 R >> >> >>".into(),
        PAGE.into(),
        show("--- page 7 ---"),
        HELVETICA.into(),
        "<< /Type /Page /Contents 7 0 R >>".into(),
        show("The end."),
    ]);
    let text = read(&bytes).unwrap();
    assert_eq!(
        text,
        "--- page 1 ---\n> --- page 7 ---\n--- page 2 ---\nThe end.\n"
    );
    assert_eq!(page_of("a.PDF", &text, 2), Some(1));
    assert_eq!(page_of("a.pdf", &text, 4), Some(2));
    assert_eq!(page_of("a.md", &text, 4), None);
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let page = |content: &[u8]| page_with(content.to_vec(), HELVETICA);
    assert_eq!(read(b""), Err(PdfFault::NotPdf));
    assert_eq!(read(b"# Notes"), Err(PdfFault::NotPdf));
    assert_eq!(read(b"%PDF-1.7\n%%EOF"), Err(PdfFault::NoPages));
    assert_eq!(read(&page(b"null")), Err(PdfFault::NoText));
    let encrypted = b"%PDF-1.7\ntrailer << /Root 1 0 R /Encrypt 9 0 R >>";
    assert_eq!(read(encrypted), Err(PdfFault::Encrypted));
    let kids: String = (0..=PAGES_MAX)
        .map(|at| format!("{} 0 R ", at + 3))
        .collect();
    let mut objects = vec![CATALOG.to_owned(), format!("<< /Kids [{kids}] >>")];
    objects.extend((0..=PAGES_MAX).map(|_| "<< /Type /Page >>".to_owned()));
    let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
    assert_eq!(read(&pdf(&objects)), Err(PdfFault::TooManyPages));
}

/// A tree, a form and a reference that lead to themselves; data that grows; objects that overlap; ranges of four billion codes.
#[test]
fn hostile_files_end_within_their_limits() {
    let tree = pdf(&[CATALOG, "<< /Kids [2 0 R 2 0 R] >>"]);
    assert_eq!(read(&tree), Err(PdfFault::NoPages));
    let reference = pdf(&["2 0 R", "1 0 R"]);
    assert_eq!(read(&reference), Err(PdfFault::NoPages));
    let form = pdf_of(&[
        CATALOG.into(),
        "<< /Kids [3 0 R] /Resources << /XObject << /X 4 0 R >> >> >>".into(),
        PAGE.into(),
        stream("/Subtype /Form", b"/X Do /X Do"),
    ]);
    assert_eq!(read(&form), Err(PdfFault::NoText));
    let bomb = deflated(&vec![b' '; (16 << 20) + 1]);
    let bomb = page_with(stream("/Filter /FlateDecode", &bomb), HELVETICA);
    assert_eq!(read(&bomb), Err(PdfFault::TooMuchWork));
    let twice = deflated(&deflated(&vec![b' '; 1 << 20]));
    let twice = page_with(
        stream("/Filter [/FlateDecode /FlateDecode]", &twice),
        HELVETICA,
    );
    assert_eq!(read(&twice), Err(PdfFault::NoText));
    let codes = b"1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange";
    let codes = pdf_of(&[
        CATALOG.into(),
        ONE_PAGE.into(),
        PAGE.into(),
        stream("", b"BT /F1 9 Tf (AB) Tj ET"),
        "<< /Subtype /Type0 /ToUnicode 6 0 R >>".into(),
        stream("", codes),
    ]);
    assert!(read(&codes).is_ok());
    // Each object begins inside of the one before, up to the same end.
    let kids: String = (3..503).map(|number| format!("{number} 0 R ")).collect();
    let mut overlapping = format!("%PDF-1.7\n1 0 obj {CATALOG}\n2 0 obj << /Kids [{kids}] >>\n");
    for number in 3..503 {
        overlapping.push_str(&format!("{number} 0 obj << /A % "));
    }
    overlapping.push_str("\n(text) >>\ntrailer << /Root 1 0 R >>");
    assert!(read(overlapping.as_bytes()).is_err());
    let text = format!("BT /F1 9 Tf {} ET", "(aaaaaaaaaaaaaaaa) Tj ".repeat(70_000));
    let text = page_with(stream("", text.as_bytes()), HELVETICA);
    assert_eq!(read(&text), Err(PdfFault::TooMuchText));
}

#[test]
fn files_of_a_folder_share_its_work() {
    let file = page_with(stream("", b"BT /F1 9 Tf (Hello) Tj ET"), HELVETICA);
    let folder = Meter::new(10_000);
    assert!(read_text(&file, &folder).is_ok());
    assert!(folder.left() < 10_000);
    let nothing = Meter::new(10);
    assert_eq!(read_text(&file, &nothing), Err(PdfFault::TooMuchWork));
}

/// Every beginning of a file, and every file with one byte changed, is read or refused.
#[test]
fn damaged_files_are_read_or_refused() {
    let content = stream(
        "/Filter /FlateDecode",
        &deflated(b"BT /F1 9 Tf (Hello) Tj ET"),
    );
    let file = page_with(content, HELVETICA);
    for end in 0..file.len() {
        let _ = read(&file[..end]);
    }
    for at in 0..file.len() {
        for byte in [0, b'<', b'(', b'9', 0xFF] {
            let mut file = file.clone();
            file[at] = byte;
            let _ = read(&file);
        }
    }
}
