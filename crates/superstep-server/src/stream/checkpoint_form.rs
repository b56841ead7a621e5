//! Checkpoints in the form in which streams of runs show them.

use serde_json::{Map, Value as Json, json};
use superstep::ThreadId;

use crate::feed::{CheckpointTask, Namespace, StreamedCheckpoint};
use crate::stream::renderer::object;
use crate::stream::run_names::RunNames;
use crate::wire::{self, CHECKPOINT_ID, CheckpointId};

/// Returns a checkpoint in the form in which clients name it.
pub(super) fn named_checkpoint(
    thread: &ThreadId,
    namespace: &Namespace,
    outer: &[(Namespace, CheckpointId)],
    id: CheckpointId,
) -> Json {
    let text = namespace.to_string();
    let id = id.to_uuid_in(thread, &text);
    let mut named = json!({
        "thread_id": thread.name(),
        "checkpoint_ns": text,
        "checkpoint_id": id,
    });
    if !namespace.is_root() {
        let mut map = checkpoint_map(thread, outer);
        map.insert(text, id.into());
        named["checkpoint_map"] = Json::Object(map);
    }
    named
}

fn checkpoint_map(thread: &ThreadId, outer: &[(Namespace, CheckpointId)]) -> Map<String, Json> {
    let ids = outer.iter().map(|(namespace, id)| {
        let namespace = namespace.to_string();
        let id = id.to_uuid_in(thread, &namespace);
        (namespace, id.into())
    });
    ids.collect()
}

/// In which of two forms a task names the subgraph that it enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubgraphForm {
    /// As a configuration, in place of the state.
    State,
    /// As a checkpoint.
    Checkpoint,
}

/// Returns a checkpoint as clients read it.
pub(super) fn checkpoint_payload(
    run: &RunNames,
    namespace: &Namespace,
    checkpoint: &StreamedCheckpoint,
    form: SubgraphForm,
) -> Json {
    let named = |id: CheckpointId| named_checkpoint(&run.thread, namespace, &checkpoint.outer, id);
    let config = |named: Json| {
        let mut configurable = run.configurable.clone();
        configurable.extend(named.as_object().cloned().unwrap_or_default());
        json!({ "configurable": configurable })
    };
    let parent = checkpoint.parent.map(named).map(|parent| {
        // What configured an earlier run is not known to this one.
        match &checkpoint.found {
            Some(_) => json!({ "configurable": parent }),
            None => config(parent),
        }
    });
    let task = |task: &CheckpointTask| {
        let mut shown = json!({ "id": task.id, "name": task.node });
        match &task.error {
            Some(error) => shown["error"] = error.as_str().into(),
            None => shown["interrupts"] = task.interrupts.clone().into(),
        }
        if task.is_subgraph {
            let own = format!("{}:{}", task.node, task.id);
            let inner = match namespace.is_root() {
                true => own,
                false => format!("{namespace}|{own}"),
            };
            let named = json!({ "thread_id": run.thread.name(), "checkpoint_ns": inner });
            match form {
                SubgraphForm::State => shown["state"] = json!({ "configurable": named }),
                SubgraphForm::Checkpoint => shown["checkpoint"] = named,
            }
        } else {
            shown["state"] = Json::Null;
        }
        shown
    };
    let tasks: Vec<Json> = checkpoint.tasks.iter().map(task).collect();
    let next: Vec<&str> = checkpoint
        .tasks
        .iter()
        .map(|task| task.node.as_str())
        .collect();
    json!({
        "config": config(named(checkpoint.id)),
        "parent_config": parent,
        "values": object(&checkpoint.values),
        "metadata": checkpoint_metadata(run, namespace, checkpoint),
        "next": next,
        "tasks": tasks,
    })
}

/// Returns what is known of a checkpoint. One that was there before the run also says which run wrote it, and where its graph is.
fn checkpoint_metadata(
    run: &RunNames,
    namespace: &Namespace,
    checkpoint: &StreamedCheckpoint,
) -> Map<String, Json> {
    let parents = checkpoint_map(&run.thread, &checkpoint.outer);
    let mut metadata = match &checkpoint.found {
        Some(found) => {
            let mut metadata = Map::new();
            if let Some(id) = found.run {
                metadata = run.metadata.clone();
                metadata.insert("run_id".to_owned(), wire::uuid(id.to_bytes()).into());
            }
            metadata.insert("graph_id".to_owned(), run.graph.as_str().into());
            metadata.insert("thread_id".to_owned(), run.thread.name().into());
            if let Some(base) = found.base {
                let base = base.to_uuid(&run.thread);
                metadata.insert(CHECKPOINT_ID.to_owned(), base.into());
            }
            if let Some(task) = &found.entered_by {
                let own = namespace.to_string();
                let place = wire::task_place(&task.node, task.step, &own, task.sent);
                metadata.extend(place);
                metadata.insert("checkpoint_ns".to_owned(), own.into());
                metadata.insert("checkpoint_map".to_owned(), Json::Object(parents.clone()));
            }
            metadata
        }
        None => Map::new(),
    };
    metadata.insert("source".to_owned(), checkpoint.source.into());
    metadata.insert("step".to_owned(), checkpoint.step.into());
    metadata.insert("parents".to_owned(), Json::Object(parents));
    metadata
}
