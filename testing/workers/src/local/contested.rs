//! The graph of the thread that everybody wants: an effect, a question, an effect, each of which leaves its mark.

use std::sync::Arc;
use std::time::Duration;

use superstep::RunOptions;
use superstep::error::BuildError;
use superstep::prelude::*;

use crate::ledger::{Ledger, Report};

/// What everybody who had the thread left in it.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct Marks {
    #[state(append)]
    pub(crate) marks: Vec<String>,
}

pub(crate) fn contested(ledger: &Arc<Ledger>) -> Result<Graph<Marks>, BuildError> {
    let effect = || Effect {
        ledger: ledger.clone(),
    };
    Graph::builder("crash-contested")
        .node("before", effect())
        .node("ask", ask)
        .node("after", effect())
        .edge(START, "before")
        .edge("before", "ask")
        .edge("ask", "after")
        .edge("after", END)
        .build()
}

/// Others may take the thread over many times within one superstep; that is no poison.
pub(crate) fn patient_with_takeovers() -> RunOptions {
    let mut options = RunOptions::default();
    options.recoveries_max = 1_000_000;
    options
}

struct Effect {
    ledger: Arc<Ledger>,
}

impl Node<Marks> for Effect {
    async fn run(&self, _: View<Marks>, cx: NodeCx) -> Result<Command<Marks>, NodeError> {
        let key = format!("effect:{}", cx.effect_key("mark"));
        let report = |phase| Report {
            thread: cx.thread().name(),
            phase,
            key: &key,
            // A process may have taken the thread again before this line of a former life of it arrives.
            detail: cx.epoch().0,
        };
        cx.step("mark", || async {
            self.ledger.report(report("start")).await;
            tokio::time::sleep(EFFECT).await;
            Ok::<_, NodeError>(())
        })
        .await?;
        self.ledger.report(report("acked")).await;
        Ok(MarksUpdate::default().marks(key.clone()).into())
    }
}

async fn ask(_: View<Marks>, cx: NodeCx) -> Result<MarksUpdate, NodeError> {
    let mark: String = cx.interrupt(Interrupt::new("mark", "whose mark?")).await?;
    Ok(MarksUpdate::default().marks(mark))
}

/// Long enough for somebody to come between.
const EFFECT: Duration = Duration::from_millis(2);
