//! `inbox` and `both`: a question in the form that Agent Inbox shows, and in one that every web app shows.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

use super::python_text::repr;
use crate::graphs::chat::ai;

#[derive(Clone, Debug, Default, State)]
struct Inbox {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    #[state(append)]
    log: Vec<String>,
}

pub(super) fn inbox() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("inbox")
        .node("ask", ask)
        .node("after", |_: View<Inbox>, _: NodeCx| async {
            Ok::<_, NodeError>(InboxUpdate::default().log("after"))
        })
        .edge(START, "ask")
        .edge("ask", "after")
        .edge("after", END)
        .inputs(["messages", "log"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn ask(_: View<Inbox>, cx: NodeCx) -> Result<InboxUpdate, NodeError> {
    let request = json!([{
        "action_request": { "action": "send_email", "args": mail() },
        "config": everything_allowed(),
        "description": "# Send?\nPlease.",
    }]);
    let answer: Json = cx.interrupt(Interrupt::new("ask", request)).await?;
    Ok(InboxUpdate::default().log(repr(&answer)))
}

pub(super) fn both() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("both")
        .node("ask", ask_both)
        .edge(START, "ask")
        .edge("ask", END)
        .inputs(["messages", "log"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn ask_both(_: View<Inbox>, cx: NodeCx) -> Result<InboxUpdate, NodeError> {
    let request = json!({
        "action_request": { "action": "send_email", "args": mail() },
        "config": everything_allowed(),
        "description": "# Send?",
        "action_requests": [{
            "name": "send_email",
            "args": mail(),
            "arguments": mail(),
            "description": "# Send?",
        }],
        "review_configs": [{
            "action_name": "send_email",
            "allowed_decisions": ["approve", "edit", "reject"],
        }],
    });
    let answer: Json = cx.interrupt(Interrupt::new("ask", request)).await?;
    let answer = repr(&answer);
    Ok(InboxUpdate::default()
        .messages(ai(format!("answered {answer}")).with_id("answered"))
        .log(answer))
}

fn mail() -> Json {
    json!({ "to": "bob@example.com", "n": 3, "body": "hi" })
}

fn everything_allowed() -> Json {
    json!({
        "allow_ignore": true,
        "allow_respond": true,
        "allow_edit": true,
        "allow_accept": true,
    })
}
