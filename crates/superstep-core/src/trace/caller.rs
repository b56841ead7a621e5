//! The trace of a caller, which a run continues.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{SpanId, TraceId};

/// The span of a caller that asked for a run, in a trace of its own: what the header `traceparent` of W3C Trace Context says.
///
/// ```
/// use superstep_core::trace::CallerSpan;
///
/// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let caller = CallerSpan::from_traceparent(header).unwrap();
/// assert_eq!(caller.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallerSpan {
    /// Id of the caller's trace, of which the run becomes a part.
    pub trace: TraceId,
    /// Id of the caller's span, in which the run is.
    pub span: SpanId,
}

impl CallerSpan {
    /// Reads the header; `None` if it is not valid, which a receiver ignores.
    pub fn from_traceparent(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace = hex(parts.next()?, 32)?;
        let span = hex(parts.next()?, 16)?;
        let _flags = hex(parts.next()?, 2)?;
        // Later versions may add parts; the last one is no version.
        let is_known = version < 0xff && (version > 0 || parts.next().is_none());
        let span = u64::try_from(span).ok()?;
        (is_known && trace > 0 && span > 0).then_some(Self {
            trace: TraceId(trace),
            span: SpanId(span),
        })
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.trace.0.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.span.0.to_be_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (trace, span) = bytes.split_first_chunk()?;
        Some(Self {
            trace: TraceId(u128::from_be_bytes(*trace)),
            span: SpanId(u64::from_be_bytes(span.try_into().ok()?)),
        })
    }
}

/// Reads a number of so many digits, in lower case as the header has them.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_hex = text.len() == digits && text.bytes().all(is_digit);
    is_hex.then(|| u128::from_str_radix(text, 16).ok())?
}

impl fmt::Display for CallerSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-01", self.trace, self.span)
    }
}

impl From<CallerSpan> for String {
    fn from(caller: CallerSpan) -> Self {
        caller.to_string()
    }
}

impl TryFrom<String> for CallerSpan {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::from_traceparent(&text).ok_or("not a valid `traceparent`")
    }
}

#[test]
fn only_valid_headers_are_read() {
    let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let caller = CallerSpan::from_traceparent(good).unwrap();
    assert_eq!(caller.to_string(), good);
    assert_eq!(CallerSpan::from_bytes(&caller.to_bytes()), Some(caller));
    let later = good.replacen("00", "01", 1) + "-more";
    assert_eq!(CallerSpan::from_traceparent(&later), Some(caller));
    for bad in [
        "",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b77-01",
    ] {
        assert_eq!(CallerSpan::from_traceparent(bad), None, "{bad}");
    }
}
