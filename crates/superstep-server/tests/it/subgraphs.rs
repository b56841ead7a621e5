//! Subgraphs as clients see them: with states, checkpoints and interrupts of their own.

use http::StatusCode;
use serde_json::{Value as Json, json};

use crate::streams::{StreamClient, Streamed};

/// Streams a run of a graph, with its subgraphs.
async fn run(client: &StreamClient, thread: &str, graph: &str, mut body: Json) -> Vec<Streamed> {
    body["assistant_id"] = graph.into();
    body["stream_subgraphs"] = true.into();
    let opened = client.post(&format!("{thread}/runs/stream"), body).await;
    assert_eq!(opened.status, StatusCode::OK);
    opened.read_all().await
}

/// Runs a graph on a new thread until its subgraph asks. Returns the path of the thread, and what was streamed.
async fn ask(client: &StreamClient, graph: &str, mode: &str) -> (String, Vec<Streamed>) {
    let thread = client.thread().await;
    let body = json!({ "input": { "topic": "tea" }, "stream_mode": mode });
    let events = run(client, &thread, graph, body).await;
    (thread, events)
}

#[tokio::test]
async fn a_subgraph_has_checkpoints_of_its_own() {
    let client = StreamClient::new().await;
    let (thread, events) = ask(&client, "nested", "checkpoints").await;
    let state = format!("{thread}/state?subgraphs=true");
    let state = client.json("GET", &state, None).await;
    let inner = &state["tasks"][0]["state"];
    let child = &inner["checkpoint"];
    assert_ne!(child["checkpoint_id"], state["checkpoint_id"]);
    assert_eq!(child["checkpoint_map"][""], state["checkpoint_id"]);
    assert_eq!(inner["metadata"]["langgraph_node"], "inner");

    let of_child = |event: &&Streamed| event.name.starts_with("checkpoints|inner:");
    let streamed = events.iter().rev().find(of_child).unwrap();
    let streamed = &streamed.data["config"]["configurable"];
    assert_eq!(streamed["checkpoint_id"], child["checkpoint_id"]);
    assert_eq!(streamed["checkpoint_map"], child["checkpoint_map"]);
    let of_root = |event: &&Streamed| event.name == "checkpoints";
    let root = events.iter().rev().find(of_root).unwrap();
    let entered = &root.data["tasks"][0]["state"]["configurable"];
    assert_eq!(entered["checkpoint_ns"], child["checkpoint_ns"]);

    let path = format!("{thread}/state/checkpoint");
    let read = client.json("POST", &path, Some(json!({ "checkpoint": child })));
    assert_eq!(read.await, *inner);
    let wanted = json!({ "limit": 9, "checkpoint": { "checkpoint_ns": child["checkpoint_ns"] } });
    let path = format!("{thread}/history");
    let listed = client.json("POST", &path, Some(wanted)).await;
    assert_eq!(listed[0]["checkpoint"], *child);
    assert_eq!(listed[0]["parent_checkpoint"], listed[1]["checkpoint"]);
    assert_eq!(listed[1]["next"], json!(["__start__"]));
    assert_eq!(listed[1]["tasks"][0]["result"], listed[0]["values"]);
}

#[tokio::test]
async fn a_checkpoint_of_a_subgraph_is_not_one_of_its_parent() {
    let client = StreamClient::new().await;
    let (thread, _) = ask(&client, "nested", "values").await;
    let state = format!("{thread}/state?subgraphs=true");
    let state = client.json("GET", &state, None).await;
    let child = &state["tasks"][0]["state"]["checkpoint"];
    let path = format!(
        "{thread}/state/{}",
        child["checkpoint_id"].as_str().unwrap()
    );
    let refused = client.open("GET", &path, &[], None).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    let mut mixed = child.clone();
    mixed["checkpoint_id"] = state["checkpoint_id"].clone();
    let body = json!({ "checkpoint": mixed });
    let refused = client
        .post(&format!("{thread}/state/checkpoint"), body)
        .await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_checkpoint_names_those_of_all_graphs_around_it() {
    let client = StreamClient::new().await;
    let (thread, events) = ask(&client, "deep", "checkpoints").await;
    let state = format!("{thread}/state?subgraphs=true");
    let state = client.json("GET", &state, None).await;
    let middle = &state["tasks"][0]["state"];
    let inner = &middle["tasks"][0]["state"];
    let map = &inner["checkpoint"]["checkpoint_map"];
    assert_eq!(map.as_object().unwrap().len(), 3, "{map}");
    for around in [&state, middle, inner] {
        let namespace = around["checkpoint"]["checkpoint_ns"].as_str().unwrap();
        assert_eq!(map[namespace], around["checkpoint_id"]);
    }
    let last = &events.last().unwrap().data["config"]["configurable"];
    assert_eq!(last["checkpoint_map"], *map);
}

#[tokio::test]
async fn a_thread_shows_an_interrupt_of_a_subgraph_under_the_task_that_waits() {
    let client = StreamClient::new().await;
    let (thread, _) = ask(&client, "nested", "values").await;
    let shown = client.json("GET", &thread, None).await;
    let state = client.json("GET", &format!("{thread}/state"), None).await;
    let task = state["tasks"][0]["id"].as_str().unwrap();
    assert_eq!(shown["interrupts"][task], state["tasks"][0]["interrupts"]);
}

#[tokio::test]
async fn a_task_that_runs_again_after_an_answer_has_another_id_in_events() {
    let client = StreamClient::new().await;
    let (thread, first) = ask(&client, "nested", "events").await;
    let body = json!({ "command": { "resume": "yes" }, "stream_mode": "events" });
    let second = run(&client, &thread, "nested", body).await;
    let ids = |events: &[Streamed]| {
        let of_node = events.iter().filter(|event| event.data["name"] == "ask");
        of_node
            .map(|event| event.data["run_id"].clone())
            .collect::<Vec<Json>>()
    };
    let (first, second) = (ids(&first), ids(&second));
    assert_eq!(first.len(), 1);
    assert_eq!(second.len(), 3);
    assert!(second.iter().all(|id| *id == second[0]));
    assert_ne!(first[0], second[0]);
}

#[tokio::test]
async fn a_subgraph_that_has_ended_shows_its_state_until_the_superstep_around_it_ends() {
    let client = StreamClient::new().await;
    let (thread, _) = ask(&client, "beside", "values").await;
    let state = format!("{thread}/state?subgraphs=true");
    let state = client.json("GET", &state, None).await;
    assert_eq!(state["next"], json!(["ask", "inner"]));
    let inner = &state["tasks"][1]["state"];
    assert_eq!(inner["next"], json!([]));
    assert_ne!(inner["values"]["lines"], state["values"]["lines"]);
}
