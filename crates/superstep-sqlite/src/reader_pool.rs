//! Reader threads, each with its own connection.
//!
//! A read may take long, and the caller must not block. So requests go to threads through a bounded channel, and results come
//! back through a oneshot channel: no runtime is needed, only an executor that polls. A lane that is dropped finishes its
//! pending requests, then its threads end.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use superstep_core::__private::lock;
use tokio::sync::mpsc;

use crate::fault::{Fault, SqliteError};
use crate::work::{Request, Setting, Work};

/// Handle to the reader threads.
pub(crate) struct ReaderPool {
    sender: Option<mpsc::Sender<Request>>,
    threads: Vec<JoinHandle<()>>,
}

impl ReaderPool {
    /// Creates a lane with one thread per connection; the next idle thread takes the next request.
    pub(crate) fn new(connections: Vec<Connection>) -> io::Result<Self> {
        let (sender, requests) = mpsc::channel(WAITING_MAX);
        let mut lane = Self {
            sender: Some(sender),
            threads: Vec::new(),
        };
        let requests = Arc::new(Mutex::new(requests));
        for connection in connections {
            let requests = Arc::clone(&requests);
            let serve = move || serve(&connection, &requests);
            lane.threads.push(
                Builder::new()
                    .name("superstep-sqlite-read".into())
                    .spawn(serve)?,
            );
        }
        Ok(lane)
    }

    /// Runs work on a reader thread, and waits for the result.
    pub(crate) async fn ask<T, F>(&self, setting: Setting, work: F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (request, answered) = Request::new(setting, work);
        let sender = self.sender.as_ref().ok_or(SqliteError::Closed)?;
        sender
            .send(request)
            .await
            .map_err(|_| SqliteError::Closed)?;
        answered.await.map_err(|_| SqliteError::Closed)?
    }
}

impl Drop for ReaderPool {
    fn drop(&mut self) {
        self.sender = None;
        for thread in self.threads.drain(..) {
            // A panic was reported when it happened; there is no caller left to notify.
            let _ = thread.join();
        }
    }
}

fn serve(connection: &Connection, requests: &Mutex<mpsc::Receiver<Request>>) {
    loop {
        let next = lock(requests).blocking_recv();
        let Some(Request { mut work, setting }) = next else {
            return;
        };
        let outcome = match setting {
            Setting::Transaction | Setting::Statement => read(connection, work.as_mut()),
            Setting::Alone => {
                work.run(connection);
                Ok(())
            }
        };
        if outcome.is_err() && !connection.is_autocommit() {
            // If this fails, the next `BEGIN` fails too and reports the error to its caller.
            let _ = connection.execute_batch("ROLLBACK");
        }
        work.answer(outcome.map_err(Arc::new));
    }
}

/// Runs the work in one transaction, so all its reads see the same snapshot.
fn read(connection: &Connection, work: &mut dyn Work) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    work.run(connection);
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// Number of queued requests from which callers wait before they can enqueue.
const WAITING_MAX: usize = 1024;
