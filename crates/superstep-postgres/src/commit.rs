//! Commits: one statement each, whatever they contain.
//!
//! # Why one statement under READ COMMITTED is enough
//!
//! The statement updates the thread's row first, and only if it is at the expected epoch and sequence number; every other
//! part depends on that row, so without it nothing is written. If another transaction holds the row, PostgreSQL waits, and
//! then compares again with the row's new version.
//!
//! The other parts see the tables as of the start of the statement, possibly before the wait. That is safe: the row was
//! compared twice, in that old snapshot and in its current version, and a pair of epoch and sequence number never repeats. So
//! no commit, deletion, copy or import happened in between, and what only they write (log, snapshots, which interrupts are open
//! and closed) is unchanged. Three things may have happened in between, because they leave epoch and sequence number alone:
//! answers, records of the former owner, and annotations. The number of answers is in the row itself. The rest of
//! what the owner learns about them ([`Saved::unseen`], [`Saved::records`]) is read by a second statement, sent together with
//! the first, that starts after the commit. From then on records of the former owner are refused, and an answer beyond those
//! counted is simply one more that the owner has seen.
//!
//! An annotation (`thread_row.rs`) changes the thread's row in the list, and its terms. So a commit that writes that row locks
//! it before it compares terms: the lock returns the current version of the row. A term that an annotation added since the
//! statement started is not visible to the part that deletes terms. A commit that replaces the metadata may leave such a term
//! behind, and a search then compares one row too many. A term that the row has is never missing.
//!
//! A claim locks the row for update, which waits for records that are being written (they hold it for key share, see
//! `records.rs`). A superstep's own update does not, so records and commits of the same owner never wait for each other.

mod statement;

use superstep_core::checkpoint::{Commit, RecordRow, Saved, Status, UnseenAnswers};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, InterruptId, TaskId, ThreadId};
use tokio_postgres::Row;

use self::statement::{Kind, Values, params, parts, statement};
use crate::fault::Fault;
use crate::id::Id;
use crate::place::{Place, Places};
use crate::pool::{KeyedStatement, Params, StatementKey, TextKey};
use crate::read::{self, answer_of, count, number, text};

/// Applies a commit, or detects that it was applied before.
pub(crate) async fn save(places: &Places, commit: &Commit) -> Result<Saved, Fault> {
    let kind = Kind::of(commit);
    if kind == Kind::Make {
        if let Some(saved) = make(places, commit).await? {
            return Ok(saved);
        }
    } else if let Some(place) = places.find(&commit.thread).await?
        && let Some(saved) = apply(places, place, commit, kind).await?
    {
        return Ok(saved);
    }
    places.forget(&commit.thread);
    let fenced = || fenced(&commit.thread, commit.expect.epoch);
    let place = places.find(&commit.thread).await?.ok_or_else(fenced)?;
    let stand = stand(places, place, commit).await?.ok_or_else(fenced)?;
    let is_expected = stand.is_living()
        && (stand.head.epoch, stand.head.seq) == (commit.expect.epoch, commit.expect.seq);
    // The fast form checks more than the fence does; the status was not what its owner assumed.
    if is_expected
        && kind == Kind::Step
        && let Some(saved) = apply(places, place, commit, Kind::Move).await?
    {
        return Ok(saved);
    }
    if !stand.was_saved(commit) {
        return Err(fenced());
    }
    told_again(places, place, commit, &stand).await
}

/// Creates the thread, and remembers its place. A new thread has no answers and no records.
async fn make(places: &Places, commit: &Commit) -> Result<Option<Saved>, Fault> {
    let kind = Kind::Make;
    let values = Values::of(commit, kind, 0);
    let params = params(&values, commit, kind);
    // The columns are the same for every connection of the pool, so the key need not say which they are.
    let made = KeyedStatement {
        key: StatementKey {
            text: TextKey::Commit(parts(&values, commit, kind)),
            partitions: None,
        },
        sql: || {
            let sql = Place::unnamed(0).address(&statement(&values, commit, kind).0);
            sql + ", " + places.columns() + " FROM head"
        },
        params: &params,
    };
    let rows = places.pool.write_by_key(&made).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    places.learn(&commit.thread, row, 2);
    Ok(Some(Saved::default()))
}

/// Sends the statement, followed by the query for records or answers if the commit returns them.
async fn apply(
    places: &Places,
    place: Place,
    commit: &Commit,
    kind: Kind,
) -> Result<Option<Saved>, Fault> {
    let values = Values::of(commit, kind, place.id);
    let params = params(&values, commit, kind);
    let write = KeyedStatement {
        key: StatementKey {
            text: TextKey::Commit(parts(&values, commit, kind)),
            partitions: place.partitions,
        },
        sql: || place.address(&statement(&values, commit, kind).0) + " FROM head",
        params: &params,
    };
    let (head, told) = match (kind, commit.head.status) {
        (Kind::Claim, _) => {
            let params: Params<'_> = &[&place.id];
            let read = place.statement(RECORDS, params);
            places.pool.write_then_read(&write, &read).await?
        }
        (_, Status::Paused) => {
            let params: Params<'_> = &[&values.tenant, &values.name, &place.id];
            let read = place.statement(ANSWERS, params);
            places.pool.write_then_read(&write, &read).await?
        }
        _ => (places.pool.write_by_key(&write).await?, Vec::new()),
    };
    let Some(head) = head.first() else {
        return Ok(None);
    };
    let is_held = commit.head.status == Status::Paused && head.get::<_, i16>(0) == 1;
    let unseen = match (is_held, kind) {
        (false, _) => None,
        (true, Kind::Claim) => Some(ask_unseen(places, place, &commit.thread).await?),
        (true, _) => Some(unseen(&told)),
    };
    let records = match kind {
        Kind::Claim => records(&told)?,
        _ => Vec::new(),
    };
    Ok(Some(Saved {
        cancel: head.get(1),
        unseen,
        records,
    }))
}

async fn ask_unseen(
    places: &Places,
    place: Place,
    thread: &ThreadId,
) -> Result<UnseenAnswers, Fault> {
    let params: Params<'_> = &[&thread.tenant(), &thread.name(), &place.id];
    let rows = places.pool.read(&place.address(ANSWERS), params).await?;
    Ok(unseen(&rows))
}

/// Selects all records of a thread, by its number.
pub(crate) const RECORDS: &str =
    "SELECT task, key, body FROM @record WHERE thread = $1 ORDER BY task, key";

const ANSWERS: &str = "SELECT t.answers, i.id, i.answer FROM thread t
     LEFT JOIN @interrupt i ON i.thread = $3 AND i.closed IS NULL AND i.answered_at IS NOT NULL
     WHERE t.tenant = $1 AND t.name = $2 AND t.id = $3 ORDER BY i.id";

pub(crate) fn records(rows: &[Row]) -> Result<Vec<RecordRow>, Fault> {
    let record = |row: &Row| {
        Ok(RecordRow {
            task: TaskId::from_bytes(row.get::<_, Id>(0).0),
            key: text(row, 1)?,
            body: row.get(2),
        })
    };
    rows.iter().map(record).collect()
}

fn unseen(rows: &[Row]) -> UnseenAnswers {
    let answered = |row: &Row| {
        let id: Option<Id> = row.get(1);
        Some((InterruptId::from_bytes(id?.0), answer_of(row.get(2))))
    };
    UnseenAnswers {
        answers: rows.first().map_or(0, |row| count(row, 0)),
        answered: rows.iter().filter_map(answered).collect(),
    }
}

/// Current head of a thread that was not where the commit expected it.
struct HeadConflict {
    head: superstep_core::checkpoint::Head,
    cancel: bool,
    /// Whether the log entry at the commit's sequence number is the commit's own.
    has_entry: bool,
}

impl HeadConflict {
    fn is_living(&self) -> bool {
        self.head.status != Status::Deleted
    }

    /// Returns whether a commit that does not match the head now was applied before.
    ///
    /// Comparing epochs is not enough: two claims that race for the same epoch are different commits, and the loser must not
    /// mistake the winner's entry for its own.
    fn was_saved(&self, commit: &Commit) -> bool {
        match commit.entry {
            Some(_) => self.has_entry,
            None => self.is_living() && self.stands_at(commit),
        }
    }

    fn stands_at(&self, commit: &Commit) -> bool {
        (self.head.epoch, self.head.seq) == (commit.head.epoch, commit.head.seq)
    }
}

async fn stand(
    places: &Places,
    place: Place,
    commit: &Commit,
) -> Result<Option<HeadConflict>, Fault> {
    let sql = "SELECT t.epoch, t.seq, t.status::int8, t.recoveries, t.answers, t.cancel,
            coalesce(l.epoch = $5::int8 AND l.body = $6::bytea, false)
        FROM thread t LEFT JOIN @log l ON l.thread = $3 AND l.seq = $4::int8
        WHERE t.tenant = $1 AND t.name = $2 AND t.id = $3";
    let (tenant, name) = (commit.thread.tenant(), commit.thread.name());
    let (seq, epoch) = (number(commit.head.seq.0), number(commit.head.epoch.0));
    let params: Params<'_> = &[&tenant, &name, &place.id, &seq, &epoch, &commit.entry];
    let rows = places.pool.read(&place.address(sql), params).await?;
    let stand = |row: &Row| {
        Ok(HeadConflict {
            head: read::head(row, 0)?,
            cancel: row.get(5),
            has_entry: row.get(6),
        })
    };
    rows.first().map(stand).transpose()
}

/// Returns what the owner learns from a commit that was applied before: the same as the first time, as far as the thread is
/// still there.
async fn told_again(
    places: &Places,
    place: Place,
    commit: &Commit,
    stand: &HeadConflict,
) -> Result<Saved, Fault> {
    let is_held = commit.head.status == Status::Paused
        && stand.stands_at(commit)
        && stand.head.status == Status::Running;
    let unseen = match is_held {
        true => Some(ask_unseen(places, place, &commit.thread).await?),
        false => None,
    };
    let records = match commit.is_claim() {
        true => {
            let sql = place.address(RECORDS);
            records(&places.pool.read(&sql, &[&place.id]).await?)?
        }
        false => Vec::new(),
    };
    Ok(Saved {
        cancel: stand.cancel,
        unseen,
        records,
    })
}

pub(crate) fn fenced(thread: &ThreadId, epoch: Epoch) -> Fault {
    CheckpointError::Fenced {
        thread: thread.clone(),
        epoch,
    }
    .into()
}
