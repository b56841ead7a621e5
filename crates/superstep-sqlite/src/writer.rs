//! The single writing connection, and group commit.
//!
//! Making a transaction durable means waiting for the disk, and that costs the same for one request or a hundred. So requests
//! queue up while a transaction becomes durable, and the waiting ones share the next one, each in its own savepoint unless it
//! is a single statement. A request that fails rolls back only its own writes; all results are sent once the transaction is
//! on disk.
//!
//! # Who writes
//!
//! The caller. A round trip to another thread costs about as much as the disk, so the caller lets every other task on its
//! executor enqueue first, and then serves the whole queue. It does so only where that is fast. If the queue is long, the
//! disk was slow the last time, or another process holds the database, a dedicated thread serves the queue, so no executor
//! blocks for long.
//!
//! No request is lost: the caller that releases the connection checks the queue, and wakes the thread if it is not empty.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::task::Poll;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use superstep_core::__private::lock;
use superstep_core::ThreadId;

use crate::Options;
use crate::fault::{Fault, SqliteError};
use crate::work::{Request, Setting, Work};

/// The writing connection. Dropping it serves the pending requests, and closes the connection.
pub(crate) struct Writer {
    desk: Arc<WriterState>,
    thread: Option<JoinHandle<()>>,
}

/// The request queue, and the connection that serves it.
struct WriterState {
    connection: Mutex<Connection>,
    busy_timeout: Duration,
    caller_write_max: Duration,
    queue: Mutex<Queue>,
    /// Notified when the thread is needed.
    bell: Condvar,
    /// Whether the last transaction took so long that an executor should not wait for the next one.
    is_slow: AtomicBool,
}

/// Thread id that a request is for, if it is for one.
pub(crate) type Who = Option<ThreadId>;

/// How many other callers seem to be active.
enum Company {
    Nobody,
    Somebody,
    /// More requests than a caller serves.
    Crowd,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<Request>,
    /// Thread id of the last request.
    last: Who,
    /// Set on drop: no more requests will arrive.
    closed: bool,
}

/// Maximum number of requests per transaction, which bounds how long the first one waits for the last.
const GROUP_MAX: usize = 256;
/// Maximum number of requests that a caller serves.
const FEW: usize = 16;

impl Writer {
    pub(crate) fn new(connection: Connection, options: &Options) -> Result<Self, Fault> {
        let desk = Arc::new(WriterState {
            connection: Mutex::new(connection),
            busy_timeout: options.busy_timeout,
            caller_write_max: options.caller_write_max,
            queue: Mutex::default(),
            bell: Condvar::new(),
            is_slow: AtomicBool::new(false),
        });
        let thread = Builder::new().name("superstep-sqlite-write".into());
        let thread = thread.spawn({
            let desk = desk.clone();
            move || desk.serve_until_closed()
        })?;
        Ok(Self {
            desk,
            thread: Some(thread),
        })
    }

    /// Runs work in a transaction, and waits until it is durable. Once enqueued the work runs even if the caller stops
    /// waiting.
    pub(crate) async fn ask<T, F>(&self, who: Who, setting: Setting, work: F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (request, answered) = Request::new(setting, work);
        let company = self.desk.push(who, request);
        let asker = Asker { desk: &self.desk };
        match company {
            Company::Nobody => self.desk.serve_few(),
            Company::Somebody => {
                // Lets other tasks that are about to enqueue do so now.
                yield_once().await;
                self.desk.serve_few();
            }
            Company::Crowd => {}
        }
        drop(asker);
        answered.await.map_err(|_| SqliteError::Closed)?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.desk.queue).closed = true;
        self.desk.bell.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened; there is no caller left to notify.
            let _ = thread.join();
        }
    }
}

/// Makes sure that the queue is served even if the caller is dropped before it could serve it.
struct Asker<'a> {
    desk: &'a WriterState,
}

impl Drop for Asker<'_> {
    fn drop(&mut self) {
        if !lock(&self.desk.queue).requests.is_empty() {
            self.desk.bell.notify_one();
        }
    }
}

/// Yields once, so that every other ready task runs first.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl WriterState {
    /// Enqueues a request, and estimates how many other callers are active.
    fn push(&self, who: Who, request: Request) -> Company {
        let mut queue = lock(&self.queue);
        let company = match queue.requests.len() {
            // The last request was for the same thread.
            0 if who.is_some() && queue.last == who => Company::Nobody,
            before if before < FEW => Company::Somebody,
            _ => Company::Crowd,
        };
        queue.last = who;
        queue.requests.push_back(request);
        company
    }

    /// Serves the queue on the caller's side, if that is fast and the connection is free.
    fn serve_few(&self) {
        let connection = match self.connection.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let Some(group) = self.take_few() else { return };
        match self.begin(&connection, Duration::ZERO) {
            // Another process is writing, and only the thread may wait for it.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                self.put_back(group);
            }
            begun => self.finish(&connection, begun, group),
        }
    }

    /// Takes the requests that a caller may serve; `None` if that might take long.
    fn take_few(&self) -> Option<Vec<Request>> {
        let mut queue = lock(&self.queue);
        let is_quick = (1..=FEW).contains(&queue.requests.len())
            && queue.requests.iter().all(Request::shares)
            && !self.is_slow.load(Ordering::Relaxed);
        is_quick.then(|| queue.requests.drain(..).collect())
    }

    /// Puts requests back in front of those that arrived meanwhile.
    fn put_back(&self, group: Vec<Request>) {
        let mut queue = lock(&self.queue);
        for request in group.into_iter().rev() {
            queue.requests.push_front(request);
        }
    }

    /// Main loop of the thread.
    fn serve_until_closed(&self) {
        while self.wait() {
            // A panic may have left a transaction open; `begin` rolls it back.
            let connection = lock(&self.connection);
            while let Some(first) = self.pop() {
                if first.shares() {
                    let group = self.group_of(first);
                    let begun = self.begin(&connection, self.busy_timeout);
                    self.finish(&connection, begun, group);
                } else {
                    serve_alone(&connection, first.work);
                }
            }
        }
        // Updates the planner's statistics for the next process; a failure does no harm.
        let _ = lock(&self.connection).execute_batch("PRAGMA optimize");
    }

    /// Waits until the queue is not empty. Returns `false` once it is empty and closed.
    fn wait(&self) -> bool {
        let queue = lock(&self.queue);
        let is_idle = |queue: &mut Queue| queue.requests.is_empty() && !queue.closed;
        let queue = self
            .bell
            .wait_while(queue, is_idle)
            .unwrap_or_else(PoisonError::into_inner);
        !queue.requests.is_empty()
    }

    fn pop(&self) -> Option<Request> {
        lock(&self.queue).requests.pop_front()
    }

    /// Takes the requests after the first that can share its transaction.
    fn group_of(&self, first: Request) -> Vec<Request> {
        let mut queue = lock(&self.queue);
        let mut group = vec![first];
        while group.len() < GROUP_MAX && queue.requests.front().is_some_and(Request::shares) {
            group.extend(queue.requests.pop_front());
        }
        group
    }

    /// Begins a transaction, waiting up to `patience` for another process that holds one.
    fn begin(
        &self,
        connection: &Connection,
        patience: Duration,
    ) -> rusqlite::Result<OpenTransaction> {
        let at = Instant::now();
        if !connection.is_autocommit() {
            // The work of an earlier request panicked.
            connection.execute_batch("ROLLBACK")?;
        }
        connection.busy_timeout(patience)?;
        let begun = execute(connection, "BEGIN IMMEDIATE");
        connection.busy_timeout(self.busy_timeout)?;
        begun.map(|()| OpenTransaction { at })
    }

    /// Runs the work of a group in its transaction, commits, and sends the results.
    fn finish(
        &self,
        connection: &Connection,
        begun: rusqlite::Result<OpenTransaction>,
        mut group: Vec<Request>,
    ) {
        let outcome = begun.and_then(|begun| {
            commit(connection, &mut group)?;
            let is_slow = begun.at.elapsed() > self.caller_write_max;
            self.is_slow.store(is_slow, Ordering::Relaxed);
            Ok(())
        });
        if outcome.is_err() && !connection.is_autocommit() {
            // If this fails, the next `BEGIN` fails too and reports the error to its caller.
            let _ = connection.execute_batch("ROLLBACK");
        }
        let outcome = outcome.map_err(Arc::new);
        for request in group {
            request.work.answer(outcome.clone());
        }
    }
}

/// An open transaction, and when it began.
struct OpenTransaction {
    at: Instant,
}

fn serve_alone(connection: &Connection, mut work: Box<dyn Work>) {
    work.run(connection);
    work.answer(Ok(()));
}

fn commit(connection: &Connection, group: &mut [Request]) -> rusqlite::Result<()> {
    if let [only] = group {
        let sql = if only.work.run(connection) {
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        return execute(connection, sql);
    }
    for Request { work, setting } in group {
        if *setting == Setting::Statement {
            if !work.run(connection) && connection.is_autocommit() {
                // SQLite rolled back the whole transaction, including the work of others. `COMMIT` then fails and reports it.
                return execute(connection, "COMMIT");
            }
            continue;
        }
        execute(connection, "SAVEPOINT request")?;
        if !work.run(connection) {
            // Fails if SQLite rolled back the whole transaction, including the work of others.
            execute(connection, "ROLLBACK TO request")?;
        }
        execute(connection, "RELEASE request")?;
    }
    execute(connection, "COMMIT")
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the name of the OS thread that serves the second of two requests.
    fn second_writer(caller_write_max: Duration) -> Option<String> {
        let options = Options {
            caller_write_max,
            ..Options::default()
        };
        let writer = Writer::new(Connection::open_in_memory().unwrap(), &options).unwrap();
        let name = |_: &Connection| Ok(std::thread::current().name().map(str::to_owned));
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.unwrap();
        runtime.block_on(async {
            writer.ask(None, Setting::Statement, name).await.unwrap();
            writer.ask(None, Setting::Statement, name).await.unwrap()
        })
    }

    #[test]
    fn callers_write_until_a_transaction_takes_too_long() {
        let thread = Some("superstep-sqlite-write".to_owned());
        assert_eq!(second_writer(Duration::ZERO), thread);
        assert_ne!(second_writer(Duration::MAX), thread);
    }
}
