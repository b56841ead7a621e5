//! Events of the thread protocol.

use std::borrow::Cow;

use serde_json::{Value as Json, json};
use superstep::ThreadId;

use crate::feed::{
    BlockKind, FeedBody, FeedEvent, MessageChange, MessagePart, RunStop, StreamedCheckpoint,
    SubgraphEnd, TaskOrigin, ToolChange, ToolPart, split_segment,
};
use crate::stream::{ended_task, started_task};

/// The kind of an event: what it is called, and the channel that it belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventKind {
    pub(super) method: &'static str,
    pub(super) channel: Cow<'static, str>,
}

impl EventKind {
    /// Returns the kind of an event; `None` if the protocol does not show it.
    ///
    /// A message that was not streamed is not shown: it is in the state, and a client would take it for a new one.
    pub(super) fn of(event: &FeedEvent) -> Option<Self> {
        let method = match &event.body {
            FeedBody::RunBegan
            | FeedBody::SubgraphBegan { .. }
            | FeedBody::SubgraphEnded(_)
            | FeedBody::Stopped(_) => "lifecycle",
            FeedBody::Values(_) | FeedBody::PausedValues(_) => "values",
            FeedBody::Update { .. } => "updates",
            FeedBody::Checkpoint(_) => "checkpoints",
            FeedBody::TaskStarted(_) | FeedBody::TaskEnded(_) => "tasks",
            FeedBody::Message(_) => "messages",
            FeedBody::Tool(_) => "tools",
            FeedBody::Custom { payload, .. } => {
                let channel = match custom_name(payload) {
                    Some(name) => format!("custom:{name}").into(),
                    None => "custom".into(),
                };
                return Some(Self {
                    method: "custom",
                    channel,
                });
            }
            FeedBody::InputRequested(_) => {
                return Some(Self {
                    method: "input.requested",
                    channel: "input".into(),
                });
            }
            FeedBody::Interrupts { .. } | FeedBody::MessageWhole { .. } => return None,
        };
        Some(Self {
            method,
            channel: method.into(),
        })
    }
}

/// Returns the name of a custom event: a field of what the node shows.
fn custom_name(payload: &Json) -> Option<&str> {
    let name = payload.get("name").and_then(Json::as_str);
    name.filter(|name| !name.is_empty())
}

/// Returns an event as clients read it. `graph` is the name of the thread's graph.
pub(super) fn envelope(
    thread: &ThreadId,
    graph: &str,
    event: &FeedEvent,
    method: &'static str,
) -> Json {
    let number = event.id.number();
    let mut params = json!({
        "namespace": event.namespace.segments(),
        "timestamp": event.at.0,
        "data": data(thread, graph, event),
    });
    if let Some(origin) = origin(&event.body) {
        params["node"] = origin.node.as_str().into();
    }
    json!({
        "type": "event",
        "event_id": number.to_string(),
        "seq": number,
        "method": method,
        "params": params,
    })
}

fn origin(body: &FeedBody) -> Option<&TaskOrigin> {
    match body {
        FeedBody::Update { origin, .. } | FeedBody::Custom { origin, .. } => Some(origin),
        FeedBody::Message(part) => Some(&part.origin),
        FeedBody::Tool(part) => Some(&part.origin),
        _ => None,
    }
}

fn data(thread: &ThreadId, graph: &str, event: &FeedEvent) -> Json {
    match &event.body {
        FeedBody::RunBegan => json!({ "event": "running", "graph_name": graph }),
        FeedBody::SubgraphBegan { .. } => {
            let mut began = subgraph(event, "started");
            began["namespace"] = event.namespace.segments().into();
            if let Some(task) = entering_task(event) {
                began["trigger_call_id"] = task.into();
            }
            began
        }
        FeedBody::SubgraphEnded(end) => subgraph(
            event,
            match end {
                SubgraphEnd::Completed => "completed",
                SubgraphEnd::Failed => "failed",
                SubgraphEnd::Interrupted => "interrupted",
            },
        ),
        FeedBody::Stopped(stop) => stopped(graph, stop),
        FeedBody::Values(values) | FeedBody::PausedValues(values) => match &**values {
            Json::Null => json!({}),
            values => with_short_messages(values),
        },
        FeedBody::Update { origin, update, .. } => {
            json!({ &origin.node: with_short_messages(update) })
        }
        FeedBody::Checkpoint(checkpoint) => {
            checkpoint_data(thread, &event.namespace.to_string(), checkpoint)
        }
        FeedBody::TaskStarted(task) => started_task(task, None),
        FeedBody::TaskEnded(task) => ended_task(task),
        FeedBody::Message(part) => message(part),
        FeedBody::Tool(part) => tool(part),
        // Clients for Python read the fields next to the name; those for JavaScript read the field `payload`.
        FeedBody::Custom { payload, .. } => match custom_name(payload) {
            Some(_) => Json::clone(payload),
            None => json!({ "payload": &**payload }),
        },
        FeedBody::InputRequested(interrupt) => {
            let value = interrupt.get("value").cloned().unwrap_or_default();
            json!({
                "interrupt_id": interrupt.get("id"),
                "payload": value,
                // The same under the name that the client for Python reads.
                "value": value,
                "response_schema": interrupt.get("response_schema"),
            })
        }
        FeedBody::Interrupts { .. } | FeedBody::MessageWhole { .. } => Json::Null,
    }
}

/// Returns a state or an update whose messages have no fields that say nothing: this protocol shows them in a short form.
fn with_short_messages(channels: &Json) -> Json {
    let mut shown = channels.clone();
    let fields = shown.as_object_mut();
    for channel in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        let items = channel.as_array_mut();
        for item in items.into_iter().flatten() {
            if let Some(message) = item.as_object_mut()
                && message.contains_key("additional_kwargs")
            {
                message.retain(|name, value| !says_nothing(name, value));
            }
        }
    }
    shown
}

fn says_nothing(name: &str, value: &Json) -> bool {
    let is_empty = match value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    };
    is_empty && SHORTENED.contains(&name)
}

/// Fields of messages that are left out if they are empty.
const SHORTENED: [&str; 6] = [
    "additional_kwargs",
    "response_metadata",
    "name",
    "tool_calls",
    "invalid_tool_calls",
    "usage_metadata",
];

/// Returns the task that entered the subgraph of an event. A subgraph that lives as long as its thread has none.
fn entering_task(event: &FeedEvent) -> Option<&str> {
    split_segment(event.namespace.segments().last()?).1
}

fn subgraph(event: &FeedEvent, phase: &str) -> Json {
    let segment = event.namespace.segments().last();
    let node = segment.map(|segment| split_segment(segment).0);
    json!({ "event": phase, "graph_name": node })
}

/// Returns how a run stopped. Of these, clients take only `completed` and `failed` for the end of a run, so a run that was
/// cancelled is a failed one: with any other event, they would wait for its end forever.
fn stopped(graph: &str, stop: &RunStop) -> Json {
    match stop {
        RunStop::Finished => json!({ "event": "completed", "graph_name": graph }),
        RunStop::Paused => json!({ "event": "interrupted", "graph_name": graph }),
        RunStop::Cancelled => json!({
            "event": "failed",
            "graph_name": graph,
            "error": "the run was cancelled",
        }),
        RunStop::Failed { message, .. } => json!({
            "event": "failed",
            "graph_name": graph,
            "error": message,
        }),
    }
}

fn checkpoint_data(thread: &ThreadId, namespace: &str, checkpoint: &StreamedCheckpoint) -> Json {
    let mut data = json!({
        "id": checkpoint.id.to_uuid_in(thread, namespace),
        "step": checkpoint.step,
        "source": checkpoint.source,
    });
    if let Some(parent) = checkpoint.parent {
        data["parent_id"] = parent.to_uuid_in(thread, namespace).into();
    }
    data
}

/// Returns a part of a message. Every part names its message, because those of several may alternate.
fn message(part: &MessagePart) -> Json {
    let id = &*part.message;
    match &part.change {
        MessageChange::Began => json!({
            "event": "message-start",
            "role": "ai",
            "id": id,
            "metadata": { "langgraph_node": part.origin.node, "langgraph_step": part.origin.step },
        }),
        MessageChange::BlockBegan { block, kind } => json!({
            "event": "content-block-start",
            "message_id": id,
            "index": block,
            "content": empty_block(*block, kind),
        }),
        MessageChange::Delta { block, kind, text } => json!({
            "event": "content-block-delta",
            "message_id": id,
            "index": block,
            "delta": match kind {
                BlockKind::Text => json!({ "type": "text-delta", "text": text }),
                BlockKind::Reasoning => json!({ "type": "reasoning-delta", "reasoning": text }),
                BlockKind::ToolCall { .. } => json!({ "type": "tool-call-delta", "args": text }),
            },
        }),
        MessageChange::BlockEnded { block, content } => json!({
            "event": "content-block-finish",
            "message_id": id,
            "index": block,
            "content": content,
        }),
        MessageChange::Ended { usage, .. } => {
            let mut data = json!({ "event": "message-finish", "message_id": id });
            if let Some(usage) = usage {
                data["usage"] = usage.clone();
            }
            data
        }
    }
}

fn empty_block(block: u32, kind: &BlockKind) -> Json {
    match kind {
        BlockKind::Text => json!({ "type": "text", "text": "" }),
        BlockKind::Reasoning => json!({ "type": "reasoning", "reasoning": "" }),
        BlockKind::ToolCall { id, name, .. } => json!({
            "type": "tool_call_chunk",
            "id": id,
            "name": name,
            "args": "",
            "index": block,
        }),
    }
}

fn tool(part: &ToolPart) -> Json {
    let call = &part.call;
    match &part.change {
        ToolChange::Started { input } => json!({
            "event": "tool-started",
            "tool_call_id": call,
            "tool_name": part.name,
            "input": input,
        }),
        ToolChange::Progress { text } => json!({
            "event": "tool-output-delta",
            "tool_call_id": call,
            "delta": text,
        }),
        ToolChange::Ended {
            is_error: false,
            output,
        } => json!({
            "event": "tool-finished",
            "tool_call_id": call,
            "output": {
                "type": "tool",
                "content": output,
                "name": part.name,
                "tool_call_id": call,
                "status": "success",
            },
        }),
        ToolChange::Ended { output, .. } => json!({
            "event": "tool-error",
            "tool_call_id": call,
            "message": output,
        }),
    }
}
