//! An email as the assistant reads it, independent of the format it arrived in.
//!
//! A stranger wrote everything in it. This module removes text that a person would not see and treats the rest as data.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::html;

/// An incoming email, with invisible text removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Email {
    /// Id that the mailbox uses: a Gmail id, `UIDVALIDITY-UID` on IMAP, a file name in a Maildir.
    pub id: String,
    /// Conversation id that the mailbox uses; may be empty.
    pub thread_id: String,
    /// `Message-ID` header, without angle brackets; empty if the email has none.
    pub message_id: String,
    /// `Message-ID`s of the `References` header, oldest first.
    pub references: Vec<String>,
    /// `From` header. The sender can put anything here.
    pub from: String,
    /// `Reply-To` header; empty if replies go to `from`.
    pub reply_to: String,
    /// Recipients of the `To` header, with display names.
    pub to: Vec<String>,
    /// Recipients of the `Cc` header, with display names.
    pub cc: Vec<String>,
    /// `Subject` header, without invisible characters.
    pub subject: String,
    /// `Date` header as RFC 3339 when read from bytes, otherwise as the input had it. The sender can put anything here.
    pub date: String,
    /// Address of the account that received it; replies are sent from this account.
    pub account: String,
    /// Text that a person would see, without HTML.
    pub body: String,
    /// File names of the attachments.
    pub attachments: Vec<String>,
    /// Description of what was removed because a person would not have seen it; empty if nothing was.
    pub hidden: String,
    /// Headers that say how the email was sent, by name in lower case: [`HEADERS`]. The sender can put anything here. Under
    /// `text/calendar` is the method of an invitation that the email contains.
    pub headers: BTreeMap<String, String>,
    /// Hash of the identifying headers and the body. Distinguishes two emails that claim the same `Message-ID`. Empty if the
    /// email was not read from bytes, or was stored by a version that computed no hash.
    pub fingerprint: String,
}

impl Email {
    /// Returns the JSON that [`parse_gmail`] reads, in the shape that Gmail assistants use as their input.
    pub fn to_input(&self) -> Json {
        let mut input = json!({
            "id": self.id,
            "thread_id": self.thread_id,
            "message_id": self.message_id,
            "references": self.references,
            "from": self.from,
            "reply_to": self.reply_to,
            "to": self.to.join(", "),
            "cc": self.cc.join(", "),
            "subject": self.subject,
            "send_time": self.date,
            "account": self.account,
            "page_content": self.body,
            "attachments": self.attachments,
            "hidden": self.hidden,
        });
        if !self.headers.is_empty() {
            input["headers"] = json!(self.headers);
        }
        if !self.fingerprint.is_empty() {
            input["fingerprint"] = json!(self.fingerprint);
        }
        input
    }

    /// Returns the thread id of this email. Ingesting the same email of the same account again yields the same id; another
    /// email with the same `Message-ID` gets another id if both have a fingerprint. `rerun` numbers deliberate repetitions,
    /// from 0.
    pub fn thread(&self, rerun: u32) -> String {
        match self.fingerprint.is_empty() {
            true => self.thread_by_message_id(rerun),
            false => {
                let id = format!("{}\n{}", self.message_id, self.fingerprint);
                thread_id(&self.account, &id, rerun)
            }
        }
    }

    /// Returns the thread id that versions without fingerprints used, which is made of the `Message-ID` alone. The thread may
    /// belong to another email: see [`Email::is_same`].
    pub fn thread_by_message_id(&self, rerun: u32) -> String {
        let id = match self.message_id.is_empty() {
            true => &self.id,
            false => &self.message_id,
        };
        thread_id(&self.account, id, rerun)
    }

    /// Returns whether `stored` is this email. Fingerprints decide if both have one. Otherwise equal ids that the mailbox
    /// assigned mean the same email, and different IMAP `UID`s under one `UIDVALIDITY` mean different ones. In all other cases
    /// `Message-ID`, sender, subject, date and `Reply-To` must be equal.
    pub fn is_same(&self, stored: &Self) -> bool {
        if !stored.fingerprint.is_empty() && !self.fingerprint.is_empty() {
            return stored.fingerprint == self.fingerprint;
        }
        let is_numbered =
            |email: &Self| !email.id.is_empty() && !email.id.starts_with(&email.message_id);
        if is_numbered(self) && is_numbered(stored) && self.id == stored.id {
            return true;
        }
        let head = |email: &Self| {
            let head = [
                &email.message_id,
                &email.from,
                &email.subject,
                &email.date,
                &email.reply_to,
            ];
            head.map(|text| html::plain(text).trim().to_owned())
        };
        let is_numbered_otherwise = is_numbered(self)
            && is_numbered(stored)
            && numbering(&self.id).is_some()
            && numbering(&self.id) == numbering(&stored.id);
        !is_numbered_otherwise && head(self) == head(stored)
    }

    /// Returns the bare addresses in `From`, `To` and `Cc`, without duplicates and without the account itself.
    pub fn participants(&self) -> Vec<String> {
        let own = address(&self.account);
        let mut known = BTreeSet::new();
        let all = std::iter::once(&self.from).chain(&self.to).chain(&self.cc);
        all.map(|who| address(who))
            .filter(|who| !who.is_empty() && *who != own && known.insert(who.clone()))
            .collect()
    }
}

/// Returns the `UIDVALIDITY` of an IMAP id: within one such value, the `UID` identifies an email. `None` for other ids.
fn numbering(id: &str) -> Option<&str> {
    let (validity, uid) = id.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(validity) && is_number(uid)).then_some(validity)
}

/// Reads an email in Gmail's shape or in the shape that studios send (`author`, `to`, `subject`, `email_thread`).
pub fn parse_gmail(input: &Json) -> Email {
    let text = |names: &[&str]| -> String {
        let found = names.iter().find_map(|name| input[*name].as_str());
        found.unwrap_or_default().trim().to_owned()
    };
    let list = |name: &str| -> Vec<String> {
        match &input[name] {
            Json::Array(items) => items
                .iter()
                .filter_map(Json::as_str)
                .map(str::to_owned)
                .collect(),
            Json::String(text) => addresses(text),
            _ => Vec::new(),
        }
    };
    let body = text(&["page_content", "body", "email_thread", "text"]);
    let seen = html::visible(&body);
    let to = list("to");
    let account = match text(&["account", "to_email"]) {
        account if account.is_empty() => to.first().map(|to| address(to)).unwrap_or_default(),
        account => account,
    };
    let hidden = match text(&["hidden"]) {
        before if before.is_empty() => seen.removed,
        before => before,
    };
    Email {
        id: text(&["id", "email_id"]),
        thread_id: text(&["thread_id", "threadId"]),
        message_id: bare_id(&text(&["message_id"])),
        references: list("references"),
        from: html::plain(&text(&["from", "author", "from_email"])),
        reply_to: html::plain(&text(&["reply_to"])),
        to,
        cc: list("cc"),
        subject: html::plain(&text(&["subject"])),
        date: text(&["send_time", "date"]),
        account,
        body: seen.text,
        attachments: list("attachments")
            .iter()
            .map(|name| html::plain(name))
            .collect(),
        hidden,
        headers: headers(&input["headers"]),
        fingerprint: text(&["fingerprint"]),
    }
}

/// Headers that [`Email::headers`] has.
pub const HEADERS: [&str; 6] = [
    "list-unsubscribe",
    "list-id",
    "precedence",
    "auto-submitted",
    "authentication-results",
    "received-spf",
];

/// Under this name, [`Email::headers`] has the method of an invitation.
pub const CALENDAR_METHOD: &str = "text/calendar";

/// Maximum length of a header in [`Email::headers`], in characters.
pub(super) const HEADER_CHARS_MAX: usize = 1_000;

fn headers(input: &Json) -> BTreeMap<String, String> {
    let fields = input.as_object().into_iter().flatten();
    let known = fields.filter_map(|(name, value)| {
        let name = name.to_lowercase();
        let is_known = name == CALENDAR_METHOD || HEADERS.contains(&name.as_str());
        let value = html::plain(value.as_str()?);
        is_known.then(|| (name, value.chars().take(HEADER_CHARS_MAX).collect()))
    });
    known.collect()
}

/// Formats an email as Markdown: the header as a list, the body in a fence longer than any backtick run inside it. Nothing in
/// the body can become a link, an image or a heading.
pub fn format_gmail_markdown(email: &Email) -> String {
    let mut head = vec![
        format!("**Subject**: {}", line(&email.subject)),
        format!("**From**: {}", line(&email.from)),
        format!("**To**: {}", line(&email.to.join(", "))),
    ];
    if !email.cc.is_empty() {
        head.push(format!("**Cc**: {}", line(&email.cc.join(", "))));
    }
    if !email.id.is_empty() {
        head.push(format!("**ID**: {}", line(&email.id)));
    }
    if !email.attachments.is_empty() {
        head.push(format!(
            "**Attached**: {}",
            line(&email.attachments.join(", "))
        ));
    }
    if !email.hidden.is_empty() {
        head.push(format!("**Left out**: {}", line(&email.hidden)));
    }
    let longest = email.body.split(|c| c != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{}\n\n{fence}\n{}\n{fence}\n", head.join("\n"), email.body)
}

/// Returns the bare address of `Ada <ada@example.org>`, in lower case.
pub fn address(who: &str) -> String {
    let inside = match (who.rfind('<'), who.rfind('>')) {
        (Some(begin), Some(end)) if begin < end => &who[begin + 1..end],
        _ => who,
    };
    inside.trim().to_lowercase()
}

/// Splits a header into addresses, at commas and semicolons outside of quotes.
pub fn addresses(header: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut quoted = false;
    for c in header.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' | ';' if !quoted => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = found.last_mut() {
            last.push(c);
        }
    }
    let found = found.into_iter().map(|one| one.trim().to_owned());
    found.filter(|one| !one.is_empty()).collect()
}

/// Removes the angle brackets and white space around a `Message-ID`.
pub fn bare_id(id: &str) -> String {
    id.trim_matches(|c: char| c.is_whitespace() || matches!(c, '<' | '>'))
        .to_owned()
}

/// Returns a UUID-shaped thread id: a hash of the account's address, the message's id and the rerun number.
pub fn thread_id(account: &str, message: &str, rerun: u32) -> String {
    let mut hasher = Sha256::new();
    for part in [
        "email_assistant",
        &address(account),
        message,
        &rerun.to_string(),
    ] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let hash = hasher.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes)
        .into_uuid()
        .to_string()
}

/// Replaces control characters, backticks and brackets, so that `text` stays on one line and contains no Markdown link or code.
fn line(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    text.replace('`', "'").replace('[', "(").replace(']', ")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e10_parse_gmail_reads_both_forms() {
        let gmail = parse_gmail(&json!({
            "id": "m1", "thread_id": "t1", "from": "Bob <bob@example.com>", "to": "alice@example.com, \"C, D\" <cd@example.com>",
            "subject": "Q4 report?", "page_content": "When is it ready?", "message_id": "<x@y>"
        }));
        assert_eq!(gmail.id, "m1");
        assert_eq!(gmail.account, "alice@example.com");
        assert_eq!(gmail.message_id, "x@y");
        assert_eq!(gmail.participants(), ["bob@example.com", "cd@example.com"]);
        let studio = parse_gmail(&json!({
            "author": "Bob <bob@example.com>", "to": "alice@example.com", "subject": "Hi", "email_thread": "Hello."
        }));
        assert_eq!(
            (studio.from.as_str(), studio.body.as_str()),
            ("Bob <bob@example.com>", "Hello.")
        );
        assert_eq!(parse_gmail(&gmail.to_input()).to_input(), gmail.to_input());
    }

    #[test]
    fn e10_format_gmail_markdown_leaves_nothing_alive() {
        let email = Email {
            subject: "![x](http://evil/a.png)".to_owned(),
            body: "````\n![x](http://evil/b.png)\n[a]: http://evil".to_owned(),
            ..Email::default()
        };
        let shown = format_gmail_markdown(&email);
        assert!(shown.contains("\n`````\n````\n"), "{shown}");
        assert!(!shown.contains("![x](http://evil/a.png)"), "{shown}");
    }

    #[test]
    fn one_mail_is_one_thread_and_another_account_or_rerun_another() {
        let email = Email {
            account: "A@example.com".to_owned(),
            message_id: "m@x".to_owned(),
            ..Email::default()
        };
        let other = Email {
            account: "b@example.com".to_owned(),
            ..email.clone()
        };
        let same = Email {
            account: "a@example.com".to_owned(),
            id: "elsewhere".to_owned(),
            ..email.clone()
        };
        assert_eq!(email.thread(0), same.thread(0));
        assert_ne!(email.thread(0), other.thread(0));
        assert_ne!(email.thread(0), email.thread(1));
        assert_eq!(email.thread(0).len(), 36);
    }
}
