//! A Maildir or a file in mbox format on this machine, with an outbox next to it that holds one file per email.
//!
//! The outbox is the receiver: writing a file there is atomic, its name is the `Message-ID`, and a second email with the same
//! name is dropped. The owner's own software delivers from there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use archie_agent::user_folder::{
    Access, Allowance, EntryKind, FileName, FolderError, FolderLimits, Listing, RelativePath,
    UserFolder, read_named_file,
};
use sha2::{Digest, Sha256};
use superstep::checkpoint::BoxFuture;

use super::{MailQuery, Mailbox, NotSent, Outgoing, Sent, SentStatus};
use crate::calendar::{Calendar, Ics};
use crate::email::{Email, address};
use crate::mime;

/// Limits for reading a mailbox: 64 MiB per email, 512 MiB in total, 200,000 emails. Maildir folders are not nested.
const LIMITS: FolderLimits = FolderLimits {
    file_bytes_max: 64 << 20,
    total_bytes_max: 512 << 20,
    entries_max: 200_000,
    depth_max: 1,
};

/// Mailbox in local files.
#[derive(Debug)]
pub struct LocalMailbox {
    /// Path of the Maildir or mbox file; `None` if there is only an outbox.
    mails: Option<PathBuf>,
    outbox: PathBuf,
    account: String,
    calendar: Ics,
    /// What the last listing of a Maildir skipped, with reasons.
    skipped: Mutex<Vec<String>>,
}

impl LocalMailbox {
    /// Opens a Maildir or a file in mbox format. Next to `PATH` are `PATH.outbox`, `PATH.calendar`, `PATH.account` (the owner's
    /// address) and, for a file in mbox format, `PATH.seen` (ids of read emails).
    pub fn open(path: &Path) -> Self {
        let beside = |what: &str| PathBuf::from(format!("{}.{what}", path.display()));
        let account = read_beside(&beside("account")).ok().flatten();
        let account = account.unwrap_or_default();
        Self {
            mails: Some(path.to_owned()),
            outbox: beside("outbox"),
            account: address(&account),
            calendar: Ics::new(&beside("calendar")),
            skipped: Mutex::default(),
        }
    }

    /// Opens a mailbox without incoming email, with an outbox and a calendar in `home`.
    pub fn outbox_only(home: &Path) -> Self {
        Self {
            mails: None,
            outbox: home.join("outbox"),
            account: String::new(),
            calendar: Ics::new(&home.join("calendar")),
            skipped: Mutex::default(),
        }
    }

    /// Returns the folder that sent emails are written to.
    pub fn outbox(&self) -> &Path {
        &self.outbox
    }

    fn mails(&self) -> anyhow::Result<&Path> {
        self.mails
            .as_deref()
            .context("this mailbox only has an outbox")
    }

    /// Returns the folder if it is a Maildir, `None` if it is a file.
    fn maildir(path: &Path) -> Option<UserFolder> {
        let folder = UserFolder::open(path).ok()?;
        let is_folder = |name: &str| {
            let kind = RelativePath::parse(name).map(|name| folder.kind(&name));
            matches!(kind, Ok(Ok(Some(EntryKind::Folder))))
        };
        (is_folder("cur") || is_folder("new")).then_some(folder)
    }

    /// Returns every email: id, bytes, and whether it is marked as read.
    fn all(&self) -> anyhow::Result<Vec<(String, Vec<u8>, bool)>> {
        let path = self.mails()?;
        match Self::maildir(path) {
            Some(folder) => {
                let (found, skipped) = maildir(&folder)?;
                *self.skipped.lock().unwrap_or_else(PoisonError::into_inner) = skipped;
                Ok(found)
            }
            None => self.mbox(path),
        }
    }

    fn mbox(&self, path: &Path) -> anyhow::Result<Vec<(String, Vec<u8>, bool)>> {
        let bytes = read_named_file(path, LIMITS.total_bytes_max);
        let bytes = bytes.with_context(|| format!("{} cannot be read", path.display()))?;
        let seen = self.seen()?;
        let seen: BTreeSet<&str> = seen.lines().collect();
        // Older versions recorded the Message-ID alone. Of several emails that claim it, they meant the first.
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

    /// Returns the ids of read emails, one per line. They are in a file of their own because other programs write to the mbox
    /// file.
    fn seen(&self) -> anyhow::Result<String> {
        Ok(read_beside(&self.seen_path()?)?.unwrap_or_default())
    }

    fn seen_path(&self) -> anyhow::Result<PathBuf> {
        Ok(PathBuf::from(format!("{}.seen", self.mails()?.display())))
    }

    fn list_now(&self, which: &MailQuery) -> anyhow::Result<Vec<Email>> {
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
        // Without a mailbox, the email came from elsewhere and is not ours to mark.
        let Some(path) = &self.mails else {
            return Ok(());
        };
        if let Some(folder) = Self::maildir(path) {
            return mark_in_maildir(&folder, id);
        }
        let mut seen = self.seen()?;
        if seen.lines().any(|line| line == id) {
            return Ok(());
        }
        seen.push_str(id);
        seen.push('\n');
        write_private(&self.seen_path()?, seen.as_bytes())
    }

    /// Finds the answered emails from the outbox. If several emails claim one Message-ID, none of them counts as answered.
    fn answered_now(&self, mails: &[Email]) -> anyhow::Result<BTreeSet<String>> {
        let outbox = match UserFolder::open_unlinked(&self.outbox) {
            Ok(Some(outbox)) => outbox,
            // Nothing was ever sent through a link: sending refuses it with an error.
            Ok(None) | Err(FolderError::NotAFolder { .. }) => return Ok(BTreeSet::new()),
            Err(error) => return Err(error.into()),
        };
        let mut answered = BTreeSet::new();
        for entry in outbox.entries(SENT_MAX)?.entries {
            let is_mail = Path::new(entry.name.as_os_str())
                .extension()
                .is_some_and(|kind| kind == "eml");
            if is_mail && entry.kind == EntryKind::File {
                let bytes = outbox.read(&entry.name.into(), LIMITS.file_bytes_max)?;
                answered.extend(mime::replied_to(&bytes));
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
        let name = name_of(mail).map_err(NotSent::Refused)?;
        let outbox = UserFolder::create_unlinked(&self.outbox, Access::Private);
        let outbox = outbox.map_err(|error| NotSent::Refused(error.into()))?;
        // A file of that name is this email. Refuse anything else, so that nothing is written through it.
        match outbox.kind(&name) {
            Ok(None) => {}
            Ok(Some(EntryKind::File)) => return Ok(sent),
            Ok(Some(kind)) => {
                let path = self.outbox.display();
                let why = anyhow::anyhow!("`{path}/{name}` is {kind}; remove it");
                return Err(NotSent::Refused(why));
            }
            Err(error) => return Err(NotSent::Refused(error.into())),
        }
        let written = outbox.write_new(&name, &bytes, Access::Private);
        written.map_err(|error| NotSent::Unknown(error.into()))?;
        Ok(sent)
    }
}

/// Returns the file name of an email in the outbox.
fn name_of(mail: &Outgoing) -> anyhow::Result<RelativePath> {
    Ok(FileName::new(format!("{}.eml", mail.message_id))?.into())
}

/// Reads a small file next to a mailbox; `None` if it does not exist. A link in its place is an error.
fn read_beside(path: &Path) -> anyhow::Result<Option<String>> {
    let folder = UserFolder::open(path.parent().unwrap_or(Path::new(".")))?;
    let name = FileName::new(path.file_name().unwrap_or_default())?;
    let bytes = folder.read_if_present(&name.into(), BESIDE_BYTES_MAX)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

impl Mailbox for LocalMailbox {
    fn account(&self) -> &str {
        &self.account
    }

    fn list<'a>(&'a self, which: &'a MailQuery) -> BoxFuture<'a, anyhow::Result<Vec<Email>>> {
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
            // Threads of older versions identify an email of an mbox file by its Message-ID.
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
    ) -> BoxFuture<'a, anyhow::Result<SentStatus>> {
        Box::pin(async move {
            let outbox = UserFolder::open_unlinked(&self.outbox)?;
            let kind = match outbox {
                Some(outbox) => outbox.kind(&name_of(mail)?)?,
                None => None,
            };
            Ok(match kind {
                Some(EntryKind::File) => SentStatus::Sent(Sent {
                    message_id: mail.message_id.clone(),
                }),
                _ => SentStatus::NotSent,
            })
        })
    }

    fn calendar(&self) -> &dyn Calendar {
        &self.calendar
    }

    fn skipped(&self) -> Vec<String> {
        let skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        skipped.clone()
    }
}

/// Writes a file next to a mailbox atomically, readable by its owner only. Replaces a link in its place without following it.
fn write_private(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = UserFolder::open(path.parent().unwrap_or(Path::new(".")))?;
    let name = FileName::new(path.file_name().unwrap_or_default())?;
    folder
        .write(&name.into(), bytes, Access::Private)
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// An email of a Maildir: id, bytes, and whether it is marked as read.
type MaildirMail = (String, Vec<u8>, bool);

/// Reads a Maildir. Returns its emails, and what was skipped with reasons.
fn maildir(folder: &UserFolder) -> anyhow::Result<(Vec<MaildirMail>, Vec<String>)> {
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    let mut allowance = Allowance::new(LIMITS);
    for (name, is_new) in [("cur", false), ("new", true)] {
        let Some(listed) = entries(folder, name, allowance.entries())? else {
            continue;
        };
        let (folder, listing) = listed;
        allowance.take_entries(listing.entries.len());
        if listing.is_cut {
            skipped.push(format!("{name}: more than {} mails", LIMITS.entries_max));
        }
        for entry in listing.entries {
            let path = RelativePath::from(entry.name.clone());
            let shown = entry.name.as_os_str().to_string_lossy().into_owned();
            if shown.starts_with('.') {
                continue;
            }
            let bytes = folder.file_bytes(&path).map_err(|error| error.reason());
            let bytes = bytes.and_then(|bytes| {
                allowance.take_file(bytes)?;
                let read = folder.read(&path, LIMITS.file_bytes_max);
                read.map_err(|error| error.reason())
            });
            match bytes {
                Ok(bytes) => {
                    let (id, flags) = shown.split_once(":2,").unwrap_or((&shown, ""));
                    let read = !is_new && flags.contains('S');
                    found.push((id.to_owned(), bytes, read));
                }
                Err(why) => skipped.push(format!("{name}/{}: {why}", entry.name)),
            }
        }
    }
    found.sort();
    Ok((found, skipped))
}

/// Lists a folder of a Maildir; `None` if it does not exist.
fn entries(
    folder: &UserFolder,
    name: &str,
    entries_max: usize,
) -> Result<Option<(UserFolder, Listing)>, FolderError> {
    match folder.folder(&FileName::new(name)?.into()) {
        Ok(folder) => {
            let listing = folder.entries(entries_max)?;
            Ok(Some((folder, listing)))
        }
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

fn mark_in_maildir(folder: &UserFolder, id: &str) -> anyhow::Result<()> {
    let entries_max = Allowance::new(LIMITS).entries();
    for name in ["new", "cur"] {
        let Some((_, listing)) = entries(folder, name, entries_max)? else {
            continue;
        };
        for entry in listing.entries {
            let shown = entry.name.as_os_str().to_string_lossy().into_owned();
            let (known, flags) = shown.split_once(":2,").unwrap_or((&shown, ""));
            if known != id {
                continue;
            }
            if name == "cur" && flags.contains('S') {
                return Ok(());
            }
            let mut flags: Vec<char> = flags.chars().chain(['S']).collect();
            flags.sort_unstable();
            let flags: String = flags.into_iter().collect();
            let cur = RelativePath::parse("cur")?;
            folder.create_folder(&cur, Access::Private)?;
            let from = RelativePath::from(FileName::new(name)?).join(&entry.name);
            let to = cur.join(&FileName::new(format!("{id}:2,{flags}"))?);
            folder.rename(&from, &to)?;
            return Ok(());
        }
    }
    anyhow::bail!("there is no mail `{id}` in {}", folder.path().display())
}

/// Splits a file in mbox format into emails and undoes the quoting of `>From ` lines.
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

/// Returns whether a line is `From SENDER DATE` with the year at its end, which a line of prose seldom is.
fn begins_mail(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let year = line.split_whitespace().last().unwrap_or_default();
    line.starts_with("From ") && year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns an email's `Message-ID` and its unique id, which adds the fingerprint. Without a `Message-ID`, both are a hash.
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

/// Maximum size of a small file next to a mailbox, in bytes.
const BESIDE_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of outbox entries to search.
const SENT_MAX: usize = 200_000;

#[cfg(test)]
mod tests {
    use std::fs;

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
        let local = LocalMailbox::open(&path);
        let all = local.list(&MailQuery::default()).await.unwrap();
        assert_eq!(
            (all.len(), all[0].id.as_str(), all[0].account.as_str()),
            (1, "1.x", "a@x.org")
        );
        for _ in 0..2 {
            local.mark_as_read("1.x").await.unwrap();
            assert!(path.join("cur/1.x:2,S").exists());
        }
        assert!(local.list(&MailQuery::default()).await.unwrap().is_empty());
        assert!(local.mark_as_read("2.x").await.is_err());
    }

    #[tokio::test]
    async fn nothing_beside_a_mailbox_is_reached_through_a_link() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mbox");
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "boss@example.com").unwrap();
        fs::write(&path, "").unwrap();
        symlink("outside", folder.path().join("mbox.outbox")).unwrap();
        symlink("outside", folder.path().join("mbox.calendar")).unwrap();
        for name in ["account", "seen"] {
            symlink("outside/secret", folder.path().join(format!("mbox.{name}"))).unwrap();
        }
        let local = LocalMailbox::open(&path);
        assert_eq!(local.account(), "");
        assert!(local.list(&MailQuery::default()).await.is_err());
        let mail = Outgoing {
            message_id: "archie.1@x".to_owned(),
            envelope: crate::policy::Envelope {
                from: "a@example.com".to_owned(),
                to: vec!["b@example.com".to_owned()],
                ..Default::default()
            },
            text: "Hello.".to_owned(),
            carried: Vec::new(),
        };
        let refused = local.send(&mail, None).await.unwrap_err();
        assert!(
            matches!(&refused, NotSent::Refused(why) if why.to_string().contains("symbolic link")),
            "{refused}"
        );
        assert!(
            local
                .calendar()
                .on(&["2025-01-10".to_owned()])
                .await
                .is_err()
        );
        // A link in place of the email is not the email.
        fs::remove_file(folder.path().join("mbox.outbox")).unwrap();
        fs::create_dir(folder.path().join("mbox.outbox")).unwrap();
        let place = folder.path().join("mbox.outbox/archie.1@x.eml");
        symlink("../outside/secret", &place).unwrap();
        assert!(local.send(&mail, None).await.is_err());
        fs::remove_file(&place).unwrap();
        local.send(&mail, None).await.unwrap();
        assert_eq!(fs::read_dir(place.parent().unwrap()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        let secret = fs::read_to_string(outside.join("secret")).unwrap();
        assert_eq!(secret, "boss@example.com");
    }
}
