//! Displays a whole item: every recipient, cell and byte that an answer lets out, with counts and the digest of it all.
//!
//! At a terminal a long text comes a screen at a time; it is also written to a private file that the text names.

use std::path::PathBuf;

use crate::agents::AnyAgent;
use crate::home::Home;
use crate::inbox::ShortIds;
use crate::inbox::approval::{record_display, short_digest};
use crate::printable::printable;
use crate::private;
use crate::questions::Asked;
use crate::say::Say;
use crate::talk::Talk;

/// Displays a whole item, and records that for the person. Returns whether they saw all of it: they may leave a long text
/// before its end, and a question of an older version may not hold everything.
pub async fn display(talk: &Talk<'_>, agent: &dyn AnyAgent, asked: &Asked) -> anyhow::Result<bool> {
    let mut text = agent.manner().put(asked);
    let is_long = text.lines().count() > LONG_LINES || text.len() > LONG_BYTES;
    if is_long {
        let file = file(talk.home, asked);
        let written = private::write(&file, format!("{}\n", printable(&text)).as_bytes());
        text.push_str(&match written {
            Ok(()) => format!("\nThe whole text is also in {}", file.display()),
            Err(error) => format!("\n`{}` cannot be written: {error}", file.display()),
        });
    }
    if asked.may_permit_effect() {
        let ids = ShortIds::load(talk.home).await?;
        text.push_str(&format!(
            "\nItem {}, {}, {}, digest {}",
            ids.shorten(&asked.id.to_string()),
            counted(text.lines().count(), "line"),
            counted(text.chars().count(), "character"),
            short_digest(&asked.digest())
        ));
    }
    let is_whole = page(talk, &text)? && agent.manner().holds_everything(asked);
    if is_whole && asked.may_permit_effect() {
        record_display(talk.home, asked).await?;
    }
    Ok(is_whole)
}

/// Shows a text, a screen at a time where a person reads along. Returns whether all of it was shown.
fn page(talk: &Talk<'_>, text: &str) -> anyhow::Result<bool> {
    let Some((columns, rows)) = talk.say.page_size() else {
        talk.tell(text);
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
        talk.tell(&lines[shown..end].join("\n"));
        shown = end;
        if shown == lines.len() {
            break;
        }
        let prompt = format!(
            "-- line {} of {}; Enter: more, a: all, q: stop -- ",
            grouped(shown),
            grouped(lines.len())
        );
        screen_left = match talk.say.ask(&prompt)?.as_deref().map(str::trim) {
            None | Some("q") => return Ok(false),
            Some("a") => usize::MAX,
            Some(_) => screen,
        };
    }
    Ok(true)
}

/// How many rows of a screen a line takes.
fn height(line: &str, columns: usize) -> usize {
    line.chars().count().div_ceil(columns.max(1)).max(1)
}

/// Where the whole text of an item is, if it is long.
fn file(home: &Home, asked: &Asked) -> PathBuf {
    home.settings
        .home
        .join("inbox")
        .join(format!("{}.txt", asked.id))
}

/// Removes the file of an item that is answered.
pub fn remove_file(home: &Home, asked: &Asked) {
    // Most items have none.
    let _ = std::fs::remove_file(file(home, asked));
}

/// Returns a number and what it counts: `1 cell`, `1,240 cells`.
pub fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{} {what}s", grouped(count)),
    }
}

fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Prints the items of a thread that wait, with the command that answers each.
pub async fn announce(home: &Home, say: &dyn Say, thread: &str) -> anyhow::Result<()> {
    let items = super::items_of(home, thread).await?;
    let ways: Vec<_> = items
        .iter()
        .map(|item| format!("`archie inbox {}`", item.short_id))
        .collect();
    if !ways.is_empty() {
        say.aside(&format!(
            "the question stays open; answer it with {} or `archie resume {thread}`",
            ways.join(", ")
        ));
    }
    Ok(())
}

/// A text with more lines than this, or more bytes, is also written to a file.
const LONG_LINES: usize = 40;
const LONG_BYTES: usize = 8_000;
/// Rows of a screen that stay free for the prompt and for what was shown before.
const ROWS_KEPT: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_have_their_plural() {
        assert_eq!(counted(1, "cell"), "1 cell");
        assert_eq!(counted(1_240, "changed cell"), "1,240 changed cells");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
