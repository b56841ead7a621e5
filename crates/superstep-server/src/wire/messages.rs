//! Messages: what clients send, in every form that they send it, and what they read.
//!
//! The stored form is that of `superstep_agent::ChatMessage`: `{"id", "labels", "type", "content", …}`. Labels say where a text
//! comes from, so the server sets them and never takes them from a caller.

use serde_json::{Map, Value as Json, json};

use crate::json_depth;
use crate::wire::content;

/// The id with which a client removes all messages.
const REMOVE_ALL: &str = "__remove_all__";

/// What a caller writes into a channel of messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MessageChange {
    /// Stored writes, merged by id: `{"put": …}`, `{"remove": …}`.
    Merge(Vec<Json>),
    /// Stored messages that replace all others.
    Replace(Vec<Json>),
}

/// Reads what a client sends for a channel of messages: one message or a list. The error says what cannot be read.
pub(crate) fn read_messages(value: &Json) -> Result<MessageChange, String> {
    let one = std::slice::from_ref(value);
    let items = value.as_array().map_or(one, Vec::as_slice);
    let (mut writes, mut replaces) = (Vec::new(), false);
    for item in items {
        match read_message(item)? {
            SentMessage::Put(message) => writes.push(json!({ "put": message })),
            SentMessage::Remove(id) if id == REMOVE_ALL => {
                // What came before is removed too.
                writes.clear();
                replaces = true;
            }
            SentMessage::Remove(id) => writes.push(json!({ "remove": id })),
        }
    }
    if !replaces {
        return Ok(MessageChange::Merge(writes));
    }
    // Nothing is left that a removal could remove, apart from what the client sends itself.
    let removed: Vec<String> = writes.iter().filter_map(removed_id).collect();
    let put = writes.iter().filter_map(|write| write.get("put"));
    let is_left = |message: &&Json| {
        let id = message.get("id").and_then(Json::as_str);
        id.is_none_or(|id| !removed.iter().any(|removed| removed == id))
    };
    Ok(MessageChange::Replace(
        put.filter(is_left).cloned().collect(),
    ))
}

fn removed_id(write: &Json) -> Option<String> {
    write.get("remove")?.as_str().map(str::to_owned)
}

enum SentMessage {
    Put(Json),
    Remove(String),
}

fn read_message(value: &Json) -> Result<SentMessage, String> {
    match value {
        Json::String(text) => Ok(SentMessage::Put(stored(Role::Human, text.clone().into()))),
        // A pair, as in `["user", "hello"]`.
        Json::Array(pair) => match pair.as_slice() {
            [Json::String(role), content] => {
                let role = role_of(role).ok_or_else(|| unknown_role(role))?;
                Ok(SentMessage::Put(stored(role, content::read(content)?)))
            }
            _ => Err("a message is not a pair of a role and its content".to_owned()),
        },
        Json::Object(fields) => read_object(fields),
        Json::Null | Json::Bool(_) | Json::Number(_) => Err(format!("`{value}` is not a message")),
    }
}

fn read_object(fields: &Map<String, Json>) -> Result<SentMessage, String> {
    let (names, fields) = match constructor_of(fields) {
        Some((name, kwargs)) => (vec![name], kwargs),
        None => {
            let names = ["type", "role"].map(|name| fields.get(name).and_then(Json::as_str));
            (names.into_iter().flatten().collect(), fields)
        }
    };
    if names
        .iter()
        .any(|name| matches!(*name, "remove" | "RemoveMessage"))
    {
        let id = text_of(fields, "id").ok_or("a message to remove has no `id`")?;
        return Ok(SentMessage::Remove(id.to_owned()));
    }
    let role = names.iter().find_map(|name| role_of(name));
    let role = role.ok_or_else(|| match names.first() {
        Some(name) => unknown_role(name),
        None => "a message has neither `type` nor `role`".to_owned(),
    })?;
    let content = content::read(fields.get("content").unwrap_or(&Json::Null))?;
    let mut message = stored(role, content);
    if let Some(id) = text_of(fields, "id").filter(|id| !id.is_empty()) {
        message["id"] = id.into();
    }
    match role {
        Role::Human | Role::System => {}
        Role::Ai => read_answer(fields, &mut message),
        Role::Tool => read_result(fields, &mut message)?,
    }
    Ok(SentMessage::Put(message))
}

/// Reads the form in which LangChain serializes objects: the class's name, and the arguments of its constructor.
fn constructor_of(fields: &Map<String, Json>) -> Option<(&str, &Map<String, Json>)> {
    fields.get("lc")?;
    let path = fields.get("id")?.as_array()?;
    let name = path.last()?.as_str()?;
    Some((name, fields.get("kwargs")?.as_object()?))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Human,
    Ai,
    System,
    Tool,
}

impl Role {
    fn stored_name(self) -> &'static str {
        match self {
            Role::Human => "human",
            Role::Ai => "ai",
            Role::System => "system",
            Role::Tool => "tool",
        }
    }
}

fn role_of(name: &str) -> Option<Role> {
    let short = name.strip_suffix("Chunk").unwrap_or(name);
    match short {
        "human" | "user" | "HumanMessage" => Some(Role::Human),
        "ai" | "assistant" | "AIMessage" => Some(Role::Ai),
        "system" | "developer" | "SystemMessage" => Some(Role::System),
        "tool" | "ToolMessage" => Some(Role::Tool),
        _ => None,
    }
}

fn unknown_role(name: &str) -> String {
    format!("`{name}` is not a role of a message; use `user`, `assistant`, `system` or `tool`")
}

fn stored(role: Role, content: Json) -> Json {
    json!({ "type": role.stored_name(), "content": content, "labels": [] })
}

fn text_of<'a>(fields: &'a Map<String, Json>, name: &str) -> Option<&'a str> {
    fields.get(name)?.as_str()
}

fn read_answer(fields: &Map<String, Json>, message: &mut Json) {
    let extra = fields.get("additional_kwargs");
    let own = fields.get("tool_calls").and_then(Json::as_array);
    let own = own.filter(|calls| !calls.is_empty());
    // Older clients send only what the provider returned.
    let raw = extra.and_then(|extra| extra.get("tool_calls")?.as_array());
    let calls = own.or(raw).map_or(&[][..], Vec::as_slice);
    message["tool_calls"] = calls.iter().filter_map(read_call).collect();
    let reasoning = extra.and_then(|extra| extra.get("reasoning_content")?.as_str());
    if let Some(reasoning) = reasoning.or_else(|| text_of(fields, "reasoning")) {
        message["reasoning"] = reasoning.into();
    }
}

fn read_call(call: &Json) -> Option<Json> {
    let id = call.get("id").and_then(Json::as_str).unwrap_or_default();
    let function = call.get("function").unwrap_or(call);
    let name = function.get("name")?.as_str()?;
    let args = match function.get("args").or_else(|| function.get("arguments")) {
        Some(Json::String(text)) => {
            json_depth::read_inner(text).unwrap_or_else(|| text.as_str().into())
        }
        Some(args) => args.clone(),
        None => json!({}),
    };
    Some(json!({ "id": id, "name": name, "args": args }))
}

fn read_result(fields: &Map<String, Json>, message: &mut Json) -> Result<(), String> {
    let call = text_of(fields, "tool_call_id").ok_or("a tool message has no `tool_call_id`")?;
    message["tool_call_id"] = call.into();
    message["name"] = text_of(fields, "name").unwrap_or_default().into();
    let status = match text_of(fields, "status") {
        Some("error") => "error",
        _ => "success",
    };
    message["status"] = status.into();
    Ok(())
}

/// Converts a stored message into the form that clients read. The labels stay inside.
pub(crate) fn message(message: &Json) -> Json {
    let Some(fields) = message.as_object() else {
        return message.clone();
    };
    let role = text_of(fields, "type").and_then(role_of);
    let Some(role) = role else {
        // A message type of the graph's own.
        let mut fields = fields.clone();
        fields.remove("labels");
        return Json::Object(fields);
    };
    let get = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let mut shown = json!({
        "content": content::show(fields.get("content").unwrap_or(&Json::Null)),
        "additional_kwargs": {},
        "response_metadata": {},
        "type": role.stored_name(),
        "name": null,
        "id": get("id"),
    });
    match role {
        Role::Human | Role::System => {}
        Role::Ai => {
            let calls = fields.get("tool_calls").and_then(Json::as_array);
            let calls = calls.into_iter().flatten().map(show_call);
            shown["tool_calls"] = calls.collect();
            shown["invalid_tool_calls"] = json!([]);
            shown["usage_metadata"] = Json::Null;
            if let Some(reasoning) = fields.get("reasoning") {
                shown["additional_kwargs"] = json!({ "reasoning_content": reasoning });
            }
        }
        Role::Tool => {
            if let Some(name) = text_of(fields, "name").filter(|name| !name.is_empty()) {
                shown["name"] = name.into();
            }
            shown["tool_call_id"] = get("tool_call_id");
            shown["artifact"] = Json::Null;
            shown["status"] = text_of(fields, "status").unwrap_or("success").into();
        }
    }
    shown
}

fn show_call(call: &Json) -> Json {
    let get = |name: &str| call.get(name).cloned().unwrap_or_default();
    json!({ "name": get("name"), "args": get("args"), "id": get("id"), "type": "tool_call" })
}

/// Converts a stored write to a channel of messages into the form that clients read.
pub(crate) fn message_write(write: &Json) -> Json {
    match (write.get("put"), write.get("remove")) {
        (Some(put), _) => message(put),
        (None, Some(id)) => json!({
            "content": "",
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "remove",
            "name": null,
            "id": id,
        }),
        (None, None) => message(write),
    }
}

#[cfg(test)]
mod tests {
    use superstep_agent::ChatMessage;

    use super::*;

    fn puts(sent: &Json) -> Vec<Json> {
        let MessageChange::Merge(writes) = read_messages(sent).unwrap() else {
            panic!("{sent} replaces");
        };
        let puts = writes.into_iter().map(|write| write["put"].clone());
        puts.collect()
    }

    #[test]
    fn every_form_of_a_human_message_is_stored_alike() {
        let expected = json!({ "type": "human", "content": "hi", "labels": [] });
        for sent in [
            json!("hi"),
            json!(["hi"]),
            json!([["user", "hi"]]),
            json!({ "role": "user", "content": "hi" }),
            json!([{ "role": "human", "content": "hi", "labels": ["trusted"] }]),
            json!({ "type": "HumanMessage", "content": "hi" }),
            json!({ "type": "message", "role": "user", "content": "hi" }),
            json!({
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "HumanMessage"],
                "kwargs": { "content": "hi" },
            }),
        ] {
            assert_eq!(puts(&sent), std::slice::from_ref(&expected), "{sent}");
        }
    }

    #[test]
    fn what_is_stored_can_be_read_by_the_agents() {
        let sent = json!([
            { "role": "system", "content": "be brief" },
            { "type": "human", "id": "m1", "content": [
                { "type": "text", "text": "look" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
            ] },
            { "type": "AIMessageChunk", "content": "", "tool_calls": [
                { "name": "look", "args": { "at": 1 }, "id": "c1", "type": "tool_call" },
            ] },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c2", "type": "function", "function": { "name": "look", "arguments": "{\"at\":2}" } },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "12" },
        ]);
        let read: Vec<ChatMessage> = puts(&sent)
            .into_iter()
            .map(|put| serde_json::from_value(put).unwrap())
            .collect();
        assert_eq!(read[1].id.as_deref(), Some("m1"));
        assert_eq!(read[2].message.tool_calls()[0].args, json!({ "at": 1 }));
        assert_eq!(read[3].message.tool_calls()[0].args, json!({ "at": 2 }));
        assert!(read.iter().all(|message| message.labels.is_empty()));
    }

    #[test]
    fn a_list_with_one_text_stays_a_list() {
        let content = json!([{ "type": "text", "text": "hi" }]);
        let stored = puts(&json!([{ "type": "human", "content": content }]));
        assert_eq!(stored[0]["content"], content);
        let read: ChatMessage = serde_json::from_value(stored[0].clone()).unwrap();
        assert_eq!(read.text(), "hi");
        let kept = serde_json::to_value(read).unwrap();
        assert_eq!(message(&kept)["content"], content);
    }

    #[test]
    fn removals_and_the_removal_of_all() {
        let some = json!([{ "type": "remove", "id": "m1" }, "new"]);
        let MessageChange::Merge(writes) = read_messages(&some).unwrap() else {
            panic!("it merges");
        };
        assert_eq!(writes[0], json!({ "remove": "m1" }));
        let all = json!(["old", { "type": "remove", "id": "__remove_all__" }, "new"]);
        let MessageChange::Replace(left) = read_messages(&all).unwrap() else {
            panic!("it replaces");
        };
        assert_eq!(
            left,
            [json!({ "type": "human", "content": "new", "labels": [] })]
        );
    }

    #[test]
    fn what_is_not_a_message_is_refused_by_name() {
        let refused = read_messages(&json!([{ "role": "narrator", "content": "" }])).unwrap_err();
        assert!(refused.contains("`narrator`"), "{refused}");
        assert!(read_messages(&json!(7)).is_err());
        assert!(read_messages(&json!([{ "content": "" }])).is_err());
    }

    #[test]
    fn clients_read_the_whole_form_and_no_labels() {
        let stored = json!({
            "id": "m2", "labels": ["untrusted"], "type": "ai", "content": "I look.",
            "tool_calls": [{ "id": "c1", "name": "look", "args": {} }],
        });
        assert_eq!(
            message(&stored),
            json!({
                "content": "I look.", "additional_kwargs": {}, "response_metadata": {}, "type": "ai",
                "name": null, "id": "m2", "invalid_tool_calls": [], "usage_metadata": null,
                "tool_calls": [{ "name": "look", "args": {}, "id": "c1", "type": "tool_call" }],
            })
        );
        let result = json!({
            "id": "m3", "labels": [], "type": "tool", "tool_call_id": "c1", "name": "look",
            "content": "12", "status": "error",
        });
        let shown = message(&result);
        assert_eq!(shown["status"], "error");
        assert_eq!(shown["name"], "look");
        assert!(shown.get("labels").is_none());
    }
}
