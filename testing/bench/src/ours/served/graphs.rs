//! The graphs of our server in the benchmarks.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use superstep::graph::Definition;
use superstep::prelude::*;

/// Returns every graph, in the form in which a server takes them.
pub(super) fn all() -> anyhow::Result<Vec<Arc<Definition>>> {
    Ok(vec![
        chain()?.definition().clone(),
        stamp()?.definition().clone(),
        order()?.definition().clone(),
        count()?.definition().clone(),
    ])
}

/// The state of `bench/langgraph-server/graphs.py`.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct Chain {
    pub(crate) n: i64,
    #[state(append)]
    log: Vec<String>,
}

/// Five nodes, each of which emits its number, counts and writes a line.
pub(crate) fn chain() -> anyhow::Result<Graph<Chain>> {
    let mut graph = Graph::<Chain>::builder("chain").inputs(["n", "log"]);
    for number in 0..NODES {
        let name = format!("s{number}");
        let step = move |chain: View<Chain>, cx: NodeCx| async move {
            cx.emit(json!({ "at": number }))?;
            let update = ChainUpdate::default().n(chain.n + 1);
            Ok::<_, NodeError>(update.log(format!("s{number}")))
        };
        graph = match number {
            0 => graph.edge(START, name.as_str()),
            _ => graph.edge(format!("s{}", number - 1), name.as_str()),
        };
        graph = graph.node(name, step);
    }
    Ok(graph.edge(format!("s{}", NODES - 1), END).build()?)
}

/// One step that says when it ran, and for which request.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct Stamp {
    number: u64,
    /// The number of the last request that was carried out.
    done: u64,
    /// When, in microseconds since 1970.
    at: u64,
}

pub(crate) fn stamp() -> anyhow::Result<Graph<Stamp>> {
    let mark = |stamp: View<Stamp>, _: NodeCx| async move {
        let update = StampUpdate::default().done(stamp.number);
        Ok::<_, NodeError>(update.at(now_us()))
    };
    Ok(Graph::builder("stamp")
        .node("mark", mark)
        .edge(START, "mark")
        .edge("mark", END)
        .inputs(["number"])
        .build()?)
}

/// What people search by. About 300 bytes as JSON.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct Order {
    customer: String,
    city: String,
    amount: u64,
    express: bool,
    note: String,
    approved: Option<bool>,
}

/// An express order waits for a person; the others end.
pub(crate) fn order() -> anyhow::Result<Graph<Order>> {
    let approve = |order: View<Order>, cx: NodeCx| async move {
        let approved: bool = match order.express {
            true => {
                let question = Interrupt::new("approve", "approve this order?");
                cx.interrupt(question).await?
            }
            false => true,
        };
        Ok::<_, NodeError>(OrderUpdate::default().approved(Some(approved)))
    };
    Ok(Graph::builder("order")
        .node("approve", approve)
        .edge(START, "approve")
        .edge("approve", END)
        .inputs(["customer", "city", "amount", "express", "note"])
        .build()?)
}

/// A state that stays small while its history grows.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct Count {
    pub(crate) left: u64,
    note: String,
}

pub(crate) fn count() -> anyhow::Result<Graph<Count>> {
    let step = |count: View<Count>, _: NodeCx| async move {
        Ok::<_, NodeError>(CountUpdate::default().left(count.left - 1))
    };
    Ok(Graph::builder("count")
        .node("step", step)
        .edge(START, "step")
        .route("step", &["step", END], |count: &Count| {
            if count.left > 0 { "step" } else { END }
        })
        .inputs(["left", "note"])
        .build()?)
}

/// Microseconds since 1970: what a process can compare with the clock of another one on the same machine.
pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

pub(crate) const NODES: i64 = 5;
