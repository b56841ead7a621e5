//! Dependencies of the nodes: models, scanned trees, agents and prompts. None of them is part of the state.

use std::sync::Arc;

use anyhow::Context;
use archie_agent::prompts::PromptFiles;
use archie_agent::{AgentDeps, ModelRegistry};
use superstep::NodeError;
use superstep_agent::Spending;

use super::prompts::Prompts;
use super::scan::{Progress, Scans, Tree};
use super::slots::ModelSlots;
use super::state::AgentContext;
use super::workflow::BaseAgentWorkflow;
use super::{NAME, writers};

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
    pub(super) async fn tree(&self, context: &AgentContext) -> Result<Arc<Tree>, NodeError> {
        let progress = Arc::new(Progress::default());
        let tree = self
            .scans
            .tree(&context.root, &context.options, &progress)
            .await;
        tree.map_err(NodeError::fatal)
    }
}
