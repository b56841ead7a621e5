//! Runs in the background, events by id, and the JSON form of events and results.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::checkpoint::Memory;
use superstep::prelude::*;
use superstep::{Event, EventId, Outcome, Runtime, Seq};
use tokio::sync::Notify;

use crate::kit::{Count, Log, LogUpdate, asks, id_of, patient, says, wrote};

#[tokio::test]
async fn a_run_that_was_begun_goes_on_without_its_caller_and_a_second_one_is_busy() {
    let go = Arc::new(Notify::new());
    let runtime = Runtime::new(Memory::new());
    let thread = runtime
        .thread(&patient(&Count::default(), &go), "t")
        .unwrap();
    let begun = thread.begin(LogUpdate::default()).await.unwrap();
    let stored: Option<Log> = thread.values().await.unwrap();
    assert_eq!(stored, Some(Log::default()), "the input is stored");
    let refused = thread.begin(LogUpdate::default()).await.unwrap_err();
    assert_eq!((refused.code(), refused.http_status()), ("open-busy", 409));
    drop(begun);
    go.notify_one();
    while thread.result().await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(thread.result().await.unwrap().unwrap().state.ran, ["a"]);
}

#[tokio::test]
async fn an_answer_is_stored_when_it_returns_and_its_run_goes_on() {
    let graph = Graph::builder("asks")
        .node("ask", asks("ask"))
        .node("b", says("b"))
        .edge(START, "ask")
        .edge("ask", "b")
        .edge("b", END)
        .build()
        .unwrap();
    let runtime = Runtime::new(Memory::new());
    let thread = runtime.thread(&graph, "t").unwrap();
    let paused = thread.begin(LogUpdate::default()).await.unwrap();
    let paused = paused.finish().await.unwrap();
    let interrupt = id_of(&paused, "ask");
    let unknown = thread.begin_answer("no id", "yes").await.unwrap_err();
    assert_eq!(unknown.code(), "name-id");
    let text = interrupt.to_string();
    let resumed = thread.begin_answer(&*text, "yes").await.unwrap();
    let late = thread.begin_answer(interrupt, "no").await.unwrap_err();
    assert_eq!(late.http_status(), 409, "{late}");
    let done = resumed.finish().await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
}

#[tokio::test]
async fn an_answer_to_a_running_thread_returns_while_the_run_goes_on() {
    let go = Arc::new(Notify::new());
    let waits = go.clone();
    let slow = move |_: View<Log>, cx: NodeCx| {
        let waits = waits.clone();
        async move {
            let answer: String = cx.interrupt(Interrupt::new("slow", "?")).await?;
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
    let runtime = Runtime::new(Memory::new());
    let thread = runtime.thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let (slow, quick) = (id_of(&paused, "slow"), id_of(&paused, "quick"));
    let first = thread.begin_answer(slow, "first").await.unwrap();
    // Both return although no run has stopped.
    let second = thread.begin_answer(quick, "second").await.unwrap();
    assert!(thread.interrupts().await.unwrap().is_empty());
    go.notify_one();
    for handle in [first, second] {
        let done = handle.finish().await.unwrap();
        assert_eq!(done.outcome, Outcome::Finished);
        assert_eq!(done.state.ran.len(), 2, "{done:?}");
    }
}

#[tokio::test]
async fn a_watcher_continues_after_any_event_that_it_saw() {
    let runtime = Runtime::new(Memory::new());
    let graph = crate::kit::row(&["a", "b"]);
    let thread = runtime.thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let all = thread.events(Seq(0)).stored().await.unwrap();
    assert!(all.iter().any(|event| event.index > 0));
    for (at, last) in all.iter().enumerate() {
        let id = Event::Logged(last.clone()).id().unwrap();
        let written: EventId = id.to_string().parse().unwrap();
        assert_eq!(written, id);
        let rest = thread.events_after(id).stored().await.unwrap();
        assert_eq!(rest, all[at + 1..], "after {id}");
    }
    let first = thread.events_after(EventId::START).stored().await.unwrap();
    assert_eq!(first, all);
    let before: EventId = "12.3".parse().unwrap();
    assert_eq!(before.to_string(), "12-3", "the form of earlier versions");
    for bad in [
        "", "1", "1-", "-1", "1-2-3", "1.2.3", "1.2-3", "-1-0", "x-0",
    ] {
        let refused = bad.parse::<EventId>().unwrap_err();
        assert_eq!(refused.code(), "name-event", "{bad}");
        let refused = EventId::from_header(Some(bad)).unwrap_err();
        assert_eq!(refused.http_status(), 400, "{bad}");
    }
    assert!(EventId::from_header(Some(b"\xff1-0")).is_err());
}

/// The page has the lines that a run writes, with ids of tasks left out.
#[tokio::test]
async fn the_page_on_streaming_shows_the_json_of_a_run() {
    let runtime = Runtime::new(Memory::new());
    let graph = Graph::builder("page")
        .node("greet", |_: View<Log>, cx: NodeCx| async move {
            cx.emit(json!({ "progress": 1 }))?;
            Ok::<_, NodeError>(LogUpdate::default().total(1))
        })
        .edge(START, "greet")
        .edge("greet", END)
        .build()
        .unwrap();
    let thread = runtime.thread(&graph, "t").unwrap();
    let result = thread.start(LogUpdate::default()).await.unwrap();
    let mut lines: Vec<Json> = Vec::new();
    for event in thread.events(Seq(0)).stored().await.unwrap() {
        lines.push(serde_json::to_value(Event::Logged(event)).unwrap());
    }
    lines.push(serde_json::to_value(&result).unwrap());
    let page = include_str!("../../../../docs/streaming.md");
    for line in lines {
        let kind = line["type"].as_str().unwrap_or("result").to_owned();
        let keys = |of: &Json| {
            of.as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<BTreeSet<_>>()
        };
        let shown = page
            .lines()
            .filter_map(|shown| serde_json::from_str::<Json>(shown).ok())
            .filter(|shown| shown.get("event").is_none())
            .find(|shown| shown["type"].as_str().unwrap_or("result") == kind);
        let shown = shown.unwrap_or_else(|| panic!("the page does not show `{kind}`: {line}"));
        assert_eq!(keys(&shown), keys(&line), "{kind}");
        let ids = [&line["task"], &line["run"]];
        assert!(
            ids.iter().all(|id| id.is_null() || id.is_string()),
            "{line}"
        );
    }
}
