//! Two tenants on one server. Each fills it with texts that contain its canary, uses the ids of the other one on every route, and
//! must never see the other's canary: not in a body, a header, an error, an event, a delivery or a metric. The logs have no canary
//! at all.

mod filling;
mod logs;
mod protocols;
mod requests;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt as _;
use http::{Request, StatusCode};
use serde_json::{Value as Json, json};
use superstep::checkpoint::Checkpointer;
use superstep::prelude::*;
use superstep::registry::{MemoryRegistry, Registry};
use superstep::store::{MemoryStore, Store};
use superstep_conformance::Prng;
use superstep_server::{
    AccessRecord, AuditKey, FolderFiles, Server, ServerBuilder, WebhookAttempts,
};
use superstep_sqlite::Sqlite;
use tempfile::TempDir;
use tracing::subscriber::DefaultGuard;
use uuid::Uuid;

use crate::kit::{Client, Reply};
use crate::receiver::{Reaction, Receiver};
use crate::schema::Schema;
use logs::LogSearch;
use protocols::{ProtocolCalls, SESSION, rpc};
use requests::{Requests, Route, routes};

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

/// What a server of these tests stores everything in.
struct Stores {
    runtime: Runtime,
    registry: Arc<dyn Registry>,
    store: Arc<dyn Store>,
}

impl Stores {
    fn in_memory() -> Self {
        let store = MemoryStore::default();
        let runtime = Runtime::builder(Memory::default()).store(store.clone());
        Self {
            runtime: runtime.build(),
            registry: Arc::new(MemoryRegistry::new()),
            store: Arc::new(store),
        }
    }

    fn of<T: Checkpointer + Store + Registry + Clone>(store: &T) -> Self {
        let runtime = Runtime::builder(store.clone()).store(store.clone());
        Self {
            runtime: runtime.build(),
            registry: Arc::new(store.clone()),
            store: Arc::new(store.clone()),
        }
    }

    fn server(&self) -> ServerBuilder {
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
        Server::builder(self.runtime.clone(), self.registry.clone())
            .graph(graph!(remember).build().unwrap().definition())
            .graph(graph!(ask).build().unwrap().definition())
            .graph(graph!(fail).build().unwrap().definition())
            .graph(cached.build().unwrap().definition())
            .store(self.store.clone())
    }
}

/// What shows that something belongs to a tenant.
struct Marks {
    name: &'static str,
    principal: &'static str,
    /// In every text of the tenant.
    canary: &'static str,
    /// What the tenant spends with each filling.
    amount: u64,
}

static MARKS: [Marks; 2] = [
    Marks {
        name: "first-tenant",
        principal: "first-program",
        canary: "canary1yellow",
        amount: 7_310_077_310_077,
    },
    Marks {
        name: "second-tenant",
        principal: "second-program",
        canary: "canary2red",
        amount: 8_420_088_420_088,
    },
];

impl Marks {
    /// Returns what no other tenant may see.
    fn secrets(&self) -> [String; 4] {
        let texts = [self.name, self.principal, self.canary];
        let [name, principal, canary] = texts.map(str::to_owned);
        [name, principal, canary, self.amount.to_string()]
    }

    /// Whether a line of the access log names this tenant, or none.
    fn are_those_of(&self, record: &AccessRecord) -> bool {
        let is = |found: &Option<String>, own: &str| {
            let found = found.as_deref().unwrap_or_default();
            found.is_empty() || found == own
        };
        is(&record.tenant, self.name) && is(&record.principal, self.principal)
    }
}

/// A tenant, and the ids of what it has.
struct Tenant {
    client: Client,
    marks: &'static Marks,
    ids: Ids,
    /// Those of its ids that other tenants cannot know.
    hidden: BTreeSet<String>,
    /// Ids in requests that it has sent, whoever they belong to: replies may repeat them.
    sent: RefCell<BTreeSet<String>>,
    /// Threads that it has created with the same keys as the other tenant.
    keyed_threads: Vec<String>,
    /// Where the ends of its runs are delivered.
    webhook: String,
    store: Arc<dyn Store>,
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

/// Returns the words of a text that may be ids.
fn ids_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| [32, 36].contains(&word.len()))
}

/// A server with everything that can hold a text of a tenant, two tenants of it, and what it writes to its logs.
struct Trial {
    tenants: [Tenant; 2],
    receiver: Receiver,
    events: LogSearch,
    accesses: LogSearch,
    _listening: DefaultGuard,
    _files: TempDir,
}

impl Trial {
    async fn start(stores: Stores) -> Self {
        // Some deliveries fail, so that this is logged and shown.
        let receiver = Receiver::start([
            Reaction::status("500 Internal Server Error"),
            Reaction::status("410 Gone"),
            Reaction::Lie,
            Reaction::redirect("/canary"),
        ]);
        let receiver = receiver.await;
        let host = format!("127.0.0.1:{}", receiver.port());
        let files = tempfile::tempdir().unwrap();
        // Who sent a request is in its line of the access log. What it said is in no log, and no key is.
        let canaries = MARKS.iter().map(|marks| marks.canary.to_owned());
        let texts: Vec<String> = canaries.chain(["ssk_".to_owned()]).collect();
        let events = LogSearch::for_texts(texts.clone());
        let accesses = LogSearch::for_texts(texts);
        let listening = tracing::subscriber::set_default(events.clone());
        let builder = stores
            .server()
            .files(Arc::new(FolderFiles::new(files.path())))
            .audit(Some(AuditKey::new(b"a secret of the operator").unwrap()))
            .allow_webhook_host(host.parse().unwrap())
            .webhook_attempts(ATTEMPTS)
            .access_log(access_log(accesses.clone()));
        let names = [&MARKS[0], &MARKS[1]].map(|marks| (marks.name, marks.principal));
        let clients = Client::with_keys(builder, &*stores.registry, names).await;
        let mut marks = MARKS.iter();
        let tenants = clients.map(|client| {
            let marks = marks.next().unwrap();
            Tenant {
                client,
                marks,
                ids: Ids::default(),
                hidden: BTreeSet::new(),
                sent: RefCell::default(),
                keyed_threads: Vec::new(),
                webhook: format!("{}/{}", receiver.url(), marks.canary),
                store: stores.store.clone(),
            }
        });
        Self {
            tenants,
            receiver,
            events,
            accesses,
            _listening: listening,
            _files: files,
        }
    }

    /// Returns one of the tenants, and the other one.
    fn pair(&self, who: usize) -> [&Tenant; 2] {
        [&self.tenants[who], &self.tenants[1 - who]]
    }

    /// Lets both tenants create one thing of each kind, and reads their lists.
    async fn fill(&mut self) {
        for tenant in &mut self.tenants {
            tenant.fill().await;
        }
        for [own, other] in [self.pair(0), self.pair(1)] {
            own.check_lists(other).await;
        }
        // The same request under the same key.
        let [first, second] = &self.tenants;
        assert_ne!(first.keyed_threads.last(), second.keyed_threads.last());
    }

    /// Fails if the logs or the metrics show what a tenant has, or if a delivery went to the other one.
    async fn check_what_is_left(&self) {
        self.events.assert_clean();
        self.accesses.assert_clean();
        for tenant in &self.tenants {
            for path in ["/metrics", "/metrics?format=json"] {
                let reply = tenant.client.get(path).await;
                let text = String::from_utf8_lossy(&reply.bytes);
                assert_eq!(reply.status, StatusCode::OK, "{text}");
                for secret in MARKS.iter().flat_map(Marks::secrets) {
                    assert!(!text.contains(&secret), "{path} shows {secret}: {text}");
                }
            }
        }
        let received = self.receiver.received();
        assert!(!received.is_empty());
        for delivery in received {
            let is_of = |marks: &&Marks| delivery.path.ends_with(marks.canary);
            let (own, others): (Vec<_>, Vec<_>) = MARKS.iter().partition(is_of);
            assert_eq!(own.len(), 1, "{}", delivery.path);
            let shown = format!("{:?} {}", delivery.headers, delivery.json());
            for secret in others.iter().flat_map(|marks| marks.secrets()) {
                assert!(!shown.contains(&secret), "{}: {shown}", delivery.path);
            }
        }
    }
}

/// Returns what writes the access log: it looks for texts, and for lines with another tenant than the one that sent the request.
fn access_log(search: LogSearch) -> impl Fn(&AccessRecord) + Send + Sync + 'static {
    move |record| {
        let line = serde_json::to_string(record).unwrap();
        search.read(&line);
        let is_by = |marks: &&Marks| record.request_id.starts_with(marks.name);
        let sent_by = MARKS.iter().find(is_by);
        if !sent_by.is_some_and(|marks| marks.are_those_of(record)) {
            search.report(&line);
        }
    }
}

const ATTEMPTS: WebhookAttempts = WebhookAttempts {
    max: 4,
    timeout: Duration::from_secs(10),
    shortest_pause: Duration::from_millis(2),
    longest_pause: Duration::from_millis(20),
};

impl Tenant {
    /// Notes the id of something that is the tenant's alone.
    fn note(&mut self, kind: &'static str, id: &Json) {
        self.ids.add(kind, id);
        self.hidden.extend(id.as_str().map(str::to_owned));
    }

    /// Notes what the tenant has sent.
    fn note_sent(&self, request: &str) {
        let mut sent = self.sent.borrow_mut();
        sent.extend(ids_in(request).map(str::to_owned));
    }

    /// Fails if a reply shows anything of the other tenant.
    #[track_caller]
    fn check(&self, other: &Self, what: &str, reply: &Reply) {
        let mut shown = format!("{} {:?}\n", reply.status, reply.headers);
        shown.push_str(&String::from_utf8_lossy(&reply.bytes));
        for secret in other.marks.secrets() {
            assert!(
                !shown.contains(&secret),
                "{} sees `{secret}` of {} by {what}: {shown}",
                self.marks.name,
                other.marks.name
            );
        }
        let sent = self.sent.borrow();
        for id in ids_in(&shown) {
            let is_known = !other.hidden.contains(id) || sent.contains(id);
            assert!(is_known, "{what} shows {id} of another tenant: {shown}");
        }
        assert_ne!(
            reply.status,
            StatusCode::INTERNAL_SERVER_ERROR,
            "{what}: {shown}"
        );
    }
}

/// Sends sequences of random requests of both tenants.
async fn send_sequences(stores: Stores, seed: u64, sequences: usize) {
    let mut trial = Trial::start(stores).await;
    let routes = routes(&trial.tenants[0].client).await;
    let of_protocols: Vec<&Route> = routes
        .iter()
        .filter(|route| route.protocol().is_some())
        .collect();
    // Each route once, and then some.
    let mut unused: Vec<&Route> = routes.iter().collect();
    let mut random = Prng::new(seed);
    let mut calls = ProtocolCalls::default();
    for sequence in 0..sequences {
        // Tenants delete what they have, so they get more.
        if sequence % REFILL == 0 {
            trial.fill().await;
        }
        let [caller, other] = trial.pair(random.below(2));
        for _ in 0..=random.below(4) {
            let route = match unused.pop() {
                Some(route) => route,
                None if random.below(4) == 0 => *random.pick(&of_protocols),
                None => random.pick(&routes),
            };
            let mut requests = Requests::of([caller, other], &mut random, sequence);
            let (what, request) = requests.request(route);
            let reply = caller.client.send_briefly(request, route.pause());
            let reply = tokio::time::timeout(Duration::from_secs(30), reply).await;
            let reply = reply.unwrap_or_else(|_| panic!("no reply to {what}"));
            caller.check(other, &format!("sequence {sequence}: {what}"), &reply);
            if let Some(protocol) = route.protocol() {
                calls.count(protocol, &reply);
            }
        }
    }
    assert!(unused.is_empty(), "{} routes were not called", unused.len());
    calls.assert_executed();
    trial.check_what_is_left().await;
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
    send_sequences(Stores::in_memory(), 20, sequences(1_000)).await;
}

#[tokio::test]
async fn random_calls_show_nothing_of_another_tenant_in_sqlite() {
    let sqlite = Sqlite::in_memory().unwrap();
    send_sequences(Stores::of(&sqlite), 21, sequences(300)).await;
}

#[tokio::test]
async fn random_calls_show_nothing_of_another_tenant_in_postgres() {
    let schema = Schema::new();
    let stores = Stores::of(&schema.connect().await);
    send_sequences(stores, 23, sequences(200)).await;
    schema.drop_tables().await;
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
    for path in [
        "/superstep/deliveries",
        "/superstep/keys",
        "/superstep/budgets",
    ] {
        found.push(client.get(&format!("{path}?limit=1000")).await.ok());
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

/// Waits until every delivery of a tenant has been confirmed or given up.
async fn deliveries_end(tenant: &Tenant) {
    for _ in 0..1_000 {
        let pending = tenant
            .client
            .get("/superstep/deliveries?status=pending")
            .await;
        if pending.ok() == json!([]) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a delivery is still pending");
}

#[tokio::test]
async fn no_route_changes_anything_of_another_tenant() {
    let mut trial = Trial::start(Stores::in_memory()).await;
    trial.tenants[0].fill().await;
    let [first, second] = trial.pair(0);
    deliveries_end(first).await;
    let before = everything(first).await;
    let mut random = Prng::new(22);
    for route in routes(&second.client).await {
        // Each route has a few bodies, and there are a few ids.
        for sequence in 0..30 {
            let mut requests = Requests::of([second, first], &mut random, sequence);
            let (what, request) = requests.request(&route);
            let reply = second.client.send_briefly(request, route.pause()).await;
            second.check(first, &what, &reply);
        }
    }
    assert_eq!(everything(first).await, before);
    // Nor does the audit log of the one have anything that the other did.
    let audit = first.client.get("/superstep/audit?limit=1000").await.ok();
    let entries = audit["entries"].as_array().unwrap();
    assert!(!entries.is_empty());
    for entry in entries {
        assert_eq!(entry["principal"], first.marks.principal, "{entry}");
    }
}

#[tokio::test]
async fn streams_of_another_tenants_thread_stay_silent() {
    let mut trial = Trial::start(Stores::in_memory()).await;
    trial.tenants[0].fill().await;
    let [first, second] = trial.pair(0);
    for thread in &first.ids.0["thread_id"] {
        let path = format!("/threads/{thread}");
        second.note_sent(&path);
        let channels = json!({ "channels": ["values", "updates", "lifecycle", "custom", "tasks"] });
        let events = Request::post(format!("{path}/stream/events"))
            .body(Body::from(channels.to_string()))
            .unwrap();
        let joined = Request::get(format!("{path}/stream"))
            .body(Body::empty())
            .unwrap();
        let wait = Duration::from_millis(300);
        let topic = first.marks.canary;
        let run = json!({ "assistant_id": "remember", "input": { "topic": topic } });
        let runs = format!("{path}/runs/wait");
        let (events, joined, _) = tokio::join!(
            second.client.send_briefly(events, wait),
            second.client.send_briefly(joined, wait),
            first.client.post(&runs, run),
        );
        second.check(first, "its event stream", &events);
        second.check(first, "its thread stream", &joined);
    }
}

/// Returns a request of a client that can show forms to its user. Every tenant uses the same session.
fn mcp(body: &Json) -> Request<Body> {
    Request::post("/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", format!("{SESSION}-elicitation"))
        .body(Body::from(body.to_string()))
        .unwrap()
}

/// Reads a stream up to the end of an event with this text, and returns the last event.
async fn event_with(chunks: &mut BodyDataStream, text: &str) -> Json {
    let mut read = String::new();
    while !read.contains(text) || !read.ends_with("\n\n") {
        let chunk = tokio::time::timeout(Duration::from_secs(10), chunks.next()).await;
        let chunk = chunk.expect("something comes").expect("it has not ended");
        read.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
    }
    let events = read.split("\n\n").filter(|event| event.contains(text));
    let event = events.last().unwrap().strip_prefix("data: ").unwrap();
    serde_json::from_str(event).unwrap()
}

/// The session, the id of the call and that of the question are those of the call.
#[tokio::test]
async fn a_call_over_mcp_is_neither_answered_nor_cancelled_by_another_tenant() {
    let trial = Trial::start(Stores::in_memory()).await;
    let [first, second] = trial.pair(0);
    let arguments = json!({ "topic": first.marks.canary });
    let call = rpc(
        "tools/call",
        json!({ "name": "ask", "arguments": arguments }),
    );
    let mut chunks = first
        .client
        .dispatch(mcp(&call))
        .await
        .into_body()
        .into_data_stream();
    let asked = event_with(&mut chunks, "elicitation/create").await;
    let answer = |text: &str| {
        let result = json!({ "action": "accept", "content": { "answer": text } });
        json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })
    };
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    for (body, status) in [
        (answer("theirs"), StatusCode::NOT_FOUND),
        (cancel, StatusCode::ACCEPTED),
    ] {
        let reply = second.client.send(mcp(&body)).await;
        assert_eq!(reply.status, status, "{body}");
        second.check(first, "a call of the other", &reply);
    }
    let reply = first.client.send(mcp(&answer("ours"))).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED);
    let result = event_with(&mut chunks, "\"result\":").await;
    let text = result["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("ours") && !text.contains("theirs"), "{text}");
}

#[tokio::test]
async fn every_tenant_has_the_default_assistants() {
    let trial = Trial::start(Stores::in_memory()).await;
    let [first, second] = trial.pair(0);
    for tenant in [first, second] {
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
    let change = json!({ "metadata": { "note": first.marks.canary } });
    let changed = first
        .client
        .call("PATCH", "/assistants/ask", Some(change))
        .await;
    assert_eq!(changed.ok()["metadata"]["note"], first.marks.canary);
    let unchanged = second.client.get("/assistants/ask").await;
    second.check(first, "its default assistant", &unchanged);
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
    let trial = Trial::start(Stores::in_memory()).await;
    let [first, second] = trial.pair(0);
    for (tenant, expected) in [(first, "tea"), (first, "tea"), (second, "coffee")] {
        let topic = match tenant.marks.name == first.marks.name {
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
