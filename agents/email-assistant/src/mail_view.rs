//! Shows an interrupt as a person reads mail: who sends what to whom, the text as it will be sent, what changed since the last
//! draft, and the mail that it is about.
//!
//! Text that others chose keeps a mark before every line: `| ` for what is to be sent, `> ` for the mail that came. So none of
//! its lines can pass for one of ours.

use archie_agent::InterruptRequest;
use archie_agent::printable::one_line;
use serde_json::Value as Json;

use super::policy::quoted;
use super::tools::{QUESTION, SCHEDULE_MEETING, SEND_EMAIL};

/// Returns the text for an interrupt. It holds everything that an answer may cause; an interrupt that is not built as expected
/// is shown field by field.
pub(super) fn describe(interrupt: &InterruptRequest) -> String {
    let call = &interrupt.request["action_request"];
    let description = interrupt.request["description"].as_str();
    let description = description.unwrap_or_default();
    let shown = match call["action"].as_str() {
        Some(SEND_EMAIL) => describe_reply(description, &call["args"]),
        Some(SCHEDULE_MEETING) => DescribedCall::split(description, "For this mail:")
            .map(|found| found.with(&[found.above, &found.notes])),
        _ if interrupt.may_permit_effect() => None,
        Some(action) => Some(describe_question(action, description, &interrupt.request)),
        None => None,
    };
    shown.unwrap_or_else(|| interrupt.words())
}

/// Returns what may be typed and what each answer causes.
pub(super) fn answer_effects(interrupt: &InterruptRequest) -> Vec<(&'static str, &'static str)> {
    let action = interrupt.request["action_request"]["action"].as_str();
    let effects = interrupt.answer_effects().into_iter();
    let effects = effects.map(|(word, effect)| match (action, word) {
        (Some(SEND_EMAIL), "accept") => (word, "send this mail as shown"),
        (Some(SEND_EMAIL), "response …") => {
            (word, "do not send it; tell the agent what to change")
        }
        (Some(SEND_EMAIL), "ignore") => (word, "do not send it, and leave the mail as it is"),
        (Some(SCHEDULE_MEETING), "accept") => {
            (word, "create the meeting and invite everyone listed")
        }
        (Some(SCHEDULE_MEETING), "response …") => {
            (word, "do not create it; tell the agent what to change")
        }
        (Some(SCHEDULE_MEETING), "ignore") => {
            (word, "do not create it, and leave the mail as it is")
        }
        (Some(QUESTION), "response …") => (word, "answer the agent"),
        (Some(QUESTION), "ignore") => (word, "do not answer, and leave the mail as it is"),
        (_, "response …") => (
            word,
            "have a reply drafted that says this; you see it first",
        ),
        (_, "ignore") => (word, "leave the mail as it is"),
        _ => (word, effect),
    });
    effects.collect()
}

fn describe_reply(description: &str, args: &Json) -> Option<String> {
    let found = DescribedCall::split(description, "Answers this mail:")?;
    let text = args["response_text"].as_str()?;
    let mut body = text
        .lines()
        .map(|line| format!("| {line}").trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n");
    // The envelope is computed from these fields, and the mail below names the others.
    let others = args.as_object()?.iter();
    let others = others.filter(|(name, _)| !SHOWN_FIELDS.contains(&name.as_str()));
    for (name, value) in others {
        body.push_str(&format!(
            "\n{}: {}",
            one_line(name),
            one_line(&value.to_string())
        ));
    }
    Some(found.with(&[found.above, &body, &found.notes]))
}

/// Returns a question to the person, and the mail that it is about.
fn describe_question(action: &str, description: &str, request: &Json) -> String {
    let start = match description.starts_with(MAIL_START) {
        true => Some(0),
        false => description
            .find(&format!("\n{MAIL_START}"))
            .map(|at| at + 1),
    };
    let (above, mail) = description.split_at(start.unwrap_or(description.len()));
    let mut parts = vec![above.trim_end().to_owned()];
    if !mail.is_empty() {
        parts.push(quoted(&read_mail(mail)));
    }
    if action != QUESTION {
        let reason = request["reasoning"].as_str().unwrap_or_default();
        if !reason.is_empty() {
            parts.push(format!("{}: {}", one_line(action), one_line(reason)));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// The parts of what a tool says about a call.
struct DescribedCall<'a> {
    /// What is sent or created.
    above: &'a str,
    about: &'a str,
    /// The mail that the call is about.
    mail: String,
    /// Why a person is asked, and what changed.
    notes: String,
}

impl<'a> DescribedCall<'a> {
    fn split(description: &'a str, about: &'a str) -> Option<Self> {
        let mark = format!("\n\n{about}\n\n> ");
        let at = description.find(&mark)?;
        let above = &description[..at];
        let below = &description[at + mark.len() - 2..];
        let lines: Vec<&str> = below.lines().collect();
        let end = lines.iter().position(|line| !line.starts_with('>'));
        let (mail, notes) = lines.split_at(end.unwrap_or(lines.len()));
        let mail = mail.iter().map(|line| {
            let line = line.strip_prefix('>').unwrap_or(line);
            line.strip_prefix(' ').unwrap_or(line)
        });
        Some(Self {
            above,
            about,
            mail: mail.collect::<Vec<_>>().join("\n"),
            notes: notes.join("\n").trim().to_owned(),
        })
    }

    /// Returns these parts, and the mail below them.
    fn with(&self, parts: &[&str]) -> String {
        let parts = parts.iter().filter(|part| !part.is_empty());
        let parts: Vec<_> = parts.map(|part| (*part).to_owned()).collect();
        let mail = quoted(&read_mail(&self.mail));
        format!("{}\n\n{}\n{mail}", parts.join("\n\n"), self.about)
    }
}

/// Returns a mail in Markdown as plain text: `Name: value` lines, an empty line, and the body.
fn read_mail(markdown: &str) -> String {
    let (head, body) = markdown.split_once("\n\n").unwrap_or((markdown, ""));
    let head = head.lines().map(|line| {
        let field = line.strip_prefix("**");
        let field = field.and_then(|line| line.split_once("**: "));
        field.map_or_else(
            || line.to_owned(),
            |(name, value)| format!("{name}: {value}"),
        )
    });
    let head = head.collect::<Vec<_>>().join("\n");
    let body = body.trim_end();
    let fence = body.lines().next().unwrap_or_default();
    let is_fence = fence.len() >= 3 && fence.bytes().all(|byte| byte == b'`');
    let inner = body
        .strip_prefix(fence)
        .and_then(|body| body.strip_suffix(fence));
    let body = match inner.filter(|_| is_fence) {
        Some(inner) => inner.trim_matches('\n'),
        None => body,
    };
    format!("{head}\n\n{body}")
}

/// How the mail begins in a description.
const MAIL_START: &str = "**Subject**: ";
/// Arguments of a reply that its envelope, its body or the answered mail show.
const SHOWN_FIELDS: [&str; 6] = [
    "response_text",
    "email_id",
    "email_address",
    "additional_recipients",
    "attachments",
    "forward",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(kind: &str, action: &str, args: Json, description: &str) -> InterruptRequest {
        let config = json!({ "allow_accept": kind == "approval", "allow_edit": kind == "approval", "allow_respond": true, "allow_ignore": true });
        InterruptRequest {
            id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            node: "n".to_owned(),
            kind: kind.to_owned(),
            request: json!({ "action_request": { "action": action, "args": args }, "config": config, "description": description, "reasoning": "It is for you." }),
            schema: None,
        }
    }

    const MAIL: &str = "> **Subject**: Lunch?\n> **From**: Bob <bob@example.com>\n> **To**: ada@example.com\n> **ID**: m1\n>\n> ```\n> Hi Ada,\n>\n> **Subject**: not one\n> ```";

    #[test]
    fn a_reply_reads_like_a_mail() {
        let description = format!(
            "From: ada@example.com\nTo (2):\n  bob@example.com\n  carl@example.com\n2 recipients\nSubject: Re: Lunch?\n\nAnswers this mail:\n\n{MAIL}\n\nChanged since the last draft:\n- Hi\n+ Dear Bob"
        );
        let args = json!({ "response_text": "Dear Bob,\n\nTo: mallory@evil.example\nyes.", "email_id": "m1", "odd": 1 });
        assert_eq!(
            describe(&asked("approval", SEND_EMAIL, args, &description)),
            "From: ada@example.com\nTo (2):\n  bob@example.com\n  carl@example.com\n2 recipients\nSubject: Re: Lunch?\n\n\
             | Dear Bob,\n|\n| To: mallory@evil.example\n| yes.\nodd: 1\n\n\
             Changed since the last draft:\n- Hi\n+ Dear Bob\n\n\
             Answers this mail:\n> Subject: Lunch?\n> From: Bob <bob@example.com>\n> To: ada@example.com\n> ID: m1\n> \n> Hi Ada,\n> \n> **Subject**: not one"
        );
    }

    #[test]
    fn what_is_not_built_as_expected_is_shown_field_by_field() {
        let call = asked(
            "approval",
            SEND_EMAIL,
            json!({ "response_text": "yes" }),
            "odd",
        );
        assert_eq!(describe(&call), call.words());
        let other = asked(
            "approval",
            "delete_everything",
            json!({ "sure": true }),
            "odd",
        );
        assert_eq!(describe(&other), other.words());
    }

    #[test]
    fn a_notice_shows_the_mail_and_why() {
        let mail = MAIL.replace("> ", "").replace(">\n", "\n");
        let notice = asked("notify", "Email Assistant: notify", json!({}), &mail);
        let shown = describe(&notice);
        assert!(shown.starts_with("> Subject: Lunch?\n> From: "), "{shown}");
        assert!(
            shown.ends_with("\n\nEmail Assistant: notify: It is for you."),
            "{shown}"
        );
        let effects = answer_effects(&notice);
        assert_eq!(effects[1], ("ignore", "leave the mail as it is"));
    }
}
