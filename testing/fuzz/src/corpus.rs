//! The kept inputs of a target, and the words of its format.

use std::path::PathBuf;
use std::{env, fs, io};

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
    package().join("corpus").join(target)
}

/// The folder of this package. Cargo says at run time, because a build cache may have a program that was built in a checkout
/// that is gone.
fn package() -> PathBuf {
    let folder = env::var_os("CARGO_MANIFEST_DIR");
    folder.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Reads the corpus of a target, by file name. Every target has one: without it, mutations of nothing would find nothing.
pub fn read(target: &str) -> io::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    let folder = folder(target);
    let entries = fs::read_dir(&folder).map_err(|error| {
        let why = format!("cannot read the corpus in `{}`: {error}", folder.display());
        io::Error::new(error.kind(), why)
    })?;
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
    let path = package()
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
