//! Calls that a worker refuses although they come through Restate: whoever reaches the ingress can make them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use superstep::checkpoint::{InterruptQuery, Page};
use superstep::prelude::*;
use superstep::{Clock, RunOptions, ThreadId, Timestamp};

use crate::kit::{Cluster, named, new_id, post};

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Notes {
    #[state(append)]
    lines: Vec<String>,
}

fn note(line: impl Into<String>) -> NotesUpdate {
    NotesUpdate::default().lines(line.into())
}

/// Notes its input, and asks a question that answers itself after this long.
fn graph(deadline: Duration) -> Graph<Notes> {
    Graph::builder("asks")
        .node("ask", move |_: View<Notes>, cx: NodeCx| async move {
            let question = Interrupt::new("ok", "Shall I?").within(deadline);
            let answer: String = cx.interrupt(question.or_answer("no")).await?;
            Ok::<_, NodeError>(note(answer))
        })
        .edge(START, "ask")
        .edge("ask", END)
        .build()
        .unwrap()
}

fn path(thread: &ThreadId, handler: &str) -> String {
    let key = thread.to_string().replace('/', "%2F");
    format!("/SuperstepThread/{key}/{handler}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_runs_on_no_thread_but_its_own_cached_or_not() {
    let cluster = Cluster::start().await;
    let graph = graph(Duration::from_secs(3_600));
    let mut options = RunOptions::default();
    let order = new_id();
    options.run = Some(order);
    let runtime = cluster.runtime();
    let ours = runtime.thread(&graph, named("ours")).unwrap();
    let ours = ours.with_options(options);
    ours.start(note("secret of acme")).await.unwrap();

    // The worker has read the order for its own thread a moment ago.
    let name = named("stolen").replace("acme/", "mallory/");
    let theirs: ThreadId = name.parse().unwrap();
    for handler in ["run", "change"] {
        let url = format!("{}{}", cluster.services.ingress, path(&theirs, handler));
        let (status, answer) = post(&url, &json!(order)).await;
        assert_eq!(status, 400, "{handler}: {answer}");
        assert!(answer.contains("is for another thread"), "{answer}");
    }
    let stolen = runtime.thread(&graph, name).unwrap();
    assert!(stolen.state().await.unwrap().is_none());
}

/// When the question of a thread was answered, if it was.
async fn answered_at(cluster: &Cluster, thread: &ThreadId) -> Option<Timestamp> {
    use superstep::Checkpointer;
    let query = InterruptQuery {
        tenant: thread.tenant().to_owned(),
        thread: Some(thread.clone()),
        threads: Vec::new(),
        open_only: false,
        due: None,
        page: Page {
            limit: 10,
            offset: 0,
        },
    };
    let rows = cluster.store.interrupts(&query).await.unwrap();
    rows.first().and_then(|row| row.answered_at)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_not_answered_before_its_deadline_whoever_says_so() {
    let cluster = Cluster::start().await;
    let graph = graph(Duration::from_secs(3_600));
    let mut options = RunOptions::default();
    let order = new_id();
    options.run = Some(order);
    let id: ThreadId = named("early").parse().unwrap();
    let thread = cluster.runtime().thread(&graph, named("early")).unwrap();
    let thread = thread.with_options(options);
    let stopped = thread.start(NotesUpdate::default()).await.unwrap();
    let Outcome::Paused(asked) = &stopped.outcome else {
        panic!("{:?}", stopped.outcome)
    };
    let url = format!("{}{}", cluster.services.ingress, path(&id, "expire"));
    let due = json!({ "order": order, "question": asked[0].id });
    for _ in 0..2 {
        let (status, answer) = post(&url, &due).await;
        assert_eq!((status, answer.as_str()), (200, "null"));
    }
    assert_eq!(answered_at(&cluster, &id).await, None);
    // It is still open to a person.
    let thread = cluster.runtime().thread(&graph, named("early")).unwrap();
    let done = thread.answer_only("yes").await.unwrap().unwrap();
    assert_eq!(done.state.lines, ["yes"]);
}

/// The clock goes wrong after the worker was let in, so that only the deadline itself is left to stop it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_clock_goes_wrong_neither_expires_early_nor_stores_a_false_time() {
    for skew in [3_600_000, -3_600_000] {
        let offset = Arc::new(AtomicI64::new(0));
        let told = offset.clone();
        let clock = Clock::new(move || Timestamp(now() + told.load(Ordering::SeqCst)));
        let cluster = Cluster::start_at(clock).await;
        let name = named(&format!("skew{skew}"));
        let id: ThreadId = name.parse().unwrap();
        let graph = graph(Duration::from_secs(3));
        let thread = cluster.runtime().thread(&graph, name).unwrap();
        let begun = now();
        let stopped = thread.start(NotesUpdate::default()).await.unwrap();
        assert!(matches!(stopped.outcome, Outcome::Paused(_)));
        offset.store(skew, Ordering::SeqCst);
        let at = loop {
            match answered_at(&cluster, &id).await {
                Some(at) => break at.0,
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
            // By then the worker has found out about its clock and waits until it is set.
            if now() > begun + 4_000 {
                offset.store(0, Ordering::SeqCst);
            }
            assert!(now() < begun + 30_000, "it was not answered");
        };
        assert!(
            (begun + 3_000..=now()).contains(&at),
            "asked at {begun}, answered at {at}, now it is {}",
            now()
        );
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
