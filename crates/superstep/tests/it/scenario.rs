//! Scenarios: scripted answers, a clock that the test moves, and the sentences of scripts that do not fit.

use std::sync::Arc;
use std::time::Duration;

use superstep::prelude::*;
use superstep::testing::{Scenario, ScenarioError, TestClock};
use superstep::{RetryPolicy, Timeout, Timestamp};
use superstep_sqlite::Sqlite;
use tokio::time::Instant;

use crate::kit::{Count, Log, LogUpdate, asks, says, wrote};

const HOUR: Duration = Duration::from_secs(3_600);

fn chain(nodes: [&'static str; 2]) -> Graph<Log> {
    Graph::builder("chain")
        .node(nodes[0], asks(nodes[0]))
        .node(nodes[1], asks(nodes[1]))
        .edge(START, nodes[0])
        .edge(nodes[0], nodes[1])
        .edge(nodes[1], END)
        .build()
        .unwrap()
}

fn input() -> LogUpdate {
    wrote("in")
}

#[tokio::test]
async fn answers_are_given_by_key_and_reported_in_order() {
    let end = Scenario::new(&chain(["first", "second"]))
        .start(input())
        .answer("second", "b")
        .answer("first", "a")
        .run()
        .await
        .unwrap();
    assert_eq!(end.outcome, Outcome::Finished);
    assert_eq!(end.state.ran, ["in", "first=a", "second=b"]);
    assert_eq!(end.asked(), ["first", "second"]);
    assert_eq!(end.nodes, ["first", "second"]);
}

/// Asks three times: under two keys, the second of which is of another kind.
async fn asks_much(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
    let mut all = Vec::new();
    for key in ["a", "b", "c"] {
        let question = Interrupt::new(key, "what?").kind("choice");
        all.push(cx.interrupt::<String>(question).await?);
    }
    Ok(wrote(all.join("")))
}

fn one(node: impl Node<Log>) -> Graph<Log> {
    Graph::builder("one")
        .node("one", node)
        .edge(START, "one")
        .edge("one", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn answers_of_a_kind_are_used_in_their_order_and_a_standing_one_for_the_rest() {
    let end = Scenario::new(&one(asks_much))
        .start(input())
        .answer("choice", "1")
        .answer("c", "3")
        .answer_with("choice", |asked| format!("<{}>", asked.key))
        .run()
        .await
        .unwrap();
    assert_eq!(end.state.ran, ["in", "1<b>3"]);
    assert_eq!(end.asked(), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_question_without_an_answer_is_an_error_that_names_it() {
    let scenario = Scenario::new(&chain(["first", "second"])).start(input());
    let error = scenario.answer("first", "a").run().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`second` asked `second` (kind `question`): \"what?\"; the script has no answer left for it, add \
         `.answer(\"second\", ..)`"
    );
    // What `unwrap` prints.
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[tokio::test]
async fn an_answer_that_nothing_asks_for_is_an_error_that_names_it() {
    let scenario = Scenario::new(&one(asks("first"))).start(input());
    let scenario = scenario.answer("first", "a").answer("first", "b");
    let error = scenario.answer("second", "c").run().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the script answers `first`, `second`, which no node asked; the last run: Finished"
    );
}

#[tokio::test]
async fn a_scenario_without_an_input_is_an_error() {
    let error = Scenario::new(&one(says("one"))).run().await.unwrap_err();
    assert!(matches!(error, ScenarioError::NoInput), "{error}");
}

/// Asks within a day; what counts then is `or_answer`.
fn within_a_day(key: &'static str) -> impl Node<Log> {
    move |_: View<Log>, cx: NodeCx| async move {
        let question = Interrupt::new(key, "what?").within(24 * HOUR);
        let answer: String = cx.interrupt(question.or_answer("nobody")).await?;
        Ok::<_, NodeError>(wrote(format!("{key}={answer}")))
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_passes_when_time_moves_and_no_real_time_does() {
    let real = std::time::Instant::now();
    let both = Graph::builder("both")
        .node("a", within_a_day("a"))
        .node("b", within_a_day("b"))
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", END)
        .edge("b", END)
        .build()
        .unwrap();
    let scenario = || Scenario::new(&both).start(input());

    let end = scenario().expire("a").answer_after(HOUR, "b", "yes").run();
    let end = end.await.unwrap();
    assert_eq!(end.state.ran, ["in", "a=nobody", "b=yes"]);
    assert_eq!(end.elapsed, 24 * HOUR);
    let answered: Vec<_> = (end.interrupts.iter())
        .map(|raised| raised.row.answered_by.as_str())
        .collect();
    assert_eq!(answered, ["deadline", ""]);

    // An answer that comes after the deadline does not count.
    let end = scenario().answer_after(25 * HOUR, "a", "late");
    let end = end.answer_after(23 * HOUR, "b", "yes").run().await.unwrap();
    assert_eq!(end.state.ran, ["in", "a=nobody", "b=yes"]);
    assert!(real.elapsed() < HOUR / 60);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_without_a_deadline_never_expires() {
    let scenario = Scenario::new(&one(asks("first"))).start(input());
    let error = scenario.expire("first").run().await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the script lets `first` expire"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn delays_of_retries_and_sleeps_take_their_time_on_the_clock_only() {
    let (real, tries) = (std::time::Instant::now(), Count::default());
    let node = move |_: View<Log>, _: NodeCx| {
        let tries = tries.clone();
        async move {
            tokio::time::sleep(HOUR).await;
            match tries.up() {
                1 | 2 => Err(NodeError::retryable("not yet")),
                _ => Ok(wrote("done")),
            }
        }
    };
    let policy = RetryPolicy {
        initial_ms: 600_000,
        wait_max_ms: 1_200_000,
        jitter_ms: 0,
        ..RetryPolicy::attempts(3)
    };
    let graph = Graph::builder("slow")
        .node("slow", node)
        .retry("slow", policy)
        .edge(START, "slow")
        .edge("slow", END)
        .build()
        .unwrap();
    let end = Scenario::new(&graph).start(input()).run().await.unwrap();
    assert_eq!(end.state.ran, ["in", "done"]);
    assert_eq!(
        end.elapsed,
        3 * HOUR + HOUR / 2,
        "three sleeps, 10 and 20 minutes between them"
    );
    assert!(real.elapsed() < HOUR / 60);
}

#[tokio::test(start_paused = true)]
async fn time_stands_still_while_a_database_works() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::open(folder.path().join("scenario.db")).unwrap();
    // Each of its steps waits for the database, and a timeout of a minute is pending: if time moved to it, the node would fail.
    let node = |_: View<Log>, cx: NodeCx| async move {
        for step in ["a", "b", "c", "d", "e"] {
            let _: u32 = cx.step(step, || async { Ok(1) }).await?;
        }
        Ok::<_, NodeError>(wrote("done"))
    };
    let graph = Graph::builder("steps")
        .node("steps", node)
        .timeout("steps", Timeout::run(HOUR / 60))
        .edge(START, "steps")
        .edge("steps", END)
        .build()
        .unwrap();
    let scenario = Scenario::new(&graph).start(input());
    let end = scenario.checkpointer(sqlite).run().await.unwrap();
    assert_eq!(end.state.ran, ["in", "done"]);
    assert_eq!(end.steps, ["a", "b", "c", "d", "e"]);
    assert_eq!(end.elapsed, Duration::ZERO);
}

#[tokio::test]
async fn several_inputs_are_runs_of_one_thread() {
    let scenario = Scenario::new(&one(asks("first"))).start(input());
    let scenario = scenario.start(wrote("again"));
    let end = scenario.answer("first", "a").answer("first", "b");
    let end = end.run().await.unwrap();
    assert_eq!(end.state.ran, ["in", "first=a", "again", "first=b"]);
    assert_eq!(end.nodes, ["one", "one"]);
}

#[tokio::test]
async fn over_the_same_store_a_scenario_repeats_nothing() {
    let (store, calls) = (Memory::default(), Count::default());
    let counted = {
        let calls = calls.clone();
        move |_: View<Log>, cx: NodeCx| {
            let calls = calls.clone();
            async move {
                calls.up();
                let answer: String = cx.interrupt(Interrupt::new("first", "what?")).await?;
                Ok::<_, NodeError>(wrote(answer))
            }
        }
    };
    let graph = one(counted);
    let scenario = || {
        let scenario = Scenario::new(&graph).checkpointer(store.clone());
        let scenario = scenario.start(input()).start(wrote("again"));
        scenario.answer("first", "a").answer("first", "b")
    };
    let first = scenario().run().await.unwrap();
    let before = calls.up();
    let second = scenario().run().await.unwrap();
    assert_eq!(calls.up(), before + 1, "no node ran again");
    assert_eq!(first.state.ran, ["in", "a", "again", "b"]);
    assert_eq!(second.state, first.state);
    assert_eq!(second.asked(), first.asked());
}

#[tokio::test]
async fn nodes_see_the_context_and_subgraphs_are_named() {
    let reads = |_: View<Log>, cx: NodeCx| async move {
        let who: Option<String> = cx.context()?;
        Ok::<_, NodeError>(wrote(who.unwrap_or_default()))
    };
    let inner = one(reads);
    let outer = Graph::builder("outer")
        .subgraph(
            "inner",
            inner,
            |_: &Log| LogUpdate::default(),
            |_: &Log, inner: &Log| wrote(inner.ran.join("")),
        )
        .edge(START, "inner")
        .edge("inner", END)
        .build()
        .unwrap();
    let end = Scenario::new(&outer).context("Ada").start(input()).run();
    let end = end.await.unwrap();
    assert_eq!(end.state.ran, ["in", "Ada"]);
    assert_eq!(end.nodes, ["inner/one", "inner"]);
}

#[tokio::test(start_paused = true)]
async fn timers_on_the_way_fire_in_their_order() {
    let clock = TestClock::starting_at(Timestamp(0));
    let fired = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut timers = tokio::task::JoinSet::new();
    for hours in [2, 1, 3] {
        let (clock, fired) = (clock.clone(), fired.clone());
        let at = Instant::now() + hours * HOUR;
        timers.spawn(async move {
            tokio::time::sleep_until(at).await;
            fired.lock().unwrap().push(clock.now());
        });
    }
    clock.advance(2 * HOUR).await;
    timers.join_next().await;
    timers.join_next().await;
    let hour = 3_600_000;
    assert_eq!(
        *fired.lock().unwrap(),
        [Timestamp(hour), Timestamp(2 * hour)]
    );
    assert_eq!(clock.now(), Timestamp(2 * hour));
}

#[tokio::test]
async fn moving_time_that_is_not_paused_says_what_to_write() {
    let mut moved = tokio::task::JoinSet::new();
    moved.spawn(async { TestClock::new().advance(HOUR).await });
    let panic = moved.join_next().await.unwrap().unwrap_err().into_panic();
    let message = panic.downcast_ref::<&str>().unwrap();
    assert!(message.contains("start_paused = true"), "{message}");
}
