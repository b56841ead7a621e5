//! State of a workbook analysis. The field names come from the agent's specification.
//!
//! The specification puts a sandbox, a planner, an informer and tools into the state. This state holds only their names and
//! settings, so that a thread survives the process; the nodes hold the objects themselves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use superstep::State;
use superstep_agent::ChatMessage;
use superstep_llm::{Cost, Usage};

use super::book::mirror::Form;
use super::changes::Verdict;
use super::checks::Check;
use super::recipe::Recipe;
use super::sandbox::{Kind, Limits};

/// State of an analysis.
#[derive(Clone, Debug, Default, State)]
pub struct GraphState {
    /// What a caller of a server asks for. `None` once the workbook is open, and in other threads.
    pub task: Option<SheetTask>,
    /// The task: instruction, workbook and output folder.
    pub problem: SheetProblem,
    /// Sandbox settings for the planner's code.
    pub sandbox: SandboxSpec,
    /// Planner settings.
    pub planner: PlannerSpec,
    /// Informer settings; `None` if the run has no informer.
    pub informer: Option<InformerSpec>,
    /// Tools that the planner may call: description by name.
    pub tools: BTreeMap<String, String>,
    /// Maximum number of planner steps.
    pub max_steps: u32,
    /// Recipe to replay instead of asking the planner's model.
    pub recipe: Option<Recipe>,
    /// Conversation of the planner, with the observations of tools.
    #[state(messages)]
    pub messages: Vec<ChatMessage>,
    /// Number of planner steps so far.
    pub step: u32,
    /// Result of the last lookup; an error message while the informer is retrying.
    pub key_information: Option<KeyInformation>,
    /// Failed lookups since the planner last asked.
    pub informer_tries: u32,
    /// The workbook as of the last step.
    pub workbook: WorkbookState,
    /// Tool calls that were run, oldest first.
    #[state(append)]
    pub journal: Vec<JournalEntry>,
    /// Usage of every model call, oldest first.
    #[state(append)]
    pub calls: Vec<Call>,
    /// The planner's final answer; empty if it gave none.
    pub answer: String,
    /// Why the analysis ended; `None` while it is running.
    pub stopped: Option<Stopped>,
    /// Results of the checks of the change set.
    pub checks: Vec<Check>,
    /// How often failed checks have sent the planner back to work.
    pub reopened: u32,
    /// The person's verdict on the change set; `None` until they answer.
    pub verdict: Option<Verdict>,
    /// Why a model could not return an answer in the required form, if that happened.
    pub degraded: Option<String>,
}

/// What a caller of a server asks for. Everything else is a setting of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SheetTask {
    /// The workbook, a file of the thread.
    pub workbook: String,
    /// What to do.
    pub instruction: String,
    /// Additional background for the planner.
    pub context: String,
    /// Whether an informer looks things up in the sheets.
    pub with_informer: bool,
    /// Maximum number of planner steps. Default: 10.
    pub max_steps: Option<u32>,
}

/// The task of an analysis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SheetProblem {
    /// Id of the thread that works on it.
    pub id: String,
    /// What to do, in the person's words.
    pub instruction: String,
    /// The input workbook.
    pub workbook: WorkbookHandle,
    /// Additional background for the planner; may be empty.
    pub context: String,
    /// Folder for the result files.
    pub output_dir: String,
}

/// The input workbook. The agent works on a stored copy and never writes to the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkbookHandle {
    /// Path of the file when it was read.
    pub path: String,
    /// Snapshot id of the stored copy.
    pub hash: String,
}

/// Sandbox settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// Kind of sandbox.
    pub kind: Kind,
    /// Resource limits of one run of code.
    pub limits: Limits,
}

/// Planner settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannerSpec {
    /// Name of the model.
    pub model: String,
    /// How the planner states its next action.
    pub actions: Actions,
}

/// How a planner is told to state its next action. Replies are accepted in either form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Actions {
    /// As tool calls.
    #[default]
    Calls,
    /// As text: `Think:`, `Action:`, `Action Input:`, `Finish:`.
    Text,
}

/// Informer settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InformerSpec {
    /// Name of the model.
    pub model: String,
    /// Format in which the rows of a lookup are shown to the planner.
    pub form: Form,
}

/// Result of a lookup by the informer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInformation {
    /// The `SELECT`; empty if the informer saw nothing to look up.
    pub sql: String,
    /// The rows as text, or the error message.
    pub text: String,
    /// Snapshot id of the workbook that the informer queried.
    pub snapshot: String,
}

/// The current workbook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkbookState {
    /// Snapshot id of the current content.
    pub snapshot: String,
    /// Snapshot id of the input after the interpreter opened and saved it without changes; changes are computed against it.
    /// Empty until code first runs.
    pub baseline: String,
    /// One summary line per sheet.
    pub sheets: Vec<String>,
    /// A `SELECT` over the workbook that shows how to quote its names. Empty if no sheet has columns, and in threads of older
    /// versions.
    #[serde(default)]
    pub select_example: String,
}

impl WorkbookState {
    /// Returns whether code has changed the workbook. Opening and saving it without a change is not one.
    pub fn is_changed(&self) -> bool {
        !self.baseline.is_empty() && self.snapshot != self.baseline
    }
}

/// A tool call that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Planner step that made the call, starting at 1.
    pub step: u32,
    /// Name of the tool as the planner wrote it.
    pub tool: String,
    /// Argument of the call, such as code or a query.
    pub input: String,
    /// Text that the planner received as the result.
    pub observation: String,
    /// Whether the tool succeeded.
    pub ok: bool,
    /// Snapshot id of the workbook after the call.
    pub snapshot: String,
    /// Name of the stored file that maps cells to the lines of code that wrote them, if there is one.
    pub lines: Option<String>,
    /// Pictures that the code made: name of the stored file by name of the picture.
    pub pictures: BTreeMap<String, String>,
}

/// Why an analysis ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// The planner finished, or the recipe has no more steps.
    Finished,
    /// The planner reached the maximum number of steps.
    StepLimit,
    /// The person declined to spend more.
    Budget,
    /// The planner made the same call again and again.
    Repeated,
    /// A step of the recipe failed.
    RecipeFailed,
    /// The workbook has a different layout than the recipe expects, and the person declined to run it.
    OtherShape,
}

/// Usage of one model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Name of the node that called the model.
    pub node: String,
    /// Name of the model that answered.
    pub model: String,
    /// Token counts, if the server reported them.
    pub usage: Option<Usage>,
    /// Cost of the call, if it is known.
    pub cost: Cost,
}

impl Stopped {
    /// Returns the reason as text for the person.
    pub fn says(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::StepLimit => "stopped: step limit",
            Self::Budget => "stopped: budget",
            Self::Repeated => "stopped: the model made the same call three times",
            Self::RecipeFailed => "stopped: a step of the recipe failed",
            Self::OtherShape => "stopped: the workbook is not what the recipe was made for",
        }
    }
}
