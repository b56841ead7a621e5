//! The store of a worker: PostgreSQL, and a checkpointer in front of it that can be broken on purpose.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Mutex;

use superstep::__private::lock;
use superstep::checkpoint::{Answer, BoxFuture, CheckpointResult, Checkpointer, RecordWrite};
use superstep::error::CheckpointError;
use superstep::{TaskId, ThreadId};
use superstep_postgres::{Options, Postgres};

use crate::{AnyError, Args};

/// Where the threads are: `postgres:SCHEMA:URL`.
pub(crate) struct Place<'a> {
    schema: &'a str,
    url: &'a str,
}

impl<'a> Place<'a> {
    pub(crate) fn of(args: &'a Args) -> Result<Self, AnyError> {
        let address = args.store.strip_prefix("postgres:");
        let parts = address.and_then(|address| address.split_once(':'));
        let (schema, url) = parts.ok_or("use --store postgres:SCHEMA:URL")?;
        Ok(Self { schema, url })
    }

    pub(crate) async fn open(&self) -> Result<Postgres, AnyError> {
        let mut options = Options::default();
        options.schema = self.schema.to_owned();
        options.partitions = 4;
        options.connections = 8;
        Ok(Postgres::connect_with(self.url, options).await?)
    }
}

/// Which promise is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mutant {
    #[default]
    None,
    /// The first record under a key is acknowledged and not kept.
    RecordLost,
    /// An answer is acknowledged and not kept.
    AnswerLost,
    /// An answer to a question that has one is acknowledged.
    AnswerTwice,
    /// The new version gives the name of a node that is gone to another one.
    NameReused,
}

impl FromStr for Mutant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self::None),
            "record-lost" => Ok(Self::RecordLost),
            "answer-lost" => Ok(Self::AnswerLost),
            "answer-twice" => Ok(Self::AnswerTwice),
            "name-reused" => Ok(Self::NameReused),
            unknown => Err(format!(
                "there is no mutant `{unknown}`: use record-lost, answer-lost, answer-twice or name-reused"
            )),
        }
    }
}

/// The checkpointer of a worker.
pub(crate) struct Broken {
    inner: Postgres,
    mutant: Mutant,
    lost: Mutex<BTreeSet<(TaskId, String)>>,
}

impl Broken {
    pub(crate) fn new(inner: Postgres, mutant: Mutant) -> Self {
        Self {
            inner,
            mutant,
            lost: Mutex::default(),
        }
    }

    async fn record_or_lose(&self, record: &RecordWrite) -> CheckpointResult<Vec<u8>> {
        let is_first = || {
            let mut lost = lock(&self.lost);
            lost.insert((record.task, record.key.clone()))
        };
        match self.mutant == Mutant::RecordLost && is_first() {
            true => Ok(record.body.clone()),
            false => self.inner.record(record).await,
        }
    }

    async fn answer_or_not(&self, thread: &ThreadId, answers: &[Answer]) -> CheckpointResult<()> {
        if self.mutant == Mutant::AnswerLost {
            return Ok(());
        }
        match self.inner.answer(thread, answers).await {
            Err(CheckpointError::NotOpen { .. }) if self.mutant == Mutant::AnswerTwice => Ok(()),
            stored => stored,
        }
    }
}

impl Checkpointer for Broken {
    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(self.record_or_lose(record))
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.answer_or_not(thread, answers))
    }

    superstep_conformance::forward! {
        create annotate save load load_at entries glance request_cancel unfinished renew threads count_threads sizes
        interrupts overdue copy delete forget prune expire expired export import
    }
}
