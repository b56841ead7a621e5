//! The log of states: one JSON line per transition of the last run.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use archie_agent::private_file;
use archie_atris::catalogue_store::CatalogueStore;
use archie_atris::transitions;
use superstep::AnyThread;
use superstep_llm::Secret;

use crate::app::App;

/// Appends the transitions of the last run to a file that only its owner can read.
pub(super) async fn append(file: &Path, thread: &dyn AnyThread, app: &App) -> anyhow::Result<()> {
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
    let mut log = private_file::append(file)
        .with_context(|| format!("cannot open the log `{}`", file.display()))?;
    log.write_all(lines.as_bytes())
        .with_context(|| format!("cannot write the log `{}`", file.display()))
}
