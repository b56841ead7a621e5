//! The seams between the machine, its drivers and those who use a driver.

mod request;

pub use request::{QueuedRequest, RequestQueue, RequestRow, ThreadRequest};

use crate::checkpoint::{BoxFuture, CheckpointResult, RecordWrite};
use crate::ids::{Epoch, FramePath, NodeName, TaskId, Timestamp};
use crate::value::Value;

/// The small door through which a running node reaches its driver.
pub trait Door: Send + Sync {
    /// Stores a record unless there is one under its key, and gives what is stored.
    fn record(&self, write: RecordWrite) -> BoxFuture<'static, CheckpointResult<Vec<u8>>>;

    /// Shows an event to those who watch right now.
    fn emit(&self, event: LiveEvent);
}

/// Something a node showed while it ran.
///
/// A task may be run more than once: retried, recovered after a crash, resumed after an answer. Each such go shows
/// everything again, and what an earlier one showed is void. [`Showing`](crate::run::Showing) is that rule.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveEvent {
    /// Its graph, empty for the root.
    pub frame: FramePath,
    /// Its node.
    pub node: NodeName,
    /// Its task.
    pub task: TaskId,
    /// The superstep of its graph.
    pub step: u64,
    /// Which attempt, counted from 1.
    pub attempt: u32,
    /// Under whose claim of the thread it ran.
    pub epoch: Epoch,
    /// Which go at the attempt: a number that no other go has, with no order.
    pub go: u64,
    /// Its place among what the go showed, from 0. A gap says that some of it was lost on the way.
    pub index: u64,
    /// Whether it will also stand in the log when the superstep ends.
    pub stored: bool,
    /// What was shown.
    pub payload: Value,
}

/// Keeps results of nodes, for those that said they may be used again.
pub trait NodeCache: Send + Sync + 'static {
    /// The bytes under a key, unless they have expired.
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Vec<u8>>>>;

    /// Keeps bytes under a key.
    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: Vec<u8>,
        expires: Option<Timestamp>,
    ) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Forgets every key that begins with this.
    fn clear<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, CheckpointResult<()>>;
}
