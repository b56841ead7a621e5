//! Callers that reach only what they created.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::checkpoint::{NewThread, Status, ThreadQuery};
use superstep::driver::ThreadRequest;
use superstep::prelude::*;
use superstep::store::{MemoryStore, Namespace, PutItem, Store};
use superstep::{RunOptions, ThreadId, Timestamp};
use superstep_agent::budget::{Amounts, Budgets, CallKey, Limits, Meter, Scope};
use superstep_server::{ApiKeyRequest, Authentication, Permission, WebhookAttempts};
use tokio::task::JoinSet;

use crate::authorisation::{Guarded, request};
use crate::receiver::{Reaction, Receiver};

async fn restricted(server: &Guarded, principal: &str) -> String {
    let request = ApiKeyRequest {
        is_restricted: true,
        ..request("acme", principal, &Permission::ALL)
    };
    server.key_of(request).await
}

#[tokio::test]
async fn what_another_caller_owns_is_not_there() {
    let server = Guarded::new().await;
    let alice = restricted(&server, "alice").await;
    let bob = restricted(&server, "bob").await;
    let admin = server.key("acme", &Permission::ALL).await;
    let call = async |key: &str, method: &str, path: &str, body: Json| {
        let sent = server.client.call_as(key, method, path, Some(body));
        sent.await
    };
    // Whatever it says about the owner.
    let body = json!({ "metadata": { "owner": "bob" } });
    let thread = call(&alice, "POST", "/threads", body).await.ok();
    assert_eq!(thread["metadata"]["owner"], "alice");
    let path = format!("/threads/{}", thread["thread_id"].as_str().unwrap());
    let input = json!({ "assistant_id": "chat", "input": { "messages": [] } });
    let runs = format!("{path}/runs");
    let run = call(&alice, "POST", &runs, input.clone()).await.ok();
    assert_eq!(run["metadata"]["owner"], "alice");
    let run = format!("{runs}/{}", run["run_id"].as_str().unwrap());
    call(&alice, "GET", &format!("{run}/join"), Json::Null)
        .await
        .ok();
    let changed = json!({ "metadata": { "owner": "bob", "seen": true } });
    let changed = call(&alice, "PATCH", &path, changed).await.ok();
    assert_eq!(
        changed["metadata"],
        json!({ "owner": "alice", "seen": true, "graph_id": "chat",
        "assistant_id": changed["metadata"]["assistant_id"] })
    );

    for (method, below, body) in [
        ("GET", "", Json::Null),
        ("PATCH", "", json!({ "metadata": {} })),
        ("DELETE", "", Json::Null),
        ("GET", "/state", Json::Null),
        ("POST", "/state", json!({ "values": { "topic": "x" } })),
        ("GET", "/history", Json::Null),
        ("POST", "/history", json!({})),
        ("GET", "/stream", Json::Null),
        ("GET", "/runs", Json::Null),
        ("POST", "/runs", input.clone()),
        ("POST", "/runs/wait", input.clone()),
        ("POST", "/runs/stream", input.clone()),
        (
            "POST",
            "/runs/crons",
            json!({ "assistant_id": "chat", "schedule": "0 0 1 1 *" }),
        ),
        ("POST", "/stream/events", json!({ "channels": ["values"] })),
        (
            "POST",
            "/commands",
            json!({ "id": 1, "method": "state.get", "params": {} }),
        ),
    ] {
        let reply = call(&bob, method, &format!("{path}{below}"), body).await;
        assert_eq!(
            reply.status,
            StatusCode::NOT_FOUND,
            "{method} {below}: {}",
            reply.json
        );
    }
    for (method, below) in [
        ("GET", ""),
        ("GET", "/join"),
        ("GET", "/stream"),
        ("POST", "/cancel"),
        ("DELETE", ""),
    ] {
        let reply = call(&bob, method, &format!("{run}{below}"), Json::Null).await;
        assert_eq!(
            reply.status,
            StatusCode::NOT_FOUND,
            "{method} {below}: {}",
            reply.json
        );
    }
    let stateless = run.replace(&path, "") + "/stream";
    assert_eq!(
        call(&bob, "GET", &stateless, Json::Null).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        call(&bob, "POST", &format!("{path}/copy"), json!({}))
            .await
            .status,
        StatusCode::CONFLICT
    );
    let again = json!({ "thread_id": thread["thread_id"], "if_exists": "do_nothing" });
    assert_eq!(
        call(&bob, "POST", "/threads", again).await.status,
        StatusCode::CONFLICT
    );

    let count = async |key: &str, body: Json| call(key, "POST", "/threads/count", body).await.json;
    assert_eq!(count(&alice, json!({})).await, 1);
    assert_eq!(count(&bob, json!({})).await, 0);
    assert_eq!(
        count(&bob, json!({ "ids": [thread["thread_id"]] })).await,
        0
    );
    assert_eq!(count(&admin, json!({})).await, 1);
    let stolen = json!({ "metadata": { "owner": "alice" } });
    let refused = call(&bob, "POST", "/threads/search", stolen).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let pruned = json!({ "thread_ids": [thread["thread_id"]] });
    let pruned = call(&bob, "POST", "/threads/prune", pruned).await.ok();
    assert_eq!(pruned["pruned_count"], 0);
    let cancelled = call(&bob, "POST", "/runs/cancel", json!({ "status": "all" })).await;
    assert_eq!(cancelled.status, StatusCode::NOT_FOUND);
    let shown = call(&admin, "GET", &path, Json::Null).await;
    assert_eq!(shown.status, StatusCode::OK);
}

#[tokio::test]
async fn assistants_crons_and_namespaces_have_owners_too() {
    let server = Guarded::new().await;
    let alice = restricted(&server, "alice").await;
    let bob = restricted(&server, "bob").await;
    let call = async |key: &str, method: &str, path: &str, body: Json| {
        let sent = server.client.call_as(key, method, path, Some(body));
        sent.await
    };
    let created = call(&alice, "POST", "/assistants", json!({ "graph_id": "chat" }))
        .await
        .ok();
    assert_eq!(created["metadata"]["owner"], "alice");
    let assistant = format!("/assistants/{}", created["assistant_id"].as_str().unwrap());
    for (method, below) in [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/graph"),
        ("POST", "/versions"),
    ] {
        let reply = call(&bob, method, &format!("{assistant}{below}"), json!({})).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{method} {below}");
    }
    let run = json!({ "assistant_id": created["assistant_id"], "input": {} });
    assert_eq!(
        call(&bob, "POST", "/runs/wait", run).await.status,
        StatusCode::NOT_FOUND
    );
    // Everyone can use the default assistant, and only callers without an owner can change it.
    assert_eq!(
        call(&bob, "GET", "/assistants/chat", Json::Null)
            .await
            .status,
        StatusCode::OK
    );
    let change = call(&bob, "PATCH", "/assistants/chat", json!({ "name": "mine" })).await;
    assert_eq!(change.status, StatusCode::NOT_FOUND);
    let default = call(&alice, "GET", "/assistants/broken", Json::Null).await;
    let stolen = json!({ "graph_id": "chat", "assistant_id": default.ok()["assistant_id"] });
    let stolen = call(&bob, "POST", "/assistants", stolen).await;
    assert_eq!(stolen.status, StatusCode::CONFLICT);
    let listed = call(&bob, "POST", "/assistants/search", json!({}))
        .await
        .ok();
    assert_eq!(listed, json!([]));

    let body =
        json!({ "assistant_id": "chat", "schedule": "0 0 1 1 *", "input": { "topic": "t" } });
    let cron = call(&alice, "POST", "/runs/crons", body).await.ok();
    let cron = format!("/runs/crons/{}", cron["cron_id"].as_str().unwrap());
    for method in ["GET", "PATCH", "DELETE"] {
        let reply = call(&bob, method, &cron, json!({ "enabled": false })).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{method}");
    }
    assert_eq!(
        call(&bob, "POST", "/runs/crons/count", json!({}))
            .await
            .json,
        0
    );
    assert_eq!(
        call(&alice, "POST", "/runs/crons/count", json!({}))
            .await
            .json,
        1
    );

    let item = json!({ "namespace": ["alice", "notes"], "key": "k", "value": { "v": 1 } });
    assert_eq!(
        call(&alice, "PUT", "/store/items", item.clone())
            .await
            .status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        call(&bob, "PUT", "/store/items", item.clone()).await.status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        call(&bob, "DELETE", "/store/items", item).await.status,
        StatusCode::FORBIDDEN
    );
    let get = "/store/items?namespace=alice.notes&key=k";
    assert_eq!(
        call(&bob, "GET", get, Json::Null).await.status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        call(&alice, "GET", get, Json::Null).await.json["value"],
        json!({ "v": 1 })
    );
    let search = async |key: &str| {
        let found = call(key, "POST", "/store/items/search", json!({}))
            .await
            .ok();
        found["items"].as_array().unwrap().len()
    };
    assert_eq!((search(&alice).await, search(&bob).await), (1, 0));
    let all = call(&bob, "POST", "/store/namespaces", json!({}))
        .await
        .ok();
    assert_eq!(all["namespaces"], json!([]));
    let keys = call(
        &alice,
        "POST",
        "/superstep/keys",
        json!({ "permissions": ["read"] }),
    )
    .await;
    assert_eq!(keys.status, StatusCode::FORBIDDEN);
}

/// A server whose restricted callers `alice` and `bob` have all permissions, and their keys.
async fn of_two(server: &Guarded) -> [String; 2] {
    [
        restricted(server, "alice").await,
        restricted(server, "bob").await,
    ]
}

#[tokio::test]
async fn the_queue_shows_what_the_caller_started() {
    let server = Guarded::new().await;
    let [alice, bob] = of_two(&server).await;
    let admin = server.key("acme", &Permission::ALL).await;
    let call = async |key: &str, method: &str, path: &str, body: Json| {
        let sent = server.client.call_as(key, method, path, Some(body));
        sent.await.ok()
    };
    let thread = call(&alice, "POST", "/threads", json!({})).await;
    let runs = format!("/threads/{}/runs", thread["thread_id"].as_str().unwrap());
    for _ in 0..2 {
        call(
            &alice,
            "POST",
            &runs,
            json!({ "assistant_id": "slow", "input": {} }),
        )
        .await;
    }
    let path = format!("{runs}?status=running");
    for _ in 0..1_000 {
        if call(&alice, "GET", &path, Json::Null).await != json!([]) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let queue = async |key: &str| call(key, "GET", "/superstep/queue", Json::Null).await;
    for key in [&alice, &admin] {
        let shown = queue(key).await;
        assert_eq!(
            (&shown["pending"], &shown["running"]),
            (&json!(1), &json!(1))
        );
        assert_eq!(shown["runs"].as_array().unwrap().len(), 2);
        assert_eq!(shown["oldest_pending"]["thread_id"], thread["thread_id"]);
        assert_eq!(shown["is_complete"], true);
    }
    let shown = queue(&bob).await;
    assert_eq!(
        (&shown["pending"], &shown["running"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(shown["runs"], json!([]));
    assert_eq!(shown["oldest_running"], Json::Null);
}

#[tokio::test]
async fn deliveries_belong_to_who_started_the_run() {
    let receiver = Receiver::start([Reaction::status("410 Gone")]).await;
    let host = format!("127.0.0.1:{}", receiver.port()).parse().unwrap();
    let attempts = WebhookAttempts {
        shortest_pause: Duration::from_millis(2),
        ..WebhookAttempts::default()
    };
    let server = Guarded::changed(|builder| {
        let builder = builder.authentication(Authentication::with_api_keys());
        builder.allow_webhook_host(host).webhook_attempts(attempts)
    });
    let server = server.await;
    let [alice, bob] = of_two(&server).await;
    let admin = server.key("acme", &Permission::ALL).await;
    let list = async |key: &str, query: &str| {
        let path = format!("/superstep/deliveries{query}");
        server.client.call_as(key, "GET", &path, None).await.ok()
    };
    let until = async |status: &str| {
        let query = format!("?status={status}");
        for _ in 0..1_000 {
            let found = list(&alice, &query).await;
            if found != json!([]) {
                return found[0].clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("there is no delivery that is {status}");
    };
    let body = json!({ "assistant_id": "chat", "input": {}, "webhook": receiver.url() });
    let run = json!({ "assistant_id": "chat", "input": {} });
    let thread = server
        .client
        .call_as(&alice, "POST", "/threads", Some(json!({})));
    let runs = format!(
        "/threads/{}/runs",
        thread.await.ok()["thread_id"].as_str().unwrap()
    );
    // One run without a delivery, before and after it.
    for body in [&run, &body, &run] {
        let sent = server
            .client
            .call_as(&alice, "POST", &runs, Some(body.clone()));
        sent.await.ok();
    }
    let delivery = until("dead").await;
    let of_run = format!("?run_id={}", delivery["run_id"].as_str().unwrap());
    for query in ["", "?limit=1", of_run.as_str()] {
        assert_eq!(list(&alice, query).await, json!([delivery]), "{query}");
        assert_eq!(list(&admin, query).await, json!([delivery]), "{query}");
        assert_eq!(list(&bob, query).await, json!([]), "{query}");
    }
    assert_eq!(list(&alice, "?offset=1").await, json!([]));
    let path = format!(
        "/superstep/deliveries/{}/repeat",
        delivery["delivery_id"].as_str().unwrap()
    );
    let repeated = async |key: &str| server.client.call_as(key, "POST", &path, None).await.status;
    assert_eq!(repeated(&bob).await, StatusCode::NOT_FOUND);
    assert_eq!(until("dead").await, delivery);
    assert_eq!(repeated(&alice).await, StatusCode::OK);
    until("delivered").await;
}

#[tokio::test]
async fn budgets_belong_to_the_owner_of_their_thread() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let server = Guarded::changed(|builder| {
        let builder = builder.authentication(Authentication::with_api_keys());
        builder.store(store.clone())
    });
    let server = server.await;
    let [alice, bob] = of_two(&server).await;
    let call = async |key: &str, method: &str, path: &str, body: Json| {
        let sent = server.client.call_as(key, method, path, Some(body));
        sent.await
    };
    let mut threads = Vec::new();
    for key in [&alice, &bob] {
        let thread = call(key, "POST", "/threads", json!({})).await.ok();
        let name = thread["thread_id"].as_str().unwrap().to_owned();
        let id = ThreadId::of_tenant("acme", &name).unwrap();
        let budgets = Budgets::new(store.clone())
            .within(Scope::thread(&id), Limits::NONE)
            .within(Scope::tenant(&id), Limits::NONE);
        let spent = Amounts::of(Meter::Tokens, 500);
        let call = CallKey::new("call").unwrap();
        budgets.reserve(&call, &spent, Timestamp(1)).await.unwrap();
        threads.push(name);
    }
    let shown = call(&alice, "GET", "/superstep/budgets", Json::Null)
        .await
        .ok();
    assert_eq!(shown.as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown[0]["thread_id"], threads[0].as_str());
    let second = call(&alice, "GET", "/superstep/budgets?offset=1", Json::Null).await;
    assert_eq!(second.ok(), json!([]));
    let raise = async |thread: &str, level: &str| {
        let body = json!({ "level": level, "thread_id": thread, "limits": { "tokens": 900 } });
        call(&alice, "POST", "/superstep/budgets/raise", body)
            .await
            .status
    };
    assert_eq!(raise(&threads[0], "thread").await, StatusCode::OK);
    assert_eq!(raise(&threads[1], "thread").await, StatusCode::NOT_FOUND);
    assert_eq!(raise(&threads[0], "tenant").await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_search_for_own_budgets_ends_and_says_so() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let server = Guarded::changed(|builder| {
        let builder = builder.authentication(Authentication::with_api_keys());
        builder.store(store.clone())
    });
    let server = server.await;
    let alice = restricted(&server, "alice").await;
    let thread = server
        .client
        .call_as(&alice, "POST", "/threads", Some(json!({})));
    let thread = thread.await.ok()["thread_id"].clone();
    let put = async |key: String, at: i64| {
        let put = PutItem {
            namespace: Namespace::new(["superstep", "budgets", "acme", "thread"]).unwrap(),
            key,
            value: json!({ "spent": { "tokens": 1 } }),
            ttl: None,
        };
        store.put(&put, Timestamp(at)).await.unwrap();
    };
    let list = async || {
        let listed = server
            .client
            .call_as(&alice, "GET", "/superstep/budgets", None);
        let listed = listed.await;
        let is_incomplete = listed.header("x-superstep-incomplete").is_some();
        (listed.ok().as_array().unwrap().len(), is_incomplete)
    };
    put(thread.as_str().unwrap().to_owned(), 1).await;
    assert_eq!(list().await, (1, false));
    for number in 0..10_000 {
        put(format!("other-{number}"), 2).await;
    }
    assert_eq!(list().await, (0, true));
}

#[derive(Clone, Debug, Default, State)]
struct Hanging {
    ended: bool,
}

async fn hang(_: View<Hanging>, _: NodeCx) -> Result<HangingUpdate, NodeError> {
    std::future::pending().await
}

/// Others run more threads than a page of a list has.
#[tokio::test]
async fn own_threads_that_run_are_found_behind_many_of_others() {
    const MANY: usize = 1_001;
    let graph = Graph::builder("hanging")
        .node("hang", hang)
        .edge(START, "hang")
        .edge("hang", END)
        .build()
        .unwrap();
    let runtime = Runtime::builder(Memory::default()).concurrent_tasks(2 * MANY);
    let runtime = runtime.build();
    let server = Guarded::on(runtime.clone(), |builder| {
        let builder = builder.authentication(Authentication::with_api_keys());
        builder.graph(graph.definition())
    });
    let server = server.await;
    let alice = restricted(&server, "alice").await;
    let mut running = JoinSet::new();
    let mut start = async |name: String, owner: &str| {
        let id = ThreadId::of_tenant("acme", &name).unwrap();
        let new = NewThread {
            metadata: [("owner".to_owned(), owner.into())].into(),
            at: runtime.now(),
            ..NewThread::default()
        };
        assert!(runtime.create_thread(&id, &new).await.unwrap());
        let (driver, graph) = (runtime.driver().clone(), graph.definition().clone());
        running.spawn(async move {
            let request = ThreadRequest::Start {
                input: superstep::Value::encode(&HangingUpdate::default()).unwrap(),
                context: None,
                metadata: None,
            };
            let options = RunOptions::default();
            let _ = driver.execute(&id, &graph, request, &options).await;
        });
    };
    let all = ThreadQuery {
        tenant: "acme".to_owned(),
        statuses: vec![Status::Running],
        ..ThreadQuery::default()
    };
    let until = async |count: u64| {
        while runtime.count_threads(&all).await.unwrap() < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    start("0190a6b2-0000-7000-8000-00000000000a".to_owned(), "alice").await;
    until(1).await;
    // So that the others changed later.
    tokio::time::sleep(Duration::from_millis(5)).await;
    for number in 0..MANY {
        start(format!("other-{number}"), "bob").await;
    }
    until(MANY as u64 + 1).await;
    let busy = json!({ "status": "busy" });
    let found = server
        .client
        .call_as(&alice, "POST", "/threads/search", Some(busy));
    let found = found.await.ok();
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
}

/// An admin of a tenant that has not used the graph yet.
#[tokio::test]
async fn the_id_of_a_default_assistant_is_taken_before_its_first_use() {
    let server = Guarded::new().await;
    let (first, other) = (
        server.key("acme", &Permission::ALL).await,
        server.key("other", &Permission::ALL).await,
    );
    let default = server
        .client
        .call_as(&other, "GET", "/assistants/broken", None);
    let id = default.await.ok()["assistant_id"].clone();
    let body = json!({ "graph_id": "chat", "assistant_id": id, "name": "mine" });
    let created = server
        .client
        .call_as(&first, "POST", "/assistants", Some(body))
        .await;
    assert_eq!(created.status, StatusCode::CONFLICT);
    let found = server
        .client
        .call_as(&first, "GET", "/assistants/broken", None)
        .await;
    assert_eq!(found.ok()["graph_id"], "broken");
}

#[tokio::test]
async fn a_task_of_another_owner_is_like_one_that_does_not_exist() {
    let server = Guarded::new().await;
    let [alice, bob] = of_two(&server).await;
    let call = async |key: &str, method: &str, params: Json| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let sent = server
            .client
            .call_as(key, "POST", "/a2a/chat", Some(body))
            .await;
        sent.ok()
    };
    let message =
        json!({ "role": "user", "messageId": "1", "parts": [{ "kind": "text", "text": "hello" }] });
    let sent = call(&alice, "message/send", json!({ "message": message })).await;
    let task = &sent["result"];
    assert_eq!(task["status"]["state"], "completed", "{sent}");
    let missing = ["0190a6b2-0000-7000-8000-00000000dead"; 2].join(":");
    for method in [
        "tasks/get",
        "GetTask",
        "tasks/cancel",
        "tasks/resubscribe",
        "SubscribeToTask",
    ] {
        let found = call(&alice, method, json!({ "id": task["id"] })).await;
        assert_ne!(found["error"]["code"], -32001, "{method}");
        let hidden = call(&bob, method, json!({ "id": task["id"] })).await;
        let absent = call(&bob, method, json!({ "id": missing })).await;
        assert_eq!(hidden["error"]["code"], -32001, "{method}");
        assert_eq!(hidden, absent, "{method}");
    }
    let all = async |key: &str, params: Json| {
        let listed = call(key, "tasks/list", params).await;
        listed["result"]["tasks"].as_array().unwrap().len()
    };
    for params in [json!({}), json!({ "contextId": task["contextId"] })] {
        assert_eq!(all(&alice, params.clone()).await, 1, "{params}");
        assert_eq!(all(&bob, params.clone()).await, 0, "{params}");
    }
}

/// Whether the task works or waits: an input on a waiting thread, which needs `run`, closes its interrupts, too.
#[tokio::test]
async fn a_task_that_waits_is_cancelled_with_the_permission_to_cancel_runs() {
    let server = Guarded::new().await;
    let runner = server.key("acme", &[Permission::Run]).await;
    let others = Permission::ALL.into_iter();
    let others: Vec<Permission> = others.filter(|other| *other != Permission::Run).collect();
    let no_runner = server.key("acme", &others).await;
    let call = async |key: &str, method: &str, params: Json| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let sent = server
            .client
            .call_as(key, "POST", "/a2a/ask", Some(body))
            .await;
        sent.json
    };
    let message =
        json!({ "role": "user", "messageId": "1", "parts": [{ "kind": "text", "text": "hello" }] });
    let sent = call(&runner, "message/send", json!({ "message": message })).await;
    let task = &sent["result"];
    assert_eq!(task["status"]["state"], "input-required", "{sent}");
    let named = json!({ "id": task["id"] });
    let refused = call(&no_runner, "tasks/cancel", named.clone()).await;
    assert!(refused["error"].is_object(), "{refused}");
    let cancelled = call(&runner, "tasks/cancel", named).await;
    assert_eq!(
        cancelled["result"]["status"]["state"], "canceled",
        "{cancelled}"
    );
}

#[tokio::test]
async fn the_audit_log_is_not_for_callers_who_reach_only_their_own() {
    let server = Guarded::changed(|builder| {
        let builder = builder.authentication(Authentication::with_api_keys());
        builder.audit(None)
    });
    let server = server.await;
    let alice = restricted(&server, "alice").await;
    let admin = server.key("acme", &Permission::ALL).await;
    let read = async |key: &str| {
        let read = server.client.call_as(key, "GET", "/superstep/audit", None);
        read.await.status
    };
    assert_eq!(read(&alice).await, StatusCode::FORBIDDEN);
    assert_eq!(read(&admin).await, StatusCode::OK);
}
