//! The only interface for printing to a person and asking for input. A host implements it over a terminal, a pipe or a test.

use serde::Serialize;

use crate::printable::json_text;
use crate::style::{Face, Style};

/// Prints output and asks for input.
pub trait Terminal: Send + Sync {
    /// Prints text and a line break to stdout. At a terminal, long lines are broken between words.
    fn line(&self, text: &str);

    /// Prints a line made of parts in several faces. Default: the text alone, as a line.
    fn line_of(&self, parts: &[(Face, &str)]) {
        let text: Vec<_> = parts.iter().map(|(_, text)| *text).collect();
        self.line(&text.concat());
    }

    /// Prints text whose lines must stay as they are, such as JSON or a script, and a line break. Default: as a line.
    fn verbatim(&self, text: &str) {
        self.line(text);
    }

    /// Prints a message of the program that names commands. A shell shows them as they are typed there.
    fn hint(&self, text: &str) {
        self.line(text);
    }

    /// Prints a text with a mark that says what it means, in the mark's colour and broken between words where the terminal
    /// supports that.
    fn marked_line(&self, mark: LineMark, text: &str) {
        self.line(&format!("{}{text}", mark.word()));
    }

    /// Prints a text in Markdown, rendered where the terminal supports it.
    fn markdown(&self, text: &str);

    /// Prints a piece of a streamed answer, which is Markdown. Prints nothing if no person is watching.
    fn piece(&self, text: &str);

    /// Prints who gives the streamed answer whose pieces follow, such as `Agent: `. Default: as a piece.
    fn label(&self, text: &str) {
        self.piece(text);
    }

    /// Ends the streamed pieces: the answer starts over, or the complete answer follows.
    fn pieces_end(&self);

    /// Prints a message about the program rather than about the task, to stderr.
    fn aside(&self, text: &str);

    /// Asks for a line. Returns `None` at the end of the input.
    fn ask(&self, prompt: &str) -> anyhow::Result<Option<String>>;

    /// Asks for a secret; the input is neither echoed nor stored. Returns `None` at the end of the input.
    fn ask_secret(&self, _prompt: &str) -> anyhow::Result<Option<String>> {
        anyhow::bail!("a secret cannot be asked for here")
    }

    /// Returns the columns and rows of the terminal at which a person reads and types, or `None` if there is no such terminal.
    fn page_size(&self) -> Option<(usize, usize)> {
        None
    }

    /// Returns the columns of the terminal at which a person reads, or `None` if the output goes elsewhere.
    fn columns(&self) -> Option<usize> {
        self.page_size().map(|(columns, _)| columns)
    }

    /// Returns what can be shown here. Default: text without colours.
    fn style(&self) -> Style {
        Style::default()
    }

    /// Shows that work is in progress until the returned guard is dropped.
    fn waiting(&self, what: &str) -> Waiting;

    /// Returns whether a person watches streamed pieces as they arrive.
    fn is_watched(&self) -> bool;

    /// Returns whether to report progress at all, be it to a person or to a file. Default: true.
    fn is_followed(&self) -> bool {
        true
    }

    /// Prints one line of JSON, with hidden characters escaped.
    fn json(&self, value: &serde_json::Value) {
        self.verbatim(&json_text(value));
    }
}

/// What a line of a report means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMark {
    /// Something works.
    Good,
    /// Something has to be fixed.
    Problem,
    /// Neither.
    Plain,
}

impl LineMark {
    /// Returns the beginning of the line. All marks have the same width.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "ok  ",
            Self::Problem => "!!  ",
            Self::Plain => "    ",
        }
    }
}

/// Converts a value to JSON. Returns null if it cannot be serialized.
pub fn json_of(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or(serde_json::Value::Null)
}

/// A sign on the screen that work is in progress. Its `Drop` removes it.
pub trait Spinner: Send {
    /// Replaces the text next to the sign.
    fn set_text(&self, text: &str);
}

/// Guard that shows that work is in progress. A host stores its spinner in it. The default shows nothing.
#[derive(Default)]
pub struct Waiting(Option<Box<dyn Spinner>>);

impl Waiting {
    /// Holds the spinner until the guard is dropped.
    pub fn until_dropped(spinner: impl Spinner + 'static) -> Self {
        Self(Some(Box::new(spinner)))
    }

    /// Replaces the text that says what is going on. The time goes on.
    pub fn set_text(&self, text: &str) {
        if let Some(spinner) = &self.0 {
            spinner.set_text(text);
        }
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
