//! Agents as `createAgent` of LangChain builds them: a model, and a task for each tool call.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::unanswered_calls;
use superstep_llm::ToolCall;

use super::{Chat, ChatUpdate, ScriptedAnswer};
use crate::graphs::chat::{is_tool_result, show_tool_end, show_tool_start, tool_call, tool_result};

const TOOLS: SendTo<ToolCall> = SendTo::new("tools");

/// A model that makes one tool call, and ends after its result. Ids of messages follow from the id of the call.
#[derive(Clone, Copy)]
struct ToolScript {
    call: &'static str,
    tool: &'static str,
    args: fn() -> Json,
    last: &'static str,
}

impl ToolScript {
    fn graph(
        self,
        name: &str,
        tools: impl Node<Chat, ToolCall>,
    ) -> Result<Arc<Definition>, BuildError> {
        let model = move |chat: View<Chat>, cx: NodeCx| async move { self.answer(&chat, &cx) };
        let graph = Graph::builder(name)
            .node("model_request", model)
            .map_node(&TOOLS, tools)
            .edge(START, "model_request")
            .route("model_request", &["tools"], |chat: &Chat| {
                let calls = unanswered_calls(&chat.messages);
                let send = |call: &ToolCall| Goto::send(&TOOLS, call.clone());
                calls.into_iter().map(send).collect::<Vec<_>>()
            })
            .edge("tools", "model_request")
            .inputs(["messages"])
            .build()?;
        Ok(graph.definition().clone())
    }

    fn answer(self, chat: &Chat, cx: &NodeCx) -> Result<ChatUpdate, NodeError> {
        let answer = match chat.messages.last().is_some_and(is_tool_result) {
            true => ScriptedAnswer::text(self.last).say(cx, &format!("{}-final", self.call))?,
            false => {
                let call = tool_call(self.call, self.tool, (self.args)());
                ScriptedAnswer::Calls(vec![call]).say(cx, &format!("{}-message", self.call))?
            }
        };
        Ok(ChatUpdate::default().messages(answer))
    }
}

pub(super) fn create_agent() -> Result<Arc<Definition>, BuildError> {
    let script = ToolScript {
        call: "call-weather-1",
        tool: "get_weather",
        args: || json!({ "city": "San Francisco" }),
        last: "It's 64F and foggy in San Francisco.",
    };
    script.graph("create_agent", |call: ToolCall, cx: NodeCx| async move {
        show_tool_start(&cx, &call)?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let city = &call.args["city"];
        let weather = json!({ "city": city, "temp_f": 64, "condition": "Foggy" });
        end_call(&cx, &call, weather.to_string())
    })
}

/// The tool asks with a message that the page writes into the state with its answer.
pub(super) fn interrupt_card_graph() -> Result<Arc<Definition>, BuildError> {
    let script = ToolScript {
        call: "call-review-1",
        tool: "review_action",
        args: || json!({ "toolArg": "delete_db" }),
        last: "Done.",
    };
    script.graph(
        "interrupt_card_graph",
        |call: ToolCall, cx: NodeCx| async move {
            show_tool_start(&cx, &call)?;
            let action = call.args["toolArg"].as_str().unwrap_or_default().to_owned();
            let card = json!({
                "kind": "tool_validation",
                "action": action,
                "buttons": ["approve", "reject"],
            });
            let asked = json!({
                "type": "ai",
                "content": format!("Please review the \"{action}\" action."),
                "response_metadata": { "cards": card },
            });
            let answer: Json = cx.interrupt(Interrupt::new("review", asked)).await?;
            if answer != true && answer["approved"] != true {
                return end_call(&cx, &call, "User has rejected the toolcall".to_owned());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            end_call(&cx, &call, format!("Executed \"{action}\"."))
        },
    )
}

/// The page runs the tool.
pub(super) fn headless_tool_graph() -> Result<Arc<Definition>, BuildError> {
    let script = ToolScript {
        call: "tool-call-browser-1",
        tool: "get_location",
        args: || json!({ "highAccuracy": false }),
        last: "Location received!",
    };
    script.graph(
        "headless_tool_graph",
        |call: ToolCall, cx: NodeCx| async move {
            show_tool_start(&cx, &call)?;
            let wanted = json!({ "id": call.id, "name": call.name, "args": call.args });
            let asked = json!({ "type": "tool", "toolCall": wanted });
            let answer: Json = cx.interrupt(Interrupt::new("tool", asked)).await?;
            let text = match answer {
                Json::String(text) => text,
                other => other.to_string(),
            };
            end_call(&cx, &call, text)
        },
    )
}

fn end_call(cx: &NodeCx, call: &ToolCall, output: String) -> Result<ChatUpdate, NodeError> {
    show_tool_end(cx, call, &output)?;
    Ok(ChatUpdate::default().messages(tool_result(call, output)))
}
