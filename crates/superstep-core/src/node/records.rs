//! What a task has recorded so far: shared by its attempts, so that a retry reuses what the last one did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::checkpoint::format::StepRecord;

/// The step records of one task, by key.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskRecords(Arc<Mutex<BTreeMap<String, StepRecord>>>);

impl TaskRecords {
    pub(crate) fn insert(&self, key: String, record: StepRecord) {
        self.lock().insert(key, record);
    }

    pub(super) fn find(&self, key: &str) -> Option<StepRecord> {
        self.lock().get(key).cloned()
    }

    /// The key of the step that was called at this place, where places mean something.
    pub(super) fn key_at(&self, ordinal: u32) -> Option<String> {
        self.lock()
            .iter()
            .find(|(_, r)| r.ordinal == ordinal && !r.overlapped)
            .map(|(key, _)| key.clone())
    }

    pub(super) fn any_overlapped(&self) -> bool {
        self.lock().values().any(|record| record.overlapped)
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StepRecord>> {
        // A panic while it was held cannot have left it half changed: every change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
