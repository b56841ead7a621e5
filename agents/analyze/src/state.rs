//! State of an analysis. The field names come from the agent's specification.

use std::collections::BTreeMap;
use std::path::PathBuf;

use archie_agent::ThreadFolders;
use serde::{Deserialize, Serialize};
use superstep::State;
use superstep_agent::ChatMessage;
use superstep_llm::{Cost, Usage};

/// State of an analysis.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct AppState {
    /// The person's last input. The first one is `analyze: ` and the query.
    pub user_input: String,
    /// Content of each note, by its path in the folder.
    pub file_contents: BTreeMap<String, String>,
    /// Files and folders of the thread that hold notes, as a caller of a server names them. Empty once they are read.
    pub note_files: Vec<String>,
    /// Name of the model, chosen at the start; resuming with another model replaces it.
    pub model_name: String,
    /// The conversation, oldest turn first.
    #[state(append)]
    pub analysis_history: Vec<Turn>,
    /// The result as Markdown; empty until the person is done.
    pub analysis_output: String,
    /// The agent's current question to the person.
    pub current_analysis_query: String,
    /// Source of the notes, with their checksums and the skipped files.
    pub inputs: Inputs,
    /// The claims of the result, each checked against the notes.
    pub findings: Vec<Finding>,
    /// Usage of every model call, oldest first.
    #[state(append)]
    pub calls: Vec<Call>,
    /// Calls of tools and their results, oldest first. What tools return is labeled untrusted.
    #[state(messages)]
    pub tool_messages: Vec<ChatMessage>,
    /// For each message in which the model requests calls: the length of the history at that time.
    #[state(append)]
    pub tool_turns: Vec<u64>,
    /// Why the model could not return the result in the required form, if it could not.
    pub degraded: Option<String>,
    /// Sections of the result that are missing or incomplete, with the reason.
    pub gaps: BTreeMap<Section, Gap>,
    /// Sections whose claims are in `findings` already, if the person stopped at a budget while the result was written.
    pub drafted: Vec<Section>,
    /// What the memory file holds, as a note; empty if there is none.
    pub memory: String,
    /// What the model sees of the notes if they do not fit its context; null if they fit.
    pub notes_shown: Option<NotesShown>,
    /// Why the analysis stopped early, if it did: `budget`.
    pub stopped: Option<String>,
}

/// One turn of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Who spoke.
    pub role: Role,
    /// The text of the turn.
    pub content: String,
}

/// Speaker of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person who is interviewed.
    User,
    /// The agent, in the words of the model.
    Agent,
}

/// Source of the notes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// Path of the folder as the person gave it.
    pub folder: String,
    /// Whether subfolders were read, too.
    pub recursive: bool,
    /// Checksum of each note, by its path in the folder; see [`hash`](super::inputs::hash).
    pub hashes: BTreeMap<String, String>,
    /// Entries that were not read, with the reason.
    pub skipped: Vec<Skipped>,
    /// Absolute path of the folder, so that the result can be written from anywhere. Empty in threads of older versions.
    #[serde(default)]
    pub root: String,
    /// Images among the notes, by their path in the folder. Empty unless the person asked for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, NoteImage>,
}

/// An image among the notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteImage {
    /// MIME type, such as `image/png`.
    pub mime_type: String,
    /// The bytes of the file, in base64.
    pub base64: String,
}

/// An entry of the folder that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Path in the folder. The last item may count further entries instead: `12 more`.
    pub name: String,
    /// Short reason, as shown to the person.
    pub why: String,
}

/// What the model sees of notes that do not fit its context.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotesShown {
    /// The model's context, in tokens.
    pub context_size: u64,
    /// Notes of which only passages fit, or nothing. For each turn, passages that match the conversation are added.
    pub partly: Vec<PartlyShown>,
}

/// A note that does not fit as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartlyShown {
    /// Path of the note in the folder.
    pub name: String,
    /// Lines that the model sees in every turn.
    pub shown: usize,
    /// Lines of the note.
    pub lines: usize,
}

/// Why a section is missing or incomplete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// The model gave nothing that could be used.
    Missing {
        /// What was wrong, for the person.
        why: String,
    },
    /// The model's list was cut off; the complete claims were kept.
    Cut,
}

/// One claim of the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Section of the result that lists the claim.
    pub section: Section,
    /// The claim, in one sentence of the model.
    pub claim: String,
    /// Place in the notes that the model cites, if it cites one.
    pub source: Option<Source>,
    /// Result of checking the citation against the notes.
    pub support: Support,
    /// Whether the cited line supports the claim. Findings without a source, and those of older versions, have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What the person said that a decision seems to contradict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradicts: Option<String>,
}

/// Sections of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Assumptions that the solution relies on.
    Assumptions,
    /// Main components of the solution.
    Components,
    /// Alternatives, with their trade-offs.
    Alternatives,
    /// Decisions, with their reasons.
    Decisions,
    /// Questions that are still open.
    Questions,
}

/// A citation: a place in a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Path of the note in the folder, as the model names it.
    pub file: String,
    /// Line number, starting at 1. The check corrects it if the quote is in another line.
    pub line: u32,
    /// Page of that line, starting at 1, if the note is a PDF file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// Text that the model quotes from this line.
    pub quote: String,
}

/// How far the cited line supports a claim, by content words and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The line says it: the numbers agree, and enough words are shared.
    Supported,
    /// The line shares some words with the claim, but not its numbers or too little.
    Weak,
    /// The quote is not in the notes, or the line has nothing to do with the claim.
    Unsupported,
}

/// Whether the quote of a claim is in the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// The quote is in the cited line.
    Quoted,
    /// The quote is in the file but in another line; the line number was corrected.
    Moved,
    /// The quote is not in the file or too short to check, or there is no such file.
    Unsupported,
    /// The claim cites no source; it comes from the conversation.
    Said,
}

/// Usage of one model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Prompt of the call.
    pub prompt: PromptType,
    /// Name of the model that answered.
    pub model: String,
    /// Token counts, if the server reported them.
    pub usage: Option<Usage>,
    /// Cost of the call, if it is known.
    pub cost: Cost,
}

/// Prompt that a call is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptType {
    /// The first turn, which answers the query.
    Initial,
    /// Every later turn of the interview.
    Followup,
    /// The result, after the person is done.
    Final,
}

impl Inputs {
    /// Returns whether the result belongs to the files of the thread: the notes are there, or came without a folder.
    pub fn is_of_thread(&self) -> bool {
        ThreadFolders::has(&self.root) || (self.root.is_empty() && self.folder.is_empty())
    }

    /// Returns the folder, wherever the program runs.
    pub fn path(&self) -> PathBuf {
        match self.root.is_empty() {
            true => PathBuf::from(&self.folder),
            false => PathBuf::from(&self.root),
        }
    }
}

impl Finding {
    /// Returns a claim without a source: it comes from the conversation.
    pub fn said(section: Section, claim: &str) -> Self {
        Self {
            section,
            claim: claim.trim().to_owned(),
            source: None,
            support: Support::Said,
            evidence: None,
            contradicts: None,
        }
    }
}

impl PromptType {
    /// Returns the name used in scripts and prompt files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Followup => "followup",
            Self::Final => "final",
        }
    }
}

impl Section {
    /// All sections, in the order in which a result lists them.
    pub const ALL: [Self; 5] = [
        Self::Assumptions,
        Self::Components,
        Self::Alternatives,
        Self::Decisions,
        Self::Questions,
    ];

    /// Returns the heading of the section in the result.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Assumptions => "Assumptions",
            Self::Components => "Main components",
            Self::Alternatives => "Alternatives and trade-offs",
            Self::Decisions => "Decisions and why",
            Self::Questions => "Open questions",
        }
    }

    /// Returns the name of the section's list in the model's answer.
    pub fn field(self) -> &'static str {
        match self {
            Self::Assumptions => "assumptions",
            Self::Components => "components",
            Self::Alternatives => "alternatives",
            Self::Decisions => "decisions",
            Self::Questions => "open_questions",
        }
    }

    /// Returns what belongs into the section, in words for the model.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Assumptions => "what the solution relies on without anyone having checked it",
            Self::Components => "the main parts of the solution",
            Self::Alternatives => "other options, each with what speaks for and against it",
            Self::Decisions => "what was decided, each with its reason",
            Self::Questions => "what nobody could answer yet",
        }
    }
}
