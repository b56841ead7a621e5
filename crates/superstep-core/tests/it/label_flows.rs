//! No label is lost, whatever way a value takes: random programs against a naive oracle.
//!
//! A value says itself which sources it was made from, and a source's labels follow from its number. So the
//! oracle needs no model of the way: wherever such a value lies in stored bytes, the labels around it must be
//! the labels of its sources, no fewer and no more. A program takes values through every kind of channel, a
//! fan-out, a mapped and a shared subgraph, recorded steps, items of the long-term store, crashes and forks.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use harness::prng::Prng;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep_core::checkpoint::format::{Body, Change, Entry, FrameAdvanced, Next, Snapshot};
use superstep_core::checkpoint::{BoxFuture, Checkpointer, Loaded, Memory, Status};
use superstep_core::driver::ThreadRequest;
use superstep_core::node::Task;
use superstep_core::run::{ForkFrom, RunOptions, fork};
use superstep_core::store::{MemoryStore, Namespace, PutItem, Search, Store};
use superstep_core::{
    Command, END, Graph, Label, Labeled, Labels, Message, Moment, NodeCx, NodeError, Outcome, Run,
    START, SendTo, Seq, State, Step, ThreadId, Timestamp, Value, View,
};

use crate::simulate::{StoreDoor, block_on};

const FLOWS: u64 = 100_000;
const SEED: u64 = 0x1abe1;

#[test]
fn labels_survive_100_000_random_flows() {
    let found = flows(SEED, FLOWS, Mutant::None);
    eprintln!("seed {SEED:#x}: {found:?}");
    assert!(found.flows >= FLOWS, "{found:?}");
    assert_eq!(found.lost, Vec::<String>::new(), "{found:?}");
    // Each way was really taken.
    for way in [found.crashes, found.forks, found.items, found.in_subgraphs] {
        assert!(way > FLOWS / 1_000, "{found:?}");
    }
}

/// A check that nothing fails is no check: each of these drops labels in one place only.
#[test]
fn a_program_that_drops_labels_in_one_place_is_noticed() {
    for mutant in [
        Mutant::Reducer,
        Mutant::Worker,
        Mutant::IntoSubgraph,
        Mutant::OutOfSubgraph,
        Mutant::Item,
        Mutant::Collect,
    ] {
        let found = flows(0x7ee7, 2_000, mutant);
        assert!(!found.lost.is_empty(), "{mutant:?}: {found:?}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mutant {
    None,
    Reducer,
    Worker,
    IntoSubgraph,
    OutOfSubgraph,
    Item,
    Collect,
}

thread_local! {
    // Reducers and mappings are plain functions, so they cannot be handed a mutant.
    static MUTANT: Cell<Mutant> = const { Cell::new(Mutant::None) };
    static RECALLED: Cell<u64> = const { Cell::new(0) };
}

/// What is wrong with this program, if this is the place.
fn passes(at: Mutant, note: Labeled<Note>) -> Labeled<Note> {
    if MUTANT.get() == at {
        Labeled::new(note.parts().0.clone(), Labels::NONE)
    } else {
        note
    }
}

/// A value that says what it was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Note {
    id: Option<String>,
    from: BTreeSet<u32>,
}

impl Note {
    fn and(mut self, other: Note) -> Note {
        self.from.extend(other.from);
        self.id = None;
        self
    }
}

impl Message for Note {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn set_id(&mut self, id: String) {
        self.id = Some(id);
    }
}

/// The labels of a source follow from its number.
fn labels_of(source: u32) -> Labels {
    let mut entropy = Prng::new(u64::from(source) + 1);
    let names = ["untrusted", "private", "secret", "source:mail", "of.acme"];
    let chosen = names.into_iter().filter(|_| entropy.index(4) == 0);
    chosen.map(|name| Label::new(name).unwrap()).collect()
}

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Flow {
    last: Labeled<Note>,
    maybe: Option<Labeled<Note>>,
    many: Labeled<Vec<Note>>,
    #[state(append)]
    notes: Vec<Labeled<Note>>,
    #[state(messages)]
    chat: Vec<Labeled<Note>>,
    #[state(reduce = fold)]
    sum: Labeled<Note>,
    #[state(topic)]
    fresh: Vec<Labeled<Note>>,
    #[state(ephemeral)]
    hint: Option<Labeled<Note>>,
}

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Inner {
    given: Labeled<Note>,
    #[state(reduce = fold)]
    sum: Labeled<Note>,
    #[state(append)]
    made: Vec<Labeled<Note>>,
}

fn fold(a: Labeled<Note>, b: Labeled<Note>) -> Labeled<Note> {
    passes(Mutant::Reducer, a.zip(b).map(|(a, b)| a.and(b)))
}

fn all(flow: &Flow) -> Vec<Labeled<Note>> {
    let lists = flow.notes.iter().chain(&flow.chat).chain(&flow.fresh);
    let singles = [&flow.last, &flow.sum].into_iter();
    let singles = singles.chain(&flow.maybe).chain(&flow.hint);
    let mut all: Vec<_> = lists.chain(singles).cloned().collect();
    all.extend(flow.many.clone().each());
    all
}

/// Something new, made from one to three of these.
fn made(entropy: &mut Prng, from: &[Labeled<Note>]) -> Labeled<Note> {
    let a = entropy.pick(from).clone();
    let b = entropy.pick(from).clone();
    match entropy.index(4) {
        0 => a.map(|note| Note::default().and(note)),
        1 => a.zip(b).map(|(a, b)| a.and(b)),
        2 => a.then(|a| b.map(|b| a.and(b))),
        _ => {
            let three: Labeled<Vec<Note>> =
                [a, b, entropy.pick(from).clone()].into_iter().collect();
            let one = three.map(|notes| notes.into_iter().fold(Note::default(), Note::and));
            passes(Mutant::Collect, one)
        }
    }
}

/// Into some channel; one that takes a single writer only where nobody else writes.
fn written(entropy: &mut Prng, update: FlowUpdate, note: Labeled<Note>, alone: bool) -> FlowUpdate {
    match entropy.index(if alone { 8 } else { 4 }) {
        0 => update.notes(note),
        1 => {
            let id = (entropy.index(2) == 0).then(|| format!("m{}", entropy.index(9)));
            update.chat(note.map(|note| Note { id, ..note }))
        }
        2 => update.sum(note),
        3 => update.fresh(note),
        4 => update.last(note),
        5 => update.maybe(note),
        6 => update.hint(note),
        _ => update.many(note.map(|note| vec![note; 2])),
    }
}

const WORK: SendTo<Labeled<Note>> = SendTo::new("work");
const PART: SendTo<Labeled<Note>> = SendTo::new("part");

async fn mix(flow: View<Flow>, cx: NodeCx) -> Result<FlowUpdate, NodeError> {
    let mut entropy = choices_of(&cx);
    let from = all(&flow);
    let mut update = FlowUpdate::default();
    for _ in 0..20 {
        let note = made(&mut entropy, &from);
        update = written(&mut entropy, update, note, true);
    }
    Ok(update)
}

/// Takes values apart, some inside of a step whose closure does not run again after a crash, and sends on what it made.
async fn read(flow: View<Flow>, cx: NodeCx) -> Result<Command<Flow>, NodeError> {
    let mut entropy = choices_of(&cx);
    let from = all(&flow);
    let mut seen = Note::default();
    for n in 0..3 {
        let note = entropy.pick(&from);
        let plain = match entropy.index(2) {
            0 => note.read(&cx).clone(),
            _ => {
                let look = async || Ok(note.read(&cx).clone());
                cx.step(format!("look{n}"), look).await?
            }
        };
        seen = seen.and(plain);
    }
    let mut update = FlowUpdate::default();
    for _ in 0..4 {
        update = written(&mut entropy, update, cx.labeled(seen.clone()), true);
    }
    let mut command = Command::update(update);
    for _ in 0..4 {
        // What is sent besides must have what was read, too.
        let note = made(&mut entropy, &from).zip(cx.labeled(seen.clone()));
        command = command.send(&WORK, note.map(|(a, b)| a.and(b)));
    }
    Ok(command.send(&PART, cx.labeled(seen)))
}

async fn work(note: Labeled<Note>, cx: NodeCx) -> Result<FlowUpdate, NodeError> {
    let mut entropy = choices_of(&cx);
    let mut update = FlowUpdate::default();
    for _ in 0..4 {
        let note = passes(Mutant::Worker, note.clone());
        update = written(&mut entropy, update, note, false);
    }
    Ok(update)
}

async fn turn(inner: View<Inner>, cx: NodeCx) -> Result<InnerUpdate, NodeError> {
    let mut entropy = choices_of(&cx);
    let mut from = inner.made.clone();
    from.extend([inner.given.clone(), inner.sum.clone()]);
    let made = (0..5).map(|_| made(&mut entropy, &from));
    let update = InnerUpdate::default().made_all(made.collect::<Vec<_>>());
    Ok(update.sum(inner.given.clone()))
}

fn inner() -> Graph<Inner> {
    Graph::builder("inner")
        .node("turn", turn)
        .node("again", turn)
        .edge(START, "turn")
        .edge("turn", "again")
        .edge("again", END)
        .build()
        .unwrap()
}

fn into_inner(note: Labeled<Note>) -> InnerUpdate {
    InnerUpdate::default().given(passes(Mutant::IntoSubgraph, note))
}

fn out_of_inner(_: &Flow, inner: &Inner) -> FlowUpdate {
    let made = inner.made.iter().cloned();
    let made = made.map(|note| passes(Mutant::OutOfSubgraph, note));
    let update = FlowUpdate::default().notes_all(made.collect::<Vec<_>>());
    update.sum(inner.sum.clone())
}

/// Puts values into the long-term store and goes on with what others put there.
fn keep(
    items: MemoryStore,
) -> impl Fn(View<Flow>, NodeCx) -> BoxFuture<'static, Result<FlowUpdate, NodeError>> {
    move |flow, cx| {
        let items = items.clone();
        Box::pin(async move {
            let mut entropy = choices_of(&cx);
            let from = all(&flow);
            let mut update = FlowUpdate::default();
            for _ in 0..4 {
                let key = format!("k{}", entropy.index(20));
                let put = PutItem {
                    namespace: Namespace::new(["notes"])?,
                    key: key.clone(),
                    value: serde_json::to_value(made(&mut entropy, &from))?,
                    ttl: None,
                };
                items.put(&put, NOW).await?;
                let key = format!("k{}", entropy.index(20));
                if let Some(item) = items.get(&put.namespace, &key, NOW).await? {
                    let note: Labeled<Note> = serde_json::from_value(item.value)?;
                    RECALLED.set(RECALLED.get() + 1);
                    update = written(&mut entropy, update, passes(Mutant::Item, note), true);
                }
            }
            Ok(update)
        })
    }
}

fn program(items: &MemoryStore) -> Graph<Flow> {
    let shared = Graph::builder("shared")
        .node("mix", mix)
        .node("keep", keep(items.clone()))
        .edge(START, "mix")
        .edge("mix", "keep")
        .edge("keep", END)
        .build()
        .unwrap();
    Graph::builder("flow")
        .node("mix", mix)
        .node("read", read)
        .commands("read", &["work", "part"])
        .map_node(&WORK, work)
        .subgraph_worker(&PART, inner(), into_inner, out_of_inner)
        .subgraph(
            "child",
            inner(),
            |flow: &Flow| into_inner(flow.last.clone()),
            out_of_inner,
        )
        .shared_subgraph("shared", shared)
        .edge(START, "mix")
        .edge("mix", "read")
        .edge("work", "child")
        .edge("part", END)
        .edge("child", "shared")
        .edge("shared", END)
        .build()
        .unwrap()
}

#[derive(Debug, Default)]
struct Found {
    flows: u64,
    runs: u64,
    crashes: u64,
    forks: u64,
    items: u64,
    in_subgraphs: u64,
    lost: Vec<String>,
}

struct World {
    graph: Graph<Flow>,
    store: Memory,
    items: MemoryStore,
    entropy: Prng,
    found: Found,
}

fn flows(seed: u64, count: u64, mutant: Mutant) -> Found {
    MUTANT.set(mutant);
    let items = MemoryStore::new();
    let mut world = World {
        graph: program(&items),
        store: Memory::new(),
        items,
        entropy: Prng::new(seed),
        found: Found::default(),
    };
    while world.found.flows < count && world.found.lost.is_empty() {
        world.thread();
    }
    world.look_at_items();
    world.found.items = RECALLED.get();
    MUTANT.set(Mutant::None);
    world.found
}

impl World {
    /// A thread with a run or two, and half of the time a fork of it.
    fn thread(&mut self) {
        let name = ThreadId::new(&format!("t{}", self.entropy.next())).unwrap();
        let start = self.start();
        self.run(&name, start);
        if self.entropy.index(2) == 0 {
            let forked = ThreadId::new(&format!("t{}", self.entropy.next())).unwrap();
            self.fork(&name, &forked);
            self.look_at_log(&forked);
            self.delete(&forked);
        }
        self.look_at_log(&name);
        self.delete(&name);
    }

    fn delete(&self, thread: &ThreadId) {
        block_on(Checkpointer::delete(&self.store, thread)).unwrap();
    }

    fn start(&mut self) -> ThreadRequest {
        let mut update = FlowUpdate::default();
        for _ in 0..8 {
            let source = self.entropy.index(1_000) as u32;
            let from = BTreeSet::from([source]);
            let note = Labeled::new(Note { id: None, from }, labels_of(source));
            update = written(&mut self.entropy, update, note, true);
        }
        ThreadRequest::Start {
            input: Value::encode(&update).unwrap(),
            context: None,
            metadata: None,
        }
    }

    fn moment(&mut self) -> Moment {
        Moment {
            now: NOW,
            entropy: self.entropy.next(),
        }
    }

    fn loaded(&self, thread: &ThreadId) -> Option<Loaded> {
        block_on(self.store.load(thread)).unwrap()
    }

    /// From a random entry of another thread on.
    fn fork(&mut self, from: &ThreadId, to: &ThreadId) {
        let head = self.loaded(from).unwrap().head;
        let at = Seq(1 + self.entropy.index(head.seq.0 as usize) as u64);
        block_on(self.store.copy(from, Some(at), to)).unwrap();
        let loaded = self.loaded(to).unwrap();
        let history = block_on(self.store.load_at(to, at)).unwrap();
        let moment = self.moment();
        let graph = self.graph.definition();
        let from = ForkFrom {
            at,
            history: &history,
            copied_from: Some(from),
            write: None,
            context: None,
        };
        let commit = fork(graph, to, loaded, &from, moment).unwrap();
        block_on(self.store.save(&commit)).unwrap();
        self.found.forks += 1;
        let command = if at == head.seq {
            self.start()
        } else {
            ThreadRequest::Resume
        };
        self.run(to, command);
    }

    /// Until it is finished, in the hands of one process after the other.
    fn run(&mut self, thread: &ThreadId, command: ThreadRequest) {
        self.found.runs += 1;
        let mut stopped = self.process(thread, command);
        while stopped.is_none() {
            self.found.crashes += 1;
            stopped = self.process(thread, ThreadRequest::Recover);
        }
        assert_eq!(stopped, Some(Outcome::Finished), "thread {thread}");
    }

    /// One process, until the run stops or the process dies.
    fn process(&mut self, thread: &ThreadId, command: ThreadRequest) -> Option<Outcome> {
        let mut options = RunOptions::default();
        options.recoveries_max = 1_000;
        let (loaded, moment) = (self.loaded(thread), self.moment());
        let graph = self.graph.definition().clone();
        let mut run = Run::open(&graph, thread, loaded, command, options, moment).unwrap();
        let mut running: Vec<Task> = Vec::new();
        loop {
            match run.next_step() {
                Step::Start(tasks) => running.extend(tasks),
                Step::Drop(ids) => running.retain(|task| !ids.contains(&task.id())),
                Step::Save(commit) => {
                    let saved = block_on(self.store.save(&commit)).unwrap();
                    if commit.head.status == Status::Running && self.entropy.index(15) == 0 {
                        return None;
                    }
                    run.saved(saved, NOW).unwrap();
                }
                Step::Wait { .. } => {
                    let task = running.remove(self.entropy.index(running.len()));
                    let id = task.id();
                    let end = block_on(task.execute(Arc::new(StoreDoor(self.store.clone()))));
                    // What the node recorded in steps is there when it runs again.
                    if self.entropy.index(15) == 0 {
                        return None;
                    }
                    run.task_ended(id, end, NOW).unwrap();
                }
                Step::Record(_) | Step::Suspend(_) => unreachable!("only a limited segment does"),
                Step::Stop(outcome) => return Some(outcome),
            }
        }
    }

    fn look_at_log(&mut self, thread: &ThreadId) {
        let found = &mut self.found;
        let entries = block_on(self.store.entries(thread, Seq(0), u32::MAX)).unwrap();
        for stored in &entries {
            let entry = Entry::unseal(&stored.body, thread, stored.seq).unwrap();
            for change in &entry.changes {
                found.look_at_change(change);
            }
        }
        let history = block_on(self.store.load(thread)).unwrap().unwrap().history;
        if let Some(stored) = history.snapshot {
            let snapshot = Snapshot::unseal(&stored.body, thread, stored.seq).unwrap();
            for frame in &snapshot.frames {
                let values = frame.state.iter().chain(frame.forwarded.iter().flatten());
                for value in values {
                    found.look(value);
                }
                found.look_at_next(&frame.next);
            }
        }
    }

    fn look_at_items(&mut self) {
        let mut search = Search::default();
        search.page.limit = u32::MAX;
        for item in block_on(self.items.search(&search, NOW)).unwrap() {
            look(&item.value, None, &mut self.found.lost);
        }
    }
}

impl Found {
    fn look_at_change(&mut self, change: &Change) {
        match change {
            Change::FrameOpened(opened) => {
                if let Some(input) = &opened.input {
                    self.look(input);
                }
                self.look_at_next(&opened.next);
            }
            Change::FrameAdvanced(FrameAdvanced {
                frame,
                writes,
                next,
            }) => {
                for value in writes.iter().flat_map(|write| &write.updates) {
                    let flows = self.look(value);
                    self.flows += flows;
                    self.in_subgraphs += if frame.is_root() { 0 } else { flows };
                }
                self.look_at_next(next);
            }
            _ => {}
        }
    }

    fn look_at_next(&mut self, next: &Next) {
        let payloads = next.tasks.iter().filter_map(|task| task.payload.as_ref());
        for payload in payloads {
            self.look(payload);
        }
    }

    /// Gives how many values there are.
    fn look(&mut self, value: &Value) -> u64 {
        look(&value.decode::<Json>().unwrap(), None, &mut self.lost)
    }
}

/// Compares every value with the labels around it. Knows the form of a labeled value, and nothing of how it came about.
fn look(json: &Json, around: Option<&Labels>, lost: &mut Vec<String>) -> u64 {
    match json {
        Json::Array(items) => items.iter().map(|item| look(item, around, lost)).sum(),
        Json::Object(fields) => {
            if let Some(from) = fields.get("from") {
                let from: BTreeSet<u32> = serde_json::from_value(from.clone()).unwrap();
                let wanted = from
                    .iter()
                    .fold(Labels::NONE, |all, source| all.join(&labels_of(*source)));
                if around != Some(&wanted) {
                    lost.push(format!("{json} is in {around:?}, not in {wanted:?}"));
                }
                return u64::from(!from.is_empty());
            }
            if let (Some(labels), Some(value), 2) =
                (fields.get("labels"), fields.get("value"), fields.len())
            {
                let labels: Labels = serde_json::from_value(labels.clone()).unwrap();
                return look(value, Some(&labels), lost);
            }
            fields.values().map(|field| look(field, around, lost)).sum()
        }
        _ => 0,
    }
}

const NOW: Timestamp = Timestamp(1_000);

/// The choices of a task, the same in each of its attempts.
fn choices_of(cx: &NodeCx) -> Prng {
    let id = cx.task().to_bytes();
    Prng::new(id.iter().fold(0, |sum, byte| sum << 4 ^ u64::from(*byte)))
}
