//! Something to do with a connection, and the way its result gets back to the caller.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::fault::{Fault, SqliteError};

/// Work on its way to a connection.
pub(crate) struct Request {
    pub(crate) work: Box<dyn Work>,
    pub(crate) setting: Setting,
}

/// Inside what the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// A transaction, perhaps shared with others.
    Transaction,
    /// The same. It writes with one statement, which by itself leaves nothing behind if it fails.
    Statement,
    /// None, as some pragmas want it.
    Alone,
}

/// Something to do with a connection, whose asker waits for the result.
pub(crate) trait Work: Send {
    /// Does it. Says whether it succeeded, and so whether what it wrote is to be kept.
    fn run(&mut self, connection: &Connection) -> bool;

    /// Gives the asker the result, or what became of it when the transaction failed.
    fn answer(self: Box<Self>, transaction: Result<(), Arc<rusqlite::Error>>);
}

/// Where the result of a request comes.
pub(crate) type Answered<T> = oneshot::Receiver<Result<T, Fault>>;

impl Request {
    /// Whether it can share a transaction with others.
    pub(crate) fn shares(&self) -> bool {
        match self.setting {
            Setting::Transaction | Setting::Statement => true,
            Setting::Alone => false,
        }
    }

    /// A request, and where its result will be.
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
        // The asker may have stopped waiting.
        let _ = self.answer.send(result);
    }
}
