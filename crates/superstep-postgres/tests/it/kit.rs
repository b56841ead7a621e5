//! A schema of its own in the database that tests share, and one who commits to a thread of it.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::format::{
    Body, Change, Entry, EntryKind, Extensions, Forked, RunRecord, Snapshot,
};
use superstep_core::checkpoint::{
    Answer, AnswerBody, AskedRow, CheckpointResult, Checkpointer, Commit, Head, Listing,
    RecordWrite, Saved, Status,
};
use superstep_core::{InterruptId, RunId, Seq, TaskId, ThreadId, Timestamp, Value};
use superstep_postgres::{Options, Postgres};
use tokio_postgres::{Client, NoTls};

/// A database whose tables go with it.
pub(crate) struct Db {
    pub(crate) postgres: Postgres,
    pub(crate) schema: Schema,
}

impl std::ops::Deref for Db {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        &self.postgres
    }
}

pub(crate) async fn db() -> Db {
    let schema = Schema::new();
    Db {
        postgres: schema.connect().await,
        schema,
    }
}

/// The name of a schema that nobody else has. What it holds is dropped with it.
pub(crate) struct Schema {
    pub(crate) url: String,
    pub(crate) name: String,
}

impl Schema {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        Self {
            url: url(),
            name: format!("test_{}_{made}", std::process::id()),
        }
    }

    /// Few partitions and few connections, for there are many tests.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::default();
        options.schema.clone_from(&self.name);
        options.partitions = 5;
        options.connections = 4;
        options
    }

    pub(crate) async fn connect(&self) -> Postgres {
        let connected = Postgres::connect_with(&self.named_url(), self.options()).await;
        connected
            .unwrap_or_else(|error| panic!("{error} ({error:?}): run `cargo xtask services up`"))
    }

    /// The store's connections bear the schema's name, so that a test can kill its own.
    pub(crate) fn named_url(&self) -> String {
        let mark = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{mark}application_name={}", self.url, self.name)
    }

    /// A plain connection beside the store's, with the schema before its eyes.
    pub(crate) async fn client(&self) -> Client {
        let client = client(&self.url).await;
        let set = format!("SET search_path TO \"{}\"", self.name);
        client.batch_execute(&set).await.unwrap();
        client
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let (url, name) = (self.url.clone(), self.name.clone());
        // Inside a runtime nothing can be waited for, so this has one of its own.
        let drop_schema = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                // Connections that the test's runtime no longer serves would keep their locks.
                let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
                let sql = format!("DROP SCHEMA IF EXISTS \"{name}\" CASCADE");
                let client = client(&url).await;
                client
                    .batch_execute("SET client_min_messages = error")
                    .await
                    .unwrap();
                client.query(kill, &[&name]).await.unwrap();
                client.batch_execute(&sql).await.unwrap();
            });
        };
        // A test that fails fails for its own reason; what is left behind here harms nobody.
        let _ = std::thread::spawn(drop_schema).join();
    }
}

/// Waits until so many statements of the store wait for a lock.
pub(crate) async fn wait_for_waiting(db: &Db, statements: i64) {
    let client = db.schema.client().await;
    let sql = "SELECT count(*) FROM pg_stat_activity
         WHERE application_name = $1 AND wait_event_type = 'Lock'";
    for _ in 0..4_000 {
        let waiting = client.query_one(sql, &[&db.schema.name]).await.unwrap();
        if waiting.get::<_, i64>(0) == statements {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("no statement came to wait");
}

pub(crate) async fn client(url: &str) -> Client {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) =
        connected.unwrap_or_else(|error| panic!("{error}: run `cargo xtask services up`"));
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        // Tests break connections on purpose.
        let _ = connection.await;
    });
    tasks.detach_all();
    client
}

/// The database that tests share.
pub(crate) fn url() -> String {
    superstep_conformance::services::url("postgres")
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
    pub(crate) async fn started(db: &Postgres, name: &str) -> Self {
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
    pub(crate) async fn save(&mut self, db: &Postgres, commit: Commit) -> CheckpointResult<Saved> {
        let saved = db.save(&commit).await?;
        self.head = commit.head;
        if let Some(unseen) = &saved.unseen {
            self.head.status = Status::Running;
            self.head.answers = unseen.answers;
        }
        Ok(saved)
    }

    /// Saves so many supersteps, every third with a snapshot.
    pub(crate) async fn save_steps(&mut self, db: &Postgres, steps: u64) {
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
