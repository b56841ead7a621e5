//! Who may do what: every route of the OpenAPI document with every kind of credentials, and the API keys themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value as Json, json};
use superstep::Timestamp;
use superstep::prelude::*;
use superstep::registry::{MemoryRegistry, Registry};
use superstep_server::{ApiKeyRequest, Authentication, Permission, ServerBuilder};
use tower::ServiceExt as _;

use crate::kit::{Client, request_as};

/// A server that accepts API keys, with its registry.
pub(crate) struct Guarded {
    pub(crate) client: Client,
    registry: MemoryRegistry,
}

impl Guarded {
    pub(crate) async fn new() -> Self {
        Self::with(Authentication::with_api_keys()).await
    }

    pub(crate) async fn with(authentication: Authentication) -> Self {
        let change = |builder: ServerBuilder| builder.authentication(authentication);
        Self::changed(change).await
    }

    /// A server with other settings.
    pub(crate) async fn changed(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        Self::on(Runtime::new(Memory::default()), change).await
    }

    /// A server with other settings over a runtime of the test's.
    pub(crate) async fn on(
        runtime: Runtime,
        change: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let registry = MemoryRegistry::new();
        let builder = Client::builder(runtime, &registry);
        let client = Client::of(change(builder)).await;
        Self { client, registry }
    }

    /// Stores a key and returns its text.
    pub(crate) async fn key(&self, tenant: &str, permissions: &[Permission]) -> String {
        let principal = format!("{tenant}-program");
        self.key_of(request(tenant, &principal, permissions)).await
    }

    pub(crate) async fn key_of(&self, request: ApiKeyRequest) -> String {
        let issued = request.issue(now()).unwrap();
        assert!(self.registry.create_api_key(&issued.key).await.unwrap());
        issued.text
    }

    /// Returns the status of a reply, without waiting for its body: streams do not end.
    async fn status(&self, credentials: &str, operation: &Operation) -> StatusCode {
        let request = operation.request(credentials, &operation.path);
        self.status_of(request).await
    }

    async fn status_of(&self, request: Request<Body>) -> StatusCode {
        let sent = self.client.router().clone().oneshot(request);
        let sent = tokio::time::timeout(Duration::from_secs(20), sent).await;
        sent.unwrap().unwrap().status()
    }
}

pub(crate) fn request(tenant: &str, principal: &str, permissions: &[Permission]) -> ApiKeyRequest {
    ApiKeyRequest {
        tenant: tenant.to_owned(),
        principal: principal.to_owned(),
        name: String::new(),
        permissions: permissions.iter().copied().collect(),
        is_restricted: false,
        expires: None,
    }
}

pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(i64::try_from(since.unwrap().as_millis()).unwrap())
}

/// An operation of the document.
struct Operation {
    method: String,
    path: String,
    /// One of these is needed; empty if everyone may call it.
    needs: Vec<Permission>,
}

impl Operation {
    fn request(&self, credentials: &str, template: &str) -> Request<Body> {
        let body = (self.method != "GET").then(|| json!({}));
        request_as(credentials, &self.method, &filled(template, MISSING), body)
    }
}

/// Returns a path with ids for its parameters.
fn filled(template: &str, id: &str) -> String {
    let parts = template.split('/').map(|part| match part {
        "{key_id}" => MISSING.replace('-', ""),
        "{path}" => "a.txt".to_owned(),
        part if part.starts_with('{') => id.to_owned(),
        part => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

const MISSING: &str = "0190a6b2-0000-7000-8000-00000000dead";

/// Returns the operations of the document, which everyone may read.
async fn all_operations(client: &Client) -> Vec<Operation> {
    let document = client.get("/openapi.json").await.ok();
    let mut found = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let needs = operation["x-superstep-permissions"].as_array().unwrap();
            let needs: Vec<Permission> = needs
                .iter()
                .map(|name| Permission::from_name(name.as_str().unwrap()).unwrap())
                .collect();
            let security = operation["security"].as_array().unwrap();
            assert_eq!(security.is_empty(), needs.is_empty(), "{method} {path}");
            found.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                needs,
            });
        }
    }
    assert!(found.len() > 60, "{}", found.len());
    found
}

/// Returns the methods and paths of the document.
pub(crate) async fn operations(client: &Client) -> Vec<(String, String)> {
    let all = all_operations(client).await.into_iter();
    all.map(|operation| (operation.method, operation.path))
        .collect()
}

#[tokio::test]
async fn every_route_is_closed_to_those_who_lack_its_permission() {
    let server = Guarded::new().await;
    let all = server.key("acme", &Permission::ALL).await;
    let expired = {
        let mut request = request("acme", "old", &Permission::ALL);
        request.expires = Some(Timestamp(2));
        let issued = request.issue(Timestamp(1)).unwrap();
        server.registry.create_api_key(&issued.key).await.unwrap();
        issued.text
    };
    let unknown = request("acme", "p", &Permission::ALL).issue(now()).unwrap();
    // The id of a key that is valid, with a secret of another.
    let forged = format!("{}{}", &all[..37], &unknown.text[37..]);
    let mut alone = BTreeMap::new();
    for permission in Permission::ALL {
        alone.insert(permission, server.key("acme", &[permission]).await);
    }
    let invalid = [
        ("", "none"),
        (expired.as_str(), "expired"),
        (unknown.text.as_str(), "unknown"),
        (forged.as_str(), "forged"),
        ("ssk_", "malformed"),
        ("eyJhbGciOiJub25lIn0.e30.", "a token"),
    ];
    for operation in all_operations(&server.client).await {
        let shown = format!("{} {}", operation.method, operation.path);
        let is_open = operation.needs.is_empty();
        for (credentials, kind) in invalid {
            let status = server.status(credentials, &operation).await;
            let is_refused = status == StatusCode::UNAUTHORIZED;
            assert_eq!(is_refused, !is_open, "{shown} with {kind}: {status}");
        }
        for (permission, key) in &alone {
            let status = server.status(key, &operation).await;
            assert_ne!(status, StatusCode::UNAUTHORIZED, "{shown}");
            let is_listed = is_open || operation.needs.contains(permission);
            let is_refused = status == StatusCode::FORBIDDEN;
            let shown = format!("{shown} with {}: {status}", permission.name());
            match operation.needs.len() {
                // The body decides which of several it takes.
                2.. => assert!(is_listed || is_refused, "{shown}"),
                _ => assert_eq!(is_refused, !is_listed, "{shown}"),
            }
        }
        let status = server.status(&all, &operation).await;
        let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
        assert!(!is_refused, "{shown} with everything: {status}");
    }
}

#[tokio::test]
async fn callers_learn_who_they_are() {
    let server = Guarded::new().await;
    let unknown = server.client.get("/superstep/me").await;
    assert_eq!(unknown.status, StatusCode::UNAUTHORIZED);
    for permission in Permission::ALL {
        let key = server.key("acme", &[permission]).await;
        let me = server.client.call_as(&key, "GET", "/superstep/me", None);
        assert_eq!(
            me.await.ok(),
            json!({
                "principal": "acme-program", "tenant": "acme",
                "permissions": [permission.name()], "is_authenticated": true,
            })
        );
    }
    let open = Client::new().await.get("/superstep/me").await.ok();
    assert_eq!(
        open,
        json!({
            "principal": "", "tenant": "", "is_authenticated": false,
            "permissions": ["read", "run", "answer", "edit", "admin"],
        })
    );
}

#[tokio::test]
async fn no_one_takes_the_place_of_a_default_assistant() {
    let server = Guarded::new().await;
    let admin = server.key("acme", &Permission::ALL).await;
    // Its id, which clients compute. No one of the tenant has used it yet.
    let other = server.key("other", &Permission::ALL).await;
    let default = server
        .client
        .call_as(&other, "GET", "/assistants/chat", None);
    let id = default.await.ok()["assistant_id"].clone();
    let create = async |if_exists: &str| {
        let body = json!({
            "assistant_id": id, "graph_id": "broken", "name": "mine", "if_exists": if_exists,
        });
        let sent = server
            .client
            .call_as(&admin, "POST", "/assistants", Some(body));
        sent.await
    };
    assert_eq!(create("raise").await.status, StatusCode::CONFLICT);
    let found = create("do_nothing").await.ok();
    assert_eq!(
        (&found["graph_id"], &found["name"]),
        (&json!("chat"), &json!("chat"))
    );
}

#[tokio::test]
async fn the_things_of_another_tenant_are_not_there() {
    let server = Guarded::new().await;
    let ours = server.key("acme", &Permission::ALL).await;
    let theirs = server.key("other", &Permission::ALL).await;
    let created = server
        .client
        .call_as(&ours, "POST", "/threads", Some(json!({})));
    let thread = created.await.ok()["thread_id"].as_str().unwrap().to_owned();
    for operation in all_operations(&server.client).await {
        if !operation.path.contains("{thread_id}") {
            continue;
        }
        let path = filled(&operation.path.replace("{thread_id}", &thread), MISSING);
        let body = (operation.method != "GET").then(|| json!({}));
        let request = request_as(&theirs, &operation.method, &path, body);
        let found = server.status_of(request).await;
        // As if it did not exist.
        let missing = server.status(&theirs, &operation).await;
        assert_eq!(found, missing, "{} {path}", operation.method);
    }
    let path = format!("/threads/{thread}");
    assert_eq!(
        server
            .client
            .call_as(&ours, "GET", &path, None)
            .await
            .status,
        StatusCode::OK
    );
}

/// The table closes a route that it does not know; this finds it before a caller does.
#[tokio::test]
async fn every_route_of_the_router_is_in_the_document() {
    let client = Client::new().await;
    let listed: BTreeSet<(String, String)> = all_operations(&client)
        .await
        .into_iter()
        .map(|operation| (operation.method, operation.path))
        .collect();
    // The router shows its paths only in its debug form.
    let shown = format!("{:?}", client.router());
    let paths: BTreeSet<String> = shown
        .split('"')
        .filter(|text| text.starts_with('/') && !text.contains(' '))
        .map(|path| path.replace("{*", "{"))
        .filter(|path| !path.contains("__private__"))
        .collect();
    assert!(paths.len() > 40, "{paths:?}");
    for path in &paths {
        assert!(
            listed.iter().any(|(_, listed)| listed == path),
            "{path} is not in the document"
        );
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            if listed.contains(&(method.to_owned(), path.clone())) {
                continue;
            }
            let request = request_as("", method, &filled(path, MISSING), None);
            let reply = client.router().clone().oneshot(request).await.unwrap();
            let status = reply.status();
            assert_eq!(
                status,
                StatusCode::METHOD_NOT_ALLOWED,
                "{method} {path} is not in the document"
            );
        }
    }
}

#[tokio::test]
async fn a_refusal_says_nothing_about_the_key_and_unknown_paths_need_one_too() {
    let server = Guarded::new().await;
    let none = server.client.get("/threads/search").await;
    assert_eq!(none.status, StatusCode::UNAUTHORIZED);
    assert_eq!(none.header("www-authenticate"), Some("Bearer"));
    let unknown = request("acme", "p", &Permission::ALL).issue(now()).unwrap();
    let wrong = server
        .client
        .call_as(&unknown.text, "GET", "/metrics", None);
    assert_eq!(wrong.await.json, none.json);
    let nowhere = server.client.get("/nowhere").await;
    assert_eq!(nowhere.status, StatusCode::UNAUTHORIZED);
    let all = server.key("acme", &Permission::ALL).await;
    let nowhere = server.client.call_as(&all, "GET", "/nowhere", None).await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    let other_method = server.client.call_as(&all, "DELETE", "/info", None).await;
    assert_eq!(other_method.status, StatusCode::METHOD_NOT_ALLOWED);
    let bearer = Request::get("/metrics").header("authorization", format!("Bearer {all}"));
    let bearer = server
        .client
        .send(bearer.body(Body::empty()).unwrap())
        .await;
    assert_eq!(bearer.status, StatusCode::OK);
}

/// The table has the paths of the server itself.
#[tokio::test]
async fn a_server_below_a_path_of_another_program_is_guarded_too() {
    let server = Guarded::new().await;
    let admin = server.key("acme", &[Permission::Admin]).await;
    let reader = server.key("acme", &[Permission::Read]).await;
    let outer = Router::new().nest("/agents", server.client.router().clone());
    let status = async |key: &str, path: &str| {
        let request = request_as(key, "GET", path, None);
        outer.clone().oneshot(request).await.unwrap().status()
    };
    assert_eq!(
        status("", "/agents/metrics").await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        status(&reader, "/agents/metrics").await,
        StatusCode::FORBIDDEN
    );
    assert_eq!(status(&admin, "/agents/metrics").await, StatusCode::OK);
    assert_eq!(status("", "/agents/info").await, StatusCode::OK);
    let file = format!("/agents/superstep/threads/{MISSING}/files/a/b.txt");
    assert_eq!(status(&admin, &file).await, StatusCode::FORBIDDEN);
    let found = status(&reader, &file).await;
    assert!(found != StatusCode::FORBIDDEN && found != StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn the_body_of_a_run_decides_which_permission_it_needs() {
    let server = Guarded::new().await;
    let all = server.key("acme", &Permission::ALL).await;
    let run = server.key("acme", &[Permission::Run]).await;
    let answer = server.key("acme", &[Permission::Answer]).await;
    let edit = server.key("acme", &[Permission::Edit]).await;
    let created = server
        .client
        .call_as(&all, "POST", "/threads", Some(json!({})));
    let thread = created.await.ok()["thread_id"].as_str().unwrap().to_owned();
    let wait = format!("/threads/{thread}/runs/wait");
    let input = json!({ "assistant_id": "ask", "input": { "topic": "t" } });
    let resume = json!({ "assistant_id": "ask", "command": { "resume": { "type": "accept" } } });
    let update = json!({ "assistant_id": "ask", "command": { "update": { "topic": "u" } } });
    let status = async |key: &str, body: &Json| {
        let sent = server
            .client
            .call_as(key, "POST", &wait, Some(body.clone()));
        sent.await.status
    };
    for key in [&answer, &edit] {
        assert_eq!(status(key, &input).await, StatusCode::FORBIDDEN);
    }
    assert_eq!(status(&run, &input).await, StatusCode::OK);
    for (key, body) in [
        (&run, &resume),
        (&edit, &resume),
        (&run, &update),
        (&answer, &update),
    ] {
        assert_eq!(status(key, body).await, StatusCode::FORBIDDEN, "{body}");
    }
    let commands = format!("/threads/{thread}/commands");
    let read = json!({ "id": 1, "method": "state.get", "params": {} });
    let refused = server
        .client
        .call_as(&run, "POST", &commands, Some(read.clone()));
    assert_eq!(refused.await.json["error"], "permission_denied");
    let reader = server.key("acme", &[Permission::Read]).await;
    let shown = server
        .client
        .call_as(&reader, "POST", &commands, Some(read));
    assert_eq!(shown.await.json["type"], "success");
    let start =
        json!({ "id": 2, "method": "run.start", "params": { "assistant_id": "ask", "input": {} } });
    let refused = server
        .client
        .call_as(&reader, "POST", &commands, Some(start));
    assert_eq!(refused.await.json["error"], "permission_denied");
    assert_eq!(status(&answer, &resume).await, StatusCode::OK);
}

#[tokio::test]
async fn keys_are_created_rotated_and_revoked_within_a_tenant() {
    let server = Guarded::new().await;
    let admin = server
        .key("acme", &[Permission::Admin, Permission::Read])
        .await;
    let other = server.key("other", &Permission::ALL).await;
    let call = async |key: &str, method: &str, path: &str, body: Json| {
        let sent = server.client.call_as(key, method, path, Some(body));
        sent.await
    };
    let body = json!({ "permissions": ["read"], "principal": "reports", "name": "nightly" });
    let created = call(&admin, "POST", "/superstep/keys", body).await.ok();
    let (id, key) = (
        created["key_id"].as_str().unwrap(),
        created["key"].as_str().unwrap(),
    );
    assert_eq!(
        (&created["tenant"], &created["principal"]),
        (&json!("acme"), &json!("reports"))
    );
    let search = async |key: &str| call(key, "POST", "/threads/search", json!({})).await.status;
    assert_eq!(search(key).await, StatusCode::OK);
    let listed = server
        .client
        .call_as(&admin, "GET", "/superstep/keys", None)
        .await;
    assert!(
        !String::from_utf8(listed.bytes.clone())
            .unwrap()
            .contains("ssk_")
    );
    assert_eq!(listed.ok().as_array().unwrap().len(), 2);

    // More than the caller has.
    let more = json!({ "permissions": ["read", "edit"] });
    let refused = call(&admin, "POST", "/superstep/keys", more).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let unknown = json!({ "permissions": ["write"] });
    let refused = call(&admin, "POST", "/superstep/keys", unknown).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);

    // Of another tenant.
    let path = format!("/superstep/keys/{id}");
    let rotate = format!("{path}/rotate");
    assert_eq!(
        call(&other, "DELETE", &path, json!({})).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        call(&other, "POST", &rotate, json!({})).await.status,
        StatusCode::NOT_FOUND
    );

    let body = json!({ "grace_seconds": 600 });
    let rotated = call(&admin, "POST", &rotate, body).await.ok();
    let new = rotated["key"].as_str().unwrap();
    assert_eq!(rotated["principal"], "reports");
    for key in [key, new] {
        assert_eq!(search(key).await, StatusCode::OK);
    }
    let revoked = call(&admin, "DELETE", &path, json!({})).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    assert_eq!(search(key).await, StatusCode::UNAUTHORIZED);
    assert_eq!(search(new).await, StatusCode::OK);
    let powerful = server.key("acme", &Permission::ALL).await;
    let powerful = &powerful[4..36];
    let path = format!("/superstep/keys/{powerful}/rotate");
    let refused = call(&admin, "POST", &path, json!({})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_server_that_lets_everyone_in_makes_no_keys_for_later() {
    let open = Client::new().await;
    let body = json!({ "permissions": ["admin"], "principal": "stranger" });
    let refused = open.post("/superstep/keys", body).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let listed = open.get("/superstep/keys").await;
    assert_eq!(listed.status, StatusCode::BAD_REQUEST);
}

/// Another process may revoke a key, and this one does not hear of it.
#[tokio::test]
async fn a_key_that_was_revoked_elsewhere_is_refused_within_5_seconds() {
    let server = Guarded::new().await;
    let key = server.key("acme", &[Permission::Read]).await;
    let status = async || {
        let sent = server
            .client
            .call_as(&key, "POST", "/threads/search", Some(json!({})));
        sent.await.status
    };
    assert_eq!(status().await, StatusCode::OK);
    let id = key[4..36].parse().unwrap();
    let revoked = server.registry.expire_api_key("acme", id, now()).await;
    assert!(revoked.unwrap().is_some());
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    assert_eq!(status().await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_stream_breaks_when_its_key_is_revoked() {
    let server = Guarded::new().await;
    let all = server.key("acme", &Permission::ALL).await;
    let reader = server.key("acme", &[Permission::Read]).await;
    let created = server
        .client
        .call_as(&all, "POST", "/threads", Some(json!({})));
    let thread = created.await.ok()["thread_id"].as_str().unwrap().to_owned();
    let request = request_as(&reader, "GET", &format!("/threads/{thread}/stream"), None);
    let response = server.client.router().clone().oneshot(request).await;
    let response = response.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let id = reader[4..36].parse().unwrap();
    let revoked = server.registry.expire_api_key("acme", id, now()).await;
    assert!(revoked.unwrap().is_some());
    let read = axum::body::to_bytes(response.into_body(), 10_000_000);
    let read = tokio::time::timeout(Duration::from_secs(8), read).await;
    assert!(read.expect("the stream goes on").is_err());
}
