//! Random requests of a tenant with the ids of another one, to every route of the OpenAPI document.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::{Value as Json, json};
use superstep_conformance::Prng;

use super::protocols::Protocol;
use super::{Ids, Tenant};
use crate::kit::Client;

/// A route of the OpenAPI document.
pub(super) struct Route {
    method: String,
    pub(super) path: String,
}

pub(super) async fn routes(client: &Client) -> Vec<Route> {
    let document = client.get("/openapi.json").await.ok();
    let paths = document["paths"].as_object().unwrap().iter();
    let routes = paths.flat_map(|(path, operations)| {
        let methods = operations.as_object().unwrap().keys();
        methods
            .filter(|method| ["get", "put", "post", "patch", "delete"].contains(&method.as_str()))
            .map(move |method| Route {
                method: method.to_uppercase(),
                path: path.clone(),
            })
    });
    let routes: Vec<Route> = routes.collect();
    assert!(routes.len() > 60, "{} routes", routes.len());
    routes
}

/// Makes the requests of a tenant, mostly with ids of the other one.
pub(super) struct Requests<'a> {
    pub(super) caller: &'a Tenant,
    pub(super) other: &'a Tenant,
    pub(super) random: &'a mut Prng,
    /// Number of the sequence that the request belongs to.
    pub(super) sequence: usize,
    whose: Whose,
}

/// Whose ids a request has.
#[derive(Clone, Copy)]
enum Whose {
    Others,
    Own,
    Mixed,
}

impl Route {
    /// How long to wait for more of a body. Streams of a thread stay open; everything else ends.
    pub(super) fn pause(&self) -> Duration {
        match self.path.contains("stream") {
            true => Duration::from_millis(10),
            false => Duration::from_secs(20),
        }
    }

    /// The protocol that a body for this route is of; `None` if it is the server's own.
    pub(super) fn protocol(&self) -> Option<Protocol> {
        match self.method.as_str() {
            "POST" => Protocol::of_path(&self.path),
            _ => None,
        }
    }
}

impl<'a> Requests<'a> {
    pub(super) fn of(
        [caller, other]: [&'a Tenant; 2],
        random: &'a mut Prng,
        sequence: usize,
    ) -> Self {
        let whose = match random.below(10) {
            0..5 => Whose::Others,
            5..8 => Whose::Own,
            _ => Whose::Mixed,
        };
        Self {
            caller,
            other,
            random,
            sequence,
            whose,
        }
    }

    pub(super) fn id(&mut self, kind: &str) -> String {
        let from = match (self.whose, self.random.below(10)) {
            (Whose::Others, _) | (Whose::Mixed, 0..4) => self.other,
            (Whose::Own, _) | (Whose::Mixed, 4..8) => self.caller,
            (Whose::Mixed, _) => return Ids::default().pick(kind, self.random),
        };
        from.ids.pick(kind, self.random)
    }

    /// Returns a thread that waits, and what it asks.
    pub(super) fn waiting(&mut self) -> (String, String) {
        let pair = self.id("waiting");
        let (thread, interrupt) = pair
            .split_once(' ')
            .unwrap_or((pair.as_str(), pair.as_str()));
        (thread.to_owned(), interrupt.to_owned())
    }

    pub(super) fn one_of(&mut self, bodies: &[Json]) -> Json {
        self.random.pick(bodies).clone()
    }

    pub(super) fn request(&mut self, route: &Route) -> (String, Request<Body>) {
        let target = format!("{}{}", self.path(route), self.query(route));
        let body = match (route.method.as_str(), route.protocol()) {
            ("GET", _) => None,
            (_, Some(protocol)) => Some(protocol.body(self)),
            (_, None) => Some(self.body(&route.path)),
        };
        let what = format!(
            "{} {target} {}",
            route.method,
            body.as_ref().unwrap_or(&Json::Null)
        );
        // What it has said may be said to it.
        self.caller.note_sent(&what);
        let mut request = Request::builder()
            .method(route.method.as_str())
            .uri(target)
            .header("content-type", "application/json");
        if let Some(protocol) = route.protocol() {
            for (name, value) in protocol.headers() {
                request = request.header(*name, *value);
            }
        }
        // Both tenants use the same keys.
        if route.method != "GET" && self.random.below(8) == 0 {
            request = request.header("idempotency-key", format!("key-{}", self.sequence / 8));
        }
        let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
        (what, request.body(body).unwrap())
    }

    fn path(&mut self, route: &Route) -> String {
        let protocol = route.protocol();
        let mut path = String::new();
        for part in route.path.split('/').skip(1) {
            path.push('/');
            let name = part
                .strip_prefix('{')
                .and_then(|part| part.strip_suffix('}'));
            match (name, protocol) {
                // Both have a file with this name. The other's canary is never sent: a server may repeat what it got.
                (Some("path"), _) => path.push_str("note.txt"),
                (Some("namespace"), _) => path.push_str("node"),
                (Some("assistant_id"), Some(_)) if self.random.below(4) > 0 => {
                    let ids: [&str; 4] = ["ask", "ask", "remember", "cached"];
                    path.push_str(self.random.pick::<&str>(&ids));
                }
                (Some(kind), _) => path.push_str(&self.id(kind)),
                (None, _) => path.push_str(part),
            }
        }
        path
    }

    fn query(&mut self, route: &Route) -> String {
        let is_first = self.random.below(2) == 0;
        match (route.method.as_str(), route.path.as_str(), is_first) {
            ("GET", "/store/items", _) => "?namespace=shared&key=last".to_owned(),
            ("GET", "/metrics", true) => "?format=json".to_owned(),
            ("GET", "/superstep/inbox", true) => "?graph_id=ask&limit=100".to_owned(),
            ("GET", "/superstep/inbox" | "/.well-known/agent-card.json", _) => {
                format!("?assistant_id={}", self.id("assistant_id"))
            }
            ("GET", "/superstep/deliveries", true) => format!("?run_id={}", self.id("run_id")),
            ("GET", "/superstep/audit", true) => {
                format!("?limit=1000&after={}", self.random.below(2_000))
            }
            (
                "GET",
                "/superstep/audit"
                | "/superstep/deliveries"
                | "/superstep/keys"
                | "/superstep/budgets"
                | "/superstep/queue",
                _,
            ) => "?limit=1000".to_owned(),
            ("GET", "/superstep/threads/{thread_id}/labels", true) => {
                format!("?checkpoint_id={}", self.id("checkpoint_id"))
            }
            _ => String::new(),
        }
    }

    fn body(&mut self, path: &str) -> Json {
        let caller = self.caller;
        let (canary, webhook) = (caller.marks.canary, caller.webhook.as_str());
        let metadata = json!({ "note": canary });
        let (thread, run) = (self.id("thread_id"), self.id("run_id"));
        let (assistant, cron) = (self.id("assistant_id"), self.id("cron_id"));
        let checkpoint = json!({
            "thread_id": thread, "checkpoint_ns": "", "checkpoint_id": self.id("checkpoint_id"),
        });
        let interrupt = self.id("interrupt_id");
        // What the other tenant's items would be below, if tenants were marked by a prefix.
        let mark = format!("\u{1e}{}", self.other.marks.name);
        let bodies = match path {
            "/threads" => vec![
                json!({ "thread_id": thread, "if_exists": "do_nothing", "metadata": metadata }),
                json!({ "thread_id": thread }),
            ],
            "/threads/search" | "/threads/count" => vec![
                json!({}),
                json!({ "ids": [thread], "limit": 1_000 }),
                json!({ "status": "interrupted" }),
                json!({ "status": "busy" }),
                json!({ "metadata": { "assistant_id": assistant } }),
            ],
            "/threads/prune" => vec![
                json!({ "thread_ids": [thread], "strategy": "delete" }),
                json!({ "thread_ids": [thread], "strategy": "keep_latest" }),
            ],
            "/threads/{thread_id}/state" => vec![
                json!({ "values": { "topic": canary }, "checkpoint": checkpoint }),
                json!({ "values": { "notes": [canary] } }),
            ],
            "/threads/{thread_id}/state/checkpoint" => vec![json!({ "checkpoint": checkpoint })],
            "/threads/{thread_id}/history" => vec![
                json!({ "limit": 1_000 }),
                json!({ "before": { "configurable": checkpoint } }),
            ],
            "/threads/{thread_id}/commands" => {
                let answer = json!({ "interrupt_id": interrupt, "response": canary });
                let input = json!({ "assistant_id": assistant, "input": { "topic": canary } });
                let commands = [
                    ("state.get", json!({})),
                    ("state.listCheckpoints", json!({ "limit": 100 })),
                    ("state.fork", checkpoint),
                    ("agent.getTree", json!({})),
                    ("input.respond", answer),
                    ("run.start", input),
                ];
                let commands = commands
                    .into_iter()
                    .map(|(method, params)| json!({ "id": 1, "method": method, "params": params }));
                commands.collect()
            }
            "/threads/{thread_id}/stream/events" => vec![json!({
                "channels": ["values", "updates", "messages", "lifecycle", "input", "tasks", "custom"],
            })],
            "/runs/batch" => vec![json!([
                { "assistant_id": assistant, "input": { "topic": canary } },
                { "assistant_id": "remember", "input": { "topic": canary } },
            ])],
            "/runs/cancel" => vec![
                json!({ "status": "all" }),
                json!({ "thread_id": thread, "run_ids": [run] }),
            ],
            "/runs/crons/search" | "/runs/crons/count" => vec![
                json!({}),
                json!({ "thread_id": thread }),
                json!({ "assistant_id": assistant }),
            ],
            "/assistants" => vec![
                json!({ "graph_id": "ask", "name": canary, "metadata": metadata }),
                json!({ "graph_id": "ask", "assistant_id": assistant, "if_exists": "do_nothing" }),
            ],
            "/assistants/search" | "/assistants/count" => vec![
                json!({ "limit": 1_000 }),
                json!({ "name": "canary" }),
                json!({ "graph_id": "remember" }),
            ],
            "/assistants/{assistant_id}/latest" => vec![json!({ "version": 1 })],
            "/superstep/keys" => vec![
                json!({ "permissions": ["read"], "name": canary, "principal": canary }),
                json!({ "permissions": ["read"], "expires_in_seconds": 600 }),
            ],
            "/superstep/keys/{key_id}/rotate" => vec![json!({ "grace_seconds": 600 })],
            "/superstep/threads/{thread_id}/diff" => vec![
                json!({}),
                json!({ "other_thread": self.id("thread_id") }),
                json!({ "from": self.id("checkpoint_id"), "to": self.id("checkpoint_id") }),
            ],
            "/superstep/threads/{thread_id}/fork/preview" => {
                vec![json!({ "checkpoint": self.id("checkpoint_id") })]
            }
            "/superstep/budgets/raise" => vec![
                json!({ "level": "thread", "thread_id": thread, "limits": { "calls": 9 } }),
                json!({ "level": "tenant", "limits": { "calls": 9 } }),
                json!({ "level": "run", "thread_id": thread, "run_id": run, "limits": { "calls": 9 } }),
            ],
            "/store/items" => vec![
                json!({ "namespace": ["shared"], "key": "last", "value": metadata }),
                json!({ "namespace": ["users", canary], "key": "last", "value": metadata }),
            ],
            "/store/items/search" => vec![
                json!({ "limit": 1_000 }),
                json!({ "namespace_prefix": ["shared"] }),
                json!({ "namespace_prefix": ["superstep"] }),
                json!({ "filter": { "note": { "$ne": canary } } }),
            ],
            "/store/namespaces" => vec![
                json!({}),
                json!({ "prefix": ["users"] }),
                json!({ "prefix": ["*"], "max_depth": 1 }),
            ],
            path if path.contains("crons") => vec![
                json!({
                    "assistant_id": assistant, "schedule": "0 0 1 1 *",
                    "input": { "topic": canary }, "metadata": metadata,
                }),
                json!({ "enabled": false }),
            ],
            path if path.contains("/runs") => vec![
                json!({
                    "assistant_id": "remember", "input": { "topic": canary },
                    "if_not_exists": "create", "on_completion": "keep",
                }),
                json!({ "assistant_id": "cached", "input": { "topic": canary } }),
                json!({ "assistant_id": "fail", "input": { "topic": canary }, "webhook": webhook }),
                json!({
                    "assistant_id": assistant, "webhook": webhook, "input": { "topic": canary }, "metadata": metadata,
                    "stream_mode": ["values", "updates", "custom", "events"],
                }),
                json!({ "assistant_id": "ask", "command": { "resume": { interrupt: canary } } }),
                json!({
                    "assistant_id": "remember", "input": { "topic": canary },
                    "checkpoint": checkpoint, "multitask_strategy": "rollback",
                }),
            ],
            // Of a route that this test does not know: every name that it may take.
            _ => vec![json!({
                "metadata": metadata, "thread_id": thread, "run_id": run, "cron_id": cron,
                "assistant_id": assistant, "checkpoint": checkpoint, "interrupt_id": interrupt,
            })],
        };
        if path.starts_with("/store") && self.random.below(4) == 0 {
            // The error for a namespace repeats it, so that one has the caller's own name.
            let own = mark.replace(self.other.marks.name, self.caller.marks.name);
            return json!({
                "namespace": [own], "key": "last", "value": {},
                "namespace_prefix": [mark], "prefix": [mark],
            });
        }
        self.one_of(&bodies)
    }
}
