//! The log of states: one JSON line per transition of the last run.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use archie_agent::private_file;
use archie_atris::catalogue_store::CatalogueStore;
use archie_atris::transitions;
use superstep::AnyThread;
use superstep_llm::Secret;

use crate::app::App;

/// Opens the log, before the run starts. Fails if it is a link or if others can read it.
pub(super) fn open(file: &Path) -> anyhow::Result<File> {
    private_file::append(file).with_context(|| format!("cannot open the log `{}`", file.display()))
}

/// Appends the transitions of the last run to the log.
pub(super) async fn append(
    log: &mut File,
    thread: &dyn AnyThread,
    app: &App,
) -> anyhow::Result<()> {
    let catalogues = CatalogueStore::new(app.memory.clone()).list().await?;
    let secrets: Vec<Secret> = catalogues
        .iter()
        .filter_map(|catalogue| Secret::from_env(&catalogue.key.as_ref()?.variable))
        .collect();
    let mut lines = String::new();
    for transition in transitions(thread, &secrets).await? {
        let mut line = serde_json::to_value(&transition)?;
        line["thread"] = thread.id().to_string().into();
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    log.write_all(lines.as_bytes())
        .context("cannot write the log")
}
