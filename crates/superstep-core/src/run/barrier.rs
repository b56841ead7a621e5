//! Ends supersteps: applies what their tasks wrote, in task order, and plans what comes next.

use crate::checkpoint::format::{
    Breakpoint, BreakpointSide, Change, EntryKind, FrameAdvanced, GotoRecord, Next, ParentRecord,
    PlannedTask, Stop, TaskWrite,
};
use crate::checkpoint::{Released, ReleasedRecords};
use crate::error::{FailureKind, NodeError};
use crate::graph::{Mapping, ReadError, RefusedUpdate};
use crate::ids::{FramePath, NodeName, TaskId};
use crate::run::live::{Ending, LiveFrame, TaskActivity, Updates};
use crate::run::phase::Phase;
use crate::run::position::{Conflict, TaskUpdate, conflict, outlives_superstep, try_writes};
use crate::run::{Run, plan};
use crate::value::Value;

impl Run {
    /// Ends every superstep whose tasks have all ended. One end may cause that of the superstep around it.
    pub(super) fn end_supersteps(&mut self) {
        while !self.phase.is_stopping() {
            // The deepest first: a child's end may be the last one that its parent waited for.
            let Some(path) = self
                .live
                .iter()
                .rev()
                .find(|(_, live)| live.has_ended())
                .map(|(path, _)| path.clone())
            else {
                return;
            };
            let live = self.live.remove(&path).expect("just found");
            self.end_superstep(&path, live);
        }
    }

    /// Ends one superstep: applies the writes of its tasks in task order and plans the next.
    ///
    /// All or nothing. Conflicting writes, and a reducer that panics, are found before or while the writes are applied to a
    /// copy of the state; then nothing of the superstep counts and its tasks run again on resume. The plan is made from the
    /// state *after* the writes, because routes read it. A breakpoint after this superstep is noted first but takes effect
    /// last, so that the commit already holds the plan that a resume continues with.
    fn end_superstep(&mut self, path: &FramePath, mut live: LiveFrame) {
        let graph = self.position.frame(path).graph.clone();
        let mut tasks = std::mem::take(&mut self.spare.ended);
        tasks.reserve_exact(live.slots.len());
        let mut writes = std::mem::take(&mut self.spare.writes);
        writes.reserve_exact(live.slots.len());
        let mut updates = std::mem::take(&mut self.spare.updates);
        updates.reserve_exact(live.slots.len());
        let mut leave = None;
        for (index, mut slot) in (0..).zip(live.slots.drain(..)) {
            let TaskActivity::Ended(ending) = slot.doing else {
                unreachable!("every task of it has ended")
            };
            tasks.push(EndedTask {
                id: slot.task,
                recorded: !slot.records.is_empty(),
                goto: ending.by_command.then_some(ending.goto),
            });
            let mut stored_form = |(stored, update)| {
                updates.push(TaskUpdate {
                    task: index,
                    update,
                });
                stored
            };
            let stored = match ending.updates {
                Updates::One(stored, update) => {
                    let mut written = std::mem::take(&mut self.spare.written);
                    written.push(stored_form((stored, update)));
                    written
                }
                Updates::Forwarded(all) => all.into_iter().map(stored_form).collect(),
            };
            if slot.records.can_be_used_again() {
                self.spare.records = Some(slot.records);
            }
            writes.push(TaskWrite {
                node: slot.node,
                index,
                updates: stored,
                events: ending.events,
                cached: ending.cached,
            });
            leave = leave.or(ending.parent);
        }
        if let Some(conflict) = conflict(&*graph.ops, &updates) {
            let (node, why) = told(&conflict, &writes);
            return self.refuse(path, FailureKind::ConflictingWrites, node, why, &tasks);
        }
        let frame = self.position.frame_mut(path);
        if let Err(error) = try_writes(&*graph.ops, &mut frame.state, &mut updates) {
            let (node, why) = (&writes[0].node, error.to_string());
            return self.refuse(path, error.kind(), node, why, &tasks);
        }
        let frame = self.position.frame_mut(path);
        let ended = (writes.iter().zip(&tasks)).map(|(write, task)| plan::Ended {
            node: &write.node,
            goto: task.goto.as_deref(),
        });
        let planned = match leave {
            Some(parent) => plan::Planned {
                next: Next {
                    leave: Some(parent),
                    ..Next::default()
                },
                faults: Vec::new(),
            },
            None => {
                let planned = std::mem::take(&mut self.spare.planned);
                plan::after(&graph, &frame.state, &frame.next, ended, planned)
            }
        };
        let after = self.stops_after(path, &writes);
        self.advance(path, writes, planned.next, &tasks);
        if !planned.faults.is_empty() {
            let failures = planned.faults.into_iter().map(|(node, error)| {
                self.superstep_failure(path, &node, error.kind(), error.to_string())
            });
            let stop = Stop::Failed(failures.collect());
            self.halt(stop);
        } else if self.position.frame(path).next.is_done() {
            self.finish_frame(path);
        } else if !self.limit(path) {
            self.ready.insert(path.clone(), ());
        }
        if let (false, Some(after)) = (self.phase.is_stopping(), after) {
            self.halt(after);
        }
        self.spare.keep(live.slots, updates, tasks);
    }

    /// Refuses writes that cannot be applied: nothing of the superstep counts, and its tasks will run again.
    fn refuse(
        &mut self,
        path: &FramePath,
        kind: FailureKind,
        node: &NodeName,
        why: String,
        tasks: &[EndedTask],
    ) {
        let failure = self.superstep_failure(path, node, kind, why);
        let result_of = |task: &EndedTask| Released {
            task: task.id,
            which: ReleasedRecords::Result,
        };
        self.pending.released.extend(tasks.iter().map(result_of));
        self.halt(Stop::Failed(vec![failure]));
    }

    fn advance(
        &mut self,
        path: &FramePath,
        writes: Vec<TaskWrite>,
        next: Next,
        tasks: &[EndedTask],
    ) {
        let several = tasks.len() > 1;
        for &EndedTask { id, recorded, .. } in tasks {
            self.places.remove(id);
            if several || recorded || self.recorded.results.contains_key(&id) {
                self.release(id);
            }
            self.close_questions(id);
            self.interrupts.answers.remove(&id);
        }
        *self.progress.steps.or_default(path) += 1;
        let advanced = FrameAdvanced {
            frame: path.clone(),
            writes,
            next,
        };
        self.tell_opened(path);
        self.tell_lasting(path);
        self.position.advance(&advanced);
        if self.position.frame(path).stored {
            self.pending
                .push(EntryKind::Step, Change::FrameAdvanced(advanced));
        }
        if self.progress.steps.has_below(path) {
            self.progress.steps.retain(|below, _| !below.is_below(path));
        }
    }

    /// Adds the opening of a subgraph to the entry, before what the subgraph did.
    pub(super) fn tell_opened(&mut self, path: &FramePath) {
        if self.pending.opened.is_empty() {
            return;
        }
        let around = |opened: &FramePath| opened == path || path.is_below(opened);
        let paths: Vec<_> = self
            .pending
            .opened
            .keys()
            .filter(|opened| around(opened))
            .cloned()
            .collect();
        for path in paths {
            let opened = self.pending.opened.remove(&path).expect("just found");
            self.pending
                .push(EntryKind::Step, Change::FrameOpened(opened));
        }
    }

    /// Adds the openings of those subgraphs to the entry that outlive the superstep of `path`, and forgets the others.
    ///
    /// A subgraph that was entered and made no superstep, because it failed or had nothing to run, has changed all the same if
    /// it lives as long as the thread: it has an input more, and its next tasks have other ids. If the log did not say so, a
    /// thread that was loaded would give the ids of the failed tasks, and with them their effect keys, to other tasks.
    fn tell_lasting(&mut self, path: &FramePath) {
        if self.pending.opened.is_empty() {
            return;
        }
        let opened = std::mem::take(&mut self.pending.opened);
        for (below, opened) in opened {
            if !below.is_below(path) {
                self.pending.opened.insert(below, opened);
            } else if outlives_superstep(&below, path) {
                self.pending
                    .push(EntryKind::Step, Change::FrameOpened(opened));
            }
        }
    }

    pub(super) fn release(&mut self, task: TaskId) {
        self.recorded.results.remove(&task);
        self.recorded.ends.remove(&task);
        self.pending.released.push(Released {
            task,
            which: ReleasedRecords::All,
        });
    }

    pub(super) fn close_questions(&mut self, task: TaskId) {
        if self.interrupts.answers.is_empty() && self.interrupts.asked.is_empty() {
            return;
        }
        let closed: Vec<_> = self
            .interrupts
            .asked
            .iter()
            .filter(|(_, (of, _))| *of == task)
            .map(|(id, _)| *id)
            .collect();
        for id in closed {
            self.interrupts.asked.remove(&id);
            self.pending.closed.push(id);
        }
    }

    fn stops_after(&self, path: &FramePath, writes: &[TaskWrite]) -> Option<Stop> {
        let graph = &self.position.frame(path).graph;
        let stops = |write: &&TaskWrite| {
            graph.pause_after.contains(&write.node)
                || self.options.pause_after.contains(&write.node)
        };
        let mut nodes: Vec<_> = writes
            .iter()
            .filter(stops)
            .map(|write| write.node.clone())
            .collect();
        nodes.dedup();
        (!nodes.is_empty()).then(|| {
            Stop::Breakpoint(Breakpoint {
                frame: path.clone(),
                side: BreakpointSide::After,
                nodes,
            })
        })
    }

    /// At the step limit, sends the graph to the node set for it, once, or stops the run.
    fn limit(&mut self, path: &FramePath) -> bool {
        let made = self.progress.steps.get(path).copied().unwrap_or(0);
        let graph = self.position.frame(path).graph.clone();
        let allowed = self.options.step_limit + u64::from(self.progress.limited.contains(path));
        if made < allowed {
            return false;
        }
        match &graph.at_limit {
            Some(node) if self.progress.limited.insert(path.clone()) => {
                let next = Next {
                    tasks: vec![PlannedTask {
                        node: node.clone(),
                        payload: None,
                    }],
                    ..Next::default()
                };
                self.position.frame_mut(path).next = next.clone();
                self.replan_pending(path, next);
                false
            }
            _ => {
                self.halt(Stop::StepLimit);
                true
            }
        }
    }

    /// Puts the new plan into the change of this superstep, which is still pending.
    fn replan_pending(&mut self, path: &FramePath, next: Next) {
        let told = self
            .pending
            .changes
            .iter_mut()
            .rev()
            .find_map(|change| match change {
                Change::FrameAdvanced(advanced) if advanced.frame == *path => Some(advanced),
                _ => None,
            });
        if let Some(advanced) = told {
            advanced.next = next;
        }
    }

    /// Ends a graph that has nothing left to run: the run is finished, or the task that entered the graph has ended.
    pub(super) fn finish_frame(&mut self, path: &FramePath) {
        let Some(parent) = path.parent() else {
            self.phase = Phase::Stopping(Stop::Finished);
            return;
        };
        let Some(index) = self.slot_of_child(&parent, path) else {
            return;
        };
        match self.ending_of_child(&parent, index, path) {
            Ok(ending) => self
                .live_frame(&parent)
                .set(index, TaskActivity::Ended(ending)),
            Err(error) => self.fail(&parent, index, error),
        }
    }

    /// Returns the index of the parent's task that entered this subgraph.
    pub(super) fn slot_of_child(&self, parent: &FramePath, child: &FramePath) -> Option<u32> {
        let task = self.position.frames.get(child)?.entered_by?;
        let slots = &self.live.get(parent)?.slots;
        slots
            .iter()
            .position(|slot| slot.task == task)
            .and_then(|index| u32::try_from(index).ok())
    }

    fn ending_of_child(
        &self,
        parent: &FramePath,
        index: u32,
        child: &FramePath,
    ) -> Result<Ending, NodeError> {
        let slot = &self.live[parent].slots[index as usize];
        let around = self.position.frame(parent);
        let def = around.graph.node(&slot.node);
        let inside = self.position.frame(child);
        if let Some(command) = &inside.next.leave {
            return self.ending_of_leave(parent, index, command);
        }
        let by_command = def.leaves_by_command(&[]);
        let subgraph = def.subgraph().expect("only a subgraph is entered");
        let updates = match &subgraph.mapping {
            Mapping::Shared => {
                let decode = |update: &Value| {
                    Ok((
                        update.clone(),
                        around.graph.ops.decode_update(update, inside.version)?,
                    ))
                };
                let forwarded: Result<Vec<_>, ReadError> =
                    inside.forwarded.iter().flatten().map(decode).collect();
                Updates::Forwarded(forwarded.map_err(ReadError::of_record)?)
            }
            Mapping::Mapped { up, .. } => {
                let update = up(&around.state, &inside.state)?;
                let ops = &around.graph.ops;
                let prepared = ops
                    .prepare(&around.state, update, slot.task)
                    .map_err(RefusedUpdate::of_node)?;
                Updates::One(prepared.stored, prepared.read_back)
            }
        };
        Ok(Ending {
            updates,
            goto: Vec::new(),
            by_command,
            parent: None,
            events: Vec::new(),
            cached: false,
        })
    }

    /// Returns the result of a subgraph that was left with a command: only the command reaches the parent.
    fn ending_of_leave(
        &self,
        parent: &FramePath,
        index: u32,
        command: &ParentRecord,
    ) -> Result<Ending, NodeError> {
        let slot = &self.live[parent].slots[index as usize];
        let graph = &self.position.frame(parent).graph;
        let no_parent = |error: ReadError| {
            let why = format!(
                "the command is not for graph `{}`: {}",
                graph.name,
                crate::error::chain(&error)
            );
            NodeError::of_kind(FailureKind::NoParent, why)
        };
        let update = graph
            .ops
            .decode_update(&command.update, graph.ops.version())
            .map_err(no_parent)?;
        graph
            .node(&slot.node)
            .check_goto(graph, &slot.node, &command.goto, false)?;
        Ok(Ending {
            updates: Updates::One(command.update.clone(), update),
            by_command: graph.node(&slot.node).leaves_by_command(&command.goto),
            goto: command.goto.clone(),
            parent: None,
            events: Vec::new(),
            cached: false,
        })
    }
}

/// A task of a superstep that ends.
pub(super) struct EndedTask {
    id: TaskId,
    /// Whether the task recorded steps.
    recorded: bool,
    /// Targets of its command, if its node routes by commands.
    goto: Option<Vec<GotoRecord>>,
}

/// Returns the node to blame for two conflicting writes, and the message.
fn told<'a>(conflict: &Conflict, writes: &'a [TaskWrite]) -> (&'a NodeName, String) {
    let (first, second) = (&writes[conflict.first].node, &writes[conflict.second].node);
    let why = format!(
        "`{first}` and `{second}` both write `{}` in one superstep, and it takes one write; give it a reducer or let one of them write",
        conflict.channel
    );
    (second, why)
}
