//! `Idempotency-Key`: a request that is sent again creates nothing more.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value as Json, json};
use superstep::registry::MemoryRegistry;
use superstep::{Clock, Memory, Runtime, Timestamp};

use crate::kit::{Client, Reply};

async fn send(client: &Client, key: &str, path: &str, body: &Json) -> Reply {
    let request = Request::builder()
        .method("POST")
        .uri(path)
        .header("idempotency-key", key)
        .body(Body::from(body.to_string()))
        .unwrap();
    client.send(request).await
}

fn say(text: &str) -> Json {
    json!({ "assistant_id": "chat", "input": { "messages": [{ "role": "user", "content": text }] } })
}

fn kept(text: &str) -> Json {
    let mut body = say(text);
    body["on_completion"] = json!("keep");
    body
}

const DIFFERENT: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

#[tokio::test]
async fn the_same_key_creates_one_of_everything() {
    let client = Client::new().await;
    let thread = client.thread().await;
    client.wait(&thread, say("hi")).await;
    let cron = json!({ "assistant_id": "chat", "schedule": "0 0 1 1 *", "input": {} });
    for (path, body, id) in [
        ("/threads", json!({ "metadata": { "a": 1 } }), "thread_id"),
        ("/assistants", json!({ "graph_id": "chat" }), "assistant_id"),
        ("/runs/crons", cron.clone(), "cron_id"),
        (format!("{thread}/runs/crons").as_str(), cron, "cron_id"),
        (format!("{thread}/copy").as_str(), json!({}), "thread_id"),
        (format!("{thread}/runs").as_str(), say("once"), "run_id"),
        ("/runs", kept("once"), "run_id"),
    ] {
        let first = send(&client, path, path, &body).await.ok();
        assert!(first[id].is_string(), "{path}: {first}");
        let again = send(&client, path, path, &body).await.ok();
        assert_eq!(again[id], first[id], "{path}");
        let other = send(&client, "another key", path, &body).await;
        if other.status.is_success() {
            assert_ne!(other.json[id], first[id], "{path}");
        } else {
            // After the first path, the other key belongs to that.
            assert_eq!(other.status, DIFFERENT, "{path}");
        }
        let mut changed = body.clone();
        changed["metadata"] = json!({ "changed": true });
        let refused = send(&client, path, path, &changed).await;
        assert_eq!(refused.status, DIFFERENT, "{path}");
        let detail = refused.json["detail"].as_str().unwrap();
        assert!(detail.contains("different request"), "{detail}");
    }
    // The thread, the created one twice, its copy, and that of the run without a thread.
    assert_eq!(client.post("/threads/count", json!({})).await.ok(), 5);
    assert_eq!(client.post("/runs/crons/count", json!({})).await.ok(), 2);
}

#[tokio::test]
async fn a_request_is_the_same_however_its_body_is_written() {
    let client = Client::new().await;
    let send = |body: &'static str| {
        let request = Request::builder()
            .method("POST")
            .uri("/threads")
            .header("idempotency-key", "k")
            .body(Body::from(body))
            .unwrap();
        client.send(request)
    };
    let first = send(r#"{"metadata": {"a": 1, "b": 2}}"#).await.ok();
    let again = send(r#"{ "metadata":{"b":2,"a":1} }"#).await.ok();
    assert_eq!(first["thread_id"], again["thread_id"]);
}

#[tokio::test]
async fn an_id_that_the_caller_chose_is_created_once_and_taken_only_by_another_request() {
    let client = Client::new().await;
    let taken = "0190a6b2-0000-7000-8000-000000000001";
    for (path, body) in [
        ("/threads", json!({ "thread_id": taken })),
        (
            "/assistants",
            json!({ "graph_id": "chat", "assistant_id": taken }),
        ),
    ] {
        send(&client, path, path, &body).await.ok();
        send(&client, path, path, &body).await.ok();
        // Without a key, the id is taken.
        let refused = client.post(path, body.clone()).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{path}");
    }
}

#[tokio::test]
async fn a_run_under_a_key_is_executed_once() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let wait = format!("{thread}/runs/wait");
    assert_eq!(
        send(&client, "k1", &wait, &say("hi")).await.ok()["turns"],
        1
    );
    assert_eq!(
        send(&client, "k1", &wait, &say("hi")).await.ok()["turns"],
        1
    );
    assert_eq!(
        send(&client, "k1", &wait, &say("other")).await.status,
        DIFFERENT
    );
    // The thread is part of the request.
    let elsewhere = format!("{}/runs", client.thread().await);
    assert_eq!(
        send(&client, "k1", &elsewhere, &say("hi")).await.status,
        DIFFERENT
    );
    assert_eq!(
        send(&client, "k2", &wait, &say("hi")).await.ok()["turns"],
        2
    );
    let stream = format!("{thread}/runs/stream");
    for _ in 0..2 {
        let streamed = send(&client, "k3", &stream, &say("hi")).await;
        assert_eq!(streamed.status, StatusCode::OK);
    }
    let runs = client.get(&format!("{thread}/runs")).await.ok();
    assert_eq!(runs.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_run_without_a_thread_keeps_one_if_it_has_a_key() {
    let client = Client::new().await;
    for path in ["/runs", "/runs/wait", "/runs/stream"] {
        let refused = send(&client, path, path, &say("hi")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
        let detail = refused.json["detail"].as_str().unwrap();
        assert!(detail.contains("`on_completion`"), "{detail}");
    }
    let first = send(&client, "w", "/runs/wait", &kept("hi")).await.ok();
    let again = send(&client, "w", "/runs/wait", &kept("hi")).await.ok();
    assert_eq!((&first["turns"], &again["turns"]), (&json!(1), &json!(1)));
    assert_eq!(client.post("/threads/count", json!({})).await.ok(), 1);
}

#[tokio::test]
async fn a_run_is_the_same_however_its_caller_follows_it() {
    let client = Client::new().await;
    let thread = client.thread().await;
    send(&client, "k", &format!("{thread}/runs/wait"), &say("hi"))
        .await
        .ok();
    send(&client, "k", &format!("{thread}/runs/stream"), &say("hi"))
        .await
        .ok();
    let created = send(&client, "k", &format!("{thread}/runs"), &say("hi")).await;
    assert_eq!(created.ok()["status"], "success");
    let runs = client.get(&format!("{thread}/runs")).await.ok();
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
}

#[tokio::test]
async fn a_batch_is_created_once() {
    let client = Client::new().await;
    let batch = json!([kept("a"), kept("a"), kept("b")]);
    let ids = |reply: Json| -> Vec<String> {
        let runs = reply.as_array().unwrap().iter();
        runs.map(|run| run["run_id"].to_string()).collect()
    };
    let first = ids(send(&client, "k", "/runs/batch", &batch).await.ok());
    let again = ids(send(&client, "k", "/runs/batch", &batch).await.ok());
    assert_eq!(first, again);
    assert!(first[0] != first[1] && first[1] != first[2]);
    assert_eq!(client.post("/threads/count", json!({})).await.ok(), 3);
}

#[tokio::test]
async fn a_command_under_a_key_is_executed_once() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let command = json!({
        "id": 1, "method": "run.start",
        "params": { "assistant_id": "chat", "input": say("hi")["input"] },
    });
    let path = format!("{thread}/commands");
    let first = send(&client, "k", &path, &command).await.ok();
    let again = send(&client, "k", &path, &command).await.ok();
    assert!(first["result"]["run_id"].is_string(), "{first}");
    assert_eq!(first["result"]["run_id"], again["result"]["run_id"]);
    let mut other = command;
    other["params"]["input"] = say("other")["input"].take();
    assert_eq!(send(&client, "k", &path, &other).await.status, DIFFERENT);
}

#[tokio::test]
async fn a_body_that_is_not_valid_does_not_use_up_its_key() {
    let client = Client::new().await;
    let invalid = send(&client, "k", "/threads", &json!({ "metadata": 1 })).await;
    assert_eq!(invalid.status, StatusCode::UNPROCESSABLE_ENTITY);
    send(&client, "k", "/threads", &json!({})).await.ok();
}

#[tokio::test]
async fn a_key_has_255_printable_characters_at_most() {
    let client = Client::new().await;
    let longest = "k".repeat(255);
    send(&client, &longest, "/threads", &json!({})).await.ok();
    for key in ["", &"k".repeat(256), "a\tb"] {
        let refused = send(&client, key, "/threads", &json!({})).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{key}");
    }
}

#[tokio::test]
async fn a_key_is_free_again_after_a_day() {
    let now = Arc::new(AtomicI64::new(1_735_732_830_000));
    let clock = now.clone();
    let clock = Clock::new(move || Timestamp(clock.load(Ordering::Relaxed)));
    let runtime = Runtime::builder(Memory::default()).clock(clock).build();
    let client = Client::over(runtime, &MemoryRegistry::new()).await;
    let body = json!({ "metadata": { "a": 1 } });
    let first = send(&client, "k", "/threads", &body).await.ok();
    now.fetch_add(23 * 60 * 60 * 1_000, Ordering::Relaxed);
    let again = send(&client, "k", "/threads", &body).await.ok();
    assert_eq!(again["thread_id"], first["thread_id"]);
    now.fetch_add(2 * 60 * 60 * 1_000, Ordering::Relaxed);
    let other = send(&client, "k", "/threads", &json!({})).await.ok();
    assert_ne!(other["thread_id"], first["thread_id"]);
}
