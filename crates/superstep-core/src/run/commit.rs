//! Turns what changed into one fenced write.

use std::collections::BTreeMap;

use crate::checkpoint::format::{
    Body, Change, Entry, EntryKind, Extensions, FrameOpened, InterruptRecord, Snapshot, Stop,
};
use crate::checkpoint::{
    AskedRow, Commit, Head, History, Listing, Released, Status, UnseenAnswers,
};
use crate::ids::{Epoch, FramePath, InterruptId};
use crate::run::live::TaskActivity;
use crate::run::phase::Phase;
use crate::run::{Durability, Outcome, Run};

/// What changed and is not yet in a commit.
#[derive(Default)]
pub(super) struct Pending {
    /// Epoch with which the next commit claims the thread, if it does.
    pub(super) claim: Option<Epoch>,
    pub(super) recoveries: u32,
    pub(super) kind: Option<EntryKind>,
    pub(super) changes: Vec<Change>,
    /// Subgraphs that were entered and are not in an entry yet.
    pub(super) opened: BTreeMap<FramePath, FrameOpened>,
    pub(super) closed: Vec<InterruptId>,
    pub(super) released: Vec<Released>,
    /// Whether a task waits for a record to be released before it runs.
    pub(super) frees: bool,
}

impl Pending {
    /// Adds a change. The entry gets the weightiest kind among its changes.
    pub(super) fn push(&mut self, kind: EntryKind, change: Change) {
        let weight = |kind: EntryKind| match kind {
            EntryKind::Stop => 0,
            EntryKind::Attempt => 1,
            EntryKind::Step => 2,
            EntryKind::Update | EntryKind::Fork => 3,
            EntryKind::Input | EntryKind::Resume => 4,
        };
        if self.kind.is_none_or(|is| weight(kind) > weight(is)) {
            self.kind = Some(kind);
        }
        self.changes.push(change);
    }

    pub(super) fn has_entry(&self) -> bool {
        !self.changes.is_empty() || self.frees
    }

    /// Whether nothing may start before this is stored.
    pub(super) fn goes_first(&self) -> bool {
        self.claim.is_some() || self.frees
    }
}

/// A commit that the driver is making durable.
pub(super) struct Saving {
    pub(super) head: Head,
    /// Outcome of the run once the commit is durable.
    pub(super) outcome: Option<Outcome>,
    /// Whether the commit claims the thread.
    pub(super) claims: bool,
}

/// How much there is to read since the last snapshot, in bytes.
pub(super) struct LogSize {
    since_snapshot: usize,
    snapshot: usize,
    /// Whether most of what was written before the last snapshot was still there when it was taken.
    grows: bool,
    /// Whether the stored data is of an older version of its state. It must not be mixed with newer data.
    outdated: bool,
}

/// Below this, a snapshot would cost more than reading the entries.
const SNAPSHOT_BYTES_MIN: usize = 8 * 1024;
/// How many times the size of the last snapshot is written before the next one, while the state mostly grows. Reading such
/// entries costs little more than reading a snapshot of them, and each snapshot is a copy of everything.
const APART_WHEN_GROWING: usize = 3;

impl LogSize {
    pub(super) fn of(history: &History, outdated: bool) -> Self {
        Self {
            since_snapshot: history.entries.iter().map(|entry| entry.body.len()).sum(),
            snapshot: history
                .snapshot
                .as_ref()
                .map_or(0, |snapshot| snapshot.body.len()),
            grows: false,
            outdated,
        }
    }

    /// Whether a snapshot is due: the entries since the last one are larger than it, or several times as large while the state
    /// mostly grows.
    fn wants_snapshot(&self) -> bool {
        let apart = if self.grows { APART_WHEN_GROWING } else { 1 };
        self.outdated || self.since_snapshot > apart * self.snapshot.max(SNAPSHOT_BYTES_MIN)
    }

    fn after_snapshot(&self, bytes: usize) -> Self {
        Self {
            since_snapshot: 0,
            snapshot: bytes,
            grows: bytes.saturating_sub(self.snapshot) > self.since_snapshot / 2,
            outdated: false,
        }
    }
}

impl Run {
    pub(super) fn must_save(&self) -> bool {
        let waits_for_stop = self.options.durability == Durability::Exit;
        self.phase.is_stopping()
            || self.pending.goes_first()
            || (self.pending.has_entry() && !waits_for_stop)
    }

    /// Gives the driver one commit with everything that is pending.
    ///
    /// The commit names the head it expects (`epoch` and `seq`), and the store compares both inside the write, so a process
    /// that lost the thread cannot commit, whatever it believes. A claim without an entry raises the epoch alone: it fences the
    /// former owner before this run acts, and leaves no trace in the log.
    pub(super) fn save(&mut self) {
        // A run with an id is stored when it starts, so that its caller finds it by that id whatever happens to it.
        let begins_by_id = self.pending.claim.is_some() && self.options.run.is_some();
        let waits_for_stop = self.options.durability == Durability::Exit && !begins_by_id;
        let bare_claim = !self.phase.is_stopping()
            && !self.pending.frees
            && (!self.pending.has_entry() || waits_for_stop);
        let commit = if bare_claim {
            self.claim()
        } else {
            self.commit()
        };
        let stop = self.phase.stop().filter(|_| !bare_claim);
        let outcome = stop.map(|stop| self.outcome(stop));
        if outcome.is_some() {
            // Not stopping until the store accepts the stop: a cancel that arrives meanwhile still counts.
            self.phase = Phase::Running;
        }
        self.saving = Some(Saving {
            head: commit.head,
            outcome,
            claims: commit.is_claim(),
        });
        self.queue
            .push_back(crate::run::Step::Save(Box::new(commit)));
    }

    /// Claims the thread without an entry.
    fn claim(&mut self) -> Commit {
        let epoch = self.pending.claim.take().unwrap_or(self.head.epoch);
        let head = Head {
            epoch,
            status: Status::Running,
            recoveries: self.pending.recoveries,
            ..self.head
        };
        Commit {
            thread: self.position.thread.clone(),
            expect: self.head,
            head,
            at: self.now,
            entry: None,
            snapshot: None,
            asked: Vec::new(),
            closed: Vec::new(),
            released: Vec::new(),
            listing: Some(self.listing()),
            lease: None,
        }
    }

    fn commit(&mut self) -> Commit {
        let claim = std::mem::take(&mut self.pending.claim);
        self.pending.frees = false;
        if (self.phase.stop()).is_some_and(|stop| *stop != Stop::Drained) {
            for task in std::mem::take(&mut self.recorded.ends) {
                self.take_back_result(task);
            }
        }
        if matches!(self.phase.stop(), Some(Stop::Failed(_))) {
            self.position.forget_attempts();
        }
        let head = Head {
            epoch: claim.unwrap_or(self.head.epoch),
            seq: self.head.seq.next(),
            status: self.phase.stop().map_or(Status::Running, status_after),
            recoveries: 0,
            answers: self.head.answers,
        };
        let entry = self.entry(head);
        let snapshot = self.snapshot(head, entry.len());
        let boundary = claim.is_some() || self.phase.is_stopping();
        Commit {
            thread: self.position.thread.clone(),
            expect: self.head,
            head,
            at: self.now,
            entry: Some(entry),
            snapshot,
            asked: self.questions(head),
            closed: std::mem::take(&mut self.pending.closed),
            released: std::mem::take(&mut self.pending.released),
            listing: boundary.then(|| self.listing()),
            lease: None,
        }
    }

    fn entry(&mut self, head: Head) -> Vec<u8> {
        let opened = std::mem::take(&mut self.pending.opened);
        for opened in opened.into_values() {
            self.pending
                .push(EntryKind::Step, Change::FrameOpened(opened));
        }
        let starts = |change: &Change| matches!(change, Change::RunStarted(_));
        let caller = self.options.caller;
        let caller = caller.filter(|_| self.pending.changes.iter().any(starts));
        let mut entry = Entry {
            kind: self.pending.kind.take().unwrap_or(match self.phase.stop() {
                Some(_) => EntryKind::Stop,
                None => EntryKind::Attempt,
            }),
            parent: self.head.seq,
            at: self.now,
            changes: std::mem::take(&mut self.pending.changes),
            stop: self.phase.stop().cloned(),
            extensions: caller.map_or_else(Extensions::default, Extensions::of_caller),
        };
        let sealed = entry.seal(&self.position.thread, head.seq);
        // Reuses the buffer for the changes of the next entry.
        self.spare.keep_changes(&mut entry.changes);
        self.pending.changes = entry.changes;
        sealed
    }

    fn snapshot(&mut self, head: Head, entry_bytes: usize) -> Option<Vec<u8>> {
        self.size.since_snapshot += entry_bytes;
        if !self.size.wants_snapshot() {
            return None;
        }
        let snapshot: Snapshot = self.position.snapshot();
        let bytes = snapshot.seal(&self.position.thread, head.seq);
        self.size = self.size.after_snapshot(bytes.len());
        Some(bytes)
    }

    /// Returns the interrupts that are new to the store; only a run that stops has any.
    fn questions(&mut self, head: Head) -> Vec<AskedRow> {
        if !matches!(
            self.phase.stop(),
            Some(
                Stop::Paused { .. }
                    | Stop::Failed(_)
                    | Stop::Breakpoint(_)
                    | Stop::StepLimit
                    | Stop::Drained
            )
        ) {
            return Vec::new();
        }
        let open: Vec<InterruptRecord> = self
            .open_interrupts()
            .filter(|question| !self.interrupts.asked.contains_key(&question.id))
            .collect();
        let thread = &self.position.thread;
        for question in &open {
            self.interrupts
                .asked
                .insert(question.id, (question.task, question.key.clone()));
        }
        let row = |question: InterruptRecord| AskedRow {
            id: question.id,
            task: question.task,
            deadline: question.deadline,
            body: question.seal(thread, head.seq),
        };
        open.into_iter().map(row).collect()
    }

    /// Returns every open interrupt, in task order.
    pub(super) fn open_interrupts(&self) -> impl Iterator<Item = InterruptRecord> {
        self.slots_in_order()
            .into_iter()
            .flat_map(|slot| match &slot.doing {
                TaskActivity::Asking(questions) => questions.clone(),
                _ => Vec::new(),
            })
    }

    fn listing(&self) -> Listing {
        Listing {
            graph: self.position.graph.name.clone(),
            metadata: self.metadata.clone(),
            values: self.position.listed_values(),
        }
    }

    fn outcome(&self, stop: &Stop) -> Outcome {
        match stop {
            Stop::Paused { .. } => Outcome::Paused(self.open_interrupts().collect()),
            stop => Outcome::of(stop),
        }
    }

    /// Continues instead of pausing, because answers arrived meanwhile: the tasks they are for run again.
    pub(super) fn go_on_with(&mut self, unseen: UnseenAnswers) {
        self.head.answers = unseen.answers;
        self.head.status = Status::Running;
        for (id, answer) in unseen.answered {
            let Some((task, key)) = self.interrupts.asked.get(&id).cloned() else {
                continue;
            };
            let is_new = self
                .interrupts
                .answers
                .entry(task)
                .or_default()
                .insert(key, answer)
                .is_none();
            if is_new {
                self.ask_again(task);
            }
        }
    }
}

/// Returns the status of a thread whose run stopped like this.
pub(super) fn status_after(stop: &Stop) -> Status {
    match stop {
        Stop::Finished => Status::Idle,
        Stop::Paused { .. } | Stop::Breakpoint(_) => Status::Paused,
        Stop::StepLimit => Status::StepLimit,
        Stop::Failed(_) => Status::Failed,
        Stop::Cancelled => Status::Cancelled,
        // The next owner finds a run that did not stop.
        Stop::Drained => Status::Running,
    }
}
