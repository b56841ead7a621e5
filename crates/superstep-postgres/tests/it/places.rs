//! Where the rows of a thread lie, and what happens to those who remember it wrongly.

use serde_json::json;
use superstep_conformance::sample::{Owner, answer_by, interrupt_id, thread};
use superstep_core::Timestamp;
use superstep_core::checkpoint::{
    Checkpointer, Commit, InterruptQuery, Metadata, NewThread, Status, ThreadAnnotation,
    ThreadQuery,
};
use superstep_postgres::Postgres;

use crate::kit::{Schema, db};

/// A run, a question, a second run: every statement that names tables.
async fn live(db: &Postgres, name: &str) {
    let mut owner = Owner::new(&thread(name));
    let new = NewThread {
        graph: String::new(),
        metadata: Metadata::from([("by".to_owned(), json!(name))]),
        lifetime: None,
        at: Timestamp(1),
    };
    assert!(db.create(&owner.thread, &new).await.unwrap());
    owner.head = db.load(&owner.thread).await.unwrap().unwrap().head;
    owner.save(db, owner.start()).await.unwrap();
    assert!(db.annotate(&owner.thread, &by(name)).await.unwrap());
    owner.save_steps(db, 4).await.unwrap();
    db.record(&owner.record_of_bytes("key", b"body"))
        .await
        .unwrap();
    owner.save(db, owner.pause(&[1])).await.unwrap();
    db.answer(&owner.thread, &[answer_by(1, "me")])
        .await
        .unwrap();
    let loaded = db.load(&owner.thread).await.unwrap().unwrap();
    assert_eq!((loaded.records.len(), loaded.interrupts.len()), (1, 1));
    owner.head = loaded.head;
    owner.save(db, owner.claim()).await.unwrap();
    let close = Commit {
        closed: vec![interrupt_id(1)],
        ..owner.stop(Status::Idle)
    };
    owner.save(db, close).await.unwrap();
    let asked = InterruptQuery {
        thread: Some(owner.thread.clone()),
        ..InterruptQuery::default()
    };
    assert_eq!(db.interrupts(&asked).await.unwrap().len(), 1);
    assert_eq!(db.prune(&owner.thread, 2).await.unwrap(), 2);
    let mine = ThreadQuery {
        metadata_contains: Some(json!({ "by": name })),
        ..ThreadQuery::default()
    };
    assert_eq!(db.count_threads(&mine).await.unwrap(), 1);
}

fn by(name: &str) -> ThreadAnnotation {
    ThreadAnnotation {
        metadata: Metadata::from([("by".to_owned(), json!(name))]),
        graph: None,
        lifetime: None,
        at: Timestamp(2),
    }
}

#[tokio::test]
async fn partitions_may_be_one_or_too_many_to_be_named() {
    for partitions in [1, 33] {
        let schema = Schema::new();
        let mut options = schema.options();
        options.partitions = partitions;
        let db = Postgres::connect_with(&schema.named_url(), options)
            .await
            .unwrap();
        for name in ["a", "b", "c"] {
            live(&db, name).await;
        }
    }
}

/// Somebody put another database under the process.
#[tokio::test]
async fn a_thread_that_lies_elsewhere_now_is_found_again() {
    let db = db().await;
    let mut owner = Owner::started(&*db, "a").await.unwrap();
    let move_all = "BEGIN; UPDATE thread SET id = id + 1000; UPDATE log SET thread = thread + 1000;
         UPDATE listing SET thread = thread + 1000; UPDATE term SET thread = thread + 1000; COMMIT";
    let client = db.schema.client().await;
    client.batch_execute(move_all).await.unwrap();
    owner.save(&*db, owner.step()).await.unwrap();
    client.batch_execute(move_all).await.unwrap();
    let loaded = db.load(&owner.thread).await.unwrap().unwrap();
    assert_eq!(loaded.head, owner.head);
    assert_eq!(loaded.history.entries.len(), 2);
    client.batch_execute(move_all).await.unwrap();
    assert!(db.annotate(&owner.thread, &by("me")).await.unwrap());
}
