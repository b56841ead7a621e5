//! The state machine: decides what happens next on one thread, and does nothing itself.
//!
//! # How a driver calls it
//!
//! [`Run::open`] takes a loaded thread and a [`ThreadRequest`](crate::driver::ThreadRequest). Then the driver calls
//! [`Run::next_step`] and carries out the result, until that is [`Step::Stop`]:
//!
//! - the driver reports news with methods in the past tense: [`Run::task_ended`], [`Run::saved`], [`Run::time_passed`];
//! - it passes signals on with methods in the imperative: [`Run::cancel`], [`Run::drain`].
//!
//! The state machine never waits, reads no clock and draws no random numbers. The same calls return the same steps, whatever
//! order tasks end in: it applies writes in task order, never in order of arrival.
//!
//! # Files
//!
//! `open` creates a run, `start` starts supersteps, `end` takes what tasks report, `barrier` ends supersteps, `commit` turns
//! changes into one fenced write, `position` is what is stored, `plan` decides what runs next.

mod answer;
mod barrier;
mod commit;
mod edit;
mod end;
mod frame_map;
mod json;
mod live;
mod live_filter;
mod log_follower;
mod open;
mod phase;
mod plan;
mod position;
mod read;
pub mod segment;
mod start;
mod suspend;

pub use answer::check_answer;
pub use edit::{Edit, EditNode, ForkFrom, ThreadEdit, edit_thread, fork, update_state};
pub use live_filter::{LiveFilter, LiveVerdict};
pub use log_follower::{LogFollower, StreamEvent, StreamEventBody, StreamMode};
pub use open::{Durability, RunOptions};
pub use read::{
    NextTask, OpenInterrupt, SubgraphState, ThreadState, check, graph_name, open_interrupts,
    read_state, read_states, read_subgraph_states, read_subgraphs,
};
pub use segment::{RunReport, Segment, SegmentEnd, SegmentLimits, Suspension};
pub use suspend::{ResumeToken, read_outcome};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::channel::{Channel, ChannelKind};
use crate::checkpoint::format::{
    Breakpoint, Change, InterruptRecord, PlannedTask, Stop, TaskWrite,
};
use crate::checkpoint::{Commit, Head, Metadata, RecordWrite, Saved};
use crate::error::{Failure, ProtocolError};
use crate::ids::{FramePath, InterruptId, RunId, Seq, TaskId, ThreadId, Timestamp};
use crate::node::{Answers, Task, TaskRecords};
use crate::state::State;
use crate::value::Value;
use barrier::EndedTask;
use commit::{LogSize, Pending, Saving};
use frame_map::FrameMap;
use live::{LiveFrame, Slot, TaskPlaces};
use phase::Phase;
use position::{Position, TaskUpdate};

/// What the driver must do next.
///
/// Exhaustive on purpose: a new kind of step must stop every driver from compiling.
#[derive(Debug)]
pub enum Step {
    /// Start these tasks, and report the end of each once with [`Run::task_ended`].
    Start(Vec<Task>),
    /// Drop these tasks if they still run; what they report no longer counts.
    Drop(Vec<TaskId>),
    /// Make this commit durable, then call [`Run::saved`]. Running tasks continue.
    Save(Box<Commit>),
    /// Wait until a task ends or this time passes, then report it.
    Wait {
        /// When to call [`Run::time_passed`] at the latest; `None` if no timer is set.
        until: Option<Timestamp>,
    },
    /// Persist this record, then call [`Segment::recorded`]. Only a limited [`Segment`] asks for it.
    Record(Box<RecordWrite>),
    /// Leave the run to the next segment. Only a limited [`Segment`] asks for it.
    Suspend(Suspension),
    /// The run is over, or waits for a person. Neither is an error. Drop whatever still runs.
    Stop(Outcome),
}

/// How a run ended. The state it left is in the store.
///
/// ```
/// use superstep_core::Outcome;
///
/// fn report(outcome: &Outcome) -> String {
///     match outcome {
///         Outcome::Finished => "done".to_owned(),
///         Outcome::Paused(interrupts) => format!("{} questions are open", interrupts.len()),
///         Outcome::Failed(failures) => format!("`{}` failed: {}", failures[0].node, failures[0].message),
///         Outcome::Breakpoint(_) | Outcome::StepLimit | Outcome::Cancelled => "resume to continue".to_owned(),
///         Outcome::Drained => "another process continues".to_owned(),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Nothing is left to run.
    Finished,
    /// The run waits for answers to these interrupts.
    Paused(Vec<InterruptRecord>),
    /// The run stopped at a breakpoint.
    Breakpoint(Breakpoint),
    /// The run reached its step limit. Resuming allows as many supersteps again.
    StepLimit,
    /// These tasks failed permanently. Resuming retries them; the results of their siblings are kept.
    Failed(Vec<Failure>),
    /// The run was cancelled. Resuming continues where it was.
    Cancelled,
    /// The run was drained, so that another worker can recover it.
    Drained,
}

impl Outcome {
    /// Converts a stored stop, except the interrupts of a pause, which are stored elsewhere.
    fn of(stop: &Stop) -> Self {
        match stop {
            Stop::Finished => Outcome::Finished,
            Stop::Paused { .. } => Outcome::Paused(Vec::new()),
            Stop::Breakpoint(breakpoint) => Outcome::Breakpoint(breakpoint.clone()),
            Stop::StepLimit => Outcome::StepLimit,
            Stop::Failed(failures) => Outcome::Failed(failures.clone()),
            Stop::Cancelled => Outcome::Cancelled,
            Stop::Drained => Outcome::Drained,
        }
    }
}

/// One execution on one thread, from a start or resume until it stops. See the module's documentation for how to drive it.
pub struct Run {
    options: RunOptions,
    /// The time that the driver reported last.
    now: Timestamp,
    /// The thread's head in the store.
    head: Head,
    position: Position,
    metadata: Option<Metadata>,
    /// The supersteps that have started.
    live: FrameMap<LiveFrame>,
    /// Graphs whose next superstep is planned and has not started.
    ready: FrameMap<()>,
    progress: Progress,
    /// The frame and index of each started task.
    places: TaskPlaces,
    spare: Spare,
    recorded: Recorded,
    interrupts: Interrupts,
    pending: Pending,
    /// The commit that the driver is making durable.
    saving: Option<Saving>,
    phase: Phase,
    /// Whether the run was asked to start no further superstep.
    draining: bool,
    queue: VecDeque<Step>,
    size: LogSize,
    /// Id of the last execution of a task. Starts at a random value, so ids are unique across processes.
    last_execution: u64,
}

/// Progress of each graph in this run.
#[derive(Debug, Default)]
struct Progress {
    /// Number of supersteps that each graph has executed in this run.
    steps: FrameMap<u64>,
    /// Graphs that went to their node for the step limit.
    limited: BTreeSet<FramePath>,
    /// The superstep before which each graph has passed its breakpoints, because a resume passed them.
    passed: FrameMap<u64>,
}

/// Empty lists of the last superstep, whose memory the next one uses again.
#[derive(Default)]
struct Spare {
    slots: Vec<Slot>,
    updates: Vec<TaskUpdate>,
    ended: Vec<EndedTask>,
    writes: Vec<TaskWrite>,
    /// What one task wrote.
    written: Vec<Value>,
    planned: Vec<PlannedTask>,
    records: Option<TaskRecords>,
}

impl Spare {
    fn keep(&mut self, slots: Vec<Slot>, updates: Vec<TaskUpdate>, ended: Vec<EndedTask>) {
        keep_small(&mut self.slots, slots);
        keep_small(&mut self.updates, updates);
        keep_small(&mut self.ended, ended);
    }

    /// Keeps the lists of changes that are in an entry now, and empties the list of changes.
    fn keep_changes(&mut self, changes: &mut Vec<Change>) {
        for change in changes.drain(..) {
            let Change::FrameAdvanced(mut advanced) = change else {
                continue;
            };
            if let Some(write) = advanced.writes.first_mut() {
                keep_small(&mut self.written, std::mem::take(&mut write.updates));
            }
            keep_small(&mut self.writes, advanced.writes);
            keep_small(&mut self.planned, advanced.next.tasks);
        }
    }
}

/// Largest list to keep. A run that once had a wide superstep must not hold its memory until it ends.
const SPARE_ITEMS_MAX: usize = 64;

fn keep_small<T>(spare: &mut Vec<T>, mut list: Vec<T>) {
    if list.capacity() <= SPARE_ITEMS_MAX {
        list.clear();
        *spare = list;
    }
}

/// What tasks recorded. A result may exist although its superstep is not committed.
#[derive(Debug, Default)]
struct Recorded {
    /// Steps that tasks recorded, as loaded from the store. A starting task takes its records from here.
    steps: BTreeMap<TaskId, TaskRecords>,
    /// Results, and ends without a result, as loaded from the store.
    results: BTreeMap<TaskId, Vec<u8>>,
    /// Tasks that failed permanently or are interrupted; already persisted.
    ends: BTreeSet<TaskId>,
    /// Tasks that failed permanently or are interrupted; not persisted yet.
    unpersisted_ends: BTreeSet<TaskId>,
}

/// The interrupts of a run's tasks.
#[derive(Debug, Default)]
struct Interrupts {
    answers: BTreeMap<TaskId, Answers>,
    /// Interrupts from before this run that have no answer, by task.
    unanswered: BTreeMap<TaskId, Vec<InterruptRecord>>,
    /// Interrupts that the store has and that are not closed.
    asked: BTreeMap<InterruptId, (TaskId, String)>,
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Run>();
};

impl Run {
    /// Returns what the driver must do now.
    pub fn next_step(&mut self) -> Step {
        loop {
            if let Some(step) = self.queue.pop_front() {
                return step;
            }
            if let Phase::Over(outcome) = &self.phase {
                return Step::Stop(outcome.clone());
            }
            if self.saving.is_some() {
                return Step::Wait { until: None };
            }
            if !self.decide() {
                return Step::Wait {
                    until: self.next_timer(),
                };
            }
        }
    }

    /// Makes one decision; returns false if there is nothing to decide until the driver reports something.
    ///
    /// The order is the durability guarantee. Supersteps that ended are applied first, because their writes are what the next
    /// commit persists. With `Sync`, that commit comes before anything it planned may start, so an acknowledged superstep never
    /// runs again. The other modes start first and persist meanwhile, except where the commit claims the thread or frees a
    /// record that a task is about to write again: those must be durable before any task acts on them. Only when nothing is
    /// left to start or persist, and no task will report by itself, does the run stop.
    fn decide(&mut self) -> bool {
        if !self.phase.is_stopping() {
            self.end_supersteps();
        }
        let starts_first =
            self.options.durability != Durability::Sync && !self.pending.goes_first();
        if !self.phase.is_stopping() && starts_first && self.start_supersteps() {
            return true;
        }
        if self.must_save() {
            self.save();
            return true;
        }
        if !self.phase.is_stopping() && self.start_supersteps() {
            return true;
        }
        if !self.phase.is_stopping() && self.is_quiet() {
            self.stop_quietly();
            return true;
        }
        false
    }

    /// Reports that the commit of [`Step::Save`] is durable.
    pub fn saved(&mut self, saved: Saved, now: Timestamp) -> Result<(), ProtocolError> {
        self.now = now;
        let saving = self.saving.take().ok_or(ProtocolError::NothingSaved)?;
        self.head = saving.head;
        if saving.claims {
            self.take_records_of_claim(&saved.records);
        }
        match (saving.outcome, saved.unseen) {
            (Some(_), Some(unseen)) => self.go_on_with(unseen),
            (Some(outcome), None) => self.phase = Phase::Over(outcome),
            (None, _) => {}
        }
        if saved.cancel {
            self.cancel();
        }
        Ok(())
    }

    /// Reports the current time.
    pub fn time_passed(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Stops the run as soon as the stop is persisted. The thread can be resumed.
    pub fn cancel(&mut self) {
        if !matches!(self.phase, Phase::Stopping(_) | Phase::Over(_)) {
            self.drop_tasks(|_| true);
            self.phase = Phase::Stopping(Stop::Cancelled);
        }
    }

    /// Starts no further superstep, and stops when those in progress have ended. The thread can be resumed.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Returns the run's id.
    pub fn id(&self) -> RunId {
        self.position.run.run
    }

    /// Returns the id of the run's thread.
    pub fn thread(&self) -> &ThreadId {
        &self.position.thread
    }

    /// Returns the newest stored entry.
    pub fn seq(&self) -> Seq {
        self.head.seq
    }

    /// Returns the state of the root graph as of the last superstep; `None` if its type is not `S`, or if some of it is not
    /// stored, because untracked values do not leave the run.
    pub fn state<S: State>(&self) -> Option<&S> {
        let is_stored = |channel: &Channel| channel.kind != ChannelKind::Untracked;
        let root = self.position.root()?;
        root.state
            .downcast_ref()
            .filter(|_| S::CHANNELS.iter().all(is_stored))
    }

    /// Returns what [`Run::state`] does without copying it, or the run itself if there is no such state.
    pub fn into_state<S: State>(mut self: Box<Self>) -> Result<S, Box<Self>> {
        if self.state::<S>().is_none() {
            return Err(self);
        }
        let root = self.position.frames.remove(&FramePath::root());
        let live = root.expect("its state was found").state;
        let state: Arc<S> = live.downcast().expect("its type was compared");
        // Other handles are those of subgraphs that share it.
        Ok(Arc::unwrap_or_clone(state))
    }

    /// Returns the state of the root graph as of the last superstep, as a JSON object.
    pub fn values(&self) -> Value {
        match self.position.root() {
            Some(root) => root
                .graph
                .ops
                .encode_state(&root.state)
                .expect("every value in it was read back when it was written"),
            None => Value::from_json_bytes(b"{}"),
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("thread", &self.position.thread)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}
