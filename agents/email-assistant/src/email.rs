//! A mail as the assistant reads it, whatever form it came in.
//!
//! Everything in it was written by a stranger. What a person would not see is taken out here; what is left is data.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::html;

/// A mail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Email {
    /// What its mailbox knows it by.
    pub id: String,
    /// The conversation it is in, as the mailbox knows it.
    pub thread_id: String,
    /// Its own `Message-ID`, without brackets.
    pub message_id: String,
    /// The `Message-ID`s of what it answers, oldest first.
    pub references: Vec<String>,
    /// Who wrote it, as it says.
    pub from: String,
    /// Where answers are wanted, if somewhere else.
    pub reply_to: String,
    /// To whom.
    pub to: Vec<String>,
    /// Who has a copy.
    pub cc: Vec<String>,
    /// What about.
    pub subject: String,
    /// When it was sent, as it says.
    pub date: String,
    /// The account that it came to.
    pub account: String,
    /// What a person sees of it.
    pub body: String,
    /// What is attached, by name.
    pub attachments: Vec<String>,
    /// What was taken out because a person would not have seen it, in words; empty if nothing.
    pub hidden: String,
    /// A hash of its head and body, by which it is told from another that claims the same `Message-ID`. Empty if it did not come
    /// as bytes, or was stored before there was one.
    pub fingerprint: String,
}

impl Email {
    /// The form that Gmail's assistants have as their input.
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
        if !self.fingerprint.is_empty() {
            input["fingerprint"] = json!(self.fingerprint);
        }
        input
    }

    /// The thread of this mail: the same for the same mail of the same account, however often it is ingested, and another for
    /// another mail that claims the same `Message-ID`.
    pub fn thread(&self, rerun: u32) -> String {
        match self.fingerprint.is_empty() {
            true => self.thread_by_message_id(rerun),
            false => {
                let id = format!("{}\n{}", self.message_id, self.fingerprint);
                thread_id(&self.account, &id, rerun)
            }
        }
    }

    /// The thread that this mail has if it was taken in by a version that went by the `Message-ID` alone. It may be another
    /// mail's: see [`Email::is_same`].
    pub fn thread_by_message_id(&self, rerun: u32) -> String {
        let id = match self.message_id.is_empty() {
            true => &self.id,
            false => &self.message_id,
        };
        thread_id(&self.account, id, rerun)
    }

    /// Whether a mail that was stored is this one. What the mailbox itself numbers is believed; else everything that a person
    /// sees of the head must be the same.
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

    /// Everybody who is in the conversation already, but for the account itself.
    pub fn participants(&self) -> Vec<String> {
        let own = address(&self.account);
        let mut known = BTreeSet::new();
        let all = std::iter::once(&self.from).chain(&self.to).chain(&self.cc);
        all.map(|who| address(who))
            .filter(|who| !who.is_empty() && *who != own && known.insert(who.clone()))
            .collect()
    }
}

/// What an IMAP server calls its present numbering: of two mails in the same, the number tells them apart.
fn numbering(id: &str) -> Option<&str> {
    let (validity, uid) = id.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(validity) && is_number(uid)).then_some(validity)
}

/// Reads a mail in Gmail's form, or in the form of a studio (`author`, `to`, `subject`, `email_thread`).
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
        fingerprint: text(&["fingerprint"]),
    }
}

/// A mail as Markdown: the head as a list, the words in a fence that they cannot close, so that nothing in it is a link, a
/// picture or a heading of ours.
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

/// The bare address of `Ada <ada@example.org>`, in small letters.
pub fn address(who: &str) -> String {
    let inside = match (who.rfind('<'), who.rfind('>')) {
        (Some(begin), Some(end)) if begin < end => &who[begin + 1..end],
        _ => who,
    };
    inside.trim().to_lowercase()
}

/// The addresses of a header, split at commas that are in no quotes.
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

/// A `Message-ID` without its brackets.
pub fn bare_id(id: &str) -> String {
    id.trim_matches(|c: char| c.is_whitespace() || matches!(c, '<' | '>'))
        .to_owned()
}

/// An id in the form of a UUID that is a hash of these.
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

/// One line, whatever was in it.
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
