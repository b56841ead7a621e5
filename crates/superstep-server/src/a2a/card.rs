//! The card of an agent: what it can do, and where it is.

use axum::Json as JsonBody;
use axum::extract::State;
use http::HeaderMap;
use http::header::HOST;
use serde_json::{Value as Json, json};
use superstep::graph::Definition;
use superstep::registry::Assistant;

use crate::caller::{Caller, QueryFields};
use crate::error::{ApiError, ApiResult};
use crate::follow::message_channel;
use crate::{App, assistant, wire};

/// Returns the card of the assistant that the query names, or of the first graph.
pub(super) async fn read(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let first = app.graphs.keys().next().map(String::as_str);
    let name = query.text("assistant_id").or(first);
    let name = name.ok_or_else(|| ApiError::not_found("This server has no graph"))?;
    let assistant = assistant::get(&app, &caller, name).await?;
    let graph = assistant::graph_of(&app, &assistant)?;
    Ok(JsonBody(card(&assistant, &graph, &base_url(&headers))))
}

/// Returns the address under which the client reaches the server. Hosts that are not allowed do not get here.
fn base_url(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = match text("x-forwarded-proto") {
        Some("https") => "https",
        _ => "http",
    };
    format!("{scheme}://{}", text(HOST.as_str()).unwrap_or("localhost"))
}

/// Returns a card that clients of both versions read.
fn card(assistant: &Assistant, graph: &Definition, base: &str) -> Json {
    let id = wire::uuid(assistant.id.to_bytes());
    let url = format!("{base}/a2a/{id}");
    let description = match assistant.description.is_empty() {
        true => format!(
            "The assistant `{}` of the graph `{}`.",
            assistant.name, assistant.graph
        ),
        false => assistant.description.clone(),
    };
    let modes = match message_channel(graph) {
        Some(_) => json!(["text/plain", "application/json"]),
        None => json!(["application/json"]),
    };
    let names: Vec<&str> = graph.inputs().iter().copied().collect();
    let interface = |version: &str| json!({ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": version });
    json!({
        "name": assistant.name,
        "description": description,
        "version": assistant.version.to_string(),
        "supportedInterfaces": [interface("1.0"), interface("0.3")],
        // The next three are read by clients of version 0.3.
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": "JSONRPC",
        "capabilities": {
            "streaming": true,
            "pushNotifications": false,
            "stateTransitionHistory": false,
        },
        "defaultInputModes": modes,
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [{
            "id": assistant.graph,
            "name": assistant.name,
            "description": format!("{description} Inputs: {}.", names.join(", ")),
            "tags": [assistant.graph],
        }],
    })
}

#[test]
fn the_address_is_the_one_that_the_client_used() {
    let mut headers = HeaderMap::new();
    assert_eq!(base_url(&headers), "http://localhost");
    headers.insert(HOST, "agents.example.com".parse().unwrap());
    headers.insert("x-forwarded-proto", "https".parse().unwrap());
    assert_eq!(base_url(&headers), "https://agents.example.com");
    headers.insert("x-forwarded-proto", "javascript".parse().unwrap());
    assert_eq!(base_url(&headers), "http://agents.example.com");
}
