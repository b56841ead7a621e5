//! Tools of MCP servers.
//!
//! A server is a third party's program: the model reads what it says about its tools, and their effects cannot be checked. So
//! the list of tools is pinned: [`Server::tools`] returns them only if the [digest](Server::digest) of the list is the
//! accepted one, and the model keeps seeing the accepted descriptions, whatever the server says later. The tools have class
//! [`Class::Unsafe`](crate::Class::Unsafe) (the protocol has no idempotency keys; ours is sent in `_meta` for servers that
//! read it), and their results are labeled [untrusted](superstep_core::Label::UNTRUSTED). The server's hints about its tools
//! are ignored; a caller that knows a tool better declares its class:
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

/// A connection to an MCP server. Closes when this and all its tools are dropped.
#[derive(Clone)]
pub struct Server {
    name: String,
    client: Arc<Client>,
    tools: Vec<rmcp::model::Tool>,
    digest: String,
}

type Client = RunningService<RoleClient, ()>;

/// Limits on what a server may send, and on how long connecting to it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum size in bytes of one HTTP answer, or of one event of a streamed answer; also of the whole list of tools, over
    /// any transport. A line over stdio is limited to 16 MiB regardless. Default: 16 MiB.
    pub answer_bytes_max: usize,
    /// Maximum time to connect and read the list of tools. Calls have the timeout of their tool. Default: two minutes,
    /// because some programs install themselves first.
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

/// The list of tools that a person accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// Only the list with this digest.
    Digest(String),
    /// Whatever list the server sends now. For experiments: changes go unnoticed.
    Anything,
}

impl Accepted {
    /// Accepts only the list with this digest; see [`Server::digest`].
    pub fn digest(digest: impl Into<String>) -> Self {
        Self::Digest(digest.into())
    }
}

/// Error of an MCP server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// Connecting, or listing the tools, failed or timed out.
    #[error("the MCP server `{server}` was not reached: {why}")]
    Unreachable {
        /// Name of the server, as given by the caller.
        server: String,
        /// What failed.
        why: String,
    },
    /// An answer, or the list of tools, exceeds the limit.
    #[error("the MCP server `{server}` sent too much: {}", too_large(*.bytes_max))]
    AnswerTooLarge {
        /// Name of the server, as given by the caller.
        server: String,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// The list of tools is not the accepted one.
    #[error(
        "the tools of the MCP server `{server}` are not those that were accepted ({accepted}): they are now {}; look at them, and accept {found} if they are what you want",
        .tools.join(", ")
    )]
    Changed {
        /// Name of the server, as given by the caller.
        server: String,
        /// The accepted digest.
        accepted: String,
        /// Digest of the current list.
        found: String,
        /// Names of the tools in the current list, without the server's prefix.
        tools: Vec<String>,
    },
}

impl McpError {
    /// Codes of all variants.
    pub const CODES: &'static [&'static str] =
        &["mcp-unreachable", "mcp-answer-too-large", "mcp-changed"];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "mcp-unreachable",
            Self::AnswerTooLarge { .. } => "mcp-answer-too-large",
            Self::Changed { .. } => "mcp-changed",
        }
    }
}

impl Server {
    /// Starts a program that speaks MCP over its standard streams. It gets `PATH`, `HOME` and the variables given here, but no
    /// others, so it cannot read our API keys. It is killed when the connection ends.
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

    /// Returns a digest of everything the server said about its tools when the connection was made. Independent of their
    /// order.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the tools, named `server__tool`, if the list is the accepted one.
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

/// Reads the list of tools page by page. Checks the size after each page, because a server may send pages without end.
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

/// Returns the spec of a server's tool, as the model sees it.
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

/// Name in `_meta` under which a server finds the idempotency key of a call.
pub const IDEMPOTENCY_KEY: &str = "superstep/idempotency-key";
/// Name in `_meta` under which a server finds the digest of the tool's name and arguments.
pub const FINGERPRINT: &str = "superstep/fingerprint";

/// Digest of names, descriptions, schemas and hints: all that a model or a person decides by, in any order.
fn digest_of(tools: &[rmcp::model::Tool]) -> String {
    let mut lines: Vec<_> = tools
        .iter()
        // A tool that does not serialize gets its bare name as a line, which no serialized tool equals.
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

/// Providers accept fewer characters than MCP does.
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
