//! A segment: the part of a run that one process drives before it leaves the rest to the next.
//!
//! A driver on one machine drives a run until it stops: [`Segment::whole`]. A driver that spreads a run over processes drives
//! it in [limited](Segment::limited) segments: each executes some supersteps, every one persisted before the next, and then
//! suspends with a small value that an engine can journal. Both use the same state machine, so that what the simulator proves
//! for one holds for the other.
//!
//! # When a segment suspends
//!
//! Only while none of its tasks run here and everything that happened is persisted ([`Run::is_stored`]), because the next
//! process has only the store and the [`ResumeToken`]. Then, in this order:
//!
//! - before it would start tasks: a limit is reached, or the process wants to stop ([`Segment::suspend_soon`]);
//! - when it would wait: tasks of a wide superstep were left to other workers (*dispatched*), or the wait is longer than
//!   [`SegmentLimits::longest_wait`].
//!
//! # Dispatched tasks
//!
//! A superstep with several movable tasks is not executed here. The segment drains, so that nothing else starts meanwhile: the
//! workers that execute its tasks build them from the store ([`Run::tasks`]) and would not see it. A task of the same superstep
//! that cannot move runs here. If it ends without a result, this run suspends before it could process that, so the end is
//! persisted as a record ([`Step::Record`]) for the process that resumes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{RecordWrite, Saved};
use crate::error::ProtocolError;
use crate::ids::{InterruptId, RunId, Seq, TaskId, Timestamp};
use crate::node::{Receipt, Task, TaskEnd};
use crate::run::{Durability, Outcome, ResumeToken, Run, Step};

/// When a segment suspends its run.
#[derive(Debug, Clone)]
pub struct SegmentLimits {
    /// Number of supersteps after which the segment suspends. Default: 64.
    pub supersteps: u32,
    /// Time after which the segment starts no further superstep. Default: 30 seconds.
    pub time: Duration,
    /// Longest wait within the segment; the engine sleeps for longer ones. Default: 2 seconds.
    pub longest_wait: Duration,
    /// How often the driver checks for a cancel request while nodes run. Default: 1 second.
    pub cancel_poll: Duration,
    /// Number of movable tasks from which a superstep is dispatched to other workers. Default: 2.
    pub dispatch_from: usize,
}

impl Default for SegmentLimits {
    fn default() -> Self {
        Self {
            supersteps: 64,
            time: Duration::from_secs(30),
            longest_wait: Duration::from_secs(2),
            cancel_poll: Duration::from_secs(1),
            dispatch_from: 2,
        }
    }
}

/// What must happen before a suspended run resumes. Holds no user data, so an engine may journal it.
///
/// The names in its serialized form are those of existing journals; they do not change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Suspension {
    /// Nothing: the next segment may start at once.
    #[serde(rename = "GoOn")]
    Continue(ResumeToken),
    /// This time must pass.
    Sleep {
        /// When the run resumes.
        until: Timestamp,
        /// Token for the next segment.
        #[serde(rename = "carried")]
        token: ResumeToken,
    },
    /// These tasks must have been executed, on any worker and in any order.
    #[serde(rename = "HandOver")]
    Dispatch {
        /// Tasks that the workers must execute.
        tasks: Vec<TaskId>,
        /// Token for the workers that execute the tasks ([`Run::tasks`]), and for the next segment.
        #[serde(rename = "carried")]
        token: ResumeToken,
    },
}

/// How a segment ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SegmentEnd {
    /// The run stopped; the store has its outcome.
    Stopped(RunReport),
    /// The run is suspended. Serialized as the suspension itself.
    #[serde(untagged)]
    Suspended(Suspension),
}

/// What an engine needs to know about a run that stopped; how it stopped is in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// Id of the run.
    pub run: RunId,
    /// Entry that records the stop.
    pub seq: Seq,
    /// Interrupts that answer themselves at a deadline, with the deadline.
    pub due: Vec<(InterruptId, Timestamp)>,
}

impl RunReport {
    /// Creates the report on a run that stopped at this entry with this outcome.
    pub fn new(run: RunId, seq: Seq, outcome: &Outcome) -> Self {
        let questions = match outcome {
            Outcome::Paused(questions) => questions.as_slice(),
            _ => &[],
        };
        let due = |question: &crate::checkpoint::format::InterruptRecord| {
            question.answer_at_deadline()?;
            Some((question.id, question.deadline?))
        };
        Self {
            run,
            seq,
            due: questions.iter().filter_map(due).collect(),
        }
    }
}

/// A run, and how far this process drives it. See the module's documentation for when it suspends.
///
/// Drive it like a [`Run`]: ask for the [next step](Self::next_step), carry it out, report the result.
#[derive(Debug)]
pub struct Segment {
    // Boxed, because the futures of a driver move a segment several times before they first wait.
    run: Box<Run>,
    /// `None` if this process drives the run until it stops.
    limited: Option<Limited>,
}

/// What a limited segment tracks besides its run.
#[derive(Debug)]
struct Limited {
    limits: SegmentLimits,
    started: Timestamp,
    supersteps: u32,
    /// Whether the process wants to stop.
    suspends_soon: bool,
    /// Whether other workers may execute tasks: only if everything is persisted as it happens.
    may_dispatch: bool,
    /// Tasks left to other workers.
    dispatched: Vec<TaskId>,
    /// Tasks that run here, each with the receipt that records its end.
    running: BTreeMap<TaskId, Receipt>,
    /// Ends of tasks that must be persisted before the run suspends.
    unrecorded: Vec<RecordWrite>,
    /// Number of records that the driver received and has not reported as durable: a driver may write several at once.
    recording: usize,
    suspended: Option<Suspension>,
    #[cfg(feature = "mutants")]
    flaw: Option<SegmentFlaw>,
}

/// A deliberate defect of the segment rules, with which a simulator shows that its checks notice it.
#[cfg(feature = "mutants")]
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentFlaw {
    /// A dispatched task also runs here.
    DispatchedTwice,
    /// The run suspends while a record is not durable yet.
    SuspendedBeforeRecorded,
    /// The limits are ignored.
    LimitIgnored,
    /// The end of a task is applied at once although the run is about to suspend.
    EndAppliedAtOnce,
}

impl Segment {
    /// Creates a segment without limits: this process drives the run until it stops.
    pub fn whole(run: Run) -> Self {
        let run = Box::new(run);
        Self { run, limited: None }
    }

    /// Creates a segment that suspends within these limits.
    pub fn limited(run: Run, limits: SegmentLimits) -> Self {
        let limited = Limited {
            limits,
            started: run.now,
            supersteps: 0,
            suspends_soon: false,
            may_dispatch: run.options.durability == Durability::Sync,
            dispatched: Vec::new(),
            running: BTreeMap::new(),
            unrecorded: Vec::new(),
            recording: 0,
            suspended: None,
            #[cfg(feature = "mutants")]
            flaw: None,
        };
        Self {
            run: Box::new(run),
            limited: Some(limited),
        }
    }

    /// Returns the segment with a defect.
    #[cfg(feature = "mutants")]
    #[doc(hidden)]
    #[must_use]
    pub fn with_flaw(mut self, flaw: SegmentFlaw) -> Self {
        if let Some(limited) = &mut self.limited {
            limited.flaw = Some(flaw);
        }
        self
    }

    /// Returns what the driver must do next.
    pub fn next_step(&mut self) -> Step {
        match &mut self.limited {
            None => self.run.next_step(),
            Some(limited) => limited.next_step(&mut self.run),
        }
    }

    /// Reports how a task of [`Step::Start`] ended.
    pub fn task_ended(
        &mut self,
        task: TaskId,
        end: TaskEnd,
        now: Timestamp,
    ) -> Result<(), ProtocolError> {
        if let Some(limited) = &mut self.limited
            && let Some(receipt) = limited.running.remove(&task)
            && limited.suspends_before_the_barrier()
            && let Some(record) = receipt.record(&end)
        {
            limited.unrecorded.push(record);
            return Ok(());
        }
        self.run.task_ended(task, end, now)
    }

    /// Reports that the commit of [`Step::Save`] is durable.
    pub fn saved(&mut self, saved: Saved, now: Timestamp) -> Result<(), ProtocolError> {
        self.run.saved(saved, now)
    }

    /// Reports that the record of [`Step::Record`] is durable.
    pub fn recorded(&mut self) -> Result<(), ProtocolError> {
        match &mut self.limited {
            Some(limited) if limited.recording > 0 => {
                limited.recording -= 1;
                Ok(())
            }
            _ => Err(ProtocolError::NothingRecorded),
        }
    }

    /// Reports the current time.
    pub fn time_passed(&mut self, now: Timestamp) {
        self.run.time_passed(now);
    }

    /// Stops the run as soon as the stop is persisted. See [`Run::cancel`].
    pub fn cancel(&mut self) {
        self.run.cancel();
    }

    /// Stops the run at the end of the supersteps in progress. See [`Run::drain`].
    pub fn drain(&mut self) {
        self.run.drain();
    }

    /// Suspends before the next superstep, whatever the limits say. A segment without limits is not affected.
    pub fn suspend_soon(&mut self) {
        if let Some(limited) = &mut self.limited {
            limited.suspends_soon = true;
        }
    }

    /// Returns the run that this segment drives.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the run, once it has stopped.
    pub fn into_run(self) -> Box<Run> {
        self.run
    }

    /// Whether tasks of the run were left to other workers.
    pub fn has_dispatched(&self) -> bool {
        let limited = self.limited.as_ref();
        limited.is_some_and(|limited| !limited.dispatched.is_empty())
    }
}

impl Limited {
    fn next_step(&mut self, run: &mut Run) -> Step {
        if let Some(record) = self.unrecorded.pop() {
            self.recording += 1;
            return Step::Record(Box::new(record));
        }
        if self.suspended.is_none() {
            match run.next_step() {
                Step::Start(tasks) => match self.is_at_limit(run) {
                    true => self.suspended = Some(Suspension::Continue(run.resume_token())),
                    false => return self.start(run, tasks),
                },
                Step::Wait { until } => match self.suspension_instead_of_wait(run, until) {
                    Some(suspension) => self.suspended = Some(suspension),
                    None => return Step::Wait { until },
                },
                Step::Drop(tasks) => {
                    for task in &tasks {
                        self.running.remove(task);
                    }
                    return Step::Drop(tasks);
                }
                step => return step,
            }
        }
        let suspension = self.suspended.clone();
        Step::Suspend(suspension.expect("set just above"))
    }

    /// Whether the run suspends instead of starting tasks.
    fn is_at_limit(&self, run: &Run) -> bool {
        let spent = u64::try_from(run.now.0.saturating_sub(self.started.0)).unwrap_or(0);
        let limits = &self.limits;
        let is_reached = self.suspends_soon
            || self.supersteps >= limits.supersteps
            || Duration::from_millis(spent) >= limits.time;
        is_reached && !self.has_flaw_limit() && self.dispatched.is_empty() && self.may_suspend(run)
    }

    /// Leaves the movable tasks of a wide superstep to other workers and starts the others.
    fn start(&mut self, run: &mut Run, tasks: Vec<Task>) -> Step {
        self.supersteps += 1;
        let movable = tasks.iter().filter(|task| task.can_move()).count();
        let dispatches =
            self.may_dispatch && movable >= self.limits.dispatch_from.max(1) && run.is_stored();
        let (elsewhere, here): (Vec<_>, Vec<_>) = match dispatches {
            true => tasks.into_iter().partition(Task::can_move),
            false => (Vec::new(), tasks),
        };
        if !elsewhere.is_empty() {
            self.dispatched.extend(elsewhere.iter().map(Task::id));
            // The workers build their tasks from the store and would not see what another superstep did meanwhile.
            run.drain();
        }
        let here = self.duplicated(elsewhere, here);
        self.running
            .extend(here.iter().map(|task| (task.id(), task.receipt())));
        Step::Start(here)
    }

    /// Whether the run suspends before it could process how a task ended.
    fn suspends_before_the_barrier(&self) -> bool {
        !self.dispatched.is_empty() && !self.applies_ends_at_once()
    }

    fn suspension_instead_of_wait(
        &self,
        run: &Run,
        until: Option<Timestamp>,
    ) -> Option<Suspension> {
        if !self.may_suspend(run) {
            return None;
        }
        if !self.dispatched.is_empty() {
            return Some(Suspension::Dispatch {
                tasks: self.dispatched.clone(),
                token: run.resume_token(),
            });
        }
        let until = until?;
        let wait = u64::try_from(until.0.saturating_sub(run.now.0)).unwrap_or(0);
        let is_long = Duration::from_millis(wait) > self.limits.longest_wait;
        is_long.then(|| Suspension::Sleep {
            until,
            token: run.resume_token(),
        })
    }

    /// Whether nothing would be lost if this process dropped the run now.
    fn may_suspend(&self, run: &Run) -> bool {
        self.running.is_empty()
            && (self.recording == 0 || self.ignores_records())
            && run.is_stored()
    }
}

/// Where the defects of [`SegmentFlaw`] take effect; without the feature, nothing.
#[cfg(feature = "mutants")]
impl Limited {
    fn has_flaw_limit(&self) -> bool {
        self.flaw == Some(SegmentFlaw::LimitIgnored)
    }

    fn applies_ends_at_once(&self) -> bool {
        self.flaw == Some(SegmentFlaw::EndAppliedAtOnce)
    }

    fn ignores_records(&self) -> bool {
        self.flaw == Some(SegmentFlaw::SuspendedBeforeRecorded)
    }

    fn duplicated(&self, elsewhere: Vec<Task>, mut here: Vec<Task>) -> Vec<Task> {
        if self.flaw == Some(SegmentFlaw::DispatchedTwice) {
            here.extend(elsewhere);
        }
        here
    }
}

#[cfg(not(feature = "mutants"))]
impl Limited {
    fn has_flaw_limit(&self) -> bool {
        false
    }

    fn applies_ends_at_once(&self) -> bool {
        false
    }

    fn ignores_records(&self) -> bool {
        false
    }

    fn duplicated(&self, _elsewhere: Vec<Task>, here: Vec<Task>) -> Vec<Task> {
        here
    }
}
