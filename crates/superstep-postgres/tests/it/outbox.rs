//! Deliveries and audit logs, as two processes have them at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
use superstep_core::registry::{
    AttemptEnd, AuditEntry, AuditHead, NewDelivery, NewRun, Registry, RunEnd, RunStatus, WhenBusy,
};
use superstep_core::{AssistantId, DeliveryId, RunId, ThreadId, Timestamp};
use superstep_postgres::Postgres;
use tokio::task::JoinSet;

use crate::kit::db;

const RUNS: u8 = 40;
const EACH: u8 = 3;

fn run_id(n: u8) -> RunId {
    RunId::from_bytes([n; 16])
}

/// Ends a run with several deliveries, whose ids begin with the number of the run and end with their place.
async fn end_run(postgres: &Postgres, n: u8) {
    let thread = ThreadId::of_tenant("acme", &format!("t{n}")).unwrap();
    let run = NewRun {
        id: run_id(n),
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
    postgres.create_run(&run).await.unwrap();
    let deliveries = (0..EACH).map(|place| {
        let mut id = [n; 16];
        id[15] = place;
        NewDelivery {
            id: DeliveryId::from_bytes(id),
            run: run.id,
            thread: thread.clone(),
            address: "https://example.org".to_owned(),
            event: "run.ended".to_owned(),
            body: "{\"text\":\"\u{0}\"}".to_owned(),
            // The last one is due first, and must wait all the same.
            at: Timestamp(100 - i64::from(place)),
        }
    });
    let end = RunEnd {
        status: RunStatus::Success,
        error: json!(null),
        at: Timestamp(2),
        deliveries: deliveries.collect(),
    };
    assert!(postgres.end_run("acme", run.id, &end).await.unwrap());
}

/// What was attempted, in order: the run, and the place of the delivery.
type Attempts = Arc<Mutex<Vec<(u8, u8)>>>;

/// Takes deliveries and confirms them until there are none.
async fn deliver_all(postgres: Postgres, attempts: Attempts) {
    while postgres.next_delivery_due().await.unwrap().is_some() {
        let taken = postgres.take_deliveries(Timestamp(200), Timestamp(90_000), 5, &[]);
        for taken in taken.await.unwrap() {
            let id = taken.new.id.to_bytes();
            attempts.lock().unwrap().push((id[0], id[15]));
            let ended = postgres.end_attempt(
                "acme",
                taken.new.id,
                taken.attempt(),
                &AttemptEnd::Delivered,
                Timestamp(201),
            );
            assert!(ended.await.unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_that_two_processes_take_are_sent_once_and_in_order() {
    let db = db().await;
    let other = db.schema.connect().await;
    for n in 0..RUNS {
        end_run(&db, n).await;
    }
    let attempts = Attempts::default();
    let mut takers = JoinSet::new();
    for taker in 0..6 {
        let postgres = if taker % 2 == 0 { &db.postgres } else { &other };
        takers.spawn(deliver_all(postgres.clone(), attempts.clone()));
    }
    takers.join_all().await;
    let mut of_runs: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    for (run, place) in attempts.lock().unwrap().iter() {
        of_runs.entry(*run).or_default().push(*place);
    }
    assert_eq!(of_runs.len(), usize::from(RUNS));
    for (run, places) in of_runs {
        assert_eq!(places, (0..EACH).collect::<Vec<_>>(), "run {run}");
    }
    let swept = db.sweep_deliveries(Timestamp(201), 100).await.unwrap();
    assert_eq!(swept, 100);
}

/// Appends entries to the log, each of which names its writer.
async fn append_all(postgres: Postgres, writer: u8) {
    for n in 0..10 {
        loop {
            let head = postgres.audit_head("acme").await.unwrap();
            let mut hash = [writer; 32];
            hash[..2].copy_from_slice(&[n + 1, 255]);
            let entry = AuditEntry {
                seq: head.seq + 1,
                at: Timestamp(1),
                principal: writer.to_string(),
                action: "run.create".to_owned(),
                resource: String::new(),
                detail: "{}".to_owned(),
                previous: head.hash,
                hash,
            };
            let wanted = AuditHead {
                seq: entry.seq,
                hash,
            };
            let end = postgres.append_audit("acme", &[entry]).await.unwrap();
            if end == wanted {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_write_one_chain_of_audit_entries() {
    let db = db().await;
    let other = db.schema.connect().await;
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let postgres = if writer % 2 == 0 {
            &db.postgres
        } else {
            &other
        };
        writers.spawn(append_all(postgres.clone(), writer));
    }
    writers.join_all().await;
    let entries = db.audit("acme", 0, 100).await.unwrap();
    assert_eq!(entries.len(), 40);
    let head = db.audit_head("acme").await.unwrap();
    assert_eq!(AuditHead::default().after(&entries), Some(head));
    for writer in 0..4 {
        let by_one = entries
            .iter()
            .filter(|entry| entry.principal == writer.to_string());
        assert_eq!(by_one.count(), 10);
    }
}
