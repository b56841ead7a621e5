//! A whole thread as one value, to be moved from one store to another.
//!
//! An archive holds what a store keeps for a thread and nothing that it derives: search terms and indexes are
//! made again where it is imported. Bodies are carried as they are stored, never decoded and encoded again, and all
//! lists are in one order, so two stores hold the same thread if and only if their archives have the same bytes.
//!
//! The rules of an import that every store shares stand here too: what fits, what is the same, which epoch follows.

use serde::{Deserialize, Serialize};

use crate::checkpoint::format::{BodyKind, Extensions};
use crate::checkpoint::seal::Seal;
use crate::checkpoint::{
    AnswerBody, CheckpointResult, Head, InterruptRow, Metadata, RecordRow, Status, StoredBody,
};
use crate::error::{CheckpointError, FormatError};
use crate::ids::{Epoch, InterruptId, Seq, ThreadId, Timestamp};
use crate::node::RECORD_SEQ;
use crate::value::Value;

/// Everything a thread is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Archive {
    /// The thread, whose bodies are sealed for this name and no other.
    pub thread: ThreadId,
    /// Where it stands.
    pub head: Head,
    /// How many of its answers its last owner had seen.
    pub seen: u64,
    /// Whether somebody asked for its run to be cancelled.
    pub cancel: bool,
    /// Its line in the list of threads.
    pub listing: ArchivedListing,
    /// Its log, oldest first.
    pub entries: Vec<ArchivedEntry>,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<StoredBody>,
    /// Records that were not released, by task and key.
    pub records: Vec<RecordRow>,
    /// All its questions, closed ones too, by id.
    pub interrupts: Vec<ArchivedInterrupt>,
    /// What comes later.
    pub extensions: Extensions,
}

/// A thread's line in the list of threads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ArchivedListing {
    /// Its graph; empty for a thread that was only claimed.
    pub graph: String,
    /// What it is found by.
    #[serde(with = "as_json")]
    pub metadata: Metadata,
    /// Its state, if it is small enough to be listed.
    pub values: Option<Value>,
    /// When it was made.
    pub created: Timestamp,
    /// When its status last changed.
    pub updated: Timestamp,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedEntry {
    /// Its number.
    pub seq: Seq,
    /// Under which it was written: how a commit that is tried again knows its own work.
    pub epoch: Epoch,
    /// A sealed [`Entry`](crate::checkpoint::format::Entry).
    pub body: Vec<u8>,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchivedInterrupt {
    /// Its id.
    pub id: InterruptId,
    /// The entry it was first asked with: also what its body is sealed for.
    pub seq: Seq,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// Until when an answer is waited for.
    pub deadline: Option<Timestamp>,
    /// A sealed [`Question`](crate::checkpoint::format::Question).
    pub body: Vec<u8>,
    /// Its answer, if it has one.
    pub answer: Option<ArchivedAnswer>,
    /// The entry with which it was no longer asked.
    pub closed: Option<Seq>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedAnswer {
    /// What is answered.
    pub body: AnswerBody,
    /// Who answered; empty if nobody said.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

impl Archive {
    /// The archive as bytes, with a checksum over all of them.
    pub fn to_bytes(&self) -> Vec<u8> {
        Seal::of_archive().close(self)
    }

    /// Reads an archive. What is damaged, cut short, of a newer program or contradicts itself is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        Seal::of_archive().read::<Self>(bytes)?.checked()
    }

    /// The archive, if every part of it is whole and in its place: what a store says of one that it made.
    pub fn checked(self) -> Result<Self, FormatError> {
        self.check()?;
        Ok(self)
    }

    /// Refuses an archive that cannot become this thread: what a store says before it imports one.
    pub fn check_for(&self, thread: &ThreadId) -> CheckpointResult<()> {
        if self.thread != *thread {
            return Err(CheckpointError::OtherThread {
                thread: thread.clone(),
                found: self.thread.clone(),
            });
        }
        Ok(self.check()?)
    }

    /// The epoch of the imported thread where a deleted one is remembered with `former`.
    ///
    /// The archive's own, so that an epoch means the same before and after the move. But owners of the deleted thread
    /// must stay shut out, and a reader who saw that it is deleted must see that it no longer is.
    pub fn epoch_after(&self, former: Epoch) -> Epoch {
        self.head.epoch.max(former.next())
    }

    /// Whether a stored thread is the one in this archive, so that importing it again has nothing to do. Its epoch may
    /// be higher, as the import itself may have raised it; anybody who claimed it since has left other marks.
    pub fn is_same_thread(&self, stored: &Self) -> bool {
        let mut as_imported = self.clone();
        as_imported.head.epoch = as_imported.head.epoch.max(stored.head.epoch);
        // No store keeps extensions that it may pass over.
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

    /// Nothing lies beyond where the thread stands: the fences compare with that.
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
            .map(|row| (BodyKind::Question, row.seq, &row.body));
        for (kind, seq, body) in entries.chain(snapshots).chain(records).chain(questions) {
            Seal::of_row(kind, &self.thread, seq).open(body)?;
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
    /// A stored question, for a store that keeps the deadline beside it.
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

/// Metadata is JSON of no fixed type, which the content's own encoding cannot hold.
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

/// Stores keep numbers in 63 bits, and a moved thread is taken over many more times.
const COUNT_MAX: u64 = 1 << 62;
