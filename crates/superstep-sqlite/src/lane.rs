//! Threads with connections of their own, and the way work gets to them.
//!
//! SQLite blocks, and a caller here must not. So connections live on threads, work is sent to them
//! through a bounded channel, and answers come back through a oneshot: no runtime is needed, only
//! somebody who polls. A lane that is dropped finishes what it was given, then its threads end.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::fault::{Fault, SqliteError};

/// The way to one or more threads that do work of one kind.
pub(crate) struct Lane {
    sender: Option<mpsc::Sender<Request>>,
    threads: Vec<JoinHandle<()>>,
}

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

impl Lane {
    /// A lane with one thread.
    pub(crate) fn single(
        name: &str,
        serve: impl FnOnce(&mut mpsc::Receiver<Request>) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, mut requests) = mpsc::channel(WAITING_MAX);
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn(move || serve(&mut requests))?;
        Ok(Self {
            sender: Some(sender),
            threads: vec![thread],
        })
    }

    /// A lane with a thread for each connection; whoever is idle takes the next request.
    pub(crate) fn readers(connections: Vec<Connection>) -> io::Result<Self> {
        let (sender, requests) = mpsc::channel(WAITING_MAX);
        let mut lane = Self {
            sender: Some(sender),
            threads: Vec::new(),
        };
        let requests = Arc::new(Mutex::new(requests));
        for connection in connections {
            let requests = Arc::clone(&requests);
            let serve = move || serve_reads(&connection, &requests);
            lane.threads.push(
                Builder::new()
                    .name("superstep-sqlite-read".into())
                    .spawn(serve)?,
            );
        }
        Ok(lane)
    }

    /// Has something done, and waits for the result. Once it is sent it is done, also if the asker goes away.
    pub(crate) async fn ask<T, F>(&self, setting: Setting, work: F) -> Result<T, Fault>
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
        let sender = self.sender.as_ref().ok_or(SqliteError::Closed)?;
        sender
            .send(Request { work, setting })
            .await
            .map_err(|_| SqliteError::Closed)?;
        answered.await.map_err(|_| SqliteError::Closed)?
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.sender = None;
        for thread in self.threads.drain(..) {
            // A panic over there was reported when it happened; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

fn serve_reads(connection: &Connection, requests: &Mutex<mpsc::Receiver<Request>>) {
    loop {
        let next = requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .blocking_recv();
        let Some(Request { mut work, setting }) = next else {
            return;
        };
        let outcome = match setting {
            Setting::Transaction => read(connection, work.as_mut()),
            Setting::Alone => {
                work.run(connection);
                Ok(())
            }
        };
        if outcome.is_err() && !connection.is_autocommit() {
            // If even this fails the next `BEGIN` will, and say so to whoever asks next.
            let _ = connection.execute_batch("ROLLBACK");
        }
        work.answer(outcome.map_err(Arc::new));
    }
}

/// One transaction around all that is read, so that it is from one moment.
fn read(connection: &Connection, work: &mut dyn Work) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    work.run(connection);
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
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

/// How many requests wait for a lane before those who ask wait themselves.
const WAITING_MAX: usize = 1024;
