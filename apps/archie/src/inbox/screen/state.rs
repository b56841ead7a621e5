//! State of the full-screen inbox: which items it shows, which one is selected, what was read of it, and what a key does.
//!
//! It knows no terminal and no store. [`draw`](super::draw) draws it; [`super::run`] carries out the [`Request`]s that keys cause.
//!
//! Two rules keep a person from approving something else than what they read. The selection is an item's id, never its place in
//! the list: an item that goes away while it is selected stays on the screen until the person moves on. And an answer that
//! permits an effect is taken only after every row of the item was on the screen.

use std::collections::BTreeSet;

use archie_agent::printable::printable;
use archie_agent::{AnswerChoice, ChoiceInput, InterruptRequest};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use superstep::{InterruptId, Timestamp};

use super::pane::RunOutput;
use super::wrap::{Row, wrap};
use crate::inbox::{InboxItem, ListedItem};

/// An open item that is no longer open.
#[derive(Debug, Clone)]
pub(super) struct ClosedItem {
    pub(super) id: InterruptId,
    /// Who answered what, for a person.
    pub(super) why: String,
}

/// The text of an item, which is loaded when the item is selected.
#[derive(Debug, Clone)]
pub(super) struct ItemText {
    /// Everything that an answer may cause, in a printable form.
    pub(super) text: String,
    /// Whether the text holds everything; that of an older version may not.
    pub(super) is_complete: bool,
    pub(super) choices: Vec<AnswerChoice>,
}

/// What became of an item.
#[derive(Debug)]
pub(super) enum Phase {
    /// Waits for an answer.
    Open,
    /// Was answered here, and its thread runs.
    Running(RunOutput),
    /// Was answered here, and its thread has stopped.
    Ended { lines: Vec<String>, is_ok: bool },
    /// Was answered by someone else, or is no longer asked.
    Closed(String),
}

/// A line of the list.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) loaded: ListedItem,
    pub(super) phase: Phase,
    pub(super) reading: Option<Reading>,
}

impl Entry {
    pub(super) fn id(&self) -> InterruptId {
        self.loaded.item.asked.id
    }

    fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// Returns whether the person has read everything that an answer may cause.
    pub(super) fn is_read_whole(&self) -> bool {
        let reading = self.reading.as_ref();
        reading.is_some_and(|reading| reading.is_read() && reading.shown.is_complete)
    }

    /// Items with a deadline first, the nearest at the top; then the oldest.
    fn rank(&self) -> (i64, i64, InterruptId) {
        let open = &self.loaded.item.open;
        let deadline = open.interrupt.deadline.map_or(i64::MAX, |at| at.0);
        (deadline, open.row.asked_at.0, self.id())
    }
}

/// How far a person has read an item's text.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) shown: ItemText,
    pub(super) rows: Vec<Row>,
    width: usize,
    /// First row on the screen.
    pub(super) top: usize,
    /// Number of bytes that were on the screen, from the beginning without a gap.
    read: usize,
    /// Whether the screen has reported that it was read.
    is_reported: bool,
    /// What the person wrote into the edit form last. The editor opens with it, so that nothing they typed is lost.
    pub(super) draft: Option<String>,
    height: usize,
}

impl Reading {
    fn new(shown: ItemText) -> Self {
        Self {
            shown,
            rows: Vec::new(),
            width: 0,
            top: 0,
            read: 0,
            is_reported: false,
            draft: None,
            height: 0,
        }
    }

    /// Lays the text out for a pane, and notes what is on the screen now.
    pub(super) fn show(&mut self, width: usize, height: usize) {
        if self.width != width || self.rows.is_empty() {
            // The same words stay at the top when the width changes.
            let at = self.rows.get(self.top).map_or(0, |row| row.range.start);
            self.rows = wrap(&self.shown.text, width);
            self.top = self.rows.partition_point(|row| row.range.end < at);
            self.width = width;
        }
        self.height = height;
        self.top = self.top.min(self.last_top());
        let bottom = (self.top + height).min(self.rows.len());
        let shown = &self.rows[self.top..bottom];
        let (Some(first), Some(last)) = (shown.first(), shown.last()) else {
            return;
        };
        // One byte is the line break between two rows.
        if first.range.start <= self.read + 1 {
            self.read = self.read.max(last.range.end);
        }
    }

    /// Returns whether every row was on the screen.
    pub(super) fn is_read(&self) -> bool {
        !self.rows.is_empty() && self.read >= self.shown.text.len()
    }

    /// Returns the first row that was not on the screen yet.
    fn unread(&self) -> usize {
        self.rows.partition_point(|row| row.range.end <= self.read)
    }

    /// Returns how far a page scrolls. One row stays on the screen, so that nothing is missed.
    fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// Returns how many rows fit on the screen.
    pub(super) fn height(&self) -> usize {
        self.height
    }

    fn last_top(&self) -> usize {
        self.rows.len().saturating_sub(self.height.max(1))
    }

    fn scroll(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by).min(self.last_top());
    }
}

/// What the keys mean now.
#[derive(Debug)]
pub(super) enum Mode {
    /// Keys move, scroll and answer.
    Browse,
    /// Keys are typed into a line.
    Typing(TypedLine),
    /// An answer waits for a confirmation.
    Confirm { label: String, line: String },
    /// The changes of an edit wait for a confirmation. The text is a diff, and is read to its end like an item.
    Review { diff: Reading, line: String },
    /// The list of keys is on the screen.
    Help,
    /// Runs are in progress, and the person wants to leave.
    Leave,
}

/// A line that a person types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TypedLine {
    pub(super) label: String,
    /// Beginning of the answer, before what is typed; `None` for a filter of the list.
    begin: Option<String>,
    pub(super) text: String,
}

/// What a key causes outside of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// Leave the screen.
    Leave,
    /// Answer an item with this line.
    Answer { id: InterruptId, line: String },
    /// Open the arguments of an item's call in an editor.
    Edit { id: InterruptId },
    /// Load the list now.
    Load,
}

/// State of the screen.
#[derive(Debug)]
pub(super) struct InboxScreen {
    pub(super) entries: Vec<Entry>,
    selected: Option<InterruptId>,
    pub(super) mode: Mode,
    /// What the person should know now.
    pub(super) notice: Option<Notice>,
    /// Why the list could not be loaded; the screen shows what it has.
    pub(super) trouble: Option<String>,
    pub(super) filter: String,
    /// Whether the item has the whole screen.
    pub(super) is_zoomed: bool,
    pub(super) is_loaded: bool,
    /// Whether the selection moved on since the last key, from an answered item to what its thread asks next.
    is_followed: bool,
    pub(super) now: Timestamp,
}

/// A message in the last line but one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) is_problem: bool,
}

impl InboxScreen {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            entries: Vec::new(),
            selected: None,
            mode: Mode::Browse,
            notice: None,
            trouble: None,
            filter: String::new(),
            is_zoomed: false,
            is_loaded: false,
            is_followed: false,
            now,
        }
    }

    /// Takes over a list that was loaded. `closed` says what happened to items that were open and are not in it.
    pub(super) fn update(&mut self, loaded: Vec<ListedItem>, closed: Vec<ClosedItem>) {
        self.is_loaded = true;
        self.trouble = None;
        let present: BTreeSet<_> = loaded.iter().map(|loaded| loaded.item.asked.id).collect();
        let selected = self.selected;
        self.entries.retain_mut(|entry| {
            if !entry.is_open() || present.contains(&entry.id()) {
                return true;
            }
            let why = closed.iter().find(|closed| closed.id == entry.id());
            let why = why.map_or("no longer asked", |closed| &closed.why);
            entry.phase = Phase::Closed(why.to_owned());
            Some(entry.id()) == selected
        });
        for loaded in loaded {
            let id = loaded.item.asked.id;
            match self.entries.iter_mut().find(|entry| entry.id() == id) {
                None => self.entries.push(Entry {
                    loaded,
                    phase: Phase::Open,
                    reading: None,
                }),
                // Answered here: the list was loaded before the answer was stored.
                Some(entry) if !entry.is_open() => {}
                Some(entry) => {
                    let (old, new) = (&entry.loaded.item.asked, &loaded.item.asked);
                    if (&old.kind, &old.request) != (&new.kind, &new.request) {
                        entry.reading = None;
                        self.mode = Mode::Browse;
                        self.notice = Some(Notice::problem("The item changed; read it again."));
                    }
                    entry.loaded = loaded;
                }
            }
        }
        self.entries.sort_by_key(Entry::rank);
        self.follow_thread();
        if self.selected_entry().is_none() {
            let first = self.visible().next().map(Entry::id);
            self.selected = first;
        }
        let is_answerable = self.selected_entry().is_some_and(Entry::is_open);
        if !is_answerable && matches!(self.mode, Mode::Confirm { .. } | Mode::Review { .. }) {
            self.mode = Mode::Browse;
        }
    }

    /// Selects what the thread of the selected item asks next, if the person answered the item here. Nothing of it was read yet, so
    /// a key that is pressed at this moment approves nothing.
    fn follow_thread(&mut self) {
        let Some(answered) = self.selected_entry() else {
            return;
        };
        if !matches!(answered.phase, Phase::Ended { is_ok: true, .. }) || self.is_followed {
            return;
        }
        let thread = &answered.loaded.item.open.row.thread;
        let next = self
            .entries
            .iter()
            .find(|entry| entry.is_open() && entry.loaded.item.open.row.thread == *thread);
        if let Some(next) = next.map(Entry::id) {
            self.is_followed = true;
            self.selected = Some(next);
        }
    }

    /// Returns the ids of the items that wait for an answer, as far as the screen knows.
    pub(super) fn open(&self) -> Vec<&InboxItem> {
        let open = self.entries.iter().filter(|entry| entry.is_open());
        open.map(|entry| &entry.loaded.item).collect()
    }

    /// Returns the entries that the filter lets through.
    pub(super) fn visible(&self) -> impl Iterator<Item = &Entry> {
        let wanted = self.filter.to_lowercase();
        self.entries.iter().filter(move |entry| {
            let loaded = &entry.loaded;
            wanted.is_empty()
                || loaded.subject.to_lowercase().contains(&wanted)
                || loaded.agent.contains(&wanted)
                || loaded.item.short_id.starts_with(&wanted)
        })
    }

    pub(super) fn selected_entry(&self) -> Option<&Entry> {
        let id = self.selected?;
        self.entries.iter().find(|entry| entry.id() == id)
    }

    pub(super) fn entry_mut(&mut self, id: InterruptId) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.id() == id)
    }

    pub(super) fn selected_mut(&mut self) -> Option<&mut Entry> {
        self.entry_mut(self.selected?)
    }

    /// Returns the selected item if its text is not loaded yet.
    pub(super) fn wants_text(&self) -> Option<&ListedItem> {
        let entry = self.selected_entry()?;
        entry.reading.is_none().then_some(&entry.loaded)
    }

    /// Takes over the text of the selected item.
    pub(super) fn set_text(&mut self, mut shown: ItemText) {
        shown.text = as_drawn(&shown.text);
        if let Some(entry) = self.selected_mut() {
            entry.reading = Some(Reading::new(shown));
        }
    }

    /// Returns the selected item once, when the person has read all of it and an answer can permit an effect.
    pub(super) fn newly_read(&mut self) -> Option<InterruptRequest> {
        let entry = self.selected_mut()?;
        if !entry.is_read_whole() || !entry.loaded.item.asked.may_permit_effect() {
            return None;
        }
        let reading = entry.reading.as_mut()?;
        let is_new = !std::mem::replace(&mut reading.is_reported, true);
        is_new.then(|| entry.loaded.item.asked.clone())
    }

    /// Marks an item as answered here.
    pub(super) fn set_running(&mut self, id: InterruptId, output: RunOutput) {
        if let Some(entry) = self.entry_mut(id) {
            entry.phase = Phase::Running(output);
        }
    }

    /// Takes over how the run ended that an answer resumed. An answer that was not taken leaves the item open.
    pub(super) fn set_ended(&mut self, id: InterruptId, ended: Result<EndedRun, String>) {
        let Some(entry) = self.entry_mut(id) else {
            return;
        };
        let short_id = entry.loaded.item.short_id.clone();
        let notice = match ended {
            Ok(EndedRun { lines, is_ok }) => {
                let last = lines.last().cloned().unwrap_or_default();
                entry.phase = Phase::Ended { lines, is_ok };
                Notice {
                    text: format!("{short_id}: {last}"),
                    is_problem: !is_ok,
                }
            }
            Err(why) => {
                entry.phase = Phase::Open;
                Notice::problem(&format!("{short_id}: {why}"))
            }
        };
        self.notice = Some(notice);
    }

    /// Returns how many answered threads run now.
    pub(super) fn running(&self) -> usize {
        let running = |entry: &&Entry| matches!(entry.phase, Phase::Running(_));
        self.entries.iter().filter(running).count()
    }

    /// Asks the person to confirm an edited call.
    pub(super) fn review(&mut self, diff: &str, line: String) {
        let diff = Reading::new(ItemText {
            text: as_drawn(diff),
            is_complete: true,
            choices: Vec::new(),
        });
        self.mode = Mode::Review { diff, line };
    }

    /// Takes a key. Returns what it causes outside of the screen.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Request> {
        self.is_followed = false;
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return self.leave();
        }
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Browse => self.browse(key),
            Mode::Typing(line) => self.type_key(line, key),
            Mode::Help => None,
            Mode::Leave => match key.code {
                KeyCode::Char('q' | 'y') | KeyCode::Enter => Some(Request::Leave),
                _ => None,
            },
            Mode::Confirm { line, .. } => match key.code {
                KeyCode::Enter | KeyCode::Char('y') => self.send(line),
                _ => self.refuse(),
            },
            Mode::Review { mut diff, line } => {
                match key.code {
                    KeyCode::Enter | KeyCode::Char('y') if diff.is_read() => {
                        return self.send(line);
                    }
                    KeyCode::Enter | KeyCode::Char(' ' | 'j' | 'y') | KeyCode::PageDown => {
                        diff.scroll(diff.page());
                    }
                    KeyCode::Char('b' | 'k') | KeyCode::PageUp => diff.scroll(-diff.page()),
                    _ => return self.refuse(),
                }
                self.mode = Mode::Review { diff, line };
                None
            }
        }
    }

    fn refuse(&mut self) -> Option<Request> {
        self.notice = Some(Notice::plain("Not answered; the item stays open."));
        None
    }

    fn browse(&mut self, key: KeyEvent) -> Option<Request> {
        self.notice = None;
        let reading = self
            .selected_entry()
            .and_then(|entry| entry.reading.as_ref());
        let page = reading.map_or(1, Reading::page);
        match key.code {
            KeyCode::Char('q') => return self.leave(),
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('j') | KeyCode::Down => self.step(1),
            KeyCode::Char('k') | KeyCode::Up => self.step(-1),
            KeyCode::Char('g') | KeyCode::Home => self.step(isize::MIN + 1),
            KeyCode::Char('G') | KeyCode::End => self.step(isize::MAX),
            KeyCode::Char(' ') | KeyCode::PageDown => self.scroll(page),
            KeyCode::Char('b') | KeyCode::PageUp => self.scroll(-page),
            KeyCode::Char('J') => self.scroll(1),
            KeyCode::Char('K') => self.scroll(-1),
            KeyCode::Enter | KeyCode::Char('z') => self.is_zoomed = !self.is_zoomed,
            KeyCode::Esc => {
                self.is_zoomed = false;
                self.filter.clear();
            }
            KeyCode::Char('x') => self.clear_answered(),
            KeyCode::Char('R') => return Some(Request::Load),
            KeyCode::Char('/') => {
                self.mode = Mode::Typing(TypedLine {
                    label: "Show only".to_owned(),
                    begin: None,
                    text: self.filter.clone(),
                });
            }
            KeyCode::Char(letter) => return self.choose(letter),
            _ => {}
        }
        None
    }

    /// Begins an answer with the choice of this key.
    fn choose(&mut self, letter: char) -> Option<Request> {
        let entry = self.selected_entry()?;
        let reading = entry.reading.as_ref()?;
        let choices = &reading.shown.choices;
        let Some(choice) = choices.iter().find(|choice| choice.key == letter).cloned() else {
            self.notice = Some(Notice::plain("`?` lists the keys."));
            return None;
        };
        if let Phase::Closed(why) = &entry.phase {
            self.notice = Some(Notice::problem(&format!("Too late: {why}.")));
            return None;
        }
        if !entry.is_open() {
            self.notice = Some(Notice::problem("You have answered this item."));
            return None;
        }
        let id = entry.id();
        let line = match choice.input {
            ChoiceInput::Line(line) => line,
            ChoiceInput::Edit => "edit",
            ChoiceInput::Rest(begin) => begin,
        };
        if entry.loaded.item.asked.may_permit_effect() && permits(line) {
            let unread = reading.rows.len().saturating_sub(reading.unread());
            let problem = match (reading.shown.is_complete, reading.is_read()) {
                (false, _) => Some(
                    "An older version asked this and left parts out; it can only be refused here."
                        .to_owned(),
                ),
                (true, false) => Some(format!(
                    "Read it to its end first: {unread} more lines. Space scrolls."
                )),
                (true, true) => None,
            };
            if let Some(problem) = problem {
                self.notice = Some(Notice::problem(&problem));
                return None;
            }
        }
        match choice.input {
            ChoiceInput::Line(line) => {
                self.mode = Mode::Confirm {
                    label: choice.label.to_owned(),
                    line: line.to_owned(),
                };
                None
            }
            ChoiceInput::Rest(begin) => {
                self.mode = Mode::Typing(TypedLine {
                    label: capitalized(choice.label),
                    begin: Some(begin.to_owned()),
                    text: String::new(),
                });
                None
            }
            ChoiceInput::Edit => Some(Request::Edit { id }),
        }
    }

    fn type_key(&mut self, mut line: TypedLine, key: KeyEvent) -> Option<Request> {
        let is_filter = line.begin.is_none();
        match key.code {
            KeyCode::Esc if is_filter => self.filter.clear(),
            KeyCode::Esc => self.notice = Some(Notice::plain("Not answered; the item stays open.")),
            KeyCode::Enter if is_filter => self.select_visible(),
            KeyCode::Enter if line.text.trim().is_empty() => {
                self.notice = Some(Notice::plain("Nothing typed; the item stays open."));
            }
            KeyCode::Enter => {
                return self.send(format!("{}{}", line.begin.unwrap_or_default(), line.text));
            }
            code => {
                match code {
                    KeyCode::Backspace => {
                        line.text.pop();
                    }
                    KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                        line.text.clear();
                    }
                    KeyCode::Char(letter) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                        line.text.push(letter);
                    }
                    _ => {}
                }
                if is_filter {
                    self.filter.clone_from(&line.text);
                    self.select_visible();
                }
                self.mode = Mode::Typing(line);
            }
        }
        None
    }

    /// Takes pasted text: into the line that is typed, and nowhere else. Line breaks become spaces.
    pub(super) fn paste(&mut self, text: &str) {
        if let Mode::Typing(line) = &mut self.mode {
            line.text.push_str(&text.replace(['\n', '\r'], " "));
        }
    }

    fn send(&mut self, line: String) -> Option<Request> {
        let entry = self.selected_entry()?;
        if let Phase::Closed(why) = &entry.phase {
            self.notice = Some(Notice::problem(&format!("Too late: {why}.")));
            return None;
        }
        let id = entry.id();
        Some(Request::Answer { id, line })
    }

    fn leave(&mut self) -> Option<Request> {
        if self.running() == 0 {
            return Some(Request::Leave);
        }
        self.mode = Mode::Leave;
        None
    }

    fn step(&mut self, by: isize) {
        let ids: Vec<_> = self.visible().map(Entry::id).collect();
        let Some(last) = ids.len().checked_sub(1) else {
            return;
        };
        let at = ids.iter().position(|id| Some(*id) == self.selected);
        let to = at.map_or(0, |at| at.saturating_add_signed(by).min(last));
        self.select(ids[to]);
    }

    /// Selects an item. One that was closed while it was selected leaves the list now.
    fn select(&mut self, id: InterruptId) {
        if Some(id) == self.selected {
            return;
        }
        self.selected = Some(id);
        self.entries
            .retain(|entry| !matches!(entry.phase, Phase::Closed(_)) || entry.id() == id);
    }

    fn select_visible(&mut self) {
        let is_visible = self
            .visible()
            .any(|entry| Some(entry.id()) == self.selected);
        let first = self.visible().next().map(Entry::id);
        if let (false, Some(first)) = (is_visible, first) {
            self.select(first);
        }
    }

    fn scroll(&mut self, by: isize) {
        if let Some(reading) = self.selected_mut().and_then(|entry| entry.reading.as_mut()) {
            reading.scroll(by);
        }
    }

    /// Removes the items that were answered here and whose threads have stopped.
    fn clear_answered(&mut self) {
        self.entries
            .retain(|entry| !matches!(entry.phase, Phase::Ended { .. } | Phase::Closed(_)));
        self.selected = None;
        self.select_visible();
    }

    /// Returns what the answers of this visit led to, for the terminal after the screen is left.
    pub(super) fn summary(&self) -> Vec<String> {
        let mut summary = Vec::new();
        for entry in &self.entries {
            let item = &entry.loaded.item;
            match &entry.phase {
                Phase::Ended { lines, .. } => {
                    summary.push(format!("{}  {}", item.short_id, entry.loaded.subject));
                    summary.extend(lines.iter().map(|line| format!("  {line}")));
                }
                Phase::Running(_) => summary.push(format!(
                    "{}  answered; `archie resume {}` continues the thread",
                    item.short_id, item.open.row.thread
                )),
                Phase::Open | Phase::Closed(_) => {}
            }
        }
        summary
    }
}

/// How a run ended that an answer resumed.
#[derive(Debug)]
pub(super) struct EndedRun {
    pub(super) lines: Vec<String>,
    pub(super) is_ok: bool,
}

impl Notice {
    pub(super) fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_problem: false,
        }
    }

    pub(super) fn problem(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_problem: true,
        }
    }
}

/// Returns whether an answer that begins like this may permit an effect. The store's display record has the last word.
fn permits(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    !matches!(
        word,
        "ignore" | "reject" | "skip" | "stop" | "response" | "happened"
    )
}

/// Returns a text as it is drawn. The terminal decides how many columns a tab takes; spaces take as many as are counted.
fn as_drawn(text: &str) -> String {
    printable(text).replace('\t', "    ")
}

fn capitalized(label: &str) -> String {
    let mut letters = label.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}
