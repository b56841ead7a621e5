//! Labels: what is known of where a value comes from, and who may see it.
//!
//! A value that came from outside is `untrusted`, one that not everybody may see is `private`; a program
//! names others. [`Labels`] is a set of them, [`Labeled`] a value with its set, and [`Policy`] says which
//! labels a sink (a tool that acts on the world) takes without asking.
//!
//! Labels only ever grow by themselves: what is made from several values has the labels of all of them
//! (*join*). Taking one away is an act with a reason, which the thread's log shows ([`Labels::declassify`]).
//! They live in the stored bytes of the value they belong to, so a checkpoint, a fork, a subgraph or an
//! item of the long-term store carries them, and bytes without them do not decode.
//!
//! What this cannot do: see through a channel of a plain type, or through code that takes a value apart on
//! purpose. To enforce a rule, keep the value in a `Labeled` channel and check a policy where
//! it leaves; no prompt takes part in either.

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
    /// The longest label, in bytes.
    pub const BYTES_MAX: usize = 64;
    /// It came from outside: a mail, a web page, the output of a tool. It may hold instructions of a stranger.
    pub const UNTRUSTED: Self = Self(Cow::Borrowed("untrusted"));
    /// Not everybody may see it.
    pub const PRIVATE: Self = Self(Cow::Borrowed("private"));
    /// Nobody outside may see it, and no model.
    pub const SECRET: Self = Self(Cow::Borrowed("secret"));

    /// Checks and takes a name.
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

    /// The label as text.
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

/// A set of labels, in order. Written as a list, also when it is empty; nothing stands for "no list".
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeSet<Label>);

impl Labels {
    /// No label.
    pub const NONE: Self = Self(BTreeSet::new());

    /// This set with one more.
    #[must_use]
    pub fn with(mut self, label: Label) -> Self {
        self.0.insert(label);
        self
    }

    /// All labels of both: what something has that was made from two values.
    #[must_use]
    pub fn join(mut self, other: &Labels) -> Self {
        self.add(other);
        self
    }

    /// Takes over the labels of another set.
    pub fn add(&mut self, other: &Labels) {
        for label in &other.0 {
            if !self.0.contains(label) {
                self.0.insert(label.clone());
            }
        }
    }

    /// Whether a label is in it.
    pub fn has(&self, label: &Label) -> bool {
        self.0.contains(label)
    }

    /// Whether every label of the other set is in it.
    pub fn covers(&self, other: &Labels) -> bool {
        other.0.is_subset(&self.0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The labels, in order.
    pub fn iter(&self) -> btree_set::Iter<'_, Label> {
        self.0.iter()
    }

    /// Takes labels away, for a reason.
    ///
    /// The thread's log shows it as a [`Declassified`] event, stored in the same commit as what the node
    /// writes. Values that this attempt of the node made from what it has read so far may from now on be
    /// written without these labels, too; what it reads later counts again. See [`NodeCx::labeled`].
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

    // Not public: a label that goes away silently is what this module is there to prevent.
    pub(crate) fn minus(&self, other: &Labels) -> Labels {
        Labels(self.0.difference(&other.0).cloned().collect())
    }

    pub(crate) fn common(&self, other: &Labels) -> Labels {
        Labels(self.0.intersection(&other.0).cloned().collect())
    }
}

/// That labels were taken away, as the log shows it: an event `{"declassified": {"labels": [..], "reason": ".."}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declassified {
    /// Which.
    pub labels: Labels,
    /// Why, in the words of the code that did it.
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
