//! Processes what tasks report: results, interrupts, failures.

use crate::checkpoint::format::{
    AfterFailure, AttemptFailed, Change, Draft, EntryKind, Extensions, InterruptRecord, Stop,
};
use crate::error::{Failure, FailureKind, NodeError, ProtocolError};
use crate::graph::Siblings;
use crate::ids::{FramePath, InterruptId, NodeName, TaskId, Timestamp};
use crate::node::{Output, Stored, TaskEnd};
use crate::run::live::{Ending, LiveFrame, Slot, TaskActivity};
use crate::run::phase::Phase;
use crate::run::position::outlives_superstep;
use crate::run::{Run, Step};

impl Run {
    /// Reports how a task of [`Step::Start`] ended.
    pub fn task_ended(
        &mut self,
        task: TaskId,
        end: TaskEnd,
        now: Timestamp,
    ) -> Result<(), ProtocolError> {
        self.now = now;
        let (path, index) = self
            .places
            .get(task)
            .cloned()
            .ok_or(ProtocolError::UnknownTask { task })?;
        let doing = self
            .live
            .get(&path)
            .map(|live| &live.slots[index as usize])
            .filter(|slot| slot.task == task)
            .map(|slot| &slot.doing);
        let handling = match doing {
            Some(TaskActivity::Running { handling }) => *handling,
            // The task was dropped and had not noticed; its superstep may be over.
            Some(TaskActivity::Dropped) | None => return Ok(()),
            Some(_) => return Err(ProtocolError::EndedTwice { task }),
        };
        let graph = self.position.frame(&path).graph.clone();
        let read = match end {
            TaskEnd::Done(output) => Ok((output, false)),
            TaskEnd::Stored(bytes) => {
                match Output::read(&*graph.ops, &bytes, &self.position.thread) {
                    Ok(Stored::Output(output)) => Ok((output, false)),
                    Ok(Stored::End(end)) => {
                        self.take_back_result(task);
                        return self.task_ended(task, end.how.into(), now);
                    }
                    Err(error) => Err(error),
                }
            }
            TaskEnd::Cached(bytes) => {
                Output::from_cache(&*graph.ops, &bytes).map(|output| (output, true))
            }
            TaskEnd::Paused(drafts) => {
                let questions = drafts
                    .into_iter()
                    .map(|draft| self.question(&path, index, draft))
                    .collect();
                self.live_frame(&path)
                    .set(index, TaskActivity::Asking(questions));
                self.recorded.unpersisted_ends.insert(task);
                return Ok(());
            }
            TaskEnd::Failed(error) => Err(error),
            TaskEnd::TimedOut => Err(NodeError::of_kind(
                FailureKind::TimedOut,
                "the node took longer than its time limit",
            )),
        };
        match read {
            Ok((output, cached)) => {
                let node = &self.live_frame(&path).slots[index as usize].node;
                let ending = Ending::of_output(output, graph.node(node), cached);
                self.live_frame(&path)
                    .set(index, TaskActivity::Ended(ending));
            }
            Err(error) if handling => self.give_up(&path, index, &error),
            Err(error) => self.fail(&path, index, error),
        }
        if self.is_down(task) {
            self.recorded.unpersisted_ends.insert(task);
        }
        Ok(())
    }

    fn question(&self, path: &FramePath, index: u32, draft: Draft) -> InterruptRecord {
        let slot = &self.live[path].slots[index as usize];
        InterruptRecord {
            id: InterruptId::derive(slot.task, &draft.key),
            frame: path.clone(),
            node: slot.node.clone(),
            task: slot.task,
            key: draft.key,
            kind: draft.kind,
            request: draft.request,
            schema: draft.schema,
            deadline: draft.within_ms.map(|ms| self.now.plus_ms(ms)),
            on_deadline: draft.on_deadline,
            extensions: Extensions::default(),
        }
    }

    /// Processes a failed attempt: the task is retried, or handled, or has failed permanently.
    pub(super) fn fail(&mut self, path: &FramePath, index: u32, error: NodeError) {
        let failure = self.task_failure(path, index, &error);
        let slot = &self.live[path].slots[index as usize];
        let def = self.position.frame(path).graph.node(&slot.node);
        let wait = def
            .retry
            .filter(|_| error.kind().may_retry())
            .and_then(|policy| policy.wait_ms(slot.task, slot.attempt));
        let then = match wait {
            Some(ms) => AfterFailure::Retry {
                at: self.now.plus_ms(ms),
            },
            None if def.handler.is_some() && error.kind().may_handle() => AfterFailure::Handle,
            None => return self.give_up(path, index, &error),
        };
        let doing = match &then {
            AfterFailure::Retry { at } => TaskActivity::Waiting {
                until: *at,
                handle: None,
            },
            AfterFailure::Handle => TaskActivity::Waiting {
                until: self.now,
                handle: Some(failure.clone()),
            },
        };
        self.live_frame(path).set(index, doing);
        let failed = AttemptFailed {
            frame: path.clone(),
            index,
            failure,
            then,
        };
        let frame = self.position.frame_mut(path);
        frame.failed.insert(index, failed.clone());
        if frame.stored {
            self.tell_opened(path);
            self.pending
                .push(EntryKind::Attempt, Change::AttemptFailed(failed));
        }
    }

    fn give_up(&mut self, path: &FramePath, index: u32, error: &NodeError) {
        let failure = self.task_failure(path, index, error);
        self.live_frame(path)
            .set(index, TaskActivity::Failed(failure));
        if self.position.frame(path).graph.siblings == Siblings::Cancel {
            self.drop_tasks(|other| other == path || other.is_below(path));
        }
    }

    /// Drops the tasks of some graphs that are still in progress.
    pub(super) fn drop_tasks(&mut self, of: impl Fn(&FramePath) -> bool) {
        let live = self.live.iter_mut().filter(|(path, _)| of(path));
        let dropped: Vec<_> = live.flat_map(|(_, live)| live.drop_tasks()).collect();
        self.ready.retain(|path, ()| !of(path));
        if !dropped.is_empty() {
            self.queue.push_back(Step::Drop(dropped));
        }
    }

    /// Runs a task again whose interrupt was answered after it had paused.
    pub(super) fn ask_again(&mut self, task: TaskId) {
        let Some((path, index)) = self.places.get(task).cloned() else {
            return;
        };
        // The error handler may have raised the interrupt.
        let failed = self.position.frame(&path).failed.get(&index);
        let handle = failed
            .filter(|failed| failed.then == AfterFailure::Handle)
            .map(|failed| failed.failure.clone());
        let Some(live) = self.live.get_mut(&path) else {
            return;
        };
        if matches!(live.slots[index as usize].doing, TaskActivity::Asking(_)) {
            // Not a new attempt: nothing failed.
            live.slots[index as usize].attempt -= 1;
            self.recorded.unpersisted_ends.remove(&task);
            live.set(
                index,
                TaskActivity::Waiting {
                    until: self.now,
                    handle,
                },
            );
            if self.recorded.ends.contains(&task) {
                self.free_result(task);
            }
        }
    }

    /// Whether the driver has nothing to report: nothing runs and no timer is set.
    pub(super) fn is_quiet(&self) -> bool {
        let held_back = self.draining || self.phase.is_halting() || self.ready.is_empty();
        held_back && !self.live.values().any(LiveFrame::is_under_way)
    }

    /// Stops the run once nothing is in progress, so that the effect of a sibling in another graph is not cut off. A failure
    /// outweighs any other reason to stop.
    pub(super) fn halt(&mut self, stop: Stop) {
        debug_assert!(!matches!(self.phase, Phase::Stopping(_) | Phase::Over(_)));
        let stop = match (self.phase.take_halting(), stop) {
            (Some(Stop::Failed(mut failures)), Stop::Failed(more)) => {
                failures.extend(more);
                Stop::Failed(failures)
            }
            (Some(first), Stop::Failed(failures)) if !matches!(first, Stop::Failed(_)) => {
                Stop::Failed(failures)
            }
            (Some(first), _) => first,
            (None, stop) => stop,
        };
        let is_busy = self.live.values().any(LiveFrame::is_under_way);
        self.phase = match is_busy {
            true => Phase::Halting(stop),
            false => Phase::Stopping(stop),
        };
    }

    /// Returns every task that has started, in task order; those of a subgraph are in the place of the task that entered it.
    pub(super) fn slots_in_order(&self) -> Vec<&Slot> {
        let mut slots = Vec::new();
        self.add_slots(&FramePath::root(), &mut slots);
        slots
    }

    fn add_slots<'a>(&'a self, path: &FramePath, slots: &mut Vec<&'a Slot>) {
        for slot in self.live.get(path).iter().flat_map(|live| &live.slots) {
            slots.push(slot);
            if let TaskActivity::Inside = slot.doing {
                // The path of a subgraph that lives as long as its thread has no task.
                self.add_slots(&path.child(slot.node.clone(), Some(slot.task)), slots);
                self.add_slots(&path.child(slot.node.clone(), None), slots);
            }
        }
    }

    /// Once nothing is in progress: passes failed subgraphs to their error handlers, or stops the run.
    pub(super) fn stop_quietly(&mut self) {
        if self.handle_failed_subgraph() {
            return;
        }
        let slots = self.slots_in_order();
        let mut failures: Vec<_> = slots
            .iter()
            .filter_map(|slot| slot.failure())
            .filter(|failure| !self.is_handled_later(failure))
            .cloned()
            .collect();
        let asks = slots
            .iter()
            .any(|slot| matches!(slot.doing, TaskActivity::Asking(_)));
        match self.phase.take_halting() {
            Some(Stop::Failed(more)) => failures.extend(more),
            Some(stop) if failures.is_empty() => {
                self.phase = Phase::Stopping(stop);
                return;
            }
            Some(_) | None => {}
        }
        self.phase = Phase::Stopping(match (failures.is_empty(), asks, self.ready.is_empty()) {
            (false, _, _) => Stop::Failed(failures),
            (true, _, false) => Stop::Drained,
            (true, true, true) => Stop::Paused {
                asked: self.open_interrupts().map(|question| question.id).collect(),
            },
            // Without an interrupt or a failure, only a drained or finished graph has nothing in progress.
            (true, false, true) => {
                if self.draining {
                    Stop::Drained
                } else {
                    Stop::Finished
                }
            }
        });
    }

    /// Leaves a subgraph in which something failed permanently, if its node has an error handler.
    fn handle_failed_subgraph(&mut self) -> bool {
        let failed = self.live.values().find_map(|live| {
            let failure = live.slots.iter().find_map(Slot::failure)?;
            let place = self.handler_around(failure)?;
            (!self.is_held_back(&place.2)).then(|| (place, failure.clone()))
        });
        let Some(((parent, index, child), failure)) = failed else {
            return false;
        };
        self.forget(&parent, &child);
        let error = NodeError::of_kind(failure.kind, failure.to_string());
        let error = match &failure.code {
            Some(code) => error.with_code(code),
            None => error,
        };
        self.fail(&parent, index, error);
        true
    }

    /// Whether a drain keeps a subgraph from its next superstep. Its failure is handled once all of it has ended, as if
    /// nothing had been drained: until then the failed task counts as not run.
    fn is_held_back(&self, child: &FramePath) -> bool {
        let mut ready = self.ready.keys();
        self.draining && ready.any(|path| path == child || path.is_below(child))
    }

    fn is_handled_later(&self, failure: &Failure) -> bool {
        self.handler_around(failure)
            .is_some_and(|(.., child)| self.is_held_back(&child))
    }

    /// Returns the nearest subgraph around a failed task whose node has an error handler for it: its parent, its index, its
    /// own path.
    fn handler_around(&self, failure: &Failure) -> Option<(FramePath, u32, FramePath)> {
        if !failure.kind.may_handle() {
            return None;
        }
        let mut child = failure.frame.clone();
        loop {
            let parent = child.parent()?;
            let index = self.slot_of_child(&parent, &child)?;
            let node = &self.live[&parent].slots[index as usize].node;
            let graph = &self.position.frame(&parent).graph;
            if graph.node(node).handler.is_some() {
                return Some((parent, index, child));
            }
            child = parent;
        }
    }

    /// Forgets a failed subgraph and everything below it, with what they recorded and asked. One that lives as long as the
    /// thread stays entered until the superstep of `parent` ends.
    fn forget(&mut self, parent: &FramePath, child: &FramePath) {
        let of = |path: &FramePath| path == child || path.is_below(child);
        self.drop_tasks(of);
        let tasks: Vec<TaskId> = self
            .live
            .iter()
            .filter(|(path, _)| of(path))
            .flat_map(|(_, live)| live.slots.iter().map(|slot| slot.task))
            .collect();
        for task in tasks {
            self.release(task);
            self.close_questions(task);
        }
        self.live.retain(|path, _| !of(path));
        self.pending
            .opened
            .retain(|path, _| !of(path) || outlives_superstep(path, parent));
    }

    pub(super) fn task_failure(&self, path: &FramePath, index: u32, error: &NodeError) -> Failure {
        let slot = &self.live[path].slots[index as usize];
        Failure {
            frame: path.clone(),
            node: slot.node.clone(),
            task: Some(slot.task),
            kind: error.kind(),
            message: error.message().to_owned(),
            code: error.code().map(str::to_owned),
            attempts: slot.attempt,
        }
    }

    pub(super) fn superstep_failure(
        &self,
        path: &FramePath,
        node: &NodeName,
        kind: FailureKind,
        message: String,
    ) -> Failure {
        Failure {
            frame: path.clone(),
            node: node.clone(),
            task: None,
            kind,
            message,
            code: None,
            attempts: 1,
        }
    }
}
