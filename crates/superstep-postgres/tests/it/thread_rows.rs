//! Creations, annotations and commits that meet at the row of one thread.

use serde_json::{Value as Json, json};
use superstep_conformance::sample::{Owner, listing, thread};
use superstep_core::checkpoint::{
    AtLifetimeEnd, Checkpointer, Commit, Metadata, NewThread, Status, ThreadAnnotation,
    ThreadLifetime, ThreadQuery,
};
use superstep_core::{Epoch, Seq, ThreadId, Timestamp};
use superstep_postgres::Postgres;
use tokio::task::JoinSet;

use crate::kit::{Db, db, wait_for_waiting};

fn fields(metadata: Json) -> Metadata {
    serde_json::from_value(metadata).unwrap()
}

fn new_thread(metadata: Json) -> NewThread {
    NewThread {
        graph: String::new(),
        metadata: fields(metadata),
        lifetime: None,
        at: Timestamp(500),
    }
}

fn annotation(metadata: Json) -> ThreadAnnotation {
    ThreadAnnotation {
        metadata: fields(metadata),
        graph: None,
        lifetime: None,
        at: Timestamp(2_000),
    }
}

/// Returns how many threads a search by one field finds, which goes by the terms of the threads.
async fn found(db: &Postgres, part: Json) -> u64 {
    let query = ThreadQuery {
        metadata_contains: Some(part),
        ..ThreadQuery::default()
    };
    db.count_threads(&query).await.unwrap()
}

async fn metadata(db: &Postgres) -> Metadata {
    let rows = db.threads(&ThreadQuery::default()).await.unwrap();
    assert_eq!(rows.len(), 1);
    rows[0].metadata.clone()
}

/// Asserts that every row has all of its terms.
async fn assert_no_term_is_missing(db: &Db) {
    let sql =
        "SELECT count(*) FROM listing l, unnest(l.metadata_terms || l.state_terms) AS n (term)
         WHERE NOT EXISTS (SELECT FROM term t WHERE t.term = n.term AND t.thread = l.thread)";
    let client = db.schema.client().await;
    let missing: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(missing, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_racing_creations_one_wins() {
    let db = db().await;
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(db.schema.connect().await);
    }
    for round in 0..10 {
        let id = thread(&format!("t{round}"));
        let mut racers = JoinSet::new();
        for other in &others {
            let (postgres, id) = (other.clone(), id.clone());
            racers
                .spawn(async move { postgres.create(&id, &new_thread(json!({}))).await.unwrap() });
        }
        let created = racers.join_all().await;
        assert_eq!(created.iter().filter(|created| **created).count(), 1);
        let head = db.load(&id).await.unwrap().unwrap().head;
        assert_eq!((head.epoch, head.seq), (Epoch(1), Seq(0)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_annotations_all_survive() {
    let db = db().await;
    let id = thread("a");
    db.create(&id, &new_thread(json!({}))).await.unwrap();
    let mut racers = JoinSet::new();
    for n in 0..6 {
        let (postgres, id) = (db.schema.connect().await, id.clone());
        racers.spawn(async move {
            for round in 0..5 {
                let field = format!("f{n}");
                let change = annotation(json!({ field: round.to_string() }));
                assert!(postgres.annotate(&id, &change).await.unwrap());
            }
        });
    }
    racers.join_all().await;
    let metadata = metadata(&db).await;
    for n in 0..6 {
        let field = format!("f{n}");
        assert_eq!(metadata.get(&field), Some(&json!("4")), "{metadata:?}");
        assert_eq!(found(&db, json!({ field.clone(): "4" })).await, 1);
        assert_eq!(found(&db, json!({ field: "3" })).await, 0);
    }
    assert_no_term_is_missing(&db).await;
}

/// Lets an annotation and then a commit wait for the row in the list. The commit started before the annotation was applied.
async fn annotate_then_save(db: &Db, id: &ThreadId, change: ThreadAnnotation, commit: Commit) {
    let mut client = db.schema.client().await;
    let stop = client.transaction().await.unwrap();
    stop.batch_execute("SELECT FROM listing FOR UPDATE")
        .await
        .unwrap();
    let (postgres, id) = (db.postgres.clone(), id.clone());
    let mut annotating = JoinSet::new();
    annotating.spawn(async move { postgres.annotate(&id, &change).await.unwrap() });
    wait_for_waiting(db, 1).await;
    let (postgres, mut saving) = (db.postgres.clone(), JoinSet::new());
    saving.spawn(async move { postgres.save(&commit).await.unwrap() });
    wait_for_waiting(db, 2).await;
    stop.rollback().await.unwrap();
    assert_eq!(annotating.join_all().await, [true]);
    saving.join_all().await;
}

#[tokio::test]
async fn a_commit_that_waited_for_an_annotation_keeps_it() {
    let db = db().await;
    let mut owner = Owner::new(&thread("a"));
    let start = Commit {
        listing: Some(listing("g", json!({ "user": "ann" }), json!({ "n": 1 }))),
        ..owner.start()
    };
    owner.save(&*db, start).await.unwrap();
    let stop = owner.stop(Status::Idle);
    let change = annotation(json!({ "user": "bob", "team": "x" }));
    annotate_then_save(&db, &owner.thread, change, stop).await;
    assert_eq!(
        metadata(&db).await,
        fields(json!({ "user": "bob", "team": "x" }))
    );
    for (part, wanted) in [
        (json!({ "user": "ann" }), 0),
        (json!({ "user": "bob" }), 1),
        (json!({ "team": "x" }), 1),
    ] {
        assert_eq!(found(&db, part).await, wanted);
    }
    assert_no_term_is_missing(&db).await;
}

/// The annotation deletes a term that the commit writes again. In the snapshot of the commit the term is still there.
#[tokio::test]
async fn a_commit_that_waited_for_an_annotation_restores_a_term() {
    let db = db().await;
    let mut owner = Owner::new(&thread("a"));
    let listed = || Some(listing("g", json!({ "user": "ann" }), json!({ "n": 1 })));
    let start = Commit {
        listing: listed(),
        ..owner.start()
    };
    owner.save(&*db, start).await.unwrap();
    let stop = Commit {
        listing: listed(),
        ..owner.stop(Status::Idle)
    };
    let change = annotation(json!({ "user": "bob" }));
    annotate_then_save(&db, &owner.thread, change, stop).await;
    assert_eq!(metadata(&db).await, fields(json!({ "user": "ann" })));
    assert_eq!(found(&db, json!({ "user": "ann" })).await, 1);
    assert_eq!(found(&db, json!({ "user": "bob" })).await, 0);
    assert_no_term_is_missing(&db).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn annotations_that_race_deletions_leave_no_rows() {
    let db = db().await;
    let other = db.schema.connect().await;
    for round in 0..20 {
        let id = thread(&format!("t{round}"));
        db.create(&id, &new_thread(json!({ "user": "ann" })))
            .await
            .unwrap();
        let change = annotation(json!({ "user": "bob", "n": round }));
        let (deleted, annotated) = tokio::join!(db.delete(&id), other.annotate(&id, &change));
        deleted.unwrap();
        annotated.unwrap();
        assert!(!other.annotate(&id, &change).await.unwrap());
    }
    let client = db.schema.client().await;
    for table in ["listing", "term"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let left: i64 = client.query_one(&sql, &[]).await.unwrap().get(0);
        assert_eq!(left, 0, "rows in {table}");
    }
}

#[tokio::test]
async fn a_created_thread_is_copied_moved_pruned_and_expired() {
    let db = db().await;
    let (from, to) = (thread("from"), thread("to"));
    let lifetime = Some(ThreadLifetime {
        ms: u64::MAX,
        at_end: AtLifetimeEnd::KeepLatest,
    });
    let new = NewThread {
        lifetime,
        ..new_thread(json!({ "user": "ann" }))
    };
    assert!(db.create(&from, &new).await.unwrap());
    db.copy(&from, None, &to).await.unwrap();
    let copied = db.load(&to).await.unwrap().unwrap();
    assert_eq!((copied.head.epoch, copied.head.seq), (Epoch(1), Seq(0)));
    assert!(copied.history.entries.is_empty());
    assert!(!db.create(&to, &new).await.unwrap());
    assert_eq!(found(&db, json!({ "user": "ann" })).await, 2);

    let archive = db.export(&from).await.unwrap();
    db.import(&from, &archive).await.unwrap();
    db.delete(&from).await.unwrap();
    db.import(&from, &archive).await.unwrap();
    assert_eq!(db.export(&from).await.unwrap().listing, archive.listing);

    assert_eq!(db.prune(&to, 1).await.unwrap(), 0);
    let mut owner = Owner::new(&to);
    owner.head = copied.head;
    owner.save(&*db, owner.start()).await.unwrap();
    owner.save(&*db, owner.stop(Status::Idle)).await.unwrap();
    assert_eq!(db.expire(Timestamp(501), 10).await.unwrap(), 1);
    assert_eq!(db.expire(Timestamp(1_001), 10).await.unwrap(), 1);
    assert_eq!(db.count_threads(&ThreadQuery::default()).await.unwrap(), 0);
}

/// A role, a database or an address may set another level as the default.
#[tokio::test]
async fn statements_run_at_read_committed_whatever_the_default() {
    let db = db().await;
    let options = "&options=-c%20default_transaction_isolation%3Dserializable";
    let url = db.schema.named_url() + options;
    let strict = Postgres::connect_with(&url, db.schema.options())
        .await
        .unwrap();
    let mut owner = Owner::started(&strict, "a").await.unwrap();
    // A step that waits for an answer in progress is not refused: it goes by what it finds then.
    let mut client = db.schema.client().await;
    let answer = client.transaction().await.unwrap();
    answer
        .batch_execute("UPDATE thread SET answers = answers + 1")
        .await
        .unwrap();
    let (step, mut saving) = (owner.step(), JoinSet::new());
    saving.spawn(async move {
        owner.save(&strict, step).await.unwrap();
    });
    wait_for_waiting(&db, 1).await;
    answer.commit().await.unwrap();
    saving.join_all().await;
}
