//! `docs`: documentation agents that score and refine their own pages.
//!
//! A scan of the project is followed by several agents that run in parallel. Every agent runs the same workflow over its own
//! prompts and facts ([`workflow`]): draft a text, score it, ask what is missing, refine it. Code counts what can be counted
//! ([`scan`]) and writes the tables; the model writes the prose between them, and code looks up every path, symbol and number
//! that the prose names ([`accuracy`]).
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [docs](../../book/html/docs/docs-agent.html)
//! - [Evaluation](../../book/html/docs/evaluation.html)

pub mod accuracy;
mod completeness;
mod deps;
pub mod evaluation;
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
mod slots;
mod source_map;
pub mod state;
mod step_text;
mod task;
mod tools;
mod ui;
pub mod viewer;
pub mod workflow;
pub mod writers;

use std::sync::Arc;

use archie_agent::{Agent, AgentDeps, ThreadFolders};
use superstep::error::BuildError;
use superstep::{END, Goto, Graph, START, SendTo};

use nodes::{AggregateResults, CreateExecutionContext, ScanProjectStructure};
use shared_questions::ShareQuestions;
use state::{
    AgentTask, AgentWorkflowState, AgentWorkflowStateUpdate, DocsState, DocsStateUpdate,
    ExecutionState, ExecutionStateUpdate, Finished,
};
use task::{OpenTask, SavePages};

pub use deps::DocsDeps;
pub use prompts::Prompts;
pub use slots::ModelSlots;
pub use source_map::{SourceFocus, SourceRecord, SourceText};

/// Name of the graph.
pub const NAME: &str = "docs";
/// Node that scans the project folder.
pub const SCAN_PROJECT_STRUCTURE: &str = "ScanProjectStructure";
/// Node that creates one [`AgentTask`] for each requested agent.
pub const CREATE_EXECUTION_CONTEXT: &str = "CreateExecutionContext";
/// Subgraph that runs the agents in parallel.
pub const EXECUTE_AGENTS: &str = "ExecuteAgents";
/// Node that sums up the results of all agents into a [`Report`](state::Report).
pub const AGGREGATE_RESULTS: &str = "AggregateResults";
/// Send target that runs the workflow of one agent.
pub const AGENT: SendTo<AgentTask> = SendTo::new("Agent");
/// Node that sends the open questions of one agent to the others. Sends nothing where `share_questions` is off.
pub const SHARE_QUESTIONS: &str = "shareQuestions";

/// Node that turns a task of a server's caller into the settings of the run. Runs only for such a task.
pub const OPEN_TASK: &str = "OpenTask";
/// Node that writes the pages into the files of the thread. Runs only for a task of a server's caller.
pub const SAVE_PAGES: &str = "SavePages";

/// One-line description, shown in lists of agents.
pub const DESCRIPTION: &str = "writers who document a folder and refine what they wrote";

/// Builds the agent: its graph and its user interface.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    let deps = Arc::new(DocsDeps::new(deps)?);
    let agent = Agent::new(graph(&deps)?, DESCRIPTION, ui::DocsUi { deps });
    Ok(Arc::new(agent))
}

/// Builds the graph.
pub fn graph(deps: &Arc<DocsDeps>) -> Result<Graph<DocsState>, BuildError> {
    Graph::builder(NAME)
        .inputs(["task"])
        .context_schema(deps.models.context_schema())
        .node(OPEN_TASK, OpenTask { deps: deps.clone() })
        .node(SAVE_PAGES, SavePages { deps: deps.clone() })
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
            |_, done: &ExecutionState| {
                DocsStateUpdate::default().results(shared_questions::results(done))
            },
        )
        .node(AGGREGATE_RESULTS, AggregateResults { deps: deps.clone() })
        .route(
            START,
            &[SCAN_PROJECT_STRUCTURE, OPEN_TASK],
            |state: &DocsState| match state.task {
                None => SCAN_PROJECT_STRUCTURE,
                Some(_) => OPEN_TASK,
            },
        )
        .edge(OPEN_TASK, SCAN_PROJECT_STRUCTURE)
        .edge(SCAN_PROJECT_STRUCTURE, CREATE_EXECUTION_CONTEXT)
        .edge(CREATE_EXECUTION_CONTEXT, EXECUTE_AGENTS)
        .edge(EXECUTE_AGENTS, AGGREGATE_RESULTS)
        // The command line writes the pages into the folder of the person.
        .route(
            AGGREGATE_RESULTS,
            &[SAVE_PAGES, END],
            |state: &DocsState| match ThreadFolders::has(&state.output) {
                true => SAVE_PAGES,
                false => END,
            },
        )
        .edge(SAVE_PAGES, END)
        .build()
}

/// Builds the subgraph that sends each agent its task and collects the results.
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
    // Shared questions are worth exactly one more refinement.
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
        .sources(before.sources)
        .versions_all(before.versions)
}

fn finish(_: &ExecutionState, done: &AgentWorkflowState) -> ExecutionStateUpdate {
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
        sources: done.sources.clone(),
        versions: done.versions.clone(),
        result: done.result.clone().unwrap_or_default(),
    })
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
