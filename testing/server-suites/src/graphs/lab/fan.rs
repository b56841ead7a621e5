//! `fan`: a task for each item, all in one superstep.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Fan {
    items: Vec<i64>,
    #[state(append)]
    out: Vec<i64>,
}

#[derive(Serialize, Deserialize)]
struct FanItem {
    i: i64,
}

const WORK: SendTo<FanItem> = SendTo::new("work");

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("fan")
        .node("plan", |_: View<Fan>, _: NodeCx| async {
            Ok::<_, NodeError>(FanUpdate::default())
        })
        .map_node(&WORK, |item: FanItem, _: NodeCx| async move {
            Ok::<_, NodeError>(FanUpdate::default().out(item.i * 2))
        })
        .edge(START, "plan")
        .route("plan", &["work"], spread)
        .edge("work", END)
        .inputs(["items", "out"])
        .build()?;
    Ok(graph.definition().clone())
}

fn spread(fan: &Fan) -> Vec<Goto<Fan>> {
    let send = |i: &i64| Goto::send(&WORK, FanItem { i: *i });
    fan.items.iter().map(send).collect()
}
