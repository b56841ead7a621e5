//! Records of tasks: one statement writes many of them if many arrive at once.
//!
//! A thousand tasks of one superstep write a thousand records of one thread. With a statement and a transaction for each, the
//! server would begin, lock and flush a thousand times. So there is one statement in flight per thread and epoch; records
//! that arrive meanwhile wait, and are sent together as the next one. A record that finds no statement in flight is sent at
//! once: there is no timer.
//!
//! # Who writes
//!
//! A task of ours, not one of the callers: a caller may be dropped, or hold its future without polling it while it waits for
//! something else, and every record behind it would wait too. The task starts with a record that finds no writer, and ends
//! when no record waits. If it is stopped before (its runtime shuts down), the waiting callers get an error and retry. A
//! record whose caller was dropped is written anyway.
//!
//! # What callers learn
//!
//! A batch is fenced as a whole, because all its records have the same epoch. If its connection breaks, its outcome is
//! unknown: each caller gets an error and retries. No record can spoil a batch for the others: names of steps are short, and
//! a large body is sent alone.
//!
//! # Why no record slips in behind a claim
//!
//! A claim returns all existing records to the new owner. So the statement locks the thread's row for key share and compares
//! the epoch under the lock; a claim and a deletion lock the row for update, the one lock mode that conflicts with key share.
//! (`FOR SHARE` would work too, but then records and the commit in flight would wait for each other. Without a lock, a record
//! whose statement started before the claim would get through.) The lock is a mark in the row, flushed with the records.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex};

use superstep_core::__private::lock;
use superstep_core::checkpoint::RecordWrite;
use superstep_core::{Epoch, ThreadId};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::commit::fenced;
use crate::fault::{Fault, PostgresError};
use crate::id::Id;
use crate::place::Places;
use crate::pool::Params;
use crate::read::{count, number};

/// Records waiting to be written to a database.
pub(crate) struct Records {
    desk: Arc<RecordQueue>,
    /// The writing tasks. They are aborted with the store, when no caller is left.
    writers: Mutex<JoinSet<()>>,
}

struct RecordQueue {
    places: Arc<Places>,
    /// Waiting records. A lane exists exactly as long as its writer, so it may be empty.
    lanes: Mutex<HashMap<Lane, VecDeque<QueuedRecord>>>,
}

/// Records that can share a statement.
type Lane = (ThreadId, Epoch);

/// A record, and the channel to its caller.
struct QueuedRecord {
    task: Id,
    key: String,
    body: Vec<u8>,
    answer: oneshot::Sender<Result<Vec<u8>, Fault>>,
}

impl Records {
    pub(crate) fn new(places: Arc<Places>) -> Self {
        let lanes = Mutex::default();
        Self {
            desk: Arc::new(RecordQueue { places, lanes }),
            writers: Mutex::default(),
        }
    }

    /// Stores a record unless there is one, and returns the stored one.
    pub(crate) async fn record(&self, record: &RecordWrite) -> Result<Vec<u8>, Fault> {
        let (answer, answered) = oneshot::channel();
        let asked = QueuedRecord {
            task: Id(record.task.to_bytes()),
            key: record.key.clone(),
            body: record.body.clone(),
            answer,
        };
        let lane = (record.thread.clone(), record.epoch);
        if let Some(writer) = self.desk.put(lane, asked) {
            self.start(writer);
        }
        answered.await.unwrap_or(Err(PostgresError::Unsent.into()))
    }

    fn start(&self, writer: Writer) {
        let mut writers = lock(&self.writers);
        // Finished tasks stay in the set until they are joined.
        while writers.try_join_next().is_some() {}
        writers.spawn(writer.write_all());
    }
}

impl RecordQueue {
    /// Enqueues a record. Returns a writer to start if its lane has none yet.
    fn put(self: &Arc<Self>, lane: Lane, asked: QueuedRecord) -> Option<Writer> {
        let mut lanes = lock(&self.lanes);
        if let Some(waiting) = lanes.get_mut(&lane) {
            waiting.push_back(asked);
            return None;
        }
        lanes.insert(lane.clone(), VecDeque::from([asked]));
        Some(Writer {
            desk: Arc::clone(self),
            lane,
            is_done: false,
        })
    }
}

/// Writes the records of one lane.
struct Writer {
    desk: Arc<RecordQueue>,
    lane: Lane,
    /// Whether its lane is closed. From then on, a lane with this key belongs to another writer.
    is_done: bool,
}

impl Writer {
    async fn write_all(mut self) {
        while let Some(mut batch) = self.next_batch() {
            let stored = self.write(&mut batch).await;
            self.tell(batch, stored);
        }
    }

    /// Takes the next batch. If there is none it closes the lane, under the same lock, so no request can wait in it forever.
    fn next_batch(&mut self) -> Option<Vec<QueuedRecord>> {
        let mut lanes = lock(&self.desk.lanes);
        let batch = lanes.get_mut(&self.lane).map(batch_of).unwrap_or_default();
        if batch.is_empty() {
            lanes.remove(&self.lane);
            self.is_done = true;
            return None;
        }
        Some(batch)
    }

    /// Stores the records that do not exist, and returns the stored body of each; `None` if the thread has another owner now.
    async fn write(&self, batch: &mut [QueuedRecord]) -> Result<Vec<Option<Vec<u8>>>, Fault> {
        let (places, (thread, epoch)) = (&self.desk.places, &self.lane);
        let Some(place) = places.find(thread).await? else {
            return Ok(vec![None; batch.len()]);
        };
        let (tenant, name, epoch) = (thread.tenant(), thread.name(), number(epoch.0));
        let tasks: Vec<Id> = batch.iter().map(|asked| asked.task).collect();
        let keys: Vec<&[u8]> = batch.iter().map(|asked| asked.key.as_bytes()).collect();
        let bodies: Vec<&[u8]> = batch.iter().map(|asked| &asked.body[..]).collect();
        let params: Params<'_> = &[&tenant, &name, &place.id, &epoch, &tasks, &keys, &bodies];
        let rows = places
            .pool
            .write_by_key(&place.statement(RECORD, params))
            .await?;
        let Some(row) = rows.first() else {
            places.forget(thread);
            return Ok(vec![None; batch.len()]);
        };
        if count(row, 0) == batch.len() as u64 {
            let own = |asked: &mut QueuedRecord| Some(mem::take(&mut asked.body));
            return Ok(batch.iter_mut().map(own).collect());
        }
        // Some records existed, perhaps only since this statement started: it does not see those, but the next one does.
        let params: Params<'_> = &[&place.id, &tasks, &keys];
        let rows = places.pool.read(&place.address(RECORDED), params).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn tell(&self, batch: Vec<QueuedRecord>, stored: Result<Vec<Option<Vec<u8>>>, Fault>) {
        let (thread, epoch) = &self.lane;
        let answers: Vec<Result<Vec<u8>, Fault>> = match stored {
            Ok(stored) => stored
                .into_iter()
                .map(|body| body.ok_or_else(|| fenced(thread, *epoch)))
                .collect(),
            Err(fault) => {
                let each = fault.shared_by(batch.len()).into_iter();
                each.map(Err).collect()
            }
        };
        for (asked, answer) in batch.into_iter().zip(answers) {
            // The caller may have been dropped.
            let _ = asked.answer.send(answer);
        }
    }
}

impl Drop for Writer {
    /// Stopped early: dropping the channels notifies the waiting callers, and the next record gets a new writer.
    fn drop(&mut self) {
        if !self.is_done {
            let waiting = lock(&self.desk.lanes).remove(&self.lane);
            drop(waiting);
        }
    }
}

/// Takes the first record, and as many after it as fit.
fn batch_of(waiting: &mut VecDeque<QueuedRecord>) -> Vec<QueuedRecord> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some(next) = waiting.front() {
        let fits = batch.len() < BATCH_MAX && bytes + next.bytes() <= BATCH_BYTES_MAX;
        if !batch.is_empty() && !fits {
            break;
        }
        bytes += next.bytes();
        batch.extend(waiting.pop_front());
    }
    batch
}

impl QueuedRecord {
    fn bytes(&self) -> usize {
        self.task.0.len() + self.key.len() + self.body.len()
    }
}

/// Sorted, so of two batches with the same keys (one is a retry while the server still runs the first) one waits for the
/// other instead of deadlocking. The same key twice in a batch is a conflict like any other.
const RECORD: &str = "
    WITH head AS MATERIALIZED (
        SELECT id FROM @thread
        WHERE tenant = $1 AND name = $2 AND id = $3 AND epoch = $4 AND status <> 6
        FOR KEY SHARE),
    entry AS (
        INSERT INTO @record (thread, task, key, body)
        SELECT head.id, r.task, r.key, r.body
        FROM head, unnest($5::uuid[], $6::bytea[], $7::bytea[]) AS r (task, key, body)
        ORDER BY r.task, r.key
        ON CONFLICT DO NOTHING RETURNING 1)
    SELECT (SELECT count(*) FROM entry) FROM head";

const RECORDED: &str = "
    SELECT (SELECT body FROM @record WHERE thread = $1 AND task = r.task AND key = r.key)
    FROM unnest($2::uuid[], $3::bytea[]) WITH ORDINALITY AS r (task, key, n)
    ORDER BY r.n";

/// Maximum number of records per statement, which bounds how long the first one waits for the last.
const BATCH_MAX: usize = 256;
/// Maximum size of a batch in bytes, unless a single record is larger.
const BATCH_BYTES_MAX: usize = 1024 * 1024;
