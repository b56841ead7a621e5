//! What the person decided about earlier emails: examples for the model, and a rule for mass mail.
//!
//! A decision is recorded when the person acts on an email, never when only a model classified it, and not for a suspicious email,
//! whose sender may be forged.

use std::collections::BTreeSet;
use std::sync::Arc;

use archie_agent::clock::now;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep::checkpoint::Page;
use superstep::store::{Namespace, PutItem, Search, Store, StoreError, Ttl};

use super::domains::{domain_of, registrable};
use super::email::{Email, address};
use super::state::Classification;

/// What the person decided about one email.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastDecision {
    /// Address of the sender.
    pub from: String,
    /// Subject, on one line and cut to 80 characters.
    pub subject: String,
    /// What the person wanted to happen.
    pub decision: Classification,
}

/// Records what the person decided about an email. The thread identifies the email: a second decision replaces the first.
pub async fn record(
    store: &Arc<dyn Store>,
    thread: &str,
    email: &Email,
    decision: Classification,
) -> Result<(), StoreError> {
    let past = PastDecision {
        from: address(&email.from).chars().take(FROM_CHARS).collect(),
        subject: one_line(&email.subject),
        decision,
    };
    let put = PutItem {
        namespace: namespace()?,
        key: thread.to_owned(),
        value: serde_json::to_value(past).unwrap_or(Json::Object(Default::default())),
        ttl: Some(Ttl {
            ms: REMEMBERED_MS,
            refresh_on_read: false,
        }),
    };
    store.put(&put, now()).await
}

/// Returns the latest decisions, newest first.
pub async fn recent(store: &Arc<dyn Store>) -> Result<Vec<PastDecision>, StoreError> {
    let search = Search {
        prefix: namespace()?.segments().to_vec(),
        page: Page {
            limit: RECENT_MAX,
            offset: 0,
        },
        ..Search::default()
    };
    let found = store.search(&search, now()).await?;
    // A later version may have written a decision in a form that this one does not know.
    let known = found
        .into_iter()
        .filter_map(|item| serde_json::from_value(item.value).ok());
    Ok(known.collect())
}

/// Chooses the decisions that help most with an email: those about the same sender first, then about a similar one or a similar
/// subject. Leaves out unrelated ones: what one stranger wrote is not put next to the mail of another.
pub fn examples<'a>(email: &Email, past: &'a [PastDecision]) -> Vec<&'a PastDecision> {
    let mut ranked: Vec<(usize, &PastDecision)> = past
        .iter()
        .map(|known| (relevance(email, known), known))
        .filter(|(relevance, _)| *relevance > 0)
        .collect();
    // The sort is stable, so the newest come first among equals.
    ranked.sort_by_key(|(relevance, _)| std::cmp::Reverse(*relevance));
    let mut chosen: Vec<&PastDecision> = Vec::new();
    for (_, known) in ranked {
        let alike = chosen
            .iter()
            .filter(|other| other.decision == known.decision)
            .count();
        let is_repeated = chosen
            .iter()
            .any(|other| other.from == known.from && other.subject == known.subject);
        if alike < ALIKE_MAX && !is_repeated && chosen.len() < EXAMPLES_MAX {
            chosen.push(known);
        }
    }
    chosen
}

fn relevance(email: &Email, known: &PastDecision) -> usize {
    let from = address(&email.from);
    let sender = match () {
        () if from == known.from => 3,
        () if registrable(domain_of(&from)) == registrable(domain_of(&known.from)) => 1,
        () => 0,
    };
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        words
            .filter(|word| word.chars().count() >= WORD_CHARS_MIN)
            .map(str::to_lowercase)
            .collect()
    };
    sender
        + words(&email.subject)
            .intersection(&words(&known.subject))
            .count()
}

fn namespace() -> Result<Namespace, StoreError> {
    Namespace::new(["email_assistant", "triage_decisions"])
}

/// Formats a subject or a sender for a list: on one line, without quotes, cut to 80 characters.
pub(super) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('"', "'").chars().take(SUBJECT_CHARS).collect()
}

/// How long a decision is remembered: one year.
const REMEMBERED_MS: u64 = 365 * 86_400_000;
const RECENT_MAX: u32 = 200;
const EXAMPLES_MAX: usize = 5;
/// Maximum number of examples with the same classification.
const ALIKE_MAX: usize = 2;
const SUBJECT_CHARS: usize = 80;
const FROM_CHARS: usize = 100;
const WORD_CHARS_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use superstep::store::MemoryStore;

    use super::*;

    fn email(from: &str, subject: &str) -> Email {
        Email {
            from: from.to_owned(),
            subject: subject.to_owned(),
            ..Email::default()
        }
    }

    #[tokio::test]
    async fn a_decision_is_kept_once_per_mail_and_the_last_one_counts() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let mail = email("Bob <BOB@example.com>", "Q4\nreport \"final\"");
        record(&store, "t1", &mail, Classification::Notify)
            .await
            .unwrap();
        record(&store, "t1", &mail, Classification::Respond)
            .await
            .unwrap();
        assert_eq!(
            recent(&store).await.unwrap(),
            [PastDecision {
                from: "bob@example.com".to_owned(),
                subject: "Q4 report 'final'".to_owned(),
                decision: Classification::Respond,
            }]
        );
    }

    #[test]
    fn examples_are_about_the_same_sender_or_subject() {
        let past = |from: &str, subject: &str, decision| PastDecision {
            from: from.to_owned(),
            subject: subject.to_owned(),
            decision,
        };
        let all = [
            past("x@a.example", "Lunch", Classification::Respond),
            past("y@b.example", "Offer", Classification::Ignore),
            past("z@c.example", "Another offer", Classification::Ignore),
            past("ci@d.example", "Deploy finished", Classification::Notify),
            past("bob@e.example", "Numbers", Classification::Respond),
        ];
        let chosen = examples(&email("Bob <bob@e.example>", "Deploy failed"), &all);
        let subjects: Vec<_> = chosen.iter().map(|known| known.subject.as_str()).collect();
        assert_eq!(subjects, ["Numbers", "Deploy finished"]);
    }
}
