//! What commits are made of.

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::format::{
    Body, Change, Entry, EntryKind, Extensions, FrameAdvanced, FrameSnapshot, InterruptRecord,
    Next, OnDeadline, Record, RecordContent, RunRecord, Snapshot, StepRecord, TaskWrite,
};
use superstep_core::checkpoint::{Answer, AnswerBody, AskedRow, Commit, Listing};
use superstep_core::{
    FramePath, InterruptId, NodeName, RunId, Seq, TaskId, ThreadId, Timestamp, Value,
};

/// A thread of the unnamed tenant.
///
/// # Panics
/// If it is not a name.
pub fn thread(name: &str) -> ThreadId {
    ThreadId::new(name).expect("the suite names threads well")
}

/// A thread of a tenant.
pub(crate) fn thread_of(tenant: &str, name: &str) -> ThreadId {
    ThreadId::of_tenant(tenant, name).expect("the suite names threads well")
}

/// The id of a task.
pub fn task_id(n: u8) -> TaskId {
    TaskId::from_bytes([n; 16])
}

/// The id of a question.
pub fn interrupt_id(n: u8) -> InterruptId {
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

pub(crate) fn snapshot(thread: &ThreadId, seq: Seq) -> Vec<u8> {
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
    let question = InterruptRecord {
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
pub(crate) fn record_body(thread: &ThreadId, json: Json) -> Vec<u8> {
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

/// A thread's line, without metadata unless they are an object.
pub fn listing(graph: &str, metadata: Json, values: Json) -> Listing {
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

/// An answer of Ann's.
pub fn answer(n: u8, json: Json) -> Answer {
    Answer {
        interrupt: interrupt_id(n),
        body: AnswerBody::Value(value(&json)),
        by: "ann".into(),
        at: Timestamp(2_000),
    }
}

/// An answer that says who gave it.
pub fn answer_by(n: u8, who: &str) -> Answer {
    Answer {
        by: who.to_owned(),
        ..answer(n, json!(who))
    }
}

/// The same commit with another entry, so that the two differ in nothing else.
pub fn noted(commit: Commit, note: Json) -> Commit {
    let (thread, seq) = (&commit.thread, commit.head.seq);
    let kind = match commit.is_claim() {
        true => EntryKind::Input,
        false => EntryKind::Step,
    };
    Commit {
        entry: Some(entry(thread, seq, kind, commit.at, note)),
        ..commit
    }
}

fn node() -> NodeName {
    NodeName::new("node").expect("`node` is a name")
}
