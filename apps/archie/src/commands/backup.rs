//! A copy of everything that is kept, while others go on.

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
    let _waiting = terminal.waiting("copying");
    let store = Sqlite::open(path)?;
    store
        .backup(&args.file)
        .await
        .with_context(|| format!("{file} cannot be written"))?;
    let bytes = std::fs::metadata(&args.file)?.len();
    // After the threads: what a thread names is there before it is named.
    let files = copy_files(args, app).await?;
    match args.json {
        true => terminal.json(&json!({ "file": file.to_string(), "bytes": bytes, "files": files })),
        false => {
            terminal.line(&format!(
                "everything is in {file} ({bytes} bytes); `archie --store sqlite:{file}` opens it"
            ));
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

/// Copies the files of every thread, where they lie below our folder. None if there are none.
async fn copy_files(args: &BackupArgs, app: &App) -> anyhow::Result<Option<PathBuf>> {
    let mut folders = Vec::new();
    app.each_row(|row| {
        // An agent that is gone has left nothing that anybody knows of.
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
