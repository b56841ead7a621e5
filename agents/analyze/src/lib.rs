//! `analyze`: an analyst agent that interviews a person about a folder of notes.
//!
//! Asking the model and asking the person are two nodes on purpose: the model's turn is committed before the interrupt, so
//! resuming with an answer does not pay for that turn again.
//!
//! The agent never writes to a note, and never marks a quotation as checked that code did not find in the notes or in what a
//! tool returned.
//!
//! In reading order: [`graph`], [`state::AppState`], [`inputs`] (reads the notes), [`tools`] (calls tools of MCP servers),
//! [`evidence`] (checks what the model quotes), [`result`] (writes the file).

pub mod evidence;
pub mod inputs;
mod interview_end;
mod nodes;
pub mod prompts;
pub mod result;
pub mod state;
pub mod tools;
mod ui;

use std::sync::Arc;

use archie_agent::prompts::PromptFiles;
use archie_agent::{Agent, AgentDeps};
use superstep::{END, Graph, START};
use superstep_agent::unanswered_calls;

use nodes::{AnalysisInterruptNode, AnalysisPrepareNode};
use prompts::Prompts;
use state::AppState;
use tools::AnalysisToolsNode;

pub use interview_end::user_is_done;
pub use ui::get_final_output;

/// Name of the graph and of the agent.
pub const NAME: &str = "analyze";
/// Node that calls the model for the next question or the result.
pub const ANALYSIS_PREPARE: &str = "ANALYSIS_PREPARE";
/// Node that interrupts with the model's question.
pub const ANALYSIS_INTERRUPT: &str = "ANALYSIS_INTERRUPT";

/// Node that calls the tools which the model requested.
pub const ANALYSIS_TOOLS: &str = "ANALYSIS_TOOLS";

/// One-line description, as the list of agents shows it.
pub const DESCRIPTION: &str = "an analyst who interviews you over a folder of notes";

/// Builds the agent, with its graph and its user interface.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    let agent = Agent::new(graph(deps)?, DESCRIPTION, ui::AnalyzeUi);
    Ok(Arc::new(agent))
}

/// Builds the graph. Fails if a prompt file of the person cannot be read.
pub fn graph(deps: &AgentDeps) -> anyhow::Result<Graph<AppState>> {
    let prepare = AnalysisPrepareNode {
        models: deps.models.clone(),
        prompts: Prompts::of(NAME, deps)?,
        spending: deps.spending.clone(),
        mcp: deps.mcp.clone(),
    };
    let tools = AnalysisToolsNode {
        mcp: deps.mcp.clone(),
    };
    let graph = Graph::builder(NAME)
        .node(ANALYSIS_PREPARE, prepare)
        .node(ANALYSIS_INTERRUPT, AnalysisInterruptNode)
        .node(ANALYSIS_TOOLS, tools)
        .route(START, &[ANALYSIS_PREPARE, END], |state: &AppState| {
            if state.user_input.trim().is_empty() {
                END
            } else {
                ANALYSIS_PREPARE
            }
        })
        .route(
            ANALYSIS_PREPARE,
            &[ANALYSIS_INTERRUPT, ANALYSIS_TOOLS, END],
            |state: &AppState| {
                if !state.analysis_output.is_empty() || state.stopped.is_some() {
                    END
                } else if unanswered_calls(&state.tool_messages).is_empty() {
                    ANALYSIS_INTERRUPT
                } else {
                    ANALYSIS_TOOLS
                }
            },
        )
        .edge(ANALYSIS_INTERRUPT, ANALYSIS_PREPARE)
        .edge(ANALYSIS_TOOLS, ANALYSIS_PREPARE)
        .build()?;
    Ok(graph)
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
