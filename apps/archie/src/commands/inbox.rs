//! `archie inbox`: lists, shows and answers the open interrupts of all agents.

use archie_agent::printable::summary_line;
use archie_agent::{Exit, Terminal};
use serde_json::{Value as Json, json};
use superstep::checkpoint::AnswerBody;

use super::threads::{short, time};
use crate::app::App;
use crate::cli::args::InboxArgs;
use crate::inbox::approval::exit_of_refusal;
use crate::inbox::display::{display, show_effects};
use crate::inbox::{self, InboxItem, ListedItem, Naming, screen};
use crate::session::Session;
use crate::terminal::is_plain;

pub(super) async fn run(
    args: &InboxArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    match &args.item {
        Some(wanted) => exit_of_refusal(one(args, wanted, app, terminal).await),
        None if is_full_screen(args, terminal) => screen::run(app, terminal).await,
        None => list(args, app, terminal).await,
    }
}

/// Returns whether a person at a terminal wants to see what waits for them.
fn is_full_screen(args: &InboxArgs, terminal: &dyn Terminal) -> bool {
    let is_list = args.json || args.all || args.plain;
    !is_list && terminal.page_size().is_some() && !is_plain()
}

/// Shows an item in full, or answers it.
async fn one(
    args: &InboxArgs,
    wanted: &str,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (item, named) = inbox::find(app, wanted).await?;
    let naming = args.digest.clone().map_or(named, Naming::Digest);
    if !args.answer.is_empty() {
        return inbox::answer(&item, &naming, &args.answer.join(" "), app, terminal).await;
    }
    let (thread, row) = app.find(&item.open.row.thread.to_string()).await?;
    let agent = app.agent(&row.graph)?;
    if args.json {
        let mut shown = item_json(&item)?;
        shown["agent"] = json!(row.graph);
        shown["text"] = json!(agent.ui().describe(&item.asked));
        terminal.json(&shown);
        return Ok(Exit::Done);
    }
    let session = Session {
        app,
        terminal,
        json: false,
    };
    terminal.line(&format!(
        "{}  {}  thread {}  {}",
        item.short_id,
        row.graph,
        thread.id(),
        time(item.open.row.asked_at)
    ));
    display(&session, agent, &item.asked).await?;
    show_effects(terminal, agent, &item.asked);
    let prompt = agent.ui().prompt(&item.asked);
    match terminal
        .ask(&prompt)?
        .filter(|words| !words.trim().is_empty())
    {
        Some(words) => inbox::answer(&item, &naming, &words, app, terminal).await,
        None => {
            terminal.aside(&format!(
                "the question stays open; answer it with `archie inbox {} …`",
                item.short_id
            ));
            Ok(Exit::Done)
        }
    }
}

async fn list(args: &InboxArgs, app: &App, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let items = inbox::listed_items(app, !args.all, args.limit).await?;
    if args.json {
        let shown = items
            .iter()
            .map(listed_json)
            .collect::<anyhow::Result<Vec<_>>>()?;
        terminal.json(&Json::Array(shown));
        return Ok(Exit::Done);
    }
    if items.is_empty() {
        terminal.line("No open questions.");
    }
    let agents = items.iter().map(|listed| listed.agent.len());
    let agent_width = agents.max().unwrap_or_default();
    for listed in &items {
        let (item, row) = (&listed.item, &listed.item.open.row);
        let begin = format!("{}  {:<agent_width$}  ", item.short_id, listed.agent);
        let left = LINE_CHARS.saturating_sub(begin.chars().count());
        let subject = summary_line(&listed.subject, left);
        terminal.line(&format!("{begin}{subject}"));
        if let Some(answer) = &row.answer {
            let by = match row.answered_by.as_str() {
                "" => "someone",
                by => by,
            };
            let at = row.answered_at.map(time).unwrap_or_default();
            terminal.line(&format!("        {by} answered {at}: {}", said(answer)?));
        }
    }
    if !args.all && !items.is_empty() {
        terminal
            .hint("Summaries only; `archie inbox ID` shows an item in full and takes the answer.");
    }
    Ok(Exit::Done)
}

fn said(answer: &AnswerBody) -> anyhow::Result<String> {
    Ok(match answer {
        AnswerBody::Value(value) => short(&value.decode::<Json>()?),
        AnswerBody::Expired => "(no answer in time)".to_owned(),
    })
}

fn listed_json(listed: &ListedItem) -> anyhow::Result<Json> {
    let mut shown = item_json(&listed.item)?;
    shown["agent"] = json!(listed.agent);
    shown["subject"] = json!(listed.subject);
    Ok(shown)
}

fn item_json(item: &InboxItem) -> anyhow::Result<Json> {
    let question = &item.open;
    let answer = match &question.row.answer {
        Some(AnswerBody::Value(value)) => value.decode::<Json>()?,
        Some(AnswerBody::Expired) => json!("expired"),
        None => Json::Null,
    };
    Ok(json!({
        "id": item.id(),
        "short_id": item.short_id,
        "digest": item.asked.digest(),
        "call_digest": item.asked.call_digest(),
        "thread": question.row.thread.to_string(),
        "node": question.interrupt.node.to_string(),
        "kind": question.interrupt.kind,
        "request": item.asked.request,
        "askedAt": question.row.asked_at.0,
        "deadline": question.interrupt.deadline.map(|deadline| deadline.0),
        "answer": answer,
        "answeredBy": question.row.answered_by,
        "answeredAt": question.row.answered_at.map(|at| at.0),
    }))
}

/// Maximum length of a line of the list.
const LINE_CHARS: usize = 80;
