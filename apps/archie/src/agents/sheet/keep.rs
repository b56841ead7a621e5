//! Where workbooks are kept between steps: a folder for each thread, files named by what is in them.
//!
//! The state holds ids. A file is whole or not there: it is written beside its place and moved, before the step that names it is
//! recorded. Written again after a crash, it is the same file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use superstep::ThreadId;

use super::book::{Book, BookError, read, snapshot_id};
use crate::private;
use crate::user_folder::FolderError;

/// The folders of all threads.
#[derive(Debug, Clone)]
pub struct Keep {
    folder: PathBuf,
    /// Workbooks that were read lately, for reading a large one takes seconds. What an id names never changes.
    read: Arc<Mutex<Lately>>,
}

/// Ids and what they name, the oldest first.
type Lately = VecDeque<(String, Arc<Book>)>;

/// What went wrong with a file that is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// Files.
    #[error("`{path}` cannot be kept or read", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is no workbook.
    #[error(transparent)]
    Book(#[from] BookError),
    /// What the person named is not a file, or is too large.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl Keep {
    /// Under the folder of everything that is ours.
    pub fn under(home: &Path) -> Self {
        Self {
            folder: home.join("sheets"),
            read: Arc::default(),
        }
    }

    /// Keeps a workbook, and gives what it is known by.
    pub fn put_book(&self, thread: &ThreadId, bytes: &[u8]) -> Result<String, KeepError> {
        let id = snapshot_id(bytes)?;
        self.put(thread, &format!("{id}.xlsx"), bytes)?;
        Ok(id)
    }

    /// A workbook that was kept.
    pub fn book(&self, thread: &ThreadId, id: &str) -> Result<Vec<u8>, KeepError> {
        self.get(thread, &format!("{id}.xlsx"))
    }

    /// What is in a workbook that was kept.
    pub fn read(&self, thread: &ThreadId, id: &str) -> Result<Arc<Book>, KeepError> {
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
    ) -> Result<String, KeepError> {
        let name = format!("{:032x}.{ending}", xxhash_rust::xxh3::xxh3_128(bytes));
        self.put(thread, &name, bytes)?;
        Ok(name)
    }

    /// It, again.
    pub fn file(&self, thread: &ThreadId, name: &str) -> Result<Vec<u8>, KeepError> {
        self.get(thread, name)
    }

    fn put(&self, thread: &ThreadId, name: &str, bytes: &[u8]) -> Result<(), KeepError> {
        let path = self.path(thread, name);
        if private::is_file(&path) {
            return Ok(());
        }
        private::write(&path, bytes).map_err(|source| KeepError::Io { path, source })
    }

    fn get(&self, thread: &ThreadId, name: &str) -> Result<Vec<u8>, KeepError> {
        let path = self.path(thread, name);
        private::read(&path).map_err(|source| KeepError::Io { path, source })
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

const READ_MAX: usize = 4;
