//! `archie mail ingest`: ingests email, once or at an interval.

use std::cell::RefCell;

use archie_agent::clock::seconds;
use archie_agent::{Exit, Terminal};
use archie_email_assistant::mailbox::{MailQuery, Mailboxes};
use serde_json::{Value as Json, json};

use super::ingest::{Ingest, IngestStatus, IngestedMail};
use super::timer::Timer;
use super::{IngestArgs, title};
use crate::app::App;
use crate::ctrl_c;

/// Runs `archie mail ingest`: once, or at an interval until the person stops it with Ctrl-C (exit code: success).
pub async fn handle_ingest(
    args: &IngestArgs,
    app: &App,
    mailboxes: &Mailboxes,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let Some(every) = args.every else {
        return ingest_once(args, app, mailboxes, terminal).await;
    };
    let source = Mailboxes::canonical(&args.source);
    loop {
        let timer = Timer::of(app, &source).await?;
        timer.tell(every, terminal);
        let wait = timer.wait(every);
        if !wait.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = ctrl_c::pressed() => return Ok(Exit::Done),
            }
        }
        let went = tokio::select! {
            went = ingest_once(args, app, mailboxes, terminal) => went,
            () = ctrl_c::pressed() => return Ok(Exit::Done),
        };
        if let Err(error) = &went {
            terminal.aside(&format!(
                "this time it failed: {error:#}; it is tried again"
            ));
        }
        timer.ran(app, &source, went.is_ok()).await?;
    }
}

async fn ingest_once(
    args: &IngestArgs,
    app: &App,
    mailboxes: &Mailboxes,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let since = args
        .minutes_since
        .map(|minutes| (seconds().saturating_sub(minutes * 60)) as i64);
    let ingest = Ingest {
        source: Mailboxes::canonical(&args.source),
        model: app.ready_model().await?,
        email: args.email.clone(),
        which: MailQuery {
            since,
            include_read: args.include_read,
        },
        rerun: args.rerun,
        skip_filters: args.skip_filters,
    };
    // When repeating, print only what changed.
    let is_news = |came: &IngestedMail| {
        let is_old = matches!(came.stands, IngestStatus::Known | IngestStatus::Elsewhere);
        args.every.is_none() || !is_old
    };
    let waiting = RefCell::new(None);
    let began = |what: &str| {
        // Two spinners would overwrite each other.
        drop(waiting.take());
        waiting.replace(Some(terminal.waiting(what)));
    };
    let tell = |came: &IngestedMail| {
        drop(waiting.take());
        if !args.json && is_news(came) {
            terminal.line(&line(came));
        }
    };
    let retried = |line: &str| terminal.aside(line);
    let came = ingest
        .run_reporting(app, mailboxes, began, tell, &retried)
        .await;
    drop(waiting.take());
    let came = came?;
    let skipped = mailboxes.get(&ingest.source)?.skipped();
    for skipped in skipped.iter().take(SKIPPED_SHOWN) {
        terminal.aside(&format!("not read: {skipped}"));
    }
    if let Some(more @ 1..) = skipped.len().checked_sub(SKIPPED_SHOWN) {
        terminal.aside(&format!("not read: {more} more"));
    }
    if args.json {
        terminal.json(
            &came
                .iter()
                .filter(|came| is_news(came))
                .map(came_json)
                .collect(),
        );
    } else if came.is_empty() && args.every.is_none() {
        terminal.line("no new mail");
    }
    let failed = came
        .iter()
        .filter(|came| matches!(came.stands, IngestStatus::Failed(_)))
        .count();
    if failed > 0 {
        terminal.aside(&format!(
            "{failed} could not be worked on; run it again to resume them"
        ));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

fn line(came: &IngestedMail) -> String {
    let decision = came.decision.map_or("?", |decision| decision.word());
    let mut line = format!("{decision:<8}\"{}\"", title(&came.email));
    for ask in &came.asks {
        let action = match ask.action.starts_with("Email Assistant") {
            true => String::new(),
            false => format!(" {}", ask.action),
        };
        line.push_str(&format!(" → inbox {}{action}", ask.short_id));
    }
    if !came.suspicion.is_empty() {
        line.push_str("  (suspicious)");
    }
    match &came.stands {
        IngestStatus::Worked => {}
        IngestStatus::Known => line.push_str("  (taken in before)"),
        IngestStatus::Elsewhere => line.push_str("  (another process works on it)"),
        IngestStatus::Failed(why) => line.push_str(&format!("  failed: {why}")),
    }
    line
}

fn came_json(came: &IngestedMail) -> Json {
    let asks: Vec<_> = came
        .asks
        .iter()
        .map(|ask| json!({ "inbox": ask.short_id, "id": ask.id, "action": ask.action }))
        .collect();
    json!({
        "thread": came.thread,
        "subject": came.email.subject,
        "from": came.email.from,
        "classification": came.decision,
        "suspicion": came.suspicion,
        "asks": asks,
        "known": came.stands == IngestStatus::Known,
        "failed": match &came.stands { IngestStatus::Failed(why) => json!(why), _ => Json::Null },
    })
}

/// Maximum number of unread entries of a mailbox that are printed.
const SKIPPED_SHOWN: usize = 50;
