//! An interrupt, as a node writes it.

use std::time::Duration;

use serde::Serialize;

use crate::checkpoint::format::{Draft, OnDeadline};
use crate::error::ValueError;
use crate::value::Value;

/// A question to a person: a key, what is asked, and how long to wait for an answer.
///
/// The key identifies the interrupt within its task, and the answer is found by it when the node runs again. Use the id of what
/// the question is about, such as that of a tool call.
///
/// ```
/// use std::time::Duration;
/// use superstep_core::{Interrupt, NodeCx, NodeError};
///
/// async fn may_refund(order: &str, cx: &NodeCx) -> Result<bool, NodeError> {
///     let question = Interrupt::new(order, format!("Refund order {order}?"))
///         .kind("approval")
///         .within(Duration::from_secs(24 * 60 * 60))
///         .or_answer(false);
///     cx.interrupt(question).await
/// }
/// ```
#[derive(Debug)]
pub struct Interrupt {
    pub(crate) inner: Result<Draft, ValueError>,
}

impl Interrupt {
    /// Creates an interrupt that asks `request` under `key`.
    pub fn new(key: impl Into<String>, request: impl Serialize) -> Self {
        let inner = plain(request).map(|request| Draft {
            key: key.into(),
            kind: "question".to_owned(),
            request,
            schema: None,
            within_ms: None,
            on_deadline: OnDeadline::Wait,
        });
        Self { inner }
    }

    /// Sets the kind of the interrupt, which user interfaces go by when they show it. Default: `question`.
    #[must_use]
    pub fn kind(self, kind: impl Into<String>) -> Self {
        self.change(|draft| {
            draft.kind = kind.into();
            Ok(())
        })
    }

    /// Sets the JSON Schema of an answer. An answer that does not fit is refused, and the interrupt stays open.
    #[must_use]
    pub fn schema(self, schema: impl Serialize) -> Self {
        self.change(|draft| {
            draft.schema = Some(plain(schema)?);
            Ok(())
        })
    }

    /// Sets how long to wait for an answer. After that, the interrupt is overdue but stays open.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        self.change(|draft| {
            draft.within_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
            Ok(())
        })
    }

    /// Sets the answer that counts if no person answers in time.
    #[must_use]
    pub fn or_answer(self, answer: impl Serialize) -> Self {
        self.change(|draft| {
            draft.on_deadline = OnDeadline::Answer(plain(answer)?);
            Ok(())
        })
    }

    /// Lets the node fail if no person answers in time.
    #[must_use]
    pub fn or_fail(self) -> Self {
        self.change(|draft| {
            draft.on_deadline = OnDeadline::Fail;
            Ok(())
        })
    }

    fn change(mut self, change: impl FnOnce(&mut Draft) -> Result<(), ValueError>) -> Self {
        self.inner = self
            .inner
            .and_then(|mut draft| change(&mut draft).map(|()| draft));
        self
    }
}

/// Encodes anything serializable as plain JSON.
pub(crate) fn plain(value: impl Serialize) -> Result<Value, ValueError> {
    Value::plain(&value)
}
