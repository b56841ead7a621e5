//! A node and a tool are functions, and a test calls them.

use example_testing::{Refund, approve, order_status};
use serde_json::json;
use superstep::TestCx;
use superstep::prelude::*;

#[tokio::test]
async fn a_node() {
    let mut refund = Refund {
        cents: 1_900,
        ..Refund::default()
    };
    let cx = TestCx::new().answer("approve", true).cx();
    refund.apply(approve(View::of(refund.clone()), cx).await.unwrap());
    assert!(refund.approved);
}

#[tokio::test]
async fn a_tool() {
    let reply = order_status()
        .test_call(json!({ "number": 17 }))
        .await
        .unwrap();
    assert_eq!(reply.content.text(), "Order 17 was delivered.");
    // Arguments that do not fit the schema are refused.
    assert!(
        order_status()
            .test_call(json!({ "number": "seventeen" }))
            .await
            .is_err()
    );
}
