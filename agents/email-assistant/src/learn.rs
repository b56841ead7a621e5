//! Learns from a person's answers: a model words one line, code checks it, and the person confirms it.

use std::sync::Arc;

use archie_agent::clock::now;
use archie_agent::prompts::filled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::store::Store;
use superstep::{NodeCx, NodeError};
use superstep_agent::memory::Source;
use superstep_agent::{AgentEvent, Spent, within};
use superstep_llm::structured::Structured;
use superstep_llm::{Message, Model, Request};

use super::MailDeps;
use super::email::Email;
use super::memory::{ChangeSource, Preferences, get_memory};
use super::preference::{LineContext, LineProblem, checked_line};
use super::prompts::{Prompts, numbered};
use super::proposals::{Proposal, propose, proposed_before};
use super::state::{Learned, MailState, MailStateUpdate};
use super::triage::{cut, mail_labels};

/// What the model is asked for after a person's answer: one line for a list of preferences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserPreferences {
    /// What the answer shows about other mails, in a few words.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub chain_of_thought: String,
    /// The new sentence; empty if nothing can be learned.
    #[serde(alias = "line")]
    #[schemars(length(max = 200))]
    pub user_preferences: String,
    /// The number of the sentence that goes; 0 if none does.
    #[serde(default)]
    pub replaces: u32,
}

/// What [`update_memory`] needs besides the messages: the email that they are about, and how to ask a model.
#[derive(Debug)]
pub struct LessonContext<'a> {
    /// The email. Its words may not become a preference.
    pub email: &'a Email,
    /// Prompts of the agent. Their words may not become a preference either.
    pub prompts: &'a Prompts,
    /// Idempotency key, reason and labels of the change.
    pub because: ChangeSource,
}

/// Result of [`update_memory`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryUpdate {
    /// The person is asked to confirm this change.
    Proposed(Learned),
    /// The model's line cannot be a preference.
    Unusable(LineProblem),
    /// The model saw nothing to learn, or was not asked.
    Nothing,
}

/// Learns from `messages`, which say what a person did: has a model word one line for the list, checks the line, and proposes
/// it to the person. The list itself does not change before the person accepts. `ask` calls the model with the list and the
/// messages; it returns `None` if the person does not want to pay for the call.
///
/// A second attempt with the same key asks no model and proposes nothing again.
pub async fn update_memory(
    store: &Arc<dyn Store>,
    namespace: Preferences,
    messages: &[Message],
    context: LessonContext<'_>,
    ask: impl AsyncFnOnce(Vec<Message>) -> Result<Option<UserPreferences>, NodeError>,
) -> Result<MemoryUpdate, NodeError> {
    let before = proposed_before(store, &context.because.key).await;
    if let Some(learned) = before.map_err(NodeError::retryable)? {
        // An earlier execution stored the proposal and died before its commit.
        return Ok(MemoryUpdate::Proposed(learned));
    }
    let known = get_memory(store, namespace, namespace.default_lines()).await;
    let (lines, labels) = known.map_err(NodeError::retryable)?;
    let system = filled(
        &context.prompts.learn,
        &[("memory", namespace.name()), ("lines", &numbered(&lines))],
    );
    let asked = std::iter::once(Message::system(system)).chain(messages.iter().cloned());
    let Some(answer) = ask(asked.collect()).await? else {
        return Ok(MemoryUpdate::Nothing);
    };
    if answer.user_preferences.trim().is_empty() {
        return Ok(MemoryUpdate::Nothing);
    }
    let mut own = context.prompts.texts();
    own.extend(EVENTS);
    let compared = LineContext {
        known: &lines,
        prompts: &own,
        email: context.email,
    };
    let line = match checked_line(&answer.user_preferences, &compared) {
        Ok(line) => line,
        Err(problem) => return Ok(MemoryUpdate::Unusable(problem)),
    };
    let replaced = (answer.replaces as usize).checked_sub(1);
    let proposal = Proposal {
        list: namespace,
        line,
        replaces: replaced
            .and_then(|at| lines.get(at).cloned())
            .unwrap_or_default(),
        why: context.because.source.why.clone(),
        at: now().0,
    };
    let because = ChangeSource {
        labels: context.because.labels.join(&labels),
        ..context.because
    };
    let id = propose(store, &proposal, because).await;
    let id = id.map_err(NodeError::retryable)?;
    Ok(MemoryUpdate::Proposed(proposal.learned(&id)))
}

/// A proposed memory change, if there is one, and the cost of asking for it.
#[derive(Debug, Default)]
pub(super) struct Lesson {
    pub(super) learned: Option<Learned>,
    pub(super) spent: Spent,
}

impl Lesson {
    pub(super) fn into_update(self, update: MailStateUpdate) -> MailStateUpdate {
        let update = update.spent(self.spent);
        match self.learned {
            Some(learned) => update.learned(learned),
            None => update,
        }
    }
}

/// Learns from what one person did with one email.
pub(super) struct Teacher<'a> {
    deps: &'a MailDeps,
    model: Arc<dyn Model>,
    email: &'a Email,
    cx: &'a NodeCx,
}

impl<'a> Teacher<'a> {
    pub(super) fn new(
        deps: &'a MailDeps,
        state: &MailState,
        email: &'a Email,
        cx: &'a NodeCx,
    ) -> Result<Self, NodeError> {
        let model = deps.model(state, cx)?;
        Ok(Self {
            deps,
            model,
            email,
            cx,
        })
    }

    /// Has a line about `event` proposed for a list. `what` distinguishes the lessons of one node and is part of the
    /// idempotency key.
    pub(super) async fn learn(
        &self,
        which: Preferences,
        what: &str,
        event: &str,
    ) -> Result<Lesson, NodeError> {
        let event = format!(
            "{event}\nThe mail was from {} about \"{}\".",
            short(&self.email.from),
            short(&self.email.subject)
        );
        let context = LessonContext {
            email: self.email,
            prompts: &self.deps.prompts,
            because: ChangeSource {
                key: self.cx.effect_key(&format!("learn:{what}")),
                source: Source::node(self.cx, format!("mail \"{}\"", short(&self.email.subject))),
                labels: mail_labels(),
            },
        };
        let mut spent = Spent::default();
        let messages = [Message::user(event)];
        let store = self.deps.store(self.cx);
        let update = update_memory(&store, which, &messages, context, async |asked| {
            let (answer, cost) = self.ask(asked).await?;
            spent = cost;
            Ok(answer)
        });
        let learned = match update.await? {
            MemoryUpdate::Proposed(learned) => {
                let text = format!(
                    "{} (proposed):\n  {}",
                    learned.memory,
                    learned.diff.join("\n  ")
                );
                self.cx.emit_live(AgentEvent::progress(text))?;
                Some(learned)
            }
            MemoryUpdate::Unusable(problem) => {
                let text = format!(
                    "nothing was learned from this answer: the model's line was not used, because {problem}"
                );
                self.cx.emit_live(AgentEvent::progress(text))?;
                None
            }
            MemoryUpdate::Nothing => None,
        };
        Ok(Lesson { learned, spent })
    }

    async fn ask(
        &self,
        messages: Vec<Message>,
    ) -> Result<(Option<UserPreferences>, Spent), NodeError> {
        let mut request = Request::new("learn", messages).tokens_max(LESSON_TOKENS);
        cut(&mut request, &*self.model).await?;
        let answer = within(self.deps.spending.as_ref(), self.cx, async |asker| {
            asker
                .ask_for(&*self.model, request, UserPreferences::default)
                .await
        });
        // A person who declined to spend more does not want to pay for learning either.
        let Some(Structured { value, replies, .. }) = answer.await? else {
            return Ok((None, Spent::default()));
        };
        let costs = replies.iter().map(Spent::on);
        Ok((Some(value), costs.fold(Spent::default(), Spent::plus)))
    }
}

/// Collapses white space and cuts a text to 300 characters.
pub(super) fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHORT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What happened to an email that was shown and left.
pub(super) const SHOWN_AND_LEFT: &str = "A mail was shown, and they did not want to see it.";
/// What happened to an email that was shown and is answered; their words follow.
pub(super) const SHOWN_AND_ANSWERED: &str =
    "A mail that was only shown was to be answered, saying:";
/// What happened to an email that was to be answered and was left.
pub(super) const DRAFTED_AND_LEFT: &str = "A mail was about to be answered, and they left it.";
/// What happened to a draft that the person changed; the changes follow.
pub(super) const CHANGED: &str = "They changed what was proposed:";
/// What happened to a draft that the person answered; their words follow.
pub(super) const ANSWERED: &str = "They did not take what was proposed and said:";

/// Our own words in the messages that a lesson is learned from.
const EVENTS: [&str; 5] = [
    SHOWN_AND_LEFT,
    SHOWN_AND_ANSWERED,
    DRAFTED_AND_LEFT,
    CHANGED,
    ANSWERED,
];

const SHORT_CHARS: usize = 300;
const LESSON_TOKENS: u32 = 250;

#[cfg(test)]
mod tests {
    use superstep::label::Labels;
    use superstep::store::MemoryStore;

    use super::super::proposals::proposals;
    use super::*;

    async fn learned_from(line: &str) -> (MemoryUpdate, usize) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let context = LessonContext {
            email: &Email::default(),
            prompts: &Prompts::default(),
            because: ChangeSource {
                key: "0123456789abcdef".to_owned(),
                source: Source::person("mail \"Hi\""),
                labels: Labels::NONE,
            },
        };
        let which = Preferences::Response;
        let before = get_memory(&store, which, which.default_lines())
            .await
            .unwrap();
        let messages = [Message::user(CHANGED)];
        let update = update_memory(&store, which, &messages, context, async |asked| {
            assert!(asked[0].text().contains(&before.0[0]), "the list is shown");
            assert_eq!(asked[1].text(), CHANGED);
            Ok(Some(UserPreferences {
                user_preferences: line.to_owned(),
                replaces: 1,
                ..UserPreferences::default()
            }))
        });
        let update = update.await.unwrap();
        let after = get_memory(&store, which, which.default_lines())
            .await
            .unwrap();
        assert_eq!(after, before, "no line takes effect before it is confirmed");
        (update, proposals(&store).await.unwrap().0.len())
    }

    #[tokio::test]
    async fn a_bracket_and_a_parroted_prompt_are_not_even_proposed() {
        assert_eq!(
            learned_from("]").await,
            (MemoryUpdate::Unusable(LineProblem::NoWords), 0)
        );
        let own = "what that shows about other mails, in a few words";
        assert_eq!(
            learned_from(own).await,
            (MemoryUpdate::Unusable(LineProblem::OwnPrompt), 0)
        );
        assert_eq!(
            learned_from(SHOWN_AND_LEFT).await,
            (MemoryUpdate::Unusable(LineProblem::OwnPrompt), 0)
        );
        assert_eq!(learned_from(" ").await, (MemoryUpdate::Nothing, 0));
    }

    #[tokio::test]
    async fn a_sentence_is_proposed_with_the_line_it_replaces() {
        let (update, open) = learned_from("Name a day and a time.").await;
        let MemoryUpdate::Proposed(learned) = update else {
            panic!("{update:?}");
        };
        assert_eq!(open, 1);
        assert_eq!(learned.proposal, "0123456789ab");
        assert_eq!(learned.diff.len(), 2);
        assert_eq!(learned.diff[1], "+ Name a day and a time.");
    }

    #[test]
    fn the_form_is_flat_and_reads_what_earlier_versions_asked_for() {
        superstep_llm::structured::output_schema::<UserPreferences>().unwrap();
        let old: UserPreferences =
            serde_json::from_str(r#"{"line": "Be warm.", "replaces": 2}"#).unwrap();
        assert_eq!(
            (old.user_preferences.as_str(), old.replaces),
            ("Be warm.", 2)
        );
    }
}
