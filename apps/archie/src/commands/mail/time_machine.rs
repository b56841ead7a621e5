//! Triage again: mails of before against the memory of today. Nothing is started, kept or sent.

use std::sync::Arc;

use superstep::store::Store;
use superstep_llm::structured;

use super::NAME;
use super::email::Email;
use super::ingest::is_known_by_message_id;
use super::mailbox::{Mailboxes, Which};
use super::prompts::Prompts;
use super::state::{Classification, MailState};
use super::triage::{RouterSchema, router_request};
use crate::agents::state_of;
use crate::home::Home;
use crate::prompts::Texts;

/// A mail, then and now.
#[derive(Debug, Clone)]
pub struct Again {
    /// The mail.
    pub email: Email,
    /// What it was taken for then; none if it was never taken in.
    pub then: Option<Classification>,
    /// What it would be taken for now.
    pub now: Classification,
    /// Why, in the model's words.
    pub reasoning: String,
}

impl Again {
    /// Whether today's memory decides otherwise.
    pub fn is_changed(&self) -> bool {
        self.then.is_some_and(|then| then != self.now)
    }
}

/// Sorts the mails of a mailbox with today's memory.
pub async fn time_machine(
    home: &Home,
    mailboxes: &Mailboxes,
    source: &str,
    which: &Which,
    model: &str,
) -> anyhow::Result<Vec<Again>> {
    let prompts = Prompts::of(NAME, &home.settings)?;
    let model = home.models.get(model)?;
    let store: &Arc<dyn Store> = &home.memory;
    let mut again = Vec::new();
    for email in mailboxes.get(source)?.list(which).await? {
        let request = router_request(&email, &prompts, store, &*model).await;
        let (request, ..) = request.map_err(|error| anyhow::anyhow!("{error}"))?;
        let answer = structured::ask(&*model, request, RouterSchema::otherwise).await?;
        again.push(Again {
            then: before(home, &email).await?,
            now: answer.value.classification,
            reasoning: answer.value.reasoning,
            email,
        });
    }
    Ok(again)
}

/// What a mail was taken for the last time.
async fn before(home: &Home, email: &Email) -> anyhow::Result<Option<Classification>> {
    let agent = home.agent(NAME)?;
    let mut then = None;
    let is_by_message_id = is_known_by_message_id(home, email).await?;
    for rerun in 0.. {
        let id = match is_by_message_id {
            true => email.thread_by_message_id(rerun),
            false => email.thread(rerun),
        };
        let glance = home
            .store()
            .glance(&superstep::ThreadId::new(&id)?, None)
            .await?;
        if glance.is_none() {
            break;
        }
        let thread = agent.thread(&home.runtime, &id, Default::default())?;
        let state: MailState = state_of(&*thread).await?;
        then = state.classification_decision.or(then);
    }
    Ok(then)
}
