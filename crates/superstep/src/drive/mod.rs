//! Drivers: they execute the requests to a runtime's threads.

mod error;
mod leases;
mod local;
mod remote;
mod segment;

use std::fmt;
use std::sync::Arc;

use superstep_core::checkpoint::BoxFuture;
use superstep_core::driver::ThreadRequest;
use superstep_core::graph::Definition;
use superstep_core::run::{RunOptions, RunReport};
use superstep_core::{Epoch, Outcome, Run, RunId, Seq, ThreadId};

pub use error::DriveError;
pub use local::LocalDriver;
pub(crate) use local::new_run_id;
pub use remote::RemoteDriver;

/// Executes requests to threads: in this process ([`LocalDriver`](crate::LocalDriver)) or on the workers of a cluster
/// ([`RemoteDriver`](crate::RemoteDriver)).
///
/// Object-safe: a host of many graphs can hold an `Arc<dyn Driver>` without knowing which of the two it is.
pub trait Driver: Send + Sync + 'static {
    /// Registers a graph under its name, so that its threads can be resumed without its state type.
    fn register(&self, graph: &Arc<Definition>);

    /// Executes a request and returns when its run has stopped, or at once if the request does not run the thread.
    ///
    /// Returns `None` if the request delivers answers to a running thread: the process that runs it continues with them. A
    /// request whose options name a run is executed once, however often it is repeated; a change without a run is made each
    /// time.
    fn execute<'a>(
        &'a self,
        thread: &'a ThreadId,
        graph: &'a Arc<Definition>,
        request: ThreadRequest,
        options: &'a RunOptions,
    ) -> BoxFuture<'a, Result<Option<RequestEnd>, DriveError>>;

    /// Recovers a run whose owner had this epoch, as [`ThreadRequest::Recover`] does. [`OpenError::Busy`] if another process
    /// claimed the thread since.
    ///
    /// [`OpenError::Busy`]: superstep_core::error::OpenError::Busy
    fn recover<'a>(
        &'a self,
        thread: &'a ThreadId,
        graph: &'a Arc<Definition>,
        owner: Epoch,
        options: &'a RunOptions,
    ) -> BoxFuture<'a, Result<Option<RequestEnd>, DriveError>>;

    /// Cancels the run of a thread and returns when it has stopped. If another process runs the thread, that process is asked
    /// to cancel.
    fn cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<(), DriveError>>;

    /// Whether other processes execute the requests. Then a process that dies takes no run with it. Default: false.
    fn is_remote(&self) -> bool {
        false
    }
}

/// Where a request left its thread.
pub struct RequestEnd {
    /// Id of the run, or of the request if it changed the thread without running it.
    pub run: RunId,
    /// The newest entry of the thread.
    pub seq: Seq,
    /// The run itself if this process drove it, so that its state need not be read from the store.
    pub(crate) driven: Option<(Outcome, Box<Run>)>,
}

impl RequestEnd {
    pub(crate) fn driven(outcome: Outcome, run: Box<Run>) -> Self {
        Self {
            run: run.id(),
            seq: run.seq(),
            driven: Some((outcome, run)),
        }
    }
}

impl From<RunReport> for RequestEnd {
    fn from(report: RunReport) -> Self {
        Self {
            run: report.run,
            seq: report.seq,
            driven: None,
        }
    }
}

impl fmt::Debug for RequestEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestEnd")
            .field("run", &self.run)
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}
