//! What a thread's trace shows: times, waits, attempts, calls, and the same ids however often it is read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::Map;
use superstep::prelude::*;
use superstep::run::{Edit, EditNode, ThreadEdit};
use superstep::trace::{CallKind, CallSpan, Span, SpanNames, Trace, fields};
use superstep::{Clock, FramePath, NodeName, RetryPolicy, Timestamp};
use tokio::sync::Notify;

use crate::kit::{Count, Log, LogUpdate, NodeFuture, asks, fails, options, wrote};

/// The time, which passes when somebody says so.
#[derive(Clone, Default)]
struct Time(Arc<AtomicI64>);

impl Time {
    fn passes(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn runtime(&self, store: &Memory) -> Runtime {
        let time = self.clone();
        let clock = Clock::new(move || time.now());
        Runtime::builder(store.clone()).clock(clock).build()
    }

    /// A node that takes so long.
    fn takes(
        &self,
        name: &'static str,
        ms: i64,
    ) -> impl Fn(View<Log>, NodeCx) -> NodeFuture + use<> {
        let time = self.clone();
        move |_, _| {
            time.passes(ms);
            Box::pin(async move { Ok(wrote(name)) })
        }
    }

    /// A call that takes so long.
    fn call(&self, kind: &'static str, name: &str, ms: i64) -> CallSpan {
        let start = self.now();
        self.passes(ms);
        CallSpan {
            span: CallKind::from_static(kind),
            name: name.to_owned(),
            start,
            end: self.now(),
            error: None,
            fields: Map::new(),
            result: Some("only for a replay".into()),
        }
    }
}

fn ids(spans: &[Span], found: &mut Vec<u64>) {
    for span in spans {
        found.push(span.id.0);
        ids(&span.inner, found);
    }
}

fn all_ids(trace: &Trace) -> Vec<u64> {
    let mut found = Vec::new();
    ids(&trace.runs, &mut found);
    let different: BTreeSet<_> = found.iter().collect();
    assert_eq!(
        different.len(),
        found.len(),
        "two spans have one id:\n{trace}"
    );
    assert!(!found.contains(&0));
    found
}

/// Makes a query; then pays, which a person must allow, and dies once while it does.
fn shop(time: &Time, there: &Arc<Notify>, goes: &Count) -> Graph<Log> {
    let (clock, died, goes) = (time.clone(), there.clone(), goes.clone());
    let ask = {
        let clock = time.clone();
        move |_: View<Log>, cx: NodeCx| {
            let clock = clock.clone();
            async move {
                cx.emit(clock.call("query", "query stock", 1_200))?;
                Ok::<_, NodeError>(wrote("asked"))
            }
        }
    };
    let pay = move |_: View<Log>, cx: NodeCx| {
        let (clock, died, goes) = (clock.clone(), died.clone(), goes.clone());
        async move {
            let looked = cx
                .step("look", || async {
                    Ok(clock.call("request", "request quote", 30))
                })
                .await?;
            cx.emit(looked)?;
            let _: String = cx.interrupt(Interrupt::new("may", "may it?")).await?;
            if goes.up() == 1 {
                clock.passes(400);
                died.notify_one();
                std::future::pending::<()>().await;
            }
            cx.emit(clock.call("request", "request payment", 250))?;
            Ok::<_, NodeError>(wrote("paid"))
        }
    };
    Graph::builder("shop")
        .node("ask", ask)
        .node("pay", pay)
        .edge(START, "ask")
        .edge("ask", "pay")
        .edge("pay", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_run_with_a_pause_and_a_crash_is_one_span_with_the_wait_in_it() {
    let (time, there, store) = (Time::default(), Arc::default(), Memory::default());
    let graph = shop(&time, &there, &Count::default());
    let thread = time.runtime(&store).thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    time.passes(3_600_000);
    let waiting = thread.trace().await.unwrap();
    assert_snapshot!(waiting, @r"
    t
    └─ shop  goes on  paused
       ├─ superstep 1  1.2 s
       │  └─ ask  1.2 s
       │     └─ query stock  1.2 s
       └─ superstep 2  goes on
          └─ waits for a person  goes on
    ");
    time.passes(3_600_000);
    // It dies while it pays, and lies there for a minute.
    let id = thread.interrupts().await.unwrap()[0].interrupt.id;
    tokio::select! {
        () = there.notified() => {}
        _ = thread.answer(id, "yes") => panic!("it did not die"),
    }
    time.passes(60_000);
    let thread = time.runtime(&store).thread(&graph, "t").unwrap();
    let done = thread.recover().await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    let trace = thread.trace().await.unwrap();
    assert_snapshot!(trace, @r"
    t
    └─ shop  2 h 1 min  finished
       ├─ superstep 1  1.2 s
       │  └─ ask  1.2 s
       │     └─ query stock  1.2 s
       └─ superstep 2  2 h 1 min
          ├─ pay  2 h 1 min
          │  ├─ request quote  30 ms
          │  └─ request payment  250 ms
          └─ waits for a person  2 h 0 min
    ");
    assert_eq!(trace.runs.len(), 1);
    let (before, after) = (all_ids(&waiting), all_ids(&trace));
    assert!(
        before.iter().all(|id| after.contains(id)),
        "{before:?} {after:?}"
    );
    assert_eq!(thread.trace().await.unwrap(), trace);
    let run = done.run.to_string();
    assert_eq!(trace.runs[0].trace().unwrap().to_string(), run);
}

#[tokio::test]
async fn attempts_are_shown_with_what_was_wrong() {
    let (time, store, calls) = (Time::default(), Memory::default(), Count::default());
    let clock = time.clone();
    let flaky = move |_: View<Log>, _: NodeCx| {
        clock.passes(100);
        let is_well = calls.up() > 2;
        async move {
            match is_well {
                true => Ok(wrote("flaky")),
                false => Err(NodeError::retryable("the line is busy")),
            }
        }
    };
    let graph = Graph::builder("tries")
        .node("flaky", flaky)
        .node("calm", time.takes("calm", 5))
        .retry("flaky", RetryPolicy::attempts(3).every(Duration::ZERO))
        .edge(START, "flaky")
        .edge("flaky", "calm")
        .edge("calm", END)
        .build()
        .unwrap();
    let thread = time.runtime(&store).thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let trace = thread.trace().await.unwrap();
    assert_snapshot!(trace, @r"
    t
    └─ tries  305 ms  finished
       ├─ superstep 1  300 ms
       │  ├─ flaky  100 ms  failed: the line is busy
       │  ├─ flaky  100 ms  failed: the line is busy
       │  └─ flaky  100 ms
       └─ superstep 2  5 ms
          └─ calm  5 ms
    ");
    all_ids(&trace);
}

#[tokio::test]
async fn a_failed_run_that_is_resumed_is_still_one() {
    let (time, store) = (Time::default(), Memory::default());
    let graph = Graph::builder("broken")
        .node("well", time.takes("well", 10))
        .node("ill", fails("ill", 1, &Count::default()))
        .edge(START, "well")
        .edge("well", "ill")
        .edge("ill", END)
        .build()
        .unwrap();
    let thread = time.runtime(&store).thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    assert_snapshot!(thread.trace().await.unwrap(), @r"
    t
    └─ broken  10 ms  failed: ill is broken
       ├─ superstep 1  10 ms
       │  └─ well  10 ms
       └─ superstep 2  0 ms
          └─ ill  0 ms  failed: ill is broken
    ");
    time.passes(1_000);
    thread.resume().await.unwrap();
    let trace = thread.trace().await.unwrap();
    assert_snapshot!(trace, @r"
    t
    └─ broken  1.0 s  finished
       ├─ superstep 1  10 ms
       │  └─ well  10 ms
       ├─ superstep 2  0 ms
       │  └─ ill  0 ms  failed: ill is broken
       └─ superstep 2  1.0 s
          └─ ill  1.0 s
    ");
    all_ids(&trace);
}

#[tokio::test]
async fn a_fork_is_a_run_of_its_own_with_a_trace_of_its_own() {
    let (time, store) = (Time::default(), Memory::default());
    let graph = Graph::builder("row")
        .node("a", time.takes("a", 10))
        .node("b", time.takes("b", 20))
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .build()
        .unwrap();
    let runtime = time.runtime(&store);
    let thread = runtime.thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let after_a = thread.history(superstep::Seq(0), 10).await.unwrap()[1].seq;
    time.passes(1_000);
    thread.replay(after_a).await.unwrap();
    let copy = thread.copy_to("copy", Some(after_a)).await.unwrap();
    copy.resume().await.unwrap();
    let trace = thread.trace().await.unwrap();
    assert_snapshot!(trace, @r"
    t
    ├─ row  30 ms  finished
    │  ├─ superstep 1  10 ms
    │  │  └─ a  10 ms
    │  └─ superstep 2  20 ms
    │     └─ b  20 ms
    └─ row  20 ms  finished
       └─ superstep 1  20 ms
          └─ b  20 ms
    ");
    let copied = copy.trace().await.unwrap();
    assert_snapshot!(copied, @r"
    copy
    ├─ row  1.1 s
    │  └─ superstep 1  10 ms
    │     └─ a  10 ms
    └─ row  20 ms  finished
       └─ superstep 1  20 ms
          └─ b  20 ms
    ");
    let traces = [&trace.runs[0], &trace.runs[1], &copied.runs[1]].map(|run| run.trace());
    assert!(traces[0] != traces[1] && traces[1] != traces[2] && traces[0] != traces[2]);
    let (here, there) = (all_ids(&trace), all_ids(&copied));
    assert_eq!(here[0], there[0]);
    let both = here.iter().filter(|id| there.contains(id)).count();
    assert_eq!(
        both, 3,
        "the run, its first superstep and node are the same; nothing else is"
    );
}

#[tokio::test]
async fn supersteps_of_a_subgraph_are_inside_the_node_that_entered_it() {
    let (time, store) = (Time::default(), Memory::default());
    let child = Graph::builder("child")
        .node("first", time.takes("first", 10))
        .node("second", time.takes("second", 20))
        .edge(START, "first")
        .edge("first", "second")
        .edge("second", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .shared_subgraph("child", child)
        .node("after", time.takes("after", 5))
        .edge(START, "child")
        .edge("child", "after")
        .edge("after", END)
        .build()
        .unwrap();
    let thread = time.runtime(&store).thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let trace = thread.trace().await.unwrap();
    assert_snapshot!(trace, @r"
    t
    └─ parent  35 ms  finished
       ├─ superstep 1  30 ms
       │  └─ child  30 ms
       │     ├─ superstep 1  10 ms
       │     │  └─ first  10 ms
       │     └─ superstep 2  20 ms
       │        └─ second  20 ms
       └─ superstep 2  5 ms
          └─ after  5 ms
    ");
    all_ids(&trace);
}

/// Its calls were made and paid for.
#[tokio::test]
async fn what_an_edit_ends_stays_in_the_trace() {
    let (time, store) = (Time::default(), Memory::default());
    let child = Graph::builder("child")
        .node("first", time.takes("first", 10))
        .node("ask", asks("q"))
        .edge(START, "first")
        .edge("first", "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .shared_subgraph("child", child)
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    let thread = time.runtime(&store).thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    time.passes(100);
    let node = EditNode::Node(NodeName::new("child").unwrap());
    let by_hand = Command::<Log>::update(wrote("by hand"));
    let edit = ThreadEdit {
        at: None,
        frame: FramePath::root(),
        updates: vec![Edit::new(node, by_hand).unwrap()],
    };
    thread.edit(edit).await.unwrap();
    let trace = thread.trace().await.unwrap();
    assert_snapshot!(trace, @"
    t
    └─ parent  goes on  paused
       └─ superstep 1  110 ms
          ├─ child  110 ms
          │  └─ superstep 1  10 ms
          │     └─ first  10 ms
          └─ waits for a person  100 ms
    ");
    all_ids(&trace);
}

/// Two at once in one subgraph, each with the name of what it works on.
#[tokio::test]
async fn spans_have_the_names_that_nodes_give_them_and_keep_those_of_the_graph() {
    const PART: SendTo<String> = SendTo::new("part");
    let child = Graph::builder("child")
        .node("work", |log: View<Log>, cx: NodeCx| async move {
            cx.emit(SpanNames {
                node_span: Some(format!("{}-Work", log.ran[0])),
                graph_span: Some(format!("Part-{}", log.ran[0])),
            })?;
            Ok::<_, NodeError>(wrote("done"))
        })
        .edge(START, "work")
        .edge("work", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .node("begin", |_: View<Log>, cx: NodeCx| async move {
            cx.emit(SpanNames {
                node_span: None,
                graph_span: Some("Everything".to_owned()),
            })?;
            Ok::<_, NodeError>(wrote("begin"))
        })
        .subgraph_worker(&PART, child, wrote, |_, _: &Log| LogUpdate::default())
        .edge(START, "begin")
        .route("begin", &["part"], |_: &Log| {
            ["one", "two"].map(|name| Goto::send(&PART, name.to_owned()))
        })
        .edge("part", END)
        .build()
        .unwrap();
    let (time, store) = (Time::default(), Memory::default());
    let thread = time.runtime(&store).thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let trace = thread.trace().await.unwrap();
    assert_snapshot!(trace, @r"
    t
    └─ Everything  0 ms  finished
       ├─ superstep 1  0 ms
       │  └─ begin  0 ms
       └─ superstep 2  0 ms
          ├─ Part-one  0 ms
          │  └─ superstep 1  0 ms
          │     └─ one-Work  0 ms
          └─ Part-two  0 ms
             └─ superstep 1  0 ms
                └─ two-Work  0 ms
    ");
    let run = &trace.runs[0];
    assert_eq!(run.fields[fields::GRAPH], "parent");
    let part = &run.inner[1].inner[0];
    assert_eq!(part.fields[fields::NODE], "part");
    assert_eq!(part.inner[0].inner[0].fields[fields::NODE], "work");
    all_ids(&trace);
}

#[tokio::test]
async fn a_breakpoint_is_a_wait_between_two_supersteps() {
    let (time, store) = (Time::default(), Memory::default());
    let graph = Graph::builder("row")
        .node("a", time.takes("a", 10))
        .node("b", time.takes("b", 20))
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .build()
        .unwrap();
    let before_b = options(|options| {
        let b = superstep::NodeName::new("b").unwrap();
        options.pause_before.insert(b);
    });
    let thread = time.runtime(&store).thread(&graph, "t").unwrap();
    let first = time.runtime(&store).thread(&graph, "t").unwrap();
    first
        .with_options(before_b)
        .start(LogUpdate::default())
        .await
        .unwrap();
    time.passes(5_000);
    thread.resume().await.unwrap();
    assert_snapshot!(thread.trace().await.unwrap(), @r"
    t
    └─ row  5.0 s  finished
       ├─ superstep 1  10 ms
       │  └─ a  10 ms
       ├─ waits for a person  5.0 s
       └─ superstep 2  0 ms
          └─ b  0 ms
    ");
}

#[tokio::test]
async fn a_run_that_is_left_behind_does_not_go_on_for_ever() {
    let (time, there, store) = (Time::default(), Arc::default(), Memory::default());
    let graph = shop(&time, &there, &Count::default());
    let thread = time.runtime(&store).thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    time.passes(1_000);
    thread.start(LogUpdate::default()).await.unwrap();
    assert_snapshot!(thread.trace().await.unwrap(), @r"
    t
    ├─ shop  2.2 s  paused
    │  ├─ superstep 1  1.2 s
    │  │  └─ ask  1.2 s
    │  │     └─ query stock  1.2 s
    │  └─ superstep 2  1.0 s
    │     └─ waits for a person  1.0 s
    └─ shop  goes on  paused
       ├─ superstep 1  1.2 s
       │  └─ ask  1.2 s
       │     └─ query stock  1.2 s
       └─ superstep 2  goes on
          └─ waits for a person  goes on
    ");
}
