//! `cx.step`: done once, whatever happens around it, and never silently something else.

use std::sync::Arc;
use std::time::Duration;

use superstep::prelude::*;
use superstep::{DriveError, RetryPolicy, RunResult};
use tokio::sync::Notify;

use crate::kit::{Count, Log, LogUpdate, crash_at, failures, memory, wrote};

fn one_node<F, Fut>(node: F) -> Graph<Log>
where
    F: Fn(View<Log>, NodeCx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<LogUpdate, NodeError>> + Send + 'static,
{
    Graph::builder("steps")
        .node("node", node)
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_step_is_not_repeated_after_a_crash() {
    let (effects, runs, there) = (Count::default(), Count::default(), Arc::new(Notify::new()));
    let graph = {
        let (effects, runs, there) = (effects.clone(), runs.clone(), there.clone());
        one_node(move |_, cx| {
            let (effects, runs, there) = (effects.clone(), runs.clone(), there.clone());
            async move {
                let n: u32 = cx.step("effect", || async { Ok(effects.up()) }).await?;
                if runs.up() == 1 {
                    there.notify_one();
                    std::future::pending::<()>().await;
                }
                Ok(wrote(n.to_string()))
            }
        })
    };
    let store = Memory::default();
    let thread = Runtime::new(store.clone()).thread(&graph, "t").unwrap();
    crash_at(&there, thread.start(LogUpdate::default())).await;
    let thread = Runtime::new(store).thread(&graph, "t").unwrap();
    let done = thread.recover().await.unwrap();
    assert_eq!(done.state.ran, ["1"]);
    assert_eq!((effects.get(), runs.get()), (1, 2));
}

#[tokio::test]
async fn a_step_is_not_repeated_by_a_retry_and_a_failed_step_is_done_again() {
    let (done, failed) = (Count::default(), Count::default());
    let node = {
        let (done, failed) = (done.clone(), failed.clone());
        move |_: View<Log>, cx: NodeCx| {
            let (done, failed) = (done.clone(), failed.clone());
            async move {
                cx.step("first", || async { Ok(done.up()) }).await?;
                let second: u32 = cx
                    .step("second", || async {
                        match failed.up() {
                            n @ 3.. => Ok(n),
                            _ => Err(NodeError::retryable("not yet")),
                        }
                    })
                    .await?;
                Ok::<_, NodeError>(wrote(format!("{second} at {}", cx.attempt())))
            }
        }
    };
    let graph = Graph::builder("retry")
        .node("node", node)
        .retry("node", RetryPolicy::attempts(5).every(Duration::ZERO))
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let stopped = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(stopped.state.ran, ["3 at 3"]);
    assert_eq!((done.get(), failed.get()), (1, 3));
}

/// A node that does these steps in order, asks, and counts what is really done.
fn does(steps: &'static [&'static str], effects: &Count) -> Graph<Log> {
    let effects = effects.clone();
    one_node(move |_, cx| {
        let effects = effects.clone();
        async move {
            for step in steps {
                cx.step(step, || async { Ok(effects.up()) }).await?;
            }
            let _: bool = cx.interrupt(Interrupt::new("sure", "?")).await?;
            Ok(wrote("done"))
        }
    })
}

#[tokio::test]
async fn steps_renamed_reordered_or_removed_park_the_thread_and_nothing_is_done() {
    for after in [
        &["a", "c"][..],
        &["c", "b"],
        &["b", "a"],
        &["b"],
        &["a"],
        &[],
    ] {
        let (before, now) = (Count::default(), Count::default());
        let runtime = memory();
        let old = does(&["a", "b"], &before);
        let thread = runtime.thread(&old, "t").unwrap();
        thread.start(LogUpdate::default()).await.unwrap();

        let upgraded = runtime.thread(&does(after, &now), "t").unwrap();
        let parked = upgraded.answer_only(true).await.unwrap().unwrap();
        let told = failures(&parked);
        assert_eq!(told[0].1.code(), "node-step-changed", "{after:?}");
        assert_eq!(now.get(), 0, "{after:?}");
        assert!(parked.state.ran.is_empty(), "{after:?}");
        let again = failures(&upgraded.resume().await.unwrap());
        assert_eq!(again[0].1.code(), "node-step-changed", "{after:?}");

        // With the old code back the thread goes on as if nothing had been.
        let back = runtime.thread(&old, "t").unwrap();
        assert_eq!(back.resume().await.unwrap().state.ran, ["done"]);
        assert_eq!(before.get(), 2);
    }
}

#[tokio::test]
async fn a_record_whose_type_changed_parks_the_thread() {
    async fn old(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let n: u32 = cx.step("count", || async { Ok(1) }).await?;
        let _: bool = cx.interrupt(Interrupt::new("sure", n)).await?;
        Ok(wrote(n.to_string()))
    }
    async fn new(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let n: String = cx.step("count", || async { Ok("1".to_owned()) }).await?;
        Ok(wrote(n))
    }
    let runtime = memory();
    let thread = runtime.thread(&one_node(old), "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let upgraded = runtime.thread(&one_node(new), "t").unwrap();
    let parked = upgraded.answer_only(true).await.unwrap().unwrap();
    assert_eq!(failures(&parked)[0].1.code(), "node-record-unreadable");
}

async fn only_node(graph: Graph<Log>) -> Result<RunResult<Log>, DriveError> {
    let thread = memory().thread(&graph, "t")?;
    thread.start(LogUpdate::default()).await
}

#[tokio::test]
async fn two_steps_of_one_name_at_once_are_ambiguous_and_one_after_the_other_are_not() {
    async fn at_once(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let slow = || async {
            tokio::task::yield_now().await;
            Ok(1)
        };
        let (a, b) = tokio::join!(cx.step::<i64, _, _>("x", slow), cx.step("x", slow));
        Ok(LogUpdate::default().total(a? + b?))
    }
    async fn in_turn(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let mut total = 0;
        for n in 1..=3 {
            total += cx.step::<i64, _, _>("x", || async { Ok(n) }).await?;
        }
        Ok(LogUpdate::default().total(total))
    }
    let failed = only_node(one_node(at_once)).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-ambiguous-step");
    let done = only_node(one_node(in_turn)).await.unwrap();
    assert_eq!(done.state.total, 6);
}

#[tokio::test]
async fn one_key_for_two_questions_is_ambiguous() {
    async fn at_once(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let (a, b) = tokio::try_join!(
            cx.interrupt::<bool>(Interrupt::new("q", "?")),
            cx.interrupt::<bool>(Interrupt::new("q", "?")),
        )?;
        Ok(wrote(format!("{a} {b}")))
    }
    let failed = only_node(one_node(at_once)).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-ambiguous-interrupt");

    async fn in_turn(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let _: bool = cx.interrupt(Interrupt::new("q", "?")).await?;
        let _: bool = cx.interrupt(Interrupt::new("q", "?")).await?;
        Ok(LogUpdate::default())
    }
    let runtime = memory();
    let thread = runtime.thread(&one_node(in_turn), "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let failed = thread.answer_only(true).await.unwrap().unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-ambiguous-interrupt");
}

#[tokio::test]
async fn steps_in_flight_together_are_found_again_in_whatever_order_they_come() {
    let (effects, runs) = (Count::default(), Count::default());
    let graph = {
        let (effects, runs) = (effects.clone(), runs.clone());
        one_node(move |_, cx| {
            let (effects, flip) = (effects.clone(), runs.up() == 2);
            async move {
                let work = |name: &'static str| {
                    let (cx, effects) = (cx.clone(), effects.clone());
                    async move {
                        cx.step(name, || async {
                            tokio::task::yield_now().await;
                            Ok(effects.up())
                        })
                        .await
                    }
                };
                let names = if flip { ["b", "a"] } else { ["a", "b"] };
                let (first, second) = tokio::join!(work(names[0]), work(names[1]));
                let _: bool = cx.interrupt(Interrupt::new("sure", "?")).await?;
                Ok(LogUpdate::default().total(i64::from(first? + second?)))
            }
        })
    };
    let thread = memory().thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let done = thread.answer_only(true).await.unwrap().unwrap();
    assert_eq!(done.state.total, 3);
    assert_eq!((effects.get(), runs.get()), (2, 2));
}

#[tokio::test]
async fn names_of_steps_are_refused_that_could_be_mistaken_for_ours() {
    for bad in ["", "=result", &"x".repeat(201)] {
        let bad = bad.to_owned();
        let graph = one_node(move |_, cx| {
            let bad = bad.clone();
            async move {
                cx.step(&bad, || async { Ok(1) }).await?;
                Ok(LogUpdate::default())
            }
        });
        let failed = only_node(graph).await.unwrap();
        assert_eq!(failures(&failed)[0].1.code(), "node-fatal");
    }
}

#[tokio::test]
async fn a_step_in_flight_is_not_cut_by_a_question() {
    let effects = Count::default();
    let graph = {
        let effects = effects.clone();
        one_node(move |_, cx| {
            let effects = effects.clone();
            async move {
                let (yes, n) = tokio::join!(
                    cx.interrupt::<bool>(Interrupt::new("sure", "?")),
                    cx.step("slow", || async {
                        for _ in 0..5 {
                            tokio::task::yield_now().await;
                        }
                        Ok(effects.up())
                    }),
                );
                Ok(wrote(format!("{} {}", yes?, n?)))
            }
        })
    };
    let thread = memory().thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(effects.get(), 1);
    let done = thread.answer_only(true).await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["true 1"]);
    assert_eq!(effects.get(), 1);
}

#[tokio::test]
async fn a_hold_keeps_a_node_running_until_its_calls_are_done() {
    for holds in [false, true] {
        let calls = Count::default();
        let graph = {
            let calls = calls.clone();
            one_node(move |_, cx| {
                let calls = calls.clone();
                async move {
                    let hold = holds.then(|| cx.hold());
                    let plain = async {
                        // Not a step: cut by the question unless the node is held.
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        calls.up();
                        drop(hold);
                    };
                    let (yes, ()) =
                        tokio::join!(cx.interrupt::<bool>(Interrupt::new("q", "?")), plain);
                    Ok(wrote(yes?.to_string()))
                }
            })
        };
        let thread = memory().thread(&graph, "t").unwrap();
        let paused = thread.start(LogUpdate::default()).await.unwrap();
        assert!(matches!(paused.outcome, Outcome::Paused(_)));
        assert_eq!(calls.get(), u32::from(holds));
        let done = thread.answer_only(true).await.unwrap().unwrap();
        assert_eq!(done.state.ran, ["true"]);
    }
}

#[tokio::test]
async fn effect_keys_are_the_same_across_resumes_and_new_on_a_fork() {
    let keys = Arc::new(std::sync::Mutex::new(Vec::new()));
    let graph = {
        let keys = keys.clone();
        one_node(move |_, cx| {
            keys.lock().unwrap().push(cx.effect_key("pay"));
            async move {
                let _: bool = cx.interrupt(Interrupt::new("sure", "?")).await?;
                Ok(wrote("paid"))
            }
        })
    };
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    thread.answer_only(true).await.unwrap();
    thread.replay(paused.seq).await.unwrap();
    let keys = keys.lock().unwrap();
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[1], keys[2]);
}
