//! `error`: one node that fails after a second.

use std::sync::Arc;
use std::time::Duration;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

#[derive(Clone, Debug, Default, State)]
struct Failing {
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("error")
        .node("error_node", fail)
        .edge(START, "error_node")
        .edge("error_node", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn fail(_: View<Failing>, _: NodeCx) -> Result<FailingUpdate, NodeError> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(NodeError::fatal("Boo!").with_code("CustomError"))
}
