//! The events of a task, each as a reply to the request that asked for them.

use std::io;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::registry::RunRow;

use crate::a2a::dialect::{TaskEvent, TaskPart, TaskState};
use crate::a2a::task::{AgentTask, AgentTasks, TaskStatus};
use crate::error::{ApiError, ApiResult};
use crate::feed::{BlockKind, FeedBody, FeedEvent, MessageChange};
use crate::follow::{RunEvents, RunItem, SseSource, write_data};
use crate::json_rpc::{RpcError, RpcId, success};
use crate::stream::sse;
use crate::wire;

/// The events of a task until it ends or waits for input.
///
/// What a model writes is the artifact so far: the first piece of a message replaces it, the others are appended. At the end, the
/// result replaces it.
pub(super) struct TaskStream {
    tasks: AgentTasks,
    task: AgentTask,
    request: RpcId,
    events: RunEvents,
    has_begun: bool,
    is_working: bool,
    /// The message that the artifact has the beginning of.
    message: Option<Arc<str>>,
    /// The row of the run after its end; an inner `None` if it was deleted.
    ended: Option<Option<Box<RunRow>>>,
}

impl TaskStream {
    pub(super) async fn open(
        tasks: AgentTasks,
        task: AgentTask,
        request: RpcId,
    ) -> ApiResult<Self> {
        let events = RunEvents::of(&tasks.app, &task.latest).await?;
        Ok(Self {
            tasks,
            task,
            request,
            events,
            has_begun: false,
            is_working: false,
            message: None,
            ended: None,
        })
    }

    fn write(&self, event: TaskEvent, out: &mut Vec<u8>) {
        let event = self.tasks.dialect.event(event);
        write_data(out, &success(&self.request, event));
    }

    fn take(&mut self, event: &FeedEvent, out: &mut Vec<u8>) {
        if !self.is_working {
            self.is_working = true;
            let status = json!({
                "state": self.tasks.dialect.state(TaskState::Working),
                "timestamp": wire::time(event.at),
            });
            self.write(self.status(status, false), out);
        }
        let FeedBody::Message(part) = &event.body else {
            return;
        };
        match &part.change {
            // A message that is written again replaces what was written of it.
            MessageChange::Began => self.message = None,
            MessageChange::Delta {
                kind: BlockKind::Text,
                text,
                ..
            } => {
                let is_same = self.message.as_ref() == Some(&part.message);
                self.message = Some(part.message.clone());
                let parts = [TaskPart::Text(text.clone())];
                self.write(self.artifact(&parts, is_same, false), out);
            }
            _ => {}
        }
    }

    fn finish(&self, row: &RunRow, status: &TaskStatus, out: &mut Vec<u8>) {
        if !status.result.is_empty() {
            self.write(self.artifact(&status.result, false, true), out);
        }
        let shown = self.tasks.show_status(row, status);
        self.write(self.status(shown, true), out);
    }

    fn status(&self, status: Json, is_final: bool) -> TaskEvent {
        TaskEvent::Status {
            update: json!({
                "taskId": self.task.id(), "contextId": self.task.context, "status": status,
            }),
            is_final,
        }
    }

    fn artifact(&self, parts: &[TaskPart], appends: bool, is_last: bool) -> TaskEvent {
        TaskEvent::Artifact(json!({
            "taskId": self.task.id(),
            "contextId": self.task.context,
            "artifact": self.tasks.artifact(parts),
            "append": appends,
            "lastChunk": is_last,
        }))
    }
}

impl SseSource for TaskStream {
    async fn write_next(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        if !self.has_begun {
            let shown = self.tasks.show(&self.task, None).await;
            self.has_begun = true;
            return match shown {
                Ok(shown) => {
                    self.write(TaskEvent::Task(shown), out);
                    Ok(true)
                }
                Err(error) => {
                    write_data(out, &RpcError::from(error).reply(Some(&self.request)));
                    Ok(false)
                }
            };
        }
        if self.ended.is_none() {
            match self.events.next().await {
                RunItem::Event(event) => {
                    self.take(&event, out);
                    return Ok(true);
                }
                RunItem::Ended(row) => self.ended = Some(row),
                RunItem::Broken => return Err(sse::broken()),
            }
        }
        let Some(Some(row)) = &self.ended else {
            let error = ApiError::no_run();
            write_data(out, &RpcError::from(error).reply(Some(&self.request)));
            return Ok(false);
        };
        match self.tasks.status_of(row).await {
            Ok(status) => self.finish(row, &status, out),
            Err(error) => write_data(out, &RpcError::from(error).reply(Some(&self.request))),
        }
        Ok(false)
    }
}
