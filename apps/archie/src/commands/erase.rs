//! `archie erase`: deletes everything of a tenant.

use anyhow::{Context, bail};
use archie_agent::clock::now;
use archie_agent::printable::counted;
use archie_agent::{Exit, Terminal};
use superstep::ThreadId;
use superstep_server::{AuditKey, ErasedTenant, ErasureError, TenantData, erase_tenant};

use crate::app::{App, connect, open_sqlite};
use crate::cli::args::EraseArgs;
use crate::cli::settings::Store;
use crate::commands::audit::read_audit_key;
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
    let (erased, compacted) = erase(app, tenant, key.as_ref()).await?;
    drop(waiting);
    match args.json {
        true => terminal.json(&erased.receipt(tenant, now())),
        false => {
            terminal.line(&format!("erased tenant `{tenant}`: {}", summary(&erased)));
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

/// Deletes everything of a tenant. Returns how much it was, and whether the file of the database was written without it.
async fn erase(
    app: &App,
    tenant: &str,
    key: Option<&AuditKey>,
) -> anyhow::Result<(ErasedTenant, anyhow::Result<()>)> {
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
            let compacted = sqlite.compact().await;
            Ok((erased, compacted.map_err(anyhow::Error::from)))
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
            Ok((erased.map_err(with_advice)?, Ok(())))
        }
    }
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
