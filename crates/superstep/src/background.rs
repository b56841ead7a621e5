//! Runs in the background: the caller learns that a request is stored, and the run goes on without it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use superstep_core::{InterruptId, State};
use tokio::sync::oneshot;

use crate::drive::DriveError;
use crate::thread::{RunResult, Thread};

/// A run in the background. Dropping this does not stop the run.
pub struct RunHandle<S> {
    result: oneshot::Receiver<Result<RunResult<S>, DriveError>>,
}

impl<S: State> Thread<S> {
    /// Starts a run and returns once its input is stored. The run goes on in the background of this process until it
    /// stops or the runtime is [drained](crate::Runtime::drain): a request handler can answer at once, and a client that leaves
    /// does not stop the run. A refused start, for
    /// example of a busy thread, is an error here.
    pub async fn begin(&self, input: S::Update) -> Result<RunHandle<S>, DriveError> {
        let thread = self.clone();
        self.in_background(async move { thread.start(input).await })
            .await
    }

    /// Answers an interrupt and returns once the answer is stored. The run that it resumes goes on in the background, as
    /// [`Thread::begin`] says.
    pub async fn begin_answer(
        &self,
        interrupt: InterruptId,
        answer: impl Serialize + Send + 'static,
    ) -> Result<RunHandle<S>, DriveError> {
        let thread = self.clone();
        self.in_background(async move { thread.answer_to_the_end(interrupt, answer).await })
            .await
    }

    async fn in_background(
        &self,
        run: impl Future<Output = Result<RunResult<S>, DriveError>> + Send + 'static,
    ) -> Result<RunHandle<S>, DriveError> {
        let before = self.epoch().await?;
        let (sender, mut result) = oneshot::channel();
        self.runtime().local.in_background(async move {
            // Nobody may be left to receive it.
            let _ = sender.send(run.await);
        });
        let mut wait = FIRST_WAIT;
        loop {
            tokio::select! {
                ended = &mut result => {
                    let ended = ended.map_err(|_| DriveError::Draining)?;
                    let (sender, result) = oneshot::channel();
                    // The receiver is in this function.
                    let _ = sender.send(Ok(ended?));
                    return Ok(RunHandle { result });
                }
                () = tokio::time::sleep(wait) => {
                    // A claim raises the epoch: the thread is this request's, and what it brought is stored.
                    if self.epoch().await? != before {
                        return Ok(RunHandle { result });
                    }
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }
}

impl<S: State> RunHandle<S> {
    /// Returns how the run stopped, when it has.
    pub async fn finish(self) -> Result<RunResult<S>, DriveError> {
        // The task ended without a result: the tokio runtime is gone, and with it the run.
        self.result.await.map_err(|_| DriveError::Draining)?
    }
}

impl<S> fmt::Debug for RunHandle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").finish_non_exhaustive()
    }
}

const FIRST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_millis(20);
