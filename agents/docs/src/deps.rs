//! Dependencies of the nodes: models, scanned trees, agents and prompts. None of them is part of the state.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use archie_agent::prompts::PromptFiles;
use archie_agent::{AgentDeps, ModelRegistry, ThreadFolders};
use superstep::{NodeError, ThreadId};
use superstep_agent::Spending;

use super::prompts::Prompts;
use super::scan::{Progress, Scans, Tree};
use super::slots::ModelSlots;
use super::state::{AgentContext, DocsState};
use super::workflow::BaseAgentWorkflow;
use super::{NAME, pages, writers};

/// Dependencies of the nodes.
#[derive(Debug)]
pub struct DocsDeps {
    /// Models by name.
    pub models: Arc<ModelRegistry>,
    /// Trees that this process has scanned.
    pub scans: Arc<Scans>,
    /// All agents, in the order of the index.
    pub agents: Vec<Arc<dyn BaseAgentWorkflow>>,
    /// Prompts that all agents share.
    pub prompts: Prompts,
    /// How many calls each model gets at a time.
    pub slots: Arc<ModelSlots>,
    /// Spending limits of a thread. Absent if there are none.
    pub spending: Option<Spending>,
    /// Model for the tasks of a server's callers.
    pub model: Option<String>,
    /// Folders with the files of threads. Absent if the host stores none.
    pub thread_folders: Option<ThreadFolders>,
}

impl DocsDeps {
    /// Creates the dependencies with all built-in agents and the scans of this process.
    pub fn new(deps: &AgentDeps) -> anyhow::Result<Self> {
        Ok(Self {
            models: deps.models.clone(),
            scans: Scans::here(),
            agents: writers::all(),
            prompts: Prompts::of(NAME, deps)?,
            slots: Arc::default(),
            spending: deps.spending.clone(),
            model: deps.model.clone(),
            thread_folders: deps.thread_folders.clone(),
        })
    }

    /// Returns the agent with this name.
    pub fn agent(&self, name: &str) -> anyhow::Result<&Arc<dyn BaseAgentWorkflow>> {
        let found = self
            .agents
            .iter()
            .find(|agent| agent.get_agent_name() == name);
        found.with_context(|| {
            let names: Vec<_> = self
                .agents
                .iter()
                .map(|agent| agent.get_agent_name())
                .collect();
            format!(
                "there is no documentation agent `{name}`; there are {}",
                names.join(", ")
            )
        })
    }

    pub(super) fn agent_of(&self, name: &str) -> Result<Arc<dyn BaseAgentWorkflow>, NodeError> {
        self.agent(name)
            .cloned()
            .map_err(|error| NodeError::fatal(error.to_string()))
    }

    /// Returns the tree that an agent describes. Scans it if this process has not, for example after a crash.
    pub(super) async fn tree(
        &self,
        thread: &ThreadId,
        context: &AgentContext,
    ) -> Result<Arc<Tree>, NodeError> {
        let root = self.root(thread, &context.root).map_err(fatal)?;
        let progress = Arc::new(Progress::default());
        let tree = self.scans.tree(&root, &context.options, &progress).await;
        tree.map_err(NodeError::fatal)
    }

    /// Returns the path of the folder that a state names as its root. The folder may be among the files of the thread.
    pub(super) fn root(&self, thread: &ThreadId, root: &str) -> anyhow::Result<String> {
        let path = ThreadFolders::resolve(self.thread_folders.as_ref(), thread, root)?;
        Ok(path.display().to_string())
    }

    /// Writes the pages of a run: into its output folder, or into the results of the thread if a caller of a server asked for them.
    /// Writing them again changes nothing. Returns the folder and the paths of the files.
    pub(super) async fn save(
        &self,
        thread: &ThreadId,
        state: &DocsState,
    ) -> anyhow::Result<(PathBuf, Vec<PathBuf>)> {
        let root = self.root(thread, &state.root)?;
        let output = ThreadFolders::resolve(self.thread_folders.as_ref(), thread, &state.output)?;
        let progress = Arc::new(Progress::default());
        let tree = self.scans.tree(&root, &state.options, &progress).await?;
        let written = pages::write(state, &tree, Path::new(&root), &output)?;
        // The next run must scan the tree again.
        self.scans.forget(&root, &state.options);
        Ok((output, written))
    }
}

/// A failure that trying again does not change.
pub(super) fn fatal(error: anyhow::Error) -> NodeError {
    NodeError::fatal(error.to_string())
}
