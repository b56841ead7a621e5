//! Access to files that the person named, such as a workbook or an exported thread.
//!
//! Links in such a path are followed when reading, because the person chose it. Reads are still limited to regular files of a
//! maximum size, and writes never go through a link.

use std::path::{Component, Path, PathBuf};

use rustix::fs::Mode;

use super::{
    Access, EntryKind, FILE, FileName, FolderError, Result, UserFolder, read_all, regular,
};

/// Reads a regular file that the person named, of up to `bytes_max` bytes.
pub fn read_named_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let shown = || path.to_owned();
    // Opening a device can have side effects, so check the kind first.
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

/// Writes a file that the person named, atomically. Creates missing parent folders and replaces an existing file. Refuses a
/// link, a pipe or a device in its place, so that it neither replaces `/dev/stdout` nor writes elsewhere.
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

/// Returns whether something exists at a path that the person named. Follows links.
pub fn exists_named(path: &Path) -> bool {
    rustix::fs::stat(path).is_ok()
}

/// Returns a path that the person named as an absolute path, with links resolved as far as it exists, so that it keeps its
/// meaning when the current folder or a link changes.
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
        // Missing components stay as written. A `..` after one cannot be resolved.
        match (known.components().next_back(), known.parent()) {
            (Some(Component::Normal(name)), Some(above)) => {
                missing.push(name.to_owned());
                known = above;
            }
            _ => return Ok(full),
        }
    }
}

/// Splits a path into its parent and its last name.
pub(super) fn split(path: &Path) -> Result<(PathBuf, FileName)> {
    let name = path.file_name().unwrap_or_default();
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
        _ => PathBuf::from("."),
    };
    Ok((above, FileName::new(name)?))
}
