//! Operations on whole threads, and on the whole file.

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, params};
use superstep_core::checkpoint::format::{Body, Entry, Snapshot};
use superstep_core::checkpoint::{
    CheckpointResult, Head, NewThread, Status, StoredBody, ThreadAnnotation,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, Seq, ThreadId, Timestamp};

use crate::Sqlite;
use crate::fault::{Fault, SqliteError};
use crate::list;
use crate::read::{self, StoredThread, stored_body};
use crate::row;
use crate::schema::{self, place};
use crate::work::Setting;

impl Sqlite {
    /// Writes a consistent copy of the database into a new file, while the database is in use. Fails if the file exists.
    pub async fn backup(&self, to: &Path) -> CheckpointResult<()> {
        let to = to.to_owned();
        self.read_alone(move |connection| copy_file(connection, &to))
            .await
    }

    /// Runs SQLite's integrity check over the whole file. Returns the problems found; empty if there are none.
    pub async fn integrity_check(&self) -> CheckpointResult<Vec<String>> {
        self.read_alone(|connection| problems(connection, "PRAGMA integrity_check"))
            .await
    }

    /// Returns the size of the database in bytes, without its write-ahead log. First moves the log into the file as far as
    /// readers allow.
    pub async fn bytes(&self) -> CheckpointResult<u64> {
        self.write_alone(|connection| {
            checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
            let [pages, page_bytes] = ["page_count", "page_size"]
                .map(|name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)));
            Ok((pages? * page_bytes?).unsigned_abs())
        })
        .await
    }

    /// Moves the write-ahead log into the database file and truncates it.
    pub async fn checkpoint_wal(&self) -> CheckpointResult<()> {
        self.write_alone(|connection| {
            Ok(checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)")?)
        })
        .await
    }

    /// Rewrites the database without the space of what was deleted, so that no deleted byte is left in the file or in its write-ahead
    /// log. Needs as much free space on disk as the database takes. Fails if a reader of another process uses the log for longer than
    /// [`Options::busy_timeout`](crate::Options::busy_timeout).
    pub async fn compact(&self) -> CheckpointResult<()> {
        self.write_alone(|connection| {
            connection.execute_batch("VACUUM")?;
            let is_busy: bool =
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            match is_busy {
                true => Err(SqliteError::LogInUse.into()),
                false => Ok(()),
            }
        })
        .await
    }

    async fn write_alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> CheckpointResult<T> {
        Ok(self.writer.ask(None, Setting::Alone, work).await?)
    }

    async fn read_alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> CheckpointResult<T> {
        Ok(self.read_in(Setting::Alone, work).await?)
    }
}

/// Runs SQLite's integrity check if the file is small, and fails if it finds a problem. Skips larger files, because the check
/// takes a second per few hundred megabytes.
pub(crate) fn check_small(connection: &Connection) -> Result<(), Fault> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if number("page_count")? * number("page_size")? > CHECKED_BYTES_MAX {
        return Ok(());
    }
    let mut found = problems(connection, "PRAGMA integrity_check(1)")?;
    // A deletion takes the thread off the list, so this one is damaged; the list would leave it out.
    found.extend(problems(
        connection,
        "SELECT 'a thread on the list is marked as deleted'
         FROM line JOIN thread ON thread.id = line.thread WHERE thread.status = 6 LIMIT 1",
    )?);
    found.extend(list::lost_thread(connection)?);
    match found.pop() {
        None => Ok(()),
        Some(what) => Err(SqliteError::Unsound { what }.into()),
    }
}

fn problems(connection: &Connection, check: &str) -> Result<Vec<String>, Fault> {
    let mut check = connection.prepare(check)?;
    let lines: Vec<String> = check
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// Files up to this size are checked before the first list is read: some tens of milliseconds at most.
const CHECKED_BYTES_MAX: i64 = 8 * 1024 * 1024;

fn checkpoint(connection: &Connection, pragma: &str) -> rusqlite::Result<()> {
    connection.query_row(pragma, [], |_| Ok(()))
}

fn copy_file(connection: &Connection, to: &Path) -> Result<(), Fault> {
    schema::create_new(to)?;
    let mut target = Connection::open(to)?;
    let backup = Backup::new(connection, &mut target)?;
    // In a single step, because one step sees one consistent snapshot; it does not block the writer.
    while backup.step(-1)? != StepResult::Done {
        std::thread::yield_now();
    }
    Ok(())
}

/// Creates a thread on which nothing has happened, unless it exists. Returns whether it did not.
pub(crate) fn create(
    connection: &Connection,
    thread: &ThreadId,
    new: &NewThread,
) -> Result<bool, Fault> {
    let Some(stand) = make_idle(connection, thread, Seq(0))? else {
        return Ok(false);
    };
    schema::check_place(stand.id, Seq(0))?;
    list::create(connection, &stand, new)?;
    Ok(true)
}

/// Changes what the row of a thread says. Returns whether there is such a thread.
pub(crate) fn annotate(
    connection: &Connection,
    thread: &ThreadId,
    change: &ThreadAnnotation,
) -> Result<bool, Fault> {
    let stand = read::stand(connection, thread)?;
    let Some(stand) = stand.filter(StoredThread::is_living) else {
        return Ok(false);
    };
    list::annotate(connection, &stand, change)?;
    Ok(true)
}

/// Copies entries and snapshots up to an entry, and the row in the list of threads.
pub(crate) fn copy(
    connection: &Connection,
    from: &ThreadId,
    upto: Option<Seq>,
    to: &ThreadId,
) -> Result<(), Fault> {
    let source = read::living(connection, from)?;
    let upto = upto.unwrap_or(source.head.seq);
    read::check_entry(connection, from, &source, upto)?;
    let Some(target) = make_idle(connection, to, upto)? else {
        return Err(CheckpointError::ThreadExists { thread: to.clone() }.into());
    };
    schema::check_place(target.id, upto)?;

    let last = place(source.id, upto);
    let mut insert = connection.prepare_cached(
        // Epoch 0 never belongs to an owner, so no commit can mistake a copied entry for its own.
        "INSERT INTO log (place, epoch, body) VALUES (?1, 0, ?2)",
    )?;
    each_body(
        connection,
        LOG_BATCH,
        place(source.id, Seq(0)),
        last,
        |stored| {
            let body = reseal::<Entry>(stored, from, to)?;
            insert.execute(params![place(target.id, stored.seq), body])?;
            Ok(())
        },
    )?;
    let mut insert =
        connection.prepare_cached("INSERT INTO snapshot (place, body) VALUES (?1, ?2)")?;
    each_body(
        connection,
        SNAPSHOT_BATCH,
        place(source.id, Seq(0)),
        last,
        |stored| {
            let body = reseal::<Snapshot>(stored, from, to)?;
            insert.execute(params![place(target.id, stored.seq), body])?;
            Ok(())
        },
    )?;
    list::copy(connection, &source, &target)
}

/// Creates the row of an idle thread: a new one, or that of a deleted thread with the next epoch. Returns `None` if the thread
/// exists.
fn make_idle(
    connection: &Connection,
    thread: &ThreadId,
    seq: Seq,
) -> Result<Option<StoredThread>, Fault> {
    let former = read::stand(connection, thread)?;
    if former.is_some_and(|former| former.is_living()) {
        return Ok(None);
    }
    let epoch = former.map_or(Epoch(0), |former| former.head.epoch).next();
    let head = Head {
        epoch,
        seq,
        status: Status::Idle,
        recoveries: 0,
        answers: 0,
    };
    row::make(connection, thread, head, false, 0, None).map(Some)
}

/// Visits bodies in order, in small batches, because the visitor writes to the table they are read from.
fn each_body(
    connection: &Connection,
    batch: &str,
    after: i64,
    upto: i64,
    mut visit: impl FnMut(&StoredBody) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut select = connection.prepare_cached(batch)?;
    let mut after = after;
    loop {
        let rows = select.query_map([after, upto], |row| Ok((row.get(0)?, stored_body(row)?)))?;
        let batch: Vec<(i64, StoredBody)> = rows.collect::<rusqlite::Result<_>>()?;
        let Some(&(last, _)) = batch.last() else {
            return Ok(());
        };
        for (_, stored) in &batch {
            visit(stored)?;
        }
        after = last;
    }
}

const LOG_BATCH: &str =
    "SELECT place, body FROM log WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT 128";
const SNAPSHOT_BATCH: &str =
    "SELECT place, body FROM snapshot WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT 4";

fn reseal<B: Body>(stored: &StoredBody, from: &ThreadId, to: &ThreadId) -> Result<Vec<u8>, Fault> {
    Ok(B::unseal(&stored.body, from, stored.seq)?.seal(to, stored.seq))
}

/// Deletes a thread, if it exists.
pub(crate) fn delete(connection: &Connection, thread: &ThreadId) -> Result<(), Fault> {
    match read::stand(connection, thread)? {
        Some(stand) if stand.is_living() => erase(connection, &stand),
        _ => Ok(()),
    }
}

/// Deletes every row of a thread except the one that remembers its epoch.
fn erase(connection: &Connection, stand: &StoredThread) -> Result<(), Fault> {
    list::remove(connection, stand)?;
    let places = [place(stand.id, Seq(0)), place(stand.id, Seq(u64::MAX))];
    for sql in [
        "DELETE FROM log WHERE place BETWEEN ?1 AND ?2",
        "DELETE FROM snapshot WHERE place BETWEEN ?1 AND ?2",
    ] {
        connection.prepare_cached(sql)?.execute(places)?;
    }
    for sql in [
        "DELETE FROM record WHERE thread = ?1",
        "DELETE FROM interrupt WHERE thread = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([stand.id])?;
    }
    connection
        .prepare_cached(
            "UPDATE thread SET epoch = epoch + 1, seq = 0, status = ?2, cancel = 0, recoveries = 0, answers = 0, seen = 0
             WHERE id = ?1",
        )?
        .execute(params![stand.id, Status::Deleted as u8])?;
    Ok(())
}

/// Deletes the row that remembers a deleted thread. Nothing else of such a thread is left.
pub(crate) fn forget(connection: &Connection, thread: &ThreadId) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "DELETE FROM thread
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND name = ?2 AND status = ?3",
        )?
        .execute(params![
            thread.tenant(),
            thread.name(),
            Status::Deleted as u8
        ])?;
    Ok(())
}

/// Deletes everything before the newest snapshot from which every kept entry can be read.
pub(crate) fn prune(connection: &Connection, thread: &ThreadId, keep: u32) -> Result<u64, Fault> {
    let stand = read::living(connection, thread)?;
    let oldest_kept = Seq(stand.head.seq.0.saturating_sub(u64::from(keep.max(1)) - 1));
    let first = place(stand.id, Seq(0));
    let base: Option<i64> = connection
        .prepare_cached("SELECT max(place) FROM snapshot WHERE place BETWEEN ?1 AND ?2")?
        .query_row([first, place(stand.id, oldest_kept)], |row| row.get(0))?;
    let Some(base) = base else { return Ok(0) };
    connection
        .prepare_cached("DELETE FROM snapshot WHERE place >= ?1 AND place < ?2")?
        .execute([first, base])?;
    let dropped = connection
        .prepare_cached("DELETE FROM log WHERE place >= ?1 AND place < ?2")?
        .execute([first, base])?;
    Ok(dropped as u64)
}

/// Deletes threads that have not changed since `before` and are not running, oldest first.
pub(crate) fn expire(connection: &Connection, before: Timestamp, limit: u32) -> Result<u64, Fault> {
    let old = expired(connection, before, limit)?;
    for stand in &old {
        erase(connection, stand)?;
    }
    Ok(old.len() as u64)
}

fn expired(
    connection: &Connection,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<StoredThread>, Fault> {
    // Tenant by tenant, because the index is ordered by age only within one tenant.
    let mut select = connection.prepare_cached(
        "SELECT t.epoch, t.seq, t.status, t.recoveries, t.answers, t.id, t.tenant
         FROM tenant n CROSS JOIN line l ON l.tenant = n.id CROSS JOIN thread t ON t.id = l.thread
         WHERE l.updated < ?1 AND t.status <> ?2
         ORDER BY l.updated, n.name, t.name LIMIT ?3",
    )?;
    let mut rows = select.query(params![before.0, Status::Running as u8, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, tenant) = (row.get(5)?, row.get(6)?);
        found.push(StoredThread {
            id,
            tenant,
            head: read::head(row)?,
            cancel: false,
            seen: 0,
        });
    }
    Ok(found)
}
