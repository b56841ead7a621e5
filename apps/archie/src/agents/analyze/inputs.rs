//! The folder of notes: what is read, what is not, and why.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::state::{Inputs, Skipped};

/// The name of the result, which is never an input.
pub const RESULT: &str = "analysis_result.md";

/// What was read.
#[derive(Debug, Default, PartialEq)]
pub struct Read {
    /// Name and content.
    pub contents: BTreeMap<String, String>,
    /// The rest.
    pub inputs: Inputs,
}

/// Reads the `.txt` and `.md` files of a folder. Links that lead out of it, results of earlier analyses and what is no text are
/// skipped, and said to be.
pub fn read_files(folder: &Path, recursive: bool) -> anyhow::Result<Read> {
    let root = fs::canonicalize(folder).with_context(|| {
        format!(
            "there is no folder `{}`; give one with --inputs",
            folder.display()
        )
    })?;
    if !root.is_dir() {
        bail!(
            "`{}` is not a folder; give the folder that holds your notes",
            folder.display()
        );
    }
    let mut read = Read::default();
    read.inputs.folder = folder.display().to_string();
    read.inputs.recursive = recursive;
    walk(&root, &root, recursive, &mut read)?;
    Ok(read)
}

fn walk(root: &Path, folder: &Path, recursive: bool, read: &mut Read) -> anyhow::Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("`{}` cannot be read", folder.display()))?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in entries {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        let name = name_of(root, &path);
        let mut skip = |why: &str| {
            read.inputs.skipped.push(Skipped {
                name: name.clone(),
                why: why.to_owned(),
            });
        };
        let Ok(real) = fs::canonicalize(&path) else {
            skip("a link that leads nowhere");
            continue;
        };
        if !real.starts_with(root) {
            skip("a link that leaves the folder");
            continue;
        }
        if real.is_dir() {
            match recursive && !name.starts_with('.') {
                true => walk(root, &path, recursive, read)?,
                false => skip("a folder; --recursive reads those, too"),
            }
            continue;
        }
        if is_result(&path) {
            skip("the result of an earlier analysis");
            continue;
        }
        if !is_note(&path) {
            skip("neither .txt nor .md");
            continue;
        }
        let bytes = fs::read(&path).with_context(|| format!("`{name}` cannot be read"))?;
        match decoded(&bytes) {
            Some(text) => {
                read.inputs.hashes.insert(name.clone(), hash(&bytes));
                read.contents.insert(name, text);
            }
            None => skip("not text in UTF-8 or UTF-16"),
        }
    }
    Ok(())
}

fn name_of(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.display().to_string()
}

fn is_note(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ["txt", "md"].contains(&ending.to_lowercase().as_str()))
}

/// The result, and those before it that were kept.
fn is_result(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    name == RESULT || (name.starts_with("analysis_result.") && name.ends_with(".md"))
}

/// By its mark, or as UTF-8.
fn decoded(bytes: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| read([pair[0], pair[1]]))
            .collect();
        String::from_utf16(&units).ok()
    };
    match bytes {
        [0xEF, 0xBB, 0xBF, text @ ..] => String::from_utf8(text.to_vec()).ok(),
        [0xFF, 0xFE, text @ ..] => wide(text, u16::from_le_bytes),
        [0xFE, 0xFF, text @ ..] => wide(text, u16::from_be_bytes),
        text => String::from_utf8(text.to_vec())
            .ok()
            .filter(|text| !text.contains('\0')),
    }
}

/// A checksum that tells whether a file has changed. Not against somebody who wants it to look the same.
pub fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a2_only_notes_are_read_and_the_rest_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("a.md", b"# Queue\n");
        write("B.TXT", b"\xFF\xFEh\0i\0");
        write("c.png", b"\x89PNG");
        write("d.txt", b"\xC3\x28");
        write("analysis_result.md", b"old");
        write("analysis_result.2.md", b"older");
        fs::create_dir(folder.path().join("sub")).unwrap();
        write("sub/e.md", b"deep");
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("out.txt")).unwrap();
        let read = read_files(folder.path(), false).unwrap();
        assert_eq!(read.contents.keys().collect::<Vec<_>>(), ["B.TXT", "a.md"]);
        assert_eq!(read.contents["B.TXT"], "hi");
        let skipped: Vec<_> = read
            .inputs
            .skipped
            .iter()
            .map(|s| s.name.as_str())
            .collect();
        assert_eq!(
            skipped,
            [
                "analysis_result.2.md",
                "analysis_result.md",
                "c.png",
                "d.txt",
                "out.txt",
                "sub"
            ]
        );
        let deep = read_files(folder.path(), true).unwrap();
        assert_eq!(deep.contents["sub/e.md"], "deep");
    }

    #[test]
    fn a_folder_that_is_not_there_is_said_so() {
        let error = read_files(Path::new("/no/such/folder"), false).unwrap_err();
        assert!(error.to_string().contains("give one with --inputs"));
    }
}
