//! Errors of the database, and their conversion into the errors of the traits.
//!
//! What matters is whether an error is transient (a broken connection, a server that starts, stops or fails over) or
//! permanent (a wrong password, a missing database): a driver retries the first kind and gives up on the second.

use std::error::Error;
use std::iter::repeat_n;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use superstep_core::error::{CheckpointError, FormatError, NameError};
use superstep_core::store::StoreError;
use tokio_postgres::error::SqlState;

/// Error of the database: the source inside [`CheckpointError::Store`] and [`StoreError::Store`], besides the errors of the
/// client library itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The server is too old.
    #[error("the server is PostgreSQL {found}, at least {needed} is needed")]
    OldServer {
        /// Version of the server.
        found: String,
        /// Oldest supported version.
        needed: &'static str,
    },
    /// The schema contains tables of another program.
    #[error("schema `{schema}` holds tables of another program; give the name of a new one")]
    Foreign {
        /// Name of the schema.
        schema: String,
    },
    /// The schema name would need quoting.
    #[error("`{schema}` is not a schema name: use 1 to 63 of `a-z 0-9 _`, not a digit first")]
    SchemaName {
        /// The rejected name, shortened to 63 characters.
        schema: String,
    },
    /// The server did not respond in time.
    #[error("the server did not answer within {waited:?}")]
    Silent {
        /// How long we waited.
        waited: Duration,
    },
    /// The file with the password cannot be read.
    #[error("cannot read the passwords in `{}`", .file.display())]
    PassFile {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file has different passwords for the servers of the address, which all get the same one.
    #[error(
        "`{}` has a different password for each server of the address; give all of them the same, or name one server", .file.display()
    )]
    PassFileDiffers {
        /// The file.
        file: PathBuf,
    },
    /// The file has passwords by user, and the address names none.
    #[error("`{}` has passwords by user; name the user in the address", .file.display())]
    PassFileUser {
        /// The file.
        file: PathBuf,
    },
    /// The server does not accept the password in the file. It may be about to be replaced, here or there.
    #[error("the server refused the password in `{}`", .file.display())]
    PasswordRefused {
        /// The file.
        file: PathBuf,
        /// The server's error.
        source: tokio_postgres::Error,
    },
    /// The statement that several concurrent records shared failed.
    #[error("the statement that several records shared failed")]
    Shared {
        /// Error of the statement, the same for all its records.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// A connection could not be opened.
    #[error("a connection could not be opened")]
    Unconnected {
        /// Why not, the same for all requests that waited for the connection.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The runtime stopped before the result of a record arrived. The record may have been written.
    #[error("the record writer stopped before the record was written")]
    Unsent,
    /// A column contains a value that this version does not know.
    #[error("a row holds {what} {number}, which this program does not know")]
    Unknown {
        /// Name of the column.
        what: &'static str,
        /// The value.
        number: i64,
    },
    /// A text column is not valid UTF-8.
    #[error("a row holds a text that is not UTF-8")]
    NotText,
}

/// Either an error that the trait defines, or a failure of the database.
#[derive(Debug)]
pub(crate) enum Fault {
    Refused(CheckpointError),
    Broken(Box<dyn Error + Send + Sync>),
}

impl Fault {
    /// Returns whether the outcome of the request is unknown because its connection is lost or unusable.
    pub(crate) fn is_lost(&self) -> bool {
        if let Some(PostgresError::Silent { .. }) = self.cause() {
            return true;
        }
        self.cause().is_some_and(|error: &tokio_postgres::Error| {
            let is_io = error
                .source()
                .is_some_and(<dyn Error>::is::<std::io::Error>);
            is_io || error.is_closed() || error.code().is_some_and(ends_connection)
        })
    }

    /// Returns whether a retry will fail in the same way.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Fault::Refused(_) => true,
            Fault::Broken(_) => match self.cause() {
                // A file that is being replaced is right in a moment; `Address` refuses one that is unusable from the start.
                Some(
                    PostgresError::Silent { .. }
                    | PostgresError::Unsent
                    | PostgresError::PassFile { .. }
                    | PostgresError::PassFileDiffers { .. }
                    | PostgresError::PasswordRefused { .. },
                ) => false,
                Some(_) => true,
                None => self.sql_state().is_some_and(is_final),
            },
        }
    }

    pub(crate) fn sql_state(&self) -> Option<&SqlState> {
        self.cause::<tokio_postgres::Error>()?.code()
    }

    /// Returns a copy of the error for each caller that shared the request.
    pub(crate) fn shared_by(self, askers: usize) -> Vec<Self> {
        match self {
            Fault::Broken(source) if askers > 1 => {
                let source: Arc<dyn Error + Send + Sync> = source.into();
                let each = repeat_n(source, askers);
                each.map(|source| PostgresError::Shared { source }.into())
                    .collect()
            }
            fault => vec![fault],
        }
    }

    /// Returns the error for several callers.
    pub(crate) fn into_shared(self) -> Arc<dyn Error + Send + Sync> {
        match self {
            Fault::Refused(refusal) => Arc::new(refusal),
            Fault::Broken(source) => source.into(),
        }
    }

    /// Returns the underlying error, shared or not.
    fn cause<E: Error + 'static>(&self) -> Option<&E> {
        let Fault::Broken(source) = self else {
            return None;
        };
        match source.downcast_ref() {
            Some(PostgresError::Shared { source } | PostgresError::Unconnected { source }) => {
                source.downcast_ref()
            }
            _ => source.downcast_ref(),
        }
    }
}

/// Codes with which the server closes the connection, or should: after a failover it would be read-only.
fn ends_connection(state: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::DATABASE_DROPPED,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::TOO_MANY_CONNECTIONS,
    ]
    .contains(state)
        || state.code().starts_with("08")
}

/// Missing permissions and missing objects, which only a person can fix.
fn is_final(state: &SqlState) -> bool {
    [
        SqlState::INVALID_CATALOG_NAME,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_COLUMN,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ]
    .contains(state)
        || state.code().starts_with("28")
}

impl From<Fault> for CheckpointError {
    fn from(fault: Fault) -> Self {
        let is_final = fault.is_final();
        match fault {
            Fault::Refused(refusal) => refusal,
            Fault::Broken(source) if is_final => CheckpointError::Unusable {
                why: in_words(source.as_ref()),
            },
            Fault::Broken(source) => CheckpointError::Store { source },
        }
    }
}

/// The client library's own text is only a category; the details are in the sources.
pub(crate) fn in_words(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(refusal) => StoreError::Store {
                source: refusal.into(),
            },
            Fault::Broken(source) => match source.downcast::<StoreError>() {
                Ok(refusal) => *refusal,
                Err(source) => StoreError::Store { source },
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
    PostgresError,
    tokio_postgres::Error,
    serde_json::Error,
    NameError,
    StoreError
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_password_of_a_file_may_be_replaced_in_a_moment() {
        let refused = || PostgresError::PasswordRefused {
            file: PathBuf::from("passwords"),
            source: "host".parse::<tokio_postgres::Config>().unwrap_err(),
        };
        assert!(!Fault::from(refused()).is_final());
        let shared = PostgresError::Unconnected {
            source: Arc::new(refused()),
        };
        assert!(!Fault::from(shared).is_final());
        assert!(is_final(&SqlState::INVALID_PASSWORD));
    }
}
