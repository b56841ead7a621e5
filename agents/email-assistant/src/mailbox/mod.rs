//! Mailboxes behind one trait: local files, Gmail, IMAP with SMTP.
//!
//! A mailbox says honestly what it knows of a mail whose answer was lost: that it went out, that it surely did not, or that
//! nobody can tell. What is done about it is not decided here.

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

/// Where mails come from and go out.
pub trait Mailbox: Send + Sync {
    /// The address of its owner; empty if it is not known.
    fn account(&self) -> &str;

    /// The mails that are in it, oldest first.
    fn list<'a>(&'a self, which: &'a MailQuery) -> BoxFuture<'a, anyhow::Result<Vec<Email>>>;

    /// The ids of those among these mails that the owner has answered, as the mailbox itself knows it: by what lies among the
    /// sent mails, or by a mark of the server. Nothing in a mail that came in counts for it.
    fn answered<'a>(
        &'a self,
        mails: &'a [Email],
    ) -> BoxFuture<'a, anyhow::Result<BTreeSet<String>>> {
        let _ = mails;
        Box::pin(async { Ok(BTreeSet::new()) })
    }

    /// A mail as it came, byte for byte.
    fn raw<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<Vec<u8>>>;

    /// Marks a mail as read. Doing it twice is doing it once.
    fn mark_as_read<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<()>>;

    /// Puts a mail where it can be sent from once and never twice, and says where; none where there is no such place.
    /// Nothing goes out by this.
    fn prepare<'a>(&'a self, mail: &'a Outgoing) -> BoxFuture<'a, anyhow::Result<Option<String>>> {
        let _ = mail;
        Box::pin(async { Ok(None) })
    }

    /// Sends a mail, from where it was prepared.
    fn send<'a>(
        &'a self,
        mail: &'a Outgoing,
        prepared: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Sent, NotSent>>;

    /// Looks for a mail that may have been sent.
    fn look<'a>(
        &'a self,
        mail: &'a Outgoing,
        prepared: Option<&'a str>,
    ) -> BoxFuture<'a, anyhow::Result<SentStatus>>;

    /// The calendar of its owner.
    fn calendar(&self) -> &dyn Calendar;

    /// What was not read when mails were listed last, such as links and mails over the limit, each with the reason.
    fn skipped(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Which mails.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailQuery {
    /// Only those sent after this, in seconds.
    pub since: Option<i64>,
    /// Those that were read, too.
    pub include_read: bool,
}

impl MailQuery {
    /// Whether a mail was sent too early to be wanted. One without a date was not.
    pub fn is_too_old(&self, email: &Email) -> bool {
        let sent_at = mime::sent_at(email);
        self.since
            .zip(sent_at)
            .is_some_and(|(since, at)| at < since)
    }
}

/// A mail that is to go out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// Its own `Message-ID`, without brackets. Made of the key of the call, so it is the same for every attempt.
    pub message_id: String,
    /// Where to.
    pub envelope: Envelope,
    /// The words.
    pub text: String,
    /// What is attached.
    pub carried: Vec<Attachment>,
}

/// A mail that went out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its `Message-ID`.
    pub message_id: String,
}

/// What is known of a mail whose answer was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentStatus {
    /// It went out.
    Sent(Sent),
    /// It surely did not.
    NotSent,
    /// Nobody can tell, for this reason.
    Unknown(String),
}

/// Why a mail did not go out, or may not have.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    /// It surely did not.
    #[error("the mail was not sent: {0:#}")]
    Refused(anyhow::Error),
    /// It may have.
    #[error("it is not known whether the mail was sent: {0:#}")]
    Unknown(anyhow::Error),
}

/// The mailboxes that graphs ask for by where they are, opened once.
pub struct Mailboxes {
    open: Mutex<BTreeMap<String, Arc<dyn Mailbox>>>,
    home: PathBuf,
}

impl Mailboxes {
    /// Credentials, the local outbox and local calendars are in this folder.
    pub fn new(home: &Path) -> Self {
        Self {
            open: Mutex::default(),
            home: home.join("mail"),
        }
    }

    /// Answers under this name with this mailbox.
    pub fn put(&self, source: &str, mailbox: Arc<dyn Mailbox>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(source.to_owned(), mailbox);
    }

    /// The mailbox that is there. None is one that only has an outbox.
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

    /// The form of a source by which state and threads know it: the same mailbox, the same words.
    pub fn canonical(source: &str) -> String {
        if source.is_empty() || source.contains("://") || source.starts_with("gmail:") {
            return source.to_owned();
        }
        // It may be away for a while, and is the same mailbox when it is back.
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

/// Writes a file of our own, whole or not at all, for its owner only.
pub fn write_private(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    private_file::write(path, bytes)
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Reads a file of credentials that only its owner may read, or says what to do.
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
