//! What is in the way below a person's folder.

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::limits::spell_bytes;

/// What an entry of a folder is. A link is a link, whatever it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// Something that this program does not know.
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

/// Why something below a person's folder was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// Something else is where a file is expected.
    #[error("`{path}` is {kind}; only regular files are read and written here", path = path.display())]
    NotAFile {
        /// Which.
        path: PathBuf,
        /// What it is.
        kind: EntryKind,
    },
    /// Something else is where a folder is expected.
    #[error("`{path}` is {kind} where a folder is expected{hint}", path = path.display(), hint = hint(*kind))]
    NotAFolder {
        /// Which.
        path: PathBuf,
        /// What it is.
        kind: EntryKind,
    },
    /// It is larger than may be read.
    #[error("`{path}` is larger than {limit}", path = path.display(), limit = spell_bytes(*bytes_max))]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// How large it may be.
        bytes_max: u64,
    },
    /// It belongs to the kernel.
    #[error("`{path}` is made by the kernel (such as /proc or /sys) and holds no files of yours", path = path.display())]
    Kernel {
        /// Which.
        path: PathBuf,
    },
    /// A name that no file below a folder can have.
    #[error(transparent)]
    Name(#[from] super::BadName),
    /// The system.
    #[error("`{path}` cannot be read or written", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
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

    /// Whether nothing is there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }

    /// The reason without the path, for lists in which the name comes first.
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
