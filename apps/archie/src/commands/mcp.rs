//! `archie mcp`: adds and removes MCP servers, shows their tools, and lets the person accept them.

use anyhow::{Context, bail};
use archie_agent::mcp::{
    Acceptance, AcceptanceStatus, McpServerEntry, McpServerSettings, McpServers, McpToolUse,
    ToolChanges, is_unasked,
};
use archie_agent::printable::{counted, one_line, summary_line};
use archie_agent::{Exit, Output, Terminal};
use serde_json::{Map, Value as Json, json};
use superstep_agent::Tool;
use superstep_agent::mcp::{Accepted, Server, tool_name};

use crate::app::App;
use crate::cli::settings::update_file;
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
    /// Add a server to the settings and accept its tools
    Add(McpAddArgs),
    /// Remove a server from the settings
    Remove {
        /// Name of the server
        name: String,
    },
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

/// A server to add.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct McpAddArgs {
    /// Name of the server, of a-z, 0-9 and -
    pub name: String,
    /// Address of a server over HTTP
    #[arg(required_unless_present = "command")]
    pub url: Option<String>,
    /// Program that is the server, and its arguments
    #[arg(last = true, conflicts_with = "url")]
    pub command: Vec<String>,
    /// Environment variable that the program gets; repeatable
    #[arg(long, value_name = "VARIABLE", conflicts_with = "url")]
    pub env: Vec<String>,
    /// Environment variable with the token for the address
    #[arg(long, value_name = "VARIABLE", conflicts_with = "command")]
    pub token: Option<String>,
    /// What is sent to the server stays on this machine
    #[arg(long)]
    pub local: bool,
    /// Accept the tools without asking
    #[arg(long)]
    pub yes: bool,
    /// Print JSON; needs --yes
    #[arg(long, requires = "yes")]
    pub json: bool,
}

impl McpAddArgs {
    /// Returns the entry of the settings file.
    fn entry(&self) -> Json {
        let mut entry = Map::new();
        let mut set = |field: &str, value: Json| entry.insert(field.to_owned(), value);
        match &self.url {
            Some(url) => set("url", json!(url)),
            None => set("command", json!(self.command)),
        };
        if !self.env.is_empty() {
            set("env", json!(self.env));
        }
        if let Some(token) = &self.token {
            set("token", json!(token));
        }
        if self.local {
            set("local", json!(true));
        }
        Json::Object(entry)
    }
}

impl McpCommand {
    /// Returns whether the command changes the settings file.
    pub fn changes_settings(&self) -> bool {
        matches!(self, Self::Add(_) | Self::Remove { .. })
    }
}

/// Runs `archie mcp`.
pub async fn handle_mcp_command(
    args: &McpArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    match &args.command {
        McpCommand::Add(args) => add(args, app, terminal).await,
        McpCommand::Remove { name } => remove(name, app, terminal),
        McpCommand::List { json } => list(app, *json, terminal),
        McpCommand::Check { name, json } => check(app, name, *json, terminal).await,
        McpCommand::Accept { name, digest, json } => {
            let looked = Looked::at(&app.mcp, name, terminal).await?;
            let agreement = digest
                .as_deref()
                .map_or(Agreement::Asked, Agreement::Digest);
            accept(
                &looked,
                app,
                agreement,
                &Output {
                    terminal,
                    json: *json,
                    told: &[],
                    streamed: "",
                },
            )
        }
    }
}

/// Adds a server to the settings once it was started or contacted, and lets the person accept its tools.
async fn add(args: &McpAddArgs, app: &App, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let name = &args.name;
    if app.mcp.find(name).is_ok() {
        bail!("there is an MCP server `{name}`; remove it first with `archie mcp remove {name}`");
    }
    let entry = args.entry();
    let settings: McpServerEntry = serde_json::from_value(entry.clone())?;
    let servers = McpServers::new(vec![settings.check(name)?], &app.settings.home);
    let looked = Looked::at(&servers, name, terminal).await;
    let looked = looked.with_context(|| format!("`{name}` was not added"))?;
    update_file(&app.settings.file, |fields| {
        let servers = fields.entry("mcp").or_insert_with(|| json!({}));
        if let Json::Object(servers) = servers {
            servers.insert(name.clone(), entry);
        }
    })?;
    let output = Output {
        terminal,
        json: args.json,
        told: &[],
        streamed: "",
    };
    output.tell(&format!(
        "Added `{name}` to {}.",
        app.settings.file.display()
    ));
    let agreement = match args.yes {
        true => Agreement::Given,
        false => Agreement::Asked,
    };
    accept(&looked, app, agreement, &output)
}

fn remove(name: &str, app: &App, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    app.mcp.find(name)?;
    update_file(&app.settings.file, |fields| {
        if let Some(Json::Object(servers)) = fields.get_mut("mcp") {
            servers.remove(name);
        }
    })?;
    // A server that is added under this name later has to be accepted again.
    app.mcp.forget(name)?;
    terminal.line(&format!("`{name}` is gone"));
    Ok(Exit::Done)
}

/// How the person agrees to a list of tools.
enum Agreement<'a> {
    /// They read it and are asked.
    Asked,
    /// They read it before; it had this digest.
    Digest(&'a str),
    /// They agreed to whatever the list is.
    Given,
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
        terminal.hint(
            "No MCP servers. Add one with `archie mcp add NAME -- COMMAND` or `archie mcp add NAME URL`.",
        );
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
    async fn at(
        servers: &'a McpServers,
        name: &str,
        terminal: &dyn Terminal,
    ) -> anyhow::Result<Self> {
        let settings = servers.find(name)?;
        let (status, acceptance) = servers.acceptance(settings)?;
        let waiting = terminal.waiting(&format!("starting {name}"));
        let server = servers.connect(settings).await;
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
    let looked = Looked::at(&app.mcp, name, terminal).await?;
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

fn accept(
    looked: &Looked<'_>,
    app: &App,
    agreement: Agreement<'_>,
    output: &Output<'_>,
) -> anyhow::Result<Exit> {
    let name = &looked.settings.name;
    let terminal = output.terminal;
    let found = looked.server.digest();
    if let Err(why) = &looked.for_agents {
        bail!("`{name}` cannot be accepted: {why}");
    }
    match agreement {
        Agreement::Given => {}
        Agreement::Digest(digest) if digest == found => {}
        Agreement::Digest(digest) => bail!(
            "the tools of `{name}` have the digest {found}, not {digest}; nothing was accepted"
        ),
        Agreement::Asked => {
            let whole = page(output, &looked.text())?;
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
    match output.json {
        true => terminal.json(&json!({ "name": name, "digest": found, "accepted": true })),
        false => terminal.hint(&format!(
            "Accepted {} of `{name}`; `archie analyze` and `archie atris` can call them.",
            counted(looked.tools.len(), "tool")
        )),
    }
    Ok(Exit::Done)
}

/// How much of a description `archie mcp check` shows: with its indent it fits 80 columns.
const ABOUT_CHARS: usize = 72;
