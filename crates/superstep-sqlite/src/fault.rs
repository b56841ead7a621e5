//! Errors of the database, and their conversion into the errors of the two traits.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;
use superstep_core::error::{CheckpointError, FormatError, NameError};
use superstep_core::store::StoreError;

/// Error of the database: the source inside [`CheckpointError::Store`] and [`StoreError::Store`], besides the errors of
/// SQLite itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqliteError {
    /// The SQLite library is too old: it can corrupt a database in WAL mode when a checkpoint coincides with a commit.
    #[error(
        "the SQLite library is {found}, at least {needed} is needed; build with the bundled one"
    )]
    OldLibrary {
        /// Version of the library in use.
        found: &'static str,
        /// Oldest supported version.
        needed: &'static str,
    },
    /// The file is a database of another program.
    #[error("`{}` is a database of another program; give the path of a new file", path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// The transaction that this request shared with others was not committed.
    #[error("the transaction was not committed")]
    NotCommitted {
        /// Error of SQLite, the same for all requests of the transaction.
        source: Arc<rusqlite::Error>,
    },
    /// The thread that owns the connection has stopped.
    #[error("the database was closed")]
    Closed,
    /// A reader uses the write-ahead log, so it could not be moved into the file as a whole.
    #[error("a reader keeps the write-ahead log from being moved into the file; try again")]
    LogInUse,
    /// The file is damaged: SQLite says so, or a row contains an impossible value.
    #[error(
        "{why} (file `{}`); restore a backup, or save what can still be read with `sqlite3 {} .recover`",
        path.display(), path.display()
    )]
    Damaged {
        /// Path of the file; `:memory:` for a database in memory.
        path: PathBuf,
        /// What SQLite reported, or which value is impossible.
        why: String,
    },
    /// SQLite's integrity check found a problem.
    #[error("the file is not sound: {what}")]
    Unsound {
        /// First problem that the check found.
        what: String,
    },
    /// A row that other rows refer to is missing.
    #[error("{what} is missing")]
    RowMissing {
        /// Description of the missing row.
        what: String,
    },
    /// A number exceeds what the tables can store.
    #[error("the database has no room for {what} {number}")]
    TooMany {
        /// What the number counts: `thread` or `entry`.
        what: &'static str,
        /// The number that does not fit.
        number: u64,
    },
    /// A column contains a value that this version does not know.
    #[error("a row holds {what} {number}, which this program does not know")]
    Unknown {
        /// Name of the column.
        what: &'static str,
        /// The value.
        number: i64,
    },
}

/// Either an error that the trait defines, or a failure of the database.
#[derive(Debug)]
pub(crate) enum Fault {
    Refused(CheckpointError),
    Broken(Box<dyn Error + Send + Sync>),
}

impl Fault {
    /// Adds the path of the file if the error means that it is damaged.
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

/// Returns what is wrong with the file if the error means damage: the same request would fail in the same way forever. A busy
/// or locked file and a full or failing disk are not damage: they may recover.
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
    // We encoded everything that we store, so bytes that do not decode are not what we stored.
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
            // A statement, a view or an index that no longer makes sense. A transaction that SQLite rolled back has the same
            // code, but is transient.
            ErrorCode::Unknown => why
                .as_ref()
                .is_some_and(|why| !why.contains("transaction") && !why.contains("savepoint")),
            _ => false,
        },
        // Our statements are fixed: the tables and columns they name existed when the file was created.
        Sql::SqlInputError { .. } => true,
        Sql::FromSqlConversionFailure(..)
        | Sql::IntegralValueOutOfRange(..)
        | Sql::Utf8Error(..)
        | Sql::InvalidColumnType(..) => true,
        _ => false,
    };
    is_damage.then(|| error.to_string())
}

/// `SQLITE_IOERR_SHORT_READ`, `SQLITE_IOERR_DATA` and `SQLITE_IOERR_CORRUPTFS`: the file is truncated, or a lower layer found
/// a wrong checksum.
const DAMAGED_IO: [i32; 3] = [10 | (2 << 8), 10 | (32 << 8), 10 | (33 << 8)];

impl From<Fault> for CheckpointError {
    fn from(fault: Fault) -> Self {
        match fault.at(None) {
            Fault::Refused(refusal) => refusal,
            Fault::Broken(source) => match source.downcast_ref::<SqliteError>() {
                // A retry does not change the file or the library.
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
