//! What must hold, each rule with a name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use superstep_core::checkpoint::format::{Change, Entry, EntryKind, Stop};
use superstep_core::checkpoint::{History, StoredBody};
use superstep_core::run::{LogFollower, StreamEvent, StreamEventBody, read_state};
use superstep_core::{Seq, Value};

use super::lab::Inner;
use super::program::{BodySpec, GraphSpec, Leads};

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Final state and writes equal those of the calm run of the same program and answers.
    Calm,
    /// An acknowledged effect never runs again, others only as often as they were cut.
    EffectOnce,
    /// A task whose superstep was committed never starts again.
    TaskOnce,
    /// Exactly one answer wins, its caller learns so when giving it again, the node sees that one, and the
    /// question is not asked again.
    AnswerOnce,
    /// Nothing of a writer without the thread is ever in the log.
    Fence,
    /// A commit that was applied is acknowledged when it is tried again, and applied once.
    CommitOnce,
    /// A record that is there is never replaced.
    FirstWrite,
    /// A join is never early and never twice.
    Join,
    /// A finished sibling with a recorded result does not run again.
    SiblingsKept,
    /// There are never more attempts than the policy allows.
    Attempts,
    /// Reading the log at any entry gives what was there, and watching from anywhere the same events.
    Replay,
    /// Old entries stay as they are.
    AppendOnly,
    /// With the faults off, the thread comes to rest.
    Live,
    /// The same seed gives the same trace.
    Deterministic,
    /// A start or resume with an id is carried out once, however often it is tried.
    OrderOnce,
    /// A run is given up after so many deaths; a suspension is not a death.
    Recoveries,
    /// A run stops where it is told to, wherever it is resumed.
    Breakpoints,
    /// A segment keeps its limits, executes a task here or dispatches it, and suspends only when all is persisted.
    Segments,
    /// Nothing fails that was not made to fail.
    Unexpected,
}

impl Check {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Check::Calm => "calm",
            Check::EffectOnce => "effect-once",
            Check::TaskOnce => "task-once",
            Check::AnswerOnce => "answer-once",
            Check::Fence => "fence",
            Check::CommitOnce => "commit-once",
            Check::FirstWrite => "first-write",
            Check::Join => "join",
            Check::SiblingsKept => "siblings-kept",
            Check::Attempts => "attempts",
            Check::Replay => "replay",
            Check::AppendOnly => "append-only",
            Check::Live => "live",
            Check::Deterministic => "deterministic",
            Check::OrderOnce => "order-once",
            Check::Recoveries => "recoveries",
            Check::Breakpoints => "breakpoints",
            Check::Segments => "segments",
            Check::Unexpected => "unexpected",
        }
    }
}

/// A rule that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub check: Check,
    /// What was seen.
    pub what: String,
}

impl Violation {
    pub(super) fn new(check: Check, what: impl Into<String>) -> Self {
        Self {
            check,
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check.name(), self.what)
    }
}

/// What is left of a trial that a calm one is compared with.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Remains {
    /// How each deed ended.
    pub(super) ends: Vec<String>,
    /// The state of the root graph after each deed.
    pub(super) values: Vec<String>,
    /// What every frame wrote, superstep by superstep, by the names on its path.
    pub(super) writes: BTreeMap<String, Vec<String>>,
}

/// Compares a trial with the calm one.
pub(super) fn compare(found: &Remains, calm: &Remains, with_writes: bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut differ = |what: String| violations.push(Violation::new(Check::Calm, what));
    for (n, (a, b)) in found.ends.iter().zip(&calm.ends).enumerate() {
        if a != b {
            differ(format!("deed {n} ended {a}, calm {b}"));
        }
    }
    if found.ends.len() != calm.ends.len() {
        differ(format!(
            "{} deeds, calm {}",
            found.ends.len(),
            calm.ends.len()
        ));
    }
    for (n, (a, b)) in found.values.iter().zip(&calm.values).enumerate() {
        if a != b {
            let (a, b) = apart(a, b);
            differ(format!("deed {n} left `{a}`, calm `{b}`"));
        }
    }
    if with_writes && found.writes != calm.writes {
        let frame = found
            .writes
            .keys()
            .chain(calm.writes.keys())
            .find(|frame| found.writes.get(*frame) != calm.writes.get(*frame));
        let frame = frame.cloned().unwrap_or_default();
        let (a, b) = apart(
            &format!("{:?}", found.writes.get(&frame)),
            &format!("{:?}", calm.writes.get(&frame)),
        );
        differ(format!("frame `{frame}` wrote `{a}`, calm `{b}`"));
    }
    violations
}

/// Two texts from shortly before where they part.
fn apart(a: &str, b: &str) -> (String, String) {
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| {
        text.chars()
            .skip(same.saturating_sub(60))
            .take(200)
            .collect()
    };
    (part(a), part(b))
}

/// Everything that can be checked of a log when a trial is over.
pub(super) fn log(lab: &mut Inner, root: &GraphSpec) {
    let stored = lab.entries();
    let thread = lab.thread.clone();
    let mut entries = Vec::new();
    for body in &stored {
        match Entry::read(body, &thread) {
            Ok(entry) => entries.push((body.seq, entry)),
            Err(error) => return lab.fail(Check::Replay, format!("{error}")),
        }
    }
    chain(lab, &entries);
    append_only(lab, &stored);
    replay(lab, &entries);
    watch(lab, &entries);
    joins(lab, &entries, root, "");
    breakpoints(lab, &entries, root, "");
}

fn chain(lab: &mut Inner, entries: &[(Seq, Entry)]) {
    for (n, (seq, entry)) in (1..).zip(entries) {
        lab.counts.checks += 1;
        if seq.0 != n {
            lab.fail(Check::Replay, format!("entry {n} has number {seq}"));
        }
        if entry.kind != EntryKind::Fork && entry.parent.0 + 1 != seq.0 {
            lab.fail(
                Check::Fence,
                format!("entry {seq} follows {}", entry.parent),
            );
        }
    }
    let epochs = lab.model_epochs();
    if epochs.windows(2).any(|pair| pair[0] > pair[1]) {
        lab.fail(Check::Fence, "epochs fall".to_owned());
    }
}

/// What was once written is there, byte for byte.
pub(super) fn append_only(lab: &mut Inner, stored: &[StoredBody]) {
    let written = lab.written();
    for (seq, body) in &written {
        lab.counts.checks += 1;
        let is = stored.iter().find(|stored| stored.seq == *seq);
        if is.map(|stored| &stored.body) != Some(body) {
            lab.fail(Check::AppendOnly, format!("entry {seq} changed"));
        }
    }
}

fn replay(lab: &mut Inner, entries: &[(Seq, Entry)]) {
    let (graph, thread) = (lab.graph(), lab.thread.clone());
    let live = lab.live_values.clone();
    for (seq, _) in entries {
        let Some(wanted) = live.get(seq) else {
            continue;
        };
        lab.counts.checks += 1;
        let read = lab
            .load_at(*seq)
            .map(|history| read_state(&graph, &thread, &history));
        let found: Option<Value> = match read {
            Some(Ok(state)) => state.map(|state| state.values),
            Some(Err(error)) => return lab.fail(Check::Replay, format!("entry {seq}: {error}")),
            None => None,
        };
        // A graph that was never entered has no values to read.
        if found.as_ref().is_some_and(|found| found != wanted) {
            lab.fail(
                Check::Replay,
                format!("at entry {seq} the log says {found:?}, the machine said {wanted:?}"),
            );
        }
    }
}

/// Watching from the beginning, and from a point in the middle, shows what the live watcher saw.
fn watch(lab: &mut Inner, entries: &[(Seq, Entry)]) {
    let live = std::mem::take(&mut lab.sights);
    let mut starts = vec![0];
    if entries.len() > 1 {
        starts.push(1 + lab.counts.checks as usize % (entries.len() - 1));
    }
    for start in starts {
        lab.counts.checks += 1;
        match watch_from(lab, entries, start) {
            Ok(seen) => {
                let first = entries.get(start).map_or(Seq(0), |(seq, _)| *seq);
                let wanted: Vec<_> = live.iter().filter(|sight| sight.seq >= first).collect();
                if seen.iter().collect::<Vec<_>>() != wanted {
                    lab.fail(
                        Check::Replay,
                        format!("watching from {start} shows other events"),
                    );
                }
                let in_order = seen
                    .windows(2)
                    .all(|two| (two[0].seq, two[0].index) < (two[1].seq, two[1].index));
                if !in_order {
                    lab.fail(Check::Replay, "events are out of order".to_owned());
                }
            }
            Err(error) => lab.fail(Check::Replay, format!("watching from {start}: {error}")),
        }
    }
}

fn watch_from(
    lab: &mut Inner,
    entries: &[(Seq, Entry)],
    start: usize,
) -> Result<Vec<StreamEvent>, String> {
    let (graph, thread) = (lab.graph(), lab.thread.clone());
    let text = |error: superstep_core::error::OpenError| error.to_string();
    let history = match start {
        0 => Some(superstep_core::checkpoint::History::default()),
        _ => lab.load_at(entries[start - 1].0),
    };
    let history = history.ok_or("no such entry")?;
    let follow = |history: &History| LogFollower::after(&graph, &thread, history).map_err(text);
    let without_states = |watch: LogFollower| watch.with_states_of(&BTreeSet::new());
    let mut watch = follow(&history)?;
    let mut other = without_states(follow(&history)?);
    let mut seen = Vec::new();
    for (seq, entry) in &entries[start..] {
        let items = watch.see(*seq, entry).map_err(text)?;
        let others = other.see(*seq, entry).map_err(text)?;
        // Such a follower reads no state, and must not lose its place by that.
        if !items.iter().filter(|item| !shows_state(item)).eq(&others) {
            let seq = seq.0;
            return Err(format!("without states, entry {seq} shows {others:?}"));
        }
        seen.extend(items);
        if entry.kind == EntryKind::Fork {
            let history = lab.load_at(*seq).ok_or("no such entry")?;
            watch = follow(&history)?;
            other = without_states(follow(&history)?);
        }
    }
    Ok(seen)
}

fn shows_state(item: &StreamEvent) -> bool {
    matches!(
        item.what,
        StreamEventBody::Values(_) | StreamEventBody::Checkpoint { .. }
    )
}

/// A node that only a join leads to runs when all its sources have run since the last time, and only then.
fn joins(lab: &mut Inner, entries: &[(Seq, Entry)], graph: &GraphSpec, path: &str) {
    for join in &graph.joins {
        let target = &graph.nodes[join.target];
        if leads_elsewhere(graph, join.target) {
            continue;
        }
        let sources: Vec<&str> = join.sources.iter().map(|&n| graph.nodes[n].name).collect();
        let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for change in entries.iter().flat_map(|(_, entry)| &entry.changes) {
            match change {
                Change::FrameOpened(opened) if names(&opened.frame) == path => {
                    seen.remove(&opened.frame.to_string());
                }
                Change::Forked(_) => return,
                Change::FrameAdvanced(advanced) if names(&advanced.frame) == path => {
                    lab.counts.checks += 1;
                    let seen = seen.entry(advanced.frame.to_string()).or_default();
                    if advanced.writes.is_empty() {
                        // Somebody dropped whatever was planned.
                        seen.clear();
                        continue;
                    }
                    for write in &advanced.writes {
                        let node = write.node.as_str();
                        if sources.contains(&node) && !seen.iter().any(|name| name == node) {
                            seen.push(node.to_owned());
                        }
                    }
                    let full = seen.len() == sources.len();
                    let waits = advanced.next.deferred.iter();
                    let mut planned = advanced
                        .next
                        .tasks
                        .iter()
                        .map(|task| &task.node)
                        .chain(waits)
                        .filter(|node| node.as_str() == target.name);
                    let is_planned = planned.next().is_some();
                    if (full && !is_planned) || (is_planned && !full && !target.deferred) {
                        lab.fail(
                            Check::Join,
                            format!(
                                "join into `{}`: seen {seen:?}, planned {is_planned}",
                                target.who
                            ),
                        );
                    }
                    if full {
                        seen.clear();
                    }
                }
                _ => {}
            }
        }
    }
    for node in &graph.nodes {
        if let BodySpec::Sub { graph, .. } = &node.body {
            let below = if path.is_empty() {
                node.name.to_owned()
            } else {
                format!("{path}/{}", node.name)
            };
            joins(lab, entries, graph, &below);
        }
    }
}

/// Before a node with a breakpoint before it there is a stop since the graph's last superstep. After one with a
/// breakpoint after it there is a stop before the graph's next superstep, unless a death lost it.
fn breakpoints(lab: &mut Inner, entries: &[(Seq, Entry)], graph: &GraphSpec, path: &str) {
    let name = |n: &usize| graph.nodes[*n].name;
    let before: Vec<&str> = graph.pause_before.iter().map(name).collect();
    let after: Vec<&str> = graph.pause_after.iter().map(name).collect();
    let counts = lab.counts;
    let is_whole = counts.crashes + counts.zombies + counts.fenced + counts.unjournaled == 0;
    let mut stops = 0;
    // At which stop each graph last moved, and which of them must stop before they move again.
    let mut moved: BTreeMap<String, u64> = BTreeMap::new();
    let mut must_stop: BTreeMap<String, bool> = BTreeMap::new();
    for (seq, entry) in entries
        .iter()
        .filter(|_| !before.is_empty() || !after.is_empty())
    {
        for change in &entry.changes {
            match change {
                Change::FrameOpened(opened) if names(&opened.frame) == path => {
                    moved.insert(opened.frame.to_string(), stops);
                    must_stop.remove(&opened.frame.to_string());
                }
                Change::FrameAdvanced(advanced) if names(&advanced.frame) == path => {
                    lab.counts.checks += 1;
                    let frame = advanced.frame.to_string();
                    let holds = |at: &[&str]| {
                        let mut writes = advanced.writes.iter();
                        writes.any(|write| at.contains(&write.node.as_str()))
                    };
                    if holds(&before) && moved.get(&frame) == Some(&stops) {
                        let what = format!("entry {seq}: `{frame}` did not stop before a node");
                        lab.fail(Check::Breakpoints, what);
                    }
                    if must_stop.remove(&frame).is_some() && is_whole {
                        let what = format!("entry {seq}: `{frame}` did not stop after a node");
                        lab.fail(Check::Breakpoints, what);
                    }
                    if holds(&after) {
                        must_stop.insert(frame.clone(), true);
                    }
                    moved.insert(frame, stops);
                }
                _ => {}
            }
        }
        let stopped = entry
            .stop
            .as_ref()
            .is_some_and(|stop| *stop != Stop::Drained);
        let changed = matches!(
            entry.kind,
            EntryKind::Update | EntryKind::Fork | EntryKind::Resume
        );
        stops += u64::from(stopped || changed);
        if stopped || changed {
            must_stop.clear();
        }
    }
    for node in &graph.nodes {
        if let BodySpec::Sub { graph, .. } = &node.body {
            let below = if path.is_empty() {
                node.name.to_owned()
            } else {
                format!("{path}/{}", node.name)
            };
            breakpoints(lab, entries, graph, &below);
        }
    }
}

fn leads_elsewhere(graph: &GraphSpec, target: usize) -> bool {
    let backs = |back: &Option<super::program::Back>| back.is_some_and(|back| back.to == target);
    graph.start.contains(&target)
        || graph
            .joins
            .iter()
            .filter(|join| join.target == target)
            .count()
            > 1
        || graph.nodes.iter().any(|node| {
            let by_handler = node
                .handler
                .as_ref()
                .is_some_and(|handler| handler.goto == Some(Some(target)));
            by_handler
                || match &node.leads {
                    Leads::Edges(targets) => targets.contains(&Some(target)),
                    Leads::Route { targets, back } | Leads::Commands { targets, back, .. } => {
                        targets.contains(&Some(target)) || backs(back)
                    }
                    Leads::Join => false,
                }
        })
}

/// A frame by the names on its path, without the tasks that entered it.
pub(super) fn names(frame: &superstep_core::FramePath) -> String {
    let names: Vec<&str> = frame.segments().iter().map(|s| s.node.as_str()).collect();
    names.join("/")
}
