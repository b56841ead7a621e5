//! Checkpoints in the form in which streams of runs show them.

use serde_json::{Map, Value as Json, json};
use superstep::ThreadId;

use crate::feed::{CheckpointTask, Namespace, StreamedCheckpoint};
use crate::stream::renderer::object;
use crate::stream::run_names::RunNames;
use crate::wire::{self, CheckpointId};

/// Returns a checkpoint in the form in which clients name it.
pub(super) fn named_checkpoint(
    thread: &ThreadId,
    namespace: &Namespace,
    outer: &[(Namespace, CheckpointId)],
    id: CheckpointId,
) -> Json {
    let id = id.to_uuid(thread);
    let mut named = json!({
        "thread_id": thread.name(),
        "checkpoint_ns": namespace.to_string(),
        "checkpoint_id": id,
    });
    if !namespace.is_root() {
        let mut map = checkpoint_map(thread, outer);
        map.insert(namespace.to_string(), id.into());
        named["checkpoint_map"] = Json::Object(map);
    }
    named
}

fn checkpoint_map(thread: &ThreadId, outer: &[(Namespace, CheckpointId)]) -> Map<String, Json> {
    let ids = outer.iter();
    ids.map(|(namespace, id)| (namespace.to_string(), id.to_uuid(thread).into()))
        .collect()
}

/// Returns a checkpoint as clients read it.
pub(super) fn checkpoint_payload(
    run: &RunNames,
    namespace: &Namespace,
    checkpoint: &StreamedCheckpoint,
) -> Json {
    let named = |id: CheckpointId| named_checkpoint(&run.thread, namespace, &checkpoint.outer, id);
    let config = |named: Json| {
        let mut configurable = run.configurable.clone();
        configurable.extend(named.as_object().cloned().unwrap_or_default());
        json!({ "configurable": configurable })
    };
    let parent = checkpoint.parent.map(named).map(|parent| {
        // What configured an earlier run is not known to this one.
        match checkpoint.found {
            Some(_) => json!({ "configurable": parent }),
            None => config(parent),
        }
    });
    let task = |task: &CheckpointTask| {
        let mut shown = json!({
            "id": task.id,
            "name": task.node,
            "interrupts": task.interrupts,
        });
        if task.is_subgraph {
            let own = format!("{}:{}", task.node, task.id);
            let inner = match namespace.is_root() {
                true => own,
                false => format!("{namespace}|{own}"),
            };
            shown["checkpoint"] = json!({
                "thread_id": run.thread.name(),
                "checkpoint_ns": inner,
            });
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
        "metadata": checkpoint_metadata(run, checkpoint),
        "next": next,
        "tasks": tasks,
    })
}

/// Returns what is known of a checkpoint. One that was there before the run also says which run wrote it.
fn checkpoint_metadata(run: &RunNames, checkpoint: &StreamedCheckpoint) -> Map<String, Json> {
    let mut metadata = match checkpoint.found {
        Some(found) => {
            let mut metadata = Map::new();
            if let Some(id) = found.run {
                metadata = run.metadata.clone();
                metadata.insert("run_id".to_owned(), wire::uuid(id.to_bytes()).into());
            }
            metadata.insert("graph_id".to_owned(), run.graph.as_str().into());
            metadata.insert("thread_id".to_owned(), run.thread.name().into());
            metadata
        }
        None => Map::new(),
    };
    let parents = checkpoint_map(&run.thread, &checkpoint.outer);
    metadata.insert("source".to_owned(), checkpoint.source.into());
    metadata.insert("step".to_owned(), checkpoint.step.into());
    metadata.insert("parents".to_owned(), Json::Object(parents));
    metadata
}
