//! What a tool is handed beside its arguments.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Serialize;
use superstep_core::__private::lock;
use superstep_core::{Labels, NodeCx, NodeError, ThreadId, Timestamp};

/// What a tool is handed beside its arguments. Cheap to clone.
///
/// It cannot record and cannot ask: the whole call is one recorded step already.
#[derive(Clone)]
pub struct ToolCx(Arc<Inner>);

struct Inner {
    handed: Handed,
    gives: Mutex<Labels>,
}

/// What the runtime knows of a call.
pub(crate) struct Handed {
    pub(crate) node: NodeCx,
    pub(crate) call_id: String,
    pub(crate) idempotency_key: String,
    pub(crate) fingerprint: String,
    pub(crate) attempt: u32,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) labels: Labels,
}

impl ToolCx {
    pub(crate) fn new(handed: Handed) -> Self {
        Self(Arc::new(Inner {
            handed,
            gives: Mutex::default(),
        }))
    }

    /// The key to hand to the receiver, as `Idempotency-Key` or whatever it calls it.
    ///
    /// The same for every attempt at this call, across retries, resumes, crashes and workers; new on a fork of the
    /// thread; no other call's. The model has no part in it.
    pub fn idempotency_key(&self) -> &str {
        &self.0.handed.idempotency_key
    }

    /// A digest of tool and arguments: under one key it is always the same, or the call is refused.
    pub fn fingerprint(&self) -> &str {
        &self.0.handed.fingerprint
    }

    /// Which attempt this is since the tool's node began its work, counted from 1. Before a crash there may have been others.
    pub fn attempt(&self) -> u32 {
        self.0.handed.attempt
    }

    /// When the call is given up, if it has a time limit. A receiver that is asked to do something later than this must not.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.0.handed.deadline
    }

    /// A number that rises whenever the thread is taken over, for a receiver that can compare.
    ///
    /// A worker that was thought dead can no longer write to the store, but what it had sent is still on its way. A receiver
    /// that keeps the highest fence it has seen of a thread, and refuses a call with a lower one, is safe from that, too.
    pub fn fence(&self) -> u64 {
        self.0.handed.node.epoch().0
    }

    /// The id of the call, as the model's message names it.
    pub fn call_id(&self) -> &str {
        &self.0.handed.call_id
    }

    /// The thread.
    pub fn thread(&self) -> &ThreadId {
        self.0.handed.node.thread()
    }

    /// The labels of the arguments: of everything the model had read when it decided on this call.
    pub fn labels(&self) -> &Labels {
        &self.0.handed.labels
    }

    /// Says that the result has these labels, beside those of the arguments and those that the tool always gives.
    pub fn gives(&self, labels: impl Into<Labels>) {
        self.given_labels().add(&labels.into());
    }

    /// Shows something to those who watch right now. Not stored.
    pub fn show(&self, event: impl Serialize) -> Result<(), NodeError> {
        self.0.handed.node.emit_live(event)
    }

    pub(crate) fn given(&self) -> Labels {
        self.given_labels().clone()
    }

    fn given_labels(&self) -> MutexGuard<'_, Labels> {
        // Every change is one call, so a panic cannot have left it half made.
        lock(&self.0.gives)
    }
}

impl fmt::Debug for ToolCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCx")
            .field("call_id", &self.0.handed.call_id)
            .field("idempotency_key", &self.0.handed.idempotency_key)
            .field("attempt", &self.0.handed.attempt)
            .finish_non_exhaustive()
    }
}
