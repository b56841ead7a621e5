//! Terminal input and output: everything the program shows or asks goes through here.
//!
//! Text may come from strangers, so every function here makes it [`printable`] before it adds colours. A tidy test keeps
//! `print!`, `stdout` and `stderr` out of the rest of the program.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use archie_agent::layout::{columns, cut, wrap, wrap_in, wrap_parts};
use archie_agent::printable::{Escaper, one_line, printable};
use archie_agent::style::{Face, Style};
use archie_agent::terminal_markdown::{self, MarkdownRenderer};
use archie_agent::time_text::duration;
use archie_agent::{Spinner, Terminal, Waiting};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use rustix::fd::AsFd;

use crate::secret;
use crate::typed_line::read_typed_line;

/// A line with a turning sign, a text and the time.
struct SpinnerLine {
    bar: ProgressBar,
    text: Arc<Mutex<String>>,
}

impl SpinnerLine {
    fn new(what: &str) -> Self {
        let text = Arc::new(Mutex::new(one_line(what)));
        let shown = text.clone();
        let line = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let said = locked(&shown).clone();
            let text = with_time(&said, state.elapsed());
            // A line that is too long would be drawn over only in part. The sign and a blank precede it.
            let text = cut(&text, width().saturating_sub(3));
            // There is nowhere to report a failure.
            let _ = out.write_str(&text);
        };
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {line}") {
            bar.set_style(style.with_key("line", line));
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar, text }
    }
}

impl Spinner for SpinnerLine {
    fn set_text(&self, text: &str) {
        *locked(&self.text) = one_line(text);
    }
}

impl Drop for SpinnerLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Returns what is going on and since when: `writing the answer · 1 min 8 s`.
fn with_time(text: &str, elapsed: Duration) -> String {
    match elapsed.as_secs() {
        0 => text.to_owned(),
        seconds => format!("{text} · {}", duration(seconds)),
    }
}

/// Progress for screen readers and simple terminals: a new line now and then, and nothing is drawn over.
struct ProgressLines {
    text: Arc<Mutex<String>>,
    /// Its end ends the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ProgressLines {
    fn new(what: &str, every: Duration, print: impl Fn(&str) + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(what.to_owned()));
        let (stop, stopped) = mpsc::channel::<()>();
        let said = text.clone();
        let begun = Instant::now();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let text = locked(&said).clone();
                print(&with_time(&text, begun.elapsed()));
            }
        });
        Self {
            text,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Spinner for ProgressLines {
    fn set_text(&self, text: &str) {
        text.clone_into(&mut locked(&self.text));
    }
}

impl Drop for ProgressLines {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It prints nothing that is not printed already.
            let _ = thread.join();
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard input and output, at a terminal or through pipes.
#[derive(Debug)]
pub struct Console {
    is_terminal: bool,
    style: Style,
    pieces: Mutex<Pieces>,
}

/// An answer that is streamed in pieces.
#[derive(Debug, Default)]
struct Pieces {
    /// Makes the answer printable across pieces.
    escaper: Escaper,
    renderer: MarkdownRenderer,
}

impl Pieces {
    fn new(style: Style) -> Self {
        Self {
            escaper: Escaper::default(),
            renderer: MarkdownRenderer::new(style),
        }
    }

    /// Adds a piece and returns what can be printed now, rendered and with lines broken between words at `width`.
    fn add(&mut self, text: &str, width: usize) -> String {
        let text = self.escaper.push(text);
        self.renderer.push(&text, width)
    }

    fn set_label(&mut self, text: &str) {
        self.renderer.set_label(&printable(text));
    }

    fn end(&mut self, width: usize) -> String {
        let held = self.escaper.finish();
        let mut shown = self.renderer.push(&held, width);
        shown.push_str(&self.renderer.finish(width));
        shown
    }
}

/// Returns what the terminal at stdout or stderr can show. Colours are off if it is not a terminal, or if `NO_COLOR` is set.
/// `ARCHIE_PLAIN` and `TERM=dumb` also turn off everything that is drawn over.
pub fn style_of(is_terminal: bool) -> Style {
    let value = |name: &str| std::env::var_os(name).unwrap_or_default();
    let is_plain =
        !matches!(value("ARCHIE_PLAIN").to_str(), Some("" | "0")) || value("TERM") == "dumb";
    Style::new(is_terminal && value("NO_COLOR").is_empty(), is_plain)
}

impl Console {
    /// Creates a console for the process's stdout, in the style that [`style_of`] returns.
    pub fn new() -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let style = style_of(is_terminal);
        Self {
            is_terminal,
            style,
            pieces: Mutex::new(Pieces::new(style)),
        }
    }

    /// Writes text unchanged: the caller makes it printable.
    fn print(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // The reader closed the pipe; there is nothing to do.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn close(&self) {
        let shown = locked(&self.pieces).end(width());
        if !shown.is_empty() {
            self.print(&shown);
        }
    }
}

/// Writes printable text to stderr. The word `error` at its beginning is red.
pub(crate) fn print_error(text: &str) {
    let text = printable(text.trim_end());
    let mut err = std::io::stderr().lock();
    let is_terminal = err.is_terminal();
    let style = style_of(is_terminal);
    let shown = match (is_terminal, text.strip_prefix(ERROR)) {
        (true, Some(rest)) => wrap_after(Face::Error, ERROR, rest, style),
        (true, None) => wrap_in(Face::Plain, &text, size_of(std::io::stderr()).0, style),
        (false, _) => text,
    };
    // There is nowhere to report a failure.
    let _ = writeln!(err, "{shown}");
}

/// Returns a word in a face and the text after it, for stderr.
fn wrap_after(face: Face, word: &str, rest: &str, style: Style) -> String {
    let width = size_of(std::io::stderr()).0;
    let (first, more) = match rest.split_once('\n') {
        Some((first, more)) => (first, Some(more)),
        None => (rest, None),
    };
    let mut shown = wrap_parts(&[(face, word), (Face::Plain, first)], 0, width, style);
    if let Some(more) = more {
        shown.push('\n');
        shown.push_str(&wrap_in(Face::Plain, more, width, style));
    }
    shown
}

const ERROR: &str = "error:";

/// Returns whether both standard input and output are terminals.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Returns whether output to this terminal has colours: not if `NO_COLOR` is set.
pub(crate) fn has_colours() -> bool {
    style_of(true).has_colours()
}

/// Returns whether a person wants text line by line and nothing redrawn, for instance with a screen reader.
pub(crate) fn is_plain() -> bool {
    style_of(true).is_plain()
}

/// The whole terminal, drawn as one picture, until it is left or dropped.
pub(crate) struct FullScreen(ratatui::DefaultTerminal);

impl FullScreen {
    /// Takes over the terminal.
    pub(crate) fn enter() -> anyhow::Result<Self> {
        let screen = Self(ratatui::try_init().context("the terminal cannot be drawn on")?);
        // Pasted text must not be taken for keys: a letter in it would answer.
        execute!(std::io::stdout(), EnableBracketedPaste)?;
        Ok(screen)
    }

    /// Draws the picture.
    pub(crate) fn draw(
        &mut self,
        render: impl FnOnce(&mut ratatui::Frame<'_>),
    ) -> anyhow::Result<()> {
        self.0.draw(render)?;
        Ok(())
    }

    /// Gives the terminal back as it was.
    pub(crate) fn leave(self) {
        drop(self);
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        // The terminal is gone; there is nothing to give back.
        let _ = execute!(std::io::stdout(), DisableBracketedPaste);
        let _ = ratatui::try_restore();
    }
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
    size_of(std::io::stdout())
}

fn size_of(terminal: impl AsFd) -> (usize, usize) {
    // A terminal without a size, or with one half of it, says zero.
    let or = |cells: u16, default| if cells > 0 { cells.into() } else { default };
    match rustix::termios::tcgetwinsize(terminal) {
        Ok(size) => (or(size.ws_col, 80), or(size.ws_row, 24)),
        Err(_) => (80, 24),
    }
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
        let text = printable(text);
        match self.is_terminal {
            true => self.print(&format!("{}\n", wrap(&text, width()))),
            false => self.print(&format!("{text}\n")),
        }
    }

    fn line_of(&self, parts: &[(Face, &str)]) {
        self.close();
        let parts: Vec<_> = parts
            .iter()
            .map(|(face, text)| (*face, printable(text)))
            .collect();
        let parts: Vec<_> = parts
            .iter()
            .map(|(face, text)| (*face, text.as_str()))
            .collect();
        match self.is_terminal {
            true => {
                let shown = match parts.as_slice() {
                    [(face, text)] => wrap_in(*face, text, width(), self.style),
                    parts => wrap_parts(parts, hang_of(parts), width(), self.style),
                };
                self.print(&format!("{shown}\n"));
            }
            false => {
                let text: Vec<_> = parts.iter().map(|(_, text)| *text).collect();
                self.print(&format!("{}\n", text.concat()));
            }
        }
    }

    fn verbatim(&self, text: &str) {
        self.close();
        self.print(&format!("{}\n", printable(text)));
    }

    fn markdown(&self, text: &str) {
        self.close();
        let text = &printable(text);
        match self.is_terminal {
            true => self.print(&terminal_markdown::render(text, width(), self.style)),
            false => self.print(&format!("{}\n", text.trim_end())),
        }
    }

    fn piece(&self, text: &str) {
        if self.is_terminal {
            let shown = locked(&self.pieces).add(text, width());
            self.print(&shown);
        }
    }

    fn label(&self, text: &str) {
        if self.is_terminal {
            locked(&self.pieces).set_label(text);
        }
    }

    fn pieces_end(&self) {
        self.close();
    }

    fn aside(&self, text: &str) {
        self.close();
        let text = printable(text);
        let mut err = std::io::stderr().lock();
        let shown = match err.is_terminal() {
            true => {
                let width = size_of(std::io::stderr()).0;
                wrap_in(Face::Dim, &text, width, style_of(true))
            }
            false => text,
        };
        // There is nowhere to report a failure.
        let _ = writeln!(err, "{shown}");
    }

    fn columns(&self) -> Option<usize> {
        self.is_terminal.then(width)
    }

    fn style(&self) -> Style {
        self.style
    }

    fn ask(&self, prompt: &str) -> anyhow::Result<Option<String>> {
        self.close();
        self.print(&printable(prompt));
        let is_typed = std::io::stdin().is_terminal();
        let line = match is_typed {
            true => read_typed_line()?,
            false => secret::read_line()?,
        };
        match &line {
            None => self.print("\n"),
            // Echo piped input, so that the output reads like a conversation.
            Some(line) if !is_typed => self.print(&format!("{}\n", printable(line.trim_end()))),
            Some(_) => {}
        }
        Ok(line)
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
        match self.is_terminal {
            true if self.style.is_plain() => Waiting::until_dropped(ProgressLines::new(
                &one_line(what),
                PLAIN_PROGRESS_EVERY,
                print_error,
            )),
            true => Waiting::until_dropped(SpinnerLine::new(what)),
            false => Waiting::default(),
        }
    }

    fn is_watched(&self) -> bool {
        self.is_terminal
    }
}

/// Returns by how many columns a line made of parts is indented where it continues: by its first column, if it has one.
fn hang_of(parts: &[(Face, &str)]) -> usize {
    match parts.first() {
        Some((_, first)) if first.ends_with("  ") => columns(first),
        _ => PARTS_HANG,
    }
}

const PARTS_HANG: usize = 4;
/// How often plain mode says what is going on.
const PLAIN_PROGRESS_EVERY: Duration = Duration::from_secs(10);

#[test]
fn an_answer_breaks_between_words_as_it_comes() {
    let mut pieces = Pieces::default();
    let mut shown = String::new();
    pieces.set_label("Agent: ");
    for piece in [
        "I see no",
        "thing th",
        "at **needs",
        "** Ka",
        "fka.\nRe",
        "ally.",
    ] {
        shown.push_str(&pieces.add(piece, 16));
    }
    shown.push_str(&pieces.end(16));
    assert_eq!(shown, "Agent: I see\nnothing that\nneeds Kafka.\nReally.\n");
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
    assert_eq!(shown, "ab\n\\u{1b}[2J\\u{9b}6n\nnext\\r\n");
}

#[test]
fn plain_progress_is_a_line_now_and_then_until_it_ends() {
    let (lines, said) = mpsc::channel();
    let every = Duration::from_millis(20);
    let progress = ProgressLines::new("waiting for the model", every, move |line| {
        // The test may have heard enough.
        let _ = lines.send(line.to_owned());
    });
    let first = said.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(first.starts_with("waiting for the model"), "{first}");
    progress.set_text("writing the answer");
    while !said
        .recv_timeout(Duration::from_secs(10))
        .unwrap()
        .starts_with("writing the answer")
    {}
    drop(progress);
    while said.try_recv().is_ok() {}
    // The thread, and with it the sender, is gone.
    assert_eq!(said.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}
