//! The program of the page on Temporal and Restate: a workflow with activities, a signal, a timer and a query, as a graph.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use superstep::RetryPolicy;
use superstep::prelude::*;
use superstep_sqlite::Sqlite;

/// What the workflow knows. A query reads it, also while nothing runs.
#[derive(Clone, Debug, Default, State)]
struct Refund {
    order: String,
    cents: i64,
    receipt: Option<String>,
}

/// An activity is a node.
async fn look_up(refund: View<Refund>, _cx: NodeCx) -> Result<RefundUpdate, NodeError> {
    let cents = if refund.order == "A-7" { 4_000 } else { 0 };
    Ok(RefundUpdate::default().cents(cents))
}

/// A signal with a timer is an interrupt with a deadline.
async fn decide(refund: View<Refund>, cx: NodeCx) -> Result<Command<Refund>, NodeError> {
    let question = format!("Refund {} cents for {}?", refund.cents, refund.order);
    let question = Interrupt::new("decide", question)
        .within(Duration::from_secs(2 * 86_400))
        .or_answer(false);
    let next = if cx.interrupt(question).await? {
        "pay"
    } else {
        END
    };
    Ok(Command::update(RefundUpdate::default()).goto(next))
}

/// An activity with an effect: its key is the same in every attempt.
async fn pay(
    attempts: Arc<AtomicU32>,
    refund: View<Refund>,
    cx: NodeCx,
) -> Result<RefundUpdate, NodeError> {
    if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
        return Err(NodeError::retryable("the bank is busy"));
    }
    let (key, cents) = (cx.effect_key("pay"), refund.cents);
    let pay = || async move { Ok(format!("{cents} cents, key of {} letters", key.len())) };
    let receipt: String = cx.step("pay", pay).await?;
    Ok(RefundUpdate::default().receipt(receipt))
}

fn graph(attempts: &Arc<AtomicU32>) -> Result<Graph<Refund>, superstep::error::BuildError> {
    Graph::builder("refund")
        .node("look_up", look_up)
        .node("decide", decide)
        .node("pay", with(attempts, pay))
        .retry(
            "pay",
            RetryPolicy::attempts(3).every(Duration::from_millis(10)),
        )
        .edge(START, "look_up")
        .edge("look_up", "decide")
        .commands("decide", &["pay", END])
        .edge("pay", END)
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let attempts = Arc::new(AtomicU32::new(0));
    let store = Sqlite::in_memory()?;
    // The id of the workflow is the name of the thread.
    let thread = Runtime::new(store.clone()).thread(&graph(&attempts)?, "refund-A-7")?;
    let input = RefundUpdate::default().order("A-7");
    let stopped = thread.start_once("refund-A-7", input).await?;
    let question: String = stopped.interrupts()[0].request.decode()?;
    println!("asks: {question}");

    // Another process, days later. No code is replayed: it opens the newest snapshot.
    let thread = Runtime::new(store).thread(&graph(&attempts)?, "refund-A-7")?;
    let stopped = thread.resume_with(true).await?;
    let Refund { order, receipt, .. } = stopped.state;
    println!("{order}: {}", receipt.unwrap_or_default());
    println!("attempts to pay: {}", attempts.load(Ordering::Relaxed));
    Ok(())
}
