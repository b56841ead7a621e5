//! A checkpointer that tells the ledger what was acknowledged, and that can be broken on purpose.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use superstep::__private::lock;
use superstep::checkpoint::{
    Answer, BoxFuture, CheckpointResult, Checkpointer, Commit, Head, RESULT_KEY, RecordWrite, Saved,
};
use superstep::error::CheckpointError;
use superstep::{Seq, ThreadId};

use crate::ledger::{Ledger, Report};

/// Which promise is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mutant {
    #[default]
    None,
    /// A commit or record that is refused is written over whoever owns the thread now.
    FenceSkipped,
    /// A record is acknowledged and not kept.
    RecordLost,
    /// An answer to a question that has one is taken.
    AnswerTwice,
    /// An answer is acknowledged and not kept.
    AnswerLost,
    /// A store that does not answer is not asked again.
    Impatient,
    /// Threads that others run are recovered as well.
    NoLease,
}

impl Mutant {
    /// How long a store that does not answer is asked again.
    pub(crate) fn patience(self) -> Duration {
        match self {
            Self::Impatient => Duration::ZERO,
            _ => PATIENCE,
        }
    }
}

impl Mutant {
    /// Short, so that trials need not wait long for the threads of a killed process; long enough for a busy machine.
    pub(crate) fn lease(self) -> Duration {
        match self {
            Self::NoLease => Duration::ZERO,
            _ => Duration::from_secs(4),
        }
    }
}

impl FromStr for Mutant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self::None),
            "fence-skipped" => Ok(Self::FenceSkipped),
            "record-lost" => Ok(Self::RecordLost),
            "answer-twice" => Ok(Self::AnswerTwice),
            "answer-lost" => Ok(Self::AnswerLost),
            "impatient" => Ok(Self::Impatient),
            "no-lease" => Ok(Self::NoLease),
            unknown => Err(format!(
                "there is no mutant `{unknown}`: use fence-skipped, record-lost, answer-twice, answer-lost, impatient or no-lease"
            )),
        }
    }
}

/// The checkpointer of a worker.
pub(crate) struct Watched {
    inner: Box<dyn Checkpointer>,
    ledger: Arc<Ledger>,
    mutant: Mutant,
}

impl Watched {
    pub(crate) fn new(inner: Box<dyn Checkpointer>, ledger: Arc<Ledger>, mutant: Mutant) -> Self {
        Self {
            inner,
            ledger,
            mutant,
        }
    }

    async fn tell(&self, thread: &ThreadId, phase: &str, key: &str, detail: u64) {
        let report = Report {
            thread: thread.name(),
            phase,
            key,
            detail,
        };
        self.ledger.report(report).await;
    }

    async fn save_watched(&self, commit: &Commit) -> CheckpointResult<Saved> {
        let saved = match self.inner.save(commit).await {
            Err(CheckpointError::Fenced { .. }) if self.mutant == Mutant::FenceSkipped => {
                self.save_over(commit).await
            }
            saved => saved.map(|saved| (saved, commit.head.seq)),
        };
        let after_us = since_body_end();
        let thread = &commit.thread;
        match saved {
            Ok((saved, seq)) => {
                let epoch = commit.head.epoch.0.to_string();
                if commit.is_claim() {
                    self.tell(thread, "claimed", &epoch, commit.expect.seq.0)
                        .await;
                }
                if commit.entry.is_some() {
                    self.tell(thread, "saved", &epoch, seq.0).await;
                }
                if let Some(after_us) = after_us {
                    self.tell(thread, "latency", "commit", after_us).await;
                }
                Ok(saved)
            }
            Err(error) => Err(self.failed(thread, "save", error).await),
        }
    }

    /// The mutant's write: at whatever epoch and sequence the thread has now.
    async fn save_over(&self, commit: &Commit) -> CheckpointResult<(Saved, Seq)> {
        let loaded = self.inner.load(&commit.thread).await?.unwrap_or_default();
        let expect = loaded.head;
        let seq = if commit.entry.is_some() {
            Seq(expect.seq.0 + 1)
        } else {
            expect.seq
        };
        let over = Commit {
            expect,
            head: Head {
                epoch: expect.epoch,
                seq,
                ..commit.head
            },
            ..commit.clone()
        };
        Ok((self.inner.save(&over).await?, seq))
    }

    async fn record_watched(&self, record: &RecordWrite) -> CheckpointResult<Vec<u8>> {
        let is_result = record.key == RESULT_KEY;
        if is_result {
            note_body_end();
        }
        let stored = match (self.mutant, self.inner_record(record).await) {
            (Mutant::FenceSkipped, Err(CheckpointError::Fenced { .. })) => {
                self.record_over(record).await
            }
            (_, stored) => stored,
        };
        match stored {
            Ok(stored) => {
                if is_result {
                    let task = record.task.to_string();
                    self.tell(&record.thread, "result-acked", &task, 0).await;
                }
                Ok(stored)
            }
            Err(error) => Err(self.failed(&record.thread, "record", error).await),
        }
    }

    async fn inner_record(&self, record: &RecordWrite) -> CheckpointResult<Vec<u8>> {
        if self.mutant == Mutant::RecordLost {
            return Ok(record.body.clone());
        }
        self.inner.record(record).await
    }

    async fn record_over(&self, record: &RecordWrite) -> CheckpointResult<Vec<u8>> {
        let loaded = self.inner.load(&record.thread).await?.unwrap_or_default();
        let over = RecordWrite {
            epoch: loaded.head.epoch,
            ..record.clone()
        };
        self.inner.record(&over).await
    }

    /// After a fence this process knows that the thread is not its own; without an answer it knows nothing.
    async fn failed(
        &self,
        thread: &ThreadId,
        what: &str,
        error: CheckpointError,
    ) -> CheckpointError {
        if matches!(error, CheckpointError::Fenced { .. }) {
            self.tell(thread, "told", "fence", 0).await;
            TOLD.store(true, Ordering::SeqCst);
        }
        if error.is_transient() {
            self.tell(thread, "unanswered", what, 0).await;
        }
        error
    }

    async fn answer_watched(&self, thread: &ThreadId, answers: &[Answer]) -> CheckpointResult<()> {
        if self.mutant == Mutant::AnswerLost {
            return Ok(());
        }
        match self.inner.answer(thread, answers).await {
            Err(CheckpointError::NotOpen { .. }) if self.mutant == Mutant::AnswerTwice => Ok(()),
            Err(error) => Err(self.failed(thread, "answer", error).await),
            Ok(()) => Ok(()),
        }
    }
}

static TOLD: AtomicBool = AtomicBool::new(false);

/// Whether a write of this process was refused because the thread is another's.
pub(crate) fn was_told() -> bool {
    TOLD.load(Ordering::SeqCst)
}

/// When a node's body of this process last ended and its end was not durable yet.
static BODY_END: Mutex<Option<Instant>> = Mutex::new(None);

const PATIENCE: Duration = Duration::from_secs(30);

/// A body ends now.
pub(crate) fn note_body_end() {
    *lock(&BODY_END) = Some(Instant::now());
}

fn since_body_end() -> Option<u64> {
    let end = lock(&BODY_END).take()?;
    Some(micros(end.elapsed()))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Checkpointer for Watched {
    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        Box::pin(self.save_watched(commit))
    }

    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(self.record_watched(record))
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.answer_watched(thread, answers))
    }

    superstep_conformance::forward! {
        create annotate load load_at entries glance request_cancel unfinished renew threads count_threads sizes interrupts
        overdue copy delete forget prune expire expired export import
    }
}
