//! Tasks of a server's callers: the folder and the pages are files of the thread, and the graph itself writes the pages.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use archie_agent::ThreadFolders;
use archie_agent::thread_folders::NO_FILES;
use superstep::{Command, Node, NodeCx, NodeError, ThreadId, View};

use super::deps::{DocsDeps, fatal};
use super::manifest::Manifest;
use super::pages;
use super::scan::ScanOptions;
use super::state::{AgentResult, AgentWorkflowConfig, DocsState, DocsStateUpdate, DocsTask};

/// Turns a caller's task into the settings of a run. The model and the folder of the pages are settings of the host.
pub(super) struct OpenTask {
    pub(super) deps: Arc<DocsDeps>,
}

/// Writes the pages into the files of the thread. After a crash it writes the same pages again.
pub(super) struct SavePages {
    pub(super) deps: Arc<DocsDeps>,
}

impl Node<DocsState> for OpenTask {
    async fn run(
        &self,
        state: View<DocsState>,
        cx: NodeCx,
    ) -> Result<Command<DocsState>, NodeError> {
        let task = state.task.clone().unwrap_or_default();
        let own = self.deps.model.as_deref().unwrap_or_default();
        let model = self.deps.models.name_in_run(own, &cx)?;
        let update = open(&self.deps, &task, &model, cx.thread()).map_err(fatal)?;
        Ok(update.into())
    }
}

impl Node<DocsState> for SavePages {
    async fn run(
        &self,
        state: View<DocsState>,
        cx: NodeCx,
    ) -> Result<Command<DocsState>, NodeError> {
        let mut state = DocsState::clone(&state);
        // The pages name the model that wrote them, which a fork may have changed.
        let model = self.deps.models.name_in_run(&state.model_name, &cx)?;
        state.model_name = model.into_owned();
        let saved = self.deps.save(cx.thread(), &state).await;
        saved.map_err(fatal)?;
        Ok(DocsStateUpdate::default().into())
    }
}

fn open(
    deps: &DocsDeps,
    task: &DocsTask,
    model: &str,
    thread: &ThreadId,
) -> anyhow::Result<DocsStateUpdate> {
    let folders = deps.thread_folders.as_ref().context(NO_FILES)?;
    folders.check_folder(thread, &task.folder)?;
    let first = task.folder.split('/').next();
    ensure!(
        first != Some(ThreadFolders::RESULTS_NAME),
        "the folder `{}` is for the pages; upload your files to another one",
        ThreadFolders::RESULTS_NAME
    );
    ensure!(
        !model.is_empty(),
        "no model is chosen; start the server with --model, or set ARCHIE_MODEL"
    );
    let mut wanted = Vec::new();
    for agent in &task.agents {
        let name = deps.agent(agent)?.get_agent_name().to_owned();
        // An agent that is named twice is paid for once.
        if !wanted.contains(&name) {
            wanted.push(name);
        }
    }
    if wanted.is_empty() {
        let all = deps.agents.iter().map(|agent| agent.get_agent_name());
        wanted = all.map(str::to_owned).collect();
    }
    let config = config(task)?;
    let root = format!("{}{}", ThreadFolders::ROOT, task.folder);
    // The files may be others than those of an earlier run.
    let options = ScanOptions::default();
    let path = deps.root(thread, &root)?;
    deps.scans.forget(&path, &options);
    let results = folders.open_results(thread)?;
    let pages = pages::open(Path::new(&path), results.path(), false)?;
    let made = Manifest::read(pages.as_ref())?;
    let times = wanted.iter();
    let times: BTreeMap<String, u64> = times
        .map(|agent| (agent.clone(), made.times(agent)))
        .collect();
    Ok(DocsStateUpdate::default()
        .task(None)
        .root(root)
        .output(ThreadFolders::RESULTS.to_owned())
        .model_name(model.to_owned())
        .options(options)
        .config(config)
        .thresholds(BTreeMap::<String, u32>::new())
        .times(times)
        .parallel(None)
        .wanted(wanted)
        .results(Vec::<AgentResult>::new())
        .report(None))
}

fn config(task: &DocsTask) -> anyhow::Result<AgentWorkflowConfig> {
    let usual = AgentWorkflowConfig::default();
    let max_iterations = task.max_iterations.unwrap_or(usual.max_iterations);
    ensure!(
        max_iterations <= ITERATIONS_MAX,
        "`maxIterations` of the task is over {ITERATIONS_MAX}"
    );
    let clarity_threshold = task.clarity_threshold.unwrap_or(usual.clarity_threshold);
    ensure!(
        clarity_threshold <= 100,
        "`clarityThreshold` of the task is over 100"
    );
    Ok(AgentWorkflowConfig {
        max_iterations,
        clarity_threshold,
        gate: task.gate,
        ..usual
    })
}

/// Highest number of refinements that a caller can ask for.
const ITERATIONS_MAX: u32 = 10;
