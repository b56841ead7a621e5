//! What calling a tool twice means.

use serde::{Deserialize, Serialize};

/// What calling a tool twice means, and so what is done when nobody knows whether a call happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Nothing: it only looks. Called again.
    Read,
    /// The same as calling it once. Called again.
    Idempotent,
    /// The receiver drops the second, by its key. Called again under the same key, while the receiver remembers it.
    Keyed,
    /// It would happen twice, but whether it happened can be looked up. Looked up, and called again if not.
    Reconcilable,
    /// It would happen twice. Never called again by itself: a person is asked.
    #[default]
    Unsafe,
}
