//! Displays a whole item: every recipient, cell and byte that an answer permits, with counts and a digest.
//!
//! At a terminal, a long text is shown one screen at a time. It is also written to a private file, which the text names.

use std::path::PathBuf;

use archie_agent::layout::{self, wrap};
use archie_agent::printable::{counted, grouped, printable};
use archie_agent::style::Face;
use archie_agent::{Agent, InterruptRequest, Output, Terminal, private_file};
use superstep::ThreadId;

use crate::app::App;
use crate::inbox::ShortIds;
use crate::inbox::approval::{record_display, short_digest};
use crate::session::Session;

/// Displays a whole item and, if an answer can permit an effect, records that for the person. Returns whether the person saw
/// all of it: they may stop before the end of a long text, and an interrupt of an older version may not contain everything.
pub async fn display(
    session: &Session<'_>,
    agent: &Agent,
    asked: &InterruptRequest,
) -> anyhow::Result<bool> {
    let mut text = agent.ui().describe(asked);
    let is_long = text.lines().count() > LONG_LINES || text.len() > LONG_BYTES;
    if is_long {
        let file = file(session.app, asked);
        let written = private_file::write(&file, format!("{}\n", printable(&text)).as_bytes());
        text.push_str(&match written {
            Ok(()) => format!("\nThe whole text is also in {}", file.display()),
            Err(error) => format!("\n`{}` cannot be written: {error}", file.display()),
        });
    }
    if asked.may_permit_effect() {
        let ids = ShortIds::load(session.app).await?;
        text.push_str(&format!(
            "\nItem {}, {}, {}, digest {}",
            ids.shorten(&asked.id.to_string()),
            counted(text.lines().count(), "line"),
            counted(text.chars().count(), "character"),
            short_digest(&asked.digest())
        ));
    }
    if agent.ui().is_markdown(asked) && !session.json && !asked.may_permit_effect() {
        session.terminal.markdown(&text);
        return Ok(agent.ui().is_complete(asked));
    }
    let is_whole = page(&session.output(), &text)? && agent.ui().is_complete(asked);
    if is_whole && asked.may_permit_effect() {
        record_display(session.app, asked).await?;
    }
    Ok(is_whole)
}

/// Says at a terminal what may be answered and what each answer causes.
pub(crate) fn show_effects(terminal: &dyn Terminal, agent: &Agent, asked: &InterruptRequest) {
    if terminal.page_size().is_none() {
        return;
    }
    let effects = agent.ui().answer_effects(asked);
    let widest = effects.iter().map(|(word, _)| layout::columns(word)).max();
    let width = widest.unwrap_or_default();
    for (word, effect) in effects {
        let blanks = " ".repeat(width.saturating_sub(layout::columns(word)));
        terminal.line_of(&[
            (Face::Bold, &format!("  {word}{blanks}  ")),
            (Face::Plain, effect),
        ]);
    }
}

/// Shows a text, one screen at a time at a terminal. Returns whether all of it was shown.
pub(crate) fn page(output: &Output<'_>, text: &str) -> anyhow::Result<bool> {
    let Some((columns, rows)) = output.terminal.page_size() else {
        output.tell(text);
        return Ok(true);
    };
    let screen = rows.saturating_sub(ROWS_KEPT).max(ROWS_KEPT);
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = 0;
    let mut screen_left = match lines
        .iter()
        .map(|line| height(line, columns))
        .sum::<usize>()
    {
        all if all <= screen => usize::MAX,
        _ => screen,
    };
    while shown < lines.len() {
        let mut end = shown;
        while end < lines.len() && (end == shown || height(lines[end], columns) <= screen_left) {
            screen_left = screen_left.saturating_sub(height(lines[end], columns));
            end += 1;
        }
        output.tell(&lines[shown..end].join("\n"));
        shown = end;
        if shown == lines.len() {
            break;
        }
        let prompt = format!(
            "-- line {} of {}; Enter: more, a: all, q: stop -- ",
            grouped(shown),
            grouped(lines.len())
        );
        screen_left = match output.terminal.ask(&prompt)?.as_deref().map(str::trim) {
            None | Some("q") => return Ok(false),
            Some("a") => usize::MAX,
            Some(_) => screen,
        };
    }
    Ok(true)
}

/// Returns how many rows of the screen a line takes, broken between words.
pub(crate) fn height(line: &str, columns: usize) -> usize {
    let lines = wrap(&printable(line), columns);
    // The terminal breaks a word that is longer than a row.
    let rows = lines
        .split('\n')
        .map(|line| layout::columns(line).div_ceil(columns.max(1)).max(1));
    rows.sum()
}

/// Returns the path of the file with the whole text of a long item.
fn file(app: &App, asked: &InterruptRequest) -> PathBuf {
    app.settings
        .home
        .join("inbox")
        .join(format!("{}.txt", asked.id))
}

/// Removes the file of an answered item.
pub fn remove_file(app: &App, asked: &InterruptRequest) {
    // Most items have no file.
    let _ = std::fs::remove_file(file(app, asked));
}

/// Prints the commands that answer the open items of a thread; nothing if there are none.
pub async fn announce(app: &App, terminal: &dyn Terminal, thread: &ThreadId) -> anyhow::Result<()> {
    let items = super::items_of(app, thread).await?;
    let ways: Vec<_> = items
        .iter()
        .map(|item| format!("`archie inbox {}`", item.short_id))
        .collect();
    if !ways.is_empty() {
        terminal.aside(&format!(
            "the question stays open; answer it with {} or `archie resume {thread}`",
            ways.join(", ")
        ));
    }
    Ok(())
}

/// A text with more lines, or more bytes, than this is also written to a file.
const LONG_LINES: usize = 40;
const LONG_BYTES: usize = 8_000;
/// Rows of the screen left free for the prompt and for earlier output.
const ROWS_KEPT: usize = 2;
