//! Progress of an evaluation, on a terminal and in a log.

use std::time::Instant;

use archie_agent::{Terminal, Waiting};

/// How far an evaluation is.
pub(super) struct Progress<'a> {
    terminal: &'a dyn Terminal,
    waiting: Waiting,
    told: Instant,
}

impl<'a> Progress<'a> {
    pub(super) fn new(terminal: &'a dyn Terminal) -> Self {
        Self {
            terminal,
            waiting: terminal.waiting("evaluating"),
            told: Instant::now(),
        }
    }

    /// Shows what is done before the first case.
    pub(super) fn note(&mut self, text: &str) {
        self.waiting.set_text(text);
    }

    pub(super) fn set(&mut self, done: usize, of: usize) {
        let text = format!("evaluating: {done} of {of} cases");
        self.waiting.set_text(&text);
        if !self.terminal.is_watched() && self.told.elapsed().as_secs() >= 30 {
            self.terminal.aside(&text);
            self.told = Instant::now();
        }
    }
}
