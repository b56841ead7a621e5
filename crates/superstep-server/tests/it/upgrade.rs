//! A server is replaced by one of the next version over the same PostgreSQL database, and two senders share one outbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::Body;
use futures_util::StreamExt as _;
use http::Request;
use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep::registry::{
    Delivery, DeliveryQuery, DeliveryStatus, NewCron, NewDelivery, NewRun, Registry, RunEnd,
    RunQuery, RunStatus, WhenBusy,
};
use superstep::{AssistantId, CronId, DeliveryId, RunId, ThreadId, Timestamp};
use superstep_postgres::Postgres;
use superstep_server::{Server, ServerBuilder, WebhookAttempts};
use tower::ServiceExt as _;

use crate::kit::Client;
use crate::receiver::{Reaction, Receiver};
use crate::schema::Schema;

#[derive(Clone, Debug, Default, State)]
struct Visit {
    #[state(append)]
    rooms: Vec<String>,
}

/// A graph of three nodes, each of which stays a while and then counts an effect. The version is in what the nodes write.
fn graph(version: &'static str, effects: &Arc<AtomicU32>) -> Graph<Visit> {
    let node = |room: &'static str| {
        let effects = effects.clone();
        move |_: View<Visit>, _: NodeCx| {
            let effects = effects.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                effects.fetch_add(1, Ordering::SeqCst);
                Ok::<_, NodeError>(VisitUpdate::default().rooms(format!("{room} {version}")))
            }
        }
    };
    Graph::builder("visit")
        .node("hall", node("hall"))
        .node("stairs", node("stairs"))
        .node("attic", node("attic"))
        .edge(START, "hall")
        .edge("hall", "stairs")
        .edge("stairs", "attic")
        .edge("attic", END)
        .inputs(["rooms"])
        .build()
        .unwrap()
}

fn builder(store: &Postgres, receiver: &Receiver) -> ServerBuilder {
    let host = format!("127.0.0.1:{}", receiver.port());
    let attempts = WebhookAttempts {
        max: 100,
        timeout: Duration::from_secs(10),
        shortest_pause: Duration::from_millis(2),
        longest_pause: Duration::from_millis(20),
    };
    Server::builder(Runtime::new(store.clone()), Arc::new(store.clone()))
        .webhook_attempts(attempts)
        .allow_webhook_host(host.parse().unwrap())
}

fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

/// Reads a stream until it ends or breaks, or until it has shown so many states. Returns its text, without an event that was cut off.
async fn read_stream(body: Body, count: usize) -> String {
    let mut chunks = body.into_data_stream();
    let mut text = String::new();
    while states(&text).len() < count {
        match chunks.next().await {
            Some(Ok(chunk)) => {
                text.push_str(&std::str::from_utf8(&chunk).unwrap().replace('\r', ""))
            }
            Some(Err(_)) | None => break,
        }
    }
    let end = text.rfind("\n\n").map_or(0, |end| end + 2);
    text.truncate(end);
    text
}

/// Returns the states in the text of a stream.
fn states(text: &str) -> Vec<Json> {
    let end = text.rfind("\n\n").unwrap_or(0);
    let events = text[..end].split("\n\n");
    let values = events.filter(|event| event.contains("event: values"));
    let data =
        values.filter_map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn last_id(text: &str) -> &str {
    let mut lines = text.lines().rev();
    lines.find_map(|line| line.strip_prefix("id: ")).unwrap()
}

/// The old server drains in the middle of a run, with another run queued and a cron due. The new one waits for the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_version_takes_over_runs_streams_crons_and_webhooks() {
    let schema = Schema::new();
    let receiver = Receiver::start([]).await;
    let effects = Arc::<AtomicU32>::default();
    let store = schema.connect().await;
    let owner = store.try_own_queue().await.unwrap().unwrap();
    let old = builder(&store, &receiver).graph(graph("v1", &effects).definition());
    let old = Client::of(old).await;
    let next = schema.connect().await;
    assert!(next.try_own_queue().await.unwrap().is_none());

    let thread = old.thread().await;
    let body = json!({
        "assistant_id": "visit", "input": { "rooms": [] }, "webhook": receiver.url(),
        "stream_mode": ["values"], "stream_resumable": true, "on_disconnect": "continue",
    });
    let opened = old
        .open(&format!("{thread}/runs/stream"), body.clone())
        .await;
    let location = opened.headers()["location"].to_str().unwrap().to_owned();
    let queued = old.post(&format!("{thread}/runs"), body).await.ok();
    let begun = read_stream(opened.into_body(), 2).await;
    assert_eq!(old.get("/superstep/ready").await.status, 200);
    let assistant = old.get("/assistants/visit").await.ok();
    let assistant = assistant["assistant_id"].as_str().unwrap();
    let cron = leave_cron(&store, assistant).await;
    old.drain().await;
    assert_eq!(old.get("/superstep/ready").await.status, 503);
    let before = effects.load(Ordering::SeqCst);
    assert!((1..3).contains(&before), "the old one ran {before} nodes");
    drop(owner);

    let owner = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            if let Some(owner) = next.try_own_queue().await.unwrap() {
                return owner;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let _owner = owner.await.unwrap();
    let new = builder(&next, &receiver).graph(graph("v2", &effects).definition());
    let new = Client::of(new).await;
    let rejoin = Request::get(&location)
        .header("last-event-id", last_id(&begun))
        .body(Body::empty());
    let rejoined = new.router().clone().oneshot(rejoin.unwrap()).await.unwrap();
    let rest = read_stream(rejoined.into_body(), usize::MAX).await;
    // Each state once, wherever the stream was cut: the number of rooms grows by one.
    let seen = [states(&begun), states(&rest)].concat();
    let rooms: Vec<usize> = seen
        .iter()
        .map(|state| state["rooms"].as_array().unwrap().len())
        .collect();
    assert_eq!(rooms, [0, 1, 2, 3], "{begun}{rest}");
    let last = &seen[3]["rooms"];
    assert_eq!(
        (&last[0], &last[2]),
        (&json!("hall v1"), &json!("attic v2"))
    );

    let run = format!("{thread}/runs/{}", queued["run_id"].as_str().unwrap());
    new.until(&run, "success").await;
    let ticks = ticks(&new, &next, cron).await;
    assert_eq!(ticks, 1);
    assert_eq!(
        effects.load(Ordering::SeqCst),
        9,
        "three runs of three nodes"
    );
    delivered(&next, 2).await;
    let received = receiver.received();
    let runs: Vec<Json> = received
        .iter()
        .map(|one| one.json()["run_id"].clone())
        .collect();
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert_eq!(runs[1], queued["run_id"], "in the order of the runs");
    assert_ne!(received[0].id(), received[1].id());
    schema.drop_tables().await;
}

/// Stores a cron that is due, as if no server had looked at it yet.
async fn leave_cron(store: &Postgres, assistant: &str) -> CronId {
    let assistant = uuid::Uuid::parse_str(assistant).unwrap().into_bytes();
    let new = NewCron {
        tenant: String::new(),
        id: CronId::from_bytes([7; 16]),
        assistant: AssistantId::from_bytes(assistant),
        thread: None,
        principal: String::new(),
        schedule: "0 0 1 1 *".to_owned(),
        zone: None,
        end: None,
        is_enabled: true,
        next: Some(now()),
        arguments: json!({ "input": { "rooms": [] }, "on_run_completed": "keep" }),
        metadata: json!({}),
        at: now(),
    };
    store.create_cron(&new).await.unwrap();
    new.id
}

/// Waits until the runs of a cron have ended, and returns how many there are.
async fn ticks(client: &Client, store: &Postgres, cron: CronId) -> usize {
    let cron = uuid::Uuid::from_bytes(cron.to_bytes()).to_string();
    let query = RunQuery {
        metadata: Some(json!({ "cron_id": cron })),
        ..RunQuery::default()
    };
    loop {
        let runs = store.runs(&query).await.unwrap();
        if !runs.is_empty() && runs.iter().all(|run| run.status == RunStatus::Success) {
            let found = client.get(&format!("/runs/crons/{cron}")).await.ok();
            assert_eq!(found["last_error"], Json::Null);
            return runs.len();
        }
        assert!(
            runs.iter().all(|run| run.status != RunStatus::Error),
            "{runs:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until so many deliveries are confirmed, and returns them.
async fn delivered(store: &Postgres, count: usize) -> Vec<Delivery> {
    let mut query = DeliveryQuery::default();
    query.page.limit = 1_000;
    for _ in 0..1_000 {
        let found = store.deliveries(&query).await.unwrap();
        let is_over = |one: &Delivery| one.status == DeliveryStatus::Delivered;
        if found.len() == count && found.iter().all(is_over) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{count} deliveries were not confirmed in time");
}

/// Two servers over one outbox: every attempt is made by one of them, and the deliveries of a run arrive in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_senders_over_one_database_send_each_delivery_in_order_and_no_attempt_twice() {
    let schema = Schema::new();
    let reactions = (0..60).map(|number| match number % 3 {
        0 => Reaction::status("503 Service Unavailable"),
        1 => Reaction::Slow,
        _ => Reaction::status("204 No Content"),
    });
    let receiver = Receiver::start(reactions).await;
    let stores = [schema.connect().await, schema.connect().await];
    for number in 0..RUNS {
        leave_deliveries(&stores[0], &receiver.url(), number).await;
    }
    let serve = |store| Client::of(builder(store, &receiver));
    let _servers = tokio::join!(serve(&stores[0]), serve(&stores[1]));
    let confirmed = delivered(&stores[0], usize::from(RUNS) * PARTS).await;

    let received = receiver.received();
    for delivery in &confirmed {
        let id = uuid::Uuid::from_bytes(delivery.new.id.to_bytes()).to_string();
        let times = received.iter().filter(|one| one.id() == id).count();
        assert_eq!(times, delivery.attempts as usize, "attempts of {id}");
    }
    for number in 0..RUNS {
        let of_run = received.iter().map(|one| one.json());
        let of_run = of_run.filter(|body| body["run"] == number);
        let parts: Vec<u64> = of_run.map(|body| body["part"].as_u64().unwrap()).collect();
        assert!(parts.is_sorted(), "run {number}: {parts:?}");
    }
    schema.drop_tables().await;
}

/// Stores a run that has ended, with several deliveries.
async fn leave_deliveries(store: &Postgres, address: &str, number: u8) {
    let thread = ThreadId::of_tenant("", &format!("t{number}")).unwrap();
    let id = RunId::from_bytes([number + 1; 16]);
    let run = NewRun {
        id,
        thread: thread.clone(),
        assistant: AssistantId::from_bytes([1; 16]),
        principal: String::new(),
        request: Vec::new(),
        arguments: json!({}),
        metadata: json!({}),
        when_busy: WhenBusy::Enqueue,
        at: now(),
        // No queue takes it before it ends.
        due: now().plus_ms(3_600_000),
    };
    store.create_run(&run).await.unwrap();
    let delivery = |part: usize| NewDelivery {
        id: DeliveryId::from_bytes([number, part as u8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        run: id,
        thread: thread.clone(),
        address: address.to_owned(),
        event: "part".to_owned(),
        body: json!({ "run": number, "part": part }).to_string(),
        at: now(),
    };
    let end = RunEnd {
        status: RunStatus::Success,
        error: Json::Null,
        at: now(),
        deliveries: (0..PARTS).map(delivery).collect(),
    };
    assert!(store.end_run("", id, &end).await.unwrap());
}

const RUNS: u8 = 20;
const PARTS: usize = 3;
