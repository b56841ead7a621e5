//! What a thread is on disk, and the interface to the stores that hold it.
//!
//! A [`Checkpointer`] stores bytes and compares numbers; it knows nothing about graphs. The [`Commit`] it receives holds
//! everything it needs to decide, so an implementation is SQL and little else.

mod archive;
mod archive_store;
pub mod format;
mod memory;
mod query;
mod seal;
mod sizes;

pub use archive::{Archive, ArchivedAnswer, ArchivedEntry, ArchivedInterrupt, ArchivedListing};
pub use archive_store::{ArchiveCheckpointer, ArchiveStore, ArchiveStoreResult};
pub use memory::Memory;
pub use query::{Filter, FilterValue, InterruptQuery, Metadata, Page, ThreadQuery, ThreadSort};
pub use sizes::{SizeGroup, SizeQuery, SizeRow, StoredSize};

use std::collections::BTreeSet;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

use crate::error::CheckpointError;
use crate::ids::{Epoch, InterruptId, Seq, TaskId, ThreadId, Timestamp};
use crate::value::Value;

/// A boxed future, so that the traits of this crate can be used as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Result of a call to a checkpointer.
pub type CheckpointResult<T> = Result<T, CheckpointError>;

/// Stores the histories of threads.
///
/// A store that only keeps bytes, such as files, becomes one with [`ArchiveCheckpointer`].
///
/// # The rules
///
/// 1. **One statement.** A [`Commit`] is applied as a whole or not at all, and only if the thread's epoch and sequence are the
///    expected ones, compared inside the write itself.
/// 2. **Idempotent.** The same commit twice is applied once: if the entry at its sequence was written under its epoch and has
///    the same bytes, it was saved before, and the result is the same. With other bytes it is another commit, and is refused
///    with [`CheckpointError::Fenced`]: two processes that start a thread at once use the same epoch. The same answers twice are stored once: if all of them are stored as they are
///    given ([`InterruptRow::holds`]), the call succeeds, even if their interrupts were closed since.
/// 3. **First write wins.** A stored record or answer is never replaced. The writer of another record gets the stored one back;
///    the writer of another answer gets an error.
/// 4. **Durable first.** Nothing is acknowledged that a power cut could take back.
/// 5. **Deleted stays deleted.** Deleting twice is no error. The store remembers a deleted thread with an epoch above its last owner's, so no former owner
///    can write it again. Only a claim that expects that epoch creates it again, or [`Checkpointer::create`] and
///    [`Checkpointer::copy`] with a higher one. [`Checkpointer::forget`] ends this.
/// 6. **No answer is overlooked.** A thread counts the answers it received ([`Checkpointer::answer`] adds to the count) and
///    remembers how many its owner has seen (`head.answers` of the last commit). A commit that would set the status to
///    [`Status::Paused`] while there are more than its owner has seen leaves the status at [`Status::Running`] instead, in the
///    same write, and reports it in [`Saved::unseen`].
/// 7. **No record is overlooked.** A claim returns all records of the thread in [`Saved::records`], read in the same write:
///    from then on the former owner's are refused, so none can be missing.
/// 8. **A lease fences nobody.** A claim sets the thread's lease ([`Commit::lease`]), its owner renews it
///    ([`Checkpointer::renew`]), and [`Checkpointer::unfinished`] returns it, so that a recovering process leaves the threads of
///    living ones alone. No write is refused because of a lease.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not keep checkpoints",
    label = "not a `Checkpointer`",
    note = "use `Memory`, `Sqlite`, or implement `Checkpointer` and run the conformance suite against it"
)]
#[doc(alias = "BaseCheckpointSaver")]
pub trait Checkpointer: Send + Sync + 'static {
    /// Creates a thread on which nothing has happened: idle, at sequence 0, with a row in the list. Returns false and changes
    /// nothing if the thread exists, also if a repeated call finds what the first one created. A deleted thread is created again,
    /// with an epoch above the remembered one.
    ///
    /// The first run on the thread expects the head that this creates, and keeps what the row says: its metadata, its lifetime.
    fn create<'a>(
        &'a self,
        thread: &'a ThreadId,
        new: &'a NewThread,
    ) -> BoxFuture<'a, CheckpointResult<bool>>;

    /// Changes what the row of a thread says besides its state. Returns false if there is no such thread, or it is deleted.
    fn annotate<'a>(
        &'a self,
        thread: &'a ThreadId,
        change: &'a ThreadAnnotation,
    ) -> BoxFuture<'a, CheckpointResult<bool>>;

    /// Makes a commit durable.
    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>>;

    /// Stores a record unless there is one under its key, and returns the stored one. Fenced: refused with
    /// [`CheckpointError::Fenced`] unless the thread is at this epoch.
    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>>;

    /// Stores answers: all of them, or none with [`CheckpointError::NotOpen`] if one interrupt is closed, answered or named
    /// twice. Repeating the same call succeeds and stores nothing (rule 2).
    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Stores answers like [`Checkpointer::answer`], then loads the thread like [`Checkpointer::load`], answers included. Loads nothing
    /// if the answers are refused. Default: one call after the other. A store behind a network can save a round trip.
    fn answer_and_load<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        Box::pin(async move {
            self.answer(thread, answers).await?;
            self.load(thread).await
        })
    }

    /// Loads everything needed to open a thread at its head; `None` if there never was such a thread. A deleted thread is a
    /// head with status [`Status::Deleted`] and nothing else.
    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>>;

    /// Loads the history needed to read a thread as of an entry: the newest snapshot at or before it, and the entries from
    /// there to it.
    fn load_at<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, CheckpointResult<History>>;

    /// Returns at most `limit` entries with sequence numbers above `after`, oldest first. This is the event log.
    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>>;

    /// Returns the status of a thread, and what one of its tasks has recorded, without the history; `None` if there is no such
    /// thread. For workers that execute a thread's tasks without owning it.
    fn glance<'a>(
        &'a self,
        thread: &'a ThreadId,
        task: Option<TaskId>,
    ) -> BoxFuture<'a, CheckpointResult<Option<Glance>>>;

    /// Asks the current owner of a thread to cancel its run. The owner learns of it with its next commit.
    fn request_cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Lists threads that a restarted driver must resume: those whose run did not stop, and paused ones with more answers than
    /// their last owner had seen. At most `limit` of them, ordered by tenant and name, those behind `after` if it is given.
    fn unfinished<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<UnfinishedThread>>>;

    /// Sets the leases of running threads, each only if the thread is still at its owner's epoch; skips the others. A time that
    /// has passed ends a lease.
    fn renew<'a>(
        &'a self,
        owned: &'a [(ThreadId, Epoch)],
        lease: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Lists the threads that match a query, in its order. Default: most recently changed first.
    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ThreadRow>>>;

    /// Returns how many threads match a query, on all pages.
    fn count_threads<'a>(&'a self, query: &'a ThreadQuery) -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Sums up how many bytes threads take, largest first; rows of equal size by tenant, graph and thread. Reads the length of each body
    /// and not the body, which may still take minutes for millions of threads.
    fn sizes<'a>(&'a self, query: &'a SizeQuery) -> BoxFuture<'a, CheckpointResult<Vec<SizeRow>>>;

    /// Lists the interrupts that match a query, oldest first.
    fn interrupts<'a>(
        &'a self,
        query: &'a InterruptQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>>;

    /// Lists open interrupts of every tenant whose deadline has passed, earliest deadline first, then in the order of threads and ids;
    /// with `after`, those behind it in this order. For drivers, which apply what an interrupt specifies for its deadline; people list
    /// those of their own tenant.
    fn overdue<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a OverdueCursor>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>>;

    /// Copies a thread up to an entry. The copy is idle and has the same history, with bodies sealed again for its name, and the
    /// same row in the list, lifetime included; interrupts and records are not copied.
    fn copy<'a>(
        &'a self,
        from: &'a ThreadId,
        upto: Option<Seq>,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Deletes a thread: every row except its epoch, which the store remembers.
    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Forgets a deleted thread, its epoch included. Only for names that are never used again: a former owner could create the
    /// thread again. Does nothing if the thread is not deleted.
    fn forget<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Drops history older than the `keep` newest entries, as far as no reachable entry needs it. Returns how many entries were
    /// dropped.
    fn prune<'a>(&'a self, thread: &'a ThreadId, keep: u32)
    -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Deletes at most `limit` threads that are not running and were not changed since `before`. Returns how many.
    fn expire(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>>;

    /// Lists at most `limit` threads of every tenant that are not running and whose lifetime is over at `now`, earliest end first, then in
    /// the order of threads; with `after`, those behind it in this order. Changes nothing: the caller applies what each thread specifies
    /// for the end of its lifetime, and continues behind those that have to wait.
    fn expired<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a ExpiredThread>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ExpiredThread>>>;

    /// Exports everything the thread is, as of one moment: bodies byte for byte as they are stored, [`Archive::checked`]. The
    /// thread stays; its owner is not notified, and what it writes afterwards is not in the archive. An archive has no lifetime:
    /// the store that imports it decides how long it keeps its threads.
    fn export<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Archive>>;

    /// Creates a thread from an archive: as a whole or not at all, and so that an export returns the same archive again.
    ///
    /// The caller names the thread, as everywhere: an archive comes from outside, and its content must not decide which thread
    /// is written. An archive of another thread is refused ([`Archive::check_for`]).
    ///
    /// An existing thread is never changed. If it [is the same](Archive::is_same_thread), the archive was imported before, and
    /// the call succeeds; any other is refused with [`CheckpointError::ThreadExists`]. A deleted thread is created again, with
    /// its epoch [raised](Archive::epoch_after) where the archive's is not above the remembered one.
    fn import<'a>(
        &'a self,
        thread: &'a ThreadId,
        archive: &'a Archive,
    ) -> BoxFuture<'a, CheckpointResult<()>>;
}

/// The head of a thread: the numbers by which commits are fenced, and its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Head {
    /// Epoch of the current owner. Compared by the fence.
    pub epoch: Epoch,
    /// Sequence number of the newest entry. Compared by the fence.
    pub seq: Seq,
    /// What the thread is doing.
    pub status: Status,
    /// How often the thread was recovered since its newest entry.
    pub recoveries: u32,
    /// Number of answers that the thread ever received. In a loaded head: how many there are; in a commit: how many its owner
    /// has seen. Never part of the fence. See rule 6 of [`Checkpointer`].
    pub answers: u64,
}

/// What a thread is doing. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[repr(u8)]
pub enum Status {
    /// Nothing: its last run finished, or it has none.
    #[default]
    Idle = 0,
    /// A run is in progress, or was when its process died.
    Running = 1,
    /// The thread waits for answers, or stopped at a breakpoint.
    Paused = 2,
    /// Its last run failed.
    Failed = 3,
    /// Its last run was cancelled.
    Cancelled = 4,
    /// Its last run reached the step limit.
    StepLimit = 5,
    /// The thread is deleted; only its epoch is remembered.
    Deleted = 6,
}

impl Status {
    /// Returns the status for a stored number; `None` for an unknown one.
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

    /// Returns the status as one word, as it is shown and searched for.
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

/// A thread to be created, see [`Checkpointer::create`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewThread {
    /// Name of the thread's graph; empty if only the first run decides it.
    pub graph: String,
    /// What the thread can be searched by.
    pub metadata: Metadata,
    /// How long the thread is kept without a change; `None` for no limit.
    pub lifetime: Option<ThreadLifetime>,
    /// When the thread is created.
    pub at: Timestamp,
}

/// A change of a thread's row besides its state, see [`Checkpointer::annotate`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadAnnotation {
    /// Fields that are merged into the metadata: each replaces the one of its name.
    pub metadata: Metadata,
    /// Name of the graph, for a thread that has none yet; `None` keeps it. A thread that has one keeps it in any case.
    pub graph: Option<String>,
    /// The new lifetime: `Some(None)` removes it, `None` keeps it.
    pub lifetime: Option<Option<ThreadLifetime>>,
    /// When the row changes. The lifetime counts from then on.
    pub at: Timestamp,
}

impl ThreadAnnotation {
    /// Applies the change to the parts of a row. The store also sets when the row last changed.
    pub fn apply(
        &self,
        graph: &mut String,
        metadata: &mut Metadata,
        lifetime: &mut Option<ThreadLifetime>,
    ) {
        if let Some(name) = &self.graph
            && graph.is_empty()
        {
            graph.clone_from(name);
        }
        let fields = self.metadata.iter();
        metadata.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
        if let Some(new) = self.lifetime {
            *lifetime = new;
        }
    }
}

/// How long a thread is kept, and what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLifetime {
    /// Milliseconds since the thread last changed. Stores keep 63 bits.
    pub ms: u64,
    /// What happens at the end.
    pub at_end: AtLifetimeEnd,
}

impl ThreadLifetime {
    /// Whether the lifetime of a thread that was last changed at this time is over.
    pub fn is_over(&self, updated: Timestamp, now: Timestamp) -> bool {
        self.ends(updated) <= now
    }

    /// Returns when the lifetime of a thread ends that was last changed at this time.
    pub fn ends(&self, updated: Timestamp) -> Timestamp {
        updated.plus_ms(self.ms)
    }
}

/// What happens to a thread when its lifetime is over. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum AtLifetimeEnd {
    /// The thread is deleted.
    #[default]
    Delete = 0,
    /// The thread keeps its newest state, and loses the history that this state does not need. Its lifetime is removed.
    KeepLatest = 1,
}

impl AtLifetimeEnd {
    /// Returns the value for a stored number; `None` for an unknown one.
    pub fn from_number(number: u8) -> Option<Self> {
        [AtLifetimeEnd::Delete, AtLifetimeEnd::KeepLatest]
            .into_iter()
            .find(|at_end| *at_end as u8 == number)
    }
}

/// A thread whose lifetime is over, and its place in the list of [`Checkpointer::expired`]. The fields are in the order by which the list
/// is sorted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpiredThread {
    /// When its lifetime ended.
    pub ended: Timestamp,
    /// Id of the thread.
    pub thread: ThreadId,
    /// What is to happen to it.
    pub at_end: AtLifetimeEnd,
}

/// One atomic, fenced write.
#[derive(Debug, Clone)]
pub struct Commit {
    /// Thread that the commit writes.
    pub thread: ThreadId,
    /// Expected head: the store compares epoch and sequence inside the write. Epoch 0 and sequence 0: the thread must not
    /// exist.
    pub expect: Head,
    /// Head after the commit. A higher epoch than expected makes it a claim.
    pub head: Head,
    /// Time of the commit, by the driver's clock.
    pub at: Timestamp,
    /// Sealed [`format::Entry`] at `head.seq`; `None` for a bare claim, which leaves the sequence as it is.
    pub entry: Option<Vec<u8>>,
    /// Sealed [`format::Snapshot`] as of this entry, if one is due.
    pub snapshot: Option<Vec<u8>>,
    /// Interrupts that are open now. One that is already stored stays as it is.
    pub asked: Vec<AskedRow>,
    /// Interrupts that are no longer asked, answered or not.
    pub closed: Vec<InterruptId>,
    /// Records that are no longer needed and can be deleted.
    pub released: Vec<Released>,
    /// The thread's row in the list of threads; set by every claim, and when a run stops.
    pub listing: Option<Listing>,
    /// Of a claim: until when its owner holds the thread, by the driver's clock. `None`: the owner does not say whether it is
    /// alive, and the thread may be recovered at any time. Other commits leave the lease as it is.
    pub lease: Option<Timestamp>,
}

impl Commit {
    /// Whether the commit takes the thread over from its owner.
    pub fn is_claim(&self) -> bool {
        self.head.epoch > self.expect.epoch
    }
}

/// What a store returns for a commit that it made durable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Saved {
    /// Whether a cancel of the run was requested. A claim clears the request.
    pub cancel: bool,
    /// Set if the commit would have paused the thread but answers arrived that its owner had not seen: the thread is still
    /// running, and its owner continues with these.
    pub unseen: Option<UnseenAnswers>,
    /// After a claim: all records of the thread at that moment, which its new owner goes by. The former owner may have stored a
    /// record between the load and the claim, and what was acknowledged never runs again.
    pub records: Vec<RecordRow>,
}

/// Answers that arrived while their thread was running.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnseenAnswers {
    /// Number of answers that the thread ever received. The owner counts them as seen from now on.
    pub answers: u64,
    /// All interrupts of the thread that are answered and not closed, including those seen before.
    pub answered: Vec<(InterruptId, AnswerBody)>,
}

/// An interrupt to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedRow {
    /// Id of the interrupt.
    pub id: InterruptId,
    /// Task that raised the interrupt.
    pub task: TaskId,
    /// When the interrupt is overdue; indexed. `None` if it never is.
    pub deadline: Option<Timestamp>,
    /// The interrupt itself: a sealed [`format::InterruptRecord`].
    pub body: Vec<u8>,
}

/// Records of a task that a commit makes obsolete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released {
    /// Task whose records are released.
    pub task: TaskId,
    /// Which of the task's records are released.
    pub which: ReleasedRecords,
}

/// Which records of a task are obsolete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleasedRecords {
    /// All records of the task, those of its steps included.
    All,
    /// Only the task's result; the records of its steps stay.
    Result,
}

/// Key under which a task's own result is recorded. No step can have this name.
pub const RESULT_KEY: &str = "=result";

/// A record to be stored.
#[derive(Debug, Clone)]
pub struct RecordWrite {
    /// Thread that the record belongs to.
    pub thread: ThreadId,
    /// Epoch at which the thread must be; otherwise the store refuses the record.
    pub epoch: Epoch,
    /// Task that the record belongs to.
    pub task: TaskId,
    /// Key within the task: of a step, or [`RESULT_KEY`].
    pub key: String,
    /// The record itself: a sealed [`format::Record`].
    pub body: Vec<u8>,
}

/// The row of a thread in the list of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// Name of the thread's graph.
    pub graph: String,
    /// What the thread can be searched by, set by the caller; `None` keeps the stored one.
    pub metadata: Option<Metadata>,
    /// State of the root graph as a JSON object, if it is small enough to be listed and searched.
    pub values: Option<Value>,
}

impl Listing {
    /// Largest state that is stored in the list of threads, in bytes.
    pub const VALUES_BYTES_MAX: usize = 8 * 1024;
}

/// An answer to be stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Interrupt that is answered.
    pub interrupt: InterruptId,
    /// What is answered: a value, or that the deadline passed.
    pub body: AnswerBody,
    /// Name of the person who answered, for the record; empty if the caller did not say.
    pub by: String,
    /// Time of the answer, by the driver's clock.
    pub at: Timestamp,
}

impl Answer {
    /// Returns an interrupt that is named twice among these answers, if there is one.
    pub fn named_twice(answers: &[Answer]) -> Option<InterruptId> {
        let mut named = BTreeSet::new();
        let ids = answers.iter().map(|answer| answer.interrupt);
        ids.into_iter().find(|id| !named.insert(*id))
    }
}

/// The content of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerBody {
    /// A value, which the node decodes.
    Value(Value),
    /// No answer arrived in time, and the interrupt says that the node fails then.
    Expired,
}

/// Everything needed to open a thread.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// Head of the thread.
    pub head: Head,
    /// History from the newest snapshot on.
    pub history: History,
    /// All records that were not released.
    pub records: Vec<RecordRow>,
    /// All interrupts that are not closed.
    pub interrupts: Vec<InterruptRow>,
}

/// The status of a thread, without its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glance {
    /// Epoch of the current owner.
    pub epoch: Epoch,
    /// What the thread is doing.
    pub status: Status,
    /// Whether a cancel of its run was requested.
    pub cancel: bool,
    /// Whether answers arrived that its last owner had not seen.
    pub unseen: bool,
    /// Until when the owner of a running thread holds it; `None` if the owner did not say, or the thread does not run.
    pub lease: Option<Timestamp>,
    /// Records of the requested task, ordered by key.
    pub records: Vec<RecordRow>,
}

/// A thread that a restarted driver must resume, unless its owner is alive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnfinishedThread {
    /// Id of the thread.
    pub thread: ThreadId,
    /// Epoch of its last owner.
    pub epoch: Epoch,
    /// Until when its owner holds the thread; `None` if the owner did not say, or the thread is paused.
    pub lease: Option<Timestamp>,
}

/// A part of a thread's history.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Newest snapshot in this part, if there is one.
    pub snapshot: Option<StoredBody>,
    /// Entries after the snapshot, oldest first; from the first entry on if there is no snapshot.
    pub entries: Vec<StoredBody>,
}

/// A sealed body with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBody {
    /// Sequence number of the entry that the body belongs to.
    pub seq: Seq,
    /// The sealed bytes of the entry or snapshot.
    pub body: Vec<u8>,
}

/// A record of a task, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordRow {
    /// Task that the record belongs to.
    pub task: TaskId,
    /// Key within the task: of a step, or [`RESULT_KEY`].
    pub key: String,
    /// The record itself: a sealed [`format::Record`].
    pub body: Vec<u8>,
}

/// A place in the list of [overdue](Checkpointer::overdue) interrupts: that of an interrupt in it. The fields are in the order by which
/// the list is sorted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OverdueCursor {
    /// Deadline of the interrupt.
    pub deadline: Timestamp,
    /// Thread that raised it.
    pub thread: ThreadId,
    /// Its id.
    pub id: InterruptId,
}

/// An interrupt with its answer, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct InterruptRow {
    /// Thread that raised the interrupt.
    pub thread: ThreadId,
    /// Id of the interrupt, stable across retries.
    pub id: InterruptId,
    /// Entry with which the interrupt was first raised; its body is sealed for this number.
    pub seq: Seq,
    /// When the interrupt was first raised.
    pub asked_at: Timestamp,
    /// The interrupt itself: a sealed [`format::InterruptRecord`].
    pub body: Vec<u8>,
    /// The answer; `None` if there is none yet.
    pub answer: Option<AnswerBody>,
    /// Name of the person who answered; empty without an answer, or if the caller did not say.
    pub answered_by: String,
    /// When the interrupt was answered.
    pub answered_at: Option<Timestamp>,
    /// Entry with which the interrupt was closed; `None` while it is not.
    pub closed: Option<Seq>,
}

impl InterruptRow {
    /// Whether the interrupt waits for an answer.
    pub fn is_open(&self) -> bool {
        self.answer.is_none() && self.closed.is_none()
    }

    /// Whether the stored answer is this one: the same value, from the same person, at the same time. This recognizes a caller
    /// that lost its connection and repeats the call. Two callers that give the same answer in one name and one millisecond are
    /// not distinguished.
    pub fn holds(&self, answer: &Answer) -> bool {
        let given = (Some(&answer.body), &answer.by, Some(answer.at));
        self.id == answer.interrupt
            && (self.answer.as_ref(), &self.answered_by, self.answered_at) == given
    }
}

/// A row of the list of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRow {
    /// Id of the thread.
    pub thread: ThreadId,
    /// Head of the thread.
    pub head: Head,
    /// Name of the thread's graph.
    pub graph: String,
    /// What the thread can be searched by.
    pub metadata: Metadata,
    /// State of the root graph, if it is small enough to be listed ([`Listing::VALUES_BYTES_MAX`]).
    pub values: Option<Value>,
    /// When the thread was created.
    pub created: Timestamp,
    /// When its status, or this row, last changed.
    pub updated: Timestamp,
    /// How long the thread is kept after `updated`; `None` for no limit.
    pub lifetime: Option<ThreadLifetime>,
}
