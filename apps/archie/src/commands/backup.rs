//! A copy of everything that is kept, while others go on.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::json;
use superstep_sqlite::Sqlite;

use super::files;
use crate::cli::args::BackupArgs;
use crate::cli::settings::Store;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;

pub(super) async fn run(args: &BackupArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let Store::Sqlite(path) = &home.settings.store else {
        bail!("the threads are in PostgreSQL; back them up with `pg_dump` while they are in use");
    };
    let file = args.file.display();
    if args.file.exists() {
        bail!("`{file}` already exists; refusing to overwrite it");
    }
    let _waiting = say.waiting("copying");
    let store = Sqlite::open(path)?;
    store
        .backup(&args.file)
        .await
        .with_context(|| format!("{file} cannot be written"))?;
    let bytes = std::fs::metadata(&args.file)?.len();
    // After the threads: what a thread names is there before it is named.
    let files = copy_files(args, home).await?;
    match args.json {
        true => say.json(&json!({ "file": file.to_string(), "bytes": bytes, "files": files })),
        false => {
            say.line(&format!(
                "everything is in {file} ({bytes} bytes); `archie --store sqlite:{file}` opens it"
            ));
            if let Some(files) = files {
                say.line(&format!(
                    "files of threads are in {}; they belong into {}",
                    files.display(),
                    home.settings.home.display()
                ));
            }
        }
    }
    Ok(Exit::Done)
}

/// Copies the files of every thread, where they lie below our folder. None if there are none.
async fn copy_files(args: &BackupArgs, home: &Home) -> anyhow::Result<Option<PathBuf>> {
    let mut folders = Vec::new();
    home.each_row(|row| {
        // An agent that is gone has left nothing that anybody knows of.
        folders.extend(files::of(home, &row.graph, &row.thread).ok().flatten());
        ControlFlow::Continue(())
    })
    .await?;
    let beside = files::beside(&args.file);
    for folder in &folders {
        let place = folder.strip_prefix(&home.settings.home)?;
        files::copy(folder, &beside.join(place))?;
    }
    Ok((!folders.is_empty()).then_some(beside))
}
