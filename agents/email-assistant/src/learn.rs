//! Learns from a person's answers: a model words one line, and code adds it to the list.

use std::sync::Arc;

use archie_agent::prompts::filled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::label::Labels;
use superstep::{NodeCx, NodeError};
use superstep_agent::memory::Source;
use superstep_agent::{AgentEvent, Spent, within};
use superstep_llm::structured::Structured;
use superstep_llm::{Message, Model, Request};

use super::MailDeps;
use super::email::Email;
use super::memory::{Change, ChangeSource, Preferences, changed_before, get_memory, update_memory};
use super::prompts::numbered;
use super::state::{Learned, MailState, MailStateUpdate};
use super::triage::{cut, mail_labels};

/// What the model is asked for: a patch of a list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct UserPreferences {
    /// The line that comes; empty if nothing can be learned.
    #[schemars(length(max = 200))]
    pub line: String,
    /// The number of the line that goes; 0 if none does.
    pub replaces: u32,
}

/// A memory change, if there was one, and the cost of asking for it.
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
        let model = deps.model(state)?;
        Ok(Self {
            deps,
            model,
            email,
            cx,
        })
    }

    /// Asks the model for a line about `event` and adds it to a list. `what` distinguishes the lessons of one node and is part
    /// of the idempotency key.
    pub(super) async fn learn(
        &self,
        which: Preferences,
        what: &str,
        event: &str,
    ) -> Result<Lesson, NodeError> {
        let store = &self.deps.store;
        let key = self.cx.effect_key(&format!("learn:{what}"));
        let before = changed_before(store, which, &key).await;
        if let Some(learned) = before.map_err(NodeError::retryable)? {
            // An earlier execution changed the memory and died before its commit.
            return Ok(Lesson {
                learned: Some(learned),
                spent: Spent::default(),
            });
        }
        let known = get_memory(store, which, which.default_lines()).await;
        let (lines, labels) = known.map_err(NodeError::retryable)?;
        let event = format!(
            "{event}\nThe mail was from {} about \"{}\".",
            short(&self.email.from),
            short(&self.email.subject)
        );
        let prompt = filled(
            &self.deps.prompts.learn,
            &[
                ("memory", which.name()),
                ("lines", &numbered(&lines)),
                ("event", &event),
            ],
        );
        let mut request = Request::new("learn", vec![Message::user(prompt)]).tokens_max(200);
        cut(&mut request, &*self.model).await?;
        let answer = within(self.deps.spending.as_ref(), self.cx, async |asker| {
            asker
                .ask_for(&*self.model, request, UserPreferences::default)
                .await
        });
        // A person who declined to spend more does not want to pay for learning either.
        let Some(Structured { value, replies, .. }) = answer.await? else {
            return Ok(Lesson::default());
        };
        let spent = replies
            .iter()
            .map(Spent::on)
            .fold(Spent::default(), Spent::plus);
        let learned = self.write(which, key, &value, labels).await?;
        Ok(Lesson { learned, spent })
    }

    async fn write(
        &self,
        which: Preferences,
        key: String,
        proposed: &UserPreferences,
        labels: Labels,
    ) -> Result<Option<Learned>, NodeError> {
        let change = Change {
            line: proposed.line.clone(),
            replaces: proposed.replaces as usize,
        };
        let because = ChangeSource {
            key,
            source: Source::node(self.cx, format!("mail \"{}\"", short(&self.email.subject))),
            labels: labels.join(&mail_labels()),
        };
        let learned = update_memory(&self.deps.store, which, &change, because).await;
        let learned = learned.map_err(NodeError::retryable)?;
        if let Some(learned) = &learned {
            let text = format!("{}:\n  {}", learned.memory, learned.diff.join("\n  "));
            self.cx.emit_live(AgentEvent::progress(text))?;
        }
        Ok(learned)
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

const SHORT_CHARS: usize = 300;
