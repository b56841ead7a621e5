//! `archie mcp`: shows the configured MCP servers and their tools, and lets the person accept them.

use anyhow::bail;
use archie_agent::mcp::{
    Acceptance, AcceptanceStatus, McpServerSettings, McpToolUse, ToolChanges, is_unasked,
};
use archie_agent::printable::{counted, one_line, summary_line};
use archie_agent::{Exit, Output, Terminal};
use serde_json::{Value as Json, json};
use superstep_agent::Tool;
use superstep_agent::mcp::{Accepted, Server, tool_name};

use crate::app::App;
use crate::inbox::display::page;

/// What to do with MCP servers.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct McpArgs {
    /// What.
    #[command(subcommand)]
    pub command: McpCommand,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub enum McpCommand {
    /// List the servers in the settings; starts none
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Start a server and compare its tools with the accepted ones
    Check {
        /// Name of the server
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a server's tools and accept them for agents
    Accept {
        /// Name of the server
        name: String,
        /// Accept without asking if the tools have this digest
        #[arg(long, value_name = "DIGEST")]
        digest: Option<String>,
        /// Print JSON; needs --digest
        #[arg(long, requires = "digest")]
        json: bool,
    },
}

/// Runs `archie mcp`.
pub async fn handle_mcp_command(
    args: &McpArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    match &args.command {
        McpCommand::List { json } => list(app, *json, terminal),
        McpCommand::Check { name, json } => check(app, name, *json, terminal).await,
        McpCommand::Accept { name, digest, json } => {
            accept(app, name, digest.as_deref(), *json, terminal).await
        }
    }
}

fn list(app: &App, json: bool, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let mut rows = Vec::new();
    for server in app.mcp.settings() {
        let (status, _) = app.mcp.acceptance(server)?;
        rows.push((server, status));
    }
    if json {
        let rows = rows.iter().map(|(server, status)| {
            json!({ "name": server.name, "status": status, "target": server.target })
        });
        terminal.json(&Json::Array(rows.collect()));
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        terminal.line(&format!(
            "No MCP servers. Name them under `mcp` in {}.",
            app.settings.file.display()
        ));
    }
    for (server, status) in rows {
        let status = match status {
            AcceptanceStatus::Accepted => "accepted",
            AcceptanceStatus::NotAccepted => "not accepted",
            AcceptanceStatus::OtherTarget => "settings changed",
        };
        let target = one_line(&server.target.to_string());
        terminal.line(&format!("{:<24} {status:<16} {target}", server.name));
    }
    Ok(Exit::Done)
}

/// A server that was started, and what the person accepted of it.
struct Looked<'a> {
    settings: &'a McpServerSettings,
    server: Server,
    tools: Vec<Tool>,
    /// Tools as agents would get them, or why they would get none.
    for_agents: Result<Vec<Tool>, String>,
    status: AcceptanceStatus,
    acceptance: Option<Acceptance>,
}

impl<'a> Looked<'a> {
    async fn at(app: &'a App, name: &str, terminal: &dyn Terminal) -> anyhow::Result<Self> {
        let settings = app.mcp.find(name)?;
        let (status, acceptance) = app.mcp.acceptance(settings)?;
        let waiting = terminal.waiting(&format!("starting {name}"));
        let server = app.mcp.connect(settings).await;
        drop(waiting);
        let server = server?;
        let tools = server.tools(&Accepted::Anything)?;
        let for_agents = settings.for_agents(&server, tools.clone());
        Ok(Self {
            settings,
            tools,
            for_agents: for_agents.map_err(|error| format!("{error:#}")),
            status,
            acceptance,
            server,
        })
    }

    fn is_accepted(&self) -> bool {
        let accepted = self.acceptance.as_ref();
        self.status == AcceptanceStatus::Accepted
            && accepted.is_some_and(|accepted| accepted.digest == self.server.digest())
    }

    fn changes(&self) -> Option<ToolChanges> {
        let accepted = self.acceptance.as_ref().filter(|_| !self.is_accepted());
        accepted.map(|accepted| accepted.changes(&self.tools))
    }

    /// Says whether agents get the tools, and what to do if they do not.
    fn verdict(&self) -> String {
        let name = &self.settings.name;
        let count = counted(self.tools.len(), "tool");
        let accept = format!("`archie mcp accept {name}`");
        match (self.is_accepted(), self.status, self.changes()) {
            (true, _, _) => match &self.for_agents {
                Ok(_) => format!("{name}: {count}, accepted"),
                Err(why) => format!("{name}: {count}, accepted, but not usable: {why}"),
            },
            (_, AcceptanceStatus::OtherTarget, _) => format!(
                "{name}: {count}, not used: its settings changed after it was accepted; see {accept}"
            ),
            (_, _, Some(changes)) => {
                format!(
                    "{name}: {count}, not used: not the accepted ones ({changes}); see {accept}"
                )
            }
            _ => format!("{name}: {count}, not accepted yet; see {accept}"),
        }
    }

    /// Returns how agents may use a tool.
    fn use_of(&self, tool: &Tool) -> &'static str {
        let tools = &self.settings.tools;
        let is_off = tools.iter().any(|(name, how)| {
            *how == McpToolUse::Off && tool_name(&self.settings.name, name) == tool.name()
        });
        let ready = self.for_agents.iter().flatten();
        let ready = ready.into_iter().find(|ready| ready.name() == tool.name());
        match ready {
            _ if is_off => "off",
            Some(tool) if is_unasked(tool) => "read",
            _ => "asks first",
        }
    }

    fn report(&self) -> Json {
        let tools = self.tools.iter().map(|tool| {
            json!({
                "name": tool.name(),
                "use": self.use_of(tool),
                "description": tool.spec().description,
                "schema": tool.spec().schema,
            })
        });
        json!({
            "name": self.settings.name,
            "target": self.settings.target,
            "digest": self.server.digest(),
            "accepted": self.is_accepted(),
            "changes": self.changes(),
            "problem": self.for_agents.as_ref().err(),
            "tools": tools.collect::<Vec<_>>(),
        })
    }

    /// Returns everything that the model reads about the tools. Each line of the server's text is marked as such.
    fn text(&self) -> String {
        let quoted = |text: &str| -> String {
            let lines = text.lines().map(|line| format!("\n    | {line}"));
            lines.collect()
        };
        let mut text = format!(
            "The MCP server `{}` is {}\nThe model reads the lines after `|`. The server wrote them.\n",
            self.settings.name,
            one_line(&self.settings.target.to_string())
        );
        for tool in &self.tools {
            let spec = tool.spec();
            let changed = self.changes().map_or("", |changes| {
                let is_in = |names: &[String]| names.iter().any(|name| name == tool.name());
                match (is_in(&changes.added), is_in(&changes.changed)) {
                    (true, _) => ", new",
                    (_, true) => ", changed",
                    _ => "",
                }
            });
            text.push_str(&format!(
                "\n{} ({}{changed}){}{}",
                tool.name(),
                self.use_of(tool),
                quoted(&spec.description),
                quoted(&spec.schema.to_string()),
            ));
        }
        text
    }
}

async fn check(app: &App, name: &str, json: bool, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let looked = Looked::at(app, name, terminal).await?;
    match json {
        true => terminal.json(&looked.report()),
        false => {
            for tool in &looked.tools {
                let about = summary_line(&tool.spec().description, ABOUT_CHARS);
                terminal.line(&format!(
                    "  {} ({})\n      {about}",
                    tool.name(),
                    looked.use_of(tool)
                ));
            }
            terminal.line(&looked.verdict());
        }
    }
    let is_usable = looked.is_accepted() && looked.for_agents.is_ok();
    Ok(if is_usable { Exit::Done } else { Exit::Failed })
}

async fn accept(
    app: &App,
    name: &str,
    digest: Option<&str>,
    json: bool,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let looked = Looked::at(app, name, terminal).await?;
    let found = looked.server.digest();
    if let Err(why) = &looked.for_agents {
        bail!("`{name}` cannot be accepted: {why}");
    }
    match digest {
        Some(digest) if digest == found => {}
        Some(digest) => bail!(
            "the tools of `{name}` have the digest {found}, not {digest}; nothing was accepted"
        ),
        None => {
            let output = Output { terminal, json };
            let whole = page(&output, &looked.text())?;
            terminal.line(&looked.verdict());
            let count = counted(looked.tools.len(), "tool");
            let question = format!("Let agents use {count} of `{name}`? [y/N] ");
            let agreed = whole
                && terminal
                    .ask(&question)?
                    .is_some_and(|answer| matches!(answer.trim(), "y" | "yes"));
            if !agreed {
                terminal.line(&format!(
                    "Nothing was accepted. To accept exactly these tools:\n  archie mcp accept {name} --digest {found}"
                ));
                return Ok(Exit::Refused);
            }
        }
    }
    app.mcp
        .accept(looked.settings, &looked.server, &app.settings.person)?;
    match json {
        true => terminal.json(&json!({ "name": name, "digest": found, "accepted": true })),
        false => terminal.line(&format!(
            "Accepted {} of `{name}`; `archie analyze` offers them to the model.",
            counted(looked.tools.len(), "tool")
        )),
    }
    Ok(Exit::Done)
}

/// How much of a description `archie mcp check` shows: with its indent it fits 80 columns.
const ABOUT_CHARS: usize = 72;
