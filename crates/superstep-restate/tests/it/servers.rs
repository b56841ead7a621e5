//! Several servers in front of one cluster: they share the queue, and none of them is needed for a run to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_server::Server;

use crate::kit::{Cluster, get, post};

#[derive(Clone, Debug, Default, State)]
struct Visit {
    #[state(append)]
    rooms: Vec<String>,
}

/// Counts what happened outside.
type Effects = Arc<AtomicU32>;

/// Enters a room inside of a subgraph, stays there for so long, and then has an effect.
fn graph(stay: Duration, effects: &Effects) -> Graph<Visit> {
    let effects = effects.clone();
    let inner = Graph::builder("room")
        .node("stay", move |_: View<Visit>, _: NodeCx| {
            let effects = effects.clone();
            async move {
                tokio::time::sleep(stay).await;
                effects.fetch_add(1, Ordering::SeqCst);
                Ok::<_, NodeError>(VisitUpdate::default().rooms("room".to_owned()))
            }
        })
        .edge(START, "stay")
        .edge("stay", END)
        .build()
        .unwrap();
    Graph::builder("visit")
        .shared_subgraph("enter", inner)
        .edge(START, "enter")
        .edge("enter", END)
        .inputs(["rooms"])
        .build()
        .unwrap()
}

/// A server in an executor of its own, so that it can die.
struct ServerProcess {
    address: String,
    executor: Option<tokio::runtime::Runtime>,
}

impl ServerProcess {
    fn start(cluster: &Cluster, graph: &Arc<Definition>) -> Self {
        let (place, graph) = (cluster.place(), graph.clone());
        let executor = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        executor.spawn(async move {
            let (store, runtime) = place.connect().await;
            let server = Server::builder(runtime, Arc::new(store)).graph(&graph);
            let server = server.start().await.unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            server
                .serve(listener, std::future::pending())
                .await
                .unwrap();
        });
        Self {
            address,
            executor: Some(executor),
        }
    }

    /// Ends everything at once, as a crash would.
    fn die(&mut self) {
        if let Some(executor) = self.executor.take() {
            executor.shutdown_background();
        }
    }

    async fn post(&self, path: &str, body: Json) -> Json {
        let (status, text) = post(&format!("{}{path}", self.address), &body).await;
        assert!((200..300).contains(&status), "{path}: {status}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    async fn get(&self, path: &str) -> Json {
        let (status, text) = get(&format!("{}{path}", self.address)).await;
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn thread(&self) -> String {
        let thread = self.post("/threads", json!({})).await;
        format!("/threads/{}", thread["thread_id"].as_str().unwrap())
    }

    /// Starts a run, and returns its path.
    async fn begin(&self, thread: &str) -> String {
        let body = json!({ "assistant_id": "visit", "input": { "rooms": ["hall"] } });
        let run = self.post(&format!("{thread}/runs"), body).await;
        format!("{thread}/runs/{}", run["run_id"].as_str().unwrap())
    }

    async fn until(&self, run: &str, status: &str) {
        let started = Instant::now();
        while self.get(run).await["status"] != status {
            assert!(
                started.elapsed() < Duration::from_secs(40),
                "{run} is not {status}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.die();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_a_queue_and_each_run_happens_once() {
    let cluster = Cluster::start().await;
    let effects = Effects::default();
    let graph = graph(Duration::from_millis(20), &effects);
    let graph = graph.definition();
    cluster.worker.register_definition(graph);
    let one = ServerProcess::start(&cluster, graph);
    let other = ServerProcess::start(&cluster, graph);
    let mut runs = Vec::new();
    for _ in 0..5 {
        let thread = one.thread().await;
        for server in [&one, &other, &other, &one] {
            runs.push(server.begin(&thread).await);
        }
    }
    for run in &runs {
        other.get(&format!("{run}/join")).await;
        assert_eq!(one.get(run).await["status"], "success");
    }
    assert_eq!(effects.load(Ordering::SeqCst), 20);
    let thread = runs[0].split("/runs").next().unwrap();
    let state = other.get(&format!("{thread}/state")).await;
    let rooms = ["hall", "room"].repeat(4);
    assert_eq!(state["values"]["rooms"], json!(rooms));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_through_another_server() {
    let cluster = Cluster::start().await;
    let effects = Effects::default();
    let graph = graph(Duration::from_secs(30), &effects);
    let graph = graph.definition();
    cluster.worker.register_definition(graph);
    let one = ServerProcess::start(&cluster, graph);
    let other = ServerProcess::start(&cluster, graph);
    let thread = one.thread().await;
    let run = one.begin(&thread).await;
    one.until(&run, "running").await;
    // Until a worker has claimed the thread, and is inside of the subgraph.
    while one.get(&thread).await["status"] != "busy" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let asked = Instant::now();
    other.post(&format!("{run}/cancel?wait=1"), json!({})).await;
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(2), "it took {took:?}");
    assert_eq!(one.get(&run).await["status"], "interrupted");
    assert_eq!(effects.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_through_another_server_spares_the_next_run() {
    let cluster = Cluster::start().await;
    let effects = Effects::default();
    let graph = graph(Duration::from_secs(3), &effects);
    let graph = graph.definition();
    cluster.worker.register_definition(graph);
    let one = ServerProcess::start(&cluster, graph);
    let thread = one.thread().await;
    let (run, next) = (one.begin(&thread).await, one.begin(&thread).await);
    one.until(&run, "running").await;
    let other = ServerProcess::start(&cluster, graph);
    while other.get(&thread).await["status"] != "busy" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    other.post(&format!("{run}/cancel?wait=1"), json!({})).await;
    other.until(&next, "success").await;
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_server_waited_for_ends_once() {
    let cluster = Cluster::start().await;
    let effects = Effects::default();
    let graph = graph(Duration::from_secs(2), &effects);
    let graph = graph.definition();
    cluster.worker.register_definition(graph);
    let mut one = ServerProcess::start(&cluster, graph);
    let thread = one.thread().await;
    let (run, next) = (one.begin(&thread).await, one.begin(&thread).await);
    one.until(&run, "running").await;
    one.die();
    let other = ServerProcess::start(&cluster, graph);
    other.until(&next, "success").await;
    assert_eq!(other.get(&run).await["status"], "success");
    assert_eq!(effects.load(Ordering::SeqCst), 2);
}
