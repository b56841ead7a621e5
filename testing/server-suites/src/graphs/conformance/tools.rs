//! Tools without arguments: a text, an error, and one that reports its progress.

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct TextOutput {
    text: Option<String>,
}

pub(super) fn simple_text() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("test_simple_text")
        .node("say", |_: View<TextOutput>, _: NodeCx| async {
            let text = "This is a simple text response for testing.".to_owned();
            Ok::<_, NodeError>(TextOutputUpdate::default().text(text))
        })
        .edge(START, "say")
        .edge("say", END)
        .build()?;
    Ok(graph.definition().clone())
}

pub(super) fn error_handling() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("test_error_handling")
        .node("fail", |_: View<TextOutput>, _: NodeCx| async {
            let why = "This tool intentionally returns an error for testing";
            Err::<TextOutputUpdate, _>(NodeError::fatal(why))
        })
        .edge(START, "fail")
        .edge("fail", END)
        .build()?;
    Ok(graph.definition().clone())
}

/// Reports three steps: each node is one.
pub(super) fn with_progress() -> Result<Arc<Definition>, BuildError> {
    let step =
        |_: View<TextOutput>, _: NodeCx| async { Ok::<_, NodeError>(TextOutputUpdate::default()) };
    let graph = Graph::builder("test_tool_with_progress")
        .node("begin", step)
        .node("half", step)
        .node("end", |_: View<TextOutput>, _: NodeCx| async {
            Ok::<_, NodeError>(TextOutputUpdate::default().text("done".to_owned()))
        })
        .edge(START, "begin")
        .edge("begin", "half")
        .edge("half", "end")
        .edge("end", END)
        .build()?;
    Ok(graph.definition().clone())
}
