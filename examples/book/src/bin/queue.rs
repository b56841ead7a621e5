//! The program of the page on queues: the same jobs by a consumer with hand-written retries, and by a graph.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use superstep::RetryPolicy;
use superstep::prelude::*;
use superstep_sqlite::Sqlite;

/// The payment provider. It is busy at first, and knows the keys of the charges that it made.
#[derive(Default)]
struct Bank {
    calls: u32,
    charges: BTreeMap<String, i64>,
}

impl Bank {
    fn charge(&mut self, key: &str, cents: i64) -> Result<String, &'static str> {
        self.calls += 1;
        if self.calls == 1 {
            return Err("the bank is busy");
        }
        self.charges.insert(key.to_owned(), cents);
        Ok(format!("receipt {}", self.charges.len()))
    }
}

/// Before: a row for each job, which says how far it came, and a consumer that counts attempts.
mod before {
    use super::*;

    #[derive(Default)]
    pub struct Job {
        attempts: u32,
        receipt: Option<String>,
        is_done: bool,
    }

    /// Handles a message. An error puts it back into the queue.
    pub fn handle(
        jobs: &mut BTreeMap<String, Job>,
        bank: &mut Bank,
        order: &str,
    ) -> Result<(), &'static str> {
        let job = jobs.entry(order.to_owned()).or_default();
        // The queue delivers some messages twice.
        if job.is_done {
            return Ok(());
        }
        // The flag that says that the charge was made. A crash before it is set charges twice.
        if job.receipt.is_none() {
            job.attempts += 1;
            match bank.charge(order, 1_900) {
                Ok(receipt) => job.receipt = Some(receipt),
                Err(busy) if job.attempts < 3 => return Err(busy),
                Err(_) => job.receipt = Some("dead letter".to_owned()),
            }
        }
        job.is_done = true;
        Ok(())
    }
}

/// After: the state of the graph is the row, and the runtime keeps it.
#[derive(Clone, Debug, Default, State)]
struct Order {
    cents: i64,
    receipt: String,
}

async fn charge(
    bank: Arc<Mutex<Bank>>,
    order: View<Order>,
    cx: NodeCx,
) -> Result<OrderUpdate, NodeError> {
    let (key, cents) = (cx.effect_key("charge"), order.cents);
    let charge = || async move {
        let mut bank = bank.lock().expect("no charge panics");
        bank.charge(&key, cents).map_err(NodeError::retryable)
    };
    // Recorded before the node continues: after a crash, the charge is not made again.
    let receipt: String = cx.step("charge", charge).await?;
    Ok(OrderUpdate::default().receipt(receipt))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `order-17` is delivered twice, as queues do.
    let deliveries = ["order-17", "order-18", "order-17"];

    let (mut jobs, mut bank) = (BTreeMap::new(), Bank::default());
    let mut queue: Vec<&str> = deliveries.into_iter().rev().collect();
    while let Some(order) = queue.pop() {
        if before::handle(&mut jobs, &mut bank, order).is_err() {
            queue.push(order);
        }
    }
    println!(
        "before: {} charges, {} calls",
        bank.charges.len(),
        bank.calls
    );

    let bank = Arc::new(Mutex::new(Bank::default()));
    let graph = Graph::builder("order")
        .node("charge", with(&bank, charge))
        .retry(
            "charge",
            RetryPolicy::attempts(3).every(Duration::from_millis(10)),
        )
        .edge(START, "charge")
        .edge("charge", END)
        .build()?;
    let runtime = Runtime::new(Sqlite::in_memory()?);
    for order in deliveries {
        let thread = runtime.thread(&graph, order)?;
        // Returns when the job is done; then confirm the message. A message that comes again finds the first run.
        let input = OrderUpdate::default().cents(1_900);
        let stopped = thread.start_once(order, input).await?;
        println!("{order}: {}", stopped.state.receipt);
    }
    let bank = bank.lock().expect("no charge panics");
    println!(
        "after: {} charges, {} calls",
        bank.charges.len(),
        bank.calls
    );
    Ok(())
}
