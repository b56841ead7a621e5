//! The two nodes of the graph.

use std::collections::BTreeSet;
use std::sync::Arc;

use archie_agent::ModelRegistry;
use archie_agent::mcp::{McpServers, McpTools};
use archie_agent::printable::summary_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::{Interrupt, Node, NodeCx, NodeError, View};
use superstep_agent::{AgentEvent, Spending, failure, within};
use superstep_llm::structured::Structured;
use superstep_llm::{Message, Reply, Request, ToolCall, ToolChoice, ToolSpec, fit};

use super::evidence;
use super::interview_end::user_is_done;
use super::prompts::Prompts;
use super::result;
use super::state::{
    AppState, AppStateUpdate, Call, Finding, PromptType, Role, Section, Source, Support, Turn,
};
use super::tools::{latest_results, messages_of, request_of, with_results};

/// Adds the person's input to the history, and calls the model for the next question or for the result.
pub(super) struct AnalysisPrepareNode {
    pub(super) models: Arc<ModelRegistry>,
    pub(super) prompts: Prompts,
    pub(super) spending: Option<Spending>,
    pub(super) mcp: Arc<McpServers>,
}

/// Interrupts with the model's question and waits for the answer.
pub(super) struct AnalysisInterruptNode;

impl Node<AppState> for AnalysisPrepareNode {
    async fn run(
        &self,
        state: View<AppState>,
        cx: NodeCx,
    ) -> Result<superstep::Command<AppState>, NodeError> {
        let said = Turn {
            role: Role::User,
            content: state.user_input.clone(),
        };
        // The first query may well mention what must be done; only an answer can end the interview.
        let has_agent_spoken = state
            .analysis_history
            .iter()
            .any(|turn| turn.role == Role::Agent);
        let update = match has_agent_spoken && user_is_done(&state.user_input) {
            true => self.return_final_output(&state, said, &cx).await?,
            false => self.next_turn(&state, said, has_agent_spoken, &cx).await?,
        };
        Ok(update.into())
    }
}

impl AnalysisPrepareNode {
    async fn next_turn(
        &self,
        state: &AppState,
        said: Turn,
        has_agent_spoken: bool,
        cx: &NodeCx,
    ) -> Result<AppStateUpdate, NodeError> {
        let prompt = match has_agent_spoken {
            true => PromptType::Followup,
            false => PromptType::Initial,
        };
        let offered = self.offered(cx).await?;
        for text in latest_results(state) {
            cx.emit_live(AgentEvent::progress(text))?;
        }
        let names: BTreeSet<String> = offered.iter().map(|tool| tool.name.clone()).collect();
        let Some(mut reply) = self.call_llm(state, &said, prompt, offered, cx).await? else {
            return Ok(stopped());
        };
        // A call of a tool that was not offered would be committed, and could never be made.
        let calls = std::mem::take(&mut reply.answer.tool_calls);
        let is_offered = |call: &ToolCall| names.contains(&call.name);
        let (calls, unknown): (Vec<_>, Vec<_>) = calls.into_iter().partition(is_offered);
        reply.answer.tool_calls = calls;
        // The person's turn is committed with the first request for calls, and with the answer otherwise.
        let update = match is_open(state) {
            true => AppStateUpdate::default(),
            false => AppStateUpdate::default().analysis_history(said),
        };
        let update = update.calls(call(prompt, &reply));
        if !reply.answer.tool_calls.is_empty() && !is_last_round(state) {
            let turns = state.analysis_history.len() + usize::from(!is_open(state));
            return Ok(update
                .tool_messages(request_of(&reply, state, cx))
                .tool_turns(turns as u64));
        }
        let text = match (reply.text().trim(), unknown.first()) {
            // The reply is recorded, so asking the model again would not help.
            ("", Some(call)) => format!(
                "The model requested `{}`, which is not offered. Ask again, or say what you know.",
                summary_line(&call.name, 60)
            ),
            (text, _) => text.to_owned(),
        };
        if text.is_empty() {
            return Err(NodeError::retryable(EmptyAnswer {
                model: reply.model.to_string(),
            }));
        }
        let agent = Turn {
            role: Role::Agent,
            content: text.clone(),
        };
        Ok(update.analysis_history(agent).current_analysis_query(text))
    }

    /// Returns the tools that the model may request. Tells the person which servers are not used, and why.
    async fn offered(&self, cx: &NodeCx) -> Result<Vec<ToolSpec>, NodeError> {
        let McpTools { tools, unusable } = self.mcp.tools().await;
        for server in unusable {
            let told = format!(
                "the MCP server `{}` is not used: {}",
                server.name, server.why
            );
            cx.emit_live(AgentEvent::progress(told))?;
        }
        Ok(tools.iter().map(|tool| tool.spec().clone()).collect())
    }

    /// Returns the result. The model only supplies claims; the program decides the form and checks the citations.
    async fn return_final_output(
        &self,
        state: &AppState,
        said: Turn,
        cx: &NodeCx,
    ) -> Result<AppStateUpdate, NodeError> {
        let model = self
            .models
            .get(&state.model_name)
            .map_err(NodeError::fatal)?;
        let request = self
            .request(state, &said, PromptType::Final, Vec::new(), &*model, cx)
            .await?;
        let answer = within(self.spending.as_ref(), cx, async |asker| {
            asker.ask_for(&*model, request, Claims::default).await
        });
        let Some(Structured {
            value,
            degraded,
            replies,
        }) = answer.await?
        else {
            return Ok(stopped());
        };
        let mut findings = value.into_findings();
        let sources = with_results(&state.file_contents, state);
        for finding in &mut findings {
            if let Some(source) = &mut finding.source {
                finding.support = evidence::check(source, &sources);
            }
        }
        let output = result::markdown(state, &findings, degraded.as_deref());
        let mut update = AppStateUpdate::default()
            .analysis_history(said)
            .analysis_output(output)
            .findings(findings)
            .degraded(degraded);
        for reply in &replies {
            update = update.calls(call(PromptType::Final, reply));
        }
        Ok(update)
    }

    async fn call_llm(
        &self,
        state: &AppState,
        said: &Turn,
        prompt: PromptType,
        offered: Vec<ToolSpec>,
        cx: &NodeCx,
    ) -> Result<Option<Reply>, NodeError> {
        let model = self
            .models
            .get(&state.model_name)
            .map_err(NodeError::fatal)?;
        let request = self
            .request(state, said, prompt, offered, &*model, cx)
            .await?;
        within(self.spending.as_ref(), cx, async |asker| {
            asker.ask(&*model, &request).await
        })
        .await
    }

    /// Returns the request: the notes, the interview so far and the current prompt, cut to fit the model's context.
    async fn request(
        &self,
        state: &AppState,
        said: &Turn,
        prompt: PromptType,
        offered: Vec<ToolSpec>,
        model: &dyn superstep_llm::Model,
        cx: &NodeCx,
    ) -> Result<Request, NodeError> {
        let has_tools = !offered.is_empty() || !state.tool_messages.is_empty();
        let system = self.prompts.system(&state.file_contents, has_tools);
        let mut messages = vec![Message::system(system)];
        let history = &state.analysis_history;
        let turns_before = history.len() - usize::from(is_open(state));
        for (at, turn) in history[..turns_before].iter().enumerate() {
            messages.push(match turn.role {
                Role::User => Message::user(&turn.content),
                Role::Agent => Message::assistant(&turn.content),
            });
            messages.extend(messages_of(state, at + 1));
        }
        messages.push(Message::user(self.prompts.turn(prompt, &said.content)));
        if is_open(state) {
            messages.extend(messages_of(state, history.len()));
        }
        let context_size = model.context_size().await.map_err(failure)?;
        let mut request = Request::new(prompt.word(), messages);
        request.tokens_max = Some(answer_tokens(context_size));
        request.tools = offered;
        if is_last_round(state) && !request.tools.is_empty() {
            request.tool_choice = ToolChoice::None;
        }
        if let Some(size) = context_size {
            let cuts = fit::fit(&mut request, size);
            if !cuts.is_empty() {
                let cuts: Vec<_> = cuts.iter().map(ToString::to_string).collect();
                let told = format!("cut to fit the model: {}", cuts.join(", "));
                cx.emit_live(AgentEvent::progress(told))?;
            }
        }
        Ok(request)
    }
}

impl Node<AppState> for AnalysisInterruptNode {
    async fn run(
        &self,
        state: View<AppState>,
        cx: NodeCx,
    ) -> Result<superstep::Command<AppState>, NodeError> {
        // One key per turn, so that an answer to an earlier question is never applied to a new one.
        let key = format!("turn-{}", state.analysis_history.len());
        let question = Interrupt::new(key, json!({ "query": state.current_analysis_query }))
            .kind("question")
            .schema(json!({ "type": "string", "minLength": 1 }));
        let response: String = cx.interrupt(question).await?;
        Ok(AppStateUpdate::default().user_input(response).into())
    }
}

/// Returns whether the person's turn is in the history already, because the model requested calls before it answered.
fn is_open(state: &AppState) -> bool {
    state.tool_turns.last() == Some(&(state.analysis_history.len() as u64))
}

/// Returns whether the model must answer now: it has requested calls as often as it may in this turn.
fn is_last_round(state: &AppState) -> bool {
    let turn = state.analysis_history.len() as u64;
    let rounds = state.tool_turns.iter().filter(|of| **of == turn).count();
    is_open(state) && rounds >= ROUNDS_MAX
}

/// Returns the update for a person who declined to spend more. The history stays, and the thread can be reopened.
fn stopped() -> AppStateUpdate {
    AppStateUpdate::default().stopped(Some("budget".to_owned()))
}

fn call(prompt: PromptType, reply: &Reply) -> Call {
    Call {
        prompt,
        model: reply.model.to_string(),
        usage: reply.usage,
        cost: reply.cost,
    }
}

/// What the model fills in.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Claims {
    assumptions: Vec<Claim>,
    components: Vec<Claim>,
    alternatives: Vec<Claim>,
    decisions: Vec<Claim>,
    open_questions: Vec<Claim>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Claim {
    #[schemars(length(max = 400))]
    claim: String,
    #[schemars(length(max = 120))]
    #[serde(default)]
    file: String,
    #[serde(default)]
    line: u32,
    #[schemars(length(max = 200))]
    #[serde(default)]
    quote: String,
}

impl Claims {
    fn into_findings(self) -> Vec<Finding> {
        let sections = [
            (Section::Assumptions, self.assumptions),
            (Section::Components, self.components),
            (Section::Alternatives, self.alternatives),
            (Section::Decisions, self.decisions),
            (Section::Questions, self.open_questions),
        ];
        let findings = sections.into_iter().flat_map(|(section, claims)| {
            let claims = claims
                .into_iter()
                .filter(|claim| !claim.claim.trim().is_empty());
            claims.map(move |claim| claim.into_finding(section))
        });
        findings.collect()
    }
}

impl Claim {
    fn into_finding(self, section: Section) -> Finding {
        let has_source = !self.file.trim().is_empty();
        Finding {
            section,
            claim: self.claim.trim().to_owned(),
            source: has_source.then(|| Source {
                file: self.file.trim().to_owned(),
                line: self.line,
                quote: self.quote.trim().to_owned(),
            }),
            support: Support::Said,
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{model}` gave an empty answer")]
struct EmptyAnswer {
    model: String,
}

/// Returns the token limit of an answer. A small context means a small model, and those tend to write until they are stopped.
fn answer_tokens(context_size: Option<u64>) -> u32 {
    let room = context_size.and_then(|size| u32::try_from(size / 16).ok());
    room.map_or(ANSWER_TOKENS, |room| room.clamp(512, ANSWER_TOKENS))
}

const ANSWER_TOKENS: u32 = 4_000;
/// How often the model may request calls before it answers.
const ROUNDS_MAX: usize = 8;

#[test]
fn every_answer_has_a_limit_that_follows_from_the_context() {
    let limits = [None, Some(2_048), Some(16_384), Some(1 << 20)].map(answer_tokens);
    assert_eq!(limits, [4_000, 512, 1_024, 4_000]);
}
