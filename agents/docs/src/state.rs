//! State of the documentation agents. Field names follow the brief.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use superstep::State;
use superstep_llm::{Cost, Usage};

use super::scan::ScanOptions;
use super::source_map::SourceRecord;
use super::workflow::StopReason;

/// State of one documentation run over all agents.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct DocsState {
    /// What a caller of a server asks for. `None` once the agents begin, and in other threads.
    pub task: Option<DocsTask>,
    /// Folder that the pages describe.
    pub root: String,
    /// Folder that the pages are written to.
    pub output: String,
    /// Name of the model, chosen at the start.
    pub model_name: String,
    /// Which files of the folder the scan includes.
    pub options: ScanOptions,
    /// Limits and switches for every agent.
    pub config: AgentWorkflowConfig,
    /// Clarity thresholds learned from earlier runs, by agent. They replace the configured threshold.
    pub thresholds: BTreeMap<String, u32>,
    /// Number of each agent's last recorded run before this one. Stored, so that writing the pages again after a crash records
    /// this run only once.
    pub times: BTreeMap<String, u64>,
    /// Maximum number of model calls at a time. Default: as many as its server tells.
    pub parallel: Option<u32>,
    /// Names of the agents to run.
    pub wanted: Vec<String>,
    /// Summary of the scan.
    pub scan: ScanSummary,
    /// One task for each requested agent, in the order of `wanted`.
    pub tasks: Vec<AgentTask>,
    /// One result for each agent, in the order of `tasks`.
    pub results: Vec<AgentResult>,
    /// Totals of the run. Set when all agents have finished.
    pub report: Option<Report>,
}

/// What a caller of a server asks for. Everything else is a setting of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct DocsTask {
    /// Folder to describe, among the files of the thread.
    pub folder: String,
    /// Names of the agents to run. Default: all.
    pub agents: Vec<String>,
    /// Maximum number of refinements. Default: 3.
    pub max_iterations: Option<u32>,
    /// Score that is good enough, from 0 to 100. Default: 80.
    pub clarity_threshold: Option<u32>,
    /// Whether a person approves each refinement.
    pub gate: bool,
}

/// State of the `ExecuteAgents` subgraph.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct ExecutionState {
    /// One task for each agent.
    pub tasks: Vec<AgentTask>,
    /// Outcomes of the agents. An agent that ran again for shared questions has two; the newest counts.
    #[state(append)]
    pub finished: Vec<Finished>,
    /// Whether `shareQuestions` has run. It shares at most once.
    pub shared: bool,
}

/// State of one agent's workflow.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct AgentWorkflowState {
    /// Name of the agent.
    pub agent: String,
    /// Name of the model, chosen at the start.
    pub model_name: String,
    /// Limits and switches of the agent.
    pub config: AgentWorkflowConfig,
    /// The project that the agent describes.
    pub context: AgentContext,
    /// Checksum of the prompts and facts that the agent starts with.
    pub inputs: String,
    /// Number of refinements so far.
    pub iteration: u32,
    /// Current version of the text. Empty if the model returned none.
    pub current_analysis: String,
    /// Known gaps: claims that the tree does not support, and gaps that the model named.
    pub missing_information: Vec<String>,
    /// Score of the current text, from 0 to 100: the average of four scores.
    pub clarity_score: u32,
    /// Questions that the next refinement answers. At the gate, a person may add and delete some.
    pub self_questions: Vec<String>,
    /// Text that was kept: the best version, before sentences with unsupported claims are removed.
    pub final_analysis: String,
    /// What each refinement addressed, in order.
    #[state(append)]
    pub refinement_notes: Vec<String>,
    /// All scores, in order. A text that the model did not score has none.
    #[state(append)]
    pub scores: Vec<Scored>,
    /// Questions of every round.
    #[state(append)]
    pub rounds: Vec<Round>,
    /// Answers to questions that were asked in parallel.
    #[state(append)]
    pub answers: Vec<ParallelAnswer>,
    /// Files shown to the model beyond the facts, with their checksums.
    #[state(append)]
    pub reads: Vec<FileRead>,
    /// One entry for each model call.
    #[state(append)]
    pub calls: Vec<Call>,
    /// Warnings for the reader: what was cut from a prompt, what the model did not return.
    #[state(append)]
    pub warnings: Vec<String>,
    /// Version with the highest score so far.
    pub best: Option<Version>,
    /// Every version of the text, the first draft first.
    #[state(append)]
    pub versions: Vec<Version>,
    /// Why the model returned no scores. Absent while scoring works.
    pub unscored: Option<String>,
    /// Whether a person chose at the gate to stop refining.
    pub skipped: bool,
    /// Whether a person chose to stop when the run reached its spending limit.
    pub budget: bool,
    /// What the model read of the source for its first draft.
    pub sources: Option<SourceRecord>,
    /// Whether the current text was cut off, and one request to complete it did not help.
    pub cut_off: bool,
    /// Result of the agent, set by the last node.
    pub result: Option<AgentResult>,
}

/// Limits and switches of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentWorkflowConfig {
    /// Maximum number of refinements. Default: 3.
    pub max_iterations: u32,
    /// Score that is good enough, from 0 to 100. Default: 80.
    pub clarity_threshold: u32,
    /// Minimum gain in points; a refinement that gains less is the last one. Default: 5.
    pub min_improvement: u32,
    /// Whether the agent asks itself questions and refines its text at all. Default: true.
    pub enable_self_questioning: bool,
    /// Whether the questions of a round are answered in parallel, with one model call each. Default: false.
    pub parallel_answers: bool,
    /// Whether the model may call tools to read more of the tree. Default: false.
    pub tools: bool,
    /// Whether a person approves each refinement. Default: false.
    pub gate: bool,
    /// Whether the agent also works on questions that other agents left open. Default: false.
    pub share_questions: bool,
    /// Maximum length of the source that the model reads with a prompt, in tokens. Default: an eighth of the model's context,
    /// at most 24,000; 6,000 if the server does not report its context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_tokens: Option<u32>,
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
            source_tokens: None,
        }
    }
}

/// The project that an agent describes. Holds paths only; nodes read the files when they need them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentContext {
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// Which files of the folder the scan includes.
    pub options: ScanOptions,
    /// Checksum of the scanned tree. If the tree has changed since, the result says so.
    pub scan: String,
    /// Paths of the first files, at most 1,000: as many as fit a prompt.
    pub files: Vec<String>,
    /// Number of files in the tree.
    pub file_count: u64,
    /// Number of folders in the tree.
    pub directory_count: u64,
    /// Maximum number of model calls at a time, over all agents. Default: as many as its server tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
}

/// Summary of the scan, without the files themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScanSummary {
    /// Name of the project.
    pub project: String,
    /// Number of files that git does not ignore.
    pub file_count: u64,
    /// Number of folders that hold them, without the root.
    pub directory_count: u64,
    /// Number of files by language.
    pub languages: BTreeMap<String, u64>,
    /// Checksum of all paths and contents.
    pub hash: String,
    /// Paths that could not be read, each with the reason. At most 1,000, then how many more.
    pub unread: Vec<String>,
}

/// Task of one agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentTask {
    /// Name of the agent.
    pub agent: String,
    /// Name of the model.
    pub model_name: String,
    /// The project that the agent describes.
    pub context: AgentContext,
    /// Checksum of the prompts and facts that the agent starts with.
    pub inputs: String,
    /// Limits and switches of the agent.
    pub config: AgentWorkflowConfig,
    /// Open questions of other agents. Present only on the second run of an agent that has a text already.
    pub shared: Option<SharedQuestions>,
}

/// Open questions of other agents, and the outcome that the receiving agent continues from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SharedQuestions {
    /// Questions that the other agents could not answer; at most three.
    pub questions: Vec<String>,
    /// Outcome of the receiving agent's first run.
    pub finished: Box<Finished>,
}

/// Outcome of one agent: everything that a second run continues from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Finished {
    /// Name of the agent.
    pub agent: String,
    /// Version with the highest score. Absent if none was scored.
    pub best: Option<Version>,
    /// All scores, in order.
    pub scores: Vec<Scored>,
    /// Questions of every round.
    pub rounds: Vec<Round>,
    /// What each refinement addressed, in order.
    pub refinement_notes: Vec<String>,
    /// Files shown to the model beyond the facts.
    pub reads: Vec<FileRead>,
    /// One entry for each model call.
    pub calls: Vec<Call>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// Number of refinements.
    pub iteration: u32,
    /// What the model read of the source for its first draft.
    pub sources: Option<SourceRecord>,
    /// Every version of the text, the first draft first.
    pub versions: Vec<Version>,
    /// Result that the agent returned.
    pub result: AgentResult,
}

/// Scores of one version. Each is from 0 to 100.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scored {
    /// Number of refinements before this version; 0 is the first draft.
    pub iteration: u32,
    /// Whether everything is covered: the model's own score, scaled by the share of what the page must name that the text does
    /// name. Zero if the text is cut off.
    pub completeness: u32,
    /// Whether the text is easy to read, as the model judges it. At most 50 if the text is cut off.
    pub clarity: u32,
    /// Whether there is enough detail, as the model judges it.
    pub depth: u32,
    /// The model's own score, scaled by the share of claims that the tree supports.
    pub accuracy: u32,
    /// Rounded average of the four scores.
    pub overall: u32,
    /// Number of claims that were looked up in the tree.
    pub checked: u32,
    /// Claims that the tree does not support.
    pub misses: Vec<String>,
    /// Claims that the tree neither supports nor contradicts. They do not count as supported.
    pub unknown: Vec<String>,
    /// What the page must name and the text does not.
    pub uncovered: Vec<String>,
    /// Whether the text was cut off.
    pub is_cut_off: bool,
}

/// Questions of one round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Number of the refinement that answers the questions, from 1.
    pub iteration: u32,
    /// Questions of the round, as a person left them at the gate.
    pub questions: Vec<String>,
}

/// Answer to one of several questions that were asked in parallel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ParallelAnswer {
    /// Number of the refinement that uses the answer, from 1.
    pub iteration: u32,
    /// The question, as it was asked.
    pub question: String,
    /// Text of the model's answer.
    pub answer: String,
}

/// File that was shown to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRead {
    /// Path below the root of the tree.
    pub path: String,
    /// Checksum of the content at the time of the scan.
    pub hash: String,
}

/// One version of the text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Number of refinements before this version; 0 is the first draft.
    pub iteration: u32,
    /// Overall score, from 0 to 100.
    pub score: u32,
    /// The text itself, as Markdown.
    pub analysis: String,
    /// Whether the model returned no scores for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unscored: bool,
}

/// Usage and cost of one model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Name of the span that made the call.
    pub at: String,
    /// Name of the model that answered.
    pub model: String,
    /// Tokens of the call. Absent if the server did not report them.
    pub usage: Option<Usage>,
    /// Cost of the call; may be unknown.
    pub cost: Cost,
}

/// Result of one agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentResult {
    /// Name of the agent.
    pub agent_name: String,
    /// `degraded` if the model returned no usable text or no scores.
    pub status: Status,
    /// Measured facts and the model's prose, as data.
    pub data: Map<String, Json>,
    /// One-line summary for the index.
    pub summary: String,
    /// The page, as Markdown.
    pub markdown: String,
    /// Score of the version that was kept, from 0 to 1. Zero if none was scored.
    pub confidence: f64,
    /// What each refinement addressed, and what a reader should know.
    pub warnings: Vec<String>,
    /// How the result was produced.
    pub metadata: Metadata,
    /// Every version of the text, the first draft first. Empty in the manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Version>,
}

/// Whether the result is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The page has scored prose.
    #[default]
    Success,
    /// The page has facts, but the model's prose is missing or was never scored.
    Degraded,
}

/// How a result was produced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Number of refinements.
    pub iterations: u32,
    /// Questions of all rounds, in order.
    pub self_questions: Vec<String>,
    /// Gaps that were still open at the end.
    pub missing_information: Vec<String>,
    /// What each refinement addressed, with the scores before and after it.
    pub refinement_notes: Vec<String>,
    /// Overall score of every scored version, the first draft first.
    pub scores: Vec<u32>,
    /// Score that would have ended the refinement.
    pub threshold: u32,
    /// Checksum of the prompts and facts that the agent started with.
    pub inputs: String,
    /// Why the agent stopped: the text of a [`StopReason`].
    pub stopped: String,
    /// Number of model calls.
    pub calls: u32,
    /// Tokens of all calls. Calls without reported usage count as zero.
    pub usage: Usage,
    /// Cost of all calls. Unknown if the cost of one of them is unknown.
    pub cost: Option<Cost>,
    /// Claims of the text, all supported by the tree. The manifest checks them again later.
    pub claims: Vec<String>,
    /// Claims of the text that the tree neither supports nor contradicts.
    pub unknown: Vec<String>,
    /// What the model read of the source for its first draft.
    pub sources: Option<SourceRecord>,
    /// Files shown to the model beyond the facts, sorted by path.
    pub reads: Vec<FileRead>,
}

impl Metadata {
    /// Returns whether the agent stopped at its spending limit.
    pub fn is_cut_short(&self) -> bool {
        self.stopped == StopReason::Budget.to_string()
    }
}

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// Number of agents that returned a result.
    pub agents: u32,
    /// Number of model calls of all agents.
    pub calls: u32,
    /// Tokens of all calls. Calls without reported usage count as zero.
    pub usage: Usage,
    /// One line for each agent, in the order of the results.
    pub lines: Vec<String>,
}
