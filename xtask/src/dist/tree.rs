//! The files of an archive, written as a POSIX tar that depends on nothing but them: sorted, owned by numbers, with one time.
//!
//! It holds what a release needs and no more: files and folders. A path that does not fit the format is an error and is never cut.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, ensure};
use flate2::{Compression, GzBuilder};

/// Files and folders by their path, without a leading slash.
#[derive(Debug, Default)]
pub(super) struct Tree {
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    mode: u32,
    owner: u32,
    /// None for a folder.
    content: Option<Vec<u8>>,
}

impl Tree {
    /// Adds a file that root owns, and the folders above it.
    pub(super) fn file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        self.add(path, mode, 0, Some(content.into()));
    }

    /// Adds a folder, and the folders above it.
    pub(super) fn folder(&mut self, path: &str, mode: u32, owner: u32) {
        self.add(path, mode, owner, None);
    }

    fn add(&mut self, path: &str, mode: u32, owner: u32, content: Option<Vec<u8>>) {
        for (end, _) in path.match_indices('/') {
            let above = Entry {
                mode: 0o755,
                owner: 0,
                content: None,
            };
            self.entries.entry(path[..end].to_owned()).or_insert(above);
        }
        let entry = Entry {
            mode,
            owner,
            content,
        };
        self.entries.insert(path.to_owned(), entry);
    }

    /// Returns how many bytes the files have together.
    pub(super) fn bytes(&self) -> usize {
        let contents = self.entries.values().filter_map(|e| e.content.as_ref());
        contents.map(Vec::len).sum()
    }

    /// Returns the archive. `prefix` goes before each path; `date` is the time of each entry, in seconds since 1970.
    pub(super) fn to_tar(&self, prefix: &str, date: u64) -> anyhow::Result<Vec<u8>> {
        let mut tar = Vec::with_capacity(self.bytes() + 1024 * (self.entries.len() + 2));
        for (path, entry) in &self.entries {
            let slash = if entry.content.is_none() { "/" } else { "" };
            tar.extend(header(&format!("{prefix}{path}{slash}"), entry, date)?);
            let content = entry.content.as_deref().unwrap_or_default();
            tar.extend_from_slice(content);
            tar.resize(tar.len().next_multiple_of(BLOCK), 0);
        }
        // The end of the archive.
        tar.resize(tar.len() + 2 * BLOCK, 0);
        Ok(tar)
    }
}

/// Returns the compressed bytes, without a name or a time in their header.
pub(super) fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

fn header(path: &str, entry: &Entry, date: u64) -> anyhow::Result<[u8; BLOCK]> {
    let (folder, name) = split(path)?;
    let size = entry.content.as_ref().map_or(0, Vec::len) as u64;
    let kind = if entry.content.is_some() { b'0' } else { b'5' };
    let owner = if entry.owner == 0 { "root" } else { "" };
    let mut block = [0; BLOCK];
    let mut field = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    field(0, name.as_bytes());
    field(100, octal(entry.mode.into(), 7)?.as_bytes());
    field(108, octal(entry.owner.into(), 7)?.as_bytes());
    field(116, octal(entry.owner.into(), 7)?.as_bytes());
    field(124, octal(size, 11)?.as_bytes());
    field(136, octal(date, 11)?.as_bytes());
    // The checksum counts itself as blanks.
    field(148, b"        ");
    field(156, &[kind]);
    field(257, b"ustar\x0000");
    field(265, owner.as_bytes());
    field(297, owner.as_bytes());
    field(345, folder.as_bytes());
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    let sum = format!("{}\0 ", octal(sum, 6)?);
    block[148..156].copy_from_slice(sum.as_bytes());
    Ok(block)
}

/// Splits a path into what the two fields of the format hold. The name must not be empty.
fn split(path: &str) -> anyhow::Result<(&str, &str)> {
    if path.len() <= NAME_MAX {
        return Ok(("", path));
    }
    let mut slashes = path.match_indices('/').map(|(at, _)| at);
    let fits = |at: &usize| *at <= FOLDER_MAX && (1..=NAME_MAX).contains(&(path.len() - at - 1));
    let at = slashes.find(fits);
    let at = at.with_context(|| format!("`{path}` is too long for a tar archive"))?;
    Ok((&path[..at], &path[at + 1..]))
}

fn octal(number: u64, digits: usize) -> anyhow::Result<String> {
    let text = format!("{number:0digits$o}");
    ensure!(
        text.len() == digits,
        "{number} is too large for a tar archive"
    );
    Ok(text)
}

const BLOCK: usize = 512;
const NAME_MAX: usize = 100;
const FOLDER_MAX: usize = 155;

#[cfg(test)]
mod tests {
    use std::process::Command;

    use harness::workspace::output_of;

    use super::*;

    const DATE: u64 = 1_700_000_000;

    fn listed(tar: &[u8]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tar");
        std::fs::write(&path, tar).unwrap();
        let mut command = Command::new("tar");
        command.args(["--utc", "--numeric-owner", "-tvf"]).arg(path);
        let text = output_of(&mut command).unwrap();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect()
    }

    #[test]
    fn tar_lists_what_was_added_in_order_with_modes_owners_and_the_date() {
        let mut tree = Tree::default();
        tree.file("usr/share/b", 0o644, "four");
        tree.file("usr/bin/archie", 0o755, "");
        tree.folder("var/lib/archie", 0o700, 65532);
        assert_eq!(
            listed(&tree.to_tar("./", DATE).unwrap()),
            [
                "drwxr-xr-x 0/0 0 2023-11-14 22:13 ./usr/",
                "drwxr-xr-x 0/0 0 2023-11-14 22:13 ./usr/bin/",
                "-rwxr-xr-x 0/0 0 2023-11-14 22:13 ./usr/bin/archie",
                "drwxr-xr-x 0/0 0 2023-11-14 22:13 ./usr/share/",
                "-rw-r--r-- 0/0 4 2023-11-14 22:13 ./usr/share/b",
                "drwxr-xr-x 0/0 0 2023-11-14 22:13 ./var/",
                "drwxr-xr-x 0/0 0 2023-11-14 22:13 ./var/lib/",
                "drwx------ 65532/65532 0 2023-11-14 22:13 ./var/lib/archie/",
            ]
        );
    }

    #[test]
    fn contents_come_out_as_they_went_in() {
        let content: Vec<u8> = (0..1537).map(|byte| byte as u8).collect();
        let mut tree = Tree::default();
        tree.file("a", 0o644, content.clone());
        tree.file("b", 0o644, "next");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tar.gz");
        std::fs::write(&path, gzip(&tree.to_tar("", DATE).unwrap()).unwrap()).unwrap();
        let mut command = Command::new("tar");
        output_of(command.arg("-xzf").arg(path).arg("-C").arg(folder.path())).unwrap();
        assert_eq!(std::fs::read(folder.path().join("a")).unwrap(), content);
        assert_eq!(std::fs::read(folder.path().join("b")).unwrap(), b"next");
    }

    #[test]
    fn an_archive_does_not_depend_on_the_order_in_which_files_were_added() {
        let tar = |paths: [&str; 3]| {
            let mut tree = Tree::default();
            for path in paths {
                tree.file(path, 0o644, path);
            }
            gzip(&tree.to_tar("", DATE).unwrap()).unwrap()
        };
        assert_eq!(tar(["b", "a/c", "a/b"]), tar(["a/b", "b", "a/c"]));
    }

    #[test]
    fn a_long_path_is_split_and_one_that_does_not_fit_is_refused() {
        let long = format!("{0}/{0}/{1}", "f".repeat(60), "n".repeat(80));
        let mut tree = Tree::default();
        tree.file(&long, 0o644, "");
        let listed = listed(&tree.to_tar("", DATE).unwrap());
        assert!(listed[2].ends_with(&long), "{listed:?}");
        tree.file(&"n".repeat(101), 0o644, "");
        let refused = tree.to_tar("", DATE).unwrap_err().to_string();
        assert!(refused.contains("too long"), "{refused}");
    }

    #[test]
    fn a_compressed_file_has_no_time() {
        assert_eq!(gzip(b"text").unwrap()[4..8], [0; 4]);
    }
}
