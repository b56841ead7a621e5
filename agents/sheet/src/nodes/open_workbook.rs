//! The node that begins an analysis for a caller of a server: it opens the workbook among the files of the thread.

use std::sync::Arc;

use archie_agent::thread_folders::NO_FILES;
use archie_agent::{ModelRegistry, ThreadFolders};
use superstep::{Command, Node, NodeCx, NodeError, View};

use super::super::book::guard;
use super::super::sandbox::{Kind, Limits};
use super::super::service::{self, AnalysisRequest, OpenedWorkbook};
use super::super::snapshots::SnapshotStore;
use super::super::state::{Actions, GraphState, InformerSpec, SheetTask};

/// Opens the workbook of a caller's task. The model, the sandbox and the output folder are settings of the host.
pub(in super::super) struct OpenWorkbookNode {
    pub(in super::super) folders: Option<ThreadFolders>,
    pub(in super::super) snapshots: SnapshotStore,
    /// Default model of the host.
    pub(in super::super) model: Option<String>,
    pub(in super::super) models: Arc<ModelRegistry>,
}

impl Node<GraphState> for OpenWorkbookNode {
    async fn run(
        &self,
        state: View<GraphState>,
        cx: NodeCx,
    ) -> Result<Command<GraphState>, NodeError> {
        let task = state.task.clone().unwrap_or_default();
        // What was done so far is about another workbook.
        if !state.problem.workbook.hash.is_empty() {
            let why = "this thread has its workbook already; create a thread for each workbook";
            return Err(NodeError::fatal(why));
        }
        let order = self.order(&task, &cx)?;
        let folders = self.folders.as_ref();
        let folders = folders.ok_or_else(|| NodeError::fatal(NO_FILES))?;
        let (folders, snapshots) = (folders.clone(), self.snapshots.clone());
        let (thread, name) = (cx.thread().clone(), task.workbook.clone());
        // Parsing a large workbook takes seconds, and other runs share the thread of this one.
        let opened = tokio::task::spawn_blocking(move || -> anyhow::Result<OpenedWorkbook> {
            let bytes = folders.read(&thread, &name, guard::PACKED_MAX)?;
            Ok(service::open_bytes(&name, &bytes, &snapshots, &thread)?)
        });
        let opened = opened.await.map_err(NodeError::fatal)?;
        let opened = opened.map_err(|error| NodeError::fatal(error.to_string()))?;
        let update = service::initial_state(&order, &opened, cx.thread());
        Ok(update.task(None).into())
    }
}

impl OpenWorkbookNode {
    fn order(&self, task: &SheetTask, cx: &NodeCx) -> Result<AnalysisRequest, NodeError> {
        if task.instruction.trim().is_empty() {
            return Err(NodeError::fatal("the task has no `instruction`"));
        }
        let max_steps = task.max_steps.unwrap_or(STEPS);
        if !(1..=STEPS_MAX).contains(&max_steps) {
            let why = format!("`max_steps` of the task is not between 1 and {STEPS_MAX}");
            return Err(NodeError::fatal(why));
        }
        let own = self.model.as_deref().unwrap_or_default();
        let model = self.models.name_in_run(own, cx)?.into_owned();
        if model.is_empty() {
            return Err(NodeError::fatal(
                "no model is chosen; start the server with --model, or set ARCHIE_MODEL",
            ));
        }
        let informer = InformerSpec {
            model: model.clone(),
            ..InformerSpec::default()
        };
        Ok(AnalysisRequest {
            instruction: task.instruction.clone(),
            context: task.context.clone(),
            output_dir: ThreadFolders::RESULTS.to_owned(),
            model,
            actions: Actions::default(),
            informer: task.with_informer.then_some(informer),
            max_steps,
            sandbox: Kind::Bubblewrap,
            limits: Limits::default(),
            recipe: None,
        })
    }
}

/// Default number of planner steps.
const STEPS: u32 = 10;
/// Highest number of planner steps that a caller can ask for.
const STEPS_MAX: u32 = 50;
