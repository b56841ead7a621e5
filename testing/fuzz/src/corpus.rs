//! The kept inputs of a target, and the words of its format.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// An input that is kept.
#[derive(Debug)]
pub struct Input {
    /// The name of its file.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// Returns the folder of a target's corpus.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
}

/// Reads the corpus of a target, by file name. A target without a corpus has none.
pub fn read(target: &str) -> io::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    let entries = match fs::read_dir(folder(target)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(inputs),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        inputs.push(Input {
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: fs::read(entry.path())?,
        });
    }
    inputs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(inputs)
}

/// Reads the words of a target's format, in the form that libFuzzer has for them: `"word"` or `name="word"`, with `\xNN`
/// for bytes that cannot be typed.
pub fn words(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("dictionaries")
        .join(format!("{target}.dict"));
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        text => Ok(text?.lines().filter_map(word).collect()),
    }
}

fn word(line: &str) -> Option<Vec<u8>> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let inside = &line[line.find('"')? + 1..line.rfind('"')?];
    let mut word = Vec::new();
    let mut rest = inside.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            word.push(byte);
            continue;
        }
        let (&escaped, after) = rest.split_first()?;
        rest = after;
        if escaped == b'x' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            word.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            word.push(escaped);
        }
    }
    Some(word)
}

#[test]
fn words_are_read_as_libfuzzer_reads_them() {
    assert_eq!(word("# a comment"), None);
    assert_eq!(word(r#"name="a\"\x00b""#), Some(b"a\"\0b".to_vec()));
    assert_eq!(word(""), None);
}
