//! Which live events count.
//!
//! Nodes show things while they run, and how these travel to a watcher is a driver's business: they may come late, twice,
//! with gaps, or from a go at a task that has been superseded. The rule here makes of that what a person can be shown. It
//! needs nothing but the events and what the log tells, so every watcher of every driver goes by the same one:
//!
//! 1. A later go at a task replaces what earlier ones showed. Later is a higher epoch, then a higher attempt; between equals,
//!    whichever was heard of last, and one that was replaced never comes back.
//! 2. Within a go, events come in the order of their numbers, each at most once.
//! 3. When the log tells that a task has ended, or that an attempt failed, what comes late from it is dropped.

use std::collections::{BTreeMap, VecDeque};

use crate::driver::LiveEvent;
use crate::ids::{Epoch, TaskId};
use crate::run::watch::Sight;

/// What tasks have shown, as far as it counts.
#[derive(Debug, Default)]
pub struct Showing {
    tasks: BTreeMap<TaskId, Shown>,
    /// The tasks in the order in which they were heard of, so that the oldest is forgotten first.
    order: VecDeque<TaskId>,
}

/// Whether a live event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// It does.
    Yes,
    /// It does, and what the task showed before is void.
    Anew,
    /// It came late, twice, or from a go that was replaced.
    No,
}

#[derive(Debug, Default)]
struct Shown {
    /// The go whose events count.
    go: Option<Go>,
    /// Those that were replaced or failed, newest last.
    past: VecDeque<u64>,
    /// Whether something was shown that is not void.
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

/// How many tasks are remembered: more than run at a time, for events may be late.
const TASKS_MAX: usize = 4_096;
/// How many replaced goes of a task are remembered.
const PAST_MAX: usize = 16;

impl Showing {
    /// Takes in an event, and says whether it counts.
    pub fn see(&mut self, event: &LiveEvent) -> Counts {
        self.shown(event.task).see(event)
    }

    /// Takes in what the log tells. Says of which task that makes void what it showed.
    pub fn told(&mut self, sight: &Sight) -> Option<TaskId> {
        match sight {
            // Unheard ones are marked, too: their events may still be on the way.
            Sight::TaskEnded { task, .. } => {
                let shown = self.shown(*task);
                shown.ended = true;
                shown.stands = false;
                None
            }
            Sight::AttemptFailed(failed) => {
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
    fn see(&mut self, event: &LiveEvent) -> Counts {
        if self.ended || self.past.contains(&event.go) {
            return Counts::No;
        }
        if let Some(go) = &mut self.go {
            if go.id == event.go {
                let is_new = event.index >= go.next;
                go.next = go.next.max(event.index + 1);
                self.stands |= is_new;
                return if is_new { Counts::Yes } else { Counts::No };
            }
            if (event.epoch, event.attempt) < (go.epoch, go.attempt) {
                return Counts::No;
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
            true => Counts::Anew,
            false => Counts::Yes,
        }
    }

    /// An attempt failed; whether that makes void what was shown.
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
        let mut showing = Showing::default();
        let mut see = |epoch, attempt, go, index| showing.see(&event(epoch, attempt, go, index));
        assert_eq!(see(5, 1, 10, 0), Counts::Yes);
        assert_eq!(see(5, 1, 10, 1), Counts::Yes);
        assert_eq!(see(5, 1, 10, 1), Counts::No, "twice");
        assert_eq!(see(5, 2, 11, 0), Counts::Anew, "tried again");
        assert_eq!(see(5, 1, 10, 2), Counts::No, "late");
        assert_eq!(see(5, 2, 77, 3), Counts::Anew, "by another worker");
        assert_eq!(see(5, 2, 11, 1), Counts::No, "by the first one, still");
        assert_eq!(see(6, 1, 12, 0), Counts::Anew, "by the next owner");
        assert_eq!(see(5, 3, 13, 0), Counts::No, "by the last owner");
    }

    #[test]
    fn the_end_of_a_task_is_the_end_of_its_events() {
        let mut showing = Showing::default();
        let task = TaskId::from_bytes([1; 16]);
        let node = NodeName::new("n").expect("a name");
        assert_eq!(showing.told(&Sight::TaskEnded { task, node }), None);
        assert_eq!(showing.see(&event(5, 1, 10, 0)), Counts::No);
    }

    #[test]
    fn no_more_tasks_are_remembered_than_may_be() {
        let mut showing = Showing::default();
        for number in 0..TASKS_MAX as u64 + 10 {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            let mut event = event(1, 1, number, 0);
            event.task = TaskId::from_bytes(bytes);
            assert_eq!(showing.see(&event), Counts::Yes);
        }
        assert_eq!(showing.tasks.len(), TASKS_MAX);
        assert_eq!(showing.order.len(), TASKS_MAX);
    }
}
