//! Traces that are exported while a run goes on, as a collector receives them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde_json::json;

use crate::docs::{replies, repository, two_agents};
use crate::kit::Workdir;
use crate::serve::ServeProcess;

/// A collector on this machine that keeps what it receives.
struct Collector {
    url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

#[derive(Clone, Debug)]
struct Received {
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Collector {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let kept = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let kept = kept.clone();
                std::thread::spawn(move || {
                    let stream = stream.unwrap();
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some(request) = read(&mut reader) {
                        kept.lock().unwrap().push(request);
                        let mut stream = &stream;
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
                    }
                });
            }
        });
        Self { url, received }
    }

    fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Names of all spans that have arrived.
    fn names(&self) -> Vec<String> {
        self.received().iter().flat_map(names).collect()
    }
}

fn read(reader: &mut impl BufRead) -> Option<Received> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Received {
        path,
        headers,
        body,
    })
}

fn names(received: &Received) -> Vec<String> {
    let decoded = ExportTraceServiceRequest::decode(received.body.as_slice()).unwrap();
    let scopes = decoded
        .resource_spans
        .into_iter()
        .flat_map(|of| of.scope_spans);
    scopes
        .flat_map(|scope| scope.spans)
        .map(|span| span.name)
        .collect()
}

#[test]
fn every_run_is_exported_as_it_happens_and_without_its_contents() {
    let collector = Collector::new();
    let mut all = replies("file-structure", &[62, 85], &[3]);
    all[3]["delay_ms"] = json!(3_000);
    let workdir = Workdir::scripted(&all.into())
        .with_environment("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    repository(&workdir.path(""));
    let ran = workdir.run(&["docs", "repo", "--agents", "file-structure"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let received = collector.received();
    let first = names(&received[0]);
    assert!(
        first.contains(&"file-structure-InitialAnalysis".to_owned())
            && !first.contains(&"DocumentationGeneration-Complete".to_owned()),
        "the first part comes while the run goes on: {first:?}"
    );
    let mut names = collector.names();
    for wanted in [
        "DocumentationGeneration-Complete",
        "ScanProjectStructure",
        "Agent-file-structure",
        "file-structure-Refinement-1",
        "file-structure-Finalize",
        "chat script.json",
    ] {
        assert!(
            names.iter().any(|name| name == wanted),
            "{wanted}: {names:?}"
        );
    }
    names.retain(|name| name == "file-structure-InitialAnalysis");
    assert_eq!(names.len(), 1, "nothing is sent twice");
    for request in &received {
        assert_eq!(request.path, "/v1/traces");
        let text = String::from_utf8_lossy(&request.body);
        assert!(
            !text.contains("Text 1 about"),
            "what a model said stays here"
        );
    }
}

#[test]
fn langsmith_gets_its_key_its_project_and_contents_if_that_is_switched_on() {
    let collector = Collector::new();
    let (workdir, docs) = two_agents();
    let workdir = workdir
        .with_environment("LANGSMITH_TRACING", "true")
        .with_environment("LANGSMITH_API_KEY", "lsv2-planted")
        .with_environment("LANGSMITH_ENDPOINT", &collector.url)
        .with_environment("LANGSMITH_PROJECT", "shop")
        .with_environment("ARCHIE_TRACE_CONTENT", "1");
    let ran = workdir.run(&docs, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let received = collector.received();
    for request in &received {
        assert_eq!(request.path, "/otel/v1/traces");
        assert_eq!(request.headers["x-api-key"], "lsv2-planted");
        assert_eq!(request.headers["langsmith-project"], "shop");
    }
    let has_text =
        |request: &Received| String::from_utf8_lossy(&request.body).contains("Text 2 about");
    assert!(received.iter().any(has_text), "contents were asked for");
    assert!(!format!("{}{}", ran.out(), ran.err()).contains("planted"));
}

#[test]
fn a_backend_that_is_gone_or_silent_neither_fails_nor_holds_up_a_run() {
    // Takes connections, and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    for backend in ["http://127.0.0.1:9", &silent] {
        let (workdir, docs) = two_agents();
        let workdir = workdir.with_environment("OTEL_EXPORTER_OTLP_ENDPOINT", backend);
        let begun = Instant::now();
        let ran = workdir.run(&docs, "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(ran.out().contains("repo/.arch-docs/index.md"), "{ran:?}");
        assert_eq!(
            ran.err().matches("traces are not exported").count(),
            1,
            "{ran:?}"
        );
    }
}

/// The spans of a run that a server executes belong to the caller's trace.
#[test]
fn a_server_exports_the_runs_of_its_callers_in_their_traces() {
    let collector = Collector::new();
    let workdir = Workdir::scripted(&json!([]))
        .with_environment("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    let server = ServeProcess::start(&workdir);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let body =
        json!({ "assistant_id": "atris", "input": { "query": "What are the trending tracks?" } });
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let status = tokio.block_on(async {
        let request = reqwest::Client::new()
            .post(format!("http://{}/runs/wait", server.address))
            .header("traceparent", format!("00-{trace}-b7ad6b7169203331-01"))
            .header("content-type", "application/json")
            .body(body.to_string());
        request.send().await.unwrap().status()
    });
    assert_eq!(status, 200);
    let asked = Instant::now();
    while collector.received().is_empty() {
        assert!(
            asked.elapsed() < Duration::from_secs(20),
            "nothing was exported"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    for request in collector.received() {
        let decoded = ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap();
        let scopes = decoded
            .resource_spans
            .into_iter()
            .flat_map(|of| of.scope_spans);
        for span in scopes.flat_map(|scope| scope.spans) {
            let id: String = span
                .trace_id
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(id, trace, "span {}", span.name);
        }
    }
}
