//! The workflow of every documentation agent: draft a text, score it, ask what is missing and refine it, until it is good
//! enough.
//!
//! An agent implements only [`BaseAgentWorkflow`]. The graph, the scores, the checks against the tree and the rules for
//! stopping are here, the same for all agents.

mod analyze_initial;
mod answer_question;
pub mod approve_iteration;
pub(super) mod asking;
mod evaluate_clarity;
mod execute;
mod finalize_output;
mod generate_questions;
mod refine_analysis;
mod stop;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use superstep::error::BuildError;
use superstep::trace::SpanNames;
use superstep::{END, Goto, Graph, NodeCx, NodeError, START, SendTo};

use super::deps::DocsDeps;
use super::scan::Tree;
use super::source_map::SourceFocus;
use super::state::{AgentContext, AgentWorkflowState};
use analyze_initial::AnalyzeInitial;
use answer_question::AnswerQuestion;
use approve_iteration::ApproveIteration;
use evaluate_clarity::EvaluateClarity;
use finalize_output::FinalizeOutput;
use generate_questions::GenerateQuestions;
use refine_analysis::RefineAnalysis;

pub use execute::{DocumentationWorkflow, RunnableConfig, execute};
pub use stop::StopReason;

/// What is specific to one documentation agent: its prompts, its facts and the form of its page.
pub trait BaseAgentWorkflow: fmt::Debug + Send + Sync {
    /// Returns the name of the agent, as used in commands, scripts, traces and the names of pages.
    fn get_agent_name(&self) -> &'static str;

    /// Returns the system prompt: the role of the model and its rules.
    fn build_system_prompt(&self, context: &AgentContext) -> String;

    /// Returns the prompt that states the task, with the measured facts.
    fn build_human_prompt(&self, context: &AgentContext, tree: &Tree) -> String;

    /// Returns the measured facts of the tree and the model's prose as data. With an empty `analysis`, only the facts.
    fn parse_analysis(&self, analysis: &str, tree: &Tree) -> Map<String, Json>;

    /// Renders the page from the data of [`parse_analysis`](Self::parse_analysis).
    fn format_markdown(&self, data: &Map<String, Json>) -> String;

    /// Returns a one-line summary of the page, for the index.
    fn generate_summary(&self, data: &Map<String, Json>) -> String;

    /// Returns which parts of the source the model reads first. Default: the bodies that most of the project refers to.
    fn source_focus(&self) -> SourceFocus {
        SourceFocus::default()
    }

    /// Returns what the text must name: paths, packages or symbols. A text that leaves some out is less complete. Default:
    /// nothing.
    fn subjects(&self, _tree: &Tree) -> Vec<String> {
        Vec::new()
    }
}

/// Node that asks the model for the first draft.
pub const ANALYZE_INITIAL: &str = "analyzeInitial";
/// Node that scores the current text.
pub const EVALUATE_CLARITY: &str = "evaluateClarity";
/// Node that asks the model for questions about what is missing.
pub const GENERATE_QUESTIONS: &str = "generateQuestions";
/// Node that interrupts, so that a person approves the questions of a round. Runs only if the gate is on.
pub const APPROVE_ITERATION: &str = "approveIteration";
/// Send target that answers one question. Used only if answers are parallel.
pub const ANSWER_QUESTION: SendTo<Question> = SendTo::new("answerQuestion");
/// Node that asks the model for a better text.
pub const REFINE_ANALYSIS: &str = "refineAnalysis";
/// Node that makes the result and its page from the best version.
pub const FINALIZE_OUTPUT: &str = "finalizeOutput";

/// One question, answered by its own model call in parallel with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Name of the agent that asks.
    pub agent: String,
    /// Name of the model.
    pub model_name: String,
    /// The project that the agent describes.
    pub context: AgentContext,
    /// Whether the model may call tools to read more of the tree.
    pub tools: bool,
    /// Number of the refinement that uses the answer, from 1.
    pub iteration: u32,
    /// Text of the question.
    pub question: String,
}

/// Builds the graph of one agent's workflow.
pub fn graph(deps: &Arc<DocsDeps>) -> Result<Graph<AgentWorkflowState>, BuildError> {
    let deps = || deps.clone();
    let refine = [
        APPROVE_ITERATION,
        ANSWER_QUESTION.name(),
        REFINE_ANALYSIS,
        FINALIZE_OUTPUT,
    ];
    Graph::builder("agent")
        .node(ANALYZE_INITIAL, AnalyzeInitial { deps: deps() })
        .node(EVALUATE_CLARITY, EvaluateClarity { deps: deps() })
        .node(GENERATE_QUESTIONS, GenerateQuestions { deps: deps() })
        .node(APPROVE_ITERATION, ApproveIteration)
        .map_node(&ANSWER_QUESTION, AnswerQuestion { deps: deps() })
        .node(REFINE_ANALYSIS, RefineAnalysis { deps: deps() })
        .node(FINALIZE_OUTPUT, FinalizeOutput { deps: deps() })
        // A run that starts with a text was sent questions of other agents, so it skips the draft.
        .route(
            START,
            &[ANALYZE_INITIAL, ANSWER_QUESTION.name(), REFINE_ANALYSIS],
            |state: &AgentWorkflowState| match state.best {
                Some(_) => answers_or_refinement(state),
                None => vec![Goto::node(ANALYZE_INITIAL)],
            },
        )
        .route(
            ANALYZE_INITIAL,
            &[EVALUATE_CLARITY, FINALIZE_OUTPUT],
            |state| unless_over(state, EVALUATE_CLARITY),
        )
        .route(
            EVALUATE_CLARITY,
            &[GENERATE_QUESTIONS, FINALIZE_OUTPUT],
            |state: &AgentWorkflowState| match StopReason::of(state) {
                Some(_) => FINALIZE_OUTPUT,
                None => GENERATE_QUESTIONS,
            },
        )
        .route(
            GENERATE_QUESTIONS,
            &refine,
            |state: &AgentWorkflowState| match (state.budget, state.config.gate) {
                (true, _) => vec![Goto::node(FINALIZE_OUTPUT)],
                (_, true) => vec![Goto::node(APPROVE_ITERATION)],
                _ => answers_or_refinement(state),
            },
        )
        .route(
            APPROVE_ITERATION,
            &[ANSWER_QUESTION.name(), REFINE_ANALYSIS, FINALIZE_OUTPUT],
            |state: &AgentWorkflowState| match state.skipped || state.self_questions.is_empty() {
                true => vec![Goto::node(FINALIZE_OUTPUT)],
                false => answers_or_refinement(state),
            },
        )
        .edge(ANSWER_QUESTION.name(), REFINE_ANALYSIS)
        .route(
            REFINE_ANALYSIS,
            &[EVALUATE_CLARITY, FINALIZE_OUTPUT],
            |state| unless_over(state, EVALUATE_CLARITY),
        )
        .edge(FINALIZE_OUTPUT, END)
        .build()
}

/// Routes to the node `on`, or to the last node if the run reached its spending limit.
fn unless_over(state: &AgentWorkflowState, on: &'static str) -> &'static str {
    match state.budget {
        true => FINALIZE_OUTPUT,
        false => on,
    }
}

/// Sends every question to a task of its own, or routes to the refinement, which then answers all of them.
fn answers_or_refinement(state: &AgentWorkflowState) -> Vec<Goto<AgentWorkflowState>> {
    if !state.config.parallel_answers {
        return vec![Goto::node(REFINE_ANALYSIS)];
    }
    let questions = state.self_questions.iter();
    let sent = questions.map(|question| {
        let question = Question {
            agent: state.agent.clone(),
            model_name: state.model_name.clone(),
            context: state.context.clone(),
            tools: state.config.tools,
            iteration: state.iteration + 1,
            question: question.clone(),
        };
        Goto::send(&ANSWER_QUESTION, question)
    });
    sent.collect()
}

/// Names the spans of a node and of its graph as the brief requires.
fn name_span(state: &AgentWorkflowState, what: &str, cx: &NodeCx) -> Result<(), NodeError> {
    cx.emit(SpanNames {
        node_span: Some(format!("{}-{what}", state.agent)),
        graph_span: Some(format!("Agent-{}", state.agent)),
    })
}
