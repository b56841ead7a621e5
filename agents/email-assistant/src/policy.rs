//! Computes the recipients of an email and decides what a person must confirm a second time.
//!
//! No model takes part. Recipients come from the answered email and from arguments that a person saw. A person confirms a
//! second time every recipient outside the conversation, every attachment and every forward.

use std::collections::BTreeSet;

use archie_agent::printable::counted;
use serde::{Deserialize, Serialize};

use super::email::{Email, address};
use super::html::is_invisible;
use super::tools::{Meeting, Reply, organizer};

/// Sender, recipients and headers of an outgoing email, computed from the answered email and the approved arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Account that sends the email.
    pub from: String,
    /// Bare addresses of the recipients.
    pub to: Vec<String>,
    /// Bare addresses of the copy recipients.
    pub cc: Vec<String>,
    /// Subject, with `Re: ` or `Fwd: ` in front.
    pub subject: String,
    /// `Message-ID` of the answered email, without angle brackets; may be empty.
    pub in_reply_to: String,
    /// `Message-ID`s of the conversation, oldest first, ending with the answered email.
    pub references: Vec<String>,
    /// Conversation id in the mailbox; may be empty.
    pub thread_id: String,
    /// File names of the answered email's attachments to attach.
    pub attachments: Vec<String>,
    /// Whether the text includes the answered email.
    pub forwards: bool,
}

impl Envelope {
    /// Computes the envelope of a reply. It goes from the receiving account to `Reply-To` (or `From`), with everyone else in
    /// `To` and `Cc` and the reply's additional recipients as copies. The account itself is never a recipient.
    pub fn of_reply(email: &Email, reply: &Reply) -> Self {
        let own = address(&email.account);
        let first = match email.reply_to.trim().is_empty() {
            true => address(&email.from),
            false => address(&email.reply_to),
        };
        // A reply to an email that the account itself sent goes to that email's recipients.
        let mut to: Vec<String> = match first == own {
            true => email.to.iter().map(|who| address(who)).collect(),
            false => vec![first],
        };
        to.retain(|who| *who != own && !who.is_empty());
        to.dedup();
        let mut known: BTreeSet<String> = to.iter().cloned().collect();
        let others = email.to.iter().chain(&email.cc);
        let cc = others
            .chain(&reply.additional_recipients)
            .map(|who| address(who))
            .filter(|who| !who.is_empty() && *who != own && known.insert(who.clone()))
            .collect();
        let mut references = email.references.clone();
        if !email.message_id.is_empty() && !references.contains(&email.message_id) {
            references.push(email.message_id.clone());
        }
        Self {
            from: email.account.clone(),
            to,
            cc,
            subject: subject(&email.subject, reply.forward),
            in_reply_to: email.message_id.clone(),
            references,
            thread_id: email.thread_id.clone(),
            attachments: reply.attachments.clone(),
            forwards: reply.forward,
        }
    }

    /// Returns what a person must confirm a second time, one sentence each; empty if the email stays within the conversation.
    pub fn beyond(&self, email: &Email) -> Vec<String> {
        let known = email.participants();
        let mut beyond = outsiders(self.to.iter().chain(&self.cc), &known);
        if self.forwards {
            beyond.push("it forwards the mail itself".to_owned());
        }
        for name in &self.attachments {
            beyond.push(format!("it attaches `{name}`"));
        }
        beyond
    }

    /// Formats the envelope for a person: every recipient, their number, the subject and the attachments.
    pub fn words(&self) -> String {
        let mut lines = vec![format!("From: {}", self.from)];
        lines.push(listed("To", &self.to));
        if !self.cc.is_empty() {
            lines.push(listed("Cc", &self.cc));
        }
        lines.push(counted(self.to.len() + self.cc.len(), "recipient"));
        lines.push(format!("Subject: {}", self.subject));
        if !self.attachments.is_empty() {
            lines.push(listed("Attachments", &self.attachments));
        }
        if self.forwards {
            lines.push("The mail below is forwarded with the answer.".to_owned());
        }
        lines.join("\n")
    }
}

/// Formats a list for a person: a single entry on the same line, otherwise the count and one line per entry.
pub(super) fn listed(name: &str, entries: &[String]) -> String {
    match entries {
        [only] => format!("{name}: {only}"),
        entries => {
            let lines = entries.iter().map(|entry| format!("\n  {entry}"));
            format!("{name} ({}):{}", entries.len(), lines.collect::<String>())
        }
    }
}

/// Quotes a stranger's text with `> ` before every line, so that no line can pass for one of ours.
pub(super) fn quoted(text: &str) -> String {
    let lines = text.trim_end().lines();
    let lines: Vec<_> = lines.map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

/// Returns what a person must confirm a second time, one sentence each: attendees outside the conversation, and an organizer
/// other than the owner of the mailbox.
pub fn meeting_beyond(email: &Email, meeting: &Meeting) -> Vec<String> {
    let own = address(&email.account);
    let invited = meeting.attendees.iter().filter(|who| address(who) != own);
    let mut beyond = outsiders(invited, &email.participants());
    let organizer = organizer(email, meeting);
    if address(&organizer) != own {
        beyond.push(format!("`{organizer}` is shown as the organizer, not you"));
    }
    beyond
}

fn outsiders<'a>(who: impl Iterator<Item = &'a String>, known: &[String]) -> Vec<String> {
    let known: BTreeSet<&String> = known.iter().collect();
    who.map(|who| address(who))
        .filter(|who| !known.contains(who))
        .map(|who| format!("`{who}` is not in the conversation"))
        .collect()
}

/// Returns whether `text` contains invisible or control characters, which can make it look different from what it is.
pub fn deceives(text: &str) -> bool {
    text.chars()
        .any(|c| is_invisible(c) || (c.is_control() && !matches!(c, '\n' | '\r' | '\t')))
}

fn subject(of: &str, forward: bool) -> String {
    let prefix = if forward { "Fwd: " } else { "Re: " };
    let of: String = of.chars().filter(|c| !c.is_control()).collect();
    match of.to_lowercase().starts_with(&prefix.to_lowercase()) {
        true => of,
        false => format!("{prefix}{of}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn email() -> Email {
        Email {
            from: "Bob <bob@example.com>".to_owned(),
            to: vec![
                "Alice <alice@example.com>".to_owned(),
                "carol@example.com".to_owned(),
            ],
            cc: vec!["dan@example.com".to_owned()],
            subject: "Q4 report?".to_owned(),
            account: "alice@example.com".to_owned(),
            message_id: "m1@x".to_owned(),
            references: vec!["m0@x".to_owned()],
            thread_id: "t1".to_owned(),
            ..Email::default()
        }
    }

    #[test]
    fn a_reply_keeps_thread_copies_and_account_and_never_goes_to_oneself() {
        let envelope = Envelope::of_reply(&email(), &Reply::default());
        assert_eq!(envelope.from, "alice@example.com");
        assert_eq!(envelope.to, ["bob@example.com"]);
        assert_eq!(envelope.cc, ["carol@example.com", "dan@example.com"]);
        assert_eq!(envelope.subject, "Re: Q4 report?");
        assert_eq!(envelope.in_reply_to, "m1@x");
        assert_eq!(envelope.references, ["m0@x", "m1@x"]);
        assert!(envelope.beyond(&email()).is_empty());
    }

    #[test]
    fn strangers_forwards_and_attachments_are_beyond_the_conversation() {
        let reply = Reply {
            additional_recipients: vec![
                "x@evil.example".to_owned(),
                "Dan <DAN@example.com>".to_owned(),
            ],
            forward: true,
            attachments: vec!["invoices.pdf".to_owned()],
            ..Reply::default()
        };
        let beyond = Envelope::of_reply(&email(), &reply).beyond(&email());
        assert_eq!(beyond.len(), 3, "{beyond:?}");
        let redirected = Email {
            reply_to: "x@evil.example".to_owned(),
            ..email()
        };
        let beyond = Envelope::of_reply(&redirected, &Reply::default()).beyond(&redirected);
        assert_eq!(beyond, ["`x@evil.example` is not in the conversation"]);
    }
}
