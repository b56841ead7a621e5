//! `archie erase`: deletes everything of a tenant.

use anyhow::{Context, bail};
use archie_agent::clock::now;
use archie_agent::printable::counted;
use archie_agent::{Exit, Terminal};
use superstep::ThreadId;
use superstep_encryption::{ErasureReceipt, is_reserved_tenant};
use superstep_server::{AuditKey, ErasedTenant, ErasureError, TenantData, erase_tenant};

use crate::app::App;
use crate::cli::args::EraseArgs;
use crate::cli::settings::Store;
use crate::commands::audit::read_audit_key;
use crate::storage::{connect, open_sqlite};
use crate::thread_files::AgentFiles;

pub(super) async fn run(
    args: &EraseArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let tenant = args.tenant.as_str();
    if tenant.is_empty() {
        bail!(
            "the unnamed tenant has Archie's own threads and settings; delete threads with `archie delete`"
        );
    }
    ThreadId::of_tenant(tenant, "any")?;
    if is_reserved_tenant(tenant) {
        bail!("`{tenant}` is not a tenant: it holds the data keys of all of them");
    }
    let key = args.key_file.as_deref().map(read_audit_key).transpose()?;
    if !args.yes {
        let sure = terminal.ask(&format!(
            "Erase all threads, runs, crons, keys, items and files of tenant `{tenant}` permanently? [y/N] "
        ))?;
        if !sure.is_some_and(|sure| sure.trim().eq_ignore_ascii_case("y")) {
            terminal.line("nothing was erased");
            return Ok(Exit::Done);
        }
    }
    let waiting = terminal.waiting("erasing");
    let Erasure {
        erased,
        destroyed,
        compacted,
    } = erase(app, tenant, key.as_ref()).await?;
    drop(waiting);
    match args.json {
        true => {
            let mut receipt = erased.receipt(tenant, now());
            if let Some(destroyed) = &destroyed {
                receipt["dataKeys"] = serde_json::to_value(destroyed)?;
            }
            terminal.json(&receipt);
        }
        false => {
            terminal.line(&format!("erased tenant `{tenant}`: {}", summary(&erased)));
            if let Some(destroyed) = &destroyed {
                terminal.line(&format!(
                    "destroyed {}: {}",
                    counted(destroyed.keys.len(), "data key"),
                    destroyed.wrapped_sha256
                ));
            }
            terminal
                .hint("kept: its audit log (`archie audit prune`), and your backups and traces");
            if matches!(app.settings.store, Store::Postgres(_)) {
                terminal.hint(
                    "PostgreSQL keeps deleted rows in its files until `VACUUM FULL` rewrites them",
                );
            }
        }
    }
    // After the receipt, which is true also if this failed.
    compacted.context(
        "the tenant is erased, but bytes of what was deleted may still be in the file of the database; erase it again",
    )?;
    if !erased.is_complete {
        bail!(
            "something still writes for tenant `{tenant}`; stop its issuer of tokens and its runs, then erase it again"
        );
    }
    Ok(Exit::Done)
}

/// What was done about a tenant.
struct Erasure {
    erased: ErasedTenant,
    /// Its data keys, if the database is encrypted and the tenant had any.
    destroyed: Option<ErasureReceipt>,
    /// Whether the file of the database was written without what was deleted.
    compacted: anyhow::Result<()>,
}

/// Deletes everything of a tenant: rows first, which are not listed without their keys, and then the keys.
async fn erase(app: &App, tenant: &str, key: Option<&AuditKey>) -> anyhow::Result<Erasure> {
    let files = AgentFiles::of(app);
    let by = (OPERATOR, now());
    match &app.settings.store {
        Store::Sqlite(path) => {
            let sqlite = open_sqlite(path)?;
            let data = TenantData {
                checkpointer: &sqlite,
                registry: &sqlite,
                store: Some(&sqlite),
                files: Some(&files),
                queue: None,
                cache: Some(&sqlite),
            };
            let erased = erase_tenant(&data, tenant, key, by).await;
            let erased = erased.map_err(with_advice)?;
            let destroyed = destroy_keys(app, tenant).await?;
            let compacted = sqlite.compact().await;
            Ok(Erasure {
                erased,
                destroyed,
                compacted: compacted.map_err(anyhow::Error::from),
            })
        }
        Store::Postgres(url) => {
            let postgres = connect(url).await?;
            let data = TenantData {
                checkpointer: &postgres,
                registry: &postgres,
                store: Some(&postgres),
                files: Some(&files),
                queue: Some(&postgres),
                cache: Some(&postgres),
            };
            let erased = erase_tenant(&data, tenant, key, by).await;
            Ok(Erasure {
                erased: erased.map_err(with_advice)?,
                destroyed: destroy_keys(app, tenant).await?,
                compacted: Ok(()),
            })
        }
    }
}

async fn destroy_keys(app: &App, tenant: &str) -> anyhow::Result<Option<ErasureReceipt>> {
    let Some(encryption) = &app.encryption else {
        return Ok(None);
    };
    let destroyed = encryption.erase_tenant(tenant).await;
    destroyed.context(
        "the rows of the tenant are erased, but its data keys are not destroyed; erase it again",
    )
}

fn with_advice(error: ErasureError) -> anyhow::Error {
    let is_key = matches!(error, ErasureError::AuditKey { .. });
    let error = anyhow::Error::from(error);
    match is_key {
        true => error.context(
            "nothing was erased; name the file of `serve --audit-key-file` with `--key-file`",
        ),
        false => error,
    }
}

fn summary(erased: &ErasedTenant) -> String {
    let rows = &erased.rows;
    let kinds = [
        (erased.threads, "thread"),
        (erased.files, "file"),
        (rows.runs, "run"),
        (rows.assistants, "assistant"),
        (rows.crons, "cron"),
        (rows.deliveries, "delivery"),
        (erased.requests, "request"),
        (rows.api_keys, "API key"),
        (erased.items, "item"),
        (erased.cached, "cached result"),
    ];
    let there = kinds.into_iter().filter(|(count, _)| *count > 0);
    let there: Vec<String> = there
        .map(|(count, kind)| match (kind, count) {
            ("delivery", 2..) => format!("{count} deliveries"),
            _ => counted(count as usize, kind),
        })
        .collect();
    match there.is_empty() {
        true => "there was nothing".to_owned(),
        false => there.join(", "),
    }
}

/// Who the audit log says erased the tenant: commands have no caller.
const OPERATOR: &str = "operator";
