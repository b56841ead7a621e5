//! A refund: a model reads how much a customer wants back, a person approves it within a day, and the bank pays.
//!
//! The agent never pays what no person approved: at the end of the day, the answer is no.
//!
//! It never pays twice. The payment is a step, so a recorded one is not made again. A process that is killed between the payment
//! and its record pays again under the same key, and the bank drops that.
//!
//! [`refunds`] is the graph over [`Refund`], and [`Bank`] is whoever pays. [`order_status`] is a tool, to be tested by itself.
//!
//! Its tests are in `tests`, one file for each section of the guide to testing.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use superstep::prelude::*;
use superstep_agent::{Tool, ask_model, tool};
use superstep_llm::{Message, Model, Request};

#[derive(Clone, Debug, Default, PartialEq, State)]
pub struct Refund {
    pub mail: String,
    pub cents: i64,
    pub approved: bool,
    pub receipt: Option<String>,
}

/// Whoever pays. It drops a payment whose key it has seen.
pub trait Bank: Send + Sync {
    fn pay(&self, key: &str, cents: i64) -> Result<String, NodeError>;
}

pub async fn read(
    model: Arc<dyn Model>,
    refund: View<Refund>,
    cx: NodeCx,
) -> Result<RefundUpdate, NodeError> {
    let request = Request::new("read", vec![Message::user(&refund.mail)]);
    let cents = ask_model(&*model, &request, &cx).await?.text().parse();
    Ok(RefundUpdate::default().cents(cents.map_err(NodeError::retryable)?))
}

pub async fn approve(refund: View<Refund>, cx: NodeCx) -> Result<RefundUpdate, NodeError> {
    let day = Duration::from_secs(86_400);
    let question = Interrupt::new("approve", refund.cents)
        .within(day)
        .or_answer(false);
    Ok(RefundUpdate::default().approved(cx.interrupt::<bool>(question).await?))
}

pub async fn pay(
    bank: Arc<dyn Bank>,
    refund: View<Refund>,
    cx: NodeCx,
) -> Result<RefundUpdate, NodeError> {
    let (key, cents) = (cx.effect_key("pay"), refund.cents);
    let receipt: String = cx
        .step("pay", || async move { bank.pay(&key, cents) })
        .await?;
    Ok(RefundUpdate::default().receipt(Some(receipt)))
}

pub fn refunds(model: Arc<dyn Model>, bank: Arc<dyn Bank>) -> Graph<Refund> {
    Graph::builder("refund")
        .node("read", with(&model, read))
        .node("approve", approve)
        .node("pay", with(&bank, pay))
        .retry("read", superstep::RetryPolicy::attempts(3))
        .edge(START, "read")
        .edge("read", "approve")
        .route("approve", &["pay", END], |refund: &Refund| {
            if refund.approved { "pay" } else { END }
        })
        .edge("pay", END)
        .build()
        .expect("a valid graph")
}

#[derive(Deserialize, JsonSchema)]
pub struct Order {
    /// Its number.
    pub number: u32,
}

pub fn order_status() -> Tool {
    tool(
        "order_status",
        "Says where an order is.",
        |order: Order, _| async move { Ok(format!("Order {} was delivered.", order.number)) },
    )
    .read()
}
