//! Accepted MCP servers as APIs: each tool of a server is a call.

use archie_agent::mcp::{McpServers, is_unasked};
use serde_json::Value as Json;
use superstep::NodeError;
use superstep_agent::Tool;

use crate::catalogue::{Api, Catalogue, Dialect, Parameter, Place};

/// Returns the servers whose tools can be called. Starts them if needed.
pub(super) async fn all(mcp: &McpServers) -> Vec<Catalogue> {
    let tools = mcp.tools().await.tools;
    let servers = mcp.settings().iter();
    servers
        .filter_map(|server| catalogue(&server.name, &tools))
        .collect()
}

/// Returns the server with this name; `None` if the settings name none. A server that cannot be used is an error: the thread can be
/// resumed once it can.
pub(super) async fn find(mcp: &McpServers, name: &str) -> Result<Option<Catalogue>, NodeError> {
    if mcp.find(name).is_err() {
        return Ok(None);
    }
    let found = mcp.tools().await;
    if let Some(server) = found.unusable.iter().find(|server| server.name == name) {
        return Err(NodeError::fatal(format!(
            "the MCP server `{name}` cannot be used: {}",
            server.why
        )));
    }
    Ok(catalogue(name, &found.tools))
}

/// Returns the tools of a server as an API; `None` if it has none.
fn catalogue(server: &str, tools: &[Tool]) -> Option<Catalogue> {
    let prefix = format!("{server}__");
    let apis: Vec<Api> = tools
        .iter()
        .filter_map(|tool| Some(api(server, tool.name().strip_prefix(&prefix)?, tool)))
        .collect();
    (!apis.is_empty()).then(|| Catalogue {
        name: server.to_owned(),
        title: format!("the MCP server `{server}`"),
        hosts: Vec::new(),
        apis,
        key: None,
        keyed: false,
        dialect: Dialect::Mcp,
        responses: Default::default(),
    })
}

fn api(server: &str, name: &str, tool: &Tool) -> Api {
    let spec = tool.spec();
    let words = name.replace(['_', '-'], " ");
    let (required, optional) = parameters(&spec.schema);
    Api {
        id: tool.name().to_owned(),
        category_name: server.to_owned(),
        tool_name: words.clone(),
        api_name: words,
        api_description: spec.description.clone(),
        required_parameters: required,
        optional_parameters: optional,
        // Only a tool that the settings declare as reading is one that a plain question may choose freely.
        method: match is_unasked(tool) {
            true => "GET",
            false => "CALL",
        }
        .to_owned(),
        api_url: format!("/{name}"),
        body: Default::default(),
    }
}

/// Returns the required and the optional parameters of a tool.
fn parameters(schema: &Json) -> (Vec<Parameter>, Vec<Parameter>) {
    let is_required = |name: &str| {
        let required = schema["required"].as_array().into_iter().flatten();
        required.into_iter().any(|other| other == name)
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let parameters = properties.map(|(name, property)| Parameter {
        name: name.clone(),
        description: property["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        kind: kind(&property["type"]).to_owned(),
        default: property["default"].clone(),
        place: Place::Body,
        choices: property["enum"].as_array().cloned().unwrap_or_default(),
        format: property["format"].as_str().unwrap_or_default().to_owned(),
    });
    parameters.partition(|parameter| is_required(&parameter.name))
}

/// Returns the type of a parameter: of several, the first that is not null.
fn kind(types: &Json) -> &str {
    let several = types.as_array().into_iter().flatten();
    let mut names = several.chain([types]).filter_map(Json::as_str);
    names.find(|name| *name != "null").unwrap_or("string")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_a_list_of_parameters() {
        let (required, optional) = parameters(&json!({
            "type": "object",
            "required": ["city"],
            "properties": {
                "city": { "type": "string", "description": "Where." },
                "days": { "type": ["null", "integer"], "default": 3 },
                "unit": { "enum": ["c", "f"] }
            }
        }));
        assert_eq!(required.len(), 1);
        assert_eq!(required[0].name, "city");
        assert_eq!(required[0].description, "Where.");
        let kinds: Vec<_> = optional.iter().map(|one| one.kind.as_str()).collect();
        assert_eq!(kinds, ["integer", "string"]);
        assert_eq!(optional[0].default, json!(3));
        assert_eq!(optional[1].choices, [json!("c"), json!("f")]);
        assert_eq!(parameters(&json!({})), (Vec::new(), Vec::new()));
    }
}
