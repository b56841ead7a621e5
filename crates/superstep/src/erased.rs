//! Graphs and threads without their type, for whoever holds several: a command line, a server, an inbox.
//!
//! A [`Graph`] and a [`Thread`] are typed by their state. A host of several graphs cannot be, so it holds [`AnyGraph`] and
//! [`AnyThread`]: JSON in, JSON out, and below them the same typed thread. An input that does not fit the state is refused
//! before anything is stored.

use std::sync::Arc;

use serde_json::Value as Json;
use superstep_core::checkpoint::{BoxFuture, Metadata};
use superstep_core::graph::{Definition, Drawing};
use superstep_core::run::{OpenQuestion, ThreadState};
use superstep_core::trace::Trace;
use superstep_core::{
    Command, Graph, InterruptId, Outcome, RunId, Seq, State, StateUpdate, ThreadId, Value,
};

use crate::drive::DriveError;
use crate::events::Events;
use crate::runtime::Runtime;
use crate::thread::{Past, Stopped, Thread};

/// A graph whose state type is not known here.
pub trait AnyGraph: Send + Sync {
    /// Returns its definition: its name, its nodes, its drawing.
    fn definition(&self) -> &Arc<Definition>;

    /// Returns its name.
    fn name(&self) -> &str {
        self.definition().name()
    }

    /// Returns its nodes and edges, to be drawn.
    fn drawing(&self) -> Drawing {
        self.definition().drawing()
    }

    /// Returns a thread of this graph. `metadata` is stored when the thread starts.
    fn thread(
        &self,
        runtime: &Runtime,
        id: &str,
        metadata: Metadata,
    ) -> Result<Arc<dyn AnyThread>, DriveError>;
}

/// A thread whose state type is not known here. What each method does is what the method of that name does on [`Thread`].
pub trait AnyThread: Send + Sync {
    /// Returns its id.
    fn id(&self) -> &ThreadId;

    /// Starts a run with an input.
    fn start(&self, input: Json) -> BoxFuture<'_, Result<RunResult, DriveError>>;

    /// Starts a run, or continues the one that did not come to its end.
    fn start_or_recover(&self, input: Json) -> BoxFuture<'_, Result<RunResult, DriveError>>;

    /// Continues where the thread stands, and takes over a run whose process died.
    fn recover_or_resume(&self) -> BoxFuture<'_, Result<RunResult, DriveError>>;

    /// Answers open interrupts, all or none, and continues. None if another process runs the thread and continues with the
    /// answers.
    fn answer_as<'a>(
        &'a self,
        by: &'a str,
        answers: Vec<(InterruptId, Json)>,
    ) -> BoxFuture<'a, Result<Option<RunResult>, DriveError>>;

    /// Writes into the state as if a node had.
    fn update_as<'a>(
        &'a self,
        node: &'a str,
        update: Json,
    ) -> BoxFuture<'a, Result<Seq, DriveError>>;

    /// Returns the open interrupts.
    fn questions(&self) -> BoxFuture<'_, Result<Vec<OpenQuestion>, DriveError>>;

    /// Returns the state now, or at an entry; none if there is no such thread.
    fn state(&self, at: Option<Seq>) -> BoxFuture<'_, Result<Option<ThreadState>, DriveError>>;

    /// Returns the entries after a sequence number, oldest first.
    fn history(&self, after: Seq, limit: u32) -> BoxFuture<'_, Result<Vec<Past>, DriveError>>;

    /// Copies the thread up to an entry, with `update` written into the copy's state if it is given.
    fn copy_to<'a>(
        &'a self,
        to: &'a str,
        upto: Option<Seq>,
        update: Option<Json>,
    ) -> BoxFuture<'a, Result<Arc<dyn AnyThread>, DriveError>>;

    /// Goes back to an entry. The next run continues from there on a branch of its own.
    fn fork(&self, at: Seq) -> BoxFuture<'_, Result<Seq, DriveError>>;

    /// Returns everything that happened, as a tree.
    fn trace(&self) -> BoxFuture<'_, Result<Trace, DriveError>>;

    /// Returns what happens after an entry: first what is stored, then live.
    fn events(&self, after: Seq) -> Events;

    /// Cancels the run and returns when it has stopped.
    fn cancel(&self) -> BoxFuture<'_, Result<(), DriveError>>;
}

/// How a run ended. Its state is in the store: [`AnyThread::state`].
#[derive(Debug, Clone)]
pub struct RunResult {
    /// Finished, paused, failed or however else.
    pub outcome: Outcome,
    /// The run.
    pub run: RunId,
    /// The newest entry of the thread.
    pub seq: Seq,
}

impl<S> From<Stopped<S>> for RunResult {
    fn from(stopped: Stopped<S>) -> Self {
        Self {
            outcome: stopped.outcome,
            run: stopped.run,
            seq: stopped.seq,
        }
    }
}

impl<S: State> AnyGraph for Graph<S> {
    fn definition(&self) -> &Arc<Definition> {
        Graph::definition(self)
    }

    fn thread(
        &self,
        runtime: &Runtime,
        id: &str,
        metadata: Metadata,
    ) -> Result<Arc<dyn AnyThread>, DriveError> {
        let thread = runtime.thread(self, id)?;
        Ok(Arc::new(thread.with_metadata(metadata)))
    }
}

/// Reads JSON as an update of the state.
fn read_update<U: StateUpdate>(json: &Json) -> Result<U, DriveError> {
    Ok(Value::plain(json)?.decode()?)
}

impl<S: State> AnyThread for Thread<S> {
    fn id(&self) -> &ThreadId {
        Thread::id(self)
    }

    fn start(&self, input: Json) -> BoxFuture<'_, Result<RunResult, DriveError>> {
        Box::pin(async move { Ok(Thread::start(self, read_update(&input)?).await?.into()) })
    }

    fn start_or_recover(&self, input: Json) -> BoxFuture<'_, Result<RunResult, DriveError>> {
        Box::pin(async move {
            let stopped = Thread::start_or_recover(self, read_update(&input)?).await?;
            Ok(stopped.into())
        })
    }

    fn recover_or_resume(&self) -> BoxFuture<'_, Result<RunResult, DriveError>> {
        Box::pin(async move { Ok(Thread::recover_or_resume(self).await?.into()) })
    }

    fn answer_as<'a>(
        &'a self,
        by: &'a str,
        answers: Vec<(InterruptId, Json)>,
    ) -> BoxFuture<'a, Result<Option<RunResult>, DriveError>> {
        Box::pin(async move {
            let stopped = Thread::answer_as(self, by, answers).await?;
            Ok(stopped.map(RunResult::from))
        })
    }

    fn update_as<'a>(
        &'a self,
        node: &'a str,
        update: Json,
    ) -> BoxFuture<'a, Result<Seq, DriveError>> {
        Box::pin(async move {
            let update: S::Update = read_update(&update)?;
            Thread::update_as(self, node, Command::update(update)).await
        })
    }

    fn questions(&self) -> BoxFuture<'_, Result<Vec<OpenQuestion>, DriveError>> {
        Box::pin(Thread::questions(self))
    }

    fn state(&self, at: Option<Seq>) -> BoxFuture<'_, Result<Option<ThreadState>, DriveError>> {
        Box::pin(async move {
            match at {
                Some(at) => self.state_at(at).await,
                None => Thread::state(self).await,
            }
        })
    }

    fn history(&self, after: Seq, limit: u32) -> BoxFuture<'_, Result<Vec<Past>, DriveError>> {
        Box::pin(Thread::history(self, after, limit))
    }

    fn copy_to<'a>(
        &'a self,
        to: &'a str,
        upto: Option<Seq>,
        update: Option<Json>,
    ) -> BoxFuture<'a, Result<Arc<dyn AnyThread>, DriveError>> {
        Box::pin(async move {
            let copy = match update {
                None => Thread::copy_to(self, to, upto).await?,
                Some(update) => self.copy_with(to, upto, read_update(&update)?).await?,
            };
            Ok(Arc::new(copy) as Arc<dyn AnyThread>)
        })
    }

    fn fork(&self, at: Seq) -> BoxFuture<'_, Result<Seq, DriveError>> {
        Box::pin(Thread::fork(self, at))
    }

    fn trace(&self) -> BoxFuture<'_, Result<Trace, DriveError>> {
        Box::pin(Thread::trace(self))
    }

    fn events(&self, after: Seq) -> Events {
        Thread::events(self, after)
    }

    fn cancel(&self) -> BoxFuture<'_, Result<(), DriveError>> {
        Box::pin(Thread::cancel(self))
    }
}
