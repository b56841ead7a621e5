//! `archie diff`: compares two states, those of open subgraphs included.

use std::collections::BTreeSet;

use anyhow::Context;
use archie_agent::layout::cut;
use archie_agent::style::Face;
use archie_agent::value_diff::differences;
use archie_agent::{Exit, Output, Terminal, each_entry};
use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::format::Change;
use superstep::diff::{StateFields, compared_graphs};
use superstep::{Seq, ThreadId};

use super::questions::{self, ThreadQuestion};
use super::sheet_diff;
use crate::app::App;
use crate::cli::args::DiffArgs;
use crate::inbox::display::{height, page};

pub(super) async fn run(
    args: &DiffArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (one, other) = (
        ComparedThread::load(&args.one, app).await?,
        ComparedThread::load(&args.other, app).await?,
    );
    let talk = talk_differences(&one, &other);
    let (one, other) = paired(one.fields, other.fields);
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differ: Vec<_> = names
        .into_iter()
        .filter(|name| one.get(*name) != other.get(*name))
        .collect();
    let workbooks = sheet_diff::threads(&args.one, &args.other, app).await?;
    let workbooks = workbooks.filter(|compared| !compared.is_same());
    if args.json {
        let fields = differ.iter().map(|name| {
            let sides = json!({ "one": one.get(*name), "other": other.get(*name) });
            ((*name).clone(), sides)
        });
        let fields = fields.chain(workbooks.iter().map(sheet_diff::field));
        terminal.json(&Json::Object(fields.collect()));
        return Ok(Exit::Done);
    }
    if differ.is_empty() && talk.is_empty() {
        terminal.line("the two are the same");
    }
    let mut lines = Vec::new();
    if !talk.is_empty() {
        lines.push((Face::Bold, "questions and answers:".to_owned()));
        lines.extend(talk);
    }
    for name in differ {
        for found in differences(name, one.get(name), other.get(name)) {
            lines.push((Face::Bold, format!("{}:", found.path)));
            lines.extend(found.lines.iter().map(|line| changed_line(line)));
        }
    }
    if !lines.is_empty() {
        terminal.aside(&format!("- {} only", args.one));
        terminal.aside(&format!("+ {} only", args.other));
    }
    print(&lines, terminal)?;
    if let Some(compared) = workbooks {
        terminal.line("contents of the workbooks:");
        sheet_diff::print(&compared, terminal);
    }
    Ok(Exit::Done)
}

fn changed_line(line: &str) -> (Face, String) {
    let face = match line.starts_with('-') {
        true => Face::Error,
        false => Face::Ok,
    };
    (face, format!("  {line}"))
}

/// Prints lines in their faces, or one screen at a time if they do not fit into one.
fn print(lines: &[(Face, String)], terminal: &dyn Terminal) -> anyhow::Result<()> {
    let fits = |(columns, rows): (usize, usize)| {
        let heights = lines.iter().map(|(_, line)| height(line, columns));
        heights.sum::<usize>() < rows
    };
    if terminal.page_size().is_none_or(fits) {
        for (face, line) in lines {
            terminal.line_of(&[(*face, line)]);
        }
        return Ok(());
    }
    let text: Vec<_> = lines.iter().map(|(_, line)| line.as_str()).collect();
    let output = Output {
        terminal,
        json: false,
        told: &[],
        streamed: "",
    };
    page(&output, &text.join("\n"))?;
    Ok(())
}

/// One side of a comparison.
struct ComparedThread {
    id: ThreadId,
    fields: StateFields,
    /// What was asked and answered up to the entry that is compared.
    questions: Vec<ThreadQuestion>,
    /// The thread and the entry that this one was copied from.
    origin: Option<(String, Seq)>,
}

impl ComparedThread {
    /// Loads `THREAD` or `THREAD@ENTRY`.
    async fn load(named: &str, app: &App) -> anyhow::Result<Self> {
        let (prefix, at) = match named.split_once('@') {
            Some((prefix, entry)) => {
                let entry = entry
                    .parse()
                    .with_context(|| format!("`{entry}` is not an entry"))?;
                (prefix, Some(Seq(entry)))
            }
            None => (named, None),
        };
        let (thread, row) = app.find(prefix).await?;
        let state = thread
            .state(at)
            .await?
            .with_context(|| format!("`{named}` has no state"))?;
        let mut fields = StateFields::new(state.values.decode()?);
        for inner in thread.subgraphs(at).await? {
            fields = fields.with_subgraph(&inner.frame, inner.values.decode()?);
        }
        let mut questions = questions::load(app, &row.thread).await?;
        questions.retain(|question| question.asked <= state.seq);
        for question in &mut questions {
            if question.closed.is_none_or(|closed| closed > state.seq) && at.is_some() {
                question.answer = None;
            }
        }
        let mut origin = None;
        each_entry(&*thread, Seq(0), |past| {
            for change in &past.entry.changes {
                if let Change::Forked(forked) = change {
                    origin = forked.thread.clone().map(|thread| (thread, forked.seq));
                }
            }
            Ok(())
        })
        .await?;
        Ok(Self {
            id: row.thread,
            fields,
            questions,
            origin,
        })
    }

    /// Returns the questions that are not also those of a copy: a copy takes over what was answered before it was made.
    fn own_questions(&self, other: &Self) -> Vec<&ThreadQuestion> {
        let copied = other.origin.as_ref();
        let copied = copied.filter(|(thread, _)| *thread == self.id.to_string());
        let is_shared = |question: &ThreadQuestion| {
            let closed = question.closed;
            copied.is_some_and(|(_, at)| closed.is_some_and(|closed| closed <= *at))
        };
        let own = self
            .questions
            .iter()
            .filter(|question| !is_shared(question));
        own.collect()
    }
}

/// Returns the questions that only one thread asked, and those that were answered in another way.
fn talk_differences(one: &ComparedThread, other: &ComparedThread) -> Vec<(Face, String)> {
    let (ours, mut theirs) = (one.own_questions(other), other.own_questions(one));
    let mut lines = Vec::new();
    let mut push = |question: &ThreadQuestion, changed: &[(char, &ThreadQuestion)]| {
        let text = cut(&question.text, QUESTION_COLUMNS);
        lines.push((Face::Plain, format!("  {text}")));
        for (mark, question) in changed {
            let answer = match &question.answer {
                Some(answer) => format!("{}: {}", answer.by, cut(&answer.text, QUESTION_COLUMNS)),
                None => "(no answer yet)".to_owned(),
            };
            lines.push(changed_line(&format!("{mark} {answer}")));
        }
    };
    for question in ours {
        // The same question may be asked several times; the first one that is left is its counterpart.
        let same = theirs
            .iter()
            .position(|theirs| theirs.text == question.text);
        match same.map(|at| theirs.remove(at)) {
            Some(theirs) if said(theirs) == said(question) => {}
            Some(theirs) => push(question, &[('-', question), ('+', theirs)]),
            None => push(question, &[('-', question)]),
        }
    }
    for question in theirs {
        push(question, &[('+', question)]);
    }
    lines
}

fn said(question: &ThreadQuestion) -> Option<&str> {
    let answer = question.answer.as_ref();
    answer.map(|answer| answer.text.as_str())
}

/// Puts the fields of both sides under the same names: those of a subgraph after its path.
fn paired(one: StateFields, other: StateFields) -> (Map<String, Json>, Map<String, Json>) {
    let (mut left, mut right) = (Map::new(), Map::new());
    for graph in compared_graphs(one, other) {
        add(&mut left, &graph.subgraph, graph.one);
        add(&mut right, &graph.subgraph, graph.other);
    }
    (left, right)
}

fn add(all: &mut Map<String, Json>, subgraph: &str, fields: Option<Map<String, Json>>) {
    let named = fields.into_iter().flatten();
    all.extend(named.map(|(name, value)| match subgraph {
        "" => (name, value),
        subgraph => (format!("{subgraph}/{name}"), value),
    }));
}

/// Columns of a question or an answer.
const QUESTION_COLUMNS: usize = 200;
