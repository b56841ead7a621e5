//! What the conformance suite of MCP calls as tools, and the agent for A2A's compatibility kit.
//!
//! Each graph is a tool. Its result is its final state as a text, so tools with images, audio or resources are not here.

mod conversation;
mod forms;
mod tools;

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;

pub(super) fn graphs() -> Result<Vec<Arc<Definition>>, BuildError> {
    Ok(vec![
        conversation::graph()?,
        forms::elicitation()?,
        forms::defaults()?,
        forms::choices()?,
        tools::simple_text()?,
        tools::error_handling()?,
        tools::with_progress()?,
    ])
}
