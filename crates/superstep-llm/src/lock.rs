//! One way to lock a mutex.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose content is changed by single calls, so that a panic cannot have left it half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
