//! An agent as a host holds it, and what it is built from.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use superstep::checkpoint::Metadata;
use superstep::graph::Drawing;
use superstep::store::Store;
use superstep::{AnyGraph, AnyThread, DriveError, Runtime};
use superstep_agent::Spending;

use crate::models::ModelRegistry;
use crate::ui::AgentUi;

/// Builds an agent.
pub type AgentFactory = fn(&AgentDeps) -> anyhow::Result<Arc<Agent>>;

/// What a host gives to the agents that it builds.
#[derive(Clone)]
pub struct AgentDeps {
    /// The host's own folder, where an agent may keep files that belong to its threads.
    pub data_folder: PathBuf,
    /// A folder with the person's own prompts, `AGENT/NAME.md`.
    pub prompts_folder: Option<PathBuf>,
    /// The model of threads that name none.
    pub model: Option<String>,
    /// The models, by name.
    pub models: Arc<ModelRegistry>,
    /// Long-term memory, shared by all threads.
    pub store: Arc<dyn Store>,
    /// What a thread may spend. None: there is no limit.
    pub spending: Option<Spending>,
}

impl fmt::Debug for AgentDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentDeps")
            .field("data_folder", &self.data_folder)
            .field("prompts_folder", &self.prompts_folder)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// A graph, a line about it, and how a person uses it.
pub struct Agent {
    graph: Box<dyn AnyGraph>,
    description: &'static str,
    ui: Box<dyn AgentUi>,
}

impl Agent {
    /// Builds an agent from its graph.
    pub fn new(
        graph: impl AnyGraph + 'static,
        description: &'static str,
        ui: impl AgentUi + 'static,
    ) -> Self {
        Self {
            graph: Box::new(graph),
            description,
            ui: Box::new(ui),
        }
    }

    /// Returns its name, which is its graph's.
    pub fn name(&self) -> &str {
        self.graph.name()
    }

    /// Returns what it is for, in a line.
    pub fn description(&self) -> &'static str {
        self.description
    }

    /// Returns how a person uses it.
    pub fn ui(&self) -> &dyn AgentUi {
        &*self.ui
    }

    /// Returns its nodes and edges, to be drawn.
    pub fn drawing(&self) -> Drawing {
        self.graph.drawing()
    }

    /// Makes its graph known to a runtime, which then recovers its threads.
    pub fn register(&self, runtime: &Runtime) {
        runtime.register_definition(self.graph.definition());
    }

    /// Returns one of its threads. `metadata` is stored when the thread starts.
    pub fn thread(
        &self,
        runtime: &Runtime,
        id: &str,
        metadata: Metadata,
    ) -> Result<Arc<dyn AnyThread>, DriveError> {
        self.graph.thread(runtime, id, metadata)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Agent").field(&self.name()).finish()
    }
}
