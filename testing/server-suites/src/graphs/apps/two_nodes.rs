//! `two_nodes`: two nodes of one superstep, each of which asks a person about an action, and one that reports both answers.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

use crate::graphs::chat::ai;

#[derive(Clone, Debug, Default, State)]
struct TwoNodes {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    mail: Option<Json>,
    payment: Option<Json>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("two_nodes")
        .node("write", ask_about_mail)
        .node("pay", ask_about_payment)
        .node("report", report)
        .edge(START, "write")
        .edge(START, "pay")
        .join(&["write", "pay"], "report")
        .edge("report", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn ask_about_mail(_: View<TwoNodes>, cx: NodeCx) -> Result<TwoNodesUpdate, NodeError> {
    let args = json!({ "to": "ada@example.com" });
    let answer = ask(&cx, "send_mail", args, "Send the mail?").await?;
    Ok(TwoNodesUpdate::default().mail(Some(answer)))
}

async fn ask_about_payment(_: View<TwoNodes>, cx: NodeCx) -> Result<TwoNodesUpdate, NodeError> {
    let args = json!({ "cents": 1900 });
    let answer = ask(&cx, "pay", args, "Pay the money?").await?;
    Ok(TwoNodesUpdate::default().payment(Some(answer)))
}

async fn ask(cx: &NodeCx, action: &str, args: Json, text: &str) -> Result<Json, NodeError> {
    let request = json!({
        "action_request": { "action": action, "args": args },
        "config": {
            "allow_accept": true, "allow_edit": true, "allow_respond": true, "allow_ignore": true,
        },
        "description": text,
    });
    cx.interrupt(Interrupt::new(action, request).kind("approval"))
        .await
}

async fn report(state: View<TwoNodes>, _: NodeCx) -> Result<TwoNodesUpdate, NodeError> {
    let kind = |answer: &Option<Json>| {
        let kind = answer.as_ref().and_then(|answer| answer["type"].as_str());
        kind.unwrap_or("nothing").to_owned()
    };
    let text = format!(
        "Mail: {}. Payment: {}.",
        kind(&state.mail),
        kind(&state.payment)
    );
    Ok(TwoNodesUpdate::default().messages(ai(text)))
}
