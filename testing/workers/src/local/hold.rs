//! `hold`: many threads at once, each kept inside its first node until the line `go`.
//!
//! Prints `holding` when all of them are there; after `go`, `ended THREAD ok` or `ended THREAD WHY` for each, then `over`.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use superstep::error::BuildError;
use superstep::prelude::*;
use superstep::{Outcome, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::graphs::{Body, Work, WorkUpdate};
use crate::ledger::Ledger;
use crate::{AnyError, Args};

/// A gate, then two nodes with two effects each.
pub(super) fn held(
    ledger: &Arc<Ledger>,
    seed: u64,
    gate: Arc<Gate>,
) -> Result<Graph<Work>, BuildError> {
    let node = |name| Body::new(name, seed, ledger);
    Graph::builder("crash-held")
        .node("gate", HeldNode(node("gate"), gate))
        .node("first", node("first"))
        .node("second", node("second"))
        .edge(START, "gate")
        .edge("gate", "first")
        .edge("first", "second")
        .edge("second", END)
        .build()
}

/// What keeps threads inside their first node.
pub(super) struct Gate {
    inside: AtomicU64,
    is_open: watch::Sender<bool>,
}

impl Gate {
    pub(super) fn new(is_open: bool) -> Arc<Self> {
        Arc::new(Self {
            inside: AtomicU64::new(0),
            is_open: watch::Sender::new(is_open),
        })
    }

    async fn pass(&self) {
        self.inside.fetch_add(1, Ordering::SeqCst);
        // The sender lives as long as the gate.
        let _ = self.is_open.subscribe().wait_for(|is_open| *is_open).await;
    }
}

/// Reports itself, waits at the gate, then has its effects.
struct HeldNode(Body, Arc<Gate>);

impl Node<Work> for HeldNode {
    async fn run(&self, _: View<Work>, cx: NodeCx) -> Result<Command<Work>, NodeError> {
        self.0.report(&cx, "held", "gate", 0).await;
        self.1.pass().await;
        Ok(self.0.perform("gate", &cx).await?.into())
    }
}

pub(super) async fn hold(
    runtime: &Runtime,
    ledger: &Arc<Ledger>,
    args: &Args,
) -> Result<(), AnyError> {
    let gate = Gate::new(false);
    let graph = held(ledger, args.seed, gate.clone())?;
    let mut runs = JoinSet::new();
    for number in 0..args.runs {
        let thread = runtime.thread(&graph, format!("{}-{number}", args.thread))?;
        runs.spawn(async move {
            let ended = thread.start(WorkUpdate::default()).await;
            match ended.map(|stopped| stopped.outcome) {
                Ok(Outcome::Finished) => format!("ended {} ok", thread.id()),
                Ok(other) => format!("ended {} {other:?}", thread.id()),
                Err(error) => format!("ended {} {}", thread.id(), error.code()),
            }
        });
    }
    while gate.inside.load(Ordering::SeqCst) < args.runs {
        tokio::time::sleep(POLL).await;
    }
    println!("holding");
    let opened = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().next());
    if opened.await?.is_none() {
        return Ok(());
    }
    gate.is_open.send_replace(true);
    while let Some(ended) = runs.join_next().await {
        println!("{}", ended?);
    }
    println!("over");
    Ok(())
}

const POLL: std::time::Duration = std::time::Duration::from_millis(2);
