//! The graphs that the web apps are driven with: a chat that a person can reload in the middle of an answer, an agent whose tool
//! calls need approval, and two questions at once.

mod refunds;
mod slow_chat;
mod two_nodes;

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;

pub(super) fn graphs() -> Result<Vec<Arc<Definition>>, BuildError> {
    Ok(vec![
        slow_chat::graph()?,
        refunds::graph()?,
        refunds::nested_graph()?,
        two_nodes::graph()?,
    ])
}
