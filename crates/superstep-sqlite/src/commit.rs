//! Writes of a run: commits, records, answers, cancel requests.
//!
//! All of them run inside a transaction that holds the write lock, so what they read stays true until they write.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};
use superstep_core::checkpoint::{
    Answer, AnswerBody, AskedRow, Commit, Head, RESULT_KEY, RecordWrite, Released, ReleasedRecords,
    Saved, Status, UnseenAnswers,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, InterruptId, Seq, TaskId, ThreadId, Timestamp};

use crate::fault::Fault;
use crate::list::{self, Change};
use crate::numbers::{Numbers, ThreadNumber};
use crate::read::{self, StoredThread, answer_column, answer_of, number};
use crate::row;
use crate::schema::{check_place, place};

/// Applies a commit, or detects that it was applied before.
pub(crate) fn save(
    connection: &Connection,
    numbers: &Numbers,
    commit: &Commit,
) -> Result<Saved, Fault> {
    if step(connection, numbers, commit)? {
        return Ok(Saved::default());
    }
    let before = read::stand(connection, &commit.thread)?;
    if let Some(after) = advance(connection, commit, before.as_ref())? {
        numbers.learn(&commit.thread, &after);
        append(connection, commit, after.id)?;
        for asked in &commit.asked {
            ask(connection, commit, &after, asked)?;
        }
        clear(connection, commit, after.id)?;
        let was_living = before.as_ref().is_some_and(StoredThread::is_living);
        let status_before = before
            .as_ref()
            .filter(|_| was_living)
            .map(|stand| stand.head.status);
        let listing = commit.listing.as_ref();
        list::write(
            connection,
            &after,
            &Change {
                status_before,
                listing,
                at: commit.at,
            },
        )?;
        return saved(connection, commit, &after);
    }
    match before {
        Some(stand) if was_saved(connection, commit, &stand)? => saved(connection, commit, &stand),
        _ => Err(fenced(&commit.thread, commit.expect.epoch)),
    }
}

/// Applies a superstep inside a run, where only the log changes. Most commits are like that, so this is a single statement
/// without lookups. Returns `false` if the commit is of another kind, the thread is at another entry, or its number is unknown
/// or wrong.
fn step(connection: &Connection, numbers: &Numbers, commit: &Commit) -> Result<bool, Fault> {
    let (expect, head) = (commit.expect, commit.head);
    let goes_on = (expect.epoch, head.status, head.recoveries) == (head.epoch, Status::Running, 0);
    let only_entry = commit.snapshot.is_none()
        && commit.listing.is_none()
        && commit.asked.is_empty()
        && commit.closed.is_empty()
        && commit.released.is_empty();
    let (Some(body), true, true) = (&commit.entry, goes_on, only_entry) else {
        return Ok(false);
    };
    let Some(thread) = numbers.get(&commit.thread) else {
        return Ok(false);
    };
    check_place(thread.id, head.seq)?;
    // The thread is at the expected entry if that entry is in the log and the place after it is free. If the thread's row
    // names the expected entry, entries after it may have been pruned; then a later entry exists, which the first branch
    // rules out. Where neither holds, or the number is of another thread, the epoch is null, and `OR IGNORE` skips a row that
    // violates `NOT NULL`. (Selecting the row from `thread` would make SQLite go through a temporary table, because the row
    // depends on the log it is inserted into.)
    //
    // Without the indentation of this file: the text is hashed twice per commit, to find its prepared statement and to put it
    // back. Statements cannot be held without their text: they borrow the connection, and cannot move between OS threads as it
    // does.
    let inserted = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO log (place, epoch, body) VALUES (?1, \
                 (SELECT epoch FROM thread WHERE id = ?2 AND tenant = ?3 AND name = ?4 \
                    AND epoch = ?5 AND status = ?6 AND seen = ?7 AND recoveries = 0 AND cancel = 0 \
                    AND (seq = ?8 AND NOT EXISTS (SELECT 1 FROM log WHERE place > ?1 AND place < ?9) \
                         OR EXISTS (SELECT 1 FROM log WHERE place = ?10))), \
                 ?11)",
        )?
        .execute(params![
            place(thread.id, head.seq),
            thread.id,
            thread.tenant,
            commit.thread.name(),
            number(expect.epoch.0),
            head.status as u8,
            number(head.answers),
            number(expect.seq.0),
            place(thread.id + 1, Seq(0)),
            place(thread.id, expect.seq),
            body,
        ])?;
    Ok(inserted > 0)
}

/// Moves the thread's head, unless the thread is not where the commit expects it.
fn advance(
    connection: &Connection,
    commit: &Commit,
    before: Option<&StoredThread>,
) -> Result<Option<StoredThread>, Fault> {
    let Some(before) = before else {
        let is_new = (commit.expect.epoch, commit.expect.seq) == (Epoch(0), Seq(0));
        if !is_new || !commit.is_claim() {
            return Ok(None);
        }
        let head = Head {
            answers: 0,
            ..commit.head
        };
        return row::make(connection, &commit.thread, head, false, 0, commit.lease).map(Some);
    };
    if !before.is_living() && !commit.is_claim() {
        return Ok(None);
    }
    let answers = before.head.answers;
    let status = match commit.head.status {
        Status::Paused if answers > commit.head.answers => Status::Running,
        status => status,
    };
    let after = StoredThread {
        head: Head {
            status,
            answers,
            ..commit.head
        },
        cancel: before.cancel && !commit.is_claim(),
        seen: commit.head.answers,
        ..*before
    };
    Ok(update(connection, commit, &after)?.then_some(after))
}

/// The fence: changes the row only if the thread is at the expected epoch and sequence number.
fn update(
    connection: &Connection,
    commit: &Commit,
    after: &StoredThread,
) -> rusqlite::Result<bool> {
    let (expect, lease) = (commit.expect, commit.lease.map(|lease| lease.0));
    let changed = connection
        .prepare_cached(
            "UPDATE thread
             SET epoch = ?4, seq = ?5, cancel = ?6, recoveries = ?7, status = ?8, seen = ?9,
                 lease = iif(?10, ?11, lease)
             WHERE id = ?1 AND epoch = ?2 AND ?3 = (SELECT seq FROM head WHERE id = ?1)",
        )?
        .execute(params![
            after.id,
            number(expect.epoch.0),
            number(expect.seq.0),
            number(after.head.epoch.0),
            number(after.head.seq.0),
            after.cancel,
            after.head.recoveries,
            after.head.status as u8,
            number(after.seen),
            commit.is_claim(),
            lease,
        ])?;
    Ok(changed > 0)
}

fn append(connection: &Connection, commit: &Commit, thread: i64) -> Result<(), Fault> {
    check_place(thread, commit.head.seq)?;
    let place = place(thread, commit.head.seq);
    if let Some(body) = &commit.entry {
        let epoch = number(commit.head.epoch.0);
        connection
            .prepare_cached("INSERT INTO log (place, epoch, body) VALUES (?1, ?2, ?3)")?
            .execute(params![place, epoch, body])?;
    }
    if let Some(body) = &commit.snapshot {
        connection
            .prepare_cached("INSERT OR IGNORE INTO snapshot (place, body) VALUES (?1, ?2)")?
            .execute(params![place, body])?;
    }
    Ok(())
}

/// Closes the interrupts and deletes the records that the commit no longer needs.
fn clear(connection: &Connection, commit: &Commit, thread: i64) -> rusqlite::Result<()> {
    close(connection, commit, thread)?;
    release(connection, commit, thread)
}

fn ask(
    connection: &Connection,
    commit: &Commit,
    after: &StoredThread,
    asked: &AskedRow,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO interrupt (tenant, thread, id, seq, asked_at, deadline, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (thread, id) DO NOTHING",
    )?;
    insert.execute(params![
        after.tenant,
        after.id,
        asked.id.to_bytes(),
        number(commit.head.seq.0),
        commit.at.0,
        asked.deadline.map(|deadline| deadline.0),
        asked.body,
    ])?;
    Ok(())
}

fn close(connection: &Connection, commit: &Commit, thread: i64) -> rusqlite::Result<()> {
    if commit.closed.is_empty() {
        return Ok(());
    }
    let mut close = connection.prepare_cached(
        "UPDATE interrupt SET closed = ?3 WHERE thread = ?1 AND id = ?2 AND closed IS NULL",
    )?;
    for id in &commit.closed {
        close.execute(params![thread, id.to_bytes(), number(commit.head.seq.0)])?;
    }
    Ok(())
}

fn release(connection: &Connection, commit: &Commit, thread: i64) -> rusqlite::Result<()> {
    if commit.released.is_empty() {
        return Ok(());
    }
    if commit.released.len() >= MANY && holds_no_others(connection, thread, &commit.released)? {
        return connection
            .prepare_cached("DELETE FROM record WHERE thread = ?1")?
            .execute([thread])
            .map(drop);
    }
    let mut all =
        connection.prepare_cached("DELETE FROM record WHERE thread = ?1 AND task = ?2")?;
    let mut result = connection
        .prepare_cached("DELETE FROM record WHERE thread = ?1 AND task = ?2 AND key = ?3")?;
    for Released { task, which } in &commit.released {
        let task = task.to_bytes();
        match which {
            ReleasedRecords::All => all.execute(params![thread, task])?,
            ReleasedRecords::Result => result.execute(params![thread, task, RESULT_KEY])?,
        };
    }
    Ok(())
}

/// Returns whether the commit releases every record of the thread. After a wide superstep it does, and a single statement
/// deletes them all.
fn holds_no_others(
    connection: &Connection,
    thread: i64,
    released: &[Released],
) -> rusqlite::Result<bool> {
    let whole = |released: &&Released| released.which == ReleasedRecords::All;
    let tasks: BTreeSet<TaskId> = (released.iter().filter(whole))
        .map(|released| released.task)
        .collect();
    let mut select = connection.prepare_cached("SELECT task FROM record WHERE thread = ?1")?;
    let mut rows = select.query([thread])?;
    while let Some(row) = rows.next()? {
        if !tasks.contains(&TaskId::from_bytes(row.get(0)?)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Number of released tasks from which it pays to check all records of the thread first.
const MANY: usize = 16;

/// Returns whether a commit that does not match the head now was applied before.
///
/// Comparing epochs is not enough: two claims that race for the same epoch are different commits, and the loser must not
/// mistake the winner's entry for its own.
fn was_saved(
    connection: &Connection,
    commit: &Commit,
    stand: &StoredThread,
) -> rusqlite::Result<bool> {
    let Some(body) = &commit.entry else {
        let stands = (stand.head.epoch, stand.head.seq);
        return Ok(stand.is_living() && stands == (commit.head.epoch, commit.head.seq));
    };
    connection
        .prepare_cached("SELECT 1 FROM log WHERE place = ?1 AND epoch = ?2 AND body = ?3")?
        .exists(params![
            place(stand.id, commit.head.seq),
            number(commit.head.epoch.0),
            body
        ])
}

/// Returns what the owner learns from the commit. If the thread should be paused at this entry but is running, answers
/// arrived.
fn saved(connection: &Connection, commit: &Commit, stand: &StoredThread) -> Result<Saved, Fault> {
    let was_to_pause = commit.head.status == Status::Paused;
    let stands_here = (stand.head.epoch, stand.head.seq) == (commit.head.epoch, commit.head.seq);
    let runs_on = was_to_pause && stands_here && stand.head.status == Status::Running;
    let unseen = if runs_on {
        let answered = answered(connection, stand.id)?;
        Some(UnseenAnswers {
            answers: stand.head.answers,
            answered,
        })
    } else {
        None
    };
    let records = if commit.is_claim() {
        read::records(connection, stand.id)?
    } else {
        Vec::new()
    };
    Ok(Saved {
        cancel: stand.cancel,
        unseen,
        records,
    })
}

/// Returns the interrupts of a thread that are answered but not closed.
fn answered(
    connection: &Connection,
    thread: i64,
) -> rusqlite::Result<Vec<(InterruptId, AnswerBody)>> {
    let mut select = connection.prepare_cached(
        "SELECT id, answer FROM interrupt
         WHERE thread = ?1 AND answer IS NOT NULL AND closed IS NULL ORDER BY id",
    )?;
    let rows = select.query_map([thread], |row| {
        let id = InterruptId::from_bytes(row.get(0)?);
        Ok(answer_of(row.get_ref(1)?)?.map(|answer| (id, answer)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Stores a record unless there is one, and returns the stored one. Writes with a single statement.
pub(crate) fn record(
    connection: &Connection,
    numbers: &Numbers,
    record: RecordWrite,
) -> Result<Vec<u8>, Fault> {
    if let Some(thread) = numbers.get(&record.thread)
        && insert_record(connection, thread, &record)?
    {
        return Ok(record.body);
    }
    // It exists, the thread has another owner, or its number was unknown or wrong.
    let owned = read::stand(connection, &record.thread)?
        .filter(|stand| stand.is_living() && stand.head.epoch == record.epoch);
    let Some(stand) = owned else {
        return Err(fenced(&record.thread, record.epoch));
    };
    let thread = numbers.learn(&record.thread, &stand);
    if insert_record(connection, thread, &record)? {
        return Ok(record.body);
    }
    let stored = connection
        .prepare_cached("SELECT body FROM record WHERE thread = ?1 AND task = ?2 AND key = ?3")?
        .query_row(
            params![stand.id, record.task.to_bytes(), record.key],
            |row| row.get(0),
        );
    Ok(stored?)
}

/// Inserts a record, unless there is one under its key, or the thread is not the owner's.
fn insert_record(
    connection: &Connection,
    thread: ThreadNumber,
    record: &RecordWrite,
) -> rusqlite::Result<bool> {
    // If the thread is deleted or has another owner, or the number is of another thread, the first value is null; `OR IGNORE`
    // skips that row, like one that exists already.
    let inserted = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO record (thread, task, key, body) VALUES (\
                 (SELECT id FROM thread WHERE id = ?1 AND tenant = ?2 AND name = ?3 \
                    AND epoch = ?4 AND status <> ?5), \
                 ?6, ?7, ?8)",
        )?
        .execute(params![
            thread.id,
            thread.tenant,
            record.thread.name(),
            number(record.epoch.0),
            Status::Deleted as u8,
            record.task.to_bytes(),
            record.key,
            record.body
        ])?;
    Ok(inserted > 0)
}

/// Stores all answers or none. Succeeds if the same answers were stored before.
pub(crate) fn answer(
    connection: &Connection,
    thread: &ThreadId,
    answers: &[Answer],
) -> Result<(), Fault> {
    let stand = read::living(connection, thread)?;
    if let Some(interrupt) = Answer::named_twice(answers) {
        return Err(not_open(thread, interrupt));
    }
    if holds_all(connection, thread, stand.id, answers)? {
        return Ok(());
    }
    let mut update = connection.prepare_cached(
        "UPDATE interrupt SET answer = ?3, answered_by = ?4, answered_at = ?5
         WHERE thread = ?1 AND id = ?2 AND answer IS NULL AND closed IS NULL",
    )?;
    for answer in answers {
        let by = Some(&answer.by).filter(|by| !by.is_empty());
        let interrupt = answer.interrupt;
        let won = update.execute(params![
            stand.id,
            interrupt.to_bytes(),
            answer_column(&answer.body),
            by,
            answer.at.0
        ])? > 0;
        if !won {
            return Err(not_open(thread, interrupt));
        }
    }
    connection
        .prepare_cached("UPDATE thread SET answers = answers + ?2 WHERE id = ?1")?
        .execute(params![stand.id, number(answers.len() as u64)])?;
    Ok(())
}

/// Returns whether exactly these answers are stored.
fn holds_all(
    connection: &Connection,
    thread: &ThreadId,
    number: i64,
    answers: &[Answer],
) -> rusqlite::Result<bool> {
    for answer in answers {
        let stored = read::interrupt_of(connection, thread, number, answer.interrupt)?;
        if !stored.is_some_and(|row| row.holds(answer)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn not_open(thread: &ThreadId, interrupt: InterruptId) -> Fault {
    CheckpointError::NotOpen {
        thread: thread.clone(),
        interrupt,
    }
    .into()
}

/// Sets the cancel flag, which the thread's owner reads.
pub(crate) fn request_cancel(connection: &Connection, thread: &ThreadId) -> Result<(), Fault> {
    let stand = read::living(connection, thread)?;
    connection
        .prepare_cached("UPDATE thread SET cancel = 1 WHERE id = ?1")?
        .execute([stand.id])?;
    Ok(())
}

/// Sets the leases of those threads that are running at their owner's epoch.
pub(crate) fn renew(
    connection: &Connection,
    owned: &[(ThreadId, Epoch)],
    lease: Timestamp,
) -> Result<(), Fault> {
    let mut update = connection.prepare_cached(
        "UPDATE thread SET lease = ?4
         WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND name = ?2
           AND epoch = ?3 AND status = ?5",
    )?;
    for (thread, epoch) in owned {
        update.execute(params![
            thread.tenant(),
            thread.name(),
            number(epoch.0),
            lease.0,
            Status::Running as u8,
        ])?;
    }
    Ok(())
}

fn fenced(thread: &ThreadId, epoch: Epoch) -> Fault {
    CheckpointError::Fenced {
        thread: thread.clone(),
        epoch,
    }
    .into()
}
