//! What an analysis knows, under the names that its brief gave.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use superstep::State;
use superstep_llm::{Cost, Usage};

/// The state of an analysis.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct AppState {
    /// What the person said last; the first time `analyze: ` and the query.
    pub user_input: String,
    /// The inputs: name and content.
    pub file_contents: BTreeMap<String, String>,
    /// The model that was chosen at the start.
    pub model_name: String,
    /// Who said what, in turn.
    #[state(append)]
    pub analysis_history: Vec<Turn>,
    /// The result; empty until the person is done.
    pub analysis_output: String,
    /// What the agent asks.
    pub current_analysis_query: String,
    /// Where the inputs came from, and what they were.
    pub inputs: Inputs,
    /// What the result claims, and whether the inputs say so.
    pub findings: Vec<Finding>,
    /// What the calls took, one for each.
    #[state(append)]
    pub calls: Vec<Call>,
    /// Set if the model could not give the result its form.
    pub degraded: Option<String>,
    /// Why it stopped before its end, if it did: `budget`.
    pub stopped: Option<String>,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// By whom.
    pub role: Role,
    /// What.
    pub content: String,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The agent.
    Agent,
}

/// Where the inputs came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// The folder.
    pub folder: String,
    /// Whether its subfolders were read, too.
    pub recursive: bool,
    /// A checksum of each file.
    pub hashes: BTreeMap<String, String>,
    /// What was not read, and why.
    pub skipped: Vec<Skipped>,
}

/// A file that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Which.
    pub name: String,
    /// Why, in a few words.
    pub why: String,
}

/// One claim of the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Under which heading.
    pub section: Section,
    /// What is claimed.
    pub claim: String,
    /// Where it is said, by the model's word.
    pub source: Option<Source>,
    /// What the code found there.
    pub support: Support,
}

/// The headings of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// What is taken for granted.
    Assumptions,
    /// What it is made of.
    Components,
    /// What else could be done, and at what price.
    Alternatives,
    /// What was decided, and why.
    Decisions,
    /// What is still open.
    Questions,
}

/// A place in an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What is said there.
    pub quote: String,
}

/// Whether an input says what a claim says it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// The quote stands in that line.
    Quoted,
    /// The quote stands in the file, in another line; the line was mended.
    Moved,
    /// It does not stand there, or there is no such file.
    Unsupported,
    /// It names no place: it came out of the conversation.
    Said,
}

/// What a call of the model took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Which prompt.
    pub prompt: PromptType,
    /// The model that answered.
    pub model: String,
    /// Its tokens, if the server told.
    pub usage: Option<Usage>,
    /// Its cost, if it is known.
    pub cost: Cost,
}

/// Which prompt a call is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptType {
    /// The first turn.
    Initial,
    /// Every further one.
    Followup,
    /// The result.
    Final,
}

impl PromptType {
    /// As scripts and prompt files call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Followup => "followup",
            Self::Final => "final",
        }
    }
}

impl Section {
    /// All, in the order of a result.
    pub const ALL: [Self; 5] = [
        Self::Assumptions,
        Self::Components,
        Self::Alternatives,
        Self::Decisions,
        Self::Questions,
    ];

    /// Its heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Assumptions => "Assumptions",
            Self::Components => "Main components",
            Self::Alternatives => "Alternatives and trade-offs",
            Self::Decisions => "Decisions and why",
            Self::Questions => "Open questions",
        }
    }
}
