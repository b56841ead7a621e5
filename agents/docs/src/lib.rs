//! `docs`: documentation that refines itself.
//!
//! A scan, then several agents side by side. Each is the same workflow over its own prompts and facts ([`workflow`]): a first text, a
//! score, questions, a better text. What can be counted is counted by code ([`scan`]) and written by code; the model writes the prose
//! between, and every path, symbol and number in it is looked up ([`accuracy`]).

pub mod accuracy;
mod deps;
mod evidence;
mod gate;
mod git;
pub mod manifest;
pub mod mermaid;
mod nodes;
pub mod pages;
pub mod plan;
mod prompts;
mod prose;
pub mod scan;
mod shared_questions;
pub mod state;
mod tools;
mod ui;
pub mod viewer;
pub mod workflow;
pub mod writers;

use std::sync::Arc;

use archie_agent::{Agent, AgentDeps};
use superstep::error::BuildError;
use superstep::{END, Goto, Graph, START, SendTo};

use nodes::{AggregateResults, CreateExecutionContext, ScanProjectStructure};
use shared_questions::ShareQuestions;
use state::{
    AgentTask, AgentWorkflowState, AgentWorkflowStateUpdate, DocsState, DocsStateUpdate,
    ExecutionState, ExecutionStateUpdate, Finished,
};

pub use deps::DocsDeps;
pub use prompts::Prompts;

/// The name of its graph.
pub const NAME: &str = "docs";
/// Reads the tree.
pub const SCAN_PROJECT_STRUCTURE: &str = "ScanProjectStructure";
/// Says what each agent has to do.
pub const CREATE_EXECUTION_CONTEXT: &str = "CreateExecutionContext";
/// The agents, side by side.
pub const EXECUTE_AGENTS: &str = "ExecuteAgents";
/// Puts together what they gave.
pub const AGGREGATE_RESULTS: &str = "AggregateResults";
/// One agent.
pub const AGENT: SendTo<AgentTask> = SendTo::new("Agent");
/// Gives what one agent leaves open to the others.
pub const SHARE_QUESTIONS: &str = "shareQuestions";

/// What it is for, in a line.
pub const DESCRIPTION: &str = "writers who document a folder and refine what they wrote";

/// Builds the agent.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    let deps = Arc::new(DocsDeps::new(deps)?);
    let agent = Agent::new(graph(&deps)?, DESCRIPTION, ui::DocsUi { deps });
    Ok(Arc::new(agent))
}

/// Builds the graph.
pub fn graph(deps: &Arc<DocsDeps>) -> Result<Graph<DocsState>, BuildError> {
    Graph::builder(NAME)
        .node(
            SCAN_PROJECT_STRUCTURE,
            ScanProjectStructure { deps: deps.clone() },
        )
        .node(
            CREATE_EXECUTION_CONTEXT,
            CreateExecutionContext { deps: deps.clone() },
        )
        .subgraph(
            EXECUTE_AGENTS,
            execution(deps)?,
            |state: &DocsState| ExecutionStateUpdate::default().tasks(state.tasks.clone()),
            |done: &ExecutionState| {
                DocsStateUpdate::default().results(shared_questions::results(done))
            },
        )
        .node(AGGREGATE_RESULTS, AggregateResults { deps: deps.clone() })
        .edge(START, SCAN_PROJECT_STRUCTURE)
        .edge(SCAN_PROJECT_STRUCTURE, CREATE_EXECUTION_CONTEXT)
        .edge(CREATE_EXECUTION_CONTEXT, EXECUTE_AGENTS)
        .edge(EXECUTE_AGENTS, AGGREGATE_RESULTS)
        .edge(AGGREGATE_RESULTS, END)
        .build()
}

/// The agents, each a subgraph that is sent its task.
fn execution(deps: &Arc<DocsDeps>) -> Result<Graph<ExecutionState>, BuildError> {
    Graph::builder(EXECUTE_AGENTS)
        .subgraph_worker(&AGENT, workflow::graph(deps)?, begin, finish)
        .node(SHARE_QUESTIONS, ShareQuestions)
        .route(START, &[AGENT.name(), END], |state: &ExecutionState| {
            let tasks = state.tasks.iter();
            let sent: Vec<_> = tasks.map(|task| Goto::send(&AGENT, task.clone())).collect();
            match sent.is_empty() {
                true => vec![Goto::node(END)],
                false => sent,
            }
        })
        .edge(AGENT.name(), SHARE_QUESTIONS)
        .commands(SHARE_QUESTIONS, &[AGENT.name(), END])
        .build()
}

fn begin(task: AgentTask) -> AgentWorkflowStateUpdate {
    let update = AgentWorkflowStateUpdate::default()
        .agent(task.agent)
        .model_name(task.model_name)
        .inputs(task.inputs)
        .context(task.context);
    let Some(shared) = task.shared else {
        return update.config(task.config);
    };
    let before = shared.finished;
    let mut config = task.config;
    // What others left open is worth one more round.
    config.max_iterations = before.iteration + 1;
    let text = before
        .best
        .as_ref()
        .map(|best| best.analysis.clone())
        .unwrap_or_default();
    let round = state::Round {
        iteration: before.iteration + 1,
        questions: shared.questions.clone(),
    };
    update
        .config(config)
        .current_analysis(text)
        .best(before.best)
        .iteration(before.iteration)
        .self_questions(shared.questions)
        .scores_all(before.scores)
        .rounds_all(before.rounds)
        .rounds(round)
        .refinement_notes_all(before.refinement_notes)
        .reads_all(before.reads)
        .calls_all(before.calls)
        .warnings_all(before.warnings)
}

fn finish(done: &AgentWorkflowState) -> ExecutionStateUpdate {
    ExecutionStateUpdate::default().finished(Finished {
        agent: done.agent.clone(),
        best: done.best.clone(),
        scores: done.scores.clone(),
        rounds: done.rounds.clone(),
        refinement_notes: done.refinement_notes.clone(),
        reads: done.reads.clone(),
        calls: done.calls.clone(),
        warnings: done.warnings.clone(),
        iteration: done.iteration,
        result: done.result.clone().unwrap_or_default(),
    })
}
