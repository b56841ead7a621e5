//! `refunds` and `nested_refunds`: an agent with the real node for tools, whose calls a person approves, as the graph itself and as
//! a subgraph.
//!
//! The model follows a script that reads the conversation: it wants a refund, or a refund and a mail if the person asks for both, and
//! then reports what the tools said.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::label::Labels;
use superstep::prelude::*;
use superstep_agent::{
    AgentEvent, Approval, ChatMessage, Conversation, Tool, ToolNode, Tools, Turn, tool,
    unanswered_calls,
};
use superstep_llm::{Answer, Message, ToolCall};

use crate::graphs::chat::{ai, is_human, is_tool_result, stream_answer, tool_call, words};

#[derive(Clone, Debug, Default, State)]
struct Refunds {
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

impl Conversation for Refunds {
    fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    fn said(turn: Turn) -> RefundsUpdate {
        RefundsUpdate::default().messages_all(turn.messages)
    }
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    Ok(agent("refunds")?.definition().clone())
}

/// The same agent one level deeper: its questions come from a subgraph.
pub(super) fn nested_graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("nested_refunds")
        .shared_subgraph("agent", agent("agent")?)
        .edge(START, "agent")
        .edge("agent", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

fn agent(name: &str) -> Result<Graph<Refunds>, BuildError> {
    let tools = Tools::new([refund(), send_mail()]).expect("the tools have names and descriptions");
    Graph::builder(name)
        .node("model", model)
        .node("tools", ToolNode::new(tools))
        .edge(START, "model")
        .route(
            "model",
            &["tools", END],
            |refunds: &Refunds| match unanswered_calls(&refunds.messages).is_empty() {
                true => END,
                false => "tools",
            },
        )
        .edge("tools", "model")
        .inputs(["messages"])
        .build()
}

#[derive(Deserialize, JsonSchema)]
struct Refund {
    order: String,
    cents: u64,
}

fn refund() -> Tool {
    tool(
        "refund",
        "Pays money back to a customer.",
        |refund: Refund, _cx| async move {
            // Arithmetic, so that the result shows that the amount is a number.
            let (euros, cents) = (refund.cents / 100, refund.cents % 100);
            Ok(format!("paid {euros}.{cents:02} EUR for {}", refund.order))
        },
    )
    .keyed()
    .approved_by_a_person(Approval::always())
}

#[derive(Deserialize, JsonSchema)]
struct Mail {
    to: String,
    text: String,
}

fn send_mail() -> Tool {
    tool("send_mail", "Sends a mail.", |mail: Mail, _cx| async move {
        Ok(format!("sent \"{}\" to {}", mail.text, mail.to))
    })
    .keyed()
    .approved_by_a_person(Approval::always())
}

async fn model(refunds: View<Refunds>, cx: NodeCx) -> Result<RefundsUpdate, NodeError> {
    let message = cx.message_id(0);
    let results = results(&refunds.messages);
    if !results.is_empty() {
        let text = format!("The tools said: {}", results.join("; "));
        stream_answer(&cx, &message, &words(&text))?;
        return Ok(RefundsUpdate::default().messages(ai(text).with_id(message)));
    }
    let calls = wanted(&refunds.messages);
    for (index, call) in (0..).zip(&calls) {
        cx.emit_live(AgentEvent::ToolCallDelta {
            message: message.as_str().into(),
            index,
            id: call.id.as_str().into(),
            name: call.name.as_str().into(),
            args: call.args.to_string().into(),
        })?;
    }
    stream_answer(&cx, &message, &[])?;
    let answer = Answer {
        tool_calls: calls,
        ..Answer::default()
    };
    let answer = ChatMessage::new(Message::Assistant(answer), Labels::NONE);
    Ok(RefundsUpdate::default().messages(answer.with_id(message)))
}

/// Returns the results of tools since the last message of a person.
fn results(messages: &[ChatMessage]) -> Vec<String> {
    let since = messages
        .iter()
        .rev()
        .take_while(|message| !is_human(message));
    let mut results: Vec<String> = since
        .filter(|message| is_tool_result(message))
        .map(ChatMessage::text)
        .collect();
    results.reverse();
    results
}

/// Returns the calls that answer the last message of a person.
fn wanted(messages: &[ChatMessage]) -> Vec<ToolCall> {
    let asked = messages.iter().rev().find(|message| is_human(message));
    let asked = asked.map(ChatMessage::text).unwrap_or_default();
    // Ids are unique in the conversation: a later message may ask again.
    let turn = messages.len();
    let refund = tool_call(
        &format!("refund-{turn}"),
        "refund",
        json!({ "order": "A-17", "cents": 1900 }),
    );
    let mail = tool_call(
        &format!("mail-{turn}"),
        "send_mail",
        json!({ "to": "ada@example.com", "text": "Your money is on its way." }),
    );
    match asked.contains("both") {
        true => vec![refund, mail],
        false => vec![refund],
    }
}

#[test]
fn the_model_wants_what_the_person_asks_for() {
    let names = |text: &str| {
        let calls = wanted(&[ChatMessage::user(text)]);
        calls.into_iter().map(|call| call.name).collect::<Vec<_>>()
    };
    assert_eq!(names("a refund, please"), ["refund"]);
    assert_eq!(names("both, please"), ["refund", "send_mail"]);
    assert!(results(&[ChatMessage::user("a refund, please")]).is_empty());
}
