//! Messages, in the form of AG-UI.

use serde_json::{Value as Json, json};

use crate::error::{ApiError, ApiResult};
use crate::follow::text_of;

/// Reads a message; `None` for one that only the client needs. The result is in a form that states take.
pub(super) fn read_message(message: &Json) -> ApiResult<Option<Json>> {
    let role = message["role"].as_str().unwrap_or_default();
    let mut read = json!({ "role": role, "content": read_content(&message["content"]) });
    match role {
        "user" | "assistant" | "system" | "developer" | "tool" => {}
        "reasoning" | "activity" => return Ok(None),
        _ => {
            return Err(ApiError::invalid(format!(
                "`{}` is not a role of a message",
                superstep::__private::shorten(role)
            )));
        }
    }
    if let Some(id) = message.get("id").filter(|id| id.is_string()) {
        read["id"] = id.clone();
    }
    if let Some(calls) = message.get("toolCalls").filter(|calls| calls.is_array()) {
        read["tool_calls"] = calls.clone();
    }
    if let Some(call) = message.get("toolCallId") {
        read["tool_call_id"] = call.clone();
    }
    if message.get("error").is_some_and(Json::is_string) {
        read["status"] = "error".into();
    }
    Ok(Some(read))
}

fn read_content(content: &Json) -> Json {
    match content {
        Json::Array(parts) => parts.iter().map(read_part).collect(),
        other => other.clone(),
    }
}

/// Reads a part. Those with a source that only one provider knows stay as they are, and are refused later.
fn read_part(part: &Json) -> Json {
    let kind = part["type"].as_str().unwrap_or_default();
    let source = &part["source"];
    let place = match source["type"].as_str() {
        Some("data") => "data",
        Some("url") => "url",
        _ => return part.clone(),
    };
    let kind = if kind == "document" { "file" } else { kind };
    let mut read = json!({ "type": kind, place: source["value"] });
    if let Some(mime_type) = source.get("mimeType") {
        read["mime_type"] = mime_type.clone();
    }
    read
}

/// Returns a message of a state, as AG-UI has it; `None` for one of a kind that it does not know.
pub(super) fn show_message(index: usize, message: &Json) -> Option<Json> {
    let id = message["id"].as_str().map(str::to_owned);
    let id = id.unwrap_or_else(|| format!("message-{index}"));
    let text = text_of(message);
    let shown = match message["type"].as_str()? {
        "human" => json!({ "id": id, "role": "user", "content": text }),
        "system" => json!({ "id": id, "role": "system", "content": text }),
        "ai" => {
            let mut shown = json!({ "id": id, "role": "assistant", "content": text });
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let calls: Vec<Json> = calls.map(show_call).collect();
            if !calls.is_empty() {
                shown["toolCalls"] = Json::Array(calls);
            }
            shown
        }
        "tool" => {
            let mut shown = json!({
                "id": id,
                "role": "tool",
                "content": text,
                "toolCallId": message["tool_call_id"].as_str().unwrap_or_default(),
            });
            if message["status"] == "error" {
                shown["error"] = shown["content"].clone();
            }
            shown
        }
        _ => return None,
    };
    Some(shown)
}

fn show_call(call: &Json) -> Json {
    json!({
        "id": call["id"].as_str().unwrap_or_default(),
        "type": "function",
        "function": {
            "name": call["name"].as_str().unwrap_or_default(),
            "arguments": call["args"].to_string(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_and_shown() {
        let call = json!({
            "id": "c1", "type": "function", "function": { "name": "search", "arguments": "{}" },
        });
        let sent = json!({
            "id": "a1", "role": "assistant", "content": "Let me see.", "toolCalls": [call],
        });
        let read = read_message(&sent).unwrap().unwrap();
        assert_eq!(read["tool_calls"][0]["id"], "c1");
        let stored = json!({
            "type": "ai",
            "id": "a1",
            "content": "Let me see.",
            "tool_calls": [{ "id": "c1", "name": "search", "args": {} }],
        });
        assert_eq!(show_message(0, &stored), Some(sent));
        let thought = json!({ "id": "t", "role": "reasoning", "content": "hm" });
        assert_eq!(read_message(&thought).unwrap(), None);
        assert!(read_message(&json!({ "role": "root", "content": "" })).is_err());
        assert!(read_message(&json!("hi")).is_err());
    }

    #[test]
    fn parts_with_bytes_become_files() {
        let part = json!({
            "type": "document",
            "source": { "type": "data", "value": "QQ==", "mimeType": "application/pdf" },
        });
        assert_eq!(
            read_part(&part),
            json!({ "type": "file", "data": "QQ==", "mime_type": "application/pdf" })
        );
    }
}
