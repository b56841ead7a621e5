//! What a caller has created, and strangers that know its ids: another user of the same tenant, and another tenant. Both have every
//! permission.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep_server::{ApiKeyRequest, Authentication, Permission};

use crate::authorisation::{Guarded, operations, request};
use crate::kit::{Reply, request_as};
use crate::receiver::{Reaction, Receiver};

/// Ids by the name of the parameter that they are for.
type Ids = BTreeMap<&'static str, String>;

/// The part of the matrix of credentials that is about other users and other tenants.
#[tokio::test]
async fn every_route_hides_what_a_caller_created_from_strangers() {
    let receiver = Receiver::start([Reaction::status("200 OK")]).await;
    let host = format!("127.0.0.1:{}", receiver.port()).parse().unwrap();
    let server = Guarded::changed(|builder| {
        let builder = builder.authentication(Authentication::with_api_keys());
        builder.allow_webhook_host(host)
    });
    let server = server.await;
    let user = async |name: &str| {
        let request = ApiKeyRequest {
            is_restricted: true,
            ..request("acme", name, &Permission::ALL)
        };
        server.key_of(request).await
    };
    let owner = user("alice").await;
    let admin = server.key("acme", &Permission::ALL).await;
    let strangers = [
        ("another user", user("bob").await),
        (
            "another tenant",
            server.key("other", &Permission::ALL).await,
        ),
    ];
    let ids = create_everything(&server, &owner, &admin, &receiver.url()).await;
    let missing: Ids = ids.keys().map(|name| (*name, missing(name))).collect();

    let mut operations = operations(&server.client).await;
    operations.retain(|(_, path)| path.contains('{'));
    // What deletes comes last, and what is inside of a thread before the thread.
    operations.sort_by_key(|(method, path)| (method == "DELETE", usize::MAX - path.len()));
    assert!(operations.len() > 40, "{}", operations.len());
    for (method, template) in operations {
        let ask = async |key: &str, ids: &Ids| {
            let body = (method != "GET").then(|| body(&template));
            let request = request_as(key, &method, &filled(&template, ids), body);
            let pause = Duration::from_millis(50);
            server.client.send_briefly(request, pause).await
        };
        // Restricted callers manage no keys.
        let owner = if template.contains("{key_id}") {
            &admin
        } else {
            &owner
        };
        let mut refused = Vec::new();
        for (kind, key) in &strangers {
            let shown = format!("{method} {template}, {kind}");
            let hidden = ask(key, &ids).await;
            let absent = ask(key, &missing).await;
            assert!(
                hidden.status.is_client_error(),
                "{shown}: {}",
                hidden.status
            );
            assert_eq!(hidden.status, absent.status, "{shown}");
            assert_eq!(
                without(&hidden, &ids),
                without(&absent, &missing),
                "{shown}"
            );
            refused.push((hidden.status, hidden.bytes));
        }
        // The same request is another matter for the owner, so it was not refused for what it says.
        if (method.as_str(), template.as_str()) != NEEDS_UPGRADE {
            let found = ask(owner, &ids).await;
            let found = (found.status, found.bytes);
            let text = String::from_utf8_lossy(&found.1);
            assert!(!refused.contains(&found), "{method} {template}: {text}");
        }
    }
}

/// The WebSocket, which no request here opens.
const NEEDS_UPGRADE: (&str, &str) = ("GET", "/threads/{thread_id}/stream/events");

/// Creates something of each kind that a path can name.
async fn create_everything(server: &Guarded, owner: &str, admin: &str, webhook: &str) -> Ids {
    let call = async |key: &str, method: &str, path: &str, body: Json| {
        let sent = server.client.call_as(key, method, path, Some(body));
        sent.await.ok()
    };
    let text = |json: &Json, name: &str| json[name].as_str().unwrap().to_owned();
    let thread = text(
        &call(owner, "POST", "/threads", json!({})).await,
        "thread_id",
    );
    let runs = format!("/threads/{thread}/runs");
    let run = json!({ "assistant_id": "chat", "input": {}, "webhook": webhook });
    let run = text(&call(owner, "POST", &runs, run).await, "run_id");
    call(owner, "GET", &format!("{runs}/{run}/join"), Json::Null).await;
    let state = call(
        owner,
        "GET",
        &format!("/threads/{thread}/state"),
        Json::Null,
    )
    .await;
    let assistant = call(owner, "POST", "/assistants", json!({ "graph_id": "chat" })).await;
    let cron = json!({ "assistant_id": "chat", "schedule": "0 0 1 1 *", "input": {} });
    let cron = call(owner, "POST", &format!("{runs}/crons"), cron).await;
    let key = json!({ "name": "ci", "permissions": ["read"] });
    let key = call(admin, "POST", "/superstep/keys", key).await;
    let mut deliveries = json!([]);
    while deliveries == json!([]) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        deliveries = call(owner, "GET", "/superstep/deliveries", Json::Null).await;
    }
    Ids::from([
        ("assistant_id", text(&assistant, "assistant_id")),
        ("checkpoint_id", text(&state["checkpoint"], "checkpoint_id")),
        ("cron_id", text(&cron, "cron_id")),
        ("delivery_id", text(&deliveries[0], "delivery_id")),
        ("key_id", text(&key, "key_id")),
        ("run_id", run),
        ("thread_id", thread),
    ])
}

/// Returns an id of something that does not exist.
fn missing(name: &str) -> String {
    let id = "0190a6b2-0000-7000-8000-00000000dead";
    match name {
        "key_id" | "delivery_id" => id.replace('-', ""),
        _ => id.to_owned(),
    }
}

fn filled(template: &str, ids: &Ids) -> String {
    let parts = template.split('/').map(|part| {
        let name = part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'));
        match name {
            Some("path") => "a.txt",
            Some("namespace") => "chat",
            Some(name) => &ids[name],
            None => part,
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// A body that the owner may send.
fn body(template: &str) -> Json {
    let message = json!({
        "messageId": "1", "role": "user", "kind": "message", "parts": [{ "kind": "text", "text": "hello" }],
    });
    match template {
        "/a2a/{assistant_id}" => json!({
            "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": message },
        }),
        "/ag-ui/{assistant_id}" => json!({
            "threadId": missing("thread_id"), "runId": "1", "state": {}, "tools": [], "context": [],
            "messages": [{ "id": "1", "role": "user", "content": "hello" }], "forwardedProps": {},
        }),
        "/assistants/{assistant_id}/latest" => json!({ "version": 1 }),
        "/threads/{thread_id}/commands" => json!({ "id": 1, "method": "state.get", "params": {} }),
        "/threads/{thread_id}/stream/events" => json!({ "channels": ["values"] }),
        "/threads/{thread_id}/state" => json!({ "values": { "topic": "hello" } }),
        "/threads/{thread_id}/state/checkpoint" => json!({ "checkpoint": { "checkpoint_ns": "" } }),
        path if path.contains("/runs/crons") => {
            json!({ "assistant_id": "chat", "schedule": "0 0 1 1 *", "input": {} })
        }
        path if path.contains("/runs") => json!({ "assistant_id": "chat", "input": {} }),
        _ => json!({}),
    }
}

/// Returns what a reply says, without the ids of its request.
fn without(reply: &Reply, ids: &Ids) -> String {
    let text = String::from_utf8_lossy(&reply.bytes).into_owned();
    let named = ids.iter();
    named.fold(text, |text, (name, id)| text.replace(id, name))
}
