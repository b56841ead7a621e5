//! Questions to people: schemas, deadlines, races, fan-outs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep::{Clock, Timestamp};

use tokio::sync::Notify;

use crate::kit::{
    Log, LogUpdate, NodeFuture, asked, asks, failures, id_of, keys, memory, says, wrote,
};

fn asking(interrupt: impl Fn() -> Interrupt + Send + Sync + 'static) -> Graph<Log> {
    Graph::builder("asking")
        .node("node", move |_: View<Log>, cx: NodeCx| {
            let interrupt = interrupt();
            async move {
                let answer: serde_json::Value = cx.interrupt(interrupt).await?;
                Ok::<_, NodeError>(wrote(answer.to_string()))
            }
        })
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn an_answer_that_does_not_fit_its_schema_is_refused_and_the_question_stays_open() {
    let schema = json!({
        "type": "object",
        "required": ["ok"],
        "properties": {
            "ok": {"type": "boolean"},
            "n": {"type": "integer", "minimum": 1},
            "why": {"type": "string", "maxLength": 3},
            "of": {"type": "array", "items": {"enum": ["a", "b"]}},
        },
        "additionalProperties": false,
    });
    let graph = asking(move || Interrupt::new("q", "?").schema(schema.clone()));
    let thread = memory().thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    for bad in [
        json!(true),
        json!({}),
        json!({"ok": 1}),
        json!({"ok": true, "n": 0}),
        json!({"ok": true, "n": 1.5}),
        json!({"ok": true, "why": "long"}),
        json!({"ok": true, "of": ["a", "c"]}),
        json!({"ok": true, "more": 1}),
    ] {
        let refused = thread.answer_only(&bad).await.unwrap_err();
        assert_eq!(refused.code(), "drive-answer-refused", "{bad}");
    }
    // A whole number is an integer, however it is written.
    let good = json!({"ok": true, "n": 2.0, "why": "äöü", "of": ["a"]});
    let done = thread.answer_only(&good).await.unwrap().unwrap();
    let ran: Json = serde_json::from_str(&done.state.ran[0]).unwrap();
    assert_eq!((ran, done.state.ran.len()), (good, 1));
}

#[tokio::test]
async fn a_whole_number_is_read_as_the_integer_that_the_schema_takes_it_for() {
    let node = |_: View<Log>, cx: NodeCx| async move {
        let schema = json!({"type": "array", "items": {"type": "integer"}});
        let question = Interrupt::new("q", "how many?").schema(schema);
        let counts: Vec<u32> = cx.interrupt(question).await?;
        Ok::<_, NodeError>(wrote(format!("{counts:?}")))
    };
    let graph = Graph::builder("counts")
        .node("node", node)
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let refused = thread.answer_only(json!([1.5])).await.unwrap_err();
    assert_eq!(refused.code(), "drive-answer-refused");
    let done = thread.answer_only(json!([1.0, 2])).await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["[1, 2]"]);
}

#[tokio::test]
async fn the_first_answer_wins_and_every_other_is_told() {
    let thread = memory()
        .thread(&asking(|| Interrupt::new("q", "?")), "t")
        .unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let id = id_of(&paused, "q");
    let done = thread.answer(id, "first").await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["\"first\""]);
    let late = thread.answer(id, "second").await.unwrap_err();
    assert_eq!(late.code(), "checkpoint-not-open");
}

#[tokio::test]
async fn several_answers_are_stored_together_or_not_at_all() {
    async fn both(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let (a, b) = tokio::join!(
            cx.interrupt::<u32>(Interrupt::new("a", "?")),
            cx.interrupt::<u32>(Interrupt::new("b", "?")),
        );
        Ok(wrote(format!("{} {}", a?, b?)))
    }
    let graph = Graph::builder("both")
        .node("both", both)
        .edge(START, "both")
        .edge("both", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let (a, b) = (id_of(&paused, "a"), id_of(&paused, "b"));
    let doubled = thread.answer_as("", [(a, 1), (b, 2), (a, 3)]).await;
    assert_eq!(doubled.unwrap_err().code(), "checkpoint-not-open");
    assert_eq!(thread.interrupts().await.unwrap().len(), 2);
    // One of two in the same node: it asks on for the other.
    let partly = thread.answer(b, 2).await.unwrap().unwrap();
    assert_eq!(asked(&partly), [("a".to_owned(), a)]);
    let done = thread.answer(a, 1).await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["1 2"]);
}

#[tokio::test]
async fn a_list_of_questions_asked_at_once_surfaces_at_once() {
    async fn many(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let mut asking = tokio::task::JoinSet::new();
        // Spawned elsewhere they still belong to this node.
        for n in 0..5 {
            let cx = cx.clone();
            asking.spawn(async move {
                let key = format!("q{n}");
                let answer: u32 = cx.interrupt(Interrupt::new(key, n)).await?;
                Ok::<_, NodeError>(answer)
            });
        }
        // Gives the spawned ones their turn before the node is quiet.
        let hold = cx.hold();
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        drop(hold);
        let mut total = 0;
        while let Some(answer) = asking.join_next().await {
            total += answer.map_err(NodeError::fatal)??;
        }
        Ok(LogUpdate::default().total(i64::from(total)))
    }
    let graph = Graph::builder("many")
        .node("many", many)
        .edge(START, "many")
        .edge("many", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(keys(&paused), ["q0", "q1", "q2", "q3", "q4"]);
    let answers = asked(&paused).into_iter().map(|(_, id)| (id, 2_u32));
    let done = thread.answer_as("", answers).await.unwrap().unwrap();
    assert_eq!(done.state.total, 10);
}

#[tokio::test]
async fn user_code_cannot_swallow_a_pause() {
    async fn swallows(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let answer = cx.interrupt::<bool>(Interrupt::new("q", "?")).await;
        Ok(wrote(format!("{}", answer.unwrap_or(false))))
    }
    let graph = Graph::builder("swallows")
        .node("node", swallows)
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(keys(&paused), ["q"]);
    assert!(paused.state.ran.is_empty());
}

/// A runtime whose clock a test sets.
fn at_a_time() -> (Runtime, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(0));
    let told = now.clone();
    let clock = Clock::new(move || Timestamp(told.load(Ordering::SeqCst)));
    let runtime = Runtime::builder(Memory::default()).clock(clock).build();
    (runtime, now)
}

#[tokio::test]
async fn a_deadline_passes_as_the_question_says() {
    let minute = Duration::from_secs(60);
    let (runtime, now) = at_a_time();
    let waits = asking(move || Interrupt::new("q", "?").within(minute));
    let answers = asking(move || Interrupt::new("q", "?").within(minute).or_answer("none"));
    let gives_up = asking(move || Interrupt::new("q", "?").within(minute).or_fail());
    // Graphs are told apart by name when a thread is taken up, so each has a runtime's worth of time to itself.
    for (name, graph, expired) in [
        ("waits", waits, 0),
        ("answers", answers, 1),
        ("fails", gives_up, 1),
    ] {
        now.store(0, Ordering::SeqCst);
        let thread = runtime.thread(&graph, name).unwrap();
        thread.start(LogUpdate::default()).await.unwrap();
        now.store(59_999, Ordering::SeqCst);
        assert_eq!(runtime.expire_interrupts().await.unwrap(), 0, "{name}");
        now.store(60_000, Ordering::SeqCst);
        assert_eq!(
            runtime.expire_interrupts().await.unwrap(),
            expired,
            "{name}"
        );
        match name {
            "waits" => {
                let done = thread.answer_only("late").await.unwrap().unwrap();
                assert_eq!(done.state.ran, ["\"late\""]);
            }
            "answers" => {
                let state: Log = thread
                    .state()
                    .await
                    .unwrap()
                    .unwrap()
                    .values
                    .decode()
                    .unwrap();
                assert_eq!(state.ran, ["\"none\""]);
            }
            _ => {
                let failed = thread.resume().await.unwrap();
                assert_eq!(failures(&failed)[0].1.code(), "node-expired");
            }
        }
    }
}

#[tokio::test]
async fn a_slow_node_does_not_make_the_deadline_of_another_thread_late() {
    let (runtime, now) = at_a_time();
    let may_end = Arc::new(Notify::new());
    let ends = may_end.clone();
    let graph = Graph::builder("waiting")
        .node("node", move |_: View<Log>, cx: NodeCx| {
            let ends = ends.clone();
            async move {
                let question = Interrupt::new("q", "?").within(Duration::from_secs(60));
                let _: String = cx.interrupt(question.or_answer("none")).await?;
                ends.notified().await;
                Ok::<_, NodeError>(wrote("ended"))
            }
        })
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap();
    let quick = asking(|| {
        Interrupt::new("q", "?")
            .within(Duration::from_secs(60))
            .or_answer("none")
    });
    // The slow thread is due first, and a second one becomes due while the call for the first two is in progress.
    for (at, name) in [(0, "slow"), (1, "quick"), (1_000, "later")] {
        now.store(at, Ordering::SeqCst);
        let graph = if name == "slow" { &graph } else { &quick };
        let thread = runtime.thread(graph, name).unwrap();
        thread.start(LogUpdate::default()).await.unwrap();
    }
    let ended = async |name| {
        let state: Log = runtime
            .thread(&quick, name)
            .unwrap()
            .values()
            .await
            .unwrap()
            .unwrap();
        state.ran == ["\"none\""]
    };
    now.store(60_001, Ordering::SeqCst);
    let mut first = tokio::task::JoinSet::new();
    first.spawn({
        let runtime = runtime.clone();
        async move { runtime.expire_interrupts().await }
    });
    while !ended("quick").await {
        tokio::task::yield_now().await;
    }
    now.store(61_000, Ordering::SeqCst);
    assert_eq!(runtime.expire_interrupts().await.unwrap(), 1);
    assert!(ended("later").await);
    may_end.notify_one();
    assert_eq!(first.join_next().await.unwrap().unwrap().unwrap(), 2);
}

#[tokio::test]
async fn deadlines_behind_many_that_only_wait_are_answered() {
    let minute = Duration::from_secs(60);
    let (runtime, now) = at_a_time();
    let waits = asking(move || Interrupt::new("q", "?").within(minute));
    let answers = asking(move || Interrupt::new("q", "?").within(minute).or_answer("none"));
    for n in 0..1_001 {
        let thread = runtime.thread(&waits, format!("waits-{n}")).unwrap();
        thread.start(LogUpdate::default()).await.unwrap();
    }
    now.store(1, Ordering::SeqCst);
    let thread = runtime.thread(&answers, "answers").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    now.store(60_001, Ordering::SeqCst);
    assert_eq!(runtime.expire_interrupts().await.unwrap(), 1);
}

#[tokio::test]
async fn not_a_number_is_no_answer_no_question_and_no_event() {
    let thread = memory()
        .thread(&asking(|| Interrupt::new("q", "?")), "t")
        .unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let refused = thread.answer_only(f64::NAN).await.unwrap_err();
    assert_eq!(refused.code(), "value-not-finite");
    let refused = thread.with_context(f64::INFINITY).unwrap_err();
    assert_eq!(refused.code(), "value-not-finite");

    let asks = memory()
        .thread(&asking(|| Interrupt::new("q", f64::NAN)), "t")
        .unwrap();
    let failed = asks.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed).len(), 1);
}

/// Asks `first`; when it is answered, says that it is there and goes on when it may.
fn asks_and_waits(
    there: &Arc<Notify>,
    go: &Arc<Notify>,
) -> impl Fn(View<Log>, NodeCx) -> NodeFuture + use<> {
    let (there, go) = (there.clone(), go.clone());
    move |_, cx| {
        let (there, go) = (there.clone(), go.clone());
        Box::pin(async move {
            let answer: String = cx.interrupt(Interrupt::new("first", "?")).await?;
            there.notify_one();
            go.notified().await;
            Ok(wrote(format!("first={answer}")))
        })
    }
}

#[tokio::test]
async fn an_answer_that_comes_while_the_thread_runs_is_taken_by_whoever_runs_it() {
    let (there, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let graph = Graph::builder("both")
        .node("first", asks_and_waits(&there, &go))
        .node("second", asks("second"))
        .edge(START, "first")
        .edge(START, "second")
        .edge("first", END)
        .edge("second", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let (done, ()) = tokio::join!(thread.answer(id_of(&paused, "first"), "a"), async {
        there.notified().await;
        let busy = thread.answer(id_of(&paused, "second"), "b").await.unwrap();
        assert!(busy.is_none(), "somebody else goes on with it");
        go.notify_one();
    });
    let done = done.unwrap().unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.ran, ["first=a", "second=b"]);
}

#[tokio::test]
async fn an_answer_that_comes_while_a_breakpoint_is_reached_does_not_step_over_it() {
    let (there, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let one = Graph::builder("one")
        .node("first", asks_and_waits(&there, &go))
        .node("stop", says("stop"))
        .pause_before("stop")
        .edge(START, "first")
        .edge("first", "stop")
        .edge("stop", END)
        .build()
        .unwrap();
    let two = Graph::builder("two")
        .node("second", asks("second"))
        .edge(START, "second")
        .edge("second", END)
        .build()
        .unwrap();
    let graph = Graph::builder("both")
        .shared_subgraph("one", one)
        .shared_subgraph("two", two)
        .edge(START, "one")
        .edge(START, "two")
        .edge("one", END)
        .edge("two", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let (stopped, ()) = tokio::join!(thread.answer(id_of(&paused, "first"), "a"), async {
        there.notified().await;
        thread.answer(id_of(&paused, "second"), "b").await.unwrap();
        go.notify_one();
    });
    let stopped = stopped.unwrap().unwrap();
    assert!(
        matches!(stopped.outcome, Outcome::Breakpoint(_)),
        "{stopped:?}"
    );
    let done = thread.resume().await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.ran, ["first=a", "stop", "second=b"]);
}

#[tokio::test]
async fn a_handler_that_asked_is_the_one_that_is_answered_also_while_the_thread_runs() {
    let (there, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let graph = Graph::builder("both")
        .node("first", asks_and_waits(&there, &go))
        .node("bad", |_: View<Log>, _: NodeCx| async {
            Err::<LogUpdate, _>(NodeError::fatal("broken"))
        })
        .on_error("bad", &[END], |_: Failed<Log>, cx: NodeCx| async move {
            let answer: String = cx.interrupt(Interrupt::new("second", "?")).await?;
            Ok::<_, NodeError>(wrote(format!("handled={answer}")))
        })
        .edge(START, "first")
        .edge(START, "bad")
        .edge("first", END)
        .edge("bad", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let (done, ()) = tokio::join!(thread.answer(id_of(&paused, "first"), "a"), async {
        there.notified().await;
        thread.answer(id_of(&paused, "second"), "b").await.unwrap();
        go.notify_one();
    });
    let done = done.unwrap().unwrap();
    assert_eq!(done.outcome, Outcome::Finished, "{done:?}");
    assert_eq!(done.state.ran, ["handled=b", "first=a"]);
}
