//! `dynamic`: a graph whose only node has the name that the run's settings give.
//!
//! The original is built for each run. A graph here is built once, so it has the three nodes that the suite names, and a node
//! before them that chooses one.

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

use crate::graphs::settings::text_setting;

#[derive(Clone, Debug, Default, State)]
struct NodeByName {
    node: Option<String>,
    #[state(append)]
    messages: Vec<String>,
}

const NAMES: [&str; 3] = ["default", "runtime", "assistant"];

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let mut graph = Graph::builder("dynamic")
        .node("choose", choose)
        .edge(START, "choose")
        .commands("choose", &NAMES)
        .inputs(["node", "messages"]);
    for name in NAMES {
        let write = move |_: View<NodeByName>, _: NodeCx| async move {
            let update = NodeByNameUpdate::default().node(name.to_owned());
            Ok::<_, NodeError>(update.messages(name))
        };
        graph = graph.node(name, write).edge(name, END);
    }
    Ok(graph.build()?.definition().clone())
}

async fn choose(_: View<NodeByName>, cx: NodeCx) -> Result<Command<NodeByName>, NodeError> {
    let name = text_setting(&cx, "nodeName")?;
    Ok(Command::to(name.as_deref().unwrap_or("default")))
}
