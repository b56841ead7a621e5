//! Takes what tasks report: results, questions, failures.

use crate::checkpoint::format::{
    AfterFailure, AttemptFailed, Change, EntryKind, Extensions, Question, Stop,
};
use crate::error::{Failure, FailureKind, NodeError, ProtocolError};
use crate::graph::Siblings;
use crate::ids::{FramePath, InterruptId, NodeName, TaskId, Timestamp};
use crate::node::{Draft, Output, TaskEnd};
use crate::run::live::{Doing, Ending};
use crate::run::{Run, Step};

impl Run {
    /// A task that [`Step::Start`] gave has ended.
    pub fn task_ended(
        &mut self,
        task: TaskId,
        end: TaskEnd,
        now: Timestamp,
    ) -> Result<(), ProtocolError> {
        self.now = now;
        let (path, index) = self
            .places
            .get(&task)
            .cloned()
            .ok_or(ProtocolError::UnknownTask { task })?;
        let doing = self
            .live
            .get(&path)
            .map(|live| &live.slots[index as usize])
            .filter(|slot| slot.task == task)
            .map(|slot| &slot.doing);
        let handling = match doing {
            Some(Doing::Running { handling }) => *handling,
            // It was dropped and had not noticed; its superstep may be over.
            Some(Doing::Dropped) | None => return Ok(()),
            Some(_) => return Err(ProtocolError::EndedTwice { task }),
        };
        let graph = self.position.frame(&path).graph.clone();
        let read = match end {
            TaskEnd::Done(output) => Ok((output, false)),
            TaskEnd::Stored(bytes) => Output::read(&*graph.ops, &bytes, &self.position.thread)
                .map(|output| (output, false)),
            TaskEnd::Cached(bytes) => {
                Output::from_cache(&*graph.ops, &bytes).map(|output| (output, true))
            }
            TaskEnd::Paused(drafts) => {
                let questions = drafts
                    .into_iter()
                    .map(|draft| self.question(&path, index, draft))
                    .collect();
                self.live_frame(&path).set(index, Doing::Asking(questions));
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
                let by_command = graph.node(node).routing.commands.is_some();
                self.live_frame(&path).set(
                    index,
                    Doing::Ended(Ending::of_output(output, by_command, cached)),
                );
            }
            Err(error) if handling => self.give_up(&path, index, &error),
            Err(error) => self.fail(&path, index, error),
        }
        Ok(())
    }

    fn question(&self, path: &FramePath, index: u32, draft: Draft) -> Question {
        let slot = &self.live[path].slots[index as usize];
        Question {
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

    /// An attempt failed: it is tried again, or handled, or that was it.
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
            AfterFailure::Retry { at } => Doing::Waiting {
                until: *at,
                handle: None,
            },
            AfterFailure::Handle => Doing::Waiting {
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
        self.live_frame(path).set(index, Doing::Failed(failure));
        if self.position.frame(path).graph.siblings == Siblings::Cancel {
            self.drop_tasks(|other| other == path || other.is_below(path));
        }
    }

    /// Drops the tasks of some graphs that are still under way.
    pub(super) fn drop_tasks(&mut self, of: impl Fn(&FramePath) -> bool) {
        let mut dropped = Vec::new();
        for live in self
            .live
            .iter_mut()
            .filter(|(path, _)| of(path))
            .map(|(_, live)| live)
        {
            for slot in &mut live.slots {
                if slot.doing.is_under_way() {
                    slot.doing = Doing::Dropped;
                    dropped.push(slot.task);
                }
            }
        }
        self.ready.retain(|path| !of(path));
        if !dropped.is_empty() {
            self.queue.push_back(Step::Drop(dropped));
        }
    }

    /// A question of this task was answered after it had paused: it runs again.
    pub(super) fn ask_again(&mut self, task: TaskId) {
        let Some((path, index)) = self.places.get(&task).cloned() else {
            return;
        };
        let Some(live) = self.live.get_mut(&path) else {
            return;
        };
        if matches!(live.slots[index as usize].doing, Doing::Asking(_)) {
            // Not an attempt of its own: nothing failed.
            live.slots[index as usize].attempt -= 1;
            live.set(
                index,
                Doing::Waiting {
                    until: self.now,
                    handle: None,
                },
            );
        }
    }

    /// Whether no news can come: nothing runs and nothing waits for its time.
    pub(super) fn is_quiet(&self) -> bool {
        let held_back = self.draining || self.ready.is_empty();
        held_back
            && !self
                .live
                .values()
                .flat_map(|live| &live.slots)
                .any(|slot| slot.doing.is_under_way())
    }

    /// Nothing is under way: hands failed subgraphs to their handlers, or stops.
    pub(super) fn stop_quietly(&mut self) {
        if self.handle_failed_subgraph() {
            return;
        }
        let slots = || self.live.values().flat_map(|live| &live.slots);
        let failures: Vec<_> = slots()
            .filter_map(|slot| {
                if let Doing::Failed(failure) = &slot.doing {
                    Some(failure.clone())
                } else {
                    None
                }
            })
            .collect();
        let asks = slots().any(|slot| matches!(slot.doing, Doing::Asking(_)));
        self.stop = Some(match (failures.is_empty(), asks, self.ready.is_empty()) {
            (false, _, _) => Stop::Failed(failures),
            (true, _, false) => Stop::Drained,
            (true, true, true) => Stop::Paused {
                asked: self.open_questions().map(|question| question.id).collect(),
            },
            // Only a drained or finished graph is quiet without a question or a failure.
            (true, false, true) => {
                if self.draining {
                    Stop::Drained
                } else {
                    Stop::Finished
                }
            }
        });
    }

    /// A subgraph in which something failed for good is left, if its node has an error handler.
    fn handle_failed_subgraph(&mut self) -> bool {
        let failed = self.live.iter().find_map(|(path, live)| {
            let failure = live.slots.iter().find_map(|slot| {
                if let Doing::Failed(failure) = &slot.doing {
                    Some(failure.clone())
                } else {
                    None
                }
            })?;
            let parent = path.parent()?;
            let index = self.slot_of_child(&parent, path)?;
            let node = &self.live[&parent].slots[index as usize].node;
            let handles = self
                .position
                .frame(&parent)
                .graph
                .node(node)
                .handler
                .is_some()
                && failure.kind.may_handle();
            handles.then_some((parent, index, path.clone(), failure))
        });
        let Some((parent, index, child, failure)) = failed else {
            return false;
        };
        self.forget(&child);
        self.fail(
            &parent,
            index,
            NodeError::of_kind(failure.kind, failure.to_string()),
        );
        true
    }

    /// Forgets a subgraph and everything below it; what they recorded and asked goes with them.
    fn forget(&mut self, child: &FramePath) {
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
        self.pending.opened.retain(|path, _| !of(path));
    }

    pub(super) fn task_failure(&self, path: &FramePath, index: u32, error: &NodeError) -> Failure {
        let slot = &self.live[path].slots[index as usize];
        Failure {
            frame: path.clone(),
            node: slot.node.clone(),
            task: Some(slot.task),
            kind: error.kind(),
            message: error.message().to_owned(),
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
            attempts: 1,
        }
    }
}
