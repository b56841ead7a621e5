//! The graphs of `libs/langgraph-api/tests` in langgraphjs.

mod agent;
mod agent_simple;
mod delay;
mod dynamic;
mod error;
mod nested;
mod schema_graphs;
mod simple_runtime;
mod weather;

use std::sync::Arc;

use serde_json::json;
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::registry::AssistantChange;

pub(super) fn graphs() -> Result<Vec<Arc<Definition>>, BuildError> {
    Ok(vec![
        agent::graph()?,
        nested::graph()?,
        weather::graph()?,
        error::graph()?,
        delay::graph()?,
        dynamic::graph()?,
        agent_simple::graph()?,
        simple_runtime::graph()?,
        schema_graphs::state_schema()?,
        schema_graphs::zod_registry()?,
        schema_graphs::plain_zod()?,
    ])
}

/// Returns what the suite's `langgraph.json` sets for default assistants.
pub(super) fn assistant_settings() -> Vec<(&'static str, AssistantChange)> {
    let settings = |fields: serde_json::Value| AssistantChange {
        config: Some(json!({ "configurable": fields })),
        context: Some(fields),
        ..AssistantChange::default()
    };
    vec![
        ("agent", settings(json!({ "model_name": "openai" }))),
        ("simple_runtime", settings(json!({ "model": "unknown" }))),
    ]
}
