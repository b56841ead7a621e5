//! What an analysis of a workbook knows, under the names that its brief gave.
//!
//! The brief keeps a sandbox, a planner, an informer and tools in the state. What is kept here are their names and settings, so
//! that a thread survives the process; the nodes hold the things themselves.

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

/// The state of an analysis.
#[derive(Clone, Debug, Default, State)]
pub struct GraphState {
    /// What is to be done.
    pub problem: SheetProblem,
    /// Where code runs.
    pub sandbox: SandboxSpec,
    /// Who plans.
    pub planner: PlannerSpec,
    /// Who looks things up, if anybody does.
    pub informer: Option<InformerSpec>,
    /// What the planner may use: name, and what it is for.
    pub tools: BTreeMap<String, String>,
    /// How often the planner is asked.
    pub max_steps: u32,
    /// What is played again in the planner's place.
    pub recipe: Option<Recipe>,
    /// What was said.
    #[state(messages)]
    pub messages: Vec<ChatMessage>,
    /// How often the planner was asked.
    pub step: u32,
    /// What the informer found.
    pub key_information: Option<KeyInformation>,
    /// How often the informer has tried since it was asked.
    pub informer_tries: u32,
    /// The workbook as it stands.
    pub workbook: WorkbookState,
    /// What tools were run.
    #[state(append)]
    pub journal: Vec<JournalEntry>,
    /// What the calls of models took, one for each.
    #[state(append)]
    pub calls: Vec<Call>,
    /// What the planner says it found.
    pub answer: String,
    /// How it ended.
    pub stopped: Option<Stopped>,
    /// What was checked of the result.
    pub checks: Vec<Check>,
    /// How often the checks have sent the planner back.
    pub reopened: u32,
    /// What the person said to the changes.
    pub verdict: Option<Verdict>,
    /// Set if a model could not give an answer its form.
    pub degraded: Option<String>,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SheetProblem {
    /// What it is known by.
    pub id: String,
    /// In the person's words.
    pub instruction: String,
    /// The workbook.
    pub workbook: WorkbookHandle,
    /// What else there is to know.
    pub context: String,
    /// Where the results go.
    pub output_dir: String,
}

/// A workbook on the person's disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkbookHandle {
    /// Where it was.
    pub path: String,
    /// What it was known by; it is kept under this id, and the file itself is never written.
    pub hash: String,
}

/// Where code runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// Which sandbox.
    pub kind: Kind,
    /// What code may take.
    pub limits: Limits,
}

/// Who plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannerSpec {
    /// The model.
    pub model: String,
    /// How it says what to do.
    pub actions: Actions,
}

/// How a planner says what to do. What comes is read either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Actions {
    /// As calls of tools.
    #[default]
    Calls,
    /// As text: `Think:`, `Action:`, `Action Input:`, `Finish:`.
    Text,
}

/// Who looks things up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InformerSpec {
    /// The model.
    pub model: String,
    /// How what it finds is shown.
    pub form: Form,
}

/// What the informer found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInformation {
    /// The `SELECT`; empty if it passed.
    pub sql: String,
    /// What came of it.
    pub text: String,
    /// Of which workbook.
    pub snapshot: String,
}

/// The workbook as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkbookState {
    /// What it is known by.
    pub snapshot: String,
    /// The input as the interpreter saves it when nothing was done to it: what changes are told against.
    pub baseline: String,
    /// A line for each sheet.
    pub sheets: Vec<String>,
}

/// A tool that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// In which step.
    pub step: u32,
    /// Which.
    pub tool: String,
    /// With what: the code, or the query.
    pub input: String,
    /// What came of it.
    pub observation: String,
    /// Whether it went well.
    pub ok: bool,
    /// The workbook after it.
    pub snapshot: String,
    /// Where it is kept which line wrote which cell.
    pub lines: Option<String>,
    /// Pictures that it made: name, and where they are kept.
    pub pictures: BTreeMap<String, String>,
}

/// How an analysis ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// The planner said that it is done.
    Finished,
    /// The planner was asked as often as is allowed.
    StepLimit,
    /// The person did not want to spend more.
    Budget,
    /// A step of the recipe failed.
    RecipeFailed,
    /// The workbook is not what the recipe was made for, and the person did not want it played.
    OtherShape,
}

/// What a call of a model took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Which node asked.
    pub node: String,
    /// The model that answered.
    pub model: String,
    /// Its tokens, if the server told.
    pub usage: Option<Usage>,
    /// Its cost, if it is known.
    pub cost: Cost,
}

impl Stopped {
    /// In words.
    pub fn says(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::StepLimit => "stopped: step limit",
            Self::Budget => "stopped: budget",
            Self::RecipeFailed => "stopped: a step of the recipe failed",
            Self::OtherShape => "stopped: the workbook is not what the recipe was made for",
        }
    }
}
