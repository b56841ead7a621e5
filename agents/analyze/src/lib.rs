//! `analyze`: an analyst who interviews a person over a folder of notes.
//!
//! Two nodes on purpose: the model's turn is committed before the pause, so an answer never pays for it again.

pub mod evidence;
pub mod inputs;
mod nodes;
pub mod prompts;
pub mod result;
pub mod state;
mod ui;
mod words;

use std::sync::Arc;

use archie_agent::prompts::PromptFiles;
use archie_agent::{Agent, AgentDeps};
use superstep::{END, Graph, START};

use nodes::{AnalysisInterruptNode, AnalysisPrepareNode};
use prompts::Prompts;
use state::AppState;

pub use ui::get_final_output;
pub use words::user_is_done;

/// The name of its graph.
pub const NAME: &str = "analyze";
/// The node that thinks.
pub const ANALYSIS_PREPARE: &str = "ANALYSIS_PREPARE";
/// The node that asks.
pub const ANALYSIS_INTERRUPT: &str = "ANALYSIS_INTERRUPT";

/// What it is for, in a line.
pub const DESCRIPTION: &str = "an analyst who interviews you over a folder of notes";

/// Builds the agent.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    let agent = Agent::new(graph(deps)?, DESCRIPTION, ui::AnalyzeUi);
    Ok(Arc::new(agent))
}

/// Builds the graph.
pub fn graph(deps: &AgentDeps) -> anyhow::Result<Graph<AppState>> {
    let prepare = AnalysisPrepareNode {
        models: deps.models.clone(),
        prompts: Prompts::of(NAME, deps)?,
        spending: deps.spending.clone(),
    };
    let graph = Graph::builder(NAME)
        .node(ANALYSIS_PREPARE, prepare)
        .node(ANALYSIS_INTERRUPT, AnalysisInterruptNode)
        .route(START, &[ANALYSIS_PREPARE, END], |state: &AppState| {
            if state.user_input.trim().is_empty() {
                END
            } else {
                ANALYSIS_PREPARE
            }
        })
        .route(
            ANALYSIS_PREPARE,
            &[ANALYSIS_INTERRUPT, END],
            |state: &AppState| {
                if state.analysis_output.is_empty() && state.stopped.is_none() {
                    ANALYSIS_INTERRUPT
                } else {
                    END
                }
            },
        )
        .edge(ANALYSIS_INTERRUPT, ANALYSIS_PREPARE)
        .build()?;
    Ok(graph)
}
