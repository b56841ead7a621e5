//! Stores workbooks between steps: one folder per thread, with files named after their content.
//!
//! The state holds only ids. A file is written atomically, before the step that refers to it is recorded, so it is either
//! complete or absent. Writing it again after a crash gives the same file. Every read verifies the content: the name of a file
//! is a checksum of its content. The id of a workbook ignores metadata that programs add when they save (`docProps`), so a
//! separate checksum covers the whole file.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use archie_agent::private_file;
use archie_agent::user_folder::FolderError;
use superstep::ThreadId;

use super::book::{Book, BookError, read, snapshot_id};

/// Store for the snapshots of all threads.
#[derive(Debug, Clone)]
pub struct SnapshotStore {
    folder: PathBuf,
    /// Recently read workbooks, because parsing a large one takes seconds. The content behind an id never changes.
    read: Arc<Mutex<RecentBooks>>,
}

/// Workbooks by id, oldest first.
type RecentBooks = VecDeque<(String, Arc<Book>)>;

/// Why a stored file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Reading or writing a file failed.
    #[error("`{path}` cannot be kept or read", path = path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error from the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The content of a file does not match its checksum.
    #[error(
        "`{path}` is damaged: it is not what was written there; restore it from a backup (`archie backup` keeps workbooks beside its file), or run the instruction again with the original workbook",
        path = path.display()
    )]
    Damaged {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is not a valid workbook.
    #[error(transparent)]
    Book(#[from] BookError),
    /// The path that the person named is not a regular file, or the file is too large.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl SnapshotStore {
    /// Creates a store in the `sheets` folder below the host's data folder.
    pub fn under(home: &Path) -> Self {
        Self {
            folder: home.join("sheets"),
            read: Arc::default(),
        }
    }

    /// Stores a workbook and returns its snapshot id.
    pub fn put_book(&self, thread: &ThreadId, bytes: &[u8]) -> Result<String, SnapshotError> {
        let id = snapshot_id(bytes)?;
        // Keep an intact file: other bytes with the same id are the same workbook.
        if self.book(thread, &id).is_err() {
            // Checksum first, so that a workbook never exists without its checksum or with another one's.
            self.write(thread, &sum_name(&id), sum(bytes).as_bytes())?;
            self.write(thread, &book_name(&id), bytes)?;
        }
        Ok(id)
    }

    /// Returns the bytes of a stored workbook. Fails if it is missing or damaged.
    pub fn book(&self, thread: &ThreadId, id: &str) -> Result<Vec<u8>, SnapshotError> {
        let bytes = self.get(thread, &book_name(id))?;
        let is_whole = match self.get(thread, &sum_name(id)) {
            Ok(kept) => kept == sum(&bytes).as_bytes(),
            // Older versions wrote no checksum. The id still covers everything that we read from a workbook.
            Err(SnapshotError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        match is_whole && snapshot_id(&bytes).is_ok_and(|found| found == id) {
            true => Ok(bytes),
            false => Err(self.damaged(thread, &book_name(id))),
        }
    }

    /// Returns the parsed content of a stored workbook. Keeps the last few in memory.
    pub fn read(&self, thread: &ThreadId, id: &str) -> Result<Arc<Book>, SnapshotError> {
        let known = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, book)) = known().iter().find(|(known, _)| known == id) {
            return Ok(book.clone());
        }
        let book = Arc::new(read(&self.book(thread, id)?)?);
        let mut known = known();
        known.push_back((id.to_owned(), book.clone()));
        if known.len() > READ_MAX {
            known.pop_front();
        }
        Ok(book)
    }

    /// Stores another file and returns its name, which is its checksum and `ending`.
    pub fn put_file(
        &self,
        thread: &ThreadId,
        ending: &str,
        bytes: &[u8],
    ) -> Result<String, SnapshotError> {
        let name = format!("{}.{ending}", sum(bytes));
        if self.file(thread, &name).is_err() {
            self.write(thread, &name, bytes)?;
        }
        Ok(name)
    }

    /// Returns the bytes of a file stored with [`put_file`](Self::put_file). Fails if it is missing or damaged.
    pub fn file(&self, thread: &ThreadId, name: &str) -> Result<Vec<u8>, SnapshotError> {
        let bytes = self.get(thread, name)?;
        match name.split('.').next() == Some(&sum(&bytes)) {
            true => Ok(bytes),
            false => Err(self.damaged(thread, name)),
        }
    }

    fn write(&self, thread: &ThreadId, name: &str, bytes: &[u8]) -> Result<(), SnapshotError> {
        let path = self.path(thread, name);
        private_file::write(&path, bytes).map_err(|source| SnapshotError::Io { path, source })
    }

    fn get(&self, thread: &ThreadId, name: &str) -> Result<Vec<u8>, SnapshotError> {
        let path = self.path(thread, name);
        private_file::read(&path).map_err(|source| SnapshotError::Io { path, source })
    }

    fn damaged(&self, thread: &ThreadId, name: &str) -> SnapshotError {
        let path = self.path(thread, name);
        SnapshotError::Damaged { path }
    }

    fn path(&self, thread: &ThreadId, name: &str) -> PathBuf {
        self.folder_of(thread).join(name)
    }

    /// Returns the folder with all files of a thread.
    pub fn folder_of(&self, thread: &ThreadId) -> PathBuf {
        let name = thread.name().replace('.', "_");
        match self.folder_of_tenant(thread.tenant()) {
            None => self.folder.join(name),
            Some(folder) => folder.join(name),
        }
    }

    /// Returns the folder with the files of all threads of a tenant; `None` for the unnamed one, whose threads are next to the tenants.
    pub fn folder_of_tenant(&self, tenant: &str) -> Option<PathBuf> {
        // The names of threads have no dot here, so no thread has the folder of a tenant, and no tenant that of another.
        (!tenant.is_empty()).then(|| self.folder.join(format!("tenant.{tenant}")))
    }
}

fn book_name(id: &str) -> String {
    format!("{id}.xlsx")
}

fn sum_name(id: &str) -> String {
    format!("{id}.sum")
}

/// Returns the checksum of a whole file. It detects accidental damage, not forgery, like the checksums of checkpoints.
fn sum(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

const READ_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tenant_has_the_folder_of_another() {
        let store = SnapshotStore::under(Path::new("home"));
        let folder = |tenant: &str, name: &str| {
            let thread = ThreadId::of_tenant(tenant, name).unwrap();
            store.folder_of(&thread)
        };
        assert_eq!(folder("", "one"), Path::new("home/sheets/one"));
        let all = [
            folder("", "c"),
            folder("", "a_b_c"),
            folder("a.b", "c"),
            folder("a_b", "c"),
            folder("a", "b_c"),
            folder("", "tenant_a"),
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert!(
                    !one.starts_with(other) && !other.starts_with(one),
                    "{one:?}"
                );
            }
        }
    }
}
