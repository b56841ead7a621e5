//! Engines: clusters that execute requests.

use std::sync::Arc;

use superstep_core::checkpoint::BoxFuture;
use superstep_core::driver::QueuedRequest;
use superstep_core::graph::Definition;
use superstep_core::run::RunReport;
use superstep_core::{RunId, ThreadId};

use crate::drive::DriveError;

/// A cluster whose workers have the same graphs, checkpointer and long-term store.
///
/// With an engine, a [`Runtime`](crate::Runtime) only sends requests and reads their results; see
/// [`RuntimeBuilder::engine`](crate::RuntimeBuilder::engine).
pub trait Engine: Send + Sync + 'static {
    /// Registers a graph. The runtime calls this for every graph it registers. Only an engine whose workers are in this process
    /// needs it; other workers register their own graphs. Default: does nothing.
    fn register(&self, graph: &Arc<Definition>) {
        let _ = graph;
    }

    /// Executes a request and returns when it is complete. A request that is repeated under the same id is executed once.
    fn execute<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        request: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<RunReport, DriveError>>;

    /// Sends a request for execution when its turn comes, and returns once the engine has accepted it.
    fn send<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        request: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<(), DriveError>>;
}
