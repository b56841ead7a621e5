//! The two graphs of the trials: one with effects in a chain and a fan-out, one that asks.

use std::sync::Arc;
use std::time::Duration;

use harness::prng::mix;
use superstep::error::BuildError;
use superstep::prelude::*;

use super::watched::{note_body_end, was_told};
use crate::ledger::{Ledger, Report};

/// What the chain and the fan-out leave behind.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct Work {
    #[state(append)]
    pub(crate) done: Vec<String>,
}

/// Two nodes, then four at once, then two more; every node has two effects.
pub(crate) fn effects(ledger: &Arc<Ledger>, seed: u64) -> Result<Graph<Work>, BuildError> {
    let node = |name| Body::new(name, seed, ledger);
    Graph::builder("crash-effects")
        .node("first", node("first"))
        .node("second", Spread(node("second")))
        .map_node(&PART, node("part"))
        .node("third", node("third"))
        .node("fourth", node("fourth"))
        .edge(START, "first")
        .edge("first", "second")
        .commands("second", &["part"])
        .edge("part", "third")
        .edge("third", "fourth")
        .edge("fourth", END)
        .build()
}

const PART: SendTo<u32> = SendTo::new("part");
const PARTS: u32 = 4;

/// A node whose body reports itself and its effects.
pub(super) struct Body {
    name: &'static str,
    seed: u64,
    ledger: Arc<Ledger>,
}

impl Body {
    pub(super) fn new(name: &'static str, seed: u64, ledger: &Arc<Ledger>) -> Self {
        let ledger = ledger.clone();
        Self { name, seed, ledger }
    }

    pub(super) async fn perform(&self, name: &str, cx: &NodeCx) -> Result<WorkUpdate, NodeError> {
        let task = cx.task().to_string();
        self.report(cx, "body", &format!("{name}={task}"), 0).await;
        let one = self.effect(name, "one", cx).await?;
        let two = self.effect(name, "two", cx).await?;
        note_body_end();
        Ok(WorkUpdate::default().done(format!("{name} {one} {two}")))
    }

    /// An effect of 1 to 10 ms; its key is the same whichever process does it.
    async fn effect(&self, name: &str, step: &str, cx: &NodeCx) -> Result<u64, NodeError> {
        let key = format!("{name}/{step}");
        let value = mix(self.seed, &key);
        let stored = cx
            .step(step, || async {
                let phase = if was_told() {
                    "start-after-told"
                } else {
                    "start"
                };
                self.report(cx, phase, &key, u64::from(cx.attempt())).await;
                tokio::time::sleep(Duration::from_micros(1_500 + value % 9_000)).await;
                Ok::<_, NodeError>(value % 1_000)
            })
            .await?;
        self.report(cx, "acked", &key, 0).await;
        Ok(stored)
    }

    pub(super) async fn report(&self, cx: &NodeCx, phase: &str, key: &str, detail: u64) {
        let thread = cx.thread().name();
        self.ledger
            .report(Report {
                thread,
                phase,
                key,
                detail,
            })
            .await;
    }
}

impl Node<Work> for Body {
    async fn run(&self, _: View<Work>, cx: NodeCx) -> Result<Command<Work>, NodeError> {
        Ok(self.perform(self.name, &cx).await?.into())
    }
}

impl Node<Work, u32> for Body {
    async fn run(&self, part: u32, cx: NodeCx) -> Result<Command<Work>, NodeError> {
        Ok(self
            .perform(&format!("{}{part}", self.name), &cx)
            .await?
            .into())
    }
}

/// Like [`Body`], and sends the parts out.
struct Spread(Body);

impl Node<Work> for Spread {
    async fn run(&self, _: View<Work>, cx: NodeCx) -> Result<Command<Work>, NodeError> {
        let update = self.0.perform(self.0.name, &cx).await?;
        Ok((0..PARTS).fold(Command::update(update), |command, part| {
            command.send(&PART, part)
        }))
    }
}

/// What a question was answered with.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct Verdict {
    pub(crate) answer: Option<u64>,
    pub(crate) acted_on: Option<u64>,
}

/// Asks once, then does what was answered.
pub(crate) fn question(ledger: &Arc<Ledger>) -> Result<Graph<Verdict>, BuildError> {
    let ledger = ledger.clone();
    Graph::builder("crash-question")
        .node("ask", ask)
        .node("act", move |verdict, cx| act(ledger.clone(), verdict, cx))
        .edge(START, "ask")
        .edge("ask", "act")
        .edge("act", END)
        .build()
}

async fn ask(_: View<Verdict>, cx: NodeCx) -> Result<VerdictUpdate, NodeError> {
    let answer: u64 = cx.interrupt(Interrupt::new("which", "which one?")).await?;
    Ok(VerdictUpdate::default().answer(Some(answer)))
}

async fn act(
    ledger: Arc<Ledger>,
    verdict: View<Verdict>,
    cx: NodeCx,
) -> Result<VerdictUpdate, NodeError> {
    let answer = verdict.answer.unwrap_or(u64::MAX);
    let acted_on = cx
        .step("act", || async {
            let report = Report {
                thread: cx.thread().name(),
                phase: "start",
                key: "act",
                detail: answer,
            };
            ledger.report(report).await;
            Ok::<_, NodeError>(answer)
        })
        .await?;
    Ok(VerdictUpdate::default().acted_on(Some(acted_on)))
}
