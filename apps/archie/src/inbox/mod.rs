//! The inbox: the open interrupts of all agents, each with an id, shown in full and answered.
//!
//! A prefix of its interrupt id names an item, never its position in a list. As soon as one item is answered, a position refers
//! to another one, and an approval would go to something that the person has not read. [`approval`] decides which answers
//! require that the item was displayed; [`display`] displays it.

pub mod approval;
pub mod display;

use anyhow::{Context, bail};
use archie_agent::printable::summary_line;
use archie_agent::{Exit, InterruptRequest, Output, Terminal};
use serde_json::Value as Json;
use superstep::checkpoint::{InterruptQuery, InterruptRow, Page};
use superstep::run::{OpenInterrupt, open_interrupts};
use superstep::{Outcome, ThreadId};

use crate::app::App;
use crate::running::RunningMark;
use crate::session::{Session, read_answer, too_late};
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

    fn of(ids: impl IntoIterator<Item = String>) -> Self {
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort_unstable();
        Self(ids)
    }

    /// Returns the shortest prefix of an id, with at least six characters, that no other loaded item has.
    pub fn shorten(&self, id: &str) -> String {
        let at = self.0.partition_point(|other| other.as_str() < id);
        // In a sorted list, the ids with the longest common prefix are neighbours.
        let before = at.checked_sub(1).and_then(|at| self.0.get(at));
        // An item may be in the list twice, and is not its own neighbour.
        let after = self.0[at..].iter().find(|other| *other != id);
        let neighbours = before.into_iter().chain(after);
        let shared = neighbours.map(|other| shared_chars(id, other)).max();
        let length = shared.map_or(0, |shared| shared + 1).max(SHORT_ID_CHARS);
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
    let answer = read_answer(agent, &item.open, words)?;
    if item.asked.permits_effect(&answer) {
        let session = Session {
            app,
            terminal,
            json: false,
        };
        approval::require(&session, agent, item, naming).await?;
    }
    let waiting = terminal.waiting("resuming");
    let running = RunningMark::set(app, thread.id());
    let by = app.settings.person.clone();
    let given = vec![(item.asked.id, answer)];
    let rest = match thread.answer_as(&by, given).await {
        Ok(rest) => rest,
        Err(error) => return Err(too_late(app, &*thread, item.asked.id, error).await),
    };
    drop(running);
    drop(waiting);
    display::remove_file(app, &item.asked);
    let id = thread.id();
    let state = thread.state(None).await?;
    let values: Json = state.map_or(Ok(Json::Null), |state| state.values.decode())?;
    let shown = agent.ui().after_answer(&values);
    shown.iter().for_each(|line| terminal.line(line));
    let outcome = rest.map(|rest| rest.outcome);
    // The answer is stored either way; what failed is the run that it resumed.
    let exit = match &outcome {
        None | Some(Outcome::Finished | Outcome::Paused(_)) => Exit::Done,
        Some(_) => Exit::Failed,
    };
    if matches!(outcome, Some(Outcome::Finished)) && agent.ui().finishes_in_inbox(&values) {
        terminal.line("answered, and the thread is finished");
        let output = Output {
            terminal,
            json: false,
        };
        // The answer is stored, so the result can also be written later.
        return agent.ui().finish(&output, &*thread).await.with_context(|| {
            format!("the answer is stored, but the result is not written; `archie resume {id}` writes it")
        });
    }
    terminal.line(&match outcome {
        None => "answered; another process resumes the thread".to_owned(),
        Some(Outcome::Finished) if !shown.is_empty() => {
            "answered, and the thread is finished".to_owned()
        }
        Some(Outcome::Finished) => {
            format!("answered, and the thread is finished; `archie resume {id}` writes its result")
        }
        Some(Outcome::Paused(_)) => {
            let next = items_of(app, id).await?;
            let next: Vec<_> = next
                .iter()
                .map(|item| format!("`archie inbox {}`", item.short_id))
                .collect();
            format!("answered, and there is a new question: {}", next.join(", "))
        }
        Some(Outcome::Failed(failures)) => {
            let why = failures.first().map(|failure| failure.message.clone());
            let why = why.unwrap_or_default();
            format!("answered, and the run failed: {why}; continue with `archie resume {id}`")
        }
        Some(other) => {
            format!(
                "answered, and the run ended early ({other:?}); continue with `archie resume {id}`"
            )
        }
    });
    Ok(exit)
}

/// Minimum length of a prefix that names an item.
const SHORT_ID_CHARS: usize = 6;
/// Number of rows fetched from the store per query.
const PAGE: u32 = 1_000;
/// Number of open items that a short id is compared with, besides the listed ones. Bounded, so that a list of ten thousand
/// appears at once.
const COMPARED: u32 = 200;
/// Maximum number of items that a refusal lists.
const CANDIDATES: usize = 5;
/// Maximum length of an item's summary in a refusal, in characters.
const SUMMARY_CHARS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

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
