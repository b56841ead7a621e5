//! Nodes of the response agent that call the model and that finish the email.

use std::collections::BTreeSet;
use std::sync::Arc;

use archie_agent::clock::seconds;
use archie_agent::prompts::filled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::label::Labels;
use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_agent::{AgentEvent, Asker, ChatMessage, Spent, unanswered_calls, within};
use superstep_llm::structured::Structured;
use superstep_llm::{Answer, Message, Model, Request, ToolCall};

use super::email::{Email, parse_gmail};
use super::memory::{Preferences, get_memory};
use super::prompts::numbered;
use super::state::{Ended, MailState, MailStateUpdate};
use super::tools::{DONE, MailTools, QUESTION, Reply, SEND_EMAIL, specs};
use super::triage::{cut, mail_labels, tell_cuts};
use super::ui::marked_as_read;
use super::{INTERRUPT_HANDLER, LLM_CALL, MARK_AS_READ, MailDeps};

/// Node that asks the model for its next tool calls.
pub(super) struct LlmCall(pub(super) Arc<MailDeps>);

impl Node<MailState> for LlmCall {
    async fn run(
        &self,
        state: View<MailState>,
        cx: NodeCx,
    ) -> Result<Command<MailState>, NodeError> {
        // The other calls of the message that contains `Done` have results, so there is nothing left to ask.
        if says_done(&state.messages) {
            return Ok(MailStateUpdate::default().into());
        }
        let email = parse_gmail(&state.email_input);
        let model = self.0.model(&state, &cx)?;
        let (mut request, labels) = self.request(&state, &email, &cx).await?;
        let cuts = cut(&mut request, &*model).await?;
        tell_cuts(&cuts, &cx)?;
        let turn = within(self.0.spending.as_ref(), &cx, async |asker| {
            self.turn(asker, &*model, request, &email).await
        });
        let Some(ModelTurn {
            mut answer,
            spent,
            degraded,
        }) = turn.await?
        else {
            return Ok(MailStateUpdate::default()
                .ended(Some(Ended::Stopped))
                .into());
        };
        name_calls(&mut answer.tool_calls, &state.messages, &cx);
        let update = MailStateUpdate::default()
            .messages(ChatMessage::new(Message::Assistant(answer), labels))
            .spent(spent);
        Ok(match degraded {
            Some(degraded) => update.degraded(Some(degraded)),
            None => update,
        }
        .into())
    }
}

/// The model's answer, with its cost and why it was not usable as asked.
struct ModelTurn {
    answer: Answer,
    spent: Spent,
    degraded: Option<String>,
}

/// What a model that calls no tools is asked for: flat, and only words to fill in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct NextAct {
    tool: NextTool,
    /// The answer, or the question; empty for Done.
    #[schemars(length(max = 1500))]
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
enum NextTool {
    #[serde(rename = "send_email_tool")]
    Send,
    Question,
    Done,
}

impl LlmCall {
    async fn request(
        &self,
        state: &MailState,
        email: &Email,
        cx: &NodeCx,
    ) -> Result<(Request, Labels), NodeError> {
        let mut labels = mail_labels();
        let mut known = Vec::new();
        let store = self.0.store(cx);
        for which in [Preferences::Response, Preferences::Calendar] {
            let memory = get_memory(&store, which, which.default_lines()).await;
            let (lines, learned_from) = memory.map_err(NodeError::retryable)?;
            labels.add(&learned_from);
            known.push(numbered(&lines));
        }
        for kept in &state.messages {
            labels.add(&kept.labels);
        }
        // The model's output may contain anything from its input, so it gets all labels of the input.
        cx.note_read(&labels);
        let system = filled(
            &self.0.prompts.respond,
            &[
                ("account", &email.account),
                ("today", &today()),
                ("response_preferences", &known[0]),
                ("cal_preferences", &known[1]),
            ],
        );
        let said = state.messages.iter().map(|kept| kept.message.clone());
        let messages = std::iter::once(Message::system(system))
            .chain(said)
            .collect();
        let mail_tools = MailTools::new(
            email.clone(),
            self.0.mailboxes.get("").map_err(unreachable_mailbox)?,
            None,
        );
        let request = Request::new(LLM_CALL, messages)
            .tools(specs(&mail_tools.tools()?))
            .tokens_max(ANSWER_TOKENS);
        Ok((request, labels))
    }

    /// Asks the model once. If it calls no tool, asks once more for a structured answer that small models can fill in.
    async fn turn(
        &self,
        asker: &Asker<'_>,
        model: &dyn Model,
        request: Request,
        email: &Email,
    ) -> Result<Option<ModelTurn>, NodeError> {
        let Some(reply) = asker.ask(model, &request).await? else {
            return Ok(None);
        };
        let spent = Spent::on(&reply);
        if !reply.answer.tool_calls.is_empty() {
            return Ok(Some(ModelTurn {
                answer: reply.answer,
                spent,
                degraded: None,
            }));
        }
        let mut again = Request::new("nudge", request.messages).tokens_max(ANSWER_TOKENS);
        let text = reply.text();
        if !text.trim().is_empty() {
            again.messages.push(Message::assistant(text));
        }
        let nudge = filled(&self.0.prompts.nudge, &[("account", &email.account)]);
        again.messages.push(Message::user(nudge));
        cut(&mut again, model).await?;
        let nothing = || NextAct {
            tool: NextTool::Question,
            text: String::new(),
        };
        let Some(Structured {
            value,
            degraded,
            replies,
        }) = asker.ask_for(model, again, nothing).await?
        else {
            return Ok(None);
        };
        let spent = replies.iter().map(Spent::on).fold(spent, Spent::plus);
        let mut answer = reply.answer;
        // Without text there is nothing to send or to ask. The interrupt handler then asks the person what to do.
        answer
            .tool_calls
            .extend(value.into_call(email).filter(|_| degraded.is_none()));
        Ok(Some(ModelTurn {
            answer,
            spent,
            degraded: Some("the model called no tool by itself".to_owned()),
        }))
    }
}

impl NextAct {
    /// Converts the structured answer to a tool call; `None` if it lacks the text it needs.
    fn into_call(self, email: &Email) -> Option<ToolCall> {
        let is_empty = self.text.trim().is_empty();
        let (name, args) = match self.tool {
            NextTool::Done => (DONE, json!({ "done": true })),
            _ if is_empty => return None,
            NextTool::Question => (QUESTION, json!({ "content": self.text })),
            NextTool::Send => {
                let reply = Reply {
                    email_id: email.id.clone(),
                    response_text: self.text,
                    email_address: email.account.clone(),
                    ..Reply::default()
                };
                (SEND_EMAIL, serde_json::to_value(reply).ok()?)
            }
        };
        Some(ToolCall {
            id: String::new(),
            name: name.to_owned(),
            args,
        })
    }
}

/// Routes to the interrupt handler, or to the end if the model is finished or a person declined to spend more.
pub(super) fn after_llm_call(state: &MailState) -> &'static str {
    let is_stopped = state.ended == Some(Ended::Stopped);
    match is_stopped || says_done(&state.messages) {
        true => MARK_AS_READ,
        false => INTERRUPT_HANDLER,
    }
}

/// Returns whether `Done` is the only call of the model that has no result yet.
fn says_done(messages: &[ChatMessage]) -> bool {
    let open = unanswered_calls(messages);
    !open.is_empty() && open.iter().all(|call| call.name == DONE)
}

/// Node that marks the email as read when the assistant has finished. Both graphs contain it; the second one does nothing if
/// the first one marked the email.
pub(super) struct MarkAsReadNode(pub(super) Arc<MailDeps>);

impl Node<MailState> for MarkAsReadNode {
    async fn run(
        &self,
        state: View<MailState>,
        cx: NodeCx,
    ) -> Result<Command<MailState>, NodeError> {
        let is_left = matches!(state.ended, Some(Ended::Ignored | Ended::Stopped));
        if is_left || state.marked_as_read || state.redraft.is_some() {
            return Ok(MailStateUpdate::default().into());
        }
        let done = MailStateUpdate::default().ended(Some(Ended::Done));
        let email = parse_gmail(&state.email_input);
        if email.id.is_empty() {
            return Ok(done.into());
        }
        let mailbox = self
            .0
            .mailboxes
            .get(&state.source)
            .map_err(unreachable_mailbox)?;
        cx.step("mark_as_read", || async {
            let marked = mailbox.mark_as_read(&email.id).await;
            marked.map_err(|error| NodeError::retryable(format!("{error:#}")))
        })
        .await?;
        cx.emit_live(AgentEvent::progress(marked_as_read(&email.id)))?;
        Ok(done.marked_as_read(true).into())
    }
}

/// A mailbox that cannot be opened may become available, so the error is retryable.
pub(super) fn unreachable_mailbox(error: anyhow::Error) -> NodeError {
    NodeError::retryable(format!("{error:#}"))
}

/// Replaces call ids that are missing, malformed or duplicated: records, keys and results refer to them.
fn name_calls(calls: &mut [ToolCall], messages: &[ChatMessage], cx: &NodeCx) {
    let earlier = messages.iter().flat_map(|kept| kept.message.tool_calls());
    let mut taken: BTreeSet<String> = earlier.map(|call| call.id.clone()).collect();
    for (index, call) in calls.iter_mut().enumerate() {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let fits = (1..=ID_BYTES_MAX).contains(&call.id.len()) && call.id.bytes().all(plain);
        if !fits || taken.contains(&call.id) {
            call.id = format!("call_{}_{index}", cx.task());
        }
        taken.insert(call.id.clone());
    }
}

fn today() -> String {
    let now = chrono::DateTime::from_timestamp(seconds() as i64, 0).unwrap_or_default();
    now.format("%Y-%m-%d").to_string()
}

const ID_BYTES_MAX: usize = 64;
const ANSWER_TOKENS: u32 = 800;
