//! Reads of one thread: its head, its history, its open interrupts.

use rusqlite::types::{FromSqlError, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};
use superstep_core::checkpoint::{
    AnswerBody, Glance, Head, History, InterruptRow, Loaded, RecordRow, Status, StoredBody,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, InterruptId, Seq, TaskId, ThreadId, Timestamp, Value};

use crate::fault::{Fault, SqliteError};
use crate::schema::{place, seq_at};

/// A thread's row, with the sequence number of its newest entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredThread {
    pub(crate) id: i64,
    pub(crate) tenant: i64,
    pub(crate) head: Head,
    pub(crate) cancel: bool,
    /// Number of answers that the last owner has seen.
    pub(crate) seen: u64,
}

impl StoredThread {
    pub(crate) fn is_living(&self) -> bool {
        self.head.status != Status::Deleted
    }
}

/// Reads a thread's row, whether the thread is deleted or not.
pub(crate) fn stand(
    connection: &Connection,
    thread: &ThreadId,
) -> Result<Option<StoredThread>, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT epoch, seq, status, recoveries, answers, id, tenant, cancel, seen FROM head
         WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND name = ?2",
    )?;
    let mut rows = select.query([thread.tenant(), thread.name()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(StoredThread {
        head: head(row)?,
        id: row.get(5)?,
        tenant: row.get(6)?,
        cancel: row.get(7)?,
        seen: count(row, 8)?,
    }))
}

/// Reads the row of a thread that exists; an error if it does not or is deleted.
pub(crate) fn living(connection: &Connection, thread: &ThreadId) -> Result<StoredThread, Fault> {
    stand(connection, thread)?
        .filter(StoredThread::is_living)
        .ok_or_else(|| {
            CheckpointError::NoThread {
                thread: thread.clone(),
            }
            .into()
        })
}

/// Returns the number of a tenant; `None` if nothing was ever stored for it.
pub(crate) fn tenant(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM tenant WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

/// Reads the head from the first five columns: epoch, sequence number, status, recoveries, answers.
pub(crate) fn head(row: &Row<'_>) -> Result<Head, Fault> {
    Ok(Head {
        epoch: Epoch(count(row, 0)?),
        seq: Seq(count(row, 1)?),
        status: status(row.get(2)?)?,
        recoveries: row.get(3)?,
        answers: count(row, 4)?,
    })
}

pub(crate) fn status(number: i64) -> Result<Status, SqliteError> {
    let status = u8::try_from(number).ok().and_then(Status::from_number);
    status.ok_or(SqliteError::Unknown {
        what: "status",
        number,
    })
}

pub(crate) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::unsigned_abs)
}

/// Reads everything needed to open a thread. Of a deleted thread, only the head.
pub(crate) fn load(connection: &Connection, thread: &ThreadId) -> Result<Option<Loaded>, Fault> {
    let Some(stand) = stand(connection, thread)? else {
        return Ok(None);
    };
    if !stand.is_living() {
        return Ok(Some(Loaded {
            head: stand.head,
            ..Loaded::default()
        }));
    }
    Ok(Some(Loaded {
        head: stand.head,
        history: history(connection, stand.id, stand.head.seq)?,
        records: records(connection, stand.id)?,
        interrupts: open_interrupts(connection, thread, stand.id)?,
    }))
}

/// Reads the history up to an entry.
pub(crate) fn load_at(
    connection: &Connection,
    thread: &ThreadId,
    seq: Seq,
) -> Result<History, Fault> {
    let stand = living(connection, thread)?;
    check_entry(connection, thread, &stand, seq)?;
    Ok(history(connection, stand.id, seq)?)
}

/// Fails if the entry never existed or was pruned.
pub(crate) fn check_entry(
    connection: &Connection,
    thread: &ThreadId,
    stand: &StoredThread,
    seq: Seq,
) -> Result<(), Fault> {
    let mut select = connection.prepare_cached("SELECT 1 FROM log WHERE place = ?1")?;
    if seq <= stand.head.seq && select.exists([place(stand.id, seq)])? {
        return Ok(());
    }
    Err(CheckpointError::NoCheckpoint {
        thread: thread.clone(),
        seq,
    }
    .into())
}

/// Reads entries after a sequence number; empty if the thread does not exist.
pub(crate) fn entries(
    connection: &Connection,
    thread: &ThreadId,
    after: Seq,
    limit: u32,
) -> Result<Vec<StoredBody>, Fault> {
    let Some(stand) = stand(connection, thread)? else {
        return Ok(Vec::new());
    };
    Ok(entries_between(
        connection,
        place(stand.id, after),
        place(stand.id, stand.head.seq),
        limit,
    )?)
}

fn history(connection: &Connection, thread: i64, upto: Seq) -> rusqlite::Result<History> {
    let snapshot = connection
        .prepare_cached(
            "SELECT place, body FROM snapshot WHERE place BETWEEN ?1 AND ?2
             ORDER BY place DESC LIMIT 1",
        )?
        .query_row([place(thread, Seq(0)), place(thread, upto)], stored_body)
        .optional()?;
    let after = snapshot.as_ref().map_or(Seq(0), |snapshot| snapshot.seq);
    let (after, upto) = (place(thread, after), place(thread, upto));
    Ok(History {
        snapshot,
        entries: entries_between(connection, after, upto, u32::MAX)?,
    })
}

fn entries_between(
    connection: &Connection,
    after: i64,
    upto: i64,
    limit: u32,
) -> rusqlite::Result<Vec<StoredBody>> {
    connection
        .prepare_cached(
            "SELECT place, body FROM log WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3",
        )?
        .query_map(params![after, upto, limit], stored_body)?
        .collect()
}

/// Reads a body from two columns: place, body.
pub(crate) fn stored_body(row: &Row<'_>) -> rusqlite::Result<StoredBody> {
    Ok(StoredBody {
        seq: seq_at(row.get(0)?),
        body: row.get(1)?,
    })
}

pub(crate) fn records(connection: &Connection, thread: i64) -> rusqlite::Result<Vec<RecordRow>> {
    connection
        .prepare_cached("SELECT task, key, body FROM record WHERE thread = ?1 ORDER BY task, key")?
        .query_map([thread], record)?
        .collect()
}

fn record(row: &Row<'_>) -> rusqlite::Result<RecordRow> {
    Ok(RecordRow {
        task: TaskId::from_bytes(row.get(0)?),
        key: row.get(1)?,
        body: row.get(2)?,
    })
}

/// Reads the head of a thread, and the records of one task.
pub(crate) fn glance(
    connection: &Connection,
    thread: &ThreadId,
    task: Option<TaskId>,
) -> Result<Option<Glance>, Fault> {
    let Some(stand) = stand(connection, thread)? else {
        return Ok(None);
    };
    let records = match task {
        Some(task) => connection
            .prepare_cached(
                "SELECT task, key, body FROM record WHERE thread = ?1 AND task = ?2 ORDER BY key",
            )?
            .query_map((stand.id, task.to_bytes()), record)?
            .collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    Ok(Some(Glance {
        epoch: stand.head.epoch,
        status: stand.head.status,
        cancel: stand.cancel,
        unseen: stand.head.answers > stand.seen,
        lease: lease(connection, stand.id)?,
        records,
    }))
}

/// Returns until when the owner of a running thread holds it.
fn lease(connection: &Connection, thread: i64) -> rusqlite::Result<Option<Timestamp>> {
    let lease: Option<i64> = connection
        .prepare_cached("SELECT iif(status = 1, lease, NULL) FROM thread WHERE id = ?1")?
        .query_row([thread], |row| row.get(0))?;
    Ok(lease.map(Timestamp))
}

fn open_interrupts(
    connection: &Connection,
    thread: &ThreadId,
    number: i64,
) -> rusqlite::Result<Vec<InterruptRow>> {
    connection
        .prepare_cached(
            "SELECT id, seq, asked_at, body, answer, answered_by, answered_at, closed
             FROM interrupt WHERE thread = ?1 AND closed IS NULL ORDER BY id",
        )?
        .query_map([number], |row| interrupt(row, thread))?
        .collect()
}

/// Reads one interrupt of a thread, open or not.
pub(crate) fn interrupt_of(
    connection: &Connection,
    thread: &ThreadId,
    number: i64,
    id: InterruptId,
) -> rusqlite::Result<Option<InterruptRow>> {
    connection
        .prepare_cached(
            "SELECT id, seq, asked_at, body, answer, answered_by, answered_at, closed
             FROM interrupt WHERE thread = ?1 AND id = ?2",
        )?
        .query_row(params![number, id.to_bytes()], |row| interrupt(row, thread))
        .optional()
}

/// Reads an interrupt from eight columns: id, seq, asked_at, body, answer, answered_by, answered_at, closed.
pub(crate) fn interrupt(row: &Row<'_>, thread: &ThreadId) -> rusqlite::Result<InterruptRow> {
    Ok(InterruptRow {
        thread: thread.clone(),
        id: InterruptId::from_bytes(row.get(0)?),
        seq: Seq(count(row, 1)?),
        asked_at: Timestamp(row.get(2)?),
        body: row.get(3)?,
        answer: answer_of(row.get_ref(4)?)?,
        answered_by: row.get::<_, Option<String>>(5)?.unwrap_or_default(),
        answered_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
        closed: row
            .get::<_, Option<i64>>(7)?
            .map(|seq| Seq(seq.unsigned_abs())),
    })
}

/// Decodes the column of an answer.
pub(crate) fn answer_of(column: ValueRef<'_>) -> Result<Option<AnswerBody>, FromSqlError> {
    match column {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(_) => Ok(Some(AnswerBody::Expired)),
        ValueRef::Blob(bytes) => Ok(Some(AnswerBody::Value(Value::from_bytes(bytes)))),
        ValueRef::Real(_) | ValueRef::Text(_) => Err(FromSqlError::InvalidType),
    }
}

/// Encodes the column of an answer.
pub(crate) fn answer_column(answer: &AnswerBody) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match answer {
        AnswerBody::Value(value) => ValueRef::Blob(value.as_bytes()),
        AnswerBody::Expired => ValueRef::Integer(0),
    })
}

/// Converts a count into SQLite's integer type. Ours never come near the limit.
pub(crate) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
