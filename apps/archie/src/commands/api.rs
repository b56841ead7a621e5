//! `archie api`: manages the APIs that `atris` can call, and the hosts that calls may go to.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use archie_agent::user_folder::read_named_file;
use archie_agent::{Exit, Terminal};
use archie_atris::AUDIUS;
use archie_atris::answer::shown;
use archie_atris::catalogue::{Api, Catalogue, Dialect, Key};
use archie_atris::catalogue_store::{CatalogueStore, audius};
use archie_atris::connector::{AllowedOrigins, Call, Connector, Origin, denied};
use archie_atris::openapi::{self, BYTES_MAX, Document};
use serde_json::{Value as Json, json};

use crate::app::App;

/// What to do with APIs.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ApiArgs {
    /// What.
    #[command(subcommand)]
    pub command: ApiCommand,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub enum ApiCommand {
    /// Add an API from its OpenAPI 3 document, or change its hosts
    Add(AddArgs),
    /// List APIs
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show an API's hosts, categories and calls
    Show {
        /// Name of the API
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove an API
    Remove {
        /// Name of the API
        name: String,
    },
}

/// What to add.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct AddArgs {
    /// OpenAPI document: file or URL, JSON or YAML; or the built-in `audius`
    #[arg(value_name = "FILE|URL")]
    pub source: String,
    /// Name for `archie atris --api NAME`
    #[arg(long)]
    pub name: String,
    /// Host that may be called: HOST, HOST:PORT or URL
    ///
    /// Repeat the option for several hosts, which are tried in turn. A private address must be given here as a number.
    #[arg(long = "allow-host", value_name = "HOST")]
    pub allow_host: Vec<String>,
    /// Environment variable with the key, which is sent to the first host only
    #[arg(long, value_name = "VARIABLE")]
    pub key_env: Option<String>,
    /// Header for the key
    #[arg(long, value_name = "HEADER", default_value = "Authorization")]
    pub key_header: String,
    /// Text before the key
    #[arg(long, value_name = "TEXT", default_value = "Bearer ")]
    pub key_prefix: String,
    /// The API deduplicates by Idempotency-Key, so calls may be repeated
    #[arg(long)]
    pub keyed: bool,
}

/// Runs `archie api`.
pub async fn handle_api_command(
    args: &ApiArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let catalogue_store = CatalogueStore::new(app.memory.clone());
    match &args.command {
        ApiCommand::Add(args) => add(args, &catalogue_store, terminal).await,
        ApiCommand::List { json } => list(&catalogue_store, *json, terminal).await,
        ApiCommand::Show { name, json } => show(&catalogue_store, name, *json, terminal).await,
        ApiCommand::Remove { name } => {
            let was_there = catalogue_store.remove(name).await?;
            terminal.line(&match was_there {
                true => format!("{name} is gone"),
                false => format!("there is no API `{name}` to remove"),
            });
            Ok(if was_there { Exit::Done } else { Exit::Failed })
        }
    }
}

async fn add(
    args: &AddArgs,
    catalogue_store: &CatalogueStore,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (document, dialect) = match args.source.as_str() {
        AUDIUS => {
            let audius = audius();
            (
                Document {
                    title: audius.title,
                    servers: audius.hosts,
                    apis: audius.apis,
                    skipped: Vec::new(),
                    responses: audius.responses,
                },
                Dialect::Audius,
            )
        }
        source => {
            let bytes = read(source, &args.allow_host).await?;
            let document =
                openapi::read(&bytes).with_context(|| format!("{source} is not taken"))?;
            (document, Dialect::Plain)
        }
    };
    let hosts = hosts(&document.servers, &args.source, &args.allow_host)?;
    if args.allow_host.is_empty() && !agrees(&hosts, terminal)? {
        terminal.line("nothing was added; say where calls may go with --allow-host HOST");
        return Ok(Exit::Failed);
    }
    let key = args
        .key_env
        .as_ref()
        .map(|variable| -> anyhow::Result<Key> {
            Ok(Key {
                variable: variable.clone(),
                header: args.key_header.clone(),
                prefix: args.key_prefix.clone(),
                origin: hosts[0].parse()?,
            })
        });
    let catalogue = Catalogue {
        name: args.name.clone(),
        title: document.title,
        hosts,
        apis: document.apis,
        key: key.transpose()?,
        keyed: args.keyed,
        dialect,
        responses: document.responses,
    };
    catalogue_store.put(&catalogue).await?;
    let categories = catalogue.categories().len();
    terminal.line(&format!(
        "{}: {} calls in {categories} categories; calls go to {}",
        catalogue.name,
        catalogue.apis.len(),
        catalogue.hosts.join(", ")
    ));
    for skipped in document.skipped.iter().take(SKIPPED_TOLD) {
        terminal.aside(&format!("left out {}", shown(skipped)));
    }
    if let Some(more @ 1..) = document.skipped.len().checked_sub(SKIPPED_TOLD) {
        terminal.aside(&format!("left out {more} more"));
    }
    terminal.hint(&format!(
        "ask it with `archie atris --api {} \"…\"`",
        catalogue.name
    ));
    Ok(Exit::Done)
}

async fn read(source: &str, allowed: &[String]) -> anyhow::Result<Vec<u8>> {
    if !source.contains("://") {
        return read_named_file(Path::new(source), BYTES_MAX as u64)
            .with_context(|| format!("{source} is not taken"));
    }
    let origin: Origin = source.parse()?;
    let is_said = allowed.iter().any(|host| {
        *host == origin.host_and_port() || host.parse().is_ok_and(|said: Origin| said == origin)
    });
    if let Some(why) = private(&origin).filter(|_| !is_said) {
        bail!(
            "{origin} is {why}; if you mean it, say --allow-host {}",
            origin.host_and_port()
        );
    }
    let connector = Connector::bounded(BYTES_MAX, Duration::from_secs(60));
    let answer = connector
        .send(Call::get(source), &AllowedOrigins::only([origin]))
        .await?;
    if answer.status != 200 {
        bail!("{source} answered {}", answer.status);
    }
    Ok(answer.body)
}

/// Returns the hosts that calls go to: those the person named, otherwise those of the document. A private host in the document
/// is an error.
fn hosts(servers: &[String], source: &str, allowed: &[String]) -> anyhow::Result<Vec<String>> {
    let base: Option<reqwest::Url> = source
        .parse()
        .ok()
        .filter(|url: &reqwest::Url| url.has_host());
    let servers: Vec<String> = servers
        .iter()
        .filter_map(|server| match (server.contains("://"), &base) {
            (true, _) => Some(server.clone()),
            (false, Some(base)) => base.join(server).ok().map(String::from),
            (false, None) => None,
        })
        // Normalize the URL, because a person will see it.
        .map(|server| server.parse::<reqwest::Url>().map_or(server, String::from))
        .collect();
    if !allowed.is_empty() {
        let path = servers
            .first()
            .and_then(|server| server.parse::<reqwest::Url>().ok())
            .map(|url| url.path().trim_end_matches('/').to_owned());
        return allowed
            .iter()
            .map(|host| said_host(host, &servers, path.as_deref().unwrap_or_default()))
            .collect();
    }
    if servers.is_empty() {
        bail!("the document does not say where calls go; say it with --allow-host HOST");
    }
    for server in &servers {
        let origin: Origin = server
            .parse()
            .with_context(|| format!("the document wants calls to go to {}", shown(server)))?;
        if let Some(why) = private(&origin) {
            bail!(
                "the document wants calls to go to {origin}, which is {why}; nothing was added. If you mean it, say --allow-host {}",
                origin.host_and_port()
            );
        }
    }
    Ok(servers)
}

fn said_host(said: &str, servers: &[String], path: &str) -> anyhow::Result<String> {
    let of_document = servers.iter().find(|server| {
        server.parse::<Origin>().is_ok_and(|origin| {
            origin.host_and_port() == said
                || origin.host() == said
                || said.parse().is_ok_and(|said: Origin| said == origin)
        })
    });
    if let Some(server) = of_document {
        return Ok(server.clone());
    }
    if said.contains("://") {
        let url: reqwest::Url = said
            .parse()
            .with_context(|| format!("`{said}` is not a host"))?;
        Origin::of(&url)?;
        return Ok(match url.path() {
            "/" => format!("{}{path}", said.trim_end_matches('/')),
            _ => said.to_owned(),
        });
    }
    // Hosts on a private network rarely have a certificate.
    let origin: Origin = format!("https://{said}")
        .parse()
        .with_context(|| format!("`{said}` is not a host"))?;
    let scheme = if private(&origin).is_some() {
        "http"
    } else {
        "https"
    };
    Ok(format!("{scheme}://{said}{path}"))
}

/// Returns why an origin is not on the public internet, as far as its name or address shows without a DNS lookup.
fn private(origin: &Origin) -> Option<&'static str> {
    let is_local = origin.host() == "localhost"
        || origin.host().ends_with(".localhost")
        || origin.host().ends_with(".internal");
    match origin.address() {
        Some(address) => denied(address),
        None => is_local.then_some("local"),
    }
}

fn agrees(hosts: &[String], terminal: &dyn Terminal) -> anyhow::Result<bool> {
    let question = format!(
        "Calls to this API will go to {}. Allow that? [y/N] ",
        hosts.join(", ")
    );
    Ok(terminal
        .ask(&question)?
        .is_some_and(|answer| ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())))
}

async fn list(
    catalogue_store: &CatalogueStore,
    json: bool,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let all = catalogue_store.list().await?;
    if json {
        let rows = all.iter().map(|catalogue| json!({ "name": catalogue.name, "title": catalogue.title, "hosts": catalogue.hosts, "calls": catalogue.apis.len() }));
        terminal.json(&Json::Array(rows.collect()));
        return Ok(Exit::Done);
    }
    for catalogue in &all {
        let hosts = match catalogue.hosts.as_slice() {
            [first, _, ..] => format!("{first} and {} more", catalogue.hosts.len() - 1),
            hosts => hosts.join(""),
        };
        terminal.line(&format!(
            "{:<16} {:>5} calls  {}  {hosts}",
            catalogue.name,
            catalogue.apis.len(),
            shown(&catalogue.title),
        ));
    }
    Ok(Exit::Done)
}

async fn show(
    catalogue_store: &CatalogueStore,
    name: &str,
    json: bool,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let Some(catalogue) = catalogue_store.find(name).await? else {
        bail!("there is no API `{name}`; `archie api list` says which there are");
    };
    if json {
        terminal.json(&serde_json::to_value(&catalogue)?);
        return Ok(Exit::Done);
    }
    terminal.line(&format!("{}: {}", catalogue.name, shown(&catalogue.title)));
    terminal.line(&format!("calls go to {}", catalogue.hosts.join(", ")));
    if let Some(key) = &catalogue.key {
        terminal.line(&format!(
            "the key in {} goes to {} and nowhere else",
            key.variable, key.origin
        ));
    }
    for category in catalogue.categories() {
        terminal.line(&shown(category));
        for api in catalogue
            .apis
            .iter()
            .filter(|api| api.category_name == category)
        {
            terminal.line(&format!("  {}", in_a_line(api)));
        }
    }
    Ok(Exit::Done)
}

fn in_a_line(api: &Api) -> String {
    let asks = if api.is_read() { "" } else { "  (asks first)" };
    format!(
        "{:<6} {}  {}{asks}",
        api.method,
        shown(&api.api_url),
        shown(&api.tool_name)
    )
}

const SKIPPED_TOLD: usize = 5;
