//! A graph as a node of another, with a state of its own.

use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Essay {
    text: String,
    words: usize,
}

#[derive(Clone, Debug, Default, State)]
struct Report {
    topic: String,
    report: String,
}

async fn write(essay: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> {
    Ok(EssayUpdate::default().text(format!("{} sleep all day", essay.text)))
}

async fn count(essay: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> {
    Ok(EssayUpdate::default().words(essay.text.split_whitespace().count()))
}

fn topic(report: &Report) -> EssayUpdate {
    EssayUpdate::default().text(report.topic.clone())
}

fn summary(_: &Report, essay: &Essay) -> ReportUpdate {
    ReportUpdate::default().report(format!("{} ({} words)", essay.text, essay.words))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let writer = Graph::builder("writer")
        .node("write", write)
        .node("count", count)
        .edge(START, "write")
        .edge("write", "count")
        .edge("count", END)
        .build()?;
    let graph = Graph::builder("report")
        .subgraph("writer", writer, topic, summary)
        .edge(START, "writer")
        .edge("writer", END)
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "cats")?;
    let result = thread.start(ReportUpdate::default().topic("Cats")).await?;
    println!("{:?}", result.state);
    Ok(())
}
