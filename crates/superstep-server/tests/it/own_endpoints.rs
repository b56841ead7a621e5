//! The endpoints under `/superstep/` that user interfaces read: inbox, queue, tree, diff, fork preview, trace, labels.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Map, Value as Json, json};
use superstep::driver::ThreadRequest;
use superstep::label::{Label, Labeled};
use superstep::prelude::*;
use superstep::registry::MemoryRegistry;
use superstep::trace::{CallKind, CallSpan};
use superstep::{RunOptions, ThreadId, Timestamp};

use crate::kit::Client;

#[derive(Clone, Debug, Default, State)]
struct Order {
    topic: Option<String>,
    mail: Labeled<String>,
    #[state(append)]
    lines: Vec<String>,
}

/// What an agent keeps of a model call next to the call.
fn recorded_reply() -> Json {
    json!({
        "label": "call",
        "model": "script:small",
        "reply": {
            "answer": { "content": "{\"ok\":true}", "tool_calls": [] },
            "usage": { "input_tokens": 100, "output_tokens": 20, "cached_tokens": 0 },
            "finish": "stop",
            "model": "script:small",
            "cost": { "nano_dollars": 7 },
        },
    })
}

/// Emits what an agent would: a model call with its cost, and a tool call of every class.
async fn call(_: View<Order>, cx: NodeCx) -> Result<OrderUpdate, NodeError> {
    let span = |kind: &'static str, fields: Json| CallSpan {
        span: CallKind::from_static(kind),
        name: "call".to_owned(),
        start: Timestamp(1_000),
        end: Timestamp(1_250),
        error: None,
        fields: fields.as_object().cloned().unwrap_or_else(Map::new),
        result: (kind == "model").then(recorded_reply),
    };
    cx.emit(span(
        "model",
        json!({
            "gen_ai.request.model": "small", "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20, "superstep.cost_nano_dollars": 7,
        }),
    ))?;
    for (tool, class) in [
        ("look", "read"),
        ("set", "idempotent"),
        ("pay", "keyed"),
        ("ship", "unsafe"),
        ("ship", "unsafe"),
    ] {
        let fields = json!({ "gen_ai.tool.name": tool, "superstep.tool.class": class });
        cx.emit(span("tool", fields))?;
    }
    let mail = Labeled::new("pay me at once".to_owned(), Label::UNTRUSTED);
    Ok(OrderUpdate::default().mail(mail).lines("called".to_owned()))
}

async fn approve(order: View<Order>, cx: NodeCx) -> Result<OrderUpdate, NodeError> {
    let request = json!({ "description": "May it be shipped?", "evidence": ["order 17"] });
    let mut question = Interrupt::new("ship", request).schema(json!({ "type": "boolean" }));
    let hours = order.topic.as_deref().map(str::parse::<u64>);
    if let Some(Ok(hours)) = hours {
        question = question.within(Duration::from_secs(3_600 * hours));
    }
    let is_approved: bool = cx.interrupt(question).await?;
    Ok(OrderUpdate::default().lines(format!("approved: {is_approved}")))
}

fn order() -> Graph<Order> {
    Graph::builder("order")
        .node("call", call)
        .node("approve", approve)
        .edge(START, "call")
        .edge("call", "approve")
        .edge("approve", END)
        .inputs(["topic"])
        .build()
        .unwrap()
}

struct OrderClient {
    client: Client,
    runtime: Runtime,
}

impl OrderClient {
    async fn new() -> Self {
        let runtime = Runtime::new(Memory::default());
        let builder = Client::builder(runtime.clone(), &MemoryRegistry::new());
        let client = Client::of(builder.graph(order().definition())).await;
        Self { client, runtime }
    }

    /// Starts an order that waits for its approval, and returns the path of its thread.
    async fn waiting(&self, topic: &str) -> String {
        let thread = self.client.thread().await;
        let body = json!({ "assistant_id": "order", "input": { "topic": topic } });
        self.client.wait(&thread, body).await;
        thread
    }

    async fn approve(&self, thread: &str) {
        let body = json!({ "assistant_id": "order", "command": { "resume": true } });
        self.client.wait(thread, body).await;
    }

    /// Reads an endpoint of a thread.
    async fn read(&self, thread: &str, endpoint: &str) -> Json {
        let path = format!("/superstep{thread}/{endpoint}");
        self.client.get(&path).await.ok()
    }

    async fn diff(&self, thread: &str, body: Json) -> Json {
        let path = format!("/superstep{thread}/diff");
        self.client.post(&path, body).await.ok()
    }
}

fn id_of(thread: &str) -> &str {
    thread.rsplit('/').next().unwrap()
}

#[tokio::test]
async fn the_inbox_lists_the_nearest_deadline_first() {
    let orders = OrderClient::new().await;
    let never = orders.waiting("never").await;
    let later = orders.waiting("48").await;
    let soon = orders.waiting("2").await;
    let listed = orders.client.get("/superstep/inbox").await;
    assert_eq!(listed.header("x-pagination-total"), Some("3"));
    let items = listed.ok();
    let listed = items.as_array().unwrap().iter();
    let threads: Vec<_> = listed.map(|item| &item["thread_id"]).collect();
    assert_eq!(threads, [id_of(&soon), id_of(&later), id_of(&never)]);
    let item = &items[0];
    assert_eq!(item["graph_id"], "order");
    assert_eq!(item["node"], "approve");
    assert_eq!(item["description"], "May it be shipped?");
    assert_eq!(item["evidence"], json!(["order 17"]));
    assert_eq!(
        item["interrupt"]["response_schema"],
        json!({ "type": "boolean" })
    );
    assert_eq!(item["cost"]["nano_dollars"], 7);
    assert_eq!(item["cost"]["input_tokens"], 100);
    assert_eq!(item["is_overdue"], false);
    assert_eq!(item["on_deadline"], "wait");
    assert_eq!(items[2]["deadline"], Json::Null);

    let second = orders.client.get("/superstep/inbox?limit=1&offset=1").await;
    assert_eq!(second.header("x-pagination-next"), Some("2"));
    assert_eq!(second.ok()[0]["thread_id"], id_of(&later));
    orders.approve(&soon).await;
    let left = orders
        .client
        .get("/superstep/inbox?assistant_id=order")
        .await;
    assert_eq!(left.ok().as_array().unwrap().len(), 2);
    let others = orders.client.get("/superstep/inbox?graph_id=chat").await;
    assert_eq!(others.ok(), json!([]));
    for wrong in ["limit=0", "limit=101", "limit=x", "assistant_id=nothing"] {
        let refused = orders
            .client
            .get(&format!("/superstep/inbox?{wrong}"))
            .await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
    }
}

#[tokio::test]
async fn nothing_of_another_tenant_is_shown() {
    let orders = OrderClient::new().await;
    let id = "0190a6b2-0000-7000-8000-00000000000a";
    let other = ThreadId::of_tenant("other", id).unwrap();
    let thread = orders.runtime.thread(&order(), other.to_string()).unwrap();
    thread.start(OrderUpdate::default()).await.unwrap();
    let own = orders.waiting("1").await;
    let items = orders.client.get("/superstep/inbox").await.ok();
    assert_eq!(items.as_array().unwrap().len(), 1);
    for endpoint in ["interrupts", "tree", "case", "trace", "labels"] {
        let path = format!("/superstep/threads/{id}/{endpoint}");
        let status = orders.client.get(&path).await.status;
        assert_eq!(status, StatusCode::NOT_FOUND, "{endpoint}");
    }
    for endpoint in ["diff", "fork/preview"] {
        let path = format!("/superstep/threads/{id}/{endpoint}");
        let status = orders.client.post(&path, json!({})).await.status;
        assert_eq!(status, StatusCode::NOT_FOUND, "{endpoint}");
    }
    let path = format!("/superstep{own}/diff");
    let refused = orders
        .client
        .post(&path, json!({ "other_thread": id }))
        .await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_diff_has_the_values_of_both_sides() {
    let orders = OrderClient::new().await;
    let thread = orders.waiting("tea").await;
    orders.approve(&thread).await;
    // By default: what the newest checkpoint changed.
    let newest = orders.diff(&thread, json!({})).await;
    let lines = json!({
        "path": "/lines", "before": ["called"], "after": ["called", "approved: true"],
    });
    assert_eq!(newest["changes"], json!([lines]));
    let history = orders.client.history(&thread).await;
    assert_eq!(newest["to"]["checkpoint_id"], history[0]["checkpoint_id"]);
    assert_eq!(newest["from"]["checkpoint_id"], history[1]["checkpoint_id"]);
    // Backwards, over several steps. A channel that was never written is absent.
    let first = history.last().unwrap();
    let body = json!({ "from": history[0]["checkpoint_id"], "to": first["checkpoint_id"] });
    let back = orders.diff(&thread, body).await;
    let changes = back["changes"].as_array().unwrap();
    let topic = changes.iter().find(|change| change["path"] == "/topic");
    assert_eq!(topic, Some(&json!({ "path": "/topic", "before": "tea" })));

    let other = orders.waiting("milk").await;
    let body = json!({ "other_thread": id_of(&other) });
    let between = orders.diff(&thread, body).await;
    assert_eq!(between["to"]["thread_id"], id_of(&other));
    let topic = json!({ "path": "/topic", "before": "tea", "after": "milk" });
    assert!(between["changes"].as_array().unwrap().contains(&topic));
    for wrong in ["nothing", "0190a6b2-0000-7000-8000-00000000000a"] {
        let path = format!("/superstep{thread}/diff");
        let refused = orders.client.post(&path, json!({ "from": wrong })).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{wrong}");
    }
}

#[tokio::test]
async fn messages_are_compared_by_their_ids() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let message = json!({ "id": "m-1", "type": "human", "content": "Hello" });
    let body = json!({ "assistant_id": "chat", "input": { "messages": [message] } });
    client.wait(&thread, body).await;
    let path = format!("/superstep{thread}/diff");
    let diff = client.post(&path, json!({})).await.ok();
    let changes = diff["changes"].as_array().unwrap();
    let added = changes
        .iter()
        .find(|change| change["path"] == "/messages/1");
    let added = added.unwrap();
    assert_eq!(added["id"], added["after"]["id"]);
    assert_eq!(added["after"]["content"], "You said: Hello");
    assert_eq!(added.get("before"), None);
}

#[tokio::test]
async fn the_tree_shows_forks_and_which_branch_is_current() {
    let orders = OrderClient::new().await;
    let thread = orders.waiting("tea").await;
    orders.approve(&thread).await;
    let history = orders.client.history(&thread).await;
    let line = orders.read(&thread, "tree").await;
    assert_eq!(line["checkpoints"].as_array().unwrap().len(), history.len());
    assert_eq!(
        line["branches"],
        json!([{
            "checkpoint_id": history[0]["checkpoint_id"], "forked_from": null, "is_current": true,
        }])
    );
    // Before the call: the second branch makes it again.
    let at = &history[2]["checkpoint_id"];
    let body = json!({ "assistant_id": "order", "checkpoint_id": at });
    orders.client.wait(&thread, body).await;
    let tree = orders.read(&thread, "tree").await;
    let state = orders.client.get(&format!("{thread}/state")).await.ok();
    assert_eq!(tree["current"], state["checkpoint_id"]);
    let branches = tree["branches"].as_array().unwrap();
    assert_eq!(branches.len(), 2);
    assert_eq!(branches[0]["is_current"], true);
    assert_eq!(branches[1]["is_current"], false);
    assert_eq!(branches[1]["checkpoint_id"], history[0]["checkpoint_id"]);
    assert!(branches.iter().all(|branch| branch["forked_from"] == *at));
    let is_current = |id: &Json| {
        let checkpoints = tree["checkpoints"].as_array().unwrap();
        let found = checkpoints
            .iter()
            .find(|found| found["checkpoint_id"] == *id);
        found.unwrap()["is_on_current_branch"].clone()
    };
    assert_eq!(is_current(at), true);
    assert_eq!(is_current(&history[0]["checkpoint_id"]), false);
    assert_eq!(is_current(&state["checkpoint_id"]), true);
    let short = orders.read(&thread, "tree?limit=1").await;
    assert_eq!(short["is_complete"], false);
    assert_eq!(short["checkpoints"].as_array().unwrap().len(), 1);
}

/// Reads all pages of a list of checkpoints, each after the last checkpoint of the one before.
async fn all_pages(
    client: &Client,
    path: &str,
    rows: impl Fn(&Json) -> Vec<Json>,
) -> Vec<Vec<Json>> {
    let mut pages: Vec<Vec<Json>> = Vec::new();
    loop {
        let last = pages.last().and_then(|page| page.last());
        let before = last.map_or(String::new(), |last| {
            format!("&before={}", last["checkpoint_id"].as_str().unwrap())
        });
        let page = client.get(&format!("{path}{before}")).await.ok();
        let page = rows(&page);
        if page.is_empty() {
            return pages;
        }
        pages.push(page);
    }
}

#[derive(Clone, Debug, Default, State)]
struct Counter {
    turns: u64,
}

/// Runs one node this many times.
fn counting(turns: u64) -> Graph<Counter> {
    async fn turn(counter: View<Counter>, _: NodeCx) -> Result<CounterUpdate, NodeError> {
        Ok(CounterUpdate::default().turns(counter.turns + 1))
    }
    Graph::builder("counting")
        .node("turn", turn)
        .edge(START, "turn")
        .route("turn", &["turn", END], move |counter: &Counter| {
            if counter.turns < turns { "turn" } else { END }
        })
        .inputs(["turns"])
        .build()
        .unwrap()
}

const TURNS: u64 = 1_200;

#[tokio::test]
async fn pages_of_the_tree_join_to_all_checkpoints_of_a_long_thread() {
    let builder = Client::builder(Runtime::new(Memory::default()), &MemoryRegistry::new());
    let client = Client::of(builder.graph(counting(TURNS).definition())).await;
    let thread = client.thread().await;
    let body = json!({
        "assistant_id": "counting", "input": { "turns": 0 }, "durability": "sync",
        "config": { "recursion_limit": 2 * TURNS },
    });
    client.wait(&thread, body).await;
    let list = |page: &Json| page.as_array().unwrap().clone();
    let history = format!("{thread}/history?limit=1000");
    let history: Vec<Json> = all_pages(&client, &history, list).await.concat();
    // Before and after the input, too.
    assert_eq!(history.len(), 2 + TURNS as usize);

    // A fork far back: its first checkpoint is in the first page, what it follows in the second.
    let old = history[1_100]["checkpoint_id"].clone();
    let edit = json!({ "values": { "turns": 7 }, "checkpoint_id": old, "as_node": "turn" });
    let edited = client.post(&format!("{thread}/state"), edit).await.ok();
    let tree = format!("/superstep{thread}/tree?limit=1000");
    let first = client.get(&tree).await.ok();
    assert_eq!(first["is_complete"], false);
    assert_eq!(first["current"], edited["checkpoint_id"]);
    assert_eq!(first["checkpoints"][0]["parent_checkpoint_id"], old);
    assert_eq!(first["branches"].as_array().unwrap().len(), 2);

    let rows = |page: &Json| page["checkpoints"].as_array().unwrap().clone();
    let pages = all_pages(&client, &tree, rows).await;
    let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
    assert_eq!(sizes, [1_000, 203]);
    let all = pages.concat();
    let shown: Vec<&Json> = all[1..].iter().map(|row| &row["checkpoint_id"]).collect();
    let known: Vec<&Json> = history.iter().map(|row| &row["checkpoint_id"]).collect();
    assert_eq!(shown, known);
    for (row, older) in all[1..].iter().zip(&all[2..]) {
        assert_eq!(row["parent_checkpoint_id"], older["checkpoint_id"]);
    }
    let on_branch = |row: &&Json| row["is_on_current_branch"] == true;
    let on_branch: Vec<&Json> = all.iter().filter(on_branch).collect();
    assert_eq!(on_branch.len(), 1 + 102);
    assert_eq!(on_branch[1]["checkpoint_id"], old);

    let last = all[1_100]["checkpoint_id"].as_str().unwrap();
    let second = client.get(&format!("{tree}&before={last}")).await.ok();
    assert_eq!(second["is_complete"], true);
    assert_eq!(second["branches"], json!([]));
    for wrong in ["nothing", "0190a6b2-0000-7000-8000-00000000000a"] {
        let refused = client.get(&format!("{tree}&before={wrong}")).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{wrong}");
    }
}

#[tokio::test]
async fn a_fork_preview_says_what_would_happen_twice() {
    let orders = OrderClient::new().await;
    let thread = orders.waiting("tea").await;
    orders.approve(&thread).await;
    let history = orders.client.history(&thread).await;
    let preview = |at: Json| {
        let path = format!("/superstep{thread}/fork/preview");
        let client = &orders.client;
        async move { client.post(&path, json!({ "checkpoint": at })).await }
    };
    // After the input, before the call.
    let all = preview(history[2]["checkpoint_id"].clone()).await.ok();
    assert_eq!(
        all["tools"],
        json!([
            { "class": "idempotent", "calls": 1, "tools": ["set"], "effect": "same" },
            { "class": "keyed", "calls": 1, "tools": ["pay"], "effect": "again" },
            { "class": "read", "calls": 1, "tools": ["look"], "effect": "none" },
            { "class": "unsafe", "calls": 2, "tools": ["ship"], "effect": "again" },
        ])
    );
    assert_eq!(all["calls"].as_array().unwrap().len(), 5);
    assert_eq!(all["models"]["nano_dollars"], 7);
    assert_eq!(all["interrupts"], 1);
    assert_eq!(all["until"], history[0]["checkpoint_id"]);
    // Before the input: the same, and nothing after the end.
    let first = history[3]["checkpoint_id"].clone();
    assert_eq!(preview(first).await.ok()["tools"], all["tools"]);
    let nothing = preview(history[0]["checkpoint_id"].clone()).await.ok();
    assert_eq!(nothing["tools"], json!([]));
    assert_eq!(nothing["models"]["model_calls"], 0);
    let missing = preview(Json::Null).await.status;
    assert_eq!(missing, StatusCode::UNPROCESSABLE_ENTITY);
    let unknown = preview(json!("nothing")).await.status;
    assert_eq!(unknown, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_case_has_what_callers_sent_and_what_the_models_replied() {
    let orders = OrderClient::new().await;
    let thread = orders.waiting("tea").await;
    let input = json!({ "input": { "topic": "tea" } });
    let open = orders.read(&thread, "case").await;
    assert_eq!(open["graph_id"], "order");
    assert_eq!(open["thread_id"], id_of(&thread));
    assert_eq!(open["acts"], json!([input]));
    let asked = &open["expected"]["asked"];
    assert_eq!(asked[0]["node"], "approve");
    assert_eq!(asked[0]["request"]["description"], "May it be shipped?");
    assert_eq!(open["models"], json!(["script:small"]));
    assert_eq!(
        open["script"]["replies"],
        json!([{
            "at": "call", "json": { "ok": true }, "finish": "stop", "model": "script:small",
            "usage": { "input_tokens": 100, "output_tokens": 20, "cached_tokens": 0 },
            "cost": { "nano_dollars": 7 },
        }])
    );
    assert_eq!(open["not_recovered"], json!([]));

    orders.approve(&thread).await;
    let done = orders.read(&thread, "case").await;
    let answered = json!({ "asked": asked, "answers": [{ "to": 0, "value": true }] });
    assert_eq!(done["acts"], json!([input, answered]));
    assert_eq!(done["expected"]["asked"], json!([]));
    assert_eq!(
        done["expected"]["values"]["lines"],
        json!(["called", "approved: true"])
    );
    let trace = orders.read(&thread, "trace").await;
    assert!(
        !trace.to_string().contains("tool_calls"),
        "a trace has no text: {trace}"
    );

    // A fork where it waited asks again: the answer belongs to the other branch.
    let history = orders.client.history(&thread).await;
    for (at, replies) in [(1, 1), (2, 1)] {
        let body =
            json!({ "assistant_id": "order", "checkpoint_id": history[at]["checkpoint_id"] });
        orders.client.wait(&thread, body).await;
        let forked = orders.read(&thread, "case").await;
        assert_eq!(forked["acts"], json!([input]), "{at}");
        assert_eq!(forked["expected"]["asked"], *asked);
        assert_eq!(
            forked["script"]["replies"].as_array().unwrap().len(),
            replies
        );
    }
    let end = history[0]["checkpoint_id"].as_str().unwrap();
    let old = orders
        .read(&thread, &format!("case?checkpoint_id={end}"))
        .await;
    assert_eq!(old, done);
    let path = format!("/superstep{thread}/case?checkpoint_id=nothing");
    assert_eq!(orders.client.get(&path).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_case_says_what_it_does_not_repeat() {
    let orders = OrderClient::new().await;
    let thread = orders.waiting("tea").await;
    let edit = json!({ "values": { "topic": "milk" } });
    let path = format!("{thread}/state");
    orders.client.post(&path, edit).await.ok();
    let edited = orders.read(&thread, "case").await;
    let lost = edited["not_recovered"].to_string();
    assert!(lost.contains("edited from outside"), "{lost}");
}

#[tokio::test]
async fn a_case_of_a_branch_with_many_forks_says_that_it_did_not_compare_them_all() {
    let orders = OrderClient::new().await;
    let thread = orders.waiting("tea").await;
    let id: ThreadId = id_of(&thread).parse().unwrap();
    let graph = order();
    let driver = orders.runtime.driver();
    let options = RunOptions::default();
    let lost = async || orders.read(&thread, "case").await["not_recovered"].to_string();
    for _ in 0..101 {
        let log = orders.runtime.log_of(&id).await.unwrap();
        let at = log.last().unwrap().seq;
        let fork = ThreadRequest::Fork { at };
        let forked = driver.execute(&id, graph.definition(), fork, &options);
        forked.await.unwrap();
        if log.len() < 20 {
            assert!(!lost().await.contains("more than 100 forks"));
        }
    }
    let lost = lost().await;
    assert!(lost.contains("more than 100 forks"), "{lost}");
}

#[tokio::test]
async fn the_trace_has_calls_with_their_tokens_cost_and_class() {
    let orders = OrderClient::new().await;
    let thread = orders.waiting("tea").await;
    let trace = orders.read(&thread, "trace").await;
    assert_eq!(trace["cost"]["nano_dollars"], 7);
    let run = &trace["runs"][0];
    assert_eq!(run["kind"], "run");
    assert_eq!(run["graph_id"], "order");
    let runs = orders.client.get(&format!("{thread}/runs")).await.ok();
    assert_eq!(run["run_id"], runs[0]["run_id"]);
    let node = &run["spans"][0]["spans"][0];
    assert_eq!(node["node"], "call");
    let model = &node["spans"][0];
    assert_eq!(model["model"], "small");
    assert_eq!(
        (&model["input_tokens"], &model["output_tokens"]),
        (&json!(100), &json!(20))
    );
    assert_eq!(model["duration_ms"], 250);
    let tool = &node["spans"][3];
    assert_eq!(
        (&tool["tool"], &tool["tool_class"]),
        (&json!("pay"), &json!("keyed"))
    );
}

#[tokio::test]
async fn labels_are_shown_with_the_write_that_brought_them() {
    let orders = OrderClient::new().await;
    let thread = orders.waiting("tea").await;
    let shown = orders.read(&thread, "labels").await;
    let values = shown["values"].as_array().unwrap();
    assert_eq!(values.len(), 1);
    assert_eq!(values[0]["path"], "/mail");
    assert_eq!(values[0]["labels"], json!(["untrusted"]));
    assert_eq!(values[0]["origin"]["node"], "call");
    assert_eq!(values[0]["origin"]["by"], "node");
    let history = orders.client.history(&thread).await;
    assert_eq!(
        values[0]["origin"]["checkpoint_id"],
        history[0]["checkpoint_id"]
    );
    let before = history[1]["checkpoint_id"].as_str().unwrap();
    let before = format!("labels?checkpoint_id={before}");
    let before = orders.read(&thread, &before).await;
    assert_eq!(before["values"], json!([]));
}

#[tokio::test]
async fn the_queue_shows_what_waits_and_since_when() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let body = json!({ "assistant_id": "slow", "input": {}, "multitask_strategy": "enqueue" });
    let path = format!("{thread}/runs");
    let mut ids = Vec::new();
    for _ in 0..3 {
        let run = client.post(&path, body.clone()).await.ok();
        ids.push(run["run_id"].clone());
    }
    client
        .until(&format!("{path}/{}", ids[0].as_str().unwrap()), "running")
        .await;
    let queue = client.get("/superstep/queue?limit=2").await.ok();
    assert_eq!(
        (&queue["pending"], &queue["running"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(queue["oldest_running"]["run_id"], ids[0]);
    assert_eq!(queue["oldest_pending"]["run_id"], ids[1]);
    assert!(queue["oldest_pending"]["age_ms"].is_u64());
    assert_eq!(queue["runs"].as_array().unwrap().len(), 2);
    assert_eq!(queue["is_complete"], true);
}

#[tokio::test]
async fn budgets_are_those_that_agents_stored() {
    use std::sync::Arc;
    use superstep::RunId;
    use superstep::store::{MemoryStore, Store};
    use superstep_agent::budget::{Amounts, Budgets, CallKey, Limits, Meter, Scope};

    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let runtime = Runtime::new(Memory::default());
    let builder = Client::builder(runtime, &MemoryRegistry::new()).store(store.clone());
    let client = Client::of(builder).await;
    let id = "0190a6b2-0000-7000-8000-00000000000a";
    for tenant in ["", "other"] {
        let thread = ThreadId::of_tenant(tenant, id).unwrap();
        let run = RunId::from_bytes([7; 16]);
        let budgets = Budgets::new(store.clone())
            .within(Scope::run(&thread, run), Limits::of(Meter::Calls, 50))
            .within(Scope::thread(&thread), Limits::NONE)
            .within(Scope::tenant(&thread), Limits::NONE);
        let [done, open] = ["done", "open"].map(|key| CallKey::new(key).unwrap());
        let call = Amounts::of(Meter::Tokens, 500);
        budgets.reserve(&done, &call, Timestamp(1)).await.unwrap();
        budgets.settle(&done, &call, Timestamp(2)).await.unwrap();
        budgets.reserve(&open, &call, Timestamp(3)).await.unwrap();
    }
    let shown = client.get("/superstep/budgets").await.ok();
    let shown = shown.as_array().unwrap();
    let mut levels: Vec<_> = shown.iter().map(|budget| &budget["level"]).collect();
    levels.sort_unstable_by(|a, b| a.as_str().cmp(&b.as_str()));
    assert_eq!(levels, ["run", "tenant", "thread"], "of one tenant");
    for budget in shown {
        assert_eq!(budget["spent"]["tokens"], 500, "{budget}");
        assert_eq!(budget["reserved"]["calls"], 1);
        assert_eq!(budget["reserved"]["amounts"]["tokens"], 500);
        let is_tenant = budget["level"] == "tenant";
        assert_eq!(budget["thread_id"].is_null(), is_tenant);
        let has_run = budget["run_id"].is_string();
        assert_eq!(has_run, budget["level"] == "run");
    }
}

#[tokio::test]
async fn a_budget_is_raised_and_never_lowered() {
    use std::sync::Arc;
    use superstep::RunId;
    use superstep::store::{MemoryStore, Store};
    use superstep_agent::budget::{Amounts, BudgetError, Budgets, CallKey, Limits, Meter, Scope};

    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let runtime = Runtime::new(Memory::default());
    let builder = Client::builder(runtime, &MemoryRegistry::new()).store(store.clone());
    let client = Client::of(builder).await;
    let id = "0190a6b2-0000-7000-8000-00000000000a";
    let thread = ThreadId::new(id).unwrap();
    let run = RunId::from_bytes([7; 16]);
    let limits = Limits::of(Meter::Calls, 1);
    let scopes = [
        ("run", Scope::run(&thread, run)),
        ("thread", Scope::thread(&thread)),
        ("tenant", Scope::tenant(&thread)),
    ];
    let meters = [
        "tokens",
        "nano_dollars",
        "time_ms",
        "calls",
        "steps",
        "fan_out",
    ];
    for (level, scope) in scopes {
        let budgets = Budgets::new(store.clone()).within(scope.clone(), limits.clone());
        let raise = async |limits: Json| {
            let body = json!({
                "level": level, "thread_id": id, "limits": limits,
                "run_id": "07070707-0707-0707-0707-070707070707",
            });
            client.post("/superstep/budgets/raise", body).await
        };
        let early = raise(json!({ "calls": 2 })).await;
        assert_eq!(early.status, StatusCode::NOT_FOUND, "{level}");
        let call = Amounts::of(Meter::Calls, 1);
        let [first, second] = ["first", "second"].map(|key| CallKey::new(key).unwrap());
        budgets.reserve(&first, &call, Timestamp(1)).await.unwrap();
        let full = budgets.reserve(&second, &call, Timestamp(1)).await;
        assert!(matches!(full, Err(BudgetError::Reached(_))), "{full:?}");
        let raised = raise(json!({ "calls": 2 })).await.ok();
        assert_eq!(raised["level"], level);
        assert_eq!(raised["raised"], json!({ "calls": 2 }));
        assert_eq!(raised["reserved"]["calls"], 1);
        budgets.reserve(&second, &call, Timestamp(2)).await.unwrap();
        // The same again is no change, and less is refused as a whole.
        assert_eq!(raise(json!({ "calls": 2 })).await.status, StatusCode::OK);
        let lower = raise(json!({ "calls": 1, "tokens": 5 })).await;
        assert_eq!(lower.status, StatusCode::CONFLICT);
        for wrong in [json!({}), json!({ "dollars": 5 }), json!({ "calls": -1 })] {
            let refused = raise(wrong).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        }
        let all: Map<String, Json> = meters.iter().map(|m| ((*m).to_owned(), json!(9))).collect();
        raise(Json::Object(all)).await.ok();
        let account = budgets.account(&scope, Timestamp(3)).await.unwrap();
        assert_eq!(account.limits(&limits).get(Meter::Calls), Some(9));
    }
    let missing = json!({ "level": "run", "thread_id": id, "limits": { "calls": 3 } });
    let missing = client.post("/superstep/budgets/raise", missing).await;
    assert_eq!(missing.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn the_storage_of_a_thread_grows() {
    let orders = OrderClient::new().await;
    let thread = orders.client.thread().await;
    let path = format!("{thread}/storage");
    let empty = orders.client.get(&path).await.ok();
    assert_eq!(empty["total_bytes"], 0);
    let body = json!({ "assistant_id": "order", "input": { "topic": "tea" } });
    orders.client.wait(&thread, body).await;
    let waiting = orders.client.get(&path).await.ok();
    assert_eq!(waiting["thread_id"], id_of(&thread));
    assert!(waiting["checkpoints"]["count"].as_u64() > Some(1));
    assert!(waiting["pending_writes"]["bytes"].as_u64() > Some(0));
    let sum = |found: &Json| {
        let sections = ["checkpoints", "channel_values", "pending_writes"];
        let bytes = sections.map(|name| found[name]["bytes"].as_u64().unwrap());
        bytes.iter().sum::<u64>()
    };
    assert_eq!(waiting["total_bytes"].as_u64(), Some(sum(&waiting)));
    let id = "0190a6b2-0000-7000-8000-00000000000a";
    let missing = orders.client.get(&format!("/threads/{id}/storage")).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn sizes_are_summed_up_for_the_tenant_of_the_caller() {
    let builder = Client::builder(Runtime::new(Memory::default()), &MemoryRegistry::new());
    let [acme, other] = Client::of_tenants(builder, ["acme", "other"]).await;
    for (client, topic) in [(&acme, "tea"), (&acme, "milk and tea"), (&other, "coffee")] {
        let run = json!({ "assistant_id": "chat", "input": { "topic": topic } });
        client.wait(&client.thread().await, run).await;
    }
    let unused = acme.thread().await;
    let threads = acme.get("/superstep/sizes?by=thread").await.ok();
    let threads = threads.as_array().unwrap();
    assert_eq!(threads.len(), 3);
    assert_eq!(threads[2]["thread_id"], id_of(&unused));
    let bytes = |row: &Json| row["bytes"].as_u64().unwrap();
    assert!(bytes(&threads[0]) >= bytes(&threads[1]) && bytes(&threads[1]) > 0);
    for row in threads {
        let path = format!("/threads/{}/storage", row["thread_id"].as_str().unwrap());
        let storage = acme.get(&path).await.ok();
        assert_eq!(storage["total_bytes"], row["bytes"]);
    }
    let all: u64 = threads.iter().map(bytes).sum();
    let graphs = acme.get("/superstep/sizes").await.ok();
    assert_eq!(graphs.as_array().unwrap().len(), 2);
    assert_eq!(graphs[0]["graph_id"], "chat");
    assert_eq!(graphs[0]["threads"], 2);
    assert_eq!(bytes(&graphs[0]), all);
    assert_eq!(graphs[1]["graph_id"], "");
    let tenant = acme.get("/superstep/sizes?by=tenant").await.ok();
    assert_eq!(tenant[0]["threads"], 3);
    assert_eq!(bytes(&tenant[0]), all);
    let page = acme
        .get("/superstep/sizes?by=thread&limit=1&offset=1")
        .await;
    assert_eq!(page.ok(), json!([threads[1]]));
    let wrong = acme.get("/superstep/sizes?by=colour").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_thread_without_a_run_has_nothing_to_inspect() {
    let orders = OrderClient::new().await;
    let thread = orders.client.thread().await;
    let trace = orders.read(&thread, "trace").await;
    assert_eq!(trace["runs"], json!([]));
    for endpoint in ["tree", "labels"] {
        let path = format!("/superstep{thread}/{endpoint}");
        let status = orders.client.get(&path).await.status;
        assert_eq!(status, StatusCode::NOT_FOUND, "{endpoint}");
    }
    let queue = orders.client.get("/superstep/queue").await.ok();
    assert_eq!(queue["oldest_pending"], Json::Null);
}
