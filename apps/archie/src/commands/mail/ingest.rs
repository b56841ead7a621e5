//! Turns the emails of a mailbox into threads: one per email, however often the mailbox is read.

use std::convert::Infallible;
use std::sync::Arc;

use archie_agent::clock::now;
use archie_agent::state_of;
use archie_email_assistant::NAME;
use archie_email_assistant::email::{Email, address, parse_gmail};
use archie_email_assistant::mailbox::{MailQuery, Mailbox, Mailboxes};
use archie_email_assistant::state::{Classification, MailState, MailStateUpdate, StateInput};
use serde_json::json;
use superstep::checkpoint::{Metadata, Status, ThreadQuery, ThreadRow};
use superstep::run::StreamMode;
use superstep::{AnyRunResult, AnyThread};
use superstep::{DriveError, Event, Outcome, Seq, ThreadId};
use superstep_agent::AgentEvent;

use super::title;
use crate::app::App;
use crate::cli::settings::{Engine, Store};
use crate::inbox;
use crate::retry_notes::RetryNotes;
use crate::running::{RunningMark, is_running_here};

/// What to ingest, and how.
#[derive(Debug, Clone, Default)]
pub struct Ingest {
    /// Mailbox in canonical form (see [`Mailboxes::canonical`]), stored in each thread.
    pub source: String,
    /// Model of new threads.
    pub model: String,
    /// Ingest only emails with this address in `To` or `Cc`.
    pub email: Option<String>,
    /// Emails to list.
    pub which: MailQuery,
    /// Start a new thread for emails whose thread has finished.
    pub rerun: bool,
    /// Include emails that the account itself sent or that its owner has answered.
    pub skip_filters: bool,
}

/// Result of ingesting one email.
#[derive(Debug, Clone)]
pub struct IngestedMail {
    /// The email.
    pub email: Email,
    /// Id of its thread.
    pub thread: String,
    /// What this ingest did with the thread.
    pub stands: IngestStatus,
    /// Result of triage; `None` if the thread has not got that far.
    pub decision: Option<Classification>,
    /// Why the email is suspicious; empty if it is not.
    pub suspicion: Vec<String>,
    /// Open interrupts of the thread.
    pub asks: Vec<Ask>,
}

/// An open interrupt of an email's thread, as the inbox shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Full id of the inbox item.
    pub id: String,
    /// Shortest unique prefix of the id.
    pub short_id: String,
    /// Name of the tool that the model wants to call, or the title of the question.
    pub action: String,
}

/// What an ingest did with an email's thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IngestStatus {
    /// It started or resumed the thread, which finished or paused.
    Worked,
    /// Nothing: the thread has finished, or is waiting for an answer.
    Known,
    /// Nothing: another process on this machine runs the thread.
    Elsewhere,
    /// The run failed for this reason; the next ingest resumes it.
    Failed(String),
}

impl Ingest {
    /// Ingests the emails one after the other, after recovering threads whose process died. Calls `tell` with each result.
    pub async fn run(
        &self,
        app: &App,
        mailboxes: &Mailboxes,
        tell: impl FnMut(&IngestedMail),
    ) -> anyhow::Result<Vec<IngestedMail>> {
        self.run_reporting(app, mailboxes, |_| {}, tell, &|_| {})
            .await
    }

    /// Ingests as [`Ingest::run`] does. Also calls `began` with what it works on, and `retried` with each line to print about a
    /// failed call of the model that is made again.
    pub async fn run_reporting(
        &self,
        app: &App,
        mailboxes: &Mailboxes,
        began: impl Fn(&str),
        mut tell: impl FnMut(&IngestedMail),
        retried: &(dyn Fn(&str) + Sync),
    ) -> anyhow::Result<Vec<IngestedMail>> {
        let mailbox = mailboxes.get(&self.source)?;
        let mut came = Vec::new();
        began("resuming what was interrupted");
        for one in self.recover(app, retried).await? {
            tell(&one);
            came.push(one);
        }
        let recovered: Vec<String> = came.iter().map(|came| came.thread.clone()).collect();
        began("reading the mailbox");
        let mails = self.mails(app, &*mailbox).await?;
        let count = mails.len();
        for (number, email) in (1..).zip(mails) {
            began(&format!("mail {number} of {count}: {}", title(&email)));
            // A recovered email is listed again, unless it was marked as read before the process died.
            if !recovered.is_empty() {
                let (id, _) = self.thread_of(app, &email).await?;
                if recovered.contains(&id) {
                    continue;
                }
            }
            let one = self.take(app, email, retried).await?;
            tell(&one);
            came.push(one);
        }
        Ok(came)
    }

    /// Recovers threads of this mailbox whose process died. The mailbox may no longer list their emails: a thread killed
    /// between marking its email as read and committing would otherwise stay `running`.
    async fn recover(
        &self,
        app: &App,
        retried: &(dyn Fn(&str) + Sync),
    ) -> anyhow::Result<Vec<IngestedMail>> {
        if app.settings.engine != Engine::Local {
            // The cluster recovers its threads itself.
            return Ok(Vec::new());
        }
        let query = ThreadQuery {
            graph: Some(NAME.to_owned()),
            statuses: vec![Status::Running],
            ..ThreadQuery::default()
        };
        let mut came = Vec::new();
        for row in app.rows(query, RECOVERED_MAX).await? {
            let thread = app.thread_of(&row)?;
            // A thread without a state was killed before its first commit; the mailbox still lists its email.
            let Ok(state) = state_of::<MailState>(&*thread).await else {
                continue;
            };
            // `archie mail tones` resumes its own forks.
            let is_ours = state.source == self.source && state.redraft.is_none();
            if !is_ours || !is_abandoned(app, &row) {
                continue;
            }
            let running = RunningMark::set(app, thread.id());
            let stands = drive(&*thread, thread.recover_or_resume(), retried).await;
            drop(running);
            let email = parse_gmail(&state.email_input);
            came.push(self.came(app, &thread, email, stands).await?);
        }
        Ok(came)
    }

    async fn mails(&self, app: &App, mailbox: &dyn Mailbox) -> anyhow::Result<Vec<Email>> {
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
            // Trust the mailbox about what its owner sent, not the sender that an email claims.
            let mut answered = mailbox.answered(&mails).await?;
            for email in &mails {
                // Keep emails that were answered from here: they have a thread, which may be run again.
                if answered.contains(&email.id) && is_taken_in(app, email).await? {
                    answered.remove(&email.id);
                }
            }
            mails.retain(|email| !answered.contains(&email.id));
        }
        Ok(mails)
    }

    async fn take(
        &self,
        app: &App,
        email: Email,
        retried: &(dyn Fn(&str) + Sync),
    ) -> anyhow::Result<IngestedMail> {
        let agent = app.agent(NAME)?;
        let (id, known) = self.thread_of(app, &email).await?;
        let title: String = email.subject.chars().take(80).collect();
        let about = Metadata::from([("title".to_owned(), json!(title))]);
        let thread = app.thread(agent, &id, about)?;
        // Check this before this process sets its own mark.
        let is_elsewhere = known == Some(Status::Running) && is_running_here(app, thread.id());
        let running = RunningMark::set(app, thread.id());
        let stands = match known {
            Some(Status::Idle) => IngestStatus::Known,
            Some(Status::Paused) if !thread.interrupts().await?.is_empty() => IngestStatus::Known,
            Some(_) if is_elsewhere => IngestStatus::Elsewhere,
            // Its process died, perhaps right after an answer, or the run failed and may succeed now.
            Some(_) => drive(&*thread, thread.recover_or_resume(), retried).await,
            None => {
                let input = StateInput {
                    email_input: email.to_input(),
                };
                let input = MailStateUpdate::from(input)
                    .source(self.source.clone())
                    .model_name(self.model.clone());
                let run = thread.start_or_recover(serde_json::to_value(input)?);
                drive(&*thread, run, retried).await
            }
        };
        drop(running);
        self.came(app, &thread, email, stands).await
    }

    async fn came(
        &self,
        app: &App,
        thread: &Arc<dyn AnyThread>,
        email: Email,
        stands: IngestStatus,
    ) -> anyhow::Result<IngestedMail> {
        let state: Option<MailState> = state_of(&**thread).await.ok();
        let id = thread.id();
        let decision = state
            .as_ref()
            .and_then(|state| state.classification_decision);
        Ok(IngestedMail {
            decision,
            suspicion: state.map(|state| state.suspicion).unwrap_or_default(),
            asks: asks(app, id).await?,
            email,
            thread: id.to_string(),
            stands,
        })
    }

    /// Returns the id of an email's thread, and its status if it exists. With `rerun`, skips finished threads.
    async fn thread_of(
        &self,
        app: &App,
        email: &Email,
    ) -> anyhow::Result<(String, Option<Status>)> {
        let mut rerun = 0;
        let is_by_message_id = is_known_by_message_id(app, email).await?;
        loop {
            let id = match is_by_message_id {
                true => email.thread_by_message_id(rerun),
                false => email.thread(rerun),
            };
            let glance = app.store().glance(&ThreadId::new(&id)?, None).await?;
            let status = glance.map(|glance| glance.status);
            // An unfinished thread is resumed, even with `rerun`.
            match (status, self.rerun) {
                (Some(Status::Idle), true) => rerun += 1,
                (status, _) => return Ok((id, status)),
            }
        }
    }
}

/// Returns whether an email has a thread.
async fn is_taken_in(app: &App, email: &Email) -> anyhow::Result<bool> {
    let id = match is_known_by_message_id(app, email).await? {
        true => email.thread_by_message_id(0),
        false => email.thread(0),
    };
    let glance = app.store().glance(&ThreadId::new(&id)?, None).await?;
    Ok(glance.is_some())
}

/// Returns whether an email's threads have ids made of the `Message-ID` alone, as versions without fingerprints used. A thread
/// with such an id may belong to another email with the same `Message-ID`, so this compares the stored email.
pub(super) async fn is_known_by_message_id(app: &App, email: &Email) -> anyhow::Result<bool> {
    let id = email.thread_by_message_id(0);
    let glance = app.store().glance(&ThreadId::new(&id)?, None).await?;
    if glance.is_none() {
        return Ok(email.fingerprint.is_empty());
    }
    let thread = app
        .agent(NAME)?
        .thread(&app.runtime, &id, Metadata::new())?;
    let stored = state_of::<MailState>(&*thread).await.ok();
    let stored = stored.filter(|state| !state.email_input.is_null());
    Ok(stored.is_none_or(|state| email.is_same(&parse_gmail(&state.email_input))))
}

/// Drives a run until it stops. Meanwhile, reports the failed attempts to call the model.
async fn drive(
    thread: &dyn AnyThread,
    run: impl Future<Output = Result<AnyRunResult, DriveError>>,
    retried: &(dyn Fn(&str) + Sync),
) -> IngestStatus {
    let before = thread.state(None).await.ok().flatten();
    let before = before.map_or(Seq(0), |state| state.seq);
    tokio::select! {
        rest = run => rest_of(rest),
        never = report_retries(thread, before, retried) => match never {},
    }
}

/// Reports failed attempts until it is dropped. Best effort: the events are live and may be lost.
async fn report_retries(
    thread: &dyn AnyThread,
    after: Seq,
    retried: &(dyn Fn(&str) + Sync),
) -> Infallible {
    let mut events = thread.events(after).only([StreamMode::Custom]);
    let mut retries = RetryNotes::default();
    while let Ok(event) = events.next().await {
        if let Event::Live(event) = event
            && let Ok(AgentEvent::Again {
                why,
                attempt,
                attempts_max,
            }) = event.payload.decode()
        {
            for line in retries.lines(&why, attempt, attempts_max) {
                retried(&line);
            }
        }
    }
    std::future::pending().await
}

fn rest_of(rest: Result<AnyRunResult, DriveError>) -> IngestStatus {
    match rest.map(|rest| rest.outcome) {
        Ok(Outcome::Finished | Outcome::Paused(_)) => IngestStatus::Worked,
        Ok(Outcome::Failed(failures)) => {
            let why = failures.first().map(|failure| failure.message.clone());
            IngestStatus::Failed(why.unwrap_or_default())
        }
        Ok(other) => IngestStatus::Failed(format!("it ended early ({other:?})")),
        Err(error) => IngestStatus::Failed(format!("{:#}", anyhow::Error::from(error))),
    }
}

/// Returns the open interrupts of a thread.
async fn asks(app: &App, thread: &ThreadId) -> anyhow::Result<Vec<Ask>> {
    let items = inbox::items_of(app, thread).await?;
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

/// Returns whether the process that ran a thread is dead, as far as this machine can tell.
fn is_abandoned(app: &App, row: &ThreadRow) -> bool {
    let is_old = now().0.saturating_sub(row.updated.0) > ABANDONED_MS;
    match app.settings.store {
        Store::Sqlite(_) => !is_running_here(app, &row.thread),
        // Another machine may run it, and its marks are not visible here.
        Store::Postgres(_) => is_old && !is_running_here(app, &row.thread),
    }
}

fn is_own(email: &Email) -> bool {
    !email.account.is_empty() && address(&email.from) == address(&email.account)
}

/// Maximum number of running threads that an ingest checks for recovery.
const RECOVERED_MAX: u32 = 1_000;
/// How long a thread of a shared store must be without a change before it counts as abandoned, in milliseconds: one hour.
const ABANDONED_MS: i64 = 3_600_000;
