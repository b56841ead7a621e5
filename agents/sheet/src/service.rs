//! The analysis service: makes a state of what was asked for, and runs the graph on it.

use std::path::Path;

use archie_agent::user_folder::read_named_file;
use superstep::{DriveError, Thread, ThreadId};
use superstep_agent::ChatMessage;

use super::book::guard::WorkbookNotes;
use super::book::{guard, read};
use super::recipe::Recipe;
use super::sandbox::{Kind, Limits};
use super::snapshots::{SnapshotError, SnapshotStore};
use super::state::{
    Actions, GraphState, GraphStateUpdate, InformerSpec, PlannerSpec, SandboxSpec, SheetProblem,
    WorkbookHandle, WorkbookState,
};
use super::tools;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct AnalysisRequest {
    /// In the person's words.
    pub instruction: String,
    /// What else there is to know.
    pub context: String,
    /// Where the results go.
    pub output_dir: String,
    /// The model that plans.
    pub model: String,
    /// How it says what to do.
    pub actions: Actions,
    /// Who looks things up, if anybody is to.
    pub informer: Option<InformerSpec>,
    /// How often the planner is asked.
    pub max_steps: u32,
    /// Where code runs.
    pub sandbox: Kind,
    /// What code may take.
    pub limits: Limits,
    /// What is played again, without a model.
    pub recipe: Option<Recipe>,
}

/// A workbook that was read and is kept.
#[derive(Debug, Clone)]
pub struct OpenedWorkbook {
    /// What it is known by.
    pub handle: WorkbookHandle,
    /// A line for each sheet.
    pub sheets: Vec<String>,
    /// What the person should know of it.
    pub seen: WorkbookNotes,
}

/// Reads a workbook and keeps a copy of it. The file itself is never written.
pub fn open(
    path: &Path,
    snapshots: &SnapshotStore,
    thread: &ThreadId,
) -> Result<OpenedWorkbook, SnapshotError> {
    let bytes = read_named_file(path, guard::PACKED_MAX)?;
    open_bytes(&path.display().to_string(), &bytes, snapshots, thread)
}

/// Keeps a workbook that is known under this name.
pub fn open_bytes(
    name: &str,
    bytes: &[u8],
    snapshots: &SnapshotStore,
    thread: &ThreadId,
) -> Result<OpenedWorkbook, SnapshotError> {
    let seen = guard::look(bytes)?;
    let book = read(bytes)?;
    let hash = snapshots.put_book(thread, bytes)?;
    let handle = WorkbookHandle {
        path: name.to_owned(),
        hash,
    };
    Ok(OpenedWorkbook {
        handle,
        sheets: tools::summaries(&book),
        seen,
    })
}

/// The state that an analysis begins with.
pub fn initial_state(
    order: &AnalysisRequest,
    opened: &OpenedWorkbook,
    id: &ThreadId,
) -> GraphStateUpdate {
    let workbook = WorkbookState {
        snapshot: opened.handle.hash.clone(),
        baseline: String::new(),
        sheets: opened.sheets.clone(),
    };
    let problem = SheetProblem {
        id: id.to_string(),
        instruction: order.instruction.clone(),
        workbook: opened.handle.clone(),
        context: order.context.clone(),
        output_dir: order.output_dir.clone(),
    };
    GraphStateUpdate::default()
        .messages(ChatMessage::user(&order.instruction))
        .problem(problem)
        .sandbox(SandboxSpec {
            kind: order.sandbox,
            limits: order.limits,
        })
        .planner(PlannerSpec {
            model: order.model.clone(),
            actions: order.actions,
        })
        .informer(order.informer.clone())
        .tools(tools::names(order.informer.is_some()))
        .recipe(order.recipe.clone())
        .max_steps(order.max_steps)
        .step(0)
        .workbook(workbook)
}

/// Runs an analysis until it ends or asks.
pub async fn run_analysis(
    thread: &Thread<GraphState>,
    order: &AnalysisRequest,
    opened: &OpenedWorkbook,
) -> Result<superstep::Stopped<GraphState>, DriveError> {
    let state = initial_state(order, opened, thread.id());
    thread.start_or_recover(state).await
}
