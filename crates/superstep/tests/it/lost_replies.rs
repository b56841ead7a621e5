//! A store that does what it is asked and loses its reply, as one does whose connection broke: nobody notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use superstep::checkpoint::{
    Answer, BoxFuture, CheckpointResult, Checkpointer, Glance, Memory, Status, ThreadQuery,
};
use superstep::error::CheckpointError;
use superstep::prelude::*;
use superstep::{Seq, TaskId, ThreadId, Timestamp, Value};

use crate::kit::{Count, Log, LogUpdate, NodeFuture, asks, id_of, memory, says, wrote};

/// Does everything twice: the reply to every other call is lost.
#[derive(Clone, Default)]
pub(crate) struct Forgetful {
    inner: Memory,
    calls: Arc<AtomicU64>,
    /// If it is there nothing is lost, and this happens before a thread is glanced at.
    before_glance: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Forgetful {
    /// Forgets nothing, and lets something happen before a thread is glanced at.
    pub(crate) fn before_glance(inner: Memory, happens: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            inner,
            calls: Arc::default(),
            before_glance: Some(Arc::new(happens)),
        }
    }

    fn reply<'a, T: Send + 'a>(
        &'a self,
        done: BoxFuture<'a, CheckpointResult<T>>,
    ) -> BoxFuture<'a, CheckpointResult<T>> {
        Box::pin(async move {
            let reply = done.await;
            if self.before_glance.is_some() {
                return reply;
            }
            match self.calls.fetch_add(1, Ordering::SeqCst) % 2 {
                0 => Err(CheckpointError::store("the connection broke")),
                _ => reply,
            }
        })
    }
}

impl Checkpointer for Forgetful {
    fn glance<'a>(
        &'a self,
        thread: &'a ThreadId,
        task: Option<TaskId>,
    ) -> BoxFuture<'a, CheckpointResult<Option<Glance>>> {
        if let Some(happens) = &self.before_glance {
            happens();
        }
        self.reply(self.inner.glance(thread, task))
    }

    superstep_conformance::forward! {
        through reply:
        create annotate save record answer answer_and_load load load_at entries request_cancel unfinished renew threads count_threads sizes
        interrupts overdue expired delete prune export import
    }
    superstep_conformance::forward! { copy forget expire }
}

/// `start` makes a graph whose first node has an effect, and whose second one asks.
fn graph(effects: &Count) -> Graph<Log> {
    let effects = effects.clone();
    let act = move |_: View<Log>, cx: NodeCx| -> NodeFuture {
        let effects = effects.clone();
        Box::pin(async move {
            let count = cx.step("effect", || async { Ok(effects.up()) }).await?;
            Ok(wrote(format!("act {count}")))
        })
    };
    Graph::builder("lost")
        .node("act", act)
        .node("ask", asks("ask"))
        .node("last", says("last"))
        .edge(START, "act")
        .edge("act", "ask")
        .edge("ask", "last")
        .edge("last", END)
        .build()
        .unwrap()
}

fn thread(effects: &Count) -> Thread<Log> {
    let runtime = Runtime::new(Forgetful::default());
    runtime.thread(&graph(effects), "t").unwrap()
}

#[tokio::test]
async fn a_run_and_its_answer_happen_once() {
    let effects = Count::default();
    let thread = thread(&effects);
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let question = id_of(&paused, "ask");
    let finished = thread.answer(question, "yes").await.unwrap().unwrap();
    assert_eq!(finished.outcome, Outcome::Finished);
    assert_eq!(finished.state.ran, ["act 1", "ask=yes", "last"]);
    assert_eq!(effects.get(), 1);

    let late = thread.answer(question, "no").await.unwrap_err();
    assert_eq!(late.code(), "checkpoint-not-open");
}

#[tokio::test]
async fn updates_and_forks_are_written_once() {
    let thread = thread(&Count::default());
    thread.start(LogUpdate::default()).await.unwrap();
    let updated = thread.update_as("ask", wrote("instead")).await.unwrap();
    let stopped = thread.resume().await.unwrap();
    assert_eq!(stopped.state.ran, ["act 1", "instead", "last"]);

    thread.fork(updated).await.unwrap();
    let again = thread.resume().await.unwrap();
    assert_eq!(again.state.ran, ["act 1", "instead", "last"]);
    thread.finish().await.unwrap();
    let history = thread.history(Seq(0), 100).await.unwrap();
    let seqs: Vec<u64> = history.iter().map(|past| past.seq.0).collect();
    assert_eq!(seqs, (1..=again.seq.0 + 1).collect::<Vec<_>>());
}

#[tokio::test]
async fn everything_can_be_read() {
    let thread = thread(&Count::default());
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(thread.interrupts().await.unwrap().len(), 1);
    assert_eq!(thread.state().await.unwrap().unwrap().seq, paused.seq);
    assert!(thread.state_at(Seq(1)).await.unwrap().is_some());
    let seen = thread.events(Seq(0)).stored().await.unwrap();
    assert_eq!(seen.last().unwrap().seq, paused.seq);
}

#[tokio::test]
async fn a_wish_to_cancel_reaches_another_process() {
    let store = Forgetful::default();
    let (here, there) = (Runtime::new(store.clone()), Runtime::new(store.clone()));
    let held = Graph::builder("held")
        .node("wait", says("wait"))
        .node("again", says("again"))
        .edge(START, "wait")
        .edge("wait", "again")
        .edge("again", "wait")
        .build()
        .unwrap();
    let thread = here.thread(&held, "t").unwrap();
    let run = thread.start(LogUpdate::default());
    let cancel = async {
        // There must be something to cancel.
        while store.inner.load(thread.id()).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        there.cancel(thread.id()).await.unwrap();
    };
    let (stopped, ()) = tokio::join!(run, cancel);
    assert_eq!(stopped.unwrap().outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn what_a_restarted_process_does_goes_through() {
    let store = Forgetful::default();
    let effects = Count::default();
    let first = Runtime::new(store.clone());
    let paused = first.thread(&graph(&effects), "t").unwrap();
    let paused = paused.start(LogUpdate::default()).await.unwrap();
    let answer = Answer {
        interrupt: id_of(&paused, "ask"),
        body: superstep::checkpoint::AnswerBody::Value(Value::plain(&"late").unwrap()),
        by: String::new(),
        at: Timestamp(1),
    };
    let id = ThreadId::new("t").unwrap();
    store.inner.answer(&id, &[answer]).await.unwrap();

    let second = Runtime::new(store);
    second.register(&graph(&effects));
    let recovered = second.recover().await.unwrap();
    assert!(matches!(&recovered[..], [(of, Ok(Outcome::Finished))] if *of == id));
    assert_eq!(second.expire_interrupts().await.unwrap(), 0);
    let rows = second.threads(&ThreadQuery::default()).await.unwrap();
    assert_eq!(rows[0].head.status, Status::Idle);
    assert_eq!(effects.get(), 1);
}

#[tokio::test]
async fn a_move_goes_through() {
    let (from, to) = (
        Runtime::new(Forgetful::default()),
        Runtime::new(Forgetful::default()),
    );
    let graph = graph(&Count::default());
    let thread = from.thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let archive = from.export(thread.id()).await.unwrap();
    to.import(thread.id(), &archive).await.unwrap();
    assert_eq!(to.export(thread.id()).await.unwrap(), archive);
}

#[tokio::test]
async fn what_is_started_once_is_not_started_again() {
    let calls = Count::default();
    let counted = calls.clone();
    let graph = Graph::builder("job")
        .node("work", move |_: View<Log>, _: NodeCx| {
            let call = counted.up();
            async move { Ok::<_, NodeError>(wrote(format!("call {call}"))) }
        })
        .node("ask", asks("ask"))
        .edge(START, "work")
        .edge("work", "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "job").unwrap();
    assert!(thread.result().await.unwrap().is_none());
    let first = thread
        .start_once("import-7", LogUpdate::default())
        .await
        .unwrap();
    let again = thread
        .start_once("import-7", LogUpdate::default())
        .await
        .unwrap();
    assert_eq!((again.run, again.seq), (first.run, first.seq));
    assert_eq!(
        again.outcome, first.outcome,
        "it still waits for the answer"
    );
    thread.answer_only("yes").await.unwrap();
    let done = thread
        .start_once("import-7", LogUpdate::default())
        .await
        .unwrap();
    assert_eq!((done.outcome, calls.get()), (Outcome::Finished, 1));
    assert_eq!(done.state.ran, ["call 1", "ask=yes"]);
    thread
        .start_once("import-8", LogUpdate::default())
        .await
        .unwrap();
    assert_eq!(calls.get(), 2, "another key is another run");
}
