//! The store of a trial: the reference store, broken on purpose where a mutant says so.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use superstep_core::checkpoint::format::{
    Body, Change, Entry, EntryKind, Record, RecordContent, Snapshot,
};
use superstep_core::checkpoint::{
    Answer, CheckpointResult, Checkpointer, Commit, Glance, History, InterruptQuery, InterruptRow,
    Loaded, Memory, Page, RESULT_KEY, RecordWrite, Saved, Status, StoredBody,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Seq, TaskId, ThreadId};

use super::mutant::Mutant;

/// What a trial keeps its thread in.
pub(super) struct Kept {
    memory: Memory,
    mutant: Option<Mutant>,
    /// Acknowledged and not yet written, by a mutant.
    owed: Vec<Commit>,
    /// Compared and not yet written, by a mutant.
    compared: Vec<Commit>,
    rewritten: bool,
    calls: u64,
}

/// The reference store never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the reference store never waits"),
    }
}

impl Kept {
    pub(super) fn new(mutant: Option<Mutant>) -> Self {
        Self {
            memory: Memory::new(),
            mutant,
            owed: Vec::new(),
            compared: Vec::new(),
            rewritten: false,
            calls: 0,
        }
    }

    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Whether the process that drives is this mutant.
    pub(super) fn hands_out_by_arrival(&self) -> bool {
        self.is(Mutant::ArrivalOrder)
    }

    /// Whether the process that tries an order again is this mutant.
    pub(super) fn forgets_runs(&self) -> bool {
        self.is(Mutant::RunForgotten)
    }

    /// Whether the process that resumes a run is this mutant.
    pub(super) fn forgets_put_down(&self) -> bool {
        self.is(Mutant::PutDownForgotten)
    }

    /// Whether the process that resumes a run is this mutant.
    pub(super) fn accepts_stale_tokens(&self) -> bool {
        self.is(Mutant::StaleTokenAccepted)
    }

    /// The mutant that is being tried.
    pub(super) fn mutant(&self) -> Option<Mutant> {
        self.mutant
    }

    /// What somebody who is to run a task is shown.
    pub(super) fn glance(&self, thread: &ThreadId, task: TaskId) -> Option<Glance> {
        let mut glance = now(self.memory.glance(thread, Some(task))).ok().flatten()?;
        match self.mutant {
            Some(Mutant::GlanceWithheld) => glance.records.retain(|row| row.key == RESULT_KEY),
            Some(Mutant::EndOverlooked) => glance.records.retain(|row| row.key != RESULT_KEY),
            _ => {}
        }
        Some(glance)
    }

    pub(super) fn save(&mut self, commit: &Commit) -> CheckpointResult<Saved> {
        self.calls += 1;
        self.pay();
        let reply = match self.mutant {
            Some(Mutant::FenceSkipped) => self.save_anyhow(commit),
            Some(Mutant::CheckThenWrite) if self.was_compared(commit) => self.save_anyhow(commit),
            Some(Mutant::AckBeforeWrite)
                if self.calls.is_multiple_of(3) && commit.entry.is_some() =>
            {
                self.save_later(commit)
            }
            Some(Mutant::CommitNotIdempotent) => self.save_once(commit),
            Some(Mutant::QuestionDropped) => now(self.memory.save(&Commit {
                asked: Vec::new(),
                ..commit.clone()
            })),
            Some(Mutant::UnseenAnswersOverlooked) => {
                now(self.memory.save(commit)).map(|saved| Saved {
                    unseen: None,
                    ..saved
                })
            }
            Some(Mutant::SiblingResultDropped) => now(self.memory.save(commit)).map(|mut saved| {
                saved.records.retain(|row| row.key != RESULT_KEY);
                saved
            }),
            Some(Mutant::ClaimRecordsWithheld) => {
                now(self.memory.save(commit)).map(|saved| Saved {
                    records: Vec::new(),
                    ..saved
                })
            }
            _ => now(self.memory.save(commit)),
        };
        if self.is(Mutant::HistoryRewritten) && commit.head.seq.0 > 3 && !self.rewritten {
            self.rewritten = true;
            self.rewrite(&commit.thread);
        }
        reply
    }

    /// The comparison of a store that does not compare inside the write.
    pub(super) fn compare(&mut self, commit: &Commit) {
        let head = now(self.memory.load(&commit.thread))
            .ok()
            .flatten()
            .map(|loaded| loaded.head)
            .unwrap_or_default();
        let fits = (head.epoch, head.seq) == (commit.expect.epoch, commit.expect.seq);
        if self.is(Mutant::CheckThenWrite) && fits {
            self.compared.push(commit.clone());
        }
    }

    /// Whether this commit was compared before, so that it is written whatever happened since.
    fn was_compared(&self, commit: &Commit) -> bool {
        self.compared
            .iter()
            .any(|compared| compared.entry == commit.entry && compared.head == commit.head)
    }

    fn save_anyhow(&mut self, commit: &Commit) -> CheckpointResult<Saved> {
        let head = self.peek(&commit.thread).map(|loaded| loaded.head);
        let commit = Commit {
            expect: head.unwrap_or(commit.expect),
            ..commit.clone()
        };
        now(self.memory.save(&commit))
    }

    fn save_later(&mut self, commit: &Commit) -> CheckpointResult<Saved> {
        let head = self.peek(&commit.thread).map(|loaded| loaded.head);
        let head = head.unwrap_or_default();
        if (head.epoch, head.seq) != (commit.expect.epoch, commit.expect.seq)
            || commit.head.status == Status::Paused
        {
            return now(self.memory.save(commit));
        }
        self.owed.push(commit.clone());
        Ok(Saved::default())
    }

    /// Writes what was acknowledged before.
    fn pay(&mut self) {
        for commit in std::mem::take(&mut self.owed) {
            // A mutant's debt: whether it can still be paid is what the trial finds out.
            drop(now(self.memory.save(&commit)));
        }
    }

    /// What was only acknowledged is lost.
    pub(super) fn process_died(&mut self) {
        self.owed.clear();
    }

    fn save_once(&mut self, commit: &Commit) -> CheckpointResult<Saved> {
        let head = self.peek(&commit.thread).map(|loaded| loaded.head);
        let head = head.unwrap_or_default();
        if (head.epoch, head.seq) == (commit.expect.epoch, commit.expect.seq) {
            return now(self.memory.save(commit));
        }
        Err(CheckpointError::Fenced {
            thread: commit.thread.clone(),
            epoch: commit.expect.epoch,
        })
    }

    /// Moves the time of an old entry: the smallest lie there is.
    fn rewrite(&mut self, thread: &ThreadId) {
        let entries = now(self.memory.entries(thread, Seq(0), 1)).unwrap_or_default();
        let Some(old) = entries.first() else { return };
        let Ok(mut entry) = Entry::read(old, thread) else {
            return;
        };
        entry.at.0 += 1;
        let head = self
            .peek(thread)
            .map(|loaded| loaded.head)
            .unwrap_or_default();
        let lie = Commit {
            thread: thread.clone(),
            expect: head,
            head: superstep_core::checkpoint::Head {
                seq: old.seq,
                ..head
            },
            at: entry.at,
            entry: Some(entry.seal(thread, old.seq)),
            snapshot: None,
            asked: Vec::new(),
            closed: Vec::new(),
            released: Vec::new(),
            listing: None,
            lease: None,
        };
        drop(now(self.memory.save(&lie)));
        let back = Commit {
            expect: superstep_core::checkpoint::Head {
                seq: old.seq,
                ..head
            },
            head,
            entry: None,
            ..lie
        };
        drop(now(self.memory.save(&back)));
    }

    pub(super) fn record(
        &mut self,
        write: &RecordWrite,
        entropy: u64,
    ) -> CheckpointResult<Vec<u8>> {
        self.pay();
        match self.mutant {
            Some(Mutant::RecordLost) if write.key != RESULT_KEY && entropy.is_multiple_of(2) => {
                let owned = self
                    .peek(&write.thread)
                    .is_some_and(|loaded| loaded.head.epoch == write.epoch);
                if owned {
                    return Ok(write.body.clone());
                }
                now(self.memory.record(write))
            }
            Some(Mutant::RecordReplaced) => {
                now(self.memory.record(write)).map(|_| write.body.clone())
            }
            Some(Mutant::KeyRandomised) if write.key != RESULT_KEY => {
                let key = format!("{}-{entropy}", write.key);
                now(self.memory.record(&RecordWrite {
                    key,
                    ..write.clone()
                }))
            }
            Some(Mutant::ReceiptLost) if is_end(write) => {
                let owned = self
                    .peek(&write.thread)
                    .is_some_and(|loaded| loaded.head.epoch == write.epoch);
                match owned {
                    true => Ok(write.body.clone()),
                    false => now(self.memory.record(write)),
                }
            }
            Some(Mutant::RecordUnfenced) => {
                let head = self.peek(&write.thread).map(|loaded| loaded.head);
                let epoch = head.map_or(write.epoch, |head| head.epoch);
                now(self.memory.record(&RecordWrite {
                    epoch,
                    ..write.clone()
                }))
            }
            _ => now(self.memory.record(write)),
        }
    }

    pub(super) fn answer(&mut self, thread: &ThreadId, answers: &[Answer]) -> CheckpointResult<()> {
        match self.mutant {
            Some(Mutant::AnswerLost) if self.calls.is_multiple_of(2) => Ok(()),
            Some(Mutant::AnswerAppliedTwice) => {
                drop(now(self.memory.answer(thread, answers)));
                Ok(())
            }
            Some(Mutant::AnswerNotIdempotent) => self.answer_once(thread, answers),
            _ => now(self.memory.answer(thread, answers)),
        }
    }

    fn answer_once(&mut self, thread: &ThreadId, answers: &[Answer]) -> CheckpointResult<()> {
        let rows = self.questions(thread);
        let held = answers
            .iter()
            .find(|answer| rows.iter().any(|row| row.holds(answer)));
        match held {
            Some(answer) => Err(CheckpointError::NotOpen {
                thread: thread.clone(),
                interrupt: answer.interrupt,
            }),
            None => now(self.memory.answer(thread, answers)),
        }
    }

    /// What somebody who opens the thread is given.
    pub(super) fn load(&mut self, thread: &ThreadId) -> Option<Loaded> {
        // Whoever opens it comes after the process that owned it.
        if self.is(Mutant::AckBeforeWrite) {
            self.process_died();
        }
        let mut loaded = self.peek(thread)?;
        match self.mutant {
            Some(Mutant::QuestionAskedAgain) => {
                for row in &mut loaded.interrupts {
                    row.answer = None;
                }
            }
            Some(Mutant::SiblingResultDropped) => {
                loaded.records.retain(|row| row.key != RESULT_KEY);
            }
            Some(Mutant::RetryCountForgotten) => forget_attempts(&mut loaded.history, thread),
            Some(Mutant::DeltaSkipped) if loaded.history.entries.len() > 1 => {
                loaded.history.entries.pop();
            }
            Some(Mutant::DeltaTwice) => {
                let last = loaded.history.entries.last().cloned();
                let again = last.filter(|last| {
                    Entry::read(last, thread).is_ok_and(|entry| entry.kind == EntryKind::Step)
                });
                loaded.history.entries.extend(again);
            }
            Some(Mutant::StaleSnapshot) => self.age(&mut loaded.history, thread),
            _ => {}
        }
        Some(loaded)
    }

    /// An older snapshot, with the entries after the newest.
    fn age(&mut self, history: &mut History, thread: &ThreadId) {
        let Some(newest) = &history.snapshot else {
            return;
        };
        let older = (1..newest.seq.0)
            .rev()
            .filter_map(|seq| now(self.memory.load_at(thread, Seq(seq))).ok())
            .find_map(|history| history.snapshot);
        match older {
            Some(older) => history.snapshot = Some(older),
            None => history.snapshot = None,
        }
    }

    /// The truth, for the checks.
    pub(super) fn peek(&self, thread: &ThreadId) -> Option<Loaded> {
        now(self.memory.load(thread)).ok().flatten()
    }

    pub(super) fn questions(&self, thread: &ThreadId) -> Vec<InterruptRow> {
        let query = InterruptQuery {
            thread: Some(thread.clone()),
            page: Page {
                limit: 10_000,
                offset: 0,
            },
            ..InterruptQuery::default()
        };
        now(self.memory.interrupts(&query)).unwrap_or_default()
    }

    pub(super) fn request_cancel(&self, thread: &ThreadId) {
        // There is nothing to cancel on a thread that is not there yet.
        drop(now(self.memory.request_cancel(thread)));
    }

    /// The log as it is.
    pub(super) fn log(&self, thread: &ThreadId) -> Vec<StoredBody> {
        now(self.memory.entries(thread, Seq(0), u32::MAX)).unwrap_or_default()
    }

    pub(super) fn entries(&self, thread: &ThreadId) -> Vec<StoredBody> {
        let mut entries = self.log(thread);
        if self.is(Mutant::EventOrderByClock) {
            entries.sort_by_key(|stored| Entry::read(stored, thread).map_or(0, |entry| entry.at.0));
        }
        entries
    }

    pub(super) fn load_at(&mut self, thread: &ThreadId, seq: Seq) -> Option<History> {
        let mut history = now(self.memory.load_at(thread, seq)).ok()?;
        if self.is(Mutant::StaleSnapshot) {
            self.age(&mut history, thread);
        }
        Some(history)
    }
}

/// Whether a record tells that an attempt ended without a result.
fn is_end(write: &RecordWrite) -> bool {
    write.key == RESULT_KEY
        && Record::unseal(&write.body, &write.thread, Seq(0))
            .is_ok_and(|record| matches!(record.content, RecordContent::End(_)))
}

fn forget_attempts(history: &mut History, thread: &ThreadId) {
    for stored in &mut history.entries {
        let Ok(mut entry) = Entry::read(stored, thread) else {
            continue;
        };
        entry
            .changes
            .retain(|change| !matches!(change, Change::AttemptFailed(_)));
        stored.body = entry.seal(thread, stored.seq);
    }
    if let Some(stored) = &mut history.snapshot
        && let Ok(mut snapshot) = Snapshot::unseal(&stored.body, thread, stored.seq)
    {
        for frame in &mut snapshot.frames {
            frame.failed.clear();
        }
        stored.body = snapshot.seal(thread, stored.seq);
    }
}
