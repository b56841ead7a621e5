//! Triage: classifies an email, and shows the ones that a person only has to know about.

use std::sync::Arc;

use archie_agent::prompts::{PromptFiles, filled};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::label::{Label, Labels};
use superstep::store::Store;
use superstep::{Command, END, Interrupt, Node, NodeCx, NodeError, View};
use superstep_agent::{AgentEvent, ChatMessage, Spent, failure, within};
use superstep_llm::structured::{self, Structured};
use superstep_llm::{Message, Model, Request, fit};

use super::email::{Email, format_gmail_markdown, parse_gmail};
use super::learn::{Teacher, short};
use super::memory::{Preferences, get_memory};
use super::prompts::{Prompts, numbered};
use super::state::{Classification, Ended, MailState, MailStateUpdate};
use super::{MailDeps, RESPONSE_AGENT, TRIAGE_INTERRUPT_HANDLER, TRIAGE_ROUTER};

/// What the router is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouterSchema {
    /// Why, in one sentence.
    #[schemars(length(max = 300))]
    pub reasoning: String,
    /// What the mail is taken for.
    pub classification: Classification,
}

impl RouterSchema {
    /// Returns the classification for when the model's output cannot be parsed: `notify`, so that a person looks.
    pub fn otherwise() -> Self {
        Self {
            reasoning: "the model gave no answer that can be read".to_owned(),
            classification: Classification::Notify,
        }
    }
}

/// Classifies an email with the current memory, outside of any thread: starts, stores and sends nothing.
pub async fn classify(
    email: &Email,
    deps: &archie_agent::AgentDeps,
    model: &dyn Model,
) -> anyhow::Result<RouterSchema> {
    let prompts = Prompts::of(super::NAME, deps)?;
    let request = router_request(email, &prompts, &deps.store, model).await;
    let (request, ..) = request.map_err(|error| anyhow::anyhow!("{error}"))?;
    let answer = structured::ask(model, request, RouterSchema::otherwise).await?;
    Ok(answer.value)
}

/// Builds the triage request, cut to the model's context size. Returns it with the labels of the memory it contains and
/// descriptions of what was cut.
pub(super) async fn router_request(
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
        ],
    );
    let mail = filled(
        &prompts.triage_mail,
        &[("email", &format_gmail_markdown(email))],
    );
    let messages = vec![Message::system(system), Message::user(mail)];
    let mut request = Request::new(TRIAGE_ROUTER, messages).tokens_max(ANSWER_TOKENS);
    let cuts = cut(&mut request, model).await?;
    Ok((request, labels, cuts))
}

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
        let model = deps.model(&state)?;
        let (request, labels, cuts) =
            router_request(&email, &deps.prompts, &deps.store, &*model).await?;
        cx.note_read(&labels.join(&mail_labels()));
        tell_cuts(&cuts, &cx)?;
        let answer = within(deps.spending.as_ref(), &cx, async |asker| {
            asker
                .ask_for(&*model, request, RouterSchema::otherwise)
                .await
        });
        let Some(Structured {
            value,
            degraded,
            replies,
        }) = answer.await?
        else {
            let update = MailStateUpdate::default().ended(Some(Ended::Stopped));
            return Ok(Command::update(update).goto(END));
        };
        let mut update = MailStateUpdate::default()
            .classification_decision(Some(value.classification))
            .reasoning(value.reasoning)
            .degraded(degraded)
            .spent(
                replies
                    .iter()
                    .map(Spent::on)
                    .fold(Spent::default(), Spent::plus),
            );
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
            "description": format_gmail_markdown(&email),
            "classification_decision": decision,
            "reasoning": state.reasoning,
        });
        let question = Interrupt::new("notify", request)
            .kind("notify")
            .schema(answer_schema(&["ignore", "response"]));
        let answer: Answer = cx.interrupt(question).await?;
        let teacher = Teacher::new(&self.0, &state, &email, &cx)?;
        let said = answer.words();
        let (event, goto, update) = match answer.kind {
            AnswerKind::Response => {
                let told = format!(
                    "User wants to reply to the email. Use this feedback to respond: {said}"
                );
                let told = ChatMessage::new(Message::user(told), mail_labels());
                let update = MailStateUpdate::default()
                    .messages(respond_to(&email))
                    .messages(told);
                let event = format!(
                    "A mail that was only shown was to be answered, saying: {}",
                    short(&said)
                );
                (event, RESPONSE_AGENT, update)
            }
            AnswerKind::Ignore | AnswerKind::Accept => {
                let update = MailStateUpdate::default().ended(Some(Ended::Ignored));
                (
                    "A mail was shown, and they did not want to see it.".to_owned(),
                    END,
                    update,
                )
            }
        };
        let lesson = teacher.learn(Preferences::Triage, "notify", &event).await?;
        Ok(Command::update(lesson.into_update(update)).goto(goto))
    }
}

/// Maximum length of the triage output: one sentence and one word.
const ANSWER_TOKENS: u32 = 300;
