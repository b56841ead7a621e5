//! Threads without a `ttl` are kept as long as the policy says.

use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep::registry::MemoryRegistry;
use superstep::{Clock, Timestamp};
use superstep_server::RetentionPolicy;
use tokio::time::Instant;

use crate::kit::Client;

/// A client of a server with a policy, whose clock is that of the test.
async fn client_with(policy: Json) -> Client {
    let begin = Instant::now();
    let clock = Clock::new(move || Timestamp(i64::try_from(begin.elapsed().as_millis()).unwrap()));
    let runtime = Runtime::builder(Memory::default()).clock(clock).build();
    let policy = RetentionPolicy::from_json(&policy.to_string()).unwrap();
    let builder = Client::builder(runtime, &MemoryRegistry::new());
    Client::of(builder.retention(policy)).await
}

/// Creates a thread and returns its path.
async fn thread_of(client: &Client, new: Json) -> String {
    let thread = client.post("/threads", new).await.ok();
    format!("/threads/{}", thread["thread_id"].as_str().unwrap())
}

async fn ttl(client: &Client, thread: &str) -> Json {
    let shown = client.get(&format!("{thread}?include=ttl")).await.ok();
    json!([shown["ttl"]["strategy"], shown["ttl"]["ttl_minutes"]])
}

#[tokio::test(start_paused = true)]
async fn a_thread_without_a_ttl_is_kept_as_the_first_rule_for_its_graph_says() {
    let client = client_with(json!({ "rules": [
        { "graph": "chat", "ttl": 30, "strategy": "keep_latest" },
        { "ttl": 60 },
    ] }))
    .await;
    let run = |graph: &str| json!({ "assistant_id": graph, "input": { "topic": "tea" } });

    let plain = thread_of(&client, json!({})).await;
    assert_eq!(ttl(&client, &plain).await, json!(["delete", 60.0]));
    client.wait(&plain, run("chat")).await;
    assert_eq!(ttl(&client, &plain).await, json!(["keep_latest", 30.0]));

    let own = thread_of(&client, json!({ "ttl": 5 })).await;
    client.wait(&own, run("chat")).await;
    assert_eq!(ttl(&client, &own).await, json!(["delete", 5.0]));

    let other = thread_of(&client, json!({})).await;
    client.wait(&other, run("ask")).await;
    assert_eq!(ttl(&client, &other).await, json!(["delete", 60.0]));
}

#[tokio::test(start_paused = true)]
async fn a_ttl_that_someone_chose_stays_also_if_a_rule_says_the_same() {
    let client = client_with(json!({ "rules": [
        { "graph": "chat", "ttl": 30, "strategy": "keep_latest" },
        { "ttl": 60 },
    ] }))
    .await;
    let run = |assistant: &Json| json!({ "assistant_id": assistant, "input": { "topic": "tea" } });

    let as_for_all = thread_of(&client, json!({ "ttl": 60 })).await;
    client.wait(&as_for_all, run(&json!("chat"))).await;
    assert_eq!(ttl(&client, &as_for_all).await, json!(["delete", 60.0]));

    let chosen = json!({ "ttl": 30, "strategy": "keep_latest" });
    let as_for_chat = thread_of(&client, json!({ "ttl": chosen })).await;
    client.wait(&as_for_chat, run(&json!("ask"))).await;
    let expected = json!(["keep_latest", 30.0]);
    assert_eq!(ttl(&client, &as_for_chat).await, expected);

    // Another assistant of the graph runs after the ttl was changed.
    let changed = thread_of(&client, json!({})).await;
    client.wait(&changed, run(&json!("chat"))).await;
    let change = json!({ "ttl": 60 });
    client.call("PATCH", &changed, Some(change)).await.ok();
    let second = json!({ "graph_id": "chat", "name": "second" });
    let second = client.post("/assistants", second).await.ok();
    client.wait(&changed, run(&second["assistant_id"])).await;
    assert_eq!(ttl(&client, &changed).await, json!(["delete", 60.0]));
}

#[tokio::test(start_paused = true)]
async fn a_history_is_dropped_once() {
    let rule = json!({ "ttl": 30, "strategy": "keep_latest" });
    let client = client_with(json!({ "rules": [rule] })).await;
    let thread = thread_of(&client, json!({})).await;
    let run = json!({ "assistant_id": "chat", "input": { "topic": "tea" } });
    client.wait(&thread, run).await;
    tokio::time::sleep(Duration::from_secs(32 * 60)).await;
    assert_eq!(ttl(&client, &thread).await, json!([null, null]));
    let dropped = client.get(&thread).await.ok()["updated_at"].clone();
    tokio::time::sleep(Duration::from_secs(64 * 60)).await;
    assert_eq!(client.get(&thread).await.ok()["updated_at"], dropped);
}

#[tokio::test(start_paused = true)]
async fn what_a_rule_says_happens_when_its_time_is_over() {
    let client = client_with(json!({ "rules": [
        { "graph": "chat", "ttl": null },
        { "ttl": 10 },
    ] }))
    .await;
    let kept = thread_of(&client, json!({})).await;
    let run = json!({ "assistant_id": "chat", "input": { "topic": "tea" } });
    client.wait(&kept, run).await;
    let unused = thread_of(&client, json!({})).await;
    tokio::time::sleep(Duration::from_secs(8 * 60)).await;
    client.get(&unused).await.ok();
    tokio::time::sleep(Duration::from_secs(4 * 60)).await;
    assert_eq!(client.get(&unused).await.status, 404);
    client.get(&kept).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_round_deletes_all_threads_also_behind_many_that_have_to_wait() {
    const MANY: u64 = 1_001;
    let client = client_with(json!({ "rules": [{ "ttl": 10 }] })).await;
    let tomorrow = json!({
        "assistant_id": "chat",
        "input": { "topic": "tea" },
        "after_seconds": 86_400,
    });
    for _ in 0..MANY {
        let waits = thread_of(&client, json!({})).await;
        let runs = format!("{waits}/runs");
        client.post(&runs, tomorrow.clone()).await.ok();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..MANY {
        thread_of(&client, json!({})).await;
    }
    let count = async || client.post("/threads/count", json!({})).await.ok();
    assert_eq!(count().await, 2 * MANY);
    // One round comes after the end of all lifetimes.
    tokio::time::sleep(Duration::from_secs(11 * 60 + 20)).await;
    assert_eq!(count().await, MANY);
}
