//! The node that runs the planner's tool calls, each as a recorded step.

use archie_agent::printable::summary_line;
use serde_json::Value as Json;
use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_agent::{CallTimes, ChatMessage, tool_span};
use superstep_llm::{Message, ToolCall};

use super::super::plan::{self, Plan};
use super::super::state::{Actions, GraphState, GraphStateUpdate, JournalEntry};
use super::super::tools::{self, PYTHON, ToolContext, ToolDeps, ToolResult};
use super::{PROGRESS_CHARS, labels, progress, untrusted};

/// Runs the planner's tool calls.
pub(in super::super) struct ToolNode {
    pub(in super::super) tool_deps: ToolDeps,
}

impl Node<GraphState> for ToolNode {
    async fn run(
        &self,
        state: View<GraphState>,
        cx: NodeCx,
    ) -> Result<Command<GraphState>, NodeError> {
        let mut update = GraphStateUpdate::default();
        let calls = match wanted(&state) {
            Ok(calls) => calls,
            Err(why) => {
                let told = format!("{why}. {}", how_to_act(state.planner.actions));
                return Ok(update.messages(self.observation(&state, &told)).into());
            }
        };
        let mut tool_context = ToolContext {
            thread: cx.thread(),
            input: &state.problem.workbook,
            workbook: state.workbook.clone(),
            sandbox: &state.sandbox,
        };
        for (at, call) in calls.iter().enumerate() {
            let ran: ToolResult = cx
                .step(format!("{}-{at}", call.name_for_step()), async || {
                    let (ran, took) = CallTimes::by(self.tool_deps.run(call, &tool_context)).await;
                    Ok(ToolResult {
                        took: Some(took),
                        ..ran?
                    })
                })
                .await?;
            if let Some(took) = ran.took {
                let error = (!ran.ok).then(|| summary_line(&ran.observation, PROGRESS_CHARS));
                cx.emit(tool_span(call.name_for_step(), &call.id, took, error))?;
            }
            let how = if ran.ok { "ok" } else { "failed" };
            progress(
                &cx,
                &format!(
                    "  {}: {how}, {}",
                    call.name,
                    summary_line(&ran.observation, PROGRESS_CHARS)
                ),
            )?;
            if let Some(workbook) = &ran.workbook {
                tool_context.workbook = workbook.clone();
            }
            if let Some(answer) = &ran.answer {
                update = update.answer(answer.clone());
            }
            let message = match ran.ok {
                true => Message::tool(call, &ran.observation),
                false => Message::tool_error(call, &ran.observation),
            };
            update = update
                .messages(ChatMessage::new(message, untrusted(&state)))
                .journal(done(state.step, call, ran, &tool_context.workbook.snapshot));
        }
        Ok(update.workbook(tool_context.workbook).into())
    }
}

/// Maps the tool name that a model wrote to a known one, because a step's name in the log must not be arbitrary text.
trait StepName {
    fn name_for_step(&self) -> &'static str;
}

impl StepName for ToolCall {
    fn name_for_step(&self) -> &'static str {
        let known = [PYTHON, tools::SELECTOR, tools::READER, tools::SUBMITTER];
        known
            .into_iter()
            .find(|name| *name == self.name)
            .unwrap_or("unknown")
    }
}

impl ToolNode {
    fn observation(&self, state: &GraphState, told: &str) -> ChatMessage {
        let call = ToolCall {
            id: format!("step-{}", state.step),
            name: String::new(),
            args: Json::Null,
        };
        ChatMessage::new(Message::tool_error(&call, told), labels(state))
    }
}

/// Returns the tool calls of the planner's last message, or what is wrong with it.
fn wanted(state: &GraphState) -> Result<Vec<ToolCall>, String> {
    let last = state
        .messages
        .last()
        .map(|last| plan::read(&last.message, state.step));
    match last {
        Some(Plan::Act(calls)) => Ok(calls),
        Some(Plan::Ask(call)) => Ok(vec![call]),
        Some(Plan::Malformed(why)) => Err(why),
        Some(Plan::Think | Plan::Finish(_)) | None => {
            Err("there was no action in your message".to_owned())
        }
    }
}

fn how_to_act(actions: Actions) -> &'static str {
    match actions {
        Actions::Calls => "Call a tool, or say `Finish: …` in a line of its own.",
        Actions::Text => {
            "Write `Action:` and `Action Input:`, or `Finish: …` in a line of its own."
        }
    }
}

fn done(step: u32, call: &ToolCall, ran: ToolResult, snapshot: &str) -> JournalEntry {
    let input = match &call.args {
        Json::Object(args) => args
            .values()
            .find_map(Json::as_str)
            .unwrap_or_default()
            .to_owned(),
        other => other.to_string(),
    };
    JournalEntry {
        step,
        tool: call.name.clone(),
        input,
        observation: ran.observation,
        ok: ran.ok,
        snapshot: snapshot.to_owned(),
        lines: ran.lines,
        pictures: ran.pictures,
    }
}
