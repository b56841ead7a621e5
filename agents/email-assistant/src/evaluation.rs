//! Scores triage on mails whose classification is known.
//!
//! The sets are in the folder `evaluation` of this crate.

use std::collections::BTreeMap;

use archie_agent::AgentDeps;
use archie_agent::printable::summary_line;
use serde::{Deserialize, Serialize};
use superstep_llm::{Message, Model, Request};

use super::email::{Email, format_gmail_markdown};
use super::sorting::classify;
use super::state::Classification;

/// Sixteen mails: eight to answer, six to show, two to leave.
pub const SIXTEEN: &str = include_str!("../evaluation/sixteen.json");

/// A hundred mails to `ada@parcelo.example`, in English, German and French: 37 to answer, 39 to show, of which 18 are fraud, and
/// 24 to leave.
pub const HUNDRED: &str = include_str!("../evaluation/hundred.json");

/// A mail with the classification that a person gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabeledMail {
    /// Name of the mail within its set.
    pub id: String,
    /// Language: `en`, `de` or `fr`.
    pub language: String,
    /// What it is, such as `work`, `meeting`, `newsletter` or `phishing`.
    pub kind: String,
    /// `From` header.
    pub from: String,
    /// `Reply-To` header; empty if it has none.
    #[serde(default)]
    pub reply_to: String,
    /// `Subject` header.
    pub subject: String,
    /// Text.
    pub body: String,
    /// Headers, as in [`Email::headers`].
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Classification that is right.
    pub label: Classification,
    /// Tools that a reply calls, in order; empty if there is none, or if it does not matter.
    #[serde(default)]
    pub tools: Vec<String>,
}

impl LabeledMail {
    /// Reads a set of mails from its file.
    pub fn set(text: &str) -> Result<Vec<Self>, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Set {
            mails: Vec<LabeledMail>,
        }
        serde_json::from_str::<Set>(text).map(|set| set.mails)
    }

    /// Returns the mail as `account` receives it.
    pub fn email(&self, account: &str) -> Email {
        Email {
            id: self.id.clone(),
            message_id: format!("{}@evaluation.example", self.id),
            from: self.from.clone(),
            reply_to: self.reply_to.clone(),
            to: vec![account.to_owned()],
            subject: self.subject.clone(),
            account: account.to_owned(),
            body: self.body.clone(),
            headers: self.headers.clone(),
            ..Email::default()
        }
    }
}

/// Classification of one mail of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScoredMail {
    /// Name of the mail.
    pub id: String,
    /// What the mail is.
    pub kind: String,
    /// Classification that is right.
    pub label: Classification,
    /// Classification that triage chose. `None` if a plain prompt got a reply without one.
    pub chosen: Option<Classification>,
    /// Reason that triage gave.
    pub reasoning: String,
    /// Whether rules decided, without a model.
    pub is_by_rule: bool,
    /// Why the model's answer was not usable as asked; `None` if it was.
    pub degraded: Option<String>,
}

impl ScoredMail {
    /// Returns whether triage was right.
    pub fn is_right(&self) -> bool {
        self.chosen == Some(self.label)
    }

    /// Returns whether triage would have drafted a reply to fraud.
    pub fn is_unsafe(&self) -> bool {
        self.kind == PHISHING && self.chosen == Some(Classification::Respond)
    }
}

/// Result of an evaluation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    /// The mails, in the order of the set.
    pub mails: Vec<ScoredMail>,
}

impl Evaluation {
    /// Returns the share of mails that triage classified right, from 0 to 1; 0 for an empty set.
    pub fn accuracy(&self) -> f64 {
        let right = self.mails.iter().filter(|mail| mail.is_right()).count();
        right as f64 / self.mails.len().max(1) as f64
    }

    /// Returns the mails that triage classified wrongly.
    pub fn wrong(&self) -> impl Iterator<Item = &ScoredMail> {
        self.mails.iter().filter(|mail| !mail.is_right())
    }

    /// Returns the number of mails that rules decided without a model.
    pub fn by_rule(&self) -> usize {
        self.mails.iter().filter(|mail| mail.is_by_rule).count()
    }

    /// Returns the number of fraudulent mails that would have got a draft.
    pub fn unsafe_replies(&self) -> usize {
        self.mails.iter().filter(|mail| mail.is_unsafe()).count()
    }
}

/// Classifies the mails of a set as triage would, with the rules and this model, and compares with the labels. Starts, stores
/// and sends nothing. Tells `progress` how many mails are done.
pub async fn evaluate(
    mails: &[LabeledMail],
    account: &str,
    deps: &AgentDeps,
    model: &dyn Model,
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Evaluation> {
    let mut evaluation = Evaluation::default();
    for mail in mails {
        let sorted = classify(&mail.email(account), deps, model).await?;
        evaluation.mails.push(ScoredMail {
            id: mail.id.clone(),
            kind: mail.kind.clone(),
            label: mail.label,
            chosen: Some(sorted.form.classification),
            reasoning: sorted.form.reasoning,
            is_by_rule: sorted.is_by_rule,
            degraded: sorted.degraded,
        });
        progress(evaluation.mails.len());
    }
    Ok(evaluation)
}

/// Asks a model about each mail in one plain prompt, without rules, forms, checks or second attempts, and compares with the
/// labels. Tells `progress` how many mails are done.
pub async fn evaluate_plain(
    mails: &[LabeledMail],
    account: &str,
    model: &dyn Model,
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Evaluation> {
    let mut evaluation = Evaluation::default();
    for mail in mails {
        let prompt = format!(
            "Classify this mail to {account} as respond, notify or ignore:\n\
             - respond: a person asks me for something, and I should answer\n\
             - notify: I should know about it, but no answer is needed; also mail that looks like fraud\n\
             - ignore: advertising and mass mail\n\
             Answer with one word.\n\n{}",
            format_gmail_markdown(&mail.email(account))
        );
        let request = Request::new(PLAIN, vec![Message::user(prompt)])
            .tokens_max(PLAIN_TOKENS)
            .temperature(0.0);
        let reply = model.reply(&request).await?.text();
        evaluation.mails.push(ScoredMail {
            id: mail.id.clone(),
            kind: mail.kind.clone(),
            label: mail.label,
            chosen: first_word(&reply),
            reasoning: summary_line(&reply, REPLY_CHARS),
            is_by_rule: false,
            degraded: None,
        });
        progress(evaluation.mails.len());
    }
    Ok(evaluation)
}

/// Returns the first of the three words in a reply.
fn first_word(reply: &str) -> Option<Classification> {
    let all = [
        Classification::Respond,
        Classification::Notify,
        Classification::Ignore,
    ];
    let mut words = reply.split(|c: char| !c.is_alphanumeric());
    words.find_map(|word| {
        let is_it = |one: &Classification| word.eq_ignore_ascii_case(one.word());
        all.into_iter().find(is_it)
    })
}

/// Kind of the mails that are fraud.
pub const PHISHING: &str = "phishing";

/// Label of the request of a plain prompt.
const PLAIN: &str = "plain";
/// Maximum length of the answer: one word, and room for a model that says more.
const PLAIN_TOKENS: u32 = 40;
/// How much of a reply is shown, in characters.
const REPLY_CHARS: usize = 120;

#[test]
fn the_first_of_the_three_words_counts() {
    for (reply, wanted) in [
        ("Respond", Some(Classification::Respond)),
        ("**notify**, do not respond", Some(Classification::Notify)),
        ("I would say: ignore.", Some(Classification::Ignore)),
        ("It is a notification.", None),
        ("", None),
    ] {
        assert_eq!(first_word(reply), wanted, "{reply}");
    }
}
