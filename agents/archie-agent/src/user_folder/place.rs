//! Files on their way to their place: written without a name, made durable, then moved.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::{FileName, FolderError, Result, UserFolder};

/// Who may read what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only its owner.
    Private,
    /// Whom the person's umask lets.
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

/// A whole file under a random name, removed again unless it is moved to its place.
#[derive(Debug)]
pub(super) struct Temporary {
    folder: UserFolder,
    name: FileName,
    is_moved: bool,
}

impl UserFolder {
    /// Writes a file that has a name only when it is whole: a process that is killed leaves nothing behind, except in the
    /// moment between the last two calls. File systems that have no files without a name get a random one from the start.
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
                    // Without /proc it cannot be given a name.
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

    /// Does something under a name that nobody can know before, and with another one if it is taken.
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
    /// Moves it to its place; what is there is replaced, be it a link.
    pub(super) fn replace(mut self, name: &FileName) -> Result<()> {
        let handle = &*self.folder.handle;
        rustix::fs::renameat(handle, self.name.as_os_str(), handle, name.as_os_str())
            .map_err(|errno| FolderError::io(&self.folder.shown_of(name), errno))?;
        self.is_moved = true;
        self.folder.sync();
        Ok(())
    }

    /// Moves it to its place; gives false if something is there.
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
            // No second name for a file here: look first. Only a race with the owner of the folder is lost by it.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
                if self.folder.kind_of(name)?.is_some() {
                    return Ok(false);
                }
                return self.replace(name).map(|()| true);
            }
            Err(errno) => return Err(FolderError::io(&self.folder.shown_of(name), errno)),
        }
        // Dropped, it takes its random name away; the file stays under the other.
        self.folder.sync();
        Ok(true)
    }
}

impl UserFolder {
    fn sync(&self) {
        // Some file systems cannot do that for a folder; the file itself is safe already.
        let _ = rustix::fs::fsync(&*self.handle);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_moved {
            // If it cannot be removed it is garbage in the person's folder, and nothing worse.
            let _ = rustix::fs::unlinkat(
                &*self.folder.handle,
                self.name.as_os_str(),
                AtFlags::empty(),
            );
        }
    }
}

const NAMES_TRIED: usize = 16;
