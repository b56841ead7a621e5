//! `simple_runtime`: writes the model that the run's settings name.
//!
//! The original also declares a channel `message`, which nothing writes or reads, and which clients therefore never see.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

use crate::graphs::settings::setting;

#[derive(Clone, Debug, Default, State)]
struct ChosenModel {
    model: Option<ModelProvider>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ModelProvider {
    Openai,
    Anthropic,
    Unknown,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("simple_runtime")
        .node("use_context", use_context)
        .edge(START, "use_context")
        .edge("use_context", END)
        .inputs(["model"])
        .context_schema(json!({
            "type": "object",
            "properties": { "model": { "type": "string", "enum": ["anthropic", "openai", "unknown"] } },
        }))
        .build()?;
    Ok(graph.definition().clone())
}

async fn use_context(_: View<ChosenModel>, cx: NodeCx) -> Result<ChosenModelUpdate, NodeError> {
    let Some(model) = setting(&cx, "model")? else {
        return Ok(ChosenModelUpdate::default());
    };
    let model: ModelProvider = serde_json::from_value(model).map_err(NodeError::fatal)?;
    Ok(ChosenModelUpdate::default().model(model))
}
