//! What can go wrong underneath, and how it is told to the callers of the two traits.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use superstep_core::error::{CheckpointError, FormatError, NameError};
use superstep_core::store::StoreError;

/// Why the database did not do what was asked: the source inside [`CheckpointError::Store`] and
/// [`StoreError::Store`], beside the errors of SQLite itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqliteError {
    /// Older libraries can corrupt a database in WAL mode when a checkpoint meets a commit.
    #[error(
        "the SQLite library is {found}, at least {needed} is needed; build with the bundled one"
    )]
    OldLibrary {
        /// The library's version.
        found: &'static str,
        /// The oldest that is taken.
        needed: &'static str,
    },
    /// Some other program's database.
    #[error("`{}` is a database of another program; give the path of a new file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The requests of one group share their transaction, and so its end.
    #[error("the transaction was not committed")]
    NotCommitted {
        /// Why.
        source: Arc<rusqlite::Error>,
    },
    /// The thread that owns the connection is gone.
    #[error("the database was closed")]
    Closed,
    /// A number that the tables have no room for.
    #[error("the database has no room for {what} {number}")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// The number.
        number: u64,
    },
    /// A row that this program did not write.
    #[error("a row holds {what} {number}, which this program does not know")]
    Unknown {
        /// Which column.
        what: &'static str,
        /// What it holds.
        number: i64,
    },
}

/// Either an answer that the trait foresees, or trouble with the database.
#[derive(Debug)]
pub(crate) enum Fault {
    Refused(CheckpointError),
    Broken(Box<dyn Error + Send + Sync>),
}

impl From<Fault> for CheckpointError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(refusal) => refusal,
            Fault::Broken(source) => match source.downcast_ref::<SqliteError>() {
                // Asking again will not make it another file or another library.
                Some(error @ (SqliteError::OldLibrary { .. } | SqliteError::Foreign { .. })) => {
                    CheckpointError::Unusable {
                        why: error.to_string(),
                    }
                }
                _ => CheckpointError::Store { source },
            },
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(refusal) => StoreError::Store {
                source: refusal.into(),
            },
            Fault::Broken(source) => StoreError::Store { source },
        }
    }
}

impl From<CheckpointError> for Fault {
    fn from(refusal: CheckpointError) -> Self {
        Fault::Refused(refusal)
    }
}

impl From<FormatError> for Fault {
    fn from(error: FormatError) -> Self {
        Fault::Refused(error.into())
    }
}

macro_rules! broken {
    ($($error:ty),*) => {
        $(impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Fault::Broken(error.into())
            }
        })*
    };
}

broken!(
    SqliteError,
    rusqlite::Error,
    rusqlite::types::FromSqlError,
    serde_json::Error,
    std::io::Error,
    NameError,
    StoreError
);
