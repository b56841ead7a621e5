//! `archie threads`, `show`, `export`, `import` and `delete`.

use anyhow::{Context, bail};
use archie_agent::clock::now;
use archie_agent::layout::{columns, cut};
use archie_agent::printable::{counted, grouped, one_line};
use archie_agent::style::Face;
use archie_agent::time_text::ago;
use archie_agent::user_folder::{Access, read_named_file, write_named_file};
use archie_agent::value_diff::value_line;
use archie_agent::{Exit, Terminal};
use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::{Status, ThreadQuery, ThreadRow};
use superstep::{Archive, ThreadId, Timestamp};
use superstep_server::ThreadFiles as _;

use super::files;
use crate::app::App;
use crate::cli::args::{DeleteArgs, FileArgs, ImportArgs, ThreadArgs, ThreadsArgs};
use crate::inbox::{self, InboxItem, ShortIds};
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
    print_rows(&rows, app, terminal).await?;
    Ok(Exit::Done)
}

/// Prints threads as lines of a list.
async fn print_rows(rows: &[ThreadRow], app: &App, terminal: &dyn Terminal) -> anyhow::Result<()> {
    let ids = thread_ids(app, rows).await?;
    let lines: Vec<ThreadLine> = rows.iter().map(|row| ThreadLine::new(row, &ids)).collect();
    let widest = |of: fn(&ThreadLine) -> &str| {
        let widths = lines.iter().map(|line| columns(of(line)));
        widths.max().unwrap_or_default()
    };
    let widths = [
        widest(|line| &line.id),
        widest(|line| &line.agent),
        widest(|line| line.status),
        widest(|line| &line.when),
    ];
    for line in &lines {
        line.print(widths, terminal);
    }
    Ok(())
}

/// A thread in a list for people.
struct ThreadLine {
    id: String,
    agent: String,
    status: &'static str,
    face: Face,
    when: String,
    title: String,
}

impl ThreadLine {
    fn new(row: &ThreadRow, ids: &ShortIds) -> Self {
        let title = row.metadata.get("title").and_then(Json::as_str);
        let (status, face) = status_words(row.head.status);
        Self {
            id: short_thread_id(ids, &row.thread),
            agent: row.graph.clone(),
            status,
            face,
            when: ago(row.updated.0, now().0),
            title: title.unwrap_or_default().to_owned(),
        }
    }

    /// Prints the thread on one line. At a terminal, the title is cut so that the line fits.
    fn print(&self, widths: [usize; 4], terminal: &dyn Terminal) {
        let padded = |text: &str, width: usize| {
            let blanks = " ".repeat(width.saturating_sub(columns(text)));
            format!("{text}{blanks}  ")
        };
        let (id, agent) = (padded(&self.id, widths[0]), padded(&self.agent, widths[1]));
        let status = padded(self.status, widths[2]);
        let when = padded(&self.when, widths[3]);
        let used = [&id, &agent, &status, &when].map(|part| columns(part));
        let used: usize = used.iter().sum();
        let title = match terminal.columns() {
            Some(width) => cut(
                &one_line(&self.title),
                width.saturating_sub(used).max(TITLE_MIN),
            ),
            None => one_line(&self.title),
        };
        terminal.line_of(&[
            (Face::Bold, &id),
            (Face::Plain, &agent),
            (self.face, &status),
            (Face::Dim, &when),
            (Face::Plain, &title),
        ]);
    }
}

/// Returns the ids that a short thread id must differ from: those of the listed and of the newest threads.
async fn thread_ids(app: &App, listed: &[ThreadRow]) -> anyhow::Result<ShortIds> {
    let newest = app.rows(ThreadQuery::default(), COMPARED).await?;
    let ids = listed.iter().chain(&newest).map(|row| &row.thread);
    Ok(ShortIds::of(ids.map(|id| id.to_string())))
}

fn short_thread_id(ids: &ShortIds, id: &ThreadId) -> String {
    let id = id.to_string();
    let short = ids.shorten_to(&id, SHORT_ID_CHARS);
    match short.ends_with('-') {
        true => id.chars().take(short.chars().count() + 1).collect(),
        false => short,
    }
}

/// Returns the beginning of a thread's id that none of the newest threads shares, with at least eight characters.
pub(super) async fn short_id(app: &App, id: &ThreadId) -> anyhow::Result<String> {
    let ids = thread_ids(app, &[]).await?;
    Ok(short_thread_id(&ids, id))
}

/// Returns the status of a thread as people say it, and its face.
pub(super) fn status_words(status: Status) -> (&'static str, Face) {
    match status {
        Status::Idle => ("finished", Face::Plain),
        Status::Running => ("running", Face::Ok),
        Status::Paused => ("waiting for you", Face::Waiting),
        Status::Failed => ("failed", Face::Error),
        Status::Cancelled => ("cancelled", Face::Error),
        Status::StepLimit => ("step limit", Face::Error),
        Status::Deleted => ("being deleted", Face::Dim),
    }
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
    let title = row.metadata.get("title").and_then(Json::as_str);
    if let Some(title) = title.filter(|title| !title.is_empty()) {
        terminal.line_of(&[(Face::Bold, &one_line(title))]);
    }
    let (status, face) = status_words(row.head.status);
    let at = now().0;
    let begun = format!("started {}", ago(row.created.0, at));
    let changed = format!(
        "changed {}, at entry {}",
        ago(row.updated.0, at),
        state.seq.0
    );
    terminal.line_of(&[
        (Face::Plain, &row.graph),
        (Face::Plain, ", "),
        (face, status),
        (Face::Plain, &format!(", {begun}, {changed}")),
    ]);
    terminal.line(&format!("thread {}", row.thread));
    for item in &items {
        let summary = cut(&item.asked.summary(), SUMMARY_COLUMNS);
        terminal.line_of(&[(Face::Waiting, "asks: "), (Face::Plain, &summary)]);
        terminal.hint(&format!("answer it with `archie inbox {}`", item.short_id));
    }
    if let Json::Object(fields) = &values {
        show_fields(fields, terminal);
    }
    let short = short_id(app, &row.thread).await?;
    if row.head.status == Status::Paused {
        terminal.hint(&format!("resume with `archie resume {short}`"));
    }
    terminal.aside(&format!(
        "`archie history {short}` says what happened; `--json` shows all"
    ));
    Ok(Exit::Done)
}

/// Prints the fields that hold something, one line each, and the names of the others.
fn show_fields(fields: &Map<String, Json>, terminal: &dyn Terminal) {
    let is_empty = |value: &Json| match value {
        Json::Null => true,
        Json::String(text) => text.trim().is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::Bool(_) | Json::Number(_) => false,
    };
    for (name, value) in fields.iter().filter(|(_, value)| !is_empty(value)) {
        let begin = format!("  {}: ", one_line(name));
        let room = LINE_COLUMNS.saturating_sub(columns(&begin)).max(TITLE_MIN);
        terminal.line_of(&[
            (Face::Plain, &begin),
            (Face::Plain, &cut(&field_text(value), room)),
        ]);
    }
    let empty = fields.iter().filter(|(_, value)| is_empty(value));
    let empty: Vec<_> = empty.map(|(name, _)| one_line(name)).collect();
    if !empty.is_empty() {
        terminal.line_of(&[(Face::Dim, "  empty: "), (Face::Dim, &empty.join(", "))]);
    }
}

/// Returns a value for a line of its own: a list by its length and its last item.
fn field_text(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let count = counted(items.len(), "item");
            let last = items.last().map(value_line).unwrap_or_default();
            match items.len() {
                1 => format!("{count}: {last}"),
                _ => format!("{count}, the last one: {last}"),
            }
        }
        other => value_line(other),
    }
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
    let short = short_id(app, &id).await?;
    terminal.hint(&format!("imported {short}; `archie show {short}` shows it"));
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
            print_rows(several, app, terminal).await?;
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
    // The words that the list shows are as good as the names in JSON.
    let is_meant = |status: &Status| status.as_str() == text || status_words(*status).0 == text;
    match all.into_iter().find(is_meant) {
        Some(status) => Ok(status),
        None => bail!(
            "`{text}` is not a status; there are {}",
            all.map(Status::as_str).join(", ")
        ),
    }
}

/// Formats a value on one line, cut to 100 columns after a word.
pub(super) fn short(value: &Json) -> String {
    cut(&value_line(value), SHORT_COLUMNS)
}

/// Formats a time for a person, in UTC.
pub(super) fn time(at: Timestamp) -> String {
    let moment = chrono::DateTime::from_timestamp_millis(at.0).unwrap_or_default();
    moment.format("%Y-%m-%d %H:%M:%S").to_string()
}

const SHORT_COLUMNS: usize = 100;
/// Minimum length of the short id of a thread.
const SHORT_ID_CHARS: usize = 8;
/// Number of threads that a short id is compared with, besides the listed ones.
const COMPARED: u32 = 1_000;
/// Columns that a title or a value gets in any case.
const TITLE_MIN: usize = 16;
/// Columns of a line of `archie show`.
const LINE_COLUMNS: usize = 78;
/// Columns of what a thread asks, in `archie show`.
const SUMMARY_COLUMNS: usize = 200;

/// Maximum size of an exported thread, in bytes.
const ARCHIVE_BYTES_MAX: u64 = 2 << 30;

#[test]
fn times_are_dates() {
    assert_eq!(time(Timestamp(0)), "1970-01-01 00:00:00");
    assert_eq!(time(Timestamp(1_794_700_799_000)), "2026-11-14 23:59:59");
    assert_eq!(time(Timestamp(1_709_164_800_000)), "2024-02-29 00:00:00");
}
