//! Tasks that end: what they showed and wrote.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use superstep::graph::Definition;
use superstep::trace::is_trace_record;
use superstep::{ChannelKind, FramePath, NodeName, TaskId, Value};

use crate::feed::event::{
    EndedTask, FeedBody, FeedEvent, Namespace, SubgraphEnd, TaskOrigin, split_segment,
};
use crate::feed::log_converter::{EVENT_BYTES, LogConverter};
use crate::wire;

impl LogConverter {
    pub(super) fn logged_custom(
        &mut self,
        frame: &FramePath,
        task: Option<TaskId>,
        node: &NodeName,
        payload: &Value,
    ) {
        if is_trace_record(payload) {
            return;
        }
        let shown = task.and_then(|task| self.shown_live.get_mut(&task));
        if let Some(shown) = shown
            && let Some(at) = shown.iter().position(|shown| shown == payload)
        {
            shown.remove(at);
            return;
        }
        let namespace = Namespace::of(frame);
        self.enter_subgraphs(&namespace);
        let origin = self.origin(&namespace, task, node);
        let decoded: Json = payload.decode().unwrap_or_default();
        let body = FeedBody::Custom {
            origin,
            payload: Arc::new(decoded),
        };
        self.push(&namespace, payload.len(), body);
    }

    pub(super) fn task_ended(
        &mut self,
        frame: &FramePath,
        task: Option<TaskId>,
        node: &NodeName,
        updates: &[Value],
        is_cached: bool,
    ) {
        let namespace = Namespace::of(frame);
        self.enter_subgraphs(&namespace);
        let origin = self.origin(&namespace, task, node);
        if let Some(task) = task {
            self.shown_live.remove(&task);
        }
        let bytes: usize = updates.iter().map(Value::len).sum();
        let graph = self.graph_of(frame, &namespace);
        let updates = updates.iter().map(|update| match &graph {
            Some(graph) => wire::update(graph, update),
            None => Json::Null,
        });
        let updates: Vec<Json> = updates.collect();
        if let Some(graph) = &graph {
            for update in &updates {
                self.whole_messages(&namespace, &origin, graph, update);
            }
        }
        let update = Arc::new(merged(updates));
        if let Some(frame) = self.frames.get_mut(&namespace) {
            frame.has_written |= !update.is_null();
        }
        let result = match update.is_null() {
            true => Arc::new(json!({})),
            false => update.clone(),
        };
        let body = FeedBody::Update {
            origin: origin.clone(),
            update,
            is_cached,
        };
        self.push(&namespace, bytes, body);
        let body = EndedTask {
            origin: origin.clone(),
            result,
            error: None,
            interrupts: Vec::new(),
            is_cached,
        };
        self.push(&namespace, 0, FeedBody::TaskEnded(Box::new(body)));
        self.leave_subgraphs(&namespace, &origin);
    }

    /// Shows the messages of an update that were not streamed, or not completely: not those that the graph knew before, which a node may write
    /// again.
    fn whole_messages(
        &mut self,
        namespace: &Namespace,
        origin: &Arc<TaskOrigin>,
        graph: &Definition,
        update: &Json,
    ) {
        let is_messages = |kind: ChannelKind| kind == ChannelKind::Messages;
        for channel in graph
            .channels()
            .iter()
            .filter(|channel| is_messages(channel.kind))
        {
            let written = match update.get(channel.name) {
                Some(Json::Array(written)) => written.as_slice(),
                Some(one @ Json::Object(_)) => std::slice::from_ref(one),
                _ => &[],
            };
            for message in written {
                let Some(id) = message.get("id").and_then(Json::as_str) else {
                    continue;
                };
                let is_removal = message.get("type").and_then(Json::as_str) == Some("remove");
                // Taken also if it is not shown, so that the ids of what follows stay the same.
                let place = self.places.take();
                if is_removal
                    || self.is_in_state(namespace, channel.name, id)
                    || self.is_shown(id, message)
                {
                    continue;
                }
                self.shown_messages.insert(id.to_owned());
                self.unended_messages.remove(id);
                self.converted.push(Arc::new(FeedEvent {
                    id: place,
                    run: self.run,
                    namespace: namespace.clone(),
                    at: self.at,
                    bytes: EVENT_BYTES * 4,
                    body: FeedBody::MessageWhole {
                        origin: origin.clone(),
                        message: Arc::new(message.clone()),
                        is_of_model: self.unstreamed_messages.contains(id),
                    },
                }));
            }
        }
    }

    fn is_in_state(&self, namespace: &Namespace, channel: &str, id: &str) -> bool {
        let state = self.frames.get(namespace).map(|frame| &*frame.values);
        let messages = state.and_then(|state| state.get(channel)?.as_array());
        let is_it = |message: &Json| message.get("id").and_then(Json::as_str) == Some(id);
        messages.is_some_and(|messages| messages.iter().any(is_it))
    }

    /// Ends the subgraphs that a task had entered.
    fn leave_subgraphs(&mut self, namespace: &Namespace, origin: &TaskOrigin) {
        let depth = namespace.segments().len();
        let is_of_task = |inner: &Namespace| match inner.segments().get(depth) {
            Some(segment) if inner.is_within(namespace) => match split_segment(segment) {
                (_, Some(task)) => task == origin.task,
                (node, None) => node == origin.node,
            },
            _ => false,
        };
        let left = self.entered.iter().filter(|inner| is_of_task(inner));
        let left: Vec<Namespace> = left.cloned().collect();
        // The innermost first.
        for inner in left.into_iter().rev() {
            self.entered.remove(&inner);
            let ended = FeedBody::SubgraphEnded(SubgraphEnd::Completed);
            self.push(&inner, 0, ended);
        }
    }
}

/// Returns several updates of one task as one, or as a list if two of them write the same channel.
fn merged(updates: Vec<Json>) -> Json {
    let mut updates: Vec<Json> = updates
        .into_iter()
        .filter(|update| !update.is_null())
        .collect();
    if updates.len() < 2 {
        return updates.pop().unwrap_or_default();
    }
    let mut fields = Map::new();
    for update in &updates {
        for (name, value) in update.as_object().into_iter().flatten() {
            if fields.insert(name.clone(), value.clone()).is_some() {
                return Json::Array(updates);
            }
        }
    }
    Json::Object(fields)
}
