//! Validates a package before any other code reads it: its size, its unpacked size, and content that does not belong in it.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::BookError;
use super::numbers::Numbers;

/// Findings that the person should know about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkbookNotes {
    /// Number of other workbooks that it links to. They are never opened.
    pub external_links: usize,
    /// Whether it contains macros. They are never run.
    pub has_macros: bool,
}

impl WorkbookNotes {
    /// Returns the findings as text for the person.
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

/// Refuses packages that would unpack to too much, and files that are not workbooks. Unpacks every part once to measure it, and
/// keeps nothing.
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
        // Search everywhere, because any number of comments may precede the first element.
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

/// Searches for a `<!DOCTYPE` declaration in a part that arrives in pieces, in one-byte or two-byte characters.
#[derive(Default)]
struct Doctype {
    /// Number of its bytes that have matched so far.
    matched: usize,
}

impl Doctype {
    fn is_in(&mut self, piece: &[u8]) -> bool {
        for byte in piece.iter().filter(|byte| **byte != 0) {
            self.matched = match byte.eq_ignore_ascii_case(&DOCTYPE[self.matched]) {
                true => self.matched + 1,
                // `<` occurs only at its beginning.
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
/// Maximum size of a package, in bytes.
pub const PACKED_MAX: u64 = 200 << 20;
const PARTS_BYTES_MAX: u64 = 1 << 30;
const PARTS_MAX: usize = 10_000;

/// Maximum compression ratio of a part. Large sheets of real figures compress ten to thirty times.
const RATIO_MAX: u64 = 300;
const RATIO_FROM: u64 = 4 << 20;
