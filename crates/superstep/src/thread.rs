//! The handle that users hold on a thread: start it, answer its interrupts, read it, rewind it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use superstep_core::checkpoint::format::{Entry, InterruptRecord};
use superstep_core::checkpoint::{
    Answer, AnswerBody, InterruptQuery, InterruptRow, Metadata, Page, Status,
};
use superstep_core::driver::ThreadRequest;
use superstep_core::error::OpenError;
use superstep_core::graph::Definition;
use superstep_core::run::{
    self, Edit, EditNode, ForkFrom, OpenInterrupt, RunOptions, SubgraphState, ThreadEdit,
    ThreadState,
};
use superstep_core::trace::Trace;
use superstep_core::{
    Command, Graph, InterruptId, NodeName, Outcome, RunId, Seq, State, ThreadId, Value,
};

use crate::drive::{DriveError, RequestEnd};
use crate::event_reader::LogPlace;
use crate::events::{EventId, Events};
use crate::retrying_checkpointer::RetryingCheckpointer;
use crate::run_stream::RunStream;
use crate::runtime::Runtime;

/// A thread of a graph over `S`. Only a handle: it holds no state of the thread, and several handles to one thread may exist.
///
/// ```
/// # use superstep::prelude::*;
/// # use superstep::{DriveError, RunOptions, Seq};
/// # #[derive(Clone, Debug, Default, State)]
/// # struct Refund { order: String, cents: u64, receipt: Option<String> }
/// async fn refund(refund: View<Refund>, cx: NodeCx) -> Result<RefundUpdate, NodeError> {
///     let approval = Interrupt::new("approve", format!("Refund {} cents?", refund.cents));
///     let is_approved: bool = cx.interrupt(approval).await?;
///     Ok(RefundUpdate::default().receipt(is_approved.then(|| "paid".to_owned())))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let graph = Graph::builder("refund").node("refund", refund).edge(START, "refund").edge("refund", END).build()?;
/// let runtime = Runtime::new(Memory::default());
/// let thread = runtime.thread(&graph, "order-17")?;
///
/// let paused = thread.start(RefundUpdate::default().cents(900)).await?;
/// assert!(matches!(paused.outcome, Outcome::Paused(_)));
///
/// let done = thread.answer(paused.interrupts()[0].id, true).await?.expect("it was not running");
/// assert_eq!(done.state.receipt.as_deref(), Some("paid"));
/// # Ok(())
/// # }
/// ```
pub struct Thread<S: State> {
    runtime: Runtime,
    graph: Graph<S>,
    id: ThreadId,
    options: RunOptions,
    context: Option<Value>,
    metadata: Option<Metadata>,
}

/// How a run stopped, and the state it left. Serializes to the JSON form of `docs/streaming.md`.
#[derive(Debug, Clone, Serialize)]
pub struct RunResult<S> {
    /// Why the run stopped. A failed node is an outcome too, not an error.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// State of the root graph at the end of the run.
    pub state: S,
    /// Id of the run that stopped.
    #[serde(serialize_with = "as_text")]
    pub run: RunId,
    /// Newest entry of the thread when the run stopped.
    pub seq: Seq,
}

impl<S> RunResult<S> {
    /// Returns the interrupts that wait for an answer; empty unless the run paused.
    pub fn interrupts(&self) -> &[InterruptRecord] {
        match &self.outcome {
            Outcome::Paused(interrupts) => interrupts,
            _ => &[],
        }
    }
}

fn as_text<T: fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// One entry of a thread's history.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryEntry {
    /// Sequence number of the entry: where the thread can be read, replayed and forked.
    pub seq: Seq,
    /// What changed with this entry.
    pub entry: Entry,
}

impl<S: State> Thread<S> {
    pub(crate) fn new(runtime: Runtime, graph: Graph<S>, id: ThreadId) -> Self {
        Self {
            options: (*runtime.options).clone(),
            runtime,
            graph,
            id,
            context: None,
            metadata: None,
        }
    }

    /// Returns the thread's id.
    pub fn id(&self) -> &ThreadId {
        &self.id
    }

    /// Sets the options of runs that this handle starts or resumes.
    #[must_use]
    pub fn with_options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the context of runs that this handle starts: what nodes can read besides the state, with
    /// [`NodeCx::context`](crate::NodeCx::context).
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Caller {
    ///     user: String,
    /// }
    ///
    /// let thread = thread.with_context(Caller { user: "ada".to_owned() })?;
    /// thread.start(RefundUpdate::default().cents(900)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "context_schema")]
    pub fn with_context(mut self, context: impl Serialize) -> Result<Self, DriveError> {
        self.context = Some(Value::plain(&context)?);
        Ok(self)
    }

    /// Sets the metadata that the thread can be searched by. The next start stores it.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Starts a run with an input and returns when it stops: finished, waiting for a person, or any other [`Outcome`].
    ///
    /// Dropping the future stops everything the run was doing; the thread then waits for [`Thread::recover`].
    #[doc(alias = "invoke")]
    #[doc(alias = "ainvoke")]
    pub async fn start(&self, input: S::Update) -> Result<RunResult<S>, DriveError> {
        self.run(ThreadRequest::Start {
            input: Value::encode(&input)?,
            context: self.context.clone(),
            metadata: self.metadata.as_ref().map(Value::plain).transpose()?,
        })
        .await
    }

    /// Starts a run once: called again with the same key, it continues the run that it started, or returns how that run stopped.
    /// For a job that must not run twice, whatever happened to the process or the reply.
    ///
    /// The key is compared with that of the thread's last run; use a thread of its own for each job. A run that has not stopped
    /// is [recovered](Thread::recover): if the process that runs it is alive, it loses the thread. With an engine, an answer or
    /// a resume gives the run another id, and from then on the key no longer names it.
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
    /// let input = RefundUpdate::default().order("17").cents(900);
    /// let first = thread.start_once("refund-17", input.clone()).await?;
    /// // A webhook that is delivered again starts nothing.
    /// let again = thread.start_once("refund-17", input).await?;
    /// assert_eq!(first.run, again.run);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_once(
        &self,
        key: &str,
        input: S::Update,
    ) -> Result<RunResult<S>, DriveError> {
        let mut keyed = self.clone();
        keyed.options.run = Some(RunId::of_key(&self.id, key));
        match keyed.start(input).await {
            Err(DriveError::Open(taken @ OpenError::Taken { .. })) => {
                Ok(self.result().await?.ok_or(taken)?)
            }
            started => started,
        }
    }

    /// Returns how the thread's last run stopped, and the state it left. `None` if no run has stopped, if one is in progress, or
    /// if the thread was changed since.
    pub async fn result(&self) -> Result<Option<RunResult<S>>, DriveError> {
        let Some(loaded) = self.runtime.local.store().load(&self.id).await? else {
            return Ok(None);
        };
        let graph = self.graph.definition();
        let state = run::read_state(graph, &self.id, &loaded.history)?;
        let (Some(state), false) = (state, loaded.head.status == Status::Running) else {
            return Ok(None);
        };
        let stop = self.runtime.local.stop_at(&self.id, state.seq, &loaded);
        let Some(outcome) = stop.await? else {
            return Ok(None);
        };
        Ok(Some(RunResult {
            outcome,
            state: state.values.decode()?,
            run: state.run.run,
            seq: state.seq,
        }))
    }

    /// Starts a run and streams its events: what is stored, and what nodes show live. The stream ends with the run, and
    /// [`RunStream::finish`] returns how it stopped. Dropping the stream stops the run, as for [`Thread::start`], unless an engine
    /// executes it.
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::Event;
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Poem { text: String }
    /// # async fn example(thread: superstep::Thread<Poem>) -> Result<(), superstep::DriveError> {
    /// let mut run = thread.stream(PoemUpdate::default());
    /// while let Some(event) = run.next().await {
    ///     if let Event::Live(live) = event? {
    ///         print!("{}", live.payload.decode::<String>()?);
    ///     }
    /// }
    /// println!("{:?}", run.finish().await?.outcome);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "astream")]
    pub fn stream(&self, input: S::Update) -> RunStream<S> {
        let thread = self.clone();
        RunStream::new(self, async move { thread.start(input).await })
    }

    /// Answers one interrupt and streams the run that it resumes, as [`Thread::stream`] does. If the thread is running, the
    /// stream is that of the run in progress, which continues with the answer; it goes on until that run stops, and waits while
    /// the thread waits to be recovered.
    pub fn stream_answer(&self, interrupt: InterruptId, answer: impl Serialize) -> RunStream<S> {
        let thread = self.clone();
        let answer = Value::plain(&answer).and_then(|answer| answer.decode::<Json>());
        RunStream::new(self, async move {
            let answer = thread.checked_answer(interrupt, answer?).await?;
            thread.answer_to_the_end(answer).await
        })
    }

    /// Gives an answer, and returns how the run stops that continues with it, also if another process drives it.
    pub(crate) async fn answer_to_the_end(
        &self,
        answer: Answer,
    ) -> Result<RunResult<S>, DriveError> {
        if let Some(end) = self.execute(ThreadRequest::Answer(vec![answer])).await? {
            return self.stopped(end).await;
        }
        // The thread is running, and its run continues with the answer.
        loop {
            let status = self.status().await?;
            if let Some(result) = self.result().await? {
                return Ok(result);
            }
            if status != Some(Status::Running) {
                // It was changed or deleted since the run stopped.
                let thread = self.id.clone();
                return Err(OpenError::NothingToRun { thread }.into());
            }
            tokio::time::sleep(RESULT_POLL).await;
        }
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Resumes the thread where it stopped.
    pub async fn resume(&self) -> Result<RunResult<S>, DriveError> {
        self.run(ThreadRequest::Resume).await
    }

    /// Recovers a run whose process died or was drained. If that process is still alive, it loses the thread.
    pub async fn recover(&self) -> Result<RunResult<S>, DriveError> {
        self.run(ThreadRequest::Recover).await
    }

    /// Recovers, resumes or starts the thread, depending on its status. Programs call this when they come up. A run that was
    /// paused, failed, was cancelled or reached its step limit is resumed; `input` is used only if there is nothing to resume.
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
    /// // The same line starts the job and, after a crash, continues it.
    /// let stopped = thread.start_or_recover(RefundUpdate::default().cents(900)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_or_recover(&self, input: S::Update) -> Result<RunResult<S>, DriveError> {
        let loaded = self.runtime.local.store().load(&self.id).await?;
        match loaded.map_or(Status::Idle, |loaded| loaded.head.status) {
            Status::Running => self.recover().await,
            Status::Paused | Status::Failed | Status::Cancelled | Status::StepLimit => {
                self.resume().await
            }
            Status::Idle | Status::Deleted => self.start(input).await,
        }
    }

    /// Recovers the thread if its run did not stop, and resumes it otherwise.
    pub async fn recover_or_resume(&self) -> Result<RunResult<S>, DriveError> {
        match self.recover().await {
            // There is no run to recover.
            Err(DriveError::Open(_)) => self.resume().await,
            recovered => recovered,
        }
    }

    async fn execute(&self, request: ThreadRequest) -> Result<Option<RequestEnd>, DriveError> {
        let (driver, graph) = (self.runtime.driver(), self.graph.definition());
        let end = driver.execute(&self.id, graph, request, &self.options);
        end.await
    }

    /// Executes a request that must be complete when this returns: a request that another process continues is reported as
    /// busy.
    async fn completed(&self, request: ThreadRequest) -> Result<RequestEnd, DriveError> {
        let busy = || OpenError::Busy {
            thread: self.id.clone(),
        };
        Ok(self.execute(request).await?.ok_or_else(busy)?)
    }

    async fn run(&self, request: ThreadRequest) -> Result<RunResult<S>, DriveError> {
        let end = self.completed(request).await?;
        self.stopped(end).await
    }

    /// Returns how a run stopped and the state it left: from the run itself if this process drove it, otherwise from the store.
    async fn stopped(&self, end: RequestEnd) -> Result<RunResult<S>, DriveError> {
        let RequestEnd { run, seq, driven } = end;
        let (outcome, state) = match driven {
            Some((outcome, driven)) => {
                let state = match driven.into_state::<S>() {
                    Ok(state) => state,
                    // Some channels are not stored, or the run was driven with another graph of the same name.
                    Err(driven) => driven.values().decode()?,
                };
                (outcome, state)
            }
            None => self.stored_end(seq).await?,
        };
        Ok(RunResult {
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
            // Another run has started since.
            false => self.runtime.local.store().load_at(&self.id, seq).await?,
        };
        let state = run::read_state(self.graph.definition(), &self.id, &history)?;
        let state = match state {
            Some(state) => state.values.decode()?,
            None => S::default(),
        };
        Ok((outcome, state))
    }

    /// Returns the interrupts that wait for an answer.
    pub async fn interrupts(&self) -> Result<Vec<OpenInterrupt>, DriveError> {
        let query = InterruptQuery {
            tenant: self.id.tenant().to_owned(),
            thread: Some(self.id.clone()),
            threads: Vec::new(),
            open_only: true,
            due: None,
            page: Page {
                limit: 1_000,
                offset: 0,
            },
        };
        self.runtime.interrupts(&query).await
    }

    /// Answers one interrupt and resumes the thread. Exactly one answer to an interrupt wins; every other caller gets
    /// [`CheckpointError::NotOpen`](superstep_core::error::CheckpointError::NotOpen). Returns `None` if the thread is running: its
    /// owner continues with the answer.
    #[doc(alias = "resume")]
    pub async fn answer(
        &self,
        interrupt: InterruptId,
        answer: impl Serialize,
    ) -> Result<Option<RunResult<S>>, DriveError> {
        self.answer_as("", [(interrupt, answer)]).await
    }

    /// Answers the only open interrupt and resumes the thread. Fails if none or several are open.
    pub async fn answer_only(
        &self,
        answer: impl Serialize,
    ) -> Result<Option<RunResult<S>>, DriveError> {
        let only = self.only_interrupt().await?;
        let id = only.interrupt.id;
        let answers = self.check_answers("", &[only], [(id, answer)])?;
        self.answer_checked(answers).await
    }

    /// Answers the only open interrupt and returns how the run stops that continues with the answer, also if another process
    /// drives it. Fails if none or several are open.
    #[doc(alias = "Command(resume=)")]
    pub async fn resume_with(&self, answer: impl Serialize) -> Result<RunResult<S>, DriveError> {
        let only = self.only_interrupt().await?;
        let id = only.interrupt.id;
        let mut answers = self.check_answers("", &[only], [(id, answer)])?;
        self.answer_to_the_end(answers.remove(0)).await
    }

    async fn only_interrupt(&self) -> Result<OpenInterrupt, DriveError> {
        let mut open = self.interrupts().await?;
        match (open.pop(), open.len()) {
            (Some(only), 0) => Ok(only),
            (last, others) => Err(DriveError::AmbiguousAnswer {
                thread: self.id.clone(),
                open: others + usize::from(last.is_some()),
            }),
        }
    }

    /// Answers several interrupts, all or none, and resumes the thread. `by` names the person who answers and is stored with
    /// the answers.
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
    /// let open = thread.interrupts().await?;
    /// let all = open.iter().map(|open| (open.interrupt.id, true));
    /// thread.answer_as("ada@example.com", all).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn answer_as<A: Serialize>(
        &self,
        by: &str,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> Result<Option<RunResult<S>>, DriveError> {
        let open = self.interrupts().await?;
        let answers = self.check_answers(by, &open, answers)?;
        self.answer_checked(answers).await
    }

    async fn answer_checked(
        &self,
        answers: Vec<Answer>,
    ) -> Result<Option<RunResult<S>>, DriveError> {
        match self.execute(ThreadRequest::Answer(answers)).await? {
            Some(end) => Ok(Some(self.stopped(end).await?)),
            None => Ok(None),
        }
    }

    pub(crate) async fn checked_answer(
        &self,
        interrupt: InterruptId,
        answer: impl Serialize,
    ) -> Result<Answer, DriveError> {
        let open = self.interrupts().await?;
        let mut answers = self.check_answers("", &open, [(interrupt, answer)])?;
        Ok(answers.remove(0))
    }

    /// Checks answers against the interrupts that were just read as open. The store decides whether they still are.
    fn check_answers<A: Serialize>(
        &self,
        by: &str,
        open: &[OpenInterrupt],
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> Result<Vec<Answer>, DriveError> {
        let at = self.runtime.now();
        let mut stored = Vec::new();
        for (interrupt, answer) in answers {
            let stored_answer = Value::plain(&answer)?;
            if let Some(asked) = open.iter().find(|open| open.interrupt.id == interrupt) {
                run::check_answer(&asked.interrupt, &stored_answer.decode()?)
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

    /// Returns the state of the root graph at the newest entry; `None` if there is no such thread. [`Thread::state`] also tells
    /// what runs next.
    #[doc(alias = "get_state")]
    pub async fn values(&self) -> Result<Option<S>, DriveError> {
        let state = self.state().await?;
        Ok(state.map(|state| state.values.decode()).transpose()?)
    }

    /// Returns the thread's current state; `None` if there is no such thread.
    pub async fn state(&self) -> Result<Option<ThreadState>, DriveError> {
        let graph = self.graph.definition();
        self.runtime.state_of(graph, &self.id, None).await
    }

    /// Returns the thread's state as of an entry.
    pub async fn state_at(&self, seq: Seq) -> Result<Option<ThreadState>, DriveError> {
        let graph = self.graph.definition();
        self.runtime.state_of(graph, &self.id, Some(seq)).await
    }

    /// Returns the states of the subgraphs that the thread is inside of, now or as of an entry, parents first. A subgraph that
    /// has ended has none: what it returned is in the state of its parent.
    pub async fn subgraphs(&self, at: Option<Seq>) -> Result<Vec<SubgraphState>, DriveError> {
        let graph = self.graph.definition();
        self.runtime.subgraphs_of(graph, &self.id, at).await
    }

    pub(crate) fn store(&self) -> &RetryingCheckpointer {
        self.runtime.local.store()
    }

    pub(crate) fn definition(&self) -> &Arc<Definition> {
        self.graph.definition()
    }

    async fn status(&self) -> Result<Option<Status>, DriveError> {
        let glance = self.store().glance(&self.id, None).await?;
        Ok(glance.map(|glance| glance.status))
    }

    /// Returns the sequence number of the newest entry; 0 if there is none.
    pub(crate) async fn head(&self) -> Result<Seq, DriveError> {
        let loaded = self.runtime.local.store().load(&self.id).await?;
        Ok(loaded.map_or(Seq(0), |loaded| loaded.head.seq))
    }

    /// Returns at most `limit` entries after a sequence number, oldest first.
    pub async fn history(&self, after: Seq, limit: u32) -> Result<Vec<HistoryEntry>, DriveError> {
        self.runtime.entries_of(&self.id, after, limit).await
    }

    /// Returns everything that happened on the thread, as a tree of spans with their times. `Display` prints the tree.
    pub async fn trace(&self) -> Result<Trace, DriveError> {
        self.runtime.trace_of(&self.id).await
    }

    /// Returns all interrupts of the thread, answered ones included.
    pub(crate) async fn all_interrupts(&self) -> Result<Vec<InterruptRow>, DriveError> {
        self.runtime.all_interrupts_of(&self.id).await
    }

    /// Streams what happens on the thread after an entry: first what is stored, then live.
    pub fn events(&self, after: Seq) -> Events {
        self.events_at(LogPlace::after_entry(after))
    }

    /// Streams what happens on the thread after an item of the log, as [`Thread::events`] does: for a client that returns with
    /// the id of the last event that it saw (`Last-Event-ID`), also if that lies in the middle of an entry.
    pub fn events_after(&self, id: EventId) -> Events {
        self.events_at(LogPlace::after_event(id))
    }

    fn events_at(&self, place: LogPlace) -> Events {
        self.runtime
            .events_at(self.graph.definition(), &self.id, place)
    }

    /// Changes the state as if `node` had just returned this command. The node's routing decides what runs next; earlier plans
    /// are dropped.
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
    /// // A person corrects the amount, and the thread continues after `estimate`.
    /// thread.update_as("estimate", RefundUpdate::default().cents(450)).await?;
    /// thread.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_as(
        &self,
        node: &str,
        command: impl Into<Command<S>>,
    ) -> Result<Seq, DriveError> {
        self.update_state(EditNode::Node(NodeName::new(node)?), command.into())
            .await
    }

    /// Changes the state as if the node that ran last had returned this command. Fails unless exactly one node ran last.
    #[doc(alias = "update_state")]
    pub async fn update(&self, command: impl Into<Command<S>>) -> Result<Seq, DriveError> {
        self.update_state(EditNode::Last, command.into()).await
    }

    /// Writes an input without running. The next [`Thread::resume`] starts with it.
    pub async fn update_as_input(&self, input: S::Update) -> Result<Seq, DriveError> {
        self.update_state(EditNode::Input, Command::update(input))
            .await
    }

    /// Drops whatever was planned: the thread is finished with its current state.
    pub async fn finish(&self) -> Result<Seq, DriveError> {
        self.update_state(EditNode::End, Command::update(S::Update::default()))
            .await
    }

    /// Makes several updates of the state in one commit: as several nodes, inside a subgraph that is open, or from an older entry.
    /// Returns the entry that it wrote.
    ///
    /// Interrupts of the tasks that the edit replaces close. Tasks outside of an edited subgraph keep theirs.
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
    /// use superstep::run::{Edit, EditNode, ThreadEdit};
    /// use superstep::{FramePath, NodeName};
    ///
    /// let node = EditNode::Node(NodeName::new("estimate")?);
    /// let correction = Command::<Refund>::update(RefundUpdate::default().cents(450));
    /// let edit = ThreadEdit {
    ///     at: Some(Seq(2)),
    ///     frame: FramePath::root(),
    ///     updates: vec![Edit::new(node, correction)?],
    /// };
    /// thread.edit(edit).await?;
    /// thread.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "bulk_update_state")]
    pub async fn edit(&self, edit: ThreadEdit) -> Result<Seq, DriveError> {
        self.change(ThreadRequest::Edit(edit)).await
    }

    async fn update_state(&self, node: EditNode, command: Command<S>) -> Result<Seq, DriveError> {
        let Edit { node, update, goto } = Edit::new(node, command)?;
        self.change(ThreadRequest::Update { node, update, goto })
            .await
    }

    async fn change(&self, request: ThreadRequest) -> Result<Seq, DriveError> {
        Ok(self.completed(request).await?.seq)
    }

    /// Goes back to an entry, or with 0 to the beginning. Later entries stay in the history; the next [`Thread::resume`] continues from the entry on a new
    /// branch, whose effects have new keys.
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
    /// let checkpoints = thread.checkpoints(Seq(0), 1_000).await?;
    /// if let Some(before) = checkpoints.iter().rfind(|checkpoint| checkpoint.next == ["refund"]) {
    ///     thread.fork(before.seq).await?;
    ///     thread.update(RefundUpdate::default().cents(450)).await?;
    ///     thread.resume().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fork(&self, at: Seq) -> Result<Seq, DriveError> {
        self.change(ThreadRequest::Fork { at }).await
    }

    /// Goes back to an entry and runs everything after it again, on a new branch.
    pub async fn replay(&self, at: Seq) -> Result<RunResult<S>, DriveError> {
        self.fork(at).await?;
        self.resume().await
    }

    /// Copies the thread with its history to a new thread `to`, up to an entry (`None`: all of it).
    pub async fn copy_to(&self, to: &str, upto: Option<Seq>) -> Result<Thread<S>, DriveError> {
        self.copy(to, upto, None, None).await
    }

    /// Copies the thread up to an entry and writes `write` into the copy's state. The copy keeps what was planned there, and
    /// asks every interrupt that was open there again.
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
    /// // What if it were half? The original stays as it is.
    /// let half = RefundUpdate::default().cents(450);
    /// let copy = thread.copy_with("order-17-half", None, half).await?;
    /// copy.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn copy_with(
        &self,
        to: &str,
        upto: Option<Seq>,
        write: S::Update,
    ) -> Result<Thread<S>, DriveError> {
        let write = Value::encode(&write)?;
        self.copy(to, upto, Some(&write), None).await
    }

    /// Copies the thread up to an entry, like [`Thread::copy_with`], and replaces the context of its run: what nodes read with
    /// [`NodeCx::context`](crate::NodeCx::context).
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
    /// let nothing = RefundUpdate::default();
    /// let copy = thread.copy_with_context("order-17-other", None, nothing, "another model").await?;
    /// copy.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn copy_with_context(
        &self,
        to: &str,
        upto: Option<Seq>,
        write: S::Update,
        context: impl Serialize,
    ) -> Result<Thread<S>, DriveError> {
        let (write, context) = (Value::encode(&write)?, Value::plain(&context)?);
        self.copy(to, upto, Some(&write), Some(&context)).await
    }

    async fn copy(
        &self,
        to: &str,
        upto: Option<Seq>,
        write: Option<&Value>,
        context: Option<&Value>,
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
            context,
        };
        let (graph, moment) = (self.graph.definition(), self.runtime.local.moment());
        let commit = run::fork(graph, &copy.id, loaded, &from, moment)?;
        self.runtime.local.save_change(&commit).await?;
        Ok(copy)
    }

    /// Cancels the thread's run and returns when it has stopped.
    pub async fn cancel(&self) -> Result<(), DriveError> {
        self.runtime.cancel(&self.id).await
    }
}

impl<S: State> Clone for Thread<S> {
    fn clone(&self) -> Self {
        Self {
            runtime: self.runtime.clone(),
            graph: self.graph.clone(),
            id: self.id.clone(),
            options: self.options.clone(),
            context: self.context.clone(),
            metadata: self.metadata.clone(),
        }
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

/// How often the store is asked whether a run that another task or process drives has stopped.
const RESULT_POLL: Duration = Duration::from_millis(100);
