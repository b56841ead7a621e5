//! `delay`: a node that waits and may fail, and one after it.

use std::sync::Arc;
use std::time::Duration;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Delay {
    ms: Option<u64>,
    fail: Option<bool>,
    #[state(append)]
    log: Vec<String>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("delay")
        .node("slow", slow)
        .node("done", |_: View<Delay>, _: NodeCx| async {
            Ok::<_, NodeError>(DelayUpdate::default().log("done"))
        })
        .edge(START, "slow")
        .edge("slow", "done")
        .edge("done", END)
        .inputs(["ms", "fail", "log"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn slow(delay: View<Delay>, _: NodeCx) -> Result<DelayUpdate, NodeError> {
    tokio::time::sleep(Duration::from_millis(delay.ms.unwrap_or_default())).await;
    match delay.fail {
        Some(true) => Err(NodeError::fatal("kaboom").with_code("ValueError")),
        _ => Ok(DelayUpdate::default().log("slow")),
    }
}
