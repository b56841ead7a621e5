//! The node cache.

use superstep_core::Timestamp;
use superstep_core::driver::NodeCache as _;

use crate::kit::db;

#[tokio::test]
async fn a_result_is_found_until_it_expires_or_is_cleared() {
    let db = db().await;
    db.put("g/a/1", b"one".to_vec(), None).await.unwrap();
    db.put("g/a/2", b"two".to_vec(), Some(Timestamp(10)))
        .await
        .unwrap();
    db.put("g/a_b/1", b"other".to_vec(), None).await.unwrap();
    let long = "k".repeat(10_000);
    db.put(&long, b"long".to_vec(), None).await.unwrap();

    let other_process = db.schema.connect().await;
    let found = async |key, now| other_process.get(key, Timestamp(now)).await.unwrap();
    assert_eq!(found("g/a/1", 100).await.as_deref(), Some(&b"one"[..]));
    assert_eq!(found("g/a/2", 9).await.as_deref(), Some(&b"two"[..]));
    assert_eq!(found("g/a/2", 10).await, None);
    assert_eq!(found(&long, 10).await.as_deref(), Some(&b"long"[..]));
    assert_eq!(db.sweep_cache(Timestamp(10)).await.unwrap(), 1);

    db.put("g/a/1", b"again".to_vec(), None).await.unwrap();
    assert_eq!(found("g/a/1", 0).await.as_deref(), Some(&b"again"[..]));
    db.clear("g/a/").await.unwrap();
    assert_eq!(found("g/a/1", 0).await, None);
    assert_eq!(found("g/a_b/1", 0).await.as_deref(), Some(&b"other"[..]));
}
