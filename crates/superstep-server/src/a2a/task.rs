//! Tasks: a run, and the runs that answered its interrupts.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::Page;
use superstep::graph::Definition;
use superstep::registry::{Assistant, RunQuery, RunRow, RunStatus};
use superstep::{END, RunId, ThreadId};

use crate::a2a::dialect::{ProtocolDialect, Speaker, TaskPart, TaskState};
use crate::a2a::message::SentMessage;
use crate::a2a::{TASK_NOT_CANCELABLE, TASK_NOT_FOUND, UNSUPPORTED_OPERATION};
use crate::caller::{Caller, run_id};
use crate::error::{ApiError, ApiResult};
use crate::follow::{RunResult, message_channel, question_of, result_of, text_of, thread_named};
use crate::json_rpc::RpcError;
use crate::permission::Permission;
use crate::start::{
    Awaits, CommandBody, IfNotExists, MultitaskStrategy, RunBody, ThreadTarget, submit,
};
use crate::{App, wire};

/// Field of a run's metadata that says what the run is for the protocol: a task, the answer to one, or its cancellation.
pub(super) const KIND: &str = "a2a";
/// The kind of a run that ends a task which waited for input.
const CANCELLATION: &str = "cancel";
/// Field of the metadata of an answer or a cancellation: the first run of the task.
const FIRST_RUN: &str = "a2a_task";
/// Field of the metadata with the client's name of the context, if that is not the id of the thread.
const CONTEXT: &str = "a2a_context";

/// The name of a task: `thread:run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskName {
    thread: String,
    run: RunId,
}

impl TaskName {
    /// Reads the name of a task. A text that cannot be one is not the name of any task.
    pub(super) fn parse(text: &str) -> Result<Self, RpcError> {
        let parts = text.split_once(':');
        let parts = parts.and_then(|(thread, run)| Some((thread.to_owned(), run_id(run).ok()?)));
        let (thread, run) = parts.ok_or_else(no_task)?;
        Ok(Self { thread, run })
    }

    /// Reads the task that the parameters of a method name.
    pub(super) fn read(params: &Json) -> Result<Self, RpcError> {
        let id = params.get("id").and_then(Json::as_str);
        Self::parse(id.ok_or_else(|| RpcError::invalid_params("`id` must be the id of a task"))?)
    }
}

fn no_task() -> RpcError {
    RpcError::new(TASK_NOT_FOUND, "Task not found")
}

/// A task.
#[derive(Debug, Clone)]
pub(super) struct AgentTask {
    pub(super) first: RunRow,
    /// The newest run of the task, which is the first one if nothing was answered.
    pub(super) latest: RunRow,
    pub(super) context: String,
}

impl AgentTask {
    pub(super) fn id(&self) -> String {
        let run = wire::uuid(self.first.id.to_bytes());
        format!("{}:{run}", self.first.thread.name())
    }
}

/// What is known of a task.
#[derive(Debug)]
pub(super) struct TaskStatus {
    pub(super) state: TaskState,
    /// What the agent says about it: the questions, or the error.
    pub(super) message: Vec<TaskPart>,
    /// The result of a task that is complete.
    pub(super) result: Vec<TaskPart>,
    values: Json,
}

/// The tasks of one assistant, for one caller.
pub(super) struct AgentTasks {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) assistant: Assistant,
    pub(super) graph: Arc<Definition>,
    pub(super) dialect: ProtocolDialect,
}

impl AgentTasks {
    /// Starts a task with a message; or continues one, if its context waits for an answer.
    pub(super) async fn send(
        &self,
        sent: &SentMessage,
        awaits: Awaits,
    ) -> Result<AgentTask, RpcError> {
        let continued = match &sent.task {
            Some(name) => Some(self.find(name).await?),
            None => None,
        };
        let (thread, context) = self.context_of(sent, continued.as_ref())?;
        self.caller.check_thread(&self.app, &thread).await?;
        let open = wire::open_interrupts(&self.app, &thread, None).await?;
        let mut body = RunBody {
            assistant_id: wire::uuid(self.assistant.id.to_bytes()),
            if_not_exists: Some(IfNotExists::Create),
            ..RunBody::default()
        };
        let mut metadata = Map::new();
        let first = if open.is_empty() {
            self.caller.require(Permission::Run)?;
            if continued.is_some() {
                return Err(RpcError::new(
                    UNSUPPORTED_OPERATION,
                    "the task does not wait for input; send the message without `taskId`",
                ));
            }
            body.input = Some(sent.input(&self.graph)?);
            metadata.insert(KIND.to_owned(), "task".into());
            None
        } else {
            self.caller.require(Permission::Answer)?;
            let first = match continued {
                Some(task) => task.first,
                None => self.waiting_run(&thread).await?,
            };
            body.command = Some(CommandBody {
                resume: Some(sent.answer()),
                ..CommandBody::default()
            });
            let id = wire::uuid(first.id.to_bytes());
            metadata.insert(KIND.to_owned(), "answer".into());
            metadata.insert(FIRST_RUN.to_owned(), id.into());
            Some(first)
        };
        if context != thread.name() {
            metadata.insert(CONTEXT.to_owned(), context.clone().into());
        }
        body.metadata = Some(metadata);
        if awaits == Awaits::Events {
            // Before the run is submitted, so that its feed is complete.
            self.app.feeds.settle(&self.app, &thread).await?;
        }
        let target = ThreadTarget::Thread(thread);
        let submitted = submit(&self.app, &self.caller, target, body, awaits).await?;
        let latest = submitted.row;
        Ok(AgentTask {
            first: first.unwrap_or_else(|| latest.clone()),
            latest,
            context,
        })
    }

    /// Returns the thread of a message, and the client's name of it. A message without a context begins one.
    fn context_of(
        &self,
        sent: &SentMessage,
        continued: Option<&AgentTask>,
    ) -> Result<(ThreadId, String), RpcError> {
        match (&sent.context, continued) {
            (None, Some(task)) => Ok((task.first.thread.clone(), task.context.clone())),
            (None, None) => {
                let thread = self.caller.new_thread()?;
                let name = thread.name().to_owned();
                Ok((thread, name))
            }
            (Some(context), continued) => {
                let thread = thread_named(&self.caller, context)?;
                match continued {
                    Some(task) if task.first.thread != thread => Err(RpcError::invalid_params(
                        "`taskId` is not a task of `contextId`",
                    )),
                    _ => Ok((thread, context.clone())),
                }
            }
        }
    }

    /// Returns the first run of the task that a thread waits in.
    async fn waiting_run(&self, thread: &ThreadId) -> Result<RunRow, RpcError> {
        let newest = self.newest_run(thread, None).await?.ok_or_else(no_task)?;
        let first = newest.metadata[FIRST_RUN].as_str();
        match first.and_then(|first| run_id(first).ok()) {
            Some(first) => {
                let row = self.app.registry().run(thread.tenant(), first).await;
                let row = row.map_err(ApiError::from)?;
                // The first run may have been deleted.
                Ok(row.filter(|row| row.thread == *thread).unwrap_or(newest))
            }
            None => Ok(newest),
        }
    }

    async fn newest_run(
        &self,
        thread: &ThreadId,
        metadata: Option<Json>,
    ) -> ApiResult<Option<RunRow>> {
        let query = RunQuery {
            tenant: thread.tenant().to_owned(),
            thread: Some(thread.clone()),
            metadata,
            page: Page {
                limit: 1,
                offset: 0,
            },
            ..RunQuery::default()
        };
        Ok(self.app.registry().runs(&query).await?.into_iter().next())
    }

    /// Returns a task of this assistant.
    pub(super) async fn find(&self, name: &TaskName) -> Result<AgentTask, RpcError> {
        let thread = self.caller.thread(&name.thread).map_err(|_| no_task())?;
        let checked = self.caller.check_thread(&self.app, &thread).await;
        // Someone else's thread must not differ from one that does not exist.
        checked.map_err(|error| match error.status {
            StatusCode::NOT_FOUND => no_task(),
            _ => RpcError::from(error),
        })?;
        let found = self.app.registry().run(&self.caller.tenant, name.run).await;
        let found = found.map_err(ApiError::from)?;
        let is_own = |row: &RunRow| row.thread == thread && row.assistant == self.assistant.id;
        let first = found.filter(is_own).ok_or_else(no_task)?;
        Ok(self.task_of(first).await?)
    }

    /// Returns the task that begins with a run.
    pub(super) async fn task_of(&self, first: RunRow) -> ApiResult<AgentTask> {
        let answers = json!({ FIRST_RUN: wire::uuid(first.id.to_bytes()) });
        let latest = self.newest_run(&first.thread, Some(answers)).await?;
        let context = first.metadata[CONTEXT].as_str();
        Ok(AgentTask {
            context: context.unwrap_or(first.thread.name()).to_owned(),
            latest: latest.unwrap_or_else(|| first.clone()),
            first,
        })
    }

    /// Waits until a task has ended, or waits for input.
    pub(super) async fn finish(&self, task: &AgentTask) -> Result<AgentTask, RpcError> {
        let tenant = task.first.thread.tenant();
        let ended = self.app.queue.wait(tenant, task.latest.id).await;
        let latest = ended.map_err(ApiError::from)?.ok_or_else(no_task)?;
        Ok(AgentTask {
            latest,
            ..task.clone()
        })
    }

    pub(super) async fn cancel(&self, task: &AgentTask) -> Result<AgentTask, RpcError> {
        if !task.latest.status.is_active() {
            return self.cancel_waiting(task).await;
        }
        let tenant = task.first.thread.tenant();
        let cancelled = self.app.queue.cancel(tenant, task.latest.id).await;
        cancelled.map_err(ApiError::from)?;
        self.finish(task).await
    }

    /// Ends a task that waits for input, by a run that closes its interrupts.
    async fn cancel_waiting(&self, task: &AgentTask) -> Result<AgentTask, RpcError> {
        let thread = &task.first.thread;
        let open = wire::open_interrupts(&self.app, thread, None).await?;
        if open.is_empty() || self.waiting_run(thread).await?.id != task.first.id {
            return Err(RpcError::new(TASK_NOT_CANCELABLE, "the task has ended"));
        }
        let first = wire::uuid(task.first.id.to_bytes());
        let metadata = Map::from_iter([
            (KIND.to_owned(), CANCELLATION.into()),
            (FIRST_RUN.to_owned(), first.into()),
        ]);
        let body = RunBody {
            assistant_id: wire::uuid(self.assistant.id.to_bytes()),
            command: Some(CommandBody {
                goto: Some(END.into()),
                ..CommandBody::default()
            }),
            metadata: Some(metadata),
            // An answer that arrived first continues the task.
            multitask_strategy: Some(MultitaskStrategy::Reject),
            is_cancellation: true,
            ..RunBody::default()
        };
        let target = ThreadTarget::Thread(thread.clone());
        let submitted = submit(&self.app, &self.caller, target, body, Awaits::End).await?;
        let cancelled = AgentTask {
            latest: submitted.row,
            ..task.clone()
        };
        self.finish(&cancelled).await
    }

    /// Returns where a run of a task is.
    pub(super) async fn status_of(&self, row: &RunRow) -> ApiResult<TaskStatus> {
        let status = |state: TaskState, message: Vec<TaskPart>| TaskStatus {
            state,
            message,
            result: Vec::new(),
            values: Json::Null,
        };
        match row.status {
            RunStatus::Pending => return Ok(status(TaskState::Submitted, Vec::new())),
            RunStatus::Running => return Ok(status(TaskState::Working, Vec::new())),
            RunStatus::Success if row.metadata[KIND] == CANCELLATION => {
                return Ok(status(TaskState::Canceled, Vec::new()));
            }
            _ => {}
        }
        Ok(match result_of(&self.app, &self.graph, row).await? {
            RunResult::Finished(values) => TaskStatus {
                result: result_parts(&self.graph, &values),
                values,
                ..status(TaskState::Completed, Vec::new())
            },
            RunResult::Waiting { values, interrupts } => {
                let questions: Vec<String> = interrupts.iter().map(question_of).collect();
                let message = vec![
                    TaskPart::Text(questions.join("\n")),
                    TaskPart::Data(json!({ "interrupts": interrupts })),
                ];
                TaskStatus {
                    values,
                    ..status(TaskState::InputRequired, message)
                }
            }
            RunResult::Cancelled => status(TaskState::Canceled, Vec::new()),
            RunResult::Failed { error, message } => {
                let text = format!("{error}: {message}");
                status(TaskState::Failed, vec![TaskPart::Text(text)])
            }
        })
    }

    /// Returns a task as clients read it, with at most this many messages of its conversation.
    pub(super) async fn show(&self, task: &AgentTask, history: Option<usize>) -> ApiResult<Json> {
        let status = self.status_of(&task.latest).await?;
        let mut shown = json!({
            "id": task.id(),
            "contextId": task.context,
            "status": self.show_status(&task.latest, &status),
        });
        if !status.result.is_empty() {
            shown["artifacts"] = json!([self.artifact(&status.result)]);
        }
        if let Some(length) = history.filter(|length| *length > 0) {
            shown["history"] = self.history(&status.values, length);
        }
        Ok(self.dialect.task(shown))
    }

    pub(super) fn show_status(&self, row: &RunRow, status: &TaskStatus) -> Json {
        let mut shown = json!({
            "state": self.dialect.state(status.state),
            "timestamp": wire::time(row.updated),
        });
        if !status.message.is_empty() {
            let id = format!("{}-status", wire::uuid(row.id.to_bytes()));
            shown["message"] = self.dialect.message(&id, Speaker::Agent, &status.message);
        }
        shown
    }

    /// Returns the one artifact of a task.
    pub(super) fn artifact(&self, parts: &[TaskPart]) -> Json {
        json!({ "artifactId": "result", "name": "result", "parts": self.dialect.parts(parts) })
    }

    fn history(&self, values: &Json, length: usize) -> Json {
        let messages = message_channel(&self.graph).and_then(|channel| values[channel].as_array());
        let shown = messages.into_iter().flatten().filter_map(|message| {
            let role = match message["type"].as_str() {
                Some("human") => Speaker::User,
                Some("ai") => Speaker::Agent,
                _ => return None,
            };
            let id = message["id"].as_str().unwrap_or_default();
            let parts = [TaskPart::Text(text_of(message))];
            Some(self.dialect.message(id, role, &parts))
        });
        let shown: Vec<Json> = shown.collect();
        let from = shown.len().saturating_sub(length);
        Json::Array(shown[from..].to_vec())
    }
}

/// Returns the result of a task: what the agent said last, or else its state.
fn result_parts(graph: &Definition, values: &Json) -> Vec<TaskPart> {
    let messages = message_channel(graph).and_then(|channel| values[channel].as_array());
    let last = messages.and_then(|messages| messages.last());
    let last = last.filter(|message| message["type"] == "ai").map(text_of);
    match last.filter(|text| !text.is_empty()) {
        Some(text) => vec![TaskPart::Text(text)],
        None => vec![TaskPart::Data(values.clone())],
    }
}

#[test]
fn only_the_name_of_a_task_is_read() {
    let name = "0190a6b2-0000-7000-8000-00000000000a:0190a6b2-0000-7000-8000-00000000000b";
    assert!(TaskName::parse(name).is_ok());
    for text in [
        "",
        ":",
        "a:b",
        "0190a6b2-0000-7000-8000-00000000000a",
        &name.repeat(2),
    ] {
        assert_eq!(
            TaskName::parse(text).unwrap_err().code,
            TASK_NOT_FOUND,
            "{text}"
        );
    }
}
