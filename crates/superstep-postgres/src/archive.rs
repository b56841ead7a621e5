//! Export and import of whole threads.
//!
//! An export reads everything in one consistent snapshot. An import is one transaction that first creates the thread's row: a
//! concurrent writer of the same name waits for that row, and then finds the whole thread or nothing. Terms and indexes are
//! created again by writing the rows.

use superstep_core::checkpoint::format::Extensions;
use superstep_core::checkpoint::{
    AnswerBody, Archive, ArchivedAnswer, ArchivedEntry, ArchivedInterrupt, ArchivedListing,
    Listing, Metadata, RecordRow, StoredBody,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, ThreadId, Timestamp, Value};
use tokio_postgres::{IsolationLevel, Row, Transaction};

use crate::commit;
use crate::fault::Fault;
use crate::id::Id;
use crate::place::Place;
use crate::pool::Pool;
use crate::read::{self, count, no_thread, number, stored_body, text};
use crate::terms;

/// Reads everything that belongs to a thread.
pub(crate) async fn export(pool: &Pool, thread: &ThreadId) -> Result<Archive, Fault> {
    let found = find(pool, thread).await?;
    Ok(found.ok_or_else(|| no_thread(thread))?.checked()?)
}

/// Creates a thread from an archive. Succeeds if the same archive was imported before.
pub(crate) async fn import(pool: &Pool, thread: &ThreadId, archive: &Archive) -> Result<(), Fault> {
    archive.check_for(thread)?;
    if make(pool, archive).await? {
        return Ok(());
    }
    match find(pool, thread).await? {
        Some(stored) if archive.is_same_thread(&stored) => Ok(()),
        _ => {
            let thread = thread.clone();
            Err(CheckpointError::ThreadExists { thread }.into())
        }
    }
}

/// Reads a thread in one consistent snapshot; `None` if it does not exist or is deleted.
async fn find(pool: &Pool, thread: &ThreadId) -> Result<Option<Archive>, Fault> {
    let mut alone = pool.alone().await?;
    let transaction = alone.begin(IsolationLevel::RepeatableRead).await?;
    let found = archived(&transaction, thread).await?;
    transaction.commit().await?;
    alone.give_back();
    Ok(found)
}

async fn archived(
    transaction: &Transaction<'_>,
    thread: &ThreadId,
) -> Result<Option<Archive>, Fault> {
    let sql = "SELECT epoch, seq, status::int8, recoveries, answers, seen, cancel, id FROM thread
         WHERE tenant = $1 AND name = $2 AND status <> 6";
    let (tenant, name) = (thread.tenant(), thread.name());
    let Some(row) = transaction.query_opt(sql, &[&tenant, &name]).await? else {
        return Ok(None);
    };
    let id: i64 = row.get(7);
    let records = transaction
        .query(&Place::unnamed(id).address(commit::RECORDS), &[&id])
        .await?;
    Ok(Some(Archive {
        thread: thread.clone(),
        head: read::head(&row, 0)?,
        seen: count(&row, 5),
        cancel: row.get(6),
        listing: listing(transaction, id).await?,
        entries: entries(transaction, id).await?,
        snapshots: snapshots(transaction, id).await?,
        records: commit::records(&records)?,
        interrupts: interrupts(transaction, thread, id).await?,
        extensions: Extensions::default(),
    }))
}

async fn listing(transaction: &Transaction<'_>, id: i64) -> Result<ArchivedListing, Fault> {
    let sql = "SELECT graph, metadata, state, created, updated FROM listing WHERE thread = $1";
    let Some(row) = transaction.query_opt(sql, &[&id]).await? else {
        return Ok(ArchivedListing::default());
    };
    let metadata: Option<&[u8]> = row.get(1);
    let state: Option<Vec<u8>> = row.get(2);
    Ok(ArchivedListing {
        graph: text(&row, 0)?,
        metadata: metadata.map_or(Ok(Metadata::new()), serde_json::from_slice)?,
        values: state.map(Value::from_bytes),
        created: Timestamp(row.get(3)),
        updated: Timestamp(row.get(4)),
    })
}

async fn entries(transaction: &Transaction<'_>, id: i64) -> Result<Vec<ArchivedEntry>, Fault> {
    let sql = "SELECT seq, epoch, body FROM log WHERE thread = $1 ORDER BY seq";
    let entry = |row: &Row| {
        let StoredBody { seq, body } = stored_body(row, 0, 2);
        let epoch = Epoch(count(row, 1));
        ArchivedEntry { seq, epoch, body }
    };
    let rows = transaction.query(sql, &[&id]).await?;
    Ok(rows.iter().map(entry).collect())
}

async fn snapshots(transaction: &Transaction<'_>, id: i64) -> Result<Vec<StoredBody>, Fault> {
    let sql = "SELECT seq, body FROM snapshot WHERE thread = $1 ORDER BY seq";
    let rows = transaction.query(sql, &[&id]).await?;
    Ok(rows.iter().map(|row| stored_body(row, 0, 1)).collect())
}

async fn interrupts(
    transaction: &Transaction<'_>,
    thread: &ThreadId,
    id: i64,
) -> Result<Vec<ArchivedInterrupt>, Fault> {
    let sql = "SELECT id, seq, asked_at, body, answer, answered_by, answered_at, closed, deadline
         FROM interrupt WHERE thread = $1 ORDER BY id";
    let question = |row: &Row| {
        let deadline = row.get::<_, Option<i64>>(8).map(Timestamp);
        let asked = read::interrupt(row, thread.clone())?;
        Ok(ArchivedInterrupt::new(asked, deadline))
    };
    let rows = transaction.query(sql, &[&id]).await?;
    rows.iter().map(question).collect()
}

/// Writes every row of a thread, unless one with its name exists. Returns whether it did.
async fn make(pool: &Pool, archive: &Archive) -> Result<bool, Fault> {
    let mut alone = pool.alone().await?;
    let transaction = alone.begin(IsolationLevel::ReadCommitted).await?;
    let made = make_head(&transaction, archive).await?;
    if let Some(target) = made {
        let import = Import {
            transaction: &transaction,
            archive,
            target,
        };
        import.history().await?;
        import.records().await?;
        import.interrupts().await?;
        import.line().await?;
    }
    transaction.commit().await?;
    alone.give_back();
    Ok(made.is_some())
}

/// Creates the thread's row: a new one, or that of a deleted thread. Its epoch is [`Archive::epoch_after`] the deleted one's.
async fn make_head(transaction: &Transaction<'_>, archive: &Archive) -> Result<Option<i64>, Fault> {
    let sql = "INSERT INTO thread
             (tenant, name, epoch, seq, recoveries, answers, seen, status, was, cancel)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 6, $9)
         ON CONFLICT (tenant, name) DO UPDATE SET epoch = greatest($3, thread.epoch + 1), seq = $4,
             recoveries = $5, answers = $6, seen = $7, status = $8, was = 6, cancel = $9, lease = NULL
         WHERE thread.status = 6
         RETURNING id";
    let (thread, head) = (&archive.thread, archive.head);
    let made = transaction
        .query_opt(
            sql,
            &[
                &thread.tenant(),
                &thread.name(),
                &number(head.epoch.0),
                &number(head.seq.0),
                &i64::from(head.recoveries),
                &number(head.answers),
                &number(archive.seen),
                &(head.status as i16),
                &archive.cancel,
            ],
        )
        .await?;
    Ok(made.map(|row| row.get(0)))
}

/// An import in progress. Sends rows in batches.
struct Import<'a> {
    transaction: &'a Transaction<'a>,
    archive: &'a Archive,
    target: i64,
}

impl Import<'_> {
    async fn history(&self) -> Result<(), Fault> {
        let sql = "INSERT INTO log (thread, seq, epoch, body)
             SELECT $1, n.* FROM unnest($2::int8[], $3::int8[], $4::bytea[]) AS n";
        let insert = self.transaction.prepare(sql).await?;
        for part in self.archive.entries.chunks(ROWS_AT_ONCE) {
            let seqs = column(part, |entry| number(entry.seq.0));
            let epochs = column(part, |entry| number(entry.epoch.0));
            let bodies = column(part, |entry| entry.body.as_slice());
            self.transaction
                .execute(&insert, &[&self.target, &seqs, &epochs, &bodies])
                .await?;
        }
        let sql = "INSERT INTO snapshot (thread, seq, body)
             SELECT $1, n.* FROM unnest($2::int8[], $3::bytea[]) AS n";
        let insert = self.transaction.prepare(sql).await?;
        for part in self.archive.snapshots.chunks(SNAPSHOTS_AT_ONCE) {
            let seqs = column(part, |snapshot| number(snapshot.seq.0));
            let bodies = column(part, |snapshot| snapshot.body.as_slice());
            self.transaction
                .execute(&insert, &[&self.target, &seqs, &bodies])
                .await?;
        }
        Ok(())
    }

    async fn records(&self) -> Result<(), Fault> {
        let sql = "INSERT INTO record (thread, task, key, body)
             SELECT $1, n.* FROM unnest($2::uuid[], $3::bytea[], $4::bytea[]) AS n";
        let insert = self.transaction.prepare(sql).await?;
        for part in self.archive.records.chunks(ROWS_AT_ONCE) {
            let tasks = column(part, |record: &RecordRow| Id(record.task.to_bytes()));
            let keys = column(part, |record| record.key.as_bytes());
            let bodies = column(part, |record| record.body.as_slice());
            self.transaction
                .execute(&insert, &[&self.target, &tasks, &keys, &bodies])
                .await?;
        }
        Ok(())
    }

    async fn interrupts(&self) -> Result<(), Fault> {
        let sql =
            "INSERT INTO interrupt (thread, tenant, name, id, seq, asked_at, deadline, closed,
                 answered_at, answer, answered_by, body)
             SELECT $1, $2, $3, n.* FROM unnest($4::uuid[], $5::int8[], $6::int8[], $7::int8[],
                 $8::int8[], $9::int8[], $10::bytea[], $11::bytea[], $12::bytea[]) AS n";
        let insert = self.transaction.prepare(sql).await?;
        let (tenant, name) = (self.archive.thread.tenant(), self.archive.thread.name());
        for part in self.archive.interrupts.chunks(ROWS_AT_ONCE) {
            self.transaction
                .execute(
                    &insert,
                    &[
                        &self.target,
                        &tenant,
                        &name,
                        &column(part, |asked| Id(asked.id.to_bytes())),
                        &column(part, |asked| number(asked.seq.0)),
                        &column(part, |asked| asked.asked_at.0),
                        &column(part, |asked| asked.deadline.map(|at| at.0)),
                        &column(part, |asked| asked.closed.map(|seq| number(seq.0))),
                        &column(part, |asked| {
                            asked.answer.as_ref().map(|answer| answer.at.0)
                        }),
                        &column(part, |asked| asked.answer.as_ref().and_then(answer_column)),
                        &column(part, |asked| asked.answer.as_ref().and_then(by_column)),
                        &column(part, |asked| asked.body.as_slice()),
                    ],
                )
                .await?;
        }
        Ok(())
    }

    async fn line(&self) -> Result<(), Fault> {
        let (thread, archived) = (&self.archive.thread, &self.archive.listing);
        let listing = Listing {
            graph: archived.graph.clone(),
            metadata: Some(archived.metadata.clone()),
            values: archived.values.clone(),
        };
        let owner = terms::Owner {
            number: self.target,
            thread,
            status: self.archive.head.status,
            created: archived.created,
            updated: archived.updated,
            // An archive has none: the store that imports a thread decides how long it keeps it.
            lifetime: None,
        };
        let line = terms::ListRow::of(thread.tenant(), &listing);
        line.insert(self.transaction, &owner).await
    }
}

/// Returns one column of some rows.
fn column<'a, R, T>(rows: &'a [R], value: impl FnMut(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

fn answer_column(answer: &ArchivedAnswer) -> Option<&[u8]> {
    match &answer.body {
        AnswerBody::Value(value) => Some(value.as_bytes()),
        AnswerBody::Expired => None,
    }
}

fn by_column(answer: &ArchivedAnswer) -> Option<&[u8]> {
    Some(answer.by.as_bytes()).filter(|by| !by.is_empty())
}

const ROWS_AT_ONCE: usize = 128;
const SNAPSHOTS_AT_ONCE: usize = 4;
