//! What the nodes of the agent did, in words for the history of a thread.

use archie_agent::requested_tools;
use serde_json::Value as Json;

use super::tools::{CHECK_CALENDAR, DONE, QUESTION, SCHEDULE_MEETING, SEND_EMAIL};
use super::{
    INTERRUPT_HANDLER, LLM_CALL, MARK_AS_READ, RESPONSE_AGENT, TRIAGE_INTERRUPT_HANDLER,
    TRIAGE_ROUTER, parse_gmail,
};

/// Returns what a thread started with.
pub(super) fn describe_input(input: &Json) -> Option<String> {
    let email = parse_gmail(input.get("email_input")?);
    Some(format!("the mail “{}” from {}", email.subject, email.from))
}

/// Returns what a node did, by the fields that it wrote.
pub(super) fn describe_step(node: &str, update: &Json) -> Option<String> {
    if node == RESPONSE_AGENT {
        // Its nodes are in the history.
        return Some(String::new());
    }
    match update["ended"].as_str() {
        Some("stopped") => return Some("stopped at the budget".to_owned()),
        Some("drafted") => return Some("kept the draft".to_owned()),
        Some("ignored") if node != TRIAGE_ROUTER => return Some("left the mail".to_owned()),
        _ => {}
    }
    Some(match node {
        TRIAGE_ROUTER => {
            let decision = update["classification_decision"].as_str()?;
            match update["reasoning"].as_str() {
                Some(why) if !why.is_empty() => format!("sorted it as {decision}: {why}"),
                _ => format!("sorted it as {decision}"),
            }
        }
        LLM_CALL if update["messages"].is_null() => String::new(),
        LLM_CALL => {
            let wanted = requested_tools(&update["messages"]);
            let wanted: Vec<_> = wanted.into_iter().filter_map(requested).collect();
            match wanted.is_empty() {
                true => "wrote to you without a draft".to_owned(),
                false => wanted.join(", "),
            }
        }
        INTERRUPT_HANDLER => {
            let done = update["done"].as_array().into_iter().flatten();
            let done = done.map(|done| match done["tool"].as_str() {
                Some(SEND_EMAIL) => "sent the reply",
                _ => "created the meeting",
            });
            let done: Vec<_> = done.collect();
            match done.is_empty() {
                true => "gave your answer to the model".to_owned(),
                false => done.join(", "),
            }
        }
        TRIAGE_INTERRUPT_HANDLER => "gave your answer to the model".to_owned(),
        MARK_AS_READ if update["marked_as_read"] == true => "marked the mail as read".to_owned(),
        MARK_AS_READ => String::new(),
        _ => return None,
    })
}

/// Returns what it means that the model requests a tool.
fn requested(tool: &str) -> Option<&'static str> {
    match tool {
        SEND_EMAIL => Some("drafted a reply"),
        SCHEDULE_MEETING => Some("drafted a meeting"),
        CHECK_CALENDAR => Some("wanted to see the calendar"),
        QUESTION => Some("wrote a question to you"),
        DONE => Some("finished"),
        _ => None,
    }
}

#[test]
fn steps_of_a_mail_are_told_in_words() {
    use serde_json::json;

    let mail = json!({ "from": "bob@example.com", "subject": "Lunch?", "body": "When?" });
    assert_eq!(
        describe_input(&json!({ "email_input": mail })).as_deref(),
        Some("the mail “Lunch?” from bob@example.com")
    );
    let messages = json!([{ "type": "ai", "tool_calls": [{ "name": SEND_EMAIL }] }]);
    for (node, update, text) in [
        (
            TRIAGE_ROUTER,
            json!({ "classification_decision": "respond", "reasoning": "It asks you.", "ended": null }),
            Some("sorted it as respond: It asks you."),
        ),
        (
            LLM_CALL,
            json!({ "messages": messages }),
            Some("drafted a reply"),
        ),
        (
            INTERRUPT_HANDLER,
            json!({ "done": [{ "tool": SEND_EMAIL, "receipt": "1@x" }] }),
            Some("sent the reply"),
        ),
        (
            INTERRUPT_HANDLER,
            json!({ "ended": "ignored" }),
            Some("left the mail"),
        ),
        (
            MARK_AS_READ,
            json!({ "marked_as_read": true }),
            Some("marked the mail as read"),
        ),
        (RESPONSE_AGENT, json!({ "messages": messages }), Some("")),
        ("of_another_version", json!({}), None),
    ] {
        assert_eq!(describe_step(node, &update).as_deref(), text, "{node}");
    }
}
