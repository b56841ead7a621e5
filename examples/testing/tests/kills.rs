//! The agent killed at every point: before and after each call of its store, and of its bank.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use example_testing::{Bank, RefundUpdate, refunds};
use superstep::prelude::*;
use superstep::testing::Scenario;
use superstep_conformance::mortal::KillSweep;
use superstep_llm::Script;

/// What outlives every process: the store, and how much the bank paid under each key.
#[derive(Default)]
struct World {
    store: Memory,
    paid: Mutex<BTreeMap<String, i64>>,
}

impl Bank for World {
    fn pay(&self, key: &str, cents: i64) -> Result<String, NodeError> {
        self.paid.lock().unwrap().insert(key.to_owned(), cents);
        Ok(format!("{cents} cents paid"))
    }
}

const READ: &str = r#"{ "replies": [{ "at": "read", "text": "1900" }] }"#;

#[tokio::test]
async fn a_refund_is_paid_once_wherever_the_process_is_killed() {
    let sweep = KillSweep::new(Arc::<World>::default, async |world, fate| {
        let model = Arc::new(Script::parse("refund", READ).unwrap());
        Scenario::new(&refunds(model, world.clone()))
            .checkpointer(fate.checkpointer(world.store.clone()))
            .start(RefundUpdate::default().mail("19 euros back, please"))
            .answer("approve", true)
            .run()
            .await
            .unwrap()
            .state
    });
    let report = sweep.run(async |trial| assert_eq!(trial.world.paid.lock().unwrap().len(), 1));
    assert!(report.await.unwrap().kills > 30);
}
