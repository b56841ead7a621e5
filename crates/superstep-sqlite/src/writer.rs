//! The one thread that writes, and group commit.
//!
//! Making a transaction durable costs a wait for the disk, and it costs the same for one request or
//! for a hundred. So the writer takes whatever has come in while it waited for the last one, runs
//! each request inside a savepoint of one transaction, commits once, and only then answers them all.
//! A request that fails takes back its own writes and nobody else's.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::lane::{Request, Setting, Work};

/// Serves requests until nobody can send any more.
pub(crate) fn serve(connection: &Connection, requests: &mut mpsc::Receiver<Request>) {
    while let Some(first) = requests.blocking_recv() {
        let mut next = Some(first);
        while let Some(request) = next.take() {
            next = match request.setting {
                Setting::Transaction => serve_group(connection, request.work, requests),
                Setting::Alone => serve_alone(connection, request.work),
            };
        }
    }
    // Statistics for the planner are a courtesy to the next opener; without them it plans as before.
    let _ = connection.execute_batch("PRAGMA optimize");
}

fn serve_alone(connection: &Connection, mut work: Box<dyn Work>) -> Option<Request> {
    work.run(connection);
    work.answer(Ok(()));
    None
}

/// Serves a request and those that wait behind it; gives back the first that cannot be in their group.
fn serve_group(
    connection: &Connection,
    first: Box<dyn Work>,
    requests: &mut mpsc::Receiver<Request>,
) -> Option<Request> {
    let mut group = vec![first];
    let mut left = None;
    while group.len() < GROUP_MAX && left.is_none() {
        match requests.try_recv() {
            Ok(Request {
                work,
                setting: Setting::Transaction,
            }) => group.push(work),
            Ok(alone) => left = Some(alone),
            Err(_) => break,
        }
    }
    let outcome = commit(connection, &mut group).map_err(Arc::new);
    if outcome.is_err() && !connection.is_autocommit() {
        // If even this fails the next `BEGIN` will, and say so to whoever asks next.
        let _ = connection.execute_batch("ROLLBACK");
    }
    for work in group {
        work.answer(outcome.clone());
    }
    left
}

fn commit(connection: &Connection, group: &mut [Box<dyn Work>]) -> rusqlite::Result<()> {
    let run = |sql| connection.prepare_cached(sql)?.execute([]).map(drop);
    run("BEGIN IMMEDIATE")?;
    for work in group {
        run("SAVEPOINT request")?;
        if !work.run(connection) {
            // Fails if SQLite took back the whole transaction, and with it the work of the others.
            run("ROLLBACK TO request")?;
        }
        run("RELEASE request")?;
    }
    run("COMMIT")
}

/// How many requests share a transaction at most: a bound on how long the first one waits for the last.
const GROUP_MAX: usize = 256;
