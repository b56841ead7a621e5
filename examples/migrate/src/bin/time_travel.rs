//! Find a checkpoint, fork there, resume.

use superstep::Seq;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Joke {
    topic: String,
    joke: String,
}

async fn choose(_: View<Joke>, _: NodeCx) -> Result<JokeUpdate, NodeError> {
    Ok(JokeUpdate::default().topic("cats"))
}

async fn write(state: View<Joke>, _: NodeCx) -> Result<JokeUpdate, NodeError> {
    Ok(JokeUpdate::default().joke(format!("A joke about {}", state.topic)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("jokes")
        .node("choose", choose)
        .node("write", write)
        .edge(START, "choose")
        .edge("choose", "write")
        .edge("write", END)
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "jokes")?;
    println!("{}", thread.start(JokeUpdate::default()).await?.state.joke);
    let checkpoints = thread.checkpoints(Seq(0), 100).await?;
    let before = checkpoints
        .iter()
        .find(|checkpoint| checkpoint.next == ["write"]);
    thread
        .fork(before.ok_or("no checkpoint before `write`")?.seq)
        .await?;
    thread
        .update_as("choose", JokeUpdate::default().topic("dogs"))
        .await?;
    println!("{}", thread.resume().await?.state.joke);
    for checkpoint in thread.checkpoints(Seq(0), 100).await? {
        println!(
            "{} {:?} {:?}",
            checkpoint.seq, checkpoint.kind, checkpoint.state
        );
    }
    Ok(())
}
