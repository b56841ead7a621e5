//! The state of an agent, and the trait that your own state implements instead.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep_core::label::Labeled;
use superstep_core::{Labels, State};
#[cfg(test)]
use superstep_llm::Answer;
use superstep_llm::{Cost, Message, Reply, ToolCall, Usage};

use crate::chat::ChatMessage;

/// Ready-made state of an agent.
#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
pub struct AgentState {
    /// The conversation, without the system prompt.
    #[state(messages)]
    pub messages: Vec<ChatMessage>,
    /// Spending of all runs of the thread together.
    #[state(reduce = Spent::plus)]
    pub spent: Spent,
    /// Why the last turn ended the loop early; `None` if the model finished its answer.
    #[state(reduce = last)]
    pub ended: Option<EndReason>,
    /// The final answer as structured output, for an agent that
    /// [answers with a type](crate::AgentBuilder::answers_with). `None` until the agent is done, and if the answer did not fit.
    #[state(reduce = last)]
    pub structured_answer: Option<StructuredAnswer>,
}

/// The final answer of an agent as structured output, with the labels of the conversation that it was made from.
pub type StructuredAnswer = Labeled<Json>;

/// Several nodes may write in one superstep: tools, and agents that a supervisor asked. None of them ends the loop.
fn last<T>(_: Option<T>, written: Option<T>) -> Option<T> {
    written
}

impl AgentState {
    /// Creates the input of a run: a message of a person.
    pub fn ask(text: impl Into<String>) -> AgentStateUpdate {
        AgentStateUpdate::default().messages(ChatMessage::user(text))
    }

    /// Returns the text of the last message, or an empty string.
    pub fn answer(&self) -> String {
        self.messages
            .last()
            .map(ChatMessage::text)
            .unwrap_or_default()
    }

    /// Decodes the structured answer of an agent that [answers with this type](crate::AgentBuilder::answers_with). `None` if there
    /// is none; fails if it is of another type.
    #[doc(alias = "structured_response")]
    pub fn answer_as<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        let answer = self.structured_answer.as_ref();
        let answer = answer.map(|answer| T::deserialize(answer.parts().0));
        answer.transpose()
    }
}

/// State that an agent can work on.
///
/// ```
/// use superstep_agent::{ChatMessage, Conversation, Turn};
/// use superstep_core::State;
///
/// #[derive(Clone, Debug, Default, State)]
/// #[state(crate = superstep_core)]
/// struct Support {
///     customer: String,
///     #[state(messages)]
///     messages: Vec<ChatMessage>,
/// }
///
/// impl Conversation for Support {
///     fn messages(&self) -> &[ChatMessage] {
///         &self.messages
///     }
///     fn said(turn: Turn) -> SupportUpdate {
///         SupportUpdate::default().messages_all(turn.messages)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a conversation that an agent can work on",
    label = "needs `impl Conversation`",
    note = "keep a `#[state(messages)] messages: Vec<ChatMessage>` in it, and write the two methods"
)]
pub trait Conversation: State {
    /// Returns the conversation so far, oldest first.
    fn messages(&self) -> &[ChatMessage];

    /// Converts a turn into an update. Must write the turn's messages; the other fields are optional. The agents of a
    /// [`Supervisor`](crate::Supervisor) write in one superstep, so what is written needs a reducer.
    fn said(turn: Turn) -> Self::Update;
}

/// What one node of an agent adds to the conversation.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Turn {
    /// Messages to append, in order.
    pub messages: Vec<ChatMessage>,
    /// What the turn cost.
    pub spent: Spent,
    /// Why the agent ends here; `None` if it continues or the model finished its answer.
    pub ended: Option<EndReason>,
    /// The final answer as structured output; see [`AgentBuilder::answers_with`](crate::AgentBuilder::answers_with).
    pub structured_answer: Option<StructuredAnswer>,
}

impl Conversation for AgentState {
    fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    fn said(turn: Turn) -> AgentStateUpdate {
        AgentStateUpdate::default()
            .messages_all(turn.messages)
            .spent(turn.spent)
            .ended(turn.ended)
            .structured_answer(turn.structured_answer)
    }
}

/// Why an agent ended before the model finished its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The limit of model calls was reached; see [`AgentBuilder::step_limit`](crate::AgentBuilder::step_limit).
    StepLimit,
    /// A person chose to stop at a spending limit.
    Budget,
    /// A hook refused the request or the reply.
    Refused,
    /// The model's answer does not fit the type of [`AgentBuilder::answers_with`](crate::AgentBuilder::answers_with), twice.
    InvalidAnswer,
}

/// Counters of what an agent used. Stored in the state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Number of model calls.
    pub model_calls: u64,
    /// Number of tool calls with a result, including those that were refused.
    pub tool_calls: u64,
    /// Tokens used. Calls without reported usage count as zero.
    pub usage: Usage,
    /// Known cost, in billionths of a dollar.
    pub nano_dollars: u64,
    /// Number of model calls with unknown cost. If it is not zero, the actual cost is higher than `nano_dollars`.
    pub unpriced_calls: u64,
}

impl Spent {
    /// Returns the sum; the reducer of the `spent` channel.
    #[must_use]
    pub fn plus(mut self, more: Self) -> Self {
        self.model_calls += more.model_calls;
        self.tool_calls += more.tool_calls;
        self.usage += more.usage;
        self.nano_dollars += more.nano_dollars;
        self.unpriced_calls += more.unpriced_calls;
        self
    }

    /// Returns what one reply cost.
    pub fn on(reply: &Reply) -> Self {
        let (nano_dollars, unpriced_calls) = match reply.cost {
            Cost::NanoDollars(nano) => (nano, 0),
            Cost::Unknown => (0, 1),
        };
        Self {
            model_calls: 1,
            tool_calls: 0,
            usage: reply.usage.unwrap_or_default(),
            nano_dollars,
            unpriced_calls,
        }
    }
}

/// Returns the calls of the model's last message that have no result yet. Empty if a person has spoken since.
pub fn unanswered_calls(messages: &[ChatMessage]) -> Vec<&ToolCall> {
    let mut answered = BTreeSet::new();
    for kept in messages.iter().rev() {
        match &kept.message {
            Message::Tool(result) => {
                answered.insert(result.tool_call_id.as_str());
            }
            Message::Assistant(answer) => {
                let calls = answer.tool_calls.iter();
                return calls
                    .filter(|call| !answered.contains(call.id.as_str()))
                    .collect();
            }
            Message::User { .. } | Message::System { .. } => return Vec::new(),
        }
    }
    Vec::new()
}

/// Returns the conversation as a model takes it: a call without a result, because a person went on while it waited for approval,
/// gets one that says so. Providers refuse a conversation with a call and no result.
pub fn with_all_results(messages: &[ChatMessage]) -> Vec<Message> {
    let mut complete = Vec::with_capacity(messages.len());
    let mut open: Vec<&ToolCall> = Vec::new();
    for kept in messages {
        match &kept.message {
            Message::Tool(result) => open.retain(|call| call.id != result.tool_call_id),
            // A result belongs between the message with its call and the next message.
            _ => complete.extend(open.drain(..).map(without_result)),
        }
        open.extend(kept.message.tool_calls());
        complete.push(kept.message.clone());
    }
    complete.extend(open.drain(..).map(without_result));
    complete
}

/// Whether the call was made is not known here: a call that needed no approval may have been, and its result was dropped with
/// the tool node that waited for the others.
fn without_result(call: &ToolCall) -> Message {
    let why =
        "no result: the person went on before this call ended; it may or may not have been made";
    Message::tool_error(call, why)
}

/// Returns the labels of all messages together.
pub(crate) fn labels_of(messages: &[ChatMessage]) -> Labels {
    let all = messages.iter().map(|kept| &kept.labels);
    all.fold(Labels::NONE, |sum, labels| sum.join(labels))
}

/// Returns the labels of the model's last message; `None` if the model has not answered yet.
pub fn labels_of_last_answer(messages: &[ChatMessage]) -> Option<&Labels> {
    let mut latest_first = messages.iter().rev();
    let answer = latest_first.find(|kept| matches!(kept.message, Message::Assistant(_)))?;
    Some(&answer.labels)
}

/// Counts the model's answers since the last message of a person.
pub(super) fn answers_since_person(messages: &[ChatMessage]) -> usize {
    let since = messages
        .iter()
        .rev()
        .take_while(|kept| !matches!(kept.message, Message::User { .. }));
    since
        .filter(|kept| matches!(kept.message, Message::Assistant(_)))
        .count()
}

#[test]
fn a_call_without_a_result_gets_one_in_its_place() {
    let call = |id: &str| ToolCall {
        id: id.to_owned(),
        name: "pay".to_owned(),
        args: serde_json::json!({}),
    };
    let calls = Answer {
        tool_calls: vec![call("1"), call("2")],
        ..Answer::default()
    };
    let said = |message| ChatMessage::new(message, Labels::NONE);
    let history = [
        said(Message::user("pay both")),
        said(Message::Assistant(calls)),
        said(Message::tool(&call("2"), "paid")),
        said(Message::user("forget it")),
    ];
    let complete = with_all_results(&history);
    let roles = complete.iter().map(|message| match message {
        Message::Tool(result) => result.tool_call_id.as_str(),
        Message::Assistant(_) => "assistant",
        _ => "user",
    });
    assert_eq!(
        roles.collect::<Vec<_>>(),
        ["user", "assistant", "2", "1", "user"]
    );
    assert_eq!(with_all_results(&history[..1]).len(), 1);
}
