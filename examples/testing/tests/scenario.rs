//! A whole graph with scripted models, answers and time.

use std::sync::Arc;
use std::time::Duration;

use example_testing::{Bank, Refund, RefundUpdate, refunds};
use superstep::prelude::*;
use superstep::testing::Scenario;
use superstep_llm::Script;

struct GenerousBank;

impl Bank for GenerousBank {
    fn pay(&self, _key: &str, cents: i64) -> Result<String, NodeError> {
        Ok(format!("{cents} cents paid"))
    }
}

fn refund(replies: &str) -> Scenario<Refund> {
    let model = Arc::new(Script::parse("refund", replies).unwrap());
    let input = RefundUpdate::default().mail("19 euros back, please");
    Scenario::new(&refunds(model, Arc::new(GenerousBank))).start(input)
}

const READ: &str = r#"{ "replies": [{ "at": "read", "expect": "19 euros", "text": "1900" }] }"#;

#[tokio::test]
async fn an_approved_refund_is_paid() {
    let end = refund(READ).answer("approve", true).run().await.unwrap();
    assert_eq!(end.state.receipt.as_deref(), Some("1900 cents paid"));
    assert_eq!(end.asked(), ["approve"]);
    assert_eq!(end.nodes, ["read", "approve", "pay"]);
    assert_eq!(end.steps, ["pay"]);
}

#[tokio::test(start_paused = true)]
async fn a_refund_that_nobody_approves_within_a_day_is_not_paid() {
    let end = refund(READ).expire("approve").run().await.unwrap();
    assert_eq!(end.state.receipt, None);
    assert_eq!(end.elapsed, Duration::from_secs(86_400));

    let (hour, late) = (Duration::from_secs(3_600), true);
    let end = refund(READ)
        .answer_after(25 * hour, "approve", late)
        .run()
        .await
        .unwrap();
    assert_eq!(end.state.receipt, None);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_wrong_once_is_asked_again() {
    let replies = r#"{ "replies": [
        { "at": "read", "text": "nineteen" },
        { "at": "read", "text": "1900" }
    ] }"#;
    let end = refund(replies)
        .answer("approve", false)
        .run()
        .await
        .unwrap();
    assert_eq!(end.state.cents, 1_900);
    // The retry waited, and the test did not.
    assert!(end.elapsed >= Duration::from_millis(500));
}

#[tokio::test]
async fn a_question_that_the_script_forgot() {
    let failure = refund(READ).run().await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "`approve` asked `approve` (kind `question`): 1900; the script has no answer left for it, add `.answer(\"approve\", ..)`"
    );
}
