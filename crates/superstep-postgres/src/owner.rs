//! Writes to threads that are not commits: answers and cancel requests of processes that do not own them, and leases of their
//! owners.
//!
//! An answer updates the thread's row first, as a commit does, so the two are serialized. An answer that is retried after a
//! broken connection waits there for the first attempt, if that is still running.

use std::collections::BTreeMap;

use superstep_core::checkpoint::{Answer, AnswerBody, InterruptRow, Loaded};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, InterruptId, ThreadId, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::fault::Fault;
use crate::id::Id;
use crate::place::{Place, Places};
use crate::pool::Pool;
use crate::read::{self, no_thread, number};

/// Stores all answers or none. Succeeds if the same answers were stored before.
pub(crate) async fn answer(
    places: &Places,
    thread: &ThreadId,
    answers: &[Answer],
) -> Result<(), Fault> {
    if answers.is_empty() {
        return Ok(());
    }
    let place = place_of(places, thread, answers).await?;
    let values = Values::of(thread, place, answers);
    let params = &values.params();
    let written = places
        .pool
        .write_by_key(&place.statement(ANSWER, params))
        .await;
    check(places, place, thread, answers, written).await
}

/// Stores answers, and loads the thread with a statement that is sent right behind and begins when the answers are committed.
pub(crate) async fn answer_and_load(
    places: &Places,
    thread: &ThreadId,
    answers: &[Answer],
) -> Result<Option<Loaded>, Fault> {
    if answers.is_empty() {
        return read::load(places, thread).await;
    }
    let place = place_of(places, thread, answers).await?;
    let values = Values::of(thread, place, answers);
    let (params, load_params) = (&values.params(), &values.load_params());
    let answer = place.statement(ANSWER, params);
    let load = place.statement(read::LOAD, load_params);
    let (written, found) = match places.pool.write_then_read(&answer, &load).await {
        Ok((written, found)) => (Ok(written), found),
        Err(fault) => (Err(fault), Vec::new()),
    };
    check(places, place, thread, answers, written).await?;
    match read::loaded(&found, thread)? {
        Some(loaded) => Ok(Some(loaded)),
        // The same answers were stored before, so the statement failed, and what was read with it is not here.
        None => read::load(places, thread).await,
    }
}

async fn place_of(places: &Places, thread: &ThreadId, answers: &[Answer]) -> Result<Place, Fault> {
    if let Some(interrupt) = Answer::named_twice(answers) {
        return Err(not_open(thread, interrupt));
    }
    let place = places.find(thread).await?;
    Ok(place.ok_or_else(|| no_thread(thread))?)
}

/// Says what became of answers, by the rows of their statement.
async fn check(
    places: &Places,
    place: Place,
    thread: &ThreadId,
    answers: &[Answer],
    written: Result<Vec<Row>, Fault>,
) -> Result<(), Fault> {
    match written {
        Ok(rows) if rows.is_empty() => {
            places.forget(thread);
            Err(no_thread(thread).into())
        }
        Ok(_) => Ok(()),
        Err(fault)
            if fault
                .sql_state()
                .is_some_and(|state| state.code() == REFUSED) =>
        {
            refused(&places.pool, place, thread, answers).await
        }
        Err(fault) => Err(fault),
    }
}

/// Values of the parameters of [`ANSWER`], in PostgreSQL's types.
struct Values<'a> {
    tenant: &'a str,
    name: &'a str,
    thread: i64,
    given: i64,
    ids: Vec<Id>,
    bodies: Vec<Option<&'a [u8]>>,
    by: Vec<Option<&'a [u8]>>,
    at: Vec<i64>,
}

impl<'a> Values<'a> {
    fn of(thread: &'a ThreadId, place: Place, answers: &'a [Answer]) -> Self {
        Self {
            tenant: thread.tenant(),
            name: thread.name(),
            thread: place.id,
            given: number(answers.len() as u64),
            ids: answers.iter().map(id).collect(),
            bodies: answers.iter().map(body).collect(),
            by: answers.iter().map(by).collect(),
            at: answers.iter().map(|answer| answer.at.0).collect(),
        }
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 8] {
        [
            &self.tenant,
            &self.name,
            &self.thread,
            &self.given,
            &self.ids,
            &self.bodies,
            &self.by,
            &self.at,
        ]
    }

    fn load_params(&self) -> [&(dyn ToSql + Sync); 3] {
        [&self.tenant, &self.name, &self.thread]
    }
}

fn body(answer: &Answer) -> Option<&[u8]> {
    match &answer.body {
        AnswerBody::Value(value) => Some(value.as_bytes()),
        AnswerBody::Expired => None,
    }
}

fn by(answer: &Answer) -> Option<&[u8]> {
    Some(answer.by.as_bytes()).filter(|by| !by.is_empty())
}

/// If one of the interrupts is not open, the statement fails at its end, and none of it is applied.
const ANSWER: &str = "
    WITH head AS (
        UPDATE @thread SET answers = answers + $4
        WHERE tenant = $1 AND name = $2 AND id = $3 AND status <> 6
        RETURNING 1),
    won AS (
        UPDATE @interrupt i SET answer = a.answer, answered_by = a.by, answered_at = a.at
        FROM unnest($5::uuid[], $6::bytea[], $7::bytea[], $8::int8[]) AS a (id, answer, by, at)
        WHERE i.thread = $3 AND EXISTS (SELECT FROM head) AND i.id = a.id
          AND i.answered_at IS NULL AND i.closed IS NULL
        RETURNING 1)
    SELECT CASE WHEN (SELECT count(*) FROM won) = $4 THEN 0 ELSE refuse() END FROM head";

/// Some interrupts are not open: returns a conflict, unless exactly these answers are already stored.
async fn refused(
    pool: &Pool,
    place: Place,
    thread: &ThreadId,
    answers: &[Answer],
) -> Result<(), Fault> {
    let sql = place.address(
        "SELECT id, seq, asked_at, body, answer, answered_by, answered_at, closed FROM @interrupt
         WHERE thread = $1 AND id = ANY ($2)",
    );
    let ids: Vec<Id> = answers.iter().map(id).collect();
    let rows = pool.read(&sql, &[&place.id, &ids]).await?;
    let mut stored = BTreeMap::new();
    for row in &rows {
        let row = read::interrupt(row, thread.clone())?;
        stored.insert(row.id, row);
    }
    let row_of = |answer: &Answer| stored.get(&answer.interrupt);
    if answers
        .iter()
        .all(|answer| row_of(answer).is_some_and(|row| row.holds(answer)))
    {
        return Ok(());
    }
    let is_open = |answer: &Answer| row_of(answer).is_some_and(InterruptRow::is_open);
    let closed = answers.iter().find(|answer| !is_open(answer));
    Err(not_open(thread, closed.unwrap_or(&answers[0]).interrupt))
}

fn id(answer: &Answer) -> Id {
    Id(answer.interrupt.to_bytes())
}

fn not_open(thread: &ThreadId, interrupt: InterruptId) -> Fault {
    CheckpointError::NotOpen {
        thread: thread.clone(),
        interrupt,
    }
    .into()
}

/// Sets the cancel flag, which the thread's owner reads.
pub(crate) async fn request_cancel(pool: &Pool, thread: &ThreadId) -> Result<(), Fault> {
    let sql = "UPDATE thread SET cancel = true WHERE tenant = $1 AND name = $2 AND status <> 6 RETURNING 1";
    let rows = pool.write(sql, &[&thread.tenant(), &thread.name()]).await?;
    match rows.is_empty() {
        true => Err(no_thread(thread).into()),
        false => Ok(()),
    }
}

/// Sets the leases of those threads that are running at their owner's epoch.
pub(crate) async fn renew(
    pool: &Pool,
    owned: &[(ThreadId, Epoch)],
    lease: Timestamp,
) -> Result<(), Fault> {
    // Rows are locked in one order, so that two of these calls never wait for each other.
    let sql = "WITH owned AS (
            SELECT t.tenant, t.name FROM thread t
            JOIN unnest($1::text[], $2::text[], $3::int8[]) AS o (tenant, name, epoch)
              ON t.tenant = o.tenant AND t.name = o.name AND t.epoch = o.epoch
            WHERE t.status = 1 ORDER BY t.tenant, t.name FOR NO KEY UPDATE OF t)
        UPDATE thread t SET lease = $4 FROM owned o
        WHERE t.tenant = o.tenant AND t.name = o.name";
    let tenants: Vec<&str> = owned.iter().map(|(thread, _)| thread.tenant()).collect();
    let names: Vec<&str> = owned.iter().map(|(thread, _)| thread.name()).collect();
    let epochs: Vec<i64> = owned.iter().map(|(_, epoch)| number(epoch.0)).collect();
    pool.write(sql, &[&tenants, &names, &epochs, &lease.0])
        .await?;
    Ok(())
}

const REFUSED: &str = "SS001";
