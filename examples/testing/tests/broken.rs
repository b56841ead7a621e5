//! What a sweep says about an agent that is broken: its bank gets another key from each execution.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use superstep::prelude::*;
use superstep_conformance::mortal::KillSweep;

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Order {
    receipt: String,
}

#[derive(Default)]
struct World {
    store: Memory,
    paid: Mutex<BTreeMap<String, i64>>,
}

async fn pay(world: Arc<World>, _: View<Order>, cx: NodeCx) -> Result<OrderUpdate, NodeError> {
    let pay = || async move {
        let mut paid = world.paid.lock().unwrap();
        // Wrong: the key must be the same for every execution. `cx.effect_key("pay")` is.
        let key = format!("payment {}", paid.len() + 1);
        paid.insert(key, 1_900);
        Ok("paid".to_owned())
    };
    Ok(OrderUpdate::default().receipt(cx.step::<String, _, _>("pay", pay).await?))
}

#[tokio::test]
async fn a_key_that_changes_is_caught() {
    let sweep = KillSweep::new(Arc::<World>::default, async |world, fate| {
        let graph = Graph::builder("order").node("pay", with(world, pay));
        let graph = graph.edge(START, "pay").edge("pay", END).build().unwrap();
        let runtime = Runtime::new(fate.checkpointer(world.store.clone()));
        let thread = runtime.thread(&graph, "order-17").unwrap();
        thread
            .start_once("order-17", OrderUpdate::default())
            .await
            .unwrap()
            .state
    });
    let sweep = sweep.run(async |trial| {
        assert_eq!(trial.world.paid.lock().unwrap().len(), 1, "payments");
    });
    let failure = sweep.await.unwrap_err().to_string();
    assert_eq!(failure, FAILURE);
}

const FAILURE: &str = "\
killed at point 5 of 8 (before the record of `pay`), and the process after it ended, but the check failed: \
assertion `left == right` failed: payments
  left: 2
 right: 1
repeat this trial alone with `.only([5])`";
