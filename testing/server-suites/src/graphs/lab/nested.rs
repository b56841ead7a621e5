//! `nested`: a subgraph that shares two channels with its parent and asks a person.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Outer {
    n: Option<i64>,
    asked: Option<Json>,
    #[state(append)]
    log: Vec<String>,
}

#[derive(Clone, Debug, Default, State)]
struct Inner {
    n: Option<i64>,
    asked: Option<Json>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("nested")
        .node("p1", |_: View<Outer>, _: NodeCx| async {
            Ok::<_, NodeError>(OuterUpdate::default().n(Some(1)).log("p1"))
        })
        .subgraph("sub", child()?, down, up)
        .node("p2", |_: View<Outer>, _: NodeCx| async {
            Ok::<_, NodeError>(OuterUpdate::default().log("p2"))
        })
        .edge(START, "p1")
        .edge("p1", "sub")
        .edge("sub", "p2")
        .edge("p2", END)
        .inputs(["n", "asked", "log"])
        .build()?;
    Ok(graph.definition().clone())
}

fn child() -> Result<Graph<Inner>, BuildError> {
    Graph::builder("child")
        .node("c1", |inner: View<Inner>, _: NodeCx| async move {
            let n = inner.n.unwrap_or_default() + 10;
            Ok::<_, NodeError>(InnerUpdate::default().n(Some(n)))
        })
        .node("c2", ask)
        .edge(START, "c1")
        .edge("c1", "c2")
        .edge("c2", END)
        .inputs(["n", "asked"])
        .build()
}

async fn ask(_: View<Inner>, cx: NodeCx) -> Result<InnerUpdate, NodeError> {
    let question = Interrupt::new("c2", json!({ "q": "child?" }));
    let answer: Json = cx.interrupt(question).await?;
    Ok(InnerUpdate::default().asked(answer))
}

/// Passes on what the parent has, and writes nothing else.
fn down(outer: &Outer) -> InnerUpdate {
    let mut update = InnerUpdate::default();
    if outer.n.is_some() {
        update = update.n(outer.n);
    }
    if outer.asked.is_some() {
        update = update.asked(outer.asked.clone());
    }
    update
}

fn up(_: &Outer, inner: &Inner) -> OuterUpdate {
    OuterUpdate::default().n(inner.n).asked(inner.asked.clone())
}
