//! Labels: where a value comes from, and who may see it.
//!
//! A value from outside is `untrusted`, one that not everyone may see is `private`; a program can name others. [`Labels`] is a
//! set of them, [`Labeled`] a value with its set, and [`Policy`] says which labels a sink (a tool that acts on the world)
//! accepts without approval.
//!
//! Labels only grow by themselves: what is made from several values has the labels of all of them (*join*). Removing one is
//! explicit and needs a reason, which the thread's log shows ([`Labels::declassify`]). Labels are part of the stored bytes of
//! their value, so a checkpoint, a fork, a subgraph or an item of the long-term store carries them, and bytes without them do
//! not decode.
//!
//! Limits: labels cannot be tracked through a channel of a plain type, or through code that takes a value apart on purpose. To
//! enforce a rule, keep the value in a `Labeled` channel and check a policy where it leaves; neither depends on a prompt.

mod floor;
mod labeled;
mod policy;

use std::borrow::Cow;
use std::collections::{BTreeSet, btree_set};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{NameError, NodeError};
use crate::ids::shorten;
use crate::node::NodeCx;

pub(crate) use floor::Floor;
pub use labeled::Labeled;
pub(crate) use labeled::{LABELED, LABELS};
pub use policy::{Policy, Verdict};

/// One label: 1 to 64 bytes of `[a-z0-9_.:-]`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Cow<'static, str>);

impl Label {
    /// Longest label, in bytes.
    pub const BYTES_MAX: usize = 64;
    /// The value came from outside: a mail, a web page, the output of a tool. It may hold instructions of a stranger.
    pub const UNTRUSTED: Self = Self(Cow::Borrowed("untrusted"));
    /// Not everyone may see the value.
    pub const PRIVATE: Self = Self(Cow::Borrowed("private"));
    /// No one outside may see the value, and no model.
    pub const SECRET: Self = Self(Cow::Borrowed("secret"));

    /// Parses a label, and refuses one that breaks the rule above.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let is_label = (1..=Self::BYTES_MAX).contains(&name.len())
            && name
                .bytes()
                .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b':'));
        if is_label {
            Ok(Self(Cow::Owned(name.to_owned())))
        } else {
            Err(NameError::Label {
                name: shorten(name),
            })
        }
    }

    /// Returns the label as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for Label {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        Label::new(&name).map_err(serde::de::Error::custom)
    }
}

/// A set of labels, in order. Serialized as a list, also when it is empty; a missing list is not an empty one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeSet<Label>);

impl Labels {
    /// The empty set.
    pub const NONE: Self = Self(BTreeSet::new());

    /// Adds one label to the set.
    #[must_use]
    pub fn with(mut self, label: Label) -> Self {
        self.0.insert(label);
        self
    }

    /// Returns the union: the labels of something made from two values.
    #[must_use]
    pub fn join(mut self, other: &Labels) -> Self {
        self.add(other);
        self
    }

    /// Adds all labels of another set.
    pub fn add(&mut self, other: &Labels) {
        for label in &other.0 {
            if !self.0.contains(label) {
                self.0.insert(label.clone());
            }
        }
    }

    /// Whether a label is in the set.
    pub fn has(&self, label: &Label) -> bool {
        self.0.contains(label)
    }

    /// Whether every label of the other set is in this one.
    pub fn covers(&self, other: &Labels) -> bool {
        other.0.is_subset(&self.0)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the labels, in order.
    pub fn iter(&self) -> btree_set::Iter<'_, Label> {
        self.0.iter()
    }

    /// Removes labels, for a reason.
    ///
    /// The thread's log shows it as a [`Declassified`] event, stored in the same commit as what the node writes. Values that
    /// this attempt of the node made from what it has read so far may then be written without these labels, too; what it reads
    /// later counts again. See [`NodeCx::labeled`].
    pub fn declassify(
        &self,
        labels: &Labels,
        reason: &str,
        cx: &NodeCx,
    ) -> Result<Labels, NodeError> {
        if reason.trim().is_empty() {
            return Err(NodeError::fatal(
                "taking labels away needs a reason, and none was given",
            ));
        }
        let declassified = Declassified {
            labels: labels.clone(),
            reason: reason.to_owned(),
        };
        cx.emit(Event { declassified })?;
        cx.forget_read(labels);
        Ok(self.minus(labels))
    }

    // Not public: this module exists to prevent labels from disappearing silently.
    pub(crate) fn minus(&self, other: &Labels) -> Labels {
        Labels(self.0.difference(&other.0).cloned().collect())
    }

    pub(crate) fn common(&self, other: &Labels) -> Labels {
        Labels(self.0.intersection(&other.0).cloned().collect())
    }
}

/// The event that labels were removed, as the log shows it: `{"declassified": {"labels": [..], "reason": ".."}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declassified {
    /// Labels that were removed.
    pub labels: Labels,
    /// Why, in the words of the code that removed them.
    pub reason: String,
}

#[derive(Serialize)]
struct Event {
    declassified: Declassified,
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, label) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}`{label}`")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.0).finish()
    }
}

impl From<Label> for Labels {
    fn from(label: Label) -> Self {
        Labels::NONE.with(label)
    }
}

impl<const N: usize> From<[Label; N]> for Labels {
    fn from(labels: [Label; N]) -> Self {
        labels.into_iter().collect()
    }
}

impl FromIterator<Label> for Labels {
    fn from_iter<I: IntoIterator<Item = Label>>(labels: I) -> Self {
        Labels(labels.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Labels {
    type Item = &'a Label;
    type IntoIter = btree_set::Iter<'a, Label>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
