//! The one way to print and to ask. A host implements it over a terminal, a pipe or a test.

use serde::Serialize;

use crate::printable::json_text;

/// Shows and asks.
pub trait Terminal: Send + Sync {
    /// A line of words.
    fn line(&self, text: &str);

    /// A text in Markdown.
    fn markdown(&self, text: &str);

    /// A piece of an answer, as it comes. Nothing is shown of it where nobody watches.
    fn piece(&self, text: &str);

    /// The pieces so far are void, or the whole follows.
    fn pieces_end(&self);

    /// Something to do with the person's machine, not with what they asked: to stderr.
    fn aside(&self, text: &str);

    /// Asks for a line. None at the end of the input.
    fn ask(&self, prompt: &str) -> anyhow::Result<Option<String>>;

    /// Asks for a secret: what is typed is neither shown nor kept anywhere. None at the end of the input.
    fn ask_secret(&self, _prompt: &str) -> anyhow::Result<Option<String>> {
        anyhow::bail!("a secret cannot be asked for here")
    }

    /// Returns how many columns and rows a person sees who reads and types at a terminal. None if nobody does.
    fn page_size(&self) -> Option<(usize, usize)> {
        None
    }

    /// Shows that something is under way, until the result is dropped.
    fn waiting(&self, what: &str) -> Waiting;

    /// Whether somebody watches who sees pieces as they come.
    fn is_watched(&self) -> bool;

    /// Whether somebody follows what happens on the way, be it in a file.
    fn is_followed(&self) -> bool {
        true
    }

    /// Data for programs.
    fn json(&self, value: &serde_json::Value) {
        self.line(&json_text(value));
    }
}

/// Data for programs, from anything.
pub fn json_of(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or(serde_json::Value::Null)
}

/// Something is under way while this lives. A host puts into it what takes the spinner away when it is dropped.
#[derive(Default)]
pub struct Waiting(Option<Box<dyn Send>>);

impl Waiting {
    /// Keeps a spinner until this is dropped.
    pub fn until_dropped(spinner: impl Send + 'static) -> Self {
        Self(Some(Box::new(spinner)))
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_shown = self.0.is_some();
        f.debug_struct("Waiting")
            .field("is_shown", &is_shown)
            .finish()
    }
}
