//! Errors below a person's folder, and the kinds of entries found there.

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::limits::spell_bytes;

/// Kind of a folder's entry. A link counts as a link, whatever it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder (directory).
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe (FIFO).
    Pipe,
    /// A Unix domain socket.
    Socket,
    /// A character or block device.
    Device,
    /// A type that this program does not know.
    Other,
}

impl EntryKind {
    pub(super) fn of(found: FileType) -> Self {
        match found {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Self::Device,
            FileType::Unknown => Self::Other,
        }
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a symbolic link",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Other => "neither a file nor a folder",
        })
    }
}

/// Why a path below a person's folder was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The path is not a regular file.
    #[error("`{path}` is {kind}; only regular files are read and written here", path = path.display())]
    NotAFile {
        /// Path as the person knows it.
        path: PathBuf,
        /// Kind of the entry at the path.
        kind: EntryKind,
    },
    /// The path is not a folder.
    #[error("`{path}` is {kind} where a folder is expected{hint}", path = path.display(), hint = hint(*kind))]
    NotAFolder {
        /// Path as the person knows it.
        path: PathBuf,
        /// Kind of the entry at the path.
        kind: EntryKind,
    },
    /// The file is larger than the caller's limit.
    #[error("`{path}` is larger than {limit}", path = path.display(), limit = spell_bytes(*bytes_max))]
    TooLarge {
        /// Path as the person knows it.
        path: PathBuf,
        /// The limit in bytes.
        bytes_max: u64,
    },
    /// The folder is on a file system that the kernel generates, such as `/proc` or `/sys`.
    #[error("`{path}` is made by the kernel (such as /proc or /sys) and holds no files of yours", path = path.display())]
    Kernel {
        /// Path as the person knows it.
        path: PathBuf,
    },
    /// The name is not valid for an entry of a folder.
    #[error(transparent)]
    Name(#[from] super::BadName),
    /// A system call failed.
    #[error("`{path}` cannot be read or written", path = path.display())]
    Io {
        /// Path as the person knows it.
        path: PathBuf,
        /// Error from the operating system.
        #[source]
        source: std::io::Error,
    },
}

impl FolderError {
    pub(super) fn io(path: &Path, errno: Errno) -> Self {
        Self::Io {
            path: path.to_owned(),
            source: errno.into(),
        }
    }

    /// Returns whether the error means that nothing exists at the path.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }

    /// Returns the reason without the path, for lists that already show the name.
    pub fn reason(&self) -> String {
        match self {
            Self::NotAFile { kind, .. } | Self::NotAFolder { kind, .. } => {
                format!("{kind}, which is not followed or read")
            }
            Self::TooLarge { bytes_max, .. } => format!("larger than {}", spell_bytes(*bytes_max)),
            Self::Kernel { .. } => "made by the kernel, and not a file of yours".to_owned(),
            Self::Name(error) => error.to_string(),
            Self::Io { source, .. } => source.to_string(),
        }
    }
}

fn hint(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Link => "; links are not followed here, so name the folder that it leads to",
        _ => "",
    }
}

impl From<FolderError> for std::io::Error {
    fn from(error: FolderError) -> Self {
        let kind = match &error {
            FolderError::Io { source, .. } => source.kind(),
            FolderError::TooLarge { .. } => std::io::ErrorKind::FileTooLarge,
            _ => std::io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}
