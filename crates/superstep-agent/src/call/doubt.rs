//! The interrupt raised when it is unknown whether a call happened.

use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep_core::{Interrupt, NodeError};

use crate::call::{Asking, RequestedCall, ToolCallResult};

/// A person's decision on a call whose outcome is unknown.
pub(super) enum Resolved {
    /// Use this result.
    Result(ToolCallResult),
    /// It did not happen, or repeating it does no harm: call the tool.
    Call,
}

#[derive(Debug, Deserialize)]
struct Answered {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default, alias = "args")]
    result: Json,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Happened,
    Call,
    /// Inboxes send `response`.
    #[serde(alias = "response")]
    Result,
}

/// Asks a person what became of the call. `asked` numbers the interrupts of one call.
pub(super) async fn ask(
    wanted: &RequestedCall<'_>,
    args: &Json,
    why: &str,
    asked: u32,
    asking: &Asking<'_>,
) -> Result<Resolved, NodeError> {
    let name = wanted.tool.name();
    let description = format!(
        "Nobody knows whether this call of `{name}` happened: {why}. Look, and say whether it did."
    );
    let request = json!({
        "action_request": wanted.action_request(args),
        "config": {
            "allow_ignore": false,
            "allow_respond": true,
            "allow_edit": false,
            "allow_accept": false,
        },
        "description": description,
        "tool_call_id": wanted.id,
        "class": wanted.tool.class(),
        "choices": [
            { "type": "happened", "means": "It happened. `result` may say what it gave." },
            { "type": "call", "means": "It did not happen: call it." },
            { "type": "result", "means": "Do not call it. Continue with `result`." },
        ],
    });
    let schema = json!({
        "type": "object",
        "properties": { "type": { "enum": ["happened", "call", "result", "response"] } },
        "required": ["type"],
    });
    let question = Interrupt::new(format!("outcome:{}:{asked}", wanted.id), request)
        .kind("outcome_unknown")
        .schema(schema);
    let answer: Answered = asking.ask(question).await?;
    let told = match &answer.result {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Ok(match answer.kind {
        Kind::Call => Resolved::Call,
        Kind::Happened => Resolved::Result(ToolCallResult::said(told.unwrap_or_else(|| {
            format!(
                "`{name}` was called. A person confirmed that it happened; its answer was lost."
            )
        }))),
        Kind::Result => Resolved::Result(ToolCallResult::said(told.unwrap_or_default())),
    })
}
