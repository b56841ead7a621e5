//! The inbox as a full-screen view: list, whole item, answers by key, live.
//!
//! `state` decides, `draw` draws, and [`run`] does the rest: it reads keys, loads the list every second, answers items and
//! resumes their threads. Nothing here waits for the store while keys are pressed, so that a store that does not respond is a
//! message and not a frozen screen.

mod draw;
mod pane;
mod state;
#[cfg(test)]
mod tests;
mod wrap;

use std::time::Duration;

use anyhow::{Context, anyhow};
use archie_agent::clock::now;
use archie_agent::{Exit, InterruptRequest, Terminal};
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::Value as Json;
use superstep::{InterruptId, ThreadId};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, interval, sleep};

use self::draw::Theme;
use self::pane::RunOutput;
use self::state::{ClosedItem, EndedRun, InboxScreen, ItemText, Notice, Request};
use super::approval::record_display;
use super::{ListedItem, Naming};
use crate::app::App;
use crate::editor::Editor;
use crate::session::first_answer;
use crate::terminal::{self, FullScreen};

/// Shows the inbox until the person leaves it. `output` gets a summary afterwards.
pub async fn run(app: &App, output: &dyn Terminal) -> anyhow::Result<Exit> {
    let theme = Theme {
        has_colours: terminal::has_colours(),
    };
    let mut view = View {
        app,
        screen: InboxScreen::new(now()),
        answers: FuturesUnordered::new(),
        records: FuturesUnordered::new(),
    };
    let mut full_screen = FullScreen::enter()?;
    let mut keys = EventStream::new();
    let mut loading = view.load();
    let mut is_loading = true;
    let mut slow = Box::pin(sleep(SLOW));
    let mut next_load = Box::pin(sleep(Duration::ZERO));
    let mut ticks = interval(TICK);
    // Ended by another program: the terminal is given back first.
    let mut terminated = signal(SignalKind::terminate())?;
    loop {
        view.screen.now = now();
        view.load_text();
        full_screen.draw(|frame| draw::draw(&mut view.screen, frame, theme))?;
        view.record_read();
        let request = tokio::select! {
            event = keys.next() => match event {
                Some(event) => view.take_event(&event?),
                None => Some(Request::Leave),
            },
            loaded = &mut loading, if is_loading => {
                is_loading = false;
                // A store that takes long is asked less often.
                let took = SLOW.saturating_sub(slow.deadline().saturating_duration_since(Instant::now()));
                next_load.as_mut().reset(Instant::now() + LOAD_EVERY.max(took * 4));
                view.take_loaded(loaded);
                None
            },
            () = &mut slow, if is_loading => {
                let trouble = "The store does not respond; still trying. This is what was loaded last.";
                view.screen.trouble = Some(trouble.to_owned());
                slow.as_mut().reset(Instant::now() + SLOW);
                None
            },
            () = &mut next_load, if !is_loading => Some(Request::Load),
            Some((id, ended)) = view.answers.next(), if !view.answers.is_empty() => {
                view.screen.set_ended(id, ended);
                Some(Request::Load)
            },
            Some(stored) = view.records.next(), if !view.records.is_empty() => {
                if let Err(error) = stored {
                    // An answer records it again, so nothing is lost.
                    view.screen.trouble = Some(format!("{error:#}; still trying"));
                }
                None
            },
            _ = terminated.recv() => Some(Request::Leave),
            _ = ticks.tick(), if view.screen.running() > 0 => None,
        };
        match request {
            None => {}
            Some(Request::Leave) => break,
            Some(Request::Load) if is_loading => {}
            Some(Request::Load) => {
                loading = view.load();
                is_loading = true;
                slow.as_mut().reset(Instant::now() + SLOW);
            }
            Some(Request::Answer { id, line }) => view.answer(id, line),
            Some(Request::Edit { id }) => {
                // The editor reads the keys now.
                drop(keys);
                full_screen.leave();
                let edited = view.edit(id).await;
                full_screen = FullScreen::enter()?;
                keys = EventStream::new();
                if let Err(error) = edited {
                    view.screen.notice = Some(Notice::problem(&format!("{error:#}")));
                }
            }
        }
    }
    full_screen.leave();
    let summary = view.screen.summary();
    summary.iter().for_each(|line| output.line(line));
    Ok(Exit::Done)
}

/// The screen, and what is in progress behind it.
struct View<'a> {
    app: &'a App,
    screen: InboxScreen,
    /// Answers whose threads run.
    answers: FuturesUnordered<LocalBoxFuture<'a, (InterruptId, Result<EndedRun, String>)>>,
    /// Display records that are being stored.
    records: FuturesUnordered<LocalBoxFuture<'a, anyhow::Result<()>>>,
}

/// A loaded list, and what happened to items that are no longer in it.
type LoadedList = anyhow::Result<(Vec<ListedItem>, Vec<ClosedItem>)>;

impl<'a> View<'a> {
    fn take_event(&mut self, event: &Event) -> Option<Request> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.screen.press(*key),
            Event::Paste(text) => {
                self.screen.paste(text);
                None
            }
            // Everything is drawn again anyway, for instance after a change of the size.
            _ => None,
        }
    }

    fn load(&self) -> LocalBoxFuture<'a, LoadedList> {
        let open = self.screen.open().into_iter();
        let known: Vec<_> = open
            .map(|item| (item.open.row.thread.clone(), item.asked.id))
            .collect();
        load(self.app, known).boxed_local()
    }

    fn take_loaded(&mut self, loaded: LoadedList) {
        match loaded {
            Ok((items, closed)) => self.screen.update(items, closed),
            Err(error) => {
                let why = format!("The list cannot be loaded; still trying: {error:#}");
                self.screen.trouble = Some(why);
            }
        }
    }

    /// Loads the text of the selected item, if that is missing.
    fn load_text(&mut self) {
        let Some(loaded) = self.screen.wants_text() else {
            return;
        };
        let asked = &loaded.item.asked;
        let shown = match self.app.agent(&loaded.agent) {
            Ok(agent) => ItemText {
                text: agent.ui().describe(asked),
                is_complete: agent.ui().is_complete(asked),
                choices: agent.ui().choices(asked),
            },
            Err(error) => ItemText {
                text: format!("{error:#}"),
                is_complete: false,
                choices: Vec::new(),
            },
        };
        self.screen.set_text(shown);
    }

    /// Records that the person read the selected item, so that they can also answer it from the command line.
    fn record_read(&mut self) {
        let Some(asked) = self.screen.newly_read() else {
            return;
        };
        let app = self.app;
        self.records
            .push(async move { record_display(app, &asked).await }.boxed_local());
    }

    /// Answers an item and resumes its thread, behind the screen.
    fn answer(&mut self, id: InterruptId, line: String) {
        let Some(entry) = self.screen.entry_mut(id) else {
            return;
        };
        let is_read = entry.is_read_whole();
        let item = entry.loaded.item.clone();
        let (app, output) = (self.app, RunOutput::default());
        let printed = output.clone();
        let answered = async move {
            // It may still be on its way to the store.
            if is_read && item.asked.may_permit_effect() {
                record_display(app, &item.asked).await?;
            }
            super::answer(&item, &Naming::ShortId, &line, app, &printed).await
        };
        let lines = output.clone();
        let answered = answered.map(move |done| {
            let ended = match done {
                Ok(exit) => Ok(EndedRun {
                    lines: lines.lines(),
                    is_ok: matches!(exit, Exit::Done | Exit::Paused),
                }),
                Err(error) => Err(format!("{error:#}")),
            };
            (id, ended)
        });
        self.answers.push(answered.boxed_local());
        self.screen.set_running(id, output);
    }

    /// Lets the person edit the arguments of a call, and asks them to confirm the changes. Other threads go on meanwhile.
    async fn edit(&mut self, id: InterruptId) -> anyhow::Result<()> {
        let Some(entry) = self.screen.entry_mut(id) else {
            return Ok(());
        };
        let asked = entry.loaded.item.asked.clone();
        let draft = entry.reading.as_ref().and_then(|it| it.draft.clone());
        let form = draft
            .or_else(|| asked.edit_form())
            .context("this call has no arguments to edit")?;
        let editor = Editor::from_env()?;
        let mut editing = std::pin::pin!(editor.edit(&form));
        let edited = loop {
            tokio::select! {
                edited = &mut editing => break edited?,
                Some((id, ended)) = self.answers.next(), if !self.answers.is_empty() => self.screen.set_ended(id, ended),
            }
        };
        let reading = self.screen.entry_mut(id).and_then(|it| it.reading.as_mut());
        if let Some(reading) = reading {
            reading.draft = Some(edited.clone());
        }
        let answer = asked
            .read_edit_form(&edited)
            .map_err(|why| anyhow!("{why}; `e` opens what you wrote again"))?;
        let diff = edit_diff(&asked, &answer);
        if diff.is_empty() {
            self.screen.notice = Some(Notice::plain("Nothing changed; the item stays open."));
            return Ok(());
        }
        self.screen.review(&diff, answer.to_string());
        Ok(())
    }
}

/// Returns what an edit changes, field by field.
fn edit_diff(asked: &InterruptRequest, answer: &Json) -> String {
    let changes = asked.edit_differences(answer).into_iter();
    let changes =
        changes.map(|change| format!("{}:\n  {}\n", change.path, change.lines.join("\n  ")));
    changes.collect()
}

/// Loads the open items of all agents. Says what happened to those of `known` that are no longer open.
async fn load(app: &App, known: Vec<(ThreadId, InterruptId)>) -> LoadedList {
    let loaded = super::listed_items(app, true, ITEMS_MAX).await?;
    let mut closed = Vec::new();
    for (thread, id) in known {
        if loaded.iter().any(|listed| listed.item.asked.id == id) {
            continue;
        }
        let why = first_answer(app, &thread, id).await?;
        closed.push(ClosedItem {
            id,
            why: why.unwrap_or_else(|| "the thread no longer asks this".to_owned()),
        });
    }
    Ok((loaded, closed))
}

/// The list loads again after this time, or after four times as long as the last time took.
const LOAD_EVERY: Duration = Duration::from_secs(1);
/// After this time without a response of the store, the screen says so.
const SLOW: Duration = Duration::from_secs(4);
/// How often the progress of runs is drawn.
const TICK: Duration = Duration::from_millis(250);
/// Number of items in the list. The oldest come first, so the others follow as these are answered.
const ITEMS_MAX: u32 = 1_000;
