//! Facts that outlive a thread, found by meaning.

use std::sync::Arc;

use serde_json::json;
use superstep::prelude::*;
use superstep::store::MemoryStore;
use superstep_agent::memory::{Memories, Source};
use superstep_llm::ScriptedEmbedder;

const WORDS: [&str; 6] = ["food", "eat", "nuts", "city", "live", "travel"];

#[derive(Clone, Debug, Default, State)]
struct Chat {
    question: String,
    reply: String,
}

async fn answer(chat: View<Chat>, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    let user: String = cx.context()?.ok_or("no user")?;
    let store = cx.store([user.as_str(), "memories"])?;
    let memories = Memories::new(store.inner()?, store.namespace().clone())
        .with_embedder(Arc::new(ScriptedEmbedder::new(WORDS)));
    let found = memories.search(&chat.question, 1).await?;
    let known = found.iter().find(|found| found.score > 0.0);
    let known = known.map_or(json!("nothing"), |found| {
        found.memory.value.read(&cx).clone()
    });
    let fact = cx.labeled(json!(chat.question));
    memories
        .patch(
            &cx.run().to_string(),
            fact,
            Source::node(&cx, "said in the chat"),
        )
        .await?;
    Ok(ChatUpdate::default().reply(format!("I know: {known}")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("chat").node("answer", answer);
    let graph = graph.edge(START, "answer").edge("answer", END).build()?;
    let runtime = Runtime::builder(Memory::default())
        .store(MemoryStore::default())
        .build();
    for (user, text) in [
        ("ann", "I live in a city by the sea."),
        ("ann", "I cannot eat nuts."),
        ("ann", "Which food can I eat?"),
        ("bob", "Which food can I eat?"),
    ] {
        let thread = runtime.thread(&graph, user)?.with_context(user)?;
        let result = thread.start(ChatUpdate::default().question(text)).await?;
        println!("{user}: {text} -> {}", result.state.reply);
    }
    Ok(())
}
