//! `archie mail time-machine`: prints how past email would be classified now.

use archie_agent::clock::seconds;
use archie_agent::{Exit, Terminal};
use archie_email_assistant::mailbox::{MailQuery, Mailboxes};
use serde_json::{Value as Json, json};

use super::time_machine::{ReclassifiedMail, time_machine};
use super::{TimeMachineArgs, title};
use crate::app::App;

pub(super) async fn handle_time_machine(
    args: &TimeMachineArgs,
    app: &App,
    mailboxes: &Mailboxes,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let which = MailQuery {
        since: Some(seconds().saturating_sub(args.days * 86_400) as i64),
        include_read: true,
    };
    let model = app.ready_model().await?;
    let again = time_machine(app, mailboxes, &args.source, &which, &model).await?;
    let changed = again.iter().filter(|again| again.is_changed()).count();
    if args.json {
        let mails: Vec<_> = again.iter().map(again_json).collect();
        terminal.json(&json!({ "changed": changed, "mails": mails }));
        return Ok(Exit::Done);
    }
    for again in &again {
        let then = again.then.map_or("(new)", |then| then.word());
        let mark = if again.is_changed() { "*" } else { " " };
        terminal.line(&format!(
            "{mark} {then:<8}→ {:<8}\"{}\"",
            again.now.word(),
            title(&again.email)
        ));
    }
    terminal.line(&format!(
        "{changed} of {} would be decided otherwise; nothing was kept or sent",
        again.len()
    ));
    Ok(Exit::Done)
}

fn again_json(again: &ReclassifiedMail) -> Json {
    json!({
        "subject": again.email.subject,
        "from": again.email.from,
        "then": again.then,
        "now": again.now,
        "changed": again.is_changed(),
        "reasoning": again.reasoning,
    })
}
