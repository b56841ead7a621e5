//! The OpenAPI document: it has what the document of LangGraph's server has, and what the server returns fits to it.

use http::StatusCode;
use serde_json::{Value as Json, json};

use crate::kit::Client;

/// The operations of LangGraph's document, one on each line: `method path | parameters | fields of the body`.
const REFERENCE: &str = include_str!("reference_operations.txt");

struct Document(Json);

impl Document {
    async fn read(client: &Client) -> Self {
        Self(client.get("/openapi.json").await.ok())
    }

    fn operation(&self, method: &str, path: &str) -> &Json {
        &self.0["paths"][path][method]
    }

    /// Follows a reference.
    fn resolved<'a>(&'a self, schema: &'a Json) -> &'a Json {
        let Some(reference) = schema["$ref"].as_str() else {
            return schema;
        };
        let found = self.0.pointer(reference.trim_start_matches('#'));
        found.unwrap_or_else(|| panic!("there is no {reference}"))
    }

    /// Says what is wrong with a value; empty if it fits.
    fn problems(&self, schema: &Json, value: &Json, at: &str) -> Vec<String> {
        let schema = self.resolved(schema);
        if let Some(options) = schema["anyOf"].as_array() {
            let found = options
                .iter()
                .map(|option| self.problems(option, value, at));
            let found: Vec<_> = found.collect();
            let fits = found.iter().any(Vec::is_empty);
            return if fits { Vec::new() } else { found.concat() };
        }
        let mut problems = Vec::new();
        let is_type = match schema["type"].as_str() {
            None => true,
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("number") => value.is_number(),
            Some("boolean") => value.is_boolean(),
            Some("null") => value.is_null(),
            Some(other) => panic!("{at}: {other} is not a type"),
        };
        let is_listed = schema["enum"]
            .as_array()
            .is_none_or(|all| all.contains(value));
        let is_const = schema.get("const").is_none_or(|only| only == value);
        if !(is_type && is_listed && is_const) {
            problems.push(format!("{at}: {value} is not {schema}"));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().unwrap();
            if value.get(name).is_none() {
                problems.push(format!("{at}/{name} is missing"));
            }
        }
        for (name, inner) in value.as_object().into_iter().flatten() {
            let known = schema["properties"].get(name);
            if let Some(of_field) = known.or_else(|| schema.get("additionalProperties")) {
                problems.extend(self.problems(of_field, inner, &format!("{at}/{name}")));
            }
        }
        if let (Some(items), Some(of_item)) = (value.as_array(), schema.get("items")) {
            for (index, item) in items.iter().enumerate() {
                problems.extend(self.problems(of_item, item, &format!("{at}/{index}")));
            }
        }
        problems
    }
}

/// A client that compares every reply with the document.
struct CheckedClient {
    client: Client,
    document: Document,
}

impl CheckedClient {
    /// Calls a route, given its path in the document and the ids in it. It must succeed.
    async fn call(&self, method: &str, route: &str, ids: &[&Json], body: Option<Json>) -> Json {
        let (status, json) = self.send(method, route, ids, body).await;
        assert!(status.is_success(), "{method} {route}: {status} {json}");
        json
    }

    /// Calls a route that must refuse it.
    async fn refused(&self, method: &str, route: &str, ids: &[&Json], body: Option<Json>) {
        let (status, _) = self.send(method, route, ids, body).await;
        assert!(status.is_client_error(), "{method} {route}: {status}");
    }

    async fn send(
        &self,
        method: &str,
        route: &str,
        ids: &[&Json],
        body: Option<Json>,
    ) -> (StatusCode, Json) {
        let mut path = String::new();
        let mut ids = ids.iter().map(|id| id.as_str().unwrap());
        for part in route.split('/').skip(1) {
            let is_id = part.starts_with('{');
            path.push('/');
            path.push_str(if is_id { ids.next().unwrap() } else { part });
        }
        let reply = self.client.call(&method.to_uppercase(), &path, body).await;
        let route = route.split('?').next().unwrap();
        let operation = self.document.operation(method, route);
        let status = reply.status.as_u16();
        let described = operation["responses"].get(status.to_string());
        let described = match reply.status.is_client_error() {
            true => operation["responses"].get("4XX"),
            false => described,
        };
        let described = described.unwrap_or_else(|| panic!("{method} {route}: {status}"));
        let schema = &described["content"]["application/json"]["schema"];
        if schema.is_null() {
            assert!(reply.bytes.is_empty(), "{method} {route} has a body");
            return (reply.status, Json::Null);
        }
        let problems = self.document.problems(schema, &reply.json, "");
        assert!(problems.is_empty(), "{method} {route}: {problems:#?}");
        (reply.status, reply.json)
    }

    async fn get(&self, route: &str, ids: &[&Json]) -> Json {
        self.call("get", route, ids, None).await
    }

    async fn post(&self, route: &str, ids: &[&Json], body: Json) -> Json {
        self.call("post", route, ids, Some(body)).await
    }
}

#[tokio::test]
async fn every_operation_of_the_reference_is_in_the_document() {
    let document = Document::read(&Client::new().await).await;
    let mut missing = Vec::new();
    for line in REFERENCE.lines() {
        let mut parts = line.split('|').map(str::trim);
        let (operation, parameters, fields) =
            (parts.next().unwrap(), parts.next().unwrap(), parts.next());
        let (method, path) = operation.split_once(' ').unwrap();
        let own = document.operation(method, path);
        if own.is_null() {
            missing.push(operation.to_owned());
            continue;
        }
        let known = own["parameters"].as_array().unwrap();
        for parameter in parameters.split_whitespace() {
            let (place, name) = parameter.split_once(':').unwrap();
            let is_it = |known: &Json| known["in"] == place && known["name"] == name;
            if !known.iter().any(is_it) {
                missing.push(format!("{operation}: {parameter}"));
            }
        }
        let body = &own["requestBody"]["content"]["application/json"]["schema"];
        let body = document.resolved(body);
        let body = match body.get("items") {
            Some(items) => document.resolved(items),
            None => body,
        };
        for field in fields.unwrap_or_default().split_whitespace() {
            if body["properties"].get(field).is_none() {
                missing.push(format!("{operation}: body.{field}"));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
    assert_eq!(REFERENCE.lines().count(), 64);
}

#[tokio::test]
async fn what_a_session_gets_fits_to_the_document() {
    let client = Client::new().await;
    let document = Document::read(&client).await;
    let checked = CheckedClient { client, document };

    let create = json!({ "graph_id": "ask", "name": "Refunds", "metadata": { "team": "a" } });
    let assistant = checked.post("/assistants", &[], create).await;
    let id = &assistant["assistant_id"];
    let patch = json!({ "config": { "tags": ["b"] } });
    let route = "/assistants/{assistant_id}";
    checked.call("patch", route, &[id], Some(patch)).await;
    checked.get(route, &[id]).await;
    for inner in ["graph", "schemas", "subgraphs"] {
        checked.get(&format!("{route}/{inner}"), &[id]).await;
    }
    checked
        .post(&format!("{route}/versions"), &[id], json!({}))
        .await;
    let latest = format!("{route}/latest");
    checked.post(&latest, &[id], json!({ "version": 1 })).await;
    checked
        .refused("post", &latest, &[id], Some(json!({})))
        .await;
    checked.post("/assistants/search", &[], json!({})).await;
    checked.post("/assistants/count", &[], json!({})).await;

    let thread = checked.post("/threads", &[], json!({ "ttl": 60 })).await;
    let thread = &thread["thread_id"];
    let of_thread = |inner: &str| format!("/threads/{{thread_id}}{inner}");
    checked.get(&of_thread("/state"), &[thread]).await;
    let body = json!({ "assistant_id": id, "input": { "topic": "tea" } });
    checked
        .post(&of_thread("/runs/wait"), &[thread], body)
        .await;
    checked.get(&of_thread(""), &[thread]).await;
    let paused = checked.get(&of_thread("/state"), &[thread]).await;
    assert_eq!(paused["interrupts"].as_array().unwrap().len(), 1);
    let at = json!({ "checkpoint": paused["checkpoint"] });
    checked
        .post(&of_thread("/state/checkpoint"), &[thread], at)
        .await;
    let checkpoint = &paused["checkpoint_id"];
    let route = of_thread("/state/{checkpoint_id}");
    checked.get(&route, &[thread, checkpoint]).await;
    let inbox = checked.get("/superstep/inbox", &[]).await;
    assert_eq!(inbox.as_array().unwrap().len(), 1);
    let own = |inner: &str| format!("/superstep/threads/{{thread_id}}/{inner}");
    let answer = json!({ "assistant_id": id, "command": { "resume": [{ "type": "accept" }] } });
    let run = checked.post(&of_thread("/runs"), &[thread], answer).await;
    let run = &run["run_id"];
    checked
        .get(&of_thread("/runs/{run_id}/join"), &[thread, run])
        .await;
    checked
        .get(&of_thread("/runs/{run_id}"), &[thread, run])
        .await;
    checked.get(&of_thread("/runs"), &[thread]).await;
    let history = json!({ "limit": 100 });
    checked
        .post(&of_thread("/history"), &[thread], history)
        .await;
    checked.get(&of_thread("/history"), &[thread]).await;
    for inner in ["interrupts", "tree", "case", "trace", "labels"] {
        checked.get(&own(inner), &[thread]).await;
    }
    checked.get(&of_thread("/storage"), &[thread]).await;
    checked.get("/superstep/me", &[]).await;
    let raise = json!({ "level": "tenant", "limits": { "calls": 1 } });
    checked
        .refused("post", "/superstep/budgets/raise", &[], Some(raise))
        .await;
    checked.post(&own("diff"), &[thread], json!({})).await;
    let preview = json!({ "checkpoint": checkpoint });
    checked.post(&own("fork/preview"), &[thread], preview).await;
    checked.get("/superstep/queue", &[]).await;
    checked.get("/superstep/budgets", &[]).await;
    for by in ["tenant", "graph", "thread"] {
        let sizes = format!("/superstep/sizes?by={by}");
        checked.get(&sizes, &[]).await;
    }
    let update = json!({ "values": { "topic": "milk" } });
    checked.post(&of_thread("/state"), &[thread], update).await;
    let copy = checked
        .post(&of_thread("/copy"), &[thread], json!({}))
        .await;
    checked.post("/threads/search", &[], json!({})).await;
    checked.post("/threads/count", &[], json!({})).await;
    let patch = Some(json!({ "metadata": { "a": 1 } }));
    checked
        .call("patch", &of_thread(""), &[thread], patch)
        .await;
    let prune = json!({ "thread_ids": [copy["thread_id"]] });
    checked.post("/threads/prune", &[], prune).await;
    checked
        .call("delete", &of_thread(""), &[thread], None)
        .await;
    checked
        .refused("get", &of_thread(""), &[thread], None)
        .await;

    let cron = json!({ "assistant_id": id, "schedule": "0 0 1 1 *", "input": { "topic": "tea" } });
    let cron = checked.post("/runs/crons", &[], cron).await;
    let cron = &cron["cron_id"];
    checked.get("/runs/crons/{cron_id}", &[cron]).await;
    checked.post("/runs/crons/search", &[], json!({})).await;
    checked.post("/runs/crons/count", &[], json!({})).await;
    checked
        .call("delete", "/runs/crons/{cron_id}", &[cron], None)
        .await;

    let item = json!({ "namespace": ["notes"], "key": "k", "value": { "a": 1 } });
    checked.call("put", "/store/items", &[], Some(item)).await;
    checked.post("/store/items/search", &[], json!({})).await;
    checked.post("/store/namespaces", &[], json!({})).await;
    checked.get("/store/items?namespace=notes&key=k", &[]).await;
    checked
        .get("/store/items?namespace=notes&key=other", &[])
        .await;
    checked.get("/ok", &[]).await;
    checked.get("/info", &[]).await;
}

#[tokio::test]
async fn the_validator_finds_what_does_not_fit() {
    let document = Document::read(&Client::new().await).await;
    let schema = json!({ "$ref": "#/components/schemas/Interrupt" });
    let problems = |value: Json| document.problems(&schema, &value, "").len();
    assert_eq!(problems(json!({ "id": "a", "value": null })), 0);
    assert_eq!(problems(json!({ "id": 1, "value": null })), 1);
    assert_eq!(problems(json!({ "value": null })), 1);
    assert_eq!(problems(json!([])), 3);
}

/// Studio's types are generated from a copy of the document.
#[tokio::test]
async fn studio_has_the_document_that_the_server_serves() {
    let served = Document::read(&Client::new().await).await.0;
    let copy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studio/openapi.json");
    let copied: Json = serde_json::from_str(&std::fs::read_to_string(copy).unwrap()).unwrap();
    let names = |document: &Json, section: &str| -> Vec<String> {
        let parts = document.pointer(section).and_then(Json::as_object);
        parts.unwrap().keys().cloned().collect()
    };
    let why = "store `GET /openapi.json` as studio/openapi.json, and run `npm run types` there";
    for section in ["/paths", "/components/schemas"] {
        for name in names(&served, section) {
            let part = |document: &Json| document.pointer(section).unwrap()[&name].clone();
            assert_eq!(part(&copied), part(&served), "{name}: {why}");
        }
    }
    assert_eq!(copied, served, "{why}");
}
