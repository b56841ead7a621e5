//! Damaged files: what is read is right or a named error, at once.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value as Json, json};
use superstep_conformance::sample::Owner;
use superstep_core::checkpoint::{
    Checkpointer, Commit, InterruptQuery, Listing, Page, Status, ThreadQuery,
};
use superstep_core::error::CheckpointError;
use superstep_core::store::{Namespace, PutItem, Search, Store, StoreError};
use superstep_core::{ThreadId, Timestamp, Value};
use superstep_sqlite::Sqlite;
use tokio::task::JoinSet;

const THREADS: usize = 12;
const ITEMS: usize = 8;

/// Threads that are listed and wait for answers, and items, in a file that nobody has open.
async fn sound_file(path: &Path) {
    let db = Sqlite::open(path).unwrap();
    for n in 0..THREADS {
        let mut owner = Owner::new(&ThreadId::new(&format!("thread-{n}")).unwrap());
        let Json::Object(metadata) = json!({ "title": format!("a thread, {n}") }) else {
            unreachable!("it is an object")
        };
        let listing = Listing {
            graph: "graph".to_owned(),
            metadata: Some(metadata.into_iter().collect()),
            values: Some(Value::plain(&json!({ "n": n })).unwrap()),
        };
        let start = Commit {
            listing: Some(listing),
            ..owner.start()
        };
        owner.save(&db, start).await.unwrap();
        let stop = owner.pause(&[u8::try_from(n).unwrap()]);
        owner.save(&db, stop).await.unwrap();
    }
    for n in 0..ITEMS {
        db.put(&item(n), Timestamp(1)).await.unwrap();
    }
}

fn item(n: usize) -> PutItem {
    PutItem {
        namespace: Namespace::new(["apis"]).unwrap(),
        key: format!("api-{n}"),
        value: json!({ "origin": format!("https://api-{n}.example") }),
        ttl: None,
    }
}

/// What the commands that list and show read of a file: every list whole, or why not.
async fn read_everything(path: &Path) -> Result<(), String> {
    let named = |error: CheckpointError| match error {
        CheckpointError::Store { .. } => panic!("told as a store that does not answer: {error:?}"),
        error => error.code().to_owned(),
    };
    let items_named = |error: StoreError| match error {
        StoreError::Store { .. } => panic!("told as a store that does not answer: {error:?}"),
        error => error.code().to_owned(),
    };
    let db = Sqlite::open(path).map_err(named)?;
    let page = Page {
        limit: 100,
        offset: 0,
    };
    let mut query = ThreadQuery {
        page,
        ..ThreadQuery::default()
    };
    let mut ids: Vec<_> = db.threads(&query).await.map_err(named)?;
    ids.sort_by(|a, b| a.thread.cmp(&b.thread));
    ids.dedup_by(|a, b| a.thread == b.thread);
    assert_eq!(ids.len(), THREADS, "threads were left out");
    query.statuses = vec![Status::Paused];
    let paused = db.threads(&query).await.map_err(named)?;
    assert_eq!(paused.len(), THREADS, "paused threads were left out");
    let open = InterruptQuery {
        tenant: String::new(),
        thread: None,
        threads: Vec::new(),
        open_only: true,
        due: None,
        page,
    };
    let open = db.interrupts(&open).await.map_err(named)?;
    assert_eq!(open.len(), THREADS, "questions were left out");
    for n in 0..THREADS {
        let thread = ThreadId::new(&format!("thread-{n}")).unwrap();
        let loaded = db.load(&thread).await.map_err(named)?;
        assert!(loaded.is_some(), "{thread} was not found");
    }
    let found = db.search(&Search::default(), Timestamp(2)).await;
    let mut found = found.map_err(items_named)?;
    found.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(found.len(), ITEMS, "items were left out");
    for (n, found) in found.iter().enumerate() {
        assert_eq!(found.value, item(n).value, "a damaged item was loaded");
        let got = db.get(&found.namespace, &found.key, Timestamp(2)).await;
        assert!(got.map_err(items_named)?.is_some());
    }
    Ok(())
}

/// 400 files with one changed bit each, in bytes that are in use. Nothing is ever left out of a list, no item is wrong, and
/// no error takes long.
#[tokio::test]
async fn a_damaged_file_is_read_right_or_refused_by_name_and_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sound.db");
    sound_file(&path).await;
    read_everything(&path).await.unwrap();
    let sound = std::fs::read(&path).unwrap();
    let used: Vec<usize> = (0..sound.len()).filter(|at| sound[*at] != 0).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    let mut refused = 0;
    for n in 0..400 {
        let (at, bit) = (used[next(used.len())], next(8));
        let mut damaged = sound.clone();
        damaged[at] ^= 1 << bit;
        let path = dir.path().join(format!("{n}.db"));
        std::fs::write(&path, damaged).unwrap();
        let begun = Instant::now();
        // A panic inside says what was wrong; this says where.
        let mut reads = JoinSet::new();
        let file = path.clone();
        reads.spawn(async move { read_everything(&file).await });
        let read = reads.join_next().await.unwrap();
        let read = read.unwrap_or_else(|wrong| panic!("bit {bit} of byte {at}: {wrong}"));
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "bit {bit} of byte {at} took {:?}",
            begun.elapsed()
        );
        refused += usize::from(read.is_err());
        std::fs::remove_file(&path).unwrap();
    }
    assert!(refused > 20, "only {refused} of 400 were noticed");
}

#[tokio::test]
async fn a_damaged_page_is_named_with_its_file_and_not_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    sound_file(&path).await;
    let db = Sqlite::open(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // All but the first page, which has the schema, while the file is open.
    bytes[4_096..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let error = db.load(&ThreadId::new("thread-1").unwrap()).await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), "checkpoint-database-damaged");
    assert!(!error.is_transient());
    let text = error.to_string();
    assert!(
        text.contains("x.db") && text.contains("restore a backup"),
        "{text}"
    );
    let mut owner = Owner::new(&ThreadId::new("new").unwrap());
    let start = owner.start();
    let error = owner.save(&db, start).await.unwrap_err();
    assert!(
        format!("{error:?}").contains("DatabaseDamaged"),
        "{error:?}"
    );
    let error = db.get(&item(1).namespace, "api-1", Timestamp(2)).await;
    assert_eq!(error.unwrap_err().code(), "store-database-damaged");
}

#[tokio::test]
async fn items_of_an_older_schema_get_checksums_and_stay_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    sound_file(&path).await;
    let file = Connection::open(&path).unwrap();
    file.execute_batch(
        "DROP TRIGGER item_unsealed; ALTER TABLE item DROP COLUMN checksum;
         ALTER TABLE cache DROP COLUMN checksum;
         ALTER TABLE thread DROP COLUMN lease;
         DROP TABLE run; DROP TABLE assistant; DROP TABLE assistant_version; DROP TABLE cron;
         DROP TABLE delivery; DROP TABLE api_key; DROP TABLE request_key; DROP TABLE audit; DROP TABLE audit_head;
         DROP INDEX line_created; DROP INDEX line_ends;
         ALTER TABLE line DROP COLUMN lifetime_ms; ALTER TABLE line DROP COLUMN at_end;
         PRAGMA user_version = 4;",
    )
    .unwrap();
    drop(file);
    read_everything(&path).await.unwrap();
    let file = Connection::open(&path).unwrap();
    let without: i64 = file
        .query_row(
            "SELECT count(*) FROM item WHERE checksum IS NULL",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(without, 0);
}

/// A process of the version before may have had the file open while it was migrated.
#[tokio::test]
async fn an_item_that_an_older_program_changes_is_not_taken_for_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    sound_file(&path).await;
    let file = Connection::open(&path).unwrap();
    file.execute_batch("UPDATE item SET value = '{\"by\":\"old\"}' WHERE key = 'api-1'")
        .unwrap();
    drop(file);
    let db = Sqlite::open(&path).unwrap();
    let found = db.get(&item(1).namespace, "api-1", Timestamp(2)).await;
    assert_eq!(found.unwrap().unwrap().value, json!({ "by": "old" }));
}
