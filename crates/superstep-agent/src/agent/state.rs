//! What an agent keeps, and what a state of your own needs to be one's.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use superstep_core::{Labels, State};
use superstep_llm::{Cost, Message, Reply, ToolCall, Usage};

use crate::chat::ChatMessage;

/// The state that comes with this crate.
#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
pub struct AgentState {
    /// The conversation, without the system's instructions.
    #[state(messages)]
    pub messages: Vec<ChatMessage>,
    /// What it took so far, all runs of the thread together.
    #[state(reduce = Spent::plus)]
    pub spent: Spent,
    /// Why the last run ended, if not because the model had said all.
    pub ended: Option<Ended>,
}

impl AgentState {
    /// The input of a run: words of a person.
    pub fn ask(text: impl Into<String>) -> AgentStateUpdate {
        AgentStateUpdate::default().messages(ChatMessage::user(text))
    }

    /// The words of the last message.
    pub fn answer(&self) -> String {
        self.messages
            .last()
            .map(ChatMessage::text)
            .unwrap_or_default()
    }
}

/// A state that an agent can work on.
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
    /// What was said so far.
    fn messages(&self) -> &[ChatMessage];

    /// The update that a turn is written by. Its messages must be written; the rest is yours to keep or not.
    fn said(turn: Turn) -> Self::Update;
}

/// What one node of an agent adds.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Turn {
    /// What was said.
    pub messages: Vec<ChatMessage>,
    /// What it took.
    pub spent: Spent,
    /// Why it ends here, if not because all is said.
    pub ended: Option<Ended>,
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
    }
}

/// Why an agent ended, if not because the model had said all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ended {
    /// The model was asked as often as is allowed.
    StepLimit,
    /// A person did not want to spend more.
    Budget,
    /// A hook refused.
    Refused,
}

/// What an agent took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// How often a model was asked.
    pub model_calls: u64,
    /// How many calls of tools there were.
    pub tool_calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// Money, in billionths of a dollar, as far as it is known.
    pub nano_dollars: u64,
    /// Calls of models whose price nobody knows. If there are any, it cost more than the sum says.
    pub unpriced_calls: u64,
}

impl Spent {
    /// Both together.
    #[must_use]
    pub fn plus(mut self, more: Self) -> Self {
        self.model_calls += more.model_calls;
        self.tool_calls += more.tool_calls;
        self.usage += more.usage;
        self.nano_dollars += more.nano_dollars;
        self.unpriced_calls += more.unpriced_calls;
        self
    }

    /// What one answer took.
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

/// The calls of the model's last message that have no result yet.
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

/// The labels of the model's last message; none if it said nothing yet.
pub fn labels_of_last_answer(messages: &[ChatMessage]) -> Option<&Labels> {
    let mut latest_first = messages.iter().rev();
    let answer = latest_first.find(|kept| matches!(kept.message, Message::Assistant(_)))?;
    Some(&answer.labels)
}

/// How often the model answered since a person last said something.
pub(super) fn answers_since_person(messages: &[ChatMessage]) -> usize {
    let since = messages
        .iter()
        .rev()
        .take_while(|kept| !matches!(kept.message, Message::User { .. }));
    since
        .filter(|kept| matches!(kept.message, Message::Assistant(_)))
        .count()
}
