//! Engines: where the runs of a runtime are made, if not here.

use std::sync::Arc;

use superstep_core::checkpoint::BoxFuture;
use superstep_core::driver::Order;
use superstep_core::graph::Definition;
use superstep_core::{RunId, ThreadId};

use crate::drive_error::DriveError;
use superstep_core::run::RunReport;

/// Carries out orders somewhere else: a cluster whose workers have the same graphs and the same store.
///
/// With an engine, a [`Runtime`](crate::Runtime) only gives orders and reads what became of them; see
/// [`RuntimeBuilder::engine`](crate::RuntimeBuilder::engine).
pub trait Engine: Send + Sync + 'static {
    /// Told of every graph that the runtime is told of. For an engine whose workers are in this process; others have their own.
    fn register(&self, graph: &Arc<Definition>) {
        let _ = graph;
    }

    /// Carries out an order, once however often it is asked under this id, and says what became of it.
    fn carry_out<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        order: &'a Order,
    ) -> BoxFuture<'a, Result<RunReport, DriveError>>;

    /// Gives an order that is carried out when its turn comes, and does not wait for it.
    fn send<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        order: &'a Order,
    ) -> BoxFuture<'a, Result<(), DriveError>>;
}
