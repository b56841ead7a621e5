//! Kinds of spans: the engine's own, and those of calls, which nodes name.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The kind of a span. Serialized as one word, such as `node` or the kind of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanKind {
    /// A run, from its input to its end.
    Run,
    /// The run waits for a person.
    Wait,
    /// A superstep of a graph.
    Superstep,
    /// One node in a superstep.
    Node,
    /// A call that a node made, of a kind that the node named.
    Call(CallKind),
}

/// The kind of a call in a trace: 1 to 32 of `a-z 0-9 _`, and none of the engine's own kinds.
///
/// ```
/// use superstep_core::trace::CallKind;
///
/// const QUERY: CallKind = CallKind::from_static("query");
/// assert_eq!(QUERY.as_str(), "query");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKind(Cow<'static, str>);

impl SpanKind {
    /// Returns the kind as it is serialized.
    pub fn as_str(&self) -> &str {
        match self {
            SpanKind::Run => "run",
            SpanKind::Wait => "wait",
            SpanKind::Superstep => "superstep",
            SpanKind::Node => "node",
            SpanKind::Call(kind) => kind.as_str(),
        }
    }

    /// Whether this is a call of the given kind.
    pub fn is_call(&self, kind: &str) -> bool {
        matches!(self, SpanKind::Call(call) if call.as_str() == kind)
    }
}

impl CallKind {
    /// Longest kind, in bytes.
    pub const BYTES_MAX: usize = 32;

    /// Creates a kind from a literal.
    ///
    /// # Panics
    ///
    /// Panics if the kind is not valid. In a constant, that is a compile error.
    pub const fn from_static(kind: &'static str) -> Self {
        assert!(
            is_kind(kind),
            "the kind of a call has 1 to 32 of `a-z 0-9 _`, and is not `run`, `wait`, `superstep` or `node`"
        );
        Self(Cow::Borrowed(kind))
    }

    /// Returns the kind as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const fn is_kind(kind: &str) -> bool {
    let bytes = kind.as_bytes();
    if bytes.is_empty() || bytes.len() > CallKind::BYTES_MAX {
        return false;
    }
    let mut at = 0;
    while at < bytes.len() {
        if !matches!(bytes[at], b'a'..=b'z' | b'0'..=b'9' | b'_') {
            return false;
        }
        at += 1;
    }
    // An event must not pass for one of the engine's own spans.
    !matches!(bytes, b"run" | b"wait" | b"superstep" | b"node")
}

impl fmt::Display for CallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for CallKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CallKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kind = String::deserialize(deserializer)?;
        match is_kind(&kind) {
            true => Ok(Self(Cow::Owned(kind))),
            false => Err(serde::de::Error::custom("not the kind of a call")),
        }
    }
}

impl Serialize for SpanKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SpanKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kind = String::deserialize(deserializer)?;
        Ok(match kind.as_str() {
            "run" => SpanKind::Run,
            "wait" => SpanKind::Wait,
            "superstep" => SpanKind::Superstep,
            "node" => SpanKind::Node,
            _ if is_kind(&kind) => SpanKind::Call(CallKind(Cow::Owned(kind))),
            _ => return Err(serde::de::Error::custom("not the kind of a span")),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_one_word_and_come_back() {
        let call = SpanKind::Call(CallKind::from_static("query"));
        for (kind, word) in [
            (SpanKind::Run, "run"),
            (SpanKind::Wait, "wait"),
            (SpanKind::Superstep, "superstep"),
            (SpanKind::Node, "node"),
            (call, "query"),
        ] {
            assert_eq!(json!(kind), json!(word));
            let read: SpanKind = serde_json::from_value(json!(word)).unwrap();
            assert_eq!(read, kind);
        }
    }

    #[test]
    fn a_call_has_none_of_the_engines_kinds_and_a_short_one() {
        let long = "a".repeat(CallKind::BYTES_MAX + 1);
        for wrong in [
            "",
            "run",
            "wait",
            "superstep",
            "node",
            "Query",
            "a b",
            "ä",
            &long,
        ] {
            let read = serde_json::from_value::<CallKind>(json!(wrong));
            assert!(read.is_err(), "{wrong:?}");
        }
        let longest = "a".repeat(CallKind::BYTES_MAX);
        let read: CallKind = serde_json::from_value(json!(longest)).unwrap();
        assert_eq!(read.as_str(), longest);
    }
}
