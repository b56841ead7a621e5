//! Runs in the background: the caller learns that a request is stored, and the run goes on without it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use superstep_core::checkpoint::{Answer, BoxFuture, InterruptQuery, Page};
use superstep_core::{InterruptId, RunId, State};
use tokio::sync::oneshot;

use crate::drive::{DriveError, new_run_id};
use crate::thread::{RunResult, Thread};

/// A run in the background. Dropping this does not stop the run.
pub struct RunHandle<S> {
    result: BoxFuture<'static, Result<RunResult<S>, DriveError>>,
}

/// What must be in the store before the caller is told.
enum AwaitedWrite {
    /// A run with this id.
    Start(RunId),
    Answer(Answer),
}

impl<S: State> Thread<S> {
    /// Starts a run and returns once its input is stored. The run goes on in the background of this process until it stops or the
    /// runtime is [drained](crate::Runtime::drain): a request handler can answer at once, and a client that leaves does not stop
    /// the run. A refused start, for example of a busy thread, is an error here.
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
    /// let handle = thread.begin(RefundUpdate::default().cents(900)).await?;
    /// // The input is stored: a request handler can reply now, or wait.
    /// let stopped = handle.finish().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn begin(&self, input: S::Update) -> Result<RunHandle<S>, DriveError> {
        let run = self.options().run.unwrap_or_else(new_run_id);
        let thread = self.clone().with_options(self.options().clone().run(run));
        let start = async move { thread.start(input).await };
        self.in_background(start, AwaitedWrite::Start(run)).await
    }

    /// Answers an interrupt, given by its id or the text of its id, and returns once the answer is stored. The run that
    /// continues with it goes on in the background, as [`Thread::begin`] says, or in the process that runs the thread.
    pub async fn begin_answer<I>(
        &self,
        interrupt: I,
        answer: impl Serialize,
    ) -> Result<RunHandle<S>, DriveError>
    where
        I: TryInto<InterruptId>,
        DriveError: From<I::Error>,
    {
        let answer = self.checked_answer(interrupt.try_into()?, answer).await?;
        let (thread, given) = (self.clone(), answer.clone());
        let run = async move { thread.answer_to_the_end(given).await };
        self.in_background(run, AwaitedWrite::Answer(answer)).await
    }

    async fn in_background(
        &self,
        run: impl Future<Output = Result<RunResult<S>, DriveError>> + Send + 'static,
        awaited: AwaitedWrite,
    ) -> Result<RunHandle<S>, DriveError> {
        let (sender, mut result) = oneshot::channel();
        self.runtime().local.in_background(async move {
            // Nobody may be left to receive it.
            let _ = sender.send(run.await);
        });
        let mut wait = FIRST_WAIT;
        loop {
            tokio::select! {
                ended = &mut result => {
                    let ended = received(ended)?;
                    let result = Box::pin(async { Ok(ended) });
                    return Ok(RunHandle { result });
                }
                () = tokio::time::sleep(wait) => {
                    if self.is_stored(&awaited).await? {
                        let result = Box::pin(async { received(result.await) });
                        return Ok(RunHandle { result });
                    }
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }

    /// Whether the store has what this request writes, and not what another caller wrote in its place.
    async fn is_stored(&self, awaited: &AwaitedWrite) -> Result<bool, DriveError> {
        match awaited {
            AwaitedWrite::Start(run) => {
                let state = self.state().await?;
                Ok(state.is_some_and(|state| state.run.run == *run))
            }
            AwaitedWrite::Answer(answer) => {
                let mut query = InterruptQuery {
                    tenant: self.id().tenant().to_owned(),
                    thread: Some(self.id().clone()),
                    page: Page {
                        limit: INTERRUPTS_PAGE,
                        offset: 0,
                    },
                    ..InterruptQuery::default()
                };
                loop {
                    let rows = self.store().interrupts(&query).await?;
                    if let Some(row) = rows.iter().find(|row| row.id == answer.interrupt) {
                        return Ok(row.holds(answer));
                    }
                    if rows.len() < INTERRUPTS_PAGE as usize {
                        return Ok(false);
                    }
                    query.page.offset += INTERRUPTS_PAGE;
                }
            }
        }
    }
}

/// The task ended without a result if the tokio runtime is gone, and with it the run.
fn received<S>(
    result: Result<Result<RunResult<S>, DriveError>, oneshot::error::RecvError>,
) -> Result<RunResult<S>, DriveError> {
    result.map_err(|_| DriveError::Draining)?
}

impl<S: State> RunHandle<S> {
    /// Returns how the run stopped, when it has.
    pub async fn finish(self) -> Result<RunResult<S>, DriveError> {
        self.result.await
    }
}

impl<S> fmt::Debug for RunHandle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").finish_non_exhaustive()
    }
}

const FIRST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_millis(20);
/// Number of interrupts that are read at once.
const INTERRUPTS_PAGE: u32 = 1_000;
