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
mod connection;
mod elicitation;
#[doc(hidden)]
pub mod fuzzing;
mod handler;
mod http_client;
mod plain_text;
mod prompts;
mod resources;
#[cfg(test)]
mod scripted_server;
mod server_program;
#[cfg(test)]
mod tests;
mod tool_call;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceError;
use serde::Serialize;
use serde_json::Value as Json;
use superstep_core::Label;
use superstep_llm::{BoxFuture, Secret, ToolSpec};

use self::connection::{Connection, Target};
use self::http_client::too_large;
use self::plain_text::plain;
use self::tool_call::RemoteTool;
use crate::digest::{canonical, hash};
use crate::tool::{Tool, ToolCx};

pub use self::prompts::{PromptArgument, PromptInfo};
pub use self::resources::ResourceInfo;
pub use self::server_program::ServerProgram;

/// A connection to an MCP server. Closes when this and all its tools are dropped.
///
/// If the server dies, the next call starts or contacts it again, within [`ServerLimits::connect_time_max`].
#[derive(Clone)]
pub struct Server {
    connection: Arc<Connection>,
}

/// Limits on what a server may send, and on how long connecting to it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum size in bytes of one HTTP answer, or of one event of a streamed answer; also of the whole list of tools, over
    /// any transport. A line over stdio is limited to 16 MiB regardless. Default: 16 MiB.
    pub answer_bytes_max: usize,
    /// Maximum time to connect and read the list of tools, also when the server died; and to list or read resources and
    /// prompts. Calls have the timeout of their tool. Default: two minutes,
    /// because some programs install themselves first.
    pub connect_time_max: Duration,
    /// Maximum number of questions that the server may ask a person during one call. Default: 0, and the server is told that
    /// it cannot ask; some servers then offer fewer tools. With a higher limit the calls of this server are made one at a
    /// time.
    pub questions_max: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            answer_bytes_max: 16 * 1024 * 1024,
            connect_time_max: Duration::from_secs(120),
            questions_max: 0,
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
    /// The server changed its tools while it was connected, or offers others after a reconnect. Nothing was sent.
    #[error(
        "the MCP server `{server}` changed its tools after they were accepted ({changes}), so nothing was sent; look at them, accept {found} if they are what you want, and connect again"
    )]
    ToolsChanged {
        /// Name of the server, as given by the caller.
        server: String,
        /// The first changes, by the names of the tools.
        changes: String,
        /// Digest of the current list.
        found: String,
    },
    /// The server answered a request for a list, a resource or a prompt with an error.
    #[error("the MCP server `{server}` refused the request: {why}")]
    Refused {
        /// Name of the server, as given by the caller.
        server: String,
        /// What the server said.
        why: String,
    },
}

impl McpError {
    /// Codes of all variants.
    pub const CODES: &'static [&'static str] = &[
        "mcp-unreachable",
        "mcp-answer-too-large",
        "mcp-changed",
        "mcp-tools-changed",
        "mcp-refused",
    ];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "mcp-unreachable",
            Self::AnswerTooLarge { .. } => "mcp-answer-too-large",
            Self::Changed { .. } => "mcp-changed",
            Self::ToolsChanged { .. } => "mcp-tools-changed",
            Self::Refused { .. } => "mcp-refused",
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
        let program = ServerProgram::new(program).args(args);
        let program = env
            .into_iter()
            .fold(program, |program, (name, value)| program.env(name, value));
        Self::start(limits, name, program).await
    }

    /// Starts a program as [`Server::stdio_within`] does, with more settings: the folder in which it starts, and whether its
    /// standard error is shown.
    pub async fn start(
        limits: &ServerLimits,
        name: &str,
        program: ServerProgram,
    ) -> Result<Self, McpError> {
        Self::connect(limits, name, Target::Program(program)).await
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
        let target = Target::Http {
            url: url.to_owned(),
            token: token.cloned(),
        };
        Self::connect(limits, name, target).await
    }

    async fn connect(limits: &ServerLimits, name: &str, target: Target) -> Result<Self, McpError> {
        let connection = Connection::open(name, target, limits).await?;
        Ok(Self {
            connection: Arc::new(connection),
        })
    }

    /// Returns a digest of everything the server said about its tools when it was first connected. Independent of their
    /// order.
    pub fn digest(&self) -> &str {
        &self.connection.accepted.digest
    }

    /// Returns the tools, named `server__tool`, if the list is the accepted one.
    ///
    /// They stay bound to that list: if the server offers another one after a reconnect, or says that its list changed and
    /// defines the called tool differently, calls are refused before anything is sent.
    pub fn tools(&self, accepted: &Accepted) -> Result<Vec<Tool>, McpError> {
        let list = &self.connection.accepted;
        if let Accepted::Digest(accepted) = accepted
            && *accepted != list.digest
        {
            return Err(McpError::Changed {
                server: self.connection.name.clone(),
                accepted: accepted.clone(),
                found: list.digest.clone(),
                tools: list
                    .tools
                    .iter()
                    .map(|tool| tool.name.to_string())
                    .collect(),
            });
        }
        Ok(list.tools.iter().map(|tool| self.tool(tool)).collect())
    }

    fn tool(&self, tool: &rmcp::model::Tool) -> Tool {
        let spec = spec_of(&self.connection.name, tool);
        let remote = RemoteTool {
            name: tool.name.to_string(),
            shown_name: spec.name.clone(),
        };
        let connection = self.connection.clone();
        let call = move |args: Json, cx: ToolCx| -> BoxFuture<'static, _> {
            let (connection, remote) = (connection.clone(), remote.clone());
            Box::pin(async move { tool_call::call(&connection, &remote, args, &cx).await })
        };
        Tool::raw(spec, call).times_itself().gives(Label::UNTRUSTED)
    }
}

/// Returns the spec of a server's tool, as the model sees it.
fn spec_of(server: &str, tool: &rmcp::model::Tool) -> ToolSpec {
    let described = tool.description.as_deref().or(tool.title.as_deref());
    ToolSpec {
        name: tool_name(server, &tool.name),
        description: described.unwrap_or(&tool.name).to_owned(),
        schema: Json::Object((*tool.input_schema).clone()),
    }
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

/// Returns the name by which a model knows a server's tool: `server__tool`, without the characters that providers refuse.
pub fn tool_name(server: &str, tool: &str) -> String {
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

/// Converts the error of a request other than a call.
fn failed(server: &str, error: &ServiceError) -> McpError {
    match error {
        ServiceError::McpError(error) => McpError::Refused {
            server: server.to_owned(),
            why: plain(&error.message, REFUSAL_CHARS_MAX),
        },
        error => unreachable(server, error),
    }
}

/// Checks that what a server sent is not larger than an answer may be. Over HTTP the client has cut it already.
fn check_size(server: &str, limits: &ServerLimits, sent: &impl Serialize) -> Result<(), McpError> {
    let bytes = serde_json::to_vec(sent).map_or(0, |json| json.len());
    match bytes > limits.answer_bytes_max {
        true => Err(answer_too_large(server, limits)),
        false => Ok(()),
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
            .field("name", &self.connection.name)
            .field("digest", &self.digest())
            .finish_non_exhaustive()
    }
}

/// How much of a server's refusal an error shows.
const REFUSAL_CHARS_MAX: usize = 500;
