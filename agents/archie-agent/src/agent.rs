//! [`Agent`], as a host holds it, and the dependencies it is built from.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use superstep::checkpoint::Metadata;
use superstep::graph::{Definition, Drawing};
use superstep::store::Store;
use superstep::{AnyGraph, AnyThread, DriveError, Runtime};
use superstep_agent::{Spending, Tool};

use crate::mcp::McpServers;
use crate::models::ModelRegistry;
use crate::thread_folders::ThreadFolders;
use crate::ui::AgentUi;

/// Function that builds an agent from the host's dependencies. A host has one per agent.
pub type AgentFactory = fn(&AgentDeps) -> anyhow::Result<Arc<Agent>>;

/// Dependencies that a host passes to the agents it builds.
#[derive(Clone)]
pub struct AgentDeps {
    /// The host's data folder, where an agent may store files that belong to its threads.
    pub data_folder: PathBuf,
    /// Folder with prompts that override the built-in ones, laid out as `AGENT/NAME.md`. `None`: only the built-in prompts are
    /// used.
    pub prompts_folder: Option<PathBuf>,
    /// Default model, for threads that do not name one.
    pub model: Option<String>,
    /// Opens models by name and caches them.
    pub models: Arc<ModelRegistry>,
    /// MCP servers that the person configured.
    pub mcp: Arc<McpServers>,
    /// Long-term memory, shared by all threads.
    pub store: Arc<dyn Store>,
    /// Spending limit of a thread. `None`: no limit.
    pub spending: Option<Spending>,
    /// Folders with the files that a server stores for threads. `None`: the host stores none.
    pub thread_folders: Option<ThreadFolders>,
    /// Tool called [`FETCH_PAGE`], which reads pages of the web. `None`: the person did not turn it on.
    pub web: Option<Tool>,
}

/// Name of the tool that reads pages of the web.
pub const FETCH_PAGE: &str = "fetch_page";

impl fmt::Debug for AgentDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentDeps")
            .field("data_folder", &self.data_folder)
            .field("prompts_folder", &self.prompts_folder)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// A graph with a one-line description and a user interface.
pub struct Agent {
    graph: Box<dyn AnyGraph>,
    description: &'static str,
    ui: Box<dyn AgentUi>,
}

impl Agent {
    /// Creates an agent. `description` is one line, as lists of agents show it.
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

    /// Returns the name of the agent, which is the name of its graph.
    pub fn name(&self) -> &str {
        self.graph.name()
    }

    /// Returns the one-line description.
    pub fn description(&self) -> &'static str {
        self.description
    }

    /// Returns the agent's user interface.
    pub fn ui(&self) -> &dyn AgentUi {
        &*self.ui
    }

    /// Returns the nodes and edges of the graph, for drawing.
    pub fn drawing(&self) -> Drawing {
        self.graph.drawing()
    }

    /// Returns the graph without its state type, for a server.
    pub fn definition(&self) -> &Arc<Definition> {
        self.graph.definition()
    }

    /// Registers the graph with a runtime, so that the runtime can recover the agent's threads.
    pub fn register(&self, runtime: &Runtime) {
        runtime.register_definition(self.graph.definition());
    }

    /// Returns the thread with this id. `metadata` is stored when the thread starts.
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
