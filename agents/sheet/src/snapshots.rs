//! Where workbooks are kept between steps: a folder for each thread, files named by what is in them.
//!
//! The state holds ids. A file is whole or not there: it is written beside its place and moved, before the step that names it is
//! recorded. Written again after a crash, it is the same file. Every file is checked when it is read: a name says what is in its
//! file, and the id of a workbook, which leaves out what a program notes of itself, has a checksum of the whole file with it.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use archie_agent::private_file;
use archie_agent::user_folder::FolderError;
use superstep::ThreadId;

use super::book::{Book, BookError, read, snapshot_id};

/// The folders of all threads.
#[derive(Debug, Clone)]
pub struct SnapshotStore {
    folder: PathBuf,
    /// Workbooks that were read lately, for reading a large one takes seconds. What an id names never changes.
    read: Arc<Mutex<RecentBooks>>,
}

/// Ids and what they name, the oldest first.
type RecentBooks = VecDeque<(String, Arc<Book>)>;

/// What went wrong with a file that is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Files.
    #[error("`{path}` cannot be kept or read", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Files that are not what was written.
    #[error(
        "`{path}` is damaged: it is not what was written there; restore it from a backup (`archie backup` keeps workbooks beside its file), or run the instruction again with the original workbook",
        path = path.display()
    )]
    Damaged {
        /// Which.
        path: PathBuf,
    },
    /// It is no workbook.
    #[error(transparent)]
    Book(#[from] BookError),
    /// What the person named is not a file, or is too large.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl SnapshotStore {
    /// Under the folder of everything that is ours.
    pub fn under(home: &Path) -> Self {
        Self {
            folder: home.join("sheets"),
            read: Arc::default(),
        }
    }

    /// Keeps a workbook, and gives what it is known by.
    pub fn put_book(&self, thread: &ThreadId, bytes: &[u8]) -> Result<String, SnapshotError> {
        let id = snapshot_id(bytes)?;
        // What is whole stays: other bytes of the same id are the same workbook.
        if self.book(thread, &id).is_err() {
            // In this order, so that no workbook is without its checksum or has another's.
            self.write(thread, &sum_name(&id), sum(bytes).as_bytes())?;
            self.write(thread, &book_name(&id), bytes)?;
        }
        Ok(id)
    }

    /// A workbook that was kept, if it is as it was.
    pub fn book(&self, thread: &ThreadId, id: &str) -> Result<Vec<u8>, SnapshotError> {
        let bytes = self.get(thread, &book_name(id))?;
        let is_whole = match self.get(thread, &sum_name(id)) {
            Ok(kept) => kept == sum(&bytes).as_bytes(),
            // Older versions wrote none. The id is of everything that we read of a workbook.
            Err(SnapshotError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        match is_whole && snapshot_id(&bytes).is_ok_and(|found| found == id) {
            true => Ok(bytes),
            false => Err(self.damaged(thread, &book_name(id))),
        }
    }

    /// What is in a workbook that was kept.
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

    /// Keeps something else under a name that says what is in it.
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

    /// It, again, if it is as it was.
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

    /// Where everything of a thread is.
    pub fn folder_of(&self, thread: &ThreadId) -> PathBuf {
        self.folder
            .join(thread.to_string().replace(['/', '.'], "_"))
    }
}

fn book_name(id: &str) -> String {
    format!("{id}.xlsx")
}

fn sum_name(id: &str) -> String {
    format!("{id}.sum")
}

/// A checksum of a whole file. It finds accidents, as those of checkpoints do.
fn sum(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

const READ_MAX: usize = 4;
