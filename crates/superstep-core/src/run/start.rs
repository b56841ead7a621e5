//! Starts supersteps: starts tasks, enters subgraphs, and reuses what was recorded before.

use xxhash_rust::xxh3::xxh3_128;

use crate::checkpoint::format::{
    AfterFailure, Breakpoint, BreakpointSide, FrameOpened, Next, PlannedTask, Stop,
};
use crate::error::{Failure, FailureKind, NodeError};
use crate::graph::{
    AnyUpdate, CacheKey, CacheScope, Definition, Input, Mapping, NodeBody, NodeDef, RefusedUpdate,
    Subgraph, SubgraphLife, Timeout,
};
use crate::ids::{FramePath, NodeName, TaskId, ThreadId, Timestamp};
use crate::node::{Output, Stored, Task, TaskInfo, TaskParts};
use crate::run::live::{Ending, LiveFrame, Slot, TaskActivity};
use crate::run::phase::Phase;
use crate::run::{Run, Step, plan};
use crate::value::Value;

impl Run {
    /// Starts what is planned and due. Returns true if there is something new for the driver, or the run stops.
    ///
    /// A run that was resumed in order to stop ([`Phase::Held`]: it was suspended at a breakpoint, say, while tasks of another
    /// graph were still in flight) must first start those supersteps again that were in progress, or the stop would lose their
    /// tasks. The resume token says which: a graph whose superstep is in `passed` had started it. All others stay `ready`, and
    /// after the loop the run halts.
    pub(super) fn start_supersteps(&mut self) -> bool {
        let (mut tasks, mut held_back) = (Vec::new(), Vec::new());
        let changes = self.pending.changes.len();
        self.start_waiting(&mut tasks);
        while !self.draining && matches!(self.phase, Phase::Running | Phase::Held(_)) {
            let Some((path, ())) = self.ready.pop_first() else {
                break;
            };
            let had_begun =
                self.progress.passed.get(&path) == Some(&self.position.frame(&path).step);
            if matches!(self.phase, Phase::Held(_)) && !had_begun {
                held_back.push((path, ()));
                continue;
            }
            self.start_superstep(&path, &mut tasks);
        }
        self.ready.extend(held_back);
        self.phase.release_held();
        let news = !tasks.is_empty()
            || self.phase.is_stopping()
            || self.pending.changes.len() > changes
            || self.pending.frees
            || self.live.values().any(LiveFrame::has_ended);
        if !tasks.is_empty() {
            self.queue.push_back(Step::Start(tasks));
        }
        news
    }

    fn start_superstep(&mut self, path: &FramePath, tasks: &mut Vec<Task>) {
        if !self.replan(path) || self.stops_before(path) {
            return;
        }
        let planned = &self.position.frame(path).next.tasks;
        let count = planned.len();
        if count > self.options.tasks_max {
            let why = format!(
                "{count} tasks are planned, at most {} are allowed",
                self.options.tasks_max
            );
            let failure =
                self.superstep_failure(path, &planned[0].node, FailureKind::TooManyTasks, why);
            return self.halt(Stop::Failed(vec![failure]));
        }
        let slots = std::mem::take(&mut self.spare.slots);
        self.live
            .insert(path.clone(), LiveFrame::with_room_for(count, slots));
        let several = count > 1;
        for index in 0..count as u32 {
            let planned = self.position.frame(path).next.tasks[index as usize].clone();
            let id = self.position.task_id(path, &planned.node, index);
            let attempt = self
                .position
                .frame(path)
                .failed
                .get(&index)
                .map_or(0, |failed| failed.failure.attempts);
            self.places.insert(id, path.clone(), index);
            let slot = Slot {
                task: id,
                node: planned.node.clone(),
                attempt,
                records: (self.recorded.steps.remove(&id))
                    .or_else(|| self.spare.records.take())
                    .unwrap_or_default(),
                doing: TaskActivity::Dropped,
            };
            self.live_frame(path).push(slot);
            self.start_task(path, index, &planned, several, tasks);
        }
    }

    /// Calls failed routes again; returns false if they still fail.
    fn replan(&mut self, path: &FramePath) -> bool {
        let frame = self.position.frame(path);
        if frame.next.reroute.is_empty() {
            return true;
        }
        let planned = plan::again(&frame.graph.clone(), &frame.state, &frame.next);
        if planned.faults.is_empty() {
            self.position.frame_mut(path).next = planned.next;
            if self.position.frame(path).next.is_done() {
                self.finish_frame(path);
                return false;
            }
            return true;
        }
        let failures = planned.faults.into_iter().map(|(node, error)| {
            self.superstep_failure(path, &node, error.kind(), error.to_string())
        });
        let stop = Stop::Failed(failures.collect());
        self.halt(stop);
        false
    }

    fn stops_before(&mut self, path: &FramePath) -> bool {
        let step = self.position.frame(path).step;
        if self.progress.passed.remove(path) == Some(step) {
            return false;
        }
        let frame = self.position.frame(path);
        let stops = |node: &NodeName| {
            frame.graph.pause_before.contains(node) || self.options.pause_before.contains(node)
        };
        let nodes: Vec<_> = frame
            .next
            .tasks
            .iter()
            .map(|task| &task.node)
            .filter(|node| stops(node))
            .cloned()
            .collect();
        if nodes.is_empty() {
            return false;
        }
        // Still planned: if an answer keeps the run going, it reaches this breakpoint again.
        self.ready.insert(path.clone(), ());
        self.halt(Stop::Breakpoint(Breakpoint {
            frame: path.clone(),
            side: BreakpointSide::Before,
            nodes,
        }));
        true
    }

    /// Starts one task of a superstep, or reuses what it recorded before.
    fn start_task(
        &mut self,
        path: &FramePath,
        index: u32,
        planned: &PlannedTask,
        several: bool,
        tasks: &mut Vec<Task>,
    ) {
        let graph = self.position.frame(path).graph.clone();
        let def = graph.node(&planned.node);
        let slot = &self.live_frame(path).slots[index as usize];
        let (id, attempts) = (slot.task, slot.attempt);
        let mut waits_for_store = false;
        if let Some(result) = self.recorded.results.get(&id) {
            match Output::read(&*graph.ops, result, &self.position.thread) {
                Ok(Stored::Output(output)) => {
                    // The graph may have changed since: a missing target is a failure of the task.
                    let checked = def.check_goto(&graph, &planned.node, &output.record.goto, true);
                    let doing = match checked {
                        Ok(()) => TaskActivity::Ended(Ending::of_output(output, def, false)),
                        Err(error) => TaskActivity::Failed(self.task_failure(path, index, &error)),
                    };
                    return self.live_frame(path).set(index, doing);
                }
                Ok(Stored::End(end))
                    if end.attempt == attempts + 1 && !self.is_answered(id, &end) =>
                {
                    return self.ended_elsewhere(path, index, end);
                }
                // The end is of an attempt that the run has given up since, or of one whose interrupt is answered.
                Ok(Stored::End(_)) => {
                    self.free_result(id);
                    waits_for_store = true;
                }
                Err(error) => {
                    let failed = TaskActivity::Failed(self.task_failure(path, index, &error));
                    return self.live_frame(path).set(index, failed);
                }
            }
        }
        if let Some(questions) = self
            .interrupts
            .unanswered
            .remove(&id)
            .filter(|_| !self.interrupts.answers.contains_key(&id))
        {
            // There is no answer yet: running the node again would only raise the same interrupt. The attempt that raised it
            // counts, because it is taken back when the answer arrives.
            let live = self.live_frame(path);
            live.slots[index as usize].attempt += 1;
            return live.set(index, TaskActivity::Asking(questions));
        }
        let failed = self.position.frame(path).failed.get(&index).cloned();
        match failed.map(|failed| (failed.then, failed.failure)) {
            Some((AfterFailure::Retry { at }, _)) => {
                self.live_frame(path).set(
                    index,
                    TaskActivity::Waiting {
                        until: at,
                        handle: None,
                    },
                );
            }
            // The graph has lost the handler since. The subgraph was left and must not be entered again, so its failure stays.
            Some((AfterFailure::Handle, failure))
                if def.handler.is_none() && def.subgraph().is_some() =>
            {
                self.live_frame(path)
                    .set(index, TaskActivity::Failed(failure));
            }
            Some((AfterFailure::Handle, failure)) => {
                self.live_frame(path).set(
                    index,
                    TaskActivity::Waiting {
                        until: Timestamp(i64::MIN),
                        handle: Some(failure),
                    },
                );
            }
            None => match &def.body {
                NodeBody::Subgraph(subgraph) => self.enter(path, index, subgraph, planned),
                NodeBody::Call(_) if waits_for_store => self.live_frame(path).set(
                    index,
                    TaskActivity::Waiting {
                        until: Timestamp(i64::MIN),
                        handle: None,
                    },
                ),
                NodeBody::Call(_) => tasks.push(self.attempt(path, index, several, None)),
            },
        }
    }

    /// Starts the tasks whose time has come: retries and error handlers.
    fn start_waiting(&mut self, tasks: &mut Vec<Task>) {
        let mut due = Vec::new();
        for (path, live) in self.live.iter() {
            for (index, until, handle) in live.waiting() {
                if until <= self.now {
                    due.push((path.clone(), index, handle.cloned(), live.slots.len() > 1));
                }
            }
        }
        for (path, index, handle, several) in due {
            tasks.push(self.attempt(&path, index, several, handle));
        }
    }

    /// Returns when the next waiting task is due.
    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        let waiting = self.live.values().flat_map(LiveFrame::waiting);
        waiting.map(|(_, until, _)| until).min()
    }

    /// Creates one attempt of a task, or of its error handler.
    pub(super) fn attempt(
        &mut self,
        path: &FramePath,
        index: u32,
        several: bool,
        handle: Option<Failure>,
    ) -> Task {
        self.last_execution = self.last_execution.wrapping_add(1);
        let go = self.last_execution;
        let live = self.live_frame(path);
        let handling = handle.is_some();
        live.set(index, TaskActivity::Running { handling });
        let slot = &mut live.slots[index as usize];
        slot.attempt += 1;
        let (id, node, attempt) = (slot.task, slot.node.clone(), slot.attempt);
        let records = slot.records.clone();
        let frame = self.position.frame(path);
        let def = frame.graph.node(&node);
        let payload = frame.next.tasks[index as usize].payload.clone();
        let handled = handle.is_some();
        let call = match (&handle, &def.handler, &def.body) {
            (Some(_), Some(handler), _) => handler.call.clone(),
            (_, _, NodeBody::Call(call)) => call.clone(),
            (_, _, NodeBody::Subgraph(_)) => unreachable!("a subgraph is entered, not called"),
        };
        let info = TaskInfo {
            thread: self.position.thread.clone(),
            epoch: self.head.epoch,
            run: self.position.run.run,
            task: id,
            frame: path.clone(),
            node: node.clone(),
            step: frame.step,
            attempt,
            go,
            remaining_steps: self
                .options
                .step_limit
                .saturating_sub(self.progress.steps.get(path).copied().unwrap_or(0) + 1),
            context: self.position.run.context.clone(),
            stateless: !frame.stored,
        };
        Task::new(TaskParts {
            cache: if handled {
                None
            } else {
                cache_key(
                    &self.position.thread,
                    &frame.graph,
                    &node,
                    def,
                    &frame.state,
                    payload.as_ref(),
                )
            },
            info,
            graph: frame.graph.clone(),
            call,
            input: Input {
                state: frame.state.clone(),
                payload,
                failure: handle,
            },
            store_result: several && frame.stored,
            timeout: if handled {
                Timeout::default()
            } else {
                def.timeout
            },
            records: if handled {
                records.of_handler()
            } else {
                records
            },
            answers: self
                .interrupts
                .answers
                .get(&id)
                .cloned()
                .unwrap_or_default(),
        })
    }

    /// Enters a subgraph, or continues it where it was left.
    fn enter(&mut self, path: &FramePath, index: u32, subgraph: &Subgraph, planned: &PlannedTask) {
        let task = self.live_frame(path).slots[index as usize].task;
        let lives_with_thread = subgraph.life == SubgraphLife::Thread;
        let child = path.child(planned.node.clone(), (!lives_with_thread).then_some(task));
        let entered_by = self
            .position
            .frames
            .get(&child)
            .and_then(|frame| frame.entered_by);
        match entered_by {
            Some(by) if by != task => {
                let why = format!(
                    "`{}` keeps its state with the thread and is entered twice at once",
                    planned.node
                );
                let error = NodeError::of_kind(FailureKind::SubgraphBusy, why);
                let failure = self.task_failure(path, index, &error);
                return self
                    .live_frame(path)
                    .set(index, TaskActivity::Failed(failure));
            }
            Some(_) => {}
            None => {
                if let Err(error) =
                    self.open_child(path, &child, task, subgraph, planned.payload.as_ref())
                {
                    return self.fail(path, index, error);
                }
            }
        }
        self.live_frame(path).set(index, TaskActivity::Inside);
        if self.position.frame(&child).next.is_done() {
            self.finish_frame(&child);
        } else {
            self.ready.insert(child, ());
        }
    }

    fn open_child(
        &mut self,
        path: &FramePath,
        child: &FramePath,
        task: TaskId,
        subgraph: &Subgraph,
        payload: Option<&Value>,
    ) -> Result<(), NodeError> {
        let ops = &subgraph.graph.ops;
        let (input, update) = match &subgraph.mapping {
            Mapping::Shared => (None, None),
            Mapping::Mapped { down, .. } => {
                let update: AnyUpdate = down(&self.position.frame(path).state, payload)?;
                let state = self
                    .position
                    .frames
                    .get(child)
                    .map_or_else(|| ops.initial(), |kept| kept.state.clone());
                let prepared = ops
                    .prepare(&state, update, task)
                    .map_err(RefusedUpdate::of_node)?;
                (Some(prepared.stored), Some(prepared.read_back))
            }
        };
        let mut opened = FrameOpened {
            frame: child.clone(),
            entered_by: Some(task),
            version: ops.version(),
            input,
            next: Next::default(),
        };
        // Routes read the state after the input. If one fails, the subgraph was not entered.
        let has_routes = !subgraph.graph.start.routes.is_empty();
        let before = has_routes.then(|| self.position.frames.get(child).cloned());
        self.position
            .open(&opened, subgraph.graph.clone(), update)
            .map_err(|error| NodeError::of_kind(FailureKind::InvalidUpdate, error.to_string()))?;
        opened.next = plan::first(&subgraph.graph, &self.position.frame(child).state)
            .inspect_err(|_| self.position.undo_open(child, before.flatten()))?;
        let frame = self.position.frame_mut(child);
        frame.next = opened.next.clone();
        if frame.stored {
            self.pending.opened.insert(child.clone(), opened);
        }
        Ok(())
    }

    pub(super) fn live_frame(&mut self, path: &FramePath) -> &mut LiveFrame {
        self.live.get_mut(path).expect("its superstep has begun")
    }
}

/// Returns the cache key of a node's result: graph, node, payload, tenant, and what the node's cache function returns. A node may
/// have read facts of its tenant, so its result is not for another one.
fn cache_key(
    thread: &ThreadId,
    graph: &Definition,
    node: &NodeName,
    def: &NodeDef,
    state: &crate::graph::Live,
    payload: Option<&Value>,
) -> Option<CacheKey> {
    let cache = def.cache.as_ref()?;
    // If the cache function fails, the node runs uncached.
    let own = (cache.key)(state).ok()?;
    let scope = CacheScope {
        graph: &graph.name,
        node,
        version: graph.ops.version(),
        payload: payload.map_or(0, |payload| xxh3_128(payload.as_bytes())),
        tenant: thread.tenant(),
    };
    Some(CacheKey {
        key: scope.key(&own),
        ttl_ms: cache.ttl_ms,
    })
}
