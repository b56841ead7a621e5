//! Work for a connection, and the channel that returns its result to the caller.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::fault::{Fault, SqliteError};

/// Work queued for a connection.
pub(crate) struct Request {
    pub(crate) work: Box<dyn Work>,
    pub(crate) setting: Setting,
}

/// Transaction that the work runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// A transaction, possibly shared with other requests.
    Transaction,
    /// The same, for work that writes with a single statement, which leaves nothing behind if it fails.
    Statement,
    /// No transaction, as some pragmas require.
    Alone,
}

/// Work for a connection whose caller waits for the result.
pub(crate) trait Work: Send {
    /// Runs the work. Returns whether it succeeded, and so whether to keep its writes.
    fn run(&mut self, connection: &Connection) -> bool;

    /// Sends the result to the caller, or the error if the transaction failed.
    fn answer(self: Box<Self>, transaction: Result<(), Arc<rusqlite::Error>>);
}

/// Channel on which the result of a request arrives.
pub(crate) type Answered<T> = oneshot::Receiver<Result<T, Fault>>;

impl Request {
    /// Returns whether the request can share a transaction with others.
    pub(crate) fn shares(&self) -> bool {
        match self.setting {
            Setting::Transaction | Setting::Statement => true,
            Setting::Alone => false,
        }
    }

    /// Creates a request, and the channel for its result.
    pub(crate) fn new<T, F>(setting: Setting, work: F) -> (Self, Answered<T>)
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let work = Box::new(Job {
            work: Some(work),
            result: None,
            answer,
        });
        (Self { work, setting }, answered)
    }
}

struct Job<T, F> {
    work: Option<F>,
    result: Option<Result<T, Fault>>,
    answer: oneshot::Sender<Result<T, Fault>>,
}

impl<T, F> Work for Job<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Fault> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        self.result = self.work.take().map(|work| work(connection));
        self.result.as_ref().is_some_and(Result::is_ok)
    }

    fn answer(self: Box<Self>, transaction: Result<(), Arc<rusqlite::Error>>) {
        let result = match (transaction, self.result) {
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(SqliteError::Closed.into()),
            (Err(source), _) => Err(SqliteError::NotCommitted { source }.into()),
        };
        // The caller may have stopped waiting.
        let _ = self.answer.send(result);
    }
}
