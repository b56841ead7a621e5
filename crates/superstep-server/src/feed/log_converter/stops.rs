//! Runs that stop: finished, paused at interrupts, failed.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::checkpoint::format::Stop;
use superstep::error::Failure;
use superstep::run::OpenInterrupt;

use crate::feed::event::{
    EndedTask, FeedBody, Namespace, RunStop, SubgraphEnd, TaskOrigin, split_segment,
};
use crate::feed::log_converter::{EVENT_BYTES, LogConverter, lang_step};
use crate::wire;

impl LogConverter {
    pub(super) fn stopped(&mut self, stop: &Stop, asked: &[OpenInterrupt]) {
        let root = Namespace::default();
        let stop = match stop {
            Stop::Finished => RunStop::Finished,
            Stop::Paused { .. } => {
                self.paused(asked);
                RunStop::Paused
            }
            Stop::Breakpoint(_) => {
                let values = self.frame_mut(&root).values.clone();
                let interrupts = Vec::new();
                self.push(&root, 0, FeedBody::Interrupts { interrupts, values });
                RunStop::Paused
            }
            Stop::StepLimit => RunStop::Failed {
                error: wire::error_name("step-limit").to_owned(),
                message:
                    "the run reached its step limit; resume it to allow as many supersteps again"
                        .to_owned(),
            },
            Stop::Failed(failures) => self.failed(failures),
            Stop::Cancelled => RunStop::Cancelled,
            // Another process continues the run.
            Stop::Drained => return,
        };
        let end = match &stop {
            RunStop::Finished => SubgraphEnd::Completed,
            RunStop::Paused => SubgraphEnd::Interrupted,
            RunStop::Cancelled | RunStop::Failed { .. } => SubgraphEnd::Failed,
        };
        let is_paused = stop == RunStop::Paused;
        let inner: Vec<Namespace> = std::mem::take(&mut self.entered)
            .into_iter()
            .rev()
            .collect();
        for inner in &inner {
            self.push(inner, 0, FeedBody::SubgraphEnded(end));
        }
        self.push(&root, 0, FeedBody::Stopped(stop));
        if is_paused {
            for namespace in inner.iter().chain([&root]) {
                let frame = self.frames.get(namespace);
                let values = frame.map(|frame| frame.values.clone());
                // Of a subgraph that was entered before the reader started, the state is not known.
                if let Some(values) = values.filter(|values| !values.is_null()) {
                    self.push(namespace, 0, FeedBody::PausedValues(values));
                }
            }
        }
    }

    /// Shows interrupts in the graph that raised them, and in every graph around it: clients that watch only the outer ones
    /// answer them too.
    fn paused(&mut self, asked: &[OpenInterrupt]) {
        let mut asking: Vec<AskingTask> = Vec::new();
        for OpenInterrupt { interrupt, .. } in asked {
            let task = AskingTask {
                namespace: Namespace::of(&interrupt.frame),
                node: interrupt.node.to_string(),
                task: wire::uuid(interrupt.task.to_bytes()),
                interrupts: vec![wire::streamed_interrupt(interrupt)],
            };
            task.add_to(&mut asking);
        }
        let mut depth = asking.iter().map(AskingTask::depth).max();
        while let Some(level) = depth {
            let of_level = |task: &mut AskingTask| task.depth() == level;
            let tasks: Vec<AskingTask> = asking.extract_if(.., of_level).collect();
            for task in tasks {
                self.task_asks(&task);
                if let Some(outer) = task.outer() {
                    outer.add_to(&mut asking);
                }
            }
            depth = level.checked_sub(1);
        }
        for OpenInterrupt { interrupt, .. } in asked {
            let namespace = Namespace::of(&interrupt.frame);
            let request = FeedBody::InputRequested(wire::interrupt(interrupt));
            self.push(&namespace, EVENT_BYTES, request);
        }
    }

    fn task_asks(&mut self, task: &AskingTask) {
        let sent = self.sent_place(&task.namespace, &task.task);
        let frame = self.frame_mut(&task.namespace);
        let values = frame.values.clone();
        let origin = Arc::new(TaskOrigin {
            node: task.node.clone(),
            task: task.task.clone(),
            step: lang_step(frame.step) + 1,
            sent,
        });
        let mut planned = frame.planned.iter_mut();
        if let Some(planned) = planned.find(|planned| planned.task == task.task) {
            planned.interrupts.clone_from(&task.interrupts);
        }
        let interrupts = task.interrupts.clone();
        let body = FeedBody::Interrupts { interrupts, values };
        self.push(&task.namespace, EVENT_BYTES, body);
        let body = EndedTask {
            origin,
            result: Arc::new(json!({})),
            error: None,
            interrupts: task.interrupts.clone(),
            is_cached: false,
        };
        self.push(
            &task.namespace,
            EVENT_BYTES,
            FeedBody::TaskEnded(Box::new(body)),
        );
    }

    /// Shows the tasks that failed, and the tasks around them, which failed with them.
    fn failed(&mut self, failures: &[Failure]) -> RunStop {
        self.keep_errors(failures);
        for failure in failures {
            let error = json!({ "error": error_of(failure), "message": failure.message });
            let mut place = failure.task.map(|task| {
                (
                    Namespace::of(&failure.frame),
                    failure.node.to_string(),
                    wire::uuid(task.to_bytes()),
                )
            });
            while let Some((namespace, node, task)) = place {
                let step = self.frames.get(&namespace).map_or(0, |frame| frame.step);
                let step = lang_step(step) + 1;
                let sent = self.sent_place(&namespace, &task);
                let origin = TaskOrigin {
                    node,
                    task,
                    step,
                    sent,
                };
                let body = EndedTask {
                    origin: Arc::new(origin),
                    result: Arc::new(json!({})),
                    error: Some(error.clone()),
                    interrupts: Vec::new(),
                    is_cached: false,
                };
                self.push(&namespace, EVENT_BYTES, FeedBody::TaskEnded(Box::new(body)));
                place = namespace.parent().map(|(outer, segment)| {
                    let (node, task) = split_segment(segment);
                    (outer, node.to_owned(), task.unwrap_or_default().to_owned())
                });
            }
        }
        let first = failures.first();
        RunStop::Failed {
            error: first.map_or_else(|| "failed".to_owned(), error_of),
            message: first.map(|first| first.message.clone()).unwrap_or_default(),
        }
    }
}

impl LogConverter {
    /// Remembers why tasks failed, for the run that tries them again.
    pub(super) fn keep_errors(&mut self, failures: &[Failure]) {
        for failure in failures {
            let Some(task) = failure.task.map(|task| wire::uuid(task.to_bytes())) else {
                continue;
            };
            let frame = self.frames.get_mut(&Namespace::of(&failure.frame));
            let mut planned = frame.into_iter().flat_map(|frame| &mut frame.planned);
            if let Some(planned) = planned.find(|planned| planned.task == task) {
                planned.error = Some(wire::error_text(failure));
            }
        }
    }
}

/// A task that waits for answers, in one of the graphs in which that is shown.
struct AskingTask {
    namespace: Namespace,
    node: String,
    task: String,
    interrupts: Vec<Json>,
}

impl AskingTask {
    fn depth(&self) -> usize {
        self.namespace.segments().len()
    }

    /// Returns the task of the graph around this one that waits with it.
    fn outer(&self) -> Option<Self> {
        let (namespace, segment) = self.namespace.parent()?;
        let (node, task) = split_segment(segment);
        Some(Self {
            namespace,
            node: node.to_owned(),
            task: task.unwrap_or_default().to_owned(),
            interrupts: self.interrupts.clone(),
        })
    }

    /// Adds the task to a list, or its interrupts to the task if that is in it.
    fn add_to(self, tasks: &mut Vec<Self>) {
        let is_same = |other: &&mut Self| {
            (&other.namespace, &other.node, &other.task)
                == (&self.namespace, &self.node, &self.task)
        };
        match tasks.iter_mut().find(is_same) {
            Some(same) => same.interrupts.extend(self.interrupts),
            None => tasks.push(self),
        }
    }
}

fn error_of(failure: &Failure) -> String {
    let code = failure.code.as_deref().unwrap_or(failure.kind.code());
    wire::error_name(code).to_owned()
}
