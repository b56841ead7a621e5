//! What the documentation agents know, under the names that their brief gave.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use superstep::State;
use superstep_llm::{Cost, Usage};

use super::scan::ScanOptions;
use super::workflow::StopReason;

/// The state of a whole documentation.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct DocsState {
    /// The folder that is described.
    pub root: String,
    /// Where the pages go.
    pub output: String,
    /// The model that was chosen at the start.
    pub model_name: String,
    /// What of the folder is looked at.
    pub options: ScanOptions,
    /// How far each agent goes.
    pub config: AgentWorkflowConfig,
    /// Thresholds that earlier runs taught, by agent.
    pub thresholds: BTreeMap<String, u32>,
    /// How often each agent had been at it before, so that a crash does not make it more.
    pub times: BTreeMap<String, u64>,
    /// The agents that have something to do.
    pub wanted: Vec<String>,
    /// What the scan found.
    pub scan: ScanSummary,
    /// One for each agent that is wanted.
    pub tasks: Vec<AgentTask>,
    /// What came out, one for each agent.
    pub results: Vec<AgentResult>,
    /// That everything is there, and what it took.
    pub report: Option<Report>,
}

/// The state of `ExecuteAgents`.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct ExecutionState {
    /// One for each agent.
    pub tasks: Vec<AgentTask>,
    /// What each agent came to; the newest of an agent counts.
    #[state(append)]
    pub finished: Vec<Finished>,
    /// Whether questions went to other agents already.
    pub shared: bool,
}

/// The state of one agent's work.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct AgentWorkflowState {
    /// Which agent.
    pub agent: String,
    /// The model that was chosen at the start.
    pub model_name: String,
    /// How far it goes.
    pub config: AgentWorkflowConfig,
    /// What it works on.
    pub context: AgentContext,
    /// The checksum of the facts and prompts that it begins with.
    pub inputs: String,
    /// How often the text was refined.
    pub iteration: u32,
    /// The text as it is.
    pub current_analysis: String,
    /// What is still unknown.
    pub missing_information: Vec<String>,
    /// How good the text is, from 0 to 100: the average of four scores.
    pub clarity_score: u32,
    /// What the agent asks itself in this round. A person may add to it and take away.
    pub self_questions: Vec<String>,
    /// The text that was kept.
    pub final_analysis: String,
    /// What each round improved.
    #[state(append)]
    pub refinement_notes: Vec<String>,
    /// Every scoring, in order.
    #[state(append)]
    pub scores: Vec<Scored>,
    /// The questions of every round.
    #[state(append)]
    pub rounds: Vec<Round>,
    /// What was answered side by side.
    #[state(append)]
    pub answers: Vec<ParallelAnswer>,
    /// Files that were read for the model beyond the facts, and their checksums.
    #[state(append)]
    pub reads: Vec<FileRead>,
    /// What the calls took, one for each.
    #[state(append)]
    pub calls: Vec<Call>,
    /// What a reader should know: cuts, limits, what could not be scored.
    #[state(append)]
    pub warnings: Vec<String>,
    /// The best version so far.
    pub best: Option<Version>,
    /// Set if the model could not be brought to give scores: why.
    pub unscored: Option<String>,
    /// Set if a person said that this is enough.
    pub skipped: bool,
    /// Set if a person said so at a limit of what may be spent.
    pub budget: bool,
    /// What came out.
    pub result: Option<AgentResult>,
}

/// How far an agent goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentWorkflowConfig {
    /// Refinements at most.
    pub max_iterations: u32,
    /// The score that is good enough, from 0 to 100.
    pub clarity_threshold: u32,
    /// A refinement that gains less is the last.
    pub min_improvement: u32,
    /// Whether the agent asks itself questions and refines at all.
    pub enable_self_questioning: bool,
    /// Whether the questions of a round are answered side by side, each by a call of its own.
    pub parallel_answers: bool,
    /// Whether the model may fetch more files.
    pub tools: bool,
    /// Whether a person is asked before each refinement.
    pub gate: bool,
    /// Whether what one agent leaves open goes to the others.
    pub share_questions: bool,
}

impl Default for AgentWorkflowConfig {
    fn default() -> Self {
        Self {
            max_iterations: 3,
            clarity_threshold: 80,
            min_improvement: 5,
            enable_self_questioning: true,
            parallel_answers: false,
            tools: false,
            gate: false,
            share_questions: false,
        }
    }
}

/// What an agent works on. The files themselves are read when they are needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentContext {
    /// The project's name.
    pub project: String,
    /// Its folder.
    pub root: String,
    /// What of it is looked at.
    pub options: ScanOptions,
    /// The checksum of all that was scanned.
    pub scan: String,
    /// Paths, as many as are of use in a prompt.
    pub files: Vec<String>,
    /// How many there are in all.
    pub file_count: u64,
    /// In how many folders.
    pub directory_count: u64,
}

/// What the scan found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScanSummary {
    /// The project's name.
    pub project: String,
    /// Files that git does not ignore.
    pub file_count: u64,
    /// Folders that hold them.
    pub directory_count: u64,
    /// Files by language.
    pub languages: BTreeMap<String, u64>,
    /// The checksum of all that was scanned.
    pub hash: String,
    /// What could not be read.
    pub unread: Vec<String>,
}

/// What is sent to an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentTask {
    /// Which agent.
    pub agent: String,
    /// The model.
    pub model_name: String,
    /// What it works on.
    pub context: AgentContext,
    /// The checksum of the facts and prompts that it begins with.
    pub inputs: String,
    /// How far it goes.
    pub config: AgentWorkflowConfig,
    /// Questions of other agents, for a text that is there already.
    pub shared: Option<SharedQuestions>,
}

/// Questions of other agents, and the text that they are for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SharedQuestions {
    /// What they could not answer.
    pub questions: Vec<String>,
    /// All that the agent had come to.
    pub finished: Box<Finished>,
}

/// What an agent came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Finished {
    /// Which agent.
    pub agent: String,
    /// The best version.
    pub best: Option<Version>,
    /// Every scoring.
    pub scores: Vec<Scored>,
    /// The questions of every round.
    pub rounds: Vec<Round>,
    /// What each round improved.
    pub refinement_notes: Vec<String>,
    /// What was read.
    pub reads: Vec<FileRead>,
    /// What the calls took.
    pub calls: Vec<Call>,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// How often the text was refined.
    pub iteration: u32,
    /// The result.
    pub result: AgentResult,
}

/// One scoring of one version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scored {
    /// Which version: 0 is the first text.
    pub iteration: u32,
    /// Is everything covered?
    pub completeness: u32,
    /// Is it easy to read?
    pub clarity: u32,
    /// Is there enough detail?
    pub depth: u32,
    /// Is it right? What the model says, times the share of its claims that the tree bears out.
    pub accuracy: u32,
    /// The average of the four.
    pub overall: u32,
    /// How many claims were checked against the tree.
    pub checked: u32,
    /// Those that the tree does not bear out.
    pub misses: Vec<String>,
}

/// The questions of a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Before which refinement, from 1.
    pub iteration: u32,
    /// What was asked.
    pub questions: Vec<String>,
}

/// An answer that was found side by side with others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ParallelAnswer {
    /// Before which refinement, from 1.
    pub iteration: u32,
    /// What was asked.
    pub question: String,
    /// What was found.
    pub answer: String,
}

/// A file that was read for the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRead {
    /// Which.
    pub path: String,
    /// Its checksum then.
    pub hash: String,
}

/// A version of the text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// After how many refinements.
    pub iteration: u32,
    /// How good it is.
    pub score: u32,
    /// The text.
    pub analysis: String,
}

/// What a call of the model took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// What for: the name of its span.
    pub at: String,
    /// The model that answered.
    pub model: String,
    /// Its tokens, if the server told.
    pub usage: Option<Usage>,
    /// Its cost, if it is known.
    pub cost: Cost,
}

/// What an agent gives back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentResult {
    /// Which agent.
    pub agent_name: String,
    /// `success`, or `degraded` if the model gave no text or no scores.
    pub status: Status,
    /// What was measured and what the model wrote, parsed.
    pub data: Map<String, Json>,
    /// A line.
    pub summary: String,
    /// The page.
    pub markdown: String,
    /// The score of the version that was kept, from 0 to 1.
    pub confidence: f64,
    /// What each round did, and what a reader should know.
    pub warnings: Vec<String>,
    /// How it came about.
    pub metadata: Metadata,
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should.
    #[default]
    Success,
    /// There is a page of facts, but the model's part is missing or was never scored.
    Degraded,
}

/// How a result came about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// How often the text was refined.
    pub iterations: u32,
    /// The questions of every round.
    pub self_questions: Vec<String>,
    /// What is still unknown.
    pub missing_information: Vec<String>,
    /// What each round improved.
    pub refinement_notes: Vec<String>,
    /// The overall score of every version, the first text first.
    pub scores: Vec<u32>,
    /// The score that would have been enough.
    pub threshold: u32,
    /// The checksum of the facts and prompts that it began with.
    pub inputs: String,
    /// Why it stopped there.
    pub stopped: String,
    /// Calls of the model.
    pub calls: u32,
    /// Their tokens, as far as the server told.
    pub usage: Usage,
    /// Their cost, if it is known.
    pub cost: Option<Cost>,
    /// What the text claims, each borne out by the tree.
    pub claims: Vec<String>,
    /// Files that were read for the model beyond the facts.
    pub reads: Vec<FileRead>,
}

impl Metadata {
    /// Whether it would have gone on if it could have spent more.
    pub fn is_cut_short(&self) -> bool {
        self.stopped == StopReason::Budget.to_string()
    }
}

/// That everything is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// How many agents gave a result.
    pub agents: u32,
    /// Calls of the model in all.
    pub calls: u32,
    /// Their tokens, as far as the server told.
    pub usage: Usage,
    /// The lines of the agents, in their order.
    pub lines: Vec<String>,
}
