//! `archie erase`: deletes everything of a tenant.

use anyhow::bail;
use archie_agent::clock::now;
use archie_agent::printable::counted;
use archie_agent::{Exit, Terminal};
use serde_json::json;
use superstep::ThreadId;
use superstep_server::{ErasedTenant, TenantData, erase_tenant};

use crate::app::{App, connect, open_sqlite};
use crate::cli::args::EraseArgs;
use crate::cli::settings::Store;
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
    let erased = erase(app, tenant).await?;
    drop(waiting);
    match args.json {
        true => terminal.json(&receipt(tenant, &erased)),
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
    if !erased.is_complete {
        bail!(
            "something still writes for tenant `{tenant}`; stop its issuer of tokens and its runs, then erase it again"
        );
    }
    Ok(Exit::Done)
}

async fn erase(app: &App, tenant: &str) -> anyhow::Result<ErasedTenant> {
    let files = AgentFiles::of(app);
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
            let erased = erase_tenant(&data, tenant, now()).await?;
            sqlite.compact().await?;
            Ok(erased)
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
            Ok(erase_tenant(&data, tenant, now()).await?)
        }
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

/// What to keep as evidence that the tenant was erased.
fn receipt(tenant: &str, erased: &ErasedTenant) -> serde_json::Value {
    let rows = &erased.rows;
    json!({
        "tenant": tenant,
        "erasedAt": now().0,
        "complete": erased.is_complete,
        "threads": erased.threads,
        "files": erased.files,
        "items": erased.items,
        "runs": rows.runs,
        "assistants": rows.assistants,
        "crons": rows.crons,
        "deliveries": rows.deliveries,
        "apiKeys": rows.api_keys,
        "requestKeys": rows.request_keys,
        "requests": erased.requests,
        "cachedResults": erased.cached,
    })
}
