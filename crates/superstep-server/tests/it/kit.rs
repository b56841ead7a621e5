//! A server with a few small graphs, and a client for it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures_util::StreamExt as _;
use http::{HeaderMap, Request, Response, StatusCode};
use serde_json::{Value as Json, json};
use superstep::label::Labels;
use superstep::prelude::*;
use superstep::registry::{MemoryRegistry, Registry};
use superstep::store::MemoryStore;
use superstep_agent::ChatMessage;
use superstep_llm::Message;
use superstep_server::{Authentication, Permission, Server, ServerBuilder, ThreadFiles};
use tower::ServiceExt as _;
use uuid::Uuid;

use crate::authorisation;

#[derive(Clone, Debug, Default, State)]
pub(crate) struct Chat {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    #[state(append)]
    notes: Vec<String>,
    topic: Option<String>,
    /// Not an input.
    turns: u64,
    result: Option<Json>,
}

async fn reply(chat: View<Chat>, _: NodeCx) -> Result<ChatUpdate, NodeError> {
    let heard = chat.messages.last().map(ChatMessage::text);
    let said = format!("You said: {}", heard.unwrap_or_default());
    let message = ChatMessage::new(Message::assistant(said), Labels::NONE);
    Ok(ChatUpdate::default()
        .messages(message)
        .turns(chat.turns + 1))
}

async fn ask(_: View<Chat>, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    let request = json!({
        "action_request": { "action": "refund", "args": { "cents": 900 } },
        "config": {
            "allow_accept": true, "allow_edit": true, "allow_respond": true, "allow_ignore": true,
        },
        "description": "May `refund` be called?",
    });
    let answer: Json = cx
        .interrupt(Interrupt::new("refund", request).kind("approval"))
        .await?;
    Ok(ChatUpdate::default().result(Some(answer)))
}

async fn sleep(_: View<Chat>, _: NodeCx) -> Result<ChatUpdate, NodeError> {
    tokio::time::sleep(Duration::from_secs(600)).await;
    Ok(ChatUpdate::default())
}

async fn fail(_: View<Chat>, _: NodeCx) -> Result<ChatUpdate, NodeError> {
    Err(NodeError::fatal("kaboom"))
}

/// Builds a graph with one node.
macro_rules! graph {
    ($name:literal, $node:ident) => {
        Graph::builder($name)
            .node(stringify!($node), $node)
            .edge(START, stringify!($node))
            .edge(stringify!($node), END)
            .inputs(["messages", "notes", "topic"])
            .build()
            .unwrap()
    };
}

/// Returns a request with credentials; without any if they are empty.
pub(crate) fn request_as(
    credentials: &str,
    method: &str,
    path: &str,
    body: Option<Json>,
) -> Request<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    let request = match credentials {
        "" => request,
        key if key.starts_with("ssk_") => request.header("x-api-key", key),
        token => request.header("authorization", format!("Bearer {token}")),
    };
    let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
    request.body(body).unwrap()
}

/// A client of a server of its own.
pub(crate) struct Client {
    router: Router,
    /// Who sends the requests; `None` for those that bring their own credentials, or need none.
    identity: Option<Identity>,
    /// Kept, so that the server lives as long as its client.
    _server: Arc<Server>,
}

/// A tenant, and an API key of it.
struct Identity {
    tenant: String,
    key: String,
}

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) json: Json,
    pub(crate) bytes: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the body of a reply that must be a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Json {
        assert!(self.status.is_success(), "{}: {}", self.status, self.json);
        self.json
    }
}

impl Client {
    pub(crate) async fn new() -> Self {
        Self::over(Runtime::new(Memory::default()), &MemoryRegistry::new()).await
    }

    /// A client of a server with this runtime, over this registry.
    pub(crate) async fn over(runtime: Runtime, registry: &MemoryRegistry) -> Self {
        Self::of(Self::builder(runtime, registry)).await
    }

    /// A client of a server that stores files.
    pub(crate) async fn with_files(files: Arc<dyn ThreadFiles>) -> Self {
        let runtime = Runtime::new(Memory::default());
        Self::of(Self::builder(runtime, &MemoryRegistry::new()).files(files)).await
    }

    /// A server with the small graphs.
    pub(crate) fn builder(runtime: Runtime, registry: &MemoryRegistry) -> ServerBuilder {
        Server::builder(runtime, Arc::new(registry.clone()))
            .graph(graph!("chat", reply).definition())
            .graph(graph!("ask", ask).definition())
            .graph(graph!("slow", sleep).definition())
            .graph(graph!("broken", fail).definition())
            .store(Arc::new(MemoryStore::default()))
    }

    /// A client of this server.
    pub(crate) async fn of(builder: ServerBuilder) -> Self {
        let server = builder.start().await.unwrap();
        Self {
            router: server.router(),
            identity: None,
            _server: Arc::new(server),
        }
    }

    /// Clients of one server, each of a tenant of its own.
    pub(crate) async fn of_tenants<const N: usize>(
        builder: ServerBuilder,
        tenants: [&str; N],
    ) -> [Self; N] {
        let server = Arc::new(builder.start().await.unwrap());
        tenants.map(|tenant| Self {
            router: server.router_of_tenant(tenant),
            identity: None,
            _server: server.clone(),
        })
    }

    /// Clients of one server that authenticates. Each has a key of a tenant of its own, which allows its principal everything, and the ids
    /// of its requests begin with the name of the tenant.
    pub(crate) async fn with_keys<const N: usize>(
        builder: ServerBuilder,
        registry: &dyn Registry,
        tenants: [(&str, &str); N],
    ) -> [Self; N] {
        let builder = builder.authentication(Authentication::with_api_keys());
        let server = Arc::new(builder.start().await.unwrap());
        let mut clients = Vec::new();
        for (tenant, principal) in tenants {
            let request = authorisation::request(tenant, principal, &Permission::ALL);
            let issued = request.issue(authorisation::now()).unwrap();
            assert!(registry.create_api_key(&issued.key).await.unwrap());
            clients.push(Self {
                router: server.router(),
                identity: Some(Identity {
                    tenant: tenant.to_owned(),
                    key: issued.text,
                }),
                _server: server.clone(),
            });
        }
        clients.try_into().ok().unwrap()
    }

    /// Sends a request and returns the response with its body unread.
    pub(crate) async fn dispatch(&self, mut request: Request<Body>) -> Response<Body> {
        if let Some(identity) = &self.identity {
            let id = format!("{}:{}", identity.tenant, Uuid::now_v7());
            let headers = request.headers_mut();
            headers.insert("x-api-key", identity.key.parse().unwrap());
            headers.insert("x-request-id", id.parse().unwrap());
        }
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Sends a request and returns its reply, of which it reads what comes without a pause: a stream may stay open.
    pub(crate) async fn send_briefly(&self, request: Request<Body>, pause: Duration) -> Reply {
        let response = self.dispatch(request).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut chunks = response.into_body().into_data_stream();
        let mut bytes = Vec::new();
        while let Ok(Some(chunk)) = tokio::time::timeout(pause, chunks.next()).await {
            // A stream that is cut has no more to show.
            let Ok(chunk) = chunk else { break };
            bytes.extend_from_slice(&chunk);
        }
        Reply {
            status,
            headers,
            json: serde_json::from_slice(&bytes).unwrap_or_default(),
            bytes,
        }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Json>) -> Reply {
        let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        self.send(request).await
    }

    /// Returns the routes of the server.
    pub(crate) fn router(&self) -> &Router {
        &self.router
    }

    /// Calls the server with credentials, which go into the header that they are for.
    pub(crate) async fn call_as(
        &self,
        credentials: &str,
        method: &str,
        path: &str,
        body: Option<Json>,
    ) -> Reply {
        self.send(request_as(credentials, method, path, body)).await
    }

    /// Sends a request and returns the response with its body unread.
    pub(crate) async fn open(&self, path: &str, body: Json) -> Response<Body> {
        let request = Request::builder()
            .method("POST")
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        self.dispatch(request).await
    }

    pub(crate) async fn drain(&self) {
        self._server.drain().await;
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.dispatch(request).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = axum::body::to_bytes(response.into_body(), 10_000_000).await;
        let bytes = bytes.unwrap();
        Reply {
            status,
            headers,
            json: serde_json::from_slice(&bytes).unwrap_or_default(),
            bytes: bytes.into(),
        }
    }

    pub(crate) async fn post(&self, path: &str, body: Json) -> Reply {
        self.call("POST", path, Some(body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, None).await
    }

    /// Creates a thread and returns its path.
    pub(crate) async fn thread(&self) -> String {
        let created = self.post("/threads", json!({})).await.ok();
        format!("/threads/{}", created["thread_id"].as_str().unwrap())
    }

    /// Waits for a run of a thread and returns its values.
    pub(crate) async fn wait(&self, thread: &str, body: Json) -> Json {
        self.post(&format!("{thread}/runs/wait"), body).await.ok()
    }

    /// Returns the checkpoints of a thread, newest first.
    pub(crate) async fn history(&self, thread: &str) -> Vec<Json> {
        let body = json!({ "limit": 100 });
        let listed = self.post(&format!("{thread}/history"), body).await.ok();
        listed.as_array().unwrap().clone()
    }

    /// Waits until a run has this status.
    pub(crate) async fn until(&self, run: &str, status: &str) {
        for _ in 0..1_000 {
            if self.get(run).await.ok()["status"] == status {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("run {run} never became {status}");
    }
}
