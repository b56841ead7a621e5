//! Tools of MCP servers.
//!
//! A server is somebody else's program: what it says of its tools is read by the model, and what they do nobody can check.
//! So its list of tools is pinned: [`Server::tools`] gives them only if the [digest](Server::digest) of the list is the one
//! that was accepted, and the model is told what was accepted, whatever the server says later. Their class is
//! [`Class::Unsafe`](crate::Class::Unsafe) (the protocol knows no keys; ours goes along in `_meta` for servers that look), and their results
//! are [untrusted](superstep_core::Label::UNTRUSTED). Hints of the server about its tools are not believed; a caller that knows a
//! tool better says so:
//!
//! ```no_run
//! use superstep_agent::mcp::{Accepted, Server};
//!
//! # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::stdio("files", "mcp-files", ["--root", "/srv"], []).await?;
//! let tools = server.tools(&Accepted::digest("4be1…"))?;
//! let tools = tools.into_iter().map(|tool| match tool.name() {
//!     "files__read_file" => tool.read(),
//!     _ => tool,
//! });
//! # let _ = tools;
//! # Ok(())
//! # }
//! ```

mod answer;
#[doc(hidden)]
pub mod fuzzing;
mod http_client;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, MetaObject, PaginatedRequestParams, RequestMetaObject};
use rmcp::service::RunningService;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value as Json, json};
use superstep_core::Label;
use superstep_llm::{BoxFuture, Secret, ToolSpec};
use tokio::process::Command;

use self::http_client::{BoundedClient, too_large};
use crate::digest::{canonical, hash};
use crate::tool::{Tool, ToolCx, ToolError, ToolOutput};

/// A connection to an MCP server. It ends when this and all its tools are dropped.
#[derive(Clone)]
pub struct Server {
    name: String,
    client: Arc<Client>,
    tools: Vec<rmcp::model::Tool>,
    digest: String,
}

type Client = RunningService<RoleClient, ()>;

/// How much a server may send, and how long connecting to it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// One answer over HTTP, or one event of an answer in several; and the whole list of tools, over HTTP or not. In bytes.
    /// A line of a program over stdio has at most 16 MiB, whatever this says. Default: 16 MiB.
    pub answer_bytes_max: usize,
    /// From the beginning to the end of the list of tools. A call has the time limit of its tool. Default: two minutes, for
    /// some programs install themselves first.
    pub connect_time_max: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            answer_bytes_max: 16 * 1024 * 1024,
            connect_time_max: Duration::from_secs(120),
        }
    }
}

/// Which list of tools was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// The one with this digest.
    Digest(String),
    /// Whatever the server says now. For trying things out: a server that changes is not noticed.
    Anything,
}

impl Accepted {
    /// The list with this digest.
    pub fn digest(digest: impl Into<String>) -> Self {
        Self::Digest(digest.into())
    }
}

/// What can go wrong with a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// It was not reached.
    #[error("the MCP server `{server}` was not reached: {why}")]
    Unreachable {
        /// Which.
        server: String,
        /// What happened.
        why: String,
    },
    /// An answer, or the list of tools, is larger than the limit.
    #[error("the MCP server `{server}` sent too much: {}", too_large(*.bytes_max))]
    AnswerTooLarge {
        /// Which.
        server: String,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// Its tools are not those that were accepted.
    #[error(
        "the tools of the MCP server `{server}` are not those that were accepted ({accepted}): they are now {}; look at them, and accept {found} if they are what you want",
        .tools.join(", ")
    )]
    Changed {
        /// Which.
        server: String,
        /// The digest that was accepted.
        accepted: String,
        /// The digest of its list now.
        found: String,
        /// The names in its list now.
        tools: Vec<String>,
    },
}

impl McpError {
    /// The stable codes of all of them.
    pub const CODES: &'static [&'static str] =
        &["mcp-unreachable", "mcp-answer-too-large", "mcp-changed"];

    /// The stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "mcp-unreachable",
            Self::AnswerTooLarge { .. } => "mcp-answer-too-large",
            Self::Changed { .. } => "mcp-changed",
        }
    }
}

impl Server {
    /// Starts a program that speaks MCP over its input and output. It sees `PATH`, `HOME` and the variables given here, and
    /// no others: keys of ours are none of its business. It is killed when the connection ends.
    pub async fn stdio<'a>(
        name: &str,
        program: &str,
        args: impl IntoIterator<Item = &'a str>,
        env: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, McpError> {
        Self::stdio_within(&ServerLimits::default(), name, program, args, env).await
    }

    /// Starts a program as [`Server::stdio`] does, with limits other than the defaults.
    pub async fn stdio_within<'a>(
        limits: &ServerLimits,
        name: &str,
        program: &str,
        args: impl IntoIterator<Item = &'a str>,
        env: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, McpError> {
        let mut command = Command::new(program);
        command.args(args).env_clear().kill_on_drop(true);
        for inherited in ["PATH", "HOME"] {
            if let Some(value) = std::env::var_os(inherited) {
                command.env(inherited, value);
            }
        }
        command.envs(env);
        let transport =
            TokioChildProcess::new(command).map_err(|error| unreachable(name, &error))?;
        Self::over(name, transport, limits).await
    }

    /// Connects to a server over streamable HTTP. The token is sent as `Authorization: Bearer`.
    pub async fn http(name: &str, url: &str, token: Option<&Secret>) -> Result<Self, McpError> {
        Self::http_within(&ServerLimits::default(), name, url, token).await
    }

    /// Connects as [`Server::http`] does, with limits other than the defaults.
    pub async fn http_within(
        limits: &ServerLimits,
        name: &str,
        url: &str,
        token: Option<&Secret>,
    ) -> Result<Self, McpError> {
        let client = BoundedClient::new(limits.answer_bytes_max)
            .map_err(|error| unreachable(name, &error))?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        if let Some(token) = token {
            config = config.auth_header(token.expose());
        }
        let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
        let connected = Self::over(name, transport, limits).await;
        connected.map_err(|error| match client.has_cut() {
            true => answer_too_large(name, limits),
            false => error,
        })
    }

    async fn over<T, E, A>(
        name: &str,
        transport: T,
        limits: &ServerLimits,
    ) -> Result<Self, McpError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let connect = async {
            let client = ().serve(transport).await;
            let client = client.map_err(|error| unreachable(name, &error))?;
            let tools = list_tools(name, &client, limits).await?;
            Ok((client, tools))
        };
        let connected = tokio::time::timeout(limits.connect_time_max, connect).await;
        let (client, tools) = connected.map_err(|_| McpError::Unreachable {
            server: name.to_owned(),
            why: format!(
                "it was not ready after {} s; start it by hand and see what it waits for, or raise `ServerLimits::connect_time_max`",
                limits.connect_time_max.as_secs_f32()
            ),
        })??;
        Ok(Self {
            name: name.to_owned(),
            client: Arc::new(client),
            digest: digest_of(&tools),
            tools,
        })
    }

    /// A digest of everything that the server said of its tools when it was connected to.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Its tools, as `server__tool`, if they are those that were accepted.
    pub fn tools(&self, accepted: &Accepted) -> Result<Vec<Tool>, McpError> {
        if let Accepted::Digest(accepted) = accepted
            && *accepted != self.digest
        {
            return Err(McpError::Changed {
                server: self.name.clone(),
                accepted: accepted.clone(),
                found: self.digest.clone(),
                tools: self
                    .tools
                    .iter()
                    .map(|tool| tool.name.to_string())
                    .collect(),
            });
        }
        Ok(self.tools.iter().map(|tool| self.tool(tool)).collect())
    }

    fn tool(&self, tool: &rmcp::model::Tool) -> Tool {
        let spec = spec_of(&self.name, tool);
        let (client, name) = (self.client.clone(), tool.name.to_string());
        let call = move |args: Json, cx: ToolCx| -> BoxFuture<'static, _> {
            let (client, name) = (client.clone(), name.clone());
            Box::pin(async move { call(&client, name, args, &cx).await })
        };
        Tool::raw(spec, call).gives(Label::UNTRUSTED)
    }
}

/// Reads the list of tools page by page. A server may have pages without end.
async fn list_tools(
    name: &str,
    client: &Client,
    limits: &ServerLimits,
) -> Result<Vec<rmcp::model::Tool>, McpError> {
    let (mut tools, mut bytes) = (Vec::new(), 0);
    let mut page = PaginatedRequestParams::default();
    loop {
        let listed = client.list_tools(Some(page)).await;
        let listed = listed.map_err(|error| unreachable(name, &error))?;
        for tool in &listed.tools {
            bytes += serde_json::to_vec(tool).map_or(0, |json| json.len());
        }
        if bytes > limits.answer_bytes_max {
            return Err(answer_too_large(name, limits));
        }
        tools.extend(listed.tools);
        page = match listed.next_cursor {
            Some(next) => PaginatedRequestParams::default().with_cursor(Some(next)),
            None => return Ok(tools),
        };
    }
}

/// A tool of a server, as a model is told of it.
fn spec_of(server: &str, tool: &rmcp::model::Tool) -> ToolSpec {
    let described = tool.description.as_deref().or(tool.title.as_deref());
    ToolSpec {
        name: provider_name(server, &tool.name),
        description: described.unwrap_or(&tool.name).to_owned(),
        schema: Json::Object((*tool.input_schema).clone()),
    }
}

async fn call(
    client: &Client,
    tool: String,
    args: Json,
    cx: &ToolCx,
) -> Result<ToolOutput, ToolError> {
    let Json::Object(args) = args else {
        return Err(ToolError::failed("the arguments are not an object"));
    };
    let mut params = CallToolRequestParams::new(tool).with_arguments(args);
    let meta = json!({
        IDEMPOTENCY_KEY: cx.idempotency_key(),
        FINGERPRINT: cx.fingerprint(),
    });
    if let Json::Object(meta) = meta {
        params.meta = Some(RequestMetaObject(MetaObject(meta)));
    }
    answer::read(client.call_tool_once(params).await)
}

/// By these names a server finds the key of a call, and the digest of its arguments, in `_meta`.
pub const IDEMPOTENCY_KEY: &str = "superstep/idempotency-key";
/// See [`IDEMPOTENCY_KEY`].
pub const FINGERPRINT: &str = "superstep/fingerprint";

/// Names, descriptions, schemas, hints: all that a model or a person decides by, in whatever order they come.
fn digest_of(tools: &[rmcp::model::Tool]) -> String {
    let mut lines: Vec<_> = tools
        .iter()
        // A tool that cannot be written down gets a line that no other list has.
        .map(|tool| {
            serde_json::to_value(tool).map_or(tool.name.to_string(), |json| canonical(&json))
        })
        .collect();
    lines.sort();
    let lines: Vec<_> = ["superstep.mcp.v1"]
        .into_iter()
        .chain(lines.iter().map(String::as_str))
        .collect();
    hash(&lines)
}

/// Providers take fewer characters than MCP does.
fn provider_name(server: &str, tool: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || c == '-' || c == '_' {
        true => c,
        false => '_',
    };
    format!("{server}__{tool}")
        .chars()
        .map(plain)
        .take(64)
        .collect()
}

fn unreachable(server: &str, error: &dyn std::error::Error) -> McpError {
    McpError::Unreachable {
        server: server.to_owned(),
        why: error.to_string(),
    }
}

fn answer_too_large(server: &str, limits: &ServerLimits) -> McpError {
    McpError::AnswerTooLarge {
        server: server.to_owned(),
        bytes_max: limits.answer_bytes_max,
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}
