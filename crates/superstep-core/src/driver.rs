//! The interfaces between the state machine, its drivers and the users of a driver.

mod request;

pub use request::{QueuedRequest, RequestQueue, RequestRow, ThreadRequest};

pub use crate::run::ThreadEdit;

use std::sync::Arc;

use crate::checkpoint::{BoxFuture, CheckpointResult, RecordWrite};
#[cfg(doc)]
use crate::graph::CacheKey;
use crate::ids::{Epoch, FramePath, NodeName, TaskId, Timestamp};
use crate::store::Store;
use crate::value::Value;

/// The node host: the small interface through which a running node reaches its driver.
pub trait NodeHost: Send + Sync {
    /// Stores a record unless there is one under its key, and returns the stored one.
    fn record(&self, write: RecordWrite) -> BoxFuture<'static, CheckpointResult<Vec<u8>>>;

    /// Shows an event to the current watchers.
    fn emit(&self, event: LiveEvent);

    /// Returns the long-term store, and the time by the driver's clock. Default: there is no store.
    fn store(&self) -> Option<(Arc<dyn Store>, Timestamp)> {
        None
    }
}

/// An event that a node showed while it ran.
///
/// A task may execute more than once: it is retried, recovered after a crash, resumed after an answer. Each such execution
/// shows everything again, and what earlier ones showed is void. [`LiveFilter`](crate::run::LiveFilter) implements that rule.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveEvent {
    /// Path of the task's graph; empty for the root.
    pub frame: FramePath,
    /// Name of the task's node.
    pub node: NodeName,
    /// Id of the task that showed the event.
    pub task: TaskId,
    /// Number of the superstep, counted within the task's graph.
    pub step: u64,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
    /// Epoch of the thread under which the task ran.
    pub epoch: Epoch,
    /// Id of the execution: unique, without an order.
    pub go: u64,
    /// Position among the events of the execution, from 0. A gap means that events were lost in transit.
    pub index: u64,
    /// Whether the event will also be in the log when the superstep ends.
    pub stored: bool,
    /// What the node showed, as plain JSON.
    pub payload: Value,
}

/// Caches the results of nodes that have a cache key. See [`GraphBuilder::cache`](crate::GraphBuilder::cache).
pub trait NodeCache: Send + Sync + 'static {
    /// Returns the bytes under a key, unless they have expired.
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Vec<u8>>>>;

    /// Stores bytes under a key.
    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: Vec<u8>,
        expires: Option<Timestamp>,
    ) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Removes every key that starts with this prefix.
    fn clear<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Removes every key that belongs to the threads of a tenant ([`CacheKey::tenant_of`]), and returns how many.
    fn clear_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Removes at most `limit` keys that have expired, and returns how many.
    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>>;
}
