//! Assistants as tools.

use serde_json::{Value as Json, json};
use superstep::ChannelKind;
use superstep::checkpoint::Page;
use superstep::graph::Definition;
use superstep::registry::{Assistant, AssistantQuery, AssistantSort};
use uuid::Uuid;

use crate::assistant::{self, default_id};
use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::json_rpc::RpcError;
use crate::{Shared, wire};

/// Lists the assistants of the caller's tenant, a page at a time.
pub(super) async fn list(app: &Shared, caller: &Caller, params: &Json) -> Result<Json, RpcError> {
    let offset = match params.get("cursor") {
        None | Some(Json::Null) => 0,
        Some(cursor) => {
            let read = cursor.as_str().and_then(|text| text.parse::<u32>().ok());
            read.ok_or_else(|| {
                RpcError::invalid_params("`cursor` is not a `nextCursor` of this list")
            })?
        }
    };
    if offset == 0 {
        // A tenant that has run nothing has no assistants yet.
        for graph in app.graphs.keys() {
            assistant::find(app, caller, graph).await?;
        }
    }
    let query = AssistantQuery {
        tenant: caller.tenant.clone(),
        sort: AssistantSort::Id,
        page: Page {
            limit: PAGE,
            offset,
        },
        ..AssistantQuery::default()
    };
    let found = app.registry().assistants(&query).await;
    let found = found.map_err(ApiError::from)?;
    // One whose graph is no longer served cannot be called.
    let is_usable = |found: &&Assistant| {
        caller.owns_assistant(found) || found.id == assistant::default_id(&found.graph)
    };
    let tools = found.iter().filter(is_usable);
    let tools = tools.filter_map(|found| {
        let graph = app.graphs.get(&found.graph)?;
        Some(tool(found, graph))
    });
    let mut result = json!({ "tools": tools.collect::<Vec<_>>() });
    if found.len() == PAGE as usize {
        result["nextCursor"] = (offset.saturating_add(PAGE)).to_string().into();
    }
    Ok(result)
}

/// Returns the assistant that a tool stands for; `None` if there is none.
pub(super) async fn find(
    app: &Shared,
    caller: &Caller,
    name: &str,
) -> ApiResult<Option<Assistant>> {
    if app.graphs.contains_key(name) {
        return assistant::find(app, caller, name).await;
    }
    let id = name.rsplit_once('_').map(|(_, id)| id);
    let id = id.filter(|id| id.len() == 32);
    match id.and_then(|id| Uuid::parse_str(id).ok()) {
        Some(id) => assistant::find(app, caller, &id.to_string()).await,
        None => Ok(None),
    }
}

/// Returns the name of an assistant's tool: that of its graph for the default one, and otherwise one that ends with its id, because
/// assistants may have the same name.
fn tool_name(assistant: &Assistant) -> String {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let graph = &assistant.graph;
    if assistant.id == default_id(graph)
        && (1..=NAME_MAX).contains(&graph.len())
        && graph.chars().all(is_name_char)
    {
        return graph.clone();
    }
    let safe = |c: char| if is_name_char(c) { c } else { '-' };
    let name: String = assistant.name.chars().map(safe).take(PREFIX_MAX).collect();
    let id = Uuid::from_bytes(assistant.id.to_bytes());
    format!("{name}_{}", id.simple())
}

fn tool(assistant: &Assistant, graph: &Definition) -> Json {
    let description = match assistant.description.is_empty() {
        true => format!("Runs the assistant `{}`.", assistant.name),
        false => assistant.description.clone(),
    };
    json!({
        "name": tool_name(assistant),
        "title": assistant.name,
        "description": description,
        "inputSchema": input_schema(graph),
        // The server does not know what the tools of a graph do, so it says the worst.
        "annotations": {
            "title": assistant.name,
            "readOnlyHint": false,
            "destructiveHint": true,
            "idempotentHint": false,
            "openWorldHint": true,
        },
        "_meta": { "superstep/assistant_id": wire::uuid(assistant.id.to_bytes()) },
    })
}

/// Returns the schema of a graph's inputs, in which a conversation is what a model can write: a text, or messages with roles.
fn input_schema(graph: &Definition) -> Json {
    let mut schema = graph.input_schema();
    schema["type"] = "object".into();
    let is_input = |name: &str| graph.inputs().iter().any(|input| *input == name);
    for channel in graph.channels() {
        if channel.kind == ChannelKind::Messages && is_input(channel.name) {
            schema["properties"][channel.name] = json!({
                "description": "What to say: one text, or messages with roles.",
                "anyOf": [
                    { "type": "string" },
                    {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "role": { "type": "string", "enum": ["user", "assistant", "system"] },
                                "content": { "type": "string" },
                            },
                            "required": ["role", "content"],
                        },
                    },
                ],
            });
        }
    }
    // Fields that the graph fills itself are not for callers.
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.retain(|name| name.as_str().is_some_and(is_input));
    }
    schema
}

/// Number of tools in a page.
const PAGE: u32 = 100;
/// Longest name that all clients take.
const NAME_MAX: usize = 64;
/// Number of characters of an assistant's name before its id.
const PREFIX_MAX: usize = 31;

#[cfg(test)]
mod tests {
    use superstep::{AssistantId, Timestamp};

    use super::*;

    #[test]
    fn names_of_tools_are_short_and_unique() {
        let default = assistant::default_of("chat", "", Timestamp(0));
        let own = Assistant {
            tenant: String::new(),
            id: default.id,
            graph: default.graph,
            name: "Chat".to_owned(),
            description: String::new(),
            config: json!({}),
            context: json!({}),
            metadata: json!({}),
            version: 1,
            created: Timestamp(0),
            updated: Timestamp(0),
        };
        assert_eq!(tool_name(&own), "chat");
        let other = Assistant {
            id: AssistantId::from_bytes([7; 16]),
            name: "Grüße, Ada! ".repeat(10),
            ..own
        };
        let name = tool_name(&other);
        assert_eq!(
            name,
            format!("Gr--e--Ada--Gr--e--Ada--Gr--e--_{}", "07".repeat(16))
        );
        assert!(name.len() <= NAME_MAX, "{name}");
    }
}
