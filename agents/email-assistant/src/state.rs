//! What the assistant knows of one mail, under the names that its brief gave.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep::State;
use superstep_agent::{ChatMessage, Spent};

/// The state of one mail: the conversation about it, the mail, and what it was taken for.
#[derive(Clone, Debug, Default, State)]
pub struct MailState {
    /// The conversation of the response agent.
    #[state(messages)]
    pub messages: Vec<ChatMessage>,
    /// The mail as it came: in Gmail's form or in that of a studio.
    pub email_input: Json,
    /// What triage took it for.
    pub classification_decision: Option<Classification>,
    /// Where it came from, and so where answers go out: a path, `gmail:ACCOUNT`, `imap://USER@HOST`; empty for a local outbox.
    pub source: String,
    /// The model that was chosen at the start; empty for the program's own.
    pub model_name: String,
    /// Why it was taken for that, in the model's words.
    pub reasoning: String,
    /// Set if the model could not give triage its form, and the mail is shown to be on the safe side.
    pub degraded: Option<String>,
    /// How it ended: none while it goes on.
    pub ended: Option<Ended>,
    /// Set in a copy that is there for another wording only: it asks nobody, does nothing, and ends with its draft.
    pub redraft: Option<Redraft>,
    /// Whether it was marked as read in its mailbox.
    pub marked_as_read: bool,
    /// What was sent and scheduled.
    #[state(append)]
    pub done: Vec<DoneAction>,
    /// What was learned from the person.
    #[state(append)]
    pub learned: Vec<Learned>,
    /// What the model took.
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
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Respond => "respond",
            Self::Notify => "notify",
        }
    }
}

/// How the work on a mail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// Nothing is left to do.
    Done,
    /// A person said to leave it.
    Ignored,
    /// A person did not want to spend more.
    Stopped,
    /// It was there for another wording only.
    Drafted,
}

/// How far a copy is that is there for another wording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redraft {
    /// The model is to be told this tone.
    Wanted(String),
    /// It was.
    Told,
}

/// Something that was done in the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneAction {
    /// By which tool.
    pub tool: String,
    /// What the receiver knows it by: a Message-ID, or the id of an event.
    pub receipt: String,
}

/// A line of memory that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// Which memory: `triage_preferences`, `response_preferences` or `cal_preferences`.
    pub memory: String,
    /// What came and went, a line each, beginning with `+ ` or `- `.
    pub diff: Vec<String>,
}

/// What a run begins with.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StateInput {
    /// The mail.
    pub email_input: Json,
}

impl From<StateInput> for MailStateUpdate {
    fn from(input: StateInput) -> Self {
        Self::default().email_input(input.email_input)
    }
}
