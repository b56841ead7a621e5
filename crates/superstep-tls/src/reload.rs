//! A value made of files, which is made again when the files have changed.
//!
//! The files are read at every use, because they are small next to a handshake, and a comparison of times and sizes would miss a
//! change within one tick of the clock. Only digests of what was read are kept.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::TlsError;

/// A file that was read.
pub(crate) struct ReadFile {
    pub(crate) path: PathBuf,
    pub(crate) text: Vec<u8>,
}

/// A value made of files. Changed files that cannot be used leave the last value in place.
pub(crate) struct Reloading<T> {
    paths: Vec<PathBuf>,
    parse: fn(&[ReadFile]) -> Result<T, TlsError>,
    last: Mutex<Last<T>>,
}

struct Last<T> {
    /// Of the files that the value was made of, or that were found unusable since.
    digests: Vec<[u8; 32]>,
    value: Arc<T>,
}

impl<T> Reloading<T> {
    /// Reads the files for the first time. Fails if they cannot be used.
    pub(crate) fn open(
        paths: Vec<PathBuf>,
        parse: fn(&[ReadFile]) -> Result<T, TlsError>,
    ) -> Result<Self, TlsError> {
        let read = read(&paths)?;
        let last = Last {
            digests: digests(&read),
            value: Arc::new(parse(&read)?),
        };
        Ok(Self {
            paths,
            parse,
            last: Mutex::new(last),
        })
    }

    /// Returns the value of the files as they are now.
    pub(crate) fn current(&self) -> Arc<T> {
        // Its fields change together at the end, so a panic cannot leave it half changed.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let read = match read(&self.paths) {
            Ok(read) => read,
            Err(error) => {
                warn(&error);
                return Arc::clone(&last.value);
            }
        };
        let digests = digests(&read);
        if digests == last.digests {
            return Arc::clone(&last.value);
        }
        match (self.parse)(&read) {
            Ok(value) => {
                tracing::info!(files = ?self.paths, "certificates replaced");
                last.value = Arc::new(value);
            }
            Err(error) => warn(&error),
        }
        // Also of unusable files: one warning for each change is enough.
        last.digests = digests;
        Arc::clone(&last.value)
    }
}

impl<T> fmt::Debug for Reloading<T> {
    /// Omits the value, which may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading")
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

fn warn(error: &TlsError) {
    tracing::warn!(%error, "changed certificates cannot be used; the last ones stay in use");
}

fn read(paths: &[PathBuf]) -> Result<Vec<ReadFile>, TlsError> {
    let read = |path: &PathBuf| match std::fs::read(path) {
        Ok(text) => Ok(ReadFile {
            path: path.clone(),
            text,
        }),
        Err(source) => Err(TlsError::File {
            file: path.clone(),
            source,
        }),
    };
    paths.iter().map(read).collect()
}

fn digests(read: &[ReadFile]) -> Vec<[u8; 32]> {
    let digest = |file: &ReadFile| -> [u8; 32] { Sha256::digest(&file.text).into() };
    read.iter().map(digest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(read: &[ReadFile]) -> Result<u32, TlsError> {
        let text = String::from_utf8_lossy(&read[0].text).into_owned();
        text.parse().map_err(|_| TlsError::NoCertificate {
            file: read[0].path.clone(),
        })
    }

    #[test]
    fn a_changed_file_is_read_again_and_an_unusable_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        std::fs::write(&path, "1").unwrap();
        let value = Reloading::open(vec![path.clone()], number).unwrap();
        assert_eq!(*value.current(), 1);
        std::fs::write(&path, "2").unwrap();
        assert_eq!(*value.current(), 2);
        std::fs::write(&path, "not a number").unwrap();
        assert_eq!(*value.current(), 2);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(*value.current(), 2);
        std::fs::write(&path, "3").unwrap();
        assert_eq!(*value.current(), 3);
        assert!(Reloading::open(vec![folder.path().join("absent")], number).is_err());
    }
}
