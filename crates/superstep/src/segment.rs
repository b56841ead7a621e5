//! Runs in segments, for a driver that spreads them over processes.
//!
//! A segment opens a thread, claims it, makes many supersteps, each stored before the next, and puts the run down at a
//! [`Boundary`]: a small fact that an engine can journal. Whatever happens between two segments, the next one finds in
//! the store how far the last one came. Tasks of a wide superstep are not run by the segment but handed over: each is
//! run by whoever is asked to, with [`Runtime::run_task`], and told of in the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use superstep_core::checkpoint::format::OnDeadline;
use superstep_core::checkpoint::{Loaded, RESULT_KEY, RecordWrite, Status};
use superstep_core::driver::{Order, Ordered};
use superstep_core::error::{CheckpointError, OpenError};
use superstep_core::graph::Definition;
use superstep_core::node::{Receipt, Task, TaskEnd};
use superstep_core::run::{self, Carried, Durability, Edit, ForkFrom, RunCommand, RunOptions};
use superstep_core::{Epoch, InterruptId, Outcome, Run, RunId, Seq, TaskId, ThreadId, Timestamp};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::drive_error::DriveError;
use crate::runtime::{Runtime, lock};
use crate::spans;

/// How far a segment goes.
#[derive(Debug, Clone)]
pub struct SegmentLimits {
    /// How many supersteps it makes at most.
    pub supersteps: u32,
    /// After how long it begins no further one.
    pub time: Duration,
    /// How long it waits itself; a longer wait is left to the engine.
    pub longest_wait: Duration,
    /// How often it looks whether the run is to be cancelled while a node runs.
    pub cancel_poll: Duration,
    /// From how many tasks on a superstep is handed over.
    pub hand_over: usize,
}

impl Default for SegmentLimits {
    fn default() -> Self {
        Self {
            supersteps: 64,
            time: Duration::from_secs(30),
            longest_wait: Duration::from_secs(2),
            cancel_poll: Duration::from_secs(1),
            hand_over: 2,
        }
    }
}

/// Where a segment put its run down. Holds nothing of the user's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Boundary {
    /// The run has stopped; how is in the store.
    Stopped(Report),
    /// It goes on with another segment.
    GoOn(Carried),
    /// Nothing is to be done before this time.
    Sleep {
        /// When it goes on.
        until: Timestamp,
        /// For the next segment.
        carried: Carried,
    },
    /// These tasks are to be run, anywhere, in any order; it goes on when every one was.
    HandOver {
        /// Which.
        tasks: Vec<TaskId>,
        /// For [`Runtime::run_task`], and for the next segment.
        carried: Carried,
    },
}

/// What became of an order. How a run stopped is read from its thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The run.
    pub run: RunId,
    /// The entry that tells of it.
    pub seq: Seq,
    /// Questions that answer themselves when their time has passed, and when that is.
    pub due: Vec<(InterruptId, Timestamp)>,
}

/// What ends a segment before its run stops.
pub(crate) struct Stretch<'a> {
    limits: &'a SegmentLimits,
    begun: Instant,
    supersteps: u32,
    /// Whether tasks may be run elsewhere: then all that happens is stored at once.
    hands_over: bool,
    /// Tasks that others are to run.
    abroad: Vec<TaskId>,
    /// For those that are run here.
    receipts: BTreeMap<TaskId, Receipt>,
    next_look: Instant,
}

impl<'a> Stretch<'a> {
    fn new(limits: &'a SegmentLimits, durability: Durability) -> Self {
        let now = Instant::now();
        Self {
            limits,
            begun: now,
            supersteps: 0,
            hands_over: durability == Durability::Sync,
            abroad: Vec::new(),
            receipts: BTreeMap::new(),
            next_look: now + limits.cancel_poll,
        }
    }

    /// Whether the run is put down instead of starting these.
    pub(crate) fn is_over(&self, run: &Run, is_draining: bool) -> bool {
        let far = self.supersteps >= self.limits.supersteps
            || self.begun.elapsed() >= self.limits.time
            || is_draining;
        far && self.abroad.is_empty() && run.is_stored()
    }

    /// Takes out the tasks that others are to run. Gives those that are to be run here.
    pub(crate) fn hand_over(&mut self, run: &mut Run, tasks: Vec<Task>) -> Vec<Task> {
        self.supersteps += 1;
        if !self.hands_over {
            return tasks;
        }
        let can_move = tasks.iter().filter(|task| task.can_move()).count();
        let (abroad, here): (Vec<_>, Vec<_>) =
            match can_move >= self.limits.hand_over && run.is_stored() {
                true => tasks.into_iter().partition(Task::can_move),
                false => (Vec::new(), tasks),
            };
        if !abroad.is_empty() {
            self.abroad.extend(abroad.iter().map(Task::id));
            // Nothing else begins before they are back: what happens meanwhile would not be seen by them.
            run.drain();
        }
        let receipts = here.iter().map(|task| (task.id(), task.receipt()));
        self.receipts.extend(receipts);
        here
    }

    /// The record that tells of a task that ended here without a result, while others are abroad: the run is put down
    /// before it could take that in.
    pub(crate) fn written(&mut self, task: TaskId, end: &TaskEnd) -> Option<RecordWrite> {
        let receipt = self.receipts.remove(&task)?;
        match self.abroad.is_empty() {
            true => None,
            false => receipt.record(end),
        }
    }

    /// Where the run is put down when nothing of it is under way here.
    pub(crate) fn boundary(
        &self,
        run: &Run,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Boundary> {
        if !run.is_stored() {
            return None;
        }
        let carried = run.carried();
        if !self.abroad.is_empty() {
            let tasks = self.abroad.clone();
            return Some(Boundary::HandOver { tasks, carried });
        }
        let until = until?;
        let wait = u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0);
        let is_long = Duration::from_millis(wait) > self.limits.longest_wait;
        is_long.then_some(Boundary::Sleep { until, carried })
    }

    /// Returns when it is time to look whether the run is to be cancelled.
    pub(crate) async fn time_to_look(&mut self) {
        tokio::time::sleep_until(self.next_look).await;
        self.next_look = Instant::now() + self.limits.cancel_poll;
    }
}

impl Runtime {
    /// Carries out a part of an order: its first segment, or the next one with what the last one [carried](Boundary).
    ///
    /// An error is final for the order only if [`DriveError::is_refusal`] says so; any other means that the same call may be
    /// made again, here or in another process.
    pub async fn segment(
        &self,
        thread: &ThreadId,
        id: RunId,
        order: &Order,
        carried: Option<Carried>,
        limits: &SegmentLimits,
    ) -> Result<Boundary, DriveError> {
        let graph = self.graph_named(&order.graph, thread)?;
        let options = order.options(id)?;
        let mut stretch = Stretch::new(limits, options.durability);
        let is_answer = matches!(order.what, Ordered::Answer(_));
        let is_first = carried.is_none();
        let command = match carried {
            Some(carried) => RunCommand::GoOn(carried),
            None => self.command_of(thread, &graph, order, &options).await?,
        };
        // Both at once: an answer waits for nothing that it need not wait for.
        let store = &self.inner.store;
        let (loaded, glance) = match is_answer && is_first {
            true => tokio::try_join!(store.load(thread), store.glance(thread, None))?,
            false => (store.load(thread).await?, None),
        };
        let head = loaded
            .as_ref()
            .map(|loaded| loaded.head)
            .unwrap_or_default();
        // Answers that came while the thread ran were taken by whoever ran it. At another epoch they were taken since the
        // thread was read, perhaps by an earlier call of this very order, and the claim will find that out.
        let is_seen = glance.is_some_and(|glance| !glance.unseen && glance.epoch == head.epoch);
        if let Some(loaded) = loaded.as_ref().filter(|_| is_seen)
            && head.status != Status::Running
        {
            let outcome = self.outcome_at(thread, head.seq, loaded).await?;
            return Ok(stopped(id, head.seq, &outcome));
        }
        let run = match Run::open(&graph, thread, loaded, command, options, self.moment()) {
            Ok(run) => run,
            // An earlier call came to the end, and nobody was told.
            Err(OpenError::Taken { run, .. }) => {
                let loaded = self.inner.store.load(thread).await?.unwrap_or_default();
                let outcome = self.outcome_at(thread, head.seq, &loaded).await?;
                return Ok(stopped(run, head.seq, &outcome));
            }
            // An answer to a question of a thread that is finished with it.
            Err(OpenError::NothingToRun { .. } | OpenError::Busy { .. }) if is_answer => {
                let (run, seq) = (id, head.seq);
                let due = Vec::new();
                return Ok(Boundary::Stopped(Report { run, seq, due }));
            }
            Err(error @ OpenError::Busy { .. }) => return Err(error.into()),
            // A run that is under way is not given up: another version of this program may know what to do with it.
            Err(error) if head.status == Status::Running => {
                return Err(DriveError::Stuck(Box::new(error.into())));
            }
            Err(error) => return Err(error.into()),
        };
        match self.drive_stretch(run, Some(&mut stretch)).await {
            Ok(Driven::Stopped(outcome, run)) => Ok(stopped(run.id(), run.seq(), &outcome)),
            Ok(Driven::PutDown(boundary)) => Ok(boundary),
            // Somebody wrote between the look and the claim: an earlier call of this very order that is not gone yet, as far
            // as can be known here. Whose thread it is shows when it is looked at again.
            Err(DriveError::Open(OpenError::Busy { thread })) => {
                let epoch = head.epoch;
                Err(CheckpointError::Fenced { thread, epoch }.into())
            }
            Err(error) => Err(error),
        }
    }

    /// What an order means to the machine; what it says is written first where it says something.
    async fn command_of(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        order: &Order,
        options: &RunOptions,
    ) -> Result<RunCommand, DriveError> {
        Ok(match &order.what {
            Ordered::Start {
                input,
                context,
                metadata,
            } => RunCommand::Start {
                input: input.clone(),
                context: context.clone(),
                metadata: metadata.as_ref().map(|value| value.decode()).transpose()?,
            },
            Ordered::Answer(answers) => {
                self.check_resumable(thread, graph, options).await?;
                self.inner.store.answer(thread, answers).await?;
                RunCommand::Resume
            }
            Ordered::Recover => RunCommand::Recover,
            Ordered::Resume | Ordered::Update { .. } | Ordered::Fork { .. } => RunCommand::Resume,
        })
    }

    /// Refuses an answer that this version of the program could not go on with, before it is written: then the question
    /// stays open for a version that can.
    async fn check_resumable(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        options: &RunOptions,
    ) -> Result<(), DriveError> {
        let loaded = self.inner.store.load(thread).await?;
        let (resume, options) = (RunCommand::Resume, options.clone());
        match Run::open(graph, thread, loaded, resume, options, self.moment()) {
            // Whether somebody else is at it, or has been, is for the store to say, which knows the question.
            Ok(_)
            | Err(
                OpenError::Busy { .. } | OpenError::NothingToRun { .. } | OpenError::Taken { .. },
            ) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the run of a thread is still wanted: it is running, and nobody asked for it to be cancelled.
    pub async fn is_wanted(&self, thread: &ThreadId) -> Result<bool, DriveError> {
        let glance = self.inner.store.glance(thread, None).await?;
        Ok(glance.is_some_and(|glance| glance.status == Status::Running && !glance.cancel))
    }

    /// The epoch of a thread: what [`Runtime::change`] is to be given.
    pub async fn epoch_of(&self, thread: &ThreadId) -> Result<Epoch, DriveError> {
        let glance = self.inner.store.glance(thread, None).await?;
        Ok(glance.map_or(Epoch(0), |glance| glance.epoch))
    }

    /// Carries out an order that changes a thread without running it. `epoch` is the one the thread had before: with
    /// another one now, the change was made by an earlier call.
    pub async fn change(
        &self,
        thread: &ThreadId,
        id: RunId,
        order: &Order,
        epoch: Epoch,
    ) -> Result<Report, DriveError> {
        let graph = self.graph_named(&order.graph, thread)?;
        let loaded = self.inner.store.load(thread).await?;
        let head = loaded
            .as_ref()
            .map(|loaded| loaded.head)
            .unwrap_or_default();
        let seq = if head.epoch != epoch {
            head.seq
        } else {
            self.change_once(thread, &graph, &order.what, loaded)
                .await?
        };
        let due = Vec::new();
        Ok(Report { run: id, seq, due })
    }

    pub(crate) async fn change_once(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        what: &Ordered,
        loaded: Option<Loaded>,
    ) -> Result<Seq, DriveError> {
        let moment = self.moment();
        let commit = match what {
            Ordered::Update { node, update, goto } => {
                let edit = Edit {
                    node: node.clone(),
                    update: update.clone(),
                    goto: goto.clone(),
                };
                run::update_state(graph, thread, loaded, &edit, moment)?
            }
            Ordered::Fork { at } => {
                let loaded = loaded.ok_or_else(|| CheckpointError::NoThread {
                    thread: thread.clone(),
                })?;
                let history = self.inner.store.load_at(thread, *at).await?;
                let from = ForkFrom {
                    at: *at,
                    history: &history,
                    copied_from: None,
                    write: None,
                };
                run::fork(graph, thread, loaded, &from, moment)?
            }
            _ => return Err(DriveError::NotAChange),
        };
        self.save_change(&commit).await?;
        Ok(commit.head.seq)
    }

    /// How the run stopped whose last entry this is.
    pub(crate) async fn outcome_at(
        &self,
        thread: &ThreadId,
        seq: Seq,
        loaded: &Loaded,
    ) -> Result<Outcome, DriveError> {
        let newest = loaded
            .history
            .entries
            .last()
            .filter(|newest| newest.seq == seq);
        let stored = match newest {
            Some(newest) => newest.clone(),
            None => {
                let before = Seq(seq.0.saturating_sub(1));
                let found = self.inner.store.entries(thread, before, 1).await?;
                found
                    .into_iter()
                    .next()
                    .ok_or_else(|| CheckpointError::NoCheckpoint {
                        thread: thread.clone(),
                        seq,
                    })?
            }
        };
        let entry = superstep_core::checkpoint::format::Entry::read(&stored, thread)
            .map_err(CheckpointError::from)?;
        let outcome = run::read_outcome(&entry, loaded).map_err(CheckpointError::from)?;
        Ok(outcome.unwrap_or(Outcome::Drained))
    }

    /// Runs one task that a segment handed over, and writes down what became of it. Returns when that is stored, also if
    /// it was before, or if nobody waits for it any more.
    pub async fn run_task(
        &self,
        thread: &ThreadId,
        id: RunId,
        order: &Order,
        carried: &Carried,
        task: TaskId,
        limits: &SegmentLimits,
    ) -> Result<(), DriveError> {
        let store = &self.inner.store;
        let Some(glance) = store.glance(thread, Some(task)).await? else {
            return Ok(());
        };
        let is_over = glance.epoch != carried.epoch || glance.status != Status::Running;
        let is_told = glance.records.iter().any(|row| row.key == RESULT_KEY);
        if is_over || is_told || glance.cancel {
            return Ok(());
        }
        let graph = self.graph_named(&order.graph, thread)?;
        let options = order.options(id)?;
        let Some(task) = self
            .handed_over(thread, &graph, options, carried, task)
            .await?
        else {
            return Ok(());
        };
        // What it recorded before it was lost somewhere, after the others were read.
        let task = task
            .with_records(&glance.records)
            .map_err(CheckpointError::from)?;
        let receipt = task.receipt();
        let around = Arc::new(self.surroundings(thread));
        let mut is_lost = around.lost.subscribe();
        let span = match spans::are_wanted() {
            true => spans::of_node(&task, &Span::current()),
            false => Span::none(),
        };
        let mut running = Box::pin(around.run(task).instrument(span));
        let end: TaskEnd = loop {
            tokio::select! {
                end = &mut running => break end,
                _ = crate::running::lost(&mut is_lost) => return Ok(()),
                () = tokio::time::sleep(limits.cancel_poll) => {
                    let glance = store.glance(thread, None).await?;
                    if glance.is_none_or(|glance| glance.cancel || glance.epoch != carried.epoch) {
                        return Ok(());
                    }
                }
            }
        };
        drop(running);
        if let Some(record) = receipt.record(&end) {
            match store.record(&record).await {
                // Somebody has taken the thread up, and goes by what was there.
                Err(CheckpointError::Fenced { .. }) => {}
                stored => drop(stored?),
            }
        }
        Ok(())
    }

    /// A task of a run that was put down; none if the run has no such task any more.
    async fn handed_over(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        options: RunOptions,
        carried: &Carried,
        task: TaskId,
    ) -> Result<Option<Task>, DriveError> {
        let tasks = self.inner.desk.tasks_of(thread, carried.epoch);
        let made = tasks
            .get_or_try_init(|| self.make_tasks(thread, graph, options.clone(), carried))
            .await?;
        if let Some(task) = lock(made).remove(&task) {
            return Ok(Some(task));
        }
        // Taken before, by a call that did not come to its end.
        let again = self.make_tasks(thread, graph, options, carried).await?;
        let found = lock(&again).remove(&task);
        Ok(found)
    }

    async fn make_tasks(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        options: RunOptions,
        carried: &Carried,
    ) -> Result<Tasks, DriveError> {
        let loaded = self.inner.store.load(thread).await?.unwrap_or_default();
        let made = Run::tasks(
            graph,
            thread,
            &loaded,
            options,
            carried.clone(),
            self.moment(),
        );
        let tasks = match made {
            Ok(tasks) => tasks,
            Err(OpenError::NothingToRun { .. }) => Vec::new(),
            Err(error) => return Err(DriveError::Stuck(Box::new(error.into()))),
        };
        let by_id = tasks.into_iter().map(|task| (task.id(), task)).collect();
        Ok(std::sync::Mutex::new(by_id))
    }
}

/// How a stretch of a run ended.
#[expect(
    clippy::large_enum_variant,
    reason = "taken apart by whoever is given it"
)]
pub(crate) enum Driven {
    Stopped(Outcome, Run),
    PutDown(Boundary),
}

type Tasks = std::sync::Mutex<BTreeMap<TaskId, Task>>;

/// Tasks that this process was asked to run for others. A wide superstep is read once, not once for each of its tasks.
#[derive(Default)]
pub(crate) struct Desk {
    handed: std::sync::Mutex<BTreeMap<ThreadId, Handed>>,
}

/// The tasks of a run that was put down at this epoch, read when the first of them is asked for.
type Handed = (Epoch, Arc<OnceCell<Tasks>>);

impl Desk {
    fn tasks_of(&self, thread: &ThreadId, epoch: Epoch) -> Arc<OnceCell<Tasks>> {
        let mut handed = lock(&self.handed);
        match handed.get(thread) {
            Some((of, tasks)) if *of == epoch => tasks.clone(),
            _ => {
                // Superseded ones go with their thread; those of threads that are done go when there are many.
                if handed.len() >= HANDED_MAX {
                    handed.clear();
                }
                let tasks: Arc<OnceCell<Tasks>> = Arc::default();
                handed.insert(thread.clone(), (epoch, tasks.clone()));
                tasks
            }
        }
    }
}

/// Of how many threads tasks are kept.
const HANDED_MAX: usize = 256;

fn stopped(run: RunId, seq: Seq, outcome: &Outcome) -> Boundary {
    let due = match outcome {
        Outcome::Paused(questions) => questions
            .iter()
            .filter(|question| question.on_deadline != OnDeadline::Wait)
            .filter_map(|question| Some((question.id, question.deadline?)))
            .collect(),
        _ => Vec::new(),
    };
    Boundary::Stopped(Report { run, seq, due })
}
