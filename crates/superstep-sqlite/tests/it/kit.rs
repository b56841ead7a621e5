//! A database in a directory of its own, and one who commits to a thread of it.

use std::path::PathBuf;

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::format::{
    Body, Change, Entry, EntryKind, Extensions, Forked, RunRecord, Snapshot,
};
use superstep_core::checkpoint::{
    Answer, AnswerBody, AskedRow, CheckpointResult, Checkpointer, Commit, Head, Listing,
    RecordWrite, Saved, Status,
};
use superstep_core::{InterruptId, RunId, Seq, TaskId, ThreadId, Timestamp, Value};
use superstep_sqlite::Sqlite;
use tempfile::TempDir;

/// A database that goes with its directory.
pub(crate) struct Db {
    pub(crate) sqlite: Sqlite,
    pub(crate) dir: TempDir,
}

impl std::ops::Deref for Db {
    type Target = Sqlite;

    fn deref(&self) -> &Sqlite {
        &self.sqlite
    }
}

impl Db {
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("test.db")
    }
}

pub(crate) fn db() -> Db {
    let dir = tempfile::tempdir().unwrap();
    Db {
        sqlite: Sqlite::open(dir.path().join("test.db")).unwrap(),
        dir,
    }
}

/// One who owns a thread, or once did.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) thread: ThreadId,
    pub(crate) head: Head,
    pub(crate) at: Timestamp,
}

impl Owner {
    pub(crate) fn new(thread: ThreadId) -> Self {
        Self {
            thread,
            head: Head::default(),
            at: Timestamp(1_000),
        }
    }

    /// Of a thread that has just been started.
    pub(crate) async fn started(db: &Sqlite, name: &str) -> Self {
        let mut owner = Self::new(thread(name));
        owner.save(db, owner.start()).await.unwrap();
        owner
    }

    pub(crate) fn start(&self) -> Commit {
        let head = Head {
            epoch: self.head.epoch.next(),
            ..self.head
        };
        Commit {
            listing: Some(listing(json!({}), json!({}))),
            ..self.commit(head, Status::Running)
        }
    }

    pub(crate) fn step(&self) -> Commit {
        self.commit(self.head, Status::Running)
    }

    pub(crate) fn step_with_snapshot(&self) -> Commit {
        let commit = self.step();
        Commit {
            snapshot: Some(snapshot(&self.thread, commit.head.seq)),
            ..commit
        }
    }

    pub(crate) fn stop(&self, status: Status) -> Commit {
        Commit {
            listing: Some(listing(json!({}), json!({}))),
            ..self.commit(self.head, status)
        }
    }

    pub(crate) fn pause(&self, questions: &[u8]) -> Commit {
        let asked = questions.iter().map(|&n| asked(n)).collect();
        Commit {
            asked,
            ..self.stop(Status::Paused)
        }
    }

    /// Takes the thread over and commits nothing.
    pub(crate) fn claim(&self) -> Commit {
        let head = Head {
            epoch: self.head.epoch.next(),
            status: Status::Running,
            recoveries: self.head.recoveries + 1,
            ..self.head
        };
        Commit {
            head,
            entry: None,
            ..self.step()
        }
    }

    fn commit(&self, head: Head, status: Status) -> Commit {
        let head = Head {
            seq: head.seq.next(),
            status,
            recoveries: 0,
            ..head
        };
        Commit {
            thread: self.thread.clone(),
            expect: self.head,
            head,
            at: self.at,
            entry: Some(entry(&self.thread, head.seq, "")),
            snapshot: None,
            asked: Vec::new(),
            closed: Vec::new(),
            released: Vec::new(),
            listing: None,
        }
    }

    /// Saves, and goes on from there if it worked.
    pub(crate) async fn save(&mut self, db: &Sqlite, commit: Commit) -> CheckpointResult<Saved> {
        let saved = db.save(&commit).await?;
        self.head = commit.head;
        if let Some(unseen) = &saved.unseen {
            self.head.status = Status::Running;
            self.head.answers = unseen.answers;
        }
        Ok(saved)
    }

    /// Saves so many supersteps, every third with a snapshot.
    pub(crate) async fn save_steps(&mut self, db: &Sqlite, steps: u64) {
        for _ in 0..steps {
            let commit = match self.head.seq.next().0 % 3 {
                0 => self.step_with_snapshot(),
                _ => self.step(),
            };
            self.save(db, commit).await.unwrap();
        }
    }

    pub(crate) fn record(&self, key: &str, body: &[u8]) -> RecordWrite {
        RecordWrite {
            thread: self.thread.clone(),
            epoch: self.head.epoch,
            task: TaskId::from_bytes([1; 16]),
            key: key.to_owned(),
            body: body.to_vec(),
        }
    }
}

pub(crate) fn thread(name: &str) -> ThreadId {
    name.parse().unwrap()
}

pub(crate) fn question(n: u8) -> InterruptId {
    InterruptId::from_bytes([n; 16])
}

pub(crate) fn asked(n: u8) -> AskedRow {
    AskedRow {
        id: question(n),
        task: TaskId::from_bytes([1; 16]),
        deadline: None,
        body: vec![n; 20],
    }
}

pub(crate) fn answer(n: u8, by: &str) -> Answer {
    Answer {
        interrupt: question(n),
        body: AnswerBody::Value(value(&json!(by))),
        by: by.to_owned(),
        at: Timestamp(5_000),
    }
}

pub(crate) fn value(json: &Json) -> Value {
    Value::from_json_bytes(&serde_json::to_vec(json).unwrap())
}

pub(crate) fn listing(metadata: Json, values: Json) -> Listing {
    let metadata = serde_json::from_value(metadata).unwrap();
    Listing {
        graph: "graph".into(),
        metadata: Some(metadata),
        values: Some(value(&values)),
    }
}

/// A sealed entry; the note makes two of one sequence number differ.
pub(crate) fn entry(thread: &ThreadId, seq: Seq, note: &str) -> Vec<u8> {
    let change = Change::Forked(Forked {
        thread: Some(note.to_owned()),
        seq,
    });
    let entry = Entry {
        kind: EntryKind::Step,
        parent: Seq(seq.0 - 1),
        at: Timestamp(0),
        changes: vec![change],
        stop: None,
        extensions: Extensions::default(),
    };
    entry.seal(thread, seq)
}

pub(crate) fn snapshot(thread: &ThreadId, seq: Seq) -> Vec<u8> {
    let run = RunRecord {
        run: RunId::from_bytes([7; 16]),
        graph: "graph".into(),
        context: None,
        step_limit: 25,
    };
    let snapshot = Snapshot {
        branch: Seq(0),
        run,
        frames: Vec::new(),
        extensions: Extensions::default(),
    };
    snapshot.seal(thread, seq)
}
