//! A thread as a person holds it: start it, answer it, look at it, rewind it.

use std::fmt;

use serde::Serialize;
use superstep_core::checkpoint::format::Entry;
use superstep_core::checkpoint::{
    Answer, AnswerBody, InterruptQuery, InterruptRow, Metadata, Page, Status, StoredBody,
};
use superstep_core::driver::ThreadRequest;
use superstep_core::error::{CheckpointError, OpenError};
use superstep_core::run::{self, Edit, EditNode, ForkFrom, OpenQuestion, RunOptions, ThreadState};
use superstep_core::trace::Trace;
use superstep_core::{
    Command, Graph, InterruptId, NodeName, Outcome, RunId, Seq, State, ThreadId, Value,
};

use crate::drive::{DriveError, RequestEnd};
use crate::events::Events;
use crate::runtime::Runtime;

/// A thread of a graph over `S`. A handle: it holds nothing, and there may be many.
pub struct Thread<S: State> {
    runtime: Runtime,
    graph: Graph<S>,
    id: ThreadId,
    options: RunOptions,
    context: Option<Value>,
    metadata: Option<Metadata>,
}

/// How a run went, and the state it left.
#[derive(Debug, Clone)]
pub struct Stopped<S> {
    /// How it ended.
    pub outcome: Outcome,
    /// The state of the graph.
    pub state: S,
    /// The run.
    pub run: RunId,
    /// The newest entry of the thread.
    pub seq: Seq,
}

/// One line of a thread's history.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// The entry's number: where the thread can be looked at, replayed and forked.
    pub seq: Seq,
    /// The entry.
    pub entry: Entry,
}

impl<S: State> Thread<S> {
    pub(crate) fn new(runtime: Runtime, graph: Graph<S>, id: ThreadId) -> Self {
        Self {
            runtime,
            graph,
            id,
            options: RunOptions::default(),
            context: None,
            metadata: None,
        }
    }

    /// Its id.
    pub fn id(&self) -> &ThreadId {
        &self.id
    }

    /// How its runs are made from here on.
    #[must_use]
    pub fn with_options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// What nodes can read beside the state, in runs started from here on.
    pub fn with_context(mut self, context: impl Serialize) -> Result<Self, DriveError> {
        self.context = Some(Value::plain(&context)?);
        Ok(self)
    }

    /// What the thread is found by, set with the next start.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Starts a run with an input and returns when it stops: finished, waiting for a person, or however else.
    ///
    /// If the future is dropped, everything the run was doing stops, and the thread waits for [`Thread::recover`].
    pub async fn start(&self, input: S::Update) -> Result<Stopped<S>, DriveError> {
        self.run(ThreadRequest::Start {
            input: Value::encode(&input)?,
            context: self.context.clone(),
            metadata: self.metadata.as_ref().map(Value::plain).transpose()?,
        })
        .await
    }

    /// Goes on where the thread stopped.
    pub async fn resume(&self) -> Result<Stopped<S>, DriveError> {
        self.run(ThreadRequest::Resume).await
    }

    /// Resumes a run whose process died, or that was drained. A run that is still alive elsewhere loses the thread.
    pub async fn recover(&self) -> Result<Stopped<S>, DriveError> {
        self.run(ThreadRequest::Recover).await
    }

    /// Resumes whatever the thread was doing, or starts it if it was idle: what a program calls when it
    /// comes up. A run that failed, was cancelled or reached its limit is resumed, too.
    pub async fn start_or_recover(&self, input: S::Update) -> Result<Stopped<S>, DriveError> {
        let loaded = self.runtime.local.store().load(&self.id).await?;
        match loaded.map_or(Status::Idle, |loaded| loaded.head.status) {
            Status::Running => self.recover().await,
            Status::Paused | Status::Failed | Status::Cancelled | Status::StepLimit => {
                self.resume().await
            }
            Status::Idle | Status::Deleted => self.start(input).await,
        }
    }

    /// Continues the thread wherever it stands: takes over a run whose process died, or else resumes.
    pub async fn recover_or_resume(&self) -> Result<Stopped<S>, DriveError> {
        match self.recover().await {
            // There is no such run.
            Err(DriveError::Open(_)) => self.resume().await,
            recovered => recovered,
        }
    }

    async fn execute(&self, request: ThreadRequest) -> Result<Option<RequestEnd>, DriveError> {
        let (driver, graph) = (self.runtime.driver(), self.graph.definition());
        let end = driver.execute(&self.id, graph, request, &self.options);
        end.await
    }

    /// Executes a request that is done when this returns.
    async fn completed(&self, request: ThreadRequest) -> Result<RequestEnd, DriveError> {
        let busy = || OpenError::Busy {
            thread: self.id.clone(),
        };
        Ok(self.execute(request).await?.ok_or_else(busy)?)
    }

    async fn run(&self, request: ThreadRequest) -> Result<Stopped<S>, DriveError> {
        let end = self.completed(request).await?;
        self.stopped(end).await
    }

    /// Returns how a run stopped and the state it left: from the run itself if this process drove it, else from the store.
    async fn stopped(&self, end: RequestEnd) -> Result<Stopped<S>, DriveError> {
        let RequestEnd { run, seq, driven } = end;
        let (outcome, state) = match driven.map(|driven| *driven) {
            Some((outcome, driven)) => {
                let state = match driven.state::<S>() {
                    Some(state) => state.clone(),
                    // Not all of it is stored, or it was driven with another graph of the same name.
                    None => driven.values().decode()?,
                };
                (outcome, state)
            }
            None => self.stored_end(seq).await?,
        };
        Ok(Stopped {
            outcome,
            state,
            run,
            seq,
        })
    }

    async fn stored_end(&self, seq: Seq) -> Result<(Outcome, S), DriveError> {
        let loaded = self.runtime.loaded(&self.id).await?;
        let outcome = self.runtime.local.outcome_at(&self.id, seq, &loaded);
        let outcome = outcome.await?;
        let history = match loaded.head.seq == seq {
            true => loaded.history,
            // Another run has begun since.
            false => self.runtime.local.store().load_at(&self.id, seq).await?,
        };
        let state = run::read_state(self.graph.definition(), &self.id, &history)?;
        let state = match state {
            Some(state) => state.values.decode()?,
            None => S::default(),
        };
        Ok((outcome, state))
    }

    /// The questions that wait for an answer.
    pub async fn questions(&self) -> Result<Vec<OpenQuestion>, DriveError> {
        let query = InterruptQuery {
            tenant: self.id.tenant().to_owned(),
            thread: Some(self.id.clone()),
            open_only: true,
            due: None,
            page: Page {
                limit: 1_000,
                offset: 0,
            },
        };
        self.runtime.questions(&query).await
    }

    /// Answers one question and goes on. Exactly one answer to a question wins; every other caller is told
    /// [`CheckpointError::NotOpen`]. None means that the thread is running and its owner continues with the answer.
    pub async fn answer(
        &self,
        interrupt: InterruptId,
        answer: impl Serialize,
    ) -> Result<Option<Stopped<S>>, DriveError> {
        self.answer_as("", [(interrupt, answer)]).await
    }

    /// Answers the one question that is open, and goes on.
    pub async fn answer_only(
        &self,
        answer: impl Serialize,
    ) -> Result<Option<Stopped<S>>, DriveError> {
        let open = self.questions().await?;
        match open.as_slice() {
            [only] => self.answer(only.question.id, answer).await,
            _ => Err(DriveError::AmbiguousAnswer {
                thread: self.id.clone(),
                open: open.len(),
            }),
        }
    }

    /// Answers several questions at once, all or none, in somebody's name, and goes on.
    pub async fn answer_as<A: Serialize>(
        &self,
        by: &str,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> Result<Option<Stopped<S>>, DriveError> {
        let answers = self.checked_answers(by, answers).await?;
        match self.execute(ThreadRequest::Answer(answers)).await? {
            Some(end) => Ok(Some(self.stopped(end).await?)),
            None => Ok(None),
        }
    }

    async fn checked_answers<A: Serialize>(
        &self,
        by: &str,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> Result<Vec<Answer>, DriveError> {
        let open = self.questions().await?;
        let at = self.runtime.now();
        let mut stored = Vec::new();
        for (interrupt, answer) in answers {
            let stored_answer = Value::plain(&answer)?;
            if let Some(asked) = open.iter().find(|open| open.question.id == interrupt) {
                run::check_answer(&asked.question, &stored_answer.decode()?)
                    .map_err(|why| DriveError::AnswerRefused { interrupt, why })?;
            }
            let body = AnswerBody::Value(stored_answer);
            stored.push(Answer {
                interrupt,
                body,
                by: by.to_owned(),
                at,
            });
        }
        Ok(stored)
    }

    /// The thread as it stands now; none if there is none.
    pub async fn state(&self) -> Result<Option<ThreadState>, DriveError> {
        match self.runtime.local.store().load(&self.id).await? {
            Some(loaded) => Ok(run::read_state(
                self.graph.definition(),
                &self.id,
                &loaded.history,
            )?),
            None => Ok(None),
        }
    }

    /// The thread as it stood at an entry.
    pub async fn state_at(&self, seq: Seq) -> Result<Option<ThreadState>, DriveError> {
        let history = self.runtime.local.store().load_at(&self.id, seq).await?;
        Ok(run::read_state(
            self.graph.definition(),
            &self.id,
            &history,
        )?)
    }

    /// The entries above a number, oldest first.
    pub async fn history(&self, after: Seq, limit: u32) -> Result<Vec<Past>, DriveError> {
        let stored = self
            .runtime
            .local
            .store()
            .entries(&self.id, after, limit)
            .await?;
        let read = |stored: StoredBody| {
            let entry = Entry::read(&stored, &self.id)?;
            Ok(Past {
                seq: stored.seq,
                entry,
            })
        };
        Ok(stored
            .into_iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map_err(|error: superstep_core::error::FormatError| CheckpointError::from(error))?)
    }

    /// All that happened on the thread, as a tree with times and costs. Prints as one, too.
    pub async fn trace(&self) -> Result<Trace, DriveError> {
        let mut entries = Vec::new();
        loop {
            let after = entries.last().map_or(Seq(0), |(seq, _)| *seq);
            let more = self.history(after, TRACE_PAGE).await?;
            let is_all = more.len() < TRACE_PAGE as usize;
            entries.extend(more.into_iter().map(|past| (past.seq, past.entry)));
            if is_all {
                break;
            }
        }
        let questions = self.all_questions().await?;
        Ok(Trace::read(&self.id, &entries, &questions))
    }

    /// Also those that were answered.
    async fn all_questions(&self) -> Result<Vec<InterruptRow>, DriveError> {
        let mut found = Vec::new();
        loop {
            let query = InterruptQuery {
                tenant: self.id.tenant().to_owned(),
                thread: Some(self.id.clone()),
                page: Page {
                    limit: TRACE_PAGE,
                    offset: found.len() as u32,
                },
                ..InterruptQuery::default()
            };
            let more = self.runtime.local.store().interrupts(&query).await?;
            let is_all = more.len() < TRACE_PAGE as usize;
            found.extend(more);
            if is_all {
                return Ok(found);
            }
        }
    }

    /// What happens on the thread, from after an entry on: first what is stored, then live.
    pub fn events(&self, after: Seq) -> Events {
        Events::new(
            self.runtime.local.clone(),
            self.graph.definition().clone(),
            self.id.clone(),
            after,
        )
    }

    /// Changes the state as if `node` had just returned this command. What runs next follows from the node's
    /// routing; what was planned is dropped.
    pub async fn update_as(
        &self,
        node: &str,
        command: impl Into<Command<S>>,
    ) -> Result<Seq, DriveError> {
        self.edit(EditNode::Node(NodeName::new(node)?), command.into())
            .await
    }

    /// Changes the state as if the node that ran last had returned this command.
    pub async fn update(&self, command: impl Into<Command<S>>) -> Result<Seq, DriveError> {
        self.edit(EditNode::Last, command.into()).await
    }

    /// Writes an input without running: the next [`Thread::resume`] begins with it.
    pub async fn update_as_input(&self, input: S::Update) -> Result<Seq, DriveError> {
        self.edit(EditNode::Input, Command::update(input)).await
    }

    /// Drops whatever was planned: the thread is finished as it stands.
    pub async fn finish(&self) -> Result<Seq, DriveError> {
        self.edit(EditNode::End, Command::update(S::Update::default()))
            .await
    }

    async fn edit(&self, node: EditNode, command: Command<S>) -> Result<Seq, DriveError> {
        let Edit { node, update, goto } = Edit::new(node, command)?;
        self.change(ThreadRequest::Update { node, update, goto })
            .await
    }

    async fn change(&self, request: ThreadRequest) -> Result<Seq, DriveError> {
        Ok(self.completed(request).await?.seq)
    }

    /// Goes back to an entry: what came after stays in the history, and the thread goes on from there on a branch
    /// of its own with the next [`Thread::resume`]. Effects of that branch have keys of their own.
    pub async fn fork(&self, at: Seq) -> Result<Seq, DriveError> {
        self.change(ThreadRequest::Fork { at }).await
    }

    /// Goes back to an entry and runs everything after it again.
    pub async fn replay(&self, at: Seq) -> Result<Stopped<S>, DriveError> {
        self.fork(at).await?;
        self.resume().await
    }

    /// Copies the thread up to an entry, with its history, to a new one.
    pub async fn copy_to(&self, to: &str, upto: Option<Seq>) -> Result<Thread<S>, DriveError> {
        self.copy(to, upto, None).await
    }

    /// Copies the thread up to an entry, with something else in its state. What was planned there is still planned, and
    /// every question that was open there is asked again.
    pub async fn copy_with(
        &self,
        to: &str,
        upto: Option<Seq>,
        write: S::Update,
    ) -> Result<Thread<S>, DriveError> {
        let write = Value::encode(&write)?;
        self.copy(to, upto, Some(&write)).await
    }

    async fn copy(
        &self,
        to: &str,
        upto: Option<Seq>,
        write: Option<&Value>,
    ) -> Result<Thread<S>, DriveError> {
        let to: ThreadId = to.parse()?;
        self.runtime
            .checkpointer()
            .copy(&self.id, upto, &to)
            .await?;
        let copy = Thread::new(self.runtime.clone(), self.graph.clone(), to);
        let loaded = self.runtime.loaded(&copy.id).await?;
        let history = loaded.history.clone();
        let from = ForkFrom {
            at: loaded.head.seq,
            history: &history,
            copied_from: Some(&self.id),
            write,
        };
        let (graph, moment) = (self.graph.definition(), self.runtime.local.moment());
        let commit = run::fork(graph, &copy.id, loaded, &from, moment)?;
        self.runtime.local.save_change(&commit).await?;
        Ok(copy)
    }

    /// Cancels its run and returns when it has stopped.
    pub async fn cancel(&self) -> Result<(), DriveError> {
        self.runtime.cancel(&self.id).await
    }
}

impl<S: State> fmt::Debug for Thread<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("id", &self.id)
            .field("graph", &self.graph.name())
            .finish_non_exhaustive()
    }
}

/// How many entries a trace reads at once.
const TRACE_PAGE: u32 = 1_000;
