//! The mode `events`: what happens as events of graphs, nodes, models and tools. Agent Inbox shows by them which node runs.
//!
//! The end of something says again what it began with, so the inputs of what runs are remembered.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::feed::{
    FeedBody, FeedEvent, MessageChange, MessagePart, Namespace, RunStop, StartedTask, TaskOrigin,
    ToolChange, ToolPart, split_segment,
};
use crate::stream::message_form::{GrowingMessage, chunk};
use crate::stream::run_names::RunNames;

/// The events of a run, and what they need of earlier ones.
#[derive(Debug, Default)]
pub(super) struct RunnableEvents {
    /// Tasks that run, by their ids.
    tasks: BTreeMap<String, RunningTask>,
    /// Subgraphs that were entered, by the tasks that entered them.
    entered: BTreeMap<String, EnteredGraph>,
    /// States of the graphs that run.
    values: BTreeMap<Namespace, Arc<Json>>,
    /// Messages that are being written.
    messages: BTreeMap<String, GrowingMessage>,
    /// Arguments of the tool calls that run.
    tools: BTreeMap<String, Json>,
    /// Ends of the tasks of a superstep, which follow on what the tasks wrote.
    ends: Vec<Json>,
}

/// A task that runs.
#[derive(Debug)]
struct RunningTask {
    origin: Arc<TaskOrigin>,
    input: Arc<Json>,
}

/// A subgraph that a task entered.
#[derive(Debug)]
struct EnteredGraph {
    namespace: Namespace,
    name: String,
}

/// Something that runs.
struct Runnable<'a> {
    name: &'a str,
    id: String,
    parents: Vec<String>,
    /// What it is in its parent: a superstep, or a part of a node.
    place: String,
    metadata: Json,
}

impl Runnable<'_> {
    fn event(&self, run: &RunNames, kind: &str, data: &Json) -> Json {
        let place = std::iter::once(Json::from(self.place.as_str()));
        let tags: Vec<Json> = place.chain(run.tags.iter().cloned()).collect();
        json!({
            "event": kind,
            "name": self.name,
            "run_id": self.id,
            "tags": tags,
            "metadata": self.metadata,
            "data": data,
            "parent_ids": self.parents,
        })
    }
}

impl RunnableEvents {
    /// Returns the events that show something.
    pub(super) fn of(&mut self, run: &RunNames, event: &FeedEvent) -> Vec<Json> {
        let namespace = &event.namespace;
        let mut shown = Vec::new();
        match &event.body {
            // Tasks of one superstep end together.
            FeedBody::Update { origin, update, .. } => {
                self.task_ended(run, namespace, origin, update, &mut shown);
                return shown;
            }
            FeedBody::TaskEnded(_) | FeedBody::MessageWhole { .. } => return shown,
            _ => shown.append(&mut self.ends),
        }
        match &event.body {
            FeedBody::RunBegan => {
                let data = json!({ "input": run.input });
                shown.push(of_run(run, "on_chain_start", &data));
            }
            FeedBody::TaskStarted(task) => shown.push(self.task_started(run, namespace, task)),
            FeedBody::SubgraphBegan { graph } => {
                shown.extend(self.graph_entered(run, namespace, graph));
            }
            FeedBody::Values(values) | FeedBody::Interrupts { values, .. } => {
                self.values.insert(namespace.clone(), values.clone());
            }
            FeedBody::Message(part) => self.message(run, namespace, part, &mut shown),
            FeedBody::Tool(part) => shown.push(self.tool(run, namespace, part)),
            FeedBody::Stopped(RunStop::Finished | RunStop::Paused) => {
                let data = json!({ "output": self.values_of(&Namespace::default()) });
                shown.push(of_run(run, "on_chain_end", &data));
            }
            FeedBody::SubgraphEnded(_)
            | FeedBody::Checkpoint(_)
            | FeedBody::Custom { .. }
            | FeedBody::InputRequested(_)
            | FeedBody::Stopped(_)
            | FeedBody::PausedValues(_)
            // Handled above.
            | FeedBody::Update { .. }
            | FeedBody::TaskEnded(_)
            | FeedBody::MessageWhole { .. } => {}
        }
        shown
    }

    fn values_of(&self, namespace: &Namespace) -> Json {
        let found = self.values.get(namespace);
        found.map_or_else(|| json!({}), |values| Json::clone(values))
    }

    fn task_started(&mut self, run: &RunNames, namespace: &Namespace, task: &StartedTask) -> Json {
        let running = RunningTask {
            origin: task.origin.clone(),
            input: task.input.clone(),
        };
        self.tasks.insert(task.origin.task.clone(), running);
        let data = json!({ "input": &*task.input });
        node(run, namespace, &task.origin).event(run, "on_chain_start", &data)
    }

    /// Shows what a task wrote; its end comes after what the other tasks of the superstep wrote.
    fn task_ended(
        &mut self,
        run: &RunNames,
        namespace: &Namespace,
        origin: &TaskOrigin,
        update: &Json,
        shown: &mut Vec<Json>,
    ) {
        let running = self.tasks.remove(&origin.task);
        let input = running.map_or_else(Arc::default, |running| running.input);
        let input = &*input;
        if let Some(inner) = self.entered.remove(&origin.task) {
            let output = self.values_of(&inner.namespace);
            let data = json!({ "input": input, "output": output });
            let graph = part_of(run, namespace, origin, &inner.name, GRAPH);
            shown.push(graph.event(run, "on_chain_end", &data));
        }
        let node = node(run, namespace, origin);
        let data = json!({ "chunk": update });
        shown.push(node.event(run, "on_chain_stream", &data));
        let data = json!({ "input": input, "output": update });
        self.ends.push(node.event(run, "on_chain_end", &data));
    }

    /// Shows that a task entered a subgraph. One that lives as long as its thread has no task.
    fn graph_entered(
        &mut self,
        run: &RunNames,
        namespace: &Namespace,
        graph: &str,
    ) -> Option<Json> {
        let (outer, segment) = namespace.parent()?;
        let (_, task) = split_segment(segment);
        let task = task?;
        let running = self.tasks.get(task)?;
        let data = json!({ "input": &*running.input });
        let inner = part_of(run, &outer, &running.origin, graph, GRAPH);
        let began = inner.event(run, "on_chain_start", &data);
        let entered = EnteredGraph {
            namespace: namespace.clone(),
            name: graph.to_owned(),
        };
        self.entered.insert(task.to_owned(), entered);
        Some(began)
    }

    fn message(
        &mut self,
        run: &RunNames,
        namespace: &Namespace,
        part: &MessagePart,
        shown: &mut Vec<Json>,
    ) {
        let model = part_of(run, namespace, &part.origin, "model", &part.message);
        let growing = self.messages.entry(part.message.to_string()).or_default();
        growing.add(&part.change);
        if part.change == MessageChange::Began {
            shown.push(model.event(run, "on_chat_model_start", &json!({ "input": {} })));
        }
        if let Some(chunk) = chunk(&part.message, &part.change) {
            shown.push(model.event(run, "on_chat_model_stream", &json!({ "chunk": chunk })));
        }
        if let MessageChange::Ended { is_void, .. } = &part.change {
            let output = growing.message(&part.message);
            self.messages.remove(&*part.message);
            if !is_void {
                let data = json!({ "output": output, "input": {} });
                shown.push(model.event(run, "on_chat_model_end", &data));
            }
        }
    }

    fn tool(&mut self, run: &RunNames, namespace: &Namespace, part: &ToolPart) -> Json {
        let (kind, data) = match &part.change {
            ToolChange::Started { input } => {
                self.tools.insert(part.call.clone(), input.clone());
                ("on_tool_start", json!({ "input": input }))
            }
            ToolChange::Progress { text } => ("on_tool_stream", json!({ "chunk": text })),
            ToolChange::Ended { is_error, output } => {
                let input = self.tools.remove(&part.call).unwrap_or_default();
                match *is_error {
                    false => {
                        let output = tool_message(part, output);
                        ("on_tool_end", json!({ "input": input, "output": output }))
                    }
                    true => ("on_tool_error", json!({ "input": input, "error": output })),
                }
            }
        };
        part_of(run, namespace, &part.origin, &part.name, &part.call).event(run, kind, &data)
    }
}

/// Returns what a tool returned as a message, which gets its id when the node writes it.
fn tool_message(part: &ToolPart, output: &str) -> Json {
    json!({
        "content": output,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "tool",
        "name": part.name,
        "id": null,
        "tool_call_id": part.call,
        "artifact": null,
        "status": "success",
    })
}

fn of_run(run: &RunNames, kind: &str, data: &Json) -> Json {
    json!({
        "event": kind,
        "name": run.graph,
        "run_id": run.run,
        "tags": run.tags,
        "metadata": run.root_metadata(),
        "data": data,
        "parent_ids": [],
    })
}

fn node<'a>(run: &RunNames, namespace: &Namespace, origin: &'a TaskOrigin) -> Runnable<'a> {
    Runnable {
        name: &origin.node,
        id: match origin.task.is_empty() {
            true => run.run.clone(),
            false => task_id(run, &origin.task),
        },
        parents: parents(run, namespace),
        place: format!("graph:step:{}", origin.step),
        metadata: run.task_metadata(namespace, origin),
    }
}

/// Returns what runs inside of a task: a graph, a model, a tool.
fn part_of<'a>(
    run: &RunNames,
    namespace: &Namespace,
    origin: &TaskOrigin,
    name: &'a str,
    part: &str,
) -> Runnable<'a> {
    let mut parents = parents(run, namespace);
    parents.push(task_id(run, &origin.task));
    Runnable {
        name,
        id: part_id(run, &origin.task, part),
        parents,
        place: "seq:step:1".to_owned(),
        metadata: run.call_metadata(namespace, origin),
    }
}

/// Returns the ids of what the tasks of a graph run in, outermost first: the run, and the tasks and graphs down to them.
fn parents(run: &RunNames, namespace: &Namespace) -> Vec<String> {
    let mut parents = vec![run.run.clone()];
    for segment in namespace.segments() {
        if let (_, Some(task)) = split_segment(segment) {
            parents.push(task_id(run, task));
            parents.push(part_id(run, task, GRAPH));
        }
    }
    parents
}

/// What the subgraph of a task is called among the parts of the task.
const GRAPH: &str = "graph";

/// Returns the id under which a run executes a task: another run that executes it again, after an interrupt, has another one.
fn task_id(run: &RunNames, task: &str) -> String {
    stable_id(&format!("{}/{task}", run.run))
}

/// Returns the id of a part of a task.
fn part_id(run: &RunNames, task: &str, part: &str) -> String {
    stable_id(&format!("{}/{task}/{part}", run.run))
}

/// Returns an id that is the same in every stream of a run.
fn stable_id(name: &str) -> String {
    let id = uuid::Builder::from_custom_bytes(xxh3_128(name.as_bytes()).to_be_bytes());
    id.into_uuid().to_string()
}
