//! From a mailbox to threads: one for each mail, however often it is looked at.

use std::sync::Arc;

use serde_json::json;
use superstep::checkpoint::{Metadata, Status, ThreadQuery, ThreadRow};
use superstep::{Outcome, ThreadId};

use super::NAME;
use super::email::{Email, address, parse_gmail};
use super::mailbox::{Mailbox, Mailboxes, Which};
use super::state::{Classification, MailState, MailStateUpdate};
use crate::agents::{AnyThread, state_of};
use crate::cli::settings::{Engine, Store};
use crate::clock::now;
use crate::home::Home;
use crate::inbox;
use crate::running::{RunningMark, is_running_here};

/// What to take in.
#[derive(Debug, Clone, Default)]
pub struct Ingest {
    /// Where from, as the thread keeps it.
    pub source: String,
    /// The model of new threads.
    pub model: String,
    /// Only mails to this address.
    pub email: Option<String>,
    /// Which.
    pub which: Which,
    /// Begin anew with mails that have a thread.
    pub rerun: bool,
    /// Also mails that are from the account itself, or that somebody has answered.
    pub skip_filters: bool,
}

/// What became of a mail.
#[derive(Debug, Clone)]
pub struct Came {
    /// The mail.
    pub email: Email,
    /// Its thread.
    pub thread: String,
    /// How it stands.
    pub stands: Stands,
    /// What it was taken for.
    pub decision: Option<Classification>,
    /// What it asks.
    pub asks: Vec<Ask>,
}

/// What a mail's thread asks, as the inbox names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The item's id.
    pub id: String,
    /// As much of it as tells it apart.
    pub short_id: String,
    /// What the model wants to call.
    pub action: String,
}

/// How a mail stands after it was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stands {
    /// It was worked on now.
    Worked,
    /// It had been taken in before.
    Known,
    /// Another process of this machine works on it.
    Elsewhere,
    /// It failed; the next ingest resumes it.
    Failed(String),
}

impl Ingest {
    /// Takes in every mail, one after the other.
    pub async fn run(
        &self,
        home: &Home,
        mailboxes: &Mailboxes,
        mut tell: impl FnMut(&Came),
    ) -> anyhow::Result<Vec<Came>> {
        let mailbox = mailboxes.get(&self.source)?;
        let mut came = Vec::new();
        for one in self.recover(home).await? {
            tell(&one);
            came.push(one);
        }
        let recovered: Vec<String> = came.iter().map(|came| came.thread.clone()).collect();
        for email in self.mails(home, &*mailbox).await? {
            // What was recovered is listed too, unless it was marked as read before its process died.
            if !recovered.is_empty() {
                let (id, _) = self.thread_of(home, &email).await?;
                if recovered.contains(&id) {
                    continue;
                }
            }
            let one = self.take(home, email).await?;
            tell(&one);
            came.push(one);
        }
        Ok(came)
    }

    /// Recovers threads of this mailbox whose process died. The mailbox may list their mails no more: one that was killed
    /// between marking its mail as read and committing that would otherwise stay `running`.
    async fn recover(&self, home: &Home) -> anyhow::Result<Vec<Came>> {
        if home.settings.engine != Engine::Local {
            // The cluster recovers its threads itself.
            return Ok(Vec::new());
        }
        let query = ThreadQuery {
            graph: Some(NAME.to_owned()),
            status: Some(Status::Running),
            ..ThreadQuery::default()
        };
        let mut came = Vec::new();
        for row in home.rows(query, RECOVERED_MAX).await? {
            let thread = home.thread_of(&row)?;
            // One without a state was killed before anything happened; its mail is still listed.
            let Ok(state) = state_of::<MailState>(&*thread).await else {
                continue;
            };
            // A copy for another tone is resumed by who wants to see it.
            let is_ours = state.source == self.source && state.redraft.is_none();
            if !is_ours || !is_abandoned(home, &row) {
                continue;
            }
            let running = RunningMark::set(home, &thread.id());
            let stands = rest_of(thread.resume().await.map_err(Into::into));
            drop(running);
            let email = parse_gmail(&state.email_input);
            came.push(self.came(home, &thread, email, stands).await?);
        }
        Ok(came)
    }

    async fn mails(&self, home: &Home, mailbox: &dyn Mailbox) -> anyhow::Result<Vec<Email>> {
        let mut mails = mailbox.list(&self.which).await?;
        if let Some(wanted) = &self.email {
            let wanted = address(wanted);
            mails.retain(|email| {
                email
                    .to
                    .iter()
                    .chain(&email.cc)
                    .any(|who| address(who) == wanted)
            });
        }
        if !self.skip_filters {
            mails.retain(|email| !is_own(email));
            // The mailbox knows what its owner sent. Who a mail says it is from, anybody can write.
            let mut answered = mailbox.answered(&mails).await?;
            for email in &mails {
                // What was answered from here has its thread, which may be run again.
                if answered.contains(&email.id) && is_taken_in(home, email).await? {
                    answered.remove(&email.id);
                }
            }
            mails.retain(|email| !answered.contains(&email.id));
        }
        Ok(mails)
    }

    async fn take(&self, home: &Home, email: Email) -> anyhow::Result<Came> {
        let agent = home.agent(NAME)?;
        let (id, known) = self.thread_of(home, &email).await?;
        let title: String = email.subject.chars().take(80).collect();
        let about = Metadata::from([("title".to_owned(), json!(title))]);
        let thread = agent.thread(&home.runtime, &id, about)?;
        // Asked before this process sets a mark of its own.
        let is_elsewhere = known == Some(Status::Running) && is_running_here(home, &id);
        let running = RunningMark::set(home, &id);
        let stands = match known {
            Some(Status::Idle) => Stands::Known,
            Some(Status::Paused) if !thread.questions().await?.is_empty() => Stands::Known,
            Some(_) if is_elsewhere => Stands::Elsewhere,
            // Its process died, perhaps right behind an answer, or something failed that may be mended.
            Some(_) => rest_of(thread.resume().await.map_err(Into::into)),
            None => {
                let input = MailStateUpdate::default()
                    .email_input(email.to_input())
                    .source(self.source.clone())
                    .model_name(self.model.clone());
                rest_of(thread.start(serde_json::to_value(input)?).await)
            }
        };
        drop(running);
        self.came(home, &thread, email, stands).await
    }

    async fn came(
        &self,
        home: &Home,
        thread: &Arc<dyn AnyThread>,
        email: Email,
        stands: Stands,
    ) -> anyhow::Result<Came> {
        let state: Option<MailState> = state_of(&**thread).await.ok();
        let id = thread.id();
        Ok(Came {
            decision: state.and_then(|state| state.classification_decision),
            asks: asks(home, &id).await?,
            email,
            thread: id,
            stands,
        })
    }

    /// The thread of a mail and how it stands, if there is one.
    async fn thread_of(
        &self,
        home: &Home,
        email: &Email,
    ) -> anyhow::Result<(String, Option<Status>)> {
        let mut rerun = 0;
        let is_by_message_id = is_known_by_message_id(home, email).await?;
        loop {
            let id = match is_by_message_id {
                true => email.thread_by_message_id(rerun),
                false => email.thread(rerun),
            };
            let glance = home.store().glance(&ThreadId::new(&id)?, None).await?;
            let status = glance.map(|glance| glance.status);
            // One that was not finished is gone on with, also when it shall be begun anew.
            match (status, self.rerun) {
                (Some(Status::Idle), true) => rerun += 1,
                (status, _) => return Ok((id, status)),
            }
        }
    }
}

/// Whether a mail has a thread.
async fn is_taken_in(home: &Home, email: &Email) -> anyhow::Result<bool> {
    let id = match is_known_by_message_id(home, email).await? {
        true => email.thread_by_message_id(0),
        false => email.thread(0),
    };
    let glance = home.store().glance(&ThreadId::new(&id)?, None).await?;
    Ok(glance.is_some())
}

/// Whether a mail was taken in by a version that knew mails by their `Message-ID` alone. A thread under that id may be another
/// mail's that claimed the same, so what it holds is looked at.
pub(super) async fn is_known_by_message_id(home: &Home, email: &Email) -> anyhow::Result<bool> {
    let id = email.thread_by_message_id(0);
    let glance = home.store().glance(&ThreadId::new(&id)?, None).await?;
    if glance.is_none() {
        return Ok(email.fingerprint.is_empty());
    }
    let thread = home
        .agent(NAME)?
        .thread(&home.runtime, &id, Metadata::new())?;
    let stored = state_of::<MailState>(&*thread).await.ok();
    let stored = stored.filter(|state| !state.email_input.is_null());
    Ok(stored.is_none_or(|state| email.is_same(&parse_gmail(&state.email_input))))
}

fn rest_of(rest: anyhow::Result<crate::agents::Rest>) -> Stands {
    match rest.map(|rest| rest.outcome) {
        Ok(Outcome::Finished | Outcome::Paused(_)) => Stands::Worked,
        Ok(Outcome::Failed(failures)) => {
            let why = failures.first().map(|failure| failure.message.clone());
            Stands::Failed(why.unwrap_or_default())
        }
        Ok(other) => Stands::Failed(format!("it ended early ({other:?})")),
        Err(error) => Stands::Failed(format!("{error:#}")),
    }
}

/// Lists what a thread asks.
async fn asks(home: &Home, thread: &str) -> anyhow::Result<Vec<Ask>> {
    let items = inbox::items_of(home, thread).await?;
    let asks = items.into_iter().map(|item| {
        let action = &item.asked.request["action_request"]["action"];
        Ask {
            id: item.id(),
            action: action.as_str().unwrap_or_default().to_owned(),
            short_id: item.short_id,
        }
    });
    Ok(asks.collect())
}

/// Whether the process that ran a thread is dead, as far as this machine can tell.
fn is_abandoned(home: &Home, row: &ThreadRow) -> bool {
    let is_old = now().0.saturating_sub(row.updated.0) > ABANDONED_MS;
    match home.settings.store {
        Store::Sqlite(_) => !is_running_here(home, &row.thread.to_string()),
        // Another machine may run it, and its marks are not seen here.
        Store::Postgres(_) => is_old && !is_running_here(home, &row.thread.to_string()),
    }
}

fn is_own(email: &Email) -> bool {
    !email.account.is_empty() && address(&email.from) == address(&email.account)
}

/// How many threads an ingest recovers.
const RECOVERED_MAX: u32 = 1_000;
/// How long a thread of a shared store has to be running before it counts as abandoned: an hour.
const ABANDONED_MS: i64 = 3_600_000;
