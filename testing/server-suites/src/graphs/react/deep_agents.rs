//! Agents as `createDeepAgent` builds them: each call of the tool `task` is another agent, a subgraph with a namespace of its own.
//!
//! A subgraph emits nothing into its parent's namespace, so the supervisor's node shows the start and the end of its calls.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::{ChatMessage, unanswered_calls};
use superstep_llm::{Message, ToolCall};

use super::{Chat, ChatUpdate, ScriptedAnswer};
use crate::graphs::chat::{
    is_human, is_tool_result, show_tool_end, show_tool_start, tool_call, tool_result,
};

const TASK: SendTo<ToolCall> = SendTo::new("tools");
const SUBAGENT_TOOL: SendTo<ToolCall> = SendTo::new("tools");

/// What a supervisor delegates, and what it says in the end.
#[derive(Clone, Copy)]
struct Supervisor {
    tasks: fn() -> Vec<ToolCall>,
    call_message: &'static str,
    last: &'static str,
    last_message: &'static str,
}

impl Supervisor {
    fn graph(self, name: &str) -> Result<Arc<Definition>, BuildError> {
        let model = move |chat: View<Chat>, cx: NodeCx| async move { self.answer(&chat, &cx) };
        let begin = |call: ToolCall| {
            let description = call.args["description"].as_str().unwrap_or_default();
            ChatUpdate::default().messages(ChatMessage::user(description))
        };
        let graph = Graph::builder(name)
            .node("model_request", model)
            .subgraph_worker(&TASK, subagent()?, begin, report)
            .edge(START, "model_request")
            .route("model_request", &["tools"], |chat: &Chat| {
                let calls = unanswered_calls(&chat.messages);
                let send = |call: &ToolCall| Goto::send(&TASK, call.clone());
                calls.into_iter().map(send).collect::<Vec<_>>()
            })
            .edge("tools", "model_request")
            .inputs(["messages"])
            .build()?;
        Ok(graph.definition().clone())
    }

    /// Delegates every message of a person, and ends after the results.
    fn answer(self, chat: &Chat, cx: &NodeCx) -> Result<ChatUpdate, NodeError> {
        let calls = (self.tasks)();
        let results = chat.messages.iter().rev().map_while(result_of);
        let results: Vec<(&str, String)> = results.collect();
        if results.is_empty() {
            let answer = ScriptedAnswer::Calls(calls.clone()).say(cx, self.call_message)?;
            for call in &calls {
                show_tool_start(cx, call)?;
            }
            return Ok(ChatUpdate::default().messages(answer));
        }
        for call in &calls {
            if let Some((_, text)) = results.iter().find(|(id, _)| *id == call.id) {
                show_tool_end(cx, call, text)?;
            }
        }
        let answer = ScriptedAnswer::text(self.last).say(cx, self.last_message)?;
        Ok(ChatUpdate::default().messages(answer))
    }
}

/// Returns the id of the call and the text of a tool result.
fn result_of(message: &ChatMessage) -> Option<(&str, String)> {
    match &message.message {
        Message::Tool(result) => Some((result.tool_call_id.as_str(), message.text())),
        _ => None,
    }
}

/// Makes the result of the call that has the subagent's task.
fn report(chat: &Chat, subagent: &Chat) -> ChatUpdate {
    let task = task_of(subagent);
    let text = subagent.messages.last().map(ChatMessage::text);
    let text = text.unwrap_or_default();
    let calls = unanswered_calls(&chat.messages);
    let call = calls
        .into_iter()
        .find(|call| call.args["description"] == task);
    ChatUpdate::default().messages_all(call.map(|call| tool_result(call, text)))
}

fn task_of(subagent: &Chat) -> String {
    let task = subagent.messages.iter().find(|message| is_human(message));
    task.map(ChatMessage::text).unwrap_or_default()
}

/// Builds the graph of all subagents, whose task tells which one it is.
fn subagent() -> Result<Graph<Chat>, BuildError> {
    Graph::builder("subagent")
        .node("model_request", work)
        .map_node(&SUBAGENT_TOOL, call_tool)
        .edge(START, "model_request")
        .route("model_request", &["tools"], |chat: &Chat| {
            let calls = unanswered_calls(&chat.messages);
            let send = |call: &ToolCall| Goto::send(&SUBAGENT_TOOL, call.clone());
            calls.into_iter().map(send).collect::<Vec<_>>()
        })
        .edge("tools", "model_request")
        .inputs(["messages"])
        .build()
}

const RESEARCH: &str = "Search the web for protocol risks";
const ANALYSIS: &str = "Inspect the sample dataset";
const APPROVAL: &str = "Request approval for the pending change";

async fn work(chat: View<Chat>, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    let is_done = chat.messages.last().is_some_and(is_tool_result);
    let (answer, message) = match (task_of(&chat).as_str(), is_done) {
        (RESEARCH, false) => (
            calling(
                "search-1",
                "search_web",
                json!({ "query": "protocol risks" }),
            ),
            "search-1-message".to_owned(),
        ),
        (RESEARCH, true) => (
            ScriptedAnswer::text(
                "Research completed: reconnect and lifecycle handling need coverage.",
            ),
            "search-1-final".to_owned(),
        ),
        (ANALYSIS, false) => (
            calling(
                "query-1",
                "query_database",
                json!({ "table": "sample_data" }),
            ),
            "query-1-message".to_owned(),
        ),
        (ANALYSIS, true) => (
            ScriptedAnswer::text("Analysis completed: found 2 sample records."),
            "query-1-final".to_owned(),
        ),
        (APPROVAL, false) => (
            calling("approval-1", "request_approval", json!({})),
            "approver-call".to_owned(),
        ),
        (APPROVAL, true) => (
            ScriptedAnswer::text("Approval recorded."),
            "approver-done".to_owned(),
        ),
        (task, _) => {
            let topic = task.rsplit(' ').next().unwrap_or_default();
            (
                ScriptedAnswer::text(format!("Worker {topic} done.")),
                cx.message_id(0),
            )
        }
    };
    Ok(ChatUpdate::default().messages(answer.say(&cx, &message)?))
}

fn calling(id: &str, tool: &str, args: Json) -> ScriptedAnswer {
    ScriptedAnswer::Calls(vec![tool_call(id, tool, args)])
}

async fn call_tool(call: ToolCall, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    show_tool_start(&cx, &call)?;
    let output = match call.name.as_str() {
        "search_web" => {
            let query = call.args["query"].as_str().unwrap_or_default();
            json!({
                "status": "success",
                "query": query,
                "results": [
                    { "title": format!("Result for: {query}"), "url": "https://example.com/1" },
                    { "title": format!("More on: {query}"), "url": "https://example.com/2" },
                ],
            })
        }
        "query_database" => json!({
            "status": "success",
            "table": call.args["table"],
            "records": [
                { "id": 1, "name": "Record A", "value": 42 },
                { "id": 2, "name": "Record B", "value": 87 },
            ],
            "count": 2,
        }),
        _ => {
            let asked = json!({ "prompt": "Approve subagent tool action?" });
            let decision: Json = cx.interrupt(Interrupt::new("approval", asked)).await?;
            match decision {
                Json::Null => json!({ "approved": true }),
                decision => decision,
            }
        }
    };
    let output = output.to_string();
    show_tool_end(&cx, &call, &output)?;
    Ok(ChatUpdate::default().messages(tool_result(&call, output)))
}

fn task(id: &str, description: &str, subagent: &str) -> ToolCall {
    let args = json!({ "description": description, "subagent_type": subagent });
    tool_call(id, "task", args)
}

pub(super) fn deep_agent() -> Result<Arc<Definition>, BuildError> {
    let supervisor = Supervisor {
        tasks: || {
            vec![
                task("task-1", RESEARCH, "researcher"),
                task("task-2", ANALYSIS, "data-analyst"),
            ]
        },
        call_message: "deep-orchestrator-tool-call",
        last: "Both subagents completed their tasks successfully.",
        last_message: "deep-orchestrator-final",
    };
    supervisor.graph("deep_agent")
}

pub(super) fn deep_agent_interrupt() -> Result<Arc<Definition>, BuildError> {
    let supervisor = Supervisor {
        tasks: || vec![task("task-approve-1", APPROVAL, "approver")],
        call_message: "deep-interrupt-orchestrator",
        last: "Subagent approval completed.",
        last_message: "deep-interrupt-final",
    };
    supervisor.graph("deep_agent_interrupt")
}

pub(super) fn parallel_fanout() -> Result<Arc<Definition>, BuildError> {
    let supervisor = Supervisor {
        tasks: || {
            let worker = |number: u32| {
                let description = format!("Worker worker-{number:03} covering topic {number}");
                task(&format!("task-{number}"), &description, "worker")
            };
            (1..=6).map(worker).collect()
        },
        call_message: "fanout-orchestrator",
        last: "All workers completed.",
        last_message: "fanout-final",
    };
    supervisor.graph("parallel_fanout")
}
