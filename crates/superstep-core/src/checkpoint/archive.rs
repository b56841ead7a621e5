//! A whole thread as one value, for moving it from one store to another.
//!
//! An archive holds what a store keeps for a thread and nothing that it derives: the importing store builds search terms and
//! indexes again. Bodies are carried as they are stored, never decoded and encoded again, and every list has a fixed order, so
//! two stores hold the same thread if and only if their archives have the same bytes.
//!
//! The import rules that every store shares are here too: what fits, what is the same, which epoch follows.

use serde::{Deserialize, Serialize};

use crate::checkpoint::format::{BodyKind, Extensions, RECORD_SEQ};
use crate::checkpoint::seal::Seal;
use crate::checkpoint::{
    AnswerBody, CheckpointResult, Head, InterruptRow, Metadata, RecordRow, Status, StoredBody,
};
use crate::error::{CheckpointError, FormatError};
use crate::ids::{Epoch, InterruptId, Seq, ThreadId, Timestamp};
use crate::value::Value;

/// Everything that a store holds of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Archive {
    /// Id of the thread. Its bodies are sealed for this name and no other.
    pub thread: ThreadId,
    /// Head of the thread.
    pub head: Head,
    /// Number of answers that its last owner had seen.
    pub seen: u64,
    /// Whether a cancel of its run was requested.
    pub cancel: bool,
    /// The thread's row in the list of threads.
    pub listing: ArchivedListing,
    /// The log, oldest entry first.
    pub entries: Vec<ArchivedEntry>,
    /// Sealed snapshots, oldest first.
    pub snapshots: Vec<StoredBody>,
    /// Records that were not released, ordered by task and key.
    pub records: Vec<RecordRow>,
    /// All interrupts, closed ones included, ordered by id.
    pub interrupts: Vec<ArchivedInterrupt>,
    /// Fields that later versions of the format add.
    pub extensions: Extensions,
}

/// A thread's row in the list of threads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ArchivedListing {
    /// Name of the thread's graph; empty for a thread that was only claimed.
    pub graph: String,
    /// What the thread can be searched by.
    #[serde(with = "as_json")]
    pub metadata: Metadata,
    /// State of the root graph, if it is small enough to be listed.
    pub values: Option<Value>,
    /// When the thread was created.
    pub created: Timestamp,
    /// When its status, or this row, last changed.
    pub updated: Timestamp,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedEntry {
    /// Sequence number of the entry.
    pub seq: Seq,
    /// Epoch under which the entry was written. A retried commit recognizes its own entry by it.
    pub epoch: Epoch,
    /// The entry itself: a sealed [`Entry`](crate::checkpoint::format::Entry).
    pub body: Vec<u8>,
}

/// An interrupt of an archived thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchivedInterrupt {
    /// Id of the interrupt.
    pub id: InterruptId,
    /// Entry with which the interrupt was first raised; its body is sealed for this number.
    pub seq: Seq,
    /// When the interrupt was first raised.
    pub asked_at: Timestamp,
    /// When the interrupt is overdue; `None` if it never is.
    pub deadline: Option<Timestamp>,
    /// The interrupt itself: a sealed [`InterruptRecord`](crate::checkpoint::format::InterruptRecord).
    pub body: Vec<u8>,
    /// The answer, if there is one.
    pub answer: Option<ArchivedAnswer>,
    /// Entry with which the interrupt was closed; `None` while it is not.
    pub closed: Option<Seq>,
}

/// The answer to an archived interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedAnswer {
    /// What was answered: a value, or that the deadline passed.
    pub body: AnswerBody,
    /// Name of the person who answered; empty if the caller did not say.
    pub by: String,
    /// When the interrupt was answered.
    pub at: Timestamp,
}

impl Archive {
    /// Returns the archive as bytes, with a checksum over all of them.
    pub fn to_bytes(&self) -> Vec<u8> {
        Seal::of_archive().close(self)
    }

    /// Decodes an archive. Refuses bytes that are corrupt, truncated, written by a newer program or inconsistent.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        Seal::of_archive().read::<Self>(bytes)?.checked()
    }

    /// Returns the archive if every part of it is intact and in its place. A store calls this on an archive that it exported.
    pub fn checked(self) -> Result<Self, FormatError> {
        self.check()?;
        Ok(self)
    }

    /// Refuses an archive that cannot become this thread. A store calls this before it imports one.
    pub fn check_for(&self, thread: &ThreadId) -> CheckpointResult<()> {
        if self.thread != *thread {
            return Err(CheckpointError::OtherThread {
                thread: thread.clone(),
                found: self.thread.clone(),
            });
        }
        Ok(self.check()?)
    }

    /// Returns the epoch of the imported thread, where the store remembers a deleted one with the epoch `former`.
    ///
    /// Usually it is the archive's own, so that an epoch means the same before and after the move. But owners of the deleted
    /// thread must stay fenced out, and a reader who saw that it was deleted must see that it no longer is.
    pub fn epoch_after(&self, former: Epoch) -> Epoch {
        self.head.epoch.max(former.next())
    }

    /// Whether a stored thread is the one in this archive, so that there is nothing to import. Its epoch may be higher, because
    /// the import itself may have raised it; a process that claimed the thread since has left other changes.
    pub fn is_same_thread(&self, stored: &Self) -> bool {
        let mut as_imported = self.clone();
        as_imported.head.epoch = as_imported.head.epoch.max(stored.head.epoch);
        // Stores do not keep the extensions of an archive.
        as_imported.extensions = stored.extensions.clone();
        as_imported == *stored
    }

    fn check(&self) -> Result<(), FormatError> {
        self.extensions.check(&[])?;
        self.check_head()?;
        self.check_order()?;
        self.check_places()?;
        self.check_bodies()
    }

    fn check_head(&self) -> Result<(), FormatError> {
        if self.head.status == Status::Deleted {
            return Err(senseless("the thread is a deleted one"));
        }
        let Head {
            epoch,
            seq,
            answers,
            ..
        } = self.head;
        if [epoch.0, seq.0, answers, self.seen]
            .iter()
            .any(|&count| count > COUNT_MAX)
        {
            return Err(senseless("a number leaves no room to go on counting"));
        }
        let newest = self.entries.last().map_or(Seq(0), |entry| entry.seq);
        if newest != seq {
            return Err(senseless("the newest entry is not where the thread stands"));
        }
        Ok(())
    }

    fn check_order(&self) -> Result<(), FormatError> {
        let is_ordered = self.entries.is_sorted_by(|a, b| a.seq < b.seq)
            && self.snapshots.is_sorted_by(|a, b| a.seq < b.seq)
            && self
                .records
                .is_sorted_by(|a, b| (a.task, &a.key) < (b.task, &b.key))
            && self.interrupts.is_sorted_by(|a, b| a.id < b.id);
        match is_ordered {
            true => Ok(()),
            false => Err(senseless("its parts are out of order")),
        }
    }

    /// Checks that nothing lies beyond the head, because the fences compare with it.
    fn check_places(&self) -> Result<(), FormatError> {
        let Head { epoch, seq, .. } = self.head;
        let is_within = self.entries.iter().all(|entry| entry.epoch <= epoch)
            && self.snapshots.iter().all(|snapshot| snapshot.seq <= seq)
            && (self.interrupts.iter())
                .all(|question| question.seq.max(question.closed.unwrap_or_default()) <= seq);
        match is_within {
            true => Ok(()),
            false => Err(senseless("a part lies beyond where the thread stands")),
        }
    }

    fn check_bodies(&self) -> Result<(), FormatError> {
        let entries = self
            .entries
            .iter()
            .map(|row| (BodyKind::Entry, row.seq, &row.body));
        let snapshots = self
            .snapshots
            .iter()
            .map(|row| (BodyKind::Snapshot, row.seq, &row.body));
        let records = self
            .records
            .iter()
            .map(|row| (BodyKind::Record, RECORD_SEQ, &row.body));
        let questions = self
            .interrupts
            .iter()
            .map(|row| (BodyKind::Interrupt, row.seq, &row.body));
        for (kind, seq, body) in entries.chain(snapshots).chain(records).chain(questions) {
            Seal::of_row(kind, &self.thread, seq).check(body)?;
        }
        Ok(())
    }
}

fn senseless(why: &str) -> FormatError {
    FormatError::ArchiveContent {
        why: why.to_owned(),
    }
}

impl ArchivedInterrupt {
    /// Converts a stored interrupt, for a store that keeps the deadline in a separate column.
    pub fn new(row: InterruptRow, deadline: Option<Timestamp>) -> Self {
        let (by, at) = (row.answered_by, row.answered_at.unwrap_or_default());
        Self {
            id: row.id,
            seq: row.seq,
            asked_at: row.asked_at,
            deadline,
            body: row.body,
            answer: row.answer.map(|body| ArchivedAnswer { body, by, at }),
            closed: row.closed,
        }
    }
}

/// Metadata is JSON without a fixed type, which postcard cannot hold.
mod as_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::checkpoint::Metadata;
    use crate::value::Value;

    pub(super) fn serialize<S: Serializer>(fields: &Metadata, to: S) -> Result<S::Ok, S::Error> {
        let json = Value::encode_unchecked(fields).map_err(serde::ser::Error::custom)?;
        json.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Metadata, D::Error> {
        let json = Value::deserialize(from)?;
        json.decode().map_err(serde::de::Error::custom)
    }
}

/// Stores keep numbers in 63 bits, and a moved thread will be claimed many more times.
const COUNT_MAX: u64 = 1 << 62;
