//! Writes the events of a run in the modes that its client asked for.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use superstep::registry::RunRow;

use crate::feed::{
    EndedTask, FeedBody, FeedEvent, MessageChange, MessagePart, RunStop, StartedTask,
    StreamedCheckpoint, TaskOrigin,
};
use crate::stream::breakpoints::Breakpoints;
use crate::stream::checkpoint_form::{SubgraphForm, checkpoint_payload, named_checkpoint};
use crate::stream::event_id::{EventSink, SeenId};
use crate::stream::message_form::{GrowingMessage, chunk};
use crate::stream::modes::{WireMode, WireModes};
use crate::stream::run_names::RunNames;
use crate::stream::runnable_events::RunnableEvents;
use crate::stream::sse::write_event;
use crate::wire::{self, CheckpointId};

/// Writes the events of one run.
#[derive(Debug)]
pub(crate) struct RunRenderer {
    modes: WireModes,
    with_subgraphs: bool,
    /// Whether the checkpoints of the run are shown. Those of a stateless run are gone when a client could ask for them.
    with_checkpoints: bool,
    pub(super) run: RunNames,
    /// Messages that are being written, and those that were announced.
    messages: BTreeMap<String, GrowingMessage>,
    runnables: RunnableEvents,
    breakpoints: Breakpoints,
}

impl RunRenderer {
    pub(crate) fn new(modes: WireModes, with_subgraphs: bool, row: &RunRow) -> Self {
        Self {
            modes,
            with_subgraphs,
            with_checkpoints: !wire::is_stateless(row),
            run: RunNames::of(row),
            messages: BTreeMap::new(),
            runnables: RunnableEvents::default(),
            breakpoints: Breakpoints::of(row),
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
        Self::new(modes, with_subgraphs.unwrap_or(false), row)
    }

    /// Writes the first event of every stream.
    pub(super) fn begin(&self, id: SeenId, out: &mut Vec<u8>) {
        let data = json!({ "run_id": self.run.run, "attempt": self.run.attempt });
        write_event(out, "metadata", &data, id);
    }

    /// Writes that the run failed, for a run that failed before anything of it was stored.
    pub(super) fn fail(&self, error: &Json, id: SeenId, out: &mut Vec<u8>) {
        write_event(out, "error", error, id);
    }

    /// Lets the renderer see events that the client does not get, because it needs the beginnings of messages.
    pub(super) fn prime<'a>(&mut self, events: impl Iterator<Item = &'a FeedEvent>) {
        let mut unseen = Vec::new();
        for event in events {
            let last = SeenId::all_of(event.id);
            let mut sink = EventSink::new(&mut unseen, event.id, &event.namespace, last);
            self.render(event, &mut sink);
            unseen.clear();
        }
    }

    /// Writes an event in all modes that show it.
    pub(super) fn render(&mut self, event: &FeedEvent, sink: &mut EventSink<'_>) {
        if self.breakpoints.is_held(event) {
            return;
        }
        if self.modes.has(WireMode::Events) {
            for shown in self.runnables.of(&self.run, event) {
                sink.write_plain("events", &shown);
            }
        }
        if !event.namespace.is_root() && !self.with_subgraphs {
            return;
        }
        match &event.body {
            FeedBody::Values(values) => self.values(values, sink),
            FeedBody::Interrupts { interrupts, values } => {
                self.interrupts(interrupts, values, sink);
            }
            FeedBody::Update {
                origin,
                update,
                is_cached,
            } => self.update(origin, update, *is_cached, sink),
            FeedBody::Custom { payload, .. } => {
                if self.modes.has(WireMode::Custom) {
                    sink.write("custom", &**payload);
                }
            }
            FeedBody::TaskStarted(task) => self.task_started(task, event, sink),
            FeedBody::TaskEnded(task) => self.task_ended(task, event, sink),
            FeedBody::Checkpoint(checkpoint) if self.with_checkpoints => {
                self.checkpoint(checkpoint, event, sink);
            }
            FeedBody::Message(part) => self.message_part(part, sink),
            FeedBody::MessageWhole {
                origin,
                message,
                is_of_model,
            } => {
                let metadata = match is_of_model {
                    true => self.run.call_metadata(sink.namespace(), origin),
                    false => self.run.task_metadata(sink.namespace(), origin),
                };
                self.message_whole(metadata, message, sink);
            }
            FeedBody::Stopped(RunStop::Failed { error, message }) => {
                sink.write("error", &json!({ "error": error, "message": message }));
            }
            FeedBody::RunBegan
            | FeedBody::Checkpoint(_)
            | FeedBody::SubgraphBegan { .. }
            | FeedBody::SubgraphEnded(_)
            | FeedBody::InputRequested(_)
            | FeedBody::Tool(_)
            | FeedBody::Stopped(_)
            | FeedBody::PausedValues(_) => {}
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
            let payload = started_task(task, Some(self.run.started_metadata()));
            sink.write("tasks", &payload);
        }
        if self.modes.has(WireMode::Debug) {
            let payload = started_task(task, Some(self.run.started_metadata()));
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
            let form = SubgraphForm::State;
            let payload = checkpoint_payload(&self.run, &event.namespace, checkpoint, form);
            sink.write("checkpoints", &payload);
        }
        if self.modes.has(WireMode::Debug) {
            let form = SubgraphForm::Checkpoint;
            let mut payload = checkpoint_payload(&self.run, &event.namespace, checkpoint, form);
            let (thread, namespace) = (&self.run.thread, &event.namespace);
            let named =
                |id: CheckpointId| named_checkpoint(thread, namespace, &checkpoint.outer, id);
            let parent = checkpoint.parent.map(named);
            payload["checkpoint"] = named(checkpoint.id);
            payload["parent_checkpoint"] = parent.unwrap_or_default();
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
            let metadata = self.run.call_metadata(sink.namespace(), &part.origin);
            sink.write("messages", &json!([chunk, metadata]));
        }
        if !self.modes.has(WireMode::Messages) {
            return;
        }
        if !self.messages.contains_key(&*part.message) {
            let metadata = self.run.call_metadata(sink.namespace(), &part.origin);
            announce(&part.message, metadata, sink);
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

    fn message_whole(&mut self, metadata: Json, message: &Json, sink: &mut EventSink<'_>) {
        if self.modes.has(WireMode::MessagesTuple) {
            sink.write("messages", &json!([message, metadata]));
        }
        if self.modes.has(WireMode::Messages) {
            let id = message.get("id").and_then(Json::as_str).unwrap_or_default();
            if !self.messages.contains_key(id) {
                announce(id, metadata, sink);
                self.messages
                    .insert(id.to_owned(), GrowingMessage::default());
            }
            sink.write("messages/complete", &[message]);
        }
    }
}

/// Writes where a message comes from, before its first part.
fn announce(id: &str, metadata: Json, sink: &mut EventSink<'_>) {
    let data = json!({ id: { "metadata": metadata } });
    sink.write("messages/metadata", &data);
}

/// Returns a state that can be extended: a graph whose state is not known has an empty one.
pub(super) fn object(values: &Json) -> Json {
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
pub(crate) fn started_task(task: &StartedTask, metadata: Option<Map<String, Json>>) -> Json {
    let mut shown = json!({
        "id": task.origin.task,
        "name": task.origin.node,
        "input": &*task.input,
        "triggers": task.triggers,
        // None yet; clients of the JavaScript server read the list of every task.
        "interrupts": [],
    });
    if let Some(metadata) = metadata {
        shown["metadata"] = Json::Object(metadata);
    }
    shown
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
