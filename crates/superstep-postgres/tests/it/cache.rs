//! The node cache, as two processes have it.

use superstep_core::Timestamp;
use superstep_core::driver::NodeCache as _;

use crate::kit::db;

#[tokio::test]
async fn another_process_finds_what_was_kept_and_what_expired_is_swept() {
    let db = db().await;
    db.put("lasting", b"one".to_vec(), None).await.unwrap();
    let end = Some(Timestamp(10));
    db.put("short", b"two".to_vec(), end).await.unwrap();
    let other_process = db.schema.connect().await;
    assert_eq!(other_process.sweep(Timestamp(9), 10).await.unwrap(), 0);
    assert_eq!(other_process.sweep(Timestamp(10), 10).await.unwrap(), 1);
    let found = other_process.get("lasting", Timestamp(10)).await.unwrap();
    assert_eq!(found.as_deref(), Some(&b"one"[..]));
}
