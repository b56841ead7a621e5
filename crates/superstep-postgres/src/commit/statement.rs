//! Builds the single statement of a commit from the parts that the commit needs.
//!
//! `@log` in a text stands for the thread's partition of that table, see `place.rs`. The first part is `head`: it updates the
//! thread's row, or returns nothing if it must not. All other parts write only if `head` has a row.

use superstep_core::checkpoint::{AskedRow, Commit, RESULT_KEY, ReleasedRecords, Status};
use superstep_core::{Epoch, InterruptId, Seq};
use tokio_postgres::types::ToSql;

use crate::id::Id;
use crate::read::number;
use crate::terms::{self, ListRow};

/// How the thread's row changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The thread is new.
    Make,
    /// Inside a run: the status stays, and so does the row in the list unless the commit carries a listing.
    Step,
    /// The owner changes the status.
    Move,
    /// A process claims the thread.
    Claim,
}

impl Kind {
    pub(super) fn of(commit: &Commit) -> Self {
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

/// Values of the statement's parameters, in PostgreSQL's types.
pub(super) struct Values<'a> {
    pub(super) tenant: &'a str,
    pub(super) name: &'a str,
    epoch: i64,
    seq: i64,
    recoveries: i64,
    seen: i64,
    status: i16,
    expect_epoch: i64,
    expect_seq: i64,
    id: i64,
    lease: Option<i64>,
    at: i64,
    asked: InterruptColumns<'a>,
    closed: Vec<Id>,
    released: Vec<Id>,
    released_results: Vec<Id>,
    status_terms: Vec<i64>,
    line: Option<ListRow>,
}

#[derive(Default)]
struct InterruptColumns<'a> {
    ids: Vec<Id>,
    deadlines: Vec<Option<i64>>,
    closed: Vec<Option<i64>>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> Values<'a> {
    pub(super) fn of(commit: &'a Commit, kind: Kind, id: i64) -> Self {
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
            id,
            lease: commit.lease.map(|lease| lease.0),
            at: commit.at.0,
            asked: InterruptColumns::of(&commit.asked, &commit.closed, seq),
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
                .map(|listing| ListRow::of(tenant, listing)),
        }
    }
}

impl<'a> InterruptColumns<'a> {
    /// An interrupt that is opened and closed by the same commit is inserted as closed, because parts do not see each other's
    /// rows.
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

/// Returns the statement, up to the columns that its last part selects from `head`, and its parameters. A superstep has two
/// parts.
pub(super) fn statement<'a>(
    values: &'a Values<'a>,
    commit: &'a Commit,
    kind: Kind,
) -> (String, Vec<&'a (dyn ToSql + Sync)>) {
    let mut statement = Builder::begin(values, kind, Some(String::with_capacity(2048)));
    statement.parts(values, commit, kind);
    let mut sql = statement.sql.unwrap_or_default();
    sql.push_str("\nSELECT status, cancel");
    (sql, statement.params)
}

/// Returns the parameters of the statement without its text.
pub(super) fn params<'a>(
    values: &'a Values<'a>,
    commit: &'a Commit,
    kind: Kind,
) -> Vec<&'a (dyn ToSql + Sync)> {
    let mut statement = Builder::begin(values, kind, None);
    statement.parts(values, commit, kind);
    statement.params
}

/// Returns what the text of the statement depends on, as bits: its head, and which parts it has.
pub(super) fn parts(values: &Values<'_>, commit: &Commit, kind: Kind) -> u16 {
    let present = [
        commit.entry.is_some(),
        commit.snapshot.is_some(),
        !commit.asked.is_empty(),
        !values.closed.is_empty(),
        !values.released.is_empty(),
        !values.released_results.is_empty(),
        values.line.is_some(),
    ];
    let with = |parts: u16, is_present: bool| parts << 1 | u16::from(is_present);
    present.into_iter().fold(kind as u16, with)
}

/// Parts refer to the ten values of the head by number, and to each of their own by a `?`.
struct Builder<'a> {
    /// `None` if only the parameters are wanted.
    sql: Option<String>,
    params: Vec<&'a (dyn ToSql + Sync)>,
}

impl<'a> Builder<'a> {
    /// Adds the parts that the commit needs.
    fn parts(&mut self, values: &'a Values<'a>, commit: &'a Commit, kind: Kind) {
        if let Some(body) = &commit.entry {
            self.part(ENTRY, &[body]);
        }
        if let Some(body) = &commit.snapshot {
            self.part(SNAPSHOT, &[body]);
        }
        if !commit.asked.is_empty() {
            let asked = &values.asked;
            self.part(
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
        if kind != Kind::Make {
            self.clear(values);
        }
        if let Some(line) = &values.line {
            self.line(values, line, kind);
        } else if kind != Kind::Step {
            self.part(TOUCH, &[&values.at]);
        }
        if kind != Kind::Step {
            self.part(OF_STATUS, &[&values.status_terms]);
            if kind != Kind::Make {
                self.part(STATUS_GONE, &[]);
            }
            self.part(STATUS_CAME, &[]);
        }
    }

    fn begin(values: &'a Values<'a>, kind: Kind, mut sql: Option<String>) -> Self {
        if let Some(sql) = &mut sql {
            sql.push_str("WITH head AS (");
            sql.push_str(kind.head());
            sql.push(')');
        }
        let mut params: Vec<&'a (dyn ToSql + Sync)> = vec![
            &values.tenant,
            &values.name,
            &values.epoch,
            &values.seq,
            &values.recoveries,
            &values.seen,
            &values.status,
            &values.expect_epoch,
            &values.expect_seq,
            &values.id,
        ];
        if kind == Kind::Make {
            // The number of a new thread is not known yet.
            params.pop();
        }
        if matches!(kind, Kind::Make | Kind::Claim) {
            params.push(&values.lease);
        }
        Self { sql, params }
    }

    /// Closes interrupts and deletes records that the commit no longer needs. A new thread has none.
    fn clear(&mut self, values: &'a Values<'a>) {
        if !values.closed.is_empty() {
            self.part(CLOSED, &[&values.closed]);
        }
        if !values.released.is_empty() {
            self.part(RELEASED, &[&values.released]);
        }
        if !values.released_results.is_empty() {
            let results: [&'a (dyn ToSql + Sync); 2] =
                [&values.released_results, &RESULT_KEY_BYTES];
            self.part(RELEASED_RESULTS, &results);
        }
    }

    /// Writes the row in the list, and its terms. A new thread has no old row to compare with.
    fn line(&mut self, values: &'a Values<'a>, line: &'a ListRow, kind: Kind) {
        let old_line = match kind {
            Kind::Make => NO_OLD_LINE,
            _ => OLD_LINE,
        };
        self.part(old_line, &[]);
        let columns: [&'a (dyn ToSql + Sync); 6] = [
            &values.at,
            &line.graph,
            &line.metadata,
            &line.state,
            &line.metadata_terms,
            &line.state_terms,
        ];
        self.part(LINE, &columns);
        self.part(
            TERMS,
            &[&line.metadata, &line.metadata_terms, &line.state_terms],
        );
        if kind != Kind::Make {
            self.part(TERMS_GONE, &[]);
        }
        self.part(TERMS_CAME, &[]);
    }

    fn part(&mut self, part: &str, values: &[&'a (dyn ToSql + Sync)]) {
        let Some(sql) = &mut self.sql else {
            self.params.extend(values);
            return;
        };
        let mut values = values.iter();
        for piece in part.split_inclusive('?') {
            let Some(text) = piece.strip_suffix('?') else {
                sql.push_str(piece);
                continue;
            };
            self.params
                .push(*values.next().expect("a part has a value for each place"));
            sql.push_str(text);
            sql.push('$');
            sql.push_str(&self.params.len().to_string());
        }
    }
}

// 1 tenant, 2 name, 3 epoch, 4 seq, 5 recoveries, 6 seen, 7 status, 8 expected epoch, 9 expected seq, 10 the thread's number
// (absent in a statement that creates the thread). The statement of a claim has the lease after them: 10 if it creates the
// thread, else 11.

const MAKE: &str = "
    INSERT INTO thread (tenant, name, epoch, seq, recoveries, answers, seen, status, was, cancel, lease)
    SELECT $1, $2, $3::int8, $4::int8, $5::int8, 0, $6::int8, $7::int2, 6, false, $10::int8
    WHERE $8::int8 = 0 AND $9::int8 = 0
    ON CONFLICT DO NOTHING
    RETURNING id, was, status, cancel, tableoid";

/// Does not touch indexed columns, and the epoch cannot change.
const STEP: &str = "
    UPDATE @thread SET seq = $4::int8, recoveries = $5::int8, seen = $6::int8
    WHERE tenant = $1 AND name = $2 AND id = $10 AND epoch = $8::int8 AND seq = $9::int8 AND status = $7::int2
      AND $3::int8 = $8::int8
    RETURNING id, was, status, cancel";

macro_rules! move_head {
    ($lease:literal, $condition:literal) => {
        concat!(
            "
    UPDATE thread SET ",
            $lease,
            "epoch = $3::int8, seq = $4::int8, recoveries = $5::int8, seen = $6::int8, was = status,
        status = CASE WHEN $7::int2 = 2 AND answers > $6::int8 THEN 1::int2 ELSE $7::int2 END,
        cancel = cancel AND $3::int8 = $8::int8
    WHERE tenant = $1 AND name = $2 AND id = $10 AND epoch = $8::int8 AND seq = $9::int8 AND ",
            $condition,
            "
    RETURNING id, was, status, cancel"
        )
    };
}

const MOVE: &str = move_head!("", "status <> 6");
/// Only a claim can recreate a deleted thread.
const CLAIM: &str = move_head!(
    "lease = $11::int8, ",
    "name = (SELECT name FROM thread WHERE tenant = $1 AND name = $2 FOR UPDATE)"
);

const ENTRY: &str = ",
entry AS (
    INSERT INTO @log (thread, seq, epoch, body) SELECT id, $4::int8, $3::int8, ?::bytea FROM head)";

const SNAPSHOT: &str = ",
snap AS (
    INSERT INTO @snapshot (thread, seq, body) SELECT id, $4::int8, ?::bytea FROM head
    ON CONFLICT DO NOTHING)";

const ASKED: &str = ",
asked AS (
    INSERT INTO @interrupt (thread, tenant, name, seq, asked_at, id, deadline, closed, body)
    SELECT head.id, $1, $2, $4::int8, ?::int8, q.id, q.deadline, q.closed, q.body
    FROM head, unnest(?::uuid[], ?::int8[], ?::int8[], ?::bytea[]) AS q (id, deadline, closed, body)
    ON CONFLICT DO NOTHING)";

const CLOSED: &str = ",
closed AS (
    UPDATE @interrupt SET closed = $4::int8
    WHERE thread = $10 AND EXISTS (SELECT FROM head) AND id = ANY (?::uuid[]) AND closed IS NULL)";

const RELEASED: &str = ",
released AS (
    DELETE FROM @record WHERE thread = $10 AND EXISTS (SELECT FROM head) AND task = ANY (?::uuid[]))";

const RELEASED_RESULTS: &str = ",
released_results AS (
    DELETE FROM @record
    WHERE thread = $10 AND EXISTS (SELECT FROM head) AND task = ANY (?::uuid[]) AND key = ?::bytea)";

/// Locks the row, because an annotation may have changed it since the statement started: a lock returns the current version.
/// Waits for `head`, so that every writer locks the row of the thread first.
const OLD_LINE: &str = ",
old AS MATERIALIZED (
    SELECT metadata_terms, state_terms FROM @listing
    WHERE thread = $10 AND EXISTS (SELECT FROM head)
    FOR NO KEY UPDATE)";

const NO_OLD_LINE: &str = ",
old AS (SELECT '{}'::int8[] AS metadata_terms, '{}'::int8[] AS state_terms WHERE false)";

/// The thread's row in the list. Metadata that the commit does not carry is kept, with its terms. The join makes it wait for
/// `old`, which would not find a row that the same statement has already updated.
const LINE: &str = ",
line AS (
    INSERT INTO @listing AS l
        (thread, tenant, name, created, updated, graph, metadata, state, metadata_terms, state_terms)
    SELECT head.id, $1, $2, n.at, n.at, n.graph, n.metadata, n.state, n.metadata_terms, n.state_terms
    FROM head LEFT JOIN old ON true,
        (SELECT ?::int8, ?::bytea, ?::bytea, ?::bytea, ?::int8[], ?::int8[])
        AS n (at, graph, metadata, state, metadata_terms, state_terms)
    ON CONFLICT (thread) DO UPDATE SET updated = excluded.updated, graph = excluded.graph,
        state = excluded.state, state_terms = excluded.state_terms,
        metadata = coalesce(excluded.metadata, l.metadata),
        metadata_terms = CASE WHEN excluded.metadata IS NULL
            THEN l.metadata_terms ELSE excluded.metadata_terms END)";

/// Computes old and new terms, so that only differences are written.
const TERMS: &str = ",
now AS MATERIALIZED (
    SELECT CASE WHEN n.metadata IS NULL THEN coalesce(o.metadata_terms, n.metadata_terms)
        ELSE n.metadata_terms END || n.state_terms AS terms,
        coalesce(o.metadata_terms || o.state_terms, '{}') AS old_terms
    FROM (SELECT ?::bytea, ?::int8[], ?::int8[]) AS n (metadata, metadata_terms, state_terms)
        LEFT JOIN old o ON true)";

const TERMS_GONE: &str = ",
gone AS (
    DELETE FROM @term WHERE thread = $10 AND EXISTS (SELECT FROM head)
        AND term = ANY (ARRAY(SELECT unnest(old_terms) FROM now EXCEPT SELECT unnest(terms) FROM now)))";

const TERMS_CAME: &str = ",
came AS (
    INSERT INTO @term (term, thread)
    SELECT t, head.id FROM head, (SELECT unnest(terms) FROM now EXCEPT SELECT unnest(old_terms) FROM now) AS x (t)
    ON CONFLICT DO NOTHING)";

/// A change of status also updates the row in the list; a thread without a row gets one.
const TOUCH: &str = ",
touch AS (
    INSERT INTO @listing
        (thread, tenant, name, created, updated, graph, metadata_terms, state_terms)
    SELECT head.id, $1, $2, n.at, n.at, '', '{}', '{}' FROM head, (SELECT ?::int8) AS n (at)
    WHERE head.was <> head.status
    ON CONFLICT (thread) DO UPDATE SET updated = excluded.updated)";

const OF_STATUS: &str = ",
of_status AS MATERIALIZED (
    SELECT id, n.terms[was + 1] AS old_term, n.terms[status + 1] AS new_term
    FROM head, (SELECT ?::int8[]) AS n (terms) WHERE was <> status)";

const STATUS_GONE: &str = ",
status_gone AS (
    DELETE FROM @term WHERE thread = $10 AND term = (SELECT old_term FROM of_status))";

const STATUS_CAME: &str = ",
status_came AS (
    INSERT INTO @term (term, thread) SELECT new_term, id FROM of_status ON CONFLICT DO NOTHING)";

const RESULT_KEY_BYTES: &[u8] = RESULT_KEY.as_bytes();

#[cfg(test)]
mod tests;
