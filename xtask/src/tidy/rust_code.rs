//! Rust text without its comments and literals, so that a rule about code does not trip over words.

/// The text with every comment, string and character literal replaced by blanks; lines stay where they are.
pub(super) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = end_of_comment_or_literal(bytes, at).unwrap_or(at);
        if end == at {
            code.push(if bytes[at].is_ascii() {
                char::from(bytes[at])
            } else {
                ' '
            });
            at += 1;
        } else {
            code.extend(
                bytes[at..end]
                    .iter()
                    .map(|byte| if *byte == b'\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    code
}

/// The string literals of a text as they are written, quotes included, each with the line that it begins in.
pub(super) fn strings(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let mut strings = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let end = end_of_comment_or_literal(bytes, at).unwrap_or(at + 1);
        let part = &bytes[at..end];
        if part.len() > 1 && !matches!(part[0], b'/' | b'\'') {
            strings.push((line, &text[at..end]));
        }
        line += part.iter().filter(|byte| **byte == b'\n').count();
        at = end;
    }
    strings
}

/// Where what begins here ends; none if it is code.
fn end_of_comment_or_literal(bytes: &[u8], at: usize) -> Option<usize> {
    let after_word = at > 0 && is_word(bytes[at - 1]);
    match bytes[at] {
        b'/' if bytes[at..].starts_with(b"//") => Some(find(bytes, at, b"\n")),
        b'/' if bytes[at..].starts_with(b"/*") => Some(end_of_block_comment(bytes, at)),
        b'"' => Some(end_of_string(bytes, at + 1)),
        b'r' | b'b' | b'c' if !after_word => end_of_prefixed_string(bytes, at),
        b'\'' => end_of_char(bytes, at),
        _ => None,
    }
}

/// The words of a text: runs of letters, digits and `_`, each with its place.
pub(super) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.split(|c: char| !is_word_char(c))
        .filter(|word| !word.is_empty())
        .map(|word| {
            // Both are parts of one text, so the distance is the place.
            (word.as_ptr() as usize - code.as_ptr() as usize, word)
        })
}

/// The number of the line that a place is in, from 1.
pub(super) fn line_of(text: &str, place: usize) -> usize {
    text.as_bytes()[..place]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Where `wanted` begins, or the end of the text.
fn find(bytes: &[u8], from: usize, wanted: &[u8]) -> usize {
    (from..bytes.len())
        .find(|&at| bytes[at..].starts_with(wanted))
        .unwrap_or(bytes.len())
}

fn end_of_block_comment(bytes: &[u8], from: usize) -> usize {
    let (mut depth, mut at) = (0, from);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// `from` is after the opening quote.
fn end_of_string(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `r"…"`, `r#"…"#`, `b"…"`, `br"…"`, `c"…"`; none if this is an ordinary word.
fn end_of_prefixed_string(bytes: &[u8], from: usize) -> Option<usize> {
    let prefix = bytes[from..]
        .iter()
        .take_while(|byte| matches!(byte, b'r' | b'b' | b'c'))
        .count();
    let raw = bytes[from..from + prefix].contains(&b'r');
    let mut at = from + prefix;
    let hashes = if raw {
        bytes[at..].iter().take_while(|byte| **byte == b'#').count()
    } else {
        0
    };
    at += hashes;
    if prefix > 2 || bytes.get(at) != Some(&b'"') {
        return None;
    }
    if !raw {
        return Some(end_of_string(bytes, at + 1));
    }
    let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    Some((find(bytes, at + 1, &close) + close.len()).min(bytes.len()))
}

/// The end of a character literal; none if this is a lifetime.
fn end_of_char(bytes: &[u8], from: usize) -> Option<usize> {
    if bytes.get(from + 1) == Some(&b'\\') {
        return Some((find(bytes, from + 3, b"'") + 1).min(bytes.len()));
    }
    let width = match bytes.get(from + 1)? {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    };
    (bytes.get(from + 1 + width) == Some(&b'\'')).then_some(from + width + 2)
}

#[test]
fn comments_and_literals_are_blanked_and_code_stays() {
    let text = r##"a // b
/* c /* d */ e */ f "g \" h" r#"i " j"# 'k' '\'' 'é' <'life> b"l" rb for bar "##;
    let code = code_only(text);
    assert_eq!(
        code.split_whitespace().collect::<Vec<_>>(),
        ["a", "f", "<'life>", "rb", "for", "bar"]
    );
    assert_eq!(code.lines().count(), text.lines().count());
}

#[test]
fn strings_are_found_with_their_lines() {
    let text = "a(\"b \\\" c\");\n// \"d\"\n'\"' r#\"e \"f\" é\"# \"g\nh\" i";
    let found = strings(text);
    assert_eq!(
        found,
        [
            (1, "\"b \\\" c\""),
            (3, "r#\"e \"f\" é\"#"),
            (3, "\"g\nh\"")
        ]
    );
}

#[test]
fn words_have_their_places() {
    assert_eq!(
        words("std::fs x_1").collect::<Vec<_>>(),
        [(0, "std"), (5, "fs"), (8, "x_1")]
    );
    assert_eq!(line_of("a\nb\nc", 4), 3);
}
