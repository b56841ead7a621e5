//! Engines: clusters that execute requests.

use std::sync::Arc;

use superstep_core::checkpoint::BoxFuture;
use superstep_core::driver::QueuedRequest;
use superstep_core::graph::Definition;
use superstep_core::run::RunReport;
use superstep_core::{RunId, ThreadId};

use crate::drive::DriveError;

/// A cluster whose workers have the same graphs and the same checkpointer.
///
/// With an engine, a [`Runtime`](crate::Runtime) only sends requests and reads what came of them; see
/// [`RuntimeBuilder::engine`](crate::RuntimeBuilder::engine).
pub trait Engine: Send + Sync + 'static {
    /// Called with every graph that the runtime registers. For an engine whose workers are in this process; others have their
    /// own.
    fn register(&self, graph: &Arc<Definition>) {
        let _ = graph;
    }

    /// Executes a request, once however often it is repeated under this id, and returns when it is done.
    fn execute<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        request: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<RunReport, DriveError>>;

    /// Sends a request that is executed when its turn comes, and returns once it is accepted.
    fn send<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        request: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<(), DriveError>>;
}
