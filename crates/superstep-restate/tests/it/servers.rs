//! Several servers in front of one cluster: they share the queue, and none of them is needed for a run to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep::registry::{NewCron, Registry as _, RunQuery, RunStatus};
use superstep::{AssistantId, CronId, Timestamp};
use superstep_server::Server;
use tokio::sync::oneshot;

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
    named_graph("visit", stay, effects)
}

fn named_graph(name: &str, stay: Duration, effects: &Effects) -> Graph<Visit> {
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
    Graph::builder(name)
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
    /// Drains the server.
    stop: Option<oneshot::Sender<()>>,
    /// Resolves when it has drained.
    stopped: Option<oneshot::Receiver<()>>,
}

impl ServerProcess {
    fn start(cluster: &Cluster, graph: &Arc<Definition>) -> Self {
        Self::with(cluster, &[graph])
    }

    fn with(cluster: &Cluster, graphs: &[&Arc<Definition>]) -> Self {
        let place = cluster.place();
        let graphs: Vec<_> = graphs.iter().map(|graph| Arc::clone(graph)).collect();
        let (stop, stopping) = oneshot::channel();
        let (done, stopped) = oneshot::channel();
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
            let server = Server::builder(runtime, Arc::new(store));
            let server = graphs
                .iter()
                .fold(server, |server, graph| server.graph(graph));
            let server = server.start().await.unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let stopping = async move { drop(stopping.await) };
            server.serve(listener, stopping).await.unwrap();
            let _ = done.send(());
        });
        Self {
            address,
            executor: Some(executor),
            stop: Some(stop),
            stopped: Some(stopped),
        }
    }

    /// Stops as a signal would, and returns when the server has drained.
    async fn drain(&mut self) {
        drop(self.stop.take());
        self.stopped.take().unwrap().await.unwrap();
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
        self.begin_of("visit", thread).await
    }

    async fn begin_of(&self, graph: &str, thread: &str) -> String {
        let body = json!({ "assistant_id": graph, "input": { "rooms": ["hall"] } });
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

/// The other server takes what is handed over at once, long before the lease of 15 seconds is over.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_draining_server_waited_for_is_taken_at_once_and_ends_once() {
    let cluster = Cluster::start().await;
    let effects = Effects::default();
    let graph = graph(Duration::from_secs(3), &effects);
    let graph = graph.definition();
    cluster.worker.register_definition(graph);
    let mut old = ServerProcess::start(&cluster, graph);
    let thread = old.thread().await;
    let (run, next) = (old.begin(&thread).await, old.begin(&thread).await);
    old.until(&run, "running").await;
    while old.get(&thread).await["status"] != "busy" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let new = ServerProcess::start(&cluster, graph);
    new.get(&thread).await;
    old.drain().await;
    let drained = Instant::now();
    new.until(&next, "success").await;
    assert_eq!(new.get(&run).await["status"], "success");
    assert!(
        drained.elapsed() < Duration::from_secs(14),
        "{:?}",
        drained.elapsed()
    );
    assert_eq!(effects.load(Ordering::SeqCst), 2);
}

/// Two versions side by side: only the new one has the second graph. Its runs are queued where both servers take from, and its cron is
/// due before the new server starts.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_leaves_runs_and_crons_of_unknown_graphs_to_the_next_one() {
    let cluster = Cluster::start().await;
    let effects = Effects::default();
    let known = graph(Duration::from_millis(20), &effects);
    let added = named_graph("tour", Duration::from_millis(300), &effects);
    for graph in [&known, &added] {
        cluster.worker.register_definition(graph.definition());
    }
    // The assistant of the new graph exists after the new version has started once.
    let first = ServerProcess::with(&cluster, &[known.definition(), added.definition()]);
    let assistant = until_listed(&first, "tour").await;
    drop(first);
    let (store, _) = cluster.place().connect().await;
    let cron = due_cron(&assistant);
    store.create_cron(&cron).await.unwrap();

    let old = ServerProcess::start(&cluster, known.definition());
    let thread = old.thread().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let row = store.cron("", cron.id).await.unwrap().unwrap();
    assert_eq!(
        (row.next, &row.error),
        (cron.next, &Json::Null),
        "left alone"
    );
    let new = ServerProcess::with(&cluster, &[known.definition(), added.definition()]);
    until_listed(&new, "tour").await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(new.begin_of("tour", &thread).await);
    }
    for run in &runs {
        new.until(run, "success").await;
    }
    let query = RunQuery {
        metadata: Some(json!({ "cron_id": uuid_text(cron.id) })),
        ..RunQuery::default()
    };
    let started = Instant::now();
    loop {
        let ticks = store.runs(&query).await.unwrap();
        if ticks.len() == 1 && ticks[0].status == RunStatus::Success {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{ticks:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(effects.load(Ordering::SeqCst), 5);
}

/// Waits until a server answers, and returns the id of a graph's assistant.
async fn until_listed(server: &ServerProcess, graph: &str) -> String {
    let found = server.get(&format!("/assistants/{graph}")).await;
    found["assistant_id"].as_str().unwrap().to_owned()
}

/// A cron that is due now, and after that at the beginning of the next year.
fn due_cron(assistant: &str) -> NewCron {
    let hex: String = assistant.split('-').collect();
    let assistant = u128::from_str_radix(&hex, 16).unwrap();
    let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let now = Timestamp(since_1970.as_millis() as i64);
    NewCron {
        tenant: String::new(),
        id: CronId::from_bytes([7; 16]),
        assistant: AssistantId::from_bytes(assistant.to_be_bytes()),
        thread: None,
        principal: String::new(),
        schedule: "0 0 1 1 *".to_owned(),
        zone: None,
        end: None,
        is_enabled: true,
        next: Some(now),
        arguments: json!({ "input": { "rooms": [] }, "on_run_completed": "keep" }),
        metadata: json!({}),
        at: now,
    }
}

/// Returns the id of a cron as clients have it.
fn uuid_text(id: CronId) -> String {
    let hex: String = id
        .to_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}
