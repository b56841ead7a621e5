//! `sheet`: an analyst who works on a workbook, step by step, and shows what changed before anything is saved.
//!
//! The planner decides, a tool acts in a sandbox, an informer looks things up if there is one. In the end a person sees the change
//! set, cell by cell, and says what of it is saved.

pub mod book;
pub mod changes;
pub mod checks;
mod hints;
mod nodes;
pub mod output;
pub mod plan;
pub mod prompts;
pub mod recipe;
pub mod review;
pub mod sandbox;
pub mod service;
pub mod snapshots;
pub mod state;
pub mod tools;
mod ui;

use std::sync::Arc;

use archie_agent::prompts::PromptFiles;
use archie_agent::{Agent, AgentDeps};
use superstep::error::BuildError;
use superstep::{END, Graph, START};

use nodes::{ChangeSetNode, InformerNode, ModelDeps, Next, PlannerNode, ToolNode, should_continue};
use prompts::Prompts;
use sandbox::{Kind, SandboxError, VARIABLE};
use snapshots::SnapshotStore;
use state::{GraphState, Stopped};
use tools::{Sandboxes, ToolDeps};

/// The name of its graph.
pub const NAME: &str = "sheet";
/// The node that plans.
pub const PLANNER_NODE: &str = "planner_node";
/// The node that acts.
pub const TOOL_NODE: &str = "tool_node";
/// The node that looks things up.
pub const INFORMER_NODE: &str = "informer_node";
/// The node that shows what changed.
pub const CHANGE_SET_NODE: &str = "change_set_node";

/// What it is for, in a line.
pub const DESCRIPTION: &str = "an analyst who works on a workbook and shows every changed cell";

/// Builds the agent.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    let snapshots = SnapshotStore::under(&deps.data_folder);
    let agent = Agent::new(graph(deps)?, DESCRIPTION, ui::SheetUi { snapshots });
    Ok(Arc::new(agent))
}

/// Builds the graph, with the sandboxes of this machine.
pub fn graph(deps: &AgentDeps) -> anyhow::Result<Graph<GraphState>> {
    let tool_deps = ToolDeps {
        sandboxes: Arc::new(sandboxes()),
        snapshots: SnapshotStore::under(&deps.data_folder),
    };
    graph_with(deps, tool_deps)
}

fn sandboxes() -> Sandboxes {
    let python = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    Sandboxes::with_python(python.map(Into::into))
}

/// Whether code can be run here, and what is missing if not. Says what is there.
pub fn ready() -> Result<String, SandboxError> {
    let sandboxes = sandboxes();
    let python = sandboxes.find_python()?;
    sandboxes.get(Kind::Bubblewrap)?;
    let lacks = match python.lacks.is_empty() {
        true => String::new(),
        false => format!("; for pictures it lacks {}", python.lacks.join(", ")),
    };
    Ok(format!(
        "bubblewrap and {}{lacks}",
        python.program.display()
    ))
}

/// Builds the graph, with what runs tools.
pub fn graph_with(deps: &AgentDeps, tool_deps: ToolDeps) -> anyhow::Result<Graph<GraphState>> {
    let prompts = Prompts::of(NAME, deps)?;
    let asking = ModelDeps {
        models: deps.models.clone(),
        spending: deps.spending.clone(),
        prompts,
    };
    Ok(wired(asking, tool_deps)?)
}

fn wired(asking: ModelDeps, tool_deps: ToolDeps) -> Result<Graph<GraphState>, BuildError> {
    let informer = InformerNode {
        asking: asking.clone(),
        tool_deps: tool_deps.clone(),
    };
    let planner = PlannerNode {
        asking,
        tool_deps: tool_deps.clone(),
    };
    Graph::builder(NAME)
        .node(PLANNER_NODE, planner)
        .node(
            TOOL_NODE,
            ToolNode {
                tool_deps: tool_deps.clone(),
            },
        )
        .node(INFORMER_NODE, informer)
        .node(CHANGE_SET_NODE, ChangeSetNode { tool_deps })
        .edge(START, PLANNER_NODE)
        .route(
            PLANNER_NODE,
            &[TOOL_NODE, INFORMER_NODE, CHANGE_SET_NODE, END],
            |state: &GraphState| match should_continue(state) {
                Next::Tool => TOOL_NODE,
                Next::Informer => INFORMER_NODE,
                Next::End if has_changed(state) => CHANGE_SET_NODE,
                Next::End => END,
            },
        )
        .edge(TOOL_NODE, PLANNER_NODE)
        // It tries again by itself until it has found something, or often enough.
        .route(
            INFORMER_NODE,
            &[INFORMER_NODE, PLANNER_NODE],
            |state: &GraphState| match state.informer_tries {
                0 => PLANNER_NODE,
                _ => INFORMER_NODE,
            },
        )
        .route(
            CHANGE_SET_NODE,
            &[PLANNER_NODE, END],
            |state: &GraphState| match state.stopped {
                None => PLANNER_NODE,
                Some(_) => END,
            },
        )
        .build()
}

fn has_changed(state: &GraphState) -> bool {
    let is_other =
        !state.workbook.baseline.is_empty() && state.workbook.snapshot != state.workbook.baseline;
    is_other && state.stopped != Some(Stopped::Budget)
}
