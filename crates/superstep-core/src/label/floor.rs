//! The labels that every labeled value inside something has: the floor under its labels.
//!
//! A node that has read labels must put them on every labeled value it writes. One comparison with the floor of what it wrote
//! decides whether it did; the floor is taken while the value is encoded.

use crate::label::Labels;

/// The labels that all labeled values of something have; `None` while there is no such value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Floor(Option<Labels>);

impl Floor {
    /// Adds one more labeled value.
    pub(crate) fn lower_to(&mut self, labels: &Labels) {
        self.0 = Some(match self.0.take() {
            None => labels.clone(),
            Some(floor) => floor.common(labels),
        });
    }

    /// Adds the labeled values of another floor.
    pub(crate) fn lower_by(&mut self, other: &Floor) {
        if let Some(labels) = &other.0 {
            self.lower_to(labels);
        }
    }

    /// Returns the labels among these that some labeled value does not have; `None` if all have them.
    pub(crate) fn lacks(&self, labels: &Labels) -> Option<Labels> {
        let missing = labels.minus(self.0.as_ref()?);
        (!missing.is_empty()).then_some(missing)
    }
}
