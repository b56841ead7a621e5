//! Subgraphs: a graph as a node of another, with a state of its own and a mapping in and out.
//!
//! Run it: `cargo run -p example-graphs --bin nested_graphs`

use superstep::prelude::*;

/// The state of the outer graph.
#[derive(Clone, Debug, Default, State)]
struct Article {
    topic: String,
    text: String,
}

/// The state of the inner graph, which the outer one never sees.
#[derive(Clone, Debug, Default, State)]
struct Research {
    question: String,
    #[state(append)]
    notes: Vec<String>,
}

async fn search(research: View<Research>, _cx: NodeCx) -> Result<ResearchUpdate, NodeError> {
    let note = format!("found a page about {}", research.question);
    Ok(ResearchUpdate::default().notes(note))
}

async fn summarize(research: View<Research>, _cx: NodeCx) -> Result<ResearchUpdate, NodeError> {
    let note = format!("summary of {} note(s)", research.notes.len());
    Ok(ResearchUpdate::default().notes(note))
}

async fn publish(article: View<Article>, _cx: NodeCx) -> Result<ArticleUpdate, NodeError> {
    println!("published: {}", article.text);
    Ok(ArticleUpdate::default())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let research = Graph::builder("research")
        .node("search", search)
        .node("summarize", summarize)
        .edge(START, "search")
        .edge("search", "summarize")
        .edge("summarize", END)
        .build()?;
    let graph = Graph::builder("article")
        .subgraph(
            "research",
            research,
            |article: &Article| ResearchUpdate::default().question(article.topic.clone()),
            |_, research: &Research| ArticleUpdate::default().text(research.notes.join("; ")),
        )
        .node("publish", publish)
        .edge(START, "research")
        .edge("research", "publish")
        .edge("publish", END)
        .build()?;
    println!("{}", graph.drawing().to_mermaid());

    let runtime = Runtime::new(Memory::default());
    let thread = runtime.thread(&graph, "first")?;
    let stopped = thread
        .start(ArticleUpdate::default().topic("supersteps"))
        .await?;
    println!("{:?}", stopped.outcome);
    Ok(())
}
