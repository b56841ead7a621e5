//! What can go wrong underneath, and how it is told to the callers of the two traits.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;
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
    /// The file is damaged: SQLite says so, or a row holds what no row can hold.
    #[error(
        "{why} (file `{}`); restore a backup, or save what can still be read with `sqlite3 {} .recover`",
        path.display(), path.display()
    )]
    Damaged {
        /// The file; `:memory:` for a database in memory.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// SQLite's own check found something.
    #[error("the file is not sound: {what}")]
    Unsound {
        /// What it found first.
        what: String,
    },
    /// A row that other rows refer to is not there.
    #[error("{what} is missing")]
    RowMissing {
        /// Which row.
        what: String,
    },
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

impl Fault {
    /// Names the file in a fault that says that it is damaged.
    pub(crate) fn at(self, path: Option<&Path>) -> Self {
        match self {
            Fault::Broken(source) => match damage(source.as_ref()) {
                Some(why) => SqliteError::Damaged {
                    path: path.unwrap_or(Path::new(":memory:")).to_owned(),
                    why,
                }
                .into(),
                None => Fault::Broken(source),
            },
            refused => refused,
        }
    }
}

/// Says what is wrong with the file if an error means that it is damaged, and not that it did not answer: the same
/// request would fail in the same way for ever. A busy or locked file and a full or failing disk are not damage: they may pass.
fn damage(source: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = source.downcast_ref::<rusqlite::Error>() {
        return damage_of(error);
    }
    match source.downcast_ref::<SqliteError>() {
        Some(SqliteError::NotCommitted { source }) => return damage_of(source),
        Some(
            error @ (SqliteError::Unknown { .. }
            | SqliteError::RowMissing { .. }
            | SqliteError::Unsound { .. }),
        ) => return Some(error.to_string()),
        _ => {}
    }
    // What we store, we have encoded: what does not decode is not what we stored.
    let is_row = source.is::<rusqlite::types::FromSqlError>()
        || source.is::<serde_json::Error>()
        || source.is::<NameError>();
    is_row.then(|| format!("a row cannot be read: {source}"))
}

fn damage_of(error: &rusqlite::Error) -> Option<String> {
    use rusqlite::Error as Sql;
    let is_damage = match error {
        Sql::SqliteFailure(failure, why) => match failure.code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => true,
            ErrorCode::SystemIoFailure => DAMAGED_IO.contains(&failure.extended_code),
            // A statement, a view or an index that does not make sense any more. That a transaction is gone which SQLite took
            // back has the same code, and passes.
            ErrorCode::Unknown => why
                .as_ref()
                .is_some_and(|why| !why.contains("transaction") && !why.contains("savepoint")),
            _ => false,
        },
        // Our statements are fixed: a table or column that they name was in the file when it was made.
        Sql::SqlInputError { .. } => true,
        Sql::FromSqlConversionFailure(..)
        | Sql::IntegralValueOutOfRange(..)
        | Sql::Utf8Error(..)
        | Sql::InvalidColumnType(..) => true,
        _ => false,
    };
    is_damage.then(|| error.to_string())
}

/// `SQLITE_IOERR_SHORT_READ`, `SQLITE_IOERR_DATA` and `SQLITE_IOERR_CORRUPTFS`: the file ends too early, or whatever is
/// below it noticed a wrong checksum.
const DAMAGED_IO: [i32; 3] = [10 | (2 << 8), 10 | (32 << 8), 10 | (33 << 8)];

impl From<Fault> for CheckpointError {
    fn from(fault: Fault) -> Self {
        match fault.at(None) {
            Fault::Refused(refusal) => refusal,
            Fault::Broken(source) => match source.downcast_ref::<SqliteError>() {
                // Asking again will not make it another file or another library.
                Some(error @ (SqliteError::OldLibrary { .. } | SqliteError::Foreign { .. })) => {
                    CheckpointError::Unusable {
                        why: error.to_string(),
                    }
                }
                Some(error @ SqliteError::Damaged { .. }) => CheckpointError::DatabaseDamaged {
                    why: error.to_string(),
                },
                _ => CheckpointError::Store { source },
            },
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault.at(None) {
            Fault::Refused(refusal) => StoreError::Store {
                source: refusal.into(),
            },
            Fault::Broken(source) => match source.downcast::<StoreError>() {
                Ok(refusal) => *refusal,
                Err(source) => match source.downcast_ref::<SqliteError>() {
                    Some(error @ SqliteError::Damaged { .. }) => StoreError::DatabaseDamaged {
                        why: error.to_string(),
                    },
                    _ => StoreError::Store { source },
                },
            },
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
