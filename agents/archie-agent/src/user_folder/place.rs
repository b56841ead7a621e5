//! Atomic writes: a file is written without a name, synced to disk, then moved into place.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::{FileName, FolderError, Result, UserFolder};

/// Who may access a new file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the owner (mode 0600 for files, 0700 for folders).
    Private,
    /// Everyone whom the person's `umask` allows.
    Shared,
}

impl Access {
    pub(super) fn file_mode(self) -> Mode {
        match self {
            Self::Private => Mode::from_raw_mode(0o600),
            Self::Shared => Mode::from_raw_mode(0o666),
        }
    }

    pub(super) fn folder_mode(self) -> Mode {
        match self {
            Self::Private => Mode::from_raw_mode(0o700),
            Self::Shared => Mode::from_raw_mode(0o777),
        }
    }
}

/// A complete file under a random name. Dropping it removes the file, unless it was moved into place.
#[derive(Debug)]
pub(super) struct Temporary {
    folder: UserFolder,
    name: FileName,
    is_moved: bool,
}

impl UserFolder {
    /// Writes a file that gets a name only once it is complete. A killed process leaves nothing behind, except between naming
    /// the file and moving it. On file systems without unnamed files, the file has a random name from the start.
    pub(super) fn write_temporary(&self, bytes: &[u8], access: Access) -> Result<Temporary> {
        let failed = |errno| FolderError::io(self.path(), errno);
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        match rustix::fs::openat(&*self.handle, ".", flags, access.file_mode()) {
            Ok(unnamed) => {
                let file = self.fill(unnamed, bytes)?;
                let from = format!("/proc/self/fd/{}", file.as_raw_fd());
                let linked = self.under_random_name(|name| {
                    let flags = AtFlags::SYMLINK_FOLLOW;
                    rustix::fs::linkat(CWD, &*from, &*self.handle, name.as_os_str(), flags)
                });
                match linked {
                    Ok(((), name)) => Ok(self.temporary(name)),
                    // An unnamed file can only be named through /proc, which is not mounted.
                    Err(Errno::NOENT) => self.write_with_name(bytes, access),
                    Err(errno) => Err(failed(errno)),
                }
            }
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                self.write_with_name(bytes, access)
            }
            Err(errno) => Err(failed(errno)),
        }
    }

    fn write_with_name(&self, bytes: &[u8], access: Access) -> Result<Temporary> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = self.under_random_name(|name| {
            rustix::fs::openat(&*self.handle, name.as_os_str(), flags, access.file_mode())
        });
        let (file, name) = opened.map_err(|errno| FolderError::io(self.path(), errno))?;
        let temporary = self.temporary(name);
        self.fill(file, bytes)?;
        Ok(temporary)
    }

    fn fill(&self, file: OwnedFd, bytes: &[u8]) -> Result<File> {
        let mut file = File::from(file);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|source| FolderError::Io {
            path: self.path().to_owned(),
            source,
        })?;
        Ok(file)
    }

    /// Calls `make` with an unpredictable name, and retries with another one if the name exists.
    fn under_random_name<T>(
        &self,
        mut make: impl FnMut(&FileName) -> rustix::io::Result<T>,
    ) -> rustix::io::Result<(T, FileName)> {
        for _ in 0..NAMES_TRIED {
            let name = format!(".{}.tmp", uuid::Uuid::new_v4().simple());
            let name = FileName::new(name).map_err(|_| Errno::INVAL)?;
            match make(&name) {
                Ok(made) => return Ok((made, name)),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }

    fn temporary(&self, name: FileName) -> Temporary {
        Temporary {
            folder: self.clone(),
            name,
            is_moved: false,
        }
    }
}

impl Temporary {
    /// Moves the file into place, replacing what is there; a link is replaced, not followed.
    pub(super) fn replace(mut self, name: &FileName) -> Result<()> {
        let handle = &*self.folder.handle;
        rustix::fs::renameat(handle, self.name.as_os_str(), handle, name.as_os_str())
            .map_err(|errno| FolderError::io(&self.folder.shown_of(name), errno))?;
        self.is_moved = true;
        self.folder.sync();
        Ok(())
    }

    /// Moves the file into place. Returns false if something is already there.
    pub(super) fn put(self, name: &FileName) -> Result<bool> {
        let handle = &*self.folder.handle;
        let flags = AtFlags::empty();
        match rustix::fs::linkat(
            handle,
            self.name.as_os_str(),
            handle,
            name.as_os_str(),
            flags,
        ) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(false),
            // The file system has no hard links, so check first. The check can only lose a race against the owner of the
            // folder.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
                if self.folder.kind_of(name)?.is_some() {
                    return Ok(false);
                }
                return self.replace(name).map(|()| true);
            }
            Err(errno) => return Err(FolderError::io(&self.folder.shown_of(name), errno)),
        }
        // Dropping `self` removes the random name; the file stays under its new one.
        self.folder.sync();
        Ok(true)
    }
}

impl UserFolder {
    fn sync(&self) {
        // Some file systems cannot sync a folder; the content of the file is already synced.
        let _ = rustix::fs::fsync(&*self.handle);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_moved {
            // If this fails, the person's folder keeps a stray file, which is harmless.
            let _ = rustix::fs::unlinkat(
                &*self.folder.handle,
                self.name.as_os_str(),
                AtFlags::empty(),
            );
        }
    }
}

const NAMES_TRIED: usize = 16;
