//! PDF files among the notes of `analyze`.

use archie_analyze::fuzzing::pdf_text;

pub(super) fn run(bytes: &[u8]) {
    let Some(text) = pdf_text(bytes) else {
        return;
    };
    assert!(text.len() <= 1 << 20, "the text has {} bytes", text.len());
    assert!(text.starts_with("--- page 1 ---\n"), "no page begins");
    let is_plain = |c: char| c == '\n' || !c.is_control();
    assert!(text.chars().all(is_plain), "a control character is left");
    assert_eq!(pdf_text(bytes), Some(text), "it is read in two ways");
}
