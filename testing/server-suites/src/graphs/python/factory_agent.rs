//! `factory_agent`: an echo. The original is built for each run and writes what the server passed to its factory; a graph
//! here is built once, so it writes what that server passes for a run on a thread.

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Echo {
    text: Option<String>,
    access_context: Option<String>,
    is_for_execution: Option<bool>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("factory_agent")
        .node("echo", echo)
        .edge(START, "echo")
        .edge("echo", END)
        .inputs(["text", "access_context", "is_for_execution"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn echo(state: View<Echo>, _: NodeCx) -> Result<EchoUpdate, NodeError> {
    let text = state.text.as_deref().unwrap_or_default();
    Ok(EchoUpdate::default()
        .text(format!("{text} echoed"))
        .access_context("threads.create_run".to_owned())
        .is_for_execution(Some(true)))
}
