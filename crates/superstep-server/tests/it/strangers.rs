//! What a caller has created, and strangers that know its ids: another user of the same tenant, and another tenant. Both have every
//! permission.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::store::{MemoryStore, Store};
use superstep::{ThreadId, Timestamp};
use superstep_agent::budget::{Amounts, Budgets, CallKey, Limits, Meter, Scope};
use superstep_server::{ApiKeyRequest, Authentication, Permission, ServerBuilder};

use crate::authorisation::{Guarded, operations, request};
use crate::kit::{Reply, request_as};
use crate::receiver::{Reaction, Receiver};

/// Ids by the name of the parameter that they are for.
type Ids = BTreeMap<&'static str, String>;

/// The part of the matrix of credentials that is about other users and other tenants.
#[tokio::test]
async fn every_route_hides_what_a_caller_created_from_strangers() {
    let receiver = Receiver::start([Reaction::status("200 OK")]).await;
    let (server, keys) = guarded(&receiver, |builder| builder).await;
    let Keys {
        owner,
        admin,
        strangers,
    } = keys;
    let ids = create_everything(&server, &owner, &admin, &receiver.url()).await;
    let missing: Ids = ids.keys().map(|name| (*name, missing(name))).collect();

    let mut operations = operations(&server.client).await;
    operations.retain(|(_, path)| path.contains('{') && !CREATE.contains(&path.as_str()));
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
            // A2A answers 200 with an error inside.
            let is_refused = hidden.status.is_client_error() || hidden.json["error"].is_object();
            assert!(is_refused, "{shown}: {}", hidden.status);
            // The words of a 404 differ: some routes name the thread, and others what they look for on it.
            // Restricted callers get 403 for a key of their tenant, and 404 for what is no key.
            if !template.contains("{key_id}") {
                assert_eq!(hidden.status, absent.status, "{shown}");
            }
            refused.push((hidden.status, hidden.bytes));
        }
        // The same request is another matter for the owner, so it was not refused for what it says.
        let found = ask(owner, &ids).await;
        let found = (found.status, found.bytes);
        let text = String::from_utf8_lossy(&found.1);
        assert!(!refused.contains(&found), "{method} {template}: {text}");
    }
}

/// The keys of those who call a server.
struct Keys {
    owner: String,
    /// Of the owner's tenant.
    admin: String,
    /// What each of them is, and its key.
    strangers: [(&'static str, String); 2],
}

/// Starts a server that delivers webhooks to a receiver.
async fn guarded(
    receiver: &Receiver,
    change: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> (Guarded, Keys) {
    let host = format!("127.0.0.1:{}", receiver.port()).parse().unwrap();
    let server = Guarded::changed(|builder| {
        let builder = builder.authentication(Authentication::with_api_keys());
        change(builder.allow_webhook_host(host))
    });
    let server = server.await;
    let user = async |name: &str| {
        let request = ApiKeyRequest {
            is_restricted: true,
            ..request("acme", name, &Permission::ALL)
        };
        server.key_of(request).await
    };
    let keys = Keys {
        owner: user("alice").await,
        admin: server.key("acme", &Permission::ALL).await,
        strangers: [
            ("another user", user("bob").await),
            (
                "another tenant",
                server.key("other", &Permission::ALL).await,
            ),
        ],
    };
    (server, keys)
}

/// These create a thread that does not exist, for the caller. `owners.rs` has them.
const CREATE: [&str; 2] = [
    "/threads/{thread_id}/stream/events",
    "/threads/{thread_id}/commands",
];

/// A text in what the owner creates.
const MARK: &str = "mark-of-the-owner";

/// Creates something of each kind that a path can name.
async fn create_everything(server: &Guarded, owner: &str, admin: &str, webhook: &str) -> Ids {
    let call = async |key: &str, method: &str, path: &str, body: Json| {
        let sent = server.client.call_as(key, method, path, Some(body));
        sent.await.ok()
    };
    let text = |json: &Json, name: &str| json[name].as_str().unwrap().to_owned();
    let metadata = json!({ "mark": MARK });
    let thread = call(owner, "POST", "/threads", json!({ "metadata": metadata })).await;
    let thread = text(&thread, "thread_id");
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
    let assistant = json!({ "graph_id": "chat", "name": MARK, "metadata": metadata });
    let assistant = call(owner, "POST", "/assistants", assistant).await;
    let cron = json!({
        "assistant_id": "chat", "schedule": "0 0 1 1 *", "input": {}, "metadata": metadata,
    });
    let cron = call(owner, "POST", &format!("{runs}/crons"), cron).await;
    let key = json!({ "name": "ci", "permissions": ["read"] });
    let key = call(admin, "POST", "/superstep/keys", key).await;
    let mut deliveries = json!([]);
    while deliveries == json!([]) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let delivered = "/superstep/deliveries?status=delivered";
        deliveries = call(owner, "GET", delivered, Json::Null).await;
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
        "key_id" => id.replace('-', ""),
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

/// Routes whose paths have no parameters: lists, searches, batches, and the protocols.
#[tokio::test]
async fn routes_that_name_nothing_show_and_change_nothing_for_strangers() {
    let receiver = Receiver::start([Reaction::status("200 OK")]).await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let change = |builder: ServerBuilder| builder.store(store.clone()).audit(None);
    let (server, keys) = guarded(&receiver, change).await;
    let mut ids = create_everything(&server, &keys.owner, &keys.admin, &receiver.url()).await;
    create_what_lists_show(&server, &keys.owner, &store, &mut ids).await;
    // What no reply to a stranger may have, unless the stranger has said it.
    let own: Vec<&str> = ids
        .iter()
        .filter(|(name, _)| **name != "checkpoint_id")
        .flat_map(|(_, id)| id.split(':'))
        .chain([MARK, VALUE])
        .collect();
    let mut calls: Vec<Call> = Vec::new();
    for (method, path) in operations(&server.client).await {
        if !path.contains('{') {
            calls.extend(calls_of(&method, &path, &ids));
        }
    }
    calls.extend(protocol_calls(&ids));
    // Those that name what the owner has come last: until then, strangers know of nothing.
    let names_own = |call: &Call| own.iter().any(|text| call.text().contains(text));
    calls.sort_by_key(names_own);
    let unnamed = calls.iter().filter(|&call| !names_own(call)).count();
    assert!(unnamed > 30 && calls.len() > unnamed + 20, "{unnamed}");

    let ask = async |key: &str, call: &Call| {
        let body = (call.method != "GET").then(|| call.body.clone());
        let request = request_as(key, &call.method, &call.target, body);
        let pause = Duration::from_millis(50);
        server.client.send_briefly(request, pause).await
    };
    let before = things_of(&server, &keys.owner).await;
    for (kind, key) in &keys.strangers {
        let mut said = String::new();
        for call in &calls {
            said.push_str(&call.text());
            let reply = ask(key, call).await;
            let shown = shown(&reply);
            let call = call.text();
            assert!(
                !reply.status.is_server_error(),
                "{call}, {kind}: {}",
                reply.status
            );
            for text in &own {
                let is_hidden = said.contains(text) || !shown.contains(text);
                assert!(is_hidden, "{call} shows {text} to {kind}: {shown}");
            }
            if call.contains("/count ") {
                assert_eq!(reply.json, 0, "{call}, {kind}");
            }
        }
    }
    assert_eq!(things_of(&server, &keys.owner).await, before);

    // The owner sees all of it at the same routes.
    for path in LISTS {
        let mut is_shown = false;
        for call in calls.iter().filter(|call| call.path() == path) {
            let shown = shown(&ask(&keys.owner, call).await);
            let sent = call.text();
            is_shown |= own
                .iter()
                .any(|text| shown.contains(text) && !sent.contains(text));
        }
        assert!(is_shown, "{path} does not show its owner anything");
    }
    for call in calls.iter().filter(|call| call.path().ends_with("/count")) {
        let counted = ask(&keys.owner, call).await.json;
        assert!(counted.as_u64() > Some(0), "{}: {counted}", call.text());
    }
}

/// A request to a route.
struct Call {
    method: String,
    target: String,
    body: Json,
}

impl Call {
    fn new(method: &str, target: impl Into<String>, body: Json) -> Self {
        Self {
            method: method.to_owned(),
            target: target.into(),
            body,
        }
    }

    fn text(&self) -> String {
        format!("{} {} {}", self.method, self.target, self.body)
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// Returns all that a reply shows.
fn shown(reply: &Reply) -> String {
    let text = String::from_utf8_lossy(&reply.bytes);
    format!("{:?} {text}", reply.headers)
}

/// Where callers see what they have without naming it.
const LISTS: [&str; 13] = [
    "/.well-known/agent-card.json",
    "/assistants/search",
    "/mcp",
    "/mcp/",
    "/runs/crons/search",
    "/store/items/search",
    "/store/namespaces",
    "/superstep/budgets",
    "/superstep/deliveries",
    "/superstep/inbox",
    "/superstep/queue",
    "/threads/search",
    // Last: some of its calls change something.
    "/a2a/chat",
];

/// The value of an item of the owner.
const VALUE: &str = "value-of-the-owner";

/// Creates what only lists show: a thread that waits, one that runs, a task of A2A, an item and a budget.
async fn create_what_lists_show(
    server: &Guarded,
    owner: &str,
    store: &Arc<dyn Store>,
    ids: &mut Ids,
) {
    let call = async |method: &str, path: &str, body: Json| {
        let sent = server.client.call_as(owner, method, path, Some(body));
        sent.await.ok()
    };
    let thread = async || {
        let created = call("POST", "/threads", json!({ "metadata": { "mark": MARK } })).await;
        created["thread_id"].as_str().unwrap().to_owned()
    };
    let (waiting, busy) = (thread().await, thread().await);
    let run = json!({ "assistant_id": "ask", "input": {} });
    call("POST", &format!("/threads/{waiting}/runs/wait"), run).await;
    let run = json!({ "assistant_id": "slow", "input": {} });
    let run = call("POST", &format!("/threads/{busy}/runs"), run).await;
    let run = run["run_id"].as_str().unwrap().to_owned();
    let path = format!("/threads/{busy}/runs/{run}");
    while call("GET", &path, Json::Null).await["status"] != "running" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let sent = rpc("message/send", json!({ "message": message(None, None) }));
    let task = call("POST", "/a2a/chat", sent).await["result"].clone();
    let item = json!({ "namespace": ["alice", MARK], "key": "k", "value": { "v": VALUE } });
    call("PUT", "/store/items", item).await;
    let budget = ThreadId::of_tenant("acme", &ids["thread_id"]).unwrap();
    let budgets = Budgets::new(store.clone()).within(Scope::thread(&budget), Limits::NONE);
    let spent = Amounts::of(Meter::Tokens, 500);
    let key = CallKey::new("call").unwrap();
    budgets.reserve(&key, &spent, Timestamp(1)).await.unwrap();
    ids.extend([
        ("busy", busy),
        ("busy_run", run),
        ("task", task["id"].as_str().unwrap().to_owned()),
        ("waiting", waiting),
    ]);
}

/// Returns what the owner has, with what is in it.
async fn things_of(server: &Guarded, owner: &str) -> Vec<Json> {
    let all = json!({ "limit": 1_000 });
    let mut things = Vec::new();
    for (method, path) in [
        ("POST", "/threads/search"),
        ("POST", "/assistants/search"),
        ("POST", "/runs/crons/search"),
        ("POST", "/store/items/search"),
        ("GET", "/superstep/deliveries?limit=1000"),
        ("GET", "/superstep/budgets?limit=1000"),
    ] {
        let listed = server
            .client
            .call_as(owner, method, path, Some(all.clone()));
        things.push(listed.await.ok());
    }
    let threads = things[0].as_array().unwrap().clone();
    assert_eq!(threads.len(), 4, "{threads:?}");
    for thread in threads {
        let path = format!("/threads/{}", thread["thread_id"].as_str().unwrap());
        for below in ["state", "runs", "history"] {
            let path = format!("{path}/{below}");
            let shown = server.client.call_as(owner, "GET", &path, None);
            things.push(shown.await.ok());
        }
    }
    things
}

fn rpc(method: &str, params: Json) -> Json {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn message(context: Option<&str>, task: Option<&str>) -> Json {
    json!({
        "messageId": "1", "role": "user", "kind": "message", "contextId": context, "taskId": task,
        "parts": [{ "kind": "text", "text": "hello" }],
    })
}

/// Returns calls of a route without parameters in its path: such that name nothing of the owner, and such that do.
fn calls_of(method: &str, path: &str, ids: &Ids) -> Vec<Call> {
    let (thread, waiting) = (&ids["thread_id"], &ids["waiting"]);
    let (assistant, run) = (&ids["assistant_id"], &ids["run_id"]);
    let (busy, busy_run) = (&ids["busy"], &ids["busy_run"]);
    let marked = json!({ "metadata": { "mark": MARK } });
    let start = |assistant: &str| json!({ "assistant_id": assistant, "input": {} });
    let bodies = match (method, path) {
        ("GET", path) => {
            let queries = match path {
                "/store/items" => vec![format!("?namespace=alice.{MARK}&key=k")],
                "/.well-known/agent-card.json" => {
                    vec![String::new(), format!("?assistant_id={assistant}")]
                }
                "/superstep/deliveries" => {
                    vec!["?limit=1000".to_owned(), format!("?run_id={run}")]
                }
                "/superstep/inbox" => vec![
                    String::new(),
                    "?graph_id=ask".to_owned(),
                    format!("?assistant_id={assistant}"),
                ],
                _ => vec![String::new()],
            };
            let calls = queries.into_iter().map(|query| format!("{path}{query}"));
            return calls
                .map(|target| Call::new("GET", target, Json::Null))
                .collect();
        }
        ("POST", "/assistants") => vec![
            json!({ "graph_id": "chat" }),
            json!({ "graph_id": "chat", "assistant_id": assistant, "if_exists": "do_nothing" }),
        ],
        ("POST", "/assistants/search" | "/runs/crons/search") => {
            vec![json!({ "limit": 1_000 }), marked]
        }
        ("POST", "/assistants/count" | "/runs/crons/count") => vec![marked],
        ("POST", "/threads") => vec![
            json!({}),
            json!({ "thread_id": thread, "if_exists": "do_nothing" }),
        ],
        ("POST", "/threads/search") => vec![
            json!({ "limit": 1_000 }),
            json!({ "status": "interrupted" }),
            json!({ "status": "busy" }),
            json!({ "ids": [thread, waiting, busy] }),
            marked,
        ],
        ("POST", "/threads/count") => vec![marked, json!({ "ids": [waiting] })],
        ("POST", "/threads/prune") => vec![
            json!({ "thread_ids": [thread, waiting] }),
            json!({ "thread_ids": [thread, waiting], "strategy": "keep_latest" }),
        ],
        ("POST", "/runs/crons") => {
            let mut bodies = vec![start("chat"), start(assistant)];
            for body in &mut bodies {
                body["schedule"] = "0 0 1 1 *".into();
            }
            bodies
        }
        ("POST", "/runs" | "/runs/stream" | "/runs/wait") => {
            vec![start("chat"), start(assistant)]
        }
        ("POST", "/runs/batch") => vec![json!([start("chat")]), json!([start(assistant)])],
        ("POST", "/runs/cancel") => vec![
            json!({ "status": "all" }),
            json!({ "thread_id": busy, "run_ids": [busy_run] }),
        ],
        ("PUT", "/store/items") => vec![
            json!({ "namespace": ["alice", "notes"], "key": "k", "value": { "v": "theirs" } }),
            json!({ "namespace": ["alice", MARK], "key": "k", "value": { "v": "theirs" } }),
        ],
        ("DELETE", "/store/items") => vec![json!({ "namespace": ["alice", MARK], "key": "k" })],
        ("POST", "/store/items/search") => vec![
            json!({ "limit": 1_000 }),
            json!({ "namespace_prefix": ["alice"] }),
            json!({ "filter": { "v": VALUE } }),
        ],
        ("POST", "/store/namespaces") => vec![json!({}), json!({ "prefix": ["alice"] })],
        ("POST", "/superstep/keys") => vec![json!({ "permissions": ["read"] })],
        ("POST", "/superstep/budgets/raise") => vec![
            json!({ "level": "tenant", "limits": { "tokens": 900 } }),
            json!({ "level": "thread", "thread_id": thread, "limits": { "tokens": 900 } }),
        ],
        ("POST", "/mcp" | "/mcp/") => {
            let tool = format!("x_{}", assistant.replace('-', ""));
            vec![
                rpc("tools/list", json!({})),
                rpc("tools/call", json!({ "name": "chat", "arguments": {} })),
                rpc("tools/call", json!({ "name": tool, "arguments": {} })),
            ]
        }
        ("DELETE", "/mcp" | "/mcp/") => vec![json!({})],
        _ => panic!("say here what {method} {path} is called with"),
    };
    let calls = bodies.into_iter();
    calls.map(|body| Call::new(method, path, body)).collect()
}

/// Returns calls whose bodies name what the owner has, to agents that everyone reaches.
fn protocol_calls(ids: &Ids) -> Vec<Call> {
    let (thread, waiting, task) = (&ids["thread_id"], &ids["waiting"], &ids["task"]);
    let said = |message: Json| json!({ "message": message });
    let agent = [
        ("tasks/list", json!({})),
        (
            "ListTasks",
            json!({ "includeArtifacts": true, "historyLength": 10 }),
        ),
        ("tasks/list", json!({ "contextId": thread })),
        ("tasks/get", json!({ "id": task, "historyLength": 10 })),
        ("GetTask", json!({ "id": task })),
        ("tasks/cancel", json!({ "id": task })),
        ("tasks/resubscribe", json!({ "id": task })),
        ("message/send", said(message(None, None))),
        ("message/send", said(message(None, Some(task)))),
        ("message/send", said(message(Some(waiting), None))),
        ("message/stream", said(message(Some(thread), None))),
    ];
    let agent = agent.map(|(method, params)| Call::new("POST", "/a2a/chat", rpc(method, params)));
    let page = [
        json!([]),
        json!([{ "interruptId": "0", "status": "cancelled" }]),
    ];
    let page = page.map(|resume| {
        let input = json!({
            "threadId": waiting, "runId": "1", "messages": [], "state": {}, "resume": resume,
        });
        Call::new("POST", "/ag-ui/ask", input)
    });
    agent.into_iter().chain(page).collect()
}
