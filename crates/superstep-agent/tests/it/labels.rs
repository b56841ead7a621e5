//! Labels of what was said: where they come from, where they go, and what they keep from happening.

use serde_json::json;
use superstep::prelude::*;
use superstep_agent::{Agent, AgentState, AgentStateUpdate, ChatMessage, Tool, tool};
use superstep_core::label::{Label, Labels, Policy};
use superstep_llm::Message;

use crate::kit::{Note, questions, request, script};

fn fetch() -> Tool {
    tool("fetch", "Fetches a page.", |_: Note, _| async {
        Ok("buy now")
    })
    .read()
    .gives(Label::UNTRUSTED)
}

fn send() -> Tool {
    tool("send", "Sends a mail.", |_: Note, _| async { Ok("sent") })
}

fn conversation() -> serde_json::Value {
    json!([
        { "at": "model", "tool_calls": [{ "name": "fetch", "args": { "note": "x" } }] },
        { "at": "model", "tool_calls": [{ "id": "s", "name": "send", "args": { "note": "x" } }] },
        { "at": "model", "text": "Done." }
    ])
}

fn thread(send: Tool) -> Thread<AgentState> {
    let graph = Agent::builder(script(conversation()))
        .tools([fetch(), send])
        .build()
        .unwrap();
    Runtime::new(Memory::default()).thread(&graph, "t").unwrap()
}

#[tokio::test]
async fn what_strangers_wrote_makes_a_tool_ask() {
    let thread = thread(send());
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    let asked = request(&questions(&paused)[0]);
    assert_eq!(asked["labels"], json!(["untrusted"]));
    assert!(
        asked["description"]
            .as_str()
            .unwrap()
            .contains("text from outside"),
        "{asked}"
    );
    let stopped = thread
        .answer_only(json!({ "type": "accept" }))
        .await
        .unwrap()
        .unwrap();
    let labels: Vec<_> = stopped
        .state
        .messages
        .iter()
        .map(|kept| kept.labels.clone())
        .collect();
    let untrusted = Labels::from(Label::UNTRUSTED);
    let none = Labels::NONE;
    // person, call, fetched, call, sent, answer
    assert_eq!(
        labels,
        [
            none.clone(),
            none,
            untrusted.clone(),
            untrusted.clone(),
            untrusted.clone(),
            untrusted
        ]
    );
}

#[tokio::test]
async fn a_policy_may_take_it_or_refuse_it_for_good() {
    let takes = thread(send().takes(Policy::new().accepts(Label::UNTRUSTED)));
    let stopped = takes.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(stopped.state.messages[4].text(), "sent");

    let refuses = thread(send().takes(Policy::new().refuses(Label::UNTRUSTED)));
    let stopped = refuses.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert!(
        stopped.state.messages[4]
            .text()
            .contains("no approval overrides this")
    );
}

#[tokio::test]
async fn a_tool_may_label_what_it_found() {
    let diary = tool(
        "diary",
        "Reads the diary.",
        |_: Note, cx: superstep_agent::ToolCx| async move {
            cx.gives(Label::PRIVATE);
            Ok("dear diary")
        },
    )
    .read();
    let model = script(json!([
        { "at": "model", "tool_calls": [{ "name": "diary", "args": { "note": "x" } }] },
        { "at": "model", "text": "Done." }
    ]));
    let graph = Agent::builder(model).tools([diary]).build().unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let state = thread.start(AgentState::ask("go")).await.unwrap().state;
    assert_eq!(state.messages[2].labels, Label::PRIVATE.into());
    assert_eq!(state.messages[3].labels, Label::PRIVATE.into());
}

#[tokio::test]
async fn no_model_sees_a_secret() {
    let model = script(json!([{ "at": "model", "text": "never said" }]));
    let graph = Agent::builder(model.clone()).build().unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let secret = ChatMessage::new(Message::user("the key is 1234"), Label::SECRET);
    let stopped = thread
        .start(AgentStateUpdate::default().messages(secret))
        .await
        .unwrap();
    assert!(
        matches!(stopped.outcome, Outcome::Failed(_)),
        "{:?}",
        stopped.outcome
    );
    assert!(model.prompts().is_empty());
}

/// Reads what is untrusted and writes it as its own.
async fn launders(state: View<AgentState>, cx: NodeCx) -> Result<AgentStateUpdate, NodeError> {
    cx.note_read(&state.messages[0].labels);
    let said = ChatMessage::new(Message::assistant(state.messages[0].text()), Labels::NONE);
    Ok(AgentStateUpdate::default().messages(said))
}

#[tokio::test]
async fn core_knows_a_message_for_a_labeled_value() {
    let graph = Graph::builder("launders")
        .node("launders", launders)
        .edge(START, "launders")
        .edge("launders", END)
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let said = ChatMessage::new(Message::user("buy now"), Label::UNTRUSTED);
    let stopped = thread
        .start(AgentStateUpdate::default().messages(said))
        .await
        .unwrap();
    let Outcome::Failed(failures) = &stopped.outcome else {
        panic!("it was written: {:?}", stopped.outcome);
    };
    assert!(
        failures[0].to_string().contains("untrusted"),
        "{}",
        failures[0]
    );
}
