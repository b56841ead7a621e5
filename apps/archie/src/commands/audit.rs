//! `archie audit`: lists and verifies the audit log of a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use archie_agent::{Exit, Terminal};
use chrono::DateTime;
use serde_json::{Value as Json, json};
use superstep::registry::{AuditEntry, AuditHead, Registry};
use superstep_server::{AuditKey, AuditVerifier, verify_audit_log};

use crate::app::{connect, open_sqlite};
use crate::cli::settings::{Settings, Store};
use crate::terminal::Console;

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
    let tenants = match &args.tenant {
        Some(tenant) => vec![tenant.clone()],
        None => registry.audited_tenants().await?,
    };
    let mut results = Vec::new();
    let mut is_intact = true;
    for tenant in tenants {
        let name = match tenant.is_empty() {
            true => "the unnamed tenant".to_owned(),
            false => format!("tenant `{tenant}`"),
        };
        let mut verifier = AuditVerifier::new(&tenant, key.as_ref());
        if let Some(anchor) = anchor {
            verifier = verifier.anchor(anchor);
        }
        let (line, result) = match verify_audit_log(registry, &tenant, verifier).await {
            Ok(head) => {
                let end = end_of(head);
                let line = format!("{name}: {} entries are unchanged; end {end}", head.seq);
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
    if args.json {
        terminal.json(&Json::Array(results));
    } else if results.is_empty() {
        terminal.hint("No audit log. `archie serve --audit` writes one.");
    }
    Ok(if is_intact { Exit::Done } else { Exit::Failed })
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
