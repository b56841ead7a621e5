//! Records: what tasks write down while they run, many in one statement where many come at once.
//!
//! A thousand tasks of one superstep are a thousand records of one thread. A statement and a transaction for each
//! would make the server begin, lock and flush a thousand times. So one statement of a thread and epoch is
//! under way at a time; records that come meanwhile wait, and go out together as the next. A record that finds
//! nobody before it goes out at once: there is no timer.
//!
//! # Who writes
//!
//! A task of ours, not one of the askers: an asker may go away, or hold its future without polling it while it waits
//! for something else, and everybody behind it would wait with it. The task begins with a record that finds nobody
//! and ends when nothing waits. If it is ended before (its runtime stops), those who wait are told to ask again.
//! A record whose asker went away is written all the same.
//!
//! # What is told
//!
//! A batch is fenced as a whole, for all of it is of one epoch. If its connection breaks, nobody knows what became of it:
//! each asker is told so, and asks again. No record spoils a batch for the others: names of steps are short, and a
//! body that is large goes alone.
//!
//! # Why no record slips in behind a claim
//!
//! A claim's owner was told all records there are. So the statement locks the thread's row for key share and
//! compares the epoch under the lock; a claim and a deletion take the row for update, which is the one lock
//! that this one conflicts with. (For share would do too, and would make records wait for the commit that is
//! under way, and the other way round. Without a lock, a record whose statement began before the claim would
//! pass.) The lock is a mark in the row, flushed with the records.

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

/// The records that are on their way into a database.
pub(crate) struct Records {
    desk: Arc<Desk>,
    /// Those who write. They end with the store, and nobody asks then.
    writers: Mutex<JoinSet<()>>,
}

struct Desk {
    places: Arc<Places>,
    /// What waits. A lane is there exactly as long as its writer, so it may be empty.
    lanes: Mutex<HashMap<Lane, VecDeque<Asked>>>,
}

/// Whose records can share a statement.
type Lane = (ThreadId, Epoch);

/// A record, and the way back to the caller.
struct Asked {
    task: Id,
    key: String,
    body: Vec<u8>,
    answer: oneshot::Sender<Result<Vec<u8>, Fault>>,
}

impl Records {
    pub(crate) fn new(places: Arc<Places>) -> Self {
        let lanes = Mutex::default();
        Self {
            desk: Arc::new(Desk { places, lanes }),
            writers: Mutex::default(),
        }
    }

    /// Stores a record unless there is one, and gives what is stored.
    pub(crate) async fn record(&self, record: &RecordWrite) -> Result<Vec<u8>, Fault> {
        let (answer, answered) = oneshot::channel();
        let asked = Asked {
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
        // Those that ended are kept until somebody looks.
        while writers.try_join_next().is_some() {}
        writers.spawn(writer.write_all());
    }
}

impl Desk {
    /// Gives a writer if there is none for the record yet.
    fn put(self: &Arc<Self>, lane: Lane, asked: Asked) -> Option<Writer> {
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

/// The one who writes the records of a lane.
struct Writer {
    desk: Arc<Desk>,
    lane: Lane,
    /// Whether its lane is closed. From then on, a lane of that name is another writer's.
    is_done: bool,
}

impl Writer {
    async fn write_all(mut self) {
        while let Some(mut batch) = self.next_batch() {
            let stored = self.write(&mut batch).await;
            self.tell(batch, stored);
        }
    }

    /// What goes out next. If that is nothing the lane is closed, under the same lock, so that no request waits in it forever.
    fn next_batch(&mut self) -> Option<Vec<Asked>> {
        let mut lanes = lock(&self.desk.lanes);
        let batch = lanes.get_mut(&self.lane).map(batch_of).unwrap_or_default();
        if batch.is_empty() {
            lanes.remove(&self.lane);
            self.is_done = true;
            return None;
        }
        Some(batch)
    }

    /// Stores those that are not there, and gives for each what is stored; nothing if its thread is somebody else's now.
    async fn write(&self, batch: &mut [Asked]) -> Result<Vec<Option<Vec<u8>>>, Fault> {
        let (places, (thread, epoch)) = (&self.desk.places, &self.lane);
        let Some(place) = places.find(thread).await? else {
            return Ok(vec![None; batch.len()]);
        };
        let (tenant, name, epoch) = (thread.tenant(), thread.name(), number(epoch.0));
        let tasks: Vec<Id> = batch.iter().map(|asked| asked.task).collect();
        let keys: Vec<&[u8]> = batch.iter().map(|asked| asked.key.as_bytes()).collect();
        let bodies: Vec<&[u8]> = batch.iter().map(|asked| &asked.body[..]).collect();
        let params: Params<'_> = &[&tenant, &name, &place.id, &epoch, &tasks, &keys, &bodies];
        let rows = places.pool.write(&place.address(RECORD), params).await?;
        let Some(row) = rows.first() else {
            places.forget(thread);
            return Ok(vec![None; batch.len()]);
        };
        if count(row, 0) == batch.len() as u64 {
            let own = |asked: &mut Asked| Some(mem::take(&mut asked.body));
            return Ok(batch.iter_mut().map(own).collect());
        }
        // Some were there, perhaps only since this statement began: it does not see those, the next one does.
        let params: Params<'_> = &[&place.id, &tasks, &keys];
        let rows = places.pool.read(&place.address(RECORDED), params).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn tell(&self, batch: Vec<Asked>, stored: Result<Vec<Option<Vec<u8>>>, Fault>) {
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
            // The asker may have gone away.
            let _ = asked.answer.send(answer);
        }
    }
}

impl Drop for Writer {
    /// Ended too early: those who wait learn of it by what is dropped here, and the next record gets another writer.
    fn drop(&mut self) {
        if !self.is_done {
            let waiting = lock(&self.desk.lanes).remove(&self.lane);
            drop(waiting);
        }
    }
}

/// The first, and those behind it as far as they fit.
fn batch_of(waiting: &mut VecDeque<Asked>) -> Vec<Asked> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some(next) = waiting.pop_front_if(|next| {
        let fits = batch.len() < BATCH_MAX && bytes + next.bytes() <= BATCH_BYTES_MAX;
        batch.is_empty() || fits
    }) {
        bytes += next.bytes();
        batch.push(next);
    }
    batch
}

impl Asked {
    fn bytes(&self) -> usize {
        self.task.0.len() + self.key.len() + self.body.len()
    }
}

/// Sorted, so that of two batches with the same keys (one is asked again while the server still has the first) one waits
/// for the other, and not both. The same key twice in a batch is a conflict like any other.
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

/// How many records share a statement at most: a bound on how long the first one waits for the last.
const BATCH_MAX: usize = 256;
/// How many bytes they have together at most, unless one alone has more.
const BATCH_BYTES_MAX: usize = 1024 * 1024;
