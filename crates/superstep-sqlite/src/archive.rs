//! Export and import of whole threads.
//!
//! Derived data (search terms, the indexes of open and overdue interrupts) is not exported: writing the rows creates it
//! again.

use rusqlite::{Connection, params};
use superstep_core::checkpoint::format::Extensions;
use superstep_core::checkpoint::{Archive, ArchivedEntry, ArchivedInterrupt, Head, StoredBody};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, Seq, ThreadId, Timestamp};

use crate::fault::Fault;
use crate::list;
use crate::read::{self, StoredThread, answer_column, number, stored_body};
use crate::row;
use crate::schema::{check_place, place, seq_at};

/// Reads everything that belongs to a thread.
pub(crate) fn export(connection: &Connection, thread: &ThreadId) -> Result<Archive, Fault> {
    let stand = read::living(connection, thread)?;
    Ok(archived(connection, thread, &stand)?.checked()?)
}

/// Creates a thread from an archive. Succeeds if the same archive was imported before.
pub(crate) fn import(
    connection: &Connection,
    thread: &ThreadId,
    archive: &Archive,
) -> Result<(), Fault> {
    archive.check_for(thread)?;
    let epoch = match read::stand(connection, thread)? {
        None => archive.head.epoch,
        Some(former) if !former.is_living() => archive.epoch_after(former.head.epoch),
        Some(stand) if archive.is_same_thread(&archived(connection, thread, &stand)?) => {
            return Ok(());
        }
        Some(_) => {
            let thread = thread.clone();
            return Err(CheckpointError::ThreadExists { thread }.into());
        }
    };
    let head = Head {
        epoch,
        ..archive.head
    };
    let stand = row::make(connection, thread, head, archive.cancel, archive.seen, None)?;
    check_place(stand.id, stand.head.seq)?;
    put_history(connection, archive, &stand)?;
    put_records(connection, archive, &stand)?;
    put_interrupts(connection, archive, &stand)?;
    list::restore(connection, &stand, &archive.listing)
}

fn archived(
    connection: &Connection,
    thread: &ThreadId,
    stand: &StoredThread,
) -> Result<Archive, Fault> {
    Ok(Archive {
        thread: thread.clone(),
        head: stand.head,
        seen: stand.seen,
        cancel: stand.cancel,
        listing: list::archived(connection, stand)?,
        entries: entries(connection, stand)?,
        snapshots: snapshots(connection, stand)?,
        records: read::records(connection, stand.id)?,
        interrupts: interrupts(connection, thread, stand)?,
        extensions: Extensions::default(),
    })
}

fn entries(connection: &Connection, stand: &StoredThread) -> rusqlite::Result<Vec<ArchivedEntry>> {
    connection
        .prepare_cached(
            "SELECT place, epoch, body FROM log WHERE place BETWEEN ?1 AND ?2 ORDER BY place",
        )?
        .query_map(places(stand), |row| {
            Ok(ArchivedEntry {
                seq: seq_at(row.get(0)?),
                epoch: Epoch(row.get::<_, i64>(1)?.unsigned_abs()),
                body: row.get(2)?,
            })
        })?
        .collect()
}

fn snapshots(connection: &Connection, stand: &StoredThread) -> rusqlite::Result<Vec<StoredBody>> {
    connection
        .prepare_cached(
            "SELECT place, body FROM snapshot WHERE place BETWEEN ?1 AND ?2 ORDER BY place",
        )?
        .query_map(places(stand), stored_body)?
        .collect()
}

fn places(stand: &StoredThread) -> [i64; 2] {
    [Seq(0), Seq(u64::MAX)].map(|seq| place(stand.id, seq))
}

fn interrupts(
    connection: &Connection,
    thread: &ThreadId,
    stand: &StoredThread,
) -> rusqlite::Result<Vec<ArchivedInterrupt>> {
    connection
        .prepare_cached(
            "SELECT id, seq, asked_at, body, answer, answered_by, answered_at, closed, deadline
             FROM interrupt WHERE thread = ?1 ORDER BY id",
        )?
        .query_map([stand.id], |row| {
            let deadline = row.get::<_, Option<i64>>(8)?.map(Timestamp);
            Ok(ArchivedInterrupt::new(
                read::interrupt(row, thread)?,
                deadline,
            ))
        })?
        .collect()
}

fn put_history(
    connection: &Connection,
    archive: &Archive,
    stand: &StoredThread,
) -> rusqlite::Result<()> {
    let mut insert =
        connection.prepare_cached("INSERT INTO log (place, epoch, body) VALUES (?1, ?2, ?3)")?;
    for ArchivedEntry { seq, epoch, body } in &archive.entries {
        insert.execute(params![place(stand.id, *seq), number(epoch.0), body])?;
    }
    let mut insert =
        connection.prepare_cached("INSERT INTO snapshot (place, body) VALUES (?1, ?2)")?;
    for StoredBody { seq, body } in &archive.snapshots {
        insert.execute(params![place(stand.id, *seq), body])?;
    }
    Ok(())
}

fn put_records(
    connection: &Connection,
    archive: &Archive,
    stand: &StoredThread,
) -> rusqlite::Result<()> {
    let mut insert = connection
        .prepare_cached("INSERT INTO record (thread, task, key, body) VALUES (?1, ?2, ?3, ?4)")?;
    for record in &archive.records {
        let task = record.task.to_bytes();
        insert.execute(params![stand.id, task, record.key, record.body])?;
    }
    Ok(())
}

fn put_interrupts(
    connection: &Connection,
    archive: &Archive,
    stand: &StoredThread,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO interrupt (tenant, thread, id, seq, asked_at, deadline, closed, answer,
             answered_by, answered_at, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for question in &archive.interrupts {
        let answer = question.answer.as_ref();
        insert.execute(params![
            stand.tenant,
            stand.id,
            question.id.to_bytes(),
            number(question.seq.0),
            question.asked_at.0,
            question.deadline.map(|deadline| deadline.0),
            question.closed.map(|seq| number(seq.0)),
            answer.map(|answer| answer_column(&answer.body)),
            answer.map(|answer| &answer.by).filter(|by| !by.is_empty()),
            answer.map(|answer| answer.at.0),
            question.body,
        ])?;
    }
    Ok(())
}
