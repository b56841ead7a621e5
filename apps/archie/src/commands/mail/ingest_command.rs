//! Takes mails in, once or again and again.

use serde_json::{Value as Json, json};

use super::timer::Timer;
use super::{IngestArgs, title};
use crate::agents::email_assistant::ingest::{Came, Ingest, Stands};
use crate::agents::email_assistant::mailbox::{Mailboxes, Which};
use crate::clock::seconds;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;

/// Takes mails in, once or again and again.
pub async fn handle_ingest(
    args: &IngestArgs,
    home: &Home,
    mailboxes: &Mailboxes,
    say: &dyn Say,
) -> anyhow::Result<Exit> {
    let Some(every) = args.every else {
        return ingest_once(args, home, mailboxes, say).await;
    };
    let source = Mailboxes::canonical(&args.source);
    loop {
        let timer = Timer::of(home, &source).await?;
        timer.tell(every, say);
        let wait = timer.wait(every);
        if !wait.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = tokio::signal::ctrl_c() => return Ok(Exit::Done),
            }
        }
        let went = tokio::select! {
            went = ingest_once(args, home, mailboxes, say) => went,
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Done),
        };
        if let Err(error) = &went {
            say.aside(&format!(
                "this time it failed: {error:#}; it is tried again"
            ));
        }
        timer.ran(home, &source, went.is_ok()).await?;
    }
}

async fn ingest_once(
    args: &IngestArgs,
    home: &Home,
    mailboxes: &Mailboxes,
    say: &dyn Say,
) -> anyhow::Result<Exit> {
    let since = args
        .minutes_since
        .map(|minutes| (seconds().saturating_sub(minutes * 60)) as i64);
    let ingest = Ingest {
        source: Mailboxes::canonical(&args.source),
        model: home.settings.model()?.to_owned(),
        email: args.email.clone(),
        which: Which {
            since,
            include_read: args.include_read,
        },
        rerun: args.rerun,
        skip_filters: args.skip_filters,
    };
    // Again and again, what is known is no news.
    let is_news = |came: &Came| {
        let is_old = matches!(came.stands, Stands::Known | Stands::Elsewhere);
        args.every.is_none() || !is_old
    };
    let came = ingest
        .run(home, mailboxes, |came| {
            if !args.json && is_news(came) {
                say.line(&line(came));
            }
        })
        .await?;
    let skipped = mailboxes.get(&ingest.source)?.skipped();
    for skipped in skipped.iter().take(SKIPPED_SHOWN) {
        say.aside(&format!("not read: {skipped}"));
    }
    if let Some(more @ 1..) = skipped.len().checked_sub(SKIPPED_SHOWN) {
        say.aside(&format!("not read: {more} more"));
    }
    if args.json {
        say.json(
            &came
                .iter()
                .filter(|came| is_news(came))
                .map(came_json)
                .collect(),
        );
    } else if came.is_empty() && args.every.is_none() {
        say.line("no new mail");
    }
    let failed = came
        .iter()
        .filter(|came| matches!(came.stands, Stands::Failed(_)))
        .count();
    if failed > 0 {
        say.aside(&format!(
            "{failed} could not be worked on; run it again to resume them"
        ));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

fn line(came: &Came) -> String {
    let decision = came.decision.map_or("?", |decision| decision.word());
    let mut line = format!("{decision:<8}\"{}\"", title(&came.email));
    for ask in &came.asks {
        let action = match ask.action.starts_with("Email Assistant") {
            true => String::new(),
            false => format!(" {}", ask.action),
        };
        line.push_str(&format!(" → inbox {}{action}", ask.short_id));
    }
    match &came.stands {
        Stands::Worked => {}
        Stands::Known => line.push_str("  (taken in before)"),
        Stands::Elsewhere => line.push_str("  (another process works on it)"),
        Stands::Failed(why) => line.push_str(&format!("  failed: {why}")),
    }
    line
}

fn came_json(came: &Came) -> Json {
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
        "asks": asks,
        "known": came.stands == Stands::Known,
        "failed": match &came.stands { Stands::Failed(why) => json!(why), _ => Json::Null },
    })
}

/// How many mails that could not be read are named.
const SKIPPED_SHOWN: usize = 50;
