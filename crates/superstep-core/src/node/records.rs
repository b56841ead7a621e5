//! What a task has recorded so far: shared by its attempts, so that a retry reuses what the last one did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::checkpoint::format::StepRecord;
use crate::label::Labels;
use crate::lock::lock;

/// A step that was done, and what its node had read by then.
#[derive(Debug, Clone)]
pub(crate) struct StepKept {
    pub(crate) step: StepRecord,
    /// The closure of a step does not run again, so what it read counts by this.
    pub(crate) read: Labels,
}

/// The step records of one task, by key. Its error handler has steps of its own, apart from the node's.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskRecords {
    all: Arc<Mutex<BTreeMap<String, StepKept>>>,
    of_handler: bool,
}

/// Before the keys of a handler's steps; no step of a node can be named so.
const HANDLER: &str = "=handler:";

impl TaskRecords {
    pub(crate) fn insert(&self, key: String, kept: StepKept) {
        self.lock().insert(key, kept);
    }

    /// The same records, as the task's error handler sees them.
    pub(crate) fn of_handler(self) -> Self {
        Self {
            of_handler: true,
            ..self
        }
    }

    /// The key under which a step is stored.
    pub(super) fn stored_key(&self, key: &str) -> String {
        if self.of_handler {
            format!("{HANDLER}{key}")
        } else {
            key.to_owned()
        }
    }

    /// The key of a step of ours, from the key under which it is stored.
    fn own_key<'a>(&self, stored: &'a str) -> Option<&'a str> {
        match stored.strip_prefix(HANDLER) {
            Some(key) => self.of_handler.then_some(key),
            None => (!self.of_handler).then_some(stored),
        }
    }

    pub(super) fn find(&self, key: &str) -> Option<StepKept> {
        self.lock().get(&self.stored_key(key)).cloned()
    }

    /// The key of the step that was called at this place, where places mean something.
    pub(super) fn key_at(&self, ordinal: u32) -> Option<String> {
        self.lock()
            .iter()
            .filter(|(_, kept)| kept.step.ordinal == ordinal && !kept.step.overlapped)
            .find_map(|(key, _)| self.own_key(key).map(str::to_owned))
    }

    pub(super) fn any_overlapped(&self) -> bool {
        let all = self.lock();
        let mut own = all.iter().filter(|(key, _)| self.own_key(key).is_some());
        own.any(|(_, kept)| kept.step.overlapped)
    }

    pub(super) fn keys(&self) -> Vec<String> {
        let all = self.lock();
        let own = all.keys().filter_map(|key| self.own_key(key));
        own.map(str::to_owned).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StepKept>> {
        // A panic while it was held cannot have left it half changed: every change is one call.
        lock(&self.all)
    }
}
