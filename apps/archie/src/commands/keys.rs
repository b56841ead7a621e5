//! `archie keys`: the API keys of `archie serve`, in the store itself, so that the first one can be made before the server runs.

use std::sync::Arc;

use anyhow::{Context, bail};
use archie_agent::clock::now;
use archie_agent::{Exit, Terminal};
use serde_json::{Value as Json, json};
use superstep::checkpoint::Page;
use superstep::registry::{ApiKey, Registry};
use superstep::{ApiKeyId, Timestamp};
use superstep_server::{ApiKeyRequest, Permission, Permissions};

use crate::cli::settings::{Settings, Store};
use crate::storage::{connect, open_sqlite};

/// What to do with API keys.
#[derive(Debug, Clone, clap::Args)]
pub struct KeysArgs {
    /// What.
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// What to do.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum KeysCommand {
    /// Create a key and print it once
    Create(CreateArgs),
    /// List the keys of a tenant, newest first
    List {
        /// Tenant. Default: the unnamed one
        #[arg(long, default_value = "")]
        tenant: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Replace a key; the old one stays valid for a while
    Rotate {
        /// Id of the key
        key: String,
        /// How long the old key stays valid: 90s, 10m, 12h or 30d
        #[arg(long, default_value = "1h", value_name = "TIME")]
        grace: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key at once
    Revoke {
        /// Id of the key
        key: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What the key is for.
#[derive(Debug, Clone, clap::Args)]
pub struct CreateArgs {
    /// Who acts with the key: a name for runs and answers
    #[arg(long, value_name = "NAME")]
    pub principal: String,
    /// Permissions: read, run, answer, edit, admin
    #[arg(long, value_delimiter = ',', required = true, value_name = "LIST")]
    pub permissions: Vec<String>,
    /// Tenant. Default: the unnamed one
    #[arg(long, default_value = "")]
    pub tenant: String,
    /// What people call the key
    #[arg(long, default_value = "")]
    pub name: String,
    /// Reach only what the principal created
    #[arg(long)]
    pub restricted: bool,
    /// Time until the key expires, such as 12h or 30d; default: never
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(
    args: &KeysArgs,
    settings: &Settings,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let registry: Arc<dyn Registry> = match &settings.store {
            Store::Sqlite(path) => Arc::new(open_sqlite(path)?),
            Store::Postgres(url) => Arc::new(connect(url).await?),
        };
        obey(&args.command, &*registry, terminal).await
    })
}

async fn obey(
    command: &KeysCommand,
    registry: &dyn Registry,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    match command {
        KeysCommand::Create(args) => {
            let permissions = permissions_of(&args.permissions)?;
            let expires = args.expires.as_deref().map(seconds_of).transpose()?;
            let request = ApiKeyRequest {
                tenant: args.tenant.clone(),
                principal: args.principal.clone(),
                name: args.name.clone(),
                permissions,
                is_restricted: args.restricted,
                expires: expires.map(|seconds| after(now(), seconds)),
            };
            create(request, registry, args.json, terminal).await
        }
        KeysCommand::List { tenant, json } => list(tenant, registry, *json, terminal).await,
        KeysCommand::Rotate { key, grace, json } => {
            let grace = seconds_of(grace)?;
            let old = find(key, registry).await?;
            if !old.is_valid_at(now()) {
                bail!("`{key}` has expired; create another key with `archie keys create`");
            }
            let request = ApiKeyRequest {
                tenant: old.tenant.clone(),
                principal: old.principal.clone(),
                name: old.name.clone(),
                permissions: Permissions::from_number(old.permissions),
                is_restricted: old.is_restricted,
                expires: old.expires,
            };
            let created = create(request, registry, *json, terminal).await?;
            // After the new key is stored: a failure between the two leaves the old key as it was.
            let at = after(now(), grace);
            registry.expire_api_key(&old.tenant, old.id, at).await?;
            Ok(created)
        }
        KeysCommand::Revoke { key, json } => {
            let old = find(key, registry).await?;
            registry.expire_api_key(&old.tenant, old.id, now()).await?;
            match json {
                true => terminal.json(&json!({ "revoked": old.id.to_string() })),
                false => terminal.line(&format!(
                    "{} is revoked; servers refuse it within 5 seconds",
                    old.id
                )),
            }
            Ok(Exit::Done)
        }
    }
}

/// Creates a key and prints it: this once, because only its hash is stored.
async fn create(
    request: ApiKeyRequest,
    registry: &dyn Registry,
    json: bool,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let issued = request.issue(now())?;
    if !registry.create_api_key(&issued.key).await? {
        bail!("a key with the id `{}` exists; try again", issued.key.id);
    }
    match json {
        true => {
            let mut printed = shown(&issued.key);
            printed["key"] = issued.text.into();
            terminal.json(&printed);
        }
        false => {
            terminal.aside(&format!(
                "The key {} of {}. It is printed only now; keep it in a safe place.",
                issued.key.id, issued.key.principal
            ));
            terminal.line(&issued.text);
        }
    }
    Ok(Exit::Done)
}

async fn list(
    tenant: &str,
    registry: &dyn Registry,
    json: bool,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let mut keys = Vec::new();
    loop {
        let page = Page {
            limit: LISTED_AT_ONCE,
            offset: u32::try_from(keys.len())?,
        };
        let found = registry.api_keys(tenant, page).await?;
        let is_last = found.len() < LISTED_AT_ONCE as usize;
        keys.extend(found);
        if is_last {
            break;
        }
    }
    if json {
        terminal.json(&keys.iter().map(shown).collect::<Json>());
        return Ok(Exit::Done);
    }
    if keys.is_empty() {
        terminal.line("No keys.");
    }
    for key in &keys {
        let mut line = format!("{}  {}  {}", key.id, key.principal, names_of(key).join(","));
        if key.is_restricted {
            line.push_str("  restricted");
        }
        if !key.name.is_empty() {
            line.push_str(&format!("  {}", key.name));
        }
        match key.expires {
            Some(at) if at <= now() => line.push_str("  expired"),
            Some(at) => {
                let seconds = at.0.saturating_sub(now().0) / 1_000;
                line.push_str(&format!("  expires in {seconds} s"));
            }
            None => {}
        }
        terminal.line(&line);
    }
    Ok(Exit::Done)
}

async fn find(text: &str, registry: &dyn Registry) -> anyhow::Result<ApiKey> {
    // A person may paste the key itself, so the text is not repeated.
    let Ok(id) = text.parse::<ApiKeyId>() else {
        bail!("this is not the id of a key; `archie keys list` shows the ids");
    };
    let found = registry.api_key(id).await?;
    found.with_context(|| format!("there is no key `{id}`; `archie keys list` shows the keys"))
}

fn permissions_of(names: &[String]) -> anyhow::Result<Permissions> {
    let read = names.iter().map(|name| {
        Permission::from_name(name).with_context(|| {
            let known: Vec<&str> = Permission::ALL.iter().map(|found| found.name()).collect();
            format!(
                "`{name}` is not a permission; there are {}",
                known.join(", ")
            )
        })
    });
    read.collect()
}

fn names_of(key: &ApiKey) -> Vec<&'static str> {
    let permissions = Permissions::from_number(key.permissions);
    permissions.iter().map(Permission::name).collect()
}

/// Returns a key as JSON, without its secret. Times are in milliseconds since 1970.
fn shown(key: &ApiKey) -> Json {
    json!({
        "key_id": key.id.to_string(),
        "tenant": key.tenant,
        "principal": key.principal,
        "name": key.name,
        "permissions": names_of(key),
        "restricted": key.is_restricted,
        "created": key.created.0,
        "expires": key.expires.map(|at| at.0),
    })
}

fn after(now: Timestamp, seconds: u64) -> Timestamp {
    now.plus_ms(seconds.saturating_mul(1_000))
}

/// Reads a length of time such as `30d`.
fn seconds_of(text: &str) -> anyhow::Result<u64> {
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let read = units.iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        count
            .checked_mul(*seconds)
            .filter(|all| *all <= SECONDS_MAX)
    });
    read.with_context(|| format!("`{text}` is not a length of time; write 90s, 10m, 12h or 30d"))
}

const LISTED_AT_ONCE: u32 = 500;
/// A hundred years.
const SECONDS_MAX: u64 = 100 * 366 * 86_400;

#[test]
fn lengths_of_time_are_read() {
    assert_eq!(seconds_of("90s").unwrap(), 90);
    assert_eq!(seconds_of("30d").unwrap(), 30 * 86_400);
    for text in ["", "d", "30", "-1d", "1w", "99999999999999999d"] {
        assert!(seconds_of(text).is_err(), "{text}");
    }
}
