//! API keys and passwords.

/// A value that must never be printed. It implements neither `Debug`, `Display` nor `Serialize`, so it cannot leak into a
/// log, a prompt, a state or an error by accident. Only the code that connects to a server exposes it.
///
/// ```compile_fail
/// let secret = superstep_llm::Secret::new("sk-1");
/// println!("{secret:?}");
/// ```
/// ```compile_fail
/// let secret = superstep_llm::Secret::new("sk-1");
/// serde_json::to_string(&secret);
/// ```
#[expect(
    missing_debug_implementations,
    reason = "what can be printed will be printed"
)]
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Reads a secret from an environment variable. `None` if it is unset or empty.
    pub fn from_env(variable: &str) -> Option<Self> {
        let set = std::env::var(variable).ok();
        set.filter(|value| !value.is_empty()).map(Self)
    }

    /// Returns the secret, for the connection that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces every occurrence of the secret in a text by [`SCRUBBED`].
    pub fn scrub(&self, text: &str) -> String {
        match self.0.is_empty() {
            true => text.to_owned(),
            false => text.replace(&self.0, SCRUBBED),
        }
    }
}

/// Placeholder for a removed secret.
pub const SCRUBBED: &str = "[secret]";
