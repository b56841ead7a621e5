//! What the machine says to a driver that calls out of turn, and what it does with late news.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use superstep_core::checkpoint::{Checkpointer, Commit, Memory, Saved};
use superstep_core::driver::ThreadRequest;
use superstep_core::node::{Task, TaskEnd};
use superstep_core::run::RunOptions;
use superstep_core::{
    END, Graph, Interrupt, Moment, NodeCx, NodeError, Outcome, Run, START, Siblings, State, Step,
    TaskId, ThreadId, Timestamp, Value, View,
};

use crate::simulate::{StoreDoor, block_on};

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Log {
    #[state(append)]
    ran: Vec<String>,
}

const NOW: Timestamp = Timestamp(0);

async fn good(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
    Ok(LogUpdate::default().ran("good"))
}

async fn bad(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
    Err(NodeError::fatal("bad"))
}

fn graph(siblings: Siblings) -> Graph<Log> {
    Graph::builder("g")
        .node("bad", bad)
        .node("good", good)
        .siblings(siblings)
        .edge(START, "bad")
        .edge(START, "good")
        .edge("bad", END)
        .edge("good", END)
        .build()
        .unwrap()
}

fn open(graph: &Graph<Log>, entropy: u64) -> Run {
    let start = ThreadRequest::Start {
        input: Value::from_json_bytes(b"{}"),
        context: None,
        metadata: None,
    };
    let thread = ThreadId::new("t").unwrap();
    let moment = Moment { now: NOW, entropy };
    Run::open(
        graph.definition(),
        &thread,
        None,
        start,
        RunOptions::default(),
        moment,
    )
    .unwrap()
}

fn save(run: &mut Run, store: &Memory) -> Commit {
    let Step::Save(commit) = run.next_step() else {
        panic!("nothing to save")
    };
    let saved = block_on(store.save(&commit)).unwrap();
    run.saved(saved, NOW).unwrap();
    *commit
}

fn started(run: &mut Run) -> Vec<Task> {
    let Step::Start(tasks) = run.next_step() else {
        panic!("nothing to start")
    };
    tasks
}

fn execute(task: Task, store: &Memory) -> (TaskId, TaskEnd) {
    let id = task.id();
    let end = block_on(task.execute(Arc::new(StoreDoor(store.clone()))));
    (id, end)
}

#[test]
fn the_result_of_a_task_that_was_dropped_comes_too_late() {
    let (store, graph) = (Memory::new(), graph(Siblings::Cancel));
    let mut run = open(&graph, 1);
    save(&mut run, &store);
    let mut tasks = started(&mut run);
    let (late, first) = (tasks.pop().unwrap(), tasks.pop().unwrap());
    let (id, end) = execute(first, &store);
    run.task_ended(id, end, NOW).unwrap();
    let Step::Drop(dropped) = run.next_step() else {
        panic!("the sibling runs on")
    };
    assert_eq!(dropped, [late.id()]);
    let (id, end) = execute(late, &store);
    run.task_ended(id, end, NOW).unwrap();
    save(&mut run, &store);
    assert!(matches!(run.next_step(), Step::Stop(Outcome::Failed(told)) if told.len() == 1));
}

/// A node that yields wakes itself. If that wake-up counted for a later poll, nobody would notice the interrupt.
#[test]
fn a_node_that_yields_before_it_interrupts_pauses() {
    let ask = |_: View<Log>, cx: NodeCx| async move {
        let mut has_yielded = false;
        poll_fn(|context| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        let _: bool = cx.interrupt(Interrupt::new("q", "?")).await?;
        Ok::<_, NodeError>(LogUpdate::default())
    };
    let builder = Graph::builder("g").node("ask", ask);
    let builder = builder.edge(START, "ask").edge("ask", END);
    let (store, graph) = (Memory::new(), builder.build().unwrap());
    let mut run = open(&graph, 1);
    save(&mut run, &store);
    let (_, end) = execute(started(&mut run).pop().unwrap(), &store);
    assert!(matches!(end, TaskEnd::Paused(asked) if asked.len() == 1));
}

#[test]
fn a_driver_that_calls_out_of_turn_is_told() {
    let (store, graph) = (Memory::new(), graph(Siblings::Finish));
    let mut run = open(&graph, 1);
    let early = run.saved(Saved::default(), NOW).unwrap_err();
    assert_eq!(early.code(), "protocol-nothing-saved");
    save(&mut run, &store);
    let unknown = run
        .task_ended(TaskId::from_bytes([7; 16]), TaskEnd::TimedOut, NOW)
        .unwrap_err();
    assert_eq!(unknown.code(), "protocol-unknown-task");
    let good = started(&mut run).pop().unwrap();
    let (id, end) = execute(good, &store);
    run.task_ended(id, end, NOW).unwrap();
    let twice = run.task_ended(id, TaskEnd::TimedOut, NOW).unwrap_err();
    assert_eq!(twice.code(), "protocol-ended-twice");
}

#[test]
fn the_same_calls_give_the_same_bytes_whoever_ends_first() {
    let bytes = |reverse: bool| {
        let (store, graph) = (Memory::new(), graph(Siblings::Finish));
        let mut run = open(&graph, 5);
        let mut written = vec![save(&mut run, &store).entry];
        let mut tasks = started(&mut run);
        if reverse {
            tasks.reverse();
        }
        for task in tasks {
            let (id, end) = execute(task, &store);
            run.task_ended(id, end, NOW).unwrap();
        }
        written.push(save(&mut run, &store).entry);
        written
    };
    assert_eq!(bytes(false), bytes(true));
}

#[test]
fn two_owners_that_take_a_thread_at_once_do_not_both_win() {
    let (store, graph) = (Memory::new(), graph(Siblings::Finish));
    let (mut one, mut two) = (open(&graph, 1), open(&graph, 2));
    save(&mut one, &store);
    let Step::Save(commit) = two.next_step() else {
        panic!("nothing to save")
    };
    let fenced = block_on(store.save(&commit)).unwrap_err();
    assert_eq!(fenced.code(), "checkpoint-fenced");
}
