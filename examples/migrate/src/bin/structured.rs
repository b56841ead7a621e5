//! A typed reply, with one repair.

use std::sync::Arc;

use example_migrate::{form, script};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::prelude::*;
use superstep_agent::ask_model_for;
use superstep_llm::{Message, Model, Request};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Priority {
    #[default]
    Low,
    High,
}

/// A ticket for the help desk.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Ticket {
    title: String,
    priority: Priority,
    #[schemars(range(min = 1))]
    seats: u32,
}

#[derive(Clone, Debug, Default, State)]
struct Mail {
    mail: String,
    ticket: Option<Ticket>,
}

async fn extract(
    model: Arc<dyn Model>,
    mail: View<Mail>,
    cx: NodeCx,
) -> Result<MailUpdate, NodeError> {
    let text = format!("Make a ticket of this mail: {}", mail.mail);
    let request = Request::new("extract", vec![Message::user(text)]);
    // A reply that does not fit is sent back once with the reason; then the default is taken and marked as such.
    let ticket = ask_model_for(&*model, request, &cx, Ticket::default).await?;
    Ok(MailUpdate::default().ticket(ticket.value))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = script(
        "extract",
        [
            form(json!({ "title": "Printer is on fire", "priority": "urgent", "seats": 0 })),
            form(json!({ "title": "Printer is on fire", "priority": "high", "seats": 3 })),
        ],
    );
    let graph = Graph::builder("tickets")
        .node("extract", with(&model, extract))
        .edge(START, "extract")
        .edge("extract", END)
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "mail")?;
    let mail = MailUpdate::default().mail("Help, the printer burns! Three of us wait.");
    println!("{:?}", thread.start(mail).await?.state.ticket);
    Ok(())
}
