//! `sheet`: an agent that analyses a workbook step by step, and shows every change before it saves anything.
//!
//! The planner decides, a tool acts in a sandbox, and an informer, if there is one, looks things up. At the end a person
//! reviews the change set cell by cell and decides which changes to save.
//!
//! The agent never writes to the person's file, and never runs the model's code outside a sandbox unless the person opts out.
//!
//! In reading order: [`graph`], [`state::GraphState`], [`service`] (starts an analysis), [`book`] (reads and patches workbooks),
//! [`sandbox`], [`changes`] (what a person reviews), [`recipe`] (replays a run).
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [sheet](../../book/html/docs/sheet.html)
//! - [Undo an answer](../../book/html/docs/howto/undo-an-answer.html)

pub mod book;
pub mod changes;
pub mod checks;
pub mod evaluation;
mod figures;
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
mod step_text;
pub mod tools;
mod ui;

use std::sync::Arc;

use archie_agent::prompts::PromptFiles;
use archie_agent::{Agent, AgentDeps, ThreadFolders};
use superstep::error::BuildError;
use superstep::{END, Graph, START};

use nodes::{
    ChangeSetNode, InformerNode, ModelDeps, Next, OpenWorkbookNode, PlannerNode, SaveResultsNode,
    ToolNode, should_continue,
};
use prompts::Prompts;
use sandbox::{Bubblewrap, IMPORTS, SandboxError, VARIABLE, environment};
use snapshots::SnapshotStore;
use state::{GraphState, Stopped};
use tools::{Sandboxes, ToolDeps};

/// Name of the graph and of the agent.
pub const NAME: &str = "sheet";
/// Node that asks the planner's model what to do next.
pub const PLANNER_NODE: &str = "planner_node";
/// Node that runs the tools that the planner calls.
pub const TOOL_NODE: &str = "tool_node";
/// Node that looks up data in the sheets.
pub const INFORMER_NODE: &str = "informer_node";
/// Node that checks the change set and interrupts for the person's verdict.
pub const CHANGE_SET_NODE: &str = "change_set_node";

/// Node that opens the workbook among the files of the thread. Runs only if a caller of a server asked for the analysis.
pub const OPEN_WORKBOOK_NODE: &str = "open_workbook_node";
/// Node that writes the results into the files of the thread. Runs only if a caller of a server asked for the analysis.
pub const SAVE_RESULTS_NODE: &str = "save_results_node";

/// One-line description, as the list of agents shows it.
pub const DESCRIPTION: &str = "an analyst who works on a workbook and shows every changed cell";

/// Builds the agent. It stores snapshots of workbooks below the host's data folder.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    let snapshots = SnapshotStore::under(&deps.data_folder);
    let ui = ui::SheetUi {
        snapshots,
        folders: deps.thread_folders.clone(),
    };
    let agent = Agent::new(graph(deps)?, DESCRIPTION, ui);
    Ok(Arc::new(agent))
}

/// Builds the graph with the sandboxes of this machine. Does not need a Python yet; the first tool that runs code does.
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

/// Checks whether code can run in the sandbox on this machine, with a trial run. Returns a description of what is installed, or
/// what is missing. Blocks the calling thread, usually for a second.
pub fn ready() -> Result<String, SandboxError> {
    let python = sandboxes().find_python()?;
    Bubblewrap::new(python.clone())?.try_out(IMPORTS)?;
    let lacks = match python.lacks.is_empty() {
        true => String::new(),
        false => format!("; for pictures it lacks {}", python.lacks.join(", ")),
    };
    Ok(format!(
        "bubblewrap and {}{lacks}",
        python.program.display()
    ))
}

/// Like [`ready`], but makes a Python environment of Archie's own in the cache folder if no Python has the modules, or the
/// sandbox cannot use the one that has, and `ARCHIE_PYTHON` is not set. Calls `progress` before each step that takes long.
pub fn make_ready(progress: impl Fn(&str)) -> anyhow::Result<String> {
    match (ready(), sandboxes().has_named_python()) {
        (Err(SandboxError::Python(_) | SandboxError::Trial { .. }), false) => {
            // Without the sandbox, no code would run in the environment.
            Bubblewrap::check_programs()?;
            environment::create(progress)?;
            Ok(ready()?)
        }
        (ready, _) => Ok(ready?),
    }
}

/// Builds the graph with the given sandboxes and snapshot store.
pub fn graph_with(deps: &AgentDeps, tool_deps: ToolDeps) -> anyhow::Result<Graph<GraphState>> {
    let prompts = Prompts::of(NAME, deps)?;
    let asking = ModelDeps {
        models: deps.models.clone(),
        spending: deps.spending.clone(),
        prompts,
    };
    let open = OpenWorkbookNode {
        folders: deps.thread_folders.clone(),
        snapshots: tool_deps.snapshots.clone(),
        model: deps.model.clone(),
        models: deps.models.clone(),
    };
    Ok(wired(asking, tool_deps, open)?)
}

fn wired(
    asking: ModelDeps,
    tool_deps: ToolDeps,
    open: OpenWorkbookNode,
) -> Result<Graph<GraphState>, BuildError> {
    let save = SaveResultsNode {
        folders: open.folders.clone(),
        snapshots: open.snapshots.clone(),
    };
    let informer = InformerNode {
        asking: asking.clone(),
        tool_deps: tool_deps.clone(),
    };
    let planner = PlannerNode {
        asking,
        tool_deps: tool_deps.clone(),
    };
    Graph::builder(NAME)
        .inputs(["task"])
        .context_schema(open.models.context_schema())
        .node(OPEN_WORKBOOK_NODE, open)
        .node(SAVE_RESULTS_NODE, save)
        .node(PLANNER_NODE, planner)
        .node(
            TOOL_NODE,
            ToolNode {
                tool_deps: tool_deps.clone(),
            },
        )
        .node(INFORMER_NODE, informer)
        .node(CHANGE_SET_NODE, ChangeSetNode { tool_deps })
        .route(
            START,
            &[PLANNER_NODE, OPEN_WORKBOOK_NODE],
            |state: &GraphState| match state.task {
                None => PLANNER_NODE,
                Some(_) => OPEN_WORKBOOK_NODE,
            },
        )
        .edge(OPEN_WORKBOOK_NODE, PLANNER_NODE)
        .edge(SAVE_RESULTS_NODE, END)
        .route(
            PLANNER_NODE,
            &[
                TOOL_NODE,
                INFORMER_NODE,
                CHANGE_SET_NODE,
                SAVE_RESULTS_NODE,
                END,
            ],
            |state: &GraphState| match should_continue(state) {
                Next::Tool => TOOL_NODE,
                Next::Informer => INFORMER_NODE,
                Next::End if has_changed(state) => CHANGE_SET_NODE,
                Next::End => after_end(state),
            },
        )
        .edge(TOOL_NODE, PLANNER_NODE)
        // The informer repeats itself until a lookup succeeds or it has used up its tries.
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
            &[PLANNER_NODE, SAVE_RESULTS_NODE, END],
            |state: &GraphState| match state.stopped {
                None => PLANNER_NODE,
                Some(_) => after_end(state),
            },
        )
        .build()
}

/// Returns what follows the last step: the graph itself writes the results for a caller of a server, and the command line writes
/// them into the folder of the person.
fn after_end(state: &GraphState) -> &'static str {
    let is_of_thread = ThreadFolders::has(&state.problem.output_dir);
    match is_of_thread && state.stopped != Some(Stopped::Budget) {
        true => SAVE_RESULTS_NODE,
        false => END,
    }
}

fn has_changed(state: &GraphState) -> bool {
    state.workbook.is_changed() && state.stopped != Some(Stopped::Budget)
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
