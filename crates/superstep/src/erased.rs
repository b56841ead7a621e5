//! Graphs and threads without their state type, for programs that host several: a command line, a server, an inbox.
//!
//! A [`Graph`] and a [`Thread`] are typed by their state. A host of several graphs cannot be, so it holds [`AnyGraph`] and
//! [`AnyThread`]: JSON in, JSON out, over the same typed thread. An input that does not fit the state is refused before
//! anything is stored.

use std::sync::Arc;

use serde_json::Value as Json;
use superstep_core::checkpoint::{BoxFuture, Metadata};
use superstep_core::graph::{Definition, Drawing};
use superstep_core::run::{OpenInterrupt, SubgraphState, ThreadEdit, ThreadState};
use superstep_core::trace::Trace;
use superstep_core::{
    Command, Graph, InterruptId, Outcome, RunId, Seq, State, StateUpdate, ThreadId, Value,
};

use crate::drive::DriveError;
use crate::events::Events;
use crate::runtime::Runtime;
use crate::thread::{HistoryEntry, RunResult, Thread};

/// A graph whose state type is erased.
pub trait AnyGraph: Send + Sync {
    /// Returns the graph's definition: its name, nodes and drawing.
    fn definition(&self) -> &Arc<Definition>;

    /// Returns the graph's name.
    fn name(&self) -> &str {
        self.definition().name()
    }

    /// Returns the graph's nodes and edges, for drawing.
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

/// A thread whose state type is erased. Each method does what the method of the same name does on [`Thread`].
///
/// ```
/// # use superstep::prelude::*;
/// # use superstep::{DriveError, RunOptions, Seq};
/// # #[derive(Clone, Debug, Default, State)]
/// # struct Refund { order: String, cents: u64, receipt: Option<String> }
/// # async fn example(runtime: Runtime, graph: Graph<Refund>) -> Result<(), DriveError> {
/// use std::sync::Arc;
/// use superstep::AnyGraph;
///
/// // A program that hosts several graphs finds them by name.
/// let graphs: Vec<Arc<dyn AnyGraph>> = vec![Arc::new(graph)];
/// let graph = graphs.iter().find(|graph| graph.definition().name() == "refund").expect("it is registered");
/// let thread = graph.thread(&runtime, "order-17", Default::default())?;
/// thread.start(serde_json::json!({ "cents": 900 })).await?;
/// # Ok(())
/// # }
/// ```
pub trait AnyThread: Send + Sync {
    /// Returns the thread's id.
    fn id(&self) -> &ThreadId;

    /// Starts a run with an input.
    fn start(&self, input: Json) -> BoxFuture<'_, Result<AnyRunResult, DriveError>>;

    /// Recovers or resumes the thread's run, or starts one with this input if there is nothing to resume.
    fn start_or_recover(&self, input: Json) -> BoxFuture<'_, Result<AnyRunResult, DriveError>>;

    /// Recovers the thread if its run did not stop, and resumes it otherwise.
    fn recover_or_resume(&self) -> BoxFuture<'_, Result<AnyRunResult, DriveError>>;

    /// Answers open interrupts, all or none, and resumes the thread. Returns `None` if the thread is running: its owner
    /// continues with the answers.
    fn answer_as<'a>(
        &'a self,
        by: &'a str,
        answers: Vec<(InterruptId, Json)>,
    ) -> BoxFuture<'a, Result<Option<AnyRunResult>, DriveError>>;

    /// Changes the state as if `node` had just written this update.
    fn update_as<'a>(
        &'a self,
        node: &'a str,
        update: Json,
    ) -> BoxFuture<'a, Result<Seq, DriveError>>;

    /// Makes several updates of the state in one commit.
    fn edit(&self, edit: ThreadEdit) -> BoxFuture<'_, Result<Seq, DriveError>>;

    /// Returns the interrupts that wait for an answer.
    fn interrupts(&self) -> BoxFuture<'_, Result<Vec<OpenInterrupt>, DriveError>>;

    /// Returns the state now, or at an entry; `None` if there is no such thread.
    fn state(&self, at: Option<Seq>) -> BoxFuture<'_, Result<Option<ThreadState>, DriveError>>;

    /// Returns the states of the subgraphs that the thread is inside of, now or at an entry, parents first.
    fn subgraphs(&self, at: Option<Seq>) -> BoxFuture<'_, Result<Vec<SubgraphState>, DriveError>>;

    /// Returns at most `limit` entries after a sequence number, oldest first.
    fn history(
        &self,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<HistoryEntry>, DriveError>>;

    /// Copies the thread up to an entry, and writes `update` into the copy's state if one is given.
    fn copy_to<'a>(
        &'a self,
        to: &'a str,
        upto: Option<Seq>,
        update: Option<Json>,
    ) -> BoxFuture<'a, Result<Arc<dyn AnyThread>, DriveError>>;

    /// Copies the thread up to an entry, writes `update` into the copy's state, and replaces the context of its run.
    fn copy_with_context<'a>(
        &'a self,
        to: &'a str,
        upto: Option<Seq>,
        update: Json,
        context: Json,
    ) -> BoxFuture<'a, Result<Arc<dyn AnyThread>, DriveError>>;

    /// Goes back to an entry. The next run continues from there on a new branch.
    fn fork(&self, at: Seq) -> BoxFuture<'_, Result<Seq, DriveError>>;

    /// Returns everything that happened on the thread, as a tree of spans.
    fn trace(&self) -> BoxFuture<'_, Result<Trace, DriveError>>;

    /// Streams what happens after an entry: first what is stored, then live.
    fn events(&self, after: Seq) -> Events;

    /// Cancels the run and returns when it has stopped.
    fn cancel(&self) -> BoxFuture<'_, Result<(), DriveError>>;
}

/// How a run ended. The state is in the store: [`AnyThread::state`].
#[derive(Debug, Clone)]
pub struct AnyRunResult {
    /// Why the run stopped: finished, paused, failed or any other outcome.
    pub outcome: Outcome,
    /// Id of the run that stopped.
    pub run: RunId,
    /// Newest entry of the thread when the run stopped.
    pub seq: Seq,
}

impl<S> From<RunResult<S>> for AnyRunResult {
    fn from(stopped: RunResult<S>) -> Self {
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

/// Decodes JSON as an update of the state.
fn read_update<U: StateUpdate>(json: &Json) -> Result<U, DriveError> {
    Ok(Value::plain(json)?.decode()?)
}

impl<S: State> AnyThread for Thread<S> {
    fn id(&self) -> &ThreadId {
        Thread::id(self)
    }

    fn start(&self, input: Json) -> BoxFuture<'_, Result<AnyRunResult, DriveError>> {
        Box::pin(async move { Ok(Thread::start(self, read_update(&input)?).await?.into()) })
    }

    fn start_or_recover(&self, input: Json) -> BoxFuture<'_, Result<AnyRunResult, DriveError>> {
        Box::pin(async move {
            let stopped = Thread::start_or_recover(self, read_update(&input)?).await?;
            Ok(stopped.into())
        })
    }

    fn recover_or_resume(&self) -> BoxFuture<'_, Result<AnyRunResult, DriveError>> {
        Box::pin(async move { Ok(Thread::recover_or_resume(self).await?.into()) })
    }

    fn answer_as<'a>(
        &'a self,
        by: &'a str,
        answers: Vec<(InterruptId, Json)>,
    ) -> BoxFuture<'a, Result<Option<AnyRunResult>, DriveError>> {
        Box::pin(async move {
            let stopped = Thread::answer_as(self, by, answers).await?;
            Ok(stopped.map(AnyRunResult::from))
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

    fn edit(&self, edit: ThreadEdit) -> BoxFuture<'_, Result<Seq, DriveError>> {
        Box::pin(Thread::edit(self, edit))
    }

    fn interrupts(&self) -> BoxFuture<'_, Result<Vec<OpenInterrupt>, DriveError>> {
        Box::pin(Thread::interrupts(self))
    }

    fn state(&self, at: Option<Seq>) -> BoxFuture<'_, Result<Option<ThreadState>, DriveError>> {
        Box::pin(async move {
            match at {
                Some(at) => self.state_at(at).await,
                None => Thread::state(self).await,
            }
        })
    }

    fn subgraphs(&self, at: Option<Seq>) -> BoxFuture<'_, Result<Vec<SubgraphState>, DriveError>> {
        Box::pin(Thread::subgraphs(self, at))
    }

    fn history(
        &self,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<HistoryEntry>, DriveError>> {
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

    fn copy_with_context<'a>(
        &'a self,
        to: &'a str,
        upto: Option<Seq>,
        update: Json,
        context: Json,
    ) -> BoxFuture<'a, Result<Arc<dyn AnyThread>, DriveError>> {
        Box::pin(async move {
            let update = read_update(&update)?;
            let copy = Thread::copy_with_context(self, to, upto, update, context).await?;
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
