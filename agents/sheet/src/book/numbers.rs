//! Numbers in a package that whoever reads it counts with: places of cells, ranges, and numbers of shared formulas.
//!
//! The reader of workbooks makes room for as many shared formulas as the largest number says, and counts places without
//! looking whether they fit. So they are looked at before, in the bytes as they are unpacked, in any part: which parts are
//! sheets is for the package itself to say.

use super::{BookError, COLUMNS_MAX, ROWS_MAX};

/// Looks at the bytes of one part, in the order they come.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The end of what came before: an attribute may begin there.
    held: Vec<u8>,
}

impl Numbers {
    /// Refuses a number that no workbook has.
    pub(super) fn look(&mut self, bytes: &[u8]) -> Result<(), BookError> {
        self.held.extend_from_slice(bytes);
        for at in memchr::memchr_iter(b'=', &self.held) {
            let (before, after) = (&self.held[..at], &self.held[at + 1..]);
            if let Some(value) = value(after) {
                check(name(before), value)?;
            }
        }
        let snapshots = self.held.len().min(HELD_BYTES);
        self.held.drain(..self.held.len() - snapshots);
        // Otherwise a name and its number could be so far apart that they are not seen together.
        if snapshots == HELD_BYTES && self.held.iter().all(u8::is_ascii_whitespace) {
            return Err(BookError::refused("it has pages of blanks"));
        }
        Ok(())
    }
}

/// What stands before an equals sign.
fn name(before: &[u8]) -> &[u8] {
    let before = before.trim_ascii_end();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b":_-.".contains(byte);
    let start = before.iter().rposition(|byte| !is_part(byte));
    &before[start.map_or(0, |at| at + 1)..]
}

/// The beginning of what stands in quotes behind one; none if it is not there yet. No number is longer.
fn value(after: &[u8]) -> Option<&[u8]> {
    let (quote, rest) = after.trim_ascii_start().split_first()?;
    if !b"\"'".contains(quote) {
        return None;
    }
    let end = rest.iter().take(VALUE_BYTES).position(|byte| byte == quote);
    match end {
        Some(end) => Some(&rest[..end]),
        None => rest.get(..VALUE_BYTES),
    }
}

fn check(name: &[u8], value: &[u8]) -> Result<(), BookError> {
    let value = String::from_utf8_lossy(value);
    let is_fine = match name {
        b"si" => !is_digits(&value) || number(&value) < SHARED_MAX,
        b"r" | b"ref" => is_range(&value),
        _ => true,
    };
    match is_fine {
        true => Ok(()),
        false => Err(BookError::refused(format!(
            "`{}=\"{value}\"` is beyond what a sheet can hold",
            String::from_utf8_lossy(name)
        ))),
    }
}

/// Whether places are on a sheet and in order. What is not a place is for others to refuse, but they count until they see that.
fn is_range(value: &str) -> bool {
    if !value.split(':').all(can_be_counted) {
        return false;
    }
    let places: Vec<_> = value.split(':').map(place).collect();
    let is_there = |place: &(u32, u32)| place.0 <= ROWS_MAX && place.1 <= COLUMNS_MAX;
    let mut there = places.iter().flatten();
    there.all(is_there)
        && match places.as_slice() {
            [Some(first), Some(last)] => first.0 <= last.0 && first.1 <= last.1,
            _ => true,
        }
}

/// Whether a reader that counts the letters and digits at the beginning stays within its numbers, whatever follows them.
fn can_be_counted(text: &str) -> bool {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let digits = text.bytes().skip(letters).take_while(u8::is_ascii_digit);
    letters <= LETTERS_MAX && digits.count() <= DIGITS_MAX
}

/// The row and the column of `B7`, and 0 for what is missing; none if it is something else.
fn place(text: &str) -> Option<(u32, u32)> {
    let digits = text.find(|c: char| !c.is_ascii_alphabetic());
    let (letters, digits) = text.split_at(digits.unwrap_or(text.len()));
    if !is_digits(digits) && !digits.is_empty() {
        return None;
    }
    let column = letters.bytes().fold(0_u32, |column, letter| {
        let letter = u32::from(letter.to_ascii_uppercase() - b'A') + 1;
        column.saturating_mul(26).saturating_add(letter)
    });
    Some((number(digits), column))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number, or the largest there is if it is larger.
fn number(digits: &str) -> u32 {
    match digits {
        "" => 0,
        digits => digits.parse().unwrap_or(u32::MAX),
    }
}

/// More shared formulas than a sheet has rows would not be shared.
const SHARED_MAX: u32 = ROWS_MAX;
/// The most letters and digits whose number fits into 32 bits.
const LETTERS_MAX: usize = 6;
const DIGITS_MAX: usize = 9;
const VALUE_BYTES: usize = 64;
const HELD_BYTES: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// In pieces of every size, as an attribute may be cut anywhere.
    fn is_refused(text: &str) -> bool {
        let refused = |size: usize| {
            let mut numbers = Numbers::default();
            let mut pieces = text.as_bytes().chunks(size);
            pieces.any(|piece| numbers.look(piece).is_err())
        };
        let all: Vec<_> = (1..=text.len().min(40)).map(refused).collect();
        assert!(all.iter().all(|one| *one == all[0]), "{text}");
        all[0]
    }

    #[test]
    fn numbers_that_a_reader_would_trip_over_are_refused() {
        for text in [
            "<f t=\"shared\" si=\"4294967295\"/>",
            "<f si = '18446744073709551616'>",
            "<mergeCell ref=\"B2:A1\"/>",
            "<mergeCell ref=\"A2:B1\"/>",
            "<c r=\"AAAAAAAAAA1\">",
            "<c r=\"A99999999999\">",
            "<row\tr\n=\n\"1048577\">",
            "<dimension ref=\"A1:XFE1\"/>",
            // A reader counts these before it sees that they are not places.
            "<c r=\"Aadsheetml/2006\">",
            "<c r=\"A99999999999/\">",
            "<mergeCell ref=\"A1:Aadsheetml!\"/>",
        ] {
            assert!(is_refused(text), "{text}");
        }
    }

    #[test]
    fn what_workbooks_have_is_not() {
        for text in [
            "<f t=\"shared\" ref=\"C3:C4\" si=\"0\">B3*2</f>",
            "<c r=\"XFD1048576\" s=\"1\"><row r=\"1048576\">",
            "<pageMargins l=\"0.7\" r=\"0.75\"/><a r:id=\"rId1\" sqref=\"B2:A1\"/>",
            "<dimension ref=\"A1\"/><x ref=\"A:B\"/><x ref=\"\"/><t>a = b, r=</t>",
        ] {
            assert!(!is_refused(text), "{text}");
        }
    }

    #[test]
    fn a_name_and_its_number_cannot_be_pulled_apart() {
        let mut numbers = Numbers::default();
        let text = format!("<f si{}=\"9999999999\">", " ".repeat(3 * HELD_BYTES));
        let mut pieces = text.as_bytes().chunks(1_000);
        assert!(pieces.any(|piece| numbers.look(piece).is_err()));
    }
}
