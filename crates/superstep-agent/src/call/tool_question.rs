//! The interrupt raised when a tool's server asks a person something in the middle of a call.
//!
//! A node pauses by ending, so the server cannot wait for the answer. It is told that the question was cancelled, and the call
//! ends. When the person has answered, the call is made again, and the server gets the answer when it asks the same question.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep_core::{Interrupt, NodeError};

use crate::call::{Asking, RequestedCall};

/// A question of a server to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolQuestion {
    /// Name of the server, as given by the program.
    pub(crate) server: String,
    /// The server's text.
    pub(crate) message: String,
    /// JSON Schema of the answer: the server's form.
    pub(crate) form: Json,
    /// Digest of the above, as the server sent it. The answer is given only to the question with the same digest.
    pub(crate) digest: String,
}

/// A person's answer to a question.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(feature = "mcp"),
    expect(dead_code, reason = "only MCP servers ask")
)]
pub(crate) struct QuestionAnswer {
    /// Digest of the question.
    pub(crate) digest: String,
    /// The filled form.
    pub(crate) content: Json,
}

#[derive(Debug, Deserialize)]
struct Answered {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    args: Json,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Response,
    Ignore,
}

/// Asks a person the server's question. Returns `None` if the person does not answer it.
///
/// `result` is what the call returned after its question was cancelled, if the server did not report that the call failed.
pub(super) async fn ask(
    wanted: &RequestedCall<'_>,
    args: &Json,
    question: &ToolQuestion,
    result: Option<&str>,
    asking: &Asking<'_>,
) -> Result<Option<QuestionAnswer>, NodeError> {
    let ToolQuestion { server, form, .. } = question;
    let name = wanted.tool.name();
    let quoted = question.message.replace('\n', "\n> ");
    let mut description = format!(
        "The server `{server}` asks this while `{name}` is called. The text is the server's own; tell it nothing that it must not know.\n\n> {quoted}\n\n"
    );
    description.push_str(match result {
        None => "The call has failed without an answer. If you answer, it is made again.",
        Some(_) => {
            "The call was not reported as failed, so it may have had an effect. If you answer, it is made a second time; if you ignore the question, its result is used."
        }
    });
    let request = json!({
        "action_request": wanted.action_request(args),
        "config": {
            "allow_ignore": true,
            "allow_respond": true,
            "allow_edit": false,
            "allow_accept": false,
        },
        "description": description,
        "tool_call_id": wanted.id,
        "labels": wanted.labels.clone().join(&wanted.tool.output),
        "server": server,
        "message": question.message,
        "form": form,
        "result": result,
    });
    let schema = json!({
        "type": "object",
        "required": ["type"],
        "anyOf": [
            { "properties": { "type": { "const": "response" }, "args": form }, "required": ["args"] },
            { "properties": { "type": { "const": "ignore" } } },
        ],
    });
    let key = format!("question:{}:{}", wanted.id, question.digest);
    let interrupt = Interrupt::new(key, request)
        .kind("elicitation")
        .schema(schema);
    let answer: Answered = asking.ask(interrupt).await?;
    Ok(match answer.kind {
        Kind::Response => Some(QuestionAnswer {
            digest: question.digest.clone(),
            content: answer.args,
        }),
        Kind::Ignore => None,
    })
}
