//! Parses the values of which a PDF file and its content streams consist.

use std::collections::BTreeMap;

/// A dictionary, by its names without the slash.
pub(super) type Dict = BTreeMap<Vec<u8>, Object>;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    Number(f64),
    Name(Vec<u8>),
    String(Vec<u8>),
    Array(Vec<Object>),
    Dict(Dict),
    /// Number of another object. The generation is not needed: the newest object of a number counts.
    Reference(u32),
    /// An operator, or a keyword such as `null`.
    Word(Vec<u8>),
}

impl Object {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn name(&self) -> Option<&[u8]> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) => Some(dict),
            _ => None,
        }
    }
}

/// Reads values one after another. It looks ahead at most two words, so reading takes time in proportion to the bytes.
#[derive(Debug)]
pub(super) struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How many values the current one may still hold: a value takes more memory than its bytes.
    values_left: usize,
    /// Bytes that were read to look ahead, and are read once more.
    ahead: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            at,
            values_left: VALUES_MAX,
            ahead: 0,
        }
    }

    /// Returns how many bytes were read since the parser was at `start`.
    pub(super) fn work_since(&self, start: usize) -> usize {
        self.at.saturating_sub(start) + self.ahead
    }

    /// Returns the index of the next byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn jump(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Reads the next value. Returns `None` at the end, and for what is not a value or is too large.
    pub(super) fn next_object(&mut self) -> Option<Object> {
        self.values_left = VALUES_MAX;
        self.object(0)
    }

    pub(super) fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                while self.peek().is_some_and(|byte| !b"\r\n".contains(&byte)) {
                    self.at += 1;
                }
            } else if is_blank(byte) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn object(&mut self, depth: usize) -> Option<Object> {
        self.values_left = self.values_left.checked_sub(1)?;
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip_blanks();
        match self.peek()? {
            b'(' => Some(self.literal_string()),
            b'<' if self.bytes.get(self.at + 1) == Some(&b'<') => self.dictionary(depth),
            b'<' => Some(self.hex_string()),
            b'/' => Some(Object::Name(self.name())),
            b'[' => self.array(depth),
            b'+' | b'-' | b'.' | b'0'..=b'9' => Some(self.number_or_reference()),
            b']' | b'>' | b')' | b'{' | b'}' => None,
            _ => Some(Object::Word(self.token().to_vec())),
        }
    }

    fn array(&mut self, depth: usize) -> Option<Object> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek()? == b']' {
                self.at += 1;
                return Some(Object::Array(items));
            }
            items.push(self.object(depth + 1)?);
        }
    }

    fn dictionary(&mut self, depth: usize) -> Option<Object> {
        self.at += 2;
        let mut dict = Dict::new();
        loop {
            self.skip_blanks();
            match self.peek()? {
                b'>' => {
                    self.at += 1;
                    if self.peek() == Some(b'>') {
                        self.at += 1;
                    }
                    return Some(Object::Dict(dict));
                }
                b'/' => {
                    let key = self.name();
                    let value = self.object(depth + 1)?;
                    dict.insert(key, value);
                }
                // Not a key: a damaged dictionary keeps what can be read.
                _ => drop(self.object(depth + 1)?),
            }
        }
    }

    fn name(&mut self) -> Vec<u8> {
        self.at += 1;
        let token = self.token();
        let mut name = Vec::with_capacity(token.len());
        let mut at = 0;
        while let Some(&byte) = token.get(at) {
            let pair = token.get(at + 1).zip(token.get(at + 2));
            let escaped = pair.and_then(|(high, low)| Some(hex(*high)? * 16 + hex(*low)?));
            match escaped.filter(|_| byte == b'#') {
                Some(escaped) => {
                    name.push(escaped);
                    at += 3;
                }
                None => {
                    name.push(byte);
                    at += 1;
                }
            }
        }
        name
    }

    /// Returns the regular characters from here on. May be empty.
    fn token(&mut self) -> &'a [u8] {
        let start = self.at;
        while self.peek().is_some_and(is_regular) {
            self.at += 1;
        }
        &self.bytes[start..self.at]
    }

    fn number_or_reference(&mut self) -> Object {
        let token = self.token();
        let after = self.at;
        if let Some(number) = whole_number(token) {
            self.skip_blanks();
            let generation = self.token();
            self.skip_blanks();
            if whole_number(generation).is_some() && self.token() == b"R" {
                return Object::Reference(number);
            }
            self.ahead += self.at - after;
            self.at = after;
        }
        let number = std::str::from_utf8(token).ok();
        let number = number.and_then(|number| number.parse::<f64>().ok());
        // A damaged number must not become an infinity, which would spread through every position.
        let number = number.filter(|number| number.is_finite());
        Object::Number(number.unwrap_or_default())
    }

    fn hex_string(&mut self) -> Object {
        self.at += 1;
        let mut string = Vec::new();
        let mut high = None;
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'>' {
                break;
            }
            match (hex(byte), high.take()) {
                (Some(digit), None) => high = Some(digit),
                (Some(digit), Some(high)) => string.push(high * 16 + digit),
                (None, before) => high = before,
            }
        }
        if let Some(high) = high {
            string.push(high * 16);
        }
        Object::String(string)
    }

    fn literal_string(&mut self) -> Object {
        self.at += 1;
        let mut string = Vec::new();
        let mut open = 1_usize;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' => open -= 1,
                b'\\' => {
                    string.extend(self.escaped());
                    continue;
                }
                _ => {}
            }
            if open == 0 {
                break;
            }
            string.push(byte);
        }
        Object::String(string)
    }

    /// Reads what follows a backslash.
    fn escaped(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(match byte {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'f' => 12,
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else {
                        break;
                    };
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                (code & 0xFF) as u8
            }
            // A line break after a backslash is not part of the string.
            b'\r' => {
                if self.peek() == Some(b'\n') {
                    self.at += 1;
                }
                return None;
            }
            b'\n' => return None,
            other => other,
        })
    }
}

/// Returns the number if the bytes are digits only.
pub(super) fn whole_number(token: &[u8]) -> Option<u32> {
    if token.is_empty() || !token.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(token).ok()?.parse().ok()
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 12 | b'\r' | b' ')
}

pub(super) fn is_regular(byte: u8) -> bool {
    !is_blank(byte) && !b"()<>[]{}/%".contains(&byte)
}

/// Returns the value of a hexadecimal digit.
pub(super) fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Maximum number of values in one.
const VALUES_MAX: usize = 50_000;
/// Maximum depth of nested values.
const DEPTH_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Object> {
        Parser::new(text.as_bytes(), 0).next_object()
    }

    #[test]
    fn values_are_read() {
        let string = |text: &str| Some(Object::String(text.as_bytes().to_vec()));
        assert_eq!(parsed(r"(a (b) \(c\) \101\n)"), string("a (b) (c) A\n"));
        assert_eq!(parsed("<48 65 6C6C 6F7>"), string("Hellop"));
        assert_eq!(parsed("/A#42c"), Some(Object::Name(b"ABc".to_vec())));
        assert_eq!(parsed("% note\n -1.5"), Some(Object::Number(-1.5)));
        assert_eq!(parsed("12 0 R"), Some(Object::Reference(12)));
        let dict = Dict::from([
            (
                b"A".to_vec(),
                Object::Array(vec![Object::Number(1.0), Object::Number(0.0)]),
            ),
            (b"B".to_vec(), Object::Word(b"null".to_vec())),
        ]);
        assert_eq!(parsed("<</A[1 0]/B null>>"), Some(Object::Dict(dict)));
    }

    #[test]
    fn hostile_values_end() {
        for text in ["", "]", "[1", "<</A", "<", "(", "(\\", "/", "+inf", "1e999"] {
            let _ = parsed(text);
        }
        assert_eq!(parsed("+inf"), Some(Object::Number(0.0)));
        assert_eq!(parsed(&"[".repeat(100_000)), None);
        assert_eq!(parsed(&format!("[{}]", "1 ".repeat(VALUES_MAX))), None);
    }
}
