//! What the nodes have at hand: the models, the trees, the agents and their prompts. None of it is in the state.

use std::sync::Arc;

use anyhow::Context;
use archie_agent::prompts::PromptFiles;
use archie_agent::{AgentDeps, ModelRegistry};
use superstep::NodeError;
use superstep_agent::Spending;

use super::prompts::Prompts;
use super::scan::{Progress, Scans, Tree};
use super::state::AgentContext;
use super::workflow::BaseAgentWorkflow;
use super::{NAME, writers};

/// What the nodes have at hand.
#[derive(Debug)]
pub struct DocsDeps {
    /// Models by name.
    pub models: Arc<ModelRegistry>,
    /// Trees that were scanned.
    pub scans: Arc<Scans>,
    /// The agents, in the order of the index.
    pub agents: Vec<Arc<dyn BaseAgentWorkflow>>,
    /// The prompts that are the same for all.
    pub prompts: Prompts,
    /// What a thread may spend; none if there is no limit.
    pub spending: Option<Spending>,
}

impl DocsDeps {
    /// Builds it with all the writers, over the folders of this machine.
    pub fn new(deps: &AgentDeps) -> anyhow::Result<Self> {
        Ok(Self {
            models: deps.models.clone(),
            scans: Scans::here(),
            agents: writers::all(),
            prompts: Prompts::of(NAME, deps)?,
            spending: deps.spending.clone(),
        })
    }

    /// The agent of this name.
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

    /// The tree that an agent works on: the one that was scanned, or scanned again after a crash.
    pub(super) async fn tree(&self, context: &AgentContext) -> Result<Arc<Tree>, NodeError> {
        let progress = Arc::new(Progress::default());
        let tree = self
            .scans
            .tree(&context.root, &context.options, &progress)
            .await;
        tree.map_err(NodeError::fatal)
    }
}
