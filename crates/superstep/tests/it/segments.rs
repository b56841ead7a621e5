//! Runs that are put down and taken up by others, as an engine would do it, without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use superstep::checkpoint::{Answer, AnswerBody};
use superstep::driver::{QueuedRequest, ThreadRequest};
use superstep::error::{CheckpointError, OpenError};
use superstep::prelude::*;
use superstep::{
    Clock, DriveError, RetryPolicy, RunId, RunOptions, SegmentEnd, SegmentLimits, Suspension,
    ThreadId, Timestamp,
};

use crate::kit::{Log, LogUpdate, asks, says, wrote};
use crate::lost_replies::Forgetful;

/// Carries out an order: every boundary is a moment at which all that is in memory could be lost.
async fn carry_out(
    runtime: &Runtime,
    time: &AtomicI64,
    thread: &ThreadId,
    order: &QueuedRequest,
) -> Result<(), DriveError> {
    let (id, limits) = (RunId::from_bytes([1; 16]), limits());
    let mut carried = None;
    for _ in 0..100 {
        carried = Some(
            match runtime
                .local()
                .segment(thread, id, order, carried, &limits)
                .await?
            {
                SegmentEnd::Stopped(_) => return Ok(()),
                SegmentEnd::Suspended(Suspension::Continue(token)) => token,
                SegmentEnd::Suspended(Suspension::Sleep { until, token }) => {
                    time.store(until.0, Ordering::SeqCst);
                    token
                }
                SegmentEnd::Suspended(Suspension::Dispatch { tasks, token }) => {
                    for task in tasks {
                        runtime
                            .local()
                            .run_task(thread, id, order, &token, task, &limits)
                            .await?;
                    }
                    token
                }
            },
        );
    }
    panic!("it goes on for ever")
}

fn limits() -> SegmentLimits {
    SegmentLimits {
        longest_wait: Duration::ZERO,
        ..SegmentLimits::default()
    }
}

fn start() -> ThreadRequest {
    ThreadRequest::Start {
        input: superstep::Value::encode(&LogUpdate::default()).unwrap(),
        context: None,
        metadata: None,
    }
}

fn order(graph: &Graph<Log>, what: ThreadRequest) -> QueuedRequest {
    QueuedRequest::new(graph.name(), what, &RunOptions::default()).unwrap()
}

#[tokio::test]
async fn tasks_that_are_tried_again_together_are_handed_over_again() {
    async fn flaky(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        match cx.attempt() {
            1 => Err(NodeError::retryable("not yet")),
            n => Ok(wrote(format!("attempt {n}"))),
        }
    }
    let policy = RetryPolicy::attempts(2).every(Duration::from_secs(60));
    let graph = Graph::builder("flaky")
        .node("a", flaky)
        .node("b", flaky)
        .retry("a", policy)
        .retry("b", policy)
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", END)
        .edge("b", END)
        .build()
        .unwrap();
    let time = Arc::new(AtomicI64::new(0));
    let tells = time.clone();
    let clock = Clock::new(move || Timestamp(tells.load(Ordering::SeqCst)));
    let runtime = Runtime::builder(Memory::default()).clock(clock).build();
    runtime.register(&graph);
    let thread = runtime.thread(&graph, "t").unwrap();
    carry_out(&runtime, &time, thread.id(), &order(&graph, start()))
        .await
        .unwrap();
    let state = thread.state().await.unwrap().unwrap();
    assert_eq!(
        state.values.decode::<Log>().unwrap().ran,
        ["attempt 2", "attempt 2"]
    );
}

#[tokio::test]
async fn handlers_of_tasks_that_failed_together_are_handed_over() {
    let graph = Graph::builder("broken")
        .node("a", broken)
        .node("b", broken)
        .on_error("a", &[END], handled)
        .on_error("b", &[END], handled)
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", END)
        .edge("b", END)
        .build()
        .unwrap();
    let runtime = Runtime::new(Memory::default());
    runtime.register(&graph);
    let thread = runtime.thread(&graph, "t").unwrap();
    carry_out(
        &runtime,
        &AtomicI64::new(0),
        thread.id(),
        &order(&graph, start()),
    )
    .await
    .unwrap();
    let state = thread.state().await.unwrap().unwrap();
    assert_eq!(
        state.values.decode::<Log>().unwrap().ran,
        ["sorry", "sorry"]
    );
}

async fn broken(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
    Err(NodeError::fatal("broken"))
}

async fn handled(_: superstep::Failed<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
    Ok(wrote("sorry"))
}

#[tokio::test]
async fn a_call_that_is_overtaken_by_an_earlier_one_of_its_order_is_made_again_and_not_refused() {
    let graph = Graph::builder("short")
        .node("a", says("a"))
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let memory = Memory::default();
    let thread: ThreadId = "t".parse().unwrap();
    let earlier = Runtime::new(memory.clone());
    earlier.register(&graph);
    let overtakes = {
        let (thread, order) = (thread.clone(), order(&graph, start()));
        move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().unwrap();
            let time = AtomicI64::new(0);
            let carried_out = carry_out(&earlier, &time, &thread, &order);
            runtime.block_on(carried_out).unwrap();
        }
    };
    // The clock is asked after the thread was read and before it is claimed.
    let (is_first, overtakes) = (AtomicBool::new(true), Arc::new(overtakes));
    let clock = Clock::new(move || {
        if is_first.swap(false, Ordering::SeqCst) {
            let overtakes = overtakes.clone();
            std::thread::spawn(move || overtakes()).join().unwrap();
        }
        Timestamp(0)
    });
    let runtime = Runtime::builder(memory).clock(clock).build();
    runtime.register(&graph);
    let (id, order) = (RunId::from_bytes([1; 16]), order(&graph, start()));
    let overtaken = runtime
        .local()
        .segment(&thread, id, &order, None, &limits())
        .await;
    let overtaken = overtaken.unwrap_err();
    assert!(
        matches!(
            overtaken,
            DriveError::Checkpoint(CheckpointError::Fenced { .. })
        ),
        "{overtaken:?}"
    );
    assert!(!overtaken.is_refusal());
    let again = runtime
        .local()
        .segment(&thread, id, &order, None, &limits())
        .await;
    assert!(matches!(again, Ok(SegmentEnd::Stopped(_))), "{again:?}");
}

#[tokio::test]
async fn an_answer_that_no_node_is_there_for_is_refused_and_not_kept() {
    let graph = |node: &'static str| {
        Graph::builder("moved")
            .node(node, asks("ask"))
            .edge(START, node)
            .edge(node, END)
            .build()
            .unwrap()
    };
    let memory = Memory::default();
    let thread = Runtime::new(memory.clone())
        .thread(&graph("old"), "t")
        .unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let Outcome::Paused(asked) = &paused.outcome else {
        panic!("{:?}", paused.outcome)
    };
    let answer = Answer {
        interrupt: asked[0].id,
        body: AnswerBody::Value(superstep::Value::plain(&"yes").unwrap()),
        by: String::new(),
        at: Timestamp(0),
    };
    let newer = Runtime::new(memory);
    newer.register(&graph("new"));
    let order = order(&graph("new"), ThreadRequest::Answer(vec![answer]));
    let refused = carry_out(&newer, &AtomicI64::new(0), thread.id(), &order).await;
    let refused = refused.unwrap_err();
    assert!(refused.is_refusal());
    assert!(
        matches!(refused, DriveError::Open(OpenError::NodeGone { .. })),
        "{refused:?}"
    );
    assert_eq!(thread.interrupts().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_answer_that_an_earlier_call_takes_meanwhile_is_not_reported_as_done() {
    let graph = Graph::builder("asks")
        .node("ask", asks("ask"))
        .node("last", says("last"))
        .edge(START, "ask")
        .edge("ask", "last")
        .edge("last", END)
        .build()
        .unwrap();
    let memory = Memory::default();
    let thread = Runtime::new(memory.clone()).thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let Outcome::Paused(asked) = &paused.outcome else {
        panic!("{:?}", paused.outcome)
    };
    let answer = Answer {
        interrupt: asked[0].id,
        body: AnswerBody::Value(superstep::Value::plain(&"yes").unwrap()),
        by: String::new(),
        at: Timestamp(0),
    };
    let (id, order) = (
        RunId::from_bytes([1; 16]),
        order(&graph, ThreadRequest::Answer(vec![answer])),
    );
    // The earlier call claims the thread, makes one superstep, and is gone.
    let earlier = Runtime::new(memory.clone());
    earlier.register(&graph);
    let begins = {
        let (thread, order) = (thread.id().clone(), order.clone());
        move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().unwrap();
            let limits = SegmentLimits {
                supersteps: 1,
                ..limits()
            };
            let begun = earlier.local().segment(&thread, id, &order, None, &limits);
            let begun = runtime.block_on(begun).unwrap();
            assert!(
                matches!(begun, SegmentEnd::Suspended(Suspension::Continue(_))),
                "{begun:?}"
            );
        }
    };
    let (is_first, begins) = (AtomicBool::new(true), Arc::new(begins));
    let store = Forgetful::before_glance(memory, move || {
        if is_first.swap(false, Ordering::SeqCst) {
            let begins = begins.clone();
            std::thread::spawn(move || begins()).join().unwrap();
        }
    });
    let runtime = Runtime::new(store);
    runtime.register(&graph);
    let overtaken = runtime
        .local()
        .segment(thread.id(), id, &order, None, &limits())
        .await;
    assert!(
        matches!(&overtaken, Err(error) if !error.is_refusal()),
        "{overtaken:?}"
    );
    carry_out(&runtime, &AtomicI64::new(0), thread.id(), &order)
        .await
        .unwrap();
    let state = thread.state().await.unwrap().unwrap();
    let ran = state.values.decode::<Log>().unwrap().ran;
    assert_eq!(ran, ["ask=yes", "last"]);
}
