//! The reference checkpointer: the rules of [`Checkpointer`] over maps in memory.
//!
//! Other stores are compared with this one, so it is simple before it is fast. It has no clock and never waits: every future is
//! ready when it is first polled, and does nothing before that. It cannot keep rule 4: its only storage is the process.

mod archive;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::checkpoint::format::{self, Body};
use crate::checkpoint::{
    Answer, AnswerBody, Archive, AskedRow, BoxFuture, CheckpointResult, Checkpointer, Commit,
    ExpiredThread, Glance, Head, History, InterruptQuery, InterruptRow, Listing, Loaded, Metadata,
    NewThread, OverdueCursor, Page, RESULT_KEY, RecordRow, RecordWrite, Released, ReleasedRecords,
    Saved, SizeQuery, SizeRow, Status, StoredBody, StoredSize, ThreadAnnotation, ThreadLifetime,
    ThreadQuery, ThreadRow, UnfinishedThread, UnseenAnswers,
};
use crate::error::CheckpointError;
use crate::ids::{Epoch, InterruptId, Seq, TaskId, ThreadId, Timestamp};
use crate::lock::lock;
use crate::value::Value;

/// Stores threads in memory. A clone is another handle to the same threads.
///
/// ```
/// use superstep_core::checkpoint::Memory;
///
/// let kept = Memory::new();
/// let same = kept.clone();
/// let apart = kept.deep_copy();
/// # let _ = (same, apart);
/// ```
#[derive(Clone, Default)]
pub struct Memory {
    threads: Arc<Mutex<Threads>>,
}

type Threads = BTreeMap<ThreadId, Thread>;

impl Memory {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies all threads into an independent store: a simulator restarts from it after a crash.
    #[must_use]
    pub fn deep_copy(&self) -> Self {
        Self {
            threads: Arc::new(Mutex::new(self.lock().clone())),
        }
    }

    /// Locks the threads. Every change is complete before anything in it can panic, so a poisoned lock still guards sound data.
    fn lock(&self) -> MutexGuard<'_, Threads> {
        lock(&self.threads)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("threads", &self.lock().len())
            .finish()
    }
}

impl Checkpointer for Memory {
    fn create<'a>(
        &'a self,
        thread: &'a ThreadId,
        new: &'a NewThread,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(create(&mut self.lock(), thread, new)) })
    }

    fn annotate<'a>(
        &'a self,
        thread: &'a ThreadId,
        change: &'a ThreadAnnotation,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move {
            let mut threads = self.lock();
            let found = living_mut(&mut threads, thread);
            Ok(found.map(|thread| thread.annotate(change)).is_some())
        })
    }

    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        Box::pin(async move { save(&mut self.lock(), commit) })
    }

    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(async move {
            let mut threads = self.lock();
            let owned = living_mut(&mut threads, &record.thread)
                .filter(|thread| thread.head.epoch == record.epoch);
            let Some(thread) = owned else {
                return Err(fenced(&record.thread, record.epoch));
            };
            let key = (record.task, record.key.clone());
            Ok(thread
                .records
                .entry(key)
                .or_insert_with(|| record.body.clone())
                .clone())
        })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { answer(&mut self.lock(), thread, answers) })
    }

    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        Box::pin(async move { Ok(self.lock().get(thread).map(Thread::loaded)) })
    }

    fn load_at<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, CheckpointResult<History>> {
        Box::pin(async move {
            let threads = self.lock();
            let found = living(&threads, thread)?;
            found.check_reachable(thread, seq)?;
            Ok(found.history_at(seq))
        })
    }

    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>> {
        Box::pin(async move {
            let threads = self.lock();
            let entries = threads
                .get(thread)
                .into_iter()
                .flat_map(|found| found.entries(after, None));
            Ok(entries.take(limit as usize).collect())
        })
    }

    fn glance<'a>(
        &'a self,
        thread: &'a ThreadId,
        task: Option<TaskId>,
    ) -> BoxFuture<'a, CheckpointResult<Option<Glance>>> {
        Box::pin(async move {
            let threads = self.lock();
            Ok(threads.get(thread).map(|found| Glance {
                epoch: found.head.epoch,
                status: found.head.status,
                cancel: found.cancel,
                unseen: found.head.answers > found.answers_seen,
                lease: found.held_until(),
                records: task.map_or_else(Vec::new, |task| found.records_of(task)),
            }))
        })
    }

    fn request_cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let mut threads = self.lock();
            let found = living_mut(&mut threads, thread).ok_or_else(|| no_thread(thread))?;
            found.cancel = true;
            Ok(())
        })
    }

    fn unfinished<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<UnfinishedThread>>> {
        Box::pin(async move {
            let threads = self.lock();
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let behind = threads.range::<ThreadId, _>((from, Bound::Unbounded));
            let unfinished = behind.filter(|(_, thread)| thread.is_unfinished());
            let rows = unfinished.map(|(id, thread)| UnfinishedThread {
                thread: id.clone(),
                epoch: thread.head.epoch,
                lease: thread.held_until(),
            });
            Ok(rows.take(limit as usize).collect())
        })
    }

    fn renew<'a>(
        &'a self,
        owned: &'a [(ThreadId, Epoch)],
        lease: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let mut threads = self.lock();
            for (id, epoch) in owned {
                if let Some(thread) = threads.get_mut(id)
                    && thread.head.epoch == *epoch
                    && thread.is_running()
                {
                    thread.lease = Some(lease);
                }
            }
            Ok(())
        })
    }

    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ThreadRow>>> {
        Box::pin(async move {
            let found = wanted(&self.lock(), query);
            Ok(query.page_of(found))
        })
    }

    fn count_threads<'a>(&'a self, query: &'a ThreadQuery) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(wanted(&self.lock(), query).len() as u64) })
    }

    fn sizes<'a>(&'a self, query: &'a SizeQuery) -> BoxFuture<'a, CheckpointResult<Vec<SizeRow>>> {
        Box::pin(async move {
            let threads = self.lock();
            let living = threads.iter().filter(|(_, thread)| thread.is_living());
            let wanted = living.filter(|(id, _)| query.matches(id));
            Ok(query.report(wanted.map(|(id, thread)| thread.sizes(id))))
        })
    }

    fn overdue<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a OverdueCursor>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(async move {
            let threads = self.lock();
            let place = |question: &StoredInterrupt| {
                let is_open = question.row.closed.is_none() && question.row.answer.is_none();
                let deadline = question.deadline.filter(|due| is_open && *due <= now)?;
                let cursor = OverdueCursor {
                    deadline,
                    thread: question.row.thread.clone(),
                    id: question.row.id,
                };
                after.is_none_or(|after| cursor > *after).then_some(cursor)
            };
            let due = threads.values().flat_map(Thread::interrupts);
            let mut due: Vec<_> = due
                .filter_map(|found| Some((place(found)?, found)))
                .collect();
            due.sort_by(|(a, _), (b, _)| a.cmp(b));
            let rows = due.into_iter().take(limit as usize);
            Ok(rows.map(|(_, question)| question.row.clone()).collect())
        })
    }

    fn interrupts<'a>(
        &'a self,
        query: &'a InterruptQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(async move {
            let threads = self.lock();
            let mut found: Vec<&InterruptRow> = threads
                .values()
                .flat_map(Thread::interrupts)
                .filter(|question| question.is_wanted(query))
                .map(|question| &question.row)
                .collect();
            found.sort_by_key(|row| (row.asked_at, &row.thread, row.id));
            Ok(page(found.into_iter(), query.page).cloned().collect())
        })
    }

    fn copy<'a>(
        &'a self,
        from: &'a ThreadId,
        upto: Option<Seq>,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { copy(&mut self.lock(), from, upto, to) })
    }

    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            if let Some(thread) = living_mut(&mut self.lock(), thread) {
                thread.delete();
            }
            Ok(())
        })
    }

    fn forget<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let mut threads = self.lock();
            if threads.get(thread).is_some_and(|found| !found.is_living()) {
                threads.remove(thread);
            }
            Ok(())
        })
    }

    fn prune<'a>(
        &'a self,
        thread: &'a ThreadId,
        keep: u32,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            let mut threads = self.lock();
            let found = living_mut(&mut threads, thread).ok_or_else(|| no_thread(thread))?;
            Ok(found.prune(keep))
        })
    }

    fn expire(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move {
            let mut threads = self.lock();
            let mut old: Vec<_> = threads
                .iter_mut()
                .filter(|(_, thread)| thread.head.status != Status::Running)
                .filter(|(_, thread)| thread.is_living() && thread.updated < before)
                .collect();
            old.sort_by_key(|(id, thread)| (thread.updated, *id));
            let expired = old
                .into_iter()
                .take(limit as usize)
                .map(|(_, thread)| thread.delete());
            Ok(expired.count() as u64)
        })
    }

    fn expired<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a ExpiredThread>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ExpiredThread>>> {
        Box::pin(async move {
            let threads = self.lock();
            let mut over: Vec<_> = threads
                .iter()
                .filter_map(|(id, thread)| thread.expired(id, now))
                .filter(|found| after.is_none_or(|after| found > after))
                .collect();
            over.sort();
            over.truncate(limit as usize);
            Ok(over)
        })
    }

    fn export<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Archive>> {
        Box::pin(async move { archive::export(&self.lock(), thread) })
    }

    fn import<'a>(
        &'a self,
        thread: &'a ThreadId,
        archive: &'a Archive,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { archive::import(&mut self.lock(), thread, archive) })
    }
}

/// Creates a thread, unless it exists. Returns whether it did not.
fn create(threads: &mut Threads, id: &ThreadId, new: &NewThread) -> bool {
    let former = threads.get(id);
    if former.is_some_and(Thread::is_living) {
        return false;
    }
    let epoch = former.map_or(Epoch(0), |thread| thread.head.epoch).next();
    let mut thread = Thread::new(new.at);
    thread.head.epoch = epoch;
    thread.listing = Listed {
        graph: new.graph.clone(),
        metadata: new.metadata.clone(),
        values: None,
        lifetime: new.lifetime,
    };
    threads.insert(id.clone(), thread);
    true
}

/// Returns the rows of all threads that match a query, in no order.
fn wanted(threads: &Threads, query: &ThreadQuery) -> Vec<ThreadRow> {
    let of_tenant =
        |(id, thread): &(&ThreadId, &Thread)| thread.is_living() && id.tenant() == query.tenant;
    let rows = threads.iter().filter(of_tenant);
    rows.map(|(id, thread)| thread.row(id))
        .filter(|row| query.matches(row))
        .collect()
}

fn save(threads: &mut Threads, commit: &Commit) -> CheckpointResult<Saved> {
    let is_expected =
        |stands: Head| (stands.epoch, stands.seq) == (commit.expect.epoch, commit.expect.seq);
    // Only a claim creates a thread, or creates a deleted one again.
    match threads.get_mut(&commit.thread) {
        Some(thread) if is_expected(thread.head) && (thread.is_living() || commit.is_claim()) => {
            thread.apply(commit);
            Ok(thread.saved(commit))
        }
        Some(thread) if thread.has_saved(commit) => Ok(thread.saved(commit)),
        None if is_expected(Head::default()) && commit.is_claim() => {
            let mut thread = Thread::new(commit.at);
            thread.apply(commit);
            let saved = thread.saved(commit);
            threads.insert(commit.thread.clone(), thread);
            Ok(saved)
        }
        _ => Err(fenced(&commit.thread, commit.expect.epoch)),
    }
}

fn answer(threads: &mut Threads, id: &ThreadId, answers: &[Answer]) -> CheckpointResult<()> {
    let not_open = |interrupt| CheckpointError::NotOpen {
        thread: id.clone(),
        interrupt,
    };
    let Some(thread) = living_mut(threads, id) else {
        return answers
            .first()
            .map_or(Ok(()), |answer| Err(not_open(answer.interrupt)));
    };
    // Both would pass the check below, although only one answer can win.
    if let Some(interrupt) = Answer::named_twice(answers) {
        return Err(not_open(interrupt));
    }
    if thread.holds_all(answers) {
        return Ok(());
    }
    for answer in answers {
        let question = thread.open.get(&answer.interrupt);
        if !question.is_some_and(|question| question.row.is_open()) {
            return Err(not_open(answer.interrupt));
        }
    }
    for answer in answers {
        let question = thread
            .open
            .get_mut(&answer.interrupt)
            .expect("it was found above");
        question.row.answer = Some(answer.body.clone());
        question.row.answered_by.clone_from(&answer.by);
        question.row.answered_at = Some(answer.at);
    }
    thread.head.answers += answers.len() as u64;
    Ok(())
}

fn copy(
    threads: &mut Threads,
    from: &ThreadId,
    upto: Option<Seq>,
    to: &ThreadId,
) -> CheckpointResult<()> {
    let source = living(threads, from)?;
    let upto = upto.unwrap_or(source.head.seq);
    source.check_reachable(from, upto)?;
    let former = threads.get(to);
    if former.is_some_and(Thread::is_living) {
        return Err(CheckpointError::ThreadExists { thread: to.clone() });
    }
    let epoch = former.map_or(Epoch(0), |thread| thread.head.epoch).next();

    let mut target = Thread::new(source.created);
    target.head = Head {
        epoch,
        seq: upto,
        ..Head::default()
    };
    target.updated = source.updated;
    target.listing = source.listing.clone();
    for (&seq, entry) in source.log.range(..=upto) {
        let body = reseal::<format::Entry>(&entry.body, seq, from, to)?;
        // No owner ever had epoch 0, so no commit mistakes a copied entry for its own.
        let epoch = Epoch(0);
        target.log.insert(seq, LogEntry { epoch, body });
    }
    for (&seq, body) in source.snapshots.range(..=upto) {
        target
            .snapshots
            .insert(seq, reseal::<format::Snapshot>(body, seq, from, to)?);
    }
    threads.insert(to.clone(), target);
    Ok(())
}

fn reseal<B: Body>(
    body: &[u8],
    seq: Seq,
    from: &ThreadId,
    to: &ThreadId,
) -> CheckpointResult<Vec<u8>> {
    Ok(B::unseal(body, from, seq)?.seal(to, seq))
}

/// Everything of one thread.
#[derive(Clone)]
struct Thread {
    head: Head,
    cancel: bool,
    lease: Option<Timestamp>,
    /// Number of answers that the last owner had seen; `head.answers` is how many there are.
    answers_seen: u64,
    log: BTreeMap<Seq, LogEntry>,
    snapshots: BTreeMap<Seq, Vec<u8>>,
    records: BTreeMap<(TaskId, String), Vec<u8>>,
    open: BTreeMap<InterruptId, StoredInterrupt>,
    /// Kept apart from the open ones, so that a long history of interrupts does not slow down opening the thread.
    closed: BTreeMap<InterruptId, StoredInterrupt>,
    listing: Listed,
    created: Timestamp,
    updated: Timestamp,
}

#[derive(Clone)]
struct LogEntry {
    /// Epoch under which the entry was written. A retried commit recognizes its own entry by it.
    epoch: Epoch,
    body: Vec<u8>,
}

#[derive(Clone)]
struct StoredInterrupt {
    row: InterruptRow,
    deadline: Option<Timestamp>,
}

#[derive(Clone, Default)]
struct Listed {
    graph: String,
    metadata: Metadata,
    values: Option<Value>,
    lifetime: Option<ThreadLifetime>,
}

/// Number of released tasks from which one pass over all records is cheaper than a search for each task.
const MANY: usize = 16;

impl Thread {
    fn new(at: Timestamp) -> Self {
        Self {
            head: Head::default(),
            cancel: false,
            lease: None,
            answers_seen: 0,
            log: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            records: BTreeMap::new(),
            open: BTreeMap::new(),
            closed: BTreeMap::new(),
            listing: Listed::default(),
            created: at,
            updated: at,
        }
    }

    fn is_living(&self) -> bool {
        self.head.status != Status::Deleted
    }

    fn held_until(&self) -> Option<Timestamp> {
        self.lease.filter(|_| self.is_running())
    }

    fn is_running(&self) -> bool {
        self.head.status == Status::Running
    }

    fn apply(&mut self, commit: &Commit) {
        if !self.is_living() {
            self.created = commit.at;
        }
        let head = self.head_after(commit);
        if self.head.status != head.status || commit.listing.is_some() {
            self.updated = commit.at;
        }
        if commit.is_claim() {
            self.cancel = false;
            self.lease = commit.lease;
        }
        self.head = head;
        self.answers_seen = commit.head.answers;
        let seq = commit.head.seq;
        if let Some(body) = &commit.entry {
            self.log.insert(
                seq,
                LogEntry {
                    epoch: commit.head.epoch,
                    body: body.clone(),
                },
            );
        }
        if let Some(body) = &commit.snapshot {
            self.snapshots.insert(seq, body.clone());
        }
        for asked in &commit.asked {
            self.ask(commit, asked);
        }
        for id in &commit.closed {
            self.close(*id, seq);
        }
        self.release(&commit.released);
        if let Some(listing) = &commit.listing {
            self.listing.update(listing);
        }
    }

    /// Returns the head after the commit, except that a pause does not happen while its owner has not seen every answer.
    fn head_after(&self, commit: &Commit) -> Head {
        let answers = self.head.answers;
        let overlooks = commit.head.status == Status::Paused && answers > commit.head.answers;
        let status = if overlooks {
            Status::Running
        } else {
            commit.head.status
        };
        Head {
            status,
            answers,
            ..commit.head
        }
    }

    fn ask(&mut self, commit: &Commit, asked: &AskedRow) {
        if self.closed.contains_key(&asked.id) {
            return;
        }
        self.open
            .entry(asked.id)
            .or_insert_with(|| StoredInterrupt {
                row: InterruptRow {
                    thread: commit.thread.clone(),
                    id: asked.id,
                    seq: commit.head.seq,
                    asked_at: commit.at,
                    body: asked.body.clone(),
                    answer: None,
                    answered_by: String::new(),
                    answered_at: None,
                    closed: None,
                },
                deadline: asked.deadline,
            });
    }

    fn close(&mut self, id: InterruptId, seq: Seq) {
        if let Some(mut question) = self.open.remove(&id) {
            question.row.closed = Some(seq);
            self.closed.insert(id, question);
        }
    }

    fn release(&mut self, released: &[Released]) {
        let tasks_of = |which| {
            let those = released.iter().filter(move |one| one.which == which);
            those.map(|one| one.task)
        };
        for task in tasks_of(ReleasedRecords::Result) {
            self.records.remove(&(task, RESULT_KEY.to_owned()));
        }
        let mut whole: Vec<TaskId> = tasks_of(ReleasedRecords::All).collect();
        if whole.len() >= MANY {
            whole.sort_unstable();
            self.records
                .retain(|(task, _), _| whole.binary_search(task).is_err());
            return;
        }
        for task in whole {
            let from_task = self.records.range((task, String::new())..);
            let keys = from_task.map(|(key, _)| key);
            let keys: Vec<_> = keys.take_while(|(of, _)| *of == task).cloned().collect();
            for key in keys {
                self.records.remove(&key);
            }
        }
    }

    fn records_of(&self, task: TaskId) -> Vec<RecordRow> {
        let row = |((task, key), body): (&(TaskId, String), &Vec<u8>)| RecordRow {
            task: *task,
            key: key.clone(),
            body: body.clone(),
        };
        self.records
            .range((task, String::new())..)
            .take_while(|((of, _), _)| *of == task)
            .map(row)
            .collect()
    }

    /// Whether a commit that does not match the current head was applied before.
    ///
    /// The epoch alone would not do: two claims that race for the same epoch are different commits, and the loser must not
    /// mistake the winner's entry for its own.
    fn has_saved(&self, commit: &Commit) -> bool {
        match &commit.entry {
            Some(body) => self
                .log
                .get(&commit.head.seq)
                .is_some_and(|entry| entry.epoch == commit.head.epoch && entry.body == *body),
            None => {
                self.is_living()
                    && (self.head.epoch, self.head.seq) == (commit.head.epoch, commit.head.seq)
            }
        }
    }

    fn saved(&self, commit: &Commit) -> Saved {
        // Derived from the current head, so that a retry gets the same result.
        let stands_there = (self.head.epoch, self.head.seq) == (commit.head.epoch, commit.head.seq);
        let was_held = commit.head.status == Status::Paused && self.head.status == Status::Running;
        let unseen = (stands_there && was_held).then(|| UnseenAnswers {
            answers: self.head.answers,
            answered: self.answered(),
        });
        let records = if commit.is_claim() {
            self.record_rows()
        } else {
            Vec::new()
        };
        Saved {
            cancel: self.cancel,
            unseen,
            records,
        }
    }

    /// Whether all of these answers are stored exactly as given.
    fn holds_all(&self, answers: &[Answer]) -> bool {
        answers.iter().all(|answer| {
            let of = |questions: &BTreeMap<InterruptId, StoredInterrupt>| {
                let question = questions.get(&answer.interrupt);
                question.is_some_and(|question| question.row.holds(answer))
            };
            of(&self.open) || of(&self.closed)
        })
    }

    fn answered(&self) -> Vec<(InterruptId, AnswerBody)> {
        let answers = self
            .open
            .iter()
            .map(|(id, question)| (id, &question.row.answer));
        answers
            .filter_map(|(id, answer)| Some((*id, answer.clone()?)))
            .collect()
    }

    fn is_unfinished(&self) -> bool {
        match self.head.status {
            Status::Running => true,
            Status::Paused => self.head.answers > self.answers_seen,
            _ => false,
        }
    }

    fn record_rows(&self) -> Vec<RecordRow> {
        let row = |((task, key), body): (&(TaskId, String), &Vec<u8>)| RecordRow {
            task: *task,
            key: key.clone(),
            body: body.clone(),
        };
        self.records.iter().map(row).collect()
    }

    fn loaded(&self) -> Loaded {
        Loaded {
            head: self.head,
            history: self.history_at(self.head.seq),
            records: self.record_rows(),
            interrupts: self
                .open
                .values()
                .map(|question| question.row.clone())
                .collect(),
        }
    }

    fn check_reachable(&self, thread: &ThreadId, seq: Seq) -> CheckpointResult<()> {
        if self.log.contains_key(&seq) {
            return Ok(());
        }
        Err(CheckpointError::NoCheckpoint {
            thread: thread.clone(),
            seq,
        })
    }

    fn history_at(&self, seq: Seq) -> History {
        let newest = self.snapshots.range(..=seq).next_back();
        let after = newest.map_or(Seq(0), |(&at, _)| at);
        History {
            snapshot: newest.map(|(&seq, body)| StoredBody {
                seq,
                body: body.clone(),
            }),
            entries: self.entries(after, Some(seq)).collect(),
        }
    }

    fn entries(&self, after: Seq, upto: Option<Seq>) -> impl Iterator<Item = StoredBody> {
        // A range that ends before it begins would panic.
        let upto = upto.map_or(Bound::Unbounded, |seq| {
            Bound::Excluded(seq.max(after).next())
        });
        let range = self.log.range((Bound::Excluded(after), upto));
        range.map(|(&seq, entry)| StoredBody {
            seq,
            body: entry.body.clone(),
        })
    }

    fn snapshots(&self) -> impl Iterator<Item = StoredBody> {
        self.snapshots.iter().map(|(&seq, body)| StoredBody {
            seq,
            body: body.clone(),
        })
    }

    fn interrupts(&self) -> impl Iterator<Item = &StoredInterrupt> {
        self.open.values().chain(self.closed.values())
    }

    /// Drops what lies before the newest snapshot from which every kept entry can be read.
    fn prune(&mut self, keep: u32) -> u64 {
        let oldest_kept = self
            .log
            .keys()
            .rev()
            .take(keep.max(1) as usize)
            .next_back()
            .copied();
        let Some((&base, _)) = oldest_kept.and_then(|seq| self.snapshots.range(..=seq).next_back())
        else {
            return 0;
        };
        let before = self.log.len();
        self.log = self.log.split_off(&base);
        self.snapshots = self.snapshots.split_off(&base);
        (before - self.log.len()) as u64
    }

    fn delete(&mut self) {
        let epoch = self.head.epoch.next();
        *self = Self::new(self.created);
        self.head = Head {
            epoch,
            status: Status::Deleted,
            ..Head::default()
        };
    }

    fn annotate(&mut self, change: &ThreadAnnotation) {
        let Listed {
            graph,
            metadata,
            lifetime,
            ..
        } = &mut self.listing;
        change.apply(graph, metadata, lifetime);
        self.updated = change.at;
    }

    /// Returns what is to happen to the thread if its lifetime is over.
    fn expired(&self, id: &ThreadId, now: Timestamp) -> Option<ExpiredThread> {
        let lifetime = self.listing.lifetime.filter(|_| !self.is_running())?;
        lifetime.is_over(self.updated, now).then(|| ExpiredThread {
            ended: lifetime.ends(self.updated),
            thread: id.clone(),
            at_end: lifetime.at_end,
        })
    }

    fn sizes(&self, id: &ThreadId) -> SizeRow {
        SizeRow {
            tenant: id.tenant().to_owned(),
            graph: Some(self.listing.graph.clone()),
            thread: Some(id.clone()),
            threads: 1,
            entries: StoredSize::of(self.log.values().map(|entry| entry.body.len())),
            snapshots: StoredSize::of(self.snapshots.values().map(Vec::len)),
            records: StoredSize::of(self.records.values().map(Vec::len)),
            interrupts: StoredSize::of(self.interrupts().map(|found| found.row.body.len())),
        }
    }

    fn row(&self, id: &ThreadId) -> ThreadRow {
        ThreadRow {
            thread: id.clone(),
            head: self.head,
            graph: self.listing.graph.clone(),
            metadata: self.listing.metadata.clone(),
            values: self.listing.values.clone(),
            created: self.created,
            updated: self.updated,
            lifetime: self.listing.lifetime,
        }
    }
}

impl StoredInterrupt {
    fn is_wanted(&self, query: &InterruptQuery) -> bool {
        let is_open = self.row.closed.is_none() && self.row.answer.is_none();
        self.row.thread.tenant() == query.tenant
            && query
                .thread
                .as_ref()
                .is_none_or(|thread| *thread == self.row.thread)
            && (query.threads.is_empty() || query.threads.contains(&self.row.thread))
            && (is_open || !query.open_only)
            && query
                .due
                .is_none_or(|now| self.deadline.is_some_and(|deadline| deadline <= now))
    }
}

impl Listed {
    fn update(&mut self, listing: &Listing) {
        self.graph.clone_from(&listing.graph);
        self.values.clone_from(&listing.values);
        if let Some(metadata) = &listing.metadata {
            self.metadata.clone_from(metadata);
        }
    }
}

fn page<T>(rows: impl Iterator<Item = T>, page: Page) -> impl Iterator<Item = T> {
    rows.skip(page.offset as usize).take(page.limit as usize)
}

fn living<'a>(threads: &'a Threads, id: &ThreadId) -> CheckpointResult<&'a Thread> {
    threads
        .get(id)
        .filter(|thread| thread.is_living())
        .ok_or_else(|| no_thread(id))
}

fn living_mut<'a>(threads: &'a mut Threads, id: &ThreadId) -> Option<&'a mut Thread> {
    threads.get_mut(id).filter(|thread| thread.is_living())
}

fn no_thread(thread: &ThreadId) -> CheckpointError {
    CheckpointError::NoThread {
        thread: thread.clone(),
    }
}

fn fenced(thread: &ThreadId, epoch: Epoch) -> CheckpointError {
    CheckpointError::Fenced {
        thread: thread.clone(),
        epoch,
    }
}
