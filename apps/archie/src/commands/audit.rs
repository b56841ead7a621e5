//! `archie audit`: lists, verifies and prunes the audit log of a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use archie_agent::{Exit, Terminal};
use chrono::{DateTime, NaiveDate, NaiveTime};
use serde_json::{Value as Json, json};
use superstep::Timestamp;
use superstep::registry::{AuditEntry, AuditHead, Registry};
use superstep_server::{AuditKey, AuditVerifier, prune_audit_log, verify_audit_log};

use crate::cli::settings::{Settings, Store};
use crate::storage::{connect, open_sqlite};
use crate::terminal::Console;

const NO_LOG: &str = "No audit log. `archie serve --audit` writes one.";

/// What to do with the audit log.
#[derive(Debug, Clone, clap::Args)]
pub struct AuditArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: AuditCommand,
}

/// What to do.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum AuditCommand {
    /// Check that no entry was changed, deleted, reordered or cut off
    Verify(VerifyArgs),
    /// List the entries of a tenant, oldest first
    List(ListArgs),
    /// Delete old entries; the rest can still be verified
    Prune(PruneArgs),
}

/// What to check.
#[derive(Debug, Clone, clap::Args)]
pub struct VerifyArgs {
    /// Tenant to check. Default: all
    #[arg(long)]
    pub tenant: Option<String>,
    /// File with the secret of `serve --audit-key-file`
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// End that the log had once, as printed before: NUMBER:HASH
    #[arg(long, value_name = "END", requires = "tenant")]
    pub anchor: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to list.
#[derive(Debug, Clone, clap::Args)]
pub struct ListArgs {
    /// Tenant. Default: the unnamed one
    #[arg(long, default_value = "", hide_default_value = true)]
    pub tenant: String,
    /// List entries after this number
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub after: u64,
    /// Number of entries to list
    #[arg(long, default_value_t = 100)]
    pub limit: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to delete.
#[derive(Debug, Clone, clap::Args)]
pub struct PruneArgs {
    /// Delete entries before this day (UTC) or time: 2026-01-31
    #[arg(long, value_name = "DATE", value_parser = read_time)]
    pub before: Timestamp,
    /// Tenant. Default: all
    #[arg(long)]
    pub tenant: Option<String>,
    /// File with the secret of `serve --audit-key-file`
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(
    args: &AuditArgs,
    settings: &Settings,
    terminal: &Console,
) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let registry: Arc<dyn Registry> = match &settings.store {
            Store::Sqlite(path) => Arc::new(open_sqlite(path)?),
            Store::Postgres(url) => Arc::new(connect(url).await?),
        };
        match &args.command {
            AuditCommand::Verify(args) => verify(args, &*registry, terminal).await,
            AuditCommand::List(args) => list(args, &*registry, terminal).await,
            AuditCommand::Prune(args) => prune(args, &*registry, terminal).await,
        }
    })
}

/// Reads the secret under which entries are hashed.
pub(super) fn read_audit_key(file: &Path) -> anyhow::Result<AuditKey> {
    let name = file.display();
    let secret = std::fs::read(file).with_context(|| format!("cannot read `{name}`"))?;
    AuditKey::new(secret.trim_ascii())
        .with_context(|| format!("the secret in `{name}` is shorter than 16 bytes"))
}

async fn verify(
    args: &VerifyArgs,
    registry: &dyn Registry,
    terminal: &Console,
) -> anyhow::Result<Exit> {
    let key = args.key_file.as_deref().map(read_audit_key).transpose()?;
    let anchor = args.anchor.as_deref().map(read_anchor).transpose()?;
    let tenants = tenants_of(args.tenant.as_ref(), registry).await?;
    let mut results = Vec::new();
    let mut is_intact = true;
    for tenant in tenants {
        let name = shown_tenant(&tenant);
        let mut verifier = AuditVerifier::new(&tenant, key.as_ref());
        if let Some(anchor) = anchor {
            verifier = verifier.anchor(anchor);
        }
        let (line, result) = match verify_audit_log(registry, &tenant, verifier).await {
            Ok(head) => {
                let end = end_of(head);
                let line = match head.seq {
                    1 => format!("{name}: 1 entry is unchanged; end {end}"),
                    entries => format!("{name}: {entries} entries are unchanged; end {end}"),
                };
                (
                    line,
                    json!({ "tenant": tenant, "entries": head.seq, "end": end }),
                )
            }
            Err(problem) => {
                is_intact = false;
                let line = format!("{name}: {problem}");
                (
                    line,
                    json!({ "tenant": tenant, "problem": problem.to_string() }),
                )
            }
        };
        if !args.json {
            terminal.line(&line);
        }
        results.push(result);
    }
    print_results(results, args.json, terminal);
    Ok(if is_intact { Exit::Done } else { Exit::Failed })
}

/// Deletes old entries of each log, and prints the end of each: what an operator notes elsewhere.
async fn prune(
    args: &PruneArgs,
    registry: &dyn Registry,
    terminal: &Console,
) -> anyhow::Result<Exit> {
    let now = archie_agent::clock::now();
    if args.before > now {
        bail!("`--before` is in the future; only entries that are old can be pruned");
    }
    let key = args.key_file.as_deref().map(read_audit_key).transpose()?;
    let tenants = tenants_of(args.tenant.as_ref(), registry).await?;
    let mut results = Vec::new();
    let mut is_intact = true;
    for tenant in tenants {
        let name = shown_tenant(&tenant);
        let by = ("operator", now);
        let pruned = prune_audit_log(registry, &tenant, key.as_ref(), args.before, by).await;
        let (line, result) = match pruned {
            Ok(pruned) => {
                let end = end_of(pruned.head);
                let line = match pruned.deleted {
                    1 => format!("{name}: 1 entry was pruned; end {end}"),
                    entries => format!("{name}: {entries} entries were pruned; end {end}"),
                };
                let result = json!({ "tenant": tenant, "pruned": pruned.deleted, "end": end });
                (line, result)
            }
            Err(problem) => {
                is_intact = false;
                let line = format!("{name}: nothing was pruned, because {problem}");
                let result = json!({ "tenant": tenant, "problem": problem.to_string() });
                (line, result)
            }
        };
        if !args.json {
            terminal.line(&line);
        }
        results.push(result);
    }
    print_results(results, args.json, terminal);
    Ok(if is_intact { Exit::Done } else { Exit::Failed })
}

/// Returns the named tenant, or all that have a log.
async fn tenants_of(
    named: Option<&String>,
    registry: &dyn Registry,
) -> anyhow::Result<Vec<String>> {
    Ok(match named {
        Some(tenant) => vec![tenant.clone()],
        None => registry.audited_tenants().await?,
    })
}

/// Prints the results of all tenants as JSON, or says that there is no log. Their lines were printed one by one.
fn print_results(results: Vec<Json>, json: bool, terminal: &Console) {
    if json {
        terminal.json(&Json::Array(results));
    } else if results.is_empty() {
        terminal.hint(NO_LOG);
    }
}

fn shown_tenant(tenant: &str) -> String {
    match tenant {
        "" => "the unnamed tenant".to_owned(),
        tenant => format!("tenant `{tenant}`"),
    }
}

/// Reads a day, which begins at midnight UTC, or a time with its offset.
fn read_time(text: &str) -> Result<Timestamp, String> {
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d");
    let ms = match day {
        Ok(day) => day.and_time(NaiveTime::MIN).and_utc().timestamp_millis(),
        Err(_) => DateTime::parse_from_rfc3339(text)
            .map_err(|_| "not a day such as 2026-01-31, nor a time such as 2026-01-31T12:00:00Z")?
            .timestamp_millis(),
    };
    Ok(Timestamp(ms))
}

async fn list(
    args: &ListArgs,
    registry: &dyn Registry,
    terminal: &Console,
) -> anyhow::Result<Exit> {
    let entries = registry.audit(&args.tenant, args.after, args.limit).await?;
    if args.json {
        terminal.json(&entries.iter().map(shown).collect::<Json>());
        return Ok(Exit::Done);
    }
    if entries.is_empty() {
        let is_written = registry.audited_tenants().await?.contains(&args.tenant);
        terminal.hint(if is_written {
            "No more entries."
        } else {
            NO_LOG
        });
    }
    for entry in &entries {
        let AuditEntry {
            seq,
            principal,
            action,
            resource,
            detail,
            ..
        } = entry;
        let who = if principal.is_empty() { "-" } else { principal };
        let at = time(entry);
        terminal.line(&format!(
            "{seq}  {at}  {who}  {action}  {resource}  {detail}"
        ));
    }
    Ok(Exit::Done)
}

fn shown(entry: &AuditEntry) -> Json {
    json!({
        "seq": entry.seq,
        "at": time(entry),
        "principal": entry.principal,
        "action": entry.action,
        "resource": entry.resource,
        "detail": serde_json::from_str::<Json>(&entry.detail).unwrap_or_default(),
        "hash": hex(&entry.hash),
    })
}

fn time(entry: &AuditEntry) -> String {
    let at = DateTime::from_timestamp_millis(entry.at.0);
    at.map_or_else(
        || entry.at.0.to_string(),
        |at| at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
    )
}

fn end_of(head: AuditHead) -> String {
    format!("{}:{}", head.seq, hex(&head.hash))
}

/// Reads what [`end_of`] writes.
fn read_anchor(text: &str) -> anyhow::Result<AuditHead> {
    let read = || {
        let (seq, digits) = text.split_once(':')?;
        let is_hex = digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let mut hash = [0; 32];
        for (at, byte) in hash.iter_mut().enumerate().filter(|_| is_hex) {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
        }
        let seq = seq.parse().ok()?;
        is_hex.then_some(AuditHead { seq, hash })
    };
    read().with_context(|| {
        format!("`{text}` is not an end of an audit log, such as `archie audit verify` prints")
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn an_end_is_read_as_it_is_printed() {
    let head = AuditHead {
        seq: 42,
        hash: [0xab; 32],
    };
    assert_eq!(read_anchor(&end_of(head)).unwrap(), head);
    for bad in [
        "",
        "42",
        "42:ab",
        "x:abababab",
        &format!("42:{}", "é".repeat(32)),
    ] {
        assert!(read_anchor(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_day_begins_at_midnight_and_a_time_has_an_offset() {
    let midnight = read_time("2026-01-31").unwrap();
    assert_eq!(read_time("2026-01-31T01:00:00+01:00"), Ok(midnight));
    for bad in ["", "31.1.2026", "2026-02-30", "2026-01-31T12:00:00"] {
        assert!(read_time(bad).is_err(), "{bad}");
    }
}
