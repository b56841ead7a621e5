//! A value and its labels, which cannot be separated by accident.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::channel::Message;
use crate::error::NodeError;
use crate::label::Labels;
use crate::node::NodeCx;

/// A value with its labels.
///
/// What is made from it carries them too: [`map`](Self::map), [`zip`](Self::zip), [`then`](Self::then), `collect` and
/// [`each`](Self::each) keep them. A node that [reads](Self::read) the value must put them on every labeled value that it
/// writes, or its update is refused. It can be the type of any channel:
///
/// ```
/// use superstep_core::label::{Label, Labeled};
/// use superstep_core::{NodeCx, NodeError, State, View};
///
/// #[derive(Clone, Debug, Default, State)]
/// #[state(crate = superstep_core)]
/// struct Mail {
///     body: Labeled<String>,
///     #[state(append)]
///     notes: Vec<Labeled<String>>,
///     #[state(reduce = longer)]
///     title: Labeled<String>,
/// }
///
/// // A reducer sees the values only in a way that keeps the labels of both.
/// fn longer(a: Labeled<String>, b: Labeled<String>) -> Labeled<String> {
///     a.zip(b).map(|(a, b)| if a.len() < b.len() { b } else { a })
/// }
///
/// async fn note(mail: View<Mail>, cx: NodeCx) -> Result<MailUpdate, NodeError> {
///     let words = mail.body.read(&cx).split(' ').count();
///     // `Labeled::new(.., Labels::NONE)` here would be refused when the node returns.
///     Ok(MailUpdate::default().notes(cx.labeled(format!("{words} words"))))
/// }
///
/// let body = Labeled::new("pay me at once".to_owned(), Label::UNTRUSTED);
/// assert_eq!(
///     serde_json::to_value(&body.map(|body| body.len())).unwrap(),
///     serde_json::json!({ "labels": ["untrusted"], "value": 14 })
/// );
/// ```
///
/// The stored form is `{"labels": [..], "value": ..}`. An empty list is stored too, and bytes without the list do not decode:
/// stripping the labels breaks the value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Labeled<T> {
    labels: Labels,
    value: T,
}

impl<T> Labeled<T> {
    /// Labels a value that comes from outside, with what is known about it.
    ///
    /// In a node, use [`NodeCx::labeled`] for what was made from labeled values.
    pub fn new(value: T, labels: impl Into<Labels>) -> Self {
        Self {
            labels: labels.into(),
            value,
        }
    }

    /// Returns the value's labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Adds labels to those that the value has.
    #[must_use]
    pub fn with(mut self, labels: impl Into<Labels>) -> Self {
        self.labels.add(&labels.into());
        self
    }

    /// Returns the value, for a node. From now on, every labeled value that this attempt writes or sends must have its labels.
    pub fn read(&self, cx: &NodeCx) -> &T {
        cx.note_read(&self.labels);
        &self.value
    }

    /// Returns the value and its labels, for code outside of a graph that shows or checks it. The caller is responsible for the
    /// labels of anything made from the value.
    pub fn parts(&self) -> (&T, &Labels) {
        (&self.value, &self.labels)
    }

    /// Borrows the value, with the same labels.
    pub fn as_ref(&self) -> Labeled<&T> {
        Labeled {
            labels: self.labels.clone(),
            value: &self.value,
        }
    }

    /// Applies a function to the value and keeps its labels.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Labeled<U> {
        Labeled {
            labels: self.labels,
            value: make(self.value),
        }
    }

    /// Combines two values, with the labels of both.
    pub fn zip<U>(self, other: Labeled<U>) -> Labeled<(T, U)> {
        Labeled {
            labels: self.labels.join(&other.labels),
            value: (self.value, other.value),
        }
    }

    /// Applies a function that returns a labeled value, and adds this value's labels to the result.
    pub fn then<U>(self, make: impl FnOnce(T) -> Labeled<U>) -> Labeled<U> {
        make(self.value).with(self.labels)
    }

    /// Splits a list into its items, each with the labels of the list.
    pub fn each(self) -> impl Iterator<Item = Labeled<T::Item>>
    where
        T: IntoIterator,
    {
        let labels = self.labels;
        self.value
            .into_iter()
            .map(move |value| Labeled::new(value, labels.clone()))
    }

    /// Removes labels, for a reason that the thread's log shows. See [`Labels::declassify`].
    pub fn declassify(self, labels: &Labels, reason: &str, cx: &NodeCx) -> Result<Self, NodeError> {
        let labels = self.labels.declassify(labels, reason, cx)?;
        Ok(Self { labels, ..self })
    }
}

/// Collects many values into one list (or set, or map), with the labels of all.
impl<T, C: FromIterator<T>> FromIterator<Labeled<T>> for Labeled<C> {
    fn from_iter<I: IntoIterator<Item = Labeled<T>>>(values: I) -> Self {
        let mut labels = Labels::NONE;
        let values = values.into_iter().map(|labeled| {
            labels.add(&labeled.labels);
            labeled.value
        });
        let value = values.collect();
        Self { labels, value }
    }
}

/// The id of a message is not protected: the channel finds the message by it.
impl<T: Message> Message for Labeled<T> {
    fn id(&self) -> Option<&str> {
        self.value.id()
    }

    fn set_id(&mut self, id: String) {
        self.value.set_id(id);
    }
}

/// Shows the value only if it has no labels, because a log is a sink too.
impl<T: fmt::Debug> fmt::Debug for Labeled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.labels.is_empty() {
            return f.debug_tuple("Labeled").field(&self.value).finish();
        }
        f.debug_tuple("Labeled")
            .field(&self.labels)
            .finish_non_exhaustive()
    }
}

/// Type name by which the walk over a value (`value/json.rs`) recognizes a labeled one. No user type has it.
pub(crate) const LABELED: &str = "superstep::Labeled";
/// Field name by which it recognizes the labels.
pub(crate) const LABELS: &str = "labels";

impl<T: Serialize> Serialize for Labeled<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct(LABELED, 2)?;
        fields.serialize_field(LABELS, &self.labels)?;
        fields.serialize_field("value", &self.value)?;
        fields.end()
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Labeled<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { labels, value } = Stored::deserialize(deserializer)?;
        Ok(Self { labels, value })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound = "T: DeserializeOwned")]
struct Stored<T> {
    // No default, on purpose: bytes that lost their labels must not decode as bytes without labels.
    labels: Labels,
    #[serde(deserialize_with = "there")]
    value: T,
}

/// Decodes a field that must be present, even if `null` is a value of its type.
fn there<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(deserializer)
}
