//! A graph with a loop.

use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Text {
    topic: String,
    draft: String,
    revision: u32,
}

async fn write(text: View<Text>, _: NodeCx) -> Result<TextUpdate, NodeError> {
    let revision = text.revision + 1;
    let draft = format!("A text about {}, version {revision}", text.topic);
    Ok(TextUpdate::default().draft(draft).revision(revision))
}

async fn publish(text: View<Text>, _: NodeCx) -> Result<TextUpdate, NodeError> {
    Ok(TextUpdate::default().draft(format!("{} (published)", text.draft)))
}

fn route(text: &Text) -> &'static str {
    if text.revision < 3 {
        "write"
    } else {
        "publish"
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("text")
        .node("write", write)
        .node("publish", publish)
        .edge(START, "write")
        .route("write", &["write", "publish"], route)
        .edge("publish", END)
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "first")?;
    let result = thread.start(TextUpdate::default().topic("cats")).await?;
    println!("{}", result.state.draft);
    Ok(())
}
