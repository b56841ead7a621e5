//! Files and folders that only their owner may read: conversations with agents, and credentials.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes a file atomically, readable only by its owner. Creates its folder if it is missing.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.parent().unwrap_or(Path::new("."));
    folder(beside)?;
    // A temporary file is readable only by its owner, and keeps its mode when it is renamed.
    let mut file = tempfile::NamedTempFile::new_in(beside)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Opens a file to append to it. Creates it readable only by its owner; leaves the mode of an existing file as it is.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// Creates a folder and its missing parents with mode 0700. Leaves an existing folder as it is.
pub fn folder(path: &Path) -> io::Result<()> {
    match path.is_dir() {
        true => Ok(()),
        false => DirBuilder::new().recursive(true).mode(0o700).create(path),
    }
}

/// Reads a file that this program wrote. Does not check its mode.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
}

/// Reads a file only if its mode grants no access to group and others; otherwise returns `None`.
pub fn read_secret(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mode = std::fs::metadata(path)?.permissions().mode();
    match mode & 0o077 {
        0 => read(path).map(Some),
        _ => Ok(None),
    }
}
