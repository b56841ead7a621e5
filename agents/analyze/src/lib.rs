//! `analyze`: an analyst who interviews a person over a folder of notes.
//!
//! Two nodes on purpose: the model's turn is committed before the pause, so an answer never pays for it again.

pub mod command;
pub mod evidence;
pub mod inputs;
mod nodes;
pub mod prompts;
pub mod result;
pub mod state;
mod words;

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::{END, Graph, START};

use crate::agents::{AnyAgent, Registered, Workshop};
use crate::prompts::Texts;
use nodes::{AnalysisInterruptNode, AnalysisPrepareNode};
use prompts::Prompts;
use state::AppState;

pub use words::user_is_done;

/// Its name on the wire.
pub const NAME: &str = "analyze";
/// The node that thinks.
pub const ANALYSIS_PREPARE: &str = "ANALYSIS_PREPARE";
/// The node that asks.
pub const ANALYSIS_INTERRUPT: &str = "ANALYSIS_INTERRUPT";

/// The agent.
pub fn agent(workshop: &Workshop) -> anyhow::Result<Arc<dyn AnyAgent>> {
    let prompts = Prompts::of(NAME, &workshop.settings)?;
    let prepare = AnalysisPrepareNode {
        models: workshop.models.clone(),
        prompts,
        spending: workshop.spending.clone(),
    };
    let about = "an analyst who interviews you over a folder of notes";
    Ok(Arc::new(Registered::new(
        graph(prepare)?,
        about,
        command::Interview,
    )))
}

/// The whole graph.
fn graph(prepare: AnalysisPrepareNode) -> Result<Graph<AppState>, BuildError> {
    Graph::builder(NAME)
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
        .build()
}
