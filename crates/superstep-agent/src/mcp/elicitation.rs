//! Questions that a server asks a person in the middle of a call (`elicitation/create`).
//!
//! The client answers from what a person has answered to an earlier attempt at the same call. If there is no answer yet, it
//! tells the server that the question was cancelled, and the node raises an interrupt when the call has ended.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value as Json;

use super::plain_text::{is_plain, plain};
use crate::call::ToolQuestion;
use crate::digest::{canonical, hash};
use crate::tool::ToolCx;

/// Answers a question of a server. `asker` is the call that the server works on, if there is one.
pub(super) fn answer(
    server: &str,
    questions_max: usize,
    asker: Option<&ToolCx>,
    request: ElicitRequestParams,
) -> ElicitResult {
    let declined = ElicitResult::new(ElicitationAction::Decline);
    // A question outside a call belongs to no thread. A question in a browser leaves no answer that could be recorded.
    let (Some(cx), Some(question)) = (asker, question(server, request)) else {
        return declined;
    };
    let answers = cx.answers();
    let known = answers.iter().find(|known| known.digest == question.digest);
    match known {
        Some(known) => {
            ElicitResult::new(ElicitationAction::Accept).with_content(known.content.clone())
        }
        None if answers.len() >= questions_max => declined,
        None => {
            cx.ask(question);
            ElicitResult::new(ElicitationAction::Cancel)
        }
    }
}

/// Returns the question in the form that a person may see; `None` if it is not a form, or the form is not fit to be shown.
fn question(server: &str, request: ElicitRequestParams) -> Option<ToolQuestion> {
    let ElicitRequestParams::FormElicitationParams {
        message,
        requested_schema,
        ..
    } = request
    else {
        return None;
    };
    let form = serde_json::to_value(requested_schema).ok()?;
    let text = canonical(&form);
    // Cleaning the form could change which answers fit it, so it is refused instead.
    (text.len() <= FORM_BYTES_MAX && is_plain_form(&form)).then(|| ToolQuestion {
        server: server.to_owned(),
        digest: hash(&["superstep.mcp.question.v1", server, &message, &text]),
        message: plain(&message, MESSAGE_CHARS_MAX),
        form,
    })
}

/// Returns whether all names and texts of a form show as themselves.
fn is_plain_form(form: &Json) -> bool {
    let is_plain_text = |text: &str| text.chars().all(is_plain);
    match form {
        Json::String(text) => is_plain_text(text),
        Json::Array(items) => items.iter().all(is_plain_form),
        Json::Object(fields) => fields
            .iter()
            .all(|(name, value)| is_plain_text(name) && is_plain_form(value)),
        _ => true,
    }
}

/// How much of a server's message a person sees.
const MESSAGE_CHARS_MAX: usize = 2_000;
/// Maximum size of a form, as JSON.
const FORM_BYTES_MAX: usize = 16 * 1024;
