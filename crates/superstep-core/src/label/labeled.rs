//! A value and its labels, which do not come apart by accident.

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
/// What is made from it carries them on: [`map`](Self::map), [`zip`](Self::zip), [`then`](Self::then),
/// `collect` and [`each`](Self::each) by themselves, and a node that [reads](Self::read) it must put them
/// on every labeled value that it writes, or its update is refused. It can be the type of any channel:
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
/// In stored form it is `{"labels": [..], "value": ..}`. The list is there also when it is empty, and
/// without it the bytes do not decode: stripping labels breaks the value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Labeled<T> {
    labels: Labels,
    value: T,
}

impl<T> Labeled<T> {
    /// A value from outside of what the runtime can see, with what is known of it.
    ///
    /// In a node, what was made from labeled values is made with [`NodeCx::labeled`].
    pub fn new(value: T, labels: impl Into<Labels>) -> Self {
        Self {
            labels: labels.into(),
            value,
        }
    }

    /// Its labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// With these labels, too.
    #[must_use]
    pub fn with(mut self, labels: impl Into<Labels>) -> Self {
        self.labels.add(&labels.into());
        self
    }

    /// The value, for a node: from now on everything labeled that this attempt writes or sends must have its labels.
    pub fn read(&self, cx: &NodeCx) -> &T {
        cx.note_read(&self.labels);
        &self.value
    }

    /// The value beside its labels, for code outside of a graph that shows or checks it. Who takes them
    /// apart answers for the labels of what comes of it.
    pub fn parts(&self) -> (&T, &Labels) {
        (&self.value, &self.labels)
    }

    /// The same value by reference.
    pub fn as_ref(&self) -> Labeled<&T> {
        Labeled {
            labels: self.labels.clone(),
            value: &self.value,
        }
    }

    /// What a function makes of the value, with its labels.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Labeled<U> {
        Labeled {
            labels: self.labels,
            value: make(self.value),
        }
    }

    /// Two values as one, with the labels of both.
    pub fn zip<U>(self, other: Labeled<U>) -> Labeled<(T, U)> {
        Labeled {
            labels: self.labels.join(&other.labels),
            value: (self.value, other.value),
        }
    }

    /// What a function makes of the value, which has labels of its own beside these.
    pub fn then<U>(self, make: impl FnOnce(T) -> Labeled<U>) -> Labeled<U> {
        make(self.value).with(self.labels)
    }

    /// The items of a list, each with the labels of the list.
    pub fn each(self) -> impl Iterator<Item = Labeled<T::Item>>
    where
        T: IntoIterator,
    {
        let labels = self.labels;
        self.value
            .into_iter()
            .map(move |value| Labeled::new(value, labels.clone()))
    }

    /// Takes labels away, for a reason that the thread's log shows. See [`Labels::declassify`].
    pub fn declassify(self, labels: &Labels, reason: &str, cx: &NodeCx) -> Result<Self, NodeError> {
        let labels = self.labels.declassify(labels, reason, cx)?;
        Ok(Self { labels, ..self })
    }
}

/// Many values as one list (or set, or map), with the labels of all.
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

/// The id of a message is no secret: it is how the channel finds it.
impl<T: Message> Message for Labeled<T> {
    fn id(&self) -> Option<&str> {
        self.value.id()
    }

    fn set_id(&mut self, id: String) {
        self.value.set_id(id);
    }
}

/// Shows the value only if it has no labels: a log is a sink, too.
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

/// By this name the walk over a value (`value/walk.rs`) knows a labeled one. No type of a user has it.
pub(crate) const LABELED: &str = "superstep::Labeled";
/// And by this its labels.
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
    // Without a default, on purpose: bytes that lost their labels must not read as bytes that had none.
    labels: Labels,
    #[serde(deserialize_with = "there")]
    value: T,
}

/// Reads a field that must be there, also where `null` is a value of its type.
fn there<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(deserializer)
}
