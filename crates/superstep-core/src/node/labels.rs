//! The labels of what an attempt of a node has read.
//!
//! Anything a node produces may depend on what it read, so every labeled value that it writes or sends afterwards must have the
//! labels of everything it has read; `execute.rs` compares when the node returns. What a step's closure read is stored with the
//! step's record, because the closure does not run again.

use crate::label::{Labeled, Labels};
use crate::node::NodeCx;

impl NodeCx {
    /// Returns the labels of everything this attempt has read so far, without those it has declassified since.
    pub fn read_so_far(&self) -> Labels {
        self.scope().read.clone()
    }

    /// Labels a value that this attempt made with the labels of everything it has read so far.
    pub fn labeled<T>(&self, value: T) -> Labeled<T> {
        Labeled::new(value, self.read_so_far())
    }

    /// Notes that this attempt reads something with these labels. For types that carry [`Labels`] without being [`Labeled`],
    /// which notes it by itself.
    pub fn note_read(&self, labels: &Labels) {
        self.scope().read.add(labels);
    }

    pub(crate) fn forget_read(&self, labels: &Labels) {
        let mut scope = self.scope();
        scope.read = scope.read.minus(labels);
    }
}
