//! Handles the tool calls of one model message: the person answers all questions first, then each approved call runs.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use serde_json::{Value as Json, json};
use superstep::label::Labels;
use superstep::{Interrupt, NodeCx, NodeError};
use superstep_agent::{AgentEvent, Calls, ChatMessage, DecidedCall, Decision, digest};
use superstep_llm::{Message, ToolCall, ToolStatus};

use super::email::{Email, format_gmail_markdown};
use super::mailbox::Outgoing;
use super::mime::attached;
use super::policy::{Envelope, deceives, meeting_beyond};
use super::respond::unreachable_mailbox;
use super::tools::{
    DONE, MailTools, Meeting, PlannedMail, QUESTION, Question, Reply, SCHEDULE_MEETING, SEND_EMAIL,
    receipt,
};
use super::triage::{Answer, AnswerKind, answer_schema, may};

/// A finished call.
pub(super) struct CallResult {
    /// The call with the approved arguments, which the person may have edited.
    pub(super) call: ToolCall,
    pub(super) decision: Decision,
    pub(super) message: ChatMessage,
}

impl CallResult {
    pub(super) fn is_error(&self) -> bool {
        matches!(&self.message.message, Message::Tool(result) if result.status == ToolStatus::Error)
    }
}

/// A call that needs no further answer from the person.
pub(super) enum AnsweredCall {
    Tool(DecidedCall),
    /// A question of the model, with the person's answer.
    Question(ToolCall, Answer),
}

/// The tool calls of one model message.
pub(super) struct ToolRound<'a> {
    pub(super) mail_tools: &'a Arc<MailTools>,
    pub(super) calls: Calls<'a>,
    pub(super) labels: Labels,
    pub(super) cx: &'a NodeCx,
}

impl ToolRound<'_> {
    /// Raises all interrupts of the message at once and waits for the answers. Calls that leave the conversation need a second
    /// one. Returns the calls in the model's order, without `Done`.
    pub(super) async fn hear(&self, wanted: &[ToolCall]) -> Result<Vec<AnsweredCall>, NodeError> {
        let acts = wanted.iter().filter(|call| !is_talk(call));
        let questions = wanted.iter().filter(|call| call.name == QUESTION);
        let asked = join_all(questions.map(|call| self.put(call)));
        let (agreed, answered) = join(self.calls.agree(acts), asked).await;
        let agreed = join_all(agreed?.into_iter().map(|agreed| self.confirmed(agreed))).await;
        let mut heard = Vec::new();
        for agreed in agreed {
            heard.push(AnsweredCall::Tool(agreed?));
        }
        for answered in answered {
            let (call, answer) = answered?;
            heard.push(AnsweredCall::Question(call, answer));
        }
        let place = |heard: &AnsweredCall| {
            let id = match heard {
                AnsweredCall::Tool(agreed) => &agreed.call().id,
                AnsweredCall::Question(call, _) => &call.id,
            };
            wanted.iter().position(|call| call.id == *id)
        };
        heard.sort_by_key(place);
        Ok(heard)
    }

    async fn put(&self, call: &ToolCall) -> Result<(ToolCall, Answer), NodeError> {
        let question: Question = serde_json::from_value(call.args.clone()).unwrap_or_default();
        let request = json!({
            "action_request": { "action": QUESTION, "args": call.args },
            "config": may(&["ignore", "response"]),
            "description": format!("{}\n\n{}", question.content, format_gmail_markdown(&self.mail_tools.email)),
            "tool_call_id": call.id,
        });
        let key = format!("question:{}:{}", call.id, digest(&call.name, &call.args));
        let question = Interrupt::new(key, request)
            .kind("question")
            .schema(answer_schema(&["ignore", "response"]));
        Ok((call.clone(), self.cx.interrupt(question).await?))
    }

    /// Asks for a second confirmation if the call leaves the conversation, even if the person has approved the call.
    async fn confirmed(&self, agreed: DecidedCall) -> Result<DecidedCall, NodeError> {
        let beyond = self.beyond(&agreed);
        if !agreed.is_made() || beyond.is_empty() {
            return Ok(agreed);
        }
        let call = agreed.call();
        let sealed = digest(&call.name, &call.args);
        let request = json!({
            "action_request": { "action": call.name, "args": call.args },
            "config": may(&["accept", "ignore"]),
            "description": format!(
                "Really? {}.\n\n{}",
                beyond.join("; "),
                self.mail_tools.describe(&call.name, &call.args)
            ),
            "tool_call_id": call.id,
            "digest": sealed,
            "beyond": beyond,
        });
        let question = Interrupt::new(format!("confirm:{}:{sealed}", call.id), request)
            .kind("confirmation")
            .schema(answer_schema(&["accept", "ignore"]));
        let answer: Answer = self.cx.interrupt(question).await?;
        Ok(match answer.kind {
            AnswerKind::Accept => agreed,
            AnswerKind::Ignore | AnswerKind::Response => agreed.withdrawn(
                "not called: a person did not want it to leave the conversation. Do not call it again for this.",
            ),
        })
    }

    fn beyond(&self, agreed: &DecidedCall) -> Vec<String> {
        let call = agreed.call();
        let email = &self.mail_tools.email;
        let mut beyond = match call.name.as_str() {
            SEND_EMAIL => {
                let reply: Reply = serde_json::from_value(call.args.clone()).unwrap_or_default();
                Envelope::of_reply(email, &reply).beyond(email)
            }
            SCHEDULE_MEETING => {
                let meeting: Meeting =
                    serde_json::from_value(call.args.clone()).unwrap_or_default();
                meeting_beyond(email, &meeting)
            }
            _ => return Vec::new(),
        };
        if texts(&call.args).iter().any(|text| deceives(text)) {
            beyond.push("it holds characters that cannot be seen".to_owned());
        }
        beyond
    }

    /// Runs the approved calls one after the other, in the model's order.
    pub(super) async fn act(&self, heard: Vec<AnsweredCall>) -> Result<Vec<CallResult>, NodeError> {
        let mut came = Vec::new();
        for heard in heard {
            came.push(match heard {
                AnsweredCall::Tool(agreed) => {
                    let (call, decision) = (agreed.call().clone(), agreed.decision());
                    if agreed.is_made() && call.name == SEND_EMAIL {
                        self.plan(&call).await?;
                    }
                    let message = self.calls.make(agreed).await?;
                    self.tell(&call, &message)?;
                    CallResult {
                        call,
                        decision,
                        message,
                    }
                }
                AnsweredCall::Question(call, answer) => self.answered(call, &answer),
            });
        }
        Ok(came)
    }

    fn answered(&self, call: ToolCall, answer: &Answer) -> CallResult {
        let (decision, message) = match answer.kind {
            AnswerKind::Response => {
                let said = format!(
                    "User answered the question, which we can use for any follow up actions: {}",
                    answer.words()
                );
                (Decision::Answered, Message::tool(&call, said))
            }
            AnswerKind::Ignore | AnswerKind::Accept => {
                let why = "the person did not want to answer";
                (Decision::Ignored, Message::tool_error(&call, why))
            }
        };
        CallResult {
            message: ChatMessage::new(message, self.labels.clone()),
            call,
            decision,
        }
    }

    /// Prepares an email in the mailbox and records its id there before it is sent, so that a resumed thread sends the same
    /// one.
    async fn plan(&self, call: &ToolCall) -> Result<(), NodeError> {
        let email = &self.mail_tools.email;
        let reply: Reply = serde_json::from_value(call.args.clone()).map_err(NodeError::fatal)?;
        let envelope = Envelope::of_reply(email, &reply);
        // Send what the person saw: the email may have changed while the thread was waiting.
        let sealed = json!(envelope);
        let first = self.cx.step(format!("{}:envelope", call.id), || async {
            Ok(sealed.clone())
        });
        if first.await? != sealed {
            return Err(NodeError::fatal(
                "the mail that is answered became another one after the answer was approved",
            ));
        }
        let domain = email
            .account
            .rsplit_once('@')
            .map_or("archie.invalid", |(_, domain)| domain);
        let key = self.cx.effect_key(&format!("mail:{}", call.id));
        let mail = Outgoing {
            message_id: format!("archie.{key}@{domain}"),
            text: words(&reply, email),
            carried: self.carried(&reply).await?,
            envelope,
        };
        let prepared = self
            .cx
            .step(format!("{}:draft", call.id), || async {
                let prepared = self.mail_tools.mailbox.prepare(&mail).await;
                prepared.map_err(|error| NodeError::retryable(format!("{error:#}")))
            })
            .await?;
        self.mail_tools
            .plan(&call.id, PlannedMail { mail, prepared });
        Ok(())
    }

    async fn carried(&self, reply: &Reply) -> Result<Vec<super::mime::Attachment>, NodeError> {
        if reply.attachments.is_empty() {
            return Ok(Vec::new());
        }
        let raw = self.mail_tools.mailbox.raw(&self.mail_tools.email.id).await;
        let raw = raw.map_err(unreachable_mailbox)?;
        attached(&raw, &reply.attachments).map_err(|error| NodeError::fatal(format!("{error:#}")))
    }

    fn tell(&self, call: &ToolCall, message: &ChatMessage) -> Result<(), NodeError> {
        let text = message.text();
        let Some(receipt) = receipt(&text) else {
            return Ok(());
        };
        let text = match call.name.as_str() {
            SEND_EMAIL => format!("sent 1 message {receipt}"),
            _ => format!("scheduled 1 meeting {receipt}"),
        };
        self.cx.emit_live(AgentEvent::progress(text))
    }
}

fn is_talk(call: &ToolCall) -> bool {
    matches!(call.name.as_str(), QUESTION | DONE)
}

/// Returns the text of a reply, followed by the answered email if it is forwarded.
fn words(reply: &Reply, email: &Email) -> String {
    if !reply.forward {
        return reply.response_text.clone();
    }
    let quoted: Vec<_> = email.body.lines().map(|line| format!("> {line}")).collect();
    format!(
        "{}\n\n---------- Forwarded message ----------\nFrom: {}\nDate: {}\nSubject: {}\n\n{}\n",
        reply.response_text,
        email.from,
        email.date,
        email.subject,
        quoted.join("\n")
    )
}

/// Returns every string in the arguments, at any depth.
fn texts(args: &Json) -> Vec<&str> {
    match args {
        Json::String(text) => vec![text],
        Json::Array(items) => items.iter().flat_map(texts).collect(),
        Json::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}
