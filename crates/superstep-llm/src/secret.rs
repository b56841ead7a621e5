//! Keys and passwords.

/// Something that must not be shown: it has no `Debug`, no `Display` and no `Serialize`, so it cannot get into a log, a
/// prompt, a state or an error by accident. Only the code that connects to a server takes it out, right there.
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
    /// Takes it in.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// From an environment variable. None if it is not set or empty.
    pub fn from_env(variable: &str) -> Option<Self> {
        let set = std::env::var(variable).ok();
        set.filter(|value| !value.is_empty()).map(Self)
    }

    /// Takes it out, for the connection that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A text without it.
    pub fn scrub(&self, text: &str) -> String {
        match self.0.is_empty() {
            true => text.to_owned(),
            false => text.replace(&self.0, SCRUBBED),
        }
    }
}

/// What stands where a secret stood.
pub const SCRUBBED: &str = "[secret]";
