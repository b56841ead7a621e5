use superstep::prelude::*;
use superstep::store::MemoryStore;

#[derive(Clone, Debug, Default, State)]
struct Chat {
    question: String,
    reply: String,
}

async fn answer(chat: View<Chat>, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    let user: String = cx.context()?.ok_or("no user")?;
    let memories = cx.store([user.as_str(), "memories"])?;
    let known: Vec<(String, String)> = memories.list(10).await?;
    memories.put(&cx.run().to_string(), &chat.question).await?;
    let known = known.into_iter().map(|(_, text)| text).next();
    Ok(ChatUpdate::default().reply(format!("I know: {}", known.as_deref().unwrap_or("nothing"))))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("chat").node("answer", answer);
    let graph = graph.edge(START, "answer").edge("answer", END).build()?;
    let runtime = Runtime::builder(Memory::default())
        .store(MemoryStore::default())
        .build();
    for (at, (user, text)) in [
        ("ann", "I cannot eat nuts."),
        ("ann", "Which food can I eat?"),
        ("bob", "Which food can I eat?"),
    ]
    .into_iter()
    .enumerate()
    {
        let thread = runtime
            .thread(&graph, format!("chat-{at}"))?
            .with_context(user)?;
        let result = thread.start(ChatUpdate::default().question(text)).await?;
        println!("{user}: {text} -> {}", result.state.reply);
    }
    Ok(())
}
