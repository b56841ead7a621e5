//! `archie size`: how many bytes threads take in the database.

use archie_agent::layout::columns;
use archie_agent::printable::{counted, grouped};
use archie_agent::{Exit, Terminal};
use serde_json::{Value as Json, json};
use superstep::checkpoint::{Page, SizeGroup, SizeQuery, SizeRow, StoredSize};

use crate::app::App;
use crate::cli::args::{SizeArgs, SizeBy};

pub(super) async fn run(
    args: &SizeArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let query = SizeQuery {
        tenant: None,
        thread: None,
        by: match args.by {
            SizeBy::Tenant => SizeGroup::Tenant,
            SizeBy::Graph => SizeGroup::Graph,
            SizeBy::Thread => SizeGroup::Thread,
        },
        page: Page {
            limit: args.limit,
            offset: 0,
        },
    };
    let waiting = terminal.waiting("measuring");
    let rows = app.runtime.sizes(&query).await?;
    drop(waiting);
    if args.json {
        terminal.json(&Json::Array(rows.iter().map(row_json).collect()));
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        terminal.hint("no threads yet; `archie demo` shows what they are");
    }
    let bytes: Vec<String> = rows.iter().map(|row| bytes_text(row.bytes())).collect();
    let widest = bytes.iter().map(|text| columns(text)).max();
    let width = widest.unwrap_or_default();
    for (row, bytes) in rows.iter().zip(&bytes) {
        terminal.line(&format!("{bytes:>width$}  {}", name_of(row)));
    }
    Ok(Exit::Done)
}

/// Returns what a line is about: a thread with its graph, or a group with its number of threads.
fn name_of(row: &SizeRow) -> String {
    let graph = match row.graph.as_deref() {
        Some("") => Some("no graph yet"),
        graph => graph,
    };
    if let Some(thread) = &row.thread {
        return format!("{thread}  {}", graph.unwrap_or_default());
    }
    let threads = counted(usize::try_from(row.threads).unwrap_or(usize::MAX), "thread");
    let tenant = match row.tenant.as_str() {
        "" => "no tenant",
        tenant => tenant,
    };
    match graph {
        Some(graph) => format!("{tenant}  {graph}  {threads}"),
        None => format!("{tenant}  {threads}"),
    }
}

/// Returns a number of bytes for people: `512 B`, `12.4 MiB`.
fn bytes_text(bytes: u64) -> String {
    if bytes < 1_024 {
        return format!(
            "{} B",
            grouped(usize::try_from(bytes).unwrap_or(usize::MAX))
        );
    }
    let (mut scaled, mut unit) = (bytes as f64 / 1_024.0, "KiB");
    for larger in ["MiB", "GiB", "TiB"] {
        if scaled < 1_024.0 {
            break;
        }
        scaled /= 1_024.0;
        unit = larger;
    }
    format!("{scaled:.1} {unit}")
}

fn row_json(row: &SizeRow) -> Json {
    let section = |size: StoredSize| json!({ "count": size.count, "bytes": size.bytes });
    json!({
        "tenant": row.tenant,
        "graph": row.graph,
        "thread": row.thread.as_ref().map(ToString::to_string),
        "threads": row.threads,
        "bytes": row.bytes(),
        "entries": section(row.entries),
        "snapshots": section(row.snapshots),
        "records": section(row.records),
        "interrupts": section(row.interrupts),
    })
}

#[test]
fn bytes_are_in_the_unit_that_people_read() {
    for (bytes, text) in [
        (0, "0 B"),
        (1_023, "1,023 B"),
        (1_024, "1.0 KiB"),
        (1_536, "1.5 KiB"),
        (13_000_000, "12.4 MiB"),
        (5 << 40, "5.0 TiB"),
        (5_000 << 40, "5000.0 TiB"),
    ] {
        assert_eq!(bytes_text(bytes), text);
    }
}
