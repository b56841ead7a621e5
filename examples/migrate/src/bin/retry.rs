//! Retries, and an error branch.

use std::time::Duration;

use superstep::RetryPolicy;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Payment {
    failures: u32,
    receipt: String,
}

async fn charge(payment: View<Payment>, cx: NodeCx) -> Result<PaymentUpdate, NodeError> {
    let attempt = cx.attempt();
    if attempt <= payment.failures {
        return Err(format!("bank is away, attempt {attempt}").into());
    }
    Ok(PaymentUpdate::default().receipt(format!("charged at attempt {attempt}")))
}

async fn charge_failed(failed: Failed<Payment>, _: NodeCx) -> Result<Command<Payment>, NodeError> {
    let receipt = format!("{} failed: {}", failed.failure.node, failed.failure.message);
    Ok(Command::update(PaymentUpdate::default().receipt(receipt)).goto("queue"))
}

async fn queue(payment: View<Payment>, _: NodeCx) -> Result<PaymentUpdate, NodeError> {
    Ok(PaymentUpdate::default().receipt(format!("queued for a person, {}", payment.receipt)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("payment")
        .node("charge", charge)
        .retry(
            "charge",
            RetryPolicy::attempts(3).every(Duration::from_millis(10)),
        )
        .on_error("charge", &["queue"], charge_failed)
        .node("queue", queue)
        .edge(START, "charge")
        .edge("charge", END)
        .edge("queue", END)
        .build()?;
    let runtime = Runtime::new(Memory::default());
    for failures in [2, 5] {
        let thread = runtime.thread(&graph, format!("order-{failures}"))?;
        let result = thread
            .start(PaymentUpdate::default().failures(failures))
            .await?;
        println!("{}", result.state.receipt);
    }
    Ok(())
}
