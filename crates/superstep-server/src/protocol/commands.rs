//! Commands of the thread protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use superstep::ThreadId;
use superstep::checkpoint::ThreadRow;
use superstep::graph::Definition;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::feed::{FeedBody, Namespace, RunStop, SubgraphEnd, split_segment};
use crate::idempotency::CreationKey;
use crate::permission::Permission;
use crate::protocol::reply::{CommandError, CommandResult, ProtocolCommand};
use crate::start::{Awaits, RunBody, Submitted, ThreadTarget, submit};
use crate::wire::CheckpointId;
use crate::{App, audit, history, thread, wire};

/// Result of a command.
type Executed = Result<CommandResult, CommandError>;

/// Executes commands of one caller on one thread.
pub(super) struct CommandRunner {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) thread: ThreadId,
    /// Key of the request that the command came with.
    pub(super) key: Option<CreationKey>,
}

impl CommandRunner {
    /// Executes a command, and returns the reply.
    pub(super) async fn reply(&self, command: &ProtocolCommand) -> Json {
        match self.execute(command).await {
            Ok(result) => result.reply(command.id),
            Err(error) => error.reply(Some(command.id)),
        }
    }

    async fn execute(&self, command: &ProtocolCommand) -> Executed {
        self.caller.require_any(needs(&command.method))?;
        // The routes of requests are recorded; those of a socket's commands are not known there.
        let changing = ["run.start", "input.respond", "input.inject", "state.fork"];
        let changing = changing.into_iter().find(|name| *name == command.method);
        if let Some(name) = changing {
            audit::record_command(&self.app, &self.caller, &self.thread, name).await?;
        }
        match command.method.as_str() {
            "run.start" => self.start_run(command).await,
            "input.respond" => self.respond(command).await,
            "input.inject" => self.inject(command).await,
            "agent.getTree" => self.tree().await,
            "state.get" => self.state(command).await,
            "state.listCheckpoints" => self.checkpoints(command).await,
            "state.fork" => self.fork(command).await,
            "subscription.subscribe" | "subscription.unsubscribe" => Err(CommandError::new(
                "not_supported",
                "subscriptions are made over a WebSocket, or with a request to `stream/events`",
            )),
            "subscription.reconnect" => Err(CommandError::new(
                "not_supported",
                "subscribe again with the `since` of the last event",
            )),
            unknown => Err(CommandError::new(
                "unknown_command",
                format!(
                    "unknown command `{}`",
                    superstep::__private::shorten(unknown)
                ),
            )),
        }
    }

    /// Starts a run. If the thread waits for answers, the input is the answer.
    async fn start_run(&self, command: &ProtocolCommand) -> Executed {
        let assistant = command.text("assistant_id")?;
        let input = command.param("input");
        let mut body = run_body(assistant, command);
        if let Some(input) = input {
            let open = wire::open_interrupts(&self.app, &self.thread, None).await?;
            match open.is_empty() {
                true => body.insert("input".to_owned(), input.clone()),
                false => body.insert("command".to_owned(), json!({ "resume": input })),
            };
        }
        self.submit(
            body,
            |submitted| json!({ "run_id": wire::uuid(submitted.row.id.to_bytes()) }),
        )
        .await
    }

    /// Answers interrupts, one or several, and resumes the thread.
    async fn respond(&self, command: &ProtocolCommand) -> Executed {
        let answers = answers(command)?;
        let row = self.row().await?;
        let open = wire::open_interrupts(&self.app, &self.thread, None).await?;
        for id in answers.keys() {
            if !open.iter().any(|open| open.interrupt.id.to_string() == *id) {
                return Err(CommandError::new(
                    "no_such_interrupt",
                    format!(
                        "interrupt `{}` is not open",
                        superstep::__private::shorten(id)
                    ),
                ));
            }
        }
        let mut resumed = json!({ "resume": answers });
        for name in ["update", "goto"] {
            if let Some(value) = command.param(name) {
                resumed[name] = value.clone();
            }
        }
        let mut body = run_body(&assistant_of(&row), command);
        body.insert("command".to_owned(), resumed);
        self.submit(body, |_| json!({})).await
    }

    /// Adds a message of a person to the conversation: a run that begins when those before it have ended.
    async fn inject(&self, command: &ProtocolCommand) -> Executed {
        if !command.namespace()?.is_empty() {
            return Err(no_namespace("messages can be added to the root graph only"));
        }
        let message = command
            .param("message")
            .filter(|message| message.is_object());
        let message =
            message.ok_or_else(|| CommandError::invalid("`input.inject` needs `message`"))?;
        let row = self.row().await?;
        let open = wire::open_interrupts(&self.app, &self.thread, None).await?;
        if !open.is_empty() {
            return Err(CommandError::invalid(
                "the thread waits for answers; send them with `input.respond`",
            ));
        }
        let mut body = run_body(&assistant_of(&row), command);
        body.insert("input".to_owned(), json!({ "messages": [message] }));
        self.submit(body, |_| json!({})).await
    }

    async fn fork(&self, command: &ProtocolCommand) -> Executed {
        let checkpoint = command.text("checkpoint_id")?;
        if CheckpointId::parse(&self.thread, checkpoint).is_none() {
            return Err(no_checkpoint(checkpoint));
        }
        let row = self.row().await?;
        let mut body = run_body(&assistant_of(&row), command);
        body.insert("checkpoint_id".to_owned(), checkpoint.into());
        if let Some(input) = command.param("input") {
            body.insert("input".to_owned(), input.clone());
        }
        self.submit(body, |submitted| {
            json!({
                "run_id": wire::uuid(submitted.row.id.to_bytes()),
                "thread_id": submitted.thread.name(),
            })
        })
        .await
    }

    /// Submits a run. The reply names the newest event before it: a client that continues from there sees the whole run.
    async fn submit(
        &self,
        body: Map<String, Json>,
        result: impl FnOnce(&Submitted) -> Json,
    ) -> Executed {
        let mut body: RunBody = serde_json::from_value(Json::Object(body)).map_err(|error| {
            CommandError::invalid(format!("the parameters are not valid: {error}"))
        })?;
        body.creation_key.clone_from(&self.key);
        let applied = self.app.feeds.settle(&self.app, &self.thread).await?;
        let target = ThreadTarget::Thread(self.thread.clone());
        let submitted = submit(&self.app, &self.caller, target, body, Awaits::Events).await?;
        Ok(CommandResult {
            result: result(&submitted),
            applied,
        })
    }

    /// Returns the graphs that the active run is in, or that the last one was in.
    async fn tree(&self) -> Executed {
        let mut events = self
            .app
            .feeds
            .of_thread(&self.app, &self.thread, None)
            .await?;
        let mut phases: BTreeMap<Namespace, &'static str> = BTreeMap::new();
        while let Some(event) = events.next_past().await.map_err(ApiError::from)? {
            let phase = match &event.body {
                FeedBody::RunBegan => "running",
                FeedBody::SubgraphBegan { .. } => "started",
                FeedBody::SubgraphEnded(SubgraphEnd::Completed)
                | FeedBody::Stopped(RunStop::Finished) => "completed",
                FeedBody::SubgraphEnded(SubgraphEnd::Interrupted)
                | FeedBody::Stopped(RunStop::Paused) => "interrupted",
                FeedBody::SubgraphEnded(SubgraphEnd::Failed) | FeedBody::Stopped(_) => "failed",
                _ => continue,
            };
            phases.insert(event.namespace.clone(), phase);
        }
        if phases.is_empty() {
            return Err(CommandError::no_run("no run has begun on this thread"));
        }
        let graph = events.graph();
        let name = graph.as_ref().map_or("", |graph| graph.name());
        let tree = branch(&phases, &Namespace::default(), name);
        Ok(CommandResult {
            result: json!({ "tree": tree }),
            applied: events.last(),
        })
    }

    async fn state(&self, command: &ProtocolCommand) -> Executed {
        let (row, graph) = self.graph().await?;
        let namespace = command.namespace()?.join("|");
        let newest = history::newest(&self.app, &graph, &row.thread).await?;
        let mut values = match (&newest, namespace.is_empty()) {
            (Some(newest), true) => wire::values(&graph, &newest.state.values),
            (None, true) => json!({}),
            (_, false) => self.subgraph_values(&graph, &namespace).await?,
        };
        if let (Some(keys), Some(fields)) = (command.param("keys"), values.as_object_mut()) {
            let keys = keys
                .as_array()
                .ok_or_else(|| CommandError::invalid("`keys` must be a list of names"))?;
            fields.retain(|name, _| keys.iter().any(|key| key.as_str() == Some(name.as_str())));
        }
        let mut result = json!({ "values": values });
        if let Some(newest) = newest {
            let id = newest.id.to_uuid(&self.thread);
            result["checkpoint"] = json!({ "id": id, "ns": namespace });
        }
        let applied = self.app.feeds.settle(&self.app, &self.thread).await?;
        Ok(CommandResult { result, applied })
    }

    async fn subgraph_values(
        &self,
        graph: &Arc<Definition>,
        namespace: &str,
    ) -> Result<Json, CommandError> {
        let subgraphs = self
            .app
            .runtime
            .subgraphs_of(graph, &self.thread, None)
            .await;
        let subgraphs = subgraphs.map_err(ApiError::from)?;
        let mut subgraphs = subgraphs.iter();
        let found = subgraphs.find(|found| wire::namespace(&found.frame) == namespace);
        let found = found.and_then(|found| Some((graph.at(&found.frame)?, found)));
        match found {
            Some((graph, found)) => Ok(wire::values(&graph, &found.values)),
            None => Err(no_namespace("the thread is not inside of such a subgraph")),
        }
    }

    async fn checkpoints(&self, command: &ProtocolCommand) -> Executed {
        if !command.namespace()?.is_empty() {
            return Err(no_namespace("checkpoints are those of the root graph"));
        }
        let (row, graph) = self.graph().await?;
        let limit = command
            .param("limit")
            .and_then(Json::as_u64)
            .unwrap_or(LISTED);
        let limit = usize::try_from(limit.clamp(1, LISTED_MAX)).unwrap_or(1);
        let before = match command.param("before").and_then(Json::as_str) {
            Some(text) => {
                let read = CheckpointId::parse(&self.thread, text);
                Some(read.ok_or_else(|| no_checkpoint(text))?)
            }
            None => None,
        };
        let page = history::read(&self.app, &graph, &row.thread, before, limit, |_| true).await?;
        let summary = |checkpoint: &history::Checkpoint| {
            json!({
                "id": checkpoint.id.to_uuid(&self.thread),
                "timestamp": wire::time(checkpoint.state.at),
                "step": checkpoint.step,
                "metadata": { "source": checkpoint.source },
            })
        };
        let listed: Vec<Json> = page.checkpoints.iter().map(summary).collect();
        let applied = self.app.feeds.settle(&self.app, &self.thread).await?;
        Ok(CommandResult {
            result: json!({ "checkpoints": listed }),
            applied,
        })
    }

    async fn row(&self) -> Result<ThreadRow, CommandError> {
        let row = thread::find(&self.app, &self.thread).await?;
        row.ok_or_else(|| CommandError::no_run("nothing has run on this thread; call `run.start`"))
    }

    async fn graph(&self) -> Result<(ThreadRow, Arc<Definition>), CommandError> {
        let row = self.row().await?;
        let graph = thread::graph_of(&self.app, &row).cloned();
        let graph = graph.ok_or_else(|| CommandError::no_run("the thread has no graph yet"))?;
        Ok((row, graph))
    }
}

/// Returns the permissions of which a command needs one. Those that make runs are checked again by what they make.
fn needs(method: &str) -> &'static [Permission] {
    match method {
        "run.start" => &[Permission::Run, Permission::Answer],
        "input.respond" => &[Permission::Answer],
        "input.inject" | "state.fork" => &[Permission::Run],
        // What reads, and what is not known.
        _ => &[Permission::Read],
    }
}

/// Returns the body of a run, as if it had been requested in the usual way. It is streamed in the modes of the protocol,
/// whichever way it is joined.
fn run_body(assistant: &str, command: &ProtocolCommand) -> Map<String, Json> {
    let mut body = Map::new();
    let mut insert = |name: &str, value: Json| body.insert(name.to_owned(), value);
    insert("assistant_id", assistant.into());
    insert("if_not_exists", "create".into());
    insert(
        "stream_mode",
        json!(["values", "updates", "messages-tuple", "custom", "tasks"]),
    );
    insert("stream_subgraphs", true.into());
    insert("stream_resumable", true.into());
    for name in ["config", "metadata"] {
        if let Some(value) = command.param(name).filter(|value| value.is_object()) {
            insert(name, value.clone());
        }
    }
    let strategy = command
        .param("multitaskStrategy")
        .or_else(|| command.param("multitask_strategy"));
    // A strategy that is not known is the default one, as on other servers.
    if let Some(strategy) = strategy.and_then(Json::as_str)
        && ["enqueue", "reject", "interrupt", "rollback"].contains(&strategy)
    {
        insert("multitask_strategy", strategy.into());
    }
    body
}

/// Returns the answers of a command by the ids of their interrupts.
fn answers(command: &ProtocolCommand) -> Result<Map<String, Json>, CommandError> {
    let read = |answer: &Json| -> Result<(String, Json), CommandError> {
        let id = answer.get("interrupt_id").and_then(Json::as_str);
        let id = id.ok_or_else(|| CommandError::invalid("an answer needs an `interrupt_id`"))?;
        let response = answer.get("response").cloned().unwrap_or_default();
        Ok((id.to_owned(), response))
    };
    let answers: Map<String, Json> = match command.param("responses") {
        Some(Json::Array(several)) => several
            .iter()
            .map(read)
            .collect::<Result<_, CommandError>>()?,
        Some(_) => return Err(CommandError::invalid("`responses` must be a list")),
        None => [read(&command.params)?].into_iter().collect(),
    };
    match answers.is_empty() {
        true => Err(CommandError::invalid(
            "`input.respond` needs at least one response",
        )),
        false => Ok(answers),
    }
}

/// Returns the assistant that last ran on a thread, or else its graph, whose default assistant is meant.
fn assistant_of(row: &ThreadRow) -> String {
    let named = row.metadata.get("assistant_id").and_then(Json::as_str);
    named.unwrap_or(thread::graph_name(row)).to_owned()
}

/// Returns a graph of the run with those inside of it.
fn branch(phases: &BTreeMap<Namespace, &'static str>, namespace: &Namespace, name: &str) -> Json {
    let is_child =
        |inner: &&Namespace| inner.parent().is_some_and(|(outer, _)| outer == *namespace);
    let children = phases.keys().filter(is_child).map(|inner| {
        let segment = inner.segments().last().map_or("", String::as_str);
        branch(phases, inner, split_segment(segment).0)
    });
    let children: Vec<Json> = children.collect();
    let mut node = json!({
        "namespace": namespace.segments(),
        "status": phases.get(namespace),
        "graph_name": name,
    });
    if !children.is_empty() {
        node["children"] = children.into();
    }
    node
}

fn no_namespace(message: &str) -> CommandError {
    CommandError::new("no_such_namespace", message)
}

fn no_checkpoint(text: &str) -> CommandError {
    let text = superstep::__private::shorten(text);
    CommandError::new(
        "no_such_checkpoint",
        format!("checkpoint `{text}` does not exist"),
    )
}

/// Number of checkpoints that are listed if the client names none.
const LISTED: u64 = 10;
const LISTED_MAX: u64 = 1_000;
