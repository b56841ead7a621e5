//! Reads the runs of a thread from its entries.
//!
//! Ids derive from the position of a span, and never from what came after it began, so that a span has the same id, and its
//! children the same parent, whether it is read while it is in progress or when it is over.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::checkpoint::InterruptRow;
use crate::checkpoint::format::{
    AfterFailure, AttemptFailed, Change, Entry, EntryKind, Forked, FrameAdvanced, FrameOpened,
    RunRecord, Stop, TaskWrite,
};
use crate::error::Failure;
use crate::ids::{FramePath, InterruptId, NodeName, RunId, Seq, ThreadId, Timestamp};
use crate::trace::{CallSpan, Span, SpanId, SpanKind, SpanNames, fields, spans};

pub(super) fn runs(
    thread: &ThreadId,
    entries: &[(Seq, Entry)],
    questions: &[InterruptRow],
) -> Vec<Span> {
    let answered = questions
        .iter()
        .filter_map(|row| Some((row.id, row.answered_at?)));
    let mut reading = Reading {
        thread,
        answered: answered.collect(),
        runs: Vec::new(),
        open: BTreeMap::new(),
        waiting: None,
    };
    for (seq, entry) in entries {
        reading.entry(*seq, entry);
    }
    reading.leave_open();
    reading.runs.into_iter().map(|run| run.span).collect()
}

struct Reading<'a> {
    thread: &'a ThreadId,
    answered: BTreeMap<InterruptId, Timestamp>,
    runs: Vec<ReadRun>,
    /// The supersteps in progress, of the root graph and of subgraphs.
    open: BTreeMap<FramePath, Open>,
    waiting: Option<Waiting>,
}

struct ReadRun {
    begun: Seq,
    run: RunId,
    span: Span,
}

/// A superstep in progress.
struct Open {
    /// Entry that planned it.
    since: Seq,
    /// Number within its graph.
    number: u64,
    /// Number of supersteps planned before it, including those that never ended.
    turn: u64,
    start: Timestamp,
    /// Failed attempts, and waits.
    inner: Vec<Span>,
    /// By task: how many attempts failed, and when the next one begins.
    tried: BTreeMap<u32, (u32, Timestamp)>,
    /// The supersteps of subgraphs that its tasks entered.
    inside: Vec<(FramePath, Vec<Span>)>,
    /// Names of those subgraphs for people.
    called: BTreeMap<FramePath, String>,
}

impl Open {
    fn first(since: Seq, start: Timestamp) -> Self {
        Self {
            since,
            number: 1,
            turn: 0,
            start,
            inner: Vec::new(),
            tried: BTreeMap::new(),
            inside: Vec::new(),
            called: BTreeMap::new(),
        }
    }

    fn after(before: &Self, since: Seq, start: Timestamp) -> Self {
        Self {
            number: before.number,
            turn: before.turn + 1,
            ..Self::first(since, start)
        }
    }

    fn is_blank(&self) -> bool {
        self.inner.is_empty() && self.inside.is_empty()
    }
}

/// The run stopped, and waits for a person.
struct Waiting {
    seq: Seq,
    at: Timestamp,
    /// `None` at a breakpoint, where no superstep is in progress.
    asked: Option<Vec<InterruptId>>,
}

impl Reading<'_> {
    fn entry(&mut self, seq: Seq, entry: &Entry) {
        let at = entry.at;
        if !matches!(entry.kind, EntryKind::Input | EntryKind::Fork) {
            self.end_wait(entry);
        }
        for change in &entry.changes {
            match change {
                Change::RunStarted(record) => self.begin(seq, entry, record),
                Change::Forked(forked) => self.fork(seq, at, forked),
                Change::FrameOpened(opened) => self.opened(seq, at, opened),
                Change::FrameAdvanced(advanced) if entry.kind == EntryKind::Update => {
                    self.edited(seq, at, &advanced.frame);
                }
                Change::FrameAdvanced(advanced) => self.advanced(seq, at, advanced),
                Change::AttemptFailed(failed) => self.attempt(seq, at, failed),
                Change::RunResumed(_) | Change::StateWritten(_) | Change::Replanned(_) => {
                    self.goes_on();
                }
            }
        }
        if let Some(stop) = &entry.stop {
            self.stop(seq, at, stop);
        }
    }

    fn begin(&mut self, seq: Seq, entry: &Entry, record: &RunRecord) {
        let at = entry.at;
        self.abandon(at);
        let number = u128::from_be_bytes(record.run.to_bytes());
        let id = SpanId::new(number as u64 ^ (number >> 64) as u64);
        let span = self.new_run(seq, at, record.run, &record.graph, id);
        if let Some(caller) = entry.extensions.caller() {
            let caller = Json::from(caller.to_string());
            span.fields.insert(fields::CALLER.to_owned(), caller);
        }
    }

    fn fork(&mut self, seq: Seq, at: Timestamp, forked: &Forked) {
        self.abandon(at);
        let from = self.runs.iter().rev().find(|run| run.begun <= forked.seq);
        let graph_of = |span: &Span| match span.fields.get(fields::GRAPH) {
            Some(Json::String(graph)) => graph.clone(),
            _ => span.name.clone(),
        };
        let Some((run, graph)) = from.map(|from| (from.run, graph_of(&from.span))) else {
            return;
        };
        // Several copies of a thread may each be forked, so the thread is part of the id.
        let place = mixed(hashed(self.thread.to_string().as_bytes()), seq.0);
        let id = SpanId::new(mixed(hashed(&run.to_bytes()), place));
        let span = self.new_run(seq, at, run, &graph, id);
        let from = Json::from(forked.seq.0);
        span.fields.insert(fields::FORKED.to_owned(), from);
        self.open.insert(FramePath::root(), Open::first(seq, at));
    }

    fn new_run(
        &mut self,
        begun: Seq,
        at: Timestamp,
        run: RunId,
        graph: &str,
        id: SpanId,
    ) -> &mut Span {
        let mut span = Span::new(id, SpanKind::Run, graph.to_owned(), at, None);
        let known = [
            (fields::RUN, run.to_string()),
            (fields::GRAPH, graph.to_owned()),
        ];
        span.fields
            .extend(known.map(|(name, value)| (name.to_owned(), value.into())));
        self.runs.push(ReadRun { begun, run, span });
        let last = self.runs.len() - 1;
        &mut self.runs[last].span
    }

    /// Another run begins: what is in progress here never ends.
    fn abandon(&mut self, at: Timestamp) {
        self.leave_open();
        self.open.clear();
        if let Some(run) = self.runs.last_mut() {
            end_all(&mut run.span, at);
        }
    }

    fn opened(&mut self, seq: Seq, at: Timestamp, opened: &FrameOpened) {
        let frame = &opened.frame;
        let parent = frame.parent().and_then(|parent| self.open.get_mut(&parent));
        // The entry of its first superstep tells that a subgraph was entered; the subgraph began when its task did.
        let start = match parent {
            Some(parent) => {
                parent.inside.push((frame.clone(), Vec::new()));
                parent.start
            }
            None => at,
        };
        let open = match self.open.get(frame) {
            Some(before) => Open::after(before, seq, start),
            None => Open::first(seq, start),
        };
        self.open.insert(frame.clone(), open);
        self.goes_on();
    }

    /// The state of a graph was changed from outside: no node of it ran, and what was in progress inside never ends. Its calls were made
    /// and paid for all the same.
    fn edited(&mut self, seq: Seq, at: Timestamp, frame: &FramePath) {
        let is_inside = |path: &&FramePath| *path == frame || path.is_below(frame);
        let inside: Vec<FramePath> = self.open.keys().filter(is_inside).cloned().collect();
        // The deepest first: a child belongs to its parent's superstep.
        for path in inside.iter().rev() {
            if let Some(open) = self.open.remove(path) {
                self.add_unended(path, open, Some(at));
            }
        }
        self.open.insert(frame.clone(), Open::first(seq, at));
    }

    fn advanced(&mut self, seq: Seq, at: Timestamp, advanced: &FrameAdvanced) {
        let frame = &advanced.frame;
        let Some(mut open) = self.open.remove(frame).or_else(|| self.unplanned(seq, at)) else {
            return;
        };
        let mut next = Open::after(&open, seq, at);
        next.number += 1;
        let id = self.id_of(frame, &open);
        let mut nodes = Vec::new();
        for write in &advanced.writes {
            nodes.push(node(id, write, at, &mut open));
            if let Some(name) = names_in(write).graph_span {
                self.call(frame, name);
            }
        }
        let span = superstep(id, frame, open, nodes, Some(at));
        self.open
            .retain(|below, _| !(below.is_below(frame) && below != frame));
        self.add(frame, span);
        self.open.insert(frame.clone(), next);
        self.goes_on();
    }

    /// After a fork into the middle of a subgraph, no entry tells that it was entered.
    fn unplanned(&self, seq: Seq, at: Timestamp) -> Option<Open> {
        let run = self.runs.last()?;
        let start = self.open.values().map(|open| open.start).min();
        Some(Open::first(seq, start.unwrap_or(run.span.start).min(at)))
    }

    fn attempt(&mut self, seq: Seq, at: Timestamp, failed: &AttemptFailed) {
        let begins = match &failed.then {
            AfterFailure::Retry { at } => *at,
            AfterFailure::Handle => at,
        };
        let open = self.open.get(&failed.frame);
        let start = open.and_then(|open| Some(open.tried.get(&failed.index)?.1));
        self.failure(seq, at, &failed.failure, Some(failed.index), start);
        if let Some(open) = self.open.get_mut(&failed.frame) {
            let tried = (failed.failure.attempts, begins);
            open.tried.insert(failed.index, tried);
        }
    }

    fn failure(
        &mut self,
        seq: Seq,
        at: Timestamp,
        failure: &Failure,
        index: Option<u32>,
        start: Option<Timestamp>,
    ) {
        let Some(open) = self.open.get(&failure.frame) else {
            return;
        };
        let task = index.map_or_else(
            || mixed(hashed(failure.node.as_str().as_bytes()), seq.0),
            |index| u64::from(index) + 1,
        );
        let attempt = ATTEMPT | u64::from(failure.attempts);
        let id = self.id_of(&failure.frame, open).child(task).child(attempt);
        let start = start.unwrap_or(open.start);
        let name = failure.node.to_string();
        let mut span = Span::new(id, SpanKind::Node, name, start, Some(at));
        span.error = Some(failure.message.clone());
        span.known(fields::NODE, failure.node.to_string());
        span.known(fields::ATTEMPT, failure.attempts);
        if let Some(open) = self.open.get_mut(&failure.frame) {
            open.inner.push(span);
        }
    }

    fn stop(&mut self, seq: Seq, at: Timestamp, stop: &Stop) {
        let word = match stop {
            Stop::Finished => "finished",
            Stop::Paused { asked } => {
                self.wait(seq, at, Some(asked.clone()));
                "paused"
            }
            Stop::Breakpoint(_) => {
                self.wait(seq, at, None);
                "paused"
            }
            Stop::StepLimit => "step_limit",
            Stop::Failed(failures) => {
                for failure in failures {
                    self.failure(seq, at, failure, None, None);
                }
                "failed"
            }
            Stop::Cancelled => "cancelled",
            // Another worker continues the run.
            Stop::Drained => return,
        };
        let is_over = word != "paused";
        if is_over {
            self.close_all(seq, at);
        }
        let Some(run) = self.runs.last_mut() else {
            return;
        };
        if let Stop::Failed(failures) = stop {
            run.span.error = failures.first().map(|failure| failure.message.clone());
        }
        run.span.known(fields::OUTCOME, word);
        run.span.end = is_over.then_some(at);
    }

    fn wait(&mut self, seq: Seq, at: Timestamp, asked: Option<Vec<InterruptId>>) {
        self.waiting = Some(Waiting { seq, at, asked });
    }

    fn end_wait(&mut self, entry: &Entry) {
        let Some(waiting) = self.waiting.take() else {
            return;
        };
        let answered = waiting.asked.iter().flatten();
        let answered = answered
            .filter_map(|id| self.answered.get(id).copied())
            .filter(|at| *at >= waiting.at)
            .min();
        let is_resumed = entry.kind == EntryKind::Resume;
        let end = answered
            .or_else(|| (!is_resumed).then(|| first_call(entry, waiting.at))?)
            .unwrap_or(entry.at)
            .min(entry.at);
        self.add_wait(&waiting, Some(end));
        if waiting.asked.is_none()
            && let Some(open) = self.open.get_mut(&FramePath::root())
        {
            open.start = end;
        }
    }

    /// An interrupt is raised in the middle of a superstep; a breakpoint is between two.
    fn add_wait(&mut self, waiting: &Waiting, end: Option<Timestamp>) {
        let root = FramePath::root();
        let name = spans::WAIT.to_owned();
        let under_way = self.open.get(&root).filter(|_| waiting.asked.is_some());
        match under_way.map(|open| self.id_of(&root, open)) {
            Some(id) => {
                let id = id.child(WAIT | waiting.seq.0);
                let span = Span::new(id, SpanKind::Wait, name, waiting.at, end);
                if let Some(open) = self.open.get_mut(&root) {
                    open.inner.push(span);
                }
            }
            None => {
                let Some(run) = self.runs.last_mut() else {
                    return;
                };
                let id = run.span.id.child(WAIT | waiting.seq.0);
                let span = Span::new(id, SpanKind::Wait, name, waiting.at, end);
                run.span.inner.push(span);
            }
        }
    }

    /// Ends everything in progress, because the run is over.
    fn close_all(&mut self, seq: Seq, at: Timestamp) {
        let again: Vec<_> = (self.open.iter())
            .map(|(frame, open)| (frame.clone(), Open::after(open, seq, at)))
            .collect();
        self.flush(Some(at));
        self.open.extend(again);
    }

    /// Adds what there is of supersteps that have not ended.
    fn leave_open(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.add_wait(&waiting, None);
        }
        self.flush(None);
    }

    fn flush(&mut self, end: Option<Timestamp>) {
        // The deepest first: a child belongs to its parent's superstep.
        while let Some((frame, open)) = self.open.pop_last() {
            self.add_unended(&frame, open, end);
        }
    }

    /// Adds what there is of a superstep that has not ended.
    fn add_unended(&mut self, frame: &FramePath, open: Open, end: Option<Timestamp>) {
        if open.is_blank() {
            return;
        }
        let id = self.id_of(frame, &open);
        let span = superstep(id, frame, open, Vec::new(), end);
        self.add(frame, span);
    }

    /// Adds a superstep to its parent.
    fn add(&mut self, frame: &FramePath, span: Span) {
        let parent = frame.parent().and_then(|parent| self.open.get_mut(&parent));
        if let Some(parent) = parent {
            match parent.inside.iter_mut().rev().find(|(of, _)| of == frame) {
                Some((_, spans)) => spans.push(span),
                None => parent.inside.push((frame.clone(), vec![span])),
            }
        } else if let Some(run) = self.runs.last_mut() {
            run.span.inner.push(span);
        }
    }

    /// Sets the name for people of a graph's span.
    fn call(&mut self, frame: &FramePath, name: String) {
        match frame.parent() {
            Some(parent) => {
                if let Some(parent) = self.open.get_mut(&parent) {
                    parent.called.insert(frame.clone(), name);
                }
            }
            None => {
                if let Some(run) = self.runs.last_mut() {
                    run.span.name = name;
                }
            }
        }
    }

    /// Marks the run as resumed after a stop.
    fn goes_on(&mut self) {
        if let Some(run) = self.runs.last_mut() {
            run.span.end = None;
            run.span.error = None;
            run.span.fields.remove(fields::OUTCOME);
        }
    }

    fn id_of(&self, frame: &FramePath, open: &Open) -> SpanId {
        let run = self.runs.last().map_or(SpanId(1), |run| run.span.id);
        let graph = hashed(frame.to_string().as_bytes());
        run.child(open.since.0).child(open.turn).child(graph)
    }
}

fn superstep(
    id: SpanId,
    frame: &FramePath,
    open: Open,
    nodes: Vec<Span>,
    end: Option<Timestamp>,
) -> Span {
    let name = format!("{} {}", spans::SUPERSTEP, open.number);
    let mut span = Span::new(id, SpanKind::Superstep, name, open.start, end);
    span.known(fields::STEP, open.number);
    let graphs: Vec<_> = frame
        .segments()
        .iter()
        .map(|segment| segment.node.as_str())
        .collect();
    if !graphs.is_empty() {
        span.known(fields::SUBGRAPH, graphs.join("/"));
    }
    // Failed attempts and waits came before the nodes ended.
    span.inner = open.inner;
    span.inner.extend(nodes);
    for (frame, supersteps) in open.inside {
        if let Some(segment) = frame.segments().last().filter(|_| !supersteps.is_empty()) {
            let mut node = named(
                id.child(of_subgraph(&frame)),
                &segment.node,
                open.start,
                end,
            );
            if let Some(name) = open.called.get(&frame) {
                node.name.clone_from(name);
            }
            node.inner = supersteps;
            span.inner.push(node);
        }
    }
    let order = |inner: &Span| (inner.start, inner.kind == SpanKind::Wait);
    span.inner.sort_by_key(order);
    span
}

fn node(superstep: SpanId, write: &TaskWrite, at: Timestamp, open: &mut Open) -> Span {
    let of_write = |(frame, _): &(FramePath, Vec<Span>)| {
        frame
            .segments()
            .last()
            .is_some_and(|segment| segment.node == write.node)
    };
    let entered = open.inside.iter().position(of_write);
    let entered = entered.map(|found| open.inside.remove(found));
    let tried = open.tried.get(&write.index);
    let start = tried.map_or(open.start, |(_, again)| *again);
    let id = match &entered {
        Some((frame, _)) => superstep.child(of_subgraph(frame)),
        None => superstep.child(u64::from(write.index) + 1),
    };
    let mut node = named(id, &write.node, start, Some(at));
    if let Some((attempts, _)) = tried {
        node.known(fields::ATTEMPT, attempts + 1);
    }
    if let Some(name) = names_in(write).node_span {
        node.name = name;
    }
    if let Some((frame, supersteps)) = entered {
        if let Some(name) = open.called.remove(&frame) {
            node.name = name;
        }
        node.inner = supersteps;
    }
    match write.cached {
        // The calls belong to the execution that produced the cached result.
        true => node.known(fields::CACHED, true),
        false => node.inner.extend(calls(id, write)),
    }
    node
}

fn named(id: SpanId, node: &NodeName, start: Timestamp, end: Option<Timestamp>) -> Span {
    let mut span = Span::new(id, SpanKind::Node, node.to_string(), start, end);
    span.known(fields::NODE, node.to_string());
    span
}

fn calls(node: SpanId, write: &TaskWrite) -> impl Iterator<Item = Span> {
    let events = (0..).zip(&write.events);
    events.filter_map(move |(index, event)| {
        let call: CallSpan = event.decode().ok()?;
        let id = node.child(CALL | index);
        let kind = SpanKind::Call(call.span);
        Some(Span {
            error: call.error,
            fields: call.fields,
            ..Span::new(id, kind, call.name, call.start, Some(call.end))
        })
    })
}

/// Returns the names of spans that a node emitted; the last ones count.
fn names_in(write: &TaskWrite) -> SpanNames {
    let mut names = SpanNames::default();
    for said in write
        .events
        .iter()
        .filter_map(|event| event.decode::<SpanNames>().ok())
    {
        names.node_span = said.node_span.or(names.node_span);
        names.graph_span = said.graph_span.or(names.graph_span);
    }
    names
}

/// Returns the time of the first call after this time, as far as the entry shows.
fn first_call(entry: &Entry, after: Timestamp) -> Option<Timestamp> {
    let advanced = entry.changes.iter().filter_map(|change| match change {
        Change::FrameAdvanced(advanced) => Some(advanced),
        Change::RunStarted(_)
        | Change::RunResumed(_)
        | Change::StateWritten(_)
        | Change::Replanned(_)
        | Change::FrameOpened(_)
        | Change::AttemptFailed(_)
        | Change::Forked(_) => None,
    });
    let writes = advanced.flat_map(|advanced| &advanced.writes);
    let calls = writes.flat_map(|write| calls(SpanId(1), write));
    calls
        .map(|call| call.start)
        .filter(|start| *start >= after)
        .min()
}

fn end_all(span: &mut Span, at: Timestamp) {
    if span.end.is_none() {
        span.end = Some(at);
        span.inner.iter_mut().for_each(|inner| end_all(inner, at));
    }
}

fn of_subgraph(frame: &FramePath) -> u64 {
    SUBGRAPH | hashed(frame.to_string().as_bytes()) >> 8
}

/// Number ranges of a span's children by kind, so that no two get the same number.
const ATTEMPT: u64 = 1 << 56;
const WAIT: u64 = 2 << 56;
const CALL: u64 = 3 << 56;
const SUBGRAPH: u64 = 4 << 56;

impl Span {
    fn new(
        id: SpanId,
        kind: SpanKind,
        name: String,
        start: Timestamp,
        end: Option<Timestamp>,
    ) -> Self {
        Self {
            id,
            name,
            kind,
            // The clock may have been set back.
            start: end.map_or(start, |end| start.min(end)),
            end,
            error: None,
            fields: Map::new(),
            inner: Vec::new(),
        }
    }

    fn known(&mut self, name: &str, value: impl Into<Json>) {
        self.fields.insert(name.to_owned(), value.into());
    }
}

impl SpanId {
    fn new(number: u64) -> Self {
        Self(number.max(1))
    }

    fn child(self, number: u64) -> Self {
        Self::new(mixed(self.0, number))
    }
}

/// Spreads similar numbers.
fn mixed(one: u64, other: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&one.to_le_bytes());
    bytes[8..].copy_from_slice(&other.to_le_bytes());
    hashed(&bytes)
}

fn hashed(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}
