//! The node that asks the planner's model what to do next, or replays a recipe instead.

use archie_agent::ModelProfile;
use serde_json::json;
use superstep::{Command, Interrupt, Node, NodeCx, NodeError, View};
use superstep_agent::{ChatMessage, within};
use superstep_llm::{Answer, Message, Model, Request, ToolCall};

use super::super::PLANNER_NODE;
use super::super::changes::{Verdict, VerdictKind};
use super::super::plan::{self, Plan};
use super::super::recipe::Recipe;
use super::super::state::{Actions, GraphState, GraphStateUpdate, Stopped};
use super::super::tools::{self, PYTHON, ToolDeps};
use super::step_form::{self, StepForm};
use super::{ModelDeps, call, fitted, grounds, labels, progress, takes_answer};

/// Asks the planner's model what to do next.
pub(in super::super) struct PlannerNode {
    pub(in super::super) asking: ModelDeps,
    pub(in super::super) tool_deps: ToolDeps,
}

impl Node<GraphState> for PlannerNode {
    async fn run(
        &self,
        state: View<GraphState>,
        cx: NodeCx,
    ) -> Result<Command<GraphState>, NodeError> {
        if let Some(recipe) = &state.recipe {
            return self.play(recipe, &state, &cx).await;
        }
        // The tool node took the answer, or stopped a planner that goes in circles: nothing is left to plan.
        if state.stopped.is_some() {
            return Ok(GraphStateUpdate::default().into());
        }
        if state.step >= state.max_steps {
            return Ok(GraphStateUpdate::default()
                .stopped(Some(Stopped::StepLimit))
                .into());
        }
        let step = state.step + 1;
        let models = &self.asking.models;
        let name = models.name_in_run(&state.planner.model, &cx)?;
        let model = models.get(&name).map_err(NodeError::fatal)?;
        let asked = (&*model, models.profile(&name));
        let request = self.request(&state, asked, &cx).await?;
        let asked = within(self.asking.spending.as_ref(), &cx, async |asker| {
            asker.ask(&*model, &request).await
        });
        let Some(reply) = asked.await? else {
            return Ok(GraphStateUpdate::default()
                .stopped(Some(Stopped::Budget))
                .into());
        };
        let said = match &request.output {
            Some(_) => step_form::said(&reply, step, state.planner.actions),
            None => reply.message(),
        };
        let plan = plan::read(&said, step);
        progress(&cx, &format!("step {step} planner → {}", plan.says()))?;
        let mut update = GraphStateUpdate::default()
            .step(step)
            .calls(call(PLANNER_NODE, &reply))
            .stopped(None)
            .informer_tries(0);
        if let Plan::Finish(answer) = plan
            && grounds::refusal(&state, step, &answer).is_none()
        {
            update = update.stopped(Some(Stopped::Finished));
            if !answer.is_empty() && takes_answer(&state) {
                update = update.answer(answer);
            }
        }
        // The reply may be influenced by untrusted cells, so it carries the labels of the conversation.
        let message = ChatMessage::new(said, labels(&state));
        Ok(update.messages(message).into())
    }
}

impl PlannerNode {
    /// Returns the next step of a recipe, without calling a model.
    async fn play(
        &self,
        recipe: &Recipe,
        state: &GraphState,
        cx: &NodeCx,
    ) -> Result<Command<GraphState>, NodeError> {
        let update = GraphStateUpdate::default();
        if state.step == 0 && !self.is_wanted(recipe, state, cx).await? {
            return Ok(update.stopped(Some(Stopped::OtherShape)).into());
        }
        if state.journal.last().is_some_and(|done| !done.ok) {
            return Ok(update.stopped(Some(Stopped::RecipeFailed)).into());
        }
        let step = state.step + 1;
        let code = recipe.steps.get(state.step as usize);
        let Some(code) = code else {
            let said = ChatMessage::new(Message::assistant("Finish"), labels(state));
            return Ok(update
                .messages(said)
                .step(step)
                .stopped(Some(Stopped::Finished))
                .into());
        };
        let call = ToolCall {
            id: format!("recipe-{step}"),
            name: PYTHON.to_owned(),
            args: json!({ "code": code }),
        };
        let said = Message::Assistant(Answer {
            tool_calls: vec![call],
            ..Answer::default()
        });
        Ok(update
            .messages(ChatMessage::new(said, labels(state)))
            .step(step)
            .into())
    }

    /// Returns whether the workbook has the layout that the recipe expects, or the person wants to run it anyway.
    async fn is_wanted(
        &self,
        recipe: &Recipe,
        state: &GraphState,
        cx: &NodeCx,
    ) -> Result<bool, NodeError> {
        let snapshots = &self.tool_deps.snapshots;
        let hash = &state.problem.workbook.hash;
        let book = snapshots
            .read(cx.thread(), hash)
            .map_err(NodeError::fatal)?;
        let differences = recipe.differences(&book);
        if differences.is_empty() {
            return Ok(true);
        }
        let request = json!({
            "summary": format!("This workbook is not what the recipe was made for: {}. Play it all the same?", differences.join("; ")),
            "answers": { "accept": { "type": "accept" }, "reject": { "type": "reject" } },
        });
        let question = Interrupt::new("shape", request)
            .kind("approval")
            .schema(Verdict::schema());
        let verdict: Verdict = cx.interrupt(question).await?;
        Ok(verdict.kind == VerdictKind::Accept)
    }

    async fn request(
        &self,
        state: &GraphState,
        (model, profile): (&dyn Model, ModelProfile),
        cx: &NodeCx,
    ) -> Result<Request, NodeError> {
        let mut messages = vec![Message::system(self.asking.prompts.planner(state))];
        messages.extend(conversation(state));
        let mut request = Request::new(PLANNER_NODE, messages);
        if state.planner.actions == Actions::Calls {
            request.tools = tools::specs(&state.tools);
        }
        // A small model that answered without looking anything up, or without a change, does so again. It can write one query
        // or a few lines of code if that is all it can do.
        if let Some(form) = StepForm::of(state, profile) {
            form.put_into(&mut request, state);
        }
        fitted(&mut request, model, PLAN_TOKENS, cx).await?;
        Ok(request)
    }
}

/// Returns the conversation as a model reads it. A tool result without a matching call belongs to the text format and becomes
/// an `Observation:`.
fn conversation(state: &GraphState) -> Vec<Message> {
    let mut calls: Vec<&str> = Vec::new();
    let mut messages = Vec::new();
    for kept in &state.messages {
        match &kept.message {
            Message::Tool(result) if !calls.contains(&result.tool_call_id.as_str()) => {
                messages.push(Message::user(format!("Observation: {}", kept.text())));
            }
            message => {
                if let Message::Assistant(answer) = message {
                    calls = answer
                        .tool_calls
                        .iter()
                        .map(|call| call.id.as_str())
                        .collect();
                }
                messages.push(message.clone());
            }
        }
    }
    messages
}

const PLAN_TOKENS: u32 = 2_000;
