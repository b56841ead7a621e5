//! The agents of this program, and threads of any of them.
//!
//! A graph is typed by its state; the commands that list, show, answer and fork threads do not care which. [`AnyAgent`] and
//! [`AnyThread`] are what they see. How an agent meets a person is its [`Manner`].

pub mod analyze;
pub mod atris;
pub mod docs;
pub mod email_assistant;
pub mod sheet;

use std::pin::Pin;
use std::sync::Arc;

use anyhow::Context;
use serde_json::Value as Json;
use superstep::checkpoint::Metadata;
use superstep::graph::Drawing;
use superstep::run::{OpenQuestion, ThreadState};
use superstep::store::Store;
use superstep::{
    Command, DriveError, Events, Graph, InterruptId, Outcome, Past, Runtime, Seq, State, Stopped,
    Thread,
};
use superstep_agent::Spending;
use superstep_agent::trace::AgentTrace;

use crate::cli::settings::Settings;
use crate::models::Models;
use crate::talk::Manner;

/// A future that can be kept.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes an agent.
pub type MakeAgent = fn(&Workshop) -> anyhow::Result<Arc<dyn AnyAgent>>;

/// The agents that come with the program.
pub const AGENTS: &[MakeAgent] = &[
    analyze::agent,
    sheet::agent,
    docs::agent,
    atris::agent,
    atris::watch::agent,
    email_assistant::agent,
];

/// What agents are made with.
#[derive(Clone)]
pub struct Workshop {
    /// What the program goes by.
    pub settings: Settings,
    /// The models, by name.
    pub models: Arc<Models>,
    /// What is remembered across threads.
    pub store: Arc<dyn Store>,
    /// What a thread may spend; none if there is no limit.
    pub spending: Option<Spending>,
}

impl std::fmt::Debug for Workshop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workshop")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// An agent of this program: a graph with a name.
pub trait AnyAgent: Send + Sync {
    /// Its name on the wire.
    fn name(&self) -> &str;

    /// What it is for, in a line.
    fn about(&self) -> &str;

    /// How it meets a person.
    fn manner(&self) -> &dyn Manner;

    /// Its graph, to look at.
    fn drawing(&self) -> Drawing;

    /// Lets a runtime go on with its threads.
    fn register(&self, runtime: &Runtime);

    /// One of its threads. What is known about it is stored if it starts.
    fn thread(
        &self,
        runtime: &Runtime,
        id: &str,
        known: Metadata,
    ) -> Result<Arc<dyn AnyThread>, DriveError>;
}

/// A thread of some agent.
pub trait AnyThread: Send + Sync {
    /// Its id.
    fn id(&self) -> String;

    /// Starts it with an input, or goes on with what it was doing.
    fn start(&self, input: Json) -> BoxFuture<'_, anyhow::Result<Rest>>;

    /// Goes on where it stands. A run whose process died is taken over.
    fn resume(&self) -> BoxFuture<'_, Result<Rest, DriveError>>;

    /// Answers questions in somebody's name, and goes on. None if somebody else runs it and goes on with the answers.
    fn answer(
        &self,
        by: String,
        answers: Vec<(InterruptId, Json)>,
    ) -> BoxFuture<'_, Result<Option<Rest>, DriveError>>;

    /// Writes into its state, as if a node had.
    fn update(&self, node: &'static str, update: Json) -> BoxFuture<'_, anyhow::Result<()>>;

    /// What it waits for.
    fn questions(&self) -> BoxFuture<'_, Result<Vec<OpenQuestion>, DriveError>>;

    /// Where it stands, or stood.
    fn state(&self, at: Option<Seq>) -> BoxFuture<'_, Result<Option<ThreadState>, DriveError>>;

    /// Its entries above a number.
    fn history(&self, after: Seq, limit: u32) -> BoxFuture<'_, Result<Vec<Past>, DriveError>>;

    /// A copy up to an entry, with something else in its state if that is given.
    fn copy_to(
        &self,
        to: String,
        upto: Option<Seq>,
        write: Option<Json>,
    ) -> BoxFuture<'_, anyhow::Result<()>>;

    /// All that happened.
    fn trace(&self) -> BoxFuture<'_, Result<AgentTrace, DriveError>>;

    /// What happens.
    fn events(&self, after: Seq) -> Events;
}

/// What a thread's state holds now, typed.
pub async fn state_of<S: State>(thread: &dyn AnyThread) -> anyhow::Result<S> {
    let state = thread.state(None).await?;
    let state = state.context("the thread has no state yet")?;
    Ok(state.values.decode()?)
}

/// All entries of a thread above a number, oldest first, read a page at a time.
pub async fn each_entry(
    thread: &dyn AnyThread,
    mut after: Seq,
    mut each: impl FnMut(&Past) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    loop {
        let page = thread.history(after, ENTRIES_AT_ONCE).await?;
        for past in &page {
            each(past)?;
            after = past.seq;
        }
        if page.len() < ENTRIES_AT_ONCE as usize {
            return Ok(());
        }
    }
}

const ENTRIES_AT_ONCE: u32 = 500;

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
    manner: Box<dyn Manner>,
}

impl<S: State> Registered<S> {
    /// An agent of this graph.
    pub fn new(graph: Graph<S>, about: &'static str, manner: impl Manner + 'static) -> Self {
        Self {
            about,
            graph,
            manner: Box::new(manner),
        }
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

    fn manner(&self) -> &dyn Manner {
        &*self.manner
    }

    fn drawing(&self) -> Drawing {
        self.graph.drawing()
    }

    fn register(&self, runtime: &Runtime) {
        runtime.register(&self.graph);
    }

    fn thread(
        &self,
        runtime: &Runtime,
        id: &str,
        known: Metadata,
    ) -> Result<Arc<dyn AnyThread>, DriveError> {
        let thread = runtime.thread(&self.graph, id)?;
        Ok(Arc::new(thread.with_metadata(known)))
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

    fn start(&self, input: Json) -> BoxFuture<'_, anyhow::Result<Rest>> {
        Box::pin(async move {
            let input: S::Update =
                serde_json::from_value(input).context("the input does not fit")?;
            Ok(self.start_or_recover(input).await?.into())
        })
    }

    fn resume(&self) -> BoxFuture<'_, Result<Rest, DriveError>> {
        Box::pin(async move {
            // One that is being run, or was when its process died, is taken over; any other goes on.
            let stopped = match self.recover().await {
                Err(DriveError::Open(_)) => Thread::resume(self).await?,
                recovered => recovered?,
            };
            Ok(stopped.into())
        })
    }

    fn answer(
        &self,
        by: String,
        answers: Vec<(InterruptId, Json)>,
    ) -> BoxFuture<'_, Result<Option<Rest>, DriveError>> {
        Box::pin(async move { Ok(self.answer_as(&by, answers).await?.map(Rest::from)) })
    }

    fn update(&self, node: &'static str, update: Json) -> BoxFuture<'_, anyhow::Result<()>> {
        Box::pin(async move {
            let update: S::Update =
                serde_json::from_value(update).context("the update does not fit")?;
            self.update_as(node, Command::update(update)).await?;
            Ok(())
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

    fn copy_to(
        &self,
        to: String,
        upto: Option<Seq>,
        write: Option<Json>,
    ) -> BoxFuture<'_, anyhow::Result<()>> {
        Box::pin(async move {
            match write {
                None => Thread::copy_to(self, &to, upto).await?,
                Some(write) => {
                    let write = serde_json::from_value(write).context("the update does not fit")?;
                    self.copy_with(&to, upto, write).await?
                }
            };
            Ok(())
        })
    }

    fn trace(&self) -> BoxFuture<'_, Result<AgentTrace, DriveError>> {
        Box::pin(async { Ok(Thread::trace(self).await?.into()) })
    }

    fn events(&self, after: Seq) -> Events {
        Thread::events(self, after)
    }
}
