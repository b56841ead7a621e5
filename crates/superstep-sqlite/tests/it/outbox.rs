//! Keys, deliveries and audit logs beside the rules of a registry: what a file has when it is opened again, and rows that are
//! damaged.

use rusqlite::Connection;
use serde_json::json;
use superstep_core::checkpoint::Page;
use superstep_core::error::CheckpointError;
use superstep_core::registry::{
    ApiKey, AttemptEnd, AuditEntry, AuditHead, ClaimedRequest, DeliveryQuery, NewDelivery, NewRun,
    Registry, RequestKey, RunEnd, RunStatus, WhenBusy,
};
use superstep_core::{ApiKeyId, AssistantId, DeliveryId, RunId, ThreadId, Timestamp};
use superstep_sqlite::Sqlite;

use crate::kit::db;

fn delivery_id(n: u8) -> DeliveryId {
    DeliveryId::from_bytes([n; 16])
}

/// Ends a run with two deliveries.
async fn end_run(db: &Sqlite) {
    let thread = ThreadId::of_tenant("acme", "a").unwrap();
    let run = NewRun {
        id: RunId::from_bytes([1; 16]),
        thread: thread.clone(),
        assistant: AssistantId::from_bytes([7; 16]),
        principal: String::new(),
        request: Vec::new(),
        arguments: json!({}),
        metadata: json!({}),
        when_busy: WhenBusy::Enqueue,
        at: Timestamp(1),
        due: Timestamp(1),
    };
    db.create_run(&run).await.unwrap();
    let deliveries = [1, 2].map(|n| NewDelivery {
        id: delivery_id(n),
        run: run.id,
        thread: thread.clone(),
        address: "https://example.org".to_owned(),
        event: "run.ended".to_owned(),
        body: "{\"text\":\"\u{0}\"}".to_owned(),
        at: Timestamp(2),
    });
    let end = RunEnd {
        status: RunStatus::Success,
        error: json!(null),
        at: Timestamp(2),
        deliveries: deliveries.to_vec(),
    };
    assert!(db.end_run("acme", run.id, &end).await.unwrap());
}

fn all() -> DeliveryQuery {
    DeliveryQuery {
        tenant: "acme".to_owned(),
        ..DeliveryQuery::default()
    }
}

fn api_key() -> ApiKey {
    ApiKey {
        id: ApiKeyId::from_bytes([3; 16]),
        tenant: "acme".to_owned(),
        principal: "ann".to_owned(),
        name: "deploys".to_owned(),
        hash: [5; 32],
        permissions: 255,
        is_restricted: true,
        created: Timestamp(10),
        expires: None,
    }
}

fn first_entry() -> AuditEntry {
    AuditEntry {
        seq: 1,
        at: Timestamp(10),
        principal: "ann".to_owned(),
        action: "run.create".to_owned(),
        resource: "threads/a".to_owned(),
        detail: "{}".to_owned(),
        previous: [0; 32],
        hash: [6; 32],
    }
}

#[tokio::test]
async fn deliveries_are_there_when_the_file_is_opened_again() {
    let db = db();
    end_run(&db).await;
    let taken = db.take_deliveries(Timestamp(5), Timestamp(50), 10, &[]);
    let taken = taken.await.unwrap();
    assert_eq!(taken.len(), 1);
    let retry = AttemptEnd::Retry {
        error: "503".to_owned(),
        due: Timestamp(60),
    };
    let ended = db.end_attempt(
        "acme",
        delivery_id(1),
        taken[0].attempt(),
        &retry,
        Timestamp(6),
    );
    assert!(ended.await.unwrap());
    let before = db.deliveries(&all()).await.unwrap();

    let path = db.path();
    drop(db.sqlite);
    let again = Sqlite::open(path).unwrap();
    assert_eq!(again.deliveries(&all()).await.unwrap(), before);
    let due = again.next_delivery_due().await.unwrap();
    assert_eq!(due, Some(Timestamp(60)));
    let taken = again.take_deliveries(Timestamp(60), Timestamp(90), 10, &[]);
    let taken = taken.await.unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!((taken[0].new.id, taken[0].attempts), (delivery_id(1), 2));
}

#[tokio::test]
async fn keys_and_audit_logs_are_there_when_the_file_is_opened_again() {
    let db = db();
    assert!(db.create_api_key(&api_key()).await.unwrap());
    let request = RequestKey {
        tenant: "acme".to_owned(),
        principal: "ann".to_owned(),
        key: "k".to_owned(),
        fingerprint: [4; 32],
        at: Timestamp(10),
        expires: Timestamp(90),
    };
    let claimed = db.claim_request(&request).await.unwrap();
    assert_eq!(claimed, ClaimedRequest::New);
    db.append_audit("acme", &[first_entry()]).await.unwrap();

    let path = db.path();
    drop(db.sqlite);
    let again = Sqlite::open(path).unwrap();
    let page = Page::default();
    let keys = again.api_keys("acme", page).await.unwrap();
    assert_eq!(keys, [api_key()]);
    let claimed = again.claim_request(&request).await.unwrap();
    assert_eq!(claimed, ClaimedRequest::Repeated(Timestamp(10)));
    let entries = again.audit("acme", 0, 10).await.unwrap();
    assert_eq!(entries, [first_entry()]);
    let head = AuditHead {
        seq: 1,
        hash: [6; 32],
    };
    assert_eq!(again.audit_head("acme").await.unwrap(), head);
}

/// Entries that are cut off at the end leave the row that says where the end was.
#[tokio::test]
async fn the_end_of_an_audit_log_outlives_its_entries() {
    let db = db();
    db.append_audit("acme", &[first_entry()]).await.unwrap();
    let file = Connection::open(db.path()).unwrap();
    assert_eq!(file.execute("DELETE FROM audit", []).unwrap(), 1);
    assert!(db.audit("acme", 0, 10).await.unwrap().is_empty());
    assert_eq!(db.audit_head("acme").await.unwrap().seq, 1);
    assert_eq!(db.audited_tenants().await.unwrap(), ["acme"]);
}

#[tokio::test]
async fn a_damaged_row_is_named_and_not_read() {
    for damage in [
        "UPDATE delivery SET status = 9",
        "UPDATE delivery SET id = x'00'",
        "UPDATE delivery SET thread = '../a'",
    ] {
        let db = db();
        end_run(&db).await;
        let file = Connection::open(db.path()).unwrap();
        file.execute("DELETE FROM delivery WHERE number > 1", [])
            .unwrap();
        assert_eq!(file.execute(damage, []).unwrap(), 1);
        let error = db.deliveries(&all()).await.unwrap_err();
        assert!(
            matches!(error, CheckpointError::DatabaseDamaged { .. }),
            "{damage}: {error:?}"
        );
    }
    for damage in [
        "UPDATE api_key SET hash = x'00'",
        "UPDATE api_key SET permissions = 256",
    ] {
        let db = db();
        db.create_api_key(&api_key()).await.unwrap();
        let file = Connection::open(db.path()).unwrap();
        assert_eq!(file.execute(damage, []).unwrap(), 1);
        let error = db.api_key(api_key().id).await.unwrap_err();
        assert!(
            matches!(error, CheckpointError::DatabaseDamaged { .. }),
            "{damage}: {error:?}"
        );
    }
}
