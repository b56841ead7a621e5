//! What happens by the clock: deadlines of questions, delayed runs, crons.

use std::time::{Duration, Instant};

use superstep::driver::{QueuedRequest, ThreadRequest};
use superstep::prelude::*;
use superstep::{RunOptions, ThreadId, Value};
use superstep_restate::Cron;

use crate::kit::{Cluster, named, new_id};

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Notes {
    #[state(append)]
    lines: Vec<String>,
}

fn note(line: impl Into<String>) -> NotesUpdate {
    NotesUpdate::default().lines(line.into())
}

fn one_node(name: &str) -> Graph<Notes> {
    Graph::builder(name)
        .node("note", async |notes: View<Notes>, _: NodeCx| {
            Ok::<_, NodeError>(note(format!("run {}", notes.lines.len() + 1)))
        })
        .edge(START, "note")
        .edge("note", END)
        .build()
        .unwrap()
}

fn start(graph: &Graph<Notes>) -> QueuedRequest {
    let what = ThreadRequest::Start {
        input: Value::encode(&NotesUpdate::default()).unwrap(),
        context: None,
        metadata: None,
    };
    QueuedRequest::new(graph.name(), what, &RunOptions::default()).unwrap()
}

/// Waits until a thread has so many lines.
async fn lines(
    cluster: &Cluster,
    graph: &Graph<Notes>,
    thread: &str,
    wanted: usize,
) -> Vec<String> {
    let thread = cluster.runtime().thread(graph, thread).unwrap();
    let begun = Instant::now();
    loop {
        let state = thread.state().await.unwrap();
        let notes: Notes =
            state.map_or_else(Notes::default, |state| state.values.decode().unwrap());
        if notes.lines.len() >= wanted {
            return notes.lines;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{notes:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_in_time_answers_itself() {
    let cluster = Cluster::start().await;
    let graph = Graph::builder("deadline")
        .node("ask", async |_: View<Notes>, cx: NodeCx| {
            let question = Interrupt::new("ok", "Shall I?")
                .within(Duration::from_secs(2))
                .or_answer("no");
            let answer: String = cx.interrupt(question).await?;
            Ok::<_, NodeError>(note(answer))
        })
        .edge(START, "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let thread = cluster.runtime().thread(&graph, named("deadline")).unwrap();
    let stopped = thread.start(NotesUpdate::default()).await.unwrap();
    assert!(matches!(stopped.outcome, Outcome::Paused(_)));
    assert_eq!(lines(&cluster, &graph, &named("deadline"), 1).await, ["no"]);
    let late = thread.answer_only("yes").await;
    assert!(late.is_err(), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_carried_out_after_its_delay_and_once() {
    let cluster = Cluster::start().await;
    let graph = one_node("delayed");
    cluster.worker.register(&graph);
    let thread: ThreadId = named("delayed").parse().unwrap();
    let (id, order) = (new_id(), start(&graph));
    let delay = Duration::from_secs(1);
    let begun = Instant::now();
    for _ in 0..2 {
        let sent = cluster.restate.send_after(&thread, id, &order, delay).await;
        sent.unwrap();
    }
    assert_eq!(
        lines(&cluster, &graph, &named("delayed"), 1).await,
        ["run 1"]
    );
    assert!(begun.elapsed() >= delay);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(lines(&cluster, &graph, &named("delayed"), 1).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cron_gives_its_order_until_it_is_stopped() {
    let cluster = Cluster::start().await;
    let graph = one_node("cron");
    cluster.worker.register(&graph);
    let cron = Cron {
        pattern: "* * * * * *".to_owned(),
        thread: named("cron").parse().unwrap(),
    };
    let id = new_id();
    for _ in 0..2 {
        cluster
            .restate
            .start_cron(id, &cron, &start(&graph))
            .await
            .unwrap();
    }
    let begun = Instant::now();
    let told = lines(&cluster, &graph, &named("cron"), 3).await;
    assert_eq!(told[2], "run 3");
    assert!(
        begun.elapsed() >= Duration::from_millis(1_500),
        "it came twice a second"
    );
    cluster.restate.stop_cron(id).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let after = lines(&cluster, &graph, &named("cron"), 3).await.len();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(
        lines(&cluster, &graph, &named("cron"), 3).await.len(),
        after
    );
}

#[test]
fn a_pattern_that_never_comes_is_refused() {
    let cron = |pattern: &str| Cron {
        pattern: pattern.to_owned(),
        thread: "t".parse().unwrap(),
    };
    for pattern in ["", "every day", "61 * * * *", "0 0 31 2 *"] {
        let next = cron(pattern).next_after(superstep::Timestamp(0));
        assert_eq!(next.unwrap_err().code(), "cron-bad-pattern", "{pattern}");
    }
    let next = cron("30 4 * * *")
        .next_after(superstep::Timestamp(0))
        .unwrap();
    assert_eq!(next.0, (4 * 60 + 30) * 60_000);
}
