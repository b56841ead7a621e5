//! The one connection that writes, and group commit.
//!
//! Making a transaction durable costs a wait for the disk, and it costs the same for one request or
//! for a hundred. So requests queue up while a transaction is made durable, and those that wait share
//! the next one, each inside a savepoint of its own unless it is a single statement. A request that fails takes
//! back its own writes and nobody else's; all are answered when the transaction is on the disk.
//!
//! # Who writes
//!
//! The caller. A trip to another thread and back costs about as much as the disk, so the asker lets
//! everybody else on its executor ask first, and then serves what has come together. It does so only
//! where that is quick. A crowd, a disk that was slow the last time, or another process that holds the
//! database are left to a thread of ours, so that no executor waits for long.
//!
//! Nothing is forgotten: the caller that releases the connection looks at the queue, and wakes the thread if
//! it is not empty.

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

use crate::fault::{Fault, SqliteError};
use crate::work::{Request, Setting, Work};

/// The connection that writes. Dropping it finishes what was asked, and closes it.
pub(crate) struct Writer {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// Where requests wait, and the connection that serves them.
struct Desk {
    connection: Mutex<Connection>,
    busy_timeout: Duration,
    queue: Mutex<Queue>,
    /// Rung when the thread is needed.
    bell: Condvar,
    /// The last transaction took so long that an executor should not wait for the next.
    is_slow: AtomicBool,
}

/// For which thread something is asked, if for one.
pub(crate) type Who = Option<ThreadId>;

/// Who asks at the same time.
enum Company {
    Nobody,
    Somebody,
    /// More than an asker serves.
    Crowd,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<Request>,
    /// For whom the last request was.
    last: Who,
    /// No more requests will come.
    closed: bool,
}

/// How many requests share a transaction at most: a bound on how long the first one waits for the last.
const GROUP_MAX: usize = 256;
/// How many requests an asker serves at most.
const FEW: usize = 16;
/// How long the last transaction may have taken for an asker to make the next one.
const QUICK: Duration = Duration::from_micros(500);

impl Writer {
    pub(crate) fn new(connection: Connection, busy_timeout: Duration) -> Result<Self, Fault> {
        let desk = Arc::new(Desk {
            connection: Mutex::new(connection),
            busy_timeout,
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

    /// Has something written, and waits until it is durable. Once it is asked it is done, also if the asker goes away.
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
                // Everybody else who is about to ask does so now.
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
            // A panic over there was reported when it happened; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// A caller makes sure that everything in the queue is served, also if it is dropped before it could serve.
struct Asker<'a> {
    desk: &'a Desk,
}

impl Drop for Asker<'_> {
    fn drop(&mut self) {
        if !lock(&self.desk.queue).requests.is_empty() {
            self.desk.bell.notify_one();
        }
    }
}

/// Lets everything else that is ready run first.
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

impl Desk {
    /// Puts a request into the queue, and says who else seems to be asking.
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

    /// An asker serves what waits, if that is quick and nobody else is at it.
    fn serve_few(&self) {
        let connection = match self.connection.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let Some(group) = self.take_few() else { return };
        match self.begin(&connection, Duration::ZERO) {
            // Another process writes, and only the thread may wait for it.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                self.put_back(group);
            }
            begun => self.finish(&connection, begun, group),
        }
    }

    /// What an asker may serve; none if it might take long.
    fn take_few(&self) -> Option<Vec<Request>> {
        let mut queue = lock(&self.queue);
        let is_quick = (1..=FEW).contains(&queue.requests.len())
            && queue.requests.iter().all(Request::shares)
            && !self.is_slow.load(Ordering::Relaxed);
        is_quick.then(|| queue.requests.drain(..).collect())
    }

    /// Before all that came meanwhile.
    fn put_back(&self, group: Vec<Request>) {
        let mut queue = lock(&self.queue);
        for request in group.into_iter().rev() {
            queue.requests.push_front(request);
        }
    }

    /// What the thread does.
    fn serve_until_closed(&self) {
        while self.wait() {
            // A panic may have left a transaction open; `begin` takes it back.
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
        // Statistics for the planner are a courtesy to the next opener; without them it plans as before.
        let _ = lock(&self.connection).execute_batch("PRAGMA optimize");
    }

    /// Waits until the queue is not empty; false if nothing will ever be in it again.
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

    /// A request and those behind it that can share its transaction.
    fn group_of(&self, first: Request) -> Vec<Request> {
        let mut queue = lock(&self.queue);
        let mut group = vec![first];
        while group.len() < GROUP_MAX
            && let Some(next) = queue.requests.pop_front_if(|next| next.shares())
        {
            group.push(next);
        }
        group
    }

    /// Begins a transaction, and waits so long for another process that has one.
    fn begin(&self, connection: &Connection, patience: Duration) -> rusqlite::Result<Begun> {
        let at = Instant::now();
        if !connection.is_autocommit() {
            // Work panicked in it.
            connection.execute_batch("ROLLBACK")?;
        }
        connection.busy_timeout(patience)?;
        let begun = execute(connection, "BEGIN IMMEDIATE");
        connection.busy_timeout(self.busy_timeout)?;
        begun.map(|()| Begun { at })
    }

    /// Does the work of a group in the transaction that was begun for it, commits, and answers.
    fn finish(
        &self,
        connection: &Connection,
        begun: rusqlite::Result<Begun>,
        mut group: Vec<Request>,
    ) {
        let outcome = begun.and_then(|begun| {
            commit(connection, &mut group)?;
            let is_slow = begun.at.elapsed() > QUICK;
            self.is_slow.store(is_slow, Ordering::Relaxed);
            Ok(())
        });
        if outcome.is_err() && !connection.is_autocommit() {
            // If even this fails the next `BEGIN` will, and say so to whoever asks next.
            let _ = connection.execute_batch("ROLLBACK");
        }
        let outcome = outcome.map_err(Arc::new);
        for request in group {
            request.work.answer(outcome.clone());
        }
    }
}

/// A transaction, and when it was begun.
struct Begun {
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
                // SQLite took back the whole transaction, and with it the work of the others. This fails and says so.
                return execute(connection, "COMMIT");
            }
            continue;
        }
        execute(connection, "SAVEPOINT request")?;
        if !work.run(connection) {
            // Fails if SQLite took back the whole transaction, and with it the work of the others.
            execute(connection, "ROLLBACK TO request")?;
        }
        execute(connection, "RELEASE request")?;
    }
    execute(connection, "COMMIT")
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}
