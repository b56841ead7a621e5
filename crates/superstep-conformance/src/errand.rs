//! A graph that does something once and then asks, and the smallest driver that runs it: for clauses about what a run
//! finds in a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use superstep_core::checkpoint::{BoxFuture, CheckpointResult, Checkpointer, Memory, RecordWrite};
use superstep_core::driver::{LiveEvent, NodeHost, ThreadRequest};
use superstep_core::error::CheckpointError;
use superstep_core::run::RunOptions;
use superstep_core::{
    END, Graph, Interrupt, Moment, NodeCx, NodeError, Outcome, Run, START, State, Step, ThreadId,
    Timestamp, View,
};

use crate::report::Fault;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
pub(crate) struct Errand {
    #[state(append)]
    pub(crate) done: Vec<String>,
}

/// Pays, and then asks whether it should have.
pub(crate) fn errand(paid: &Arc<AtomicU32>) -> Result<Graph<Errand>, Fault> {
    let paid = paid.clone();
    let pay = move |_: View<Errand>, cx: NodeCx| {
        let paid = paid.clone();
        async move {
            let times: u32 = cx
                .step("pay", || async move {
                    Ok(paid.fetch_add(1, Ordering::SeqCst) + 1)
                })
                .await?;
            let sure: String = cx.interrupt(Interrupt::new("sure", "really?")).await?;
            Ok::<_, NodeError>(ErrandUpdate::default().done(format!("paid {times}: {sure}")))
        }
    };
    let graph = Graph::builder("errand").node("pay", pay);
    Ok(graph.edge(START, "pay").edge("pay", END).build()?)
}

/// Writes records into the reference store, or nowhere.
pub(crate) struct Pen(pub(crate) Option<Memory>);

impl NodeHost for Pen {
    fn record(&self, write: RecordWrite) -> BoxFuture<'static, CheckpointResult<Vec<u8>>> {
        let kept = self.0.clone();
        Box::pin(async move {
            match kept {
                Some(kept) => kept.record(&write).await,
                None => Err(CheckpointError::Unusable {
                    why: format!("`{}` was done before", write.key),
                }),
            }
        })
    }

    fn emit(&self, _: LiveEvent) {}
}

/// The smallest driver there is: one task after the other.
pub(crate) async fn drive(
    db: &dyn Checkpointer,
    graph: &Graph<Errand>,
    thread: &ThreadId,
    command: ThreadRequest,
    host: Arc<Pen>,
) -> Result<Outcome, Fault> {
    let now = Timestamp(4_000);
    let (loaded, moment) = (db.load(thread).await?, Moment { now, entropy: 7 });
    let options = RunOptions::default();
    let mut run = Run::open(graph.definition(), thread, loaded, command, options, moment)?;
    let mut ended = Vec::new();
    loop {
        match run.next_step() {
            Step::Start(tasks) => {
                for task in tasks {
                    ended.push((task.id(), task.execute(host.clone()).await));
                }
            }
            Step::Drop(tasks) => ended.retain(|(id, _)| !tasks.contains(id)),
            Step::Save(commit) => run.saved(db.save(&commit).await?, now)?,
            Step::Wait { .. } => {
                let none = || Fault::new("the run waits for nothing".to_owned());
                let (id, end) = ended.pop().ok_or_else(none)?;
                run.task_ended(id, end, now)?;
            }
            Step::Record(_) | Step::Suspend(_) => unreachable!("only a limited segment does"),
            Step::Stop(outcome) => return Ok(outcome),
        }
    }
}
