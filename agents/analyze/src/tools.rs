//! Tools in the interview, of MCP servers and for pages of the web: the calls that the model requests, and what the tools
//! returned.
//!
//! The model may look something up before it asks or answers. Its request is committed with the person's turn; another node makes
//! the calls. What a tool returned stays in the state with its labels: it is part of every later request, and a claim can cite it
//! like a note.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use archie_agent::FETCH_PAGE;
use archie_agent::mcp::{McpServers, McpTools};
use archie_agent::printable::{counted, summary_line};
use serde::Serialize;
use serde_json::Value as Json;
use superstep::label::{Label, Labels};
use superstep::{Node, NodeCx, NodeError, View};
use superstep_agent::{
    ChatMessage, Conversation, Tool, ToolNode, Tools, Turn as AgentTurn, unanswered_calls,
};
use superstep_llm::{Answer, Block, Content, Message, Reply, ToolCall, ToolResult, ToolStatus};

use super::state::{AppState, AppStateUpdate};

/// Calls the tools that the model requested, and asks the person where the tool requires it.
pub(super) struct AnalysisToolsNode {
    pub(super) mcp: Arc<McpServers>,
    /// Reads pages of the web, if the person turned that on.
    pub(super) web: Option<Tool>,
}

impl Node<AppState> for AnalysisToolsNode {
    async fn run(
        &self,
        state: View<AppState>,
        cx: NodeCx,
    ) -> Result<superstep::Command<AppState>, NodeError> {
        let McpTools {
            mut tools,
            unusable,
        } = self.mcp.tools().await;
        // A call may have been started by an earlier execution, so it must not be reported to the model as impossible.
        for call in unanswered_calls(&state.tool_messages) {
            let of_server = |name: &str| call.name.starts_with(&format!("{name}__"));
            if let Some(server) = unusable.iter().find(|server| of_server(&server.name)) {
                return Err(NodeError::fatal(format!(
                    "`{}` cannot be called, because the MCP server `{}` cannot be used: {}",
                    call.name, server.name, server.why
                )));
            }
            if call.name == FETCH_PAGE && self.web.is_none() {
                return Err(NodeError::fatal(format!(
                    "`{FETCH_PAGE}` cannot be called, because pages of the web are off; turn them on with `web` in the settings"
                )));
            }
        }
        tools.extend(self.web.clone());
        let tools = Tools::new(tools).map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            NodeError::fatal(faults.join("; "))
        })?;
        ToolNode::new(tools)
            .parallel_tools(PARALLEL_CALLS_MAX)
            .run(state, cx)
            .await
    }
}

/// A message of the model can request any number of calls.
const PARALLEL_CALLS_MAX: usize = 4;

impl Conversation for AppState {
    fn messages(&self) -> &[ChatMessage] {
        &self.tool_messages
    }

    fn said(turn: AgentTurn) -> AppStateUpdate {
        AppStateUpdate::default().tool_messages_all(turn.messages)
    }
}

/// Returns the model's request for calls as a message, with ids of ours: records and results are derived from them.
pub(super) fn request_of(reply: &Reply, state: &AppState, cx: &NodeCx) -> ChatMessage {
    let calls = reply.answer.tool_calls.iter().enumerate();
    let tool_calls = calls.map(|(index, call)| ToolCall {
        id: format!("call_{}_{index}", cx.task()),
        ..call.clone()
    });
    let answer = Answer {
        tool_calls: tool_calls.collect(),
        ..reply.answer.clone()
    };
    // Notes and every earlier result were part of the request. Whoever wrote a note may have meant it for the model.
    let has_no_notes = state.file_contents.is_empty() && state.inputs.images.is_empty();
    let notes = match has_no_notes {
        true => Labels::NONE,
        false => Label::UNTRUSTED.into(),
    };
    let read = state.tool_messages.iter();
    let labels = read.fold(notes, |labels, kept| labels.join(&kept.labels));
    ChatMessage::new(Message::Assistant(answer), labels)
}

/// Returns the messages of the calls that were requested in a turn. `turn` counts the turns of the history up to it.
pub(super) fn messages_of(state: &AppState, turn: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    let (mut round, mut number) = (None, 0);
    for kept in &state.tool_messages {
        let shown = match &kept.message {
            Message::Assistant(_) => {
                round = Some(round.map_or(0, |round: usize| round + 1));
                kept.message.clone()
            }
            Message::Tool(result) => {
                number += 1;
                Message::Tool(numbered(result, number))
            }
            _ => continue,
        };
        let its_turn = round.and_then(|round| state.tool_turns.get(round));
        if its_turn == Some(&(turn as u64)) {
            messages.push(shown);
        }
    }
    messages
}

/// Returns the result as the model reads it: named and with numbered lines, like a note.
fn numbered(result: &ToolResult, number: usize) -> ToolResult {
    if result.status == ToolStatus::Error {
        return result.clone();
    }
    let mut text = format!("=== {}\n", source_name(&result.name, number));
    for (number, line) in text_of(&result.content).lines().enumerate() {
        text.push_str(&format!("{}: {line}\n", number + 1));
    }
    ToolResult {
        content: text.into(),
        ..result.clone()
    }
}

fn source_name(tool: &str, number: usize) -> String {
    format!("{tool}#{number}")
}

/// Returns the text of a result, and a note in place of each file: not every model reads files.
fn text_of(content: &Content) -> String {
    let blocks = content.blocks.iter().map(|block| match block {
        Block::Text { text } => text.clone(),
        Block::File { mime_type, .. } => format!("({mime_type}, not shown)"),
    });
    blocks.collect::<Vec<_>>().join("\n")
}

/// A call in the order in which it was requested, for the person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Consultation {
    /// Name by which claims cite the result.
    pub name: String,
    /// Tool that was called.
    pub tool: String,
    /// Arguments that the model requested. The person may have changed them.
    pub args: Json,
    /// Whether the tool returned a result.
    pub is_ok: bool,
    /// The result, or why there is none.
    pub result: String,
    /// Labels of the result.
    pub labels: Labels,
}

/// Returns every call of the interview that has a result.
pub fn consultations(state: &AppState) -> Vec<Consultation> {
    let calls: BTreeMap<&str, &ToolCall> = state
        .tool_messages
        .iter()
        .flat_map(|kept| kept.message.tool_calls())
        .map(|call| (call.id.as_str(), call))
        .collect();
    let results = state
        .tool_messages
        .iter()
        .filter_map(|kept| match &kept.message {
            Message::Tool(result) => Some((result, &kept.labels)),
            _ => None,
        });
    let consultations = results.enumerate().map(|(at, (result, labels))| {
        let call = calls.get(result.tool_call_id.as_str());
        Consultation {
            name: source_name(&result.name, at + 1),
            tool: result.name.clone(),
            args: call.map_or(Json::Null, |call| call.args.clone()),
            is_ok: result.status == ToolStatus::Success,
            result: text_of(&result.content),
            labels: labels.clone(),
        }
    });
    consultations.collect()
}

/// Says what the newest calls returned, one line each; nothing if the model's next turn follows no calls.
pub(super) fn latest_results(state: &AppState) -> Vec<String> {
    let is_result = |kept: &&ChatMessage| matches!(kept.message, Message::Tool(_));
    let newest = state.tool_messages.iter().rev().take_while(is_result);
    let (calls, count) = (consultations(state), newest.count());
    let is_open = state.tool_turns.last() == Some(&(state.analysis_history.len() as u64));
    let newest = calls.into_iter().rev().take(count).filter(|_| is_open);
    let mut lines: Vec<_> = newest
        .map(|call| match call.is_ok {
            true => format!(
                "consulted {}: {}",
                call.name,
                counted(call.result.chars().count(), "character")
            ),
            false => format!(
                "no result of {}: {}",
                call.tool,
                summary_line(&call.result, REASON_CHARS)
            ),
        })
        .collect();
    lines.reverse();
    lines
}

/// How much of the reason why a call has no result is shown.
const REASON_CHARS: usize = 200;

/// Returns the notes, and the memory as a note of its own.
pub(super) fn with_memory<'a>(
    notes: &'a BTreeMap<String, String>,
    state: &AppState,
) -> Cow<'a, BTreeMap<String, String>> {
    if state.memory.is_empty() {
        return Cow::Borrowed(notes);
    }
    let mut all = notes.clone();
    // A note of the same name is the person's own.
    all.entry(MEMORY_NOTE.to_owned())
        .or_insert_with(|| state.memory.clone());
    Cow::Owned(all)
}

/// Name of the memory among the notes.
pub(super) const MEMORY_NOTE: &str = "memory";

/// Returns the texts that a claim can cite: these notes, the memory, and what tools returned.
pub fn with_results(
    notes: &BTreeMap<String, String>,
    state: &AppState,
) -> BTreeMap<String, String> {
    let results = consultations(state).into_iter().filter(|call| call.is_ok);
    let mut all = with_memory(notes, state).into_owned();
    for call in results {
        // A note of the same name is the person's own.
        all.entry(call.name).or_insert(call.result);
    }
    all
}
