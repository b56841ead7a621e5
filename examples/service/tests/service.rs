//! The service as a client sees it: start, watch, restart, answer.

#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde_json::{Value as Json, json};

struct Service {
    child: Child,
    base: String,
}

impl Service {
    async fn start(folder: &std::path::Path) -> Self {
        let port = free_ports::free_port();
        let child = Command::new(env!("CARGO_BIN_EXE_example-service"))
            .arg(format!("127.0.0.1:{port}"))
            .current_dir(folder)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let base = format!("http://127.0.0.1:{port}/refunds/order-7");
        while Client::new().get(&base).send().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Self { child, base }
    }

    async fn post(&self, path: &str, body: Json) -> StatusCode {
        let request = Client::new().post(format!("{}{path}", self.base));
        request.json(&body).send().await.unwrap().status()
    }

    /// Waits for a result with this outcome.
    async fn result(&self, outcome: &str) -> Json {
        loop {
            let told = Client::new().get(&self.base).send().await.unwrap();
            let told: Json = told.json().await.unwrap();
            if told["outcome"] == outcome {
                return told;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The ids of the events after one, up to the next stop.
    async fn events(&self, after: Option<&str>) -> Vec<String> {
        let mut request = Client::new().get(format!("{}/events", self.base));
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let mut told = request.send().await.unwrap();
        let mut text = String::new();
        while !text.contains(r#""type":"stopped""#) || !text.ends_with("\n\n") {
            text += std::str::from_utf8(&told.chunk().await.unwrap().unwrap()).unwrap();
        }
        let ids = text.lines().filter_map(|line| line.strip_prefix("id:"));
        ids.map(|id| id.trim().to_owned()).collect()
    }

    /// The code of the error with which the events after an invalid id are refused.
    async fn refused_events(&self, after: &str) -> String {
        let request = Client::new().get(format!("{}/events", self.base));
        let reply = request.header("last-event-id", after).send().await.unwrap();
        assert_eq!(reply.status(), StatusCode::BAD_REQUEST);
        let text = reply.text().await.unwrap();
        text.rsplit(' ').next().unwrap().to_owned()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // As hard as a crash.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_refund_is_started_watched_interrupted_by_a_crash_and_approved_once() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path()).await;
    assert_eq!(service.post("", json!(120)).await, StatusCode::ACCEPTED);
    let paused = service.result("paused").await;
    assert_eq!(paused["interrupts"][0]["request"], "Refund 120?");
    let events = service.events(None).await;
    let rest = service.events(Some(&events[1])).await;
    assert_eq!(rest, events[2..]);
    assert_eq!(service.refused_events("latest").await, "[name-event]");
    drop(service);

    let service = Service::start(folder.path()).await;
    let interrupt = paused["interrupts"][0]["id"].as_str().unwrap();
    let answer = format!("/answers/{interrupt}");
    assert_eq!(
        service.post(&answer, json!(true)).await,
        StatusCode::ACCEPTED
    );
    let done = service.result("finished").await;
    assert!(
        done["state"]["receipt"]
            .as_str()
            .unwrap()
            .starts_with("paid under")
    );
    // The client that saw everything up to the crash sees the rest, and nothing twice.
    let last = events.last().unwrap();
    let since = service.events(Some(last)).await;
    assert!(!since.is_empty() && !since.iter().any(|id| events.contains(id)));
    assert_eq!(
        service.post(&answer, json!(true)).await,
        StatusCode::CONFLICT
    );
}
