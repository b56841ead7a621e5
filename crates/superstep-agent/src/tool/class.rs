//! What calling a tool twice means.

use serde::{Deserialize, Serialize};

/// What calling a tool twice means, and so what to do when it is unknown whether a call happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The tool only reads. In doubt it is called again.
    Read,
    /// Calling twice has the same effect as calling once. In doubt it is called again.
    Idempotent,
    /// The receiver deduplicates by the idempotency key. In doubt it is called again under the same key, while the receiver
    /// remembers the key.
    Keyed,
    /// Calling twice would act twice, but the effect can be looked up. In doubt it is looked up, and called again if it did
    /// not happen.
    Reconcilable,
    /// Calling twice would act twice. In doubt it is never called again automatically: a person is asked.
    #[default]
    Unsafe,
}
