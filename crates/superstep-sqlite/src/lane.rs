//! Threads that read, each with a connection of its own.
//!
//! A read may take long, and a caller here must not block. So work is sent to threads through a
//! bounded channel, and answers come back through a oneshot: no runtime is needed, only somebody who
//! polls. A lane that is dropped finishes what it was given, then its threads end.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use superstep_core::__private::lock;
use tokio::sync::mpsc;

use crate::fault::{Fault, SqliteError};
use crate::work::{Request, Setting, Work};

/// The way to the threads that read.
pub(crate) struct Lane {
    sender: Option<mpsc::Sender<Request>>,
    threads: Vec<JoinHandle<()>>,
}

impl Lane {
    /// A lane with a thread for each connection; an idle thread takes the next request.
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

    /// Has something read, and waits for the result.
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

impl Drop for Lane {
    fn drop(&mut self) {
        self.sender = None;
        for thread in self.threads.drain(..) {
            // A panic over there was reported when it happened; there is nobody left to tell.
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

/// How many requests wait for a lane before those who ask wait themselves.
const WAITING_MAX: usize = 1024;
