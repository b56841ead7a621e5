//! Limits of tenants: what is over them is refused with 429 and the time after which it fits.

use http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep::registry::MemoryRegistry;
use superstep_server::TenantLimits;

use crate::kit::{Client, Reply};

async fn limited(limits: TenantLimits) -> Client {
    let runtime = Runtime::new(Memory::default());
    let builder = Client::builder(runtime, &MemoryRegistry::new());
    Client::of(builder.tenant_limits(limits)).await
}

#[track_caller]
fn assert_refused(reply: &Reply) {
    assert_eq!(
        reply.status,
        StatusCode::TOO_MANY_REQUESTS,
        "{}",
        reply.json
    );
    let after = reply.header("retry-after").unwrap();
    assert!(after.parse::<u64>().unwrap() >= 1);
    assert!(reply.json["detail"].is_string());
}

fn slow() -> Json {
    json!({ "assistant_id": "slow", "input": {} })
}

#[tokio::test]
async fn requests_over_the_rate_are_refused_and_health_is_not() {
    let client = limited(TenantLimits::default().requests_per_second(1)).await;
    for _ in 0..2 {
        client.thread().await;
    }
    assert_refused(&client.post("/threads", json!({})).await);
    for _ in 0..10 {
        client.get("/ok").await.ok();
        client.get("/superstep/ready").await.ok();
    }
}

#[tokio::test]
async fn runs_over_the_rate_are_refused() {
    let client = limited(TenantLimits::default().runs_per_minute(2)).await;
    let run = json!({ "assistant_id": "chat", "input": { "topic": "tea" } });
    for _ in 0..2 {
        let thread = client.thread().await;
        client.wait(&thread, run.clone()).await;
    }
    let thread = client.thread().await;
    assert_refused(&client.post(&format!("{thread}/runs"), run.clone()).await);
    assert_refused(&client.post("/runs/wait", run).await);
    let runs = client.get(&format!("{thread}/runs")).await.ok();
    assert_eq!(runs, json!([]), "a refused run has no row");
    let figures = client.get("/metrics?format=json").await.ok();
    assert_eq!(figures["requests_limited"], 2);
}

#[tokio::test]
async fn a_stream_counts_until_it_ends() {
    let client = limited(TenantLimits::default().open_requests(2)).await;
    let thread = client.thread().await;
    let other = client.thread().await;
    let first = client.open(&format!("{thread}/runs/stream"), slow()).await;
    assert_eq!(first.status(), StatusCode::OK);
    let second = client.open(&format!("{other}/runs/stream"), slow()).await;
    assert_eq!(second.status(), StatusCode::OK);
    assert_refused(&client.get(&thread).await);
    drop(second);
    client.get(&thread).await.ok();
}

#[tokio::test]
async fn a_tenant_has_only_so_many_active_runs() {
    let client = limited(TenantLimits::default().active_runs(2)).await;
    let thread = client.thread().await;
    let path = format!("{thread}/runs");
    let first = client.post(&path, slow()).await.ok();
    client.post(&path, slow()).await.ok();
    assert_refused(&client.post(&path, slow()).await);
    let id = first["run_id"].as_str().unwrap();
    let cancel = format!("{path}/{id}/cancel?wait=true");
    client.post(&cancel, json!({})).await.ok();
    client.post(&path, slow()).await.ok();
}
