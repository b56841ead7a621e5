//! Random requests of a tenant with the ids of another one, to every route of the OpenAPI document.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::{Value as Json, json};
use superstep_conformance::Prng;

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
}

impl Route {
    /// How long to wait for more of a body. Streams of a thread stay open; everything else ends.
    pub(super) fn pause(&self) -> Duration {
        match self.path.contains("stream") {
            true => Duration::from_millis(10),
            false => Duration::from_secs(20),
        }
    }
}

impl Requests<'_> {
    fn id(&mut self, kind: &str) -> String {
        match self.random.below(10) {
            0..7 => self.other.ids.pick(kind, self.random),
            7..9 => self.caller.ids.pick(kind, self.random),
            _ => Ids::default().pick(kind, self.random),
        }
    }

    fn one_of(&mut self, bodies: Vec<Json>) -> Json {
        bodies[self.random.below(bodies.len())].clone()
    }

    pub(super) fn request(&mut self, route: &Route) -> (String, Request<Body>) {
        let mut path = String::new();
        for part in route.path.split('/').skip(1) {
            path.push('/');
            match part
                .strip_prefix('{')
                .and_then(|part| part.strip_suffix('}'))
            {
                // Both have a file with this name. The other's canary is never sent: a server may repeat what it got.
                Some("path") => path.push_str("note.txt"),
                Some("namespace") => path.push_str("node"),
                Some(kind) => path.push_str(&self.id(kind)),
                None => path.push_str(part),
            }
        }
        if route.path == "/store/items" && route.method == "GET" {
            path.push_str("?namespace=shared&key=last");
        }
        if route.path == "/metrics" && self.random.below(2) == 0 {
            path.push_str("?format=json");
        }
        let body = match route.method.as_str() {
            "GET" => None,
            _ => Some(self.body(&route.path)),
        };
        let what = format!(
            "{} {path} {}",
            route.method,
            body.as_ref().unwrap_or(&Json::Null)
        );
        let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
        let request = Request::builder()
            .method(route.method.as_str())
            .uri(path)
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        (what, request)
    }

    fn body(&mut self, path: &str) -> Json {
        let canary = self.caller.canary;
        let metadata = json!({ "note": canary });
        let (thread, run) = (self.id("thread_id"), self.id("run_id"));
        let (assistant, cron) = (self.id("assistant_id"), self.id("cron_id"));
        let checkpoint = json!({
            "thread_id": thread, "checkpoint_ns": "", "checkpoint_id": self.id("checkpoint_id"),
        });
        let interrupt = self.id("interrupt_id");
        // What the other tenant's items would be below, if tenants were marked by a prefix.
        let mark = format!("\u{1e}{}", self.other.name);
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
            "/superstep/budgets/raise" => vec![
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
                json!({ "assistant_id": "fail", "input": { "topic": canary } }),
                json!({
                    "assistant_id": assistant, "input": { "topic": canary }, "metadata": metadata,
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
            let own = mark.replace(self.other.name, self.caller.name);
            return json!({
                "namespace": [own], "key": "last", "value": {},
                "namespace_prefix": [mark], "prefix": [mark],
            });
        }
        self.one_of(bodies)
    }
}
