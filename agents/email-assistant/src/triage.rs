//! Triage: classifies an email, and shows the ones that a person only has to know about.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::label::{Label, Labels};
use superstep::{Command, END, Interrupt, Node, NodeCx, NodeError, View};
use superstep_agent::{AgentEvent, ChatMessage, failure, within};
use superstep_llm::{Message, Model, Request, fit};

use super::decisions;
use super::email::{Email, format_gmail_markdown, parse_gmail};
use super::learn::{SHOWN_AND_ANSWERED, SHOWN_AND_LEFT, Teacher, short};
use super::memory::Preferences;
use super::sorting::{Preparation, RouterSchema, SortedMail};
use super::state::{Classification, Ended, MailState, MailStateUpdate};
use super::{MailDeps, RESPONSE_AGENT, TRIAGE_INTERRUPT_HANDLER};

/// Cuts a request to the model's context size, and returns descriptions of what was cut.
pub(super) async fn cut(
    request: &mut Request,
    model: &dyn Model,
) -> Result<Vec<String>, NodeError> {
    let size = model.context_size().await.map_err(failure)?;
    let cuts = size.map(|size| fit::fit(request, size)).unwrap_or_default();
    Ok(cuts.iter().map(ToString::to_string).collect())
}

/// Emits a live progress event that names what was cut; nothing if nothing was.
pub(super) fn tell_cuts(cuts: &[String], cx: &NodeCx) -> Result<(), NodeError> {
    if cuts.is_empty() {
        return Ok(());
    }
    let text = format!("cut to fit the model: {}", cuts.join(", "));
    cx.emit_live(AgentEvent::progress(text))
}

/// Returns the labels of everything derived from an email.
pub(super) fn mail_labels() -> Labels {
    Labels::NONE.with(Label::UNTRUSTED).with(Label::PRIVATE)
}

/// Returns the first message of the response agent: the email, with its labels.
pub(super) fn respond_to(email: &Email) -> ChatMessage {
    let text = format!("Respond to the email: \n\n{}", format_gmail_markdown(email));
    ChatMessage::new(Message::user(text), mail_labels())
}

/// Node that classifies the email and routes it to the response agent, to the person, or to the end.
pub(super) struct TriageRouter(pub(super) Arc<MailDeps>);

impl Node<MailState> for TriageRouter {
    async fn run(
        &self,
        state: View<MailState>,
        cx: NodeCx,
    ) -> Result<Command<MailState>, NodeError> {
        let deps = &self.0;
        let email = parse_gmail(&state.email_input);
        cx.note_read(&mail_labels());
        let prepared = Preparation::of(&email, &deps.store(&cx)).await?;
        let sorted = match prepared.decided() {
            Some(sorted) => Some(sorted),
            None => self.sort(&prepared, &state, &email, &cx).await?,
        };
        let Some(sorted) = sorted else {
            let update = MailStateUpdate::default().ended(Some(Ended::Stopped));
            return Ok(Command::update(update).goto(END));
        };
        let value = sorted.form;
        let mut update = MailStateUpdate::default()
            .classification_decision(Some(value.classification))
            .reasoning(value.reasoning)
            .quote(value.quote)
            .suspicion(sorted.suspicion)
            .degraded(sorted.degraded)
            .spent(sorted.spent);
        let goto = match value.classification {
            Classification::Respond => {
                update = update.messages(respond_to(&email));
                RESPONSE_AGENT
            }
            Classification::Notify => TRIAGE_INTERRUPT_HANDLER,
            Classification::Ignore => {
                update = update.ended(Some(Ended::Ignored));
                END
            }
        };
        Ok(Command::update(update).goto(goto))
    }
}

impl TriageRouter {
    /// Asks the model. Returns `None` if the person does not want to pay for it.
    async fn sort(
        &self,
        prepared: &Preparation,
        state: &MailState,
        email: &Email,
        cx: &NodeCx,
    ) -> Result<Option<SortedMail>, NodeError> {
        let deps = &self.0;
        let model = deps.model(state, cx)?;
        let store = deps.store(cx);
        let request = prepared.request(email, &deps.prompts, &store, &*model);
        let (request, labels, cuts) = request.await?;
        cx.note_read(&labels);
        tell_cuts(&cuts, cx)?;
        let mut inquiry = prepared.inquiry(email, request);
        loop {
            let request = inquiry.request();
            let answer = within(deps.spending.as_ref(), cx, async |asker| {
                asker
                    .ask_for(&*model, request, RouterSchema::otherwise)
                    .await
            });
            let Some(answer) = answer.await? else {
                return Ok(None);
            };
            if let Some(sorted) = inquiry.answered(answer) {
                return Ok(Some(sorted));
            }
        }
    }
}

/// Returns what a person is shown of an email that waits for them: why it is suspicious, if it is, and the email.
fn notice(email: &Email, suspicion: &[String]) -> String {
    let mail = format_gmail_markdown(email);
    if suspicion.is_empty() {
        return mail;
    }
    let reasons: Vec<_> = suspicion
        .iter()
        .map(|reason| format!("- {reason}"))
        .collect();
    format!(
        "This mail is suspicious, and no reply was drafted:\n{}\n\n{mail}",
        reasons.join("\n")
    )
}

/// Node that shows an email to the person, who may ignore it or say what to reply.
pub(super) struct TriageInterruptHandler(pub(super) Arc<MailDeps>);

/// A person's answer to an interrupt, in the shape that inboxes send.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Answer {
    #[serde(rename = "type")]
    pub(super) kind: AnswerKind,
    #[serde(default)]
    args: Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AnswerKind {
    Accept,
    Response,
    Ignore,
}

impl Answer {
    /// Returns what the person wrote: text as it is, other JSON serialized, empty if nothing.
    pub(super) fn words(&self) -> String {
        match &self.args {
            Json::String(text) => text.clone(),
            Json::Null => String::new(),
            other => other.to_string(),
        }
    }
}

/// Returns the `config` of an interrupt, which tells inboxes the answers that are allowed.
pub(super) fn may(words: &[&str]) -> Json {
    json!({
        "allow_ignore": words.contains(&"ignore"),
        "allow_respond": words.contains(&"response"),
        "allow_edit": words.contains(&"edit"),
        "allow_accept": words.contains(&"accept"),
    })
}

/// Returns the JSON Schema of an answer whose type is one of `words`.
pub(super) fn answer_schema(words: &[&str]) -> Json {
    json!({
        "type": "object",
        "properties": {
            "type": { "enum": words },
            "args": { "type": ["object", "string", "null"] },
        },
        "required": ["type"],
        "additionalProperties": false,
    })
}

impl Node<MailState> for TriageInterruptHandler {
    async fn run(
        &self,
        state: View<MailState>,
        cx: NodeCx,
    ) -> Result<Command<MailState>, NodeError> {
        let email = parse_gmail(&state.email_input);
        let decision = state
            .classification_decision
            .unwrap_or(Classification::Notify);
        cx.note_read(&mail_labels());
        let request = json!({
            "action_request": { "action": format!("Email Assistant: {}", decision.word()), "args": {} },
            "config": may(&["ignore", "response"]),
            "description": notice(&email, &state.suspicion),
            "classification_decision": decision,
            "reasoning": state.reasoning,
            "quote": state.quote,
            "suspicion": state.suspicion,
        });
        let question = Interrupt::new("notify", request)
            .kind("notify")
            .schema(answer_schema(&["ignore", "response"]));
        let answer: Answer = cx.interrupt(question).await?;
        let teacher = Teacher::new(&self.0, &state, &email, &cx)?;
        let said = answer.words();
        let wanted = match answer.kind {
            AnswerKind::Response => Classification::Respond,
            AnswerKind::Ignore | AnswerKind::Accept => Classification::Ignore,
        };
        // The sender of a suspicious mail may be forged: what happens to it says nothing about the real sender.
        if state.suspicion.is_empty() {
            let thread = cx.thread().to_string();
            let store = self.0.store(&cx);
            let recorded = decisions::record(&store, &thread, &email, wanted).await;
            recorded.map_err(NodeError::retryable)?;
        }
        let (event, goto, update) = match answer.kind {
            AnswerKind::Response => {
                let told = format!(
                    "User wants to reply to the email. Use this feedback to respond: {said}"
                );
                let told = ChatMessage::new(Message::user(told), mail_labels());
                let update = MailStateUpdate::default()
                    .messages(respond_to(&email))
                    .messages(told);
                let event = format!("{SHOWN_AND_ANSWERED} {}", short(&said));
                (event, RESPONSE_AGENT, update)
            }
            AnswerKind::Ignore | AnswerKind::Accept => {
                let update = MailStateUpdate::default().ended(Some(Ended::Ignored));
                (SHOWN_AND_LEFT.to_owned(), END, update)
            }
        };
        let lesson = teacher.learn(Preferences::Triage, "notify", &event).await?;
        Ok(Command::update(lesson.into_update(update)).goto(goto))
    }
}
