//! Classifies an email: rules first, then a model that fills in a form and must quote the email.

use std::sync::Arc;

use archie_agent::prompts::{PromptFiles, filled};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::NodeError;
use superstep::label::Labels;
use superstep::store::Store;
use superstep_agent::Spent;
use superstep_llm::structured::{self, Structured};
use superstep_llm::{Message, Model, Request};

use super::TRIAGE_ROUTER;
use super::decisions::{PastDecision, examples, recent};
use super::email::{Email, format_gmail_markdown};
use super::memory::{Preferences, get_memory};
use super::prompts::{Prompts, numbered};
use super::rules::{RuleSettings, RuleVerdict, asks_something, verdict};
use super::state::Classification;
use super::suspicion::{Suspicion, suspicion};
use super::triage::cut;

/// The form that the router fills in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouterSchema {
    /// The sentence of the mail that decides it, copied word for word.
    #[serde(default)]
    #[schemars(length(max = 300))]
    pub quote: String,
    /// Why, in a few words.
    #[schemars(length(max = 300))]
    pub reasoning: String,
    /// What the mail is taken for.
    pub classification: Classification,
}

impl RouterSchema {
    /// Returns the classification for when the model's output cannot be parsed: `notify`, so that a person looks.
    pub fn otherwise() -> Self {
        Self::decided(
            Classification::Notify,
            "the model gave no answer that can be read",
        )
    }

    fn decided(classification: Classification, why: &str) -> Self {
        Self {
            quote: String::new(),
            reasoning: why.to_owned(),
            classification,
        }
    }
}

/// A classified email.
#[derive(Debug, Clone, PartialEq)]
pub struct SortedMail {
    /// The classification, with its reason.
    pub form: RouterSchema,
    /// Why the email is suspicious; empty if it is not.
    pub suspicion: Vec<String>,
    /// Why the model's answer was not usable as asked; `None` if it was, or if no model was asked.
    pub degraded: Option<String>,
    /// Whether rules decided, so that no model was asked.
    pub is_by_rule: bool,
    /// Cost of the model calls.
    pub(super) spent: Spent,
}

/// What is known about an email before a model is asked.
#[derive(Debug)]
pub(super) struct Preparation {
    suspicion: Suspicion,
    verdict: RuleVerdict,
    past: Vec<PastDecision>,
}

impl Preparation {
    /// Applies the rules to an email, with the person's settings and earlier decisions.
    pub(super) async fn of(email: &Email, store: &Arc<dyn Store>) -> Result<Self, NodeError> {
        let settings = RuleSettings::load(store)
            .await
            .map_err(NodeError::retryable)?;
        let past = recent(store).await.map_err(NodeError::retryable)?;
        let suspicion = suspicion(email);
        Ok(Self {
            verdict: verdict(email, &suspicion, &settings, &past),
            suspicion,
            past,
        })
    }

    /// Returns the classification if the rules decide it.
    pub(super) fn decided(&self) -> Option<SortedMail> {
        let RuleVerdict::Decided(classification, why) = &self.verdict else {
            return None;
        };
        Some(SortedMail {
            form: RouterSchema::decided(*classification, why),
            suspicion: match self.suspicion.is_suspicious() {
                true => self.suspicion.reasons.clone(),
                false => Vec::new(),
            },
            degraded: None,
            is_by_rule: true,
            spent: Spent::default(),
        })
    }

    /// Starts asking a model: send [`Inquiry::request`] and pass the answer to [`Inquiry::answered`], until it returns the
    /// classification.
    pub(super) fn inquiry<'a>(&'a self, email: &'a Email, request: Request) -> Inquiry<'a> {
        Inquiry {
            prepared: self,
            email,
            request,
            calls: 0,
            spent: Spent::default(),
        }
    }

    /// Turns a reply that makes no sense into a notice.
    fn limited(&self, form: RouterSchema) -> RouterSchema {
        match (&self.verdict, form.classification) {
            (RuleVerdict::NoReply(why), Classification::Respond) => RouterSchema {
                classification: Classification::Notify,
                reasoning: format!("{} (no reply, because {why})", form.reasoning),
                ..form
            },
            _ => form,
        }
    }
}

/// A model that is being asked about an email.
#[derive(Debug)]
pub(super) struct Inquiry<'a> {
    prepared: &'a Preparation,
    email: &'a Email,
    request: Request,
    calls: u32,
    spent: Spent,
}

impl Inquiry<'_> {
    /// Returns the request to send next.
    pub(super) fn request(&self) -> Request {
        self.request.clone()
    }

    /// Takes an answer. Returns `None` if the model must be asked again, because it quoted what is not in the email.
    pub(super) fn answered(&mut self, answer: Structured<RouterSchema>) -> Option<SortedMail> {
        let Structured {
            value,
            mut degraded,
            replies,
        } = answer;
        self.calls += 1;
        self.spent = replies.iter().map(Spent::on).fold(self.spent, Spent::plus);
        let is_quoted = degraded.is_some() || is_quotation(&value.quote, self.email);
        if !is_quoted && self.calls < CALLS_MAX {
            let said = serde_json::to_string(&value).unwrap_or_default();
            let told = "That quote is not in the mail. Fill in the form again, with a sentence of the mail.";
            let messages = [Message::assistant(said), Message::user(told)];
            self.request.messages.extend(messages);
            return None;
        }
        let form = match is_quoted {
            true => value,
            false => {
                degraded = Some("the model quoted a sentence that is not in the mail".to_owned());
                without_model(self.email)
            }
        };
        Some(SortedMail {
            form: self.prepared.limited(form),
            suspicion: Vec::new(),
            degraded,
            is_by_rule: false,
            spent: self.spent,
        })
    }
}

/// Returns the classification for when the model's answer does not hold: a question may want an answer, and the rest is shown.
fn without_model(email: &Email) -> RouterSchema {
    match asks_something(email) {
        true => RouterSchema::decided(Classification::Respond, "it asks something"),
        false => RouterSchema::decided(Classification::Notify, "it is not clear what it wants"),
    }
}

/// Returns whether a quotation is in the email, apart from case, spaces and punctuation. An empty one stands for the subject.
pub fn is_quotation(quote: &str, email: &Email) -> bool {
    let mail = format!(
        "subject {} from {} {}",
        email.subject, email.from, email.body
    );
    // Spaces around both, so that the quotation begins and ends with whole words. Its last word may be cut off.
    format!(" {} ", bare(&mail)).contains(format!(" {}", bare(quote)).trim_end())
}

/// Returns the words of a text, in lower case, with one space between them.
fn bare(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").to_lowercase()
}

/// Classifies an email with the current memory, outside of any thread: starts, stores and sends nothing.
pub async fn classify(
    email: &Email,
    deps: &archie_agent::AgentDeps,
    model: &dyn Model,
) -> anyhow::Result<SortedMail> {
    let prompts = Prompts::of(super::NAME, deps)?;
    let readable = |error: NodeError| anyhow::anyhow!("{error}");
    let prepared = Preparation::of(email, &deps.store)
        .await
        .map_err(readable)?;
    if let Some(sorted) = prepared.decided() {
        return Ok(sorted);
    }
    let request = prepared.request(email, &prompts, &deps.store, model).await;
    let (request, ..) = request.map_err(readable)?;
    let mut inquiry = prepared.inquiry(email, request);
    loop {
        let answer = structured::ask(model, inquiry.request(), RouterSchema::otherwise).await?;
        if let Some(sorted) = inquiry.answered(answer) {
            return Ok(sorted);
        }
    }
}

impl Preparation {
    /// Builds the triage request, cut to the model's context size. Returns it with the labels of the memory it contains and
    /// descriptions of what was cut.
    pub(super) async fn request(
        &self,
        email: &Email,
        prompts: &Prompts,
        store: &Arc<dyn Store>,
        model: &dyn Model,
    ) -> Result<(Request, Labels, Vec<String>), NodeError> {
        let which = Preferences::Triage;
        let memory = get_memory(store, which, which.default_lines()).await;
        let (lines, labels) = memory.map_err(NodeError::retryable)?;
        let system = filled(
            &prompts.triage,
            &[
                ("account", &email.account),
                ("preferences", &numbered(&lines)),
                ("examples", &self.examples(email, prompts)),
            ],
        );
        let mail = filled(
            &prompts.triage_mail,
            &[("email", &format_gmail_markdown(&shortened(email)))],
        );
        let messages = vec![Message::system(system), Message::user(mail)];
        let mut request = Request::new(TRIAGE_ROUTER, messages).tokens_max(ANSWER_TOKENS);
        let cuts = cut(&mut request, model).await?;
        Ok((request, labels, cuts))
    }

    /// Returns examples for the model: the person's own decisions, and general ones for the classifications that they lack.
    fn examples(&self, email: &Email, prompts: &Prompts) -> String {
        let own = examples(email, &self.past);
        let mut lines: Vec<String> = Vec::new();
        for line in prompts.triage_examples.lines() {
            let is_covered = own
                .iter()
                .any(|known| line.ends_with(known.decision.word()));
            if !line.trim().is_empty() && !is_covered {
                lines.push(line.to_owned());
            }
        }
        lines.extend(own.iter().map(|known| {
            format!(
                "- \"{}\" from {}: {}",
                known.subject,
                known.from,
                known.decision.word()
            )
        }));
        lines.join("\n")
    }
}

/// Cuts a long body: what an email wants is in its beginning, and a small model loses the thread in the rest.
fn shortened(email: &Email) -> Email {
    match email.body.char_indices().nth(BODY_CHARS) {
        Some((end, _)) => Email {
            body: format!("{} …", &email.body[..end]),
            ..email.clone()
        },
        None => email.clone(),
    }
}

/// The answer, and one repair of its quotation.
const CALLS_MAX: u32 = 2;
/// Maximum length of the triage output: a quotation, a reason and one word.
const ANSWER_TOKENS: u32 = 300;
/// How much of the body a model reads for triage, in characters.
const BODY_CHARS: usize = 4_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn email() -> Email {
        Email {
            from: "Bob <bob@example.com>".to_owned(),
            subject: "Q4 report?".to_owned(),
            body: "Hi Ada,\n\nwhen is  the report\nready? Thanks!".to_owned(),
            ..Email::default()
        }
    }

    #[test]
    fn a_quotation_is_in_the_mail_word_for_word() {
        for quote in [
            "when is the report ready?",
            "When is the report ready",
            "\"Thanks!\"",
            "Q4 report?",
            "",
            "when is the repo",
        ] {
            assert!(is_quotation(quote, &email()), "{quote}");
        }
        for quote in [
            "The report is ready.",
            "hen is the report",
            "Please pay the invoice",
        ] {
            assert!(!is_quotation(quote, &email()), "{quote}");
        }
    }

    #[test]
    fn a_model_that_invents_its_quotation_is_asked_again_and_then_not_believed() {
        let prepared = Preparation {
            suspicion: Suspicion::default(),
            verdict: RuleVerdict::Open,
            past: Vec::new(),
        };
        let email = email();
        for (quotes, calls, decision, is_degraded) in [
            (
                ["when is the report ready?", ""],
                1,
                Classification::Ignore,
                false,
            ),
            (
                ["You won!", "when is the report ready?"],
                2,
                Classification::Ignore,
                false,
            ),
            (["You won!", "You lost!"], 2, Classification::Respond, true),
        ] {
            let mut inquiry = prepared.inquiry(&email, Request::new(TRIAGE_ROUTER, Vec::new()));
            let mut sorted = None;
            for (at, quote) in quotes.iter().enumerate().take(calls) {
                assert_eq!(sorted, None, "{quotes:?}");
                let told = inquiry.request().messages.len();
                assert_eq!(told, at * 2, "the second request says what was wrong");
                sorted = inquiry.answered(Structured {
                    value: RouterSchema {
                        quote: (*quote).to_owned(),
                        ..RouterSchema::decided(Classification::Ignore, "because")
                    },
                    degraded: None,
                    replies: Vec::new(),
                });
            }
            let sorted = sorted.unwrap();
            assert_eq!(sorted.form.classification, decision, "{quotes:?}");
            assert_eq!(sorted.degraded.is_some(), is_degraded, "{quotes:?}");
        }
    }

    #[test]
    fn a_sender_that_reads_no_replies_gets_a_notice_instead() {
        let prepared = Preparation {
            suspicion: Suspicion::default(),
            verdict: RuleVerdict::NoReply("its sender reads no replies".to_owned()),
            past: Vec::new(),
        };
        let form = RouterSchema::decided(Classification::Respond, "it asks");
        let limited = prepared.limited(form);
        assert_eq!(limited.classification, Classification::Notify);
        assert_eq!(
            limited.reasoning,
            "it asks (no reply, because its sender reads no replies)"
        );
        let form = RouterSchema::decided(Classification::Ignore, "sale");
        assert_eq!(prepared.limited(form.clone()), form);
    }

    #[test]
    fn own_decisions_take_the_place_of_general_examples() {
        let prompts = Prompts::default();
        let mut prepared = Preparation {
            suspicion: Suspicion::default(),
            verdict: RuleVerdict::Open,
            past: Vec::new(),
        };
        assert_eq!(
            prepared.examples(&email(), &prompts),
            prompts.triage_examples.trim()
        );
        prepared.past.push(PastDecision {
            from: "bob@example.com".to_owned(),
            subject: "Q3 report?".to_owned(),
            decision: Classification::Respond,
        });
        let shown = prepared.examples(&email(), &prompts);
        assert!(
            shown.ends_with("- \"Q3 report?\" from bob@example.com: respond"),
            "{shown}"
        );
        assert_eq!(shown.lines().count(), 3, "{shown}");
    }

    #[test]
    fn the_form_is_flat_and_has_the_names_of_the_brief() {
        let output = structured::output_schema::<RouterSchema>().unwrap();
        let fields = &output.schema["properties"];
        for name in ["quote", "reasoning", "classification"] {
            assert!(fields.get(name).is_some(), "{name}");
        }
        let words = serde_json::json!(["ignore", "respond", "notify"]);
        assert_eq!(fields["classification"]["enum"], words);
    }
}
