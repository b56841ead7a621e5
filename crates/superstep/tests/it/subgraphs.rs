//! Graphs as nodes: whose state, how long it lives, and what passes through the wall.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use superstep::prelude::*;
use superstep::{Durability, Message, SubgraphLife};
use tokio::sync::Notify;

use crate::kit::{
    Count, Log, LogUpdate, asked, asks, crash_at, fails, failures, id_of, keys, memory, options,
    row, says, wrote,
};

fn one(name: &'static str, node: impl Node<Log>) -> Graph<Log> {
    Graph::builder("one")
        .node(name, node)
        .edge(START, name)
        .edge(name, END)
        .build()
        .unwrap()
}

fn nothing(_: &Log) -> LogUpdate {
    LogUpdate::default()
}

fn everything(_: &Log, child: &Log) -> LogUpdate {
    LogUpdate::default()
        .ran_all(child.ran.clone())
        .total(child.total)
}

#[tokio::test]
async fn a_shared_child_works_on_our_state_and_writes_each_thing_once() {
    let child = Graph::builder("child")
        .node("a", |log: View<Log>, _: NodeCx| async move {
            Ok::<_, NodeError>(wrote(format!("a sees {}", log.ran.len())).total(1))
        })
        .node("b", |log: View<Log>, _: NodeCx| async move {
            Ok::<_, NodeError>(wrote(format!("b sees {}", log.ran.len())).total(log.total))
        })
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .shared_subgraph("child", child)
        .node("after", says("after"))
        .edge(START, "child")
        .edge("child", "after")
        .edge("after", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(wrote("input").total(10)).await.unwrap();
    assert_eq!(done.state.ran, ["input", "a sees 1", "b sees 2", "after"]);
    assert_eq!(done.state.total, 10 + 1 + 11);
}

#[tokio::test]
async fn a_mapped_child_has_a_state_of_its_own() {
    #[derive(Clone, Debug, Default, State)]
    struct Letters {
        word: String,
        #[state(append)]
        letters: Vec<char>,
    }
    let child = Graph::builder("child")
        .node("spell", |state: View<Letters>, _: NodeCx| async move {
            Ok::<_, NodeError>(LettersUpdate::default().letters_all(state.word.chars()))
        })
        .edge(START, "spell")
        .edge("spell", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .subgraph(
            "child",
            child,
            |log: &Log| LettersUpdate::default().word(log.ran.concat()),
            |_, letters| LogUpdate::default().total(letters.letters.len() as i64),
        )
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(wrote("hello")).await.unwrap();
    assert_eq!((done.state.ran.len(), done.state.total), (1, 5));
}

#[tokio::test]
async fn a_subgraph_does_not_wait_for_a_slow_sibling() {
    let went = Arc::new(Notify::new());
    let last = went.clone();
    let child = Graph::builder("child")
        .node("a", says("a"))
        .node("b", move |_: View<Log>, _: NodeCx| {
            last.notify_one();
            async { Ok::<_, NodeError>(wrote("b")) }
        })
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .subgraph("child", child, nothing, everything)
        // Ends only when the second superstep of its sibling has run.
        .node("slow", move |_: View<Log>, _: NodeCx| {
            let went = went.clone();
            async move {
                went.notified().await;
                Ok::<_, NodeError>(wrote("slow"))
            }
        })
        .edge(START, "child")
        .edge(START, "slow")
        .edge("child", END)
        .edge("slow", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let run = tokio::time::timeout(Duration::from_secs(20), thread.start(LogUpdate::default()));
    let done = run
        .await
        .expect("the subgraph waits for its sibling")
        .unwrap();
    assert_eq!(done.state.ran, ["a", "b", "slow"]);
}

/// Three levels, mapped in shared in mapped, with questions on each: five in all.
fn three_levels() -> Graph<Log> {
    let leaf = Graph::builder("leaf")
        .node("x", asks("x"))
        .node("y", asks("y"))
        .edge(START, "x")
        .edge(START, "y")
        .edge("x", END)
        .edge("y", END)
        .build()
        .unwrap();
    let middle = Graph::builder("middle")
        .subgraph("leaf", leaf.clone(), nothing, everything)
        .node("m", asks("m"))
        .edge(START, "leaf")
        .edge(START, "m")
        .edge("leaf", END)
        .edge("m", END)
        .build()
        .unwrap();
    Graph::builder("top")
        .shared_subgraph("middle", middle)
        .subgraph("leaf", leaf, nothing, everything)
        .edge(START, "middle")
        .edge(START, "leaf")
        .edge("middle", END)
        .edge("leaf", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn questions_three_levels_down_surface_together_and_are_answered_one_by_one_by_id() {
    let thread = memory().thread(&three_levels(), "t").unwrap();
    let mut paused = thread.start(LogUpdate::default()).await.unwrap();
    let all = asked(&paused);
    assert_eq!(all.len(), 5);
    let ids: BTreeSet<_> = all.iter().map(|(_, id)| *id).collect();
    assert_eq!(ids.len(), 5);
    // The last first, one at a time; the others keep their ids.
    for (left, (key, id)) in all.iter().enumerate().rev() {
        paused = thread.answer(*id, key).await.unwrap().unwrap();
        if left > 0 {
            let open: BTreeSet<_> = asked(&paused).into_iter().map(|(_, id)| id).collect();
            assert_eq!(open, all[..left].iter().map(|(_, id)| *id).collect());
        }
    }
    assert_eq!(paused.outcome, Outcome::Finished);
    assert_eq!(paused.state.ran, ["x=x", "y=y", "x=x", "y=y", "m=m"]);
}

#[tokio::test]
async fn a_fan_out_of_subgraphs_pauses_each_by_itself_and_writes_in_the_order_of_sends() {
    const PART: SendTo<String> = SendTo::new("part");
    let child = one("ask", |log: View<Log>, cx: NodeCx| async move {
        let yes: bool = cx.interrupt(Interrupt::new(&log.ran[0], "?")).await?;
        Ok::<_, NodeError>(wrote(yes.to_string()))
    });
    let graph = Graph::builder("fan")
        .subgraph_worker(&PART, child, wrote, everything)
        .route(START, &["part"], |_: &Log| {
            ["p", "q", "r"].map(|name| Goto::send(&PART, name.to_owned()))
        })
        .edge("part", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(keys(&paused), ["p", "q", "r"]);
    let partly = thread.answer(id_of(&paused, "r"), true).await.unwrap();
    assert_eq!(keys(&partly.unwrap()), ["p", "q"]);
    let rest = [(id_of(&paused, "q"), false), (id_of(&paused, "p"), true)];
    let done = thread.answer_as("", rest).await.unwrap().unwrap();
    assert_eq!(
        done.state.ran,
        ["p", "true", "q", "false", "r", "true"],
        "{done:?}"
    );
}

#[tokio::test]
async fn a_child_of_a_child_that_lives_with_the_thread_is_remembered_too() {
    let count = |log: View<Log>, _: NodeCx| async move {
        Ok::<_, NodeError>(LogUpdate::default().total(1).last(log.total.to_string()))
    };
    let inner = Graph::builder("inner")
        .subgraph("core", one("count", count), nothing, |_, core| {
            wrote(core.total.to_string())
        })
        .life("core", SubgraphLife::Thread)
        .edge(START, "core")
        .edge("core", END)
        .build()
        .unwrap();
    let graph = Graph::builder("outer")
        .subgraph("inner", inner, nothing, |_, inner| {
            LogUpdate::default().overwrite_ran(inner.ran.clone())
        })
        .life("inner", SubgraphLife::Thread)
        .edge(START, "inner")
        .edge("inner", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    for _ in 0..2 {
        thread.start(LogUpdate::default()).await.unwrap();
    }
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.state.ran, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_child_that_lives_with_the_thread_cannot_be_entered_twice_at_once() {
    const PART: SendTo<u32> = SendTo::new("part");
    let graph = Graph::builder("twice")
        .subgraph_worker(
            &PART,
            one("a", asks("a")),
            |n| wrote(n.to_string()),
            everything,
        )
        .life("part", SubgraphLife::Thread)
        .route(START, &["part"], |_: &Log| {
            [1, 2].map(|n| Goto::send(&PART, n))
        })
        .edge("part", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-subgraph-busy");
}

/// The question of the run before is dropped with the task that asked it, and so is the task's hold on the child.
#[tokio::test]
async fn a_child_that_lives_with_the_thread_is_free_again_when_a_new_run_begins() {
    let graph = Graph::builder("again")
        .subgraph("child", one("ask", asks("ask")), nothing, everything)
        .life("child", SubgraphLife::Thread)
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    for _ in 0..2 {
        let stopped = thread.start(LogUpdate::default()).await.unwrap();
        assert!(matches!(stopped.outcome, Outcome::Paused(_)), "{stopped:?}");
    }
}

/// The failed invocation made no superstep. Its tasks had ids all the same, and receivers may know the keys of their effects.
#[tokio::test]
async fn a_child_that_lives_with_the_thread_has_new_effect_keys_after_a_failure() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let pays = {
        let seen = seen.clone();
        move |log: View<Log>, cx: NodeCx| {
            let mut seen = seen.lock().unwrap();
            seen.push((cx.effect_key("pay"), log.total));
            async { Err::<LogUpdate, _>(NodeError::fatal("the bank is closed")) }
        }
    };
    let graph = Graph::builder("again")
        .subgraph(
            "child",
            one("pay", pays),
            |_: &Log| LogUpdate::default().total(1),
            everything,
        )
        .life("child", SubgraphLife::Thread)
        .on_error("child", &[END], |_: Failed<Log>, _: NodeCx| async {
            Ok::<_, NodeError>(wrote("sorry"))
        })
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    for _ in 0..2 {
        thread.start(LogUpdate::default()).await.unwrap();
    }
    let seen = seen.lock().unwrap();
    let [(first, 1), (second, 2)] = seen.as_slice() else {
        panic!("the child lost an input: {seen:?}")
    };
    assert_ne!(first, second);
}

/// The state is large and stored only when the run stops, so a snapshot is taken then.
#[tokio::test]
async fn a_child_whose_first_route_fails_is_entered_when_the_thread_is_resumed() {
    let calls = Count::default();
    let child = {
        let calls = calls.clone();
        Graph::builder("child")
            .node("a", says("a"))
            .route(START, &["a"], move |_: &Log| {
                assert!(calls.up() > 1, "the route is broken");
                Goto::node("a")
            })
            .edge("a", END)
            .build()
            .unwrap()
    };
    let graph = Graph::builder("routed")
        .subgraph("child", child, nothing, everything)
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let thread = thread.with_options(options(|o| o.durability = Durability::Exit));
    let failed = thread.start(wrote("x".repeat(20_000))).await.unwrap();
    assert_eq!(failures(&failed)[0].0, "child");
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran[1..], ["a"]);
    assert_eq!(calls.get(), 2);
}

#[tokio::test]
async fn a_handler_that_failed_runs_again_and_the_child_that_it_handles_does_not() {
    let (effects, handled) = (Count::default(), Count::default());
    let breaks = {
        let effects = effects.clone();
        move |_: View<Log>, cx: NodeCx| {
            let effects = effects.clone();
            async move {
                let paid = async || Ok::<_, NodeError>(effects.up());
                cx.step("pay", paid).await?;
                Err::<LogUpdate, _>(NodeError::fatal("broken"))
            }
        }
    };
    let graph = {
        let handled = handled.clone();
        Graph::builder("handled")
            .subgraph("child", one("a", breaks), nothing, everything)
            .on_error("child", &[END], move |_: Failed<Log>, _: NodeCx| {
                let is_first = handled.up() == 1;
                async move {
                    match is_first {
                        true => Err(NodeError::fatal("broken too")),
                        false => Ok(wrote("sorry")),
                    }
                }
            })
            .edge(START, "child")
            .edge("child", END)
            .build()
            .unwrap()
    };
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].0, "child");
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["sorry"]);
    assert_eq!((effects.get(), handled.get()), (1, 2));
}

/// The graph of a thread whose child failed, with or without the handler, which fails too.
fn left_child(is_handled: bool, entered: &Count) -> Graph<Log> {
    let graph = Graph::builder("handled")
        .subgraph(
            "child",
            one("a", fails("a", u32::MAX, entered)),
            nothing,
            everything,
        )
        .edge(START, "child")
        .edge("child", END);
    let graph = match is_handled {
        true => graph.on_error("child", &[END], |_: Failed<Log>, _: NodeCx| async {
            Err::<LogUpdate, _>(NodeError::fatal("broken too"))
        }),
        false => graph,
    };
    graph.build().unwrap()
}

#[tokio::test]
async fn a_child_that_was_left_stays_failed_without_its_handler_and_is_entered_again_by_a_fork() {
    let entered = Count::default();
    let runtime = memory();
    let before = runtime.thread(&left_child(true, &entered), "t").unwrap();
    let failed = before.start(LogUpdate::default()).await.unwrap();
    let after = runtime.thread(&left_child(false, &entered), "t").unwrap();
    let still = after.resume().await.unwrap();
    assert_eq!(failures(&still)[0].0, "child");
    assert_eq!(entered.get(), 1);
    after.fork(failed.seq).await.unwrap();
    after.resume().await.unwrap();
    assert_eq!(entered.get(), 2);
}

/// Whether a deploy comes in between must not decide what a sibling of a failure still does.
#[tokio::test]
async fn a_drain_does_not_have_a_failure_handled_before_its_siblings_have_ended() {
    let (there, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let waits = {
        let (there, go) = (there.clone(), go.clone());
        move |_: View<Log>, _: NodeCx| {
            let (there, go) = (there.clone(), go.clone());
            async move {
                there.notify_one();
                go.notified().await;
                Ok::<_, NodeError>(LogUpdate::default())
            }
        }
    };
    let second = Count::default();
    let counts = {
        let second = second.clone();
        move |_: View<Log>, _: NodeCx| {
            second.up();
            async { Ok::<_, NodeError>(LogUpdate::default()) }
        }
    };
    let long = Graph::builder("long")
        .node("first", waits)
        .node("second", counts)
        .edge(START, "first")
        .edge("first", "second")
        .edge("second", END)
        .build()
        .unwrap();
    let child = Graph::builder("child")
        .subgraph("long", long, nothing, everything)
        .node("broken", fails("broken", u32::MAX, &Count::default()))
        .edge(START, "long")
        .edge(START, "broken")
        .edge("long", END)
        .edge("broken", END)
        .build()
        .unwrap();
    let graph = Graph::builder("handled")
        .subgraph("child", child, nothing, everything)
        .on_error("child", &[END], |_: Failed<Log>, _: NodeCx| async {
            Ok::<_, NodeError>(wrote("sorry"))
        })
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    let store = Memory::default();
    let runtime = Runtime::new(store.clone());
    let thread = runtime.thread(&graph, "t").unwrap();
    let (stopped, ()) = tokio::join!(thread.start(LogUpdate::default()), async {
        there.notified().await;
        tokio::join!(runtime.drain(), async { go.notify_one() });
    });
    assert_eq!(stopped.unwrap().outcome, Outcome::Drained);
    let next = Runtime::new(store).thread(&graph, "t").unwrap();
    let done = next.recover().await.unwrap();
    assert_eq!(done.state.ran, ["sorry"]);
    assert_eq!(second.get(), 1);
}

/// A parent whose child runs `first`, then a node that waits once; crashes there and recovers.
async fn crash_inside(life: SubgraphLife) -> u32 {
    let (first, second, there) = (Count::default(), Count::default(), Arc::new(Notify::new()));
    let waits = {
        let (second, there) = (second.clone(), there.clone());
        move |_: View<Log>, _: NodeCx| {
            let (once, there) = (second.up() == 1, there.clone());
            async move {
                if once {
                    there.notify_one();
                    std::future::pending::<()>().await;
                }
                Ok::<_, NodeError>(wrote("second"))
            }
        }
    };
    let child = Graph::builder("child")
        .node("first", fails("first", 0, &first))
        .node("second", waits)
        .edge(START, "first")
        .edge("first", "second")
        .edge("second", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .subgraph("child", child, nothing, everything)
        .life("child", life)
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    let store = Memory::default();
    let thread = Runtime::new(store.clone()).thread(&graph, "t").unwrap();
    crash_at(&there, thread.start(LogUpdate::default())).await;
    let thread = Runtime::new(store).thread(&graph, "t").unwrap();
    let done = thread.recover().await.unwrap();
    assert_eq!(done.state.ran, ["first", "second"]);
    first.get()
}

#[tokio::test]
async fn a_crash_inside_a_child_repeats_nothing_unless_it_is_stateless() {
    assert_eq!(crash_inside(SubgraphLife::Invocation).await, 1);
    assert_eq!(crash_inside(SubgraphLife::Thread).await, 1);
    assert_eq!(crash_inside(SubgraphLife::Stateless).await, 2);
}

#[tokio::test]
async fn a_command_to_the_parent_may_send_and_must_go_where_the_node_declared() {
    const WORK: SendTo<u32> = SendTo::new("work");
    let leave = |_: View<Log>, _: NodeCx| async {
        let command = Command::<Log>::update(wrote("left"));
        Ok::<_, NodeError>(Command::<Log>::parent(
            command.send(&WORK, 1).send(&WORK, 2),
        ))
    };
    let graph = |targets: &[&str]| {
        Graph::builder("parent")
            .subgraph("child", one("leave", leave), nothing, everything)
            .map_node(&WORK, |n: u32, _: NodeCx| async move {
                Ok::<_, NodeError>(wrote(format!("work{n}")))
            })
            .node("other", says("other"))
            .route(START, &["child", "work", "other"], |_: &Log| "child")
            .commands("child", targets)
            .edge("work", END)
            .edge("other", END)
            .build()
            .unwrap()
    };
    let thread = memory().thread(&graph(&["work"]), "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.state.ran, ["left", "work1", "work2"]);
    let thread = memory().thread(&graph(&["other"]), "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-undeclared-target");
}

#[tokio::test]
async fn a_breakpoint_inside_a_child_stops_and_goes_on() {
    let child = Graph::builder("child")
        .node("a", says("a"))
        .node("b", says("b"))
        .pause_before("b")
        .pause_after("b")
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .build()
        .unwrap();
    let graph = one_child(child);
    let thread = memory().thread(&graph, "t").unwrap();
    let before = thread.start(LogUpdate::default()).await.unwrap();
    assert!(matches!(before.outcome, Outcome::Breakpoint(_)));
    let after = thread.resume().await.unwrap();
    assert!(matches!(after.outcome, Outcome::Breakpoint(_)), "{after:?}");
    let done = thread.resume().await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.ran, ["a", "b"]);
}

fn one_child(child: Graph<Log>) -> Graph<Log> {
    Graph::builder("parent")
        .shared_subgraph("child", child)
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap()
}

/// A child beside a node that is in the middle of a step when the child stops the run.
async fn effects_beside(child: Graph<Log>, limit: u64) -> u32 {
    let effects = Count::default();
    let counted = effects.clone();
    let graph = Graph::builder("beside")
        .shared_subgraph("child", child)
        .node("slow", move |_: View<Log>, cx: NodeCx| {
            let effects = counted.clone();
            async move {
                let n = cx.step("effect", || async {
                    let n = effects.up();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Ok(n)
                });
                Ok::<_, NodeError>(wrote(n.await?.to_string()))
            }
        })
        .edge(START, "child")
        .edge(START, "slow")
        .edge("child", END)
        .edge("slow", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let thread = thread.with_options(options(|o| o.step_limit = limit));
    let mut stopped = thread.start(LogUpdate::default()).await.unwrap();
    assert_ne!(stopped.outcome, Outcome::Finished);
    for _ in 0..5 {
        if stopped.outcome != Outcome::Finished {
            stopped = thread.resume().await.unwrap();
        }
    }
    assert_eq!(stopped.outcome, Outcome::Finished);
    effects.get()
}

#[tokio::test]
async fn a_child_that_stops_the_run_does_not_cut_the_effect_of_a_sibling() {
    let stops = Graph::builder("stops")
        .node("a", says("a"))
        .node("b", says("b"))
        .pause_after("a")
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .build()
        .unwrap();
    assert_eq!(effects_beside(stops, 100).await, 1, "a breakpoint");
    assert_eq!(effects_beside(row(&["a", "b", "c"]), 1).await, 1, "a limit");
    let asked = Count::default();
    let stray = Graph::builder("stray")
        .node("a", says("a"))
        .route("a", &[END], move |_: &Log| {
            assert!(asked.up() > 1, "not the first time");
            END
        })
        .edge(START, "a")
        .build()
        .unwrap();
    assert_eq!(effects_beside(stray, 100).await, 1, "a route that fails");
}

#[tokio::test]
async fn a_child_counts_its_own_steps_against_the_limit() {
    let graph = one_child(row(&["a", "b", "c"]));
    let thread = memory().thread(&graph, "t").unwrap();
    let thread = thread.with_options(options(|o| o.step_limit = 2));
    let limited = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(limited.outcome, Outcome::StepLimit);
    let done = thread.resume().await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.ran, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_stateless_child_with_breakpoints_is_refused_when_it_is_built() {
    let child = Graph::builder("child")
        .node("a", says("a"))
        .pause_before("a")
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let refused = Graph::builder("parent")
        .shared_subgraph("child", child)
        .life("child", SubgraphLife::Stateless)
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap_err();
    assert_eq!(refused.problems[0].code(), "build-stateless-pause");
}

#[tokio::test]
async fn a_shared_child_of_any_life_works_on_the_state_as_it_is_now() {
    for life in [
        SubgraphLife::Invocation,
        SubgraphLife::Thread,
        SubgraphLife::Stateless,
    ] {
        let child = Graph::builder("child")
            .node("see", |log: View<Log>, _: NodeCx| async move {
                Ok::<_, NodeError>(wrote(format!("sees {}", log.ran.len())))
            })
            .node("then", says("then"))
            .edge(START, "see")
            .edge("see", "then")
            .edge("then", END)
            .build()
            .unwrap();
        let graph = Graph::builder("parent")
            .shared_subgraph("child", child)
            .life("child", life)
            .edge(START, "child")
            .edge("child", END)
            .build()
            .unwrap();
        let thread = memory().thread(&graph, "t").unwrap();
        thread.start(wrote("one")).await.unwrap();
        let done = thread.start(wrote("two")).await.unwrap();
        assert_eq!(
            done.state.ran,
            ["one", "sees 1", "then", "two", "sees 4", "then"],
            "{life:?}"
        );
        // The same when it is read from the store.
        let state = thread.state().await.unwrap().unwrap();
        assert_eq!(state.values.decode::<Log>().unwrap(), done.state);
    }
}

#[tokio::test]
async fn a_shared_child_that_paused_goes_on_with_what_it_had_written() {
    for life in [SubgraphLife::Invocation, SubgraphLife::Thread] {
        let child = Graph::builder("child")
            .node("first", says("first"))
            .node("ask", |log: View<Log>, cx: NodeCx| async move {
                let yes: bool = cx.interrupt(Interrupt::new("q", "?")).await?;
                Ok::<_, NodeError>(wrote(format!("{yes} after {}", log.ran.join(" "))))
            })
            .edge(START, "first")
            .edge("first", "ask")
            .edge("ask", END)
            .build()
            .unwrap();
        let graph = Graph::builder("parent")
            .shared_subgraph("child", child)
            .life("child", life)
            .edge(START, "child")
            .edge("child", END)
            .build()
            .unwrap();
        let thread = memory().thread(&graph, "t").unwrap();
        for _ in 0..2 {
            thread.start(LogUpdate::default()).await.unwrap();
            thread.answer_only(true).await.unwrap();
        }
        let state = thread.state().await.unwrap().unwrap();
        assert_eq!(
            state.values.decode::<Log>().unwrap().ran,
            [
                "first",
                "true after first",
                "first",
                "true after first true after first first"
            ],
            "{life:?}"
        );
    }
}

/// A message as agents have them: the id comes from the runtime unless it is set.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Line {
    id: Option<String>,
    text: String,
}

impl Message for Line {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn set_id(&mut self, id: String) {
        self.id = Some(id);
    }
}

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Team {
    #[state(messages)]
    lines: Vec<Line>,
}

fn line(text: String) -> TeamUpdate {
    TeamUpdate::default().lines(Line { id: None, text })
}

fn hands_over(to: &'static str) -> Graph<Team> {
    let hand_over = move |team: View<Team>, _: NodeCx| async move {
        let to = if team.lines.len() < 5 { to } else { END };
        let said = line(format!("{} to {to}", team.lines.len()));
        Ok::<_, NodeError>(Command::parent(Command::<Team>::update(said).goto(to)))
    };
    Graph::builder("agent")
        .node("handover", hand_over)
        .edge(START, "handover")
        .edge("handover", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn every_handoff_keeps_its_message() {
    let graph = Graph::builder("team")
        .shared_subgraph("ada", hands_over("bob"))
        .shared_subgraph("bob", hands_over("ada"))
        .edge(START, "ada")
        .commands("ada", &["bob", END])
        .commands("bob", &["ada", END])
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(line("start".to_owned())).await.unwrap();
    let texts: Vec<_> = done.state.lines.iter().map(|line| &line.text).collect();
    assert_eq!(
        texts,
        [
            "start",
            "1 to bob",
            "2 to ada",
            "3 to bob",
            "4 to ada",
            "5 to __end__"
        ]
    );
    let ids: BTreeSet<_> = done.state.lines.iter().map(|line| &line.id).collect();
    assert_eq!(ids.len(), 6, "{ids:?}");
}

#[tokio::test]
async fn a_command_does_not_go_up_two_graphs() {
    let leave = |_: View<Log>, _: NodeCx| async {
        let root = Command::<Log>::update(wrote("up two"));
        Ok::<_, NodeError>(Command::parent(Command::<Log>::parent(root)))
    };
    let graph = Graph::builder("outer")
        .shared_subgraph("child", one("leave", leave))
        .edge(START, "child")
        .commands("child", &[END])
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-undeclared-target");
}
