//! Commits: one statement each, whatever they carry.
//!
//! # Why one statement under READ COMMITTED is enough
//!
//! The statement changes the thread's row first, and only where it stands at the expected epoch and
//! sequence; every other part takes its thread from what that gave, so without the row nothing is
//! written. If somebody else has the row, PostgreSQL waits, and compares again with the row as it is then.
//!
//! The other parts see the tables as they were when the statement began, perhaps before the wait. That does no
//! harm: the row was compared twice, in that old view and as it is now, and a pair of epoch and sequence
//! never comes back. So no commit, deletion, copy or import came between, and what only they write (log,
//! snapshots, listing, terms, which questions are asked and closed) is as it was. Two things can have
//! come between, because they leave epoch and sequence alone: answers, and records of the former owner.
//! The number of answers is in the row itself. What else is told of them ([`Saved::unseen`],
//! [`Saved::records`]) is read by a second statement, sent together with the first, that begins after
//! the commit: from then on the former owner's records are refused, and an answer it finds beyond those
//! counted is one more that the owner has seen.
//!
//! A claim takes the row for update, which waits for records that are being written (they hold it for
//! key share, see `records.rs`); a superstep's own update does not, so records and commits of one owner
//! never wait for each other.

use superstep_core::checkpoint::{
    AskedRow, Commit, RESULT_KEY, RecordRow, ReleasedRecords, Saved, Status, UnseenAnswers,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, InterruptId, Seq, TaskId, ThreadId};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::fault::Fault;
use crate::id::Id;
use crate::pool::{Params, Pool};
use crate::read::{self, answer_of, count, number, text};
use crate::terms::{self, Line};

/// Applies a commit, or finds that it was applied before.
pub(crate) async fn save(pool: &Pool, commit: &Commit) -> Result<Saved, Fault> {
    let kind = Kind::of(commit);
    if let Some(saved) = apply(pool, commit, kind).await? {
        return Ok(saved);
    }
    let Some(stand) = stand(pool, commit).await? else {
        return Err(fenced(&commit.thread, commit.expect.epoch));
    };
    let is_expected = stand.is_living()
        && (stand.head.epoch, stand.head.seq) == (commit.expect.epoch, commit.expect.seq);
    // The quick form asks for more than the fence does; the status was not what its owner believed.
    if is_expected
        && kind == Kind::Step
        && let Some(saved) = apply(pool, commit, Kind::Move).await?
    {
        return Ok(saved);
    }
    if !stand.was_saved(commit) {
        return Err(fenced(&commit.thread, commit.expect.epoch));
    }
    told_again(pool, commit, &stand).await
}

/// How the thread's row is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The thread is new.
    Make,
    /// Inside a run: the status stays, and so does the line in the list unless the commit brings one.
    Step,
    /// The owner changes the status.
    Move,
    /// Somebody takes it over.
    Claim,
}

impl Kind {
    fn of(commit: &Commit) -> Self {
        let (from, to) = (commit.expect, commit.head);
        if commit.is_claim() {
            return match (from.epoch, from.seq) {
                (Epoch(0), Seq(0)) => Kind::Make,
                _ => Kind::Claim,
            };
        }
        match from.status == to.status && to.status == Status::Running {
            true => Kind::Step,
            false => Kind::Move,
        }
    }

    fn head(self) -> &'static str {
        match self {
            Kind::Make => MAKE,
            Kind::Step => STEP,
            Kind::Move => MOVE,
            Kind::Claim => CLAIM,
        }
    }
}

/// Sends the statement, with the question about records or answers behind it if the commit is one that is told.
async fn apply(pool: &Pool, commit: &Commit, kind: Kind) -> Result<Option<Saved>, Fault> {
    let values = Values::of(commit, kind);
    let (sql, params) = statement(&values, commit, kind);
    let address: Params<'_> = &[&values.tenant, &values.name];
    let (head, told) = match (kind, commit.head.status) {
        (Kind::Claim, _) => {
            pool.write_then_read((&sql, &params), (RECORDS, address))
                .await?
        }
        (_, Status::Paused) => {
            pool.write_then_read((&sql, &params), (ANSWERS, address))
                .await?
        }
        _ => (pool.write(&sql, &params).await?, Vec::new()),
    };
    let Some(head) = head.first() else {
        return Ok(None);
    };
    let is_held = commit.head.status == Status::Paused && head.get::<_, i16>(0) == 1;
    let unseen = match (is_held, kind) {
        (false, _) => None,
        (true, Kind::Claim) => Some(unseen(&pool.read(ANSWERS, address).await?)),
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

/// What the statement's parts are given, in the forms that PostgreSQL takes.
struct Values<'a> {
    tenant: &'a str,
    name: &'a str,
    epoch: i64,
    seq: i64,
    recoveries: i64,
    seen: i64,
    status: i16,
    expect_epoch: i64,
    expect_seq: i64,
    at: i64,
    asked: Asked<'a>,
    closed: Vec<Id>,
    released: Vec<Id>,
    released_results: Vec<Id>,
    status_terms: Vec<i64>,
    line: Option<Line>,
}

#[derive(Default)]
struct Asked<'a> {
    ids: Vec<Id>,
    deadlines: Vec<Option<i64>>,
    closed: Vec<Option<i64>>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> Values<'a> {
    fn of(commit: &'a Commit, kind: Kind) -> Self {
        let tenant = commit.thread.tenant();
        let tasks = |which| {
            let those = commit.released.iter().filter(move |one| one.which == which);
            those.map(|one| Id(one.task.to_bytes())).collect()
        };
        let seq = number(commit.head.seq.0);
        Self {
            tenant,
            name: commit.thread.name(),
            epoch: number(commit.head.epoch.0),
            seq,
            recoveries: i64::from(commit.head.recoveries),
            seen: number(commit.head.answers),
            status: commit.head.status as i16,
            expect_epoch: number(commit.expect.epoch.0),
            expect_seq: number(commit.expect.seq.0),
            at: commit.at.0,
            asked: Asked::of(&commit.asked, &commit.closed, seq),
            closed: commit.closed.iter().map(|id| Id(id.to_bytes())).collect(),
            released: tasks(ReleasedRecords::All),
            released_results: tasks(ReleasedRecords::Result),
            status_terms: match kind {
                Kind::Step => Vec::new(),
                _ => terms::of_every_status(tenant),
            },
            line: commit
                .listing
                .as_ref()
                .map(|listing| Line::of(tenant, listing)),
        }
    }
}

impl<'a> Asked<'a> {
    /// A question that is asked and closed at once is closed as it is written: parts do not see each other's rows.
    fn of(asked: &'a [AskedRow], closed: &[InterruptId], seq: i64) -> Self {
        let mut columns = Self::default();
        for question in asked {
            columns.ids.push(Id(question.id.to_bytes()));
            columns.deadlines.push(question.deadline.map(|at| at.0));
            let is_closed = closed.contains(&question.id);
            columns.closed.push(is_closed.then_some(seq));
            columns.bodies.push(&question.body);
        }
        columns
    }
}

/// The statement, made of the parts that the commit needs: a superstep is two of them.
fn statement<'a>(
    values: &'a Values<'a>,
    commit: &'a Commit,
    kind: Kind,
) -> (String, Vec<&'a (dyn ToSql + Sync)>) {
    let mut statement = Builder::begin(values, kind);
    if let Some(body) = &commit.entry {
        statement.part(ENTRY, &[body]);
    }
    if let Some(body) = &commit.snapshot {
        statement.part(SNAPSHOT, &[body]);
    }
    if !commit.asked.is_empty() {
        let asked = &values.asked;
        statement.part(
            ASKED,
            &[
                &values.at,
                &asked.ids,
                &asked.deadlines,
                &asked.closed,
                &asked.bodies,
            ],
        );
    }
    if !commit.closed.is_empty() {
        statement.part(CLOSED, &[&values.closed]);
    }
    if !values.released.is_empty() {
        statement.part(RELEASED, &[&values.released]);
    }
    if !values.released_results.is_empty() {
        statement.part(
            RELEASED_RESULTS,
            &[&values.released_results, &RESULT_KEY_BYTES],
        );
    }
    if let Some(line) = &values.line {
        statement.part(
            LINE,
            &[
                &values.at,
                &line.graph,
                &line.metadata,
                &line.state,
                &line.metadata_terms,
                &line.state_terms,
            ],
        );
        statement.part(
            TERMS,
            &[&line.metadata, &line.metadata_terms, &line.state_terms],
        );
    } else if kind != Kind::Step {
        statement.part(TOUCH, &[&values.at]);
    }
    if kind != Kind::Step {
        statement.part(STATUS_TERMS, &[&values.status_terms]);
    }
    statement.end()
}

/// Parts name the nine values of the head by number, and each of their own by a `?`.
struct Builder<'a> {
    sql: String,
    params: Vec<&'a (dyn ToSql + Sync)>,
}

impl<'a> Builder<'a> {
    fn begin(values: &'a Values<'a>, kind: Kind) -> Self {
        let mut sql = String::with_capacity(2048);
        sql.push_str("WITH head AS (");
        sql.push_str(kind.head());
        sql.push(')');
        let params: Vec<&'a (dyn ToSql + Sync)> = vec![
            &values.tenant,
            &values.name,
            &values.epoch,
            &values.seq,
            &values.recoveries,
            &values.seen,
            &values.status,
            &values.expect_epoch,
            &values.expect_seq,
        ];
        Self { sql, params }
    }

    fn part(&mut self, part: &str, values: &[&'a (dyn ToSql + Sync)]) {
        let mut values = values.iter();
        for piece in part.split_inclusive('?') {
            let Some(text) = piece.strip_suffix('?') else {
                self.sql.push_str(piece);
                continue;
            };
            self.params
                .push(*values.next().expect("a part has a value for each place"));
            self.sql.push_str(text);
            self.sql.push('$');
            self.sql.push_str(&self.params.len().to_string());
        }
    }

    fn end(mut self) -> (String, Vec<&'a (dyn ToSql + Sync)>) {
        self.sql.push_str("\nSELECT status, cancel FROM head");
        (self.sql, self.params)
    }
}

// 1 tenant, 2 name, 3 epoch, 4 seq, 5 recoveries, 6 seen, 7 status, 8 expected epoch, 9 expected seq.

const MAKE: &str = "
    INSERT INTO thread (tenant, name, epoch, seq, recoveries, answers, seen, status, was, cancel)
    SELECT $1, $2, $3::int8, $4::int8, $5::int8, 0, $6::int8, $7::int2, 6, false
    WHERE $8::int8 = 0 AND $9::int8 = 0
    ON CONFLICT DO NOTHING
    RETURNING id, was, status, cancel";

/// What has an index is not named, and the epoch cannot change.
const STEP: &str = "
    UPDATE thread SET seq = $4::int8, recoveries = $5::int8, seen = $6::int8
    WHERE tenant = $1 AND name = $2 AND epoch = $8::int8 AND seq = $9::int8 AND status = $7::int2
      AND $3::int8 = $8::int8
    RETURNING id, was, status, cancel";

macro_rules! move_head {
    ($condition:literal) => {
        concat!(
            "
    UPDATE thread SET epoch = $3::int8, seq = $4::int8, recoveries = $5::int8, seen = $6::int8, was = status,
        status = CASE WHEN $7::int2 = 2 AND answers > $6::int8 THEN 1::int2 ELSE $7::int2 END,
        cancel = cancel AND $3::int8 = $8::int8
    WHERE tenant = $1 AND name = $2 AND epoch = $8::int8 AND seq = $9::int8 AND ",
            $condition,
            "
    RETURNING id, was, status, cancel"
        )
    };
}

const MOVE: &str = move_head!("status <> 6");
/// A deleted thread is made again by a claim only.
const CLAIM: &str =
    move_head!("name = (SELECT name FROM thread WHERE tenant = $1 AND name = $2 FOR UPDATE)");

const ENTRY: &str = ",
entry AS (
    INSERT INTO log (thread, seq, epoch, body) SELECT id, $4::int8, $3::int8, ?::bytea FROM head)";

const SNAPSHOT: &str = ",
snap AS (
    INSERT INTO snapshot (thread, seq, body) SELECT id, $4::int8, ?::bytea FROM head
    ON CONFLICT DO NOTHING)";

const ASKED: &str = ",
asked AS (
    INSERT INTO interrupt (thread, tenant, name, seq, asked_at, id, deadline, closed, body)
    SELECT head.id, $1, $2, $4::int8, ?::int8, q.id, q.deadline, q.closed, q.body
    FROM head, unnest(?::uuid[], ?::int8[], ?::int8[], ?::bytea[]) AS q (id, deadline, closed, body)
    ON CONFLICT DO NOTHING)";

const CLOSED: &str = ",
closed AS (
    UPDATE interrupt SET closed = $4::int8
    WHERE thread = (SELECT id FROM head) AND id = ANY (?::uuid[]) AND closed IS NULL)";

const RELEASED: &str = ",
released AS (
    DELETE FROM record WHERE thread = (SELECT id FROM head) AND task = ANY (?::uuid[]))";

const RELEASED_RESULTS: &str = ",
released_results AS (
    DELETE FROM record
    WHERE thread = (SELECT id FROM head) AND task = ANY (?::uuid[]) AND key = ?::bytea)";

/// The thread's line; metadata that the commit does not bring stays, and its terms with it.
const LINE: &str = ",
old AS MATERIALIZED (
    SELECT metadata_terms, state_terms FROM listing WHERE thread = (SELECT id FROM head)),
line AS (
    INSERT INTO listing AS l
        (thread, tenant, name, created, updated, graph, metadata, state, metadata_terms, state_terms)
    SELECT head.id, $1, $2, n.at, n.at, n.graph, n.metadata, n.state, n.metadata_terms, n.state_terms
    FROM head, (SELECT ?::int8, ?::bytea, ?::bytea, ?::bytea, ?::int8[], ?::int8[])
        AS n (at, graph, metadata, state, metadata_terms, state_terms)
    ON CONFLICT (thread) DO UPDATE SET updated = excluded.updated, graph = excluded.graph,
        state = excluded.state, state_terms = excluded.state_terms,
        metadata = coalesce(excluded.metadata, l.metadata),
        metadata_terms = CASE WHEN excluded.metadata IS NULL
            THEN l.metadata_terms ELSE excluded.metadata_terms END)";

/// Only what differs is written.
const TERMS: &str = ",
now AS MATERIALIZED (
    SELECT CASE WHEN n.metadata IS NULL THEN coalesce(o.metadata_terms, n.metadata_terms)
        ELSE n.metadata_terms END || n.state_terms AS terms,
        coalesce(o.metadata_terms || o.state_terms, '{}') AS old_terms
    FROM (SELECT ?::bytea, ?::int8[], ?::int8[]) AS n (metadata, metadata_terms, state_terms)
        LEFT JOIN old o ON true),
gone AS (
    DELETE FROM term WHERE thread = (SELECT id FROM head)
        AND term = ANY (ARRAY(SELECT unnest(old_terms) FROM now EXCEPT SELECT unnest(terms) FROM now))),
came AS (
    INSERT INTO term (term, thread)
    SELECT t, head.id FROM head, (SELECT unnest(terms) FROM now EXCEPT SELECT unnest(old_terms) FROM now) AS x (t)
    ON CONFLICT DO NOTHING)";

/// A status that changes is a change of the line; a thread without one gets one.
const TOUCH: &str = ",
touch AS (
    INSERT INTO listing
        (thread, tenant, name, created, updated, graph, metadata_terms, state_terms)
    SELECT head.id, $1, $2, n.at, n.at, '', '{}', '{}' FROM head, (SELECT ?::int8) AS n (at)
    WHERE head.was <> head.status
    ON CONFLICT (thread) DO UPDATE SET updated = excluded.updated)";

const STATUS_TERMS: &str = ",
of_status AS MATERIALIZED (
    SELECT id, n.terms[was + 1] AS old_term, n.terms[status + 1] AS new_term
    FROM head, (SELECT ?::int8[]) AS n (terms) WHERE was <> status),
status_gone AS (
    DELETE FROM term WHERE thread = (SELECT id FROM of_status) AND term = (SELECT old_term FROM of_status)),
status_came AS (
    INSERT INTO term (term, thread) SELECT new_term, id FROM of_status ON CONFLICT DO NOTHING)";

/// All records of a thread, by its tenant and name.
pub(crate) const RECORDS: &str = "SELECT task, key, body FROM record
     WHERE thread = (SELECT id FROM thread WHERE tenant = $1 AND name = $2) ORDER BY task, key";

const ANSWERS: &str = "SELECT t.answers, i.id, i.answer FROM thread t
     LEFT JOIN interrupt i ON i.thread = t.id AND i.closed IS NULL AND i.answered_at IS NOT NULL
     WHERE t.tenant = $1 AND t.name = $2 ORDER BY i.id";

const RESULT_KEY_BYTES: &[u8] = RESULT_KEY.as_bytes();

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

async fn stand(pool: &Pool, commit: &Commit) -> Result<Option<Stand>, Fault> {
    let sql = "SELECT t.epoch, t.seq, t.status::int8, t.recoveries, t.answers, t.cancel,
            coalesce(l.epoch = $4::int8 AND l.body = $5::bytea, false)
        FROM thread t LEFT JOIN log l ON l.thread = t.id AND l.seq = $3::int8
        WHERE t.tenant = $1 AND t.name = $2";
    let (tenant, name) = (commit.thread.tenant(), commit.thread.name());
    let (seq, epoch) = (number(commit.head.seq.0), number(commit.head.epoch.0));
    let rows = pool
        .read(sql, &[&tenant, &name, &seq, &epoch, &commit.entry])
        .await?;
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
async fn told_again(pool: &Pool, commit: &Commit, stand: &Stand) -> Result<Saved, Fault> {
    let address: Params<'_> = &[&commit.thread.tenant(), &commit.thread.name()];
    let is_held = commit.head.status == Status::Paused
        && stand.stands_at(commit)
        && stand.head.status == Status::Running;
    let unseen = match is_held {
        true => Some(unseen(&pool.read(ANSWERS, address).await?)),
        false => None,
    };
    let records = match commit.is_claim() {
        true => records(&pool.read(RECORDS, address).await?)?,
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

#[cfg(test)]
mod tests;
