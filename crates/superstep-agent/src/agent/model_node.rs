//! The node that calls the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep_core::label::{Label, Labeled};
use superstep_core::state::MessageIds;
use superstep_core::{Command, Labels, Node, NodeCx, NodeError, StateUpdate, View};
use superstep_llm::{Message, Model, Reply, Request, ToolCall, ToolChoice};

use crate::agent::answer_form::{AnswerForm, FinalReplies};
use crate::agent::models::Models;
use crate::agent::spending::Spending;
use crate::agent::state::{answers_since_person, labels_of, with_all_results};
use crate::agent::{Conversation, EndReason, Go, HookCx, Hooks, Spent, Turn};
use crate::asking::Asker;
use crate::call::Asking;
use crate::chat::ChatMessage;
use crate::tool::{Tool, ToolFault, Tools};

/// Node that calls the model, and writes its answer with the labels of everything in the conversation.
pub struct ModelNode {
    pub(super) label: String,
    pub(super) models: Models,
    pub(super) tools: Tools,
    pub(super) system: Option<String>,
    pub(super) answer: Option<AnswerForm>,
    pub(super) step_limit: u32,
    pub(super) sampling: Sampling,
    pub(super) hooks: Vec<Arc<dyn Hooks>>,
    pub(super) spending: Option<Spending>,
}

/// Settings that every request of an agent carries.
#[derive(Debug, Clone, Default)]
pub(super) struct Sampling {
    pub(super) tokens_max: Option<u32>,
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) stop: Vec<String>,
    pub(super) seed: Option<u64>,
}

impl Sampling {
    fn set(&self, request: &mut Request) {
        request.tokens_max = self.tokens_max;
        request.temperature = self.temperature;
        request.top_p = self.top_p;
        request.stop.clone_from(&self.stop);
        request.seed = self.seed;
    }
}

impl ModelNode {
    /// Creates a node for this model. `label` names the node in requests, scripts and traces; usually the node's name.
    pub fn new(label: impl Into<String>, model: Arc<dyn Model>) -> Self {
        Self {
            label: label.into(),
            models: Models::new(model),
            tools: Tools::default(),
            system: None,
            answer: None,
            step_limit: u32::MAX,
            sampling: Sampling::default(),
            hooks: Vec::new(),
            spending: None,
        }
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system(mut self, instructions: impl Into<String>) -> Self {
        self.system = Some(instructions.into());
        self
    }

    /// Sets the tools that the model may call, and replaces earlier ones. Returns every problem if they are invalid.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Result<Self, Vec<ToolFault>> {
        self.tools = Tools::new(tools)?;
        Ok(self)
    }

    fn request(&self, messages: &[ChatMessage], last: bool) -> Request {
        let system = self.system.as_ref().map(Message::system);
        let said = with_all_results(messages);
        let mut request = Request::new(&self.label, system.into_iter().chain(said).collect());
        request.tools = self.tools.specs();
        self.sampling.set(&mut request);
        if last && !self.tools.is_empty() {
            request.tool_choice = ToolChoice::None;
        }
        request
    }

    async fn turn(&self, messages: &[ChatMessage], cx: &NodeCx) -> Result<Turn, NodeError> {
        let labels = labels_of(messages);
        if labels.has(&Label::SECRET) {
            return Err(NodeError::fatal(
                "the conversation holds something labeled `secret`, which no model may see; take it out, or declassify it",
            ));
        }
        let model = self.models.chosen(cx)?;
        // Any part of the conversation may have influenced the answer; core enforces these labels on the update.
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
        // Recorded only where the node may pause or continue after the answer; otherwise its commit is the record.
        let goes_on = !self.hooks.is_empty() || self.answer.is_some();
        let asker = Asker::new(&asking, self.spending.as_ref()).recorded(goes_on);
        let call = ModelCall {
            model,
            asker: &asker,
            hooks: &self.hooks,
            hook_cx: &hook_cx,
        };
        let mut spent = Spent::default();
        let is_final = last || self.tools.is_empty();
        let said = match self.ask(&call, request, is_final, &mut spent).await? {
            Ok(said) => said,
            Err(NoReply::Refused(why)) => return Ok(refused(why, labels, spent)),
            Err(NoReply::Budget) => {
                return Ok(Turn {
                    spent,
                    ended: Some(EndReason::Budget),
                    ..Turn::default()
                });
            }
        };
        let ModelSaid {
            mut reply,
            answer,
            ended,
        } = said;
        name_calls(&mut reply.answer.tool_calls, messages, cx);
        let mut said = vec![ChatMessage::new(reply.message(), labels.clone())];
        if last {
            // The request forbade tools. A call without a result would make the conversation invalid for the provider from
            // then on.
            let unmade = reply.answer.tool_calls.iter().map(|call| {
                let why = Message::tool_error(call, "not called: the limit of steps was reached");
                ChatMessage::new(why, labels.clone())
            });
            said.extend(unmade);
        }
        Ok(Turn {
            messages: said,
            spent,
            structured_answer: answer.map(|answer| Labeled::new(answer, labels)),
            ended: ended
                .or_else(|| (last && !self.tools.is_empty()).then_some(EndReason::StepLimit)),
        })
    }

    /// Asks the model, and for the structured answer if this agent has one and the model is done.
    async fn ask(
        &self,
        call: &ModelCall<'_>,
        mut request: Request,
        is_final: bool,
        spent: &mut Spent,
    ) -> Result<Result<ModelSaid, NoReply>, NodeError> {
        let Some(form) = &self.answer else {
            let reply = call.ask(&request, spent).await?;
            return Ok(reply.map(ModelSaid::only));
        };
        let said = match is_final {
            // Certainly the last answer, so one request is enough.
            true => None,
            false => match call.ask(&request, spent).await? {
                Ok(reply) if !reply.answer.tool_calls.is_empty() => {
                    return Ok(Ok(ModelSaid::only(reply)));
                }
                Ok(reply) => Some(reply),
                Err(no_reply) => return Ok(Err(no_reply)),
            },
        };
        // Servers that constrain an answer to a schema cannot offer tools at the same time.
        request.tools.clear();
        request.tool_choice = ToolChoice::default();
        // A stop text inside the JSON would cut it off.
        request.stop.clear();
        if let Some(said) = &said {
            request.messages.push(said.message());
            request.messages.push(Message::user(AS_JSON));
        }
        let answered = call.ask_for(form, request, spent).await?;
        Ok(match (answered, said) {
            (Ok((reply, answer)), said) => Ok(ModelSaid {
                reply: said.unwrap_or(reply),
                ended: answer.is_none().then_some(EndReason::InvalidAnswer),
                answer,
            }),
            (Err(NoReply::Budget), Some(reply)) => Ok(ModelSaid {
                reply,
                answer: None,
                ended: Some(EndReason::Budget),
            }),
            (Err(no_reply), _) => Err(no_reply),
        })
    }
}

/// What the model of one turn said.
struct ModelSaid {
    reply: Reply,
    /// The structured answer, if this agent has one and the model is done.
    answer: Option<Json>,
    ended: Option<EndReason>,
}

impl ModelSaid {
    fn only(reply: Reply) -> Self {
        Self {
            reply,
            answer: None,
            ended: None,
        }
    }
}

/// Why there is no reply.
enum NoReply {
    /// A person chose to stop at a spending limit.
    Budget,
    /// A hook refused the reply, for this reason.
    Refused(String),
}

/// Calls a model, and lets the hooks see its replies.
struct ModelCall<'a> {
    model: &'a dyn Model,
    asker: &'a Asker<'a>,
    hooks: &'a [Arc<dyn Hooks>],
    hook_cx: &'a HookCx<'a>,
}

impl ModelCall<'_> {
    async fn ask(
        &self,
        request: &Request,
        spent: &mut Spent,
    ) -> Result<Result<Reply, NoReply>, NodeError> {
        let Some(reply) = self.asker.ask(self.model, request).await? else {
            return Ok(Err(NoReply::Budget));
        };
        *spent = spent.plus(Spent::on(&reply));
        self.after_model(reply).await
    }

    /// Asks for the structured answer. Returns the last reply, and the answer if the reply fits.
    async fn ask_for(
        &self,
        form: &AnswerForm,
        request: Request,
        spent: &mut Spent,
    ) -> Result<Result<(Reply, Option<Json>), NoReply>, NodeError> {
        let asked = form.ask(self.asker, self.model, request).await?;
        let Some(FinalReplies { replies, fits }) = asked else {
            return Ok(Err(NoReply::Budget));
        };
        for reply in &replies {
            *spent = spent.plus(Spent::on(reply));
        }
        let Some(reply) = replies.into_iter().next_back() else {
            return Err(NodeError::fatal("the model was not asked for its answer"));
        };
        Ok(self.after_model(reply).await?.map(|reply| {
            // Read after the hooks: they may have changed it.
            let answer = form.read(&reply).filter(|_| fits);
            (reply, answer)
        }))
    }

    async fn after_model(&self, mut reply: Reply) -> Result<Result<Reply, NoReply>, NodeError> {
        for hooks in self.hooks {
            if let Go::Refuse(why) = hooks.after_model(&mut reply, self.hook_cx).await? {
                return Ok(Err(NoReply::Refused(why)));
            }
        }
        Ok(Ok(reply))
    }
}

impl<S: Conversation> Node<S> for ModelNode {
    async fn run(&self, state: View<S>, cx: NodeCx) -> Result<Command<S>, NodeError> {
        let mut turn = self.turn(state.messages(), &cx).await?;
        // The live events of the answer carry the first id (`cx.message_id(0)`), wherever `said` puts the answer.
        let mut ids = MessageIds::of(cx.task());
        for kept in &mut turn.messages {
            kept.id = Some(ids.next_id());
        }
        let mut update = S::said(turn);
        // Core would number messages that `said` adds from 0, and an id that exists replaces its message.
        update.name_messages(&mut ids);
        Ok(Command::update(update))
    }
}

fn refused(why: String, labels: Labels, spent: Spent) -> Turn {
    Turn {
        messages: vec![ChatMessage::new(Message::assistant(why), labels)],
        spent,
        ended: Some(EndReason::Refused),
        ..Turn::default()
    }
}

/// Replaces ids that are unusable or already used: records, keys and results are derived from the id.
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

/// Asks for the answer again, as structured output.
const AS_JSON: &str = "Give that answer as JSON, in the form that was asked for, and nothing else.";

/// Long enough for every provider's ids, short enough for the name of a step.
const ID_BYTES_MAX: usize = 64;

impl std::fmt::Debug for ModelNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelNode")
            .field("label", &self.label)
            .field("models", &self.models)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
