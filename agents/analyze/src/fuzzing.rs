//! Parsers of untrusted bytes, for `testing/fuzz`. Not part of the public API.

use super::pdf;

/// Returns the text of a PDF file, or `None` if it is refused.
pub fn pdf_text(bytes: &[u8]) -> Option<String> {
    let work = pdf::Meter::new(WORK_MAX);
    pdf::read_text(bytes, &work).ok()
}

/// Less than for a file of a person, so that more inputs are tried.
const WORK_MAX: u64 = 16 << 20;
