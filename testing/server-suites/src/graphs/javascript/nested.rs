//! `nested`: a graph in a graph in a graph, each of which appends a line.
//!
//! As in the original, a child returns all of its lines, those that it was given included, and its parent appends them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct GrandParent {
    #[state(append)]
    messages: Vec<String>,
}

#[derive(Clone, Debug, Default, State)]
struct Parent {
    #[state(append)]
    messages: Vec<String>,
    parent: Option<ParentPart>,
}

#[derive(Clone, Debug, Default, State)]
struct Child {
    #[state(append)]
    messages: Vec<String>,
    child: Option<ChildPart>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ParentPart {
    ParentOne,
    ParentTwo,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ChildPart {
    ChildOne,
    ChildTwo,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("nested")
        .node("gp_one", |_: View<GrandParent>, _: NodeCx| async {
            Ok::<_, NodeError>(GrandParentUpdate::default().messages("Entered gp_one node"))
        })
        .subgraph(
            "gp_two",
            parent()?,
            |outer: &GrandParent| ParentUpdate::default().messages_all(outer.messages.clone()),
            |_: &GrandParent, inner: &Parent| {
                GrandParentUpdate::default().messages_all(inner.messages.clone())
            },
        )
        .edge(START, "gp_one")
        .edge("gp_one", "gp_two")
        .edge("gp_two", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

fn parent() -> Result<Graph<Parent>, BuildError> {
    Graph::builder("parent")
        .node("p_one", |_: View<Parent>, _: NodeCx| async {
            Ok::<_, NodeError>(ParentUpdate::default().messages("Entered p_one node"))
        })
        .subgraph(
            "p_two",
            child()?,
            |outer: &Parent| ChildUpdate::default().messages_all(outer.messages.clone()),
            |_: &Parent, inner: &Child| {
                ParentUpdate::default().messages_all(inner.messages.clone())
            },
        )
        .edge(START, "p_one")
        .edge("p_one", "p_two")
        .edge("p_two", END)
        .inputs(["messages", "parent"])
        .build()
}

fn child() -> Result<Graph<Child>, BuildError> {
    Graph::builder("child")
        .node("c_one", |_: View<Child>, _: NodeCx| async {
            Ok::<_, NodeError>(ChildUpdate::default().messages("Entered c_one node"))
        })
        .node("c_two", |_: View<Child>, _: NodeCx| async {
            Ok::<_, NodeError>(ChildUpdate::default().messages("Entered c_two node"))
        })
        .edge(START, "c_one")
        .edge("c_one", "c_two")
        .edge("c_two", END)
        .inputs(["messages", "child"])
        .build()
}
