//! Looks at a package before anything reads it: how large it is, how large it would become, and what has no business in it.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::BookError;
use super::numbers::Numbers;

/// What was found that the person should know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkbookNotes {
    /// Other workbooks that it takes values from. They are never opened.
    pub external_links: usize,
    /// Whether there are macros in it. They are never run.
    pub has_macros: bool,
}

impl WorkbookNotes {
    /// In words for the person.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.external_links > 0 {
            remarks.push(format!(
                "it links to {} other workbooks, which are not opened",
                self.external_links
            ));
        }
        if self.has_macros {
            remarks.push("it has macros, which are not run".to_owned());
        }
        remarks
    }
}

/// Refuses what would blow up, and what is no workbook. Every part is unpacked once to count it, and nothing of it is kept.
pub fn look(bytes: &[u8]) -> Result<WorkbookNotes, BookError> {
    if bytes.len() as u64 > PACKED_MAX {
        return Err(BookError::refused(format!(
            "it is larger than {} MB",
            PACKED_MAX >> 20
        )));
    }
    let mut package = ZipArchive::new(Cursor::new(bytes)).map_err(BookError::unreadable)?;
    if package.len() > PARTS_MAX {
        return Err(BookError::refused(format!(
            "it has {} parts",
            package.len()
        )));
    }
    let mut seen = WorkbookNotes::default();
    let mut total = 0;
    let mut is_workbook = false;
    for at in 0..package.len() {
        let part = package.by_index(at).map_err(BookError::unreadable)?;
        let name = part.name().map_err(BookError::unreadable)?.into_owned();
        let packed = part.compressed_size();
        let unpacked = count(part, &name, PARTS_BYTES_MAX - total)?;
        total += unpacked;
        if unpacked > RATIO_FROM && unpacked / packed.max(1) > RATIO_MAX {
            return Err(BookError::refused(format!(
                "`{name}` is packed {} times, as in a file that is made to fill the memory",
                unpacked / packed.max(1)
            )));
        }
        is_workbook = is_workbook || name == "xl/workbook.xml";
        seen.external_links += usize::from(name.starts_with("xl/externalLinks/externalLink"));
        seen.has_macros = seen.has_macros || name.ends_with("vbaProject.bin");
    }
    match is_workbook {
        true => Ok(seen),
        false => Err(BookError::unreadable(
            "there is no workbook in it; only .xlsx and .xlsm can be read",
        )),
    }
}

fn count(mut part: impl Read, name: &str, room: u64) -> Result<u64, BookError> {
    let mut piece = vec![0; 64 << 10];
    let mut seen = 0_u64;
    let mut numbers = Numbers::default();
    let is_xml = name.ends_with(".xml") || name.ends_with(".rels") || name.ends_with(".vml");
    let mut doctype = Doctype::default();
    loop {
        let read = part.read(&mut piece).map_err(BookError::unreadable)?;
        if read == 0 {
            return Ok(seen);
        }
        // Anywhere: before the first element there may be as many comments as somebody likes.
        if is_xml && doctype.is_in(&piece[..read]) {
            return Err(BookError::refused(format!(
                "`{name}` declares entities, which no workbook needs"
            )));
        }
        numbers.look(&piece[..read])?;
        seen += read as u64;
        if seen > room {
            return Err(BookError::refused(format!(
                "unpacked it is larger than {} MB",
                PARTS_BYTES_MAX >> 20
            )));
        }
    }
}

/// Looks for a declaration in a part that comes in pieces, in letters of one byte or of two.
#[derive(Default)]
struct Doctype {
    /// How many of its letters came last.
    matched: usize,
}

impl Doctype {
    fn is_in(&mut self, piece: &[u8]) -> bool {
        for byte in piece.iter().filter(|byte| **byte != 0) {
            self.matched = match byte.eq_ignore_ascii_case(&DOCTYPE[self.matched]) {
                true => self.matched + 1,
                // No letter of it but the first is `<`.
                false => usize::from(*byte == DOCTYPE[0]),
            };
            if self.matched == DOCTYPE.len() {
                return true;
            }
        }
        false
    }
}

const DOCTYPE: &[u8] = b"<!DOCTYPE";
/// How large a package may be.
pub const PACKED_MAX: u64 = 200 << 20;
const PARTS_BYTES_MAX: u64 = 1 << 30;
const PARTS_MAX: usize = 10_000;

/// A large sheet of real figures packs some ten to thirty times.
const RATIO_MAX: u64 = 300;
const RATIO_FROM: u64 = 4 << 20;
