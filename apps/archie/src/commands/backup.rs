//! `archie backup`: copies the database and the threads' files while they are in use.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, bail};
use archie_agent::{Exit, Terminal};
use serde_json::json;
use superstep_sqlite::Sqlite;

use super::files;
use crate::app::App;
use crate::cli::args::BackupArgs;
use crate::cli::settings::Store;

pub(super) async fn run(
    args: &BackupArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let Store::Sqlite(path) = &app.settings.store else {
        bail!("the threads are in PostgreSQL; back them up with `pg_dump` while they are in use");
    };
    let file = args.file.display();
    if args.file.exists() {
        bail!("`{file}` already exists; refusing to overwrite it");
    }
    let waiting = terminal.waiting("copying");
    let store = Sqlite::open(path)?;
    store
        .backup(&args.file)
        .await
        .with_context(|| format!("{file} cannot be written"))?;
    let bytes = std::fs::metadata(&args.file)?.len();
    // Copy files after the database: a file exists before a thread refers to it.
    let files = copy_files(args, app).await?;
    // The spinner would share its line with what follows.
    drop(waiting);
    match args.json {
        true => terminal.json(&json!({ "file": file.to_string(), "bytes": bytes, "files": files })),
        false => {
            terminal.line(&format!(
                "everything is in {file} ({bytes} bytes); `archie --store sqlite:{file}` opens it"
            ));
            if app.encryption.is_some() {
                terminal.hint("it is encrypted, and the key is not in it: keep the key elsewhere");
            }
            if let Some(files) = files {
                terminal.line(&format!(
                    "files of threads are in {}; they belong into {}",
                    files.display(),
                    app.settings.home.display()
                ));
            }
        }
    }
    Ok(Exit::Done)
}

/// Copies the files of every thread next to the backup, at their paths relative to the home folder. Returns the folder, or
/// `None` if no thread has files.
async fn copy_files(args: &BackupArgs, app: &App) -> anyhow::Result<Option<PathBuf>> {
    let mut folders = Vec::new();
    app.each_row(|row| {
        // Only an agent knows where its threads' files are. Skip threads whose agent is not in this program.
        folders.extend(files::of(app, &row.graph, &row.thread).ok().flatten());
        ControlFlow::Continue(())
    })
    .await?;
    let beside = files::beside(&args.file);
    for folder in &folders {
        let place = folder.strip_prefix(&app.settings.home)?;
        files::copy(folder, &beside.join(place))?;
    }
    Ok((!folders.is_empty()).then_some(beside))
}
