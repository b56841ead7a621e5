//! Runs that go elsewhere than the thread would: back to an older checkpoint, to a node, or nowhere because nothing is left.

use http::StatusCode;
use serde_json::{Value as Json, json};

use crate::streams::{StreamClient, Streamed};

/// A thread, and what these tests do with it.
struct Conversation {
    client: StreamClient,
    thread: String,
    graph: &'static str,
}

impl Conversation {
    async fn new(graph: &'static str) -> Self {
        let client = StreamClient::new().await;
        let thread = client.thread().await;
        Self {
            client,
            thread,
            graph,
        }
    }

    /// Streams the checkpoints of a run.
    async fn run(&self, mut body: Json) -> Vec<Streamed> {
        body["assistant_id"] = self.graph.into();
        body["stream_mode"] = "checkpoints".into();
        let path = format!("{}/runs/stream", self.thread);
        let opened = self.client.post(&path, body).await;
        assert_eq!(opened.status, StatusCode::OK);
        opened.read_all().await
    }

    async fn refused(&self, mut body: Json) -> StatusCode {
        body["assistant_id"] = self.graph.into();
        let path = format!("{}/runs/wait", self.thread);
        self.client.post(&path, body).await.status
    }

    async fn call(&self, path: &str, body: Option<Json>) -> Json {
        let method = body.as_ref().map_or("GET", |_| "POST");
        let path = format!("{}/{path}", self.thread);
        self.client.json(method, &path, body).await
    }

    /// Reads all checkpoints, newest first.
    async fn history(&self) -> Vec<Json> {
        let history = self.call("history", Some(json!({ "limit": 100 }))).await;
        history.as_array().unwrap().clone()
    }

    async fn state(&self) -> Json {
        self.call("state", None).await
    }
}

fn tea() -> Json {
    json!({ "input": { "topic": "tea" } })
}

fn at(checkpoint: &Json) -> Json {
    json!({ "checkpoint_id": checkpoint["checkpoint_id"] })
}

/// Returns what made a checkpoint, and the number of its step.
fn made(checkpoint: &Json) -> (&str, i64) {
    let metadata = &checkpoint["metadata"];
    let source = metadata["source"].as_str().unwrap();
    (source, metadata["step"].as_i64().unwrap())
}

#[tokio::test]
async fn a_run_without_an_input_at_an_older_checkpoint_is_a_fork() {
    let talk = Conversation::new("two").await;
    talk.run(tea()).await;
    let before = talk.history().await[1].clone();
    assert_eq!(
        (made(&before), &before["next"]),
        (("loop", 1), &json!(["second"]))
    );
    let events = talk.run(at(&before)).await;
    let streamed: Vec<_> = events[1..].iter().map(|event| made(&event.data)).collect();
    assert_eq!(streamed, [("fork", 2), ("loop", 3)]);
    let history = talk.history().await;
    assert_eq!(history.len(), 6);
    assert_eq!(made(&history[0]), ("loop", 3));
    assert_eq!(made(&history[1]), ("fork", 2));
    assert_eq!(history[1]["parent_checkpoint"], before["checkpoint"]);
    for written in &history[..2] {
        assert_eq!(
            written["metadata"]["checkpoint_id"],
            before["checkpoint_id"]
        );
        assert_eq!(written["metadata"]["run_id"], events[0].data["run_id"]);
    }
}

#[tokio::test]
async fn an_input_at_an_older_checkpoint_follows_it_at_once() {
    let talk = Conversation::new("two").await;
    talk.run(tea()).await;
    let before = talk.history().await[1].clone();
    let mut body = at(&before);
    body["input"] = json!({ "topic": "milk" });
    talk.run(body).await;
    let history = talk.history().await;
    let made: Vec<_> = history[..4].iter().map(made).collect();
    assert_eq!(made, [("loop", 5), ("loop", 4), ("loop", 3), ("input", 2)]);
    assert_eq!(history[3]["parent_checkpoint"], before["checkpoint"]);
    assert_eq!(history.len(), 8);
}

#[tokio::test]
async fn nothing_is_written_before_an_input_at_the_beginning() {
    let talk = Conversation::new("two").await;
    talk.run(tea()).await;
    let first = talk.history().await.last().unwrap().clone();
    let mut again = tea();
    again["checkpoint_id"] = first["checkpoint_id"].clone();
    talk.run(again).await;
    let history = talk.history().await;
    let inputs = history.iter().filter(|found| made(found).0 == "input");
    let values: Vec<&Json> = inputs.map(|input| &input["values"]).collect();
    assert_eq!(values, [&first["values"]; 2]);
}

#[tokio::test]
async fn an_edit_at_an_older_checkpoint_is_an_update() {
    let talk = Conversation::new("two").await;
    talk.run(tea()).await;
    let before = talk.history().await[1].clone();
    let mut body = at(&before);
    body["values"] = json!({ "topic": "milk" });
    let edited = talk.call("state", Some(body)).await;
    let state = talk.state().await;
    assert_eq!(state["checkpoint_id"], edited["checkpoint_id"]);
    assert_eq!(
        (made(&state), &state["next"]),
        (("update", 2), &json!(["second"]))
    );
    assert_eq!(state["metadata"]["checkpoint_id"], before["checkpoint_id"]);
    assert_eq!(state["metadata"]["run_id"], Json::Null);
    // What an edit planned was never run, so a run there runs it, and is no fork.
    let events = talk.run(at(&edited)).await;
    let streamed: Vec<_> = events[1..].iter().map(|event| made(&event.data)).collect();
    assert_eq!(streamed, [("update", 2), ("loop", 3)]);
}

#[tokio::test]
async fn a_run_at_the_newest_checkpoint_asks_again_unless_it_answers() {
    let talk = Conversation::new("asking").await;
    talk.run(tea()).await;
    let asked = talk.state().await;
    talk.run(at(&asked)).await;
    let again = talk.state().await;
    assert_eq!(made(&again), ("fork", 2));
    let id = |state: &Json| state["interrupts"][0]["id"].clone();
    assert!(id(&again).is_string());
    assert_ne!(id(&asked), id(&again));
    let mut answer = at(&again);
    answer["command"] = json!({ "resume": "yes" });
    talk.run(answer).await;
    let state = talk.state().await;
    assert_eq!((made(&state), &state["next"]), (("loop", 3), &json!([])));
}

#[tokio::test]
async fn a_command_goes_to_nodes_next_to_what_is_planned() {
    let talk = Conversation::new("two").await;
    let goto = |goto: Json| json!({ "command": { "goto": goto } });
    assert_eq!(
        talk.refused(goto(json!("first"))).await,
        StatusCode::BAD_REQUEST
    );
    let mut body = tea();
    body["interrupt_before"] = json!(["second"]);
    talk.run(body).await;
    for refused in [json!("third"), json!([{ "node": "first", "input": {} }])] {
        let status = talk.refused(goto(refused)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let mut body = goto(json!(["first", "__end__"]));
    body["command"]["update"] = json!({ "topic": "milk" });
    let events = talk.run(body).await;
    assert_eq!(events[1].data["next"], json!(["second", "first"]));
    let lines = ["first about tea", "second", "first about milk", "second"];
    assert_eq!(talk.state().await["values"]["lines"], json!(lines));
    // A thread that has finished continues there.
    talk.run(goto(json!({ "node": "second" }))).await;
    let state = talk.state().await;
    assert_eq!(state["values"]["lines"].as_array().unwrap().len(), 5);
    assert_eq!(state["next"], json!([]));
}

#[tokio::test]
async fn a_run_with_nothing_left_to_run_succeeds() {
    let talk = Conversation::new("two").await;
    talk.run(tea()).await;
    let before = talk.history().await;
    let events = talk.run(json!({ "input": null })).await;
    assert_eq!(events.len(), 2);
    assert_eq!(made(&events[1].data), ("loop", 2));
    assert_eq!(talk.history().await, before);
    let body = json!({ "assistant_id": "two", "input": null });
    let values = talk.call("runs/wait", Some(body)).await;
    assert_eq!(values, before[0]["values"]);
    let runs = talk.call("runs", None).await;
    assert_eq!(runs[0]["status"], "success");
}

#[tokio::test]
async fn a_run_in_place_of_the_first_one_begins_the_history() {
    let talk = Conversation::new("slow").await;
    let mut body = tea();
    body["assistant_id"] = "slow".into();
    let run = talk.call("runs", Some(body)).await;
    let run = format!("runs/{}", run["run_id"].as_str().unwrap());
    while talk.call(&run, None).await["status"] != "running" {}
    let body = json!({ "input": { "topic": "nothing" }, "multitask_strategy": "rollback" });
    let events = talk.run(body).await;
    let streamed: Vec<_> = events[1..].iter().map(|event| made(&event.data)).collect();
    assert_eq!(streamed, [("input", -1), ("loop", 0), ("loop", 1)]);
    let history = talk.history().await;
    let made: Vec<_> = history.iter().map(made).collect();
    assert_eq!(made, [("loop", 1), ("loop", 0), ("input", -1)]);
    assert_eq!(history[2]["parent_checkpoint"], Json::Null);
}

#[tokio::test]
async fn a_later_run_that_is_rolled_back_leaves_the_state_before_it() {
    let talk = Conversation::new("slow").await;
    talk.run(json!({ "input": { "topic": "nothing" } })).await;
    let before = talk.history().await;
    let mut body = tea();
    body["assistant_id"] = "slow".into();
    let run = talk.call("runs", Some(body)).await;
    let run = format!("runs/{}", run["run_id"].as_str().unwrap());
    while talk.call(&run, None).await["status"] != "running" {}
    let cancel = format!("{run}/cancel?wait=true&action=rollback");
    talk.call(&cancel, Some(json!({}))).await;
    assert_eq!(talk.state().await["checkpoint"], before[0]["checkpoint"]);
    let checkpoints = |history: &[Json]| {
        history
            .iter()
            .map(|past| past["checkpoint"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(checkpoints(&talk.history().await), checkpoints(&before));
}

#[tokio::test]
async fn a_run_that_tries_again_shows_why_the_last_one_failed() {
    let talk = Conversation::new("broken").await;
    talk.run(tea()).await;
    let events = talk.run(json!({ "input": null })).await;
    let task = &events[1].data["tasks"][0];
    assert!(task["error"].as_str().unwrap().contains("kaboom"), "{task}");
    assert_eq!(task["interrupts"], Json::Null);
}
