//! Two tenants on one server. Each fills it with texts that contain its canary, uses the ids of the other one on every route, and
//! must never see the other's canary: not in a body, a header, an error, an event or a metric.

mod requests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value as Json, json};
use superstep::checkpoint::Checkpointer;
use superstep::prelude::*;
use superstep::registry::{MemoryRegistry, Registry};
use superstep::store::{MemoryStore, Store};
use superstep_conformance::Prng;
use superstep_server::{FolderFiles, Server, ServerBuilder};
use superstep_sqlite::Sqlite;
use uuid::Uuid;

use crate::kit::{Client, Reply};
use requests::{Requests, routes};

#[derive(Clone, Debug, Default, State)]
struct Desk {
    topic: Option<String>,
    #[state(append)]
    notes: Vec<String>,
}

/// Reads what earlier runs of the tenant have stored, stores the topic, and shows both.
async fn remember(desk: View<Desk>, cx: NodeCx) -> Result<DeskUpdate, NodeError> {
    let topic = desk.topic.clone().unwrap_or_default();
    let shared = cx.store(["shared"])?;
    let before: Vec<(String, Json)> = shared.list(100).await?;
    shared.put("last", &topic).await?;
    cx.emit(json!({ "topic": topic }))?;
    let mut notes: Vec<String> = before.iter().map(|(_, value)| value.to_string()).collect();
    notes.push(topic);
    Ok(DeskUpdate::default().notes_all(notes))
}

/// Asks about the topic.
async fn ask(desk: View<Desk>, cx: NodeCx) -> Result<DeskUpdate, NodeError> {
    let request = json!({ "topic": desk.topic });
    let answer: Json = cx.interrupt(Interrupt::new("ask", request)).await?;
    Ok(DeskUpdate::default().notes(answer.to_string()))
}

/// Fails with the topic in its error.
async fn fail(desk: View<Desk>, _: NodeCx) -> Result<DeskUpdate, NodeError> {
    Err(NodeError::fatal(desk.topic.clone().unwrap_or_default()))
}

/// Returns the topic that it was first called with: the results of all calls have one key.
async fn cached(desk: View<Desk>, _: NodeCx) -> Result<DeskUpdate, NodeError> {
    Ok(DeskUpdate::default().notes(desk.topic.clone().unwrap_or_default()))
}

fn builder(runtime: Runtime, registry: Arc<dyn Registry>, store: Arc<dyn Store>) -> ServerBuilder {
    macro_rules! graph {
        ($node:ident) => {
            Graph::builder(stringify!($node))
                .node("node", $node)
                .edge(START, "node")
                .edge("node", END)
                .inputs(["topic"])
        };
    }
    let cached = graph!(cached).cache("node", None, |_: &Desk| "one".to_owned());
    Server::builder(runtime, registry)
        .graph(graph!(remember).build().unwrap().definition())
        .graph(graph!(ask).build().unwrap().definition())
        .graph(graph!(fail).build().unwrap().definition())
        .graph(cached.build().unwrap().definition())
        .store(store)
}

fn in_memory() -> ServerBuilder {
    let store = MemoryStore::default();
    let runtime = Runtime::builder(Memory::default()).store(store.clone());
    let registry = Arc::new(MemoryRegistry::new());
    builder(runtime.build(), registry, Arc::new(store))
}

fn over<T: Checkpointer + Store + Registry + Clone>(store: &T) -> ServerBuilder {
    let runtime = Runtime::builder(store.clone()).store(store.clone());
    builder(
        runtime.build(),
        Arc::new(store.clone()),
        Arc::new(store.clone()),
    )
}

/// A tenant, and the ids of what it has.
struct Tenant {
    client: Client,
    name: &'static str,
    canary: &'static str,
    ids: Ids,
}

/// Ids by the name of the parameter that takes them.
#[derive(Default)]
struct Ids(BTreeMap<&'static str, Vec<String>>);

impl Ids {
    fn add(&mut self, kind: &'static str, id: &Json) {
        if let Some(id) = id.as_str() {
            self.0.entry(kind).or_default().push(id.to_owned());
        }
    }

    /// Returns one of the latest ids of a kind; a made-up one if there is none.
    fn pick(&self, kind: &str, random: &mut Prng) -> String {
        let known = self.0.get(kind).map(Vec::as_slice).unwrap_or_default();
        let latest = &known[known.len().saturating_sub(40)..];
        match latest.is_empty() {
            true => Uuid::from_u128(random.below(usize::MAX) as u128).to_string(),
            false => random.pick(latest).clone(),
        }
    }
}

async fn two_tenants(builder: ServerBuilder) -> [Tenant; 2] {
    let names = ["first-tenant", "second-tenant"];
    let canaries = ["canary1yellow", "canary2red"];
    let clients = Client::of_tenants(builder, names).await;
    let mut made = names.into_iter().zip(canaries).zip(clients);
    let mut next = || {
        let ((name, canary), client) = made.next().unwrap();
        Tenant {
            client,
            name,
            canary,
            ids: Ids::default(),
        }
    };
    [next(), next()]
}

impl Tenant {
    /// Creates one thing of each kind, with the canary in every text.
    async fn fill(&mut self) {
        let canary = self.canary;
        let metadata = json!({ "note": canary });
        for graph in ["remember", "ask", "fail", "cached"] {
            let new = json!({ "metadata": metadata });
            let thread = self.client.post("/threads", new).await.ok();
            self.ids.add("thread_id", &thread["thread_id"]);
            let path = format!("/threads/{}", thread["thread_id"].as_str().unwrap());
            let run = json!({
                "assistant_id": graph, "input": { "topic": canary }, "metadata": metadata,
            });
            let run = self.client.post(&format!("{path}/runs"), run).await.ok();
            self.ids.add("run_id", &run["run_id"]);
            self.ids.add("assistant_id", &run["assistant_id"]);
            let run = format!("{path}/runs/{}", run["run_id"].as_str().unwrap());
            self.client.get(&format!("{run}/join")).await;
            for checkpoint in self.client.history(&path).await {
                let checkpoint = &checkpoint["checkpoint"]["checkpoint_id"];
                self.ids.add("checkpoint_id", checkpoint);
            }
            let state = self.client.get(&format!("{path}/state")).await.ok();
            for interrupt in state["interrupts"].as_array().into_iter().flatten() {
                self.ids.add("interrupt_id", &interrupt["id"]);
            }
            for name in [canary, "note"] {
                let file = Request::put(format!("/superstep{path}/files/{name}.txt"))
                    .body(Body::from(canary))
                    .unwrap();
                self.client.send(file).await.ok();
            }
        }
        let new = json!({ "graph_id": "remember", "name": canary, "metadata": metadata });
        let assistant = self.client.post("/assistants", new).await.ok();
        self.ids.add("assistant_id", &assistant["assistant_id"]);
        let new = json!({
            "assistant_id": "remember", "schedule": "0 0 1 1 *",
            "input": { "topic": canary }, "metadata": metadata,
        });
        let cron = self.client.post("/runs/crons", new).await.ok();
        self.ids.add("cron_id", &cron["cron_id"]);
        for namespace in [json!(["shared"]), json!(["users", canary])] {
            let item = json!({ "namespace": namespace, "key": "last", "value": metadata });
            self.client.call("PUT", "/store/items", Some(item)).await;
        }
    }

    /// Fails if a reply shows anything of the other tenant.
    #[track_caller]
    fn check(&self, other: &Self, what: &str, reply: &Reply) {
        let mut shown = format!("{} {:?}\n", reply.status, reply.headers);
        shown.push_str(&String::from_utf8_lossy(&reply.bytes));
        for secret in [other.canary, other.name] {
            assert!(
                !shown.contains(secret),
                "{} sees `{secret}` of {} by {what}: {shown}",
                self.name,
                other.name
            );
        }
        assert_ne!(
            reply.status,
            StatusCode::INTERNAL_SERVER_ERROR,
            "{what}: {shown}"
        );
    }
}

/// Sends sequences of random requests of both tenants.
async fn send_sequences(builder: ServerBuilder, seed: u64, sequences: usize) {
    let folder = tempfile::tempdir().unwrap();
    let builder = builder.files(Arc::new(FolderFiles::new(folder.path())));
    let mut tenants = two_tenants(builder).await;
    let routes = routes(&tenants[0].client).await;
    let mut random = Prng::new(seed);
    let mut used = vec![0_usize; routes.len()];
    for sequence in 0..sequences {
        // Tenants delete what they have, so they get more.
        if sequence % REFILL == 0 {
            for tenant in &mut tenants {
                tenant.fill().await;
            }
        }
        let who = random.below(2);
        let (caller, other) = (&tenants[who], &tenants[1 - who]);
        for _ in 0..=random.below(4) {
            let at = random.below(routes.len());
            used[at] += 1;
            let mut requests = Requests {
                caller,
                other,
                random: &mut random,
            };
            let (what, request) = requests.request(&routes[at]);
            let reply = caller.client.send_briefly(request, routes[at].pause());
            let reply = tokio::time::timeout(Duration::from_secs(30), reply).await;
            let reply = reply.unwrap_or_else(|_| panic!("no reply to {what}"));
            caller.check(other, &format!("sequence {sequence}: {what}"), &reply);
        }
    }
    let unused = routes.iter().zip(&used).filter(|(_, used)| **used == 0);
    let unused: Vec<&str> = unused.map(|(route, _)| route.path.as_str()).collect();
    assert!(unused.is_empty(), "never called: {unused:?}");
}

/// How many sequences lie between two fillings.
const REFILL: usize = 100;

/// `SUPERSTEP_TENANT_SEQUENCES` sets how many sequences are sent.
fn sequences(default: usize) -> usize {
    let set = std::env::var("SUPERSTEP_TENANT_SEQUENCES").ok();
    set.map_or(default, |text| text.parse().unwrap())
}

#[tokio::test]
async fn random_calls_show_nothing_of_another_tenant() {
    send_sequences(in_memory(), 20, sequences(2_000)).await;
}

#[tokio::test]
async fn random_calls_show_nothing_of_another_tenant_in_sqlite() {
    let sqlite = Sqlite::in_memory().unwrap();
    send_sequences(over(&sqlite), 21, sequences(500)).await;
}

/// Returns everything that a tenant can list.
async fn everything(tenant: &Tenant) -> Vec<Json> {
    let client = &tenant.client;
    let mut found = Vec::new();
    for path in [
        "/threads/search",
        "/assistants/search",
        "/runs/crons/search",
        "/store/items/search",
    ] {
        found.push(client.post(path, json!({ "limit": 1_000 })).await.ok());
    }
    for thread in &tenant.ids.0["thread_id"] {
        let path = format!("/threads/{thread}");
        found.push(client.get(&format!("{path}/state")).await.ok());
        found.push(client.get(&format!("{path}/runs")).await.ok());
        found.push(Json::from(client.history(&path).await));
        let files = client.get(&format!("/superstep{path}/files")).await;
        found.push(files.ok());
    }
    found
}

#[tokio::test]
async fn no_route_changes_anything_of_another_tenant() {
    let (builder, _folder) = in_memory_with_files();
    let [mut first, second] = two_tenants(builder).await;
    first.fill().await;
    let before = everything(&first).await;
    let mut random = Prng::new(22);
    for route in routes(&second.client).await {
        // Each route has a few bodies, and there are a few ids.
        for _ in 0..30 {
            let mut requests = Requests {
                caller: &second,
                other: &first,
                random: &mut random,
            };
            let (what, request) = requests.request(&route);
            let reply = second.client.send_briefly(request, route.pause()).await;
            second.check(&first, &what, &reply);
        }
    }
    assert_eq!(everything(&first).await, before);
}

#[tokio::test]
async fn streams_of_another_tenants_thread_stay_silent() {
    let (builder, _folder) = in_memory_with_files();
    let [mut first, second] = two_tenants(builder).await;
    first.fill().await;
    for thread in first.ids.0["thread_id"].clone() {
        let path = format!("/threads/{thread}");
        let channels = json!({ "channels": ["values", "updates", "lifecycle", "custom", "tasks"] });
        let events = Request::post(format!("{path}/stream/events"))
            .body(Body::from(channels.to_string()))
            .unwrap();
        let joined = Request::get(format!("{path}/stream"))
            .body(Body::empty())
            .unwrap();
        let wait = Duration::from_millis(300);
        let run = json!({ "assistant_id": "remember", "input": { "topic": first.canary } });
        let runs = format!("{path}/runs/wait");
        let (events, joined, _) = tokio::join!(
            second.client.send_briefly(events, wait),
            second.client.send_briefly(joined, wait),
            first.client.post(&runs, run),
        );
        second.check(&first, "its event stream", &events);
        second.check(&first, "its thread stream", &joined);
    }
}

fn in_memory_with_files() -> (ServerBuilder, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let files = Arc::new(FolderFiles::new(folder.path()));
    (in_memory().files(files), folder)
}

#[tokio::test]
async fn every_tenant_has_the_default_assistants() {
    let [first, second] = two_tenants(in_memory()).await;
    for tenant in [&first, &second] {
        let found = tenant
            .client
            .post("/assistants/search", json!({}))
            .await
            .ok();
        let graphs = found.as_array().unwrap().iter();
        let mut graphs: Vec<&str> = graphs
            .map(|found| found["graph_id"].as_str().unwrap())
            .collect();
        graphs.sort_unstable();
        assert_eq!(graphs, ["ask", "cached", "fail", "remember"]);
        let count = tenant
            .client
            .post("/assistants/count", json!({}))
            .await
            .ok();
        assert_eq!(count, json!(4));
    }
    // What one tenant makes of its default assistant is its own.
    let change = json!({ "metadata": { "note": first.canary } });
    let changed = first
        .client
        .call("PATCH", "/assistants/ask", Some(change))
        .await;
    assert_eq!(changed.ok()["metadata"]["note"], first.canary);
    let unchanged = second.client.get("/assistants/ask").await;
    second.check(&first, "its default assistant", &unchanged);
    // A default assistant that was deleted is not in the list again.
    first
        .client
        .call("DELETE", "/assistants/ask", None)
        .await
        .ok();
    let count = first.client.post("/assistants/count", json!({})).await.ok();
    assert_eq!(count, json!(3));
}

#[tokio::test]
async fn a_cached_result_is_not_for_another_tenant() {
    let [first, second] = two_tenants(in_memory()).await;
    for (tenant, expected) in [(&first, "tea"), (&first, "tea"), (&second, "coffee")] {
        let topic = match tenant.name == first.name {
            true => "tea",
            false => "coffee",
        };
        let run = json!({ "assistant_id": "cached", "input": { "topic": topic } });
        let values = tenant.client.post("/runs/wait", run).await.ok();
        assert_eq!(values["notes"], json!([expected]));
    }
    // Within a tenant it is: the key does not contain the topic.
    let run = json!({ "assistant_id": "cached", "input": { "topic": "milk" } });
    let values = first.client.post("/runs/wait", run).await.ok();
    assert_eq!(values["notes"], json!(["tea"]));
}
