//! What a task has recorded so far. Its attempts share it, so that a retry reuses the steps of earlier attempts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::checkpoint::format::StepRecord;
use crate::label::Labels;
use crate::lock::lock;

/// A recorded step, and what its node had read by then.
#[derive(Debug, Clone)]
pub(crate) struct StepKept {
    pub(crate) step: StepRecord,
    /// Labels of what the node had read. The step's closure does not run again, so they stand for what it read.
    pub(crate) read: Labels,
}

/// The step records of one task, by key. The steps of its error handler are separate from those of the node.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskRecords {
    all: Arc<Mutex<BTreeMap<String, StepKept>>>,
    of_handler: bool,
}

/// Key prefix of an error handler's steps. No step of a node can have such a name.
const HANDLER: &str = "=handler:";

impl TaskRecords {
    pub(crate) fn insert(&self, key: String, kept: StepKept) {
        self.lock().insert(key, kept);
    }

    /// Returns the same records, as the task's error handler sees them.
    pub(crate) fn of_handler(self) -> Self {
        Self {
            of_handler: true,
            ..self
        }
    }

    /// Returns the key under which a step is stored.
    pub(super) fn stored_key(&self, key: &str) -> String {
        if self.of_handler {
            format!("{HANDLER}{key}")
        } else {
            key.to_owned()
        }
    }

    /// Returns a step's own key from the key under which it is stored; `None` if the step is not of this node or handler.
    fn own_key<'a>(&self, stored: &'a str) -> Option<&'a str> {
        match stored.strip_prefix(HANDLER) {
            Some(key) => self.of_handler.then_some(key),
            None => (!self.of_handler).then_some(stored),
        }
    }

    pub(super) fn find(&self, key: &str) -> Option<StepKept> {
        self.lock().get(&self.stored_key(key)).cloned()
    }

    /// Returns the key of the step that was called at this position, unless steps overlapped there: then positions mean
    /// nothing.
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

    /// Whether these are empty and nothing else holds them, so that another task may have them.
    pub(crate) fn can_be_used_again(&mut self) -> bool {
        let all = Arc::get_mut(&mut self.all).map(Mutex::get_mut);
        matches!(all, Some(Ok(all)) if all.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StepKept>> {
        // Every change is a single call, so a panic while the lock was held cannot have left it half changed.
        lock(&self.all)
    }
}
