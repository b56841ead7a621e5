//! Reports of how many bytes threads take read much, so there is one at a time.

use std::time::Duration;

use http::StatusCode;
use superstep::checkpoint::{BoxFuture, CheckpointResult, Checkpointer};
use superstep::prelude::*;
use superstep::registry::MemoryRegistry;
use superstep_conformance::forward;

use crate::kit::Client;

/// A store whose reports take half a minute.
struct LongReports {
    inner: Memory,
}

impl LongReports {
    fn slowly<'a, T: Send + 'a>(
        &self,
        work: BoxFuture<'a, CheckpointResult<T>>,
    ) -> BoxFuture<'a, CheckpointResult<T>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            work.await
        })
    }
}

impl Checkpointer for LongReports {
    forward! { through slowly: sizes }
    forward! { create annotate save record answer load load_at entries glance request_cancel unfinished renew threads }
    forward! { count_threads interrupts overdue copy delete forget prune expire expired export import }
}

#[tokio::test(start_paused = true)]
async fn one_report_of_sizes_is_computed_at_a_time() {
    let inner = Memory::default();
    let runtime = Runtime::new(LongReports { inner });
    let client = Client::over(runtime, &MemoryRegistry::new()).await;
    let report = async || client.get("/superstep/sizes").await;

    let (first, second) = tokio::join!(report(), report());
    let [done, busy] = match first.status {
        StatusCode::OK => [first, second],
        _ => [second, first],
    };
    assert_eq!(done.status, StatusCode::OK);
    assert_eq!(busy.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(busy.header("retry-after"), Some("10"));

    // A caller that goes away gives up its turn.
    let gone = tokio::time::timeout(Duration::from_secs(1), report()).await;
    assert!(gone.is_err());
    assert_eq!(report().await.status, StatusCode::OK);
}
