//! The smallest useful graph: two nodes, a route between them, and a drawing.
//!
//! Run it: `cargo run -p example-graphs --bin hello_graph`

use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Draft {
    topic: String,
    text: String,
    rounds: u32,
}

async fn write(draft: View<Draft>, _cx: NodeCx) -> Result<DraftUpdate, NodeError> {
    let text = match draft.rounds {
        0 => format!("{} is a thing.", draft.topic),
        _ => format!("{} More precisely: it holds.", draft.text),
    };
    Ok(DraftUpdate::default().text(text).rounds(draft.rounds + 1))
}

async fn publish(draft: View<Draft>, _cx: NodeCx) -> Result<DraftUpdate, NodeError> {
    println!("published after {} rounds: {}", draft.rounds, draft.text);
    Ok(DraftUpdate::default())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("draft")
        .node("write", write)
        .node("publish", publish)
        .edge(START, "write")
        .route("write", &["write", "publish"], |draft: &Draft| {
            if draft.rounds < 3 { "write" } else { "publish" }
        })
        .edge("publish", END)
        .build()?;
    println!("{}", graph.drawing().to_mermaid());

    let runtime = Runtime::new(Memory::default());
    let thread = runtime.thread(&graph, "first")?;
    let stopped = thread
        .start(DraftUpdate::default().topic("A superstep"))
        .await?;
    println!("{:?} at checkpoint {}", stopped.outcome, stopped.seq);
    Ok(())
}
