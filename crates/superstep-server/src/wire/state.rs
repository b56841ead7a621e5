//! The state of a thread at a checkpoint: values, what runs next, open interrupts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::format::{EntryKind, InterruptRecord, Stop};
use superstep::checkpoint::{InterruptQuery, Page};
use superstep::error::Failure;
use superstep::graph::Definition;
use superstep::registry::{RunQuery, RunRow};
use superstep::run::{NextTask, OpenInterrupt, ThreadState};
use superstep::{FramePath, NodeName, RunId, START, Seq, TaskId, ThreadId, Value};

use crate::Shared;
use crate::error::ApiResult;
use crate::feed;
use crate::history::{self, OuterCheckpoint, SubgraphCheckpoint};
use crate::wire::{self, BEFORE_INPUT, CHECKPOINT_ID, CheckpointId};

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

/// A subgraph that a thread is inside of.
struct OpenSubgraph {
    frame: FramePath,
    /// Its state, if that is shown.
    state: Option<SubgraphState>,
}

/// The state of a subgraph, and where it is.
struct SubgraphState {
    found: SubgraphCheckpoint,
    outer: Vec<OuterCheckpoint>,
}

/// Returns the state of a thread at a checkpoint, as clients read it.
pub(crate) async fn thread_state(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    state: &ThreadState,
    options: StateOptions,
) -> ApiResult<Json> {
    let root = FramePath::root();
    let drawn = DrawnState {
        frame: &root,
        state,
        options,
        outer: &[],
        input: None,
    };
    drawn.draw(app, graph, thread).await
}

/// Returns the state of a subgraph at one of its checkpoints, or at the newest; `None` if there is no such checkpoint.
pub(crate) async fn subgraph_state(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    frame: &FramePath,
    id: Option<CheckpointId>,
    with_subgraphs: bool,
) -> ApiResult<Option<Json>> {
    let runtime = &app.runtime;
    let newest = history::subgraph_at(runtime, graph, thread, frame, None).await?;
    let newest_id = newest.as_ref().map(|newest| newest.checkpoint.id);
    let older = id.filter(|id| newest_id != Some(*id));
    let found = match older {
        Some(id) => history::subgraph_at(runtime, graph, thread, frame, Some(id)).await?,
        None => newest,
    };
    let Some(mut found) = found else {
        return Ok(None);
    };
    let is_newest = older.is_none();
    if is_newest {
        // Why the run stopped is in a later entry.
        let head = runtime.state_of(graph, thread, None).await?;
        found.checkpoint.state.stop = head.and_then(|head| head.stop);
    }
    let outer = history::outer_of(app, graph, thread, frame, found.checkpoint.id).await?;
    let drawn = DrawnState {
        frame,
        state: &found.checkpoint.state,
        options: StateOptions {
            is_newest,
            with_subgraphs,
            ..found.checkpoint.options()
        },
        outer: &outer,
        input: found.input.as_ref(),
    };
    Ok(Some(drawn.draw(app, graph, thread).await?))
}

impl DrawnState<'_> {
    /// Reads what the state is drawn from besides itself, and draws it.
    async fn draw(
        &self,
        app: &Shared,
        graph: &Arc<Definition>,
        thread: &ThreadId,
    ) -> ApiResult<Json> {
        let (state, options) = (self.state, self.options);
        let interrupts = match options.is_newest {
            true => open_interrupts(app, thread, state.stop.as_ref()).await?,
            false => all_interrupts(app, thread).await?,
        };
        // Also if the subgraph itself has finished: until the superstep around it ends, what it did is in its own state alone.
        let mut next = state.next.iter();
        let is_inside = next.any(|task| task.frame != *self.frame || enters(graph, task));
        let subgraphs = match is_inside {
            true => self.open_subgraphs(app, graph, thread).await?,
            false => Vec::new(),
        };
        let mut states = vec![(state, options)];
        let inner = subgraphs.iter().filter_map(|inner| inner.state.as_ref());
        states.extend(inner.map(|inner| {
            let found = &inner.found.checkpoint;
            let is_newest = options.is_newest;
            let options = StateOptions {
                is_newest,
                ..found.options()
            };
            (&found.state, options)
        }));
        let wrote = states.iter().map(|(state, _)| state.run.run).collect();
        let runs = runs_of(app, thread, wrote).await?;
        let results = results_of(app, graph, thread, &states).await?;
        let scene = Scene {
            graph,
            thread,
            drawn: *self,
            runs: &runs,
            results: &results,
            interrupts: &interrupts,
            subgraphs: &subgraphs,
        };
        Ok(scene.draw())
    }

    /// Reads the subgraphs that the thread is inside of, with their states if those are shown.
    async fn open_subgraphs(
        &self,
        app: &Shared,
        graph: &Arc<Definition>,
        thread: &ThreadId,
    ) -> ApiResult<Vec<OpenSubgraph>> {
        let (runtime, options) = (&app.runtime, self.options);
        let at = (!options.is_newest).then_some(options.id.seq);
        let above = at.map(|at| CheckpointId {
            seq: at.next(),
            place: BEFORE_INPUT,
        });
        let mut open = Vec::new();
        for inside in runtime.subgraphs_of(graph, thread, at).await? {
            let frame = inside.frame;
            let mut state = None;
            if options.with_subgraphs {
                let found = history::of_subgraph(runtime, graph, thread, &frame, above, 1).await?;
                if let Some(mut found) = found.into_iter().next() {
                    if options.is_newest {
                        found.checkpoint.state.stop = self.state.stop.clone();
                    }
                    let id = found.checkpoint.id;
                    let outer = history::outer_of(app, graph, thread, &frame, id).await?;
                    state = Some(SubgraphState { found, outer });
                }
            }
            open.push(OpenSubgraph { frame, state });
        }
        Ok(open)
    }
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
    let root = FramePath::root();
    let shown = states.iter().map(|(state, options)| {
        let scene = Scene {
            graph,
            thread,
            drawn: DrawnState {
                frame: &root,
                state,
                options: *options,
                outer: &[],
                input: None,
            },
            runs: &runs,
            results: &results,
            interrupts: if options.is_newest { &open } else { &all },
            subgraphs: &[],
        };
        scene.draw()
    });
    Ok(shown.collect())
}

/// Returns states of the history of a subgraph.
pub(crate) async fn past_subgraph_states(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    frame: &FramePath,
    checkpoints: &[SubgraphCheckpoint],
) -> ApiResult<Vec<Json>> {
    let interrupts = all_interrupts(app, thread).await?;
    let found = checkpoints.iter().map(|found| &found.checkpoint);
    let states: Vec<_> = found.map(|found| (&found.state, found.options())).collect();
    let wrote = states.iter().map(|(state, _)| state.run.run);
    let runs = runs_of(app, thread, wrote.collect()).await?;
    let results = results_of(app, graph, thread, &states).await?;
    let mut shown = Vec::new();
    let mut outer: Vec<OuterCheckpoint> = Vec::new();
    for (found, (state, options)) in checkpoints.iter().zip(states) {
        // Newest first, so those around the last one are around this one, too, unless they are newer.
        if outer.is_empty() || outer.iter().any(|outer| outer.id.seq > options.id.seq) {
            outer = history::outer_of(app, graph, thread, frame, options.id).await?;
        }
        let scene = Scene {
            graph,
            thread,
            drawn: DrawnState {
                frame,
                state,
                options,
                outer: &outer,
                input: found.input.as_ref(),
            },
            runs: &runs,
            results: &results,
            interrupts: &interrupts,
            subgraphs: &[],
        };
        shown.push(scene.draw());
    }
    Ok(shown)
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
            // A task of a subgraph may have ended with the entry that entered the subgraph. Of others, that entry may be pruned.
            let is_inside = state.next.iter().any(|task| !task.frame.is_root());
            let from = Seq(state.seq.0.saturating_sub(u64::from(is_inside)));
            oldest = Some(oldest.map_or(from, |oldest| from.min(oldest)));
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

/// Returns the open interrupts of several threads of a tenant.
pub(crate) async fn open_interrupts_of(
    app: &Shared,
    tenant: &str,
    threads: Vec<ThreadId>,
) -> ApiResult<BTreeMap<ThreadId, Vec<OpenInterrupt>>> {
    let mut query = InterruptQuery {
        tenant: tenant.to_owned(),
        threads,
        open_only: true,
        page: Page {
            limit: INTERRUPTS_MAX,
            offset: 0,
        },
        ..InterruptQuery::default()
    };
    let mut by_thread: BTreeMap<ThreadId, Vec<OpenInterrupt>> = BTreeMap::new();
    loop {
        let found = app.runtime.interrupts(&query).await?;
        let is_last = found.len() < INTERRUPTS_MAX as usize;
        for open in found {
            by_thread
                .entry(open.row.thread.clone())
                .or_default()
                .push(open);
        }
        if is_last {
            break;
        }
        query.page.offset += INTERRUPTS_MAX;
    }
    for open in by_thread.values_mut() {
        in_order(open);
    }
    Ok(by_thread)
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
    match open_only {
        true => in_order(&mut found),
        false => sort_by_key(&mut found),
    }
    Ok(found)
}

/// Sorts the open interrupts of a thread, and leaves the first one of each task.
fn in_order(open: &mut Vec<OpenInterrupt>) {
    sort_by_key(open);
    first_of_each_task(open);
}

/// Sorts the interrupts of a task in the order in which the stop of their run names them, also where the stop is not at hand.
fn sort_by_key(interrupts: &mut [OpenInterrupt]) {
    interrupts.sort_by(|a, b| a.interrupt.key.cmp(&b.interrupt.key));
}

/// Leaves the first interrupt of each task. Apps answer without saying which interrupt they mean. One app shows the first of a task,
/// another shows the last, and a person must not approve another one than they see. The next one is shown when the first is answered.
pub(crate) fn first_of_each_task(open: &mut Vec<OpenInterrupt>) {
    let mut seen = BTreeSet::new();
    open.retain(|open| seen.insert(open.interrupt.task));
}

/// A state to draw: of the root graph or of a subgraph, at one of its checkpoints.
#[derive(Clone, Copy)]
struct DrawnState<'a> {
    frame: &'a FramePath,
    state: &'a ThreadState,
    options: StateOptions,
    /// Checkpoints of the graphs around it, outermost first.
    outer: &'a [OuterCheckpoint],
    /// For a subgraph, before an input: the state that the input led to.
    input: Option<&'a Value>,
}

/// Everything that a state is drawn from.
#[derive(Clone, Copy)]
struct Scene<'a> {
    graph: &'a Arc<Definition>,
    thread: &'a ThreadId,
    drawn: DrawnState<'a>,
    runs: &'a BTreeMap<RunId, RunRow>,
    /// What tasks wrote that have ended since.
    results: &'a BTreeMap<String, Arc<Json>>,
    interrupts: &'a [OpenInterrupt],
    subgraphs: &'a [OpenSubgraph],
}

impl Scene<'_> {
    fn draw(&self) -> Json {
        let DrawnState {
            frame,
            state,
            options,
            outer,
            ..
        } = self.drawn;
        let next = state.next.iter().filter(|task| task.frame == *frame);
        let mut tasks: Vec<Json> = Vec::new();
        let mut names: Vec<Json> = Vec::new();
        let mut interrupts: Vec<Json> = Vec::new();
        // Nothing is planned before an input, so no subgraph is drawn inside of this one.
        if options.id.is_before_input() {
            names.push(START.into());
            tasks.push(self.start_task());
        }
        let mut sent = 0;
        for task in next {
            let asked = self.interrupts_of(task);
            interrupts.extend(asked.iter().cloned());
            names.push(task.node.as_str().into());
            let place = task.payload.is_some().then_some(sent);
            let path = wire::task_path(task.node.as_str(), place);
            sent += u32::from(task.payload.is_some());
            tasks.push(self.task(task, path, asked));
        }
        let (thread, namespace) = (self.thread, wire::namespace(frame));
        let named = |id: CheckpointId| wire::checkpoint(thread, frame, id, outer);
        let text = |id: CheckpointId| id.to_uuid_in(thread, &namespace);
        json!({
            "values": self.values(),
            "next": names,
            "tasks": tasks,
            "metadata": self.metadata(),
            "created_at": wire::time(state.at),
            "checkpoint": named(options.id),
            "parent_checkpoint": options.parent.map(named),
            "interrupts": interrupts,
            "checkpoint_id": text(options.id),
            "parent_checkpoint_id": options.parent.map(text),
        })
    }

    /// Returns what clients find the checkpoint by: what wrote it, and what is known of the run. No run wrote an edit.
    fn metadata(&self) -> Map<String, Json> {
        let options = self.drawn.options;
        let run = self.drawn.state.run.run;
        let mut metadata = Map::new();
        if options.source != "update" {
            metadata.insert("run_id".to_owned(), wire::uuid(run.to_bytes()).into());
            if let Some(row) = self.runs.get(&run) {
                metadata.extend(searchable(wire::run_configurable(row)));
                metadata.extend(wire::run_metadata(row));
                metadata.extend(wire::run_address(row));
            }
        } else if let (EntryKind::Fork, Some(parent)) = (self.drawn.state.kind, options.parent) {
            let base = parent.to_uuid(self.thread);
            metadata.insert(CHECKPOINT_ID.to_owned(), base.into());
        }
        if !self.drawn.frame.is_root() {
            metadata.extend(self.subgraph_metadata());
        }
        let parents = wire::checkpoint_map(self.thread, self.drawn.outer);
        let own = [
            ("source", Json::from(options.source)),
            ("step", options.step.into()),
            ("parents", Json::Object(parents)),
            ("graph_id", self.graph.name().into()),
            ("thread_id", self.thread.name().into()),
        ];
        metadata.extend(own.map(|(name, value)| (name.to_owned(), value)));
        metadata
    }

    /// Returns where the subgraph is: which task is in it, or for an edit, which checkpoint it changed.
    fn subgraph_metadata(&self) -> Map<String, Json> {
        let DrawnState { frame, outer, .. } = self.drawn;
        let namespace = wire::namespace(frame);
        let mut map = wire::checkpoint_map(self.thread, outer);
        let mut metadata = Map::new();
        if self.drawn.options.source == "update" {
            if let Some(parent) = self.drawn.options.parent {
                let parent = parent.to_uuid_in(self.thread, &namespace);
                map.insert(namespace.clone(), parent.as_str().into());
                metadata.insert("checkpoint_id".to_owned(), parent.into());
            }
        } else if let Some((entered, path)) = frame.segments().split_last()
            && let Some(outer) = outer.iter().find(|outer| outer.frame.segments() == path)
        {
            let node = entered.node.as_str();
            metadata = wire::task_place(node, outer.step + 1, &namespace, outer.sent);
        }
        metadata.insert("checkpoint_map".to_owned(), Json::Object(map));
        metadata.insert("checkpoint_ns".to_owned(), namespace.into());
        metadata
    }

    fn values(&self) -> Json {
        let Some(graph) = self.graph.at(self.drawn.frame) else {
            return Json::Null;
        };
        let values = wire::values(&graph, &self.drawn.state.values);
        let is_new = self.drawn.options.id.is_before_input() && values == json!({});
        match is_new {
            true => wire::empty_values(&graph),
            false => values,
        }
    }

    fn task(&self, task: &NextTask, path: Json, interrupts: Vec<Json>) -> Json {
        let depth = task.frame.segments().len();
        let child = self.subgraphs.iter().find(|found| {
            found.frame.segments().len() == depth + 1 && is_within(&found.frame, task)
        });
        let id = wire::uuid(task.task.to_bytes());
        let state = child.and_then(|child| Some((&child.frame, child.state.as_ref()?)));
        let namespace = match child {
            Some(child) => Some(wire::namespace(&child.frame)),
            None => enters(self.graph, task).then(|| inner_namespace(task, &id)),
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
            "state": state.map(|(frame, child)| self.inside(frame, child).draw()),
            "result": result,
        })
    }

    /// Returns what the state of a subgraph inside of this graph is drawn from.
    fn inside<'a>(&'a self, frame: &'a FramePath, child: &'a SubgraphState) -> Scene<'a> {
        let found = &child.found.checkpoint;
        let drawn = DrawnState {
            frame,
            state: &found.state,
            options: StateOptions {
                is_newest: self.drawn.options.is_newest,
                with_subgraphs: true,
                ..found.options()
            },
            outer: &child.outer,
            input: child.found.input.as_ref(),
        };
        Scene { drawn, ..*self }
    }

    /// Returns the task that applies the input, which is no task of ours.
    fn start_task(&self) -> Json {
        let DrawnState { frame, state, .. } = self.drawn;
        let run = self.runs.get(&state.run.run);
        let input = match (self.drawn.input, self.graph.at(frame)) {
            // What the parent gave to the subgraph.
            (Some(input), Some(graph)) => Some(wire::values(&graph, input)),
            _ => run.and_then(|row| row.arguments.get("input")).cloned(),
        };
        let namespace = wire::namespace(frame);
        json!({
            "id": self.drawn.options.id.to_uuid_in(self.thread, &namespace),
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
        let Some(Stop::Failed(failures)) = &self.drawn.state.stop else {
            return None;
        };
        let mut failures = failures.iter();
        let failure =
            failures.find(|failure| is_of(&failure.frame, &failure.node, failure.task, task))?;
        Some(error_text(failure))
    }
}

/// Whether a task enters a subgraph.
fn enters(graph: &Arc<Definition>, task: &NextTask) -> bool {
    let outer = task.frame.segments().iter().map(|segment| &segment.node);
    let nodes = outer.chain([&task.node]).map(NodeName::as_str);
    wire::frame_of(nodes).is_some_and(|frame| graph.at(&frame).is_some())
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
pub(crate) fn error_text(failure: &Failure) -> String {
    let code = failure.code.as_deref().unwrap_or(failure.kind.code());
    format!("{}('{}')", wire::error_name(code), failure.message)
}

/// Number of interrupts of a thread that are shown.
const INTERRUPTS_MAX: u32 = 1_000;
