//! Compares two workbooks: `archie sheet diff`, and the workbooks of two threads for `archie diff`.

use std::path::Path;

use anyhow::Context;
use archie_agent::printable::one_line;
use archie_agent::user_folder::read_named_file;
use archie_agent::{Exit, Terminal};
use archie_sheet::book::compare::Comparison;
use archie_sheet::book::guard;
use archie_sheet::snapshots::SnapshotStore;
use archie_sheet::state::GraphState;
use archie_sheet::{NAME, output};
use serde_json::json;
use superstep::Seq;

use crate::app::App;

/// Compares two files.
pub(super) fn files(
    one: &Path,
    other: &Path,
    json: bool,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let read = |path: &Path| {
        let bytes = read_named_file(path, guard::PACKED_MAX);
        bytes.with_context(|| format!("`{}` cannot be read", path.display()))
    };
    let compared = Comparison::of(&read(one)?, &read(other)?)?;
    match json {
        true => terminal.json(&compared.json()),
        false if compared.is_same() => terminal.line("the two are the same"),
        false => print(&compared, terminal),
    }
    Ok(Exit::Done)
}

pub(super) fn print(compared: &Comparison, terminal: &dyn Terminal) {
    for line in compared.lines() {
        terminal.line(&one_line(&line));
    }
}

/// Compares the workbooks of two threads, each given as `THREAD` or `THREAD@ENTRY`. Returns `None` if one of them has no
/// workbook.
pub(super) async fn threads(
    one: &str,
    other: &str,
    app: &App,
) -> anyhow::Result<Option<Comparison>> {
    match (workbook(one, app).await?, workbook(other, app).await?) {
        (Some(one), Some(other)) => Ok(Some(Comparison::of(&one, &other)?)),
        _ => Ok(None),
    }
}

async fn workbook(named: &str, app: &App) -> anyhow::Result<Option<Vec<u8>>> {
    let (prefix, entry) = match named.split_once('@') {
        Some((prefix, entry)) => (prefix, entry.parse().ok().map(Seq)),
        None => (named, None),
    };
    let (thread, row) = app.find(prefix).await?;
    if row.graph != NAME {
        return Ok(None);
    }
    let Some(state) = thread.state(entry).await? else {
        return Ok(None);
    };
    let state: GraphState = state.values.decode()?;
    if state.problem.workbook.hash.is_empty() {
        return Ok(None);
    }
    let snapshots = SnapshotStore::under(&app.settings.home);
    Ok(Some(output::result(&snapshots, &row.thread, &state)?))
}

/// Name of the field under which `archie diff --json` reports the workbooks.
pub(super) const FIELD: &str = "workbook_content";

/// Returns the differences for `archie diff --json`.
pub(super) fn field(compared: &Comparison) -> (String, serde_json::Value) {
    (FIELD.to_owned(), json!({ "differences": compared.json() }))
}
