//! The state of a thread at a checkpoint: values, what runs next, open interrupts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::format::{InterruptRecord, Stop};
use superstep::checkpoint::{InterruptQuery, Page};
use superstep::error::Failure;
use superstep::graph::Definition;
use superstep::registry::{RunQuery, RunRow};
use superstep::run::{NextTask, OpenInterrupt, SubgraphState, ThreadState};
use superstep::{FramePath, NodeName, RunId, START, Seq, TaskId, ThreadId};

use crate::Shared;
use crate::error::ApiResult;
use crate::feed;
use crate::history::Checkpoint;
use crate::wire::{self, BEFORE_INPUT, CheckpointId};

/// What the JSON form of a state needs besides the state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateOptions {
    pub(crate) id: CheckpointId,
    pub(crate) parent: Option<CheckpointId>,
    /// What made the checkpoint: `input`, `loop`, `update` or `fork`.
    pub(crate) source: &'static str,
    /// Number of the step, in the count of clients.
    pub(crate) step: i64,
    /// Whether the checkpoint is the newest: then only open interrupts are shown, and failures.
    pub(crate) is_newest: bool,
    /// Whether the states of subgraphs are part of their tasks.
    pub(crate) with_subgraphs: bool,
}

/// Returns the state of a thread at a checkpoint, as clients read it.
pub(crate) async fn thread_state(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    state: &ThreadState,
    options: StateOptions,
) -> ApiResult<Json> {
    let interrupts = match options.is_newest {
        true => open_interrupts(app, thread, state.stop.as_ref()).await?,
        false => all_interrupts(app, thread).await?,
    };
    let is_inside = state.next.iter().any(|task| !task.frame.is_root());
    let subgraphs = match is_inside {
        true => {
            let at = (!options.is_newest).then_some(options.id.seq);
            app.runtime.subgraphs_of(graph, thread, at).await?
        }
        false => Vec::new(),
    };
    let runs = runs_of(app, thread, BTreeSet::from([state.run.run])).await?;
    let results = results_of(app, graph, thread, &[(state, options)]).await?;
    let scene = Scene {
        graph,
        thread,
        state,
        options,
        runs: &runs,
        results: &results,
        interrupts: &interrupts,
        subgraphs: &subgraphs,
    };
    Ok(scene.frame(&FramePath::root()))
}

/// Returns the state of a subgraph at a checkpoint; `None` if the thread is not inside of a subgraph with this path.
pub(crate) async fn subgraph_state(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    state: &ThreadState,
    options: StateOptions,
    namespace: &str,
) -> ApiResult<Option<Json>> {
    let at = (!options.is_newest).then_some(options.id.seq);
    let subgraphs = app.runtime.subgraphs_of(graph, thread, at).await?;
    let mut frames = subgraphs.iter().map(|found| &found.frame);
    let Some(frame) = frames.find(|frame| wire::namespace(frame) == namespace) else {
        return Ok(None);
    };
    let interrupts = open_interrupts(app, thread, state.stop.as_ref()).await?;
    let runs = runs_of(app, thread, BTreeSet::from([state.run.run])).await?;
    let results = results_of(app, graph, thread, &[(state, options)]).await?;
    let scene = Scene {
        graph,
        thread,
        state,
        options,
        runs: &runs,
        results: &results,
        interrupts: &interrupts,
        subgraphs: &subgraphs,
    };
    Ok(Some(scene.frame(frame)))
}

/// Returns states of a thread's history, without those of subgraphs.
pub(crate) async fn past_states(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    states: &[(&ThreadState, StateOptions)],
) -> ApiResult<Vec<Json>> {
    let all = all_interrupts(app, thread).await?;
    let mut open = all.clone();
    open.retain(|interrupt| interrupt.row.is_open());
    first_of_each_task(&mut open);
    let wrote = states.iter().map(|(state, _)| state.run.run).collect();
    let runs = runs_of(app, thread, wrote).await?;
    let results = results_of(app, graph, thread, states).await?;
    let shown = states.iter().map(|(state, options)| {
        let scene = Scene {
            graph,
            thread,
            state,
            options: *options,
            runs: &runs,
            results: &results,
            interrupts: if options.is_newest { &open } else { &all },
            subgraphs: &[],
        };
        scene.frame(&FramePath::root())
    });
    Ok(shown.collect())
}

/// Returns states of the history of a subgraph.
pub(crate) async fn past_subgraph_states(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    frame: &FramePath,
    checkpoints: &[Checkpoint],
) -> ApiResult<Vec<Json>> {
    let interrupts = all_interrupts(app, thread).await?;
    let wrote = checkpoints.iter().map(|found| found.state.run.run);
    let runs = runs_of(app, thread, wrote.collect()).await?;
    let states: Vec<_> = checkpoints
        .iter()
        .map(|found| (&found.state, found.options()))
        .collect();
    let results = results_of(app, graph, thread, &states).await?;
    let shown = checkpoints.iter().map(|found| {
        let subgraph = SubgraphState {
            frame: frame.clone(),
            values: found.state.values.clone(),
        };
        let scene = Scene {
            graph,
            thread,
            state: &found.state,
            options: found.options(),
            runs: &runs,
            results: &results,
            interrupts: &interrupts,
            subgraphs: &[subgraph],
        };
        scene.frame(frame)
    });
    Ok(shown.collect())
}

/// Returns the runs with these ids, as far as they are stored.
async fn runs_of(
    app: &Shared,
    thread: &ThreadId,
    ids: BTreeSet<RunId>,
) -> ApiResult<BTreeMap<RunId, RunRow>> {
    let query = RunQuery {
        tenant: thread.tenant().to_owned(),
        page: Page {
            limit: u32::try_from(ids.len()).unwrap_or(u32::MAX),
            offset: 0,
        },
        ids: Some(ids.into_iter().collect()),
        ..RunQuery::default()
    };
    let rows = app.registry().runs(&query).await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

/// Returns what the tasks of past states wrote, by their ids. Those of the newest state have not ended.
async fn results_of(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    states: &[(&ThreadState, StateOptions)],
) -> ApiResult<BTreeMap<String, Arc<Json>>> {
    let mut oldest: Option<Seq> = None;
    let mut tasks = BTreeSet::new();
    for (state, options) in states {
        if !options.is_newest {
            oldest = Some(oldest.map_or(state.seq, |oldest| state.seq.min(oldest)));
            let next = state.next.iter();
            tasks.extend(next.map(|task| wire::uuid(task.task.to_bytes())));
        }
    }
    match oldest {
        Some(oldest) => feed::results_of(app, graph, thread, oldest, tasks).await,
        None => Ok(BTreeMap::new()),
    }
}

/// Returns the state of a thread on which nothing has happened.
pub(crate) fn empty_state() -> Json {
    json!({
        "values": {},
        "next": [],
        "tasks": [],
        "metadata": null,
        "created_at": null,
        "checkpoint": null,
        "parent_checkpoint": null,
        "interrupts": [],
        "checkpoint_id": null,
        "parent_checkpoint_id": null,
    })
}

/// Returns the open interrupts of a thread, in the order of their tasks if the stop of its last run names them.
pub(crate) async fn open_interrupts(
    app: &Shared,
    thread: &ThreadId,
    stop: Option<&Stop>,
) -> ApiResult<Vec<OpenInterrupt>> {
    let mut open = interrupts_of(app, thread, true).await?;
    if let Some(Stop::Paused { asked }) = stop {
        let place = |open: &OpenInterrupt| asked.iter().position(|id| *id == open.interrupt.id);
        open.sort_by_key(|open| place(open).unwrap_or(usize::MAX));
    }
    Ok(open)
}

async fn all_interrupts(app: &Shared, thread: &ThreadId) -> ApiResult<Vec<OpenInterrupt>> {
    interrupts_of(app, thread, false).await
}

async fn interrupts_of(
    app: &Shared,
    thread: &ThreadId,
    open_only: bool,
) -> ApiResult<Vec<OpenInterrupt>> {
    let query = InterruptQuery {
        tenant: thread.tenant().to_owned(),
        thread: Some(thread.clone()),
        open_only,
        page: Page {
            limit: INTERRUPTS_MAX,
            offset: 0,
        },
        ..InterruptQuery::default()
    };
    let mut found = app.runtime.interrupts(&query).await?;
    // The interrupts of a task in the order in which the stop of their run names them, also where the stop is not at hand.
    found.sort_by(|a, b| a.interrupt.key.cmp(&b.interrupt.key));
    if open_only {
        first_of_each_task(&mut found);
    }
    Ok(found)
}

/// Leaves the first interrupt of each task. Apps answer without saying which interrupt they mean. One app shows the first of a task,
/// another shows the last, and a person must not approve another one than they see. The next one is shown when the first is answered.
pub(crate) fn first_of_each_task(open: &mut Vec<OpenInterrupt>) {
    let mut seen = BTreeSet::new();
    open.retain(|open| seen.insert(open.interrupt.task));
}

/// Everything that a state is drawn from.
struct Scene<'a> {
    graph: &'a Arc<Definition>,
    thread: &'a ThreadId,
    state: &'a ThreadState,
    options: StateOptions,
    runs: &'a BTreeMap<RunId, RunRow>,
    /// What tasks wrote that have ended since.
    results: &'a BTreeMap<String, Arc<Json>>,
    interrupts: &'a [OpenInterrupt],
    subgraphs: &'a [SubgraphState],
}

impl Scene<'_> {
    fn frame(&self, frame: &FramePath) -> Json {
        let next = self.state.next.iter().filter(|task| task.frame == *frame);
        let mut tasks: Vec<Json> = Vec::new();
        let mut names: Vec<Json> = Vec::new();
        let mut interrupts: Vec<Json> = Vec::new();
        // Nothing is planned before an input, so no subgraph is drawn inside of this one.
        if self.options.id.is_before_input() {
            names.push(START.into());
            tasks.push(self.start_task());
        }
        let mut sent = 0;
        for task in next {
            let asked = self.interrupts_of(task);
            interrupts.extend(asked.iter().cloned());
            names.push(task.node.as_str().into());
            let path = match task.payload.is_some() {
                true => json!(["__pregel_push", sent, false]),
                false => json!(["__pregel_pull", task.node.as_str()]),
            };
            sent += u32::from(task.payload.is_some());
            tasks.push(self.task(task, path, asked));
        }
        let (thread, id) = (self.thread, self.options.id);
        let parent = self.options.parent;
        json!({
            "values": self.values(frame),
            "next": names,
            "tasks": tasks,
            "metadata": self.metadata(),
            "created_at": wire::time(self.state.at),
            "checkpoint": wire::checkpoint(thread, frame, id),
            "parent_checkpoint": parent.map(|parent| wire::checkpoint(thread, frame, parent)),
            "interrupts": interrupts,
            "checkpoint_id": id.to_uuid(thread),
            "parent_checkpoint_id": parent.map(|parent| parent.to_uuid(thread)),
        })
    }

    /// Returns what clients find the checkpoint by: what wrote it, and what is known of the run. No run wrote an edit.
    fn metadata(&self) -> Map<String, Json> {
        let run = self.state.run.run;
        let mut metadata = Map::new();
        if self.options.source != "update" {
            metadata.insert("run_id".to_owned(), wire::uuid(run.to_bytes()).into());
            if let Some(row) = self.runs.get(&run) {
                metadata.extend(searchable(wire::run_configurable(row)));
                metadata.extend(wire::run_metadata(row));
            }
        }
        let own = [
            ("source", Json::from(self.options.source)),
            ("step", self.options.step.into()),
            ("parents", json!({})),
            ("graph_id", self.graph.name().into()),
            ("thread_id", self.thread.name().into()),
        ];
        metadata.extend(own.map(|(name, value)| (name.to_owned(), value)));
        metadata
    }

    fn values(&self, frame: &FramePath) -> Json {
        if frame.is_root() {
            let values = wire::values(self.graph, &self.state.values);
            let is_new = self.options.id.place == BEFORE_INPUT && values == json!({});
            return match is_new {
                true => wire::empty_values(self.graph),
                false => values,
            };
        }
        let found = self.subgraphs.iter().find(|found| found.frame == *frame);
        match (found, self.graph.at(frame)) {
            (Some(found), Some(graph)) => wire::values(&graph, &found.values),
            _ => Json::Null,
        }
    }

    fn task(&self, task: &NextTask, path: Json, interrupts: Vec<Json>) -> Json {
        let depth = task.frame.segments().len();
        let child = self.subgraphs.iter().find(|found| {
            found.frame.segments().len() == depth + 1 && is_within(&found.frame, task)
        });
        let id = wire::uuid(task.task.to_bytes());
        let state = child.filter(|_| self.options.with_subgraphs);
        let namespace = match child {
            Some(child) => Some(wire::namespace(&child.frame)),
            None => self.enters(task).then(|| inner_namespace(task, &id)),
        };
        // A client that gets the state of the subgraph needs no other way to it.
        let pointer = namespace.filter(|_| state.is_none()).map(
            |namespace| json!({ "thread_id": self.thread.name(), "checkpoint_ns": namespace }),
        );
        let result = self.results.get(&id).map(|result| &**result);
        json!({
            "id": id,
            "name": task.node.as_str(),
            "path": path,
            "error": self.error_of(task),
            "interrupts": interrupts,
            "checkpoint": pointer,
            "state": state.map(|child| self.frame(&child.frame)),
            "result": result,
        })
    }

    /// Whether a task enters a subgraph.
    fn enters(&self, task: &NextTask) -> bool {
        let outer = task.frame.segments().iter().map(|segment| &segment.node);
        let nodes = outer.chain([&task.node]).map(NodeName::as_str);
        wire::frame_of(nodes).is_some_and(|frame| self.graph.at(&frame).is_some())
    }

    /// Returns the task that applies the input, which is no task of ours.
    fn start_task(&self) -> Json {
        let run = self.runs.get(&self.state.run.run);
        let input = run.and_then(|row| row.arguments.get("input"));
        json!({
            "id": self.options.id.to_uuid(self.thread),
            "name": START,
            "path": ["__pregel_pull", START],
            "error": null,
            "interrupts": [],
            "checkpoint": null,
            "state": null,
            "result": input,
        })
    }

    /// Returns the interrupts of a task and of the subgraph inside of it.
    fn interrupts_of(&self, task: &NextTask) -> Vec<Json> {
        let own = self.interrupts.iter().map(|open| &open.interrupt);
        let own = own.filter(|record: &&InterruptRecord| {
            is_of(&record.frame, &record.node, Some(record.task), task)
        });
        own.map(wire::interrupt).collect()
    }

    fn error_of(&self, task: &NextTask) -> Option<String> {
        let Some(Stop::Failed(failures)) = &self.state.stop else {
            return None;
        };
        let mut failures = failures.iter();
        let failure =
            failures.find(|failure| is_of(&failure.frame, &failure.node, failure.task, task))?;
        Some(error_text(failure))
    }
}

/// Returns the fields that a checkpoint can be found by: those with a single value.
fn searchable(fields: Map<String, Json>) -> impl Iterator<Item = (String, Json)> {
    let is_single = |value: &Json| value.is_string() || value.is_number() || value.is_boolean();
    let fields = fields.into_iter();
    fields.filter(move |(name, value)| !name.starts_with("__") && is_single(value))
}

/// Returns the namespace of the subgraph that a task enters.
fn inner_namespace(task: &NextTask, id: &str) -> String {
    let own = format!("{}:{id}", task.node);
    match task.frame.is_root() {
        true => own,
        false => format!("{}|{own}", wire::namespace(&task.frame)),
    }
}

/// Whether something at a place of a run is of this task, or happened in the subgraph inside of it.
fn is_of(frame: &FramePath, node: &NodeName, id: Option<TaskId>, task: &NextTask) -> bool {
    match *frame == task.frame {
        true => *node == task.node && id.is_none_or(|id| id == task.task),
        false => is_within(frame, task),
    }
}

/// Whether a path leads through a task.
fn is_within(frame: &FramePath, task: &NextTask) -> bool {
    let (inner, outer) = (frame.segments(), task.frame.segments());
    let Some(entered) = inner.get(outer.len()) else {
        return false;
    };
    inner.starts_with(outer)
        && entered.node == task.node
        && entered.task.is_none_or(|entered| entered == task.task)
}

/// Returns a failure in the form in which clients print errors.
fn error_text(failure: &Failure) -> String {
    let code = failure.code.as_deref().unwrap_or(failure.kind.code());
    format!("{}('{}')", wire::error_name(code), failure.message)
}

/// Number of interrupts of a thread that are shown.
const INTERRUPTS_MAX: u32 = 1_000;
