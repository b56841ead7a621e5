//! The inbox: the open interrupts of all agents, each with an id, shown in full and answered.
//!
//! A prefix of its interrupt id names an item, never its position in a list. As soon as one item is answered, a position refers
//! to another one, and an approval would go to something that the person has not read. [`approval`] decides which answers
//! require that the item was displayed; [`display`] displays it.

pub mod approval;
pub mod display;
pub mod screen;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use archie_agent::printable::summary_line;
use archie_agent::{Exit, InterruptRequest, Terminal};
use serde_json::Value as Json;
use superstep::ThreadId;
use superstep::checkpoint::{InterruptQuery, InterruptRow, Page, ThreadQuery};
use superstep::run::{OpenInterrupt, open_interrupts};

use crate::app::App;
use crate::edit_dialog;
use crate::session::{Session, read_answer};
pub use approval::{Naming, Refusal};

/// An interrupt in the inbox.
#[derive(Debug, Clone)]
pub struct InboxItem {
    /// The interrupt with its stored row.
    pub open: OpenInterrupt,
    /// The interrupt's request, decoded.
    pub asked: InterruptRequest,
    /// Shortest unique prefix of its id, with at least six characters.
    pub short_id: String,
}

impl InboxItem {
    fn new(open: OpenInterrupt, ids: &ShortIds) -> anyhow::Result<Self> {
        let asked = InterruptRequest::of(&open.interrupt)?;
        let short_id = ids.shorten(&asked.id.to_string());
        Ok(Self {
            open,
            asked,
            short_id,
        })
    }

    /// Returns the full id.
    pub fn id(&self) -> String {
        self.asked.id.to_string()
    }
}

/// An item with what a list says about it.
#[derive(Debug, Clone)]
pub struct ListedItem {
    /// The item.
    pub item: InboxItem,
    /// Name of the agent that asks.
    pub agent: String,
    /// Title of the thread and what is asked, in one line.
    pub subject: String,
}

/// Ids of open items, for shortening an id.
#[derive(Debug, Default)]
pub struct ShortIds(Vec<String>);

impl ShortIds {
    /// Loads the ids of the oldest 200 open items. If there are more, a short id may be ambiguous; [`find`] then refuses it.
    pub async fn load(app: &App) -> anyhow::Result<Self> {
        Self::load_with(app, &[]).await
    }

    /// Loads the same ids, and those of `items`.
    async fn load_with(app: &App, items: &[OpenInterrupt]) -> anyhow::Result<Self> {
        let mut query = open_page(0);
        query.page.limit = COMPARED;
        let rows = app.store().interrupts(&query).await?;
        let ids = rows.iter().map(|row| row.id);
        let ids = ids.chain(items.iter().map(|item| item.interrupt.id));
        Ok(Self::of(ids.map(|id| id.to_string())))
    }

    pub(crate) fn of(ids: impl IntoIterator<Item = String>) -> Self {
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort_unstable();
        Self(ids)
    }

    /// Returns the shortest prefix of an id, with at least six characters, that no other loaded item has.
    pub fn shorten(&self, id: &str) -> String {
        self.shorten_to(id, SHORT_ID_CHARS)
    }

    /// Returns the shortest prefix of an id, with at least `chars_min` characters, that no other id has.
    pub(crate) fn shorten_to(&self, id: &str, chars_min: usize) -> String {
        let at = self.0.partition_point(|other| other.as_str() < id);
        // In a sorted list, the ids with the longest common prefix are neighbours.
        let before = at.checked_sub(1).and_then(|at| self.0.get(at));
        // An item may be in the list twice, and is not its own neighbour.
        let after = self.0[at..].iter().find(|other| *other != id);
        let neighbours = before.into_iter().chain(after);
        let shared = neighbours.map(|other| shared_chars(id, other)).max();
        let length = shared.map_or(0, |shared| shared + 1).max(chars_min);
        id.chars().take(length).collect()
    }
}

fn shared_chars(one: &str, other: &str) -> usize {
    one.chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other)
        .count()
}

/// Lists items of all agents, oldest first.
pub async fn items(app: &App, open_only: bool, limit: u32) -> anyhow::Result<Vec<InboxItem>> {
    let query = InterruptQuery {
        open_only,
        page: Page { limit, offset: 0 },
        ..InterruptQuery::default()
    };
    let open = app.runtime.interrupts(&query).await?;
    let ids = ShortIds::load_with(app, &open).await?;
    open.into_iter()
        .map(|open| InboxItem::new(open, &ids))
        .collect()
}

/// Lists items of all agents, oldest first, with what a list says about them. Leaves out items of threads that are being deleted.
pub async fn listed_items(
    app: &App,
    open_only: bool,
    limit: u32,
) -> anyhow::Result<Vec<ListedItem>> {
    let items = items(app, open_only, limit).await?;
    let threads = items.iter().map(|item| item.open.row.thread.clone());
    let threads: BTreeSet<_> = threads.collect();
    let query = ThreadQuery {
        ids: Some(threads.into_iter().collect()),
        ..ThreadQuery::default()
    };
    let rows = app.rows(query, limit).await?;
    let rows: BTreeMap<_, _> = rows
        .into_iter()
        .map(|row| (row.thread.clone(), row))
        .collect();
    let listed = items.into_iter().filter_map(|item| {
        let row = rows.get(&item.open.row.thread)?;
        let title = row.metadata.get("title").and_then(Json::as_str);
        Some(ListedItem {
            subject: subject(title.unwrap_or_default(), &item.asked),
            agent: row.graph.clone(),
            item,
        })
    });
    Ok(listed.collect())
}

/// Returns what an item is about, in one line: the thread's title and what is asked.
fn subject(title: &str, asked: &InterruptRequest) -> String {
    let summary = match asked.may_permit_effect() {
        true => asked.summary(),
        false => without_marks(&asked.summary()),
    };
    let summary = summary_line(&summary, SUBJECT_CHARS);
    let title = summary_line(title, SUBJECT_CHARS);
    match title.is_empty() || summary.contains(&title) {
        true => summary,
        false => format!("{title}: {summary}"),
    }
}

/// Returns the words of a text in Markdown, without tables and marks, for a line of a list.
fn without_marks(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches(['#', '>', ' ']));
    let lines: Vec<_> = lines.filter(|line| !line.starts_with('|')).collect();
    lines.join(" ").replace("**", "")
}

/// Lists the open items of one thread.
pub async fn items_of(app: &App, thread: &ThreadId) -> anyhow::Result<Vec<InboxItem>> {
    let query = InterruptQuery {
        thread: Some(thread.clone()),
        ..open_page(0)
    };
    let open = app.runtime.interrupts(&query).await?;
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let ids = ShortIds::load_with(app, &open).await?;
    open.into_iter()
        .map(|open| InboxItem::new(open, &ids))
        .collect()
}

/// Finds an open item by its id, by a prefix of its id, or as the only open item of a thread.
pub async fn find(app: &App, wanted: &str) -> anyhow::Result<(InboxItem, Naming)> {
    let wanted = wanted.trim();
    let is_hex = !wanted.is_empty() && wanted.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && wanted.len() < SHORT_ID_CHARS {
        return Err(not_an_id(app, wanted).await?.into());
    }
    let lower = wanted.to_ascii_lowercase();
    let rows = match is_hex {
        true => open_rows_of(app, &lower).await?,
        false => Vec::new(),
    };
    let found = match rows.is_empty() {
        true => items_of_exact_thread(app, wanted).await?,
        false => {
            let open = open_interrupts(rows)?;
            let ids = ShortIds::load_with(app, &open).await?;
            let found = open.into_iter().map(|open| InboxItem::new(open, &ids));
            found.collect::<anyhow::Result<Vec<_>>>()?
        }
    };
    match found.as_slice() {
        [] => bail!("there is no open question `{wanted}`; `archie inbox` lists them"),
        [item] => {
            let naming = match item.id() == lower {
                true => Naming::FullId,
                false => Naming::ShortId,
            };
            Ok((item.clone(), naming))
        }
        several => Err(Refusal::new(format!(
            "`{wanted}` names {} open questions; type more of the id:\n{}",
            several.len(),
            candidates(several)
        ))
        .into()),
    }
}

async fn not_an_id(app: &App, wanted: &str) -> anyhow::Result<Refusal> {
    let open = items(app, true, CANDIDATES as u32).await?;
    let listed = match open.is_empty() {
        true => "No open questions.".to_owned(),
        false => candidates(&open),
    };
    Ok(Refusal::new(format!(
        "`{wanted}` is not an item id. Items are named by their id, not by their place in a list:\n{listed}"
    )))
}

fn candidates(items: &[InboxItem]) -> String {
    let lines = items.iter().take(CANDIDATES).map(|item| {
        let summary = summary_line(&item.asked.summary(), SUMMARY_CHARS);
        format!("  {}  {summary}", item.short_id)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns all open rows whose id starts with `begins`.
async fn open_rows_of(app: &App, begins: &str) -> anyhow::Result<Vec<InterruptRow>> {
    let mut found = Vec::new();
    let mut query = open_page(0);
    loop {
        let rows = app.store().interrupts(&query).await?;
        let is_last = rows.len() < PAGE as usize;
        found.extend(
            rows.into_iter()
                .filter(|row| row.id.to_string().starts_with(begins)),
        );
        if is_last {
            return Ok(found);
        }
        query.page.offset += PAGE;
    }
}

async fn items_of_exact_thread(app: &App, wanted: &str) -> anyhow::Result<Vec<InboxItem>> {
    match ThreadId::new(wanted) {
        Ok(thread) => items_of(app, &thread).await,
        // Not every text is a valid thread id.
        Err(_) => Ok(Vec::new()),
    }
}

fn open_page(offset: u32) -> InterruptQuery {
    InterruptQuery {
        open_only: true,
        page: Page {
            limit: PAGE,
            offset,
        },
        ..InterruptQuery::default()
    }
}

/// Answers an item, resumes its thread and prints the outcome. The agent parses `words`.
///
/// Refuses an answer that permits an effect unless the person was shown the whole item or names it exactly.
pub async fn answer(
    item: &InboxItem,
    naming: &Naming,
    words: &str,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    if words.trim().is_empty() {
        bail!("an empty answer was not taken; the question stays open");
    }
    let (thread, row) = app.find(&item.open.row.thread.to_string()).await?;
    let agent = app.agent(&row.graph)?;
    let answer = match edit_dialog::is_asked_for(words, agent.ui(), &item.asked, terminal) {
        true => edit_dialog::run(&item.asked, terminal)
            .await?
            .context("the call was not edited; the question stays open")?,
        false => read_answer(agent, &item.open, words)?,
    };
    let session = Session {
        app,
        terminal,
        json: false,
    };
    if item.asked.permits_effect(&answer) {
        approval::require(&session, agent, item, naming).await?;
    }
    let exit = session.answer(agent, &*thread, &item.asked, answer).await?;
    display::remove_file(app, &item.asked);
    Ok(exit)
}

/// Minimum length of a prefix that names an item.
const SHORT_ID_CHARS: usize = 6;
/// Number of rows fetched from the store per query.
const PAGE: u32 = 1_000;
/// Number of open items that a short id is compared with, besides the listed ones. Bounded, so that a list of ten thousand
/// appears at once.
const COMPARED: u32 = 200;
/// Maximum length of the title of a thread, and of what is asked, in the subject of an item.
const SUBJECT_CHARS: usize = 120;
/// Maximum number of items that a refusal lists.
const CANDIDATES: usize = 5;
/// Maximum length of an item's summary in a refusal, in characters.
const SUMMARY_CHARS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_question_has_no_marks_of_markdown() {
        let text =
            "## What I understood\n\nYou take **ten thousand** orders.\n| a | b |\nIs that right?";
        assert_eq!(
            summary_line(&without_marks(text), 80),
            "What I understood You take ten thousand orders. Is that right?"
        );
    }

    #[test]
    fn a_short_id_has_six_characters_and_more_only_where_another_begins_alike() {
        let ids = ["3f9a2c00aa", "3f9a2c01bb", "7700000000"].map(str::to_owned);
        let short = ShortIds::of(ids.clone());
        assert_eq!(short.shorten(&ids[0]), "3f9a2c00");
        assert_eq!(short.shorten(&ids[1]), "3f9a2c01");
        assert_eq!(short.shorten(&ids[2]), "770000");
        // An answered item, which is no longer in the list.
        assert_eq!(short.shorten("ffffffffff"), "ffffff");
        assert_eq!(ShortIds::default().shorten("3f9a2c00aa"), "3f9a2c");
    }
}
