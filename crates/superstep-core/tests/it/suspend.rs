//! A run that is put down and taken up again, and tasks of it that others run. Each of these was found by the simulator.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use superstep_core::checkpoint::{Answer, AnswerBody, Checkpointer, Commit, Memory};
use superstep_core::driver::ThreadRequest;
use superstep_core::node::{Task, TaskEnd};
use superstep_core::run::{
    Durability, ResumeToken, RunOptions, Segment, SegmentLimits, Suspension,
};
use superstep_core::{
    END, Graph, GraphBuilder, Interrupt, Moment, NodeCx, NodeError, Outcome, RetryPolicy, Run,
    RunId, START, State, Step, TaskId, ThreadId, Timestamp, Value, View,
};

use crate::simulate::{StoreDoor, block_on};

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Log {
    #[state(append)]
    ran: Vec<String>,
}

async fn good(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
    Ok(LogUpdate::default().ran("good"))
}

async fn bad(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
    Err(NodeError::fatal("bad"))
}

/// Fails at its first attempt.
async fn flaky(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
    match cx.attempt() {
        1 => Err(NodeError::retryable("not yet")),
        _ => Ok(LogUpdate::default().ran("flaky")),
    }
}

/// Asks two questions at once.
async fn asks(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
    let mut first = pin!(cx.interrupt::<String>(Interrupt::new("first", "?")));
    let mut second = pin!(cx.interrupt::<String>(Interrupt::new("second", "?")));
    let (mut a, mut b) = (None, None);
    poll_fn(|context| {
        if a.is_none()
            && let Poll::Ready(answer) = first.as_mut().poll(context)
        {
            a = Some(answer);
        }
        if b.is_none()
            && let Poll::Ready(answer) = second.as_mut().poll(context)
        {
            b = Some(answer);
        }
        match (&a, &b) {
            (Some(_), Some(_)) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })
    .await;
    let answers = [a.expect("it came")?, b.expect("it came")?];
    Ok(LogUpdate::default().ran(answers.concat()))
}

/// Both nodes in one superstep.
fn pair(builder: GraphBuilder<Log>, nodes: [&str; 2]) -> Graph<Log> {
    let lead = |builder: GraphBuilder<Log>, node| builder.edge(START, node).edge(node, END);
    nodes.into_iter().fold(builder, lead).build().unwrap()
}

struct Bench {
    store: Memory,
    graph: Graph<Log>,
    thread: ThreadId,
    options: RunOptions,
    entropy: u64,
    now: Timestamp,
}

impl Bench {
    fn new(graph: Graph<Log>) -> Self {
        Self {
            store: Memory::new(),
            graph,
            thread: ThreadId::new("t").unwrap(),
            options: RunOptions::default(),
            entropy: 0,
            now: Timestamp(0),
        }
    }

    fn moment(&mut self) -> Moment {
        self.entropy += 1;
        Moment {
            now: self.now,
            entropy: self.entropy,
        }
    }

    fn open(&mut self, command: ThreadRequest) -> Run {
        let loaded = block_on(self.store.load(&self.thread)).unwrap();
        let (graph, options, moment) = (
            self.graph.definition().clone(),
            self.options.clone(),
            self.moment(),
        );
        Run::open(&graph, &self.thread, loaded, command, options, moment).unwrap()
    }

    fn reopen(&mut self, token: &ResumeToken) -> Run {
        let loaded = block_on(self.store.load(&self.thread)).unwrap();
        let (graph, options, moment) = (
            self.graph.definition().clone(),
            self.options.clone(),
            self.moment(),
        );
        let token = token.clone();
        Run::resume_suspended(&graph, &self.thread, loaded, token, options, moment).unwrap()
    }

    fn start(&mut self) -> Run {
        let mut run = self.open(ThreadRequest::Start {
            input: Value::from_json_bytes(b"{}"),
            context: None,
            metadata: None,
        });
        self.save(&mut run);
        run
    }

    fn go_on(&mut self, carried: &ResumeToken) -> Run {
        let mut run = self.reopen(carried);
        self.save(&mut run);
        run
    }

    fn save(&mut self, run: &mut Run) -> Commit {
        match run.next_step() {
            Step::Save(commit) => {
                let saved = block_on(self.store.save(&commit)).unwrap();
                run.saved(saved, self.now).unwrap();
                *commit
            }
            step => panic!("nothing to save: {step:?}"),
        }
    }

    fn execute(&self, task: Task) -> (TaskId, TaskEnd) {
        let id = task.id();
        let end = block_on(task.execute(Arc::new(StoreDoor(self.store.clone()))));
        (id, end)
    }

    /// The machine runs it and hears of it.
    fn run_here(&self, run: &mut Run, task: Task) {
        let (id, end) = self.execute(task);
        run.task_ended(id, end, self.now).unwrap();
    }

    /// Somebody else runs these, and writes down what became of them.
    fn run_elsewhere(&mut self, carried: &ResumeToken, ids: &[TaskId]) {
        for task in self.tasks(carried) {
            if ids.contains(&task.id()) {
                let receipt = task.receipt();
                let (_, end) = self.execute(task);
                if let Some(record) = receipt.record(&end) {
                    block_on(self.store.record(&record)).unwrap();
                }
            }
        }
    }

    fn tasks(&mut self, carried: &ResumeToken) -> Vec<Task> {
        let loaded = block_on(self.store.load(&self.thread)).unwrap().unwrap();
        let (graph, options, moment) = (
            self.graph.definition().clone(),
            self.options.clone(),
            self.moment(),
        );
        Run::tasks(
            &graph,
            &self.thread,
            &loaded,
            options,
            carried.clone(),
            moment,
        )
        .unwrap()
    }

    /// Runs everything here until the run stops.
    fn drive(&mut self, run: &mut Run) -> Outcome {
        loop {
            match run.next_step() {
                Step::Start(tasks) => tasks.into_iter().for_each(|task| self.run_here(run, task)),
                Step::Drop(_) => {}
                Step::Save(commit) => {
                    let saved = block_on(self.store.save(&commit)).unwrap();
                    run.saved(saved, self.now).unwrap();
                }
                Step::Wait { until } => {
                    self.now = until.expect("something is waited for");
                    run.time_passed(self.now);
                }
                Step::Record(_) | Step::Suspend(_) => unreachable!("only a limited segment does"),
                Step::Stop(outcome) => return outcome,
            }
        }
    }

    fn answer(&self, key: &str, questions: &[superstep_core::checkpoint::format::InterruptRecord]) {
        let question = questions.iter().find(|asked| asked.key == key).unwrap();
        let answer = Answer {
            interrupt: question.id,
            body: AnswerBody::Value(Value::encode(&key.to_owned()).unwrap()),
            by: "somebody".to_owned(),
            at: self.now,
        };
        block_on(self.store.answer(&self.thread, &[answer])).unwrap();
    }
}

fn started(run: &mut Run) -> Vec<Task> {
    match run.next_step() {
        Step::Start(tasks) => tasks,
        step => panic!("nothing to start: {step:?}"),
    }
}

fn ids(tasks: &[Task]) -> Vec<TaskId> {
    tasks.iter().map(Task::id).collect()
}

#[test]
fn being_put_down_is_no_recovery_however_many_there_were() {
    let graph = pair(
        Graph::builder("g").node("a", good).node("b", good),
        ["a", "b"],
    );
    let mut bench = Bench::new(graph);
    bench.options.recoveries_max = 1;
    drop(bench.start());
    let mut run = bench.open(ThreadRequest::Recover);
    assert_eq!(bench.save(&mut run).head.recoveries, 1);
    drop(started(&mut run));
    let carried = run.resume_token();
    let mut run = bench.reopen(&carried);
    let claim = bench.save(&mut run);
    assert_eq!((claim.head.recoveries, claim.entry), (1, None));
    assert_eq!(bench.drive(&mut run), Outcome::Finished);
}

#[test]
fn tasks_that_are_tried_again_can_be_handed_over() {
    let builder = Graph::builder("g").node("a", flaky).node("b", flaky);
    let builder = builder
        .retry("a", RetryPolicy::attempts(2))
        .retry("b", RetryPolicy::attempts(2));
    let mut bench = Bench::new(pair(builder, ["a", "b"]));
    let mut run = bench.start();
    let tasks = started(&mut run);
    tasks
        .into_iter()
        .for_each(|task| bench.run_here(&mut run, task));
    bench.save(&mut run);
    let mut again = Vec::new();
    while again.len() < 2 {
        match run.next_step() {
            Step::Start(tasks) => again.extend(tasks),
            Step::Wait { until } => run.time_passed(until.unwrap()),
            step => panic!("{step:?}"),
        }
    }
    let (carried, again) = (run.resume_token(), ids(&again));
    drop(run);
    // Their clock is behind.
    let made = bench.tasks(&carried);
    assert_eq!(ids(&made).len(), 2);
    assert!(
        made.iter()
            .all(|task| again.contains(&task.id()) && task.attempt() == 2)
    );
    bench.run_elsewhere(&carried, &again);
    let mut run = bench.go_on(&carried);
    assert_eq!(bench.drive(&mut run), Outcome::Finished);
}

#[test]
fn an_attempt_that_failed_elsewhere_is_stored_before_its_retry_is_waited_for() {
    let builder = Graph::builder("g").node("a", flaky).node("b", good);
    let builder = builder.retry("a", RetryPolicy::attempts(2));
    let mut bench = Bench::new(pair(builder, ["a", "b"]));
    let mut run = bench.start();
    let handed = ids(&started(&mut run));
    let carried = run.resume_token();
    bench.run_elsewhere(&carried, &handed);
    let mut run = bench.go_on(&carried);
    assert!(bench.save(&mut run).entry.is_some());
    assert!(matches!(run.next_step(), Step::Wait { until: Some(_) }));
    assert!(run.is_stored());
    // Whoever is asked for it now is told that there is nothing to do yet.
    assert_eq!(bench.drive(&mut run), Outcome::Finished);
}

#[test]
fn a_task_that_failed_for_good_does_not_run_again_because_its_run_was_put_down() {
    let builder = Graph::builder("g").node("a", flaky).node("b", bad);
    let builder = builder.retry("a", RetryPolicy::attempts(2));
    let graph = pair(builder, ["a", "b"]);

    // Only the machine knows.
    let mut bench = Bench::new(graph.clone());
    let mut run = bench.start();
    let tasks = started(&mut run);
    tasks
        .into_iter()
        .for_each(|task| bench.run_here(&mut run, task));
    bench.save(&mut run);
    assert!(matches!(run.next_step(), Step::Wait { until: Some(_) }));
    assert!(!run.is_stored());

    // The store knows.
    let mut bench = Bench::new(graph);
    let mut run = bench.start();
    let handed = ids(&started(&mut run));
    let carried = run.resume_token();
    bench.run_elsewhere(&carried, &handed);
    let mut run = bench.go_on(&carried);
    bench.save(&mut run);
    assert!(run.is_stored());
    let carried = run.resume_token();
    bench.now = Timestamp(3_600_000);
    let mut run = bench.go_on(&carried);
    assert!(matches!(run.next_step(), Step::Wait { until: Some(_) }));
    run.time_passed(bench.now);
    let again = started(&mut run);
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].node().as_str(), "a");
    again
        .into_iter()
        .for_each(|task| bench.run_here(&mut run, task));
    assert!(matches!(bench.drive(&mut run), Outcome::Failed(told) if told.len() == 1));
}

#[test]
fn a_breakpoint_is_not_lost_while_tasks_of_another_graph_are_away() {
    let one = Graph::<Log>::builder("one")
        .node("p", good)
        .node("q", good)
        .edge(START, "p")
        .edge("p", "q")
        .edge("q", END)
        .pause_after("p")
        .build()
        .unwrap();
    let two = pair(
        Graph::builder("two").node("x", good).node("y", good),
        ["x", "y"],
    );
    let builder = Graph::builder("g")
        .shared_subgraph("one", one)
        .shared_subgraph("two", two);
    let mut bench = Bench::new(pair(builder, ["one", "two"]));
    let mut run = bench.start();
    let (away, here): (Vec<_>, Vec<_>) = started(&mut run).into_iter().partition(Task::can_move);
    assert_eq!((away.len(), here.len()), (2, 1));
    run.drain();
    here.into_iter()
        .for_each(|task| bench.run_here(&mut run, task));
    bench.save(&mut run);
    assert!(matches!(run.next_step(), Step::Wait { .. }));
    let (carried, away) = (run.resume_token(), ids(&away));
    drop(run);
    bench.run_elsewhere(&carried, &away);
    let mut run = bench.go_on(&carried);
    assert!(matches!(bench.drive(&mut run), Outcome::Breakpoint(_)));
    let mut run = bench.open(ThreadRequest::Resume);
    assert_eq!(bench.drive(&mut run), Outcome::Finished);
}

#[test]
fn a_breakpoint_that_nobody_came_to_is_not_passed() {
    let graph = Graph::<Log>::builder("g")
        .node("a", good)
        .node("b", good)
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .pause_before("b")
        .build()
        .unwrap();
    let mut bench = Bench::new(graph);
    let mut run = bench.start();
    drop(started(&mut run));
    let carried = run.resume_token();
    let mut run = bench.go_on(&carried);
    started(&mut run)
        .into_iter()
        .for_each(|task| bench.run_here(&mut run, task));
    bench.save(&mut run);
    // It dies, and whoever journaled where it was put down knows nothing of what it did since.
    let mut run = bench.go_on(&carried);
    assert!(matches!(bench.drive(&mut run), Outcome::Breakpoint(_)));
}

#[test]
fn a_task_whose_answer_came_while_it_asked_elsewhere_runs_again() {
    let graph = pair(
        Graph::builder("g").node("a", asks).node("b", good),
        ["a", "b"],
    );
    let mut bench = Bench::new(graph);
    let mut run = bench.start();
    let Outcome::Paused(questions) = bench.drive(&mut run) else {
        panic!("nobody asks")
    };
    bench.answer("first", &questions);
    let mut run = bench.open(ThreadRequest::Resume);
    bench.save(&mut run);
    let handed = ids(&started(&mut run));
    let carried = run.resume_token();
    bench.run_elsewhere(&carried, &handed);
    bench.answer("second", &questions);
    let mut run = bench.go_on(&carried);
    // What it said before is taken back first: it would be taken for its result.
    assert!(bench.save(&mut run).entry.is_some());
    assert_eq!(bench.drive(&mut run), Outcome::Finished);
}

#[test]
fn an_order_that_stores_only_when_it_stops_is_not_in_its_own_way() {
    let graph = pair(
        Graph::builder("g").node("a", good).node("b", good),
        ["a", "b"],
    );
    let mut bench = Bench::new(graph);
    bench.options.durability = Durability::Exit;
    bench.options.run = Some(RunId::from_bytes([7; 16]));
    let mut run = bench.start();
    drop(started(&mut run));
    // It dies, and the same order is tried again.
    let mut run = bench.start();
    assert_eq!(bench.drive(&mut run), Outcome::Finished);
}

#[test]
fn a_segment_suspends_only_after_every_record_is_durable() {
    let single = |name: &str| {
        let builder = Graph::<Log>::builder(name).node("bad", bad);
        builder.edge(START, "bad").edge("bad", END).build().unwrap()
    };
    let wide = pair(
        Graph::builder("wide").node("x", good).node("y", good),
        ["x", "y"],
    );
    let builder = Graph::<Log>::builder("g")
        .shared_subgraph("one", single("one"))
        .shared_subgraph("two", single("two"))
        .shared_subgraph("wide", wide);
    let lead = |builder: GraphBuilder<Log>, node| builder.edge(START, node).edge(node, END);
    let nodes = ["one", "two", "wide"];
    let graph = nodes.into_iter().fold(builder, lead).build().unwrap();

    let mut bench = Bench::new(graph);
    let run = bench.start();
    let mut segment = Segment::limited(run, SegmentLimits::default());
    let Step::Start(here) = segment.next_step() else {
        panic!("nothing to start")
    };
    assert_eq!(here.len(), 2);
    for task in here {
        let (id, end) = bench.execute(task);
        segment.task_ended(id, end, bench.now).unwrap();
    }
    // The driver writes both at once, and hears of one before the other.
    for _ in 0..2 {
        assert!(matches!(segment.next_step(), Step::Record(_)));
    }
    segment.recorded().unwrap();
    assert!(matches!(segment.next_step(), Step::Wait { .. }));
    segment.recorded().unwrap();
    let Step::Suspend(Suspension::Dispatch { tasks, .. }) = segment.next_step() else {
        panic!("it runs on")
    };
    assert_eq!(tasks.len(), 2);
    let early = segment.recorded().unwrap_err();
    assert_eq!(early.code(), "protocol-nothing-recorded");
}
