//! Answers to interrupts: who gave them, in the list of a thread's interrupts, and those that come too late.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::checkpoint::Checkpointer;
use superstep::prelude::*;
use superstep::registry::{MemoryRegistry, Registry};
use superstep_server::{ApiKeyRequest, Authentication, Permission, Server};
use superstep_sqlite::Sqlite;
use tokio::task::JoinSet;

use crate::authorisation::{now, request};
use crate::kit::{Client, Reply};
use crate::schema::Schema;

#[derive(Clone, Debug, Default, State)]
struct Trip {
    #[state(append)]
    answers: Vec<String>,
}

async fn ask(_: View<Trip>, cx: NodeCx) -> Result<TripUpdate, NodeError> {
    let where_to = Interrupt::new("where", json!({ "text": "Where to?" })).kind("question");
    let place: String = cx.interrupt(where_to).await?;
    let when = json!({ "text": "When?" });
    let day: String = cx.interrupt(Interrupt::new("when", when)).await?;
    Ok(TripUpdate::default().answers_all([place, day]))
}

fn trip() -> Graph<Trip> {
    Graph::builder("trip")
        .node("ask", ask)
        .edge(START, "ask")
        .edge("ask", END)
        .build()
        .unwrap()
}

/// A server with API keys.
struct Trips {
    client: Arc<Client>,
    registry: Arc<dyn Registry>,
}

impl Trips {
    async fn over(store: impl Checkpointer, registry: Arc<dyn Registry>) -> Self {
        let builder = Server::builder(Runtime::new(store), registry.clone())
            .graph(trip().definition())
            .authentication(Authentication::with_api_keys());
        let client = Arc::new(Client::of(builder).await);
        Self { client, registry }
    }

    async fn in_memory() -> Self {
        Self::over(Memory::default(), Arc::new(MemoryRegistry::new())).await
    }

    async fn key(&self, tenant: &str, principal: &str) -> String {
        self.key_of(request(tenant, principal, &Permission::ALL))
            .await
    }

    async fn key_of(&self, request: ApiKeyRequest) -> String {
        let issued = request.issue(now()).unwrap();
        assert!(self.registry.create_api_key(&issued.key).await.unwrap());
        issued.text
    }

    /// Starts a trip, and returns the path of its thread and the id of its first interrupt.
    async fn start(&self, key: &str) -> (String, String) {
        let created = self
            .client
            .call_as(key, "POST", "/threads", Some(json!({})));
        let thread = created.await.ok()["thread_id"].as_str().unwrap().to_owned();
        let thread = format!("/threads/{thread}");
        let body = json!({ "assistant_id": "trip", "input": {} });
        let path = format!("{thread}/runs/wait");
        let values = self.client.call_as(key, "POST", &path, Some(body));
        let values = values.await.ok();
        let id = values["__interrupt__"][0]["id"].as_str().unwrap();
        (thread, id.to_owned())
    }

    async fn answer(&self, key: &str, thread: &str, resume: Json) -> Reply {
        let path = format!("{thread}/runs/wait");
        self.client
            .call_as(key, "POST", &path, Some(answer(resume)))
            .await
    }

    async fn interrupts(&self, key: &str, thread: &str, query: &str) -> Reply {
        let path = format!("/superstep{thread}/interrupts{query}");
        self.client.call_as(key, "GET", &path, None).await
    }

    /// One of the interrupts of a thread. Those that were asked within one millisecond are in no order.
    async fn interrupt(&self, key: &str, thread: &str, id: &str) -> Json {
        let listed = self.interrupts(key, thread, "").await.ok();
        let mut listed = listed.as_array().unwrap().iter();
        listed.find(|one| one["id"] == id).unwrap().clone()
    }
}

fn answer(resume: Json) -> Json {
    json!({ "assistant_id": "trip", "command": { "resume": resume } })
}

#[tokio::test]
async fn interrupts_are_listed_with_their_answers_newest_first() {
    let trips = Trips::in_memory().await;
    let alice = trips.key("acme", "alice").await;
    let (thread, first) = trips.start(&alice).await;
    let open = trips.interrupts(&alice, &thread, "").await;
    assert_eq!(open.header("x-pagination-total"), Some("1"));
    let open = open.ok();
    assert_eq!(
        open,
        json!([{
            "id": first, "node": "ask", "kind": "question", "asked_at": open[0]["asked_at"],
            "value": { "text": "Where to?" }, "status": "open",
            "answer": null, "answered_by": null, "answered_at": null,
        }])
    );
    trips
        .answer(&alice, &thread, json!({ &first: "Rome" }))
        .await
        .ok();
    let page = trips.interrupts(&alice, &thread, "?limit=1").await;
    assert_eq!(page.header("x-pagination-next"), Some("1"));
    let second = page.ok();
    assert_eq!(second[0]["value"], json!({ "text": "When?" }));
    assert_eq!(second[0]["status"], "open");
    let page = trips.interrupts(&alice, &thread, "?limit=1&offset=1").await;
    let found = page.ok();
    assert_eq!(found[0]["id"], first);
    assert_eq!(
        (&found[0]["status"], &found[0]["answer"]),
        (&json!("answered"), &json!("Rome"))
    );
    assert_eq!(found[0]["answered_by"], "alice");
    assert!(found[0]["answered_at"].is_string());
    // The run ends without an answer.
    let body = json!({ "values": null, "as_node": "__end__" });
    let path = format!("{thread}/state");
    trips
        .client
        .call_as(&alice, "POST", &path, Some(body))
        .await
        .ok();
    let found = trips.interrupts(&alice, &thread, "").await.ok();
    assert_eq!(found[0]["status"], "closed");
    assert_eq!(found[0]["answered_by"], Json::Null);
    assert_eq!(found[1]["status"], "answered");
}

#[tokio::test]
async fn interrupts_are_there_for_those_who_see_the_thread() {
    let trips = Trips::in_memory().await;
    let restricted = |principal: &str| ApiKeyRequest {
        is_restricted: true,
        ..request("acme", principal, &Permission::ALL)
    };
    let alice = trips.key_of(restricted("alice")).await;
    let bob = trips.key_of(restricted("bob")).await;
    let other = trips.key("other", "alice").await;
    let (thread, id) = trips.start(&alice).await;
    for stranger in [&bob, &other] {
        let refused = trips.interrupts(stranger, &thread, "").await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
        let refused = trips
            .answer(stranger, &thread, json!({ &id: "Rome" }))
            .await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(
        trips.interrupts(&alice, &thread, "").await.status,
        StatusCode::OK
    );
    trips
        .answer(&alice, &thread, json!({ &id: "Rome" }))
        .await
        .ok();
    for stranger in [&bob, &other] {
        // Nothing of who answered.
        let refused = trips
            .answer(stranger, &thread, json!({ &id: "Oslo" }))
            .await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
        assert!(!refused.json.to_string().contains("alice"));
    }
}

#[tokio::test]
async fn a_late_answer_learns_who_was_first() {
    let trips = Trips::in_memory().await;
    let alice = trips.key("acme", "alice").await;
    let bob = trips.key("acme", "bob").await;
    let (thread, id) = trips.start(&alice).await;
    trips
        .answer(&alice, &thread, json!({ &id: "Rome" }))
        .await
        .ok();
    let late = trips.answer(&bob, &thread, json!({ &id: "Oslo" })).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert_eq!(
        late.json["detail"],
        format!("Interrupt {id} was already answered by `alice`")
    );
    assert_eq!(late.json["answered_by"], "alice");
    let listed = trips.interrupts(&bob, &thread, "").await.ok();
    assert_eq!(late.json["answered_at"], listed[1]["answered_at"]);
    let second = listed[0]["id"].as_str().unwrap();
    // Of several answers none is stored if one is late.
    let both = json!({ &id: "Oslo", second: "Monday" });
    let late = trips.answer(&bob, &thread, both).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    // An id that never was, and an answer without one, are what they were.
    let unknown = trips
        .answer(&bob, &thread, json!({ "00".repeat(16): "Oslo" }))
        .await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    let values = trips.answer(&bob, &thread, json!("Monday")).await.ok();
    assert_eq!(values["answers"], json!(["Rome", "Monday"]));
    let late = trips.answer(&bob, &thread, json!({ &id: "Oslo" })).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    let nothing = trips.answer(&bob, &thread, json!("Oslo")).await;
    assert_eq!(nothing.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn an_answer_that_waits_for_its_turn_counts_as_one() {
    let trips = Trips::in_memory().await;
    let alice = trips.key("acme", "alice").await;
    let bob = trips.key("acme", "bob").await;
    let (thread, id) = trips.start(&alice).await;
    let runs = format!("{thread}/runs");
    let mut delayed = answer(json!("Rome"));
    delayed["after_seconds"] = json!(600);
    let run = trips.client.call_as(&alice, "POST", &runs, Some(delayed));
    let run = run.await.ok();
    // What the server notes about it is not shown.
    assert_eq!(run["kwargs"].get("answers"), None);
    let late = trips.answer(&bob, &thread, json!({ &id: "Oslo" })).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert_eq!(late.json["answered_by"], "alice");
    // It is no answer if it is withdrawn.
    let cancel = format!("{runs}/{}/cancel", run["run_id"].as_str().unwrap());
    trips.client.call_as(&alice, "POST", &cancel, None).await;
    trips
        .answer(&bob, &thread, json!({ &id: "Oslo" }))
        .await
        .ok();
    let listed = trips.interrupts(&alice, &thread, "").await.ok();
    assert_eq!(listed[1]["answered_by"], "bob");
}

#[tokio::test]
async fn a_late_answer_learns_who_was_first_with_every_strategy() {
    let trips = Trips::in_memory().await;
    let alice = trips.key("acme", "alice").await;
    let bob = trips.key("acme", "bob").await;
    for strategy in ["reject", "enqueue"] {
        let (thread, id) = trips.start(&alice).await;
        let runs = format!("{thread}/runs");
        // The thread is busy with the first answer.
        let mut first = answer(json!({ &id: "Rome" }));
        first["after_seconds"] = json!(600);
        let sent = trips.client.call_as(&alice, "POST", &runs, Some(first));
        sent.await.ok();
        let mut late = answer(json!({ &id: "Oslo" }));
        late["multitask_strategy"] = json!(strategy);
        let late = trips.client.call_as(&bob, "POST", &runs, Some(late)).await;
        assert_eq!(late.status, StatusCode::CONFLICT, "{strategy}");
        assert_eq!(late.json["answered_by"], "alice", "{strategy}");
        // Another request on a busy thread is what it was.
        let mut other = json!({ "assistant_id": "trip", "input": {} });
        other["multitask_strategy"] = json!("reject");
        let busy = trips.client.call_as(&bob, "POST", &runs, Some(other)).await;
        assert_eq!(busy.status, StatusCode::CONFLICT);
        assert_eq!(busy.json.get("answered_by"), None);
    }
    // One that is too late cancels nothing.
    let (thread, id) = trips.start(&alice).await;
    let stored = trips.answer(&alice, &thread, json!({ &id: "Rome" })).await;
    let second = stored.ok()["__interrupt__"][0]["id"].clone();
    let runs = format!("{thread}/runs");
    let mut next = answer(json!({ second.as_str().unwrap(): "Monday" }));
    next["after_seconds"] = json!(600);
    let next = trips.client.call_as(&alice, "POST", &runs, Some(next));
    let next = format!("{runs}/{}", next.await.ok()["run_id"].as_str().unwrap());
    let mut late = answer(json!({ &id: "Oslo" }));
    late["multitask_strategy"] = json!("interrupt");
    let late = trips.client.call_as(&bob, "POST", &runs, Some(late)).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert_eq!(late.json["answered_by"], "alice");
    let next = trips.client.call_as(&alice, "GET", &next, None).await.ok();
    assert_eq!(next["status"], "pending");
}

/// Answers one interrupt as several callers at once, each with its name.
async fn answer_at_once(
    callers: [(&Arc<Client>, &String, &'static str); 2],
    (thread, id): (&str, &str),
    strategy: &str,
) -> Vec<(&'static str, Reply)> {
    let mut sent = JoinSet::new();
    for (client, key, name) in callers {
        let (client, key, path) = (client.clone(), key.clone(), format!("{thread}/runs"));
        let mut body = answer(json!({ id: name }));
        body["multitask_strategy"] = json!(strategy);
        sent.spawn(async move {
            let reply = client.call_as(&key, "POST", &path, Some(body)).await;
            (name, reply)
        });
    }
    sent.join_all().await
}

/// Sends two answers to one interrupt at once, again and again: one is accepted, and counts. The other is told whose it was.
async fn one_of_two_answers_wins(trips: &Trips) {
    let alice = trips.key("acme", "alice").await;
    let bob = trips.key("acme", "bob").await;
    for (round, strategy) in (0..50).zip(["enqueue", "reject"].into_iter().cycle()) {
        let (thread, id) = trips.start(&alice).await;
        let path = format!("{thread}/runs");
        let mut replies = answer_at_once(
            [
                (&trips.client, &alice, "alice"),
                (&trips.client, &bob, "bob"),
            ],
            (&thread, &id),
            strategy,
        )
        .await;
        replies.sort_by_key(|(_, reply)| reply.status);
        let [(winner, accepted), (_, refused)] = &replies[..] else {
            panic!("two replies");
        };
        assert_eq!(
            (accepted.status, refused.status),
            (StatusCode::OK, StatusCode::CONFLICT),
            "round {round}, {strategy}: {}",
            refused.json
        );
        assert_eq!(
            refused.json["answered_by"], *winner,
            "round {round}, {strategy}: {}",
            refused.json
        );
        assert!(refused.json["answered_at"].is_string());
        let run = accepted.json["run_id"].as_str().unwrap();
        let join = format!("{thread}/runs/{run}/join");
        trips.client.call_as(&alice, "GET", &join, None).await.ok();
        let answered = trips.interrupt(&alice, &thread, &id).await;
        assert_eq!(
            (&answered["answer"], &answered["answered_by"]),
            (&json!(winner), &json!(winner)),
            "round {round}"
        );
        let runs = trips.client.call_as(&alice, "GET", &path, None).await.ok();
        assert_eq!(runs.as_array().unwrap().len(), 2, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_answers_at_once_wins_in_memory() {
    let trips = Trips::in_memory().await;
    one_of_two_answers_wins(&trips).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_answers_at_once_wins_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::open(folder.path().join("trips.db")).unwrap();
    let trips = Trips::over(sqlite.clone(), Arc::new(sqlite)).await;
    one_of_two_answers_wins(&trips).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_answers_at_once_wins_in_postgres() {
    let schema = Schema::new();
    let postgres = schema.connect().await;
    let trips = Trips::over(postgres.clone(), Arc::new(postgres)).await;
    one_of_two_answers_wins(&trips).await;
    drop(trips);
    schema.drop_tables().await;
}

/// Servers do not wait for each other's requests. The second answer is refused while the run of the first is active or its answer is
/// stored; between the two, its run is accepted and ends with an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_answers_at_once_to_two_servers_one_counts() {
    let (store, registry) = (Memory::default(), Arc::new(MemoryRegistry::new()));
    let trips = Trips::over(store.clone(), registry.clone()).await;
    let other = Trips::over(store, registry).await;
    let alice = trips.key("acme", "alice").await;
    let bob = trips.key("acme", "bob").await;
    for round in 0..50 {
        let (thread, id) = trips.start(&alice).await;
        let replies = answer_at_once(
            [
                (&trips.client, &alice, "alice"),
                (&other.client, &bob, "bob"),
            ],
            (&thread, &id),
            "reject",
        );
        let mut winners = Vec::new();
        let mut told = Vec::new();
        for (name, reply) in replies.await {
            if reply.status == StatusCode::CONFLICT {
                told.push(reply.json["answered_by"].clone());
                continue;
            }
            let run = reply.ok()["run_id"].as_str().unwrap().to_owned();
            let run = format!("{thread}/runs/{run}");
            let join = format!("{run}/join");
            trips.client.call_as(&alice, "GET", &join, None).await;
            let run = trips.client.call_as(&alice, "GET", &run, None).await.ok();
            if run["status"] != "error" {
                winners.push(name);
            }
        }
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
        assert!(told.iter().all(|first| *first == winners[0]), "{told:?}");
        let answered = trips.interrupt(&alice, &thread, &id).await;
        assert_eq!(answered["answered_by"], winners[0], "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_answer_under_its_key_is_one_run() {
    let trips = Trips::in_memory().await;
    let alice = trips.key("acme", "alice").await;
    let (thread, id) = trips.start(&alice).await;
    let mut sent = JoinSet::new();
    for _ in 0..4 {
        let mut request = crate::kit::request_as(
            &alice,
            "POST",
            &format!("{thread}/runs"),
            Some(answer(json!({ &id: "Rome" }))),
        );
        let headers = request.headers_mut();
        headers.insert("idempotency-key", "trip-1".parse().unwrap());
        let client = trips.client.clone();
        sent.spawn(async move { client.send(request).await });
    }
    let runs = sent.join_all().await.into_iter().map(Reply::ok);
    let mut runs: Vec<Json> = runs.map(|run| run["run_id"].clone()).collect();
    runs.dedup();
    assert_eq!(runs.len(), 1);
}
