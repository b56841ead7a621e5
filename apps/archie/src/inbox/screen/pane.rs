//! Collects what an answered thread prints, for a part of the screen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archie_agent::printable::{one_line, printable};
use archie_agent::{Spinner, Terminal, Waiting};

/// Output of a run that an answer resumed.
#[derive(Debug, Clone, Default)]
pub(super) struct RunOutput(Arc<Mutex<PrintedText>>);

#[derive(Debug, Default)]
struct PrintedText {
    lines: Vec<String>,
    /// What is going on; `None` between two steps.
    progress: Option<String>,
}

impl RunOutput {
    /// Returns the lines printed so far, printable.
    pub(super) fn lines(&self) -> Vec<String> {
        self.text().lines.clone()
    }

    /// Returns what is going on, in one line.
    pub(super) fn progress(&self) -> Option<String> {
        self.text().progress.clone()
    }

    fn text(&self) -> MutexGuard<'_, PrintedText> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Text of a [`RunOutput`] that says what is going on, until it is dropped.
struct ProgressText(RunOutput);

impl Spinner for ProgressText {
    fn set_text(&self, text: &str) {
        self.0.text().progress = Some(one_line(text));
    }
}

impl Drop for ProgressText {
    fn drop(&mut self) {
        self.0.text().progress = None;
    }
}

/// Nothing is asked here: what the thread asks next becomes an item of the inbox.
impl Terminal for RunOutput {
    fn line(&self, text: &str) {
        let text = printable(text);
        let lines = text.lines().map(str::to_owned);
        self.text().lines.extend(lines);
    }

    fn markdown(&self, text: &str) {
        self.line(text);
    }

    fn piece(&self, _text: &str) {}

    fn pieces_end(&self) {}

    fn aside(&self, text: &str) {
        self.line(text);
    }

    fn ask(&self, _prompt: &str) -> anyhow::Result<Option<String>> {
        Ok(None)
    }

    fn waiting(&self, what: &str) -> Waiting {
        let progress = ProgressText(self.clone());
        progress.set_text(what);
        Waiting::until_dropped(progress)
    }

    fn is_watched(&self) -> bool {
        false
    }
}
