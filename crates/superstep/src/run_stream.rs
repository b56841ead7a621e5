//! A run and its events in one stream.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use superstep_core::checkpoint::BoxFuture;
use superstep_core::error::OpenError;
use superstep_core::run::StreamEventBody;
use superstep_core::{Seq, State};

use crate::drive::DriveError;
use crate::events::{Event, Events};
use crate::thread::{RunResult, Thread};

/// Events of one run, from its start to its stop. Also a [`Stream`].
///
/// The stream drives the run: nothing happens unless it is polled, and dropping it stops the run, which then waits for
/// [`Thread::recover`]. A run that an engine executes goes on. If the log cannot be read, the stream ends with that error, and
/// the run stops with it.
pub struct RunStream<S: State> {
    thread: Thread<S>,
    run: Option<BoxFuture<'static, Result<RunResult<S>, DriveError>>>,
    watching: Watching,
    result: Option<RunResult<S>>,
    /// Newest entry of the thread when the stream began.
    began: Seq,
    /// Sequence number of the last stop of a run that was delivered.
    stopped: Option<Seq>,
}

enum Watching {
    /// Looks up where the log ends, so that events of earlier runs are not delivered.
    Begins(BoxFuture<'static, Result<(Seq, Events), DriveError>>),
    Follows(Events),
    Ended,
}

impl<S: State> RunStream<S> {
    pub(crate) fn new(
        thread: &Thread<S>,
        run: impl Future<Output = Result<RunResult<S>, DriveError>> + Send + 'static,
    ) -> Self {
        let (thread, watched) = (thread.clone(), thread.clone());
        let begin = async move {
            let head = watched.head().await?;
            Ok((head, watched.events(head)))
        };
        Self {
            thread,
            run: Some(Box::pin(run)),
            watching: Watching::Begins(Box::pin(begin)),
            result: None,
            began: Seq(0),
            stopped: None,
        }
    }

    /// Returns the next event; `None` when the run has stopped and all of its events were returned. An error ends the stream.
    pub async fn next(&mut self) -> Option<Result<Event, DriveError>> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Skips the remaining events and returns how the run stopped.
    pub async fn finish(mut self) -> Result<RunResult<S>, DriveError> {
        while let Some(event) = self.next().await {
            event?;
        }
        match self.result {
            Some(result) => Ok(result),
            // The error that ended the stream was returned before. The run may have stopped all the same, but one that stopped
            // before this stream began is another.
            None => {
                let thread = self.thread.id().clone();
                let stored = self.thread.result().await?;
                let own = stored.filter(|result| result.seq > self.began);
                Ok(own.ok_or(OpenError::NothingToRun { thread })?)
            }
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, DriveError>>> {
        loop {
            match &mut self.watching {
                Watching::Ended => return Poll::Ready(None),
                Watching::Begins(begin) => match ready!(begin.as_mut().poll(cx)) {
                    Ok((head, events)) => {
                        self.began = head;
                        self.watching = Watching::Follows(events);
                    }
                    Err(error) => return self.fail(error),
                },
                // Events first: they are what was seen before the run stopped.
                Watching::Follows(events) => match events.poll_event(cx) {
                    Poll::Ready(Ok(event)) => return self.deliver(event),
                    Poll::Ready(Err(error)) => return self.fail(error),
                    Poll::Pending => match &mut self.run {
                        None => return Poll::Pending,
                        Some(run) => match ready!(run.as_mut().poll(cx)) {
                            Ok(result) => self.take_result(result),
                            Err(error) => return self.fail(error),
                        },
                    },
                },
            }
        }
    }

    fn take_result(&mut self, result: RunResult<S>) {
        self.run = None;
        // A repeated request with a run id may have been executed before this stream began.
        if result.seq <= self.began || self.stopped == Some(result.seq) {
            self.watching = Watching::Ended;
        }
        self.result = Some(result);
    }

    fn deliver(&mut self, event: Event) -> Poll<Option<Result<Event, DriveError>>> {
        if let Event::Logged(logged) = &event
            && matches!(logged.what, StreamEventBody::Stopped(_))
        {
            self.stopped = Some(logged.seq);
            if (self.result.as_ref()).is_some_and(|result| result.seq == logged.seq) {
                self.watching = Watching::Ended;
            }
        }
        Poll::Ready(Some(Ok(event)))
    }

    fn fail(&mut self, error: DriveError) -> Poll<Option<Result<Event, DriveError>>> {
        self.run = None;
        self.watching = Watching::Ended;
        Poll::Ready(Some(Err(error)))
    }
}

// The futures are boxed, and the state in a result is never pinned.
impl<S: State> Unpin for RunStream<S> {}

impl<S: State> Stream for RunStream<S> {
    type Item = Result<Event, DriveError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

impl<S: State> fmt::Debug for RunStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream")
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}
