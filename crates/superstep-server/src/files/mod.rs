//! Files of threads: what callers upload for a graph, and what a graph leaves for them.
//!
//! A file belongs to one thread, under a relative path that only [`ThreadFilePath::parse`] makes. The server deletes the files of a
//! thread with the thread. [`ThreadFiles`] is what a server needs of a place for them; [`FolderFiles`] is such a place.

mod folder;
mod path;

pub use folder::{FolderFiles, delete_folder};
pub use path::{BadFilePath, ThreadFilePath};

use bytes::Bytes;
use superstep::checkpoint::BoxFuture;
use superstep::{ThreadId, Timestamp};

use crate::error::{ApiError, ApiResult};
use crate::{Shared, thread};

/// Stores the files of threads. A file of one thread must not be reachable through another thread, whatever its path is.
pub trait ThreadFiles: Send + Sync + 'static {
    /// Stores a file, and replaces one with the same path. The file is either stored as a whole or not at all.
    fn write<'a>(
        &'a self,
        thread: &'a ThreadId,
        path: &'a ThreadFilePath,
        bytes: Bytes,
    ) -> BoxFuture<'a, ThreadFileResult<ThreadFile>>;

    /// Returns the content of a file; `None` if there is no such file.
    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        path: &'a ThreadFilePath,
    ) -> BoxFuture<'a, ThreadFileResult<Option<Bytes>>>;

    /// Returns the files of a thread, sorted by path.
    fn list<'a>(&'a self, thread: &'a ThreadId)
    -> BoxFuture<'a, ThreadFileResult<Vec<ThreadFile>>>;

    /// Deletes a file. Returns whether there was one.
    fn delete<'a>(
        &'a self,
        thread: &'a ThreadId,
        path: &'a ThreadFilePath,
    ) -> BoxFuture<'a, ThreadFileResult<bool>>;

    /// Deletes all files of a thread. A thread without files is no error.
    fn delete_all<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, ThreadFileResult<()>>;

    /// Deletes all files of all threads of a tenant, also of threads that were deleted. Returns how many files there were.
    fn delete_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, ThreadFileResult<u64>>;

    /// Copies all files of a thread to another one.
    fn copy_all<'a>(
        &'a self,
        from: &'a ThreadId,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, ThreadFileResult<()>>;
}

/// A file of a thread, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFile {
    /// Relative path, with `/` between its parts.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// When the file was last written.
    pub modified: Timestamp,
}

/// Result of a call to [`ThreadFiles`].
pub type ThreadFileResult<T> = Result<T, ThreadFileError>;

/// Why a file could not be stored, read or deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadFileError {
    /// The files of the thread would take too many bytes.
    #[error("the files of the thread would take more than {bytes_max} bytes; delete some first")]
    TooLarge {
        /// Highest number of bytes of one thread.
        bytes_max: u64,
    },
    /// The thread would have too many files.
    #[error("the thread would have more than {files_max} files; delete some first")]
    TooMany {
        /// Highest number of files of one thread.
        files_max: usize,
    },
    /// Something else has the path, or a part of it: a folder where a file is named, or a file where a folder is.
    #[error("`{path}` is not a file, or one of its parents is not a folder")]
    Conflict {
        /// Path of the file.
        path: String,
    },
    /// The place of the files cannot be used.
    #[error("the files of threads cannot be read or written")]
    Io(#[from] std::io::Error),
}

impl From<ThreadFileError> for ApiError {
    fn from(error: ThreadFileError) -> Self {
        use http::StatusCode;
        match &error {
            ThreadFileError::TooLarge { .. } | ThreadFileError::TooMany { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())
            }
            ThreadFileError::Conflict { .. } => Self::conflict(error.to_string()),
            ThreadFileError::Io(_) => {
                Self::internal(StatusCode::INTERNAL_SERVER_ERROR, "thread-files", &error)
            }
        }
    }
}

impl From<BadFilePath> for ApiError {
    fn from(error: BadFilePath) -> Self {
        Self::invalid(error.to_string())
    }
}

/// Deletes the files of a thread, if the server stores files.
pub(crate) async fn delete_of_thread(app: &Shared, thread: &ThreadId) -> ApiResult<()> {
    match &app.files {
        Some(files) => Ok(files.delete_all(thread).await?),
        None => Ok(()),
    }
}

/// Stores a file of a thread. A file must not outlive its thread, and the thread may have been deleted meanwhile.
pub(crate) async fn write(
    app: &Shared,
    files: &dyn ThreadFiles,
    id: &ThreadId,
    path: &ThreadFilePath,
    bytes: Bytes,
) -> ApiResult<ThreadFile> {
    thread::get(app, id).await?;
    let written = files.write(id, path, bytes).await?;
    if thread::find(app, id).await?.is_none() {
        files.delete_all(id).await?;
        return Err(ApiError::no_thread(id));
    }
    Ok(written)
}
