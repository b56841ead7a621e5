//! The life of a thread on a cluster: started, answered, changed, cancelled.

use std::time::Duration;

use superstep::error::CheckpointError;
use superstep::prelude::*;
use superstep::{DriveError, RetryPolicy, RunOptions};

use crate::kit::{Cluster, named, new_id};

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Story {
    #[state(append)]
    lines: Vec<String>,
}

fn says(line: impl Into<String>) -> StoryUpdate {
    StoryUpdate::default().lines(line.into())
}

const WRITE: SendTo<u32> = SendTo::new("write");

/// A node sends to many, they write, and one asks what to make of it.
fn graph() -> Graph<Story> {
    Graph::builder("story")
        .node("plan", async |_: View<Story>, _: NodeCx| {
            let mut command = Command::update(says("planned"));
            for part in 0..20 {
                command = command.send(&WRITE, part);
            }
            Ok::<_, NodeError>(command)
        })
        .map_node(&WRITE, async |part: u32, cx: NodeCx| {
            let written: u32 = cx
                .step("write", async || Ok::<_, NodeError>(part * part))
                .await?;
            Ok::<_, NodeError>(says(format!("{part}: {written}")))
        })
        .node("ask", async |_: View<Story>, cx: NodeCx| {
            let title: String = cx
                .interrupt(Interrupt::new("title", "What is it called?"))
                .await?;
            Ok::<_, NodeError>(says(title))
        })
        .edge(START, "plan")
        .commands("plan", &["write"])
        .edge("write", "ask")
        .edge("ask", END)
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_fans_out_asks_and_goes_on_with_the_answer() {
    let cluster = Cluster::start().await;
    let runtime = cluster.runtime();
    let thread = runtime.thread(&graph(), named("story")).unwrap();
    let stopped = thread.start(StoryUpdate::default()).await.unwrap();
    assert!(matches!(&stopped.outcome, Outcome::Paused(asked) if asked.len() == 1));
    assert_eq!(stopped.state.lines.len(), 21);
    assert_eq!(stopped.state.lines[20], "19: 361");
    let done = thread.answer_only("Squares").await.unwrap().unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.lines[21], "Squares");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_answers_wins_and_the_other_is_told() {
    let cluster = Cluster::start().await;
    let thread = cluster.runtime().thread(&graph(), named("two")).unwrap();
    let stopped = thread.start(StoryUpdate::default()).await.unwrap();
    let Outcome::Paused(asked) = &stopped.outcome else {
        panic!("{:?}", stopped.outcome)
    };
    let (one, other) = tokio::join!(
        thread.answer(asked[0].id, "one"),
        thread.answer(asked[0].id, "other")
    );
    let (won, lost) = match (one, other) {
        (Ok(won), Err(lost)) | (Err(lost), Ok(won)) => (won.unwrap(), lost),
        both => panic!("{both:?}"),
    };
    assert_eq!(won.outcome, Outcome::Finished);
    assert!(
        matches!(
            lost,
            DriveError::Checkpoint(CheckpointError::NotOpen { .. })
        ),
        "{lost:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_under_one_id_is_carried_out_once() {
    let cluster = Cluster::start().await;
    let mut options = RunOptions::default();
    options.run = Some(new_id());
    let thread = cluster.runtime().thread(&graph(), named("once")).unwrap();
    let thread = thread.with_options(options);
    let first = thread.start(StoryUpdate::default()).await.unwrap();
    let again = thread.start(StoryUpdate::default()).await.unwrap();
    assert_eq!((first.seq, first.run), (again.seq, again.run));
    let other = thread.start(says("something else")).await;
    assert!(
        matches!(other, Err(DriveError::IdReused { .. })),
        "{other:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_updated_once_and_a_thread_goes_back() {
    let cluster = Cluster::start().await;
    let thread = cluster.runtime().thread(&graph(), named("edit")).unwrap();
    let stopped = thread.start(StoryUpdate::default()).await.unwrap();
    thread.update_as("ask", says("by hand")).await.unwrap();
    let state = thread.state().await.unwrap().unwrap();
    let story: Story = state.values.decode().unwrap();
    assert_eq!(story.lines.last().unwrap(), "by hand");
    thread.fork(stopped.seq).await.unwrap();
    let again = thread.resume().await.unwrap();
    assert!(
        matches!(again.outcome, Outcome::Paused(_)),
        "{:?}",
        again.outcome
    );
    assert_eq!(again.state.lines.len(), 21);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_wait_for_the_next_attempt_is_left_to_the_engine() {
    let cluster = Cluster::start().await;
    let policy = RetryPolicy {
        initial_ms: 3_000,
        ..RetryPolicy::default()
    };
    let graph = Graph::builder("patient")
        .node("try", async |_: View<Story>, cx: NodeCx| {
            match cx.attempt() {
                1 => Err(NodeError::retryable("not yet")),
                n => Ok(says(format!("attempt {n}"))),
            }
        })
        .retry("try", policy)
        .edge(START, "try")
        .edge("try", END)
        .build()
        .unwrap();
    let thread = cluster.runtime().thread(&graph, named("wait")).unwrap();
    let stopped = thread.start(StoryUpdate::default()).await.unwrap();
    assert_eq!(stopped.state.lines, ["attempt 2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_while_its_node_waits() {
    let cluster = Cluster::start().await;
    let graph = Graph::builder("slow")
        .node("sleep", async |_: View<Story>, _: NodeCx| {
            tokio::time::sleep(Duration::from_secs(600)).await;
            Ok::<_, NodeError>(says("woke up"))
        })
        .edge(START, "sleep")
        .edge("sleep", END)
        .build()
        .unwrap();
    let thread = cluster.runtime().thread(&graph, named("slow")).unwrap();
    let cancelled = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        thread.cancel().await.unwrap();
    };
    let (stopped, ()) = tokio::join!(thread.start(StoryUpdate::default()), cancelled);
    assert_eq!(stopped.unwrap().outcome, Outcome::Cancelled);
}
