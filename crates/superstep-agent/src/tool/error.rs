//! Why a tool gave nothing, and whether it may have happened all the same.

use std::fmt;

/// Why a tool gave nothing.
///
/// The one question that matters is whether the effect may have happened. Any other error becomes one that may, by `?`:
/// a tool that knows better returns [`ToolError::failed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    pub(crate) why: String,
    pub(crate) may_have_happened: bool,
}

impl ToolError {
    /// It did not happen, and that is certain: refused by the receiver, or never sent. The model is told why and may do
    /// something else.
    pub fn failed(why: impl fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            may_have_happened: false,
        }
    }

    /// It may have happened: the answer was lost, or nothing came in time. What is done next is up to the tool's class.
    pub fn unknown(why: impl fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            may_have_happened: true,
        }
    }

    /// Whether it may have happened.
    pub fn may_have_happened(&self) -> bool {
        self.may_have_happened
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

// Not an error by itself, so that every error can become one.
impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut why = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            why.push_str(": ");
            why.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::unknown(why)
    }
}
