//! A question to a person, as a node writes it.

use std::time::Duration;

use serde::Serialize;

use crate::checkpoint::format::{Draft, OnDeadline};
use crate::error::ValueError;
use crate::value::Value;

/// A question to a person: a key, what is asked, and how long an answer is waited for.
///
/// The key names the question within its task. Use the id of what is asked about, such as a tool
/// call's; after a pause the answer is found by it.
#[derive(Debug)]
pub struct Interrupt {
    pub(crate) inner: Result<Draft, ValueError>,
}

impl Interrupt {
    /// Asks `request` under `key`.
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

    /// What kind of question it is, for those who show it. Default: `question`.
    #[must_use]
    pub fn kind(self, kind: impl Into<String>) -> Self {
        self.change(|draft| {
            draft.kind = kind.into();
            Ok(())
        })
    }

    /// The JSON schema of an answer. An answer that does not fit is refused, and the question stays open.
    #[must_use]
    pub fn schema(self, schema: impl Serialize) -> Self {
        self.change(|draft| {
            draft.schema = Some(plain(schema)?);
            Ok(())
        })
    }

    /// An answer is waited for this long; then the question is overdue, but stays open.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        self.change(|draft| {
            draft.within_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
            Ok(())
        })
    }

    /// When nobody answers in time, this is the answer.
    #[must_use]
    pub fn or_answer(self, answer: impl Serialize) -> Self {
        self.change(|draft| {
            draft.on_deadline = OnDeadline::Answer(plain(answer)?);
            Ok(())
        })
    }

    /// When nobody answers in time, the node fails.
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

/// Anything that serialises, as plain JSON.
pub(crate) fn plain(value: impl Serialize) -> Result<Value, ValueError> {
    Value::plain(&value)
}
