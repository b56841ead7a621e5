//! Files and folders that only their owner may read: conversations with agents, and credentials.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

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

/// Opens a file to append to it. Creates it readable only by its owner. Refuses a link, anything else that is not a file, and a
/// file whose mode grants access to group or others.
pub fn append(path: &Path) -> io::Result<File> {
    // Without `NONBLOCK`, opening a named pipe would wait for a reader.
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    match found.permissions().mode() & 0o077 {
        0 => Ok(file),
        _ => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "others can access it; run `chmod 600` on it or name another file",
        )),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_appended_to_only_if_it_is_private_and_not_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for line in ["one\n", "two\n"] {
            append(&path).unwrap().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(read(&path).unwrap(), b"one\ntwo\n");
        assert!(read_secret(&path).unwrap().is_some());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(append(&link).is_err());
        let shared = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(&path, shared).unwrap();
        let error = append(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(read(&path).unwrap(), b"one\ntwo\n");
    }
}
