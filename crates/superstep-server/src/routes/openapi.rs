//! The list of routes, from which the OpenAPI document and the page at `/docs` are made.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

/// A route as it is documented.
struct RouteDoc {
    method: &'static str,
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
}

const fn route(
    method: &'static str,
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
) -> RouteDoc {
    RouteDoc {
        method,
        path,
        tag,
        summary,
    }
}

/// Tag of the routes whose bodies are files.
const FILES: &str = "Files";

#[rustfmt::skip]
const ROUTES: &[RouteDoc] = &[
    route("post", "/assistants", "Assistants", "Create an assistant"),
    route("post", "/assistants/search", "Assistants", "Search assistants"),
    route("post", "/assistants/count", "Assistants", "Count assistants"),
    route("get", "/assistants/{assistant_id}", "Assistants", "Get an assistant"),
    route("patch", "/assistants/{assistant_id}", "Assistants", "Change an assistant, as a new version"),
    route("delete", "/assistants/{assistant_id}", "Assistants", "Delete an assistant"),
    route("get", "/assistants/{assistant_id}/graph", "Assistants", "Get the graph of an assistant"),
    route("get", "/assistants/{assistant_id}/schemas", "Assistants", "Get the schemas of an assistant's graph"),
    route("get", "/assistants/{assistant_id}/subgraphs", "Assistants", "Get the schemas of subgraphs"),
    route("get", "/assistants/{assistant_id}/subgraphs/{namespace}", "Assistants", "Get the schemas of a subgraph"),
    route("post", "/assistants/{assistant_id}/versions", "Assistants", "List the versions of an assistant"),
    route("post", "/assistants/{assistant_id}/latest", "Assistants", "Use a version of an assistant"),
    route("post", "/threads", "Threads", "Create a thread"),
    route("post", "/threads/search", "Threads", "Search threads"),
    route("post", "/threads/count", "Threads", "Count threads"),
    route("post", "/threads/prune", "Threads", "Delete threads, or their histories"),
    route("get", "/threads/{thread_id}", "Threads", "Get a thread"),
    route("patch", "/threads/{thread_id}", "Threads", "Change the metadata of a thread"),
    route("delete", "/threads/{thread_id}", "Threads", "Delete a thread"),
    route("post", "/threads/{thread_id}/copy", "Threads", "Copy a thread"),
    route("get", "/threads/{thread_id}/state", "Threads", "Get the state of a thread"),
    route("post", "/threads/{thread_id}/state", "Threads", "Change the state of a thread"),
    route("get", "/threads/{thread_id}/state/{checkpoint_id}", "Threads", "Get the state at a checkpoint"),
    route("post", "/threads/{thread_id}/state/checkpoint", "Threads", "Get the state at a checkpoint"),
    route("get", "/threads/{thread_id}/history", "Threads", "List the checkpoints of a thread"),
    route("post", "/threads/{thread_id}/history", "Threads", "List the checkpoints of a thread"),
    route("get", "/threads/{thread_id}/stream", "Threads", "Stream what happens on a thread"),
    route("post", "/threads/{thread_id}/commands", "Threads", "Send a command to a thread"),
    route("post", "/threads/{thread_id}/stream/events", "Threads", "Stream events of a thread by channel"),
    route("post", "/threads/{thread_id}/runs", "Thread Runs", "Create a run in the background"),
    route("get", "/threads/{thread_id}/runs", "Thread Runs", "List the runs of a thread"),
    route("post", "/threads/{thread_id}/runs/stream", "Thread Runs", "Create a run and stream it"),
    route("post", "/threads/{thread_id}/runs/wait", "Thread Runs", "Create a run and wait for its result"),
    route("get", "/threads/{thread_id}/runs/{run_id}", "Thread Runs", "Get a run"),
    route("delete", "/threads/{thread_id}/runs/{run_id}", "Thread Runs", "Delete a run"),
    route("get", "/threads/{thread_id}/runs/{run_id}/join", "Thread Runs", "Wait for the result of a run"),
    route("get", "/threads/{thread_id}/runs/{run_id}/stream", "Thread Runs", "Join the stream of a run"),
    route("post", "/threads/{thread_id}/runs/{run_id}/cancel", "Thread Runs", "Cancel a run"),
    route("post", "/threads/{thread_id}/runs/crons", "Crons", "Create a cron for a thread"),
    route("post", "/runs/crons", "Crons", "Create a cron"),
    route("post", "/runs/crons/search", "Crons", "Search crons"),
    route("post", "/runs/crons/count", "Crons", "Count crons"),
    route("get", "/runs/crons/{cron_id}", "Crons", "Get a cron"),
    route("patch", "/runs/crons/{cron_id}", "Crons", "Change a cron"),
    route("delete", "/runs/crons/{cron_id}", "Crons", "Delete a cron"),
    route("post", "/runs", "Stateless Runs", "Create a run on a temporary thread"),
    route("post", "/runs/stream", "Stateless Runs", "Stream a run on a temporary thread"),
    route("post", "/runs/wait", "Stateless Runs", "Wait for a run on a temporary thread"),
    route("get", "/runs/{run_id}/stream", "Stateless Runs", "Join the stream of a run"),
    route("post", "/runs/batch", "Stateless Runs", "Create several runs"),
    route("post", "/runs/cancel", "Stateless Runs", "Cancel several runs"),
    route("put", "/store/items", "Store", "Store an item"),
    route("get", "/store/items", "Store", "Get an item"),
    route("delete", "/store/items", "Store", "Delete an item"),
    route("post", "/store/items/search", "Store", "Search items"),
    route("post", "/store/namespaces", "Store", "List namespaces"),
    route("get", "/superstep/threads/{thread_id}/files", FILES, "List the files of a thread"),
    route("put", "/superstep/threads/{thread_id}/files/{path}", FILES, "Store a file of a thread"),
    route("get", "/superstep/threads/{thread_id}/files/{path}", FILES, "Get a file of a thread"),
    route("delete", "/superstep/threads/{thread_id}/files/{path}", FILES, "Delete a file of a thread"),
    route("get", "/ok", "System", "Check whether the server answers"),
    route("get", "/info", "System", "Get the version and the features"),
    route("get", "/metrics", "System", "Get the metrics"),
];

/// Returns the OpenAPI document.
pub(super) fn document() -> Json {
    let mut paths: Map<String, Json> = Map::new();
    for route in ROUTES {
        let operation = json!({
            "tags": [route.tag],
            "summary": route.summary,
            "operationId": format!("{}{}", route.method, route.path.replace(['/', '{', '}'], "_")),
            "parameters": parameters(route.path),
            "responses": {
                "default": {
                    "description": "The result, or `{\"detail\": …}` with a status from 400 on",
                    "content": { "application/json": { "schema": {} } },
                },
            },
        });
        let operation = match route.tag == FILES && route.path.ends_with("{path}") {
            true => with_bytes(operation, route.method),
            false => operation,
        };
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Superstep server", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
    })
}

/// Describes an operation on the content of a file, which is not JSON.
fn with_bytes(mut operation: Json, method: &str) -> Json {
    let bytes = json!({ "application/octet-stream": { "schema": {} } });
    operation["parameters"][1]["description"] =
        json!("Relative path of the file; may contain slashes");
    match method {
        "put" => operation["requestBody"] = json!({ "required": true, "content": bytes }),
        "get" => {
            operation["responses"]["200"] =
                json!({ "description": "The content of the file", "content": bytes });
        }
        _ => {}
    }
    operation
}

fn parameters(path: &str) -> Json {
    let names = path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?;
        name.strip_suffix('}')
    });
    let shown = names.map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    });
    shown.collect()
}

/// Returns a page that lists the routes. It loads nothing from elsewhere.
pub(super) fn page() -> String {
    let mut rows = String::new();
    let mut tag = "";
    for route in ROUTES {
        if route.tag != tag {
            tag = route.tag;
            let _ = write!(rows, "<tr><th colspan=\"3\">{tag}</th></tr>");
        }
        let _ = write!(
            rows,
            "<tr><td><code>{}</code></td><td><code>{}</code></td><td>{}</td></tr>",
            route.method.to_uppercase(),
            route.path,
            route.summary
        );
    }
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Superstep server</title>\
         <style>body{{font:16px system-ui;margin:2rem auto;max-width:60rem}}\
         td,th{{padding:.2rem .8rem;text-align:left}}th{{padding-top:1.2rem}}</style>\
         <h1>Superstep server</h1><p>The whole document: <a href=\"openapi.json\">openapi.json</a></p>\
         <table>{rows}</table></html>"
    )
}

#[test]
fn every_path_names_its_parameters() {
    let document = document();
    let run = &document["paths"]["/threads/{thread_id}/runs/{run_id}"]["get"];
    assert_eq!(run["parameters"][1]["name"], "run_id");
    let file = &document["paths"]["/superstep/threads/{thread_id}/files/{path}"];
    assert_eq!(file["put"]["parameters"][1]["name"], "path");
    let body = &file["put"]["requestBody"]["content"];
    assert!(body["application/octet-stream"].is_object());
    assert!(page().contains("/store/namespaces"));
}
