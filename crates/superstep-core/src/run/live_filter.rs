//! Which live events count.
//!
//! Nodes show events while they run, and how these reach a watcher is up to the driver: they may arrive late, twice, with gaps,
//! or from an execution that was replaced. The rules here turn that into what a person can be shown. They need only the events
//! and the log, so they are the same for every watcher of every driver:
//!
//! 1. A later execution of a task replaces what earlier ones showed. Later means a higher epoch, then a higher attempt; between
//!    equals, the one that arrived last. An execution that was replaced never comes back.
//! 2. Within an execution, events come in the order of their numbers, each at most once.
//! 3. Once the log reports that a task ended, or that an attempt failed, its late events are dropped.

use std::collections::{BTreeMap, VecDeque};

use crate::driver::LiveEvent;
use crate::ids::{Epoch, TaskId};
use crate::run::log_follower::StreamEventBody;

/// Tracks what tasks have shown live, and which of it counts.
#[derive(Debug, Default)]
pub struct LiveFilter {
    tasks: BTreeMap<TaskId, Shown>,
    /// Tasks in the order in which they were first seen: the oldest is forgotten first.
    order: VecDeque<TaskId>,
}

/// Whether a live event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveVerdict {
    /// The event counts.
    Yes,
    /// The event counts, and everything that the task showed before is void.
    Anew,
    /// The event came late, twice, or from an execution that was replaced.
    No,
}

#[derive(Debug, Default)]
struct Shown {
    /// The execution whose events count.
    go: Option<Go>,
    /// Executions that were replaced or failed, newest last.
    past: VecDeque<u64>,
    /// Whether the task has shown something that is not void.
    stands: bool,
    ended: bool,
}

#[derive(Debug, Clone, Copy)]
struct Go {
    epoch: Epoch,
    attempt: u32,
    id: u64,
    next: u64,
}

/// Number of tasks to remember: more than run at a time, because events may be late.
const TASKS_MAX: usize = 4_096;
/// Number of replaced executions of a task to remember.
const PAST_MAX: usize = 16;

impl LiveFilter {
    /// Processes a live event, and returns whether it counts.
    pub fn see(&mut self, event: &LiveEvent) -> LiveVerdict {
        self.shown(event.task).see(event)
    }

    /// Processes an item of the log. Returns the task whose live events it makes void, if any.
    pub fn told(&mut self, sight: &StreamEventBody) -> Option<TaskId> {
        match sight {
            // Tasks without events are marked too: their events may still be in transit.
            StreamEventBody::TaskEnded { task, .. } => {
                let shown = self.shown(*task);
                shown.ended = true;
                shown.stands = false;
                None
            }
            StreamEventBody::AttemptFailed(failed) => {
                let task = failed.failure.task?;
                let shown = self.tasks.get_mut(&task)?;
                shown.failed(failed.failure.attempts).then_some(task)
            }
            _ => None,
        }
    }

    fn shown(&mut self, task: TaskId) -> &mut Shown {
        if !self.tasks.contains_key(&task) {
            self.order.push_back(task);
            if self.order.len() > TASKS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.tasks.remove(&oldest);
            }
        }
        self.tasks.entry(task).or_default()
    }
}

impl Shown {
    fn see(&mut self, event: &LiveEvent) -> LiveVerdict {
        if self.ended || self.past.contains(&event.go) {
            return LiveVerdict::No;
        }
        if let Some(go) = &mut self.go {
            if go.id == event.go {
                let is_new = event.index >= go.next;
                go.next = go.next.max(event.index + 1);
                self.stands |= is_new;
                return if is_new {
                    LiveVerdict::Yes
                } else {
                    LiveVerdict::No
                };
            }
            if (event.epoch, event.attempt) < (go.epoch, go.attempt) {
                return LiveVerdict::No;
            }
            let replaced = go.id;
            self.pass(replaced);
        }
        self.go = Some(Go {
            epoch: event.epoch,
            attempt: event.attempt,
            id: event.go,
            next: event.index + 1,
        });
        match std::mem::replace(&mut self.stands, true) {
            true => LiveVerdict::Anew,
            false => LiveVerdict::Yes,
        }
    }

    /// Processes the failure of an attempt; returns whether that makes the shown events void.
    fn failed(&mut self, attempt: u32) -> bool {
        let Some(go) = self.go.filter(|go| go.attempt == attempt) else {
            return false;
        };
        self.pass(go.id);
        std::mem::take(&mut self.stands)
    }

    fn pass(&mut self, go: u64) {
        self.past.push_back(go);
        if self.past.len() > PAST_MAX {
            self.past.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{FramePath, NodeName};
    use crate::value::Value;

    fn event(epoch: u64, attempt: u32, go: u64, index: u64) -> LiveEvent {
        LiveEvent {
            frame: FramePath::root(),
            node: NodeName::new("n").expect("a name"),
            task: TaskId::from_bytes([1; 16]),
            step: 1,
            attempt,
            epoch: Epoch(epoch),
            go,
            index,
            stored: false,
            payload: Value::from_json_bytes(b"0"),
        }
    }

    #[test]
    fn a_later_go_replaces_and_an_earlier_one_does_not_come_back() {
        let mut live_filter = LiveFilter::default();
        let mut see =
            |epoch, attempt, go, index| live_filter.see(&event(epoch, attempt, go, index));
        assert_eq!(see(5, 1, 10, 0), LiveVerdict::Yes);
        assert_eq!(see(5, 1, 10, 1), LiveVerdict::Yes);
        assert_eq!(see(5, 1, 10, 1), LiveVerdict::No, "twice");
        assert_eq!(see(5, 2, 11, 0), LiveVerdict::Anew, "tried again");
        assert_eq!(see(5, 1, 10, 2), LiveVerdict::No, "late");
        assert_eq!(see(5, 2, 77, 3), LiveVerdict::Anew, "by another worker");
        assert_eq!(see(5, 2, 11, 1), LiveVerdict::No, "by the first one, still");
        assert_eq!(see(6, 1, 12, 0), LiveVerdict::Anew, "by the next owner");
        assert_eq!(see(5, 3, 13, 0), LiveVerdict::No, "by the last owner");
    }

    #[test]
    fn the_end_of_a_task_is_the_end_of_its_events() {
        let mut live_filter = LiveFilter::default();
        let task = TaskId::from_bytes([1; 16]);
        let node = NodeName::new("n").expect("a name");
        assert_eq!(
            live_filter.told(&StreamEventBody::TaskEnded { task, node }),
            None
        );
        assert_eq!(live_filter.see(&event(5, 1, 10, 0)), LiveVerdict::No);
    }

    #[test]
    fn no_more_tasks_are_remembered_than_may_be() {
        let mut live_filter = LiveFilter::default();
        for number in 0..TASKS_MAX as u64 + 10 {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            let mut event = event(1, 1, number, 0);
            event.task = TaskId::from_bytes(bytes);
            assert_eq!(live_filter.see(&event), LiveVerdict::Yes);
        }
        assert_eq!(live_filter.tasks.len(), TASKS_MAX);
        assert_eq!(live_filter.order.len(), TASKS_MAX);
    }
}
