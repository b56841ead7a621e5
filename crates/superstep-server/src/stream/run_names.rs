//! What the events of a run say about the run: its ids, its metadata, what configured it.

use serde_json::{Map, Value as Json, json};
use superstep::registry::RunRow;
use superstep::{RunId, ThreadId};

use crate::feed::{Namespace, TaskOrigin};
use crate::wire;

/// The names of a run, as they appear in its events.
#[derive(Debug, Clone)]
pub(crate) struct RunNames {
    pub(crate) id: RunId,
    pub(crate) thread: ThreadId,
    /// The run's id as text.
    pub(super) run: String,
    pub(super) graph: String,
    pub(super) attempt: u32,
    /// What is known of the run: its metadata, and which run it is.
    pub(super) metadata: Map<String, Json>,
    /// The checkpoint that the run was started at.
    address: Map<String, Json>,
    /// What the caller and the server configured.
    pub(super) configurable: Map<String, Json>,
    pub(super) tags: Vec<Json>,
    /// What the caller sent: the input, or the command in its place.
    pub(super) input: Json,
}

impl RunNames {
    pub(crate) fn of(row: &RunRow) -> Self {
        let graph = row.metadata.get("graph_id").and_then(Json::as_str);
        Self {
            id: row.id,
            thread: row.thread.clone(),
            run: wire::uuid(row.id.to_bytes()),
            graph: graph.unwrap_or_default().to_owned(),
            attempt: row.attempts.max(1),
            metadata: wire::run_metadata(row),
            address: wire::run_address(row),
            configurable: wire::run_configurable(row),
            tags: tags_of(row),
            input: input_of(row),
        }
    }

    /// Returns what is known of the run, for the events of its root graph.
    pub(super) fn root_metadata(&self) -> Map<String, Json> {
        let mut metadata = self.metadata.clone();
        metadata.insert("thread_id".to_owned(), self.thread.name().into());
        metadata.extend(self.address.clone());
        metadata
    }

    /// Returns what is known of an event's task, for clients that show where something comes from.
    pub(super) fn task_metadata(&self, namespace: &Namespace, origin: &TaskOrigin) -> Json {
        let own = task_namespace(namespace, origin);
        let mut metadata = self.root_metadata();
        let place = wire::task_place(&origin.node, origin.step, &own, origin.sent);
        metadata.extend(place);
        if !namespace.is_root() {
            metadata.insert("checkpoint_ns".to_owned(), namespace.to_string().into());
        }
        Json::Object(metadata)
    }

    /// Returns what is known of a call of a model or a tool. LangGraph counts it to the checkpoints of its task.
    pub(super) fn call_metadata(&self, namespace: &Namespace, origin: &TaskOrigin) -> Json {
        let mut metadata = self.task_metadata(namespace, origin);
        metadata["checkpoint_ns"] = task_namespace(namespace, origin).into();
        metadata
    }

    /// Returns what a task that starts says about its run.
    pub(super) fn started_metadata(&self) -> Map<String, Json> {
        let mut metadata = self.metadata.clone();
        if !self.tags.is_empty() {
            metadata.insert("tags".to_owned(), self.tags.clone().into());
        }
        metadata
    }
}

fn tags_of(row: &RunRow) -> Vec<Json> {
    let config = row.arguments.get("config");
    let tags = config.and_then(|config| config.get("tags")?.as_array());
    tags.cloned().unwrap_or_default()
}

fn input_of(row: &RunRow) -> Json {
    let sent = |name: &str| row.arguments.get(name).filter(|value| !value.is_null());
    match sent("command") {
        Some(command) => json!({
            "graph": null,
            "goto": command.get("goto").map(targets),
            "resume": command.get("resume"),
            "update": command.get("update"),
        }),
        None => sent("input").cloned().unwrap_or_default(),
    }
}

/// Returns where a command goes as a list, in which form LangGraph keeps it.
fn targets(goto: &Json) -> Json {
    match goto {
        Json::Null | Json::Array(_) => goto.clone(),
        one => json!([one]),
    }
}

/// Returns the path of a task as clients write it.
fn task_namespace(namespace: &Namespace, origin: &TaskOrigin) -> String {
    let own = format!("{}:{}", origin.node, origin.task);
    match namespace.is_root() {
        true => own,
        false => format!("{namespace}|{own}"),
    }
}
