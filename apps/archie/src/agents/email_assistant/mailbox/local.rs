//! A Maildir or an mbox file on this machine, with an outbox of one file for each mail beside it.
//!
//! The outbox is the receiver: a mail is there whole or not at all, under the name of its `Message-ID`, and a second one of the
//! same name is dropped. What takes it from there to the world is up to its owner.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use sha2::{Digest, Sha256};

use super::{Found, Mailbox, NotSent, Outgoing, Sent, Which};
use crate::agents::BoxFuture;
use crate::agents::email_assistant::calendar::{Calendar, Ics};
use crate::agents::email_assistant::email::{Email, address};
use crate::agents::email_assistant::mime;
use crate::private;

/// Mails in files.
#[derive(Debug)]
pub struct Local {
    /// None if there is only an outbox.
    mails: Option<PathBuf>,
    outbox: PathBuf,
    account: String,
    calendar: Ics,
}

impl Local {
    /// A Maildir, or an mbox file. Its outbox, calendar and list of what was read are beside it.
    pub fn open(path: &Path) -> Self {
        let beside = |what: &str| PathBuf::from(format!("{}.{what}", path.display()));
        let account = fs::read_to_string(beside("account")).unwrap_or_default();
        Self {
            mails: Some(path.to_owned()),
            outbox: beside("outbox"),
            account: address(&account),
            calendar: Ics::new(&beside("calendar")),
        }
    }

    /// No mails, only a place for those that go out.
    pub fn outbox_only(home: &Path) -> Self {
        Self {
            mails: None,
            outbox: home.join("outbox"),
            account: String::new(),
            calendar: Ics::new(&home.join("calendar")),
        }
    }

    /// Where mails go.
    pub fn outbox(&self) -> &Path {
        &self.outbox
    }

    fn mails(&self) -> anyhow::Result<&Path> {
        self.mails
            .as_deref()
            .context("this mailbox only has an outbox")
    }

    fn is_maildir(path: &Path) -> bool {
        path.join("cur").is_dir() || path.join("new").is_dir()
    }

    /// Every mail with its id, its bytes and whether it was read.
    fn all(&self) -> anyhow::Result<Vec<(String, Vec<u8>, bool)>> {
        let path = self.mails()?;
        match Self::is_maildir(path) {
            true => maildir(path),
            false => self.mbox(path),
        }
    }

    fn mbox(&self, path: &Path) -> anyhow::Result<Vec<(String, Vec<u8>, bool)>> {
        let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let seen = self.seen()?;
        let seen: BTreeSet<&str> = seen.lines().collect();
        // What older versions wrote down was the Message-ID alone: of several mails that claim it, the first one was meant.
        let mut claimed = BTreeSet::new();
        let mails = split_mbox(&bytes).into_iter().map(|bytes| {
            let (message_id, id) = mbox_id(&bytes);
            let is_first = claimed.insert(message_id.clone());
            let read =
                seen.contains(id.as_str()) || (is_first && seen.contains(message_id.as_str()));
            (id, bytes, read)
        });
        Ok(mails.collect())
    }

    /// An mbox file is written by others at the same time, so what was read is kept beside it.
    fn seen(&self) -> anyhow::Result<String> {
        match fs::read_to_string(self.seen_path()?) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn seen_path(&self) -> anyhow::Result<PathBuf> {
        Ok(PathBuf::from(format!("{}.seen", self.mails()?.display())))
    }

    fn list_now(&self, which: &Which) -> anyhow::Result<Vec<Email>> {
        let mut found = Vec::new();
        for (id, bytes, read) in self.all()? {
            if read && !which.include_read {
                continue;
            }
            let Some(mut email) = mime::read(&bytes) else {
                continue;
            };
            if which.is_too_old(&email) {
                continue;
            }
            email.account = match self.account.is_empty() {
                true => email.to.first().map(|to| address(to)).unwrap_or_default(),
                false => self.account.clone(),
            };
            email.thread_id = email
                .references
                .first()
                .unwrap_or(&email.message_id)
                .clone();
            email.id = id;
            found.push(email);
        }
        found.sort_by_key(|email| mime::sent_at(email).unwrap_or_default());
        Ok(found)
    }

    fn mark_now(&self, id: &str) -> anyhow::Result<()> {
        // A mail that came from elsewhere is not ours to mark.
        let Some(path) = &self.mails else {
            return Ok(());
        };
        if Self::is_maildir(path) {
            return mark_in_maildir(path, id);
        }
        let mut seen = self.seen()?;
        if seen.lines().any(|line| line == id) {
            return Ok(());
        }
        seen.push_str(id);
        seen.push('\n');
        whole(&self.seen_path()?, seen.as_bytes())
    }

    /// Reads from the outbox which mails were answered. Of mails that claim the same id nobody knows which was.
    fn answered_now(&self, mails: &[Email]) -> anyhow::Result<BTreeSet<String>> {
        let entries = match fs::read_dir(&self.outbox) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(BTreeSet::new());
            }
            entries => entries?,
        };
        let mut answered = BTreeSet::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|kind| kind == "eml") {
                answered.extend(mime::replied_to(&fs::read(path)?));
            }
        }
        let mut claims: BTreeMap<&str, usize> = BTreeMap::new();
        for email in mails {
            *claims.entry(&email.message_id).or_default() += 1;
        }
        let is_answered = |email: &&Email| {
            claims.get(email.message_id.as_str()) == Some(&1)
                && answered.contains(&email.message_id)
        };
        let ids = mails.iter().filter(is_answered);
        Ok(ids.map(|email| email.id.clone()).collect())
    }

    fn send_now(&self, mail: &Outgoing) -> Result<Sent, NotSent> {
        let bytes = mime::write(mail).map_err(NotSent::Refused)?.formatted();
        let sent = Sent {
            message_id: mail.message_id.clone(),
        };
        let path = self.path_of(mail);
        if path.exists() {
            return Ok(sent);
        }
        fs::create_dir_all(&self.outbox).map_err(|error| NotSent::Refused(error.into()))?;
        whole(&path, &bytes).map_err(NotSent::Unknown)?;
        Ok(sent)
    }

    fn path_of(&self, mail: &Outgoing) -> PathBuf {
        self.outbox.join(format!("{}.eml", mail.message_id))
    }
}

impl Mailbox for Local {
    fn account(&self) -> &str {
        &self.account
    }

    fn list<'a>(&'a self, which: &'a Which) -> BoxFuture<'a, anyhow::Result<Vec<Email>>> {
        Box::pin(async move { self.list_now(which) })
    }

    fn answered<'a>(
        &'a self,
        mails: &'a [Email],
    ) -> BoxFuture<'a, anyhow::Result<BTreeSet<String>>> {
        Box::pin(async move { self.answered_now(mails) })
    }

    fn raw<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<Vec<u8>>> {
        Box::pin(async move {
            // A thread of an older version knows a mail of an mbox file by its Message-ID.
            let is_it = |known: &str| {
                known == id || known.rsplit_once('#').is_some_and(|(known, _)| known == id)
            };
            let found = self.all()?.into_iter().find(|(known, ..)| is_it(known));
            let (_, bytes, _) = found.with_context(|| format!("there is no mail `{id}`"))?;
            Ok(bytes)
        })
    }

    fn mark_as_read<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move { self.mark_now(id) })
    }

    fn send<'a>(
        &'a self,
        mail: &'a Outgoing,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Sent, NotSent>> {
        Box::pin(async move { self.send_now(mail) })
    }

    fn look<'a>(
        &'a self,
        mail: &'a Outgoing,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, anyhow::Result<Found>> {
        Box::pin(async move {
            Ok(match self.path_of(mail).try_exists()? {
                true => Found::Sent(Sent {
                    message_id: mail.message_id.clone(),
                }),
                false => Found::NotSent,
            })
        })
    }

    fn calendar(&self) -> &dyn Calendar {
        &self.calendar
    }
}

/// Writes a file that is there whole or not at all, for its owner only.
pub(in crate::agents::email_assistant) fn whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    private::write(path, bytes).with_context(|| format!("{} cannot be written", path.display()))
}

fn maildir(path: &Path) -> anyhow::Result<Vec<(String, Vec<u8>, bool)>> {
    let mut found = Vec::new();
    for (folder, is_new) in [("cur", false), ("new", true)] {
        let folder = path.join(folder);
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let (id, flags) = name.split_once(":2,").unwrap_or((&name, ""));
            let read = !is_new && flags.contains('S');
            found.push((id.to_owned(), fs::read(entry.path())?, read));
        }
    }
    found.sort();
    Ok(found)
}

fn mark_in_maildir(path: &Path, id: &str) -> anyhow::Result<()> {
    for folder in ["new", "cur"] {
        let Ok(entries) = fs::read_dir(path.join(folder)) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let (known, flags) = name.split_once(":2,").unwrap_or((&name, ""));
            if known != id {
                continue;
            }
            if folder == "cur" && flags.contains('S') {
                return Ok(());
            }
            let mut flags: Vec<char> = flags.chars().chain(['S']).collect();
            flags.sort_unstable();
            let flags: String = flags.into_iter().collect();
            fs::create_dir_all(path.join("cur"))?;
            fs::rename(
                entry.path(),
                path.join("cur").join(format!("{id}:2,{flags}")),
            )?;
            return Ok(());
        }
    }
    anyhow::bail!("there is no mail `{id}` in {}", path.display())
}

/// The mails of an mbox file, with `>From ` as it was.
fn split_mbox(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut mails: Vec<Vec<u8>> = Vec::new();
    let mut was_empty = true;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if was_empty && begins_mail(line) {
            mails.push(Vec::new());
        } else if let Some(mail) = mails.last_mut() {
            let quoted = line.iter().take_while(|byte| **byte == b'>').count();
            let is_quoted = quoted > 0 && line[quoted..].starts_with(b"From ");
            mail.extend_from_slice(if is_quoted { &line[1..] } else { line });
        }
        was_empty = line.iter().all(u8::is_ascii_whitespace);
    }
    mails
}

/// `From WHO WHEN`, with the year at its end: what a person writes at the beginning of a line seldom is.
fn begins_mail(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let year = line.split_whitespace().last().unwrap_or_default();
    line.starts_with("From ") && year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit())
}

/// A mail's `Message-ID`, or a hash if it has none, and with its fingerprint what is its alone.
fn mbox_id(bytes: &[u8]) -> (String, String) {
    let email = mime::read(bytes).unwrap_or_default();
    match email.message_id.is_empty() {
        true => {
            let hash = short_hash(bytes);
            (hash.clone(), hash)
        }
        false => {
            let short = email.fingerprint.get(..16).unwrap_or_default();
            let id = format!("{}#{short}", email.message_id);
            (email.message_id, id)
        }
    }
}

fn short_hash(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mbox_is_split_where_mails_begin() {
        let text = b"From a@x Mon Jan  6 10:00:00 2025\nSubject: One\n\nFrom the start.\n>From here.\n\nFrom b@x Tue Jan  7 10:00:00 2025\nSubject: Two\n\nText\n";
        let mails = split_mbox(text);
        assert_eq!(mails.len(), 1 + 1);
        assert!(String::from_utf8_lossy(&mails[0]).contains("\nFrom here.\n"));
    }

    #[tokio::test]
    async fn a_maildir_is_read_and_marked_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mail");
        for sub in ["cur", "new", "tmp"] {
            fs::create_dir_all(path.join(sub)).unwrap();
        }
        fs::write(
            path.join("new/1.x"),
            "From: b@x.org\nTo: a@x.org\nSubject: Hi\nMessage-ID: <m@x>\n\nHello\n",
        )
        .unwrap();
        let local = Local::open(&path);
        let all = local.list(&Which::default()).await.unwrap();
        assert_eq!(
            (all.len(), all[0].id.as_str(), all[0].account.as_str()),
            (1, "1.x", "a@x.org")
        );
        for _ in 0..2 {
            local.mark_as_read("1.x").await.unwrap();
            assert!(path.join("cur/1.x:2,S").exists());
        }
        assert!(local.list(&Which::default()).await.unwrap().is_empty());
        assert!(local.mark_as_read("2.x").await.is_err());
    }
}
