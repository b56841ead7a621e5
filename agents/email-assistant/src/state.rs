//! State of the `email_assistant` graphs. The field names are part of its public input and output.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep::State;
use superstep::error::InvalidUpdate;
use superstep_agent::{ChatMessage, Spent};

/// State of one thread, which handles one email: the email, its classification and the conversation about it.
#[derive(Clone, Debug, Default, State)]
#[state(check = check)]
pub struct MailState {
    /// Conversation of the response agent with the model, without the system prompt.
    #[state(messages)]
    pub messages: Vec<ChatMessage>,
    /// The email as the caller passed it, in Gmail's shape or in a studio's (see [`crate::parse_gmail`]).
    pub email_input: Json,
    /// Result of triage; `None` before the triage router has run.
    pub classification_decision: Option<Classification>,
    /// Mailbox that the email came from and that sends the reply: a path, `gmail:ACCOUNT` or `imap://USER@HOST`. Empty for the
    /// local outbox.
    pub source: String,
    /// Model chosen when the thread started; empty to use the program's default.
    pub model_name: String,
    /// Reason for the classification: the model's, in its own words, or that of the rule that decided.
    pub reasoning: String,
    /// Sentence of the email that the model quoted for its classification; empty if a rule decided.
    pub quote: String,
    /// Signs of fraud, if there are too many for a reply; otherwise empty.
    pub suspicion: Vec<String>,
    /// Why the model's output was not usable as asked, so that triage chose `notify` or the response agent asked the model
    /// again. `None` if it was usable.
    pub degraded: Option<String>,
    /// How the work on the email ended; `None` while it is in progress.
    pub ended: Option<Ended>,
    /// Set in a fork that only writes another draft: it asks about no tool call, runs none and ends with its draft.
    pub redraft: Option<Redraft>,
    /// Whether the assistant marked the email as read in its mailbox.
    pub marked_as_read: bool,
    /// Emails sent and meetings scheduled, in order.
    #[state(append)]
    pub done: Vec<DoneAction>,
    /// Memory changes proposed from the person's answers, in order.
    #[state(append)]
    pub learned: Vec<Learned>,
    /// Model calls, tokens and cost so far.
    #[state(reduce = Spent::plus)]
    pub spent: Spent,
}

/// What triage takes a mail for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Classification {
    /// Not worth anybody's time.
    Ignore,
    /// Wants an answer.
    Respond,
    /// Worth knowing, and no answer.
    Notify,
}

impl Classification {
    /// Returns the serialized form.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Respond => "respond",
            Self::Notify => "notify",
        }
    }
}

/// How the work on an email ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// The assistant finished.
    Done,
    /// Triage classified the email as `ignore`, or a person chose to leave it.
    Ignored,
    /// A person declined to spend more.
    Stopped,
    /// The fork wrote its draft (see [`MailState::redraft`]).
    Drafted,
}

/// Progress of a fork that only writes another draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redraft {
    /// The interrupt handler has yet to pass this tone to the model.
    RequestedCall(String),
    /// The interrupt handler passed the tone to the model; the next draft ends the fork.
    Told,
}

/// An outside effect that a tool call had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneAction {
    /// Name of the tool.
    pub tool: String,
    /// Id that the receiver uses: a `Message-ID` without angle brackets, or the id of an event.
    pub receipt: String,
}

/// A change of one memory list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// Name of the list: `triage_preferences`, `response_preferences` or `cal_preferences`.
    pub memory: String,
    /// Added and removed lines, each starting with `+ ` or `- `.
    pub diff: Vec<String>,
    /// Id of the proposal that the person must accept before the change takes effect. Empty if it took effect at once, as
    /// earlier versions did it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proposal: String,
}

/// Refuses another email once triage has decided about one. The recipients of a reply are computed from the email, so a caller who
/// could exchange it between the question and the answer would choose who gets what a person approved for another recipient.
fn check(state: &MailState, update: &MailStateUpdate) -> Result<(), InvalidUpdate> {
    let is_other = update
        .written_email_input()
        .is_some_and(|email| *email != state.email_input);
    match is_other && state.classification_decision.is_some() {
        true => Err(InvalidUpdate::rule(
            "`email_input` does not change after triage: another email needs a thread of its own",
        )),
        false => Ok(()),
    }
}

/// Input of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StateInput {
    /// The email, in a shape that [`crate::parse_gmail`] reads.
    pub email_input: Json,
}

impl From<StateInput> for MailStateUpdate {
    fn from(input: StateInput) -> Self {
        Self::default().email_input(input.email_input)
    }
}
