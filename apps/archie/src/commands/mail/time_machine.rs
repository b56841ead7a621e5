//! Classifies past email again with the current memory. Starts, stores and sends nothing.

use archie_agent::state_of;
use archie_email_assistant::email::Email;
use archie_email_assistant::mailbox::{MailQuery, Mailboxes};
use archie_email_assistant::state::{Classification, MailState};
use archie_email_assistant::{NAME, classify};

use super::ingest::is_known_by_message_id;
use crate::app::App;

/// An email with its earlier and its current classification.
#[derive(Debug, Clone)]
pub struct ReclassifiedMail {
    /// The email.
    pub email: Email,
    /// Latest stored classification; `None` if the email was never triaged.
    pub then: Option<Classification>,
    /// Classification with the current memory.
    pub now: Classification,
    /// Reason for the current classification: the model's, in its own words, or that of the rule that decided.
    pub reasoning: String,
}

impl ReclassifiedMail {
    /// Returns whether the current memory leads to another classification.
    pub fn is_changed(&self) -> bool {
        self.then.is_some_and(|then| then != self.now)
    }
}

/// Classifies the emails of a mailbox with the current memory.
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
            now: classified.form.classification,
            reasoning: classified.form.reasoning,
            email,
        });
    }
    Ok(again)
}

/// Returns the latest stored classification of an email, over all its reruns.
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
