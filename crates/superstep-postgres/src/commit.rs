//! Commits: one statement each, whatever they carry.
//!
//! # Where a thread stands
//!
//! A step inside a run adds its entry to the log and leaves the thread's row as it is: a row that is not written is
//! nothing to wait for. So the row's sequence number may be behind, and a thread stands at its newest entry (the view
//! `thread_head`). Everything else in the row is as it should be: a step that would change it, and every commit that
//! changes the status, asks or closes questions or brings a line, is not of this kind and writes the row, with the
//! sequence. So only a running thread can be ahead of its row.
//!
//! # Why one statement under READ COMMITTED is enough
//!
//! The statement first changes the thread's row, or locks it, and only where it has the expected epoch and the thread
//! stands where it is expected; every other part writes only if that gave a row. If somebody else has the row,
//! PostgreSQL waits, and compares again with the row as it is then.
//!
//! All else is seen as it was when the statement began, perhaps before the wait. Who can have come between?
//!
//! - *A commit that wrote the row*, a deletion, an import: then epoch or sequence are others now, and nothing happens. A
//!   pair of them never comes back.
//! - *A step of the owner*, which wrote only the log. A step holds the row for key share until it is durable; a claim
//!   and a deletion take it for update, which is the one lock that conflicts. So a step that began before a claim is
//!   durable before the claim goes on, and one that comes later waits, compares again, and finds another epoch. What
//!   the claim had waited for is not in its old view of the log, though. If it has an entry of its own, that is at the
//!   step's place, and the log's key refuses it. If it has none, it asks at its end whether there is an entry beyond:
//!   the function `refuse_beyond` looks with fresh eyes, and nobody can add one any more. Either way it is rolled back as
//!   a whole. Two commits of one owner for the same place (one is tried again while the server still has the first) meet
//!   at the same key.
//! - *Answers, and records of the former owner*, which leave all of this alone. The number of answers is in the row
//!   itself. What else is told of them ([`Saved::unseen`], [`Saved::records`]) is read by a second statement, sent together
//!   with the first, that begins after the commit: from then on the former owner's records are refused, and an
//!   answer it finds beyond those counted is one more that the owner has seen.
//!
//! Entries must stay for their key to refuse others, so pruning writes the row too, as a claim does (`admin.rs`).
//!
//! An answer writes the row and questions. Commits that write questions write the row first as well, so the two never
//! wait for each other crosswise; a step writes neither, and does not wait for answers.

mod statement;

use superstep_core::checkpoint::{Commit, RecordRow, Saved, Status, UnseenAnswers};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, InterruptId, TaskId, ThreadId};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use self::statement::{Kind, Values, statement};
use crate::fault::Fault;
use crate::id::Id;
use crate::owner::REFUSED;
use crate::place::{Place, Places};
use crate::pool::Params;
use crate::read::{self, answer_of, count, number, text};

/// Applies a commit, or finds that it was applied before.
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
    // The quick form asks for more than the fence does; the status was not what its owner believed.
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

/// Makes the thread, and remembers where it lies. Nobody can have answered it, and there is no record of it.
async fn make(places: &Places, commit: &Commit) -> Result<Option<Saved>, Fault> {
    let values = Values::of(commit, Kind::Make, 0);
    let (sql, params) = statement(&values, commit, Kind::Make);
    let sql = Place::unnamed(0).address(&sql) + ", " + places.columns() + " FROM head";
    let rows = places.pool.write(&sql, &params).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    places.learn(&commit.thread, row, 2);
    Ok(Some(Saved::default()))
}

/// Sends the statement, with the question about records or answers behind it if the commit is one that is told.
async fn apply(
    places: &Places,
    place: Place,
    commit: &Commit,
    kind: Kind,
) -> Result<Option<Saved>, Fault> {
    let values = Values::of(commit, kind, place.id);
    let (sql, params) = statement(&values, commit, kind);
    let sql = place.address(&sql) + " FROM head";
    let sent = match (kind, commit.head.status) {
        (Kind::Claim, _) => {
            let records = place.address(RECORDS);
            let read: (&str, Params<'_>) = (&records, &[&place.id]);
            places.pool.write_then_read((&sql, &params), read).await
        }
        (_, Status::Paused) => {
            let answers = place.address(ANSWERS);
            let read: (&str, Params<'_>) = (&answers, &[&values.tenant, &values.name, &place.id]);
            places.pool.write_then_read((&sql, &params), read).await
        }
        _ => {
            let written = places.pool.write(&sql, &params).await;
            written.map(|rows| (rows, Vec::new()))
        }
    };
    let (head, told) = match sent {
        Err(fault) if came_too_late(&fault) => return Ok(None),
        sent => sent?,
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

/// Whether somebody added an entry while the statement was under way.
fn came_too_late(fault: &Fault) -> bool {
    fault
        .sql_state()
        .is_some_and(|state| *state == SqlState::UNIQUE_VIOLATION || state.code() == REFUSED)
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

/// All records of a thread, by its number.
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

/// Where a thread stands that a commit did not find where it expected it.
struct Stand {
    head: superstep_core::checkpoint::Head,
    cancel: bool,
    /// Whether the entry at the commit's place is the commit's.
    has_entry: bool,
}

impl Stand {
    fn is_living(&self) -> bool {
        self.head.status != Status::Deleted
    }

    /// Whether a commit that is not expected now was applied before.
    ///
    /// The epoch alone would not do: two claims that race for the same epoch are different commits, and
    /// the loser must not take the winner's entry for its own.
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

async fn stand(places: &Places, place: Place, commit: &Commit) -> Result<Option<Stand>, Fault> {
    let sql = "SELECT t.epoch, greatest(t.seq, (SELECT max(seq) FROM @log WHERE thread = $3)),
            t.status::int8, t.recoveries, t.answers, t.cancel,
            coalesce(l.epoch = $5::int8 AND l.body = $6::bytea, false)
        FROM thread t LEFT JOIN @log l ON l.thread = $3 AND l.seq = $4::int8
        WHERE t.tenant = $1 AND t.name = $2 AND t.id = $3";
    let (tenant, name) = (commit.thread.tenant(), commit.thread.name());
    let (seq, epoch) = (number(commit.head.seq.0), number(commit.head.epoch.0));
    let params: Params<'_> = &[&tenant, &name, &place.id, &seq, &epoch, &commit.entry];
    let rows = places.pool.read(&place.address(sql), params).await?;
    let stand = |row: &Row| {
        Ok(Stand {
            head: read::head(row, 0)?,
            cancel: row.get(5),
            has_entry: row.get(6),
        })
    };
    rows.first().map(stand).transpose()
}

/// What the owner learns of a commit that was saved before: the same as then, as far as it still stands there.
async fn told_again(
    places: &Places,
    place: Place,
    commit: &Commit,
    stand: &Stand,
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
