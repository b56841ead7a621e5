//! Mailboxes behind one trait: local files, Gmail, and IMAP with SMTP.
//!
//! When the result of a send is lost, a mailbox reports exactly what it knows: that the email was sent, that it was not, or
//! that it cannot tell. The caller decides what to do about it.

mod gmail;
mod imap;
mod local;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use archie_agent::private_file;
use archie_agent::user_folder::{exists_named, resolve_named};
use serde::{Deserialize, Serialize};
use superstep::checkpoint::BoxFuture;

use super::calendar::Calendar;
use super::email::Email;
use super::mime::{self, Attachment};
use super::policy::Envelope;

pub use gmail::Gmail;
pub use imap::{Access, Imap, ImapAddress};
pub use local::LocalMailbox;

/// A source of incoming email that can also send.
pub trait Mailbox: Send + Sync {
    /// Returns the owner's address; empty if unknown.
    fn account(&self) -> &str;

    /// Lists the emails in the inbox, oldest first.
    fn list<'a>(&'a self, which: &'a MailQuery) -> BoxFuture<'a, anyhow::Result<Vec<Email>>>;

    /// Returns the ids of the emails that the owner has answered, according to the mailbox itself: its sent emails, or a flag
    /// of the server. The content of incoming email has no influence. The set may contain ids that are not in `mails`. Default:
    /// empty.
    fn answered<'a>(
        &'a self,
        mails: &'a [Email],
    ) -> BoxFuture<'a, anyhow::Result<BTreeSet<String>>> {
        let _ = mails;
        Box::pin(async { Ok(BTreeSet::new()) })
    }

    /// Returns an email byte for byte.
    fn raw<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<Vec<u8>>>;

    /// Marks an email as read. Idempotent.
    fn mark_as_read<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<()>>;

    /// Stores an email so that it can be sent at most once, and returns its id there; `None` if the mailbox does not support
    /// this. Sends nothing.
    fn prepare<'a>(&'a self, mail: &'a Outgoing) -> BoxFuture<'a, anyhow::Result<Option<String>>> {
        let _ = mail;
        Box::pin(async { Ok(None) })
    }

    /// Sends an email. `prepared` is what [`Self::prepare`] returned.
    fn send<'a>(
        &'a self,
        mail: &'a Outgoing,
        prepared: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Sent, NotSent>>;

    /// Looks up an email that may have been sent. `prepared` is what [`Self::prepare`] returned.
    fn look<'a>(
        &'a self,
        mail: &'a Outgoing,
        prepared: Option<&'a str>,
    ) -> BoxFuture<'a, anyhow::Result<SentStatus>>;

    /// Returns the owner's calendar.
    fn calendar(&self) -> &dyn Calendar;

    /// Returns what the last [`Self::list`] skipped, such as links and emails over the size limit, each with the reason.
    fn skipped(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Selects emails to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailQuery {
    /// Skips emails sent before this time, in Unix seconds; `None` for no limit.
    pub since: Option<i64>,
    /// Whether to include emails already marked as read.
    pub include_read: bool,
}

impl MailQuery {
    /// Returns whether an email was sent before `since`. An email without a date never was.
    pub fn is_too_old(&self, email: &Email) -> bool {
        let sent_at = mime::sent_at(email);
        self.since
            .zip(sent_at)
            .is_some_and(|(since, at)| at < since)
    }
}

/// An email to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// `Message-ID` without angle brackets, derived from the call's idempotency key, so it is the same in every attempt.
    pub message_id: String,
    /// Sender, recipients and headers.
    pub envelope: Envelope,
    /// Body, in plain text.
    pub text: String,
    /// Attachments with their content.
    pub carried: Vec<Attachment>,
}

/// A sent email.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// `Message-ID` without angle brackets.
    pub message_id: String,
}

/// What a mailbox knows about an email whose send result was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentStatus {
    /// The email was sent.
    Sent(Sent),
    /// The email was not sent.
    NotSent,
    /// The mailbox cannot tell, for this reason.
    Unknown(String),
}

/// Why an email was not sent, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    /// The email was not sent.
    #[error("the mail was not sent: {0:#}")]
    Refused(anyhow::Error),
    /// The email may have been sent.
    #[error("it is not known whether the mail was sent: {0:#}")]
    Unknown(anyhow::Error),
}

/// Open mailboxes by source; each is opened once.
pub struct Mailboxes {
    open: Mutex<BTreeMap<String, Arc<dyn Mailbox>>>,
    home: PathBuf,
}

impl Mailboxes {
    /// Keeps credentials, the local outbox and the local calendar in the folder `home/mail`.
    pub fn new(home: &Path) -> Self {
        Self {
            open: Mutex::default(),
            home: home.join("mail"),
        }
    }

    /// Registers a mailbox for `source`, replacing an earlier one.
    pub fn put(&self, source: &str, mailbox: Arc<dyn Mailbox>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(source.to_owned(), mailbox);
    }

    /// Returns the mailbox of `source`, opening it if necessary. An empty source is a mailbox that only has an outbox.
    pub fn get(&self, source: &str) -> anyhow::Result<Arc<dyn Mailbox>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mailbox) = open.get(source) {
            return Ok(mailbox.clone());
        }
        let mailbox = self.find(source)?;
        open.insert(source.to_owned(), mailbox.clone());
        Ok(mailbox)
    }

    fn find(&self, source: &str) -> anyhow::Result<Arc<dyn Mailbox>> {
        if let Some(account) = source.strip_prefix("gmail:") {
            return Ok(Arc::new(Gmail::open(account, &self.home)?));
        }
        if source.starts_with("imap://") || source.starts_with("imaps://") {
            return Ok(Arc::new(Imap::open(source, &self.home)?));
        }
        if source.is_empty() {
            return Ok(Arc::new(LocalMailbox::outbox_only(&self.home)));
        }
        let path = Path::new(source);
        if !exists_named(path) {
            bail!(
                "`{source}` is not a mailbox: give the path of a Maildir or an mbox file, gmail:ACCOUNT or imap://USER@HOST"
            );
        }
        let path = resolve_named(path).with_context(|| format!("{source} cannot be opened"))?;
        Ok(Arc::new(LocalMailbox::open(&path)))
    }

    /// Returns the form of a source that states store: existing paths resolved, everything else unchanged.
    pub fn canonical(source: &str) -> String {
        if source.is_empty() || source.contains("://") || source.starts_with("gmail:") {
            return source.to_owned();
        }
        // A path may be missing for a while, for instance unmounted, and is the same mailbox when it returns.
        let known = resolve_named(Path::new(source));
        known.map_or_else(|_| source.to_owned(), |path| path.display().to_string())
    }
}

impl std::fmt::Debug for Mailboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailboxes")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// Writes a file atomically, readable by its owner only.
pub fn write_private(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    private_file::write(path, bytes)
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Reads a credentials file, which must be readable by its owner only. `what_to_do` completes the error if there is no file.
pub(super) fn credentials<T: serde::de::DeserializeOwned>(
    path: &Path,
    what_to_do: &str,
) -> anyhow::Result<T> {
    let about = || {
        format!(
            "there are no credentials in {}; {what_to_do}",
            path.display()
        )
    };
    let Some(bytes) = private_file::read_secret(path).with_context(about)? else {
        bail!("others may read {}; run `chmod 600` on it", path.display());
    };
    serde_json::from_slice(&bytes).with_context(|| format!("{} cannot be read", path.display()))
}
