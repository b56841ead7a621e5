//! `archie encryption`: the keys that encrypt the database. Key files are of people; the data keys that they wrap are in the database.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use archie_agent::clock::now;
use archie_agent::printable::counted;
use archie_agent::{Exit, Terminal, private_file};
use serde_json::{Value as Json, json};
use superstep::Timestamp;
use superstep_encryption::{Encryption, LocalKeys};
use zeroize::Zeroizing;

use crate::cli::interval::age;
use crate::cli::settings::{KeySource, Settings};
use crate::storage::{Storage, read_keys};

/// What to do with the keys of the database.
#[derive(Debug, Clone, clap::Args)]
pub struct EncryptionArgs {
    /// What.
    #[command(subcommand)]
    pub command: EncryptionCommand,
}

/// What to do.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum EncryptionCommand {
    /// Create a key file that only you can read
    CreateKey(KeyFileArgs),
    /// Put a new key in front of those in a key file
    AddKey(KeyFileArgs),
    /// List the tenants that have data keys
    List(ListArgs),
    /// Wrap all data keys with the first key of the key file
    Rewrap(ListArgs),
    /// Create new data keys, for what is written from now on
    Rotate(RotateArgs),
}

/// Which file.
#[derive(Debug, Clone, clap::Args)]
pub struct KeyFileArgs {
    /// Key file
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// How to print.
#[derive(Debug, Clone, clap::Args)]
pub struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Whose data keys.
#[derive(Debug, Clone, clap::Args)]
pub struct RotateArgs {
    /// Tenant. Default: the unnamed one
    #[arg(long, default_value = "", hide_default_value = true)]
    pub tenant: String,
    /// Rotate the keys of all tenants
    #[arg(long, conflicts_with = "tenant")]
    pub all: bool,
    /// Leave out tenants whose newest key is younger, such as 90d
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub older_than: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(
    args: &EncryptionArgs,
    settings: &Settings,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    match &args.command {
        EncryptionCommand::CreateKey(args) => create_key(args, terminal),
        EncryptionCommand::AddKey(args) => add_key(args, terminal),
        EncryptionCommand::List(args) => on_database(settings, async |encryption| {
            list(args, encryption, terminal).await
        }),
        EncryptionCommand::Rewrap(args) => on_database(settings, async |encryption| {
            rewrap(args, encryption, terminal).await
        }),
        EncryptionCommand::Rotate(args) => on_database(settings, async |encryption| {
            rotate(args, encryption, terminal).await
        }),
    }
}

/// Runs a command with the encryption of the database.
fn on_database(
    settings: &Settings,
    command: impl AsyncFnOnce(&Encryption) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let storage = Storage::open(settings).await?;
        let Some(encryption) = &storage.encryption else {
            bail!(
                "the database is not encrypted; create a key with `archie encryption create-key FILE`, and set \
                 `ARCHIE_ENCRYPTION_KEY_FILE`"
            );
        };
        command(encryption).await
    })
}

/// Creates a key file, never over another file: what the other key has encrypted could not be read again.
fn create_key(args: &KeyFileArgs, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let shown = args.file.display();
    if args.file.exists() {
        bail!(
            "`{shown}` already exists; refusing to overwrite it (`archie encryption add-key` adds a key)"
        );
    }
    let key = LocalKeys::generate()?;
    let text = Zeroizing::new(format!("{}\n", key.as_str()));
    let write = || {
        let mut file = fs::OpenOptions::new()
            .write(true)
            // A file that another process creates meanwhile is not overwritten either.
            .create_new(true)
            .mode(0o600)
            .open(&args.file)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().with_context(|| format!("`{shown}` cannot be written"))?;
    let id = first_id(&args.file)?;
    match args.json {
        true => terminal.json(&json!({ "file": shown.to_string(), "key": id })),
        false => {
            terminal.line(&format!("key {id} is in {shown}"));
            terminal
                .hint("keep a copy in another place: without the key, the database cannot be read");
        }
    }
    Ok(Exit::Done)
}

/// Puts a key in front of the others, and replaces the file at once: a process reads the old keys or all of them.
fn add_key(args: &KeyFileArgs, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let shown = args.file.display();
    let old = read_keys(&KeySource::File(args.file.clone()))?;
    let text = fs::read_to_string(&args.file);
    let text = Zeroizing::new(text.with_context(|| format!("`{shown}` cannot be read"))?);
    let key = LocalKeys::generate()?;
    let text = Zeroizing::new(format!("{}\n{}", key.as_str(), text.as_str()));
    // A link to a file in another place stays a link.
    let file = args.file.canonicalize()?;
    private_file::write(&file, text.as_bytes())
        .with_context(|| format!("`{shown}` cannot be written"))?;
    let id = first_id(&args.file)?;
    let others = old.ids().count();
    match args.json {
        true => terminal.json(
            &json!({ "file": shown.to_string(), "key": id, "older": old.ids().collect::<Vec<_>>() }),
        ),
        false => {
            terminal.line(&format!(
                "key {id} is in {shown}, before {}",
                counted(others, "older key")
            ));
            terminal.hint(
                "give the file to every process and restart them, then run `archie encryption rewrap`",
            );
        }
    }
    Ok(Exit::Done)
}

fn first_id(file: &Path) -> anyhow::Result<String> {
    let keys = read_keys(&KeySource::File(file.to_owned()))?;
    let id = keys.ids().next().map(str::to_owned);
    id.context("the key file has no key")
}

async fn list(
    args: &ListArgs,
    encryption: &Encryption,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let mut rows = Vec::new();
    for tenant in encryption.tenants().await? {
        let keys = encryption.data_keys(&tenant).await?;
        let wrapped_by = encryption.wrapped_by(&tenant).await?;
        let erasures = encryption.erasures(&tenant).await?;
        rows.push((tenant, keys, wrapped_by, erasures));
    }
    if args.json {
        let rows = rows.iter().map(|(tenant, keys, wrapped_by, erasures)| {
            json!({ "tenant": tenant, "dataKeys": keys, "wrappedBy": wrapped_by, "erasures": erasures })
        });
        terminal.json(&rows.collect::<Json>());
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        terminal.line("No data keys: nothing is encrypted yet.");
    }
    for (tenant, keys, wrapped_by, erasures) in rows {
        let mut line = format!("{}  {}", name_of(&tenant), counted(keys.len(), "data key"));
        if !wrapped_by.is_empty() {
            line.push_str(&format!("  wrapped by {}", wrapped_by.join(", ")));
        }
        if !erasures.is_empty() {
            line.push_str(&format!("  erased {}", counted(erasures.len(), "time")));
        }
        terminal.line(&line);
    }
    Ok(Exit::Done)
}

async fn rewrap(
    args: &ListArgs,
    encryption: &Encryption,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let key = encryption.current_key();
    let waiting = terminal.waiting("wrapping data keys");
    let done = encryption.rewrap_all(|_| {}).await;
    drop(waiting);
    let done = done.context(
        "not all data keys are wrapped with the first key; keep the older ones, and run this again",
    )?;
    if !done.is_complete {
        bail!(
            "another process still wraps data keys with an older key; restart every process with the new key file, and run this again"
        );
    }
    match args.json {
        true => terminal
            .json(&json!({ "key": key, "tenants": done.tenants, "rewrapped": done.rewrapped })),
        false => {
            terminal.line(&format!(
                "key {key} now wraps the data keys of {} ({} changed)",
                counted(done.tenants, "tenant"),
                done.rewrapped
            ));
            terminal
                .hint("the database needs no other key of the file; backups from before still do");
        }
    }
    Ok(Exit::Done)
}

async fn rotate(
    args: &RotateArgs,
    encryption: &Encryption,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    // Without an age, everything that was created until now.
    let before = match args.older_than {
        Some(age) => {
            let ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            Timestamp(now().0.saturating_sub(ms))
        }
        None => now().plus_ms(1),
    };
    let mut rotated = Vec::new();
    if args.all {
        let progress = |tenant: &str, key| rotated.push((tenant.to_owned(), key));
        let done = encryption.rotate_keys_before(before, progress).await;
        done.context("not all data keys are rotated; `--older-than` leaves out those that are")?;
    } else {
        if encryption.data_keys(&args.tenant).await?.is_empty() {
            bail!(
                "{} has no data keys; `archie encryption list` lists the tenants that have",
                name_of(&args.tenant)
            );
        }
        let key = encryption.rotate_key_before(&args.tenant, before).await?;
        rotated.extend(key.map(|key| (args.tenant.clone(), key)));
    }
    if args.json {
        let rows = rotated
            .iter()
            .map(|(tenant, key)| json!({ "tenant": tenant, "dataKey": key }));
        terminal.json(&rows.collect::<Json>());
        return Ok(Exit::Done);
    }
    for (tenant, key) in &rotated {
        terminal.line(&format!("{}  {key}", name_of(tenant)));
    }
    match rotated.is_empty() {
        true => terminal.line("No data key is old enough."),
        false => terminal.hint(&format!(
            "every process uses them within {} s; older data stays encrypted with the older keys",
            Encryption::KEYS_CACHED.as_secs()
        )),
    }
    Ok(Exit::Done)
}

fn name_of(tenant: &str) -> String {
    match tenant {
        "" => "no tenant".to_owned(),
        tenant => tenant.to_owned(),
    }
}
