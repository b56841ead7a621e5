//! Operations on whole threads.
//!
//! A deletion and a copy are transactions of several statements. A deletion locks the thread's row before it reads what to
//! delete, so it sees the last commit that it waited for.

use superstep_core::checkpoint::format::{Body, Entry, Snapshot};
use superstep_core::checkpoint::{Status, StoredBody};
use superstep_core::error::CheckpointError;
use superstep_core::{Seq, ThreadId, Timestamp};
use tokio_postgres::{IsolationLevel, Row, Transaction};

use crate::fault::Fault;
use crate::lifetime;
use crate::place::Places;
use crate::pool::{Params, Pool};
use crate::read::{no_thread, number, stored_body};
use crate::terms;

/// Copies entries and snapshots up to an entry, and the row in the list of threads.
pub(crate) async fn copy(
    pool: &Pool,
    from: &ThreadId,
    upto: Option<Seq>,
    to: &ThreadId,
) -> Result<(), Fault> {
    let mut alone = pool.alone().await?;
    // Repeatable read sees everything as of the beginning, without blocking writers.
    let transaction = alone.begin(IsolationLevel::RepeatableRead).await?;
    let (source, upto) = find_source(&transaction, from, upto).await?;
    let target = make_target(&transaction, to, upto).await?;
    let copy = Copy {
        transaction: &transaction,
        from,
        to,
        source,
        target,
        upto: number(upto.0),
    };
    // Epoch 0 never belongs to an owner, so no commit can mistake a copied entry for its own.
    copy.bodies::<Entry>(
        "SELECT seq, body FROM log WHERE thread = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT 128",
        "INSERT INTO log (thread, seq, epoch, body)
         SELECT $1, seq, 0, body FROM unnest($2::int8[], $3::bytea[]) AS n (seq, body)",
    )
    .await?;
    copy.bodies::<Snapshot>(
        "SELECT seq, body FROM snapshot WHERE thread = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT 4",
        "INSERT INTO snapshot (thread, seq, body)
         SELECT $1, seq, body FROM unnest($2::int8[], $3::bytea[]) AS n (seq, body)",
    )
    .await?;
    copy.line().await?;
    transaction.commit().await?;
    alone.give_back();
    Ok(())
}

/// Finds a thread that exists, and the entry up to which to copy it: 0 if nothing has happened on the thread.
async fn find_source(
    transaction: &Transaction<'_>,
    from: &ThreadId,
    upto: Option<Seq>,
) -> Result<(i64, Seq), Fault> {
    let sql = "SELECT id, seq FROM thread WHERE tenant = $1 AND name = $2 AND status <> 6";
    let found = transaction
        .query_opt(sql, &[&from.tenant(), &from.name()])
        .await?;
    let row = found.ok_or_else(|| no_thread(from))?;
    let (source, seq): (i64, i64) = (row.get(0), row.get(1));
    let upto = upto.unwrap_or(Seq(seq.unsigned_abs()));
    if seq == 0 && upto == Seq(0) {
        return Ok((source, upto));
    }
    let sql = "SELECT FROM log WHERE thread = $1 AND seq = $2";
    let entry = transaction
        .query_opt(sql, &[&source, &number(upto.0)])
        .await?;
    if entry.is_none() {
        return Err(CheckpointError::NoCheckpoint {
            thread: from.clone(),
            seq: upto,
        }
        .into());
    }
    Ok((source, upto))
}

/// Creates the row of a copy: a new one, or that of a deleted thread with the next epoch.
async fn make_target(
    transaction: &Transaction<'_>,
    to: &ThreadId,
    upto: Seq,
) -> Result<i64, Fault> {
    let sql = "INSERT INTO thread
             (tenant, name, epoch, seq, recoveries, answers, seen, status, was, cancel)
         VALUES ($1, $2, 1, $3, 0, 0, 0, 0, 6, false)
         ON CONFLICT (tenant, name) DO UPDATE
             SET epoch = thread.epoch + 1, seq = $3, status = 0, was = 6 WHERE thread.status = 6
         RETURNING id";
    let made = transaction
        .query_opt(sql, &[&to.tenant(), &to.name(), &number(upto.0)])
        .await?;
    let exists = || CheckpointError::ThreadExists { thread: to.clone() };
    Ok(made.ok_or_else(exists)?.get(0))
}

/// A copy in progress.
struct Copy<'a> {
    transaction: &'a Transaction<'a>,
    from: &'a ThreadId,
    to: &'a ThreadId,
    source: i64,
    target: i64,
    upto: i64,
}

impl Copy<'_> {
    /// Copies bodies in small batches, each resealed for its new thread.
    async fn bodies<B: Body>(&self, select: &str, insert: &str) -> Result<(), Fault> {
        let select = self.transaction.prepare(select).await?;
        let insert = self.transaction.prepare(insert).await?;
        let mut after = 0_i64;
        loop {
            let params: Params<'_> = &[&self.source, &after, &self.upto];
            let rows = self.transaction.query(&select, params).await?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            after = last.get(0);
            let (mut seqs, mut bodies) = (Vec::new(), Vec::new());
            for row in &rows {
                seqs.push(row.get::<_, i64>(0));
                bodies.push(self.reseal::<B>(&stored_body(row, 0, 1))?);
            }
            self.transaction
                .execute(&insert, &[&self.target, &seqs, &bodies])
                .await?;
        }
    }

    fn reseal<B: Body>(&self, stored: &StoredBody) -> Result<Vec<u8>, Fault> {
        Ok(B::unseal(&stored.body, self.from, stored.seq)?.seal(self.to, stored.seq))
    }

    /// Copies the row in the list, including its timestamps and its lifetime. Terms include the tenant, so they are computed
    /// again.
    async fn line(&self) -> Result<(), Fault> {
        let sql = "SELECT graph, metadata, state, created, updated, lifetime_ms, at_end::int8
             FROM listing WHERE thread = $1";
        let Some(row) = self.transaction.query_opt(sql, &[&self.source]).await? else {
            return Ok(());
        };
        let owner = terms::Owner {
            number: self.target,
            thread: self.to,
            status: Status::Idle,
            created: Timestamp(row.get(3)),
            updated: Timestamp(row.get(4)),
            lifetime: lifetime::read(&row, 5)?,
        };
        let line = terms::ListRow::stored(self.to.tenant(), &row)?;
        line.insert(self.transaction, &owner).await
    }
}

/// Deletes a thread, if it exists.
pub(crate) async fn delete(pool: &Pool, thread: &ThreadId) -> Result<(), Fault> {
    erase(pool, thread, None).await.map(drop)
}

/// The head of a thread when it was found to be expired, and when its row in the list last changed.
#[derive(Debug, Clone, Copy)]
struct Unchanged {
    epoch: i64,
    seq: i64,
    answers: i64,
    updated: i64,
}

impl Unchanged {
    /// Returns the locked row of the thread if the thread is as it was found. An annotation changes only the row in the list.
    /// A statement of its own reads that row: it starts after an annotation that the lock waited for.
    async fn filter(
        self,
        transaction: &Transaction<'_>,
        row: Option<Row>,
    ) -> Result<Option<Row>, Fault> {
        let Some(row) = row else {
            return Ok(None);
        };
        let (id, head): (i64, [i64; 3]) = (row.get(0), [row.get(1), row.get(2), row.get(3)]);
        let sql = "SELECT updated FROM listing WHERE thread = $1";
        let line = transaction.query_opt(sql, &[&id]).await?;
        let is_unchanged = head == [self.epoch, self.seq, self.answers]
            && line.is_some_and(|line| line.get::<_, i64>(0) == self.updated);
        Ok(Some(row).filter(|_| is_unchanged))
    }
}

/// Deletes every row of a thread except the one that remembers its epoch. Returns whether the thread existed and was
/// unchanged.
async fn erase(pool: &Pool, thread: &ThreadId, found: Option<Unchanged>) -> Result<bool, Fault> {
    let mut alone = pool.alone().await?;
    let transaction = alone.begin(IsolationLevel::ReadCommitted).await?;
    // `FOR UPDATE` also waits for records that are being written.
    let row = transaction
        .query_opt(
            "SELECT id, epoch, seq, answers, tenant FROM thread
             WHERE tenant = $1 AND name = $2 AND status <> 6 FOR UPDATE",
            &[&thread.tenant(), &thread.name()],
        )
        .await?;
    let row = match found {
        Some(found) => found.filter(&transaction, row).await?,
        None => row,
    };
    if let Some(row) = &row {
        let id: i64 = row.get(0);
        let every_status = terms::of_every_status(thread.tenant());
        transaction
            .execute(
                "DELETE FROM term USING listing l WHERE l.thread = $1 AND term.thread = $1
                     AND term.term = ANY (l.metadata_terms || l.state_terms || $2::int8[])",
                &[&id, &every_status],
            )
            .await?;
        for sql in [
            "DELETE FROM listing WHERE thread = $1",
            "DELETE FROM log WHERE thread = $1",
            "DELETE FROM snapshot WHERE thread = $1",
            "DELETE FROM record WHERE thread = $1",
            "DELETE FROM interrupt WHERE thread = $1",
        ] {
            transaction.execute(sql, &[&id]).await?;
        }
        transaction
            .execute(
                "UPDATE thread SET epoch = epoch + 1, seq = 0, status = 6, cancel = false,
                     recoveries = 0, answers = 0, seen = 0 WHERE tenant = $1 AND name = $2",
                &[&thread.tenant(), &thread.name()],
            )
            .await?;
    }
    transaction.commit().await?;
    alone.give_back();
    Ok(row.is_some())
}

/// Deletes everything before the newest snapshot from which every kept entry can be read.
///
/// A single statement is enough: commits only append after what it reads, and a second prune finds nothing left.
pub(crate) async fn prune(places: &Places, thread: &ThreadId, keep: u32) -> Result<u64, Fault> {
    let place = places.find(thread).await?;
    let place = place.ok_or_else(|| no_thread(thread))?;
    let sql = "
        WITH head AS MATERIALIZED (
            SELECT id, seq FROM thread
            WHERE tenant = $1 AND name = $2 AND id = $3 AND status <> 6),
        base AS MATERIALIZED (
            SELECT max(seq) AS seq FROM @snapshot
            WHERE thread = $3 AND seq <= (SELECT seq FROM head) - $4::int8),
        snapshots AS (
            DELETE FROM @snapshot
            WHERE thread = $3 AND seq < (SELECT seq FROM base)),
        entries AS (
            DELETE FROM @log WHERE thread = $3 AND seq < (SELECT seq FROM base)
            RETURNING 1)
        SELECT (SELECT count(*) FROM entries) FROM head";
    let older = i64::from(keep.max(1)) - 1;
    let params: Params<'_> = &[&thread.tenant(), &thread.name(), &place.id, &older];
    let rows = places.pool.write(&place.address(sql), params).await?;
    let row = rows.first().ok_or_else(|| no_thread(thread))?;
    Ok(row.get::<_, i64>(0).unsigned_abs())
}

/// Deletes threads that have not changed since `before` and are not running, oldest first.
pub(crate) async fn expire(pool: &Pool, before: Timestamp, limit: u32) -> Result<u64, Fault> {
    let rows = pool.read(EXPIRED, &[&before.0, &i64::from(limit)]).await?;
    let mut expired = 0;
    for row in &rows {
        let thread = ThreadId::of_tenant(row.get(0), row.get(1))?;
        let found = Unchanged {
            epoch: row.get(2),
            seq: row.get(3),
            answers: row.get(4),
            updated: row.get(5),
        };
        expired += u64::from(erase(pool, &thread, Some(found)).await?);
    }
    Ok(expired)
}

/// Tenant by tenant, because the index is ordered by age only within one tenant.
const EXPIRED: &str = "
    WITH RECURSIVE tenants AS (
        (SELECT tenant FROM listing ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT l.tenant FROM listing l WHERE l.tenant > n.tenant ORDER BY l.tenant LIMIT 1)
        FROM tenants n WHERE n.tenant IS NOT NULL)
    SELECT n.tenant, o.name, o.epoch, o.seq, o.answers, o.updated
    FROM tenants n CROSS JOIN LATERAL (
        SELECT l.name, l.updated, t.epoch, t.seq, t.answers
        FROM listing l JOIN thread t ON t.tenant = l.tenant AND t.name = l.name
        WHERE l.tenant = n.tenant AND l.updated < $1 AND t.status <> 1
        ORDER BY l.updated LIMIT $2) AS o
    WHERE n.tenant IS NOT NULL
    ORDER BY o.updated, n.tenant, o.name LIMIT $2";
