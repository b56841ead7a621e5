//! Commits as a driver would make them: sealed bodies with little in them, and an owner that keeps
//! count of where its thread stands.
//!
//! The clauses are written with these, and so can be the tests of what a store does beside them.

mod bodies;

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::format::EntryKind;
use superstep_core::checkpoint::{
    CheckpointResult, Checkpointer, Commit, Head, History, InterruptQuery, Listing, Page,
    RecordWrite, Saved, Status, StoredBody, ThreadQuery,
};
use superstep_core::{Epoch, Seq, ThreadId, Timestamp};

pub use bodies::{answer, answer_by, interrupt_id, listing, noted, task_id, thread};
pub(crate) use bodies::{asked, entry, thread_of, value};
use bodies::{record_body, snapshot};

use crate::report::Fault;

/// Every row there is.
pub(crate) const ALL: Page = Page {
    limit: 10_000,
    offset: 0,
};

/// One who owns a thread, or once did.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The thread.
    pub thread: ThreadId,
    /// Where it stands, as far as this one knows.
    pub head: Head,
    /// The time of its commits.
    pub at: Timestamp,
    /// What it has saved: the oracle that loads are compared with.
    saved: BTreeMap<Seq, (Vec<u8>, Option<Vec<u8>>)>,
}

impl Owner {
    /// Of a thread that is not there yet.
    pub fn new(thread: &ThreadId) -> Self {
        let at = Timestamp(1_000);
        Self {
            thread: thread.clone(),
            head: Head::default(),
            at,
            saved: BTreeMap::new(),
        }
    }

    /// Of a thread of the unnamed tenant that was just started.
    pub async fn started(db: &dyn Checkpointer, name: &str) -> CheckpointResult<Self> {
        Self::started_at(db, &thread(name)).await
    }

    /// Of a thread that was just started.
    pub async fn started_at(db: &dyn Checkpointer, thread: &ThreadId) -> CheckpointResult<Self> {
        let mut owner = Self::new(thread);
        owner.save(db, owner.start()).await?;
        Ok(owner)
    }

    /// Claims the thread and commits an input.
    pub fn start(&self) -> Commit {
        let head = self.head_then(self.head.epoch.next(), Status::Running);
        let listing = Some(listing("graph", json!({}), json!({ "n": head.seq.0 })));
        Commit {
            listing,
            ..self.commit(head, EntryKind::Input)
        }
    }

    /// Commits a superstep.
    pub fn step(&self) -> Commit {
        self.commit(
            self.head_then(self.head.epoch, Status::Running),
            EntryKind::Step,
        )
    }

    /// Commits a superstep with a snapshot.
    pub fn step_with_snapshot(&self) -> Commit {
        let commit = self.step();
        let snapshot = Some(snapshot(&self.thread, commit.head.seq));
        Commit { snapshot, ..commit }
    }

    /// Ends the run.
    pub fn stop(&self, status: Status) -> Commit {
        let head = self.head_then(self.head.epoch, status);
        let listing = Listing {
            graph: "graph".into(),
            metadata: None,
            values: None,
        };
        Commit {
            listing: Some(listing),
            ..self.commit(head, EntryKind::Stop)
        }
    }

    /// Takes the thread over, and commits nothing.
    pub fn claim(&self) -> Commit {
        let head = Head {
            epoch: self.head.epoch.next(),
            status: Status::Running,
            recoveries: self.head.recoveries + 1,
            ..self.head
        };
        Commit {
            entry: None,
            ..self.commit(head, EntryKind::Step)
        }
    }

    /// Asks this.
    pub fn ask(&self, questions: &[u8]) -> Commit {
        let commit = self.step();
        let asked = questions
            .iter()
            .map(|&n| asked(&self.thread, commit.head.seq, n))
            .collect();
        Commit { asked, ..commit }
    }

    /// Asks this and waits.
    pub fn pause(&self, questions: &[u8]) -> Commit {
        let asked = self.ask(questions).asked;
        Commit {
            asked,
            ..self.stop(Status::Paused)
        }
    }

    /// Saves and goes on from there.
    pub async fn save(&mut self, db: &dyn Checkpointer, commit: Commit) -> CheckpointResult<Saved> {
        let saved = db.save(&commit).await?;
        self.went_on(commit);
        if let Some(unseen) = &saved.unseen {
            self.head.status = Status::Running;
            self.head.answers = unseen.answers;
        }
        Ok(saved)
    }

    /// Goes on from a commit that was saved.
    pub(crate) fn went_on(&mut self, commit: Commit) {
        self.head = commit.head;
        if let Some(entry) = commit.entry {
            self.saved.insert(commit.head.seq, (entry, commit.snapshot));
        }
    }

    /// Saves so many supersteps, every third of them with a snapshot.
    pub async fn save_steps(&mut self, db: &dyn Checkpointer, steps: u64) -> CheckpointResult<()> {
        for _ in 0..steps {
            let commit = match self.head.seq.next().0 % 3 {
                0 => self.step_with_snapshot(),
                _ => self.step(),
            };
            self.save(db, commit).await?;
        }
        Ok(())
    }

    /// A record of this owner.
    pub fn record(&self, task: u8, key: &str, value: Json) -> RecordWrite {
        RecordWrite {
            thread: self.thread.clone(),
            epoch: self.head.epoch,
            task: task_id(task),
            key: key.to_owned(),
            body: record_body(&self.thread, value),
        }
    }

    /// A record of its task 1 that is nothing but these bytes.
    pub fn record_of_bytes(&self, key: &str, bytes: &[u8]) -> RecordWrite {
        RecordWrite {
            body: bytes.to_vec(),
            ..self.record(1, key, Json::Null)
        }
    }

    /// The entries that were saved, oldest first.
    pub(crate) fn entries(&self) -> Vec<StoredBody> {
        self.saved
            .iter()
            .map(|(&seq, (body, _))| StoredBody {
                seq,
                body: body.clone(),
            })
            .collect()
    }

    /// What a load as of an entry must give.
    pub(crate) fn history_at(&self, seq: Seq) -> History {
        let stored = |seq: &Seq, body: &Vec<u8>| StoredBody {
            seq: *seq,
            body: body.clone(),
        };
        let snapshot = self
            .saved
            .range(..=seq)
            .rev()
            .find_map(|(at, (_, snapshot))| Some(stored(at, snapshot.as_ref()?)));
        let after = snapshot.as_ref().map_or(Seq(0), |snapshot| snapshot.seq);
        let entries = self
            .saved
            .range(after.next()..)
            .take_while(|(at, _)| **at <= seq);
        History {
            entries: entries.map(|(at, (body, _))| stored(at, body)).collect(),
            snapshot,
        }
    }

    fn head_then(&self, epoch: Epoch, status: Status) -> Head {
        Head {
            epoch,
            seq: self.head.seq.next(),
            status,
            recoveries: 0,
            ..self.head
        }
    }

    fn commit(&self, head: Head, kind: EntryKind) -> Commit {
        let note = json!({ "n": head.seq.0 });
        Commit {
            thread: self.thread.clone(),
            expect: self.head,
            head,
            at: self.at,
            entry: Some(entry(&self.thread, head.seq, kind, self.at, note)),
            snapshot: None,
            asked: Vec::new(),
            closed: Vec::new(),
            released: Vec::new(),
            listing: None,
            lease: None,
        }
    }
}

/// All that can be seen of a thread, as text: to say that something changed nothing.
pub(crate) async fn dump(db: &dyn Checkpointer, thread: &ThreadId) -> Result<String, Fault> {
    let mut lines = Vec::new();
    if let Some(mut loaded) = db.load(thread).await? {
        loaded
            .records
            .sort_by(|a, b| (a.task, &a.key).cmp(&(b.task, &b.key)));
        loaded.interrupts.sort_by_key(|row| row.id);
        lines.push(format!("{loaded:?}"));
        if loaded.head.status != Status::Deleted {
            lines.push(format!("{:?}", db.entries(thread, Seq(0), 10_000).await?));
        }
    }
    let tenant = thread.tenant().to_owned();
    let query = ThreadQuery {
        tenant: tenant.clone(),
        page: ALL,
        ..ThreadQuery::default()
    };
    let rows = db.threads(&query).await?;
    lines.push(format!(
        "{:?}",
        rows.iter().find(|row| row.thread == *thread)
    ));
    let query = InterruptQuery {
        tenant,
        thread: Some(thread.clone()),
        page: ALL,
        ..InterruptQuery::default()
    };
    lines.push(format!("{:?}", db.interrupts(&query).await?));
    Ok(lines.join("\n"))
}

/// Names of the threads that a restarted driver must resume.
pub async fn unfinished(db: &dyn Checkpointer, limit: u32) -> CheckpointResult<Vec<ThreadId>> {
    let found = db.unfinished(None, limit).await?;
    Ok(found.into_iter().map(|found| found.thread).collect())
}
