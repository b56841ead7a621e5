//! The remote driver: the workers of a cluster execute the requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use superstep_core::checkpoint::{Answer, BoxFuture, Status};
use superstep_core::driver::{QueuedRequest, ThreadRequest};
use superstep_core::graph::Definition;
use superstep_core::run::RunOptions;
use superstep_core::{Epoch, RunId, ThreadId};

use crate::drive::local::{LocalDriver, new_run_id};
use crate::drive::{DriveError, Driver, RequestEnd};
use crate::engine::Engine;

/// Sends requests to an [`Engine`], whose workers execute them.
pub struct RemoteDriver {
    engine: Arc<dyn Engine>,
    /// The driver of this process: it has the graphs, and the checkpointer that the workers share.
    local: LocalDriver,
}

/// Interval at which a cancel checks whether the run on a worker has stopped.
const CANCEL_POLL: Duration = Duration::from_millis(200);

impl RemoteDriver {
    pub(crate) fn new(engine: Arc<dyn Engine>, local: LocalDriver) -> Self {
        Self { engine, local }
    }

    async fn execute(
        &self,
        thread: &ThreadId,
        graph: &Definition,
        request: ThreadRequest,
        options: &RunOptions,
    ) -> Result<Option<RequestEnd>, DriveError> {
        let id = options.run.unwrap_or_else(new_run_id);
        // A write has to wait for its turn, and the answers that come with it too.
        let answers = match request.is_answer() {
            true => request.answers().to_vec(),
            false => Vec::new(),
        };
        let request = QueuedRequest::new(graph.name(), request, options)?;
        if !answers.is_empty() && self.is_running(thread).await? {
            self.deliver(thread, id, &request, &answers).await?;
            return Ok(None);
        }
        let report = self.engine.execute(thread, id, &request).await?;
        Ok(Some(report.into()))
    }

    /// Stores answers to a running thread at once: its owner applies them before the request's turn comes. The request is sent
    /// as well, so that the thread resumes if its owner stops before it reads the answers.
    async fn deliver(
        &self,
        thread: &ThreadId,
        id: RunId,
        request: &QueuedRequest,
        answers: &[Answer],
    ) -> Result<(), DriveError> {
        self.engine.send(thread, id, request).await?;
        Ok(self.local.store().answer(thread, answers).await?)
    }

    async fn is_running(&self, thread: &ThreadId) -> Result<bool, DriveError> {
        let glance = self.local.store().glance(thread, None).await?;
        Ok(glance.is_some_and(|glance| glance.status == Status::Running))
    }

    /// Requests a cancel and waits for the stop. The worker checks for the request while it runs the thread. A worker that
    /// claims the thread clears it, so it is made again.
    async fn cancel(&self, thread: &ThreadId) -> Result<(), DriveError> {
        let store = self.local.store();
        loop {
            match store.glance(thread, None).await? {
                Some(glance) if glance.status == Status::Running => {
                    if !glance.cancel {
                        store.request_cancel(thread).await?;
                    }
                    tokio::time::sleep(CANCEL_POLL).await;
                }
                _ => return Ok(()),
            }
        }
    }
}

impl Driver for RemoteDriver {
    fn register(&self, graph: &Arc<Definition>) {
        self.engine.register(graph);
        self.local.register(graph);
    }

    fn execute<'a>(
        &'a self,
        thread: &'a ThreadId,
        graph: &'a Arc<Definition>,
        request: ThreadRequest,
        options: &'a RunOptions,
    ) -> BoxFuture<'a, Result<Option<RequestEnd>, DriveError>> {
        Box::pin(self.execute(thread, graph, request, options))
    }

    /// The workers of a cluster take turns with a thread, so the epoch makes no difference.
    fn recover<'a>(
        &'a self,
        thread: &'a ThreadId,
        graph: &'a Arc<Definition>,
        _owner: Epoch,
        options: &'a RunOptions,
    ) -> BoxFuture<'a, Result<Option<RequestEnd>, DriveError>> {
        Box::pin(self.execute(thread, graph, ThreadRequest::Recover, options))
    }

    fn cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<(), DriveError>> {
        Box::pin(self.cancel(thread))
    }

    fn is_remote(&self) -> bool {
        true
    }
}

impl fmt::Debug for RemoteDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteDriver").finish_non_exhaustive()
    }
}
