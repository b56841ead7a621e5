//! Tools of the response agent, and the arguments that a model passes to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use archie_agent::printable::{counted, one_line};
use archie_agent::value_diff::differences;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep::NodeError;
use superstep::label::{Label, Policy};
use superstep_agent::{Approval, Tool, ToolCx, ToolError, Tools, tool};
use superstep_llm::ToolSpec;
use superstep_llm::structured::schema_of;

use super::calendar::{self, Event, MeetingZone, NotMade, TimeProblem};
use super::email::{Email, address, format_gmail_markdown};
use super::mailbox::{Mailbox, NotSent, Outgoing, Sent, SentStatus};
use super::policy::{Envelope, listed, quoted};

/// Tool that sends a reply, after a person has approved it.
pub const SEND_EMAIL: &str = "send_email_tool";
/// Tool that creates a calendar event and invites people, after a person has approved it.
pub const SCHEDULE_MEETING: &str = "schedule_meeting_tool";
/// Tool that reads the calendar.
pub const CHECK_CALENDAR: &str = "check_calendar_tool";
/// Pseudo tool with which the model asks the person a question.
pub const QUESTION: &str = "Question";
/// Pseudo tool with which the model reports that it is finished.
pub const DONE: &str = "Done";

/// Answer the mail. It goes to who wrote it and to everybody who has a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// The id of the mail that is answered.
    #[serde(default)]
    pub email_id: String,
    /// The answer, in plain text.
    #[schemars(length(min = 1))]
    pub response_text: String,
    /// The account that it is sent from.
    #[serde(default)]
    pub email_address: String,
    /// Who else has a copy.
    #[serde(default)]
    pub additional_recipients: Vec<String>,
    /// Attachments of the mail that go along, by name.
    #[serde(default)]
    pub attachments: Vec<String>,
    /// Whether the mail itself goes along.
    #[serde(default)]
    pub forward: bool,
}

/// Schedule a meeting and invite people to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Meeting {
    /// The addresses of those who are invited.
    pub attendees: Vec<String>,
    /// What it is about.
    pub title: String,
    /// When it begins, in the time zone: YYYY-MM-DDTHH:MM:SS.
    pub start_time: String,
    /// When it ends, in the time zone: YYYY-MM-DDTHH:MM:SS.
    pub end_time: String,
    /// Who invites; the owner of the mailbox by default.
    #[serde(default)]
    pub organizer_email: String,
    /// The time zone, such as Europe/Berlin; UTC by default.
    #[serde(default)]
    pub timezone: String,
}

/// Days to look at.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Days {
    /// YYYY-MM-DD.
    pub dates: Vec<String>,
}

/// A question to the person whose mail this is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// What is asked.
    pub content: String,
}

/// Nothing is left to do for this mail.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Done {
    /// Always true.
    pub done: bool,
}

/// Tools for one email. Sending requires a plan, which the tool round adds after the person has approved the call.
pub(super) struct MailTools {
    pub(super) email: Email,
    pub(super) mailbox: Arc<dyn Mailbox>,
    /// Arguments of the last reply that the model drafted before this one.
    earlier: Option<Json>,
    plans: Mutex<BTreeMap<String, PlannedMail>>,
}

/// An approved email: its content, and the id under which the mailbox prepared it (a Gmail draft), if it did.
#[derive(Clone, Debug)]
pub(super) struct PlannedMail {
    pub(super) mail: Outgoing,
    pub(super) prepared: Option<String>,
}

impl MailTools {
    /// Creates the tools. `earlier` holds the arguments of the last reply that was drafted for this email, if there is one.
    pub(super) fn new(email: Email, mailbox: Arc<dyn Mailbox>, earlier: Option<Json>) -> Arc<Self> {
        Arc::new(Self {
            email,
            mailbox,
            earlier,
            plans: Mutex::default(),
        })
    }

    pub(super) fn plan(&self, call: &str, plan: PlannedMail) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.insert(call.to_owned(), plan);
    }

    fn planned(&self, call: &str) -> Result<PlannedMail, ToolError> {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = plans.get(call).cloned();
        plan.ok_or_else(|| ToolError::failed("the mail was not planned before it was sent"))
    }

    /// Returns the tools that code runs, without [`QUESTION`] and [`DONE`].
    pub(super) fn tools(self: &Arc<Self>) -> Result<Tools, NodeError> {
        let tools = [
            self.send_email(),
            self.schedule_meeting(),
            self.check_calendar(),
        ];
        Tools::new(tools).map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            NodeError::fatal(faults.join("; "))
        })
    }

    fn send_email(self: &Arc<Self>) -> Tool {
        let (mail_tools, looks, describes) = (self.clone(), self.clone(), self.clone());
        let send = move |reply: Reply, cx: ToolCx| {
            let mail_tools = mail_tools.clone();
            async move { mail_tools.send(&reply, &cx).await }
        };
        let look = move |_: Reply, cx: ToolCx| {
            let mail_tools = looks.clone();
            async move { mail_tools.look(&cx).await }
        };
        tool(
            SEND_EMAIL,
            "Answers the mail. A person sees the answer before it is sent.",
            send,
        )
        .reconcilable(look)
        .takes(Policy::new().refuses(Label::SECRET))
        .gives(Label::PRIVATE)
        .approved_by_a_person(
            Approval::always().described(move |args| describes.describe(SEND_EMAIL, args)),
        )
    }

    async fn send(&self, reply: &Reply, cx: &ToolCx) -> Result<String, ToolError> {
        let own = address(&self.email.account);
        if !reply.email_address.is_empty() && address(&reply.email_address) != own {
            return Err(ToolError::failed(format!(
                "this mail came to {own} and is answered from there, not from {}",
                reply.email_address
            )));
        }
        if !reply.email_id.is_empty() && reply.email_id != self.email.id {
            return Err(ToolError::failed(format!(
                "this conversation is about the mail `{}`, not `{}`",
                self.email.id, reply.email_id
            )));
        }
        let PlannedMail { mail, prepared } = self.planned(cx.call_id())?;
        if mail.envelope.to.is_empty() {
            return Err(ToolError::failed("the mail has no recipient"));
        }
        match self.mailbox.send(&mail, prepared.as_deref()).await {
            Ok(sent) => Ok(said(&sent)),
            Err(refused @ NotSent::Refused(_)) => Err(ToolError::failed(refused)),
            Err(unknown @ NotSent::Unknown(_)) => Err(ToolError::unknown(unknown)),
        }
    }

    async fn look(&self, cx: &ToolCx) -> Result<Option<String>, ToolError> {
        let PlannedMail { mail, prepared } = self.planned(cx.call_id())?;
        let found = self.mailbox.look(&mail, prepared.as_deref()).await;
        match found.map_err(|error| ToolError::unknown(format!("{error:#}")))? {
            SentStatus::Sent(sent) => Ok(Some(said(&sent))),
            SentStatus::NotSent => Ok(None),
            SentStatus::Unknown(why) => Err(ToolError::unknown(why)),
        }
    }

    /// Describes a call to a person: what is sent, to whom, and the email that it is about.
    pub(super) fn describe(&self, tool: &str, args: &Json) -> String {
        let (what, about) = match tool {
            SEND_EMAIL => {
                let reply: Reply = serde_json::from_value(args.clone()).unwrap_or_default();
                let envelope = Envelope::of_reply(&self.email, &reply);
                (envelope.words(), "Answers this mail:")
            }
            SCHEDULE_MEETING => (self.describe_meeting(args), "For this mail:"),
            _ => (tool.to_owned(), "For this mail:"),
        };
        let mail = quoted(&format_gmail_markdown(&self.email));
        let changes = match tool {
            SEND_EMAIL => self.describe_changes(args),
            _ => String::new(),
        };
        format!("{what}\n\n{about}\n\n{mail}{changes}")
    }

    /// Describes what is different from the draft that the person has seen before; empty if there was none.
    fn describe_changes(&self, args: &Json) -> String {
        let Some(earlier) = self.earlier.as_ref().filter(|earlier| *earlier != args) else {
            return String::new();
        };
        let found = differences("", Some(earlier), Some(args)).into_iter();
        let lines = found.flat_map(|found| {
            let field = found.path.trim_start_matches('.').to_owned();
            let head = (field != "response_text").then(|| format!("{}:", one_line(&field)));
            head.into_iter().chain(found.lines)
        });
        let lines: Vec<_> = lines.collect();
        format!("\n\nChanged since the last draft:\n{}", lines.join("\n"))
    }

    /// Describes the meeting as it will be created: times in its zone and in UTC, attendees as bare addresses. A meeting that
    /// cannot be created shows why.
    fn describe_meeting(&self, args: &Json) -> String {
        let meeting: Meeting = serde_json::from_value(args.clone()).unwrap_or_default();
        let attendees: Vec<_> = meeting.attendees.iter().map(|who| address(who)).collect();
        let mut lines = vec![format!("Title: {}", meeting.title)];
        match times(&meeting) {
            Ok((start, end, zone)) => lines.extend([
                format!("Begins: {}", calendar::shown(&start, &zone)),
                format!("Ends: {}", calendar::shown(&end, &zone)),
            ]),
            Err(why) => lines.extend([
                format!("Begins: {}", meeting.start_time),
                format!("Ends: {}", meeting.end_time),
                format!("This cannot be scheduled: {why}"),
            ]),
        }
        lines.extend([
            format!("Organizer: {}", organizer(&self.email, &meeting)),
            listed("Attendees", &attendees),
            counted(attendees.len(), "attendee"),
        ]);
        lines.join("\n")
    }

    fn schedule_meeting(self: &Arc<Self>) -> Tool {
        let (mail_tools, looks, describes) = (self.clone(), self.clone(), self.clone());
        let schedule = move |meeting: Meeting, cx: ToolCx| {
            let mail_tools = mail_tools.clone();
            async move {
                let event = mail_tools.event(&meeting, &cx)?;
                match mail_tools.mailbox.calendar().create(&event).await {
                    Ok(()) => Ok(scheduled(&event)),
                    Err(refused @ NotMade::Refused(_)) => Err(ToolError::failed(refused)),
                    Err(unknown @ NotMade::Unknown(_)) => Err(ToolError::unknown(unknown)),
                }
            }
        };
        let look = move |meeting: Meeting, cx: ToolCx| {
            let mail_tools = looks.clone();
            async move {
                let event = mail_tools.event(&meeting, &cx)?;
                let found = mail_tools.mailbox.calendar().find(&event).await;
                let found = found.map_err(|error| ToolError::unknown(format!("{error:#}")))?;
                Ok::<_, ToolError>(found.then(|| scheduled(&event)))
            }
        };
        tool(
            SCHEDULE_MEETING,
            "Schedules a meeting and invites people. A person sees it before it is made.",
            schedule,
        )
        .reconcilable(look)
        .takes(Policy::new().refuses(Label::SECRET))
        .gives(Label::PRIVATE)
        .approved_by_a_person(
            Approval::always().described(move |args| describes.describe(SCHEDULE_MEETING, args)),
        )
    }

    fn event(&self, meeting: &Meeting, cx: &ToolCx) -> Result<Event, ToolError> {
        let (start, end, timezone) = times(meeting).map_err(ToolError::failed)?;
        let attendees = meeting.attendees.iter().map(|who| address(who));
        Ok(Event {
            id: cx.idempotency_key().to_owned(),
            title: meeting.title.clone(),
            start,
            end,
            attendees: attendees.collect(),
            organizer: organizer(&self.email, meeting),
            timezone,
        })
    }

    fn check_calendar(self: &Arc<Self>) -> Tool {
        let mail_tools = self.clone();
        let check = move |days: Days, _: ToolCx| {
            let mail_tools = mail_tools.clone();
            async move {
                let days: Vec<String> = days
                    .dates
                    .iter()
                    .filter_map(|day| calendar::day(day))
                    .collect();
                let events = mail_tools.mailbox.calendar().on(&days).await;
                let events = events.map_err(|error| ToolError::failed(format!("{error:#}")))?;
                Ok::<_, ToolError>(agenda(&days, &events))
            }
        };
        tool(
            CHECK_CALENDAR,
            "Says what is in the person's calendar on these days.",
            check,
        )
        .read()
        .takes(
            Policy::new()
                .accepts(Label::UNTRUSTED)
                .accepts(Label::PRIVATE),
        )
        .gives(Label::PRIVATE)
    }
}

/// Returns the specifications of all tools for the model, including [`QUESTION`] and [`DONE`].
pub(super) fn specs(tools: &Tools) -> Vec<ToolSpec> {
    let mut specs = tools.specs();
    specs.push(ToolSpec {
        name: QUESTION.to_owned(),
        description:
            "Asks the person whose mail this is, when something is missing that only they know."
                .to_owned(),
        schema: schema_of::<Question>(),
    });
    specs.push(ToolSpec {
        name: DONE.to_owned(),
        description: "Says that nothing is left to do for this mail.".to_owned(),
        schema: schema_of::<Done>(),
    });
    specs
}

/// Returns when a meeting begins and ends, in UTC, and the name of its zone, which is empty for UTC. The error tells the model,
/// and a person, what to write instead.
fn times(meeting: &Meeting) -> Result<(String, String, String), String> {
    let why = |problem: TimeProblem| problem.to_string();
    let zone = MeetingZone::find(&meeting.timezone).map_err(why)?;
    let start = zone.to_utc(&meeting.start_time).map_err(why)?;
    let end = zone.to_utc(&meeting.end_time).map_err(why)?;
    if end <= start {
        return Err(format!(
            "it ends at `{}`, which is not after it begins at `{}`; write a later `end_time`",
            meeting.end_time, meeting.start_time
        ));
    }
    let name = match zone.is_utc() {
        true => String::new(),
        false => zone.name().to_owned(),
    };
    Ok((start, end, name))
}

/// Returns the address of the person who invites: the one that the call names, or the owner of the mailbox.
pub(super) fn organizer(email: &Email, meeting: &Meeting) -> String {
    match meeting.organizer_email.trim().is_empty() {
        true => email.account.clone(),
        false => address(&meeting.organizer_email),
    }
}

fn said(sent: &Sent) -> String {
    format!("{SENT}<{}>", sent.message_id)
}

fn scheduled(event: &Event) -> String {
    format!(
        "{SCHEDULED}{} from {} to {}",
        event.id,
        calendar::shown(&event.start, &event.timezone),
        calendar::shown(&event.end, &event.timezone)
    )
}

/// Returns the receiver's id of an effect from a tool's result, or `None` if the result reports no effect.
pub(super) fn receipt(result: &str) -> Option<&str> {
    let rest = result
        .strip_prefix(SENT)
        .or_else(|| result.strip_prefix(SCHEDULED))?;
    rest.split(' ').next()
}

fn agenda(days: &[String], events: &[Event]) -> String {
    if days.is_empty() {
        return "no day was given; write YYYY-MM-DD".to_owned();
    }
    let mut lines = Vec::new();
    for day in days {
        let on: Vec<_> = events.iter().filter(|event| event.is_on(day)).collect();
        lines.push(match on.is_empty() {
            true => format!("{day}: nothing"),
            false => format!("{day}:"),
        });
        for event in on {
            lines.push(format!(
                "  {} to {}: {}",
                calendar::shown(&event.start, &event.timezone),
                calendar::shown(&event.end, &event.timezone),
                event.title
            ));
        }
    }
    lines.join("\n")
}

const SENT: &str = "sent ";
const SCHEDULED: &str = "scheduled ";
