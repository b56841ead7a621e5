//! What the runtime reads: stored bodies, archives of threads, and the streams of models.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use rustix::time::ClockId;
use serde_json::json;
use superstep::checkpoint::format::{
    Body, Change, Entry, EntryKind, Extensions, FrameAdvanced, FrameSnapshot, InterruptRecord,
    Next, OnDeadline, PlannedTask, Record, RecordContent, RunRecord, Snapshot, StepRecord,
    TaskWrite,
};
use superstep::checkpoint::{
    Archive, ArchivedEntry, ArchivedInterrupt, ArchivedListing, Head, Memory, Metadata, RecordRow,
    StoredBody,
};
use superstep::{
    Checkpointer, Epoch, FramePath, InterruptId, NodeName, RunId, Seq, TaskId, ThreadId, Timestamp,
    Value,
};
use superstep_llm::{Address, Message, Model, Provider, Remote, Request};
use tokio::runtime::Runtime;

use super::{linear, linear_by};

fn thread() -> ThreadId {
    ThreadId::new("t1").unwrap()
}

fn node() -> NodeName {
    NodeName::new("n").unwrap()
}

fn value(text: &str) -> Value {
    Value::plain(&json!({ "text": text })).unwrap()
}

/// Ids in the order of their numbers.
fn id(number: usize) -> [u8; 16] {
    (number as u128).to_be_bytes()
}

fn run_record() -> RunRecord {
    RunRecord {
        run: RunId::from_bytes([1; 16]),
        graph: "g".to_owned(),
        context: None,
        step_limit: 25,
    }
}

fn entry(changes: Vec<Change>) -> Entry {
    Entry {
        kind: EntryKind::Step,
        parent: Seq(0),
        at: Timestamp::default(),
        changes,
        stop: None,
        extensions: Extensions::default(),
    }
}

fn frame(state: Value) -> FrameSnapshot {
    FrameSnapshot {
        path: FramePath::root(),
        version: 1,
        state: Some(state),
        forwarded: Vec::new(),
        entered_by: None,
        step: 1,
        last: Vec::new(),
        next: Next::default(),
        failed: Vec::new(),
    }
}

fn snapshot(frames: Vec<FrameSnapshot>) -> Snapshot {
    Snapshot {
        branch: Seq(0),
        run: run_record(),
        frames,
        extensions: Extensions::default(),
    }
}

fn question(number: usize) -> InterruptRecord {
    InterruptRecord {
        id: InterruptId::from_bytes(id(number)),
        frame: FramePath::root(),
        node: node(),
        task: TaskId::from_bytes(id(number)),
        key: "k".to_owned(),
        kind: "approval".to_owned(),
        request: value("?"),
        schema: None,
        deadline: None,
        on_deadline: OnDeadline::Wait,
        extensions: Extensions::default(),
    }
}

/// A sealed body is read whole and cut short.
fn linear_body<T: Body>(what: &str, count: usize, make: impl Fn(usize) -> T) {
    let sealed = |count| make(count).seal(&thread(), Seq(1));
    linear(what, count, sealed, |bytes| {
        assert!(T::unseal(bytes, &thread(), Seq(1)).is_ok());
        assert!(T::unseal(&bytes[..bytes.len() / 2], &thread(), Seq(1)).is_err());
    });
}

#[test]
fn stored_bodies_are_linear() {
    let write = |number: usize| TaskWrite {
        node: node(),
        index: number as u32,
        updates: vec![value("x"); 3],
        events: vec![value("y")],
        cached: false,
    };
    let advanced = |writes, next| {
        Change::FrameAdvanced(FrameAdvanced {
            frame: FramePath::root(),
            writes,
            next,
        })
    };
    linear_body("entry with many changes", 40_000, |count| {
        entry(vec![advanced(Vec::new(), Next::default()); count])
    });
    linear_body("entry with many writes", 40_000, |count| {
        entry(vec![advanced(
            (0..count).map(write).collect(),
            Next::default(),
        )])
    });
    linear_body("entry with many tasks", 100_000, |count| {
        let planned = PlannedTask {
            node: node(),
            payload: Some(value("x")),
        };
        let next = Next {
            tasks: vec![planned; count],
            deferred: vec![node(); count],
            ..Next::default()
        };
        entry(vec![advanced(Vec::new(), next)])
    });
    linear_body("snapshot with a large state", 32 << 20, |bytes| {
        snapshot(vec![frame(value(&"x".repeat(bytes)))])
    });
    linear_body("snapshot with many frames", 40_000, |count| {
        snapshot(vec![frame(value("x")); count])
    });
    linear_body("question with a large request", 16 << 20, |bytes| {
        InterruptRecord {
            request: value(&"\"\\".repeat(bytes / 2)),
            ..question(1)
        }
    });
    // What a body carries is decoded when a node or a person reads it.
    for unit in ["[1,", "{\"a\":1},", "\"\\u0041\",", "1.5e3,"] {
        linear(
            &format!("value {unit:?}"),
            1 << 20,
            |bytes| {
                let text = format!(
                    "[{}0]",
                    unit.replace("[1,", "[1],").repeat(bytes / unit.len())
                );
                Value::plain(&serde_json::from_str::<serde_json::Value>(&text).unwrap()).unwrap()
            },
            |value| assert!(value.decode::<serde_json::Value>().is_ok()),
        );
    }
}

fn archive(count: usize, metadata: Metadata) -> Archive {
    let rows = 1..=count as u64;
    let body = entry(Vec::new());
    let seqs = rows.map(Seq);
    Archive {
        thread: thread(),
        head: Head {
            epoch: Epoch(1),
            seq: Seq(count as u64),
            ..Head::default()
        },
        seen: 0,
        cancel: false,
        listing: ArchivedListing {
            graph: "g".to_owned(),
            metadata,
            ..ArchivedListing::default()
        },
        entries: seqs
            .clone()
            .map(|seq| ArchivedEntry {
                seq,
                epoch: Epoch(1),
                body: body.seal(&thread(), seq),
            })
            .collect(),
        snapshots: seqs
            .map(|seq| StoredBody {
                seq,
                body: snapshot(vec![frame(value("x"))]).seal(&thread(), seq),
            })
            .collect(),
        records: Vec::new(),
        interrupts: Vec::new(),
        extensions: Extensions::default(),
    }
}

fn with_questions(count: usize) -> Archive {
    let question = |number| {
        let question = question(number);
        ArchivedInterrupt {
            id: question.id,
            seq: Seq(1),
            asked_at: Timestamp::default(),
            deadline: None,
            body: question.seal(&thread(), Seq(1)),
            answer: None,
            closed: Some(Seq(1)),
        }
    };
    Archive {
        interrupts: (0..count).map(question).collect(),
        ..archive(1, Metadata::new())
    }
}

fn with_records(count: usize) -> Archive {
    let step = |ordinal| {
        let step = StepRecord {
            ordinal,
            overlapped: false,
            value: value("x"),
        };
        let record = Record {
            content: RecordContent::Step(step),
            extensions: Extensions::default(),
        };
        record.seal(&thread(), Seq(0))
    };
    let record = |number| RecordRow {
        task: TaskId::from_bytes(id(number)),
        key: "k".to_owned(),
        body: step(number as u32),
    };
    Archive {
        records: (0..count).map(record).collect(),
        ..archive(1, Metadata::new())
    }
}

#[test]
fn archives_are_linear() {
    let import = |bytes: &Vec<u8>| {
        let archive = Archive::from_bytes(bytes).unwrap();
        let memory = Memory::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(memory.import(&thread(), &archive))
            .unwrap();
        // A second import compares.
        runtime
            .block_on(memory.import(&thread(), &archive))
            .unwrap();
        assert!(Archive::from_bytes(&bytes[..bytes.len() / 2]).is_err());
    };
    linear(
        "archive with a long log",
        20_000,
        |count| archive(count, Metadata::new()).to_bytes(),
        import,
    );
    linear(
        "archive with many questions",
        20_000,
        |count| with_questions(count).to_bytes(),
        import,
    );
    linear(
        "archive with many records",
        20_000,
        |count| with_records(count).to_bytes(),
        import,
    );
    linear(
        "archive with much metadata",
        50_000,
        |count| {
            let field = |number| (format!("f{number}"), json!(number));
            archive(1, (0..count).map(field).collect()).to_bytes()
        },
        import,
    );
    linear(
        "archive with large bodies",
        16 << 20,
        |bytes| {
            let mut archive = archive(1, Metadata::new());
            archive.snapshots[0].body =
                snapshot(vec![frame(value(&"x".repeat(bytes)))]).seal(&thread(), Seq(1));
            archive.to_bytes()
        },
        import,
    );
    linear(
        "not an archive",
        32 << 20,
        |bytes| vec![0xff; bytes],
        |bytes| assert!(Archive::from_bytes(bytes).is_err()),
    );
}

/// A server that answers every request with the same stream, and a client for each provider.
struct Streams {
    runtime: Runtime,
    url: String,
    body: Arc<Mutex<Vec<u8>>>,
}

impl Streams {
    fn new() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let body: Arc<Mutex<Vec<u8>>> = Arc::default();
        let sent = body.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let mut length = 0;
                let mut line = String::new();
                while reader.read_line(&mut line).unwrap_or(0) > 2 {
                    if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = given.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut asked = vec![0; length];
                let _ = reader.read_exact(&mut asked);
                let body = sent.lock().unwrap().clone();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                let mut stream = reader.into_inner();
                // The client leaves when it has seen too much.
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&body);
            }
        });
        Self {
            runtime: Runtime::new().unwrap(),
            url,
            body,
        }
    }

    /// The client, the gate and the server are threads of this process, so the time of all of them counts.
    fn linear(&self, provider: Provider, what: &str, size: usize, make: impl Fn(usize) -> String) {
        let address = Address {
            url: self.url.clone(),
            key: None,
        };
        let name = superstep_llm::ModelName::new(provider, "m");
        let model = self
            .runtime
            .block_on(async { Remote::at(&name, address).unwrap() });
        let request = Request::new("a", vec![Message::user("hi")]);
        let what = format!("{provider:?} {what}");
        linear_by(ClockId::ProcessCPUTime, &what, size, make, |text| {
            *self.body.lock().unwrap() = text.clone().into_bytes();
            // What is not a reply is an error; how long that takes is measured all the same.
            let _ = self.runtime.block_on(model.reply(&request));
        });
    }
}

#[test]
fn streams_of_models_are_linear() {
    let streams = Streams::new();
    let event = |json: serde_json::Value| format!("data: {json}\n\n");
    let repeated = |event: String| move |bytes: usize| event.repeat(bytes / event.len() + 1);
    let large = 512 << 10;
    let text = event(json!({ "choices": [{ "index": 0, "delta": { "content": "word " } }] }));
    streams.linear(Provider::OpenAi, "words", large, repeated(text));
    let piece = json!([{ "index": 0, "function": { "arguments": "\"x\"," } }]);
    let call = event(json!({ "choices": [{ "index": 0, "delta": { "tool_calls": piece } }] }));
    streams.linear(Provider::OpenAi, "arguments", large, repeated(call));
    streams.linear(Provider::OpenAi, "calls", large / 4, |bytes| {
        let call = |index| {
            let call = json!([{ "index": index, "id": format!("c{index}"), "function": { "name": "f", "arguments": "{}" } }]);
            event(json!({ "choices": [{ "index": 0, "delta": { "tool_calls": call } }] }))
        };
        (0..(bytes / 120).min(1_000)).map(call).collect()
    });
    let thought =
        event(json!({ "choices": [{ "index": 0, "delta": { "reasoning_content": "hm " } }] }));
    streams.linear(Provider::OpenAi, "thoughts", large, repeated(thought));
    // One event, up to the limit of 4 MiB.
    streams.linear(Provider::OpenAi, "one event", (4 << 20) - 200, |bytes| {
        event(json!({ "choices": [{ "index": 0, "delta": { "content": "x".repeat(bytes) } }] }))
    });
    for unit in [
        "\n",
        "\r\n",
        ": x\n",
        ": x\n\n",
        "data: x\n",
        "data:\n\n",
        "event: x\n\n",
        "id: 1\n",
        "x",
        "data: {\"a\":[",
    ] {
        for provider in [Provider::OpenAi, Provider::Anthropic, Provider::Ollama] {
            streams.linear(provider, &format!("{unit:?}"), large / 4, |bytes| {
                unit.repeat(bytes / unit.len() + 1)
            });
        }
    }
    let named = |name: &str, json: serde_json::Value| format!("event: {name}\ndata: {json}\n\n");
    let delta = |delta| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    for (what, piece) in [
        ("words", json!({ "type": "text_delta", "text": "word " })),
        (
            "arguments",
            json!({ "type": "input_json_delta", "partial_json": "\"x\"," }),
        ),
        (
            "thoughts",
            json!({ "type": "thinking_delta", "thinking": "hm " }),
        ),
    ] {
        let event = named("content_block_delta", delta(piece));
        streams.linear(Provider::Anthropic, what, large, repeated(event));
    }
    let line = format!(
        "{}\n",
        json!({ "message": { "role": "assistant", "content": "word " }, "done": false })
    );
    streams.linear(Provider::Ollama, "words", large, repeated(line));
    let part = event(json!({ "candidates": [{ "content": { "parts": [{ "text": "word " }] } }] }));
    streams.linear(Provider::Gemini, "words", large, repeated(part));
    let said = named(
        "response.output_text.delta",
        json!({ "type": "response.output_text.delta", "delta": "word " }),
    );
    streams.linear(Provider::OpenAiResponses, "words", large, repeated(said));
}
