//! MCP servers that the person configured, and their tools as agents get them.
//!
//! A server is a third party's program, so a few rules hold for all agents. Only the settings file names servers: nothing in a
//! folder or a document starts one. A server is started for an agent only after the person accepted its list of tools, and its
//! tools are gone from the agent as soon as the list is another one. Every call asks the person, unless the settings declare
//! the tool `read`; and even then it asks once the agent has read something untrusted, because the arguments could carry away
//! what else it has read. What a tool returns is labeled untrusted.

mod acceptance;
mod server_settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures_util::future::join_all;
use serde::Serialize;
use superstep::label::Policy;
use superstep_agent::mcp::{Accepted, McpError, Server, ServerLimits, ServerProgram, tool_name};
use superstep_agent::{Approval, Class, Tool, Tools};
use superstep_llm::Secret;

pub use acceptance::{Acceptance, ToolChanges};
pub use server_settings::{McpServerEntry, McpServerSettings, McpTarget, McpToolUse};

use crate::private_file;
use acceptance::{AcceptanceFile, digests};

/// The MCP servers that the person configured. Starts each one when its tools are first needed, and keeps it until the host
/// ends.
pub struct McpServers {
    servers: Vec<McpServerSettings>,
    folder: PathBuf,
    accepted: AcceptanceFile,
    /// By name. Each has a lock of its own, so that a slow server holds up no other.
    connections: BTreeMap<String, tokio::sync::Mutex<Connection>>,
}

/// A server that was started or contacted.
#[derive(Default)]
struct Connection {
    server: Option<Server>,
    /// When and why this last failed: a server that is down would delay every turn of an agent by its time limit.
    failed: Option<(Instant, String)>,
}

/// Tools that agents may call, and the servers whose tools they do not get.
#[derive(Debug, Default)]
pub struct McpTools {
    /// Tools of all servers that can be used.
    pub tools: Vec<Tool>,
    /// Servers that cannot be used.
    pub unusable: Vec<UnusableServer>,
}

/// A server whose tools agents do not get.
#[derive(Debug, Clone)]
pub struct UnusableServer {
    /// Name of the server.
    pub name: String,
    /// Why, and what to do about it.
    pub why: String,
}

/// Whether the tools of a server are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AcceptanceStatus {
    /// The list of tools was accepted for this program or address.
    Accepted,
    /// The person never accepted the server.
    NotAccepted,
    /// The settings name another program or address than the accepted one.
    OtherTarget,
}

impl McpServers {
    /// Creates the registry. `folder` is the host's data folder: acceptances are stored in it, and programs start in it.
    pub fn new(servers: Vec<McpServerSettings>, folder: &Path) -> Self {
        let names = servers.iter().map(|server| server.name.clone());
        Self {
            connections: names.map(|name| (name, Default::default())).collect(),
            servers,
            folder: folder.to_owned(),
            accepted: AcceptanceFile::in_folder(folder),
        }
    }

    /// Returns the settings of all servers.
    pub fn settings(&self) -> &[McpServerSettings] {
        &self.servers
    }

    /// Returns the settings of a server.
    pub fn find(&self, name: &str) -> anyhow::Result<&McpServerSettings> {
        let found = self.servers.iter().find(|server| server.name == name);
        found.with_context(|| {
            let names: Vec<_> = self
                .servers
                .iter()
                .map(|server| server.name.as_str())
                .collect();
            match names.is_empty() {
                true => format!("there is no MCP server `{name}`; the settings name none"),
                false => format!(
                    "there is no MCP server `{name}`; there are {}",
                    names.join(", ")
                ),
            }
        })
    }

    /// Returns what the person accepted of a server, if anything, and whether it is for the target that the settings name now.
    pub fn acceptance(
        &self,
        server: &McpServerSettings,
    ) -> anyhow::Result<(AcceptanceStatus, Option<Acceptance>)> {
        let acceptance = self.accepted.read()?.remove(&server.name);
        let status = match &acceptance {
            None => AcceptanceStatus::NotAccepted,
            Some(accepted) if accepted.target != server.target.digest() => {
                AcceptanceStatus::OtherTarget
            }
            Some(_) => AcceptanceStatus::Accepted,
        };
        Ok((status, acceptance))
    }

    /// Accepts the list of tools that a server has now, in place of an earlier one.
    pub fn accept(
        &self,
        settings: &McpServerSettings,
        server: &Server,
        by: &str,
    ) -> anyhow::Result<()> {
        let tools = server.tools(&Accepted::Anything)?;
        let mut all = self.accepted.read()?;
        let acceptance = Acceptance {
            digest: server.digest().to_owned(),
            target: settings.target.digest(),
            tools: digests(&tools),
            by: by.to_owned(),
        };
        all.insert(settings.name.clone(), acceptance);
        self.accepted.write(&all)
    }

    /// Forgets what the person accepted of a server.
    pub fn forget(&self, name: &str) -> anyhow::Result<()> {
        let mut all = self.accepted.read()?;
        match all.remove(name) {
            Some(_) => self.accepted.write(&all),
            None => Ok(()),
        }
    }

    /// Starts or contacts a server, whether it is accepted or not: for a person who looks at its tools.
    pub async fn connect(&self, settings: &McpServerSettings) -> anyhow::Result<Server> {
        let limits = ServerLimits {
            answer_bytes_max: ANSWER_BYTES_MAX,
            connect_time_max: settings.start_time_max,
            questions_max: settings.questions_max,
        };
        let name = &settings.name;
        let connected = match &settings.target {
            McpTarget::Program { program, args, env } => {
                private_file::folder(&self.folder)
                    .with_context(|| format!("{} cannot be made", self.folder.display()))?;
                // Not the folder that the person happens to be in: some programs run what they find there.
                let mut program = ServerProgram::new(program)
                    .args(args)
                    .folder(&self.folder)
                    .discard_stderr();
                for variable in env {
                    program = program.env(variable, value_of(variable, name)?);
                }
                Server::start(&limits, name, program).await
            }
            McpTarget::Http { url, token } => {
                let token = token.as_ref().map(|variable| value_of(variable, name));
                let token = token.transpose()?.map(Secret::new);
                Server::http_within(&limits, name, url, token.as_ref()).await
            }
        };
        connected.map_err(|error| match (&error, &settings.target) {
            // Without its arguments: this may be stored with a thread, and an argument may be a key.
            (McpError::Unreachable { .. }, McpTarget::Program { program, .. }) => anyhow::anyhow!(
                "{error}\nTo see what the program says, start it by hand: {program}"
            ),
            _ => error.into(),
        })
    }

    /// Returns the tools of all servers that the person accepted, and starts those servers if needed.
    pub async fn tools(&self) -> McpTools {
        let mut all = McpTools::default();
        let found = join_all(self.servers.iter().map(|server| self.tools_of(server))).await;
        for (settings, found) in self.servers.iter().zip(found) {
            match found {
                Ok(tools) => all.tools.extend(tools),
                Err(error) => all.unusable.push(UnusableServer {
                    name: settings.name.clone(),
                    why: format!("{error:#}"),
                }),
            }
        }
        all
    }

    async fn tools_of(&self, settings: &McpServerSettings) -> anyhow::Result<Vec<Tool>> {
        let name = &settings.name;
        let (status, acceptance) = self.acceptance(settings)?;
        let acceptance = match (status, acceptance) {
            (AcceptanceStatus::Accepted, Some(acceptance)) => acceptance,
            (AcceptanceStatus::OtherTarget, _) => bail!(
                "its settings changed after it was accepted; look at its tools and accept it again with `archie mcp accept {name}`"
            ),
            _ => bail!(
                "it is not accepted; look at its tools and accept it with `archie mcp accept {name}`"
            ),
        };
        let accepted = Accepted::digest(&acceptance.digest);
        let connection = self.connections.get(name);
        let connection = connection.with_context(|| format!("there is no MCP server `{name}`"))?;
        let mut connection = connection.lock().await;
        // One that was connected before the person accepted another list is of no use.
        let is_usable = |server: &Server| server.digest() == acceptance.digest;
        let server = match connection.server.take_if(|server| is_usable(server)) {
            Some(server) => server,
            None => self.connect_again(settings, &mut connection).await?,
        };
        let tools = match server.tools(&accepted) {
            Ok(tools) => tools,
            Err(McpError::Changed { .. }) => {
                let now = server.tools(&Accepted::Anything)?;
                bail!(
                    "its tools are not those that were accepted ({}); look at them and accept them with `archie mcp accept {name}`",
                    acceptance.changes(&now)
                )
            }
            Err(error) => return Err(error.into()),
        };
        let tools = settings.for_agents(&server, tools)?;
        connection.server = Some(server);
        Ok(tools)
    }

    /// Connects to a server, unless that failed a moment ago.
    async fn connect_again(
        &self,
        settings: &McpServerSettings,
        connection: &mut Connection,
    ) -> anyhow::Result<Server> {
        if let Some((when, why)) = &connection.failed
            && when.elapsed() < FAILURE_KEPT
        {
            bail!("{why}");
        }
        let connected = self.connect(settings).await;
        connection.failed = connected
            .as_ref()
            .err()
            .map(|error| (Instant::now(), format!("{error:#}")));
        connected
    }
}

impl McpServerSettings {
    /// Returns the tools of a server as agents get them.
    pub fn for_agents(&self, server: &Server, tools: Vec<Tool>) -> anyhow::Result<Vec<Tool>> {
        let uses: BTreeMap<String, McpToolUse> = self
            .tools
            .iter()
            .map(|(tool, how)| (tool_name(&self.name, tool), *how))
            .collect();
        let is_there = |name: &&String| tools.iter().any(|tool| tool.name() == **name);
        // Otherwise a misspelled name that should be off would leave the tool on.
        if let Some(missing) = uses.keys().find(|name| !is_there(name)) {
            bail!("the settings name a tool `{missing}`, which the server does not have");
        }
        let mut ready: Vec<Tool> = tools
            .into_iter()
            .filter_map(|tool| {
                let how = uses.get(tool.name()).copied();
                for_agent(self, tool, how.unwrap_or(McpToolUse::Unsafe))
            })
            .collect();
        if self.has_resources {
            let tools = server.resource_tools().into_iter();
            ready.extend(tools.filter_map(|tool| for_agent(self, tool, McpToolUse::Read)));
        }
        Tools::new(ready.clone()).map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("its tools are not valid: {}", faults.join("; "))
        })?;
        Ok(ready)
    }
}

/// Returns whether an agent calls a tool without asking, as long as it has read nothing untrusted.
pub fn is_unasked(tool: &Tool) -> bool {
    tool.class() == Class::Read
}

fn for_agent(settings: &McpServerSettings, tool: Tool, how: McpToolUse) -> Option<Tool> {
    let tool = tool.timeout(settings.call_time_max);
    let server = settings.name.clone();
    let name = tool.name().to_owned();
    let place = match &settings.target {
        McpTarget::Program { .. } => String::new(),
        McpTarget::Http { url, .. } => format!(" at {}", origin(url)),
    };
    let ask = |approval: Approval| {
        approval.described(move |_| {
            format!("May `{name}` be called? The MCP server `{server}`{place} gets the arguments.")
        })
    };
    Some(match how {
        McpToolUse::Off => return None,
        McpToolUse::Read if settings.is_local => tool.read(),
        // Not even untrusted data, which a tool that reads accepts by default: its arguments leave the machine.
        McpToolUse::Read => tool
            .read()
            .takes(Policy::new())
            .approved_by_a_person(ask(Approval::by_labels())),
        McpToolUse::Idempotent => tool
            .idempotent()
            .approved_by_a_person(ask(Approval::always())),
        McpToolUse::Unsafe => tool.approved_by_a_person(ask(Approval::always())),
    })
}

/// Returns the scheme and the host of a URL. What is stored with a question must not hold a key that is in its query.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |scheme| scheme + "://".len());
    let end = url[host..].find(['/', '?', '#']);
    end.map_or(url, |end| &url[..host + end])
}

fn value_of(variable: &str, server: &str) -> anyhow::Result<String> {
    std::env::var(variable)
        .ok()
        .filter(|value| !value.is_empty())
        .with_context(|| format!("`{variable}` is not set; the MCP server `{server}` needs it"))
}

impl std::fmt::Display for ToolChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("added", &self.added),
            ("changed", &self.changed),
            ("removed", &self.removed),
        ];
        let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
        let parts: Vec<_> = parts
            .map(|(what, names)| {
                let shown: Vec<_> = names.iter().take(NAMES_SHOWN).map(String::as_str).collect();
                let more = match names.len().saturating_sub(NAMES_SHOWN) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!("{what}: {}{more}", shown.join(", "))
            })
            .collect();
        match parts.is_empty() {
            true => f.write_str("hints or titles changed"),
            false => f.write_str(&parts.join("; ")),
        }
    }
}

impl std::fmt::Debug for McpServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServers")
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

/// More than this is not for a model to read, and would be in every checkpoint.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// How many names a message lists.
const NAMES_SHOWN: usize = 5;
/// How long a failed connection is not tried again.
const FAILURE_KEPT: Duration = Duration::from_secs(30);

#[cfg(test)]
#[tokio::test]
async fn a_server_that_does_not_start_delays_no_other_and_no_later_turn() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let silent = |name: &str| {
        let entry = serde_json::json!({ "command": ["sleep", "60"], "start_seconds": 2 });
        let entry: McpServerEntry = serde_json::from_value(entry)?;
        entry.check(name)
    };
    let servers = vec![silent("one")?, silent("two")?, silent("three")?];
    let accepted = servers.iter().map(|server| {
        let acceptance = Acceptance {
            digest: "of its tools".to_owned(),
            target: server.target.digest(),
            tools: BTreeMap::new(),
            by: "ada".to_owned(),
        };
        (server.name.clone(), acceptance)
    });
    AcceptanceFile::in_folder(folder.path()).write(&accepted.collect())?;
    let servers = McpServers::new(servers, folder.path());
    for took_max in [Duration::from_secs(4), Duration::from_secs(1)] {
        let begun = Instant::now();
        let found = servers.tools().await;
        assert_eq!(found.unusable.len(), 3, "{found:?}");
        assert!(begun.elapsed() < took_max, "{:?}", begun.elapsed());
    }
    Ok(())
}

#[test]
fn a_question_names_a_server_without_the_query_of_its_address() {
    assert_eq!(
        origin("https://a.example:8/mcp?key=secret"),
        "https://a.example:8"
    );
    assert_eq!(origin("https://a.example?key=secret"), "https://a.example");
    assert_eq!(origin("http://a.example"), "http://a.example");
}
