//! Streaming: tokens as a node emits them, and the log of the run, on one stream that can be rejoined.
//!
//! Run it: `cargo run -p example-graphs --bin stream_tokens`

use std::time::Duration;

use superstep::Event;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Poem {
    lines: u32,
    text: String,
}

async fn write(poem: View<Poem>, cx: NodeCx) -> Result<PoemUpdate, NodeError> {
    let mut text = String::new();
    for line in 1..=poem.lines {
        for word in ["line", &line.to_string(), "of a poem\n"] {
            tokio::time::sleep(Duration::from_millis(50)).await;
            // Live only: everyone who watches gets it now, and it is not stored.
            cx.emit_live(word)?;
            text.push_str(word);
            text.push(' ');
        }
    }
    Ok(PoemUpdate::default().text(text))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("poem")
        .node("write", write)
        .edge(START, "write")
        .edge("write", END)
        .build()?;
    let runtime = Runtime::new(Memory::default());
    let thread = runtime.thread(&graph, "first")?;

    let mut run = thread.stream(PoemUpdate::default().lines(3u32));
    while let Some(event) = run.next().await {
        match event? {
            Event::Live(event) => print!("{} ", event.payload.decode::<String>()?),
            Event::Replaced { .. } => println!("\n(the node runs again; discard its tokens)"),
            Event::Logged(event) => println!("entry {}: {:?}", event.seq, event.what),
        }
    }
    println!("{:?}", run.finish().await?.outcome);
    Ok(())
}
