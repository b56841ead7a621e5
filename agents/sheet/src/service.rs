//! Starts analyses: turns a request into the initial state, and runs the graph on it.

use std::path::Path;

use archie_agent::user_folder::read_named_file;
use superstep::{AnyRunResult, AnyThread, DriveError, ThreadId};
use superstep_agent::ChatMessage;

use super::book::guard::WorkbookNotes;
use super::book::mirror::select_example;
use super::book::{guard, read};
use super::recipe::Recipe;
use super::sandbox::{Kind, Limits};
use super::snapshots::{SnapshotError, SnapshotStore};
use super::state::{
    Actions, GraphStateUpdate, InformerSpec, PlannerSpec, SandboxSpec, SheetProblem,
    WorkbookHandle, WorkbookState,
};
use super::tools;

/// Request for an analysis.
#[derive(Debug, Clone)]
pub struct AnalysisRequest {
    /// What to do, in the person's words.
    pub instruction: String,
    /// Additional background for the planner; may be empty.
    pub context: String,
    /// Folder for the result files.
    pub output_dir: String,
    /// Name of the planner's model.
    pub model: String,
    /// How the planner states its next action.
    pub actions: Actions,
    /// Informer settings; `None` for a run without an informer.
    pub informer: Option<InformerSpec>,
    /// Maximum number of planner steps.
    pub max_steps: u32,
    /// Kind of sandbox.
    pub sandbox: Kind,
    /// Resource limits of one run of code.
    pub limits: Limits,
    /// Recipe to replay instead of asking a model.
    pub recipe: Option<Recipe>,
}

/// A workbook that was read and stored.
#[derive(Debug, Clone)]
pub struct OpenedWorkbook {
    /// Path and snapshot id of the workbook.
    pub handle: WorkbookHandle,
    /// One summary line per sheet.
    pub sheets: Vec<String>,
    /// A `SELECT` that shows how to quote the names of this workbook.
    pub select_example: String,
    /// Findings that the person should know about, such as macros.
    pub seen: WorkbookNotes,
}

/// Reads a workbook and stores a copy of it. Never writes to the file itself.
pub fn open(
    path: &Path,
    snapshots: &SnapshotStore,
    thread: &ThreadId,
) -> Result<OpenedWorkbook, SnapshotError> {
    let bytes = read_named_file(path, guard::PACKED_MAX)?;
    open_bytes(&path.display().to_string(), &bytes, snapshots, thread)
}

/// Checks and stores a workbook that is already in memory. `name` is recorded as its path.
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
        select_example: select_example(&book),
        seen,
    })
}

/// Returns the update that starts an analysis.
pub fn initial_state(
    order: &AnalysisRequest,
    opened: &OpenedWorkbook,
    id: &ThreadId,
) -> GraphStateUpdate {
    let workbook = WorkbookState {
        snapshot: opened.handle.hash.clone(),
        baseline: String::new(),
        sheets: opened.sheets.clone(),
        select_example: opened.select_example.clone(),
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

/// Starts an analysis, or recovers one that was already started, and runs it until it ends or interrupts.
///
/// The thread is one of [`graph`](super::graph()), typed or not. Its state afterwards is in the store.
pub async fn run_analysis(
    thread: &dyn AnyThread,
    order: &AnalysisRequest,
    opened: &OpenedWorkbook,
) -> Result<AnyRunResult, AnalysisError> {
    let state = initial_state(order, opened, thread.id());
    Ok(thread
        .start_or_recover(serde_json::to_value(state)?)
        .await?)
}

/// Why an analysis could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// The request cannot be stored.
    #[error("the request cannot be stored")]
    State(#[from] serde_json::Error),
    /// The thread could not be started or recovered.
    #[error(transparent)]
    Drive(#[from] DriveError),
}
