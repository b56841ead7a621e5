//! What a thread is on disk, and the seam to whatever keeps it.
//!
//! A [`Checkpointer`] stores bytes and compares numbers: it knows no graphs. Everything it needs to
//! decide stands in the [`Commit`] it is given, so an implementation is SQL and little else.

mod archive;
pub mod format;
mod memory;
mod query;
mod seal;

pub use archive::{Archive, ArchivedAnswer, ArchivedEntry, ArchivedInterrupt, ArchivedListing};
pub use memory::Memory;
pub use query::{Filter, FilterValue, InterruptQuery, Metadata, Page, ThreadQuery};

use std::collections::BTreeSet;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

use crate::error::CheckpointError;
use crate::ids::{Epoch, InterruptId, Seq, TaskId, ThreadId, Timestamp};
use crate::value::Value;

/// A boxed future, so that the seams can be used as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a checkpointer answers.
pub type CheckpointResult<T> = Result<T, CheckpointError>;

/// Keeps the histories of threads.
///
/// # The rules
///
/// 1. **One statement.** A [`Commit`] is applied as a whole or not at all, and only if the thread's
///    epoch and sequence are the ones it expects, compared inside the write itself.
/// 2. **Idempotent.** The same commit twice is applied once: if the entry at its sequence was written
///    under its epoch, it was saved before, and the answer is the same. The same answers twice are stored
///    once: if all of them are there as they are given ([`InterruptRow::holds`]), they were stored before, and
///    that is a success, also when their questions were closed since.
/// 3. **First write wins.** A record or an answer that is there is never replaced; a record's writer is
///    given what is stored, the writer of another answer is told of the conflict.
/// 4. **Durable first.** Nothing is acknowledged that a power cut could take back.
/// 5. **Deleted stays deleted.** A deleted thread is remembered with an epoch above its last owner's, so no
///    former owner can write it again. Only a claim that expects it so makes it again.
/// 6. **No answer is overlooked.** A thread counts the answers it was given ([`Checkpointer::answer`] adds to the
///    count) and remembers how many its owner has seen (`head.answers` of the last commit). A commit that
///    would set the status to [`Status::Paused`] while there are more than its owner has seen leaves the
///    status at [`Status::Running`] instead, in the same write, and says so in [`Saved::unseen`].
/// 7. **No record is overlooked.** A claim is told all records of the thread in [`Saved::records`], read in the same
///    write: from then on the former owner's are refused, so none can be missing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not keep checkpoints",
    label = "not a `Checkpointer`",
    note = "use `Memory`, `Sqlite`, or implement `Checkpointer` and run the conformance suite against it"
)]
pub trait Checkpointer: Send + Sync + 'static {
    /// Makes a commit durable.
    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>>;

    /// Stores a record unless there is one under its key, and gives what is stored.
    /// Fenced: refused with [`CheckpointError::Fenced`] unless the thread is at this epoch.
    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>>;

    /// Stores answers: all of them, or none with [`CheckpointError::NotOpen`] if one question is closed, answered
    /// or named twice. The same call again is a success and stores nothing (rule 2).
    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Everything needed to open a thread at its head, or none if there never was such a thread.
    /// A deleted thread is a head with status [`Status::Deleted`] and nothing else.
    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>>;

    /// The history needed to read a thread as of an entry: the newest snapshot at or before it, and the entries from there to it.
    fn load_at<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, CheckpointResult<History>>;

    /// Entries with sequence numbers above `after`, oldest first. This is the event log.
    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>>;

    /// Where a thread stands, and what one of its tasks has recorded, without its history; none if there is no such thread.
    /// For those who do a thread's work without owning it.
    fn glance<'a>(
        &'a self,
        thread: &'a ThreadId,
        task: Option<TaskId>,
    ) -> BoxFuture<'a, CheckpointResult<Option<Glance>>>;

    /// Asks the current owner of a thread to cancel its run. The owner learns of it with its next commit.
    fn request_cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Threads whose run did not stop, and paused ones with more answers than their last owner had seen: what a
    /// restarted driver must resume.
    fn unfinished(&self, limit: u32) -> BoxFuture<'_, CheckpointResult<Vec<ThreadId>>>;

    /// Lists threads.
    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ThreadRow>>>;

    /// Lists questions.
    fn interrupts<'a>(
        &'a self,
        query: &'a InterruptQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>>;

    /// Open questions of every tenant whose deadline has passed, earliest deadline first. For drivers, which act on
    /// what a question says of its deadline; people list their own tenant's.
    fn overdue(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<InterruptRow>>>;

    /// Copies a thread up to an entry. The copy is idle and has the same history, bodies sealed again for its name;
    /// questions and records stay behind.
    fn copy<'a>(
        &'a self,
        from: &'a ThreadId,
        upto: Option<Seq>,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Deletes a thread: every row but the memory of its epoch.
    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Drops history that is older than the `keep` newest entries, as far as no reachable entry needs it.
    /// Gives how many entries were dropped.
    fn prune<'a>(&'a self, thread: &'a ThreadId, keep: u32)
    -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Deletes threads that are not running and were not changed since `before`. Gives how many.
    fn expire(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>>;

    /// Everything the thread is, as of one moment: bodies byte for byte as they are stored, [`Archive::checked`].
    /// The thread stays; its owner is not notified, and what it writes afterwards is not in the archive.
    fn export<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Archive>>;

    /// Makes a thread out of an archive: as a whole or not at all, and so that an export gives the same archive again.
    ///
    /// The caller names the thread, as everywhere: an archive comes from outside, and what it says of itself must not
    /// decide whose thread is written. One that does not fit is refused ([`Archive::check_for`]).
    ///
    /// A thread that is there is never changed. If it [is the same](Archive::is_same_thread), the archive was
    /// imported before, and that is the answer; any other is refused with [`CheckpointError::ThreadExists`]. A deleted
    /// thread is made again, its epoch [raised](Archive::epoch_after) where the archive's is not above the remembered one.
    fn import<'a>(
        &'a self,
        thread: &'a ThreadId,
        archive: &'a Archive,
    ) -> BoxFuture<'a, CheckpointResult<()>>;
}

/// Where a thread stands: the numbers that a commit is fenced by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Head {
    /// Who owns it.
    pub epoch: Epoch,
    /// Its newest entry.
    pub seq: Seq,
    /// What it is doing.
    pub status: Status,
    /// How often it was taken over since its newest entry.
    pub recoveries: u32,
    /// How many answers this thread was ever given. Loaded: how many there are; in a commit: how many its
    /// owner has seen. Never part of the fence. See rule 6 of [`Checkpointer`].
    pub answers: u64,
}

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[repr(u8)]
pub enum Status {
    /// Nothing: its last run finished, or it has none.
    #[default]
    Idle = 0,
    /// A run is under way, or was when its process died.
    Running = 1,
    /// It waits for answers, or stands at a breakpoint.
    Paused = 2,
    /// Its last run failed.
    Failed = 3,
    /// Its last run was cancelled.
    Cancelled = 4,
    /// Its last run reached the step limit.
    StepLimit = 5,
    /// It is gone; only its epoch is remembered.
    Deleted = 6,
}

impl Status {
    /// The status that a store kept as a number.
    pub fn from_number(number: u8) -> Option<Self> {
        [
            Status::Idle,
            Status::Running,
            Status::Paused,
            Status::Failed,
            Status::Cancelled,
            Status::StepLimit,
            Status::Deleted,
        ]
        .into_iter()
        .find(|status| *status as u8 == number)
    }

    /// In a word, as it is shown and searched for.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Idle => "idle",
            Status::Running => "running",
            Status::Paused => "paused",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::StepLimit => "step-limit",
            Status::Deleted => "deleted",
        }
    }
}

/// One atomic, fenced write.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The thread.
    pub thread: ThreadId,
    /// Where it must stand: epoch and sequence are compared inside the write. Epoch 0 and sequence 0: it must not exist.
    pub expect: Head,
    /// Where it stands afterwards. A higher epoch than expected is a claim.
    pub head: Head,
    /// When, by the driver's clock.
    pub at: Timestamp,
    /// The entry at `head.seq`; none for a bare claim, which leaves the sequence as it is.
    pub entry: Option<Vec<u8>>,
    /// The whole thread as of this entry, when it is time for one.
    pub snapshot: Option<Vec<u8>>,
    /// Questions that are open now. One that is stored already stays as it is.
    pub asked: Vec<AskedRow>,
    /// Questions that are no longer asked, answered or not.
    pub closed: Vec<InterruptId>,
    /// Records that are no longer needed.
    pub released: Vec<Released>,
    /// The thread's line in the list of threads, at run boundaries.
    pub listing: Option<Listing>,
}

impl Commit {
    /// Whether this takes the thread over.
    pub fn is_claim(&self) -> bool {
        self.head.epoch > self.expect.epoch
    }
}

/// What a store says of a commit it made durable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Saved {
    /// Somebody asked for the run to be cancelled. A claim clears the request.
    pub cancel: bool,
    /// Set when the commit would have paused the thread and answers came that its owner had not seen: the
    /// thread is still running, and its owner continues with these.
    pub unseen: Option<UnseenAnswers>,
    /// After a claim: all records of the thread at that moment, which are those its new owner goes by. The former
    /// one may have been given a record between the load and the claim, and what was acknowledged never runs again.
    pub records: Vec<RecordRow>,
}

/// Answers that came while their thread was running.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnseenAnswers {
    /// How many answers the thread was ever given: seen from now on.
    pub answers: u64,
    /// All questions of the thread that are answered and not closed, those seen before included.
    pub answered: Vec<(InterruptId, AnswerBody)>,
}

/// A question on its way into the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedRow {
    /// Its id.
    pub id: InterruptId,
    /// Its task.
    pub task: TaskId,
    /// Until when an answer is waited for; indexed.
    pub deadline: Option<Timestamp>,
    /// A sealed [`format::Question`].
    pub body: Vec<u8>,
}

/// Records of a task that a commit makes superfluous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released {
    /// The task.
    pub task: TaskId,
    /// Which of its records.
    pub which: ReleasedRecords,
}

/// Which records of a task are superfluous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleasedRecords {
    /// All of them.
    All,
    /// Only its result: what it did in steps stays done.
    Result,
}

/// The key under which a task's own result is recorded. No step can be named so.
pub const RESULT_KEY: &str = "=result";

/// A record on its way into the store.
#[derive(Debug, Clone)]
pub struct RecordWrite {
    /// The thread.
    pub thread: ThreadId,
    /// The epoch it must be at.
    pub epoch: Epoch,
    /// The task.
    pub task: TaskId,
    /// The key within the task.
    pub key: String,
    /// A sealed [`format::Record`].
    pub body: Vec<u8>,
}

/// The line of a thread in the list of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// Its graph.
    pub graph: String,
    /// What the caller wants it found by; none leaves what is there.
    pub metadata: Option<Metadata>,
    /// Its state as a JSON object, if it is small enough to be listed and searched.
    pub values: Option<Value>,
}

impl Listing {
    /// The largest state that is kept in the list of threads, in bytes.
    pub const VALUES_BYTES_MAX: usize = 8 * 1024;
}

/// An answer on its way into the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The question.
    pub interrupt: InterruptId,
    /// What is answered.
    pub body: AnswerBody,
    /// Who answered, for the record; empty if nobody said.
    pub by: String,
    /// When, by the driver's clock.
    pub at: Timestamp,
}

impl Answer {
    /// A question that is named twice among answers, if there is one.
    pub fn named_twice(answers: &[Answer]) -> Option<InterruptId> {
        let mut named = BTreeSet::new();
        let ids = answers.iter().map(|answer| answer.interrupt);
        ids.into_iter().find(|id| !named.insert(*id))
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerBody {
    /// A value.
    Value(Value),
    /// Nobody answered in time, and the question says that the node fails then.
    Expired,
}

/// What is needed to open a thread.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// Where it stands.
    pub head: Head,
    /// Its history from the newest snapshot on.
    pub history: History,
    /// All records that were not released.
    pub records: Vec<RecordRow>,
    /// All questions that are not closed.
    pub interrupts: Vec<InterruptRow>,
}

/// What a glance at a thread shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glance {
    /// Who owns it.
    pub epoch: Epoch,
    /// What it is doing.
    pub status: Status,
    /// Whether its run is asked to stop.
    pub cancel: bool,
    /// Whether it was given answers that its last owner had not seen.
    pub unseen: bool,
    /// What the task has recorded, in the order of keys.
    pub records: Vec<RecordRow>,
}

/// A stretch of a thread's history.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The newest snapshot in it.
    pub snapshot: Option<StoredBody>,
    /// The entries after the snapshot, oldest first; from the first one on if there is no snapshot.
    pub entries: Vec<StoredBody>,
}

/// A sealed body with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBody {
    /// Its sequence number.
    pub seq: Seq,
    /// The bytes.
    pub body: Vec<u8>,
}

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordRow {
    /// The task.
    pub task: TaskId,
    /// The key within the task.
    pub key: String,
    /// A sealed [`format::Record`].
    pub body: Vec<u8>,
}

/// A stored question.
#[derive(Debug, Clone, PartialEq)]
pub struct InterruptRow {
    /// The thread.
    pub thread: ThreadId,
    /// Its id.
    pub id: InterruptId,
    /// The entry it was first asked with: also what its body is sealed for.
    pub seq: Seq,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// A sealed [`format::Question`].
    pub body: Vec<u8>,
    /// Its answer, if it has one.
    pub answer: Option<AnswerBody>,
    /// Who answered.
    pub answered_by: String,
    /// When.
    pub answered_at: Option<Timestamp>,
    /// The entry with which it was no longer asked.
    pub closed: Option<Seq>,
}

impl InterruptRow {
    /// Whether it waits for an answer.
    pub fn is_open(&self) -> bool {
        self.answer.is_none() && self.closed.is_none()
    }

    /// Whether its answer is this one: the same value, of the same giver and time. That is how a caller who lost
    /// the connection is known again; two who say the same in one name and one millisecond are not told apart.
    pub fn holds(&self, answer: &Answer) -> bool {
        let given = (Some(&answer.body), &answer.by, Some(answer.at));
        self.id == answer.interrupt
            && (self.answer.as_ref(), &self.answered_by, self.answered_at) == given
    }
}

/// A line of the list of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRow {
    /// The thread.
    pub thread: ThreadId,
    /// Where it stands.
    pub head: Head,
    /// Its graph.
    pub graph: String,
    /// What it is found by.
    pub metadata: Metadata,
    /// Its state, if it is small enough to be listed.
    pub values: Option<Value>,
    /// When it was made.
    pub created: Timestamp,
    /// When its status last changed.
    pub updated: Timestamp,
}
