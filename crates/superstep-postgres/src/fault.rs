//! What can go wrong underneath, and how it is told to the callers of the traits.
//!
//! The line that matters runs between what may pass (a broken connection, a server that starts, stops or
//! hands over) and what will not (a wrong password, no such database): a driver asks again for the first
//! and gives up on the second.

use std::error::Error;
use std::iter::repeat_n;
use std::sync::Arc;
use std::time::Duration;

use superstep_core::error::{CheckpointError, FormatError, NameError};
use superstep_core::store::StoreError;
use tokio_postgres::error::SqlState;

/// Why the database did not do what was asked: the source inside [`CheckpointError::Store`] and
/// [`StoreError::Store`], beside the errors of the client library itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// Older servers cannot do what is asked of them.
    #[error("the server is PostgreSQL {found}, at least {needed} is needed")]
    OldServer {
        /// The server's version.
        found: String,
        /// The oldest that is taken.
        needed: &'static str,
    },
    /// Some other program's tables.
    #[error("schema `{schema}` holds tables of another program; give the name of a new one")]
    Foreign {
        /// The schema.
        schema: String,
    },
    /// Not a name that needs no quoting.
    #[error("`{schema}` is not a schema name: use 1 to 63 of `a-z 0-9 _`, not a digit first")]
    SchemaName {
        /// What was given.
        schema: String,
    },
    /// The server is there and says nothing.
    #[error("the server did not answer within {waited:?}")]
    Silent {
        /// How long it was waited for.
        waited: Duration,
    },
    /// Records that come at once share a statement, and so its failure.
    #[error("the statement that several records shared failed")]
    Shared {
        /// Why.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The runtime that was to write a record stopped. Perhaps it did.
    #[error("the record writer stopped before the record was written")]
    Unsent,
    /// A row that this program did not write.
    #[error("a row holds {what} {number}, which this program does not know")]
    Unknown {
        /// Which column.
        what: &'static str,
        /// What it holds.
        number: i64,
    },
    /// Text that is none.
    #[error("a row holds a text that is not UTF-8")]
    NotText,
}

/// Either an answer that the trait foresees, or trouble with the database.
#[derive(Debug)]
pub(crate) enum Fault {
    Refused(CheckpointError),
    Broken(Box<dyn Error + Send + Sync>),
}

impl Fault {
    /// Whether nothing can be said about the request because its connection is gone, or useless.
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

    /// Whether asking again will get the same answer.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Fault::Refused(_) => true,
            Fault::Broken(_) => match self.cause() {
                Some(PostgresError::Silent { .. } | PostgresError::Unsent) => false,
                Some(_) => true,
                None => self.sql_state().is_some_and(is_final),
            },
        }
    }

    pub(crate) fn sql_state(&self) -> Option<&SqlState> {
        self.cause::<tokio_postgres::Error>()?.code()
    }

    /// The same for each of those whose request this was.
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

    /// What happened, whether to one or to several.
    fn cause<E: Error + 'static>(&self) -> Option<&E> {
        let Fault::Broken(source) = self else {
            return None;
        };
        match source.downcast_ref() {
            Some(PostgresError::Shared { source }) => source.downcast_ref(),
            _ => source.downcast_ref(),
        }
    }
}

/// The server closes the connection with these, or should: after a handover it would only read.
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

/// Who may not enter, and what is not there: it takes a person to change that.
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

/// The client's own text is only a kind; what happened is in the sources.
fn in_words(error: &dyn Error) -> String {
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
