//! Opens a thread: reads where it stopped, checks that this graph can resume it, and applies the request.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::checkpoint::format::{
    Body, Change, EntryKind, FrameOpened, GotoRecord, InterruptRecord, Next, RECORD_SEQ, Record,
    RecordContent, RunRecord, StateWritten, Stop,
};
use crate::checkpoint::{
    Head, InterruptRow, Loaded, Metadata, RESULT_KEY, RecordRow, Released, ReleasedRecords, Status,
};
use crate::driver::ThreadRequest;
use crate::error::{Failure, FailureKind, FormatError, OpenError};
use crate::graph::{AnyUpdate, Definition};
use crate::ids::{Epoch, FramePath, Moment, NodeName, RunId, ThreadId};
use crate::node::StepKept;
use crate::run::commit::{LogSize, Pending};
use crate::run::edit::{bad_input, outside_writer, prepare_update};
use crate::run::frame_map::FrameMap;
use crate::run::live::TaskPlaces;
use crate::run::phase::Phase;
use crate::run::position::Position;
use crate::run::suspend::{Reopened, ResumeToken};
use crate::run::{Interrupts, Progress, Recorded, Run, Spare, plan};
use crate::trace::CallerSpan;
use crate::value::Value;

/// When a superstep is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Durability {
    /// Before the next one starts. An acknowledged superstep never runs again.
    #[default]
    Sync,
    /// While the next one runs. A crash may repeat the superstep that was being stored.
    Async,
    /// When the run stops. A crash loses the run.
    Exit,
}

/// Options of a run. Every limit has a name and a default.
///
/// ```
/// use superstep_core::run::{Durability, RunOptions};
///
/// let options = RunOptions::default()
///     .durability(Durability::Async)
///     .step_limit(100);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunOptions {
    /// Id of the run. Default: a derived one. A start or resume with an id is executed once: opened again, it continues the run
    /// that it started, or is refused with [`OpenError::Taken`] if that run has stopped.
    pub run: Option<RunId>,
    /// When supersteps are made durable. Default: [`Durability::Sync`].
    pub durability: Durability,
    /// Number of supersteps that each graph may execute before the run stops; resuming allows as many again. Default: 10,000.
    #[doc(alias = "recursion_limit")]
    pub step_limit: u64,
    /// Highest number of tasks in a superstep. Default: 100,000.
    pub tasks_max: usize,
    /// How often a run may be recovered without progress before it ends as failed. Default: 3.
    pub recoveries_max: u32,
    /// Nodes before which this run stops, besides the breakpoints of the graph.
    pub pause_before: BTreeSet<NodeName>,
    /// Nodes after which this run stops, besides the breakpoints of the graph.
    pub pause_after: BTreeSet<NodeName>,
    /// Whether a resume of a thread that has finished ends as finished too, instead of being refused with
    /// [`OpenError::NothingToRun`]. Default: no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub finish_if_idle: bool,
    /// Span of the caller, in whose trace a run that starts is. Default: none; the run has a trace of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<CallerSpan>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            run: None,
            durability: Durability::default(),
            step_limit: 10_000,
            tasks_max: 100_000,
            recoveries_max: 3,
            pause_before: BTreeSet::new(),
            pause_after: BTreeSet::new(),
            finish_if_idle: false,
            caller: None,
        }
    }
}

impl RunOptions {
    /// Sets the id of the run: a start or resume with an id is executed once.
    #[must_use]
    pub fn run(mut self, id: RunId) -> Self {
        self.run = Some(id);
        self
    }

    /// Sets when supersteps are made durable.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets how many supersteps each graph may execute before the run stops.
    #[must_use]
    pub fn step_limit(mut self, supersteps: u64) -> Self {
        self.step_limit = supersteps;
        self
    }

    /// Sets the highest number of tasks in a superstep.
    #[must_use]
    pub fn tasks_max(mut self, tasks: usize) -> Self {
        self.tasks_max = tasks;
        self
    }

    /// Sets how often a run may be recovered without progress before it ends as failed.
    #[must_use]
    pub fn recoveries_max(mut self, recoveries: u32) -> Self {
        self.recoveries_max = recoveries;
        self
    }

    /// Adds a node before which the run stops.
    #[must_use]
    pub fn pause_before(mut self, node: NodeName) -> Self {
        self.pause_before.insert(node);
        self
    }

    /// Adds a node after which the run stops.
    #[must_use]
    pub fn pause_after(mut self, node: NodeName) -> Self {
        self.pause_after.insert(node);
        self
    }

    /// Sets the span of the caller, in whose trace the run is if it starts.
    #[must_use]
    pub fn caller(mut self, caller: CallerSpan) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Lets a resume of a thread that has finished end as finished too.
    #[must_use]
    pub fn finish_if_idle(mut self) -> Self {
        self.finish_if_idle = true;
        self
    }
}

impl Run {
    /// Opens a thread for a request. Nothing runs and nothing is written before the first [`Run::next_step`].
    ///
    /// Whether a request may proceed depends on two facts: whether the thread is running, and whether the thread's last run
    /// is the one that this request began earlier, which only a request with a run id can know. A caller that lost the reply
    /// to its start or resume repeats it under the same id:
    ///
    /// | | its own run | another run, or none |
    /// |---|---|---|
    /// | running | recover it: its owner may be gone | busy, unless the request is to recover |
    /// | stopped | taken: it was carried out before | proceed |
    ///
    /// A request that changes the thread first (answers, an update, a fork) is opened after the driver made that change
    /// durable, and then resumes. What the caller of a resume writes is part of the run's first commit instead, so a repeated
    /// request does not write again: it is taken, or recovers the run.
    pub fn open(
        graph: &Arc<Definition>,
        thread: &ThreadId,
        loaded: Option<Loaded>,
        request: ThreadRequest,
        options: RunOptions,
        moment: Moment,
    ) -> Result<Self, OpenError> {
        let loaded = loaded.unwrap_or_default();
        let is_running = loaded.head.status == Status::Running;
        let recovers = matches!(request, ThreadRequest::Recover);
        let busy = || OpenError::Busy {
            thread: thread.clone(),
        };
        // Without an id, the request cannot own the run, so a busy thread is refused before its history is read.
        if is_running && !recovers && options.run.is_none() {
            return Err(busy());
        }
        let position = Position::read(graph, thread, &loaded.history)?;
        let own = position
            .as_ref()
            .filter(|position| options.run == Some(position.run.run));
        match (is_running, own) {
            (true, None) if !recovers => return Err(busy()),
            (true, _) => {
                let position = position.unwrap_or_else(|| lost_position(graph, thread, &loaded));
                return Self::take_over(position, &loaded, options, moment, Reopened::AfterCrash);
            }
            (false, Some(own)) => {
                return Err(OpenError::Taken {
                    thread: thread.clone(),
                    run: own.run.run,
                });
            }
            (false, None) => {}
        }
        match request {
            ThreadRequest::Start {
                input,
                context,
                metadata,
            } => {
                let started = Started {
                    graph,
                    thread,
                    input,
                    context,
                    metadata,
                };
                started.open(loaded, position, options, moment)
            }
            ThreadRequest::Resume
            | ThreadRequest::Recover
            | ThreadRequest::Answer(_)
            | ThreadRequest::Update { .. }
            | ThreadRequest::Fork { .. }
            | ThreadRequest::Edit(_) => Self::resume(thread, position, &loaded, options, moment),
            ThreadRequest::ResumeWith { write, context, .. } => {
                let mut run = Self::resume(thread, position, &loaded, options, moment)?;
                run.write_on_resume(write.as_ref(), context)?;
                Ok(run)
            }
            ThreadRequest::GoTo {
                goto,
                write,
                context,
            } => {
                let (position, next) = go_to(thread, position, &goto)?;
                let mut run = Self::resume(thread, Some(position), &loaded, options, moment)?;
                run.write_on_resume(write.as_ref(), context)?;
                run.pending.push(EntryKind::Resume, Change::Replanned(next));
                Ok(run)
            }
        }
    }

    /// Opens a run that continues where the thread stopped.
    fn resume(
        thread: &ThreadId,
        position: Option<Position>,
        loaded: &Loaded,
        options: RunOptions,
        moment: Moment,
    ) -> Result<Self, OpenError> {
        let position = position.filter(|position| {
            has_work(position) || options.finish_if_idle && position.root().is_some()
        });
        let nothing = || OpenError::NothingToRun {
            thread: thread.clone(),
        };
        let mut run = Self::at(position.ok_or_else(nothing)?, loaded, options, moment);
        let frames = run.position.frames.iter();
        run.progress.passed = frames
            .map(|(path, frame)| (path.clone(), frame.step))
            .collect();
        run.restore_tasks(loaded, Reopened::AfterCrash)?;
        if let Some(id) = run.options.run {
            run.position.run.run = id;
            run.pending.push(EntryKind::Resume, Change::RunResumed(id));
        }
        Ok(run)
    }

    /// Applies what the caller of a resume writes. The entry of the resume stores it.
    fn write_on_resume(
        &mut self,
        write: Option<&Value>,
        context: Option<Value>,
    ) -> Result<(), OpenError> {
        if write.is_none() && context.is_none() {
            return Ok(());
        }
        let graph = self.position.graph.clone();
        let (mut stored, mut update) = (None, None);
        if let (Some(write), Some(root)) = (write, self.position.root()) {
            let writer = outside_writer(&self.position.thread, self.head, 0);
            let prepared = prepare_update(&graph, &root.state, write, writer)?;
            (stored, update) = (Some(prepared.stored), Some(prepared.read_back));
        }
        self.position
            .write(update, context.clone())
            .map_err(|error| bad_input(&graph, error))?;
        let written = StateWritten {
            update: stored,
            context,
        };
        self.pending
            .push(EntryKind::Resume, Change::StateWritten(written));
        Ok(())
    }

    /// Opens a run that a segment suspended. This does not count as a recovery, unless another process resumed the run since
    /// and crashed.
    pub fn resume_suspended(
        graph: &Arc<Definition>,
        thread: &ThreadId,
        loaded: Option<Loaded>,
        token: ResumeToken,
        options: RunOptions,
        moment: Moment,
    ) -> Result<Self, OpenError> {
        let loaded = loaded.unwrap_or_default();
        let position = Position::read(graph, thread, &loaded.history)?;
        if loaded.head.status != Status::Running {
            let thread = thread.clone();
            return Err(match position {
                // Another segment drove the run to its end.
                Some(position) => OpenError::Taken {
                    thread,
                    run: position.run.run,
                },
                None => OpenError::NothingToRun { thread },
            });
        }
        let reopened = match token.epoch == loaded.head.epoch {
            true => Reopened::Suspended,
            false => Reopened::AfterCrash,
        };
        let position = position.unwrap_or_else(|| lost_position(graph, thread, &loaded));
        let mut run = Self::take_over(position, &loaded, options, moment, reopened)?;
        run.restore_token(token);
        Ok(run)
    }

    /// Opens a run that did not stop.
    fn take_over(
        position: Position,
        loaded: &Loaded,
        options: RunOptions,
        moment: Moment,
        reopened: Reopened,
    ) -> Result<Self, OpenError> {
        let mut run = Self::at(position, loaded, options, moment);
        run.restore_tasks(loaded, reopened)?;
        Ok(run)
    }

    /// Creates a state machine at the thread's current position.
    pub(super) fn at(
        position: Position,
        loaded: &Loaded,
        options: RunOptions,
        moment: Moment,
    ) -> Self {
        let size = LogSize::of(&loaded.history, position.is_outdated());
        Self {
            options,
            now: moment.now,
            head: loaded.head,
            position,
            metadata: None,
            live: FrameMap::new(),
            ready: FrameMap::from_iter([(FramePath::root(), ())]),
            progress: Progress::default(),
            places: TaskPlaces::default(),
            spare: Spare::default(),
            recorded: Recorded::default(),
            interrupts: Interrupts::default(),
            pending: Pending {
                claim: Some(loaded.head.epoch.claimed(moment.entropy)),
                ..Pending::default()
            },
            saving: None,
            phase: Phase::Running,
            queue: VecDeque::new(),
            size,
            draining: false,
            last_execution: moment.entropy,
        }
    }

    /// Takes in what the thread recorded and which answers it received before.
    pub(super) fn restore_tasks(
        &mut self,
        loaded: &Loaded,
        reopened: Reopened,
    ) -> Result<(), OpenError> {
        self.position.check()?;
        self.take_records(&loaded.records)?;
        self.take_interrupts(&loaded.interrupts)?;
        self.pending.recoveries = if loaded.head.status == Status::Running {
            // A suspended run has not crashed, so resuming it is not a recovery.
            loaded.head.recoveries + u32::from(reopened == Reopened::AfterCrash)
        } else {
            0
        };
        if !has_work(&self.position) {
            // The owner died between the last superstep and the commit of the stop, or had stored nothing.
            self.ready.clear();
            self.phase = Phase::Stopping(Stop::Finished);
        } else if self.pending.recoveries > self.options.recoveries_max {
            self.phase = Phase::Stopping(Stop::Failed(vec![self.poisoned()]));
        }
        Ok(())
    }

    fn poisoned(&self) -> Failure {
        let waiting = self
            .position
            .root()
            .and_then(|root| root.next.tasks.first());
        let start = || NodeName::new("start").expect("a node name");
        Failure {
            frame: FramePath::root(),
            node: waiting.map_or_else(start, |task| task.node.clone()),
            task: None,
            kind: FailureKind::Poisoned,
            message: format!(
                "recovered {} times without progress; resume it to try again",
                self.options.recoveries_max
            ),
            code: None,
            attempts: self.pending.recoveries,
        }
    }

    /// Takes the records that the claim returned. The former owner may have written more since the load, and can write no more
    /// now.
    pub(super) fn take_records_of_claim(&mut self, rows: &[RecordRow]) {
        if let Err(error) = self.take_records(rows) {
            let failure = Failure {
                kind: FailureKind::RecordUnreadable,
                message: crate::error::chain(&error),
                ..self.poisoned()
            };
            self.phase = Phase::Stopping(Stop::Failed(vec![failure]));
        }
    }

    fn take_records(&mut self, rows: &[RecordRow]) -> Result<(), FormatError> {
        let thread = self.position.thread.clone();
        for row in rows {
            if row.key == RESULT_KEY {
                self.recorded.results.insert(row.task, row.body.clone());
                continue;
            }
            let record = Record::unseal(&row.body, &thread, RECORD_SEQ)?;
            let read = record.labels()?;
            if let RecordContent::Step(step) = record.content {
                self.recorded
                    .steps
                    .entry(row.task)
                    .or_default()
                    .insert(row.key.clone(), StepKept { step, read });
            }
        }
        Ok(())
    }

    fn take_interrupts(&mut self, rows: &[InterruptRow]) -> Result<(), OpenError> {
        for row in rows {
            let question = InterruptRecord::unseal(&row.body, &row.thread, row.seq)?;
            self.interrupts
                .asked
                .insert(row.id, (question.task, question.key.clone()));
            match &row.answer {
                Some(answer) => drop(
                    self.interrupts
                        .answers
                        .entry(question.task)
                        .or_default()
                        .insert(question.key, answer.clone()),
                ),
                None => self
                    .interrupts
                    .unanswered
                    .entry(question.task)
                    .or_default()
                    .push(question),
            }
        }
        Ok(())
    }
}

/// The position of a run of which only the claim was stored, because it persists only when it stops.
fn lost_position(graph: &Arc<Definition>, thread: &ThreadId, loaded: &Loaded) -> Position {
    let record = RunRecord {
        run: RunId::derive(thread, loaded.head.seq, loaded.head.epoch),
        graph: graph.name.clone(),
        context: None,
        step_limit: 0,
    };
    Position::empty(graph, thread, record)
}

/// Whether something is planned that a run could continue with.
pub(super) fn has_work(position: &Position) -> bool {
    position.root().is_some_and(|root| !root.next.is_done())
}

/// Adds targets to what is planned for the root graph of a thread that has run.
fn go_to(
    thread: &ThreadId,
    position: Option<Position>,
    goto: &[GotoRecord],
) -> Result<(Position, Next), OpenError> {
    let mut position = position.ok_or_else(|| OpenError::NothingToRun {
        thread: thread.clone(),
    })?;
    let graph = position.graph.clone();
    let Some(root) = position.frames.get_mut(&FramePath::root()) else {
        return Err(OpenError::NothingToRun {
            thread: thread.clone(),
        });
    };
    let next = plan::go_to(&graph, &root.next, goto)
        .map_err(|error| bad_input(&graph, error.to_string()))?;
    root.next.clone_from(&next);
    Ok((position, next))
}

/// A run that starts with an input.
struct Started<'a> {
    graph: &'a Arc<Definition>,
    thread: &'a ThreadId,
    input: Value,
    context: Option<Value>,
    metadata: Option<Value>,
}

impl Started<'_> {
    fn open(
        self,
        loaded: Loaded,
        position: Option<Position>,
        options: RunOptions,
        moment: Moment,
    ) -> Result<Run, OpenError> {
        let record = RunRecord {
            run: options.run.unwrap_or_else(|| {
                RunId::derive(
                    self.thread,
                    loaded.head.seq.next(),
                    loaded.head.epoch.claimed(moment.entropy),
                )
            }),
            graph: self.graph.name.clone(),
            context: self.context.clone(),
            step_limit: options.step_limit,
        };
        let metadata: Option<Metadata> = (self.metadata.as_ref().map(Value::decode).transpose())
            .map_err(|error| self.bad_input(error))?;
        let mut position =
            position.unwrap_or_else(|| Position::empty(self.graph, self.thread, record.clone()));
        position.run = record.clone();
        let (opened, input) = self.opened(&position, loaded.head)?;
        position
            .open(&opened, self.graph.clone(), Some(input))
            .map_err(|error| self.bad_input(error))?;
        let root = position.frame(&FramePath::root());
        let next = plan::first(self.graph, &root.state)
            .map_err(|error| self.bad_input(error.to_string()))?;
        position.frame_mut(&FramePath::root()).next = next.clone();

        let mut run = Run::at(position, &loaded, options, moment);
        run.metadata = metadata;
        // Interrupts and records from before belong to tasks that this start drops.
        run.pending.closed = loaded.interrupts.iter().map(|row| row.id).collect();
        let tasks: BTreeSet<_> = loaded.records.iter().map(|row| row.task).collect();
        run.pending.released = tasks
            .into_iter()
            .map(|task| Released {
                task,
                which: ReleasedRecords::All,
            })
            .collect();
        run.pending
            .push(EntryKind::Input, Change::RunStarted(record));
        run.pending.push(
            EntryKind::Input,
            Change::FrameOpened(FrameOpened { next, ..opened }),
        );
        if run.position.root().is_some_and(|root| root.next.is_done()) {
            run.ready.clear();
            run.phase = Phase::Stopping(Stop::Finished);
        }
        Ok(run)
    }

    /// Opens the root graph with the input, and returns the input in the form in which it is applied.
    fn opened(
        &self,
        position: &Position,
        head: Head,
    ) -> Result<(FrameOpened, AnyUpdate), OpenError> {
        let ops = &self.graph.ops;
        let update = ops
            .decode_update(&self.input, ops.version())
            .map_err(|error| self.bad_input(error))?;
        let state = position
            .root()
            .map_or_else(|| ops.initial(), |root| root.state.clone());
        let id = RunId::derive(self.thread, head.seq.next(), Epoch(0));
        let task = crate::ids::TaskId::from_bytes(id.to_bytes());
        let prepared = ops
            .prepare(&state, update, task)
            .map_err(|error| self.bad_input(error))?;
        let opened = FrameOpened {
            frame: FramePath::root(),
            entered_by: None,
            version: ops.version(),
            input: Some(prepared.stored),
            next: Next::default(),
        };
        Ok((opened, prepared.read_back))
    }

    fn bad_input(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> OpenError {
        OpenError::BadInput {
            graph: self.graph.name.clone(),
            source: error.into(),
        }
    }
}
