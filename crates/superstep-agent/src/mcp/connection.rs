//! The connection to a server: how it is made, when it is made again, and whether the server still offers the accepted tools.
//!
//! A call never goes to a server whose tools a person has not accepted. After a reconnect the whole list must be the accepted
//! one: the program may be another one now. Within a session a server may add tools and say so; then only the definition of
//! the called tool must be the accepted one, because the model never sees the others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool as ToolDefinition,
};
use rmcp::service::{RunningService, ServiceError};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use rmcp::{RoleClient, ServiceExt};
use serde::Serialize;
use superstep_core::__private::lock;
use superstep_llm::Secret;
use tokio::time::Instant;

use super::handler::Handler;
use super::http_client::BoundedClient;
use super::plain_text::plain;
use super::server_program::ServerProgram;
use super::{McpError, ServerLimits, answer_too_large, digest_of, failed, unreachable};

/// How to reach a server, kept to reach it again.
pub(super) enum Target {
    Program(ServerProgram),
    Http {
        url: String,
        token: Option<Secret>,
    },
    /// A server in the same process: returns the client's end of a new pipe, or `None` if the server cannot be reached.
    #[cfg(test)]
    Pipe(Box<dyn Fn() -> Option<tokio::io::DuplexStream> + Send + Sync>),
}

/// A server, and the current session with it. Opens a new session when the current one has ended.
pub(super) struct Connection {
    pub(super) name: String,
    pub(super) limits: ServerLimits,
    target: Target,
    /// The list of the first session. `Server::tools` has compared it with the accepted digest.
    pub(super) accepted: ToolList,
    /// Locked while a session is opened, so concurrent calls share one reconnect.
    current: tokio::sync::Mutex<Arc<Session>>,
    /// Held during a call, if the server may ask questions.
    turn: tokio::sync::Mutex<()>,
}

/// One session: from `initialize` until the transport closes.
pub(super) struct Session {
    pub(super) client: Client,
    /// The list as last read in this session.
    list: Mutex<Arc<ToolList>>,
    is_reopened: bool,
}

/// The tools of a server, as it defines them.
#[derive(Debug, Clone)]
pub(super) struct ToolList {
    pub(super) tools: Vec<ToolDefinition>,
    pub(super) digest: String,
}

impl Connection {
    /// Connects for the first time. Does not try again: a server that cannot be reached at startup is an error of the caller.
    pub(super) async fn open(
        name: &str,
        target: Target,
        limits: &ServerLimits,
    ) -> Result<Self, McpError> {
        let (client, list) = within(name, limits, Box::pin(open(name, &target, limits))).await?;
        let session = Session::new(client, list.clone(), false);
        Ok(Self {
            name: name.to_owned(),
            limits: limits.clone(),
            target,
            accepted: list,
            current: tokio::sync::Mutex::new(Arc::new(session)),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// Waits for other calls to end, if the server may ask questions: the protocol does not say which call a question belongs
    /// to, and a person must not see the question of another thread.
    pub(super) async fn turn(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match self.limits.questions_max {
            0 => None,
            _ => Some(self.turn.lock().await),
        }
    }

    /// Reads all pages of a list, within the time to connect.
    pub(super) async fn list<T: Serialize>(
        &self,
        listing: &Listing<T>,
    ) -> Result<Vec<T>, McpError> {
        let session = self.session().await?;
        let all = listing.read_all(&self.name, &session.client, &self.limits);
        within(&self.name, &self.limits, all).await
    }

    /// Returns a session that is open, whose list of tools is current: reconnects, or reads the list again, if needed.
    ///
    /// Fails with [`McpError::ToolsChanged`] if the server's tools are not the accepted ones after a reconnect.
    pub(super) async fn session(&self) -> Result<Arc<Session>, McpError> {
        // Each call that reconnects may take this long, and many may wait for the lock.
        let waited = tokio::time::timeout(self.limits.connect_time_max, self.current.lock()).await;
        let Ok(mut current) = waited else {
            return Err(not_ready(&self.name, &self.limits));
        };
        if current.is_closed() {
            *current = Arc::new(self.reopen().await?);
        }
        let changes = &current.client.service().list_changed;
        if changes.swap(false, Ordering::AcqRel) {
            let read = within(&self.name, &self.limits, async {
                list_tools(&self.name, &current.client, &self.limits).await
            });
            // If this fails or is cancelled, the next call must read the list.
            let mut unread = Unread(Some(changes));
            let list = read.await?;
            unread.0 = None;
            *lock(&current.list) = Arc::new(list);
        }
        let found = current.list();
        match current.is_reopened && found.digest != self.accepted.digest {
            true => Err(self.changed(&found)),
            false => Ok(current.clone()),
        }
    }

    /// Returns a session as [`Connection::session`] does, in which this tool has its accepted definition.
    pub(super) async fn session_for(&self, tool: &str) -> Result<Arc<Session>, McpError> {
        let session = self.session().await?;
        let found = session.list();
        match found.find(tool) == self.accepted.find(tool) {
            true => Ok(session),
            false => Err(self.changed(&found)),
        }
    }

    /// Opens a session in place of one that ended: several attempts, within the time that connecting may take.
    async fn reopen(&self) -> Result<Session, McpError> {
        let until = Instant::now() + self.limits.connect_time_max;
        let mut wait = RECONNECT_WAIT;
        let mut attempt = 1;
        loop {
            let opening = Box::pin(open(&self.name, &self.target, &self.limits));
            let opened = tokio::time::timeout_at(until, opening).await;
            let error = match opened {
                Ok(Ok((client, list))) => {
                    tracing::info!(server = self.name, attempt, "MCP server reconnected");
                    return Ok(Session::new(client, list, true));
                }
                Ok(Err(error)) => error,
                Err(_) => return Err(not_ready(&self.name, &self.limits)),
            };
            tracing::warn!(server = self.name, attempt, %error, "MCP server cannot be reached");
            let is_last = attempt >= RECONNECT_ATTEMPTS_MAX || Instant::now() + wait >= until;
            if is_last || matches!(error, McpError::AnswerTooLarge { .. }) {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
            attempt += 1;
        }
    }

    fn changed(&self, found: &ToolList) -> McpError {
        McpError::ToolsChanged {
            server: self.name.clone(),
            changes: self.accepted.changes_to(found),
            found: found.digest.clone(),
        }
    }
}

/// Notes that the list is still to be read, unless it is disarmed.
struct Unread<'a>(Option<&'a AtomicBool>);

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        if let Some(list_changed) = self.0 {
            list_changed.store(true, Ordering::Release);
        }
    }
}

impl Session {
    fn new(client: Client, list: ToolList, is_reopened: bool) -> Self {
        Self {
            client,
            list: Mutex::new(Arc::new(list)),
            is_reopened,
        }
    }

    fn list(&self) -> Arc<ToolList> {
        lock(&self.list).clone()
    }

    fn is_closed(&self) -> bool {
        self.client.is_transport_closed() || self.client.service().is_lost.load(Ordering::Acquire)
    }
}

impl ToolList {
    fn new(tools: Vec<ToolDefinition>) -> Self {
        let digest = digest_of(&tools);
        Self { tools, digest }
    }

    fn find(&self, tool: &str) -> Option<&ToolDefinition> {
        self.tools.iter().find(|listed| listed.name == tool)
    }

    /// Returns what changed from this list to another, for a person. The names are the server's text: cut, and not many.
    fn changes_to(&self, found: &Self) -> String {
        let mut changes = Vec::new();
        let mut note = |tool: &ToolDefinition, what: &str| {
            changes.push(format!("`{}` {what}", plain(&tool.name, NAME_CHARS_MAX)));
        };
        for tool in &self.tools {
            match found.find(&tool.name) {
                None => note(tool, "was removed"),
                Some(other) if other != tool => note(tool, "changed"),
                Some(_) => {}
            }
        }
        for tool in &found.tools {
            if self.find(&tool.name).is_none() {
                note(tool, "was added");
            }
        }
        let more = changes.len().saturating_sub(CHANGES_SHOWN_MAX);
        changes.truncate(CHANGES_SHOWN_MAX);
        match (more, changes.is_empty()) {
            // Two tools of one name: one of them changed.
            (_, true) => "tools of the same name changed".to_owned(),
            (0, _) => changes.join(", "),
            (more, _) => format!("{}, and {more} more", changes.join(", ")),
        }
    }
}

type Client = RunningService<RoleClient, Handler>;

/// Opens a session and reads the list of tools.
async fn open(
    name: &str,
    target: &Target,
    limits: &ServerLimits,
) -> Result<(Client, ToolList), McpError> {
    match target {
        Target::Program(program) => {
            let transport = program.start();
            let transport = transport.map_err(|error| unreachable(name, &error))?;
            open_over(name, transport, limits).await
        }
        Target::Http { url, token } => {
            let http = BoundedClient::new(limits.answer_bytes_max)
                .map_err(|error| unreachable(name, &error))?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                // Opens a session behind our back, with a server whose tools may be others by now.
                .reinit_on_expired_session(false);
            if let Some(token) = token {
                config = config.auth_header(token.expose());
            }
            let transport = StreamableHttpClientTransport::with_client(http.clone(), config);
            let opened = open_over(name, transport, limits).await;
            opened.map_err(|error| match http.has_cut() {
                true => answer_too_large(name, limits),
                false => error,
            })
        }
        #[cfg(test)]
        Target::Pipe(connect) => match connect() {
            Some(pipe) => open_over(name, pipe, limits).await,
            None => Err(unreachable(name, &std::io::Error::other("no pipe"))),
        },
    }
}

async fn open_over<T, E, A>(
    name: &str,
    transport: T,
    limits: &ServerLimits,
) -> Result<(Client, ToolList), McpError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let client = Handler::new(name, limits).serve(transport).await;
    let client = client.map_err(|error| unreachable(name, &error))?;
    let list = list_tools(name, &client, limits).await?;
    Ok((client, list))
}

async fn list_tools(
    name: &str,
    client: &Client,
    limits: &ServerLimits,
) -> Result<ToolList, McpError> {
    let listing = Listing {
        request: |page| ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page)),
        read: |result| match result {
            ServerResult::ListToolsResult(page) => Some((page.tools, page.next_cursor)),
            _ => None,
        },
    };
    let tools = listing.read_all(name, client, limits).await?;
    Ok(ToolList::new(tools))
}

/// Items of a list, and the cursor of the next page.
type Page<T> = (Vec<T>, Option<String>);

/// A list that a server sends in pages.
pub(super) struct Listing<T> {
    pub(super) request: fn(PaginatedRequestParams) -> ClientRequest,
    /// Returns the page; `None` if it is not one of this list.
    pub(super) read: fn(ServerResult) -> Option<Page<T>>,
}

impl<T: Serialize> Listing<T> {
    /// Reads all pages. Checks the size after each page, because a server may send pages without end.
    pub(super) async fn read_all(
        &self,
        name: &str,
        client: &Client,
        limits: &ServerLimits,
    ) -> Result<Vec<T>, McpError> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut page = PaginatedRequestParams::default();
        loop {
            let result = send(client, (self.request)(page)).await;
            let result = result.map_err(|error| failed(name, &error))?;
            let (listed, next) = (self.read)(result)
                .ok_or_else(|| failed(name, &ServiceError::UnexpectedResponse))?;
            for item in &listed {
                bytes += serde_json::to_vec(item).map_or(0, |json| json.len());
            }
            if bytes > limits.answer_bytes_max {
                return Err(answer_too_large(name, limits));
            }
            items.extend(listed);
            page = match next {
                Some(next) => PaginatedRequestParams::default().with_cursor(Some(next)),
                None => return Ok(items),
            };
        }
    }
}

/// Sends a request and waits for its result. Not one of `rmcp`'s methods for this: they may answer from a cache.
pub(super) async fn send(
    client: &Client,
    request: ClientRequest,
) -> Result<ServerResult, ServiceError> {
    let answered = client.send_request(request).await;
    note_lost(client, &answered);
    answered
}

/// Notes that the session is lost, if the error says so: the next request opens a new one. Returns whether it is.
pub(super) fn note_lost<T>(client: &Client, answered: &Result<T, ServiceError>) -> bool {
    let is_lost = answered.as_ref().is_err_and(is_undelivered);
    if is_lost {
        client.service().is_lost.store(true, Ordering::Release);
    }
    is_lost
}

/// Returns whether the server certainly did not get the request, or did not know the session it was sent in.
fn is_undelivered(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else {
        return false;
    };
    match error.error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::SessionExpired) => true,
        Some(StreamableHttpError::Client(error)) => error.is_connect(),
        _ => false,
    }
}

/// Limits the time of an exchange with a server to the time that connecting may take.
pub(super) async fn within<T>(
    name: &str,
    limits: &ServerLimits,
    work: impl Future<Output = Result<T, McpError>>,
) -> Result<T, McpError> {
    let done = tokio::time::timeout(limits.connect_time_max, work).await;
    done.unwrap_or_else(|_| Err(not_ready(name, limits)))
}

fn not_ready(name: &str, limits: &ServerLimits) -> McpError {
    McpError::Unreachable {
        server: name.to_owned(),
        why: format!(
            "it was not ready after {} s; start it by hand and see what it waits for, or raise `ServerLimits::connect_time_max`",
            limits.connect_time_max.as_secs_f32()
        ),
    }
}

/// Maximum number of attempts of one reconnect.
const RECONNECT_ATTEMPTS_MAX: u32 = 5;
/// Wait before the second attempt. Doubles each time.
const RECONNECT_WAIT: Duration = Duration::from_millis(100);
/// How much of a tool's name an error shows.
const NAME_CHARS_MAX: usize = 64;
/// How many changes an error lists.
const CHANGES_SHOWN_MAX: usize = 5;
