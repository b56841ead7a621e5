//! Terminal input and output: everything the program shows or asks goes through here.
//!
//! Text may come from strangers, so every function here makes it [`printable`] before it adds colours. A tidy test keeps
//! `print!`, `stdout` and `stderr` out of the rest of the program.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Mutex;
use std::time::Duration;

use archie_agent::printable::{Escaper, one_line, printable};
use archie_agent::{LineMark, Spinner, Terminal, Waiting};
use indicatif::{ProgressBar, ProgressStyle};

use crate::secret;

/// A line with a turning sign, a text and the time.
struct SpinnerLine(ProgressBar);

impl Spinner for SpinnerLine {
    fn set_text(&self, text: &str) {
        self.0.set_message(one_line(text));
    }
}

impl Drop for SpinnerLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Standard input and output, at a terminal or through pipes.
#[derive(Debug)]
pub struct Console {
    is_terminal: bool,
    has_colours: bool,
    pieces: Mutex<Pieces>,
}

/// Layout of an answer that is streamed in pieces.
#[derive(Debug, Default)]
struct Pieces {
    is_open: bool,
    /// Number of characters in the current line.
    column: usize,
    /// Beginning of a word, which is printed when it is complete and its line is known.
    word: String,
    /// Makes the answer printable across pieces.
    escaper: Escaper,
}

impl Pieces {
    /// Adds a piece and returns what can be printed now, with lines broken between words at `width`.
    fn add(&mut self, text: &str, width: usize) -> String {
        self.is_open = true;
        let text = self.escaper.push(text);
        self.lay_out(&text, width)
    }

    fn lay_out(&mut self, text: &str, width: usize) -> String {
        let mut shown = String::new();
        for letter in text.chars() {
            match letter {
                '\n' => {
                    self.flush(&mut shown, width);
                    self.column = 0;
                    shown.push('\n');
                }
                ' ' => {
                    self.flush(&mut shown, width);
                    self.column += 1;
                    shown.push(' ');
                }
                letter => self.word.push(letter),
            }
        }
        shown
    }

    fn flush(&mut self, shown: &mut String, width: usize) {
        let length = self.word.chars().count();
        if self.column > 0 && self.column + length > width {
            shown.push('\n');
            self.column = 0;
        }
        shown.push_str(&std::mem::take(&mut self.word));
        self.column += length;
    }

    fn end(&mut self, width: usize) -> String {
        let held = self.escaper.finish();
        let mut shown = self.lay_out(&held, width);
        self.flush(&mut shown, width);
        if std::mem::take(&mut self.is_open) {
            shown.push('\n');
        }
        self.column = 0;
        shown
    }
}

impl Console {
    /// Creates a console for the process's stdout. Uses colours only at a terminal, and not if `NO_COLOR` is set.
    pub fn new() -> Self {
        Self {
            is_terminal: std::io::stdout().is_terminal(),
            has_colours: std::env::var_os("NO_COLOR").is_none(),
            pieces: Mutex::default(),
        }
    }

    /// Writes text unchanged: the caller makes it printable.
    fn print(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // The reader closed the pipe; there is nothing to do.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn close(&self) {
        let shown = self.pieces().end(width());
        if !shown.is_empty() {
            self.print(&shown);
        }
    }

    fn pieces(&self) -> std::sync::MutexGuard<'_, Pieces> {
        self.pieces
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Writes printable text to stderr.
pub(crate) fn print_error(text: &str) {
    let mut err = std::io::stderr().lock();
    // There is nowhere to report a failure.
    let _ = writeln!(err, "{}", printable(text.trim_end()));
}

/// Returns whether both standard input and output are terminals.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Writer for log lines: stderr, one printable line per event, whatever its fields contain.
#[derive(Debug)]
pub(crate) struct LogWriter;

impl Write for LogWriter {
    /// Writes one event, which ends with a line break.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = one_line(text.strip_suffix('\n').unwrap_or(&text));
        writeln!(std::io::stderr().lock(), "{line}")?;
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the number of columns and rows of the terminal at stdout, or 80 by 24 if it does not tell them. It asks the kernel
/// only: the function of the same name in `crossterm` starts two programs each time if stdout is no terminal.
fn terminal_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            (usize::from(size.ws_col), usize::from(size.ws_row))
        }
        _ => (80, 24),
    }
}

/// Breaks lines between words so that they fit `width` with `indent` before each of them. The caller prints what is before the
/// first.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    let room = width.saturating_sub(indent).max(1);
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut wrapped = String::new();
        for word in line.split(' ') {
            let length = wrapped.chars().count();
            if length > 0 && length + 1 + word.chars().count() > room {
                lines.push(std::mem::take(&mut wrapped));
            } else if length > 0 {
                wrapped.push(' ');
            }
            wrapped.push_str(word);
        }
        lines.push(wrapped);
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

fn width() -> usize {
    terminal_size().0
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}

impl Terminal for Console {
    fn line(&self, text: &str) {
        self.close();
        self.print(&format!("{}\n", printable(text)));
    }

    fn marked_line(&self, mark: LineMark, text: &str) {
        self.close();
        let text = printable(text);
        let text = match self.is_terminal {
            true => wrap(&text, width(), mark.word().len()),
            false => text,
        };
        let colour = match mark {
            LineMark::Good => Some(32),
            LineMark::Problem => Some(31),
            LineMark::Plain => None,
        };
        let word = mark.word();
        match colour.filter(|_| self.is_terminal && self.has_colours) {
            Some(colour) => self.print(&format!("\u{1b}[{colour}m{word}\u{1b}[0m{text}\n")),
            None => self.print(&format!("{word}{text}\n")),
        }
    }

    fn markdown(&self, text: &str) {
        self.close();
        let text = &printable(text);
        match self.is_terminal && self.has_colours {
            true => self.print(&termimad::MadSkin::default().term_text(text).to_string()),
            false => self.print(&format!("{}\n", text.trim_end())),
        }
    }

    fn piece(&self, text: &str) {
        if self.is_terminal {
            let shown = self.pieces().add(text, width());
            self.print(&shown);
        }
    }

    fn pieces_end(&self) {
        self.close();
    }

    fn aside(&self, text: &str) {
        self.close();
        let text = printable(text);
        let mut err = std::io::stderr().lock();
        // There is nowhere to report a failure.
        let _ = match err.is_terminal() && self.has_colours {
            true => writeln!(err, "\u{1b}[2m{text}\u{1b}[0m"),
            false => writeln!(err, "{text}"),
        };
    }

    fn ask(&self, prompt: &str) -> anyhow::Result<Option<String>> {
        self.close();
        self.print(&printable(prompt));
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line)?;
        if read == 0 {
            self.print("\n");
            return Ok(None);
        }
        if !std::io::stdin().is_terminal() {
            // Echo piped input, so that the output reads like a conversation.
            self.print(&format!("{}\n", printable(line.trim_end())));
        }
        Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
    }

    fn ask_secret(&self, prompt: &str) -> anyhow::Result<Option<String>> {
        self.close();
        self.print(&printable(prompt));
        let secret = match std::io::stdin().is_terminal() {
            true => secret::read_hidden()?,
            false => secret::read_line()?,
        };
        self.print("\n");
        Ok(secret)
    }

    fn page_size(&self) -> Option<(usize, usize)> {
        let is_read = self.is_terminal && std::io::stdin().is_terminal();
        is_read.then(terminal_size)
    }

    fn waiting(&self, what: &str) -> Waiting {
        if !self.is_terminal {
            return Waiting::default();
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        let line = SpinnerLine(bar);
        line.set_text(what);
        line.0.enable_steady_tick(Duration::from_millis(120));
        Waiting::until_dropped(line)
    }

    fn is_watched(&self) -> bool {
        self.is_terminal
    }
}

#[test]
fn a_marked_line_breaks_between_words_and_keeps_its_indent() {
    let text = "the model answers, keeps to forms\nand calls tools";
    assert_eq!(
        wrap(text, 20, 4),
        "the model\n    answers, keeps\n    to forms\n    and calls tools"
    );
    assert_eq!(wrap("unbreakable", 4, 4), "unbreakable");
    assert_eq!(wrap("", 80, 4), "");
}

#[test]
fn an_answer_breaks_between_words_as_it_comes() {
    let mut pieces = Pieces::default();
    let mut shown = String::new();
    for piece in [
        "Agent: ",
        "I see no",
        "thing th",
        "at needs Ka",
        "fka.\nRe",
        "ally.",
    ] {
        shown.push_str(&pieces.add(piece, 16));
    }
    shown.push_str(&pieces.end(16));
    assert_eq!(
        shown,
        "Agent: I see \nnothing that \nneeds Kafka.\nReally.\n"
    );
    assert_eq!(pieces.end(16), "", "nothing is open any more");
}

#[test]
fn pieces_of_an_escape_sequence_are_shown_and_take_their_room() {
    let mut pieces = Pieces::default();
    let mut shown = String::new();
    for piece in ["ab \u{1b}", "[2J\u{9b}", "6n\r", "\nnext", "\r"] {
        shown.push_str(&pieces.add(piece, 12));
    }
    shown.push_str(&pieces.end(12));
    assert_eq!(shown, "ab \n\\u{1b}[2J\\u{9b}6n\nnext\\r\n");
}
