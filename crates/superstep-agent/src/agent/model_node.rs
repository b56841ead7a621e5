//! The node that asks the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use superstep_core::label::Label;
use superstep_core::{Command, Labels, Node, NodeCx, NodeError, View};
use superstep_llm::{Chunk, Message, Model, ModelError, Reply, Request, ToolCall, ToolChoice};

use crate::agent::spending::{Over, Spending, Stop};
use crate::agent::state::answers_since_person;
use crate::agent::{Conversation, Ended, Go, HookCx, Hooks, Live, Spent, Turn};
use crate::call::Asking;
use crate::chat::ChatMessage;
use crate::spans::{Took, live_model_call, model_call, now};
use crate::tool::{Tool, ToolFault, Tools};

/// Asks the model what to say or do next, and writes its answer with the labels of everything it was shown.
pub struct ModelNode {
    pub(super) label: String,
    pub(super) model: Arc<dyn Model>,
    pub(super) tools: Tools,
    pub(super) system: Option<String>,
    pub(super) step_limit: u32,
    pub(super) tokens_max: Option<u32>,
    pub(super) hooks: Vec<Arc<dyn Hooks>>,
    pub(super) spending: Option<Spending>,
}

/// What came of asking, as it is recorded.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asked {
    Answered(Box<Answered>),
    /// Not asked: it does not fit into a budget.
    Over(Over),
}

/// An answer, and when the model was asked.
#[derive(Debug, Serialize, Deserialize)]
struct Answered {
    reply: Reply,
    took: Took,
}

impl ModelNode {
    /// Asks this model; `label` is what scripts and traces know it by, usually the node's name.
    pub fn new(label: impl Into<String>, model: Arc<dyn Model>) -> Self {
        Self {
            label: label.into(),
            model,
            tools: Tools::default(),
            system: None,
            step_limit: u32::MAX,
            tokens_max: None,
            hooks: Vec::new(),
            spending: None,
        }
    }

    /// Tells it before everything else.
    #[must_use]
    pub fn system(mut self, instructions: impl Into<String>) -> Self {
        self.system = Some(instructions.into());
        self
    }

    /// Lets it have these called.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Result<Self, Vec<ToolFault>> {
        self.tools = Tools::new(tools)?;
        Ok(self)
    }

    fn request(&self, messages: &[ChatMessage], last: bool) -> Request {
        let system = self.system.as_ref().map(Message::system);
        let said = messages.iter().map(|kept| kept.message.clone());
        let mut request = Request::new(&self.label, system.into_iter().chain(said).collect());
        request.tools = self.tools.specs();
        request.tokens_max = self.tokens_max;
        if last && !self.tools.is_empty() {
            request.tool_choice = ToolChoice::None;
        }
        request
    }

    /// Asks once. Recorded only where the node may pause or run on after the answer: else its commit is the record.
    async fn ask(&self, request: &Request, cx: &NodeCx) -> Result<Asked, NodeError> {
        let work = || async {
            if let Some(spending) = &self.spending
                && let Some(over) = spending.reserve(cx, &*self.model, request).await?
            {
                return Ok(Asked::Over(over));
            }
            let since = now();
            let reply = live_model_call(self.model.name(), self.stream(request, cx)).await?;
            let took = Took::since(since);
            Ok(Asked::Answered(Box::new(Answered { reply, took })))
        };
        match self.hooks.is_empty() && self.spending.is_none() {
            true => work().await,
            false => cx.step("reply", work).await,
        }
    }

    async fn stream(&self, request: &Request, cx: &NodeCx) -> Result<Reply, NodeError> {
        let mut chunks = self.model.stream(request).await.map_err(failure)?;
        while let Some(chunk) = chunks.next().await {
            match chunk.map_err(failure)? {
                Chunk::Text(text) => cx.emit_live(Live::Token { text: &text })?,
                Chunk::Reasoning(text) => cx.emit_live(Live::Reasoning { text: &text })?,
                Chunk::ToolCall { id, name } => cx.emit_live(Live::ToolCall {
                    id: &id,
                    name: &name,
                })?,
                Chunk::Again { why } => cx.emit_live(Live::Again { why: &why })?,
                Chunk::End(reply) => return Ok(*reply),
            }
        }
        Err(failure(ModelError::Cut))
    }

    /// Asks, and asks a person where a limit is in the way. None if they do not want to go on.
    async fn ask_within_budget(
        &self,
        request: &Request,
        asking: &Asking<'_>,
    ) -> Result<Option<Reply>, NodeError> {
        loop {
            match (self.ask(request, asking.cx).await?, &self.spending) {
                (Asked::Answered(answered), spending) => {
                    let Answered { reply, took } = *answered;
                    let call = model_call(self.model.name(), &reply, took);
                    asking.cx.emit(call)?;
                    if let Some(spending) = spending {
                        let model = &*self.model;
                        spending.settle(asking.cx, model, request, &reply).await?;
                    }
                    return Ok(Some(reply));
                }
                (Asked::Over(over), Some(spending)) => {
                    if let Stop::Yes = spending.ask_for_more(&over, asking).await? {
                        return Ok(None);
                    }
                }
                (Asked::Over(over), None) => {
                    return Err(NodeError::fatal(format!(
                        "a budget was reached and there is none now: {}",
                        over.why
                    )));
                }
            }
        }
    }

    async fn turn(&self, messages: &[ChatMessage], cx: &NodeCx) -> Result<Turn, NodeError> {
        let labels = labels_of(messages);
        if labels.has(&Label::SECRET) {
            return Err(NodeError::fatal(
                "the conversation holds something labeled `secret`, which no model may see; take it out, or declassify it",
            ));
        }
        // Whatever the model says may be made of all it was shown, and core holds us to it.
        cx.note_read(&labels);
        let answers = answers_since_person(messages);
        let last = answers + 1 >= self.step_limit as usize;
        let asking = Asking::holding(cx);
        let hook_cx = HookCx::new(&asking);
        let mut request = self.request(messages, last);
        for hooks in &self.hooks {
            if let Go::Refuse(why) = hooks.before_model(&mut request, &hook_cx).await? {
                return Ok(refused(why, labels, Spent::default()));
            }
        }
        let Some(mut reply) = self.ask_within_budget(&request, &asking).await? else {
            return Ok(Turn {
                ended: Some(Ended::Budget),
                ..Turn::default()
            });
        };
        let spent = Spent::on(&reply);
        for hooks in &self.hooks {
            if let Go::Refuse(why) = hooks.after_model(&mut reply, &hook_cx).await? {
                return Ok(refused(why, labels, spent));
            }
        }
        name_calls(&mut reply.answer.tool_calls, messages, cx);
        let mut said = vec![ChatMessage::new(reply.message(), labels.clone())];
        if last {
            // It was told that there are no tools. A call without a result would spoil the conversation for good.
            let unmade = reply.answer.tool_calls.iter().map(|call| {
                let why = Message::tool_error(call, "not called: the limit of steps was reached");
                ChatMessage::new(why, labels.clone())
            });
            said.extend(unmade);
        }
        Ok(Turn {
            messages: said,
            spent,
            ended: (last && !self.tools.is_empty()).then_some(Ended::StepLimit),
        })
    }
}

impl<S: Conversation> Node<S> for ModelNode {
    async fn run(&self, state: View<S>, cx: NodeCx) -> Result<Command<S>, NodeError> {
        let turn = self.turn(state.messages(), &cx).await?;
        Ok(Command::update(S::said(turn)))
    }
}

fn labels_of(messages: &[ChatMessage]) -> Labels {
    let all = messages.iter().map(|kept| &kept.labels);
    all.fold(Labels::NONE, |sum, labels| sum.join(labels))
}

fn refused(why: String, labels: Labels, spent: Spent) -> Turn {
    Turn {
        messages: vec![ChatMessage::new(Message::assistant(why), labels)],
        spent,
        ended: Some(Ended::Refused),
    }
}

fn failure(error: ModelError) -> NodeError {
    match error.is_retryable() {
        true => NodeError::retryable(error),
        false => NodeError::fatal(error),
    }
}

/// Gives calls an id of our own where the model's cannot be one: records, keys and results go by it.
fn name_calls(calls: &mut [ToolCall], messages: &[ChatMessage], cx: &NodeCx) {
    let earlier = messages.iter().flat_map(|kept| kept.message.tool_calls());
    let mut taken: BTreeSet<String> = earlier.map(|call| call.id.clone()).collect();
    for (index, call) in calls.iter_mut().enumerate() {
        let fits = (1..=ID_BYTES_MAX).contains(&call.id.len())
            && call
                .id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if !fits || !taken.insert(call.id.clone()) {
            call.id = format!("call_{}_{index}", cx.task());
            taken.insert(call.id.clone());
        }
    }
}

/// Long enough for every provider's, short enough for the name of a step.
const ID_BYTES_MAX: usize = 64;

impl std::fmt::Debug for ModelNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelNode")
            .field("label", &self.label)
            .field("model", &self.model)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
