//! Who a mail goes to, and which of that needs a second word from a person.
//!
//! No model takes part in this. Recipients come from the mail that is answered and from the arguments that a person saw;
//! whoever is not in the conversation, whatever is attached, and every forward is confirmed a second time.

use std::collections::BTreeSet;

use archie_agent::printable::counted;
use serde::{Deserialize, Serialize};

use super::email::{Email, address};
use super::html::is_invisible;
use super::tools::{Meeting, Reply};

/// Where a mail goes and what comes with it, as code makes it of the mail that is answered and what was agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// From which account.
    pub from: String,
    /// To whom.
    pub to: Vec<String>,
    /// Who has a copy.
    pub cc: Vec<String>,
    /// What about.
    pub subject: String,
    /// The `Message-ID` of what it answers.
    pub in_reply_to: String,
    /// The `Message-ID`s before it.
    pub references: Vec<String>,
    /// The conversation in the mailbox.
    pub thread_id: String,
    /// What is attached, by name.
    pub attachments: Vec<String>,
    /// Whether the mail itself goes along.
    pub forwards: bool,
}

impl Envelope {
    /// A reply keeps the conversation, everybody in it, and the account.
    pub fn of_reply(email: &Email, reply: &Reply) -> Self {
        let own = address(&email.account);
        let first = match email.reply_to.trim().is_empty() {
            true => address(&email.from),
            false => address(&email.reply_to),
        };
        // Of a mail of one's own, the answer goes to those it was written to.
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

    /// What a person must confirm a second time; nothing if it stays within the conversation.
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

    /// As a person reads it: everybody who gets the mail, and how many they are.
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

/// A list for a person: one entry in its line, several below it, each in a line of its own, with their number.
pub(super) fn listed(name: &str, entries: &[String]) -> String {
    match entries {
        [only] => format!("{name}: {only}"),
        entries => {
            let lines = entries.iter().map(|entry| format!("\n  {entry}"));
            format!("{name} ({}):{}", entries.len(), lines.collect::<String>())
        }
    }
}

/// A stranger's text for a person, with a mark before every line, so that none can pass for one of ours.
pub(super) fn quoted(text: &str) -> String {
    let lines = text.trim_end().lines();
    let lines: Vec<_> = lines.map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

/// What a person must confirm a second time of a meeting.
pub fn meeting_beyond(email: &Email, meeting: &Meeting) -> Vec<String> {
    let own = address(&email.account);
    let invited = meeting.attendees.iter().filter(|who| address(who) != own);
    outsiders(invited, &email.participants())
}

fn outsiders<'a>(who: impl Iterator<Item = &'a String>, known: &[String]) -> Vec<String> {
    let known: BTreeSet<&String> = known.iter().collect();
    who.map(|who| address(who))
        .filter(|who| !known.contains(who))
        .map(|who| format!("`{who}` is not in the conversation"))
        .collect()
}

/// Whether a text has characters that show something else than what is there.
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
