//! What fails, what is tried again, what is handled, and what is kept meanwhile.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use superstep::prelude::*;
use superstep::{RetryPolicy, Siblings, Timeout};
use tokio::sync::Notify;

use crate::kit::{
    Count, Log, LogUpdate, NodeFuture, crash_at, fails, failures, memory, says, wrote,
};

const EIGHT: [&str; 8] = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"];

#[tokio::test]
async fn every_failing_subset_of_an_eight_way_fan_out_runs_each_task_exactly_as_often_as_needed() {
    let runtime = memory();
    for failing in 1_u32..=255 {
        let calls: Vec<Count> = EIGHT.iter().map(|_| Count::default()).collect();
        let mut builder = Graph::builder("eight");
        for (at, name) in EIGHT.iter().enumerate() {
            let times = failing >> at & 1;
            builder = builder
                .node(*name, fails(name, times, &calls[at]))
                .edge(START, *name)
                .edge(*name, END);
        }
        let graph = builder.build().unwrap();
        let thread = runtime.thread(&graph, format!("t{failing}")).unwrap();
        let failed = thread.start(LogUpdate::default()).await.unwrap();
        assert_eq!(failures(&failed).len(), failing.count_ones() as usize);
        let done = thread.resume().await.unwrap();
        assert_eq!(done.state.ran, EIGHT, "{failing:08b}");
        for (at, calls) in calls.iter().enumerate() {
            assert_eq!(calls.get(), 1 + (failing >> at & 1), "{failing:08b} {at}");
        }
    }
}

#[tokio::test]
async fn the_count_of_attempts_survives_a_crash() {
    let (seen, there) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
    let node = {
        let (seen, there) = (seen.clone(), there.clone());
        move |_: View<Log>, cx: NodeCx| {
            let (seen, there) = (seen.clone(), there.clone());
            async move {
                let attempt = cx.attempt();
                let calls = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(attempt);
                    seen.len()
                };
                if calls == 2 {
                    there.notify_one();
                    std::future::pending::<()>().await;
                }
                Err::<LogUpdate, _>(NodeError::retryable("again"))
            }
        }
    };
    let graph = Graph::builder("attempts")
        .node("node", node)
        .retry("node", RetryPolicy::attempts(3).every(Duration::ZERO))
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap();
    let store = Memory::default();
    let thread = Runtime::new(store.clone()).thread(&graph, "t").unwrap();
    crash_at(&there, thread.start(LogUpdate::default())).await;
    let thread = Runtime::new(store).thread(&graph, "t").unwrap();
    let failed = thread.recover().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [1, 2, 2, 3]);
    let Outcome::Failed(told) = &failed.outcome else {
        panic!("{failed:?}")
    };
    assert_eq!(told[0].attempts, 3);
    // A run that gave up is tried anew by whoever resumes it.
    thread.resume().await.unwrap();
    assert_eq!(seen.lock().unwrap()[4..], [1, 2, 3]);
}

#[tokio::test]
async fn a_fatal_error_is_not_tried_again() {
    let calls = Count::default();
    let graph = Graph::builder("fatal")
        .node("node", fails("node", 9, &calls))
        .retry("node", RetryPolicy::attempts(5).every(Duration::ZERO))
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-fatal");
    assert_eq!(calls.get(), 1);
}

fn timed(
    timeout: Timeout,
    node: impl Fn(View<Log>, NodeCx) -> NodeFuture + Send + Sync + 'static,
) -> Graph<Log> {
    Graph::builder("timed")
        .node("node", node)
        .timeout("node", timeout)
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap()
}

/// Works for half a second, with a sign of life every 20 ms if it beats.
fn busy(beats: bool) -> impl Fn(View<Log>, NodeCx) -> NodeFuture {
    move |_, cx| {
        Box::pin(async move {
            for _ in 0..25 {
                tokio::time::sleep(Duration::from_millis(20)).await;
                if beats {
                    cx.heartbeat();
                }
            }
            Ok(wrote("done"))
        })
    }
}

#[tokio::test]
async fn a_time_limit_in_all_and_one_without_a_sign_of_life() {
    let limit = Duration::from_millis(250);
    for (graph, finishes) in [
        (timed(Timeout::run(limit), busy(true)), false),
        (timed(Timeout::idle(limit), busy(true)), true),
        (timed(Timeout::idle(limit), busy(false)), false),
    ] {
        let thread = memory().thread(&graph, "t").unwrap();
        let stopped = thread.start(LogUpdate::default()).await.unwrap();
        if finishes {
            assert_eq!(stopped.outcome, Outcome::Finished);
        } else {
            assert_eq!(failures(&stopped)[0].1.code(), "node-timed-out");
            assert!(stopped.state.ran.is_empty());
        }
    }
}

#[tokio::test]
async fn a_panic_in_a_node_a_route_or_a_cache_key_is_a_failure_of_the_node() {
    fn panics(_: View<Log>, _: NodeCx) -> NodeFuture {
        Box::pin(async { panic!("ouch") })
    }
    let node = Graph::builder("panics")
        .node("node", panics)
        .edge(START, "node")
        .edge("node", END);
    let at_once = Graph::builder("at-once")
        .node("node", |_: View<Log>, _: NodeCx| -> NodeFuture {
            panic!("before the first await")
        })
        .edge(START, "node")
        .edge("node", END);
    let cache = Graph::builder("key")
        .node("node", panics)
        .cache("node", None, |_| panic!("no key"))
        .edge(START, "node")
        .edge("node", END);
    for builder in [node, at_once, cache] {
        let thread = memory().thread(&builder.build().unwrap(), "t").unwrap();
        let failed = thread.start(LogUpdate::default()).await.unwrap();
        assert_eq!(failures(&failed)[0].1.code(), "node-panicked");
    }
}

/// One byte, which overflows on purpose.
#[derive(Clone, Debug, Default, State)]
struct Jar {
    #[state(reduce = fill)]
    full: u8,
    #[state(append)]
    put: Vec<u8>,
}

fn fill(full: u8, more: u8) -> u8 {
    full.checked_add(more).expect("the jar holds 255")
}

fn jar(more: u8) -> Graph<Jar> {
    let put = move |_: View<Jar>, _: NodeCx| async move {
        Ok::<_, NodeError>(JarUpdate::default().put(more).full(more))
    };
    Graph::builder("jar")
        .node("put", put)
        .node("put-too", put)
        .edge(START, "put")
        .edge(START, "put-too")
        .edge("put", END)
        .edge("put-too", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_panic_in_a_reducer_fails_the_superstep_whole_and_the_thread_goes_on_with_mended_code() {
    let store = Memory::default();
    let thread = Runtime::new(store.clone()).thread(&jar(100), "t").unwrap();
    let failed = thread.start(JarUpdate::default().full(100)).await.unwrap();
    let (node, kind, message) = {
        let Outcome::Failed(told) = &failed.outcome else {
            panic!("{failed:?}")
        };
        (&told[0].node, told[0].kind.code(), &told[0].message)
    };
    assert_eq!((node.as_str(), kind), ("put", "node-panicked"));
    assert!(message.contains("the reducer of `full`"), "{message}");
    assert!(message.contains("the jar holds 255"), "{message}");
    // The first of the two writes had been folded in when the second one panicked.
    assert_eq!((failed.state.full, failed.state.put), (100, vec![]));

    let refused = thread.start(JarUpdate::default().full(200)).await;
    assert_eq!(refused.unwrap_err().code(), "open-bad-input");

    let mended = Runtime::new(store).thread(&jar(50), "t").unwrap();
    let done = mended.resume().await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!((done.state.full, done.state.put), (200, vec![50, 50]));
}

#[tokio::test]
async fn a_thread_whose_past_panics_in_the_code_of_today_says_so_and_is_left_alone() {
    /// The same channels, with a jar that takes nothing.
    #[derive(Clone, Debug, Default, State)]
    struct Lid {
        #[state(reduce = shut)]
        full: u8,
        #[state(append)]
        put: Vec<u8>,
    }
    fn shut(_: u8, _: u8) -> u8 {
        panic!("the lid is on")
    }
    let store = Memory::default();
    let thread = Runtime::new(store.clone()).thread(&jar(1), "t").unwrap();
    thread.start(JarUpdate::default()).await.unwrap();
    let lid = Graph::builder("jar")
        .node("put", async |_: View<Lid>, _: NodeCx| {
            Ok::<_, NodeError>(LidUpdate::default())
        })
        .edge(START, "put")
        .edge("put", END)
        .build()
        .unwrap();
    let shut = Runtime::new(store.clone()).thread(&lid, "t").unwrap();
    let unreadable = shut.state().await.unwrap_err();
    assert_eq!(unreadable.code(), "open-unreadable");
    assert!(chain(&unreadable).contains("the lid is on"));
    let again = Runtime::new(store).thread(&jar(1), "t").unwrap();
    let kept = again.state().await.unwrap().unwrap().values;
    assert_eq!(kept.decode::<Jar>().unwrap().full, 2);
}

fn chain(error: &dyn std::error::Error) -> String {
    let below = error.source().map(chain).unwrap_or_default();
    format!("{error}: {below}")
}

#[tokio::test]
async fn a_route_that_fails_is_asked_again_and_its_node_does_not_run_again() {
    let (calls, asked) = (Count::default(), Count::default());
    let route = asked.clone();
    let graph = Graph::builder("route")
        .node("node", fails("node", 0, &calls))
        .route("node", &[END], move |_: &Log| {
            assert!(route.up() > 1, "not the first time");
            END
        })
        .edge(START, "node")
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-panicked");
    assert_eq!(failed.state.ran, ["node"], "what it wrote is kept");
    let done = thread.resume().await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!((calls.get(), asked.get()), (1, 2));
}

async fn sorry(failed: Failed<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
    Ok(wrote(format!(
        "sorry: {} after {}",
        failed.failure.message, failed.failure.attempts
    )))
}

#[tokio::test]
async fn an_error_handler_writes_in_place_of_its_node_and_goes_where_it_would_have_gone() {
    let calls = Count::default();
    let graph = Graph::builder("handled")
        .node("node", fails("node", 9, &calls))
        .node("next", says("next"))
        .on_error("node", &[END], sorry)
        .edge(START, "node")
        .edge("node", "next")
        .edge("next", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.ran, ["sorry: node is broken after 1", "next"]);
}

#[tokio::test]
async fn an_error_handler_may_go_elsewhere_but_only_where_it_said() {
    async fn goes(_: Failed<Log>, _: NodeCx) -> Result<Command<Log>, NodeError> {
        Ok(Command::update(wrote("handled")).goto("mend"))
    }
    let graph = |targets: &[&str]| {
        let calls = Count::default();
        Graph::builder("handled")
            .node("node", fails("node", 9, &calls))
            .node("mend", says("mend"))
            .node("next", says("next"))
            .on_error("node", targets, goes)
            .edge(START, "node")
            .edge("node", "next")
            .edge("next", "mend")
            .edge("mend", END)
            .build()
            .unwrap()
    };
    let thread = memory().thread(&graph(&["mend"]), "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.state.ran, ["handled", "mend"]);
    let thread = memory().thread(&graph(&[END]), "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-undeclared-target");
}

#[tokio::test]
async fn a_crash_between_a_failure_and_its_handler_goes_on_with_the_handler() {
    let (node, handler, there) = (Count::default(), Count::default(), Arc::new(Notify::new()));
    let graph = {
        let (handler, there) = (handler.clone(), there.clone());
        Graph::builder("handled")
            .node("node", fails("node", 9, &node))
            .on_error("node", &[END], move |_: Failed<Log>, _: NodeCx| {
                let (first, there) = (handler.up() == 1, there.clone());
                async move {
                    if first {
                        there.notify_one();
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, NodeError>(wrote("handled"))
                }
            })
            .edge(START, "node")
            .edge("node", END)
            .build()
            .unwrap()
    };
    let store = Memory::default();
    let thread = Runtime::new(store.clone()).thread(&graph, "t").unwrap();
    crash_at(&there, thread.start(LogUpdate::default())).await;
    let thread = Runtime::new(store).thread(&graph, "t").unwrap();
    let done = thread.recover().await.unwrap();
    assert_eq!(done.state.ran, ["handled"]);
    assert_eq!((node.get(), handler.get()), (1, 2));
}

#[tokio::test]
async fn a_handler_has_steps_and_questions_of_its_own() {
    let effects = Count::default();
    let graph = {
        let (in_node, in_handler) = (effects.clone(), effects.clone());
        Graph::builder("handled")
            .node("node", move |_: View<Log>, cx: NodeCx| {
                let effects = in_node.clone();
                async move {
                    cx.step("send", || async { Ok(effects.up()) }).await?;
                    Err::<LogUpdate, _>(NodeError::fatal("after the step"))
                }
            })
            .on_error("node", &[END], move |_: Failed<Log>, cx: NodeCx| {
                let effects = in_handler.clone();
                async move {
                    let undone: u32 = cx.step("undo", || async { Ok(effects.up()) }).await?;
                    let yes: bool = cx.interrupt(Interrupt::new("tell", "?")).await?;
                    Ok::<_, NodeError>(wrote(format!("{undone} {yes}")))
                }
            })
            .edge(START, "node")
            .edge("node", END)
            .build()
            .unwrap()
    };
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    assert!(matches!(paused.outcome, Outcome::Paused(_)), "{paused:?}");
    let done = thread.answer_only(true).await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["2 true"], "{done:?}");
    assert_eq!(effects.get(), 2);
}

#[tokio::test]
async fn the_result_of_a_handler_is_kept_when_a_sibling_fails() {
    let (node, bad) = (Count::default(), Count::default());
    let graph = Graph::builder("handled")
        .node("a", fails("a", 9, &node))
        .node("b", fails("b", 1, &bad))
        .on_error("a", &[END], sorry)
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", END)
        .edge("b", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].0, "b");
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["sorry: a is broken after 1", "b"]);
    assert_eq!(node.get(), 1, "its handler had ended");
}

#[tokio::test]
async fn a_handler_that_fails_fails_the_run() {
    let calls = Count::default();
    let graph = Graph::builder("handled")
        .node("node", fails("node", 9, &calls))
        .on_error("node", &[END], |_: Failed<Log>, _: NodeCx| async {
            Err::<LogUpdate, _>(NodeError::fatal("me too"))
        })
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    let Outcome::Failed(told) = failed.outcome else {
        panic!("{failed:?}")
    };
    assert_eq!(told[0].message, "me too");
}

#[tokio::test]
async fn a_handler_of_a_subgraph_catches_what_failed_inside_however_deep() {
    for depth in 1..=3 {
        let calls = Count::default();
        let mut graph = Graph::builder("innermost")
            .node("node", fails("node", 9, &calls))
            .edge(START, "node")
            .edge("node", END)
            .build()
            .unwrap();
        for level in 1..=depth {
            let mut builder = Graph::builder("around")
                .shared_subgraph("inner", graph)
                .edge(START, "inner")
                .edge("inner", END);
            if level == depth {
                builder = builder.on_error("inner", &[END], |failed: Failed<Log>, _: NodeCx| {
                    let kind = failed.failure.kind;
                    async move { Ok::<_, NodeError>(wrote(kind.code())) }
                });
            }
            graph = builder.build().unwrap();
        }
        let thread = memory().thread(&graph, "t").unwrap();
        let done = thread.start(LogUpdate::default()).await.unwrap();
        assert_eq!(done.outcome, Outcome::Finished, "depth {depth}");
        assert_eq!(done.state.ran, ["node-fatal"], "depth {depth}");
    }
}

#[tokio::test]
async fn failures_are_told_together_or_the_first_one_cancels_the_rest() {
    let build = |siblings: Siblings| {
        let calls = Count::default();
        Graph::builder("siblings")
            .node("a", fails("a", 9, &calls))
            .node("b", move |_: View<Log>, _: NodeCx| async move {
                if siblings == Siblings::Cancel {
                    std::future::pending::<()>().await;
                }
                Err::<LogUpdate, _>(NodeError::fatal("later"))
            })
            .siblings(siblings)
            .edge(START, "a")
            .edge(START, "b")
            .edge("a", END)
            .edge("b", END)
            .build()
            .unwrap()
    };
    let thread = memory().thread(&build(Siblings::Finish), "t").unwrap();
    let all = failures(&thread.start(LogUpdate::default()).await.unwrap());
    assert_eq!(all.len(), 2);
    let thread = memory().thread(&build(Siblings::Cancel), "t").unwrap();
    let first = failures(&thread.start(LogUpdate::default()).await.unwrap());
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].0, "a");
}

#[tokio::test]
async fn a_check_of_the_state_that_panics_refuses_the_update() {
    #[derive(Clone, Debug, Default, State)]
    #[state(check = check)]
    struct Strict {
        n: u32,
    }
    fn check(strict: &Strict, _: &StrictUpdate) -> Result<(), superstep::error::InvalidUpdate> {
        assert!(strict.n == 0, "only once");
        Ok(())
    }
    let graph = Graph::builder("strict")
        .node("node", |_: View<Strict>, _: NodeCx| async {
            Ok::<_, NodeError>(StrictUpdate::default().n(2))
        })
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let stopped = thread.start(StrictUpdate::default().n(1)).await.unwrap();
    let Outcome::Failed(told) = stopped.outcome else {
        panic!("{stopped:?}")
    };
    assert_eq!(told[0].kind.code(), "node-invalid-update");
    assert!(told[0].message.contains("only once"), "{}", told[0].message);
}

#[tokio::test]
async fn a_program_that_comes_up_again_goes_on_with_what_failed_and_starts_what_is_done() {
    let tries = Count::default();
    let graph = {
        let tries = tries.clone();
        Graph::builder("again")
            .node("a", move |_: View<Log>, _: NodeCx| {
                let first = tries.up() == 1;
                async move {
                    if first {
                        return Err(NodeError::fatal("once"));
                    }
                    Ok(wrote("a"))
                }
            })
            .edge(START, "a")
            .edge("a", END)
            .build()
            .unwrap()
    };
    let thread = memory().thread(&graph, "t").unwrap();
    let input = || LogUpdate::default().ran("input");
    let comes_up = async || thread.start_or_recover(input()).await.unwrap();
    assert!(matches!(comes_up().await.outcome, Outcome::Failed(_)));
    assert_eq!(comes_up().await.state.ran, ["input", "a"]);
    assert_eq!(comes_up().await.state.ran, ["input", "a", "input", "a"]);
}
