//! The small graphs that were compared with the reference server, mode by mode.

mod agent;
mod chain;
mod delay;
mod fan;
mod hitl;
mod inbox;
mod nested;
mod python_text;

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;

pub(super) fn graphs() -> Result<Vec<Arc<Definition>>, BuildError> {
    Ok(vec![
        agent::graph()?,
        inbox::inbox()?,
        chain::graph()?,
        nested::graph()?,
        fan::graph()?,
        delay::graph()?,
        hitl::graph()?,
        inbox::both()?,
    ])
}
