//! Callers that reach only what they created.

use http::StatusCode;
use serde_json::{Value as Json, json};
use superstep_server::{ApiKeyRequest, Permission};

use crate::authorisation::{Guarded, request};

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
