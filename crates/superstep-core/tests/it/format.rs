//! The stored form: golden files of format 1, and every way in which bytes can be wrong.
//!
//! A golden file is never changed. What no longer decodes to the same, or encodes to other bytes, is a new format.

use serde_json::json;
use superstep_core::checkpoint::format::{
    AfterFailure, AttemptFailed, Body, BodyKind, Breakpoint, BreakpointSide, Change, Draft,
    EndRecord, EndedHow, Entry, EntryKind, Extensions, FORMAT, Forked, FrameAdvanced, FrameOpened,
    FrameSnapshot, GotoRecord, InterruptRecord, JoinSeen, Next, OnDeadline, ParentRecord,
    PlannedTask, Record, RecordContent, RunRecord, Snapshot, StateWritten, StepRecord, Stop,
    TaskRecord, TaskWrite, unwrap_encrypted, wrap_encrypted,
};
use superstep_core::checkpoint::{Answer, AnswerBody};
use superstep_core::driver::{QueuedRequest, ThreadRequest};
use superstep_core::error::{Failure, FailureKind, FormatError};
use superstep_core::run::{Edit, EditNode, RunOptions, ThreadEdit};
use superstep_core::{
    FramePath, InterruptId, NodeName, RunId, Seq, TaskId, ThreadId, Timestamp, Value,
};

pub(crate) const SEQ: Seq = Seq(7);

pub(crate) fn thread() -> ThreadId {
    ThreadId::of_tenant("acme", "thread-1").unwrap()
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub(crate) fn value(json: &str) -> Value {
    Value::from_json_bytes(json.as_bytes())
}

pub(crate) fn task(n: u8) -> TaskId {
    TaskId::from_bytes([n; 16])
}

/// Two levels: one invocation, and one that lives with its thread.
fn path() -> FramePath {
    let id: Vec<u8> = vec![9; 16];
    serde_json::from_value(json!([{"node": "sub", "task": id}, {"node": "deep", "task": null}]))
        .unwrap()
}

pub(crate) fn extensions(tag: u16) -> Extensions {
    serde_json::from_value(json!([[tag, [1, 2, 3]]])).unwrap()
}

fn parent() -> ParentRecord {
    ParentRecord {
        update: value("{}"),
        goto: vec![
            GotoRecord {
                node: None,
                payload: None,
            },
            GotoRecord {
                node: Some(node("work")),
                payload: Some(value("[1]")),
            },
        ],
    }
}

fn next() -> Next {
    Next {
        tasks: vec![
            PlannedTask {
                node: node("a"),
                payload: None,
            },
            PlannedTask {
                node: node("work"),
                payload: Some(value("{\"n\":1}")),
            },
        ],
        joins: vec![JoinSeen {
            target: node("j"),
            sources: vec![node("a"), node("b")],
            seen: vec![node("b")],
        }],
        deferred: vec![node("last")],
        reroute: vec![node("a")],
        leave: Some(parent()),
    }
}

fn failure(kind: FailureKind) -> Failure {
    Failure {
        frame: path(),
        node: node("a"),
        task: Some(task(3)),
        kind,
        message: "broken".to_owned(),
        code: None,
        attempts: 2,
    }
}

fn attempt(then: AfterFailure) -> AttemptFailed {
    AttemptFailed {
        frame: path(),
        index: 1,
        failure: failure(FailureKind::Retryable),
        then,
    }
}

fn run() -> RunRecord {
    RunRecord {
        run: RunId::from_bytes([1; 16]),
        graph: "graph".to_owned(),
        context: Some(value("{\"user\":\"ada\"}")),
        step_limit: 10_000,
    }
}

/// Every variant of every enum that an entry can hold.
pub(crate) fn entries() -> Vec<(&'static str, Entry)> {
    let changes = vec![
        Change::RunStarted(run()),
        Change::FrameOpened(FrameOpened {
            frame: path(),
            entered_by: Some(task(2)),
            version: 3,
            input: Some(value("{\"x\":null}")),
            next: next(),
        }),
        Change::FrameAdvanced(FrameAdvanced {
            frame: FramePath::root(),
            writes: vec![TaskWrite {
                node: node("a"),
                index: 4,
                updates: vec![value("{\"x\":1}"), value("{\"=y\":[]}")],
                events: vec![value("\"hi\"")],
                cached: true,
            }],
            next: Next::default(),
        }),
        Change::AttemptFailed(attempt(AfterFailure::Retry { at: Timestamp(-5) })),
        Change::AttemptFailed(attempt(AfterFailure::Handle)),
        Change::Forked(Forked {
            thread: Some("acme/other".to_owned()),
            seq: Seq(3),
        }),
    ];
    let breakpoint = Breakpoint {
        frame: path(),
        side: BreakpointSide::After,
        nodes: vec![node("a")],
    };
    let stops = [
        ("input", EntryKind::Input, None),
        ("step", EntryKind::Step, Some(Stop::Finished)),
        (
            "attempt",
            EntryKind::Attempt,
            Some(Stop::Paused {
                asked: vec![InterruptId::from_bytes([8; 16])],
            }),
        ),
        ("stop", EntryKind::Stop, Some(Stop::Breakpoint(breakpoint))),
        ("update", EntryKind::Update, Some(Stop::StepLimit)),
        (
            "fork",
            EntryKind::Fork,
            Some(Stop::Failed(vec![
                failure(FailureKind::Retryable),
                failure(FailureKind::TooManyTasks),
            ])),
        ),
        ("cancelled", EntryKind::Stop, Some(Stop::Cancelled)),
        ("drained", EntryKind::Stop, Some(Stop::Drained)),
    ];
    let entry = |(name, kind, stop)| {
        let entry = Entry {
            kind,
            parent: Seq(6),
            at: Timestamp(1_700_000_000_000),
            changes: changes.clone(),
            stop,
            extensions: extensions(2),
        };
        (name, entry)
    };
    stops.into_iter().map(entry).collect()
}

pub(crate) fn snapshot() -> Snapshot {
    let frame = |path: FramePath, state: Option<Value>| FrameSnapshot {
        path,
        version: 2,
        state,
        forwarded: vec![vec![value("{\"x\":1}")], vec![]],
        entered_by: Some(task(2)),
        step: 12,
        last: vec![node("a"), node("b")],
        next: next(),
        failed: vec![attempt(AfterFailure::Handle)],
    };
    Snapshot {
        branch: Seq(4),
        run: run(),
        frames: vec![
            frame(FramePath::root(), Some(value("{\"x\":1}"))),
            frame(path(), None),
        ],
        extensions: extensions(40),
    }
}

pub(crate) fn question(on_deadline: OnDeadline) -> InterruptRecord {
    InterruptRecord {
        id: InterruptId::from_bytes([8; 16]),
        frame: path(),
        node: node("ask"),
        task: task(3),
        key: "call-1".to_owned(),
        kind: "tool_approval".to_owned(),
        request: value("{\"tool\":\"rm\"}"),
        schema: Some(value("{\"type\":\"boolean\"}")),
        deadline: Some(Timestamp(9)),
        on_deadline,
        extensions: Extensions::default(),
    }
}

fn record(content: RecordContent) -> Record {
    Record {
        content,
        extensions: Extensions::default(),
    }
}

pub(crate) fn step_record() -> Record {
    record(RecordContent::Step(StepRecord {
        ordinal: 3,
        overlapped: true,
        value: value("42"),
    }))
}

/// Of a node that had read something `private` and `untrusted`.
pub(crate) fn labeled_step_record() -> Record {
    let labels = b"\x02\x07private\x09untrusted".to_vec();
    Record {
        extensions: serde_json::from_value(json!([[Extensions::LABELS, labels]])).unwrap(),
        ..step_record()
    }
}

pub(crate) fn task_record() -> Record {
    record(RecordContent::Task(TaskRecord {
        update: value("{\"x\":1}"),
        goto: parent().goto,
        parent: Some(parent()),
        events: vec![value("1")],
    }))
}

pub(crate) fn end_record(how: EndedHow) -> Record {
    record(RecordContent::End(EndRecord { attempt: 2, how }))
}

fn resumed() -> Entry {
    Entry {
        kind: EntryKind::Resume,
        parent: Seq(6),
        at: Timestamp(1_700_000_000_000),
        changes: vec![Change::RunResumed(RunId::from_bytes([4; 16]))],
        stop: None,
        extensions: extensions(2),
    }
}

/// A resume whose caller wrote something.
fn resumed_with() -> Entry {
    let mut entry = resumed();
    entry.changes.push(Change::StateWritten(StateWritten {
        update: Some(value("{\"x\":1}")),
        context: Some(value("{\"user\":\"ada\"}")),
    }));
    entry
}

/// A resume whose caller sent the thread to a node.
fn resumed_at() -> Entry {
    let mut entry = resumed();
    entry.changes.push(Change::Replanned(Next {
        tasks: vec![PlannedTask {
            node: node("a"),
            payload: None,
        }],
        ..Next::default()
    }));
    entry
}

fn draft() -> Draft {
    Draft {
        key: "call-1".to_owned(),
        kind: "tool_approval".to_owned(),
        request: value("{\"tool\":\"rm\"}"),
        schema: Some(value("{\"type\":\"boolean\"}")),
        within_ms: Some(9),
        on_deadline: OnDeadline::Answer(value("false")),
    }
}

/// Every variant of what can be ordered.
fn orders() -> Vec<(&'static str, QueuedRequest)> {
    let answer = |body| Answer {
        interrupt: InterruptId::from_bytes([8; 16]),
        body,
        by: "ada".to_owned(),
        at: Timestamp(7),
    };
    let update = |node| ThreadRequest::Update {
        node,
        update: value("{\"x\":1}"),
        goto: parent().goto,
    };
    let all = [
        (
            "start",
            ThreadRequest::Start {
                input: value("{\"x\":1}"),
                context: Some(value("{\"user\":\"ada\"}")),
                metadata: Some(value("{\"team\":\"a\"}")),
            },
        ),
        ("resume", ThreadRequest::Resume),
        ("recover", ThreadRequest::Recover),
        (
            "answer",
            ThreadRequest::Answer(vec![
                answer(AnswerBody::Value(value("true"))),
                answer(AnswerBody::Expired),
            ]),
        ),
        ("update-last", update(EditNode::Last)),
        ("update-node", update(EditNode::Node(node("a")))),
        ("update-input", update(EditNode::Input)),
        ("update-end", update(EditNode::End)),
        ("fork", ThreadRequest::Fork { at: Seq(3) }),
        (
            "resume-with",
            ThreadRequest::ResumeWith {
                answers: vec![answer(AnswerBody::Value(value("true")))],
                write: Some(value("{\"x\":1}")),
                context: Some(value("{\"user\":\"ada\"}")),
            },
        ),
        (
            "edit",
            ThreadRequest::Edit(ThreadEdit {
                at: Some(Seq(3)),
                frame: path(),
                updates: vec![
                    Edit {
                        node: EditNode::Node(node("a")),
                        update: value("{\"x\":1}"),
                        goto: parent().goto,
                    },
                    Edit {
                        node: EditNode::End,
                        update: value("{}"),
                        goto: Vec::new(),
                    },
                ],
            }),
        ),
        (
            "goto",
            ThreadRequest::GoTo {
                goto: parent().goto,
                write: Some(value("{\"x\":1}")),
                context: Some(value("{\"user\":\"ada\"}")),
            },
        ),
    ];
    let order = |(name, what)| {
        let order = QueuedRequest::new("graph", what, &RunOptions::default()).unwrap();
        (name, order)
    };
    all.into_iter().map(order).collect()
}

fn golden<B: Body + PartialEq + std::fmt::Debug>(name: &str, body: &B) {
    let bytes = golden_bytes(name, &body.seal(&thread(), SEQ));
    let read = B::unseal(&bytes, &thread(), SEQ).unwrap();
    assert_eq!(read, *body, "{name} decodes to something else");
}

/// What the golden file holds, which is what is written today.
pub(crate) fn golden_bytes(name: &str, sealed: &[u8]) -> Vec<u8> {
    let path = format!("{}/tests/it/golden/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("WRITE_GOLDEN").is_some() && !std::path::Path::new(&path).exists() {
        std::fs::write(&path, to_hex(sealed)).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(!stored.is_empty(), "{path} is not there");
    assert_eq!(to_hex(sealed), stored, "{name} encodes to something else");
    from_hex(&stored)
}

fn to_hex(bytes: &[u8]) -> String {
    let line = |line: &[u8]| {
        let digits: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
        digits + "\n"
    };
    bytes.chunks(32).map(line).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn golden_files_of_format_1_decode_and_encode_to_the_same_bytes() {
    assert_eq!(FORMAT, 1, "a new format gets golden files of its own");
    for (name, entry) in entries() {
        golden(&format!("entry-{name}"), &entry);
    }
    golden("snapshot", &snapshot());
    golden("question-waits", &question(OnDeadline::Wait));
    golden(
        "question-answers",
        &question(OnDeadline::Answer(value("false"))),
    );
    golden("question-fails", &question(OnDeadline::Fail));
    golden("record-step", &step_record());
    golden("record-step-labels", &labeled_step_record());
    golden("record-task", &task_record());
    golden("entry-resume", &resumed());
    golden("entry-resume-write", &resumed_with());
    golden("entry-resume-goto", &resumed_at());
    let failed = EndedHow::Failed {
        kind: FailureKind::Retryable,
        message: "broken".to_owned(),
    };
    golden(
        "record-end-paused",
        &end_record(EndedHow::Paused(vec![draft()])),
    );
    golden("record-end-failed", &end_record(failed));
    golden("record-end-timed-out", &end_record(EndedHow::TimedOut));
}

#[test]
fn golden_files_of_orders_decode_and_encode_to_the_same_bytes() {
    for (name, order) in orders() {
        let bytes = golden_bytes(&format!("order-{name}"), &order.to_bytes(&thread()));
        let read = QueuedRequest::from_bytes(&bytes, &thread()).unwrap();
        assert_eq!(read, order, "{name} decodes to something else");
    }
}

#[test]
fn an_order_of_another_thread_is_not_read() {
    let (_, order) = &orders()[0];
    let other = ThreadId::new("another").unwrap();
    let read = QueuedRequest::from_bytes(&order.to_bytes(&thread()), &other).map(drop);
    assert_eq!(code(read), "format-damaged");
}

/// One sealed body of each kind, with the way to read it.
fn bodies() -> Vec<(Vec<u8>, Unseal)> {
    vec![
        (entries()[5].1.seal(&thread(), SEQ), unseal::<Entry>),
        (snapshot().seal(&thread(), SEQ), unseal::<Snapshot>),
        (
            question(OnDeadline::Fail).seal(&thread(), SEQ),
            unseal::<InterruptRecord>,
        ),
        (step_record().seal(&thread(), SEQ), unseal::<Record>),
        (task_record().seal(&thread(), SEQ), unseal::<Record>),
    ]
}

type Unseal = fn(&[u8], &ThreadId, Seq) -> Result<(), FormatError>;

fn unseal<B: Body>(bytes: &[u8], thread: &ThreadId, seq: Seq) -> Result<(), FormatError> {
    B::unseal(bytes, thread, seq).map(drop)
}

fn code(read: Result<(), FormatError>) -> &'static str {
    read.map_or_else(|error| error.code(), |()| "read")
}

#[test]
fn every_change_of_a_single_byte_is_noticed() {
    for (sealed, unseal) in bodies() {
        for at in 0..sealed.len() {
            for flip in 1..=255 {
                let mut bytes = sealed.clone();
                bytes[at] ^= flip;
                assert_eq!(code(unseal(&bytes, &thread(), SEQ)), "format-damaged");
            }
        }
    }
}

#[test]
fn a_body_that_is_cut_or_longer_is_noticed() {
    for (sealed, unseal) in bodies() {
        for upto in 0..sealed.len() {
            assert_eq!(
                code(unseal(&sealed[..upto], &thread(), SEQ)),
                "format-damaged"
            );
        }
        let longer = [&sealed[..], &[0]].concat();
        assert_eq!(code(unseal(&longer, &thread(), SEQ)), "format-damaged");
    }
}

#[test]
fn a_row_of_another_thread_another_tenant_or_another_place_is_noticed() {
    let elsewhere = [
        (ThreadId::of_tenant("acme", "thread-2").unwrap(), SEQ),
        (ThreadId::of_tenant("acmet", "hread-1").unwrap(), SEQ),
        (ThreadId::new("thread-1").unwrap(), SEQ),
        (thread(), Seq(8)),
        (thread(), Seq(0)),
    ];
    for (sealed, unseal) in bodies() {
        assert_eq!(code(unseal(&sealed, &thread(), SEQ)), "read");
        for (thread, seq) in &elsewhere {
            assert_eq!(code(unseal(&sealed, thread, *seq)), "format-damaged");
        }
    }
}

/// A body with another header and a checksum that fits it.
fn with_header(mut sealed: Vec<u8>, header: [u8; 3]) -> Vec<u8> {
    sealed[..3].copy_from_slice(&header);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&header);
    for part in [thread().tenant(), thread().name()] {
        sum.update(&u32::try_from(part.len()).unwrap().to_le_bytes());
        sum.update(part.as_bytes());
    }
    sum.update(&SEQ.0.to_le_bytes());
    sum.update(&sealed[7..]);
    sealed[3..7].copy_from_slice(&sum.finalize().to_le_bytes());
    sealed
}

#[test]
fn newer_formats_envelopes_and_other_kinds_are_told_by_name() {
    for (sealed, unseal) in bodies() {
        let kind = sealed[1];
        let read = |header| code(unseal(&with_header(sealed.clone(), header), &thread(), SEQ));
        assert_eq!(read([1, kind, 0]), "read");
        assert_eq!(read([2, kind, 0]), "format-newer");
        assert_eq!(read([255, kind, 9]), "format-newer");
        assert_eq!(read([1, kind, 1]), "format-envelope");
        assert_eq!(read([1, kind % 4 + 1, 0]), "format-content");
    }
}

/// An encrypted body: 8 bytes of a key's id, 24 of a nonce, and what only the key's owner can read.
pub(crate) fn encrypted(kind: BodyKind, seq: Seq) -> Vec<u8> {
    let content: Vec<u8> = (0..64).collect();
    wrap_encrypted(kind, &thread(), seq, &content)
}

#[test]
fn golden_files_of_encrypted_bodies_are_wrapped_and_unwrapped_to_the_same_bytes() {
    let content: Vec<u8> = (0..64).collect();
    for (name, kind) in [
        ("entry", BodyKind::Entry),
        ("snapshot", BodyKind::Snapshot),
        ("interrupt", BodyKind::Interrupt),
        ("record", BodyKind::Record),
        ("request", BodyKind::Request),
    ] {
        let bytes = golden_bytes(&format!("encrypted-{name}"), &encrypted(kind, SEQ));
        let read = unwrap_encrypted(kind, &thread(), SEQ, &bytes);
        assert_eq!(read, Ok(Some(&content[..])), "{name}");
    }
}

#[test]
fn an_encrypted_body_is_checked_like_a_plain_one_and_not_read_without_its_key() {
    let sealed = encrypted(BodyKind::Entry, SEQ);
    assert_eq!(
        code(unseal::<Entry>(&sealed, &thread(), SEQ)),
        "format-envelope"
    );
    let kind = BodyKind::Entry;
    for bit in 0..sealed.len() * 8 {
        let mut bytes = sealed.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let read = unwrap_encrypted(kind, &thread(), SEQ, &bytes);
        // A changed envelope byte makes it something else, which is no encrypted body.
        match bit / 8 {
            2 => assert_eq!(read, Ok(None), "bit {bit}"),
            _ => assert!(read.is_err(), "bit {bit}"),
        }
    }
    let other = ThreadId::new("another").unwrap();
    for (thread, seq) in [(&other, SEQ), (&thread(), SEQ.next())] {
        let read = unwrap_encrypted(kind, thread, seq, &sealed).map(drop);
        assert_eq!(code(read), "format-damaged");
    }
    let read = unwrap_encrypted(BodyKind::Snapshot, &thread(), SEQ, &sealed).map(drop);
    assert_eq!(code(read), "format-content");
    for (sealed, _) in bodies() {
        let kind = BodyKind::Entry;
        assert_eq!(unwrap_encrypted(kind, &thread(), SEQ, &sealed), Ok(None));
    }
}

#[test]
fn an_extension_that_must_be_understood_is_not_passed_over() {
    for (tag, wanted) in [
        (2, "read"),
        (1, "format-extension"),
        (3, "format-extension"),
    ] {
        let mut entry = entries().remove(0).1;
        entry.extensions = extensions(tag);
        let sealed = entry.seal(&thread(), SEQ);
        assert_eq!(code(unseal::<Entry>(&sealed, &thread(), SEQ)), wanted);
        let kept = Entry::unseal(&sealed, &thread(), SEQ).map(|entry| entry.extensions);
        if let Ok(kept) = kept {
            assert_eq!(kept, extensions(tag), "what is passed over is kept");
        }
    }
}

#[test]
fn labels_are_understood_with_a_record_and_nowhere_else() {
    for (tag, wanted) in [
        (1, "read"),
        (3, "format-extension"),
        (5, "format-extension"),
    ] {
        let record = Record {
            extensions: extensions(tag),
            ..step_record()
        };
        let sealed = record.seal(&thread(), SEQ);
        assert_eq!(code(unseal::<Record>(&sealed, &thread(), SEQ)), wanted);
    }
}
