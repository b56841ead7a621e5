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
use std::sync::{Arc, Mutex};

use superstep_core::__private::lock;
use superstep_core::checkpoint::{RecordBatch, RecordRow, RecordWrite};
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
    lanes: Mutex<HashMap<Lane, VecDeque<QueuedRecords>>>,
}

/// Records that can share a statement.
type Lane = (ThreadId, Epoch);

/// Records of one call, and the channel to their caller.
struct QueuedRecords {
    records: Vec<QueuedRecord>,
    answer: oneshot::Sender<Others>,
}

struct QueuedRecord {
    task: Id,
    key: String,
    body: Vec<u8>,
}

/// For each record, the stored one if it is another.
type Others = Result<Vec<Option<Vec<u8>>>, Fault>;

/// What became of a record: the stored one, if it is another. `None` if the thread has another owner, or the record was released
/// meanwhile.
type Written = Option<Option<Vec<u8>>>;

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
        let asked = QueuedRecord {
            task: Id(record.task.to_bytes()),
            key: record.key.clone(),
            body: record.body.clone(),
        };
        let lane = (record.thread.clone(), record.epoch);
        let others = self.queue(lane, vec![asked]).await;
        let other = others.unwrap_or(Err(PostgresError::Unsent.into()))?.pop();
        Ok(other.flatten().unwrap_or_else(|| record.body.clone()))
    }

    /// Stores the records of a batch that do not exist, and returns for each the stored one if it is another.
    pub(crate) async fn record_all(&self, batch: &RecordBatch) -> Others {
        let asked = |record: &RecordRow| QueuedRecord {
            task: Id(record.task.to_bytes()),
            key: record.key.clone(),
            body: record.body.clone(),
        };
        let mut records: VecDeque<_> = batch.records.iter().map(asked).collect();
        let mut answers = Vec::new();
        // All of them are queued before the first is awaited, so statements follow each other without a pause.
        while !records.is_empty() {
            let lane = (batch.thread.clone(), batch.epoch);
            answers.push(self.queue(lane, statement_of(&mut records)));
        }
        let mut others = Vec::with_capacity(batch.records.len());
        for answer in answers {
            others.extend(answer.await.unwrap_or(Err(PostgresError::Unsent.into()))?);
        }
        Ok(others)
    }

    /// Queues records, which must fit into one statement.
    fn queue(&self, lane: Lane, records: Vec<QueuedRecord>) -> oneshot::Receiver<Others> {
        let (answer, answered) = oneshot::channel();
        if let Some(writer) = self.desk.put(lane, QueuedRecords { records, answer }) {
            self.start(writer);
        }
        answered
    }

    fn start(&self, writer: Writer) {
        let mut writers = lock(&self.writers);
        // Finished tasks stay in the set until they are joined.
        while writers.try_join_next().is_some() {}
        writers.spawn(writer.write_all());
    }
}

impl RecordQueue {
    /// Enqueues records. Returns a writer to start if their lane has none yet.
    fn put(self: &Arc<Self>, lane: Lane, asked: QueuedRecords) -> Option<Writer> {
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
        while let Some(batch) = self.next_batch() {
            let stored = self.write(&batch).await;
            self.tell(batch, stored);
        }
    }

    /// Takes the next batch. If there is none it closes the lane, under the same lock, so no request can wait in it forever.
    fn next_batch(&mut self) -> Option<Vec<QueuedRecords>> {
        let mut lanes = lock(&self.desk.lanes);
        let batch = lanes.get_mut(&self.lane).map(batch_of).unwrap_or_default();
        if batch.is_empty() {
            lanes.remove(&self.lane);
            self.is_done = true;
            return None;
        }
        Some(batch)
    }

    /// Stores the records that do not exist.
    async fn write(&self, batch: &[QueuedRecords]) -> Result<Vec<Written>, Fault> {
        let (places, (thread, epoch)) = (&self.desk.places, &self.lane);
        let records: Vec<_> = batch.iter().flat_map(|asked| &asked.records).collect();
        let Some(place) = places.find(thread).await? else {
            return Ok(vec![None; records.len()]);
        };
        let (tenant, name, epoch) = (thread.tenant(), thread.name(), number(epoch.0));
        let tasks: Vec<Id> = records.iter().map(|record| record.task).collect();
        let keys: Vec<&[u8]> = records.iter().map(|record| record.key.as_bytes()).collect();
        let bodies: Vec<&[u8]> = records.iter().map(|record| &record.body[..]).collect();
        let params: Params<'_> = &[&tenant, &name, &place.id, &epoch, &tasks, &keys, &bodies];
        let rows = places
            .pool
            .write_by_key(&place.statement(RECORD, params))
            .await?;
        let Some(row) = rows.first() else {
            places.forget(thread);
            return Ok(vec![None; records.len()]);
        };
        if count(row, 0) == records.len() as u64 {
            return Ok(vec![Some(None); records.len()]);
        }
        // Some records existed, perhaps only since this statement started: it does not see those, but the next one does.
        let params: Params<'_> = &[&place.id, &tasks, &keys];
        let rows = places.pool.read(&place.address(RECORDED), params).await?;
        let stored = rows.iter().map(|row| row.get::<_, Option<Vec<u8>>>(0));
        let written = records.iter().zip(stored).map(|(record, stored)| {
            let stored = stored?;
            Some((stored != record.body).then_some(stored))
        });
        Ok(written.collect())
    }

    fn tell(&self, batch: Vec<QueuedRecords>, written: Result<Vec<Written>, Fault>) {
        let (thread, epoch) = &self.lane;
        let answers: Vec<Others> = match written {
            Ok(written) => {
                let mut written = written.into_iter();
                let of_call = |asked: &QueuedRecords| {
                    let others: Option<Vec<_>> =
                        written.by_ref().take(asked.records.len()).collect();
                    others.ok_or_else(|| fenced(thread, *epoch))
                };
                batch.iter().map(of_call).collect()
            }
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

/// Takes the records of the first call, and those of as many after it as fit.
fn batch_of(waiting: &mut VecDeque<QueuedRecords>) -> Vec<QueuedRecords> {
    let mut batch = Vec::new();
    let (mut count, mut bytes) = (0, 0);
    while let Some(next) = waiting.front() {
        let of_call: usize = next.records.iter().map(QueuedRecord::bytes).sum();
        let fits = count + next.records.len() <= BATCH_MAX && bytes + of_call <= BATCH_BYTES_MAX;
        if !batch.is_empty() && !fits {
            break;
        }
        (count, bytes) = (count + next.records.len(), bytes + of_call);
        batch.extend(waiting.pop_front());
    }
    batch
}

/// Takes the first record, and as many after it as fit into one statement.
fn statement_of(records: &mut VecDeque<QueuedRecord>) -> Vec<QueuedRecord> {
    let mut taken = Vec::new();
    let mut bytes = 0;
    while let Some(next) = records.front() {
        let fits = taken.len() < BATCH_MAX && bytes + next.bytes() <= BATCH_BYTES_MAX;
        if !taken.is_empty() && !fits {
            break;
        }
        bytes += next.bytes();
        taken.extend(records.pop_front());
    }
    taken
}

impl QueuedRecord {
    fn bytes(&self) -> usize {
        self.task.0.len() + self.key.len() + self.body.len()
    }
}

/// Sorted, so of two batches with the same keys (one is a retry while the server still runs the first) one waits for the
/// other instead of deadlocking. The same key twice in a batch is a conflict like any other; the number lets the first one win.
const RECORD: &str = "
    WITH head AS MATERIALIZED (
        SELECT id FROM @thread
        WHERE tenant = $1 AND name = $2 AND id = $3 AND epoch = $4 AND status <> 6
        FOR KEY SHARE),
    entry AS (
        INSERT INTO @record (thread, task, key, body)
        SELECT head.id, r.task, r.key, r.body
        FROM head, unnest($5::uuid[], $6::bytea[], $7::bytea[]) WITH ORDINALITY AS r (task, key, body, n)
        ORDER BY r.task, r.key, r.n
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
