//! Node that asks the person about the model's tool calls and then runs the approved ones.

use std::sync::Arc;

use archie_agent::prompts::filled;
use serde_json::{Value as Json, json};
use superstep::label::Labels;
use superstep::{Command, END, Interrupt, Node, NodeCx, NodeError, View};
use superstep_agent::{
    Calls, ChatMessage, Decision, Spent, labels_of_last_answer, unanswered_calls,
};
use superstep_llm::{Message, ToolCall};

use super::decisions;
use super::email::{Email, format_gmail_markdown, parse_gmail};
use super::learn::{ANSWERED, CHANGED, DRAFTED_AND_LEFT, Lesson, Teacher, short};
use super::memory::Preferences;
use super::respond::unreachable_mailbox;
use super::state::{Classification, DoneAction, Ended, MailState, MailStateUpdate, Redraft};
use super::tool_round::{CallResult, ToolRound};
use super::tools::{DONE, MailTools, QUESTION, SCHEDULE_MEETING, SEND_EMAIL, receipt};
use super::triage::{Answer, AnswerKind, answer_schema, mail_labels, may};
use super::{LLM_CALL, MailDeps};

/// Node that asks the person about tool calls where necessary, and runs them.
pub(super) struct InterruptHandler(pub(super) Arc<MailDeps>);

impl Node<MailState> for InterruptHandler {
    async fn run(
        &self,
        state: View<MailState>,
        cx: NodeCx,
    ) -> Result<Command<MailState>, NodeError> {
        let email = parse_gmail(&state.email_input);
        let said = labels_of_last_answer(&state.messages);
        let labels = said.map_or_else(mail_labels, |said| said.clone().join(&mail_labels()));
        let wanted: Vec<ToolCall> = unanswered_calls(&state.messages)
            .into_iter()
            .cloned()
            .collect();
        if let Some(redraft) = &state.redraft {
            return Ok(self.redraft(redraft, &wanted, &labels));
        }
        if wanted.is_empty() {
            cx.note_read(&labels);
            return self.ask_what_to_do(&state, &email, &cx).await;
        }
        let mailbox = self
            .0
            .mailboxes
            .get(&state.source)
            .map_err(unreachable_mailbox)?;
        let earlier = earlier_draft(&state.messages, &wanted);
        let mail_tools = MailTools::new(email, mailbox, earlier);
        let tools = mail_tools.tools()?;
        let calls = Calls::new(&tools, labels.clone(), &cx).await?;
        let tool_round = ToolRound {
            mail_tools: &mail_tools,
            calls,
            labels,
            cx: &cx,
        };
        let heard = tool_round.hear(&wanted).await?;
        let came = tool_round.act(heard).await?;
        // As in triage: the sender of a suspicious mail may be forged.
        if let Some(decision) = decision_of(&came)
            && state.suspicion.is_empty()
        {
            let store = self.0.store(&cx);
            let thread = cx.thread().to_string();
            let recorded = decisions::record(&store, &thread, &mail_tools.email, decision).await;
            recorded.map_err(NodeError::retryable)?;
        }
        let lessons = self
            .learn(&state, &mail_tools.email, &wanted, &came, &cx)
            .await?;
        Ok(written(&wanted, came, lessons))
    }
}

impl InterruptHandler {
    /// In a fork that only writes another draft: passes the tone to the model, and ends with the next draft. It asks no person
    /// and runs no call, so that only the original thread can send, however many forks there are.
    fn redraft(
        &self,
        redraft: &Redraft,
        wanted: &[ToolCall],
        labels: &Labels,
    ) -> Command<MailState> {
        let update = MailStateUpdate::default();
        let Redraft::RequestedCall(tone) = redraft else {
            return Command::update(update.ended(Some(Ended::Drafted))).goto(END);
        };
        let told = filled(&self.0.prompts.tone, &[("tone", tone)]);
        let results = wanted
            .iter()
            .map(|call| ChatMessage::new(Message::tool(call, told.trim()), labels.clone()));
        let update = results.fold(update, MailStateUpdate::messages);
        Command::update(update.redraft(Some(Redraft::Told))).goto(LLM_CALL)
    }

    /// Asks the person what to do when the model called no tool, even after a second request.
    async fn ask_what_to_do(
        &self,
        state: &MailState,
        email: &Email,
        cx: &NodeCx,
    ) -> Result<Command<MailState>, NodeError> {
        let said = state
            .messages
            .last()
            .map(ChatMessage::text)
            .unwrap_or_default();
        let request = json!({
            "action_request": { "action": QUESTION, "args": { "content": "The model called no tool. What shall be done?" } },
            "config": may(&["ignore", "response"]),
            "description": format!("The model said:\n\n{said}\n\n{}", format_gmail_markdown(email)),
        });
        let question = Interrupt::new("what to do", request)
            .kind("question")
            .schema(answer_schema(&["ignore", "response"]));
        let answer: Answer = cx.interrupt(question).await?;
        if answer.kind == AnswerKind::Response {
            let told = ChatMessage::new(Message::user(answer.words()), mail_labels());
            let update = MailStateUpdate::default().messages(told);
            return Ok(Command::update(update).goto(LLM_CALL));
        }
        let teacher = Teacher::new(&self.0, state, email, cx)?;
        let lesson = teacher
            .learn(Preferences::Triage, "what to do", DRAFTED_AND_LEFT)
            .await?;
        let update = MailStateUpdate::default().ended(Some(Ended::Ignored));
        Ok(Command::update(lesson.into_update(update)).goto(END))
    }

    /// Learns one lesson for each call that the person edited, refused or answered with feedback.
    async fn learn(
        &self,
        state: &MailState,
        email: &Email,
        wanted: &[ToolCall],
        came: &[CallResult],
        cx: &NodeCx,
    ) -> Result<Vec<Lesson>, NodeError> {
        let teacher = Teacher::new(&self.0, state, email, cx)?;
        let mut lessons = Vec::new();
        for came in came {
            let before = wanted.iter().find(|call| call.id == came.call.id);
            let Some((which, event)) = before.and_then(|before| lesson_of(before, came)) else {
                continue;
            };
            lessons.push(teacher.learn(which, &came.call.id, &event).await?);
        }
        Ok(lessons)
    }
}

/// Returns the arguments of the last reply that was drafted before the calls that wait now, and was not sent.
fn earlier_draft(messages: &[ChatMessage], wanted: &[ToolCall]) -> Option<Json> {
    let mut calls = messages
        .iter()
        .rev()
        .flat_map(|kept| kept.message.tool_calls());
    let is_waiting = |call: &ToolCall| wanted.iter().any(|wanted| wanted.id == call.id);
    let earlier = calls.find(|call| call.name == SEND_EMAIL && !is_waiting(call))?;
    let is_sent = messages.iter().any(|kept| match &kept.message {
        Message::Tool(result) => {
            result.tool_call_id == earlier.id && receipt(&kept.text()).is_some()
        }
        _ => false,
    });
    (!is_sent).then(|| earlier.args.clone())
}

/// Converts the results to a state update, and routes to the model, or to the end if the person ignored a call.
fn written(wanted: &[ToolCall], came: Vec<CallResult>, lessons: Vec<Lesson>) -> Command<MailState> {
    let is_left = came.iter().any(|came| came.decision == Decision::Ignored);
    let is_open = came
        .iter()
        .any(|came| came.is_error() || came.decision == Decision::Answered);
    let mut update = MailStateUpdate::default();
    let labels = came.first().map(|came| came.message.labels.clone());
    for came in came {
        let text = came.message.text();
        if let Some(receipt) = receipt(&text) {
            update = update.done(DoneAction {
                tool: came.call.name.clone(),
                receipt: receipt.trim_matches(['<', '>']).to_owned(),
            });
        }
        update = update.messages(came.message);
    }
    if is_open && !is_left {
        // The email is not done: a call failed, or the person answered it with feedback.
        for done in wanted.iter().filter(|call| call.name == DONE) {
            let why = Message::tool_error(done, "not done yet: see the other results");
            update = update.messages(ChatMessage::new(why, labels.clone().unwrap_or_default()));
        }
    }
    let mut spent = Spent::default();
    for lesson in lessons {
        spent = spent.plus(lesson.spent);
        if let Some(learned) = lesson.learned {
            update = update.learned(learned);
        }
    }
    update = update.spent(spent);
    match is_left {
        true => Command::update(update.ended(Some(Ended::Ignored))).goto(END),
        false => Command::update(update).goto(LLM_CALL),
    }
}

/// Returns what the person wanted to happen to the email: a reply that they approved, or a notice if they refused what was
/// proposed. `None` if they did neither.
fn decision_of(came: &[CallResult]) -> Option<Classification> {
    let is_refused = came.iter().any(|came| came.decision == Decision::Ignored);
    let is_sent = came
        .iter()
        .any(|came| came.call.name == SEND_EMAIL && receipt(&came.message.text()).is_some());
    match (is_refused, is_sent) {
        (true, _) => Some(Classification::Notify),
        (false, true) => Some(Classification::Respond),
        (false, false) => None,
    }
}

/// Returns the list to change and what happened, or `None` if the person's decision teaches nothing.
fn lesson_of(before: &ToolCall, came: &CallResult) -> Option<(Preferences, String)> {
    let which = match before.name.as_str() {
        SEND_EMAIL => Preferences::Response,
        SCHEDULE_MEETING => Preferences::Calendar,
        _ => Preferences::Triage,
    };
    match came.decision {
        Decision::Edited if before.args != came.call.args => {
            let mut event = CHANGED.to_owned();
            for (name, after) in came.call.args.as_object().into_iter().flatten() {
                let was = &before.args[name.as_str()];
                if was != after {
                    event.push_str(&format!(
                        "\n{name} was {}, and they made it {}",
                        short(&was.to_string()),
                        short(&after.to_string())
                    ));
                }
            }
            Some((which, event))
        }
        Decision::Answered if before.name != QUESTION => {
            let said = came.message.text();
            Some((which, format!("{ANSWERED} {}", short(&said))))
        }
        Decision::Ignored => Some((
            Preferences::Triage,
            format!("They refused `{}` for a mail and left it.", before.name),
        )),
        _ => None,
    }
}
