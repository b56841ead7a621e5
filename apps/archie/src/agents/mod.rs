//! The agents of this program, and threads of any of them.
//!
//! A graph is typed by its state; the commands that list, show, answer and fork threads do not care which. [`AnyAgent`] and
//! [`AnyThread`] are what they see.

pub mod analyze;

use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep::graph::Drawing;
use superstep::run::{OpenQuestion, ThreadState};
use superstep::trace::Trace;
use superstep::{
    DriveError, Events, Graph, InterruptId, Outcome, Past, Runtime, Seq, State, Stopped, Thread,
};

/// A future that can be kept.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An agent of this program: a graph with a name.
pub trait AnyAgent: Send + Sync {
    /// Its name on the wire.
    fn name(&self) -> &str;

    /// What it is for, in a line.
    fn about(&self) -> &str;

    /// Its graph, to look at.
    fn drawing(&self) -> Drawing;

    /// Lets a runtime go on with its threads.
    fn register(&self, runtime: &Runtime);

    /// One of its threads.
    fn thread(&self, runtime: &Runtime, id: &str) -> Result<Arc<dyn AnyThread>, DriveError>;
}

/// A thread of some agent.
pub trait AnyThread: Send + Sync {
    /// Its id.
    fn id(&self) -> String;

    /// Goes on where it stands.
    fn resume(&self) -> BoxFuture<'_, Result<Rest, DriveError>>;

    /// Answers questions in somebody's name, and goes on. None if somebody else runs it and goes on with the answers.
    fn answer(
        &self,
        by: String,
        answers: Vec<(InterruptId, Json)>,
    ) -> BoxFuture<'_, Result<Option<Rest>, DriveError>>;

    /// What it waits for.
    fn questions(&self) -> BoxFuture<'_, Result<Vec<OpenQuestion>, DriveError>>;

    /// Where it stands, or stood.
    fn state(&self, at: Option<Seq>) -> BoxFuture<'_, Result<Option<ThreadState>, DriveError>>;

    /// Its entries above a number.
    fn history(&self, after: Seq, limit: u32) -> BoxFuture<'_, Result<Vec<Past>, DriveError>>;

    /// A copy up to an entry.
    fn copy_to(&self, to: String, upto: Option<Seq>) -> BoxFuture<'_, Result<(), DriveError>>;

    /// All that happened.
    fn trace(&self) -> BoxFuture<'_, Result<Trace, DriveError>>;

    /// What happens.
    fn events(&self, after: Seq) -> Events;
}

/// Where a run came to rest.
#[derive(Debug, Clone)]
pub struct Rest {
    /// How.
    pub outcome: Outcome,
    /// The newest entry.
    pub seq: Seq,
}

/// An agent over its typed graph.
pub struct Registered<S: State> {
    about: &'static str,
    graph: Graph<S>,
}

impl<S: State> Registered<S> {
    /// An agent of this graph.
    pub fn new(graph: Graph<S>, about: &'static str) -> Self {
        Self { about, graph }
    }
}

impl<S: State> std::fmt::Debug for Registered<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Registered")
            .field(&self.graph.name())
            .finish()
    }
}

impl<S: State> AnyAgent for Registered<S> {
    fn name(&self) -> &str {
        self.graph.name()
    }

    fn about(&self) -> &str {
        self.about
    }

    fn drawing(&self) -> Drawing {
        self.graph.drawing()
    }

    fn register(&self, runtime: &Runtime) {
        runtime.register(&self.graph);
    }

    fn thread(&self, runtime: &Runtime, id: &str) -> Result<Arc<dyn AnyThread>, DriveError> {
        Ok(Arc::new(runtime.thread(&self.graph, id)?))
    }
}

impl<S: State> From<Stopped<S>> for Rest {
    fn from(stopped: Stopped<S>) -> Self {
        Self {
            outcome: stopped.outcome,
            seq: stopped.seq,
        }
    }
}

impl<S: State> AnyThread for Thread<S> {
    fn id(&self) -> String {
        Thread::id(self).to_string()
    }

    fn resume(&self) -> BoxFuture<'_, Result<Rest, DriveError>> {
        Box::pin(async move { Ok(Thread::resume(self).await?.into()) })
    }

    fn answer(
        &self,
        by: String,
        answers: Vec<(InterruptId, Json)>,
    ) -> BoxFuture<'_, Result<Option<Rest>, DriveError>> {
        Box::pin(async move { Ok(self.answer_as(&by, answers).await?.map(Rest::from)) })
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

    fn copy_to(&self, to: String, upto: Option<Seq>) -> BoxFuture<'_, Result<(), DriveError>> {
        Box::pin(async move { Thread::copy_to(self, &to, upto).await.map(drop) })
    }

    fn trace(&self) -> BoxFuture<'_, Result<Trace, DriveError>> {
        Box::pin(Thread::trace(self))
    }

    fn events(&self, after: Seq) -> Events {
        Thread::events(self, after)
    }
}
