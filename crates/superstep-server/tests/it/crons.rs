//! Crons: as clients manage them, and as they make runs.
//!
//! Where ticks are awaited, the clock of the server is tokio's, which is paused: an hour passes at once.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::registry::{MemoryRegistry, NewCron, Registry as _};
use superstep::{AssistantId, Clock, CronId, Memory, Runtime, Timestamp};
use tokio::time::{Instant, sleep};

use crate::kit::Client;

/// When the paused clock begins: 1 January 2025, 12:00:30 UTC.
const BEGIN: i64 = 1_735_732_830_000;

/// Stores that outlive a server, and their clock.
struct Disk {
    store: Memory,
    registry: MemoryRegistry,
    clock: Clock,
}

impl Disk {
    fn new() -> Self {
        let begin = Instant::now();
        let clock = Clock::new(move || {
            let passed = i64::try_from(begin.elapsed().as_millis()).unwrap();
            Timestamp(BEGIN + passed)
        });
        Self {
            store: Memory::default(),
            registry: MemoryRegistry::new(),
            clock,
        }
    }

    async fn serve(&self) -> Client {
        let runtime = Runtime::builder(self.store.clone());
        let runtime = runtime.clock(self.clock.clone()).build();
        Client::over(runtime, &self.registry).await
    }

    /// Stores a cron whose threads are kept, as an earlier server would have left it.
    async fn leave_cron(&self, assistant: &str, next: Timestamp) -> CronId {
        let assistant = uuid::Uuid::parse_str(assistant).unwrap();
        let new = NewCron {
            tenant: String::new(),
            id: CronId::from_bytes([7; 16]),
            assistant: AssistantId::from_bytes(assistant.into_bytes()),
            thread: None,
            principal: String::new(),
            schedule: "* * * * *".to_owned(),
            zone: None,
            end: None,
            is_enabled: true,
            next: Some(next),
            arguments: json!({ "input": said("tick"), "on_run_completed": "keep" }),
            metadata: json!({}),
            at: Timestamp(BEGIN - 3_600_000),
        };
        self.registry.create_cron(&new).await.unwrap();
        new.id
    }
}

fn said(text: &str) -> Json {
    json!({ "messages": [{ "role": "user", "content": text }] })
}

fn every_minute() -> Json {
    json!({ "assistant_id": "chat", "schedule": "* * * * *", "input": said("tick") })
}

/// Returns a body with further fields.
fn with(mut body: Json, fields: Json) -> Json {
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

pub(crate) fn path_of(cron: &Json) -> String {
    format!("/runs/crons/{}", cron["cron_id"].as_str().unwrap())
}

/// Returns when the runs of a thread were created, oldest first, to the second.
async fn run_times(client: &Client, thread: &str) -> Vec<String> {
    let runs = client.get(&format!("{thread}/runs?limit=100")).await.ok();
    let runs = runs.as_array().unwrap().iter().rev();
    runs.map(|run| run["created_at"].as_str().unwrap()[11..19].to_owned())
        .collect()
}

/// Returns how many threads a cron has made that are still there.
pub(crate) async fn threads_of(client: &Client, cron: &Json) -> Json {
    let query = json!({ "metadata": { "cron_id": cron["cron_id"] } });
    client.post("/threads/count", query).await.ok()
}

#[tokio::test]
async fn crons_are_created_searched_changed_and_deleted() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let yearly = json!({
        "assistant_id": "chat",
        "schedule": "0 0 1 1 *",
        "timezone": "Europe/Berlin",
        "input": said("happy new year"),
        "metadata": { "team": "ops", "n": 1 },
    });
    let created = client.post("/runs/crons", yearly.clone()).await.ok();
    let assistant = client.get("/assistants/chat").await.ok();
    assert_eq!(created["assistant_id"], assistant["assistant_id"]);
    assert_eq!(created["thread_id"], Json::Null);
    assert_eq!(created["user_id"], Json::Null);
    assert_eq!(created["schedule"], "0 0 1 1 *");
    assert_eq!(created["timezone"], "Europe/Berlin");
    assert_eq!(created["end_time"], Json::Null);
    assert_eq!(created["enabled"], true);
    assert_eq!(created["on_run_completed"], "delete");
    assert_eq!(created["last_error"], Json::Null);
    assert_eq!(created["metadata"], json!({ "team": "ops", "n": 1 }));
    assert_eq!(created["payload"]["input"], said("happy new year"));
    assert_eq!(
        created["payload"]["assistant_id"],
        assistant["assistant_id"]
    );
    // Midnight in Berlin.
    let next = created["next_run_date"].as_str().unwrap();
    assert!(next.ends_with("-12-31T23:00:00.000000+00:00"), "{next}");
    let path = path_of(&created);
    assert_eq!(client.get(&path).await.ok(), created);

    // Lists are in the order of the times of creation.
    sleep(Duration::from_millis(5)).await;
    let of_thread = client
        .post(&format!("{thread}/runs/crons"), yearly)
        .await
        .ok();
    assert_eq!(
        Some(of_thread["thread_id"].as_str().unwrap()),
        thread.rsplit('/').next()
    );
    assert_eq!(of_thread["on_run_completed"], Json::Null);
    for (query, wanted) in [
        (json!({}), vec![&of_thread, &created]),
        (json!({ "sort_order": "asc" }), vec![&created, &of_thread]),
        (json!({ "limit": 1, "offset": 1 }), vec![&created]),
        (
            json!({ "assistant_id": "chat", "limit": 1 }),
            vec![&of_thread],
        ),
        (json!({ "assistant_id": "ask" }), vec![]),
        (
            json!({ "thread_id": of_thread["thread_id"] }),
            vec![&of_thread],
        ),
        (json!({ "metadata": { "team": "dev" } }), vec![]),
        (json!({ "enabled": false }), vec![]),
    ] {
        let found = client.post("/runs/crons/search", query.clone()).await.ok();
        let found: Vec<&Json> = found.as_array().unwrap().iter().collect();
        assert_eq!(found, wanted, "{query}");
    }
    let selected = json!({ "select": ["cron_id"], "sort_by": "cron_id", "sort_order": "asc" });
    let found = client.post("/runs/crons/search", selected).await;
    assert_eq!(found.header("x-pagination-total"), Some("2"));
    assert_eq!(found.ok()[0], json!({ "cron_id": created["cron_id"] }));
    let count = json!({ "metadata": { "team": "ops" } });
    assert_eq!(client.post("/runs/crons/count", count).await.ok(), 2);

    let change = async |body: Json| client.call("PATCH", &path, Some(body)).await;
    let stopped = change(json!({ "enabled": false })).await.ok();
    assert_eq!(stopped["next_run_date"], Json::Null);
    let started = change(json!({ "enabled": true, "end_time": "2999-01-01T00:00:00" }))
        .await
        .ok();
    assert_eq!(started["next_run_date"], created["next_run_date"]);
    assert_eq!(started["end_time"], "2999-01-01T00:00:00.000000+00:00");
    let body = json!({
        "end_time": null,
        "timezone": "UTC",
        "metadata": { "n": 2 },
        "on_run_completed": "keep",
        "input": said("hello"),
    });
    let changed = change(body).await.ok();
    assert_eq!(changed["end_time"], Json::Null);
    assert_eq!(changed["on_run_completed"], "keep");
    assert_eq!(changed["metadata"], json!({ "team": "ops", "n": 2 }));
    assert_eq!(changed["payload"]["input"], said("hello"));
    let next = changed["next_run_date"].as_str().unwrap();
    assert!(next.ends_with("-01-01T00:00:00.000000+00:00"), "{next}");
    assert_eq!(change(json!({})).await.status, StatusCode::BAD_REQUEST);

    let deleted = client.call("DELETE", &path, None).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    for method in ["GET", "DELETE"] {
        let gone = client.call(method, &path, None).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND, "{method}");
    }
    let gone = change(json!({ "enabled": true })).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    // The crons of a thread go with it.
    client.call("DELETE", &thread, None).await.ok();
    let count = client.post("/runs/crons/count", json!({})).await.ok();
    assert_eq!(count, 0);
}

#[tokio::test]
async fn a_cron_that_could_not_run_is_refused() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let nobody = "0190a6b2-0000-7000-8000-00000000000a";
    for (fields, status, wanted) in [
        (json!({ "schedule": "* * *" }), 422, "five fields"),
        (json!({ "schedule": "0 0 31 2 *" }), 422, "no date matches"),
        (json!({ "schedule": null }), 422, "needs a `schedule`"),
        (json!({ "timezone": "Mars/Olympus" }), 422, "`Mars/Olympus`"),
        (
            json!({ "end_time": "2001-01-01T00:00:00Z" }),
            422,
            "in the past",
        ),
        (json!({ "end_time": "soon" }), 422, "`soon`"),
        (json!({ "assistant_id": nobody }), 404, nobody),
        (
            json!({ "assistant_id": "nobody" }),
            422,
            "Invalid assistant",
        ),
        (json!({ "webhook": "http://10.0.0.1" }), 422, "Webhook host"),
        (json!({ "input": { "turns": 9 } }), 422, "`turns`"),
        (json!({ "input": [] }), 422, "not an object"),
        (json!({ "input": null }), 422, "needs an `input`"),
        (json!({ "command": { "resume": 1 } }), 422, "`command`"),
        (json!({ "multitask_strategy": "push" }), 422, "push"),
        (json!({ "on_run_completed": "burn" }), 422, "burn"),
        (json!({ "interrupt_before": ["a b"] }), 422, "a b"),
    ] {
        let body = with(every_minute(), fields.clone());
        let refused = client.post("/runs/crons", body).await;
        assert_eq!(
            refused.status.as_u16(),
            status,
            "{fields}: {}",
            refused.json
        );
        let detail = refused.json["detail"].as_str().unwrap();
        assert!(detail.contains(wanted), "{fields}: {detail}");
    }
    let count = client.post("/runs/crons/count", json!({})).await.ok();
    assert_eq!(count, 0);

    let missing = format!("/threads/{nobody}/runs/crons");
    let refused = client.post(&missing, every_minute()).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    let run = json!({ "assistant_id": "chat", "input": said("hi") });
    client.wait(&thread, run).await;
    let other = with(every_minute(), json!({ "assistant_id": "ask" }));
    let refused = client.post(&format!("{thread}/runs/crons"), other).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let refused = client.get("/runs/crons/x").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let sorted = json!({ "sort_by": "color" });
    let refused = client.post("/runs/crons/search", sorted).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);

    let yearly = with(every_minute(), json!({ "schedule": "0 0 1 1 *" }));
    let cron = client.post("/runs/crons", yearly).await.ok();
    for body in [
        json!({ "schedule": "x" }),
        json!({ "timezone": "x" }),
        json!({ "end_time": "2001-01-01T00:00:00Z" }),
        json!({ "input": { "turns": 9 } }),
        json!({ "webhook": "http://10.0.0.1" }),
    ] {
        let refused = client
            .call("PATCH", &path_of(&cron), Some(body.clone()))
            .await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    }
    assert_eq!(client.get(&path_of(&cron)).await.ok(), cron);
}

#[tokio::test(start_paused = true)]
async fn a_cron_runs_on_its_thread_until_it_is_stopped() {
    let client = Disk::new().serve().await;
    let thread = client.thread().await;
    // The timer sleeps when the cron is created, and has to wake up for it.
    sleep(Duration::from_secs(5)).await;
    let body = with(every_minute(), json!({ "metadata": { "team": "ops" } }));
    let cron = client
        .post(&format!("{thread}/runs/crons"), body)
        .await
        .ok();
    assert_eq!(cron["next_run_date"], "2025-01-01T12:01:00.000000+00:00");
    sleep(Duration::from_secs(165)).await;
    let wanted = ["12:01:00", "12:02:00", "12:03:00"];
    assert_eq!(run_times(&client, &thread).await, wanted);
    let runs = client.get(&format!("{thread}/runs")).await.ok();
    for run in runs.as_array().unwrap() {
        assert_eq!(run["status"], "success");
        assert_eq!(run["metadata"]["cron_id"], cron["cron_id"]);
        assert_eq!(run["metadata"]["team"], "ops");
        let configurable = &run["kwargs"]["config"]["configurable"];
        assert_eq!(configurable["cron_id"], cron["cron_id"]);
        // Nodes read a context, and the cron is none of theirs.
        assert_eq!(run["kwargs"]["context"], json!({}));
    }
    let state = client.get(&format!("{thread}/state")).await.ok();
    assert_eq!(state["values"]["turns"], 3);
    assert_eq!(cron["last_run"], Json::Null);
    let shown = client.get(&path_of(&cron)).await.ok();
    assert_eq!(
        shown["last_run"],
        json!({
            "run_id": runs[0]["run_id"],
            "thread_id": cron["thread_id"],
            "due_at": "2025-01-01T12:03:00.000000+00:00",
            "status": "success",
            "error": null,
            "updated_at": runs[0]["updated_at"],
        })
    );

    let half = json!({ "schedule": "30 * * * *" });
    let changed = client.call("PATCH", &path_of(&cron), Some(half)).await.ok();
    assert_eq!(changed["next_run_date"], "2025-01-01T12:30:00.000000+00:00");
    sleep(Duration::from_secs(3_600)).await;
    let wanted = ["12:01:00", "12:02:00", "12:03:00", "12:30:00"];
    assert_eq!(run_times(&client, &thread).await, wanted);
    let stopped = json!({ "enabled": false });
    client
        .call("PATCH", &path_of(&cron), Some(stopped))
        .await
        .ok();
    sleep(Duration::from_secs(7_200)).await;
    assert_eq!(run_times(&client, &thread).await, wanted);
}

#[tokio::test(start_paused = true)]
async fn runs_without_a_thread_have_one_each_which_is_deleted_or_kept() {
    let client = Disk::new().serve().await;
    let deleted = client.post("/runs/crons", every_minute()).await.ok();
    let keep = with(every_minute(), json!({ "on_run_completed": "keep" }));
    let kept = client.post("/runs/crons", keep).await.ok();
    // Five seconds after the first tick, both threads are there; after thirty, one is deleted.
    sleep(Duration::from_secs(35)).await;
    assert_eq!(threads_of(&client, &deleted).await, 1);
    assert_eq!(threads_of(&client, &kept).await, 1);
    sleep(Duration::from_secs(25)).await;
    assert_eq!(threads_of(&client, &deleted).await, 0);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(threads_of(&client, &kept).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_crons_has_the_last_run_of_each() {
    let client = Disk::new().serve().await;
    let create = async |fields: Json| {
        let body = with(every_minute(), fields);
        client.post("/runs/crons", body).await.ok()["cron_id"].clone()
    };
    let keep = |assistant: &str| json!({ "assistant_id": assistant, "on_run_completed": "keep" });
    let kept = create(keep("chat")).await;
    let broken = create(keep("broken")).await;
    let deleted = create(json!({})).await;
    let stopped = create(json!({ "enabled": false })).await;
    // By then, the thread of the first tick is deleted, where it is not kept.
    sleep(Duration::from_secs(70)).await;
    let found = client.post("/runs/crons/search", json!({})).await.ok();
    let last_run = |id: &Json| {
        let mut found = found.as_array().unwrap().iter();
        let found = found.find(|cron| cron["cron_id"] == *id).unwrap();
        found["last_run"].clone()
    };
    let (success, failure) = (last_run(&kept), last_run(&broken));
    assert_eq!(
        (&success["status"], &success["error"]),
        (&json!("success"), &Json::Null)
    );
    assert_eq!(failure["status"], "error");
    let message = failure["error"]["message"].as_str().unwrap();
    assert!(message.contains("kaboom"), "{message}");
    for run in [&success, &failure] {
        let runs = format!("/threads/{}/runs", run["thread_id"].as_str().unwrap());
        let stored = client.get(&runs).await.ok();
        assert_eq!(stored[0]["run_id"], run["run_id"]);
    }
    let gone = last_run(&deleted);
    assert!(gone["run_id"].is_string(), "{gone}");
    assert_eq!(gone["due_at"], "2025-01-01T12:01:00.000000+00:00");
    for field in ["thread_id", "status", "error", "updated_at"] {
        assert_eq!(gone[field], Json::Null, "{field}");
    }
    assert_eq!(last_run(&stopped), Json::Null);
}

#[tokio::test(start_paused = true)]
async fn a_cron_ends_at_its_end() {
    let client = Disk::new().serve().await;
    let thread = client.thread().await;
    let body = with(
        every_minute(),
        json!({ "end_time": "2025-01-01T12:02:30Z" }),
    );
    let cron = client
        .post(&format!("{thread}/runs/crons"), body)
        .await
        .ok();
    sleep(Duration::from_secs(600)).await;
    let wanted = ["12:01:00", "12:02:00"];
    assert_eq!(run_times(&client, &thread).await, wanted);
    let ended = client.get(&path_of(&cron)).await.ok();
    assert_eq!(ended["next_run_date"], Json::Null);
    assert_eq!(ended["last_error"], Json::Null);
}

#[tokio::test(start_paused = true)]
async fn ticks_that_no_server_saw_are_one_run() {
    let disk = Disk::new();
    let client = disk.serve().await;
    let assistant = client.get("/assistants/chat").await.ok();
    drop(client);
    let assistant = assistant["assistant_id"].as_str().unwrap();
    // Ten ticks are past.
    let cron = disk.leave_cron(assistant, Timestamp(BEGIN - 630_000)).await;
    let client = disk.serve().await;
    sleep(Duration::from_secs(10)).await;
    let found = client.post("/runs/crons/search", json!({})).await.ok();
    assert_eq!(threads_of(&client, &found[0]).await, 1);
    assert_eq!(
        found[0]["next_run_date"],
        "2025-01-01T12:01:00.000000+00:00"
    );
    sleep(Duration::from_secs(60)).await;
    assert_eq!(threads_of(&client, &found[0]).await, 2);
    let row = disk.registry.cron("", cron).await.unwrap().unwrap();
    assert_eq!(row.error, Json::Null);
}

#[tokio::test(start_paused = true)]
async fn a_cron_that_ended_while_no_server_ran_does_not_run() {
    let disk = Disk::new();
    let client = disk.serve().await;
    let body = with(
        every_minute(),
        json!({ "end_time": "2025-01-01T12:05:00Z", "on_run_completed": "keep" }),
    );
    let cron = client.post("/runs/crons", body).await.ok();
    drop(client);
    sleep(Duration::from_secs(3_600)).await;
    let client = disk.serve().await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(threads_of(&client, &cron).await, 0);
    let ended = client.get(&path_of(&cron)).await.ok();
    assert_eq!(ended["next_run_date"], Json::Null);
    assert_eq!(ended["last_error"]["error"], "ended");
}

/// Neither server dies: both look at the same cron at the same time.
#[tokio::test(start_paused = true)]
async fn a_tick_that_two_servers_see_is_one_run() {
    let disk = Disk::new();
    let client = disk.serve().await;
    let assistant = client.get("/assistants/chat").await.ok();
    drop(client);
    let assistant = assistant["assistant_id"].as_str().unwrap();
    disk.leave_cron(assistant, Timestamp(BEGIN - 30_000)).await;
    let (first, second) = tokio::join!(disk.serve(), disk.serve());
    sleep(Duration::from_secs(10)).await;
    let found = first.post("/runs/crons/search", json!({})).await.ok();
    assert_eq!(threads_of(&first, &found[0]).await, 1);
    assert_eq!(found[0]["last_error"], Json::Null);
    let query = json!({ "metadata": { "cron_id": found[0]["cron_id"] } });
    let threads = second.post("/threads/search", query).await.ok();
    let thread = format!("/threads/{}", threads[0]["thread_id"].as_str().unwrap());
    assert_eq!(run_times(&second, &thread).await.len(), 1);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(threads_of(&first, &found[0]).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_tick_without_a_run_says_why_and_the_cron_continues() {
    let disk = Disk::new();
    let client = disk.serve().await;
    let thread = client.thread().await;
    // The first run takes ten minutes.
    let slow = json!({ "assistant_id": "slow", "multitask_strategy": "reject" });
    let body = with(every_minute(), slow);
    let busy = client
        .post(&format!("{thread}/runs/crons"), body)
        .await
        .ok();
    let new = json!({ "graph_id": "chat", "name": "short-lived" });
    let assistant = client.post("/assistants", new).await.ok();
    let gone = json!({ "assistant_id": assistant["assistant_id"] });
    let gone = client
        .post("/runs/crons", with(every_minute(), gone))
        .await
        .ok();
    // Not through the server, which would delete the cron too.
    let id = assistant["assistant_id"].as_str().unwrap();
    let id = AssistantId::from_bytes(uuid::Uuid::parse_str(id).unwrap().into_bytes());
    assert!(disk.registry.delete_assistant("", id).await.unwrap());
    sleep(Duration::from_secs(100)).await;
    assert_eq!(run_times(&client, &thread).await, ["12:01:00"]);
    for (cron, wanted) in [(&busy, "already running"), (&gone, "not found")] {
        let found = client.get(&path_of(cron)).await.ok();
        let message = found["last_error"]["message"].as_str().unwrap();
        assert!(message.contains(wanted), "{message}");
        assert_eq!(found["next_run_date"], "2025-01-01T12:03:00.000000+00:00");
    }
    // The run of the tick before is still the last one.
    let found = client.get(&path_of(&busy)).await.ok();
    assert_eq!(found["last_run"]["status"], "running");
}
