//! `archie threads`, `show`, `history`, `export`, `import` and `delete`.

use anyhow::{Context, bail};
use archie_agent::clock::now;
use archie_agent::printable::{counted, grouped, one_line};
use archie_agent::user_folder::{Access, read_named_file, write_named_file};
use archie_agent::{Exit, Terminal, each_entry};
use serde_json::{Value as Json, json};
use superstep::checkpoint::{Status, ThreadQuery, ThreadRow};
use superstep::{Archive, Seq, Timestamp};
use superstep_server::ThreadFiles as _;

use super::files;
use crate::app::App;
use crate::cli::args::{DeleteArgs, FileArgs, ImportArgs, ThreadArgs, ThreadsArgs};
use crate::inbox::{self, InboxItem};
use crate::thread_files::AgentFiles;

pub(super) async fn list(
    args: &ThreadsArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let status = args.status.as_deref().map(status_of).transpose()?;
    let query = ThreadQuery {
        graph: args.agent.clone(),
        statuses: Vec::from_iter(status),
        ..ThreadQuery::default()
    };
    let rows = app.rows(query, args.limit).await?;
    if args.json {
        terminal.json(&Json::Array(rows.iter().map(row_json).collect()));
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        terminal
            .hint("no threads yet; `archie demo` shows what they are, `archie analyze` makes one");
    }
    rows.iter().for_each(|row| terminal.line(&line(row)));
    Ok(Exit::Done)
}

/// Returns a thread as a line of a list.
fn line(row: &ThreadRow) -> String {
    let title = row
        .metadata
        .get("title")
        .and_then(Json::as_str)
        .unwrap_or_default();
    format!(
        "{}  {:<8} {:<9} {}  {}",
        row.thread,
        row.graph,
        row.head.status.as_str(),
        time(row.updated),
        one_line(title)
    )
}

pub(super) async fn show(
    args: &ThreadArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (thread, row) = app.find(&args.thread).await?;
    let state = thread
        .state(None)
        .await?
        .context("the thread has no state yet")?;
    let values: Json = state.values.decode()?;
    let items = inbox::items_of(app, &row.thread).await?;
    let asked = |item: &InboxItem| {
        json!({
            "id": item.id(),
            "short_id": item.short_id,
            "digest": item.asked.digest(),
            "node": item.asked.node,
            "kind": item.asked.kind,
            "request": item.asked.request,
            "askedAt": item.open.row.asked_at.0,
        })
    };
    if args.json {
        let mut shown = row_json(&row);
        shown["values"] = values;
        shown["questions"] = Json::Array(items.iter().map(asked).collect());
        shown["entry"] = json!(state.seq.0);
        terminal.json(&shown);
        return Ok(Exit::Done);
    }
    terminal.line(&format!(
        "{}  {}  {}  entry {}",
        row.thread,
        row.graph,
        row.head.status.as_str(),
        state.seq.0
    ));
    terminal.line(&format!(
        "made {}, changed {}",
        time(row.created),
        time(row.updated)
    ));
    for item in &items {
        terminal.line(&format!("asks: {}", short(&json!(item.asked.summary()))));
        terminal.hint(&format!("answer it with `archie inbox {}`", item.short_id));
    }
    if let Json::Object(fields) = &values {
        for (name, value) in fields {
            terminal.line(&format!("{name}: {}", short(value)));
        }
    }
    if row.head.status == Status::Paused {
        terminal.hint(&format!("resume with `archie resume {}`", row.thread));
    }
    Ok(Exit::Done)
}

pub(super) async fn history(
    args: &ThreadArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (thread, _) = app.find(&args.thread).await?;
    let mut all = Vec::new();
    each_entry(&*thread, Seq(0), |past| {
        let stop = past.entry.stop.as_ref().map(stop_word);
        all.push(json!({
            "entry": past.seq.0,
            "parent": past.entry.parent.0,
            "at": past.entry.at.0,
            "kind": format!("{:?}", past.entry.kind).to_lowercase(),
            "nodes": nodes_of(&past.entry),
            "stop": stop,
        }));
        Ok(())
    })
    .await?;
    if args.json {
        terminal.json(&Json::Array(all));
        return Ok(Exit::Done);
    }
    for line in all {
        let nodes = line["nodes"].as_array().map(|nodes| {
            nodes
                .iter()
                .filter_map(Json::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        });
        terminal.line(&format!(
            "{:>5}  {}  {:<8} {}{}",
            line["entry"],
            time(Timestamp(line["at"].as_i64().unwrap_or(0))),
            line["kind"].as_str().unwrap_or_default(),
            nodes.unwrap_or_default(),
            line["stop"]
                .as_str()
                .map(|stop| format!("  {stop}"))
                .unwrap_or_default(),
        ));
    }
    Ok(Exit::Done)
}

pub(super) async fn export(
    args: &FileArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (_, row) = app.find(&args.thread).await?;
    let archive = app.runtime.export(&row.thread).await?;
    let bytes = archive.to_bytes();
    // The archive contains everything that a person told the agent, so only its owner can read it.
    write_named_file(&args.file, &bytes, Access::Private)
        .with_context(|| format!("{} cannot be written", args.file.display()))?;
    terminal.line(&format!(
        "{} is in {} ({} bytes)",
        row.thread,
        args.file.display(),
        bytes.len()
    ));
    if let Some(its_files) = files::of(app, &row.graph, &row.thread)? {
        let beside = files::beside(&args.file);
        files::copy(&its_files, &beside)?;
        terminal.line(&format!(
            "its files are in {}; take both along",
            beside.display()
        ));
    }
    Ok(Exit::Done)
}

pub(super) async fn import(
    args: &ImportArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let bytes = read_named_file(&args.file, ARCHIVE_BYTES_MAX)
        .with_context(|| format!("{} cannot be read", args.file.display()))?;
    let archive = Archive::from_bytes(&bytes).with_context(|| {
        format!(
            "{} is not a thread that `archie export` wrote",
            args.file.display()
        )
    })?;
    let id = archive.thread.clone();
    let beside = files::beside(&args.file);
    let agent = app.agent(&archive.listing.graph);
    if let (true, Ok(agent)) = (beside.is_dir(), agent)
        && let Some(folder) = agent.ui().files(&id)
    {
        files::copy(&beside, &folder)?;
    }
    app.runtime.import(&id, &archive).await?;
    terminal.hint(&format!("{id} is here; `archie show {id}`"));
    Ok(Exit::Done)
}

pub(super) async fn delete(
    args: &DeleteArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let rows = match args.threads.is_empty() {
        true => matching(args, app).await?,
        false => named(&args.threads, app).await?,
    };
    if rows.is_empty() {
        terminal.line("No thread matches; nothing was deleted.");
        return Ok(Exit::Done);
    }
    let what = match rows.as_slice() {
        [only] => only.thread.to_string(),
        several => {
            several.iter().for_each(|row| terminal.line(&line(row)));
            format!("these {} threads", grouped(several.len()))
        }
    };
    if !args.yes {
        let sure = terminal.ask(&format!("Delete {what} permanently? [y/N] "))?;
        if !sure.is_some_and(|sure| sure.trim().eq_ignore_ascii_case("y")) {
            terminal.line("nothing was deleted");
            return Ok(Exit::Done);
        }
    }
    for row in &rows {
        AgentFiles::of(app).delete_all(&row.thread).await?;
        app.store().delete(&row.thread).await?;
    }
    terminal.line(&match rows.as_slice() {
        [only] => format!("{} is gone", only.thread),
        several => format!("deleted {}", counted(several.len(), "thread")),
    });
    Ok(Exit::Done)
}

/// Returns the threads with these ids or prefixes, each once.
async fn named(prefixes: &[String], app: &App) -> anyhow::Result<Vec<ThreadRow>> {
    let mut rows: Vec<ThreadRow> = Vec::new();
    for prefix in prefixes {
        let (_, row) = app.find(prefix).await?;
        if rows.iter().all(|other| other.thread != row.thread) {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Returns the threads that the options of `delete` select. Running ones only if their status is asked for.
async fn matching(args: &DeleteArgs, app: &App) -> anyhow::Result<Vec<ThreadRow>> {
    if let Some(agent) = &args.agent {
        app.agent(agent)?;
    }
    let status = args.status.as_deref().map(status_of).transpose()?;
    let query = ThreadQuery {
        graph: args.agent.clone(),
        statuses: Vec::from_iter(status),
        ..ThreadQuery::default()
    };
    let age = args.older_than.map(|age| age.as_millis());
    let age = age.map(|age| i64::try_from(age).unwrap_or(i64::MAX));
    let newest = age.map(|age| now().0.saturating_sub(age));
    let mut rows = app.rows(query, u32::MAX).await?;
    rows.retain(|row| {
        let is_idle = status.is_some() || row.head.status != Status::Running;
        is_idle && newest.is_none_or(|newest| row.updated.0 < newest)
    });
    Ok(rows)
}

fn row_json(row: &ThreadRow) -> Json {
    json!({
        "thread": row.thread.to_string(),
        "agent": row.graph,
        "status": row.head.status.as_str(),
        "title": row.metadata.get("title"),
        "createdAt": row.created.0,
        "updatedAt": row.updated.0,
    })
}

fn status_of(text: &str) -> anyhow::Result<Status> {
    let all = [
        Status::Idle,
        Status::Running,
        Status::Paused,
        Status::Failed,
        Status::Cancelled,
        Status::StepLimit,
    ];
    match all.into_iter().find(|status| status.as_str() == text) {
        Some(status) => Ok(status),
        None => bail!(
            "`{text}` is not a status; there are {}",
            all.map(Status::as_str).join(", ")
        ),
    }
}

fn nodes_of(entry: &superstep::checkpoint::format::Entry) -> Vec<String> {
    use superstep::checkpoint::format::Change;
    let nodes = entry.changes.iter().flat_map(|change| match change {
        Change::FrameAdvanced(advanced) => advanced
            .writes
            .iter()
            .map(|write| write.node.to_string())
            .collect::<Vec<_>>(),
        Change::AttemptFailed(failed) => vec![format!("{} failed", failed.failure.node)],
        _ => Vec::new(),
    });
    nodes.collect()
}

fn stop_word(stop: &superstep::checkpoint::format::Stop) -> &'static str {
    use superstep::checkpoint::format::Stop;
    match stop {
        Stop::Finished => "finished",
        Stop::Paused { .. } => "asks",
        Stop::Breakpoint(_) => "breakpoint",
        Stop::StepLimit => "limit",
        Stop::Failed(_) => "failed",
        Stop::Cancelled => "cancelled",
        Stop::Drained => "handed back",
    }
}

/// Formats a value on one line, cut to 100 characters.
pub(super) fn short(value: &Json) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line = text.replace('\n', " ");
    match line.chars().count() > SHORT_CHARS {
        true => format!("{}…", line.chars().take(SHORT_CHARS).collect::<String>()),
        false => line,
    }
}

/// Formats a time for a person, in UTC.
pub(super) fn time(at: Timestamp) -> String {
    let moment = chrono::DateTime::from_timestamp_millis(at.0).unwrap_or_default();
    moment.format("%Y-%m-%d %H:%M:%S").to_string()
}

const SHORT_CHARS: usize = 100;

/// Maximum size of an exported thread, in bytes.
const ARCHIVE_BYTES_MAX: u64 = 2 << 30;

#[test]
fn times_are_dates() {
    assert_eq!(time(Timestamp(0)), "1970-01-01 00:00:00");
    assert_eq!(time(Timestamp(1_794_700_799_000)), "2026-11-14 23:59:59");
    assert_eq!(time(Timestamp(1_709_164_800_000)), "2024-02-29 00:00:00");
}
