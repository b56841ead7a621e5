//! `agent`: a model and a tool that take turns, with an interrupt, waits and the long-term store on demand.
//!
//! The model of the original alternates between two answers, counted for each thread in memory. Here the answer follows from
//! the conversation, which is the same for runs that end, and holds after a restart.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

use crate::graphs::chat::{
    ai, characters, is_human, is_tool_result, nameless_result, stream_answer,
};
use crate::graphs::settings::setting;

#[derive(Clone, Debug, Default, State)]
#[state(rename_all = "camelCase")]
struct Conversation {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    shared_state_value: Option<String>,
    interrupt: Option<bool>,
    key_one: Option<String>,
    key_two: Option<String>,
    sleep: Option<Json>,
    shared_state_from_store_config: Option<Json>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("agent")
        .node("agent", agent)
        .node("tool", tool)
        .node("checkSharedState", check_shared_state)
        .edge(START, "agent")
        .route("agent", &["tool", "checkSharedState", END], after_agent)
        .edge("tool", "agent")
        .edge("checkSharedState", END)
        .inputs([
            "messages",
            "sharedStateValue",
            "interrupt",
            "keyOne",
            "keyTwo",
            "sleep",
            "sharedStateFromStoreConfig",
        ])
        .build()?;
    Ok(graph.definition().clone())
}

async fn agent(state: View<Conversation>, cx: NodeCx) -> Result<ConversationUpdate, NodeError> {
    if state.interrupt == Some(true) {
        let question = Interrupt::new("agent", "i want to interrupt");
        let _: Json = cx.interrupt(question).await?;
    }
    if let Some(wanted) = &state.sleep
        && state.messages.last().is_some_and(is_human)
    {
        sleep(wanted, &cx).await?;
    }
    tokio::time::sleep(ANSWER).await;
    let text = match state.messages.last().is_some_and(is_tool_result) {
        true => "end",
        false => "begin",
    };
    let message = cx.message_id(0);
    stream_answer(&cx, &message, &characters(text))?;
    if state.shared_state_from_store_config.is_none() {
        let value = match setting(&cx, "user_id")? {
            Some(user) => json!({ "id": user }),
            None => json!({}),
        };
        cx.store(SHARED)?.put("user_id", value).await?;
    }
    Ok(ConversationUpdate::default()
        .interrupt(Some(false))
        .messages(ai(text).with_id(message)))
}

/// How long the model takes. The run of the original lasts some 100 ms, and a client that cancels it in its next request finds it active.
const ANSWER: Duration = Duration::from_millis(50);
const SHARED: [&str; 2] = ["sharedState", "data"];

/// How the caller wants the node to wait.
#[derive(Deserialize)]
#[serde(untagged)]
enum Sleep {
    Seconds(f64),
    Steps { steps: u32, ms: u64 },
}

async fn sleep(wanted: &Json, cx: &NodeCx) -> Result<(), NodeError> {
    match Sleep::deserialize(wanted).map_err(NodeError::fatal)? {
        Sleep::Seconds(seconds) => {
            let wait = Duration::try_from_secs_f64(seconds).map_err(NodeError::fatal)?;
            tokio::time::sleep(wait).await;
        }
        Sleep::Steps { steps, ms } => {
            for step in 0..steps {
                cx.emit(json!({ "type": "sleep", "step": step }))?;
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
        }
    }
    Ok(())
}

async fn tool(state: View<Conversation>, cx: NodeCx) -> Result<ConversationUpdate, NodeError> {
    let shared: Option<Json> = cx.store(SHARED)?.get("user_id").await?;
    let update = ConversationUpdate::default().shared_state_from_store_config(shared);
    Ok(match state.messages.last() {
        Some(last) => {
            let text = format!("tool_call__{}", last.text());
            update.messages(nameless_result("tool_call_id", text))
        }
        None => update,
    })
}

async fn check_shared_state(
    _: View<Conversation>,
    cx: NodeCx,
) -> Result<ConversationUpdate, NodeError> {
    let store = cx.store(["inputtedState", "data"])?;
    let value: Option<Json> = store.get("my_key").await?;
    match value.is_some_and(|value| value["isTrue"] == true) {
        true => Ok(ConversationUpdate::default()),
        false => Err(NodeError::fatal("Value is not true").with_code("Error")),
    }
}

fn after_agent(state: &Conversation) -> &'static str {
    let first = state.messages.first().map(ChatMessage::text);
    match first.as_deref() {
        Some("should_end") => return END,
        Some("___check_state_value") => return "checkSharedState",
        _ => {}
    }
    let last = state.messages.last().map(ChatMessage::text);
    match last.as_deref() {
        Some("end") => END,
        _ => "tool",
    }
}
