//! What workers of a cluster do for an engine: drive segments of runs, and execute dispatched tasks.
//!
//! The rules of segments are in core ([`superstep_core::run::segment`]); this module loads and opens a thread for one. Whatever
//! happens between two segments, the next one finds in the store how far the last one came. Tasks of a wide superstep are
//! dispatched: any worker executes them with [`LocalDriver::run_task`] and persists how they ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use superstep_core::__private::lock;
use superstep_core::checkpoint::{Loaded, Status};
use superstep_core::driver::{QueuedRequest, ThreadRequest};
use superstep_core::error::{CheckpointError, OpenError};
use superstep_core::graph::Definition;
use superstep_core::node::{Task, TaskEnd};
use superstep_core::run::{
    self, Edit, ForkFrom, ResumeToken, RunOptions, RunReport, Segment, SegmentEnd, SegmentLimits,
};
use superstep_core::{Epoch, Outcome, Run, RunId, Seq, TaskId, ThreadId};
use tokio::sync::OnceCell;
use tracing::{Instrument, Span};

use crate::drive::DriveError;
use crate::drive::local::{Keeper, LocalDriver, SegmentOutcome};
use crate::spans;

impl LocalDriver {
    /// Executes a part of a request: its first segment, or the next one with the token of the [last one](run::Suspension).
    ///
    /// An error is final for the request only if [`DriveError::is_refusal`] says so; after any other error the caller may
    /// repeat the call, here or in another process.
    pub async fn segment(
        &self,
        thread: &ThreadId,
        id: RunId,
        request: &QueuedRequest,
        token: Option<ResumeToken>,
        limits: &SegmentLimits,
    ) -> Result<SegmentEnd, DriveError> {
        let graph = self.graph(&request.graph, thread)?;
        let options = request.options(id)?;
        let is_answer = request.request.is_answer();
        let answers = request.request.answers();
        let is_first = token.is_none();
        if is_first && !answers.is_empty() {
            self.check_resumable(thread, &graph, &request.request, &options)
                .await?;
            self.store().answer(thread, answers).await?;
        }
        // Both reads at once, to keep the latency of an answer low.
        let store = self.store();
        let (loaded, glance) = match is_answer && is_first {
            true => tokio::try_join!(store.load(thread), store.glance(thread, None))?,
            false => (store.load(thread).await?, None),
        };
        let head = loaded
            .as_ref()
            .map(|loaded| loaded.head)
            .unwrap_or_default();
        // Answers to a running thread were applied by its owner. If the epoch differs, that happened after the load, perhaps by
        // an earlier call for this same request; then the claim will find out.
        let is_seen = glance.is_some_and(|glance| !glance.unseen && glance.epoch == head.epoch);
        if let Some(loaded) = loaded.as_ref().filter(|_| is_seen)
            && head.status != Status::Running
        {
            let outcome = self.outcome_at(thread, head.seq, loaded).await?;
            return Ok(stopped(id, head.seq, &outcome));
        }
        let moment = self.moment();
        let opened = match token {
            Some(token) => Run::resume_suspended(&graph, thread, loaded, token, options, moment),
            None => {
                let request = request.request.clone();
                Run::open(&graph, thread, loaded, request, options, moment)
            }
        };
        let run = match opened {
            Ok(run) => run,
            // An earlier call completed, but its caller did not get the result.
            Err(OpenError::Taken { run, .. }) => {
                let loaded = self.store().load(thread).await?.unwrap_or_default();
                let outcome = self.outcome_at(thread, head.seq, &loaded).await?;
                return Ok(stopped(run, head.seq, &outcome));
            }
            // The answer is for a thread that no longer needs it.
            Err(OpenError::NothingToRun { .. } | OpenError::Busy { .. }) if is_answer => {
                let (run, seq) = (id, head.seq);
                let due = Vec::new();
                return Ok(SegmentEnd::Stopped(RunReport { run, seq, due }));
            }
            Err(error @ OpenError::Busy { .. }) => return Err(error.into()),
            // A run in progress is not given up: another version of this program may be able to resume it.
            Err(error) if head.status == Status::Running => {
                return Err(DriveError::Stuck(Box::new(error.into())));
            }
            Err(error) => return Err(error.into()),
        };
        let segment = Segment::limited(run, limits.clone());
        let keeper = Keeper::Cluster {
            cancel_poll: limits.cancel_poll,
        };
        match self.drive_segment(segment, keeper).await {
            Ok((SegmentOutcome::Stopped(outcome), run)) => {
                Ok(stopped(run.id(), run.seq(), &outcome))
            }
            Ok((SegmentOutcome::Suspended(suspension), _)) => Ok(SegmentEnd::Suspended(suspension)),
            // Another process wrote between the load and the claim, perhaps an earlier call for this same request that is still
            // alive. A retry loads the thread again and sees who owns it.
            Err(DriveError::Open(OpenError::Busy { thread })) => {
                let epoch = head.epoch;
                Err(CheckpointError::Fenced { thread, epoch }.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses answers that this version of the program could not resume with, before they are stored. The interrupts then stay
    /// open for a version that can. The same for answers of a caller whose write is refused, or cannot be made because the
    /// thread runs or has nothing to run. Returns whether `options` name the run that the thread is in.
    pub(crate) async fn check_resumable(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        request: &ThreadRequest,
        options: &RunOptions,
    ) -> Result<bool, DriveError> {
        let loaded = self.store().load(thread).await?;
        let mut names_run = false;
        if let (Some(id), Some(loaded)) = (options.run, &loaded) {
            let state = run::read_state(graph, thread, &loaded.history)?;
            names_run = state.is_some_and(|state| state.run.run == id);
        }
        let is_answer = request.is_answer();
        if names_run && !is_answer {
            // The request was carried out before: what it wrote is part of the run.
            return Ok(true);
        }
        let mut options = options.clone();
        options.run = options.run.filter(|_| !names_run);
        let request = request.clone();
        match Run::open(graph, thread, loaded, request, options, self.moment()) {
            Ok(_) => Ok(names_run),
            // The store decides whether another process runs the thread or already ran it, because it knows the interrupt.
            Err(
                OpenError::Busy { .. } | OpenError::NothingToRun { .. } | OpenError::Taken { .. },
            ) if is_answer => Ok(names_run),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the run of a thread should continue: it is running, and no cancel was requested.
    pub async fn is_wanted(&self, thread: &ThreadId) -> Result<bool, DriveError> {
        let glance = self.store().glance(thread, None).await?;
        Ok(glance.is_some_and(|glance| glance.status == Status::Running && !glance.cancel))
    }

    /// Returns the epoch of a thread, to pass to [`LocalDriver::change`]; 0 if there is no such thread.
    pub async fn epoch_of(&self, thread: &ThreadId) -> Result<Epoch, DriveError> {
        let glance = self.store().glance(thread, None).await?;
        Ok(glance.map_or(Epoch(0), |glance| glance.epoch))
    }

    /// Executes a request that changes a thread without running it. `epoch` is the thread's epoch before the change: if it
    /// differs now, an earlier call already made the change.
    pub async fn change(
        &self,
        thread: &ThreadId,
        id: RunId,
        request: &QueuedRequest,
        epoch: Epoch,
    ) -> Result<RunReport, DriveError> {
        let graph = self.graph(&request.graph, thread)?;
        let loaded = self.store().load(thread).await?;
        let head = loaded
            .as_ref()
            .map(|loaded| loaded.head)
            .unwrap_or_default();
        let seq = if head.epoch != epoch {
            head.seq
        } else {
            self.change_once(thread, &graph, &request.request, loaded)
                .await?
        };
        let due = Vec::new();
        Ok(RunReport { run: id, seq, due })
    }

    pub(crate) async fn change_once(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        request: &ThreadRequest,
        loaded: Option<Loaded>,
    ) -> Result<Seq, DriveError> {
        let moment = self.moment();
        let commit = match request {
            ThreadRequest::Update { node, update, goto } => {
                let edit = Edit {
                    node: node.clone(),
                    update: update.clone(),
                    goto: goto.clone(),
                };
                run::update_state(graph, thread, loaded, &edit, moment)?
            }
            ThreadRequest::Fork { at } => {
                let loaded = loaded.ok_or_else(|| CheckpointError::NoThread {
                    thread: thread.clone(),
                })?;
                let history = self.store().load_at(thread, *at).await?;
                let from = ForkFrom {
                    at: *at,
                    history: &history,
                    copied_from: None,
                    write: None,
                    context: None,
                };
                run::fork(graph, thread, loaded, &from, moment)?
            }
            ThreadRequest::Edit(edit) => {
                let newest = loaded.as_ref().map_or(Seq(0), |loaded| loaded.head.seq);
                let older = match edit.at.filter(|at| *at != newest) {
                    Some(at) => Some(self.store().load_at(thread, at).await?),
                    None => None,
                };
                let made = run::edit_thread(graph, thread, loaded, edit, older.as_ref(), moment)?;
                let Some(commit) = made else {
                    return Ok(newest);
                };
                commit
            }
            _ => return Err(DriveError::NotAChange),
        };
        self.save_change(&commit).await?;
        Ok(commit.head.seq)
    }

    /// Returns how the run stopped whose last entry is `seq`.
    pub(crate) async fn outcome_at(
        &self,
        thread: &ThreadId,
        seq: Seq,
        loaded: &Loaded,
    ) -> Result<Outcome, DriveError> {
        let stop = self.stop_at(thread, seq, loaded).await?;
        Ok(stop.unwrap_or(Outcome::Drained))
    }

    /// Returns how the run stopped with the entry `seq`; `None` if that entry is not the stop of a run.
    pub(crate) async fn stop_at(
        &self,
        thread: &ThreadId,
        seq: Seq,
        loaded: &Loaded,
    ) -> Result<Option<Outcome>, DriveError> {
        let newest = loaded
            .history
            .entries
            .last()
            .filter(|newest| newest.seq == seq);
        let stored = match newest {
            Some(newest) => newest.clone(),
            None => {
                let before = Seq(seq.0.saturating_sub(1));
                let found = self.store().entries(thread, before, 1).await?;
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
        Ok(run::read_outcome(&entry, loaded).map_err(CheckpointError::from)?)
    }

    /// Runs one task that a segment dispatched, and persists how it ended. Returns once that is stored, at once if it already
    /// was, or if the run no longer waits for the task.
    pub async fn run_task(
        &self,
        thread: &ThreadId,
        id: RunId,
        request: &QueuedRequest,
        token: &ResumeToken,
        task: TaskId,
        limits: &SegmentLimits,
    ) -> Result<(), DriveError> {
        let store = self.store();
        let Some(glance) = store.glance(thread, Some(task)).await? else {
            return Ok(());
        };
        if !token.awaits_task(&glance) {
            return Ok(());
        }
        let graph = self.graph(&request.graph, thread)?;
        let options = request.options(id)?;
        let Some(task) = self
            .dispatched_task(thread, &graph, options, token, task)
            .await?
        else {
            return Ok(());
        };
        // Adds records from an earlier execution that was lost, which may be newer than the tasks that were read.
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
                    if !glance.is_some_and(|glance| token.is_current(&glance)) {
                        return Ok(());
                    }
                }
            }
        };
        drop(running);
        if let Some(record) = receipt.record(&end) {
            match store.record(&record).await {
                // Another process claimed the thread, and continues from what was stored then.
                Err(CheckpointError::Fenced { .. }) => {}
                stored => drop(stored?),
            }
        }
        Ok(())
    }

    /// Returns a task of a suspended run; `None` if the run no longer has it.
    async fn dispatched_task(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        options: RunOptions,
        token: &ResumeToken,
        task: TaskId,
    ) -> Result<Option<Task>, DriveError> {
        let tasks = self.dispatched().tasks_of(thread, token.epoch);
        let made = tasks
            .get_or_try_init(|| self.make_tasks(thread, graph, options.clone(), token))
            .await?;
        if let Some(task) = lock(made).remove(&task) {
            return Ok(Some(task));
        }
        // An earlier call took the task and did not complete it.
        let again = self.make_tasks(thread, graph, options, token).await?;
        let found = lock(&again).remove(&task);
        Ok(found)
    }

    async fn make_tasks(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        options: RunOptions,
        token: &ResumeToken,
    ) -> Result<Tasks, DriveError> {
        let loaded = self.store().load(thread).await?.unwrap_or_default();
        let made = Run::tasks(
            graph,
            thread,
            &loaded,
            options,
            token.clone(),
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

type Tasks = std::sync::Mutex<BTreeMap<TaskId, Task>>;

/// Tasks that other processes dispatched to this one. The tasks of a wide superstep are read once, not once for each.
#[derive(Default)]
pub(crate) struct DispatchedTasks {
    handed: std::sync::Mutex<BTreeMap<ThreadId, SuspendedTasks>>,
}

/// The tasks of a run suspended at this epoch, read when the first of them is requested.
type SuspendedTasks = (Epoch, Arc<OnceCell<Tasks>>);

impl DispatchedTasks {
    fn tasks_of(&self, thread: &ThreadId, epoch: Epoch) -> Arc<OnceCell<Tasks>> {
        let mut handed = lock(&self.handed);
        match handed.get(thread) {
            Some((of, tasks)) if *of == epoch => tasks.clone(),
            _ => {
                // A newer epoch replaces the tasks of its thread; tasks of finished threads are dropped once there are many.
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

/// Number of threads whose tasks are kept.
const HANDED_MAX: usize = 256;

fn stopped(run: RunId, seq: Seq, outcome: &Outcome) -> SegmentEnd {
    SegmentEnd::Stopped(RunReport::new(run, seq, outcome))
}
