//! The node that runs the planner's tool calls, each as a recorded step.

use archie_agent::printable::summary_line;
use serde_json::Value as Json;
use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_agent::{CallTimes, ChatMessage, tool_span};
use superstep_llm::{Message, ToolCall};

use super::super::plan::{self, Plan};
use super::super::state::{
    Actions, GraphState, GraphStateUpdate, JournalEntry, Stopped, WorkbookState,
};
use super::super::tools::answer::check_answer;
use super::super::tools::{self, PYTHON, ToolContext, ToolDeps, ToolResult};
use super::{PROGRESS_CHARS, grounds, labels, progress, repeats, takes_answer, untrusted};

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
        let calls = match wanted(&state) {
            Ok(calls) => calls,
            Err(why) => return no_action(&state, &why, &cx),
        };
        let mut update = GraphStateUpdate::default();
        let mut tool_context = ToolContext {
            thread: cx.thread(),
            input: &state.problem.workbook,
            workbook: state.workbook.clone(),
            sandbox: &state.sandbox,
        };
        let mut journal: Vec<JournalEntry> = Vec::new();
        let mut stopped = None;
        for (at, call) in calls.iter().enumerate() {
            // Models require a result for every call, even for those after the end.
            if stopped.is_some() {
                let told = Message::tool_error(call, "not run: the work has ended");
                update = update.messages(ChatMessage::new(told, labels(&state)));
                continue;
            }
            let earlier = earlier(&state, &journal, call, &tool_context.workbook.snapshot);
            let ran = match &earlier {
                Some(earlier) => ToolResult::wrong(repeats::explanation(&earlier.observation)),
                None => {
                    let made: (&GraphState, &[JournalEntry]) = (&state, &journal);
                    self.ran(at, call, made, &tool_context, &cx).await?
                }
            };
            let how = if ran.ok { "ok" } else { "failed" };
            let shown = summary_line(&ran.observation, PROGRESS_CHARS);
            progress(&cx, &format!("  {}: {how}, {shown}", call.name))?;
            if earlier.is_some_and(|earlier| earlier.times >= repeats::REPEATS_MAX) {
                stopped = Some(Stopped::Repeated);
            }
            if let Some(workbook) = &ran.workbook {
                tool_context.workbook = workbook.clone();
            }
            if let Some(answer) = &ran.answer {
                stopped = Some(Stopped::Finished);
                if takes_answer(&state) {
                    update = update.answer(answer.clone());
                }
            }
            let message = match ran.ok {
                true => Message::tool(call, &ran.observation),
                false => Message::tool_error(call, &ran.observation),
            };
            let done = done(state.step, call, ran, &tool_context.workbook.snapshot);
            journal.push(done.clone());
            update = update
                .messages(ChatMessage::new(message, untrusted(&state)))
                .journal(done);
        }
        Ok(update
            .stopped(stopped)
            .workbook(tool_context.workbook)
            .into())
    }
}

/// The result that a call had before, and how often it was made.
struct EarlierResult {
    observation: String,
    times: usize,
}

fn earlier(
    state: &GraphState,
    journal: &[JournalEntry],
    call: &ToolCall,
    snapshot: &str,
) -> Option<EarlierResult> {
    // The steps of a recipe are those of an approved run, and none of them is the model's.
    if state.recipe.is_some() {
        return None;
    }
    // Questions first: the journal has only those that were not passed on to the informer.
    let asked = repeats::earlier_questions(state, call);
    if asked > 0 {
        let known = state.key_information.as_ref();
        return Some(EarlierResult {
            observation: known.map(|known| known.text.clone()).unwrap_or_default(),
            times: asked,
        });
    }
    let all = state.journal.iter().chain(journal);
    let results = repeats::earlier_results(all, &call.name, &input(call), snapshot);
    results.first().map(|first| EarlierResult {
        observation: first.observation.clone(),
        times: results.len(),
    })
}

/// Tells the planner that its message has no action, and stops it if it wrote exactly this twice before.
fn no_action(state: &GraphState, why: &str, cx: &NodeCx) -> Result<Command<GraphState>, NodeError> {
    let mut update = GraphStateUpdate::default();
    let mut told = format!("{why}. {}", how_to_act(state.planner.actions));
    match repeats::earlier_messages(state) {
        0 => {}
        times if times >= repeats::REPEATS_MAX => {
            progress(cx, "  the model wrote the same message three times")?;
            update = update.stopped(Some(Stopped::Repeated));
        }
        _ => told.push_str(" You wrote exactly the same before; write something else."),
    }
    Ok(update.messages(observation(state, &told)).into())
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
    /// Runs a call as a recorded step.
    async fn ran(
        &self,
        at: usize,
        call: &ToolCall,
        (state, journal): (&GraphState, &[JournalEntry]),
        tool_context: &ToolContext<'_>,
        cx: &NodeCx,
    ) -> Result<ToolResult, NodeError> {
        let name = format!("{}-{at}", call.name_for_step());
        let ran: ToolResult = cx
            .step(name, async || {
                let (ran, took) = CallTimes::by(self.tool_deps.run(call, tool_context)).await;
                Ok(ToolResult {
                    took: Some(took),
                    ..judged(ran?, (state, journal), &tool_context.workbook)
                })
            })
            .await?;
        if let Some(took) = ran.took {
            let error = (!ran.ok).then(|| summary_line(&ran.observation, PROGRESS_CHARS));
            cx.emit(tool_span(call.name_for_step(), &call.id, took, error))?;
        }
        Ok(ran)
    }
}

/// Refuses a submitted answer that is none.
fn judged(
    ran: ToolResult,
    (state, journal): (&GraphState, &[JournalEntry]),
    workbook: &WorkbookState,
) -> ToolResult {
    let Some(answer) = &ran.answer else {
        return ran;
    };
    // What failed code printed before it failed may well be the answer.
    let failed = state.journal.iter().filter(|done| {
        !done.ok && done.tool != PYTHON && !repeats::is_explanation(&done.observation)
    });
    let failures = failed.map(|done| done.observation.as_str());
    let checked = check_answer(answer, &state.problem.instruction, failures);
    let checked = checked.and_then(|answer| {
        match grounds::refusal_after(state, state.step, (journal, workbook), &answer) {
            Some(why) => Err(why),
            None => Ok(answer),
        }
    });
    match checked {
        Ok(answer) => ToolResult {
            answer: Some(answer),
            ..ran
        },
        Err(why) => ToolResult::wrong(why),
    }
}

fn observation(state: &GraphState, told: &str) -> ChatMessage {
    let call = ToolCall {
        id: format!("step-{}", state.step),
        name: String::new(),
        args: Json::Null,
    };
    ChatMessage::new(Message::tool_error(&call, told), labels(state))
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
        Some(Plan::Finish(answer)) => {
            Err(grounds::refusal(state, state.step, &answer).unwrap_or_else(no_action_text))
        }
        Some(Plan::Think) | None => Err(no_action_text()),
    }
}

fn no_action_text() -> String {
    "there was no action in your message".to_owned()
}

fn how_to_act(actions: Actions) -> &'static str {
    match actions {
        Actions::Calls => "Call a tool, or say `Finish: …` in a line of its own.",
        Actions::Text => {
            "Write `Action:` and `Action Input:`, or `Finish: …` in a line of its own."
        }
    }
}

/// Returns the argument of a call, as the journal records it.
fn input(call: &ToolCall) -> String {
    tools::input_of(call).unwrap_or_else(|| call.args.to_string())
}

fn done(step: u32, call: &ToolCall, ran: ToolResult, snapshot: &str) -> JournalEntry {
    JournalEntry {
        step,
        tool: call.name.clone(),
        input: input(call),
        observation: ran.observation,
        ok: ran.ok,
        snapshot: snapshot.to_owned(),
        lines: ran.lines,
        pictures: ran.pictures,
    }
}
