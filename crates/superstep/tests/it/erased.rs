//! A host of several graphs, which knows the type of none.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::checkpoint::Metadata;
use superstep::prelude::*;
use superstep::{AnyGraph, DriveError, Seq};

use crate::runtime;

#[derive(Clone, Debug, Default, State)]
struct Order {
    item: String,
    approved: Option<bool>,
}

#[derive(Clone, Debug, Default, State)]
struct Count {
    #[state(append)]
    numbers: Vec<u32>,
}

async fn approve(state: View<Order>, cx: NodeCx) -> Result<OrderUpdate, NodeError> {
    let question = Interrupt::new("buy", json!({ "query": format!("Buy {}?", state.item) }));
    let approved: bool = cx.interrupt(question).await?;
    Ok(OrderUpdate::default().approved(Some(approved)))
}

async fn count(_: View<Count>, _: NodeCx) -> Result<CountUpdate, NodeError> {
    Ok(CountUpdate::default().numbers(1))
}

fn graphs() -> Vec<Arc<dyn AnyGraph>> {
    let orders = Graph::builder("orders")
        .node("approve", approve)
        .edge(START, "approve")
        .edge("approve", END)
        .build()
        .unwrap();
    let counts = Graph::builder("counts")
        .node("count", count)
        .edge(START, "count")
        .edge("count", END)
        .build()
        .unwrap();
    vec![Arc::new(orders), Arc::new(counts)]
}

async fn values(thread: &dyn superstep::AnyThread) -> Json {
    let state = thread.state(None).await.unwrap().unwrap();
    state.values.decode().unwrap()
}

#[tokio::test]
async fn threads_of_two_graphs_are_driven_with_json_alone() {
    let (runtime, graphs) = (runtime(), graphs());
    let names: Vec<_> = graphs.iter().map(|graph| graph.name()).collect();
    assert_eq!(names, ["orders", "counts"]);

    let order = graphs[0]
        .thread(&runtime, "order", Metadata::new())
        .unwrap();
    let paused = order.start(json!({ "item": "tea" })).await.unwrap();
    assert!(matches!(paused.outcome, Outcome::Paused(_)));
    let open = order.interrupts().await.unwrap();
    let copy = order.copy_to("copy", None, Some(json!({ "item": "coffee" })));
    let copy = copy.await.unwrap();

    let answer = vec![(open[0].interrupt.id, json!(true))];
    let ended = order.answer_as("ada", answer).await.unwrap().unwrap();
    assert_eq!(ended.outcome, Outcome::Finished);
    assert_eq!(
        values(&*order).await,
        json!({ "item": "tea", "approved": true })
    );
    assert_eq!(
        values(&*copy).await["item"],
        json!("coffee"),
        "the copy still waits"
    );

    let counter = graphs[1]
        .thread(&runtime, "count", Metadata::new())
        .unwrap();
    counter.start_or_recover(json!({})).await.unwrap();
    counter
        .update_as("count", json!({ "numbers": [5] }))
        .await
        .unwrap();
    assert_eq!(values(&*counter).await, json!({ "numbers": [1, 5] }));
    assert!(!counter.history(Seq(0), 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_refused_and_nothing_is_stored() {
    let (runtime, graphs) = (runtime(), graphs());
    let order = graphs[0]
        .thread(&runtime, "order", Metadata::new())
        .unwrap();
    let error = order.start(json!({ "item": 7 })).await.unwrap_err();
    assert!(matches!(error, DriveError::Value(_)), "{error:?}");
    assert!(order.state(None).await.unwrap().is_none());
}
