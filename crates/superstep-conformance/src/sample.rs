//! Commits as a driver would make them: sealed bodies with little in them, and an owner that keeps
//! count of where its thread stands.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::format::{
    Body, Change, Entry, EntryKind, Extensions, FrameAdvanced, FrameSnapshot, Next, OnDeadline,
    Question, Record, RecordContent, RunRecord, Snapshot, StepRecord, TaskWrite,
};
use superstep_core::checkpoint::{
    Answer, AnswerBody, AskedRow, Checkpointer, Commit, Head, History, InterruptQuery, Listing,
    Page, RecordWrite, Saved, Status, StoredBody, ThreadQuery,
};
use superstep_core::{
    Epoch, FramePath, InterruptId, NodeName, RunId, Seq, TaskId, ThreadId, Timestamp, Value,
};

use crate::report::Fault;

/// Every row there is.
pub(crate) const ALL: Page = Page {
    limit: 10_000,
    offset: 0,
};

/// One who owns a thread, or once did.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) thread: ThreadId,
    pub(crate) head: Head,
    pub(crate) at: Timestamp,
    /// What it has saved: the oracle that loads are compared with.
    saved: BTreeMap<Seq, (Vec<u8>, Option<Vec<u8>>)>,
}

impl Owner {
    /// Of a thread that is not there yet.
    pub(crate) fn new(thread: &ThreadId) -> Self {
        let at = Timestamp(1_000);
        Self {
            thread: thread.clone(),
            head: Head::default(),
            at,
            saved: BTreeMap::new(),
        }
    }

    /// Of a thread of the unnamed tenant that was just started.
    pub(crate) async fn started(db: &dyn Checkpointer, name: &str) -> Result<Self, Fault> {
        Self::started_at(db, &thread(name)).await
    }

    pub(crate) async fn started_at(
        db: &dyn Checkpointer,
        thread: &ThreadId,
    ) -> Result<Self, Fault> {
        let mut owner = Self::new(thread);
        owner.save(db, owner.start()).await?;
        Ok(owner)
    }

    /// Claims the thread and commits an input.
    pub(crate) fn start(&self) -> Commit {
        let head = self.head_then(self.head.epoch.next(), Status::Running);
        let listing = Some(listing("graph", json!({}), json!({ "n": head.seq.0 })));
        Commit {
            listing,
            ..self.commit(head, EntryKind::Input)
        }
    }

    /// Commits a superstep.
    pub(crate) fn step(&self) -> Commit {
        self.commit(
            self.head_then(self.head.epoch, Status::Running),
            EntryKind::Step,
        )
    }

    /// Commits a superstep with a snapshot.
    pub(crate) fn step_with_snapshot(&self) -> Commit {
        let commit = self.step();
        let snapshot = Some(snapshot(&self.thread, commit.head.seq));
        Commit { snapshot, ..commit }
    }

    /// Ends the run.
    pub(crate) fn stop(&self, status: Status) -> Commit {
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
    pub(crate) fn claim(&self) -> Commit {
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
    pub(crate) fn ask(&self, questions: &[u8]) -> Commit {
        let commit = self.step();
        let asked = questions
            .iter()
            .map(|&n| asked(&self.thread, commit.head.seq, n))
            .collect();
        Commit { asked, ..commit }
    }

    /// Asks this and waits.
    pub(crate) fn pause(&self, questions: &[u8]) -> Commit {
        let asked = self.ask(questions).asked;
        Commit {
            asked,
            ..self.stop(Status::Paused)
        }
    }

    /// Saves and goes on from there.
    pub(crate) async fn save(
        &mut self,
        db: &dyn Checkpointer,
        commit: Commit,
    ) -> Result<Saved, Fault> {
        let saved = db.save(&commit).await?;
        self.went_on(commit);
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
    pub(crate) async fn save_steps(
        &mut self,
        db: &dyn Checkpointer,
        steps: u64,
    ) -> Result<(), Fault> {
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
    pub(crate) fn record(&self, task: u8, key: &str, value: Json) -> RecordWrite {
        RecordWrite {
            thread: self.thread.clone(),
            epoch: self.head.epoch,
            task: task_id(task),
            key: key.to_owned(),
            body: record_body(&self.thread, value),
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
        }
    }
}

/// A thread of the unnamed tenant.
pub(crate) fn thread(name: &str) -> ThreadId {
    ThreadId::new(name).expect("the suite names threads well")
}

/// A thread of a tenant.
pub(crate) fn thread_of(tenant: &str, name: &str) -> ThreadId {
    ThreadId::of_tenant(tenant, name).expect("the suite names threads well")
}

pub(crate) fn task_id(n: u8) -> TaskId {
    TaskId::from_bytes([n; 16])
}

pub(crate) fn interrupt_id(n: u8) -> InterruptId {
    InterruptId::from_bytes([n; 16])
}

pub(crate) fn value(json: &Json) -> Value {
    Value::encode(json).expect("JSON is a value")
}

/// A sealed entry with one write in it.
pub(crate) fn entry(
    thread: &ThreadId,
    seq: Seq,
    kind: EntryKind,
    at: Timestamp,
    note: Json,
) -> Vec<u8> {
    let write = TaskWrite {
        node: node(),
        index: 0,
        updates: vec![value(&note)],
        events: Vec::new(),
        cached: false,
    };
    let advanced = FrameAdvanced {
        frame: FramePath::root(),
        writes: vec![write],
        next: Next::default(),
    };
    let entry = Entry {
        kind,
        parent: Seq(seq.0.saturating_sub(1)),
        at,
        changes: vec![Change::FrameAdvanced(advanced)],
        stop: None,
        extensions: Extensions::default(),
    };
    entry.seal(thread, seq)
}

fn snapshot(thread: &ThreadId, seq: Seq) -> Vec<u8> {
    let frame = FrameSnapshot {
        path: FramePath::root(),
        entered_by: None,
        version: 1,
        state: Some(value(&json!({ "n": seq.0 }))),
        forwarded: Vec::new(),
        step: seq.0,
        last: vec![node()],
        next: Next::default(),
        failed: Vec::new(),
    };
    let run = RunRecord {
        run: RunId::from_bytes([7; 16]),
        graph: "graph".into(),
        context: None,
        step_limit: 25,
    };
    let snapshot = Snapshot {
        branch: Seq(0),
        run,
        frames: vec![frame],
        extensions: Extensions::default(),
    };
    snapshot.seal(thread, seq)
}

pub(crate) fn asked(thread: &ThreadId, seq: Seq, n: u8) -> AskedRow {
    let question = Question {
        id: interrupt_id(n),
        frame: FramePath::root(),
        node: node(),
        task: task_id(n),
        key: format!("question-{n}"),
        kind: "approval".into(),
        request: value(&json!({ "really": n })),
        schema: None,
        deadline: None,
        on_deadline: OnDeadline::Wait,
        extensions: Extensions::default(),
    };
    let body = question.seal(thread, seq);
    AskedRow {
        id: question.id,
        task: question.task,
        deadline: None,
        body,
    }
}

/// Records belong to a task, not to an entry, so they are sealed for none.
fn record_body(thread: &ThreadId, json: Json) -> Vec<u8> {
    let step = StepRecord {
        ordinal: 0,
        overlapped: false,
        value: value(&json),
    };
    let content = RecordContent::Step(step);
    Record {
        content,
        extensions: Extensions::default(),
    }
    .seal(thread, Seq(0))
}

pub(crate) fn listing(graph: &str, metadata: Json, values: Json) -> Listing {
    let metadata = match metadata {
        Json::Object(fields) => Some(fields.into_iter().collect()),
        _ => None,
    };
    Listing {
        graph: graph.to_owned(),
        metadata,
        values: Some(value(&values)),
    }
}

pub(crate) fn answer(n: u8, json: Json) -> Answer {
    Answer {
        interrupt: interrupt_id(n),
        body: AnswerBody::Value(value(&json)),
        by: "ann".into(),
        at: Timestamp(2_000),
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

fn node() -> NodeName {
    NodeName::new("node").expect("`node` is a name")
}
