//! What code decides about an email before a model sees it: mass mail, invitations, automatic replies, fraud.
//!
//! A rule decides, or it only rules out a reply and leaves the rest to the model. The person sets what happens to mass mail and
//! to calendar mail. An earlier decision to show a sender's mass mail goes before the setting; one to ignore it does not.

use std::sync::Arc;

use archie_agent::clock::now;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep::store::{Namespace, PutItem, Store, StoreError};

use super::decisions::PastDecision;
use super::email::{CALENDAR_METHOD, Email, address};
use super::state::Classification;
use super::suspicion::Suspicion;

/// What the person wants to happen to emails that a rule recognizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    /// Leave them.
    Ignore,
    /// Show them.
    Notify,
    /// Let the model decide, as for other emails.
    Model,
}

impl RuleAction {
    /// Returns the serialized form.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Notify => "notify",
            Self::Model => "model",
        }
    }
}

/// What the person wants to happen to mass mail and calendar mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleSettings {
    /// For mail to many: with `List-Unsubscribe` or `List-Id`, or of bulk precedence. Default: ignore.
    pub bulk: RuleAction,
    /// For invitations and reminders of calendars. Default: notify.
    pub calendar: RuleAction,
}

impl Default for RuleSettings {
    fn default() -> Self {
        Self {
            bulk: RuleAction::Ignore,
            calendar: RuleAction::Notify,
        }
    }
}

impl RuleSettings {
    /// Loads the person's settings, or the defaults if there are none.
    pub async fn load(store: &Arc<dyn Store>) -> Result<Self, StoreError> {
        let found = store.get(&namespace()?, KEY, now()).await?;
        // A later version may have written a value that this one does not know.
        let known = found.and_then(|item| serde_json::from_value(item.value).ok());
        Ok(known.unwrap_or_default())
    }

    /// Stores the person's settings.
    pub async fn save(&self, store: &Arc<dyn Store>) -> Result<(), StoreError> {
        let put = PutItem {
            namespace: namespace()?,
            key: KEY.to_owned(),
            value: serde_json::to_value(self).unwrap_or(Json::Object(Default::default())),
            ttl: None,
        };
        store.put(&put, now()).await
    }
}

fn namespace() -> Result<Namespace, StoreError> {
    Namespace::new(["email_assistant", "triage_rules"])
}

/// What the rules say about an email.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleVerdict {
    /// The classification, for this reason. No model is asked.
    Decided(Classification, String),
    /// A model decides, but a reply makes no sense, for this reason.
    NoReply(String),
    /// A model decides.
    Open,
}

/// Applies the rules to an email.
pub fn verdict(
    email: &Email,
    suspicion: &Suspicion,
    settings: &RuleSettings,
    past: &[PastDecision],
) -> RuleVerdict {
    if suspicion.is_suspicious() {
        let why = format!("suspicious: {}", suspicion.reasons.join("; "));
        return RuleVerdict::Decided(Classification::Notify, why);
    }
    let sent = Dispatch::of(email);
    if sent.is_calendar {
        return by_setting(settings.calendar, "it comes from a calendar");
    }
    if sent.is_automatic_reply {
        let why = "it is an automatic reply".to_owned();
        return RuleVerdict::Decided(Classification::Notify, why);
    }
    if sent.is_bulk {
        return bulk(email, settings, past);
    }
    match sent.is_automatic {
        true => RuleVerdict::NoReply("its sender reads no replies".to_owned()),
        false => RuleVerdict::Open,
    }
}

fn by_setting(action: RuleAction, why: &str) -> RuleVerdict {
    match action {
        RuleAction::Ignore => RuleVerdict::Decided(Classification::Ignore, why.to_owned()),
        RuleAction::Notify => RuleVerdict::Decided(Classification::Notify, why.to_owned()),
        RuleAction::Model => RuleVerdict::Open,
    }
}

fn bulk(email: &Email, settings: &RuleSettings, past: &[PastDecision]) -> RuleVerdict {
    let from = address(&email.from);
    let to_model = RuleVerdict::NoReply("it was sent to many".to_owned());
    let may_be_ignored =
        settings.bulk == RuleAction::Ignore && !matters(email) && !is_personal(email);
    if let Some(known) = past.iter().find(|known| known.from == from) {
        let decision = match known.decision {
            // Mail to many is not answered, but this sender matters.
            Classification::Respond | Classification::Notify => Classification::Notify,
            Classification::Ignore if may_be_ignored => Classification::Ignore,
            // One ignored mail does not hide the sender's next invoice or question.
            Classification::Ignore => return to_model,
        };
        let why = format!("you decided so about `{from}` before");
        return RuleVerdict::Decided(decision, why);
    }
    match may_be_ignored || settings.bulk == RuleAction::Notify {
        true => by_setting(settings.bulk, "it was sent to many"),
        false => to_model,
    }
}

/// How an email was sent, from its headers and the sender's address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Dispatch {
    is_bulk: bool,
    is_calendar: bool,
    is_automatic_reply: bool,
    /// A program sent it, or its address takes no replies.
    is_automatic: bool,
}

impl Dispatch {
    fn of(email: &Email) -> Self {
        let header = |name: &str| {
            email
                .headers
                .get(name)
                .map(|value| value.trim().to_lowercase())
        };
        let precedence = header("precedence").unwrap_or_default();
        let submitted = header("auto-submitted").unwrap_or_default();
        let from = address(&email.from);
        let local: String = from
            .split('@')
            .next()
            .unwrap_or_default()
            .chars()
            .filter(|c| c.is_alphanumeric())
            .collect();
        let subject = email.subject.to_lowercase();
        let begins = |words: &[&str]| words.iter().any(|word| subject.starts_with(word));
        let is_unread = NO_REPLY.iter().any(|name| local.contains(name));
        let is_generated = submitted.starts_with("auto-generated");
        let is_automatic = is_unread || is_generated;
        let is_from_calendar = CALENDARS.iter().any(|name| local.contains(name));
        Self {
            is_bulk: header("list-unsubscribe").is_some()
                || header("list-id").is_some()
                || ["bulk", "list", "junk"].contains(&precedence.as_str()),
            is_calendar: email.headers.contains_key(CALENDAR_METHOD)
                || is_from_calendar
                || (is_automatic && begins(&REMINDERS)),
            is_automatic_reply: submitted.starts_with("auto-replied")
                || precedence == "auto_reply"
                || begins(&AUTOMATIC_REPLIES),
            is_automatic,
        }
    }
}

/// Returns whether mail to many may still concern the person: an invoice, an alert, a deadline.
fn matters(email: &Email) -> bool {
    let subject = email.subject.to_lowercase();
    IMPORTANT.iter().any(|word| subject.contains(word))
}

/// Returns whether mail to many may still be addressed to the person: it is part of a conversation, as on a mailing list, or
/// asks something.
fn is_personal(email: &Email) -> bool {
    !email.references.is_empty() || asks_something(email)
}

/// Returns whether an email asks its reader something, in English, German or French. Quoted lines do not count.
pub fn asks_something(email: &Email) -> bool {
    let text = own_words(email);
    text.contains('?') || REQUESTS.iter().any(|request| text.contains(request))
}

/// Returns whether an email asks its reader something or for something. Mass mail does so, too ("please click here"), so this
/// says nothing about whether a person wrote it.
pub fn wants_something(email: &Email) -> bool {
    let text = own_words(email);
    let mut after_please = text.split("please ").skip(1);
    asks_something(email)
        || IMPERATIVES.iter().any(|request| text.contains(request))
        || after_please.any(|rest| !POLITE.iter().any(|word| rest.starts_with(word)))
}

/// Returns the body in lower case, without quoted lines.
fn own_words(email: &Email) -> String {
    let lines = email.body.lines();
    let own = lines.filter(|line| !line.trim_start().starts_with('>'));
    own.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Returns whether an email is in a language that the rules read: English, German or French.
pub fn is_readable(email: &Email) -> bool {
    let text = format!("{} {}", email.subject, email.body).to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| COMMON.contains(word)).nth(1).is_some()
}

const KEY: &str = "rules";

/// Parts of sender names that read no replies, without signs.
const NO_REPLY: [&str; 7] = [
    "noreply",
    "donotreply",
    "nepasrepondre",
    "keineantwort",
    "nichtantworten",
    "mailerdaemon",
    "postmaster",
];

const CALENDARS: [&str; 3] = [
    "calendarnotification",
    "calendarserver",
    "kalenderbenachrichtigung",
];

const REMINDERS: [&str; 6] = [
    "reminder",
    "erinnerung",
    "rappel",
    "upcoming",
    "termin",
    "notification:",
];

const AUTOMATIC_REPLIES: [&str; 9] = [
    "automatic reply",
    "auto reply",
    "autoreply",
    "out of office",
    "automatische antwort",
    "abwesenheit",
    "abwesend",
    "réponse automatique",
    "absence du bureau",
];

/// Words in the subject of mail to many that may concern the person.
const IMPORTANT: [&str; 27] = [
    "invoice",
    "receipt",
    "payment",
    "security",
    "password",
    "sign-in",
    "failed",
    "failure",
    "expire",
    "deadline",
    "outage",
    "maintenance",
    "action required",
    "review request",
    "rechnung",
    "zahlung",
    "sicherheit",
    "passwort",
    "fehlgeschlagen",
    "läuft ab",
    "frist",
    "wartung",
    "facture",
    "paiement",
    "sécurité",
    "mot de passe",
    "échéance",
];

/// What follows `please` where nothing is asked for.
const POLITE: [&str; 4] = ["find", "note", "see attached", "ignore"];

/// Frequent words of English, German and French that are rare in other languages.
const COMMON: [&str; 42] = [
    "the", "and", "you", "your", "our", "with", "this", "that", "have", "will", "for", "are", "we",
    "is", "der", "die", "das", "und", "ist", "wir", "ich", "sie", "ihr", "nicht", "mit", "für",
    "auf", "zu", "bei", "hast", "le", "les", "est", "vous", "nous", "je", "pour", "dans", "avec",
    "votre", "et", "une",
];

const IMPERATIVES: [&str; 6] = [
    "gebt uns",
    "bitte teilen sie",
    "bitte schick",
    "bitte bestätig",
    "merci de",
    "veuillez",
];

const REQUESTS: [&str; 16] = [
    "please let me know",
    "let me know",
    "could you",
    "can you",
    "would you",
    "please confirm",
    "please review",
    "please send",
    "kannst du",
    "könntest du",
    "können sie",
    "könnten sie",
    "gib mir bescheid",
    "pouvez-vous",
    "pourriez-vous",
    "peux-tu",
];

#[cfg(test)]
mod tests;
