//! Streams of runs, as clients of LangGraph servers read them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt as _;
use http::{HeaderMap, Request, StatusCode};
use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep::registry::MemoryRegistry;
use superstep_server::Server;
use tower::ServiceExt as _;

#[derive(Clone, Debug, Default, State)]
pub(crate) struct Notes {
    topic: String,
    #[state(append)]
    lines: Vec<String>,
}

fn line(text: impl Into<String>) -> NotesUpdate {
    NotesUpdate::default().lines(text.into())
}

async fn first(notes: View<Notes>, cx: NodeCx) -> Result<NotesUpdate, NodeError> {
    cx.emit(json!({ "name": "progress", "step": "first" }))?;
    Ok(line(format!("first about {}", notes.topic)))
}

async fn second(_: View<Notes>, _: NodeCx) -> Result<NotesUpdate, NodeError> {
    Ok(line("second"))
}

async fn idle(_: View<Notes>, _: NodeCx) -> Result<NotesUpdate, NodeError> {
    Ok(NotesUpdate::default())
}

async fn ask(_: View<Notes>, cx: NodeCx) -> Result<NotesUpdate, NodeError> {
    cx.emit(json!({ "name": "progress", "step": "ask" }))?;
    let answer: String = cx.interrupt(Interrupt::new("really", "Really?")).await?;
    Ok(line(format!("answered {answer}")))
}

async fn fail(_: View<Notes>, _: NodeCx) -> Result<NotesUpdate, NodeError> {
    Err(NodeError::fatal("kaboom"))
}

async fn sleep(notes: View<Notes>, _: NodeCx) -> Result<NotesUpdate, NodeError> {
    if notes.topic != "nothing" {
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    Ok(NotesUpdate::default())
}

/// Shows what the node of an agent shows while a model writes.
async fn write(_: View<Notes>, cx: NodeCx) -> Result<NotesUpdate, NodeError> {
    for text in ["Hello,", " world!"] {
        cx.emit_live(json!({ "event": "token", "message": "m1", "text": text }))?;
    }
    cx.emit_live(json!({
        "event": "model_ended", "message": "m1", "input_tokens": 3, "output_tokens": 2,
    }))?;
    cx.emit_live(json!({
        "event": "tool_started", "id": "c1", "name": "search", "input": { "query": "v3" },
    }))?;
    cx.emit_live(json!({
        "event": "tool_ended", "id": "c1", "name": "search", "status": "success", "output": "found",
    }))?;
    Ok(line("written"))
}

/// Builds a graph whose nodes run one after another.
macro_rules! chain {
    ($name:literal, $first:ident $(, $next:ident)*) => {{
        let builder = Graph::builder($name)
            .node(stringify!($first), $first)
            .edge(START, stringify!($first))
            .inputs(["topic", "lines"]);
        let last = stringify!($first);
        $(
            let builder = builder
                .node(stringify!($next), $next)
                .edge(last, stringify!($next));
            let last = stringify!($next);
        )*
        builder.edge(last, END).build().unwrap()
    }};
}

fn nested() -> Graph<Notes> {
    let child = chain!("child", ask);
    Graph::builder("nested")
        .shared_subgraph("inner", child)
        .edge(START, "inner")
        .edge("inner", END)
        .inputs(["topic", "lines"])
        .build()
        .unwrap()
}

/// A graph around `nested`, so that the question is asked two levels down.
fn deep() -> Graph<Notes> {
    Graph::builder("deep")
        .shared_subgraph("outer", nested())
        .edge(START, "outer")
        .edge("outer", END)
        .inputs(["topic", "lines"])
        .build()
        .unwrap()
}

/// A subgraph that ends, next to a node that asks.
fn beside() -> Graph<Notes> {
    let child = chain!("child", first);
    Graph::builder("beside")
        .shared_subgraph("inner", child)
        .node("ask", ask)
        .edge(START, "inner")
        .edge(START, "ask")
        .edge("inner", END)
        .edge("ask", END)
        .inputs(["topic", "lines"])
        .build()
        .unwrap()
}

/// A server with the graphs of these tests, and a client for it.
pub(crate) struct StreamClient {
    router: Router,
    pub(crate) server: Server,
}

impl StreamClient {
    pub(crate) async fn new() -> Self {
        let runtime = Runtime::new(Memory::default());
        let server = Server::builder(runtime, Arc::new(MemoryRegistry::new()))
            .graph(chain!("two", first, second).definition())
            .graph(chain!("quiet", idle).definition())
            .graph(chain!("asking", first, ask).definition())
            .graph(chain!("broken", fail).definition())
            .graph(chain!("slow", sleep).definition())
            .graph(chain!("writing", write).definition())
            .graph(nested().definition())
            .graph(deep().definition())
            .graph(beside().definition())
            .start()
            .await
            .unwrap();
        Self::of(server)
    }

    pub(crate) fn of(server: Server) -> Self {
        Self {
            router: server.router(),
            server,
        }
    }

    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// Sends a request and returns the stream of its reply.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Json>,
    ) -> Opened {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
        let response = self
            .router
            .clone()
            .oneshot(request.body(body).unwrap())
            .await;
        let response = response.unwrap();
        Opened {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.into_body().into_data_stream(),
            text: String::new(),
        }
    }

    pub(crate) async fn post(&self, path: &str, body: Json) -> Opened {
        self.open("POST", path, &[], Some(body)).await
    }

    /// Sends a text that may be anything.
    pub(crate) async fn post_text(&self, path: &str, text: &str) -> Opened {
        let request = Request::builder().method("POST").uri(path);
        let request = request.body(Body::from(text.to_owned())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        Opened {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.into_body().into_data_stream(),
            text: String::new(),
        }
    }

    pub(crate) async fn json(&self, method: &str, path: &str, body: Option<Json>) -> Json {
        let mut opened = self.open(method, path, &[], body).await;
        while opened.read().await.is_some() {}
        assert!(
            opened.status.is_success(),
            "{}: {}",
            opened.status,
            opened.text
        );
        serde_json::from_str(&opened.text).unwrap_or_default()
    }

    /// Creates a thread and returns its path.
    pub(crate) async fn thread(&self) -> String {
        let created = self.json("POST", "/threads", Some(json!({}))).await;
        format!("/threads/{}", created["thread_id"].as_str().unwrap())
    }

    /// Streams a run on a new thread to its end.
    async fn stream(&self, graph: &str, modes: Json) -> Vec<Streamed> {
        let thread = self.thread().await;
        let body = json!({
            "assistant_id": graph,
            "input": { "topic": "tea" },
            "stream_mode": modes,
            "stream_subgraphs": true,
        });
        let opened = self.post(&format!("{thread}/runs/stream"), body).await;
        assert_eq!(opened.status, StatusCode::OK);
        opened.read_all().await
    }
}

/// A reply that is a stream.
pub(crate) struct Opened {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: BodyDataStream,
    text: String,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Streamed {
    pub(crate) name: String,
    pub(crate) data: Json,
    pub(crate) id: String,
}

impl Opened {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Reads the next bytes; `None` at the end. Panics if the connection breaks or nothing comes.
    async fn read(&mut self) -> Option<()> {
        let read = tokio::time::timeout(Duration::from_secs(10), self.body.next()).await;
        let bytes = read
            .expect("something comes in time")?
            .expect("the connection holds");
        self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        Some(())
    }

    /// Returns the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Streamed> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\r\n\r\n") {
                let event = parse(block);
                self.text = rest.to_owned();
                if event.is_some() {
                    return event;
                }
            }
            self.read().await?;
        }
    }

    /// Returns the data of the next event of a stream whose events have nothing else; `None` at the end.
    pub(crate) async fn next_data(&mut self) -> Option<Json> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let data = block.strip_prefix("data: ").map(str::to_owned);
                self.text = rest.to_owned();
                if let Some(data) = data {
                    return Some(serde_json::from_str(&data).unwrap());
                }
            }
            self.read().await?;
        }
    }

    /// Returns the data of all events.
    pub(crate) async fn all_data(mut self) -> Vec<Json> {
        let mut events = Vec::new();
        while let Some(event) = self.next_data().await {
            events.push(event);
        }
        events
    }

    /// Returns the whole reply, which is not a stream; `null` if it is not JSON.
    pub(crate) async fn whole(mut self) -> Json {
        while self.read().await.is_some() {}
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Returns all events.
    pub(crate) async fn read_all(mut self) -> Vec<Streamed> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    /// Returns whether the connection breaks, instead of ending in order.
    pub(crate) async fn breaks(mut self) -> bool {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(10), self.body.next()).await;
            match next.expect("it does not stay open") {
                Some(Ok(_)) => {}
                Some(Err(_)) => return true,
                None => return false,
            }
        }
    }
}

/// Reads an event; `None` for a comment. The order of the lines is part of the format.
fn parse(block: &str) -> Option<Streamed> {
    if block.starts_with(':') {
        return None;
    }
    let lines: Vec<&str> = block.split("\r\n").collect();
    let [name, data, id] = lines.as_slice() else {
        panic!("not an event: {block:?}");
    };
    Some(Streamed {
        name: name.strip_prefix("event: ").unwrap().to_owned(),
        data: serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap(),
        id: id.strip_prefix("id: ").unwrap().to_owned(),
    })
}

fn names(events: &[Streamed]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

fn data_of<'a>(events: &'a [Streamed], name: &str) -> Vec<&'a Json> {
    let named = events.iter().filter(|event| event.name == name);
    named.map(|event| &event.data).collect()
}

#[tokio::test]
async fn states_and_updates_come_in_the_order_of_langgraph() {
    let client = StreamClient::new().await;
    let events = client
        .stream("two", json!(["values", "updates", "custom"]))
        .await;
    assert_eq!(
        names(&events),
        [
            "metadata", "values", "custom", "updates", "values", "updates", "values"
        ]
    );
    assert_eq!(events[0].data["attempt"], 1);
    assert_eq!(events[1].data, json!({ "topic": "tea", "lines": [] }));
    assert_eq!(
        events[2].data,
        json!({ "name": "progress", "step": "first" })
    );
    assert_eq!(
        events[3].data,
        json!({ "first": { "lines": ["first about tea"] } })
    );
    assert_eq!(
        events[6].data,
        json!({ "topic": "tea", "lines": ["first about tea", "second"] })
    );
}

#[tokio::test]
async fn a_superstep_is_starts_then_updates_and_results_then_state_and_checkpoint() {
    let client = StreamClient::new().await;
    let events = client
        .stream("two", json!(["tasks", "updates", "values", "checkpoints"]))
        .await;
    assert_eq!(
        names(&events),
        [
            "metadata",
            // The input: a checkpoint before it, and one after.
            "checkpoints",
            "values",
            "checkpoints",
            "tasks",
            // The first superstep, and the start of the second.
            "updates",
            "tasks",
            "values",
            "checkpoints",
            "tasks",
            "updates",
            "tasks",
            "values",
            "checkpoints",
        ]
    );
    let steps = data_of(&events, "checkpoints");
    let steps: Vec<&Json> = steps.iter().map(|data| &data["metadata"]["step"]).collect();
    assert_eq!(steps, [&json!(-1), &json!(0), &json!(1), &json!(2)]);
    let first = data_of(&events, "checkpoints")[0];
    assert_eq!(first["metadata"]["source"], "input");
    assert_eq!(first["next"], json!(["__start__"]));
    let tasks = data_of(&events, "tasks");
    assert_eq!(tasks[0]["name"], "first");
    assert_eq!(tasks[0]["input"], json!({ "topic": "tea", "lines": [] }));
    assert_eq!(tasks[0]["id"], tasks[1]["id"]);
    assert_eq!(tasks[1]["result"], json!({ "lines": ["first about tea"] }));
}

#[tokio::test]
async fn a_task_that_writes_nothing_has_an_update_and_no_new_state() {
    let client = StreamClient::new().await;
    let events = client.stream("quiet", json!(["values", "updates"])).await;
    assert_eq!(names(&events), ["metadata", "values", "updates"]);
    assert_eq!(events[2].data, json!({ "idle": null }));
}

#[tokio::test]
async fn a_stream_has_the_headers_by_which_clients_reconnect() {
    let client = StreamClient::new().await;
    let thread = client.thread().await;
    let body = json!({ "assistant_id": "two", "input": { "topic": "tea" } });
    let opened = client.post(&format!("{thread}/runs/stream"), body).await;
    assert_eq!(
        opened.header("content-type"),
        "text/event-stream; charset=utf-8"
    );
    assert_eq!(opened.header("cache-control"), "no-store");
    assert_eq!(opened.header("x-accel-buffering"), "no");
    let run = opened.header("content-location").to_owned();
    assert_eq!(opened.header("location"), format!("{run}/stream"));
    let events = opened.read_all().await;
    let id = events[0].data["run_id"].as_str().unwrap();
    assert_eq!(run, format!("{thread}/runs/{id}"));
    // The run's row says that it ended before the stream does.
    let row = client.json("GET", &run, None).await;
    assert_eq!(row["status"], "success");
}

#[tokio::test]
async fn a_client_continues_after_the_last_event_that_it_saw() {
    let client = StreamClient::new().await;
    let thread = client.thread().await;
    let body = json!({
        "assistant_id": "writing",
        "input": { "topic": "tea" },
        "stream_mode": ["values", "messages-tuple"],
    });
    let opened = client.post(&format!("{thread}/runs/stream"), body).await;
    let location = opened.header("location").to_owned();
    let events = opened.read_all().await;
    assert!(events.len() > 4, "{events:?}");
    let mut ids: Vec<&str> = events.iter().map(|event| event.id.as_str()).collect();
    ids.dedup();
    assert_eq!(ids.len(), events.len(), "every event has an id of its own");
    for beginning in ["-1", "0"] {
        let joined = client
            .open("GET", &location, &[("last-event-id", beginning)], None)
            .await;
        let again = joined.read_all().await;
        assert_eq!(again[1..], events[1..]);
    }
    let middle = &events[2];
    let joined = client
        .open("GET", &location, &[("last-event-id", &middle.id)], None)
        .await;
    assert_eq!(joined.read_all().await[1..], events[3..]);
    // Without the header, only what happens from now on: the run has ended.
    let joined = client.open("GET", &location, &[], None).await;
    assert_eq!(names(&joined.read_all().await), ["metadata"]);
    let refused = client
        .open("GET", &location, &[("last-event-id", "latest")], None)
        .await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn tokens_are_chunks_of_the_message_that_they_become() {
    let client = StreamClient::new().await;
    let events = client.stream("writing", json!(["messages-tuple"])).await;
    assert_eq!(
        names(&events),
        ["metadata", "messages", "messages", "messages"]
    );
    let chunks: Vec<&Json> = events[1..].iter().map(|event| &event.data[0]).collect();
    assert_eq!(chunks[0]["content"], "Hello,");
    assert_eq!(chunks[1]["content"], " world!");
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["id"] == "m1" && chunk["type"] == "AIMessageChunk")
    );
    assert_eq!(chunks[2]["chunk_position"], "last");
    assert_eq!(chunks[2]["usage_metadata"]["total_tokens"], 5);
    let metadata = &events[1].data[1];
    assert_eq!(metadata["langgraph_node"], "write");
    assert_eq!(metadata["langgraph_step"], 1);
}

#[tokio::test]
async fn messages_grow_in_the_older_mode() {
    let client = StreamClient::new().await;
    let events = client.stream("writing", json!("messages")).await;
    let grown = data_of(&events, "messages/partial");
    assert_eq!(names(&events)[1], "messages/metadata");
    assert_eq!(grown[0][0]["content"], "Hello,");
    assert_eq!(grown[1][0]["content"], "Hello, world!");
    assert_eq!(grown[1][0]["type"], "ai");
}

#[tokio::test]
async fn runnable_events_name_the_node_that_runs() {
    let client = StreamClient::new().await;
    let events = client.stream("writing", json!("events")).await;
    let shown = data_of(&events, "events");
    let kinds: Vec<&str> = shown
        .iter()
        .map(|data| data["event"].as_str().unwrap())
        .collect();
    for kind in [
        "on_chain_start",
        "on_chat_model_stream",
        "on_tool_start",
        "on_tool_end",
        "on_chain_end",
    ] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let starts = shown
        .iter()
        .filter(|data| data["event"] == "on_chain_start");
    let nodes: Vec<&Json> = starts
        .map(|data| &data["metadata"]["langgraph_node"])
        .collect();
    assert!(nodes.contains(&&json!("write")));
}

#[tokio::test]
async fn an_interrupt_is_shown_as_an_update_and_with_the_state() {
    let client = StreamClient::new().await;
    let events = client.stream("asking", json!(["values", "updates"])).await;
    let last = &events[events.len() - 2..];
    assert_eq!(names(last), ["updates", "values"]);
    let asked = &last[0].data["__interrupt__"];
    assert_eq!(asked[0]["value"], "Really?");
    assert_eq!(last[1].data["__interrupt__"], *asked);
    assert_eq!(last[1].data["lines"], json!(["first about tea"]));
}

#[tokio::test]
async fn an_interrupt_in_a_subgraph_is_shown_at_every_level() {
    let client = StreamClient::new().await;
    let events = client.stream("nested", json!("updates")).await;
    let shown: Vec<&Streamed> = events
        .iter()
        .filter(|event| event.data.get("__interrupt__").is_some())
        .collect();
    assert_eq!(shown.len(), 2, "{events:?}");
    assert!(
        shown[0].name.starts_with("updates|inner:"),
        "{}",
        shown[0].name
    );
    assert_eq!(shown[1].name, "updates");
    assert_eq!(shown[0].data, shown[1].data);
}

#[tokio::test]
async fn an_answer_continues_the_thread() {
    let client = StreamClient::new().await;
    let thread = client.thread().await;
    let path = format!("{thread}/runs/stream");
    let start = json!({ "assistant_id": "asking", "input": { "topic": "tea" } });
    client.post(&path, start).await.read_all().await;
    let answer = json!({
        "assistant_id": "asking",
        "command": { "resume": "yes" },
        "stream_mode": ["values", "updates"],
    });
    let events = client.post(&path, answer).await.read_all().await;
    assert_eq!(names(&events), ["metadata", "values", "updates", "values"]);
    assert_eq!(
        events[2].data,
        json!({ "ask": { "lines": ["answered yes"] } })
    );
}

#[tokio::test]
async fn a_failure_is_the_last_event() {
    let client = StreamClient::new().await;
    let events = client.stream("broken", json!(["values", "tasks"])).await;
    let last = events.last().unwrap();
    assert_eq!(last.name, "error");
    assert_eq!(last.data["message"], "kaboom");
    let tasks = data_of(&events, "tasks");
    assert_eq!(tasks[1]["error"]["message"], "kaboom");
}

#[tokio::test]
async fn an_unknown_mode_and_an_unknown_run_are_refused() {
    let client = StreamClient::new().await;
    let thread = client.thread().await;
    let body = json!({ "assistant_id": "two", "input": {}, "stream_mode": "valuez" });
    let refused = client.post(&format!("{thread}/runs/stream"), body).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let unknown = format!("{thread}/runs/0190a6b2-0000-7000-8000-000000000001/stream");
    let refused = client.open("GET", &unknown, &[], None).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_stateless_run_is_streamed_too() {
    let client = StreamClient::new().await;
    let body = json!({ "assistant_id": "two", "input": { "topic": "tea" } });
    let opened = client.post("/runs/stream", body).await;
    assert!(opened.header("location").starts_with("/runs/"));
    let events = opened.read_all().await;
    assert_eq!(
        events.last().unwrap().data["lines"],
        json!(["first about tea", "second"])
    );
}

#[tokio::test]
async fn a_stateless_run_shows_no_checkpoints() {
    let client = StreamClient::new().await;
    let body = json!({
        "assistant_id": "two", "input": { "topic": "tea" }, "stream_mode": ["checkpoints", "debug"],
    });
    let events = client.post("/runs/stream", body).await.read_all().await;
    let debug: Vec<_> = events
        .iter()
        .filter(|event| event.name == "debug")
        .collect();
    assert!(!debug.is_empty());
    let is_task = |event: &&Streamed| event.data["type"].as_str().unwrap().starts_with("task");
    assert!(debug.iter().all(is_task), "{debug:?}");
    assert!(events.iter().all(|event| event.name != "checkpoints"));
}

#[tokio::test]
async fn those_who_watch_a_thread_see_that_its_state_is_changed() {
    let client = StreamClient::new().await;
    let thread = client.thread().await;
    let run = json!({ "assistant_id": "two", "input": { "topic": "tea" } });
    let wait = format!("{thread}/runs/wait");
    client.json("POST", &wait, Some(run)).await;
    let path = format!("{thread}/stream?stream_modes=state_update");
    let mut watched = client.open("GET", &path, &[], None).await;
    let change = json!({ "values": { "topic": "milk" } });
    client
        .json("POST", &format!("{thread}/state"), Some(change))
        .await;
    let shown = watched.next().await.unwrap();
    assert_eq!(shown.name, "state_update");
    assert_eq!(shown.data["values"]["topic"], "milk");
}

#[tokio::test]
async fn the_stream_of_a_thread_goes_on_from_run_to_run() {
    let client = StreamClient::new().await;
    let thread = client.thread().await;
    let mut watched = client
        .open("GET", &format!("{thread}/stream"), &[], None)
        .await;
    for topic in ["tea", "milk"] {
        let body = json!({ "assistant_id": "two", "input": { "topic": topic } });
        client
            .post(&format!("{thread}/runs/stream"), body)
            .await
            .read_all()
            .await;
        let began = watched.next().await.unwrap();
        assert_eq!(began.name, "metadata");
        for _ in 0..3 {
            assert_eq!(watched.next().await.unwrap().name, "values");
        }
    }
}

#[tokio::test]
async fn a_run_in_place_of_the_first_one_is_streamed_from_its_beginning() {
    let client = StreamClient::new().await;
    let thread = client.thread().await;
    let path = format!("{thread}/runs/stream");
    let body = json!({ "assistant_id": "slow", "input": { "topic": "tea" } });
    let mut replaced = client.post(&path, body).await;
    while replaced.next().await.unwrap().name != "values" {}
    // A request that is refused does not undo what it was to take the place of.
    let mut body = json!({
        "assistant_id": "slow",
        "input": { "topic": 7 },
        "multitask_strategy": "rollback",
    });
    let refused = client.post(&path, body.clone()).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let runs = client.json("GET", &format!("{thread}/runs"), None).await;
    assert_eq!(runs[0]["status"], "running");
    // The entries of the thread are numbered from 1 again.
    body["input"] = json!({ "topic": "nothing" });
    let events = client.post(&path, body).await.read_all().await;
    assert_eq!(names(&events), ["metadata", "values"]);
    assert_eq!(events[1].data["topic"], "nothing");
}

#[tokio::test]
async fn a_thread_that_is_deleted_and_created_again_is_streamed() {
    let client = StreamClient::new().await;
    let thread = client.thread().await;
    let path = format!("{thread}/runs/stream");
    let body = json!({
        "assistant_id": "two",
        "input": { "topic": "tea" },
        "if_not_exists": "create",
    });
    let before = client.post(&path, body.clone()).await.read_all().await;
    client.json("DELETE", &thread, None).await;
    let again = client.post(&path, body).await.read_all().await;
    assert_eq!(names(&again), names(&before));
}

#[tokio::test]
async fn a_server_that_shuts_down_breaks_its_streams() {
    let client = StreamClient::new().await;
    let thread = client.thread().await;
    let body = json!({ "assistant_id": "asking", "input": { "topic": "tea" } });
    client
        .post(&format!("{thread}/runs/stream"), body)
        .await
        .read_all()
        .await;
    let watched = client
        .open("GET", &format!("{thread}/stream"), &[], None)
        .await;
    client.server.drain().await;
    assert!(watched.breaks().await);
}
