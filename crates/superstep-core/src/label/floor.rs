//! What every labeled value inside of something has: the floor under its labels.
//!
//! A node that has read labels must put them on every labeled value it writes. Whether it did is one
//! comparison with the floor of what it wrote, taken during the walk that every value is given before it
//! is encoded.

use crate::label::Labels;

/// The labels that all labeled values of something have; `None` while there is no such value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Floor(Option<Labels>);

impl Floor {
    /// With one more labeled value.
    pub(crate) fn lower_to(&mut self, labels: &Labels) {
        self.0 = Some(match self.0.take() {
            None => labels.clone(),
            Some(floor) => floor.common(labels),
        });
    }

    /// The floor of two things together.
    pub(crate) fn lower_by(&mut self, other: &Floor) {
        if let Some(labels) = &other.0 {
            self.lower_to(labels);
        }
    }

    /// Which of these some labeled value does not have.
    pub(crate) fn lacks(&self, labels: &Labels) -> Option<Labels> {
        let missing = labels.minus(self.0.as_ref()?);
        (!missing.is_empty()).then_some(missing)
    }
}
