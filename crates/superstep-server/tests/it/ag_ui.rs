//! AG-UI: runs as the events that user interfaces read.

use http::StatusCode;
use serde_json::{Value as Json, json};

use crate::kit::Client;
use crate::streams::StreamClient;

/// Runs an assistant and returns the events.
async fn run(client: &Client, graph: &str, mut input: Json) -> Vec<Json> {
    input["runId"] = "run-1".into();
    let reply = client.post(&format!("/ag-ui/{graph}"), input).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.json);
    let text = String::from_utf8(reply.bytes).unwrap();
    let events = text
        .split("\n\n")
        .filter_map(|block| block.strip_prefix("data: "));
    let events: Vec<Json> = events
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert_matched(&events);
    events
}

/// Checks what clients check: everything that begins ends, once, and nothing follows the end.
fn assert_matched(events: &[Json]) {
    assert_eq!(events[0]["type"], "RUN_STARTED");
    let pairs = [
        ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "messageId"),
        ("TOOL_CALL_START", "TOOL_CALL_END", "toolCallId"),
        ("STEP_STARTED", "STEP_FINISHED", "stepName"),
    ];
    for (start, end, name) in pairs {
        let mut open: Vec<&Json> = Vec::new();
        for event in events {
            if event["type"] == start {
                assert!(!open.contains(&&event[name]), "begun twice: {event}");
                open.push(&event[name]);
            } else if event["type"] == end {
                let at = open.iter().position(|found| *found == &event[name]);
                open.remove(at.unwrap_or_else(|| panic!("not begun: {event}")));
            }
        }
        assert!(open.is_empty(), "{start} of {open:?} has no {end}");
    }
    let is_end = |event: &&Json| event["type"] == "RUN_FINISHED" || event["type"] == "RUN_ERROR";
    assert_eq!(events.iter().filter(is_end).count(), 1);
    assert!(is_end(&events.last().unwrap()), "{events:?}");
}

fn types(events: &[Json]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

fn of_type<'a>(events: &'a [Json], kind: &str) -> Vec<&'a Json> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

#[tokio::test]
async fn a_conversation_grows_by_what_is_new() {
    let client = Client::new().await;
    let first = json!({ "id": "u1", "role": "user", "content": "hi" });
    let input = json!({ "threadId": "my chat", "messages": [first], "state": {} });
    let events = run(&client, "chat", input).await;
    assert_eq!(events[0]["threadId"], "my chat");
    assert_eq!(events[0]["runId"], "run-1");
    assert!(
        types(&events).contains(&"TEXT_MESSAGE_CONTENT"),
        "{events:?}"
    );
    assert_eq!(
        events.last().unwrap()["outcome"],
        json!({ "type": "success" })
    );
    let snapshot = of_type(&events, "MESSAGES_SNAPSHOT").pop().unwrap();
    let mut messages = snapshot["messages"].as_array().unwrap().clone();
    assert_eq!(messages[0], first);
    assert_eq!(messages[1]["content"], "You said: hi");
    // The client sends everything again, with one message more.
    messages.push(json!({ "id": "u2", "role": "user", "content": "again" }));
    let state = of_type(&events, "STATE_SNAPSHOT").pop().unwrap()["snapshot"].clone();
    assert_eq!(state["turns"], 1);
    assert!(state.get("messages").is_none(), "{state}");
    let input = json!({ "threadId": "my chat", "messages": messages, "state": state });
    let events = run(&client, "chat", input).await;
    let snapshot = of_type(&events, "MESSAGES_SNAPSHOT").pop().unwrap();
    let texts = snapshot["messages"].as_array().unwrap().iter();
    let texts: Vec<&Json> = texts.map(|message| &message["content"]).collect();
    assert_eq!(texts, ["hi", "You said: hi", "again", "You said: again"]);
}

#[tokio::test]
async fn a_changed_state_replaces_and_does_not_add() {
    let client = Client::new().await;
    let thread = "0190a6b2-0000-7000-8000-0000000000aa";
    for notes in [json!(["a", "b"]), json!(["a", "b"]), json!(["c"])] {
        let state = json!({ "notes": notes, "topic": "tea", "turns": 99 });
        let input = json!({ "threadId": thread, "messages": [], "state": state });
        run(&client, "chat", input).await;
        let stored = client.get(&format!("/threads/{thread}/state")).await.ok();
        assert_eq!(stored["values"]["notes"], notes);
        assert_eq!(stored["values"]["topic"], "tea");
        assert_ne!(stored["values"]["turns"], 99, "not an input");
    }
}

#[tokio::test]
async fn a_pause_is_an_outcome_and_its_answer_is_in_the_next_run() {
    let client = Client::new().await;
    let start = json!({ "threadId": "t", "messages": [] });
    let events = run(&client, "ask", start).await;
    let outcome = &events.last().unwrap()["outcome"];
    assert_eq!(outcome["type"], "interrupt");
    let interrupt = &outcome["interrupts"][0];
    assert_eq!(interrupt["reason"], "confirmation");
    assert_eq!(interrupt["message"], "May `refund` be called?");
    let answer = |id: &Json, status: &str| {
        json!({
            "threadId": "t",
            "messages": [],
            "resume": [{ "interruptId": id, "status": status, "payload": { "type": "accept" } }],
        })
    };
    let mut unknown = answer(&json!("0".repeat(32)), "resolved");
    unknown["runId"] = "r".into();
    let refused = client.post("/ag-ui/ask", unknown).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let events = run(&client, "ask", answer(&interrupt["id"], "resolved")).await;
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    let state = of_type(&events, "STATE_SNAPSHOT").pop().unwrap();
    assert_eq!(state["snapshot"]["result"]["type"], "accept");
}

#[tokio::test]
async fn an_abandoned_approval_is_a_no() {
    let client = Client::new().await;
    let events = run(&client, "ask", json!({ "threadId": "t", "messages": [] })).await;
    let id = &events.last().unwrap()["outcome"]["interrupts"][0]["id"];
    let resume = json!([{ "interruptId": id, "status": "cancelled" }]);
    let input = json!({ "threadId": "t", "messages": [], "resume": resume });
    let events = run(&client, "ask", input).await;
    let state = of_type(&events, "STATE_SNAPSHOT").pop().unwrap();
    assert_eq!(state["snapshot"]["result"]["type"], "ignore");
}

#[tokio::test]
async fn a_failed_run_ends_with_an_error() {
    let client = Client::new().await;
    let events = run(
        &client,
        "broken",
        json!({ "threadId": "t", "messages": [] }),
    )
    .await;
    let last = events.last().unwrap();
    assert_eq!(last["type"], "RUN_ERROR");
    assert!(
        last["message"].as_str().unwrap().contains("kaboom"),
        "{last}"
    );
}

#[tokio::test]
async fn tokens_tools_and_steps_are_shown() {
    let client = StreamClient::new().await;
    let input =
        json!({ "threadId": "t", "runId": "r", "messages": [], "state": { "topic": "tea" } });
    let opened = client.post("/ag-ui/writing", input.clone()).await;
    assert_eq!(opened.status, StatusCode::OK);
    let events = opened.all_data().await;
    assert_matched(&events);
    let deltas = of_type(&events, "TEXT_MESSAGE_CONTENT");
    let text: String = deltas
        .iter()
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert_eq!(text, "Hello, world!");
    assert_eq!(
        of_type(&events, "TOOL_CALL_START")[0]["toolCallName"],
        "search"
    );
    assert_eq!(
        of_type(&events, "TOOL_CALL_ARGS")[0]["delta"],
        r#"{"query":"v3"}"#
    );
    assert_eq!(of_type(&events, "TOOL_CALL_RESULT")[0]["content"], "found");
    assert_eq!(of_type(&events, "STEP_STARTED")[0]["stepName"], "write");
    let mut input = input;
    input["threadId"] = "u".into();
    let events = client.post("/ag-ui/nested", input).await.all_data().await;
    assert_matched(&events);
    let steps = of_type(&events, "STEP_STARTED");
    let steps: Vec<&Json> = steps.iter().map(|event| &event["stepName"]).collect();
    assert_eq!(steps, ["inner", "inner/ask"]);
    assert_eq!(of_type(&events, "CUSTOM")[0]["name"], "progress");
    let outcome = &events.last().unwrap()["outcome"];
    assert_eq!(outcome["interrupts"][0]["message"], "Really?");
    assert_eq!(outcome["interrupts"][0]["reason"], "input_required");
}

#[tokio::test]
async fn what_is_not_an_input_is_refused() {
    let client = Client::new().await;
    for (graph, body, status) in [
        (
            "nowhere",
            json!({ "threadId": "t", "runId": "r" }),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        ("chat", json!({}), StatusCode::UNPROCESSABLE_ENTITY),
        ("chat", json!([]), StatusCode::UNPROCESSABLE_ENTITY),
        (
            "chat",
            json!({ "threadId": "", "runId": "r" }),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            "chat",
            json!({ "threadId": 7, "runId": "r" }),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            "chat",
            json!({ "threadId": "t", "runId": "r", "messages": [{ "role": "root" }] }),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            "chat",
            json!({ "threadId": "t", "runId": "r", "state": { "topic": 7 } }),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            "chat",
            json!({ "threadId": "t", "runId": "r", "resume": [{ "interruptId": "x", "status": "gone" }] }),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
    ] {
        let reply = client.post(&format!("/ag-ui/{graph}"), body.clone()).await;
        assert_eq!(reply.status, status, "{graph} {body}: {}", reply.json);
    }
    let listed = client.post("/threads/search", json!({})).await.ok();
    assert_eq!(listed, json!([]), "nothing was created");
}
