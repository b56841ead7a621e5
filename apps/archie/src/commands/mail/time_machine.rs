//! Triage again: mails of before against the memory of today. Nothing is started, kept or sent.

use archie_agent::state_of;
use archie_email_assistant::email::Email;
use archie_email_assistant::mailbox::{MailQuery, Mailboxes};
use archie_email_assistant::state::{Classification, MailState};
use archie_email_assistant::{NAME, classify};

use super::ingest::is_known_by_message_id;
use crate::app::App;

/// A mail, then and now.
#[derive(Debug, Clone)]
pub struct ReclassifiedMail {
    /// The mail.
    pub email: Email,
    /// What it was taken for then; none if it was never taken in.
    pub then: Option<Classification>,
    /// What it would be taken for now.
    pub now: Classification,
    /// Why, in the model's words.
    pub reasoning: String,
}

impl ReclassifiedMail {
    /// Whether today's memory decides otherwise.
    pub fn is_changed(&self) -> bool {
        self.then.is_some_and(|then| then != self.now)
    }
}

/// Sorts the mails of a mailbox with today's memory.
pub async fn time_machine(
    app: &App,
    mailboxes: &Mailboxes,
    source: &str,
    which: &MailQuery,
    model: &str,
) -> anyhow::Result<Vec<ReclassifiedMail>> {
    let (deps, model) = (app.deps(), app.models.get(model)?);
    let mut again = Vec::new();
    for email in mailboxes.get(source)?.list(which).await? {
        let classified = classify(&email, &deps, &*model).await?;
        again.push(ReclassifiedMail {
            then: before(app, &email).await?,
            now: classified.classification,
            reasoning: classified.reasoning,
            email,
        });
    }
    Ok(again)
}

/// What a mail was taken for the last time.
async fn before(app: &App, email: &Email) -> anyhow::Result<Option<Classification>> {
    let agent = app.agent(NAME)?;
    let mut then = None;
    let is_by_message_id = is_known_by_message_id(app, email).await?;
    for rerun in 0.. {
        let id = match is_by_message_id {
            true => email.thread_by_message_id(rerun),
            false => email.thread(rerun),
        };
        let glance = app
            .store()
            .glance(&superstep::ThreadId::new(&id)?, None)
            .await?;
        if glance.is_none() {
            break;
        }
        let thread = agent.thread(&app.runtime, &id, Default::default())?;
        let state: MailState = state_of(&*thread).await?;
        then = state.classification_decision.or(then);
    }
    Ok(then)
}
