//! The thread protocol: commands, and events that stay open across runs.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::streams::{Opened, StreamClient};

/// A thread that does not exist yet, and commands to it.
struct Session<'a> {
    client: &'a StreamClient,
    thread: &'static str,
    commands: u64,
}

impl<'a> Session<'a> {
    fn new(client: &'a StreamClient) -> Self {
        Self {
            client,
            thread: "/threads/0190a6b2-0000-7000-8000-00000000000a",
            commands: 0,
        }
    }

    async fn send(&mut self, method: &str, params: Json) -> Json {
        self.commands += 1;
        let command = json!({ "id": self.commands, "method": method, "params": params });
        let path = format!("{}/commands", self.thread);
        let reply = self.client.json("POST", &path, Some(command)).await;
        assert_eq!(reply["id"], self.commands);
        reply
    }

    async fn start(&mut self, graph: &str) -> Json {
        let params = json!({ "assistant_id": graph, "input": { "topic": "tea" } });
        let reply = self.send("run.start", params).await;
        assert_eq!(reply["type"], "success", "{reply}");
        reply
    }

    async fn events(&self, filter: Json) -> Opened {
        let opened = self
            .client
            .post(&format!("{}/stream/events", self.thread), filter)
            .await;
        assert_eq!(opened.status, StatusCode::OK);
        opened
    }
}

/// Reads events until one of them is a lifecycle event of the root graph with this phase.
async fn until(events: &mut Opened, phase: &str) -> Vec<Json> {
    let mut read = Vec::new();
    loop {
        let event = events.next().await.expect("the stream stays open");
        assert_eq!(event.data["method"], *event.name);
        assert_eq!(event.data["seq"].to_string(), event.id);
        assert_eq!(event.data["event_id"], *event.id);
        let params = &event.data["params"];
        let is_last = event.name == "lifecycle"
            && params["namespace"] == json!([])
            && params["data"]["event"] == phase;
        read.push(event.data);
        if is_last {
            return read;
        }
    }
}

fn methods(events: &[Json]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["method"].as_str().unwrap())
        .collect()
}

fn data<'a>(events: &'a [Json], method: &str) -> Vec<&'a Json> {
    let named = events.iter().filter(|event| event["method"] == method);
    named.map(|event| &event["params"]["data"]).collect()
}

#[tokio::test]
async fn a_stream_that_is_opened_before_the_thread_exists_shows_its_runs() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let mut events = session
        .events(json!({ "channels": ["lifecycle", "values"] }))
        .await;
    session.start("two").await;
    let first = until(&mut events, "completed").await;
    assert_eq!(
        methods(&first),
        ["lifecycle", "values", "values", "values", "lifecycle"]
    );
    assert_eq!(data(&first, "lifecycle")[0]["event"], "running");
    session.start("two").await;
    let second = until(&mut events, "completed").await;
    assert_eq!(second.len(), 5);
    let numbers: Vec<u64> = first
        .iter()
        .chain(&second)
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert!(
        numbers.is_sorted_by(|one, other| one < other),
        "{numbers:?}"
    );
}

#[tokio::test]
async fn a_client_continues_from_the_number_that_a_command_returned() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let started = session.start("two").await;
    let since = &started["meta"]["applied_through_seq"];
    let filter = json!({ "channels": ["lifecycle", "values"], "since": since });
    let mut events = session.events(filter).await;
    let first = until(&mut events, "completed").await;
    assert_eq!(first.len(), 5);
    let filter = json!({ "channels": ["lifecycle", "values"], "since": first[2]["seq"] });
    let mut rest = session.events(filter).await;
    assert_eq!(until(&mut rest, "completed").await, first[3..]);
    // The next command names the end of the first run, so its events are not seen again.
    let started = session.start("two").await;
    let filter = json!({
        "channels": ["lifecycle", "values"],
        "since": started["meta"]["applied_through_seq"],
    });
    let mut events = session.events(filter).await;
    assert_eq!(until(&mut events, "completed").await.len(), 5);
}

#[tokio::test]
async fn messages_are_blocks_and_tools_have_results() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let mut events = session
        .events(json!({ "channels": ["messages", "tools", "lifecycle"] }))
        .await;
    session.start("writing").await;
    let read = until(&mut events, "completed").await;
    let parts = data(&read, "messages");
    let kinds: Vec<&Json> = parts.iter().map(|part| &part["event"]).collect();
    assert_eq!(
        kinds,
        [
            "message-start",
            "content-block-start",
            "content-block-delta",
            "content-block-delta",
            "content-block-finish",
            "message-finish",
        ]
    );
    assert_eq!(parts[0]["id"], "m1");
    assert_eq!(parts[4]["content"]["text"], "Hello, world!");
    assert_eq!(parts[5]["usage"]["output_tokens"], 2);
    let tools = data(&read, "tools");
    assert_eq!(tools[0]["event"], "tool-started");
    assert_eq!(tools[0]["input"], json!({ "query": "v3" }));
    assert_eq!(tools[1]["event"], "tool-finished");
    assert_eq!(tools[1]["output"]["status"], "success");
}

#[tokio::test]
async fn named_events_are_a_channel_of_their_own() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let mut events = session
        .events(json!({ "channels": ["custom:progress", "lifecycle"] }))
        .await;
    session.start("asking").await;
    let read = until(&mut events, "interrupted").await;
    let steps: Vec<&Json> = data(&read, "custom")
        .iter()
        .map(|data| &data["step"])
        .collect();
    assert_eq!(steps, ["first", "ask"]);
}

#[tokio::test]
async fn an_interrupt_is_requested_and_answered() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let mut watched = session
        .events(json!({ "channels": ["lifecycle", "input"] }))
        .await;
    session.start("asking").await;
    let read = until(&mut watched, "interrupted").await;
    assert_eq!(
        methods(&read),
        ["lifecycle", "input.requested", "lifecycle"]
    );
    let requested = data(&read, "input.requested")[0];
    assert_eq!(requested["payload"], "Really?");
    let unknown = json!({ "interrupt_id": "00000000000000000000000000000000", "response": 1 });
    let refused = session.send("input.respond", unknown).await;
    assert_eq!(refused["error"], "no_such_interrupt");
    let answer = json!({
        "interrupt_id": requested["interrupt_id"], "namespace": [], "response": "yes",
    });
    let answered = session.send("input.respond", answer).await;
    assert_eq!(answered["type"], "success", "{answered}");
    until(&mut watched, "completed").await;
    let state = session
        .send("state.get", json!({ "namespace": [], "keys": ["lines"] }))
        .await;
    assert_eq!(
        state["result"]["values"],
        json!({ "lines": ["first about tea", "answered yes"] })
    );
    assert!(state["result"]["checkpoint"]["id"].is_string());
}

#[tokio::test]
async fn an_input_to_a_thread_that_waits_is_the_answer() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let mut events = session
        .events(json!({ "channels": ["lifecycle", "values"] }))
        .await;
    session.start("asking").await;
    until(&mut events, "interrupted").await;
    let paused = events.next().await.unwrap();
    assert_eq!(paused.name, "values");
    assert_eq!(
        paused.data["params"]["data"]["lines"],
        json!(["first about tea"])
    );
    let params = json!({ "assistant_id": "asking", "input": "surely" });
    session.send("run.start", params).await;
    let read = until(&mut events, "completed").await;
    let last = data(&read, "values").pop().unwrap();
    assert_eq!(last["lines"][1], "answered surely");
}

#[tokio::test]
async fn subgraphs_are_announced_under_their_namespace() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let mut events = session
        .events(json!({ "channels": ["lifecycle", "input", "tasks"] }))
        .await;
    session.start("nested").await;
    let read = until(&mut events, "interrupted").await;
    let is_inner = |event: &&Json| event["params"]["namespace"].as_array().unwrap().len() == 1;
    let inner: Vec<&Json> = read.iter().filter(is_inner).collect();
    assert_eq!(inner[0]["params"]["data"]["event"], "started");
    let segment = inner[0]["params"]["namespace"][0].as_str().unwrap();
    assert!(segment.starts_with("inner:"), "{segment}");
    let requested = inner
        .iter()
        .find(|event| event["method"] == "input.requested");
    assert!(requested.is_some());
    // A filter by the name of the node gets the events of the subgraph only.
    let filter = json!({ "channels": ["input", "tasks"], "namespaces": [["inner"]] });
    let mut scoped = session.events(filter).await;
    let event = scoped.next().await.unwrap();
    assert_eq!(event.data["params"]["namespace"][0], segment);
}

#[tokio::test]
async fn a_cancelled_run_ends_for_its_clients() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let mut events = session
        .events(json!({ "channels": ["lifecycle", "tasks"] }))
        .await;
    let started = session.start("slow").await;
    while events.next().await.unwrap().name != "tasks" {}
    let tree = session.send("agent.getTree", json!({})).await;
    assert_eq!(tree["result"]["tree"]["status"], "running");
    let run = started["result"]["run_id"].as_str().unwrap();
    let cancel = format!("{}/runs/{run}/cancel?wait=1", session.thread);
    client.json("POST", &cancel, None).await;
    let read = until(&mut events, "failed").await;
    let last = read.last().unwrap();
    assert_eq!(last["params"]["data"]["error"], "the run was cancelled");
    // Still there: the run of a client that asks may have just ended.
    let tree = session.send("agent.getTree", json!({})).await;
    assert_eq!(tree["result"]["tree"]["status"], "failed");
    let mut other = Session::new(&client);
    other.thread = "/threads/0190a6b2-0000-7000-8000-00000000000b";
    let tree = other.send("agent.getTree", json!({})).await;
    assert_eq!(tree["error"], "no_such_run");
}

#[tokio::test]
async fn a_watcher_sees_the_run_that_is_started_with_it_and_none_before() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let watcher = json!({ "channels": ["lifecycle", "input"] });
    // Started before the watcher is there, and over before it asks.
    session.start("two").await;
    let mut watched = session.events(watcher.clone()).await;
    let first = until(&mut watched, "completed").await;
    // Of the same graph: a thread has one.
    session.start("two").await;
    let mut watched = session.events(watcher).await;
    let second = until(&mut watched, "completed").await;
    assert_eq!(data(&second, "lifecycle")[0]["event"], "running");
    assert_eq!(second.len(), 2, "{second:?}");
    let number = |event: &Json| event["seq"].as_u64().unwrap();
    let last = number(first.last().unwrap());
    assert!(
        second.iter().all(|event| number(event) > last),
        "nothing of the first run: {second:?}"
    );
}

#[tokio::test]
async fn checkpoints_are_listed_and_forked() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let mut events = session
        .events(json!({ "channels": ["lifecycle", "values"] }))
        .await;
    session.start("two").await;
    until(&mut events, "completed").await;
    let listed = session.send("state.listCheckpoints", json!({})).await;
    let checkpoints = listed["result"]["checkpoints"].as_array().unwrap();
    let steps: Vec<&Json> = checkpoints.iter().map(|found| &found["step"]).collect();
    assert_eq!(steps, [&json!(2), &json!(1), &json!(0), &json!(-1)]);
    let forked = session
        .send(
            "state.fork",
            json!({ "checkpoint_id": checkpoints[1]["id"] }),
        )
        .await;
    assert_eq!(forked["type"], "success", "{forked}");
    let read = until(&mut events, "completed").await;
    let last = data(&read, "values").pop().unwrap();
    assert_eq!(last["lines"], json!(["first about tea", "second"]));
    let refused = session
        .send("state.fork", json!({ "checkpoint_id": "nothing" }))
        .await;
    assert_eq!(refused["error"], "no_such_checkpoint");
}

#[tokio::test]
async fn what_is_not_a_command_is_refused() {
    let client = StreamClient::new().await;
    let mut session = Session::new(&client);
    let path = format!("{}/commands", session.thread);
    let refused = client.post(&path, json!({ "method": "run.start" })).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    for (method, code) in [
        ("run.stop", "unknown_command"),
        ("run.start", "invalid_argument"),
        ("subscription.subscribe", "not_supported"),
        ("input.respond", "invalid_argument"),
        ("state.get", "no_such_run"),
    ] {
        assert_eq!(
            session.send(method, json!({})).await["error"],
            code,
            "{method}"
        );
    }
    let nowhere = json!({ "assistant_id": "nowhere", "input": {} });
    let refused = session.send("run.start", nowhere).await;
    assert_eq!(refused["error"], "unknown_error");
    let path = format!("{}/stream/events", session.thread);
    let refused = client.post(&path, json!({ "channels": [] })).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn commands_and_events_go_over_one_socket() {
    let client = StreamClient::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = client.router();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await });
    let mut socket = Socket::open(TcpStream::connect(address).await.unwrap()).await;
    let channels = json!({ "channels": ["lifecycle", "values"] });
    socket
        .send(&json!({ "id": 1, "method": "subscription.subscribe", "params": channels }))
        .await;
    let subscribed = socket.receive().await;
    assert_eq!(subscribed["type"], "success", "{subscribed}");
    let params = json!({ "assistant_id": "two", "input": { "topic": "tea" } });
    socket
        .send(&json!({ "id": 2, "method": "run.start", "params": params }))
        .await;
    let mut seen = Vec::new();
    while seen.last() != Some(&json!("completed")) {
        let message = socket.receive().await;
        match message["type"].as_str() {
            Some("success") => assert_eq!(message["id"], 2),
            _ if message["method"] == "lifecycle" => {
                seen.push(message["params"]["data"]["event"].clone());
            }
            _ => seen.push(message["method"].clone()),
        }
    }
    assert_eq!(seen, ["running", "values", "values", "values", "completed"]);
    let id = &subscribed["result"]["subscription_id"];
    for (command, kind) in [(3, "success"), (4, "error")] {
        let params = json!({ "subscription_id": id });
        let unsubscribe =
            json!({ "id": command, "method": "subscription.unsubscribe", "params": params });
        socket.send(&unsubscribe).await;
        assert_eq!(socket.receive().await["type"], kind);
    }
}

/// As much of a WebSocket as this test needs.
struct Socket(TcpStream);

impl Socket {
    async fn open(mut stream: TcpStream) -> Self {
        let request = "GET /threads/0190a6b2-0000-7000-8000-00000000000b/stream/events HTTP/1.1\r\n\
            Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(
            head.starts_with(b"HTTP/1.1 101"),
            "{}",
            String::from_utf8_lossy(&head)
        );
        Self(stream)
    }

    /// Sends a text frame. A client must mask it; with a mask of zeros, the text stays as it is.
    async fn send(&mut self, json: &Json) {
        let text = json.to_string();
        let length = u16::try_from(text.len()).unwrap();
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        self.0.write_all(&frame).await.unwrap();
    }

    /// Returns the next text frame.
    async fn receive(&mut self) -> Json {
        let read = tokio::time::timeout(Duration::from_secs(10), self.frame());
        read.await.expect("a frame comes in time")
    }

    async fn frame(&mut self) -> Json {
        loop {
            let kind = self.0.read_u8().await.unwrap() & 0x0f;
            let length = match self.0.read_u8().await.unwrap() & 0x7f {
                126 => u64::from(self.0.read_u16().await.unwrap()),
                127 => self.0.read_u64().await.unwrap(),
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut payload).await.unwrap();
            if kind == 1 {
                return serde_json::from_slice(&payload).unwrap();
            }
        }
    }
}
