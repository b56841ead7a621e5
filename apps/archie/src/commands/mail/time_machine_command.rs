//! Mails of before, with today's memory.

use serde_json::{Value as Json, json};

use super::{TimeMachineArgs, title};
use crate::agents::email_assistant::mailbox::{Mailboxes, Which};
use crate::agents::email_assistant::time_machine::{Again, time_machine};
use crate::clock::seconds;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;

pub(super) async fn handle_time_machine(
    args: &TimeMachineArgs,
    home: &Home,
    mailboxes: &Mailboxes,
    say: &dyn Say,
) -> anyhow::Result<Exit> {
    let which = Which {
        since: Some(seconds().saturating_sub(args.days * 86_400) as i64),
        include_read: true,
    };
    let model = home.settings.model()?.to_owned();
    let again = time_machine(home, mailboxes, &args.source, &which, &model).await?;
    let changed = again.iter().filter(|again| again.is_changed()).count();
    if args.json {
        let mails: Vec<_> = again.iter().map(again_json).collect();
        say.json(&json!({ "changed": changed, "mails": mails }));
        return Ok(Exit::Done);
    }
    for again in &again {
        let then = again.then.map_or("(new)", |then| then.word());
        let mark = if again.is_changed() { "*" } else { " " };
        say.line(&format!(
            "{mark} {then:<8}→ {:<8}\"{}\"",
            again.now.word(),
            title(&again.email)
        ));
    }
    say.line(&format!(
        "{changed} of {} would be decided otherwise; nothing was kept or sent",
        again.len()
    ));
    Ok(Exit::Done)
}

fn again_json(again: &Again) -> Json {
    json!({
        "subject": again.email.subject,
        "from": again.email.from,
        "then": again.then,
        "now": again.now,
        "changed": again.is_changed(),
        "reasoning": again.reasoning,
    })
}
