//! The graphs of the integration suite of the Python SDK.

mod agent;
mod deep_agent;
mod factory_agent;
mod tools_agent;

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;

pub(super) fn graphs() -> Result<Vec<Arc<Definition>>, BuildError> {
    Ok(vec![
        agent::graph()?,
        tools_agent::graph()?,
        deep_agent::graph()?,
        factory_agent::graph()?,
    ])
}
