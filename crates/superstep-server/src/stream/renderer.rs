//! Writes the events of a run in the modes that its client asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value as Json, json};
use superstep::registry::RunRow;
use superstep::{RunId, ThreadId};

use crate::feed::{
    CheckpointTask, EndedTask, FeedBody, FeedEvent, FeedId, MessageChange, MessagePart, Namespace,
    RunStop, StartedTask, StreamedCheckpoint, TaskOrigin,
};
use crate::stream::message_form::{GrowingMessage, chunk};
use crate::stream::modes::{WireMode, WireModes};
use crate::stream::runnable_events;
use crate::stream::sse::write_event;
use crate::wire::{self, CheckpointId};

/// Writes the events of one run.
#[derive(Debug)]
pub(crate) struct RunRenderer {
    modes: WireModes,
    with_subgraphs: bool,
    pub(super) run: RunNames,
    /// Messages that are being written, and those that were announced.
    messages: BTreeMap<String, GrowingMessage>,
    /// State of the root graph.
    values: Arc<Json>,
}

/// The names of a run, as they appear in its events.
#[derive(Debug, Clone)]
pub(crate) struct RunNames {
    pub(crate) id: RunId,
    pub(crate) thread: ThreadId,
    /// The run's id as text.
    pub(super) run: String,
    pub(super) graph: String,
    pub(super) assistant: String,
    pub(super) attempt: u32,
}

impl RunNames {
    pub(crate) fn of(row: &RunRow) -> Self {
        let graph = row.metadata.get("graph_id").and_then(Json::as_str);
        Self {
            id: row.id,
            thread: row.thread.clone(),
            run: wire::uuid(row.id.to_bytes()),
            graph: graph.unwrap_or_default().to_owned(),
            assistant: wire::uuid(row.assistant.to_bytes()),
            attempt: row.attempts.max(1),
        }
    }

    /// Returns what is known of an event's task, for clients that show where something comes from.
    pub(super) fn metadata(&self, namespace: &Namespace, origin: &TaskOrigin) -> Json {
        let own = format!("{}:{}", origin.node, origin.task);
        let namespace = match namespace.is_root() {
            true => own,
            false => format!("{namespace}|{own}"),
        };
        json!({
            "created_by": "system",
            "graph_id": self.graph,
            "assistant_id": self.assistant,
            "run_id": self.run,
            "run_attempt": self.attempt,
            "thread_id": self.thread.name(),
            "langgraph_step": origin.step,
            "langgraph_node": origin.node,
            "langgraph_triggers": [format!("branch:to:{}", origin.node)],
            "langgraph_path": ["__pregel_pull", origin.node],
            "langgraph_checkpoint_ns": namespace,
            "checkpoint_ns": namespace,
        })
    }
}

/// Where an event is written, and under which id.
struct EventSink<'a> {
    out: &'a mut Vec<u8>,
    namespace: &'a Namespace,
    id: FeedId,
}

impl EventSink<'_> {
    fn write(&mut self, name: &str, data: &impl Serialize) {
        match self.namespace.is_root() {
            true => write_event(self.out, name, data, self.id),
            false => {
                let name = format!("{name}|{}", self.namespace);
                write_event(self.out, &name, data, self.id);
            }
        }
    }
}

impl RunRenderer {
    pub(crate) fn new(modes: WireModes, with_subgraphs: bool, run: RunNames) -> Self {
        Self {
            modes,
            with_subgraphs,
            run,
            messages: BTreeMap::new(),
            values: Arc::new(json!({})),
        }
    }

    /// Creates the renderer of a run with the modes that it was submitted with.
    pub(crate) fn of_row(row: &RunRow) -> Self {
        let names = row.arguments.get("stream_mode").and_then(Json::as_array);
        let names = names.into_iter().flatten().filter_map(Json::as_str);
        let names: Vec<String> = names.map(str::to_owned).collect();
        // A run is stored with the modes of its caller, which may be unknown if it is not streamed.
        let modes = WireModes::read(&names).unwrap_or_default();
        let with_subgraphs = row.arguments.get("subgraphs").and_then(Json::as_bool);
        Self::new(modes, with_subgraphs.unwrap_or(false), RunNames::of(row))
    }

    /// Writes the first event of every stream.
    pub(crate) fn begin(&self, id: FeedId, out: &mut Vec<u8>) {
        let data = json!({ "run_id": self.run.run, "attempt": self.run.attempt });
        write_event(out, "metadata", &data, id);
    }

    /// Writes that the run failed, for a run that failed before anything of it was stored.
    pub(crate) fn fail(&self, error: &Json, id: FeedId, out: &mut Vec<u8>) {
        write_event(out, "error", error, id);
    }

    /// Writes an event in all modes that show it.
    pub(crate) fn render(&mut self, event: &FeedEvent, out: &mut Vec<u8>) {
        if event.namespace.is_root()
            && let FeedBody::Values(values) | FeedBody::Interrupts { values, .. } = &event.body
        {
            self.values = values.clone();
        }
        if self.modes.has(WireMode::Events) {
            for shown in runnable_events::of(&self.run, event, &self.values) {
                write_event(out, "events", &shown, event.id);
            }
        }
        if !event.namespace.is_root() && !self.with_subgraphs {
            return;
        }
        let mut sink = EventSink {
            out,
            namespace: &event.namespace,
            id: event.id,
        };
        match &event.body {
            FeedBody::Values(values) => self.values(values, &mut sink),
            FeedBody::Interrupts { interrupts, values } => {
                self.interrupts(interrupts, values, &mut sink);
            }
            FeedBody::Update {
                origin,
                update,
                is_cached,
            } => self.update(origin, update, *is_cached, &mut sink),
            FeedBody::Custom { payload, .. } => {
                if self.modes.has(WireMode::Custom) {
                    sink.write("custom", &**payload);
                }
            }
            FeedBody::TaskStarted(task) => self.task_started(task, event, &mut sink),
            FeedBody::TaskEnded(task) => self.task_ended(task, event, &mut sink),
            FeedBody::Checkpoint(checkpoint) => self.checkpoint(checkpoint, event, &mut sink),
            FeedBody::Message(part) => self.message_part(part, &mut sink),
            FeedBody::MessageWhole { origin, message } => {
                self.message_whole(origin, message, &mut sink);
            }
            FeedBody::Stopped(RunStop::Failed { error, message }) => {
                sink.write("error", &json!({ "error": error, "message": message }));
            }
            FeedBody::RunBegan
            | FeedBody::SubgraphBegan
            | FeedBody::SubgraphEnded(_)
            | FeedBody::InputRequested(_)
            | FeedBody::Tool(_)
            | FeedBody::Stopped(_) => {}
        }
    }

    fn values(&self, values: &Json, sink: &mut EventSink<'_>) {
        if !self.modes.has(WireMode::Values) {
            return;
        }
        match values.is_object() {
            true => sink.write("values", values),
            false => sink.write("values", &json!({})),
        }
    }

    fn interrupts(&self, interrupts: &[Json], values: &Json, sink: &mut EventSink<'_>) {
        if self.modes.has(WireMode::Updates) {
            sink.write("updates", &json!({ "__interrupt__": interrupts }));
        }
        // At a breakpoint, LangGraph streams no state: nothing has changed.
        if self.modes.has(WireMode::Values) && !interrupts.is_empty() {
            let mut values = object(values);
            values["__interrupt__"] = interrupts.into();
            sink.write("values", &values);
        }
    }

    fn update(
        &self,
        origin: &TaskOrigin,
        update: &Json,
        is_cached: bool,
        sink: &mut EventSink<'_>,
    ) {
        if !self.modes.has(WireMode::Updates) {
            return;
        }
        let mut shown = json!({ &origin.node: update });
        if is_cached {
            shown["__metadata__"] = json!({ "cached": true });
        }
        sink.write("updates", &shown);
    }

    fn task_started(&self, task: &StartedTask, event: &FeedEvent, sink: &mut EventSink<'_>) {
        if self.modes.has(WireMode::Tasks) {
            sink.write("tasks", &started_task(task));
        }
        if self.modes.has(WireMode::Debug) {
            let payload = started_task(task);
            sink.write("debug", &debug(task.origin.step, event, "task", payload));
        }
    }

    fn task_ended(&self, task: &EndedTask, event: &FeedEvent, sink: &mut EventSink<'_>) {
        if task.is_cached {
            return;
        }
        if self.modes.has(WireMode::Tasks) {
            sink.write("tasks", &ended_task(task));
        }
        if self.modes.has(WireMode::Debug) {
            let payload = ended_task(task);
            sink.write(
                "debug",
                &debug(task.origin.step, event, "task_result", payload),
            );
        }
    }

    fn checkpoint(
        &self,
        checkpoint: &StreamedCheckpoint,
        event: &FeedEvent,
        sink: &mut EventSink<'_>,
    ) {
        if self.modes.has(WireMode::Checkpoints) {
            let payload = checkpoint_payload(&self.run.thread, &event.namespace, checkpoint);
            sink.write("checkpoints", &payload);
        }
        if self.modes.has(WireMode::Debug) {
            let payload = checkpoint_payload(&self.run.thread, &event.namespace, checkpoint);
            sink.write(
                "debug",
                &debug(checkpoint.step, event, "checkpoint", payload),
            );
        }
    }

    fn message_part(&mut self, part: &MessagePart, sink: &mut EventSink<'_>) {
        if self.modes.has(WireMode::MessagesTuple)
            && let Some(chunk) = chunk(&part.message, &part.change)
        {
            let metadata = self.run.metadata(sink.namespace, &part.origin);
            sink.write("messages", &json!([chunk, metadata]));
        }
        if !self.modes.has(WireMode::Messages) {
            return;
        }
        if !self.messages.contains_key(&*part.message) {
            self.announce(&part.message, &part.origin, sink);
        }
        let growing = self.messages.entry(part.message.to_string()).or_default();
        let is_ended = matches!(part.change, MessageChange::Ended { .. });
        if growing.add(&part.change) {
            let shown = [growing.message(&part.message)];
            sink.write("messages/partial", &shown);
        }
        if is_ended {
            // What was announced is remembered, what was written is not needed any more.
            *growing = GrowingMessage::default();
        }
    }

    fn message_whole(&mut self, origin: &TaskOrigin, message: &Json, sink: &mut EventSink<'_>) {
        if self.modes.has(WireMode::MessagesTuple) {
            let metadata = self.run.metadata(sink.namespace, origin);
            sink.write("messages", &json!([message, metadata]));
        }
        if self.modes.has(WireMode::Messages) {
            let id = message.get("id").and_then(Json::as_str).unwrap_or_default();
            if !self.messages.contains_key(id) {
                self.announce(id, origin, sink);
                self.messages
                    .insert(id.to_owned(), GrowingMessage::default());
            }
            sink.write("messages/complete", &[message]);
        }
    }

    fn announce(&self, id: &str, origin: &TaskOrigin, sink: &mut EventSink<'_>) {
        let metadata = self.run.metadata(sink.namespace, origin);
        let data = json!({ id: { "metadata": metadata } });
        sink.write("messages/metadata", &data);
    }
}

/// Returns a state that can be extended: a graph whose state is not known has an empty one.
fn object(values: &Json) -> Json {
    match values {
        Json::Object(_) => values.clone(),
        _ => json!({}),
    }
}

fn debug(step: i64, event: &FeedEvent, kind: &str, payload: Json) -> Json {
    json!({
        "step": step,
        "timestamp": wire::time(event.at),
        "type": kind,
        "payload": payload,
    })
}

/// Returns a task that starts, as clients read it.
pub(crate) fn started_task(task: &StartedTask) -> Json {
    json!({
        "id": task.origin.task,
        "name": task.origin.node,
        "input": &*task.input,
        "triggers": task.triggers,
        // None yet; clients of the JavaScript server read the list of every task.
        "interrupts": [],
    })
}

/// Returns a task that ended, as clients read it.
pub(crate) fn ended_task(task: &EndedTask) -> Json {
    json!({
        "id": task.origin.task,
        "name": task.origin.node,
        "error": task.error,
        "result": &*task.result,
        "interrupts": task.interrupts,
    })
}

fn checkpoint_payload(
    thread: &ThreadId,
    namespace: &Namespace,
    checkpoint: &StreamedCheckpoint,
) -> Json {
    let named = |id: CheckpointId| {
        json!({
            "thread_id": thread.name(),
            "checkpoint_ns": namespace.to_string(),
            "checkpoint_id": id.to_uuid(thread),
        })
    };
    let own = named(checkpoint.id);
    let parent = checkpoint.parent.map(named);
    let config = |named: &Json| json!({ "configurable": named });
    let task = |task: &CheckpointTask| {
        json!({
            "id": task.id,
            "name": task.node,
            "interrupts": task.interrupts,
            "state": null,
        })
    };
    let tasks: Vec<Json> = checkpoint.tasks.iter().map(task).collect();
    let next: Vec<&str> = checkpoint
        .tasks
        .iter()
        .map(|task| task.node.as_str())
        .collect();
    json!({
        "config": config(&own),
        "parent_config": parent.as_ref().map(config),
        "values": object(&checkpoint.values),
        "metadata": {
            "source": checkpoint.source,
            "step": checkpoint.step,
            "parents": {},
        },
        "next": next,
        "tasks": tasks,
        "checkpoint": own,
        "parent_checkpoint": parent,
    })
}
