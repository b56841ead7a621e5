//! `archie history`: what happened in a thread, entry by entry, and where to fork it.

use std::collections::BTreeMap;

use archie_agent::clock::now;
use archie_agent::layout::cut;
use archie_agent::style::Face;
use archie_agent::time_text::ago;
use archie_agent::value_diff::value_line;
use archie_agent::{AgentUi, Exit, Terminal, UsageTotal, each_entry};
use serde_json::{Value as Json, json};
use superstep::checkpoint::format::{Change, Entry, EntryKind, Stop};
use superstep::{HistoryEntry, Seq};

use super::questions::{self, ThreadQuestion};
use super::threads::short_id;
use crate::app::App;
use crate::cli::args::ThreadArgs;

pub(super) async fn run(
    args: &ThreadArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (thread, row) = app.find(&args.thread).await?;
    let questions = questions::load(app, &row.thread).await?;
    let agent = app.agent(&row.graph)?;
    let mut entries = Vec::new();
    each_entry(&*thread, Seq(0), |past| {
        entries.push(EntrySummary::new(past, &questions, agent.ui()));
        Ok(())
    })
    .await?;
    if args.json {
        let entries = entries.into_iter().map(|entry| entry.json);
        terminal.json(&Json::Array(entries.collect()));
        return Ok(Exit::Done);
    }
    let id = short_id(app, &row.thread).await?;
    let at = now().0;
    for entry in &entries {
        let seq = entry.seq.0;
        let when = ago(entry.json["at"].as_i64().unwrap_or_default(), at);
        let mut begin = format!("{seq:>5}  {when:<11}  ");
        for (face, text) in &entry.lines {
            terminal.line_of(&[(Face::Dim, &begin), (*face, text)]);
            begin = " ".repeat(begin.chars().count());
        }
    }
    let asking = entries.iter().rev().find(|entry| entry.asks);
    if let Some(entry) = asking {
        let seq = entry.seq.0;
        terminal.aside(&format!(
            "To give another answer to what entry {seq} asked, in a copy:\n  archie fork {id} --at {seq} --answer \"…\""
        ));
    } else if let Some(entry) = entries.last() {
        let seq = entry.seq.0;
        terminal.aside(&format!(
            "To continue from an entry in a copy:\n  archie fork {id} --at {seq}"
        ));
    }
    Ok(Exit::Done)
}

/// What an entry says to a person, and to a program.
struct EntrySummary {
    seq: Seq,
    lines: Vec<(Face, String)>,
    /// Whether the thread asked a person here.
    asks: bool,
    json: Json,
}

impl EntrySummary {
    fn new(past: &HistoryEntry, questions: &[ThreadQuestion], ui: &dyn AgentUi) -> Self {
        let entry = &past.entry;
        let mut spent = UsageTotal::default();
        spent.add_entry(past);
        let asked: Vec<_> = questions
            .iter()
            .filter(|question| question.asked == past.seq)
            .collect();
        let answered: Vec<_> = questions
            .iter()
            .filter(|question| question.closed == Some(past.seq) && question.answer.is_some())
            .collect();
        let writes = writes_of(entry);
        let mut lines = beginning(entry, ui);
        lines.extend(answered.iter().flat_map(|question| answer_lines(question)));
        let steps = writes
            .iter()
            .map(|(node, fields)| step_line(node, fields, ui));
        let steps = steps.filter(|line| !line.is_empty());
        lines.extend(steps.map(|line| (Face::Plain, line)));
        lines.extend(failures(entry));
        lines.extend(asked.iter().map(|question| {
            let text = cut(&question.text, TEXT_COLUMNS);
            (Face::Waiting, format!("asked: {text}"))
        }));
        lines.extend(ending(entry));
        if spent.calls > 0 {
            lines.push((Face::Dim, spent.known()));
        }
        if lines.is_empty() {
            lines.push((Face::Plain, kind_word(entry.kind).to_owned()));
        }
        let wrote: BTreeMap<_, _> = writes
            .iter()
            .map(|(node, fields)| (node.clone(), fields.keys().collect::<Vec<_>>()))
            .collect();
        let json = json!({
            "entry": past.seq.0,
            "parent": entry.parent.0,
            "at": entry.at.0,
            "kind": kind_word(entry.kind),
            "nodes": nodes_of(entry),
            "stop": entry.stop.as_ref().map(stop_word),
            "asked": asked.iter().map(|question| question.json()).collect::<Vec<_>>(),
            "answered": answered.iter().map(|question| question.json()).collect::<Vec<_>>(),
            "wrote": wrote,
        });
        Self {
            seq: past.seq,
            lines,
            asks: !asked.is_empty(),
            json,
        }
    }
}

/// Returns how an entry begins: with an input, as a copy, or with an update from outside.
fn beginning(entry: &Entry, ui: &dyn AgentUi) -> Vec<(Face, String)> {
    let lines = entry.changes.iter().filter_map(|change| match change {
        Change::FrameOpened(opened) if entry.kind == EntryKind::Input => {
            let input: Json = opened.input.as_ref()?.decode().ok()?;
            let text = match ui.describe_input(&input) {
                Some(text) => cut(&text, TEXT_COLUMNS),
                None => shown_fields(&input.as_object()?.clone().into_iter().collect()),
            };
            Some(format!("started with {text}"))
        }
        Change::Forked(forked) => Some(match &forked.thread {
            Some(thread) => format!("copied from {thread} at entry {}", forked.seq.0),
            None => format!("went back to entry {}", forked.seq.0),
        }),
        Change::StateWritten(written) => {
            let update: Json = written.update.as_ref()?.decode().ok()?;
            let fields: Fields = update.as_object()?.clone().into_iter().collect();
            Some(format!("changed from outside: {}", shown_fields(&fields)))
        }
        _ => None,
    });
    lines.map(|line| (Face::Plain, line)).collect()
}

/// Returns what a node did: in the words of its agent, or else its name and the fields that it wrote. Empty if there is nothing
/// to say.
fn step_line(node: &str, fields: &Fields, ui: &dyn AgentUi) -> String {
    let update = Json::Object(fields.clone().into_iter().collect());
    match ui.describe_step(node, &update) {
        Some(text) => cut(&text, TEXT_COLUMNS),
        None if fields.is_empty() => format!("{node} ran"),
        None => format!("{node} wrote {}", shown_fields(fields)),
    }
}

fn answer_lines(question: &ThreadQuestion) -> Vec<(Face, String)> {
    let answer = question.answer.iter().map(|answer| {
        let text = cut(&answer.text, TEXT_COLUMNS);
        (Face::Ok, format!("{} answered: {text}", answer.by))
    });
    answer.collect()
}

fn failures(entry: &Entry) -> Vec<(Face, String)> {
    let lines = entry.changes.iter().filter_map(|change| match change {
        Change::AttemptFailed(failed) => {
            let why = cut(&failed.failure.message, TEXT_COLUMNS);
            Some((
                Face::Error,
                format!("{} failed: {why}", failed.failure.node),
            ))
        }
        _ => None,
    });
    lines.collect()
}

/// Returns how the run stopped, unless the question that it stopped at says so.
fn ending(entry: &Entry) -> Option<(Face, String)> {
    Some(match entry.stop.as_ref()? {
        Stop::Paused { .. } => return None,
        Stop::Finished => (Face::Ok, "finished".to_owned()),
        Stop::Breakpoint(_) => (Face::Waiting, "stopped at a breakpoint".to_owned()),
        Stop::StepLimit => (Face::Error, "stopped at its step limit".to_owned()),
        Stop::Failed(failures) => {
            let why = failures.first().map(|failure| failure.message.as_str());
            let why = cut(why.unwrap_or_default(), TEXT_COLUMNS);
            (Face::Error, format!("failed: {why}"))
        }
        Stop::Cancelled => (Face::Error, "cancelled".to_owned()),
        Stop::Drained => (Face::Plain, "handed to another worker".to_owned()),
    })
}

type Fields = BTreeMap<String, Json>;

/// Returns the nodes of an entry with the fields that each wrote.
fn writes_of(entry: &Entry) -> Vec<(String, Fields)> {
    let mut found = Vec::new();
    for change in &entry.changes {
        let Change::FrameAdvanced(advanced) = change else {
            continue;
        };
        for write in &advanced.writes {
            let mut fields = Fields::new();
            for update in &write.updates {
                // A value of a type that this version does not know has no fields to show.
                if let Ok(Json::Object(update)) = update.decode() {
                    fields.extend(update);
                }
            }
            found.push((write.node.to_string(), fields));
        }
    }
    found
}

/// Returns fields in one line: short values as they are, long ones cut after a word, lists by their length.
fn shown_fields(fields: &Fields) -> String {
    let shown = fields.iter().map(|(name, value)| match value {
        Json::Null => format!("{name} (cleared)"),
        Json::Array(items) => match items.len() {
            1 => format!("{name} (1 item)"),
            count => format!("{name} ({count} items)"),
        },
        Json::Object(fields) if fields.len() > 3 => format!("{name} ({} fields)", fields.len()),
        Json::String(text) if text.is_empty() => format!("{name} (empty)"),
        value => format!("{name} “{}”", cut(&value_line(value), VALUE_COLUMNS)),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn nodes_of(entry: &Entry) -> Vec<String> {
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

fn kind_word(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Input => "input",
        EntryKind::Step => "step",
        EntryKind::Attempt => "attempt",
        EntryKind::Stop => "stop",
        EntryKind::Update => "update",
        EntryKind::Fork => "fork",
        EntryKind::Resume => "resume",
    }
}

fn stop_word(stop: &Stop) -> &'static str {
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

/// Columns of a question, an answer or a reason.
const TEXT_COLUMNS: usize = 200;
/// Columns of the value of a field.
const VALUE_COLUMNS: usize = 50;

#[test]
fn fields_are_short_and_cut_after_a_word() {
    let fields = Fields::from([
        ("a".to_owned(), json!("short")),
        ("b".to_owned(), json!("word ".repeat(40))),
        ("c".to_owned(), json!([1])),
        ("d".to_owned(), Json::Null),
        ("e".to_owned(), json!({ "role": "user" })),
    ]);
    assert_eq!(
        shown_fields(&fields),
        "a “short”, b “word word word word word word word word word word…”, c (1 item), d (cleared), e “role: user”"
    );
}
