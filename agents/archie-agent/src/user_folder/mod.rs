//! The only way to read and write below a folder that belongs to a person and may contain files from untrusted sources.
//!
//! A cloned repository, an unpacked archive or a shared folder of notes can hold symbolic links, named pipes, devices and
//! endless files. A path that is checked and then used again by name can change in between. Therefore:
//!
//! - The folder that the person named is opened once ([`UserFolder::open`]). Links in that path are followed, because the
//!   person chose it.
//! - Below it, every component of a path is opened relative to the handle of its parent, and links are refused everywhere. No
//!   path is resolved twice, so nothing can change between check and use.
//! - Names from outside are first parsed into a [`FileName`] or a [`RelativePath`], which cannot contain `..`, an absolute
//!   path, an empty component or NUL.
//! - Only regular files are read, never a pipe, a socket, a device or a kernel file (`/proc`, `/sys`). Every read and every
//!   listing has a limit.
//! - A write goes to a new unnamed file, which is synced to disk and then moved into place. It replaces the old file and never
//!   writes through it.
//!
//! The module does not depend on the rest of the program.

mod error;
mod limits;
mod name;
mod named;
mod place;

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

pub use error::{EntryKind, FolderError};
pub use limits::{Allowance, FolderLimits, spell_bytes};
pub use name::{BadName, FileName, RelativePath};
pub use named::{exists_named, read_named_file, resolve_named, write_named_file};
pub use place::Access;

type Result<T, E = FolderError> = std::result::Result<T, E>;

/// A person's folder, held open. Everything below it is reached through this handle; links are not followed.
#[derive(Clone, Debug)]
pub struct UserFolder {
    handle: Arc<OwnedFd>,
    /// Path as the person knows it, for messages only.
    shown: PathBuf,
}

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name within the folder.
    pub name: FileName,
    /// Kind of the entry; a link counts as a link, whatever it points to.
    pub kind: EntryKind,
}

/// Contents of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Entries, sorted by name.
    pub entries: Vec<Entry>,
    /// Whether the folder has more entries than the caller's limit.
    pub is_cut: bool,
}

impl UserFolder {
    /// Opens a folder that the person named. Follows links in the path.
    pub fn open(path: &Path) -> Result<Self> {
        let handle = rustix::fs::open(path, FOLDER, Mode::empty());
        let handle = handle.map_err(|errno| match errno {
            Errno::NOTDIR => FolderError::NotAFolder {
                path: path.to_owned(),
                kind: EntryKind::File,
            },
            _ => FolderError::io(path, errno),
        })?;
        Self::from_handle(handle, path.to_owned())
    }

    /// Opens a folder that the person named, creating it and its missing parents. Follows links in the path.
    pub fn create(path: &Path, access: Access) -> Result<Self> {
        let mode = access.folder_mode().as_raw_mode();
        let created = DirBuilder::new().recursive(true).mode(mode).create(path);
        created.map_err(|source| FolderError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::open(path)
    }

    /// Opens a folder whose parent the person chose, but not the folder itself, such as `out` in the current folder. Creates it
    /// if it is missing. Follows links in the path of the parent, but refuses a link in place of the folder.
    pub fn create_unlinked(path: &Path, access: Access) -> Result<Self> {
        let (above, name) = named::split(path)?;
        Self::create(&above, access)?.create_folder(&name.into(), access)
    }

    /// Like [`UserFolder::create_unlinked`], but returns `None` if the folder is missing, and creates nothing.
    pub fn open_unlinked(path: &Path) -> Result<Option<Self>> {
        let (above, name) = named::split(path)?;
        match Self::open(&above).and_then(|above| above.folder(&name.into())) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the path as the person knows it, for messages only.
    pub fn path(&self) -> &Path {
        &self.shown
    }

    /// Opens a folder below this one.
    pub fn folder(&self, path: &RelativePath) -> Result<Self> {
        let mut folder = self.clone();
        for name in path.names() {
            folder = folder.enter(name)?;
        }
        Ok(folder)
    }

    /// Opens a folder below this one, creating every missing folder on the way.
    pub fn create_folder(&self, path: &RelativePath, access: Access) -> Result<Self> {
        let mut folder = self.clone();
        for name in path.names() {
            match rustix::fs::mkdirat(&*folder.handle, name.as_os_str(), access.folder_mode()) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(FolderError::io(&folder.shown_of(name), errno)),
            }
            folder = folder.enter(name)?;
        }
        Ok(folder)
    }

    /// Returns the kind of the entry at a path, or `None` if there is nothing. Does not follow a link.
    pub fn kind(&self, path: &RelativePath) -> Result<Option<EntryKind>> {
        let Some((above, name)) = path.split_last() else {
            return Ok(Some(EntryKind::Folder));
        };
        match self.folder(&above) {
            Ok(folder) => folder.kind_of(name),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the folder, up to `entries_max` entries. The file system decides which entries a cut listing omits.
    pub fn entries(&self, entries_max: usize) -> Result<Listing> {
        let failed = |errno| FolderError::io(&self.shown, errno);
        let mut listing = Listing::default();
        for entry in Dir::read_from(&*self.handle).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let bytes = entry.file_name().to_bytes();
            // The only names from the kernel that fail here are `.` and `..`.
            let Ok(name) = FileName::from_bytes(bytes) else {
                continue;
            };
            if listing.entries.len() == entries_max {
                listing.is_cut = true;
                break;
            }
            let kind = match entry.file_type() {
                // Not every file system includes the type in a listing.
                FileType::Unknown => match self.kind_of(&name)? {
                    Some(kind) => kind,
                    None => continue,
                },
                known => EntryKind::of(known),
            };
            listing.entries.push(Entry { name, kind });
        }
        listing
            .entries
            .sort_by(|one, other| one.name.cmp(&other.name));
        Ok(listing)
    }

    /// Reads a regular file of up to `bytes_max` bytes. Fails on a larger file, without reading it.
    pub fn read(&self, path: &RelativePath, bytes_max: u64) -> Result<Vec<u8>> {
        let (above, name) = self.place_of(path)?;
        let (file, bytes) = above.open_file(name)?;
        read_all(file, bytes, bytes_max, || above.shown_of(name))
    }

    /// Like [`UserFolder::read`], but returns `None` if there is nothing at the path.
    pub fn read_if_present(&self, path: &RelativePath, bytes_max: u64) -> Result<Option<Vec<u8>>> {
        match self.read(path, bytes_max) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the size of a regular file in bytes.
    pub fn file_bytes(&self, path: &RelativePath) -> Result<u64> {
        let (above, name) = self.place_of(path)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statat(&*above.handle, name.as_os_str(), flags);
        let found = found.map_err(|errno| FolderError::io(&above.shown_of(name), errno))?;
        match EntryKind::of(FileType::from_raw_mode(found.st_mode)) {
            EntryKind::File => Ok(u64::try_from(found.st_size).unwrap_or(u64::MAX)),
            kind => Err(above.not_a_file(name, kind)),
        }
    }

    /// Returns the target of a link as it is written. The target itself is not accessed.
    pub fn link_target(&self, path: &RelativePath) -> Result<Vec<u8>> {
        let (above, name) = self.place_of(path)?;
        let target = rustix::fs::readlinkat(&*above.handle, name.as_os_str(), Vec::new());
        let target = target.map_err(|errno| FolderError::io(&above.shown_of(name), errno))?;
        Ok(target.into_bytes())
    }

    /// Writes a file atomically and durably. Replaces an existing file; a link is itself replaced, not followed. Fails on a
    /// folder.
    pub fn write(&self, path: &RelativePath, bytes: &[u8], access: Access) -> Result<()> {
        let (above, name) = self.place_of(path)?;
        if let Some(kind @ EntryKind::Folder) = above.kind_of(name)? {
            return Err(above.not_a_file(name, kind));
        }
        let temporary = above.write_temporary(bytes, access)?;
        temporary.replace(name)
    }

    /// Writes a new file atomically and durably. Returns false, and changes nothing, if the path already exists.
    pub fn write_new(&self, path: &RelativePath, bytes: &[u8], access: Access) -> Result<bool> {
        let (above, name) = self.place_of(path)?;
        if above.kind_of(name)?.is_some() {
            return Ok(false);
        }
        let temporary = above.write_temporary(bytes, access)?;
        temporary.put(name)
    }

    /// Writes a new file without syncing it, readable only by its owner: for files that may be lost in a crash, such as those
    /// in a temporary folder.
    pub fn write_scratch(&self, path: &RelativePath, bytes: &[u8]) -> Result<()> {
        let (above, name) = self.place_of(path)?;
        let mut file = File::from(above.create_file(name)?);
        file.write_all(bytes).map_err(|source| FolderError::Io {
            path: above.shown_of(name),
            source,
        })
    }

    /// Creates a link to `target`, which may be anything. This module never follows it.
    pub fn write_link(&self, path: &RelativePath, target: &[u8]) -> Result<()> {
        let (above, name) = self.place_of(path)?;
        rustix::fs::symlinkat(target, &*above.handle, name.as_os_str())
            .map_err(|errno| FolderError::io(&above.shown_of(name), errno))
    }

    /// Creates a sparse file of this size, which reads as zeros and takes no space.
    pub fn write_hole(&self, path: &RelativePath, bytes: u64) -> Result<()> {
        let (above, name) = self.place_of(path)?;
        rustix::fs::ftruncate(above.create_file(name)?, bytes)
            .map_err(|errno| FolderError::io(&above.shown_of(name), errno))
    }

    /// Moves an entry of any kind, replacing what is at the destination.
    pub fn rename(&self, from: &RelativePath, to: &RelativePath) -> Result<()> {
        let ((old, from), (new, to)) = (self.place_of(from)?, self.place_of(to)?);
        rustix::fs::renameat(&*old.handle, from.as_os_str(), &*new.handle, to.as_os_str())
            .map_err(|errno| FolderError::io(&old.shown_of(from), errno))
    }

    /// Moves an entry of any kind. Returns false, and changes nothing, if the destination exists.
    pub fn rename_new(&self, from: &RelativePath, to: &RelativePath) -> Result<bool> {
        let ((old, from), (new, to)) = (self.place_of(from)?, self.place_of(to)?);
        let moved = rustix::fs::renameat_with(
            &*old.handle,
            from.as_os_str(),
            &*new.handle,
            to.as_os_str(),
            RenameFlags::NOREPLACE,
        );
        match moved {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // The file system does not support this flag, so check first. The check can only lose a race against the owner of
            // the folder.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                if new.kind_of(to)?.is_some() {
                    return Ok(false);
                }
                rustix::fs::renameat(&*old.handle, from.as_os_str(), &*new.handle, to.as_os_str())
                    .map(|()| true)
                    .map_err(|errno| FolderError::io(&old.shown_of(from), errno))
            }
            Err(errno) => Err(FolderError::io(&old.shown_of(from), errno)),
        }
    }

    fn from_handle(handle: OwnedFd, shown: PathBuf) -> Result<Self> {
        let found = rustix::fs::fstatfs(&handle).map_err(|errno| FolderError::io(&shown, errno))?;
        // The field's type depends on the platform; the magic numbers do not.
        let is_kernel = |kind: &u32| i128::from(found.f_type) == i128::from(*kind);
        if KERNEL_FILE_SYSTEMS.iter().any(is_kernel) {
            return Err(FolderError::Kernel { path: shown });
        }
        Ok(Self {
            handle: Arc::new(handle),
            shown,
        })
    }

    fn enter(&self, name: &FileName) -> Result<Self> {
        let flags = FOLDER | OFlags::NOFOLLOW;
        let handle = rustix::fs::openat(&*self.handle, name.as_os_str(), flags, Mode::empty());
        match handle {
            Ok(handle) => Self::from_handle(handle, self.shown_of(name)),
            Err(errno @ (Errno::NOTDIR | Errno::LOOP)) => match self.kind_of(name)? {
                Some(kind) if kind != EntryKind::Folder => Err(FolderError::NotAFolder {
                    path: self.shown_of(name),
                    kind,
                }),
                _ => Err(FolderError::io(&self.shown_of(name), errno)),
            },
            Err(errno) => Err(FolderError::io(&self.shown_of(name), errno)),
        }
    }

    /// Opens the parent of a path, and returns it with the last name.
    fn place_of<'a>(&self, path: &'a RelativePath) -> Result<(Self, &'a FileName)> {
        let Some((above, name)) = path.split_last() else {
            return Err(self.not_a_file_here());
        };
        Ok((self.folder(&above)?, name))
    }

    fn open_file(&self, name: &FileName) -> Result<(File, u64)> {
        // Opening a device can have side effects, so check the kind before opening; `regular` checks again after.
        match self.kind_of(name)? {
            Some(EntryKind::File) => {}
            Some(kind) => return Err(self.not_a_file(name, kind)),
            None => return Err(FolderError::io(&self.shown_of(name), Errno::NOENT)),
        }
        let flags = FILE | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&*self.handle, name.as_os_str(), flags, Mode::empty());
        let file = file.map_err(|errno| match errno {
            Errno::LOOP => self.not_a_file(name, EntryKind::Link),
            Errno::NXIO => self.not_a_file(name, EntryKind::Socket),
            _ => FolderError::io(&self.shown_of(name), errno),
        })?;
        regular(file, || self.shown_of(name))
    }

    fn create_file(&self, name: &FileName) -> Result<OwnedFd> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Access::Private.file_mode();
        rustix::fs::openat(&*self.handle, name.as_os_str(), flags, mode)
            .map_err(|errno| FolderError::io(&self.shown_of(name), errno))
    }

    fn kind_of(&self, name: &FileName) -> Result<Option<EntryKind>> {
        let found = rustix::fs::statat(&*self.handle, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW);
        match found {
            Ok(found) => Ok(Some(EntryKind::of(FileType::from_raw_mode(found.st_mode)))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FolderError::io(&self.shown_of(name), errno)),
        }
    }

    fn shown_of(&self, name: &FileName) -> PathBuf {
        self.shown.join(name.as_os_str())
    }

    fn not_a_file(&self, name: &FileName, kind: EntryKind) -> FolderError {
        FolderError::NotAFile {
            path: self.shown_of(name),
            kind,
        }
    }

    fn not_a_file_here(&self) -> FolderError {
        FolderError::NotAFile {
            path: self.shown.clone(),
            kind: EntryKind::Folder,
        }
    }
}

/// Returns an opened file and its size, or an error if it is not a regular file.
fn regular(file: OwnedFd, shown: impl Fn() -> PathBuf) -> Result<(File, u64)> {
    let found = rustix::fs::fstat(&file).map_err(|errno| FolderError::io(&shown(), errno))?;
    match EntryKind::of(FileType::from_raw_mode(found.st_mode)) {
        EntryKind::File => Ok((
            File::from(file),
            u64::try_from(found.st_size).unwrap_or(u64::MAX),
        )),
        kind => Err(FolderError::NotAFile {
            path: shown(),
            kind,
        }),
    }
}

fn read_all(
    file: File,
    bytes: u64,
    bytes_max: u64,
    shown: impl Fn() -> PathBuf,
) -> Result<Vec<u8>> {
    let too_large = || FolderError::TooLarge {
        path: shown(),
        bytes_max,
    };
    if bytes > bytes_max {
        return Err(too_large());
    }
    let mut read = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    // The file may grow while it is read.
    let mut file = file.take(bytes_max.saturating_add(1));
    file.read_to_end(&mut read)
        .map_err(|source| FolderError::Io {
            path: shown(),
            source,
        })?;
    match read.len() as u64 > bytes_max {
        true => Err(too_large()),
        false => Ok(read),
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Opening a pipe for reading would block until there is a writer, and opening a terminal could make it our controlling
/// terminal.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Magic numbers of file systems whose files the kernel generates on read: they have no size or no end, and some reads have
/// side effects.
const KERNEL_FILE_SYSTEMS: [u32; 9] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x1cd1,      // devpts
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
];

#[cfg(test)]
mod tests;
