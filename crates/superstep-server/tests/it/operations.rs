//! What an operator sees: request ids, the access log, readiness and metrics.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value as Json, json};
use superstep::checkpoint::StoredBody;
use superstep::checkpoint::format::Entry;
use superstep::prelude::*;
use superstep::registry::MemoryRegistry;
use superstep::trace::Trace;
use superstep::{Seq, ThreadId};
use superstep_server::{AccessRecord, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::kit::Client;

#[tokio::test]
async fn a_response_carries_the_id_of_its_request() {
    let client = Client::new().await;
    let with_id = |id: &str| {
        let request = Request::get("/ok").header("x-request-id", id);
        request.body(Body::empty()).unwrap()
    };
    let own = client.send(with_id("req-1")).await;
    assert_eq!(own.header("x-request-id"), Some("req-1"));
    let bad = client.send(with_id("two words")).await;
    let made = bad.header("x-request-id").unwrap().to_owned();
    assert!(!made.contains(' ') && made.len() == 36, "{made}");
    let refused = client.get("/nowhere").await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert!(refused.header("x-request-id").is_some());
}

/// A server that collects its access log.
async fn logged() -> (Client, Arc<Mutex<Vec<AccessRecord>>>) {
    let lines = Arc::<Mutex<Vec<AccessRecord>>>::default();
    let log = lines.clone();
    let runtime = Runtime::new(Memory::default());
    let builder = Client::builder(runtime, &MemoryRegistry::new());
    let write = move |record: &AccessRecord| log.lock().unwrap().push(record.clone());
    (Client::of(builder.access_log(write)).await, lines)
}

#[tokio::test]
async fn every_request_is_a_line_without_secrets() {
    let (client, lines) = logged().await;
    let thread = client.thread().await;
    let secret = json!({ "metadata": { "password": "hunter2" } });
    client
        .call("PATCH", &format!("{thread}?key=hunter2"), Some(secret))
        .await;
    client.get("/nowhere/hunter2").await;
    let lines = lines.lock().unwrap();
    let shown: Vec<_> = lines
        .iter()
        .map(|line| (line.method.as_str(), line.route.as_deref(), line.status))
        .collect();
    assert_eq!(
        shown,
        [
            ("POST", Some("/threads"), Some(200)),
            ("PATCH", Some("/threads/{thread_id}"), Some(200)),
            ("GET", None, Some(404)),
        ]
    );
    assert!(lines.iter().all(|line| line.bytes > 0), "{lines:?}");
    assert!(!format!("{lines:?}").contains("hunter2"), "{lines:?}");
    assert_eq!(lines[0].tenant.as_deref(), Some(""));
}

#[tokio::test]
async fn a_stream_is_logged_when_it_ends() {
    let (client, lines) = logged().await;
    let thread = client.thread().await;
    let body = json!({ "assistant_id": "slow", "input": {} });
    let stream = client.open(&format!("{thread}/runs/stream"), body).await;
    assert_eq!(lines.lock().unwrap().len(), 1, "the thread alone");
    drop(stream);
    assert_eq!(lines.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_server_that_drains_is_not_ready() {
    let client = Client::new().await;
    assert_eq!(
        client.get("/superstep/ready").await.ok(),
        json!({ "ready": true })
    );
    client.drain().await;
    let reply = client.get("/superstep/ready").await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(client.get("/ok").await.ok(), json!({ "ok": true }));
}

#[derive(Clone, Debug, Default, State)]
struct Ticket {
    answer: Option<String>,
    #[state(append)]
    closed_by: Vec<String>,
}

async fn ask(_: View<Ticket>, cx: NodeCx) -> Result<TicketUpdate, NodeError> {
    let question = Interrupt::new("solved", json!({ "text": "Is it solved?" }));
    let answer: String = cx.interrupt(question).await?;
    Ok(TicketUpdate::default().answer(Some(answer)))
}

async fn close(_: View<Ticket>, _: NodeCx) -> Result<TicketUpdate, NodeError> {
    Ok(TicketUpdate::default().closed_by("the new version".to_owned()))
}

/// The graph of a version: the new one has a node more.
fn ticket(is_new: bool) -> Graph<Ticket> {
    let builder = Graph::builder("ticket").node("ask", ask).edge(START, "ask");
    let builder = match is_new {
        true => builder
            .node("close", close)
            .edge("ask", "close")
            .edge("close", END),
        false => builder.edge("ask", END),
    };
    builder.build().unwrap()
}

#[tokio::test]
async fn two_versions_serve_side_by_side_and_the_new_one_resumes_what_waits() {
    let (store, registry) = (Memory::default(), Arc::new(MemoryRegistry::new()));
    let serve = |is_new| {
        let runtime = Runtime::new(store.clone());
        let builder = Server::builder(runtime, registry.clone());
        Client::of(builder.graph(ticket(is_new).definition()))
    };
    let old = serve(false).await;
    let start = json!({ "assistant_id": "ticket", "input": {} });
    let answer = |text: &str| json!({ "assistant_id": "ticket", "command": { "resume": text } });
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let thread = old.thread().await;
        let values = old.wait(&thread, start.clone()).await;
        assert!(values["__interrupt__"].is_array(), "{values}");
        waiting.push(thread);
    }
    let new = serve(true).await;
    let ready = json!({ "ready": true });
    for server in [&old, &new] {
        assert_eq!(server.get("/superstep/ready").await.ok(), ready);
        let inbox = server.get("/superstep/inbox").await.ok();
        assert_eq!(inbox.as_array().unwrap().len(), 3);
    }
    // A client that was led to the old version gets its answer through, and sees it at the new one.
    let values = old.wait(&waiting[0], answer("yes")).await;
    assert_eq!(values["answer"], "yes");
    let state = new.get(&format!("{}/state", waiting[0])).await.ok();
    assert_eq!(state["values"]["answer"], "yes");
    assert_eq!(state["next"], json!([]));
    // The new one resumes a thread of the old one, while that still runs and after it was drained.
    for thread in &waiting[1..] {
        let values = new.wait(thread, answer("no")).await;
        assert_eq!(
            (&values["answer"], &values["closed_by"]),
            (&json!("no"), &json!(["the new version"]))
        );
        old.drain().await;
        let drained = old.get("/superstep/ready").await;
        assert_eq!(drained.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(new.get("/superstep/ready").await.ok(), ready);
    }
}

#[tokio::test]
async fn metrics_show_what_waits() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let slow = json!({ "assistant_id": "slow", "input": {} });
    for _ in 0..2 {
        client
            .post(&format!("{thread}/runs"), slow.clone())
            .await
            .ok();
    }
    let figures = client.get("/metrics?format=json").await.ok();
    assert_eq!(figures["runs_executing"], 1, "{figures}");
    assert_eq!(figures["runs_pending"], 1, "{figures}");
    assert_eq!(figures["requests_open"], 1, "this one: {figures}");
    assert!(figures["run_oldest_waiting_seconds"].is_u64(), "{figures}");
    let text = client.get("/metrics").await;
    let text = String::from_utf8(text.bytes).unwrap();
    assert!(
        text.contains("\nsuperstep_requests_limited_total 0\n"),
        "{text}"
    );
}

/// `deploy/metrics.json` is what alert rules and the dashboard rely on.
#[tokio::test]
async fn the_metrics_are_those_that_operators_were_given() {
    let text = Client::new().await.get("/metrics").await.bytes;
    let text = String::from_utf8(text).unwrap();
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let returned: Json = kinds
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            (name.to_owned(), json!(kind))
        })
        .collect();
    let listed = include_str!("../../../../deploy/metrics.json");
    let listed: Json = serde_json::from_str(listed).unwrap();
    assert_eq!(returned, listed["server"]);
}

#[tokio::test]
async fn a_connection_over_the_limit_waits_for_another_to_end() {
    let runtime = Runtime::new(Memory::default());
    let builder = Client::builder(runtime, &MemoryRegistry::new()).connections(1);
    let server = builder.start().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move { server.serve(listener, std::future::pending()).await });
    let mut first = TcpStream::connect(address).await.unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    let ask = b"GET /ok HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut read = [0; 12];
    for stream in [&mut first, &mut second] {
        stream.write_all(ask).await.unwrap();
    }
    first.read_exact(&mut read).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(200), second.read_exact(&mut read));
    early.await.unwrap_err();
    drop(first);
    second.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"HTTP/1.1 200");
}

#[tokio::test]
async fn a_run_continues_the_trace_of_its_caller() {
    let runtime = Runtime::new(Memory::default());
    let client = Client::over(runtime.clone(), &MemoryRegistry::new()).await;
    let thread = client.thread().await;
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let body = json!({ "assistant_id": "chat", "input": { "topic": "tea" } });
    let request = Request::post(format!("{thread}/runs/wait"))
        .header("content-type", "application/json")
        .header("traceparent", header)
        .body(Body::from(body.to_string()))
        .unwrap();
    client.send(request).await.ok();
    let id: ThreadId = thread.trim_start_matches("/threads/").parse().unwrap();
    let stored = runtime.checkpointer().entries(&id, Seq(0), 100).await;
    let read = |stored: StoredBody| (stored.seq, Entry::read(&stored, &id).unwrap());
    let entries: Vec<_> = stored.unwrap().into_iter().map(read).collect();
    let trace = Trace::read(&id, &entries, &[]);
    let run = &trace.runs[0];
    assert_eq!(run.caller().unwrap().to_string(), header);
    assert_eq!(run.trace(), run.caller().map(|caller| caller.trace));
    let runs = client.get(&format!("{thread}/runs")).await.ok();
    assert!(
        !runs.to_string().contains("4bf92f35"),
        "callers do not see it"
    );
}
