//! Follows the runs of a call: reports what they do, asks the user of the client what they ask, and replies with the result.

use http::StatusCode;
use serde_json::{Map, Value as Json, json};
use superstep::ThreadId;
use superstep::registry::RunRow;
use tokio::sync::mpsc;

use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::feed::{FeedBody, FeedEvent, ToolChange};
use crate::follow::{RunEvents, RunItem, RunResult, question_of, result_of};
use crate::json_rpc::{RpcError, success};
use crate::mcp::call::{CallOutput, CancelSignal, ToolCall, cancelled};
use crate::mcp::elicitation::ElicitationForm;
use crate::mcp::session::ElicitationReply;
use crate::start::{
    Awaits, CommandBody, OnCompletion, RunBody, Submitted, ThreadTarget, discard, submit,
};
use crate::wire;

/// Runs a call to its end.
pub(super) struct CallRunner {
    call: ToolCall,
    out: mpsc::Sender<CallOutput>,
    cancel: Option<CancelSignal>,
    /// Number of notifications about the progress.
    steps: u64,
}

/// How a call ended.
enum CallEnd {
    Result(Json),
    Cancelled,
    /// The server shuts down.
    Broken,
}

/// How a run of a call ended.
enum CallRunEnd {
    Ended(Box<RunRow>),
    Cancelled,
    Broken,
}

/// What the user of the client said to the open interrupts.
enum UserAnswers {
    /// Everything was answered, by this caller.
    Given(Caller, Map<String, Json>),
    /// The answer cannot be read, for this reason.
    Unreadable(String),
    /// The user or the client does not answer now.
    Nothing,
    Cancelled,
}

impl CallRunner {
    pub(super) fn new(
        call: ToolCall,
        out: mpsc::Sender<CallOutput>,
        cancel: Option<CancelSignal>,
    ) -> Self {
        Self {
            call,
            out,
            cancel,
            steps: 0,
        }
    }

    /// Runs the call, and sends the reply.
    pub(super) async fn run(mut self) {
        let output = match self.execute().await {
            Ok(CallEnd::Result(result)) => CallOutput::Reply(success(&self.call.id, result)),
            Ok(CallEnd::Cancelled) => CallOutput::Cancelled,
            Ok(CallEnd::Broken) => return,
            Err(error) => CallOutput::Reply(error.reply(Some(&self.call.id))),
        };
        // A client that has gone away reads nothing.
        let _ = self.out.send(output).await;
    }

    async fn execute(&mut self) -> Result<CallEnd, RpcError> {
        let call = &self.call;
        let body = RunBody {
            assistant_id: wire::uuid(call.assistant.id.to_bytes()),
            input: Some(call.arguments.clone()),
            on_completion: Some(OnCompletion::Keep),
            ..RunBody::default()
        };
        let target = ThreadTarget::Temporary;
        let Submitted {
            mut row,
            thread,
            graph,
            ..
        } = match submit(&call.app, &call.caller, target, body, Awaits::Events).await {
            Ok(submitted) => submitted,
            // The model that wrote the arguments can correct them.
            Err(error) if is_refusal(&error) => {
                return Ok(CallEnd::Result(text_result(&error.detail, true)));
            }
            Err(error) => return Err(error.into()),
        };
        let result = loop {
            let ended = match self.follow(&row).await? {
                CallRunEnd::Ended(ended) => ended,
                CallRunEnd::Cancelled => {
                    self.cancel_run(&row).await;
                    return Ok(CallEnd::Cancelled);
                }
                CallRunEnd::Broken => return Ok(CallEnd::Broken),
            };
            break match result_of(&self.call.app, &graph, &ended).await? {
                RunResult::Finished(values) => text_result(&values.to_string(), false),
                RunResult::Failed { error, message } => {
                    text_result(&format!("{error}: {message}"), true)
                }
                RunResult::Cancelled => text_result("the run was cancelled", true),
                RunResult::Waiting { interrupts, .. } => {
                    match self.resume(&thread, &interrupts).await? {
                        ResumeOutcome::Run(next) => {
                            row = *next;
                            continue;
                        }
                        ResumeOutcome::Waits => {
                            // The thread stays, because it waits.
                            return Ok(CallEnd::Result(waiting_result(&ended, &interrupts)));
                        }
                        ResumeOutcome::Cancelled => {
                            discard(&self.call.app, &thread).await;
                            return Ok(CallEnd::Cancelled);
                        }
                    }
                }
            };
        };
        discard(&self.call.app, &thread).await;
        Ok(CallEnd::Result(result))
    }

    async fn follow(&mut self, row: &RunRow) -> ApiResult<CallRunEnd> {
        let mut events = RunEvents::of(&self.call.app, row).await?;
        loop {
            let item = tokio::select! {
                item = events.next() => item,
                () = cancelled(&mut self.cancel) => return Ok(CallRunEnd::Cancelled),
            };
            match item {
                RunItem::Event(event) => self.report(&event),
                RunItem::Ended(Some(row)) => return Ok(CallRunEnd::Ended(row)),
                RunItem::Ended(None) => return Err(ApiError::no_run()),
                RunItem::Broken => return Ok(CallRunEnd::Broken),
            }
        }
    }

    /// Cancels the run, and deletes its thread: there is nothing that the client could read.
    async fn cancel_run(&self, row: &RunRow) {
        let app = &self.call.app;
        match app.queue.cancel(row.thread.tenant(), row.id).await {
            Ok(_) => discard(app, &row.thread).await,
            Err(error) => tracing::warn!(run = %row.id, ?error, "a run was not cancelled"),
        }
    }

    /// Tells the client what begins.
    fn report(&mut self, event: &FeedEvent) {
        let Some(token) = &self.call.progress_token else {
            return;
        };
        let message = match &event.body {
            FeedBody::TaskStarted(task) if event.namespace.is_root() => {
                format!("node {}", task.origin.node)
            }
            FeedBody::Tool(tool) if matches!(tool.change, ToolChange::Started { .. }) => {
                format!("tool {}", tool.name)
            }
            _ => return,
        };
        self.steps += 1;
        let notification = json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": { "progressToken": token, "progress": self.steps, "message": message },
        });
        // A client that reads slowly misses some of them; what counts is the reply.
        let _ = self.out.try_send(CallOutput::Message(notification));
    }

    /// Asks the user of the client, if it can, and resumes the thread with the answers.
    async fn resume(&mut self, thread: &ThreadId, interrupts: &[Json]) -> ApiResult<ResumeOutcome> {
        if !self.call.asks() {
            return Ok(ResumeOutcome::Waits);
        }
        let mut problem = None;
        for _ in 0..ASKED_MAX {
            let (caller, answers) = match self.ask(interrupts, problem.take()).await {
                UserAnswers::Given(caller, answers) => (caller, answers),
                UserAnswers::Unreadable(why) => {
                    problem = Some(why);
                    continue;
                }
                UserAnswers::Nothing => return Ok(ResumeOutcome::Waits),
                UserAnswers::Cancelled => return Ok(ResumeOutcome::Cancelled),
            };
            let body = RunBody {
                assistant_id: wire::uuid(self.call.assistant.id.to_bytes()),
                command: Some(CommandBody {
                    resume: Some(Json::Object(answers)),
                    ..CommandBody::default()
                }),
                ..RunBody::default()
            };
            let app = &self.call.app;
            // Before the run is submitted, so that its feed is complete.
            app.feeds.settle(app, thread).await?;
            let target = ThreadTarget::Thread(thread.clone());
            match submit(app, &caller, target, body, Awaits::Events).await {
                Ok(submitted) => return Ok(ResumeOutcome::Run(Box::new(submitted.row))),
                Err(error) if is_refusal(&error) => problem = Some(error.detail),
                Err(error) => return Err(error),
            }
        }
        Ok(ResumeOutcome::Waits)
    }

    async fn ask(&mut self, interrupts: &[Json], problem: Option<String>) -> UserAnswers {
        let mut answers = Map::new();
        let mut answered_by = self.call.caller.clone();
        for interrupt in interrupts {
            let form = ElicitationForm::of(interrupt, self.call.form_fields);
            let (caller, result) = match self.elicit(&form, problem.as_deref()).await {
                FormReply::Reply(caller, ElicitationReply::Result(result)) => (caller, result),
                FormReply::Reply(_, ElicitationReply::Failed) | FormReply::Gone => {
                    return UserAnswers::Nothing;
                }
                FormReply::Cancelled => return UserAnswers::Cancelled,
            };
            let answer = match form.read(&result) {
                Ok(Some(answer)) => answer,
                Ok(None) => return UserAnswers::Nothing,
                Err(why) => return UserAnswers::Unreadable(why),
            };
            let id = interrupt["id"].as_str().unwrap_or_default();
            answers.insert(id.to_owned(), answer);
            answered_by = caller;
        }
        match answers.is_empty() {
            // A breakpoint: there is nothing to answer.
            true => UserAnswers::Nothing,
            false => UserAnswers::Given(answered_by, answers),
        }
    }

    /// Sends one form to the client, and waits for its reply for as long as the client is there.
    async fn elicit(&mut self, form: &ElicitationForm<'_>, problem: Option<&str>) -> FormReply {
        let Some(session) = &self.call.session else {
            return FormReply::Gone;
        };
        let calls = &self.call.app.mcp;
        let (id, replied) = calls.ask(&self.call.caller, session);
        let request = json!({
            "jsonrpc": "2.0",
            "id": id,
            "method": "elicitation/create",
            "params": { "message": form.message(problem), "requestedSchema": form.schema() },
        });
        if self.out.send(CallOutput::Message(request)).await.is_err() {
            calls.withdraw(&id);
            return FormReply::Gone;
        }
        let elicited = tokio::select! {
            reply = replied => match reply {
                Ok((caller, reply)) => FormReply::Reply(caller, reply),
                Err(_) => FormReply::Gone,
            },
            () = self.out.closed() => FormReply::Gone,
            () = cancelled(&mut self.cancel) => FormReply::Cancelled,
        };
        calls.withdraw(&id);
        elicited
    }
}

/// What a client did with a form.
enum FormReply {
    Reply(Caller, ElicitationReply),
    /// The client went away.
    Gone,
    Cancelled,
}

/// What became of a thread that waits.
enum ResumeOutcome {
    Run(Box<RunRow>),
    /// It still waits.
    Waits,
    Cancelled,
}

/// Whether the caller can correct what was refused.
fn is_refusal(error: &ApiError) -> bool {
    matches!(
        error.status,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
    )
}

fn text_result(text: &str, is_error: bool) -> Json {
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

/// Returns the result of a call whose run waits for answers.
fn waiting_result(row: &RunRow, interrupts: &[Json]) -> Json {
    let thread = row.thread.name();
    let questions: Vec<String> = interrupts.iter().map(question_of).collect();
    let text = format!(
        "The run waits for an answer on thread {thread}. It asks: {}",
        questions.join("\n")
    );
    let mut result = text_result(&text, false);
    result["structuredContent"] = json!({
        "status": "waiting",
        "thread_id": thread,
        "run_id": wire::uuid(row.id.to_bytes()),
        "interrupts": interrupts,
    });
    result
}

/// How often the user is asked if the answers do not fit.
const ASKED_MAX: usize = 3;
