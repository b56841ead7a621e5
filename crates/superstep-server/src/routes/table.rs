//! The table of routes: what each is for, and what its callers must be allowed to do.
//!
//! The OpenAPI document, the page at `/docs` and the check of permissions are made from it, so that no route can be without one.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::{MatchedPath, NestedPath, Request};
use http::Method;

use crate::permission::Permission::{self, Admin, Answer, Edit, Read, Run};

/// A route of the API.
#[derive(Debug)]
pub(crate) struct ApiRoute {
    /// In lower case.
    pub(crate) method: &'static str,
    /// With the names of its parameters, as in the OpenAPI document.
    pub(crate) path: &'static str,
    /// Its callers need one of these; empty if everyone may call it. If there are several, the body decides which one it takes.
    pub(crate) needs: &'static [Permission],
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
}

const fn route(
    method: &'static str,
    path: &'static str,
    needs: &'static [Permission],
    tag: &'static str,
    summary: &'static str,
) -> ApiRoute {
    ApiRoute {
        method,
        path,
        needs,
        tag,
        summary,
    }
}

/// What the table says about a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FoundRoute {
    Listed(&'static ApiRoute),
    /// The router knows the path, and the table lists it with other methods only.
    OtherMethod,
    /// The router knows the path, and the table does not.
    NotListed,
    /// The router does not know the path.
    None,
}

impl FoundRoute {
    /// Looks a request up, which the router has matched.
    pub(crate) fn of(request: &Request) -> Self {
        let extensions = request.extensions();
        let Some(matched) = extensions.get::<MatchedPath>() else {
            return Self::None;
        };
        let matched = matched.as_str();
        // The program around the server may have put its routes below a path of its own.
        let nested = extensions.get::<NestedPath>().map(NestedPath::as_str);
        let path =
            match nested.and_then(|nested| matched.strip_prefix(nested.trim_end_matches('/'))) {
                Some(path) if path.starts_with('/') => path,
                Some(_) | None => matched,
            };
        Self::at(request.method(), path)
    }

    fn at(method: &Method, path: &str) -> Self {
        let found = match path.contains("{*") {
            // The router marks a parameter that may contain slashes.
            true => BY_PATH.get(path.replace("{*", "{").as_str()),
            false => BY_PATH.get(path),
        };
        let Some(found) = found else {
            return Self::NotListed;
        };
        let method = match *method {
            // The router answers it as it answers `GET`, without the body.
            Method::HEAD => "get",
            _ => method.as_str(),
        };
        let mut found = found.iter();
        match found.find(|route| route.method.eq_ignore_ascii_case(method)) {
            Some(route) => Self::Listed(route),
            None => Self::OtherMethod,
        }
    }
}

/// The routes of each path: every request looks its own up.
static BY_PATH: LazyLock<HashMap<&str, Vec<&ApiRoute>>> = LazyLock::new(|| {
    let mut routes: HashMap<_, Vec<_>> = HashMap::new();
    for route in ROUTES {
        routes.entry(route.path).or_default().push(route);
    }
    routes
});

/// For routes of every caller that is authenticated: none has no permission at all.
const ANY: &[Permission] = &Permission::ALL;

/// Tag of the routes whose bodies are files.
pub(crate) const FILES: &str = "Files";

#[rustfmt::skip]
pub(crate) const ROUTES: &[ApiRoute] = &[
    route("post", "/assistants", &[Admin], "Assistants", "Create an assistant"),
    route("post", "/assistants/search", &[Read], "Assistants", "Search assistants"),
    route("post", "/assistants/count", &[Read], "Assistants", "Count assistants"),
    route("get", "/assistants/{assistant_id}", &[Read], "Assistants", "Get an assistant"),
    route("patch", "/assistants/{assistant_id}", &[Admin], "Assistants", "Change an assistant, as a new version"),
    route("delete", "/assistants/{assistant_id}", &[Admin], "Assistants", "Delete an assistant"),
    route("get", "/assistants/{assistant_id}/graph", &[Read], "Assistants", "Get the graph of an assistant"),
    route("get", "/assistants/{assistant_id}/schemas", &[Read], "Assistants", "Get the schemas of an assistant's graph"),
    route("get", "/assistants/{assistant_id}/subgraphs", &[Read], "Assistants", "Get the schemas of subgraphs"),
    route("get", "/assistants/{assistant_id}/subgraphs/{namespace}", &[Read], "Assistants", "Get the schemas of a subgraph"),
    route("post", "/assistants/{assistant_id}/versions", &[Read], "Assistants", "List the versions of an assistant"),
    route("post", "/assistants/{assistant_id}/latest", &[Admin], "Assistants", "Use a version of an assistant"),
    route("post", "/threads", &[Run], "Threads", "Create a thread"),
    route("post", "/threads/search", &[Read], "Threads", "Search threads"),
    route("post", "/threads/count", &[Read], "Threads", "Count threads"),
    route("post", "/threads/prune", &[Edit], "Threads", "Delete threads, or their histories"),
    route("get", "/threads/{thread_id}", &[Read], "Threads", "Get a thread"),
    route("patch", "/threads/{thread_id}", &[Run], "Threads", "Change the metadata of a thread"),
    route("delete", "/threads/{thread_id}", &[Edit], "Threads", "Delete a thread"),
    route("get", "/threads/{thread_id}/storage", &[Read], "Threads", "Get how many bytes a thread takes"),
    route("post", "/threads/{thread_id}/copy", &[Run], "Threads", "Copy a thread"),
    route("get", "/threads/{thread_id}/state", &[Read], "Threads", "Get the state of a thread"),
    route("post", "/threads/{thread_id}/state", &[Edit], "Threads", "Change the state of a thread"),
    route("get", "/threads/{thread_id}/state/{checkpoint_id}", &[Read], "Threads", "Get the state at a checkpoint"),
    route("post", "/threads/{thread_id}/state/checkpoint", &[Read], "Threads", "Get the state at a checkpoint"),
    route("get", "/threads/{thread_id}/history", &[Read], "Threads", "List the checkpoints of a thread"),
    route("post", "/threads/{thread_id}/history", &[Read], "Threads", "List the checkpoints of a thread"),
    route("get", "/threads/{thread_id}/stream", &[Read], "Threads", "Stream what happens on a thread"),
    route("post", "/threads/{thread_id}/commands", &[Read, Run, Answer, Edit], "Threads", "Send a command to a thread"),
    route("post", "/threads/{thread_id}/stream/events", &[Read], "Threads", "Stream events of a thread by channel"),
    route("get", "/threads/{thread_id}/stream/events", &[Read, Run, Answer, Edit], "Threads", "Open a WebSocket for commands and events"),
    route("post", "/threads/{thread_id}/runs", &[Run, Answer, Edit], "Thread Runs", "Create a run in the background"),
    route("get", "/threads/{thread_id}/runs", &[Read], "Thread Runs", "List the runs of a thread"),
    route("post", "/threads/{thread_id}/runs/stream", &[Run, Answer, Edit], "Thread Runs", "Create a run and stream it"),
    route("post", "/threads/{thread_id}/runs/wait", &[Run, Answer, Edit], "Thread Runs", "Create a run and wait for its result"),
    route("get", "/threads/{thread_id}/runs/{run_id}", &[Read], "Thread Runs", "Get a run"),
    route("delete", "/threads/{thread_id}/runs/{run_id}", &[Edit], "Thread Runs", "Delete a run"),
    route("get", "/threads/{thread_id}/runs/{run_id}/join", &[Read], "Thread Runs", "Wait for the result of a run"),
    route("get", "/threads/{thread_id}/runs/{run_id}/stream", &[Read], "Thread Runs", "Join the stream of a run"),
    route("post", "/threads/{thread_id}/runs/{run_id}/cancel", &[Run], "Thread Runs", "Cancel a run"),
    route("post", "/threads/{thread_id}/runs/crons", &[Run], "Crons", "Create a cron for a thread"),
    route("post", "/runs/crons", &[Run], "Crons", "Create a cron"),
    route("post", "/runs/crons/search", &[Read], "Crons", "Search crons"),
    route("post", "/runs/crons/count", &[Read], "Crons", "Count crons"),
    route("get", "/runs/crons/{cron_id}", &[Read], "Crons", "Get a cron"),
    route("patch", "/runs/crons/{cron_id}", &[Run], "Crons", "Change a cron"),
    route("delete", "/runs/crons/{cron_id}", &[Run], "Crons", "Delete a cron"),
    route("post", "/runs", &[Run], "Stateless Runs", "Create a run on a temporary thread"),
    route("post", "/runs/stream", &[Run], "Stateless Runs", "Stream a run on a temporary thread"),
    route("post", "/runs/wait", &[Run], "Stateless Runs", "Wait for a run on a temporary thread"),
    route("get", "/runs/{run_id}/stream", &[Read], "Stateless Runs", "Join the stream of a run"),
    route("post", "/runs/batch", &[Run], "Stateless Runs", "Create several runs"),
    route("post", "/runs/cancel", &[Run], "Stateless Runs", "Cancel several runs"),
    route("put", "/store/items", &[Edit], "Store", "Store an item"),
    route("get", "/store/items", &[Read], "Store", "Get an item"),
    route("delete", "/store/items", &[Edit], "Store", "Delete an item"),
    route("post", "/store/items/search", &[Read], "Store", "Search items"),
    route("post", "/store/namespaces", &[Read], "Store", "List namespaces"),
    route("get", "/superstep/threads/{thread_id}/files", &[Read], FILES, "List the files of a thread"),
    route("put", "/superstep/threads/{thread_id}/files/{path}", &[Run], FILES, "Store a file of a thread"),
    route("get", "/superstep/threads/{thread_id}/files/{path}", &[Read], FILES, "Get a file of a thread"),
    route("delete", "/superstep/threads/{thread_id}/files/{path}", &[Edit], FILES, "Delete a file of a thread"),
    route("post", "/superstep/keys", &[Admin], "API keys", "Create an API key"),
    route("get", "/superstep/keys", &[Admin], "API keys", "List the API keys of the tenant"),
    route("delete", "/superstep/keys/{key_id}", &[Admin], "API keys", "Revoke an API key"),
    route("post", "/superstep/keys/{key_id}/rotate", &[Admin], "API keys", "Replace an API key by a new one"),
    route("get", "/", &[], "System", "Check whether the server answers"),
    route("get", "/openapi.json", &[], "System", "Get this document"),
    route("get", "/docs", &[], "System", "List the routes on a page"),
    route("get", "/superstep/deliveries", &[Read], "Webhooks", "List the deliveries to webhooks"),
    route("post", "/superstep/deliveries/{delivery_id}/repeat", &[Edit], "Webhooks", "Send a delivery again"),
    route("get", "/superstep/inbox", &[Read], "Inspection", "List the open interrupts of all threads"),
    route("get", "/superstep/queue", &[Read], "Inspection", "Get the pending and running runs"),
    route("get", "/superstep/sizes", &[Admin], "Inspection", "List how many bytes threads take, largest first"),
    route("get", "/superstep/budgets", &[Read], "Inspection", "List what budgets have spent and reserved"),
    route("post", "/superstep/budgets/raise", &[Edit], "Inspection", "Raise limits of a budget"),
    route("get", "/superstep/threads/{thread_id}/interrupts", &[Read], "Inspection", "List the interrupts of a thread, answered ones included"),
    route("get", "/superstep/threads/{thread_id}/tree", &[Read], "Inspection", "Get the checkpoints of a thread as a tree"),
    route("post", "/superstep/threads/{thread_id}/diff", &[Read], "Inspection", "Compare two states"),
    route("post", "/superstep/threads/{thread_id}/fork/preview", &[Read], "Inspection", "Get what a fork would do again"),
    route("get", "/superstep/threads/{thread_id}/case", &[Read], "Inspection", "Get a branch as a test case"),
    route("get", "/superstep/threads/{thread_id}/trace", &[Read], "Inspection", "Get the trace of a thread"),
    route("get", "/superstep/threads/{thread_id}/labels", &[Read], "Inspection", "Get the labels in a state"),
    route("post", "/mcp", &[Read, Run, Answer], "MCP", "Send a message of the Model Context Protocol"),
    route("get", "/mcp", &[Read], "MCP", "Not supported: streams belong to calls"),
    route("delete", "/mcp", &[Read], "MCP", "Not supported: there is no session to end"),
    route("post", "/mcp/", &[Read, Run, Answer], "MCP", "Send a message of the Model Context Protocol"),
    route("get", "/mcp/", &[Read], "MCP", "Not supported: streams belong to calls"),
    route("delete", "/mcp/", &[Read], "MCP", "Not supported: there is no session to end"),
    route("get", "/.well-known/agent-card.json", &[Read], "A2A", "Get the agent card of an assistant"),
    route("post", "/a2a/{assistant_id}", &[Read, Run, Answer], "A2A", "Send a request of the A2A protocol"),
    route("post", "/ag-ui/{assistant_id}", &[Run, Answer], "AG-UI", "Run an assistant and stream AG-UI events"),
    route("get", "/ok", &[], "System", "Check whether the server answers"),
    route("get", "/superstep/me", ANY, "System", "Get who the caller is, and what it may do"),
    route("get", "/superstep/audit", &[Admin], "System", "List entries of the audit log"),
    route("get", "/superstep/ready", &[], "System", "Check whether the server should get requests"),
    route("get", "/info", &[], "System", "Get the version and the features"),
    route("get", "/metrics", &[Admin], "System", "Get the metrics"),
];

#[test]
fn a_route_of_the_router_is_found_in_the_table() {
    let file = "/superstep/threads/{thread_id}/files/{*path}";
    let FoundRoute::Listed(found) = FoundRoute::at(&Method::HEAD, file) else {
        panic!("it is in the table");
    };
    assert_eq!(found.method, "get");
    let other = FoundRoute::at(&Method::POST, "/ok");
    assert!(matches!(other, FoundRoute::OtherMethod), "{other:?}");
    let unknown = FoundRoute::at(&Method::GET, "/nowhere");
    assert!(matches!(unknown, FoundRoute::NotListed), "{unknown:?}");
}
