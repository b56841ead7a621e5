//! The mode `events`: what happens as events of chains, models and tools. Agent Inbox shows by them which node runs.

use serde_json::{Value as Json, json};

use crate::feed::{
    FeedBody, FeedEvent, MessageChange, MessagePart, Namespace, RunStop, TaskOrigin, ToolChange,
    ToolPart,
};
use crate::stream::message_form::chunk;
use crate::stream::renderer::RunNames;

/// Returns the events that show something. `values` is the state of the root graph.
pub(super) fn of(run: &RunNames, event: &FeedEvent, values: &Json) -> Vec<Json> {
    let namespace = &event.namespace;
    let of_task = |kind: &str, origin: &TaskOrigin, data: Json| {
        let id = match origin.task.is_empty() {
            true => &run.run,
            false => &origin.task,
        };
        vec![runnable(
            run,
            namespace,
            origin,
            kind,
            &origin.node,
            id,
            data,
        )]
    };
    match &event.body {
        FeedBody::RunBegan => vec![of_run(run, "on_chain_start", &json!({ "input": values }))],
        FeedBody::TaskStarted(task) => of_task(
            "on_chain_start",
            &task.origin,
            json!({ "input": &*task.input }),
        ),
        FeedBody::Update { origin, update, .. } => {
            of_task("on_chain_stream", origin, json!({ "chunk": &**update }))
        }
        FeedBody::TaskEnded(task) if task.error.is_none() && task.interrupts.is_empty() => of_task(
            "on_chain_end",
            &task.origin,
            json!({ "output": &*task.result }),
        ),
        FeedBody::Custom { origin, payload } => {
            of_task("on_custom_event", origin, Json::clone(payload))
        }
        FeedBody::Interrupts { interrupts, .. } if namespace.is_root() => {
            let chunk = json!({ "chunk": { "__interrupt__": interrupts } });
            vec![of_run(run, "on_chain_stream", &chunk)]
        }
        FeedBody::Message(part) => of_message(run, namespace, part),
        FeedBody::Tool(part) => vec![of_tool(run, namespace, part)],
        FeedBody::Stopped(RunStop::Finished | RunStop::Paused) => {
            vec![of_run(run, "on_chain_end", &json!({ "output": values }))]
        }
        FeedBody::SubgraphBegan
        | FeedBody::SubgraphEnded(_)
        | FeedBody::Checkpoint(_)
        | FeedBody::TaskEnded(_)
        | FeedBody::Values(_)
        | FeedBody::Interrupts { .. }
        | FeedBody::InputRequested(_)
        | FeedBody::MessageWhole { .. }
        | FeedBody::Stopped(_) => Vec::new(),
    }
}

fn of_run(run: &RunNames, kind: &str, data: &Json) -> Json {
    json!({
        "event": kind,
        "name": run.graph,
        "run_id": run.run,
        "tags": [],
        "metadata": {
            "created_by": "system",
            "graph_id": run.graph,
            "assistant_id": run.assistant,
            "run_id": run.run,
            "thread_id": run.thread.name(),
        },
        "data": data,
        "parent_ids": [],
    })
}

fn of_message(run: &RunNames, namespace: &Namespace, part: &MessagePart) -> Vec<Json> {
    let (kind, data) = match &part.change {
        MessageChange::Began => ("on_chat_model_start", json!({ "input": {} })),
        change => match chunk(&part.message, change) {
            Some(chunk) => ("on_chat_model_stream", json!({ "chunk": chunk })),
            None => return Vec::new(),
        },
    };
    let origin = &part.origin;
    let mut shown = vec![runnable(
        run,
        namespace,
        origin,
        kind,
        "model",
        &part.message,
        data,
    )];
    if let MessageChange::Ended { usage, .. } = &part.change {
        let output = json!({ "output": { "id": &*part.message, "usage_metadata": usage } });
        let kind = "on_chat_model_end";
        shown.push(runnable(
            run,
            namespace,
            origin,
            kind,
            "model",
            &part.message,
            output,
        ));
    }
    shown
}

fn of_tool(run: &RunNames, namespace: &Namespace, part: &ToolPart) -> Json {
    let (kind, data) = match &part.change {
        ToolChange::Started { input } => ("on_tool_start", json!({ "input": input })),
        ToolChange::Progress { text } => ("on_tool_stream", json!({ "chunk": text })),
        ToolChange::Ended {
            is_error: false,
            output,
        } => ("on_tool_end", json!({ "output": output })),
        ToolChange::Ended { output, .. } => ("on_tool_error", json!({ "error": output })),
    };
    runnable(
        run,
        namespace,
        &part.origin,
        kind,
        &part.name,
        &part.call,
        data,
    )
}

fn runnable(
    run: &RunNames,
    namespace: &Namespace,
    origin: &TaskOrigin,
    kind: &str,
    name: &str,
    id: &str,
    data: Json,
) -> Json {
    json!({
        "event": kind,
        "name": name,
        "run_id": id,
        "tags": [],
        "metadata": run.metadata(namespace, origin),
        "data": data,
        "parent_ids": [run.run],
    })
}
