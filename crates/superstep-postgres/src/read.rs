//! Reads of one thread: its head, its history, its open interrupts.
//!
//! Each read is one statement, so it sees a single snapshot.

use superstep_core::checkpoint::{
    AnswerBody, Glance, Head, History, InterruptRow, Loaded, RecordRow, Status, StoredBody,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, InterruptId, Seq, TaskId, ThreadId, Timestamp, Value};
use tokio_postgres::Row;

use crate::fault::{Fault, PostgresError};
use crate::id::Id;
use crate::place::{Place, Places};
use crate::pool::Params;

/// Reads everything needed to open a thread.
pub(crate) async fn load(places: &Places, thread: &ThreadId) -> Result<Option<Loaded>, Fault> {
    let Some(place) = places.find(thread).await? else {
        return Ok(None);
    };
    let loaded = load_from(places, place, thread).await?;
    if loaded.is_some() {
        return Ok(loaded);
    }
    // The cached place is wrong; look it up again.
    places.forget(thread);
    match places.find(thread).await? {
        Some(place) => load_from(places, place, thread).await,
        None => Ok(None),
    }
}

async fn load_from(
    places: &Places,
    place: Place,
    thread: &ThreadId,
) -> Result<Option<Loaded>, Fault> {
    let (tenant, name) = (thread.tenant(), thread.name());
    let params: Params<'_> = &[&tenant, &name, &place.id];
    let rows = places
        .pool
        .read_by_key(&place.statement(LOAD, params))
        .await?;
    loaded(&rows, thread)
}

/// Reads a thread from the rows of [`LOAD`].
pub(crate) fn loaded(rows: &[Row], thread: &ThreadId) -> Result<Option<Loaded>, Fault> {
    let mut loaded = Loaded::default();
    let mut is_there = false;
    for row in rows {
        match row.get::<_, i32>(0) {
            0 => {
                loaded.head = head(row, 1)?;
                is_there = true;
            }
            1 => loaded.history.snapshot = Some(stored_body(row, 1, 7)),
            2 => loaded.history.entries.push(stored_body(row, 1, 7)),
            3 => loaded.records.push(RecordRow {
                task: TaskId::from_bytes(row.get::<_, Id>(6).0),
                key: text(row, 8)?,
                body: row.get(7),
            }),
            _ => loaded.interrupts.push(loaded_interrupt(row, thread)?),
        }
    }
    // A union does not guarantee the order of its parts.
    loaded.history.entries.sort_by_key(|entry| entry.seq);
    Ok(is_there.then_some(loaded))
}

/// Columns: part, five numbers, an id, a body, two more. Parameters: tenant, name, the thread's number.
pub(crate) const LOAD: &str = "
    WITH head AS MATERIALIZED (
        SELECT epoch, seq, status, recoveries, answers FROM thread
        WHERE tenant = $1 AND name = $2 AND id = $3),
    snap AS MATERIALIZED (
        SELECT seq, body FROM @snapshot WHERE thread = $3 ORDER BY seq DESC LIMIT 1)
    SELECT 0, epoch, seq, status::bigint, recoveries, answers, NULL::uuid, NULL::bytea, NULL::bytea, NULL::bytea
        FROM head
    UNION ALL SELECT 1, seq, 0, 0, 0, 0, NULL, body, NULL, NULL FROM snap
    UNION ALL SELECT 2, seq, 0, 0, 0, 0, NULL, body, NULL, NULL FROM @log
        WHERE thread = $3 AND seq > coalesce((SELECT seq FROM snap), 0)
    UNION ALL (SELECT 3, 0, 0, 0, 0, 0, task, body, key, NULL FROM @record
        WHERE thread = $3 ORDER BY task, key)
    UNION ALL (SELECT 4, seq, asked_at, answered_at, closed, 0, id, body, answer, answered_by FROM @interrupt
        WHERE thread = $3 AND closed IS NULL ORDER BY id)";

fn loaded_interrupt(row: &Row, thread: &ThreadId) -> Result<InterruptRow, Fault> {
    let answered_at: Option<i64> = row.get(3);
    Ok(InterruptRow {
        thread: thread.clone(),
        id: InterruptId::from_bytes(row.get::<_, Id>(6).0),
        seq: Seq(count(row, 1)),
        asked_at: Timestamp(row.get(2)),
        body: row.get(7),
        answer: answered_at.map(|_| answer_of(row.get(8))),
        answered_by: optional_text(row, 9)?,
        answered_at: answered_at.map(Timestamp),
        closed: row
            .get::<_, Option<i64>>(4)
            .map(|seq| Seq(seq.unsigned_abs())),
    })
}

/// Reads the head of a thread, and the records of one task.
pub(crate) async fn glance(
    places: &Places,
    thread: &ThreadId,
    task: Option<TaskId>,
) -> Result<Option<Glance>, Fault> {
    let Some(place) = places.find(thread).await? else {
        return Ok(None);
    };
    let glance = glance_from(places, place, thread, task).await?;
    if glance.is_some() {
        return Ok(glance);
    }
    // The cached place is wrong; look it up again.
    places.forget(thread);
    match places.find(thread).await? {
        Some(place) => glance_from(places, place, thread, task).await,
        None => Ok(None),
    }
}

async fn glance_from(
    places: &Places,
    place: Place,
    thread: &ThreadId,
    task: Option<TaskId>,
) -> Result<Option<Glance>, Fault> {
    let wanted = task.map(|task| Id(task.to_bytes()));
    let (tenant, name) = (thread.tenant(), thread.name());
    let params: Params<'_> = &[&tenant, &name, &place.id, &wanted];
    let rows = places
        .pool
        .read_by_key(&place.statement(GLANCE, params))
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let mut records = Vec::new();
    for row in &rows {
        if let (Some(task), Some(body)) = (task, row.get(5)) {
            let key = text(row, 4)?;
            records.push(RecordRow { task, key, body });
        }
    }
    Ok(Some(Glance {
        epoch: Epoch(count(row, 0)),
        status: status(row.get(1))?,
        cancel: row.get(2),
        unseen: row.get(3),
        lease: row.get::<_, Option<i64>>(6).map(Timestamp),
        records,
    }))
}

const GLANCE: &str = "
    SELECT t.epoch, t.status::int8, t.cancel, t.answers > t.seen, r.key, r.body,
        CASE WHEN t.status = 1 THEN t.lease END
    FROM thread t
    LEFT JOIN @record r ON r.thread = $3 AND r.task = $4
    WHERE t.tenant = $1 AND t.name = $2 AND t.id = $3 ORDER BY r.key";

/// Reads the history up to an entry.
pub(crate) async fn load_at(
    places: &Places,
    thread: &ThreadId,
    seq: Seq,
) -> Result<History, Fault> {
    let place = places.find(thread).await?;
    let place = place.ok_or_else(|| no_thread(thread))?;
    let (tenant, name, seq_number) = (thread.tenant(), thread.name(), number(seq.0));
    let params: Params<'_> = &[&tenant, &name, &place.id, &seq_number];
    let rows = places.pool.read(&place.address(LOAD_AT), params).await?;
    let mut history = History::default();
    let mut is_living = false;
    for row in &rows {
        match row.get::<_, i32>(0) {
            0 => is_living = true,
            1 => history.snapshot = Some(stored_body(row, 1, 2)),
            _ => history.entries.push(stored_body(row, 1, 2)),
        }
    }
    if !is_living {
        places.forget(thread);
        return Err(no_thread(thread).into());
    }
    history.entries.sort_by_key(|entry| entry.seq);
    // The entry at the snapshot is read too, to check that it exists.
    let after = history.snapshot.as_ref().map(|snapshot| snapshot.seq);
    let is_there = history.entries.last().is_some_and(|entry| entry.seq == seq);
    history.entries.retain(|entry| Some(entry.seq) != after);
    if !is_there {
        return Err(CheckpointError::NoCheckpoint {
            thread: thread.clone(),
            seq,
        }
        .into());
    }
    Ok(history)
}

const LOAD_AT: &str = "
    WITH head AS MATERIALIZED (
        SELECT FROM thread WHERE tenant = $1 AND name = $2 AND id = $3 AND status <> 6),
    snap AS MATERIALIZED (
        SELECT seq, body FROM @snapshot WHERE thread = $3 AND seq <= $4
        ORDER BY seq DESC LIMIT 1)
    SELECT 0, 0::bigint, NULL::bytea FROM head
    UNION ALL SELECT 1, seq, body FROM snap
    UNION ALL SELECT 2, seq, body FROM @log
        WHERE thread = $3 AND seq >= coalesce((SELECT seq FROM snap), 0)
          AND seq <= $4";

/// Reads entries after a sequence number; empty if the thread does not exist.
pub(crate) async fn entries(
    places: &Places,
    thread: &ThreadId,
    after: Seq,
    limit: u32,
) -> Result<Vec<StoredBody>, Fault> {
    let Some(place) = places.find(thread).await? else {
        return Ok(Vec::new());
    };
    let sql = "SELECT seq, body FROM @log WHERE thread = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let params: Params<'_> = &[&place.id, &number(after.0), &i64::from(limit)];
    let rows = places
        .pool
        .read_by_key(&place.statement(sql, params))
        .await?;
    Ok(rows.iter().map(|row| stored_body(row, 0, 1)).collect())
}

/// Reads an interrupt from eight columns: id, seq, asked_at, body, answer, answered_by, answered_at, closed.
pub(crate) fn interrupt(row: &Row, thread: ThreadId) -> Result<InterruptRow, Fault> {
    let answered_at: Option<i64> = row.get(6);
    Ok(InterruptRow {
        thread,
        id: InterruptId::from_bytes(row.get::<_, Id>(0).0),
        seq: Seq(count(row, 1)),
        asked_at: Timestamp(row.get(2)),
        body: row.get(3),
        answer: answered_at.map(|_| answer_of(row.get(4))),
        answered_by: optional_text(row, 5)?,
        answered_at: answered_at.map(Timestamp),
        closed: row
            .get::<_, Option<i64>>(7)
            .map(|seq| Seq(seq.unsigned_abs())),
    })
}

/// Decodes the answer of an interrupt that has one; null means that the deadline passed.
pub(crate) fn answer_of(column: Option<Vec<u8>>) -> AnswerBody {
    column.map_or(AnswerBody::Expired, |bytes| {
        AnswerBody::Value(Value::from_bytes(bytes))
    })
}

/// Reads the head from five columns: epoch, sequence number, status, recoveries, answers.
pub(crate) fn head(row: &Row, first: usize) -> Result<Head, Fault> {
    let number: i64 = row.get(first + 2);
    Ok(Head {
        epoch: Epoch(count(row, first)),
        seq: Seq(count(row, first + 1)),
        status: status(number)?,
        recoveries: u32::try_from(row.get::<_, i64>(first + 3)).unwrap_or(u32::MAX),
        answers: count(row, first + 4),
    })
}

pub(crate) fn status(number: i64) -> Result<Status, PostgresError> {
    let status = u8::try_from(number).ok().and_then(Status::from_number);
    status.ok_or(PostgresError::Unknown {
        what: "status",
        number,
    })
}

pub(crate) fn stored_body(row: &Row, seq: usize, body: usize) -> StoredBody {
    StoredBody {
        seq: Seq(count(row, seq)),
        body: row.get(body),
    }
}

/// Reads a text that is stored as bytes.
pub(crate) fn text(row: &Row, column: usize) -> Result<String, PostgresError> {
    String::from_utf8(row.get(column)).map_err(|_| PostgresError::NotText)
}

fn optional_text(row: &Row, column: usize) -> Result<String, PostgresError> {
    let bytes: Option<Vec<u8>> = row.get(column);
    String::from_utf8(bytes.unwrap_or_default()).map_err(|_| PostgresError::NotText)
}

pub(crate) fn count(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).unsigned_abs()
}

/// Converts a count into PostgreSQL's integer type. Ours never come near the limit.
pub(crate) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn no_thread(thread: &ThreadId) -> CheckpointError {
    CheckpointError::NoThread {
        thread: thread.clone(),
    }
}
