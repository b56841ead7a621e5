//! The labels of what an attempt of a node has read.
//!
//! A node may make anything of what it reads, so everything labeled that it writes or sends afterwards must
//! have the labels of all it has read; `execute.rs` compares when the node returns. What a step's closure
//! read is stored with the step's record, for the closure does not run again.

use crate::label::{Labeled, Labels};
use crate::node::NodeCx;

impl NodeCx {
    /// The labels of what this attempt has read so far, without those it has declassified since.
    pub fn read_so_far(&self) -> Labels {
        self.scope().read.clone()
    }

    /// A value that this attempt made, with the labels of what it has read so far.
    pub fn labeled<T>(&self, value: T) -> Labeled<T> {
        Labeled::new(value, self.read_so_far())
    }

    /// Says that this attempt reads something with these labels: for types that carry [`Labels`] without being
    /// [`Labeled`], which says so by itself.
    pub fn note_read(&self, labels: &Labels) {
        self.scope().read.add(labels);
    }

    pub(crate) fn forget_read(&self, labels: &Labels) {
        let mut scope = self.scope();
        scope.read = scope.read.minus(labels);
    }
}
