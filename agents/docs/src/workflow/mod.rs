//! The work that every documentation agent does: a first text, a score, questions, a better text, until it is good enough.
//!
//! An agent says only what is its own, by [`BaseAgentWorkflow`]; the graph, the scores, the checks against the tree and the rules for
//! when to stop are here and the same for all.

mod analyze_initial;
mod answer_question;
pub mod approve_iteration;
pub(super) mod asking;
mod evaluate_clarity;
mod finalize_output;
mod generate_questions;
mod refine_analysis;
mod stop;

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use superstep::error::BuildError;
use superstep::trace::SpanNames;
use superstep::{END, Goto, Graph, NodeCx, NodeError, Outcome, Runtime, START, SendTo};

use super::deps::DocsDeps;
use super::scan::Tree;
use super::state::{
    AgentContext, AgentResult, AgentWorkflowConfig, AgentWorkflowState, AgentWorkflowStateUpdate,
};
use analyze_initial::AnalyzeInitial;
use answer_question::AnswerQuestion;
use approve_iteration::ApproveIteration;
use evaluate_clarity::EvaluateClarity;
use finalize_output::FinalizeOutput;
use generate_questions::GenerateQuestions;
use refine_analysis::RefineAnalysis;

pub use stop::StopReason;

/// What a documentation agent says of itself; everything else is the same for all.
pub trait BaseAgentWorkflow: fmt::Debug + Send + Sync {
    /// Its name: in commands, scripts, traces and the names of its pages.
    fn get_agent_name(&self) -> &'static str;

    /// Who the model is to be.
    fn build_system_prompt(&self, context: &AgentContext) -> String;

    /// What it is to describe, with the facts.
    fn build_human_prompt(&self, context: &AgentContext, tree: &Tree) -> String;

    /// What was measured, and what the model wrote, as data.
    fn parse_analysis(&self, analysis: &str, tree: &Tree) -> Map<String, Json>;

    /// The page.
    fn format_markdown(&self, data: &Map<String, Json>) -> String;

    /// The page in a line.
    fn generate_summary(&self, data: &Map<String, Json>) -> String;
}

/// The first text.
pub const ANALYZE_INITIAL: &str = "analyzeInitial";
/// The scores.
pub const EVALUATE_CLARITY: &str = "evaluateClarity";
/// What is missing.
pub const GENERATE_QUESTIONS: &str = "generateQuestions";
/// A person looks at the questions first.
pub const APPROVE_ITERATION: &str = "approveIteration";
/// One question, side by side with the others.
pub const ANSWER_QUESTION: SendTo<Question> = SendTo::new("answerQuestion");
/// The better text.
pub const REFINE_ANALYSIS: &str = "refineAnalysis";
/// The page.
pub const FINALIZE_OUTPUT: &str = "finalizeOutput";

/// A question that is answered by a call of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Whose.
    pub agent: String,
    /// The model.
    pub model_name: String,
    /// What the agent works on.
    pub context: AgentContext,
    /// Whether the model may fetch more files.
    pub tools: bool,
    /// Before which refinement, from 1.
    pub iteration: u32,
    /// The question.
    pub question: String,
}

/// The graph of one agent's work.
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
        .worker(&ANSWER_QUESTION, AnswerQuestion { deps: deps() })
        .node(REFINE_ANALYSIS, RefineAnalysis { deps: deps() })
        .node(FINALIZE_OUTPUT, FinalizeOutput { deps: deps() })
        // A text that is there already comes with questions of other agents.
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

/// Goes on, unless what may be spent is spent: then what there is becomes the page.
fn unless_over(state: &AgentWorkflowState, on: &'static str) -> &'static str {
    match state.budget {
        true => FINALIZE_OUTPUT,
        false => on,
    }
}

/// Either every question by itself, or all in the refinement.
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

/// Where an agent's work is done, if it is done alone.
#[derive(Debug, Clone)]
pub struct RunnableConfig {
    /// What drives it.
    pub runtime: Runtime,
    /// On which thread.
    pub thread: String,
    /// With which model.
    pub model_name: String,
}

/// Does the work of one agent alone. Called again for the same thread, it goes on where that was.
pub async fn execute(
    agent: &str,
    deps: &Arc<DocsDeps>,
    context: AgentContext,
    config: AgentWorkflowConfig,
    runnable: &RunnableConfig,
) -> anyhow::Result<AgentResult> {
    let graph = graph(deps)?;
    let thread = runnable.runtime.thread(&graph, &runnable.thread)?;
    let input = AgentWorkflowStateUpdate::default()
        .agent(agent.to_owned())
        .model_name(runnable.model_name.clone())
        .context(context)
        .config(config);
    let stopped = thread.start_or_recover(input).await?;
    match stopped.outcome {
        Outcome::Finished => stopped.state.result.context("it ended without a result"),
        Outcome::Paused(_) => bail!("it waits for an answer on thread {}", runnable.thread),
        other => bail!("it ended early: {other:?}"),
    }
}

/// Gives a node's span the name that the brief has for it.
fn name_span(state: &AgentWorkflowState, what: &str, cx: &NodeCx) -> Result<(), NodeError> {
    cx.emit(SpanNames {
        node_span: Some(format!("{}-{what}", state.agent)),
        graph_span: Some(format!("Agent-{}", state.agent)),
    })
}
