//! Threads that wait for an answer: an order each, which a person has to approve.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::json;
use superstep::Runtime;
use superstep::checkpoint::{Filter, FilterValue};
use superstep::prelude::*;

use harness::prng::Prng;

/// About 300 bytes as JSON.
#[derive(Clone, Debug, Default, State)]
pub(super) struct Order {
    customer: String,
    city: String,
    amount: u64,
    express: bool,
    note: String,
    approved: Option<bool>,
}

/// Parks the threads, a few at a time, as a busy server would.
pub(super) async fn park(runtime: &Runtime, numbers: Range<u64>) -> anyhow::Result<()> {
    let graph = Arc::new(graph()?);
    let mut parking = tokio::task::JoinSet::new();
    for number in numbers {
        let (runtime, graph) = (runtime.clone(), graph.clone());
        parking.spawn(async move {
            let mut metadata = BTreeMap::new();
            metadata.insert(
                "owner".to_owned(),
                json!(format!("user-{}", number % 1_000)),
            );
            let thread = runtime
                .thread(&graph, name(number))?
                .with_metadata(metadata);
            thread.start(order(number)).await
        });
        while parking.len() >= AT_ONCE {
            if let Some(parked) = parking.join_next().await {
                let outcome = parked??.outcome;
                anyhow::ensure!(matches!(outcome, Outcome::Paused(_)), "{outcome:?}");
            }
        }
    }
    while let Some(parked) = parking.join_next().await {
        let outcome = parked??.outcome;
        anyhow::ensure!(matches!(outcome, Outcome::Paused(_)), "{outcome:?}");
    }
    Ok(())
}

/// Names come in no order, as random ids do.
pub(super) fn name(number: u64) -> String {
    let mut prng = Prng::of_trial(1, number);
    format!("{:016x}-{:016x}", prng.next(), prng.next())
}

fn order(number: u64) -> OrderUpdate {
    let mut prng = Prng::of_trial(2, number);
    OrderUpdate::default()
        .customer(format!("customer-{number}"))
        .city(format!("city-{}", number % 50))
        .amount(prng.below(100_000))
        .express(number.is_multiple_of(2))
        .note(prng.text(190))
}

pub(super) fn graph() -> anyhow::Result<Graph<Order>> {
    let approve = |_: View<Order>, cx: NodeCx| async move {
        let approved: bool = cx
            .interrupt(Interrupt::new("approve", "approve this order?"))
            .await?;
        Ok::<_, NodeError>(OrderUpdate::default().approved(Some(approved)))
    };
    Ok(Graph::builder("order")
        .node("approve", approve)
        .edge(START, "approve")
        .edge("approve", END)
        .build()?)
}

/// A search for a text in a field of the state.
pub(super) fn text(field: &str, value: &str) -> Filter {
    Filter {
        field: field.to_owned(),
        equals: FilterValue::Text(value.to_owned()),
    }
}

const AT_ONCE: usize = 64;
