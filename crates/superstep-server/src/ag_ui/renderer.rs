//! Writes what happens in a run as events of AG-UI.
//!
//! Clients refuse a stream whose events do not match: whatever is begun is ended, once, before the run is. So the renderer knows what
//! is open, and closes it when the run stops.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use superstep::ChannelKind;
use superstep::graph::Definition;

use crate::ag_ui::messages::show_message;
use crate::feed::{
    BlockKind, FeedBody, FeedEvent, MessageChange, MessagePart, Namespace, ToolChange, ToolPart,
    split_segment,
};
use crate::follow::{RunResult, message_channel, question_of, request_of, text_of, write_data};

/// Writes the events of one run.
#[derive(Debug)]
pub(super) struct AgUiRenderer {
    /// The names that the client gave.
    thread: String,
    run: String,
    messages: Option<&'static str>,
    /// Channels that are not part of the state that clients see, because messages have events of their own.
    hidden: Vec<&'static str>,
    /// Running tasks by the name of their step: a node may run several times at once.
    steps: BTreeMap<String, usize>,
    open: BTreeMap<String, OpenMessage>,
    /// How often each message was begun.
    begun: BTreeMap<String, u32>,
    /// Calls that were shown, and those whose results were.
    calls: BTreeSet<String>,
    results: BTreeSet<String>,
    last_state: Option<Json>,
}

/// A message that a model is writing.
#[derive(Debug)]
struct OpenMessage {
    /// Its id for the client.
    shown: String,
    has_text: bool,
    block: Option<OpenBlock>,
}

/// A block that is closed before the message is.
#[derive(Debug)]
enum OpenBlock {
    Reasoning(String),
    Call(String),
}

impl AgUiRenderer {
    pub(super) fn new(graph: &Definition, thread: String, run: String) -> Self {
        let channels = graph.channels().iter();
        let hidden = channels.filter(|channel| channel.kind == ChannelKind::Messages);
        Self {
            thread,
            run,
            messages: message_channel(graph),
            hidden: hidden.map(|channel| channel.name).collect(),
            steps: BTreeMap::new(),
            open: BTreeMap::new(),
            begun: BTreeMap::new(),
            calls: BTreeSet::new(),
            results: BTreeSet::new(),
            last_state: None,
        }
    }

    /// Writes the first event.
    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        let event = json!({
            "type": "RUN_STARTED",
            "threadId": self.thread,
            "runId": self.run,
            "protocolVersion": "1.0",
        });
        write_data(out, &event);
    }

    /// Writes what happened.
    pub(super) fn render(&mut self, event: &FeedEvent, out: &mut Vec<u8>) {
        match &event.body {
            FeedBody::TaskStarted(task) => {
                let step = step_name(&event.namespace, &task.origin.node);
                let count = self.steps.entry(step.clone()).or_default();
                *count += 1;
                if *count == 1 {
                    write_data(out, &json!({ "type": "STEP_STARTED", "stepName": step }));
                }
            }
            FeedBody::TaskEnded(task) => {
                let step = step_name(&event.namespace, &task.origin.node);
                if let Some(count) = self.steps.get_mut(&step) {
                    *count -= 1;
                    if *count == 0 {
                        self.steps.remove(&step);
                        write_data(out, &json!({ "type": "STEP_FINISHED", "stepName": step }));
                    }
                }
            }
            FeedBody::Values(values) if event.namespace.is_root() => self.state(values, out),
            FeedBody::Message(part) => self.message_part(part, out),
            FeedBody::MessageWhole { message, .. } => self.message_whole(message, out),
            FeedBody::Tool(part) => self.tool(part, out),
            FeedBody::Custom { payload, .. } => {
                let name = payload["name"].as_str().unwrap_or("custom");
                let event = json!({ "type": "CUSTOM", "name": name, "value": **payload });
                write_data(out, &event);
            }
            _ => {}
        }
    }

    /// Writes how the run ended.
    pub(super) fn finish(&mut self, result: &RunResult, out: &mut Vec<u8>) {
        let (values, outcome) = match result {
            RunResult::Failed { error, message } => return self.fail(error, message, out),
            RunResult::Cancelled => (None, json!({ "type": "cancelled" })),
            RunResult::Finished(values) => (Some(values), json!({ "type": "success" })),
            RunResult::Waiting { values, interrupts } => {
                let shown: Vec<Json> = interrupts.iter().map(show_interrupt).collect();
                (
                    Some(values),
                    json!({ "type": "interrupt", "interrupts": shown }),
                )
            }
        };
        self.close_all(out);
        if let Some(values) = values {
            self.state(values, out);
            self.conversation(values, out);
        }
        let event = json!({
            "type": "RUN_FINISHED",
            "threadId": self.thread,
            "runId": self.run,
            "outcome": outcome,
        });
        write_data(out, &event);
    }

    /// Writes that the run failed.
    pub(super) fn fail(&mut self, code: &str, message: &str, out: &mut Vec<u8>) {
        self.close_all(out);
        let event = json!({ "type": "RUN_ERROR", "message": message, "code": code });
        write_data(out, &event);
    }

    /// Ends what is open.
    fn close_all(&mut self, out: &mut Vec<u8>) {
        for (_, open) in std::mem::take(&mut self.open) {
            open.close(out);
        }
        for (step, _) in std::mem::take(&mut self.steps) {
            write_data(out, &json!({ "type": "STEP_FINISHED", "stepName": step }));
        }
    }

    /// Writes the state, if the client does not know it.
    fn state(&mut self, values: &Json, out: &mut Vec<u8>) {
        let mut shown = values.clone();
        if let Some(fields) = shown.as_object_mut() {
            fields.retain(|name, _| !self.hidden.contains(&name.as_str()));
        }
        if self.last_state.as_ref() == Some(&shown) {
            return;
        }
        write_data(out, &json!({ "type": "STATE_SNAPSHOT", "snapshot": shown }));
        self.last_state = Some(shown);
    }

    /// Writes all messages, with the ids that they have in the thread: those of a client that sends them back are known by them.
    fn conversation(&self, values: &Json, out: &mut Vec<u8>) {
        let Some(channel) = self.messages else {
            return;
        };
        let messages = values[channel].as_array().into_iter().flatten().enumerate();
        let shown: Vec<Json> = messages
            .filter_map(|(index, message)| show_message(index, message))
            .collect();
        let event = json!({ "type": "MESSAGES_SNAPSHOT", "messages": shown });
        write_data(out, &event);
    }

    fn message_part(&mut self, part: &MessagePart, out: &mut Vec<u8>) {
        let id: &str = &part.message;
        if matches!(part.change, MessageChange::Began) {
            if let Some(open) = self.open.remove(id) {
                open.close(out);
            }
            *self.begun.entry(id.to_owned()).or_default() += 1;
        }
        let open = self.open.entry(id.to_owned()).or_insert_with(|| {
            // A message that is written again is another one for the client, which would append to the first.
            let shown = match self.begun.get(id) {
                Some(count) if *count > 1 => format!("{id}-{count}"),
                _ => id.to_owned(),
            };
            OpenMessage {
                shown,
                has_text: false,
                block: None,
            }
        });
        match &part.change {
            MessageChange::Began => {}
            MessageChange::BlockBegan { block, kind } => {
                if let BlockKind::ToolCall { id, .. } = kind {
                    self.calls.insert(id.clone());
                }
                open.begin_block(*block, kind, out);
            }
            MessageChange::Delta { text, kind, .. } => open.add(kind, text, out),
            MessageChange::BlockEnded { .. } => open.end_block(out),
            MessageChange::Ended { .. } => {
                if let Some(open) = self.open.remove(id) {
                    open.close(out);
                }
            }
        }
    }

    /// Writes a message that was not streamed in parts. What the client said itself, it knows.
    fn message_whole(&mut self, message: &Json, out: &mut Vec<u8>) {
        let id = message["id"].as_str().unwrap_or_default();
        match message["type"].as_str() {
            Some("ai") => {
                let text = text_of(message);
                if !text.is_empty() {
                    write_text(id, &text, out);
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let call_id = call["id"].as_str().unwrap_or_default();
                    let name = call["name"].as_str().unwrap_or_default();
                    self.call(call_id, name, &call["args"], Some(id), out);
                }
            }
            Some("tool") => {
                let call = message["tool_call_id"].as_str().unwrap_or_default();
                self.result(call, id, &text_of(message), out);
            }
            _ => {}
        }
    }

    fn tool(&mut self, part: &ToolPart, out: &mut Vec<u8>) {
        match &part.change {
            ToolChange::Started { input } => self.call(&part.call, &part.name, input, None, out),
            ToolChange::Progress { .. } => {}
            ToolChange::Ended { output, .. } => {
                let id = format!("{}-result", part.call);
                self.result(&part.call, &id, output, out);
            }
        }
    }

    /// Writes a whole call, unless the client has seen it.
    fn call(
        &mut self,
        id: &str,
        name: &str,
        args: &Json,
        message: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        if !self.calls.insert(id.to_owned()) {
            return;
        }
        write_data(out, &call_start(id, name, message));
        let args = json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": args.to_string() });
        write_data(out, &args);
        write_data(out, &json!({ "type": "TOOL_CALL_END", "toolCallId": id }));
    }

    /// Writes the result of a call, unless the client has seen it.
    fn result(&mut self, call: &str, message: &str, text: &str, out: &mut Vec<u8>) {
        if !self.calls.contains(call) || !self.results.insert(call.to_owned()) {
            return;
        }
        let event = json!({
            "type": "TOOL_CALL_RESULT",
            "messageId": message,
            "toolCallId": call,
            "content": text,
            "role": "tool",
        });
        write_data(out, &event);
    }
}

impl OpenMessage {
    fn begin_block(&mut self, number: u32, kind: &BlockKind, out: &mut Vec<u8>) {
        self.end_block(out);
        match kind {
            BlockKind::Text => self.begin_text(out),
            BlockKind::Reasoning => {
                let id = format!("{}-reasoning-{number}", self.shown);
                write_data(out, &json!({ "type": "REASONING_START", "messageId": id }));
                let event = json!({
                    "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning",
                });
                write_data(out, &event);
                self.block = Some(OpenBlock::Reasoning(id));
            }
            BlockKind::ToolCall { id, name, .. } => {
                write_data(out, &call_start(id, name, Some(&self.shown)));
                self.block = Some(OpenBlock::Call(id.clone()));
            }
        }
    }

    fn begin_text(&mut self, out: &mut Vec<u8>) {
        if !self.has_text {
            self.has_text = true;
            let event = json!({
                "type": "TEXT_MESSAGE_START", "messageId": self.shown, "role": "assistant",
            });
            write_data(out, &event);
        }
    }

    fn add(&mut self, kind: &BlockKind, text: &str, out: &mut Vec<u8>) {
        let event = match (kind, &self.block) {
            (BlockKind::Text, _) => {
                self.begin_text(out);
                json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": self.shown, "delta": text })
            }
            (BlockKind::Reasoning, Some(OpenBlock::Reasoning(id))) => {
                json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": text })
            }
            (BlockKind::ToolCall { .. }, Some(OpenBlock::Call(id))) => {
                json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": text })
            }
            _ => return,
        };
        write_data(out, &event);
    }

    fn end_block(&mut self, out: &mut Vec<u8>) {
        match self.block.take() {
            Some(OpenBlock::Reasoning(id)) => {
                let event = json!({ "type": "REASONING_MESSAGE_END", "messageId": id });
                write_data(out, &event);
                write_data(out, &json!({ "type": "REASONING_END", "messageId": id }));
            }
            Some(OpenBlock::Call(id)) => {
                write_data(out, &json!({ "type": "TOOL_CALL_END", "toolCallId": id }));
            }
            None => {}
        }
    }

    fn close(mut self, out: &mut Vec<u8>) {
        self.end_block(out);
        if self.has_text {
            let event = json!({ "type": "TEXT_MESSAGE_END", "messageId": self.shown });
            write_data(out, &event);
        }
    }
}

fn write_text(id: &str, text: &str, out: &mut Vec<u8>) {
    let start = json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" });
    write_data(out, &start);
    let content = json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text });
    write_data(out, &content);
    write_data(out, &json!({ "type": "TEXT_MESSAGE_END", "messageId": id }));
}

fn call_start(id: &str, name: &str, message: Option<&str>) -> Json {
    let mut event = json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name });
    if let Some(message) = message {
        event["parentMessageId"] = message.into();
    }
    event
}

/// Returns the name of a node's step: with the nodes around it, if it is in a subgraph.
fn step_name(namespace: &Namespace, node: &str) -> String {
    let outer = namespace.segments().iter();
    let outer = outer.map(|segment| split_segment(segment).0);
    outer.chain([node]).collect::<Vec<_>>().join("/")
}

fn show_interrupt(interrupt: &Json) -> Json {
    let reason = match request_of(interrupt).get("action_request") {
        Some(_) => "confirmation",
        None => "input_required",
    };
    let mut shown = json!({
        "id": interrupt["id"],
        "reason": reason,
        "message": question_of(interrupt),
        "metadata": { "value": interrupt["value"] },
    });
    // AG-UI takes an object only; a schema may also be `true`.
    if interrupt["response_schema"].is_object() {
        shown["responseSchema"] = interrupt["response_schema"].clone();
    }
    shown
}
