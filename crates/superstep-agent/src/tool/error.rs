//! Why a tool failed, and whether its effect may have happened anyway.

use std::fmt;

use superstep_core::NodeError;

/// Failure of a tool call.
///
/// What matters is whether the effect may have happened. Any other error converts by `?` into one that may have; a tool that
/// knows better returns [`ToolError::failed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    pub(crate) why: String,
    pub(crate) may_have_happened: bool,
}

impl ToolError {
    /// Creates an error for a call that certainly had no effect: the receiver refused it, or it was never sent. The model
    /// gets the reason as the result and may try something else.
    pub fn failed(why: impl fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            may_have_happened: false,
        }
    }

    /// Creates an error for a call that may have had its effect: the answer was lost, or did not arrive in time. The tool's
    /// class decides what happens next.
    pub fn unknown(why: impl fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            may_have_happened: true,
        }
    }

    /// Returns whether the effect may have happened.
    pub fn may_have_happened(&self) -> bool {
        self.may_have_happened
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

// Deliberately does not implement `Error` itself, so that this blanket conversion is possible. Boxed errors and
// `anyhow::Error` meet this bound too.
impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::unknown(NodeError::from(error))
    }
}
