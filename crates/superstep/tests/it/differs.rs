//! Where this runtime differs from LangGraph on purpose. The table in `docs/semantics.md` has a line for each.

use std::collections::BTreeSet;

use superstep::driver::ThreadRequest;
use superstep::error::BuildProblem;
use superstep::prelude::*;
use superstep::{DriveError, NodeName, Value};
use superstep_core::{Moment, Run, ThreadId, Timestamp};

use crate::kit::{Count, Log, LogUpdate, asks, failures, keys, memory, options, says, wrote};

#[tokio::test]
async fn differs_an_unknown_target_is_an_error() {
    let fault = Graph::<Log>::builder("g")
        .node("a", says("a"))
        .edge(START, "a")
        .edge("a", "nowhere")
        .build()
        .unwrap_err();
    assert!(
        fault.problems.iter().any(
            |fault| matches!(fault, BuildProblem::UnknownTarget { to, .. } if to == "nowhere")
        ),
        "{fault}"
    );
    async fn strays(_: View<Log>, _: NodeCx) -> Result<Command<Log>, NodeError> {
        Ok(Command::to("nowhere"))
    }
    let graph = Graph::builder("g")
        .node("a", strays)
        .edge(START, "a")
        .commands("a", &[END])
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-undeclared-target");
}

#[test]
fn unreachable_nodes_and_dead_ends_are_problems() {
    let problems = Graph::<Log>::builder("g")
        .node("a", says("a"))
        .node("island", says("island"))
        .node("stuck", says("stuck"))
        .edge(START, "a")
        .edge("a", "stuck")
        .edge("island", END)
        .build()
        .unwrap_err()
        .problems;
    let named = |node: &str| NodeName::new(node).unwrap();
    let unreachable = BuildProblem::Unreachable {
        node: named("island"),
    };
    let dead_end = BuildProblem::DeadEnd {
        node: named("stuck"),
    };
    for problem in [unreachable, dead_end] {
        assert!(problems.contains(&problem), "{problem:?}: {problems:?}");
    }
}

#[test]
fn a_join_of_one_node_named_twice_is_an_error() {
    let small = Graph::<Log>::builder("g")
        .node("a", says("a"))
        .node("b", says("b"))
        .edge(START, "a")
        .join(&["a", "a"], "b")
        .edge("b", END)
        .build()
        .unwrap_err();
    let target = "b".to_owned();
    assert_eq!(small.problems, [BuildProblem::SmallJoin { target }]);
}

#[tokio::test]
async fn differs_edges_are_the_default_of_a_node_that_commands() {
    async fn goes(state: View<Log>, _: NodeCx) -> Result<Command<Log>, NodeError> {
        match state.hint.as_deref() {
            Some(to) => Ok(Command::to(to)),
            None => Ok(Command::update(wrote("a"))),
        }
    }
    let both = Graph::builder("g")
        .node("a", goes)
        .node("b", says("b"))
        .node("c", says("c"))
        .edge(START, "a")
        .edge("a", "b")
        .commands("a", &["c", END])
        .edge("b", END)
        .edge("c", END)
        .build()
        .unwrap();
    for (hint, ran) in [
        (None, vec!["a", "b"]),
        (Some("c"), vec!["c"]),
        (Some(END), vec![]),
    ] {
        let thread = memory().thread(&both, "t").unwrap();
        let input = LogUpdate::default().hint(hint.map(str::to_owned));
        assert_eq!(thread.start(input).await.unwrap().state.ran, ran);
    }
    let joined = Graph::builder("g")
        .node("a", goes)
        .node("b", says("b"))
        .node("c", says("c"))
        .edge(START, "a")
        .edge(START, "b")
        .commands("a", &[END])
        .join(&["a", "b"], "c")
        .edge("c", END)
        .build()
        .unwrap_err();
    let a = NodeName::new("a").unwrap();
    assert_eq!(joined.problems, [BuildProblem::JoinAndCommands { node: a }]);

    let edges = Graph::builder("g")
        .node("a", goes)
        .node("b", says("b"))
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .build()
        .unwrap();
    let thread = memory().thread(&edges, "t").unwrap();
    let input = LogUpdate::default().hint(Some("b".to_owned()));
    let failed = thread.start(input).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-undeclared-target");
}

#[tokio::test]
async fn differs_effects_in_steps_are_not_repeated_on_resume() {
    let (inside, outside) = (Count::default(), Count::default());
    let (effects, runs) = (inside.clone(), outside.clone());
    let graph = Graph::builder("g")
        .node("a", move |_: View<Log>, cx: NodeCx| {
            let (effects, runs) = (effects.clone(), runs.clone());
            async move {
                runs.up();
                let sent: u32 = cx.step("send", || async { Ok(effects.up()) }).await?;
                let yes: bool = cx.interrupt(Interrupt::new("sure", sent)).await?;
                Ok::<_, NodeError>(wrote(format!("{sent} {yes}")))
            }
        })
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let done = thread.answer_only(true).await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["1 true"]);
    assert_eq!(inside.get(), 1, "a step is done once");
    assert_eq!(outside.get(), 2, "code outside a step runs again");
}

#[tokio::test]
async fn differs_all_interrupts_of_a_node_surface_together() {
    async fn both(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let (a, b) = tokio::join!(
            cx.interrupt::<i64>(Interrupt::new("a", "?")),
            cx.interrupt::<i64>(Interrupt::new("b", "?")),
        );
        Ok(LogUpdate::default().total(a? * 10 + b?))
    }
    let graph = Graph::builder("g")
        .node("both", both)
        .edge(START, "both")
        .edge("both", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(keys(&paused), ["a", "b"]);
    let answers = crate::kit::asked(&paused)
        .into_iter()
        .map(|(key, id)| (id, if key == "a" { 4 } else { 2 }));
    let done = thread.answer_as("", answers).await.unwrap().unwrap();
    assert_eq!(done.state.total, 42);
}

#[tokio::test]
async fn differs_a_route_sees_the_state_after_the_barrier_and_is_asked_once_per_node() {
    const PART: SendTo<i64> = SendTo::new("part");
    let calls = Count::default();
    let asked = calls.clone();
    let graph = Graph::builder("g")
        .map_node(&PART, |n: i64, _: NodeCx| async move {
            Ok::<_, NodeError>(LogUpdate::default().total(n))
        })
        .node("next", says("next"))
        .route(START, &["part"], |_: &Log| {
            (1..=3).map(|n| Goto::send(&PART, n)).collect::<Vec<_>>()
        })
        .route("part", &["next", END], move |log| {
            asked.up();
            if log.total == 6 { "next" } else { END }
        })
        .edge("next", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.state.ran, ["next"], "it saw what all three wrote");
    assert_eq!(calls.get(), 1);
}

#[tokio::test]
async fn differs_siblings_of_a_failure_finish() {
    let done = Count::default();
    let finished = done.clone();
    let graph = Graph::builder("g")
        .node("bad", |_: View<Log>, _: NodeCx| async move {
            Err::<LogUpdate, _>(NodeError::fatal("at once"))
        })
        .node("slow", move |_: View<Log>, _: NodeCx| {
            let finished = finished.clone();
            async move {
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                finished.up();
                Ok::<_, NodeError>(wrote("slow"))
            }
        })
        .edge(START, "bad")
        .edge(START, "slow")
        .edge("bad", END)
        .edge("slow", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed).len(), 1);
    assert_eq!(done.get(), 1);
    let again = thread.resume().await.unwrap();
    assert_eq!(failures(&again).len(), 1);
    assert_eq!(done.get(), 1, "its result was kept");
}

#[test]
fn differs_unknown_fields_are_refused() {
    let graph = crate::kit::row(&["a"]);
    let start = ThreadRequest::Start {
        input: Value::from_json_bytes(br#"{"ran": [], "rann": []}"#),
        context: None,
        metadata: None,
    };
    let moment = Moment {
        now: Timestamp(0),
        entropy: 1,
    };
    let refused = Run::open(
        graph.definition(),
        &ThreadId::new("t").unwrap(),
        None,
        start,
        options(|_| {}),
        moment,
    )
    .unwrap_err();
    assert_eq!(refused.code(), "open-bad-input");
}

#[tokio::test]
async fn differs_a_limit_is_an_outcome_and_may_have_a_node_of_its_own() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = seen.clone();
    let graph = Graph::builder("g")
        .node("work", move |_: View<Log>, cx: NodeCx| {
            let told = told.clone();
            async move {
                told.lock()
                    .unwrap()
                    .push((cx.remaining_steps(), cx.is_last_step()));
                Ok::<_, NodeError>(wrote("work"))
            }
        })
        .node("sum-up", says("sum-up"))
        .at_step_limit("sum-up")
        .edge(START, "work")
        .edge("work", "work")
        .edge("sum-up", END)
        .build()
        .unwrap();
    let thread = memory()
        .thread(&graph, "t")
        .unwrap()
        .with_options(options(|o| o.step_limit = 3));
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.ran, ["work", "work", "work", "sum-up"]);
    assert_eq!(
        *seen.lock().unwrap(),
        [(2, false), (1, false), (0, true)],
        "exact, and the last step is the last"
    );
}

#[tokio::test]
async fn differs_any_json_is_an_answer_null_and_empty_objects_too() {
    let graph = Graph::builder("g")
        .node("a", |_: View<Log>, cx: NodeCx| async move {
            let answer: serde_json::Value = cx.interrupt(Interrupt::new("q", "?")).await?;
            Ok::<_, NodeError>(wrote(answer.to_string()))
        })
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    for answer in ["null", "{}", "false", "0", "\"\"", "[]"] {
        let json: serde_json::Value = serde_json::from_str(answer).unwrap();
        let thread = memory().thread(&graph, "t").unwrap();
        thread.start(LogUpdate::default()).await.unwrap();
        let done = thread.answer_only(json).await.unwrap().unwrap();
        assert_eq!(done.state.ran, [answer]);
    }
}

#[tokio::test]
async fn differs_a_pause_in_a_fan_out_names_every_question_once() {
    let inner = Graph::builder("inner")
        .node("q", asks("q"))
        .edge(START, "q")
        .edge("q", END)
        .build()
        .unwrap();
    let graph = Graph::builder("g")
        .shared_subgraph("one", inner.clone())
        .shared_subgraph("two", inner)
        .edge(START, "one")
        .edge(START, "two")
        .edge("one", END)
        .edge("two", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(keys(&paused), ["q", "q"]);
    let ids: BTreeSet<_> = crate::kit::asked(&paused)
        .into_iter()
        .map(|(_, id)| id)
        .collect();
    assert_eq!(ids.len(), 2, "each has an id of its own");
}

#[tokio::test]
async fn a_thread_is_busy_while_it_runs() {
    let runtime = memory();
    let graph = Graph::builder("slow")
        .node("a", |_: View<Log>, _: NodeCx| async move {
            std::future::pending::<()>().await;
            Ok::<_, NodeError>(LogUpdate::default())
        })
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let thread = runtime.thread(&graph, "t").unwrap();
    tokio::select! {
        stopped = thread.start(LogUpdate::default()) => panic!("{stopped:?}"),
        () = async {
            while thread.state().await.unwrap().is_none() {
                tokio::task::yield_now().await;
            }
            let busy = thread.start(LogUpdate::default()).await.unwrap_err();
            assert!(matches!(busy, DriveError::Open(_)));
            assert_eq!(busy.code(), "open-busy");
        } => {}
    }
}

#[test]
fn a_misspelt_first_node_is_one_problem_and_not_two() {
    let built = Graph::builder("typo")
        .node("write", says("write"))
        .edge(START, "wrote")
        .edge("write", END)
        .build();
    let problems = built.unwrap_err().problems;
    let codes: Vec<_> = problems.iter().map(|problem| problem.code()).collect();
    assert_eq!(codes, ["build-unknown-target"], "{problems:?}");
    let none = Graph::builder("no_start")
        .node("write", says("write"))
        .edge("write", END)
        .build();
    let problems = none.unwrap_err().problems;
    assert_eq!(problems[0].code(), "build-no-start", "{problems:?}");
}
