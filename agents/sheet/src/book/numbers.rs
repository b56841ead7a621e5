//! Validates numbers in a package that a reader computes with: cell positions, ranges, and indexes of shared formulas.
//!
//! The library that reads workbooks allocates room for as many shared formulas as the largest index says, and computes
//! positions without overflow checks. So these numbers are validated first, in the unpacked bytes of every part, because the
//! package itself decides which parts are sheets.

use super::{BookError, COLUMNS_MAX, ROWS_MAX};

/// Validates the bytes of one part, in order.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// End of the bytes seen before, because an attribute may start there.
    held: Vec<u8>,
}

impl Numbers {
    /// Refuses numbers that no real workbook contains.
    pub(super) fn look(&mut self, bytes: &[u8]) -> Result<(), BookError> {
        self.held.extend_from_slice(bytes);
        for at in memchr::memchr_iter(b'=', &self.held) {
            let (before, after) = (&self.held[..at], &self.held[at + 1..]);
            if let Some(value) = value(after) {
                check(name(before), value)?;
            }
        }
        let kept = self.held.len().min(HELD_BYTES);
        self.held.drain(..self.held.len() - kept);
        // Otherwise enough blanks between a name and its number would keep them from being seen together.
        if kept == HELD_BYTES && self.held.iter().all(u8::is_ascii_whitespace) {
            return Err(BookError::refused("it has pages of blanks"));
        }
        Ok(())
    }
}

/// Returns the attribute name before an equals sign.
fn name(before: &[u8]) -> &[u8] {
    let before = before.trim_ascii_end();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b":_-.".contains(byte);
    let start = before.iter().rposition(|byte| !is_part(byte));
    &before[start.map_or(0, |at| at + 1)..]
}

/// Returns the start of the quoted value after an equals sign, or `None` if it has not arrived yet. No valid number is longer
/// than that.
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

/// Returns whether positions are within a sheet and in order. Other code refuses values that are not positions, but it computes
/// with them before it notices.
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

/// Returns whether a reader that computes with the leading letters and digits stays within 32 bits, whatever follows them.
fn can_be_counted(text: &str) -> bool {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let digits = text.bytes().skip(letters).take_while(u8::is_ascii_digit);
    letters <= LETTERS_MAX && digits.count() <= DIGITS_MAX
}

/// Returns the row and column of a position such as `B7`, with 0 for a missing one, or `None` if it is not a position.
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

/// Returns the number, saturating at the maximum.
fn number(digits: &str) -> u32 {
    match digits {
        "" => 0,
        digits => digits.parse().unwrap_or(u32::MAX),
    }
}

/// A sheet with more shared formulas than rows would not share them.
const SHARED_MAX: u32 = ROWS_MAX;
/// Maximum numbers of letters and digits whose value fits into 32 bits.
const LETTERS_MAX: usize = 6;
const DIGITS_MAX: usize = 9;
const VALUE_BYTES: usize = 64;
const HELD_BYTES: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits the input at every size, because an attribute may be cut anywhere.
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
            // A reader computes with these before it notices that they are not positions.
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
