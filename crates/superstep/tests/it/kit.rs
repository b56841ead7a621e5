//! What these tests share: a state that logs who wrote, and nodes that do one thing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use superstep::checkpoint::BoxFuture;
use superstep::error::FailureKind;
use superstep::prelude::*;
use superstep::{InterruptId, RunOptions, RunResult};
use tokio::sync::Notify;

/// Who wrote, in order, and one channel of every other kind.
#[derive(Clone, Debug, Default, PartialEq, State)]
pub(crate) struct Log {
    #[state(append)]
    pub(crate) ran: Vec<String>,
    #[state(reduce = add)]
    pub(crate) total: i64,
    pub(crate) last: Option<String>,
    #[state(topic)]
    pub(crate) fresh: Vec<String>,
    #[state(ephemeral)]
    pub(crate) hint: Option<String>,
}

fn add(a: i64, b: i64) -> i64 {
    a + b
}

pub(crate) fn wrote(what: impl Into<String>) -> LogUpdate {
    LogUpdate::default().ran(what)
}

pub(crate) type NodeFuture = BoxFuture<'static, Result<LogUpdate, NodeError>>;

/// A node that writes its name.
pub(crate) fn says(name: &'static str) -> impl Fn(View<Log>, NodeCx) -> NodeFuture {
    move |_, _| Box::pin(async move { Ok(wrote(name)) })
}

/// A node that asks a question under its name and writes the answer.
pub(crate) fn asks(name: &'static str) -> impl Fn(View<Log>, NodeCx) -> NodeFuture {
    move |_, cx| {
        Box::pin(async move {
            let answer: String = cx.interrupt(Interrupt::new(name, "what?")).await?;
            Ok(wrote(format!("{name}={answer}")))
        })
    }
}

/// Counts calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count(Arc<AtomicU32>);

impl Count {
    /// One more; gives how many there are now.
    pub(crate) fn up(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A node that fails for good the first `times` times.
pub(crate) fn fails(
    name: &'static str,
    times: u32,
    calls: &Count,
) -> impl Fn(View<Log>, NodeCx) -> NodeFuture + use<> {
    let calls = calls.clone();
    move |_, _| {
        let calls = calls.clone();
        Box::pin(async move {
            if calls.up() <= times {
                return Err(NodeError::fatal(format!("{name} is broken")));
            }
            Ok(wrote(name))
        })
    }
}

/// A runtime of whoever runs these scenarios.
pub(crate) fn memory() -> Runtime {
    crate::runtime()
}

/// A graph of nodes in a row.
pub(crate) fn row(nodes: &[&'static str]) -> Graph<Log> {
    let mut builder = Graph::builder("row").edge(START, nodes[0]);
    for (at, name) in nodes.iter().enumerate() {
        builder = builder.node(*name, says(name));
        builder = builder.edge(*name, nodes.get(at + 1).copied().unwrap_or(END));
    }
    builder.build().unwrap()
}

/// The keys and ids of the questions that a run stopped with.
pub(crate) fn asked<S>(stopped: &RunResult<S>) -> Vec<(String, InterruptId)> {
    match &stopped.outcome {
        Outcome::Paused(questions) => questions.iter().map(|q| (q.key.clone(), q.id)).collect(),
        other => panic!("not paused: {other:?}"),
    }
}

pub(crate) fn keys<S>(stopped: &RunResult<S>) -> Vec<String> {
    asked(stopped).into_iter().map(|(key, _)| key).collect()
}

pub(crate) fn id_of<S>(stopped: &RunResult<S>, key: &str) -> InterruptId {
    let asked = asked(stopped);
    let found = asked.iter().find(|(asked, _)| asked == key);
    found
        .unwrap_or_else(|| panic!("`{key}` is not among {asked:?}"))
        .1
}

/// Which nodes failed, and how.
pub(crate) fn failures<S>(stopped: &RunResult<S>) -> Vec<(String, FailureKind)> {
    match &stopped.outcome {
        Outcome::Failed(failures) => failures
            .iter()
            .map(|failure| (failure.node.to_string(), failure.kind))
            .collect(),
        other => panic!("not failed: {other:?}"),
    }
}

pub(crate) fn options(change: impl FnOnce(&mut RunOptions)) -> RunOptions {
    let mut options = RunOptions::default();
    change(&mut options);
    options
}

/// Runs until a node says that it is there, then drops everything: what a crash leaves behind.
pub(crate) async fn crash_at<S: std::fmt::Debug>(
    there: &tokio::sync::Notify,
    run: impl Future<Output = Result<RunResult<S>, superstep::DriveError>>,
) {
    tokio::select! {
        stopped = run => panic!("stopped before the crash: {stopped:?}"),
        () = there.notified() => {}
    }
}

/// A graph of one node, which counts its calls and waits until it may go on.
pub(crate) fn patient(calls: &Count, go: &Arc<Notify>) -> Graph<Log> {
    let (calls, go) = (calls.clone(), go.clone());
    Graph::builder("patient")
        .node("a", move |_: View<Log>, _: NodeCx| {
            calls.up();
            let go = go.clone();
            async move {
                go.notified().await;
                Ok::<_, NodeError>(wrote("a"))
            }
        })
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap()
}
