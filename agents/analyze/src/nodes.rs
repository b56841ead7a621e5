//! The nodes of the interview.

use std::collections::BTreeSet;
use std::sync::Arc;

use archie_agent::mcp::{McpServers, McpTools};
use archie_agent::printable::summary_line;
use archie_agent::thread_folders::{NO_FILES, ThreadFolders};
use archie_agent::{ModelProfile, ModelRegistry};
use serde_json::json;
use superstep::{Interrupt, Node, NodeCx, NodeError, View};
use superstep_agent::{AgentEvent, Asker, Spending, Tool, within_recorded};
use superstep_llm::{Message, Model, Reply, ToolCall, ToolSpec};

use super::interview_end::{ends_in_question, user_is_done, without_closing_words};
use super::prompts::Prompts;
use super::request::{Ask, Briefing, is_open, notice};
use super::state::{AppState, AppStateUpdate, Call, PromptType, Role, Turn};
use super::tools::{latest_results, request_of, with_memory};
use super::{inputs, result};

/// Adds the person's input to the history, and calls the model for the next question or for the result.
pub(super) struct AnalysisPrepareNode {
    pub(super) models: Arc<ModelRegistry>,
    /// Model for threads whose state names none.
    pub(super) default_model: Option<String>,
    pub(super) prompts: Prompts,
    pub(super) spending: Option<Spending>,
    pub(super) mcp: Arc<McpServers>,
    /// Reads pages of the web, if the person turned that on.
    pub(super) web: Option<Tool>,
}

/// Interrupts with the model's question and waits for the answer.
pub(super) struct AnalysisInterruptNode;

/// Returns what follows `echo` as the current query.
pub(super) struct EchoNode;

/// Reads the notes that a caller of a server named among the files of the thread.
pub(super) struct ReadNotesNode {
    pub(super) folders: Option<ThreadFolders>,
}

/// Writes the result into the files of the thread, for callers of a server.
pub(super) struct SaveResultNode {
    pub(super) folders: Option<ThreadFolders>,
}

impl Node<AppState> for ReadNotesNode {
    async fn run(
        &self,
        state: View<AppState>,
        cx: NodeCx,
    ) -> Result<superstep::Command<AppState>, NodeError> {
        let folders = self.folders.as_ref();
        let folders = folders.ok_or_else(|| NodeError::fatal(NO_FILES))?;
        let (folders, thread) = (folders.clone(), cx.thread().clone());
        let names = state.note_files.clone();
        // Reading the text of PDF files may take seconds, and other runs share the thread of this one.
        let read = tokio::task::spawn_blocking(move || {
            inputs::read_thread_files(&folders, &thread, &names)
        });
        let read = read.await.map_err(NodeError::fatal)?;
        let read = read.map_err(|error| NodeError::fatal(error.to_string()))?;
        let mut contents = state.file_contents.clone();
        contents.extend(read.contents);
        Ok(AppStateUpdate::default()
            .file_contents(contents)
            .inputs(read.inputs)
            .note_files(Vec::new())
            .into())
    }
}

impl Node<AppState> for SaveResultNode {
    async fn run(
        &self,
        state: View<AppState>,
        cx: NodeCx,
    ) -> Result<superstep::Command<AppState>, NodeError> {
        let saved = result::save(&state, cx.thread(), self.folders.as_ref());
        saved.map_err(|error| NodeError::fatal(error.to_string()))?;
        Ok(AppStateUpdate::default().into())
    }
}

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

/// What the model said in a turn, and the calls that it took.
struct Spoken {
    replies: Vec<Reply>,
    /// Calls of tools that were offered.
    calls: Vec<ToolCall>,
    text: String,
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
        let (model, profile) = self.model(state, cx)?;
        let files = with_memory(&state.file_contents, state);
        let asked = (&*model, profile);
        let briefing = Briefing::new((state, &files), &self.prompts, &said, asked).await?;
        let notes_shown = briefing.notes_shown().cloned();
        if notes_shown != state.notes_shown
            && let Some(shown) = &notes_shown
        {
            cx.emit_live(AgentEvent::progress(notice(shown)))?;
        }
        let spoken = within_recorded(self.spending.as_ref(), cx, async |asker| {
            self.speak(&briefing, prompt, offered, (&*model, asker), cx)
                .await
        });
        let Some(spoken) = spoken.await? else {
            return Ok(stopped());
        };
        // The person's turn is committed with the first request for calls, and with the answer otherwise.
        let mut update = match is_open(state) {
            true => AppStateUpdate::default(),
            false => AppStateUpdate::default().analysis_history(said),
        };
        if notes_shown != state.notes_shown {
            update = update.notes_shown(notes_shown);
        }
        if !state.drafted.is_empty() {
            update = update.drafted(Vec::new());
        }
        for reply in &spoken.replies {
            update = update.calls(call(prompt, reply));
        }
        if let (false, Some(first)) = (spoken.calls.is_empty(), spoken.replies.first()) {
            let mut reply = first.clone();
            reply.answer.tool_calls = spoken.calls;
            let turns = state.analysis_history.len() + usize::from(!is_open(state));
            return Ok(update
                .tool_messages(request_of(&reply, state, cx))
                .tool_turns(turns as u64));
        }
        let agent = Turn {
            role: Role::Agent,
            content: spoken.text.clone(),
        };
        Ok(update
            .analysis_history(agent)
            .current_analysis_query(spoken.text))
    }

    /// Asks the model for its turn. What it says may be empty or a parroted approval, and its first turn may ask nothing; then
    /// the model gets one more call, and the program has the last word.
    async fn speak(
        &self,
        briefing: &Briefing<'_>,
        prompt: PromptType,
        offered: Vec<ToolSpec>,
        (model, asker): (&dyn Model, &Asker<'_>),
        cx: &NodeCx,
    ) -> Result<Option<Spoken>, NodeError> {
        let names: BTreeSet<String> = offered.iter().map(|tool| tool.name.clone()).collect();
        let is_last_round = briefing.is_last_round();
        let ask = |text: String, more: Vec<Message>, is_without_calls: bool| Ask {
            text,
            more,
            offered: offered.clone(),
            is_without_calls,
            // The arguments of a call take more room than a question.
            tokens_max: match offered.is_empty() {
                true => briefing.turn_tokens(),
                false => briefing.answer_tokens(),
            },
        };
        let prompt_text = briefing.turn_text(prompt);
        let first = ask(prompt_text.clone(), Vec::new(), is_last_round);
        let request = briefing.request(prompt, first, cx)?;
        let Some(reply) = asker.ask(model, &request).await? else {
            return Ok(None);
        };
        let mut replies = vec![reply];
        // A call of a tool that was not offered would be committed, and could never be made.
        let calls = replies[0].answer.tool_calls.clone();
        let (calls, unknown): (Vec<_>, Vec<_>) = calls
            .into_iter()
            .partition(|call| names.contains(&call.name));
        if !calls.is_empty() && !is_last_round {
            let text = String::new();
            return Ok(Some(Spoken {
                replies,
                calls,
                text,
            }));
        }
        let mut text = briefing.spoken(&replies[0]);
        if let (true, Some(call)) = (text.is_empty(), unknown.first()) {
            text = format!(
                "The model requested `{}`, which is not offered. Ask again, or say what you know.",
                summary_line(&call.name, 60)
            );
        } else if text.is_empty() {
            let said = replies[0].text();
            let why = match () {
                () if said.trim().is_empty() => "the model said nothing",
                () if without_closing_words(&said).is_empty() => {
                    "the model only repeated a closing phrase"
                }
                () => "the model only repeated itself",
            };
            cx.emit_live(AgentEvent::Again {
                why: why.into(),
                attempt: 2,
                attempts_max: 2,
            })?;
            let again = format!("{prompt_text}\n\n{}", self.prompts.question());
            // A model that thinks before it speaks may have used up its tokens.
            let mut again = ask(again, Vec::new(), true);
            again.tokens_max = briefing.answer_tokens();
            let request = briefing.request(prompt, again, cx)?;
            let Some(reply) = asker.ask(model, &request).await? else {
                return Ok(None);
            };
            text = briefing.spoken(&reply);
            replies.push(reply);
            if text.is_empty() {
                text = format!("({why}.) {OWN_FOLLOWUP}");
            }
        }
        if prompt == PromptType::Initial && !ends_in_question(&text) {
            // On its own line, after the reply that was streamed last.
            let earlier = replies.len() as u32 - 1;
            cx.emit_live(AgentEvent::Token {
                message: cx.message_id(earlier).into(),
                text: "\n\n".into(),
            })?;
            let more = vec![
                Message::assistant(&text),
                Message::user(self.prompts.question()),
            ];
            let mut only = ask(prompt_text, more, true);
            only.tokens_max = QUESTION_TOKENS;
            let request = briefing.request(prompt, only, cx)?;
            let Some(reply) = asker.ask(model, &request).await? else {
                return Ok(None);
            };
            let question = without_closing_words(&reply.text());
            replies.push(reply);
            let question = match ends_in_question(&question) {
                true => question.as_str(),
                false => OWN_QUESTION,
            };
            text = format!("{text}\n\n{question}");
        }
        Ok(Some(Spoken {
            replies,
            calls: Vec::new(),
            text,
        }))
    }

    /// Returns the model of the run, and how much may be left to it.
    pub(super) fn model(
        &self,
        state: &AppState,
        cx: &NodeCx,
    ) -> Result<(Arc<dyn Model>, ModelProfile), NodeError> {
        let own = match state.model_name.as_str() {
            "" => self.default_model.as_deref().unwrap_or_default(),
            name => name,
        };
        let name = self.models.name_in_run(own, cx)?;
        if name.is_empty() {
            return Err(NodeError::fatal(
                "no model is chosen; give one with --model, or set ARCHIE_MODEL",
            ));
        }
        let model = self.models.get(&name).map_err(NodeError::fatal)?;
        Ok((model, self.models.profile(&name)))
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
        let tools = tools.iter().chain(&self.web);
        Ok(tools.map(|tool| tool.spec().clone()).collect())
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

impl Node<AppState> for EchoNode {
    async fn run(
        &self,
        state: View<AppState>,
        _cx: NodeCx,
    ) -> Result<superstep::Command<AppState>, NodeError> {
        let input = state.user_input.trim();
        let text = input.get("echo".len()..).unwrap_or_default().trim();
        Ok(AppStateUpdate::default()
            .current_analysis_query(text.to_owned())
            .into())
    }
}

/// Returns the update for a person who declined to spend more. The history stays, and the thread can be reopened.
pub(super) fn stopped() -> AppStateUpdate {
    AppStateUpdate::default().stopped(Some("budget".to_owned()))
}

pub(super) fn call(prompt: PromptType, reply: &Reply) -> Call {
    Call {
        prompt,
        model: reply.model.to_string(),
        usage: reply.usage,
        cost: reply.cost,
    }
}

/// Asked in place of the model if its first turn asks nothing.
const OWN_QUESTION: &str = "What matters most to you in this decision, and what must not happen?";
/// Said in place of the model if it says nothing.
const OWN_FOLLOWUP: &str =
    "What should be looked at next? If nothing is missing, you can end the interview.";
const QUESTION_TOKENS: u32 = 200;
