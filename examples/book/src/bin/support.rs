//! The program of the page on the server: a graph that answers a customer, and asks a person before it pays.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::label::Labels;
use superstep::prelude::*;
use superstep_agent::{ChatMessage, ask_model};
use superstep_llm::{Model, Request};
use superstep_server::{FolderFiles, Server};
use superstep_sqlite::Sqlite;

#[derive(Clone, Debug, Default, State)]
struct Support {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    /// Not an input: only nodes write it.
    receipt: Option<String>,
}

type Models = Arc<dyn Model>;

async fn answer(
    model: Models,
    chat: View<Support>,
    cx: NodeCx,
) -> Result<SupportUpdate, NodeError> {
    let messages = chat
        .messages
        .iter()
        .map(|message| message.message.clone())
        .collect();
    // Streams the tokens of the reply.
    let reply = ask_model(&*model, &Request::new("answer", messages), &cx).await?;
    Ok(SupportUpdate::default().messages(ChatMessage::new(reply.message(), Labels::NONE)))
}

async fn refund(_: View<Support>, cx: NodeCx) -> Result<SupportUpdate, NodeError> {
    // The form that Agent Inbox shows with buttons.
    let request = json!({
        "action_request": { "action": "refund", "args": { "cents": 1900 } },
        "config": { "allow_accept": true, "allow_edit": false, "allow_respond": false, "allow_ignore": true },
        "description": "Refund the customer?",
    });
    let decision: Json = cx.interrupt(Interrupt::new("refund", request)).await?;
    let is_accepted = decision["type"] == "accept";
    let key = cx.effect_key("refund");
    Ok(SupportUpdate::default().receipt(is_accepted.then(|| format!("paid under {key}"))))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().unwrap_or("ollama:qwen3:8b".to_owned());
    let address = arguments.next().unwrap_or("127.0.0.1:2024".to_owned());

    let model = superstep_llm::open(&model.parse()?)?;
    let graph = Graph::builder("support")
        .node("answer", with(&model, answer))
        .node("refund", refund)
        .edge(START, "answer")
        .edge("answer", "refund")
        .edge("refund", END)
        // What callers may write. Default: nothing.
        .inputs(["messages"])
        .build()?;

    let store = Sqlite::open("support.db")?;
    // One process executes the runs of a database. The lock ends with the process, however it ends.
    let _owner = store
        .try_own_queue()?
        .ok_or("another process serves support.db")?;
    let runtime = Runtime::builder(store.clone()).store(store.clone()).build();
    let server = Server::builder(runtime, Arc::new(store.clone()))
        .graph(graph.definition())
        .store(Arc::new(store))
        // Where callers put files of their threads. Default: none.
        .files(Arc::new(FolderFiles::new("files")))
        .start()
        .await?;

    let listener = tokio::net::TcpListener::bind(address).await?;
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    Ok(server.serve(listener, stop).await?)
}
