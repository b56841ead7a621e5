//! States of graphs: supersteps that end, graphs that are entered, runs that resume.

use std::iter::once;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep::checkpoint::format::{EntryKind, Stop};
use superstep::graph::Definition;
use superstep::{FramePath, Seq};

use crate::feed::event::{
    CheckpointTask, FeedBody, FoundCheckpoint, Namespace, StartedTask, StreamedCheckpoint,
    TaskOrigin, split_segment,
};
use crate::feed::log_converter::{
    AdvancedFrame, EVENT_BYTES, LogConverter, WrittenCheckpoint, lang_step,
};
use crate::history::FORK;
use crate::wire::{self, CheckpointId};

impl LogConverter {
    pub(super) fn frame_advanced(
        &mut self,
        advanced: AdvancedFrame,
        seq: Seq,
        kind: EntryKind,
        stop: Option<&Stop>,
    ) {
        let namespace = advanced.namespace.clone();
        let is_known = self.frames.contains_key(&namespace);
        let Some(graph) = self.graph_of(&advanced.frame, &namespace) else {
            return;
        };
        let bytes = advanced.values.len();
        let values = Arc::new(wire::values(&graph, &advanced.values));
        if kind == EntryKind::Resume {
            // The caller of a resume wrote into the state, or sent the thread to nodes. What runs next is streamed when the entry
            // ends. Planned tasks stay, and none is named if there are no others.
            let frame = self.frame_mut(&namespace);
            frame.values = values;
            let known = frame.planned.len().min(advanced.planned.len());
            frame.planned.extend_from_slice(&advanced.planned[known..]);
            return;
        }
        self.places.item(advanced.index);
        self.enter_subgraphs(&namespace);
        self.close_children(&namespace);
        let before = match is_known {
            true => self.frame_mut(&namespace).values.clone(),
            false => Arc::new(wire::empty_values(&graph)),
        };
        let frame = self.frame_mut(&namespace);
        // Clients count an input as a step of its own.
        let restarts = u64::from(is_known && advanced.is_opened);
        frame.step += u64::from(is_known) + restarts;
        let (step, has_written) = (frame.step, std::mem::take(&mut frame.has_written));
        frame.values = values.clone();
        frame.planned = advanced.planned;
        if namespace.is_root() {
            self.restarts += restarts;
        }
        if advanced.is_opened {
            self.input_checkpoint(&namespace, seq, step, before);
        }
        if advanced.is_opened || has_written || kind == EntryKind::Update {
            self.push(&namespace, bytes, FeedBody::Values(values));
        }
        let source = match kind {
            EntryKind::Update => "update",
            _ => "loop",
        };
        let id = self.next_checkpoint(&namespace, seq);
        self.checkpoint(&namespace, id, source);
        if kind != EntryKind::Update && may_start(stop, &advanced.frame) {
            self.tasks_start(&namespace);
        }
    }

    /// Shows the checkpoint before the input of a run was applied, which LangGraph writes as one of its own.
    fn input_checkpoint(&mut self, namespace: &Namespace, seq: Seq, step: u64, before: Arc<Json>) {
        let id = self.next_checkpoint(namespace, seq).before_input();
        let start = CheckpointTask {
            id: id.to_uuid_in(&self.thread, &namespace.to_string()),
            node: superstep::START.to_owned(),
            interrupts: Vec::new(),
            error: None,
            is_subgraph: false,
        };
        let (source, run) = ("input", Some(self.run));
        let frame = self.frame_mut(namespace);
        let parent = frame.checkpoint.map(|before| before.id);
        frame.checkpoint = Some(WrittenCheckpoint {
            id,
            parent,
            source,
            run,
            base: None,
        });
        let body = StreamedCheckpoint {
            id,
            parent,
            source,
            step: lang_step(step) - 1,
            values: before,
            tasks: vec![start],
            outer: self.outer_checkpoints(namespace),
            found: None,
        };
        self.push(namespace, 0, FeedBody::Checkpoint(Box::new(body)));
    }

    /// Returns the id of the next checkpoint of a graph. An entry has one of the root graph, and may have several of a subgraph.
    fn next_checkpoint(&mut self, namespace: &Namespace, seq: Seq) -> CheckpointId {
        let before = self.frame_mut(namespace).checkpoint;
        match namespace.is_root() {
            true => CheckpointId::after(seq),
            false => CheckpointId::of_subgraph(seq, before.map(|before| before.id)),
        }
    }

    fn checkpoint(&mut self, namespace: &Namespace, id: CheckpointId, source: &'static str) {
        let run = (source != "update").then_some(self.run);
        let frame = self.frame_mut(namespace);
        let parent = match frame.checkpoint {
            // An update of a list of changes has one entry.
            Some(before) if before.id == id => before.parent,
            before => before.map(|before| before.id),
        };
        frame.checkpoint = Some(WrittenCheckpoint {
            id,
            parent,
            source,
            run,
            base: None,
        });
        self.push_checkpoint(namespace, None);
    }

    /// Shows the checkpoint from which a run continues.
    fn found_checkpoint(&mut self, namespace: &Namespace, seq: Seq) {
        let unknown = WrittenCheckpoint {
            id: CheckpointId::after(seq),
            parent: None,
            source: "loop",
            run: Some(self.run),
            base: None,
        };
        let run = self.run;
        let found = self.frame_mut(namespace).checkpoint.get_or_insert(unknown);
        if found.source == FORK && found.run.is_none() {
            // For clients, the run that continues from a fork wrote it.
            found.run = Some(run);
            return self.push_checkpoint(namespace, None);
        }
        let found = *found;
        let found = FoundCheckpoint {
            run: found.run,
            base: found.base,
            entered_by: self.entering_task(namespace),
        };
        self.push_checkpoint(namespace, Some(found));
        let planned = self.frame_mut(namespace).planned.iter_mut();
        planned.for_each(|task| task.error = None);
    }

    /// Returns the task that is in a subgraph; `None` for the root graph.
    fn entering_task(&self, namespace: &Namespace) -> Option<TaskOrigin> {
        let (outer, segment) = namespace.parent()?;
        let (node, task) = split_segment(segment);
        let task = task.unwrap_or_default();
        let step = self.frames.get(&outer).map_or(0, |frame| frame.step);
        Some(TaskOrigin {
            node: node.to_owned(),
            task: task.to_owned(),
            step: lang_step(step) + 1,
            sent: self.sent_place(&outer, task),
        })
    }

    fn push_checkpoint(&mut self, namespace: &Namespace, found: Option<FoundCheckpoint>) {
        let outer = self.outer_checkpoints(namespace);
        let frame = self.frame_mut(namespace);
        let Some(written) = frame.checkpoint else {
            return;
        };
        let graph = frame.graph.as_ref();
        let tasks = frame.planned.iter().map(|planned| CheckpointTask {
            id: planned.task.clone(),
            node: planned.node.clone(),
            interrupts: planned.interrupts.clone(),
            error: planned.error.clone(),
            is_subgraph: graph.is_some_and(|graph| is_subgraph(graph, &planned.node)),
        });
        let body = StreamedCheckpoint {
            id: written.id,
            parent: written.parent,
            source: written.source,
            step: lang_step(frame.step),
            values: frame.values.clone(),
            tasks: tasks.collect(),
            outer,
            found,
        };
        self.push(namespace, 0, FeedBody::Checkpoint(Box::new(body)));
    }

    /// Returns the checkpoints of the graphs around a graph, outermost first.
    fn outer_checkpoints(&self, namespace: &Namespace) -> Vec<(Namespace, CheckpointId)> {
        let graphs = once(Namespace::default()).chain(namespace.path());
        let outer = graphs.filter(|graph| graph != namespace);
        let found = outer.filter_map(|graph| {
            let written = self.frames.get(&graph)?.checkpoint?;
            Some((graph, written.id))
        });
        found.collect()
    }

    fn tasks_start(&mut self, namespace: &Namespace) {
        let frame = self.frame_mut(namespace);
        let (step, state, planned) = (frame.step, frame.values.clone(), frame.planned.clone());
        for planned in planned {
            let sent = self.sent_place(namespace, &planned.task);
            let (input, trigger) = match planned.payload {
                Some(payload) => (payload, "__pregel_push".to_owned()),
                None => (state.clone(), format!("branch:to:{}", planned.node)),
            };
            let body = StartedTask {
                origin: Arc::new(TaskOrigin {
                    node: planned.node,
                    task: planned.task,
                    step: lang_step(step) + 1,
                    sent,
                }),
                input,
                triggers: vec![trigger],
            };
            self.push(namespace, 0, FeedBody::TaskStarted(Box::new(body)));
        }
    }

    /// At the end of an entry: shows where a resumed run continues.
    pub(super) fn entry_ends(&mut self, kind: EntryKind, seq: Seq) {
        match kind {
            EntryKind::Resume => {
                let frames = self.frames.iter();
                let open =
                    frames.filter(|(path, frame)| path.is_root() || !frame.planned.is_empty());
                let open: Vec<Namespace> = open.map(|(path, _)| path.clone()).collect();
                for namespace in open {
                    self.enter_subgraphs(&namespace);
                    let values = self.frame_mut(&namespace).values.clone();
                    // Of a subgraph that was entered before the reader started, the state is not known.
                    if !values.is_null() {
                        self.push(&namespace, EVENT_BYTES, FeedBody::Values(values));
                    }
                    self.found_checkpoint(&namespace, seq);
                    self.tasks_start(&namespace);
                }
            }
            // A fork without an edit is shown with the run that continues from it.
            EntryKind::Fork => {
                let root = Namespace::default();
                let written = self.frames.get(&root).and_then(|root| root.checkpoint);
                if written.is_some_and(|written| written.source != FORK) {
                    self.push_checkpoint(&root, None);
                }
            }
            EntryKind::Input
            | EntryKind::Step
            | EntryKind::Attempt
            | EntryKind::Stop
            | EntryKind::Update => {}
        }
    }

    /// Forgets the subgraphs of a superstep that is over. One that lives as long as its thread counts its supersteps on.
    fn close_children(&mut self, namespace: &Namespace) {
        self.frames.retain(|inner, frame| {
            if inner == namespace || !inner.is_within(namespace) {
                return true;
            }
            frame.planned.clear();
            let mut below = inner.segments()[namespace.segments().len()..].iter();
            below.all(|segment| !segment.contains(':'))
        });
    }
}

/// Whether a node of a graph is a subgraph.
fn is_subgraph(graph: &Arc<Definition>, node: &str) -> bool {
    wire::frame_of(once(node)).is_some_and(|path| graph.at(&path).is_some())
}

/// Whether the tasks that an entry plans for a graph start, even though the run stopped with the entry: they do if it stopped
/// because of them.
fn may_start(stop: Option<&Stop>, frame: &FramePath) -> bool {
    match stop {
        Some(Stop::Breakpoint(at)) => at.frame != *frame,
        Some(Stop::StepLimit | Stop::Cancelled) => false,
        None | Some(Stop::Finished | Stop::Paused { .. } | Stop::Failed(_) | Stop::Drained) => true,
    }
}
