//! Events: one numbered log, every mode a view of it, rejoined from anywhere.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use superstep::prelude::*;
use superstep::run::{StreamEvent, StreamEventBody, StreamMode};
use superstep::{Event, RetryPolicy, RunId, RunOptions, Seq};
use tokio::sync::Notify;

use crate::kit::{Count, Log, LogUpdate, asks, memory, says, wrote};

/// A loop with a fan-out, a subgraph, a retry, events and a pause.
fn busy() -> Graph<Log> {
    let tries = Count::default();
    let child = Graph::builder("child")
        .node("in", says("in"))
        .edge(START, "in")
        .edge("in", END)
        .build()
        .unwrap();
    Graph::builder("busy")
        .node("emits", |_: View<Log>, cx: NodeCx| async move {
            cx.emit("stored")?;
            cx.emit_live("token")?;
            Ok::<_, NodeError>(wrote("emits"))
        })
        .node("stumbles", move |_: View<Log>, _: NodeCx| {
            let first = tries.up() == 1;
            async move {
                if first {
                    return Err(NodeError::retryable("once"));
                }
                Ok(wrote("stumbles"))
            }
        })
        .retry("stumbles", RetryPolicy::attempts(2).every(Duration::ZERO))
        .shared_subgraph("child", child)
        .node("ask", asks("q"))
        .edge(START, "emits")
        .edge(START, "stumbles")
        .edge("emits", "child")
        .edge("stumbles", END)
        .edge("child", "ask")
        .edge("ask", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_live_watcher_sees_what_is_stored_and_whoever_rejoins_sees_the_rest() {
    let thread = memory().thread(&busy(), "t").unwrap();
    let mut watcher = thread.events(Seq(0));
    let mut live = Vec::new();
    let mut shown = Vec::new();
    let watching = async {
        let mut stops = 0;
        while stops < 2 {
            match watcher.next().await.unwrap() {
                Event::Logged(seen) => {
                    stops += u32::from(matches!(seen.what, StreamEventBody::Stopped(_)));
                    live.push(seen);
                }
                Event::Live(event) => shown.push((event.stored, event.payload.decode().unwrap())),
                Event::Replaced { task } => panic!("{task} was not run twice"),
            }
        }
    };
    let running = async {
        thread.start(LogUpdate::default()).await.unwrap();
        thread.answer_only("yes").await.unwrap();
    };
    tokio::join!(watching, running);
    let stored = thread.events(Seq(0)).stored().await.unwrap();
    assert_eq!(live, stored);
    assert_eq!(
        shown,
        [(true, "stored".to_owned()), (false, "token".to_owned())]
    );
    let last = stored.last().unwrap().seq.0;
    for after in 0..=last {
        let rest: Vec<StreamEvent> = stored
            .iter()
            .filter(|seen| seen.seq.0 > after)
            .cloned()
            .collect();
        let rejoined = thread.events(Seq(after)).stored().await.unwrap();
        assert_eq!(rejoined, rest, "after {after}");
    }
    let numbers: BTreeSet<_> = stored.iter().map(|seen| (seen.seq, seen.index)).collect();
    assert_eq!(numbers.len(), stored.len(), "each has a number of its own");
}

#[tokio::test]
async fn what_an_attempt_showed_is_void_when_it_fails_and_when_the_node_runs_again() {
    let graph = Graph::builder("voids")
        .node("stumbles", async |_: View<Log>, cx: NodeCx| {
            if cx.attempt() == 1 {
                cx.emit_live("void")?;
                return Err(NodeError::retryable("once"));
            }
            Ok(wrote("stumbles"))
        })
        .retry("stumbles", RetryPolicy::attempts(2).every(Duration::ZERO))
        .node("ask", async |_: View<Log>, cx: NodeCx| {
            cx.emit_live("before the question")?;
            let _: String = cx.interrupt(Interrupt::new("q", "what?")).await?;
            Ok::<_, NodeError>(wrote("ask"))
        })
        .edge(START, "stumbles")
        .edge("stumbles", "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let mut watcher = thread.events(Seq(0));
    let mut live = Vec::new();
    let watching = async {
        let mut stops = 0;
        while stops < 2 {
            match watcher.next().await.unwrap() {
                Event::Logged(seen) => {
                    stops += u32::from(matches!(seen.what, StreamEventBody::Stopped(_)))
                }
                Event::Live(event) => live.push(event.payload.decode::<String>().unwrap()),
                Event::Replaced { .. } => live.push("(replaced)".to_owned()),
            }
        }
    };
    let running = async {
        thread.start(LogUpdate::default()).await.unwrap();
        thread.answer_only("yes").await.unwrap();
    };
    tokio::join!(watching, running);
    let told = [
        "void",
        "(replaced)",
        "before the question",
        "(replaced)",
        "before the question",
    ];
    assert_eq!(live, told);
}

#[tokio::test]
async fn each_mode_is_a_part_and_together_they_are_the_whole() {
    let thread = memory().thread(&busy(), "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    thread.answer_only("yes").await.unwrap();
    let all = thread.events(Seq(0)).stored().await.unwrap();
    let modes = [
        StreamMode::Values,
        StreamMode::Updates,
        StreamMode::Custom,
        StreamMode::Tasks,
        StreamMode::Checkpoints,
    ];
    let mut parts = 0;
    let stops = all.iter().filter(|seen| seen.what.mode().is_none()).count();
    for mode in modes {
        let only = thread.events(Seq(0)).only([mode]).stored().await.unwrap();
        let wanted = all
            .iter()
            .filter(|seen| seen.what.mode().is_none_or(|is| is == mode));
        assert_eq!(only, wanted.cloned().collect::<Vec<_>>(), "{mode:?}");
        assert!(only.len() > stops, "{mode:?} shows something");
        parts += only.len() - stops;
    }
    assert_eq!(parts + stops, all.len());
}

#[tokio::test]
async fn events_of_a_subgraph_have_its_path() {
    let thread = memory().thread(&busy(), "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let all = thread.events(Seq(0)).stored().await.unwrap();
    let frames_of = |wanted: &str| {
        let of = all.iter().filter(|seen| {
            matches!(&seen.what, StreamEventBody::Update { node, .. } if node.as_str() == wanted)
        });
        of.map(|seen| seen.frame.to_string())
            .collect::<BTreeSet<_>>()
    };
    let inside = frames_of("in");
    assert_eq!(inside.len(), 1, "{inside:?}");
    assert!(
        inside.iter().all(|frame| frame.contains("child")),
        "{inside:?}"
    );
    assert_eq!(frames_of("emits"), BTreeSet::from([String::new()]));
}

#[tokio::test]
async fn what_each_mode_shows() {
    let graph = Graph::builder("shows")
        .node("a", |_: View<Log>, cx: NodeCx| async move {
            cx.emit(serde_json::json!({"half": "way"}))?;
            Ok::<_, NodeError>(wrote("a"))
        })
        .node("b", says("b"))
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let told = thread.events(Seq(0)).stored().await.unwrap();
    let told: Vec<String> = told
        .iter()
        .map(|seen| {
            let words = match &seen.what {
                StreamEventBody::RunBegan { is_resumed } => format!("began, resumed: {is_resumed}"),
                StreamEventBody::Values(values) => {
                    format!("values {:?}", values.decode::<Log>().unwrap().ran)
                }
                StreamEventBody::Update { node, updates, .. } => {
                    format!("update {node} {updates:?}")
                }
                StreamEventBody::Custom { node, payload } => format!("custom {node} {payload:?}"),
                StreamEventBody::TaskStarts { node, .. } => format!("starts {node}"),
                StreamEventBody::TaskEnded { node, .. } => format!("ended {node}"),
                StreamEventBody::AttemptFailed(failed) => format!("failed {}", failed.failure.node),
                StreamEventBody::Checkpoint { kind, next, .. } => {
                    format!("checkpoint {kind:?} {next:?}")
                }
                StreamEventBody::Stopped(stop) => format!("stopped {stop:?}"),
            };
            format!("{}-{} {words}", seen.seq, seen.index)
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    1-0 began, resumed: false
    1-1 values []
    1-2 starts a
    1-3 checkpoint Input ["a"]
    2-0 custom a {"half":"way"}
    2-1 ended a
    2-2 update a [{"ran":["a"]}]
    2-3 values ["a"]
    2-4 starts b
    2-5 checkpoint Step ["b"]
    3-0 ended b
    3-1 update b [{"ran":["b"]}]
    3-2 values ["a", "b"]
    3-3 checkpoint Step []
    3-4 stopped Finished
    "#);
}

#[tokio::test]
async fn a_fork_is_watched_from_where_the_thread_goes_on() {
    let thread = memory().thread(&crate::kit::row(&["a", "b"]), "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    thread.replay(Seq(2)).await.unwrap();
    let values = thread.events(Seq(0)).only([StreamMode::Values]);
    let seen: Vec<_> = values
        .stored()
        .await
        .unwrap()
        .into_iter()
        .filter_map(|seen| match seen.what {
            StreamEventBody::Values(values) => Some(values.decode::<Log>().unwrap().ran.concat()),
            _ => None,
        })
        .collect();
    assert_eq!(seen, ["", "a", "ab", "ab"]);
}

/// More than a task may take from a channel without yielding.
const TOKENS: u32 = 300;

/// The whole run is over before its watcher is polled for the first time.
#[tokio::test]
async fn live_events_of_a_node_that_never_waits_are_not_lost() {
    let node = |name: &'static str| {
        move |_: View<Log>, cx: NodeCx| async move {
            for token in 0..TOKENS {
                cx.emit_live(format!("{name} {token}"))?;
            }
            Ok::<_, NodeError>(wrote(name))
        }
    };
    let graph = Graph::builder("quick")
        .node("a", node("a"))
        .node("b", node("b"))
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let mut after = Seq(0);
    for run in 1..=2 {
        let mut watcher = thread.events(after);
        after = thread.start(LogUpdate::default()).await.unwrap().seq;
        let mut seen = Vec::new();
        loop {
            match watcher.next().await.unwrap() {
                Event::Live(event) => seen.push(event.payload.decode::<String>().unwrap()),
                Event::Logged(logged) => match logged.what {
                    StreamEventBody::Update { node, .. } => seen.push(format!("{node} ended")),
                    StreamEventBody::Stopped(_) => break,
                    _ => {}
                },
                Event::Replaced { task } => panic!("{task} was not run twice"),
            }
        }
        let tokens = |name: &'static str| (0..TOKENS).map(move |token| format!("{name} {token}"));
        let ended = |name: &str| [format!("{name} ended")];
        let all: Vec<_> = tokens("a")
            .chain(ended("a"))
            .chain(tokens("b"))
            .chain(ended("b"))
            .collect();
        assert_eq!(seen, all, "run {run}");
    }
}

/// Reads a stream to its end: live events as text, log items by their mode.
async fn texts(run: &mut superstep::RunStream<Log>) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(event) = run.next().await {
        match event.unwrap() {
            Event::Live(live) => texts.push(live.payload.decode().unwrap()),
            Event::Logged(logged) => match logged.what {
                StreamEventBody::Update { node, .. } => texts.push(format!("{node} ended")),
                StreamEventBody::Stopped(_) => texts.push("stopped".to_owned()),
                _ => {}
            },
            Event::Replaced { task } => panic!("{task} was not run twice"),
        }
    }
    texts
}

fn shows_and_asks() -> Graph<Log> {
    Graph::builder("streamed")
        .node("shows", |_: View<Log>, cx: NodeCx| async move {
            cx.emit_live("one")?;
            tokio::task::yield_now().await;
            cx.emit_live("two")?;
            Ok::<_, NodeError>(wrote("shows"))
        })
        .node("ask", asks("ask"))
        .edge(START, "shows")
        .edge("shows", "ask")
        .edge("ask", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_stream_has_the_events_of_its_run_and_ends_with_it() {
    let thread = memory().thread(&shows_and_asks(), "t").unwrap();
    for run in 1..=2 {
        let mut started = thread.stream(LogUpdate::default());
        assert_eq!(
            texts(&mut started).await,
            ["one", "two", "shows ended", "stopped"],
            "run {run}"
        );
        let paused = started.finish().await.unwrap();
        let question = crate::kit::id_of(&paused, "ask");
        let mut answered = thread.stream_answer(question, "yes");
        assert_eq!(
            texts(&mut answered).await,
            ["ask ended", "stopped"],
            "run {run}"
        );
        assert_eq!(answered.finish().await.unwrap().outcome, Outcome::Finished);
    }
    // Without looking at events.
    let paused = thread.stream(LogUpdate::default()).finish().await.unwrap();
    assert!(matches!(paused.outcome, Outcome::Paused(_)));
}

#[tokio::test]
async fn a_stream_of_a_run_that_cannot_start_is_one_error() {
    let runtime = memory();
    let thread = runtime.thread(&shows_and_asks(), "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let question = crate::kit::id_of(&paused, "ask");
    thread.answer(question, "first").await.unwrap();
    let mut late = thread.stream_answer(question, "second");
    let error = late.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), "checkpoint-not-open");
    assert!(late.next().await.is_none());
    let error = late.finish().await.unwrap_err();
    assert_eq!(
        error.code(),
        "open-nothing-to-run",
        "the run before is another"
    );
}

#[tokio::test]
async fn dropping_a_stream_stops_its_run() {
    let thread = memory().thread(&shows_and_asks(), "t").unwrap();
    let mut run = thread.stream(LogUpdate::default());
    loop {
        if let Event::Live(_) = run.next().await.unwrap().unwrap() {
            break;
        }
    }
    drop(run);
    let stopped = thread.recover().await.unwrap();
    assert!(matches!(stopped.outcome, Outcome::Paused(_)));
}

#[tokio::test]
async fn an_answer_to_a_running_thread_streams_the_run_in_progress() {
    // Also if the handle names the run: the answer does not take the thread from whoever runs it.
    let with_id = RunOptions::default().run(RunId::from_bytes([3; 16]));
    for options in [RunOptions::default(), with_id] {
        answer_while_running(options).await;
    }
}

/// Two questions are open. While the node of the first works on its answer, the second is answered and watched.
async fn answer_while_running(options: RunOptions) {
    let (begun, may_end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, waits) = (begun.clone(), may_end.clone());
    let slow = move |_: View<Log>, cx: NodeCx| {
        let (begins, waits) = (begins.clone(), waits.clone());
        async move {
            let answer: String = cx.interrupt(Interrupt::new("slow", "?")).await?;
            begins.notify_one();
            waits.notified().await;
            Ok::<_, NodeError>(wrote(answer))
        }
    };
    let graph = Graph::builder("both")
        .node("slow", slow)
        .node("quick", asks("quick"))
        .edge(START, "slow")
        .edge(START, "quick")
        .edge("slow", END)
        .edge("quick", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap().with_options(options);
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let (slow, quick) = (
        crate::kit::id_of(&paused, "slow"),
        crate::kit::id_of(&paused, "quick"),
    );
    let first = async { thread.answer(slow, "first").await.unwrap() };
    let second = async {
        begun.notified().await;
        let mut run = thread.stream_answer(quick, "second");
        let waits = async {
            // Until the answer is stored.
            while thread
                .interrupts()
                .await
                .unwrap()
                .iter()
                .any(|open| open.interrupt.id == quick)
            {
                tokio::task::yield_now().await;
            }
            may_end.notify_one();
        };
        let (texts, ()) = tokio::join!(texts(&mut run), waits);
        (texts, run.finish().await.unwrap())
    };
    let (_, (seen, result)) = tokio::join!(first, second);
    assert_eq!(result.outcome, Outcome::Finished);
    assert_eq!(result.state.ran.len(), 2, "{result:?}");
    assert_eq!(seen.last().unwrap(), "stopped");
}
