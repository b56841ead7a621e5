//! `archie mail ingest`: ingests email, once or at an interval.

use std::sync::{Mutex, PoisonError};

use archie_agent::clock::seconds;
use archie_agent::{Exit, Terminal, Waiting};
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
    let progress = IngestProgress::new(terminal);
    let began = |what: &str| progress.begin(what);
    let tell = |came: &IngestedMail| {
        progress.end();
        if !args.json && is_news(came) {
            terminal.line(&line(came));
        }
    };
    let retried = |line: &str| progress.aside(line);
    let came = ingest
        .run_reporting(app, mailboxes, began, tell, &retried)
        .await;
    progress.end();
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

/// The line that says what is going on, and the messages above it.
struct IngestProgress<'a> {
    terminal: &'a dyn Terminal,
    /// What is going on, as long as it is shown.
    shown: Mutex<Option<(String, Waiting)>>,
}

impl<'a> IngestProgress<'a> {
    fn new(terminal: &'a dyn Terminal) -> Self {
        Self {
            terminal,
            shown: Mutex::default(),
        }
    }

    fn begin(&self, what: &str) {
        // Two spinners would overwrite each other.
        self.end();
        let shown = (what.to_owned(), self.terminal.waiting(what));
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
    }

    /// Removes the line. Returns what it said.
    fn end(&self) -> Option<String> {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.take().map(|(what, _)| what)
    }

    /// Prints a message, and the line again below it: the spinner would overwrite the message.
    fn aside(&self, text: &str) {
        let what = self.end();
        self.terminal.aside(text);
        if let Some(what) = what {
            self.begin(&what);
        }
    }
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
