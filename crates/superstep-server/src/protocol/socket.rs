//! The thread protocol over a WebSocket: commands and subscriptions as frames, events as frames.

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value as Json, json};

use crate::App;
use crate::auth::{self, Credential};
use crate::caller::{Caller, ThreadPath};
use crate::error::ApiResult;
use crate::permission::Permission;
use crate::protocol::commands::CommandRunner;
use crate::protocol::filter::FilterBody;
use crate::protocol::pump::{EventPump, ProtocolEvent};
use crate::protocol::reply::{CommandError, CommandResult, ProtocolCommand};
use crate::request_scope::RequestScope;
use crate::stream::sse;

/// Opens a socket.
pub(super) async fn open(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread): ThreadPath,
    upgrade: WebSocketUpgrade,
) -> ApiResult<Response> {
    caller.claim_thread(&app, &thread).await?;
    let runner = CommandRunner {
        app,
        caller,
        thread,
        key: None,
    };
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX);
    // The request is open as long as its socket is.
    let scope = RequestScope::current();
    Ok(upgrade.on_upgrade(move |socket| RequestScope::within(scope, serve(socket, runner))))
}

/// Serves a socket until its client closes it. If the server shuts down, the connection breaks without a closing handshake,
/// because clients do not reconnect after one.
async fn serve(mut socket: WebSocket, runner: CommandRunner) {
    let mut connection = Connection {
        runner,
        pump: None,
        subscriptions: 0,
    };
    let mut heartbeat = sse::heartbeat();
    let has_credentials = connection.runner.caller.credential != Credential::None;
    let mut check = tokio::time::interval(auth::CHECKED_EVERY);
    loop {
        let sent = tokio::select! {
            received = socket.recv() => match received {
                Some(Ok(Message::Text(text))) => {
                    let reply = connection.reply(text.as_str().as_bytes()).await;
                    socket.send(frame(&reply)).await
                }
                Some(Ok(Message::Binary(bytes))) => {
                    let reply = connection.reply(&bytes).await;
                    socket.send(frame(&reply)).await
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            },
            event = next_event(&mut connection.pump) => match event {
                Some(event) => socket.send(frame(&event.envelope)).await,
                None => return,
            },
            _ = check.tick(), if has_credentials => match connection.is_accepted().await {
                true => Ok(()),
                false => return,
            },
            _ = heartbeat.tick() => socket.send(Message::Ping(Vec::new().into())).await,
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn next_event(pump: &mut Option<EventPump>) -> Option<ProtocolEvent> {
    match pump {
        Some(pump) => pump.next().await,
        None => std::future::pending().await,
    }
}

fn frame(json: &Json) -> Message {
    Message::text(json.to_string())
}

/// One client's socket.
struct Connection {
    runner: CommandRunner,
    /// The events of the thread; `None` before the first subscription.
    pump: Option<EventPump>,
    /// Number of subscriptions that were made.
    subscriptions: u64,
}

impl Connection {
    /// Whether the credentials of the caller are still accepted. A store that does not answer says nothing about them.
    async fn is_accepted(&self) -> bool {
        match auth::check_again(&self.runner.app, &self.runner.caller).await {
            Ok(()) => true,
            Err(error) => error.status != StatusCode::UNAUTHORIZED,
        }
    }

    /// Executes a command, and returns the reply. It is sent before the events that it asks for.
    async fn reply(&mut self, text: &[u8]) -> Json {
        let command = match ProtocolCommand::read(text) {
            Ok(command) => command,
            Err(error) => return error.reply(None),
        };
        let executed = match command.method.as_str() {
            "subscription.subscribe" => self.subscribe(&command).await,
            "subscription.unsubscribe" => self.unsubscribe(&command).await,
            _ => return self.runner.reply(&command).await,
        };
        match executed {
            Ok(result) => result.reply(command.id),
            Err(error) => error.reply(Some(command.id)),
        }
    }

    async fn subscribe(
        &mut self,
        command: &ProtocolCommand,
    ) -> Result<CommandResult, CommandError> {
        self.runner.caller.require(Permission::Read)?;
        let body: FilterBody = serde_json::from_value(command.params.clone()).map_err(|error| {
            CommandError::invalid(format!("the parameters are not valid: {error}"))
        })?;
        let (filter, since) = body.read().map_err(CommandError::invalid)?;
        let (app, thread) = (&self.runner.app, &self.runner.thread);
        let id = format!("subscription-{}", self.subscriptions + 1);
        let mut result = json!({ "subscription_id": id });
        match &mut self.pump {
            Some(pump) => {
                let replayed = pump.subscribe(id, filter, since).await?;
                result["replayed_events"] = replayed.into();
            }
            None => {
                let mut pump = EventPump::open(app, thread, id, filter, since).await?;
                result["replayed_events"] = pump.take_past().into();
                self.pump = Some(pump);
            }
        }
        self.subscriptions += 1;
        let applied = app.feeds.settle(app, thread).await?;
        Ok(CommandResult { result, applied })
    }

    async fn unsubscribe(
        &mut self,
        command: &ProtocolCommand,
    ) -> Result<CommandResult, CommandError> {
        let id = command.text("subscription_id")?;
        let is_known = self.pump.as_mut().is_some_and(|pump| pump.unsubscribe(id));
        if !is_known {
            return Err(CommandError::new(
                "no_such_subscription",
                format!(
                    "there is no subscription `{}`",
                    superstep::__private::shorten(id)
                ),
            ));
        }
        let (app, thread) = (&self.runner.app, &self.runner.thread);
        let applied = app.feeds.settle(app, thread).await?;
        Ok(CommandResult {
            result: json!({}),
            applied,
        })
    }
}

/// Largest frame of a client: as large as the body of a request may be.
const MESSAGE_BYTES_MAX: usize = 32 * 1024 * 1024;
