//! Runs the machine by hand from a script, and tells what it did.
//!
//! A script is a list of statements between semicolons:
//!
//! | statement | meaning |
//! | --- | --- |
//! | `a -> b, c` | edges; `start` and `end` are words; a node nothing leaves goes to `end` |
//! | `join a+b -> c` | `c` runs once after both |
//! | `loop b -> a*2` | a route from `b`: to `a` the first two times, then to the end |
//! | `send a -> w*3` | `a` sends three payloads to `w` |
//! | `defer x` | `x` waits until nothing else is left |
//! | `fail x`, `ask x` | `x` fails for good the first time; `x` asks a question named `x` |
//! | `retry x*2` | `x` fails twice and is tried again after a second, then two |
//! | `limit 3`, `before x`, `after x` | the step limit; breakpoints |
//! | `finish b, a` | tasks that run at the same time end in this order |
//! | `resume`, `answer x` | after the run stopped: go on |
//! | `show` | the log ends with who wrote, in order |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use superstep_core::checkpoint::format::{Body, Entry, EntryKind};
use superstep_core::checkpoint::{
    Answer, AnswerBody, BoxFuture, CheckpointResult, Checkpointer, Memory, RecordWrite,
};
use superstep_core::driver::{LiveEvent, NodeHost, ThreadRequest};
use superstep_core::node::{Task, TaskEnd};
use superstep_core::run::RunOptions;
use superstep_core::{
    Command, END, Goto, Graph, GraphBuilder, Interrupt, Moment, NodeCx, NodeError, NodeName,
    Outcome, RetryPolicy, Run, START, SendTo, State, Step, ThreadId, Timestamp, Value, View,
};

/// What every script's graph writes: who ran.
#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Log {
    #[state(append)]
    ran: Vec<String>,
}

/// Runs a script and gives the log of the machine's steps.
pub(crate) fn simulate(script: &str) -> String {
    let script = Script::parse(script);
    let graph = script.graph();
    let mut world = World::new(&graph, &script);
    let start = ThreadRequest::Start {
        input: Value::from_json_bytes(b"{}"),
        context: None,
        metadata: None,
    };
    world.run(start);
    for then in &script.then {
        if let Then::Answer(key) = then {
            world.answer(key);
        }
        world.run(ThreadRequest::Resume);
    }
    if script.show {
        let ran = world.ran.join(" ");
        world.say(format!("ran {ran}"));
    }
    world.log
}

/// Polls a future that needs nobody to wake it.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
    panic!("the future waits for something that nobody does")
}

/// A door that leads straight to the store.
#[derive(Debug)]
pub(crate) struct StoreDoor(pub(crate) Memory);

impl NodeHost for StoreDoor {
    fn record(&self, write: RecordWrite) -> BoxFuture<'static, CheckpointResult<Vec<u8>>> {
        let store = self.0.clone();
        Box::pin(async move { store.record(&write).await })
    }

    fn emit(&self, _: LiveEvent) {}
}

struct World<'a> {
    graph: &'a Graph<Log>,
    script: &'a Script,
    store: Memory,
    thread: ThreadId,
    now: Timestamp,
    step: u64,
    ran: Vec<String>,
    log: String,
}

impl<'a> World<'a> {
    fn new(graph: &'a Graph<Log>, script: &'a Script) -> Self {
        Self {
            graph,
            script,
            store: Memory::new(),
            thread: ThreadId::new("t").unwrap(),
            now: Timestamp(0),
            step: 0,
            ran: Vec::new(),
            log: String::new(),
        }
    }

    fn say(&mut self, line: impl std::fmt::Display) {
        writeln!(self.log, "{line}").unwrap();
    }

    fn run(&mut self, command: ThreadRequest) {
        let loaded = block_on(self.store.load(&self.thread)).unwrap();
        let moment = Moment {
            now: self.now,
            entropy: 7,
        };
        let mut run = Run::open(
            self.graph.definition(),
            &self.thread,
            loaded,
            command,
            self.script.options(),
            moment,
        )
        .unwrap();
        let mut running: Vec<Task> = Vec::new();
        let outcome = loop {
            match run.next_step() {
                Step::Start(tasks) => {
                    self.started(&tasks);
                    running.extend(tasks);
                }
                Step::Drop(ids) => running.retain(|task| !ids.contains(&task.id())),
                Step::Save(commit) => {
                    let saved = block_on(self.store.save(&commit)).unwrap();
                    if let Some(entry) = &commit.entry {
                        self.saved(&Entry::unseal(entry, &self.thread, commit.head.seq).unwrap());
                    }
                    run.saved(saved, self.now).unwrap();
                }
                Step::Wait { until } => match self.next(&mut running) {
                    Some(task) => {
                        let id = task.id();
                        let end = block_on(task.execute(Arc::new(StoreDoor(self.store.clone()))));
                        if let TaskEnd::TimedOut = end {
                            unreachable!("nothing here takes time")
                        }
                        run.task_ended(id, end, self.now).unwrap();
                    }
                    None => {
                        self.now = until.expect("something is waited for");
                        self.say(format!("{} ms", self.now.0));
                        run.time_passed(self.now);
                    }
                },
                Step::Record(_) | Step::Suspend(_) => unreachable!("only a limited segment does"),
                Step::Stop(outcome) => break outcome,
            }
        };
        self.ran = run.values().decode::<Log>().unwrap().ran;
        self.stopped(&outcome);
    }

    fn started(&mut self, tasks: &[Task]) {
        self.step = tasks[0].step() + 1;
        let names: Vec<_> = tasks.iter().map(|task| task.node().as_str()).collect();
        self.say(format!("{} run {}", self.step, names.join(" ")));
    }

    fn saved(&mut self, entry: &Entry) {
        match entry.kind {
            EntryKind::Input => {}
            EntryKind::Attempt => self.say(format!("{} save attempt", self.step)),
            _ => self.say(format!("{} save", self.step)),
        }
    }

    fn stopped(&mut self, outcome: &Outcome) {
        let words = match outcome {
            Outcome::Paused(asked) => {
                let keys: Vec<_> = asked.iter().map(|asked| asked.key.as_str()).collect();
                format!("Paused {}", keys.join(" "))
            }
            Outcome::Failed(failures) => {
                let told = failures
                    .iter()
                    .map(|failure| format!("{} {}", failure.node, failure.kind.code()));
                format!("Failed {}", told.collect::<Vec<_>>().join(", "))
            }
            Outcome::Breakpoint(at) => {
                let nodes: Vec<_> = at.nodes.iter().map(NodeName::as_str).collect();
                format!("Breakpoint {:?} {}", at.side, nodes.join(" "))
            }
            other => format!("{other:?}"),
        };
        self.say(format!("stop {words}"));
    }

    /// The running task that ends next: as the script says, or as they were started.
    fn next(&self, running: &mut Vec<Task>) -> Option<Task> {
        let by_script = self
            .script
            .finish
            .iter()
            .find_map(|name| running.iter().position(|task| task.node().as_str() == name));
        let at = by_script.or((!running.is_empty()).then_some(0))?;
        Some(running.remove(at))
    }

    fn answer(&mut self, key: &str) {
        let loaded = block_on(self.store.load(&self.thread)).unwrap().unwrap();
        let asked = superstep_core::run::open_interrupts(loaded.interrupts).unwrap();
        let interrupt = asked
            .iter()
            .find(|open| open.interrupt.key == key)
            .unwrap()
            .interrupt
            .id;
        let answer = Answer {
            interrupt,
            body: AnswerBody::Value(Value::from_json_bytes(b"true")),
            by: String::new(),
            at: self.now,
        };
        block_on(self.store.answer(&self.thread, &[answer])).unwrap();
    }
}

#[derive(Default)]
struct Script {
    nodes: BTreeSet<String>,
    edges: Vec<(String, String)>,
    joins: Vec<(Vec<String>, String)>,
    loops: BTreeMap<String, (String, usize)>,
    sends: BTreeMap<String, (String, u32)>,
    deferred: Vec<String>,
    fails: BTreeSet<String>,
    asks: BTreeSet<String>,
    retries: BTreeMap<String, u32>,
    limit: Option<u64>,
    before: Vec<String>,
    after: Vec<String>,
    finish: Vec<String>,
    then: Vec<Then>,
    show: bool,
}

enum Then {
    Resume,
    Answer(String),
}

impl Script {
    fn parse(text: &str) -> Self {
        let mut script = Self::default();
        for statement in text.split(';').map(str::trim).filter(|s| !s.is_empty()) {
            script.take(statement);
        }
        script
    }

    fn take(&mut self, statement: &str) {
        let (word, rest) = statement.split_once(' ').unwrap_or((statement, ""));
        let names = || rest.split(',').map(|name| name.trim().to_owned());
        match word {
            "join" => {
                let (sources, target) = arrow(rest);
                let sources: Vec<_> = sources.split('+').map(|s| s.trim().to_owned()).collect();
                self.know(sources.iter().chain([&target]));
                self.joins.push((sources, target));
            }
            "loop" => {
                let (from, to) = arrow(rest);
                let (to, times) = times(&to);
                self.know([&from, &to]);
                self.loops.insert(from, (to, times as usize));
            }
            "send" => {
                let (from, to) = arrow(rest);
                self.know([&from]);
                self.sends.insert(from, times(&to));
            }
            "defer" => self.deferred.extend(names()),
            "fail" => self.fails.extend(names()),
            "ask" => self.asks.extend(names()),
            "retry" => self.retries.extend([times(rest)]),
            "limit" => self.limit = rest.parse().ok(),
            "before" => self.before.extend(names()),
            "after" => self.after.extend(names()),
            "finish" => self.finish.extend(names()),
            "resume" => self.then.push(Then::Resume),
            "answer" => self.then.push(Then::Answer(rest.to_owned())),
            "show" => self.show = true,
            _ => {
                let (from, to) = arrow(statement);
                for to in to.split(',').map(|to| to.trim().to_owned()) {
                    self.know([&from, &to]);
                    self.edges.push((from.clone(), to));
                }
            }
        }
    }

    fn know<'a>(&mut self, names: impl IntoIterator<Item = &'a String>) {
        let real = names
            .into_iter()
            .filter(|name| !["start", "end"].contains(&name.as_str()));
        self.nodes.extend(real.cloned());
    }

    fn options(&self) -> RunOptions {
        let set = |names: &[String]| -> BTreeSet<NodeName> {
            names.iter().map(|n| NodeName::new(n).unwrap()).collect()
        };
        let mut options = RunOptions::default();
        options.step_limit = self.limit.unwrap_or(options.step_limit);
        options.pause_before = set(&self.before);
        options.pause_after = set(&self.after);
        options
    }

    fn graph(&self) -> Graph<Log> {
        let workers: BTreeSet<&String> = self.sends.values().map(|(to, _)| to).collect();
        let mut builder = Graph::<Log>::builder("script");
        for name in self.nodes.iter().filter(|name| !workers.contains(name)) {
            builder = builder.node(name.as_str(), self.node(name));
            if !self.leaves(name) {
                builder = builder.edge(name.as_str(), END);
            }
        }
        for name in workers {
            let to = SendTo::<u32>::new(leak(name));
            builder = builder.map_node(&to, worker(name));
            if !self.leaves(name) {
                builder = builder.edge(name.as_str(), END);
            }
        }
        self.connect(builder).build().unwrap()
    }

    fn leaves(&self, name: &String) -> bool {
        self.edges.iter().any(|(from, _)| from == name)
            || self.joins.iter().any(|(from, _)| from.contains(name))
            || self.loops.contains_key(name)
            || self.sends.contains_key(name)
    }

    fn connect(&self, mut builder: GraphBuilder<Log>) -> GraphBuilder<Log> {
        for (from, to) in &self.edges {
            builder = builder.edge(place(from), place(to));
        }
        for (sources, target) in &self.joins {
            let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
            builder = builder.join(&sources, target.as_str());
        }
        for (from, (to, _)) in &self.sends {
            builder = builder.commands(from.as_str(), &[to.as_str()]);
        }
        for (from, (to, times)) in &self.loops {
            let (from, to, times) = (from.clone(), to.clone(), *times);
            let counted = from.clone();
            builder = builder.route(from.as_str(), &[to.clone().as_str(), END], move |log| {
                let so_far = log.ran.iter().filter(|ran| **ran == counted).count();
                Goto::node(if so_far <= times { to.as_str() } else { END })
            });
        }
        for name in &self.deferred {
            builder = builder.defer(name.as_str());
        }
        for (name, times) in &self.retries {
            let policy = RetryPolicy {
                attempts_max: times + 1,
                initial_ms: 1_000,
                factor: 2.0,
                wait_max_ms: 4_000,
                jitter_ms: 0,
            };
            builder = builder.retry(name.as_str(), policy);
        }
        builder
    }

    fn node(
        &self,
        name: &str,
    ) -> impl Fn(View<Log>, NodeCx) -> BoxFuture<'static, Result<Command<Log>, NodeError>> + use<>
    {
        let name = name.to_owned();
        let fails = Arc::new(AtomicU32::new(u32::from(self.fails.contains(&name))));
        let stumbles = Arc::new(AtomicU32::new(
            self.retries.get(&name).copied().unwrap_or(0),
        ));
        let asks = self.asks.contains(&name);
        let sends = self.sends.get(&name).cloned();
        move |_, cx| {
            let (name, fails, stumbles, sends) =
                (name.clone(), fails.clone(), stumbles.clone(), sends.clone());
            Box::pin(async move {
                if count_down(&fails) {
                    return Err(NodeError::fatal("as the script says"));
                }
                if count_down(&stumbles) {
                    return Err(NodeError::retryable("as the script says"));
                }
                if asks {
                    let _: bool = cx.interrupt(Interrupt::new(name.as_str(), "?")).await?;
                }
                let mut command = Command::update(LogUpdate::default().ran(name));
                if let Some((to, times)) = sends {
                    let to = SendTo::<u32>::new(leak(&to));
                    for n in 0..times {
                        command = command.send(&to, n);
                    }
                }
                Ok(command)
            })
        }
    }
}

fn worker(
    name: &str,
) -> impl Fn(u32, NodeCx) -> BoxFuture<'static, Result<LogUpdate, NodeError>> + use<> {
    let name = name.to_owned();
    move |n, _| {
        let ran = format!("{name}{n}");
        Box::pin(async move { Ok(LogUpdate::default().ran(ran)) })
    }
}

fn count_down(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
        .is_ok()
}

fn arrow(text: &str) -> (String, String) {
    let (from, to) = text.split_once("->").expect("a statement with an arrow");
    (from.trim().to_owned(), to.trim().to_owned())
}

fn times(text: &str) -> (String, u32) {
    let (name, times) = text.split_once('*').expect("a name, `*` and a number");
    (name.trim().to_owned(), times.trim().parse().unwrap())
}

fn place(name: &str) -> &str {
    match name {
        "start" => START,
        "end" => END,
        name => name,
    }
}

/// Names in constants are the rule; a script's are few and short.
fn leak(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}
