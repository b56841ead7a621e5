//! `chain`: five nodes, each of which emits its number, counts and writes a line.

use std::sync::Arc;

use serde_json::json;
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Chain {
    n: Option<i64>,
    #[state(append)]
    log: Vec<String>,
}

const LENGTH: u32 = 5;

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let mut graph = Graph::<Chain>::builder("chain").inputs(["n", "log"]);
    for number in 0..LENGTH {
        let name = format!("s{number}");
        let step = move |chain: View<Chain>, cx: NodeCx| async move {
            cx.emit(json!({ "at": number }))?;
            let update = ChainUpdate::default().n(Some(chain.n.unwrap_or_default() + 1));
            Ok::<_, NodeError>(update.log(format!("s{number}")))
        };
        graph = match number {
            0 => graph.edge(START, name.as_str()),
            _ => graph.edge(format!("s{}", number - 1), name.as_str()),
        };
        graph = graph.node(name, step);
    }
    let graph = graph.edge(format!("s{}", LENGTH - 1), END).build()?;
    Ok(graph.definition().clone())
}
