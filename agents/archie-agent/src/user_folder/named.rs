//! Files that the person named themselves, such as a workbook or an exported thread.
//!
//! Links in such a path are followed, because the person named it. What is read is still a regular file within a limit, and what
//! is written never goes through a link.

use std::path::{Component, Path, PathBuf};

use rustix::fs::Mode;

use super::{
    Access, EntryKind, FILE, FileName, FolderError, Result, UserFolder, read_all, regular,
};

/// Reads a file that the person named, of up to so many bytes.
pub fn read_named_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let shown = || path.to_owned();
    // A device is looked at before it is opened: opening one can do something by itself.
    let found = rustix::fs::stat(path).map_err(|errno| FolderError::io(path, errno))?;
    match EntryKind::of(rustix::fs::FileType::from_raw_mode(found.st_mode)) {
        EntryKind::File => {}
        kind => {
            return Err(FolderError::NotAFile {
                path: shown(),
                kind,
            });
        }
    }
    let file = rustix::fs::open(path, FILE, Mode::empty());
    let (file, bytes) = regular(file.map_err(|errno| FolderError::io(path, errno))?, shown)?;
    read_all(file, bytes, bytes_max, shown)
}

/// Writes a file that the person named, whole or not at all. Replaces a file; a link, a pipe or a device in its place is
/// refused, so that neither `/dev/stdout` is replaced nor anything is written elsewhere.
pub fn write_named_file(path: &Path, bytes: &[u8], access: Access) -> Result<()> {
    let (above, name) = split(path)?;
    let above = UserFolder::create(&above, Access::Shared)?;
    match above.kind_of(&name)? {
        None | Some(EntryKind::File) => above.write(&name.into(), bytes, access),
        Some(kind) => Err(FolderError::NotAFile {
            path: path.to_owned(),
            kind,
        }),
    }
}

/// Whether something is at a path that the person named.
pub fn exists_named(path: &Path) -> bool {
    rustix::fs::stat(path).is_ok()
}

/// A path that the person named, in full and without links as far as it exists: what it means now, it means later.
pub fn resolve_named(path: &Path) -> std::io::Result<PathBuf> {
    let full = std::path::absolute(path)?;
    let mut missing = Vec::new();
    let mut known = full.as_path();
    loop {
        match known.canonicalize() {
            Ok(mut resolved) => {
                resolved.extend(missing.iter().rev());
                return Ok(resolved);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // A part that is missing is taken as it is written; `..` behind it cannot be.
        match (known.components().next_back(), known.parent()) {
            (Some(Component::Normal(name)), Some(above)) => {
                missing.push(name.to_owned());
                known = above;
            }
            _ => return Ok(full),
        }
    }
}

/// The folder that a path is in, and its last name.
pub(super) fn split(path: &Path) -> Result<(PathBuf, FileName)> {
    let name = path.file_name().unwrap_or_default();
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
        _ => PathBuf::from("."),
    };
    Ok((above, FileName::new(name)?))
}
