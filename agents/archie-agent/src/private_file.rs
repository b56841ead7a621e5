//! Files and folders that only their owner may read: what people told their agents, and what lets us in somewhere.

use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Writes a file, whole or not at all. Makes its folder if it is not there.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.parent().unwrap_or(Path::new("."));
    folder(beside)?;
    // Only its owner may read a temporary file, and moved it still is one.
    let mut file = tempfile::NamedTempFile::new_in(beside)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Makes a folder if it is not there.
pub fn folder(path: &Path) -> io::Result<()> {
    match path.is_dir() {
        true => Ok(()),
        false => DirBuilder::new().recursive(true).mode(0o700).create(path),
    }
}

/// Reads a file of our own.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
}

/// Reads a file that only its owner may read; none if others may, too.
pub fn read_secret(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mode = std::fs::metadata(path)?.permissions().mode();
    match mode & 0o077 {
        0 => read(path).map(Some),
        _ => Ok(None),
    }
}
