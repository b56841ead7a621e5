//! Reads the text of PDF files, within limits that hold whatever the bytes are.
//!
//! This is a small reader for text, not a PDF library, and it does not use one: of the crates that fit our licenses, `lopdf` 0.46
//! parses every object when it opens a file, so that objects which overlap take memory that is quadratic in the size of the file,
//! and expands a range of character codes into one entry for each code, up to 2³²; `hayro-syntax` 0.9 decompresses streams without
//! a limit. Notes come from others, also as uploads to a server, and one file must not end the process.
//!
//! Here, an object is parsed when it is needed, each step moves forward, and a [`Meter`] counts the bytes that were parsed and
//! decompressed. If it runs out, the file is skipped with a reason.
//!
//! In reading order: `object` (values), `file` (objects, streams, the tree of pages), `font` (codes to characters), `page_text`
//! (operators to lines).

mod file;
mod font;
mod object;
mod page_text;

use std::cell::Cell;

use file::PdfFile;
use page_text::PageText;

/// Why the text of a PDF file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PdfFault {
    #[error("not a PDF file")]
    NotPdf,
    #[error("an encrypted PDF; save it without a password")]
    Encrypted,
    #[error("a damaged PDF without pages")]
    NoPages,
    #[error("a PDF without text that can be read; its pages may be scanned pictures")]
    NoText,
    #[error("a PDF with more than 2,000 pages")]
    TooManyPages,
    #[error("a PDF with more than 1 MiB of text")]
    TooMuchText,
    #[error("a PDF that takes too much work to read; print it to a new PDF, or save its text")]
    TooMuchWork,
}

/// Counts the work that may still be done, in bytes that are parsed or decompressed.
#[derive(Debug)]
pub(super) struct Meter {
    left: Cell<u64>,
}

impl Meter {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            left: Cell::new(bytes),
        }
    }

    /// Subtracts work. Fails if less than that is left; then nothing is.
    fn take(&self, bytes: usize) -> Result<(), PdfFault> {
        match self.left.get().checked_sub(bytes as u64) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                Err(PdfFault::TooMuchWork)
            }
        }
    }

    fn left(&self) -> u64 {
        self.left.get()
    }
}

/// Returns the text of a PDF file: for each page a line with its number, and then its lines. What it takes is subtracted from
/// `folder`, which files of one folder share.
pub(super) fn read_text(bytes: &[u8], folder: &Meter) -> Result<String, PdfFault> {
    let allowed = folder.left().min(FILE_WORK_MAX);
    let meter = Meter::new(allowed);
    let text = text_within(bytes, &meter);
    // What was left of the file's share stays with the folder.
    let spent = usize::try_from(allowed - meter.left()).unwrap_or(usize::MAX);
    folder.take(spent)?;
    text
}

fn text_within(bytes: &[u8], meter: &Meter) -> Result<String, PdfFault> {
    let file = PdfFile::open(bytes, meter)?;
    let mut text = String::new();
    let mut page_count = 0_u32;
    let mut has_text = false;
    file.each_page(&mut |page, resources| {
        page_count += 1;
        if page_count > PAGES_MAX {
            return Err(PdfFault::TooManyPages);
        }
        text.push_str(&format!("{PAGE_BEGIN}{page_count}{PAGE_END}\n"));
        let of_page = PageText::read(&file, page, resources)?;
        for line in of_page
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            has_text = true;
            // Text of the file must not look like the beginning of a page.
            if line.starts_with(PAGE_BEGIN) {
                text.push_str("> ");
            }
            text.push_str(line);
            text.push('\n');
        }
        match text.len() > TEXT_BYTES_MAX {
            true => Err(PdfFault::TooMuchText),
            false => Ok(()),
        }
    })?;
    match (page_count, has_text) {
        (0, _) => Err(PdfFault::NoPages),
        (_, false) => Err(PdfFault::NoText),
        (_, true) => Ok(text),
    }
}

/// Returns whether a note is the text of a PDF file, by its name.
pub(super) fn is_pdf(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("pdf"))
}

/// Returns the page that begins in a line of such a text.
pub(super) fn page_beginning(line: &str) -> Option<u32> {
    let number = line.strip_prefix(PAGE_BEGIN)?.strip_suffix(PAGE_END)?;
    number.parse().ok()
}

/// Returns the page of a line, counted from 1, if the note is the text of a PDF file.
pub(super) fn page_of(name: &str, text: &str, line: u32) -> Option<u32> {
    if !is_pdf(name) {
        return None;
    }
    let lines = text.lines().take(line as usize);
    lines.filter_map(page_beginning).last()
}

const PAGE_BEGIN: &str = "--- page ";
const PAGE_END: &str = " ---";
/// Maximum number of pages.
const PAGES_MAX: u32 = 2_000;
/// Maximum size of the text of a file, as for other notes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Maximum work for one file: a few seconds.
const FILE_WORK_MAX: u64 = 256 << 20;
/// Maximum work for all files of a folder.
pub(super) const FOLDER_WORK_MAX: u64 = 512 << 20;

#[cfg(test)]
mod tests;
