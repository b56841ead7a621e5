//! The file: who may read it, whose it is, what schema it has, and copies of it.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use rusqlite::Connection;
use superstep_conformance::sample::Owner;
use superstep_core::checkpoint::{
    AtLifetimeEnd, Checkpointer, NewThread, ThreadAnnotation, ThreadLifetime, ThreadQuery,
    ThreadSort,
};
use superstep_core::error::CheckpointError;
use superstep_core::store::{Search, Store};
use superstep_core::{Seq, Timestamp};
use superstep_sqlite::{Options, Sqlite};

use crate::kit::db;

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_file_and_its_companions() {
    use std::os::unix::fs::PermissionsExt;

    let db = db();
    Owner::started(&*db, "a").await.unwrap();
    let copy = db.dir.path().join("copy.db");
    db.backup(&copy).await.unwrap();
    for entry in std::fs::read_dir(db.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", path.display());
    }
    drop(db.sqlite);
    assert!(!db.dir.path().join("test.db-wal").exists());
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    drop(Sqlite::open(&path).unwrap());
    alter(&path, "PRAGMA user_version = 99");
    let refused = Sqlite::open(&path).unwrap_err();
    assert!(matches!(
        refused,
        CheckpointError::NewerDatabase { found: 99, .. }
    ));
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    for (name, sql) in [
        ("tables.db", "CREATE TABLE theirs (x)"),
        ("id.db", "PRAGMA application_id = 7"),
        ("version.db", "PRAGMA user_version = 1"),
    ] {
        let path = dir.path().join(name);
        alter(&path, sql);
        let before = std::fs::read(&path).unwrap();
        let refused = Sqlite::open(&path).unwrap_err();
        assert!(
            matches!(refused, CheckpointError::Unusable { .. }) && !refused.is_transient(),
            "{name}: {refused:?}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
    let path = dir.path().join("text.db");
    std::fs::write(
        &path,
        "not a database, but longer than its header would have been".repeat(9),
    )
    .unwrap();
    assert!(matches!(
        Sqlite::open(&path),
        Err(CheckpointError::DatabaseDamaged { .. })
    ));
}

fn alter(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test]
async fn an_older_schema_is_migrated_and_keeps_its_threads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let owner = Owner::started(&Sqlite::open(&path).unwrap(), "a")
        .await
        .unwrap();
    // Schema 1 had neither items nor a cache, and every commit wrote the row of its thread.
    alter(&path, TO_THE_FIRST_SCHEMA);

    let db = Sqlite::open(&path).unwrap();
    assert_eq!(
        db.load(&owner.thread).await.unwrap().unwrap().head,
        owner.head
    );
    assert!(
        db.search(&Search::default(), Timestamp(0))
            .await
            .unwrap()
            .is_empty()
    );
    // Rows of older threads are in the new indexes, and can have a lifetime.
    let by_creation = ThreadQuery {
        sort: ThreadSort::Created,
        ..ThreadQuery::default()
    };
    let rows = db.threads(&by_creation).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0].thread, rows[0].lifetime), (&owner.thread, None));
    let lifetime = Some(ThreadLifetime {
        ms: 1,
        at_end: AtLifetimeEnd::KeepLatest,
    });
    let change = ThreadAnnotation {
        lifetime: Some(lifetime),
        ..ThreadAnnotation::default()
    };
    assert!(db.annotate(&owner.thread, &change).await.unwrap());
    let rows = db.threads(&by_creation).await.unwrap();
    assert_eq!(rows[0].lifetime, lifetime);
    assert!(db.integrity_check().await.unwrap().is_empty());
}

#[test]
fn several_may_make_the_same_database_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = Arc::new(dir.path().join("x.db"));
    let barrier = Arc::new(Barrier::new(8));
    let open = |_| {
        let (path, barrier) = (Arc::clone(&path), Arc::clone(&barrier));
        std::thread::spawn(move || {
            barrier.wait();
            Sqlite::open(path.as_path()).map(drop)
        })
    };
    let openers: Vec<_> = (0..8).map(open).collect();
    for opener in openers {
        opener.join().unwrap().unwrap();
    }
}

/// What a process leaves that was killed inside a migration: the files as they are while it is under way.
#[tokio::test]
async fn a_migration_that_was_cut_short_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let owner = Owner::started(&Sqlite::open(&path).unwrap(), "a")
        .await
        .unwrap();
    alter(&path, TO_THE_FIRST_SCHEMA);

    let dying = Connection::open(&path).unwrap();
    dying.pragma_update(None, "cache_size", 1).unwrap();
    dying
        .execute_batch(
            "BEGIN IMMEDIATE;
             CREATE TABLE item (half_made INTEGER);
             CREATE TABLE filler (x BLOB);
             INSERT INTO filler SELECT zeroblob(3000) FROM
                 (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500)
                  SELECT i FROM n);
             PRAGMA user_version = 2;",
        )
        .unwrap();
    let left = dir.path().join("left.db");
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", path.display());
        std::fs::copy(from, format!("{}{suffix}", left.display())).unwrap();
    }
    assert!(
        std::fs::metadata(dir.path().join("left.db-wal"))
            .unwrap()
            .len()
            > 1_000_000
    );

    let db = Sqlite::open(&left).unwrap();
    assert_eq!(
        db.load(&owner.thread).await.unwrap().unwrap().head,
        owner.head
    );
    assert!(
        db.search(&Search::default(), Timestamp(0))
            .await
            .unwrap()
            .is_empty()
    );
    assert!(db.integrity_check().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_backup_is_made_while_threads_are_written() {
    let db = db();
    let mut owner = Owner::started(&*db, "a").await.unwrap();
    owner.save_steps(&*db, 50).await.unwrap();
    let copy = db.dir.path().join("copy.db");
    let (backup, saved) = tokio::join!(db.backup(&copy), owner.save_steps(&*db, 200));
    backup.unwrap();
    saved.unwrap();

    let copy = Sqlite::open(&copy).unwrap();
    assert!(copy.integrity_check().await.unwrap().is_empty());
    let head = copy.load(&owner.thread).await.unwrap().unwrap().head;
    assert!((51..=251).contains(&head.seq.0));
    let entries = copy.entries(&owner.thread, Seq(0), 1_000).await.unwrap();
    assert_eq!(entries.len() as u64, head.seq.0);
}

#[tokio::test]
async fn a_backup_overwrites_nothing() {
    let db = db();
    Owner::started(&*db, "a").await.unwrap();
    let taken = db.dir.path().join("taken.db");
    alter(&taken, "CREATE TABLE mine (x)");
    let before = std::fs::read(&taken).unwrap();
    assert!(db.backup(&taken).await.is_err());
    assert_eq!(std::fs::read(&taken).unwrap(), before);
}

#[tokio::test]
async fn what_was_saved_is_there_when_the_file_is_opened_again() {
    let db = db();
    let mut owner = Owner::started(&*db, "a").await.unwrap();
    owner.save_steps(&*db, 20).await.unwrap();
    db.checkpoint_wal().await.unwrap();
    owner.save_steps(&*db, 20).await.unwrap();
    let path = db.path();
    drop(db.sqlite);
    let again = Sqlite::open(path).unwrap();
    assert_eq!(
        again.load(&owner.thread).await.unwrap().unwrap().head,
        owner.head
    );
}

#[tokio::test]
async fn compacting_leaves_no_deleted_byte_or_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    let mut options = Options::default();
    options.busy_timeout = Duration::from_millis(50);
    let db = Sqlite::open_with(&path, options).unwrap();
    let thread = superstep_core::ThreadId::new("t").unwrap();
    let new = NewThread {
        metadata: [("note".to_owned(), "a deleted note".into())].into(),
        ..NewThread::default()
    };
    assert!(db.create(&thread, &new).await.unwrap());
    db.checkpoint_wal().await.unwrap();
    Checkpointer::delete(&db, &thread).await.unwrap();
    let is_left = || {
        let files = std::fs::read_dir(dir.path()).unwrap();
        let mut files = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        files.any(|bytes| bytes.windows(14).any(|part| part == b"a deleted note"))
    };
    assert!(is_left());

    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count = "SELECT count(*) FROM thread";
    let _: i64 = reader.query_row(count, [], |row| row.get(0)).unwrap();
    let refused = db.compact().await.unwrap_err();
    assert!(refused.is_transient(), "{refused:?}");
    reader.execute_batch("COMMIT").unwrap();
    db.compact().await.unwrap();
    assert!(!is_left());
}

#[tokio::test]
async fn a_lifetime_is_there_when_the_file_is_opened_again() {
    let db = db();
    let thread = superstep_core::ThreadId::new("t").unwrap();
    let new = NewThread {
        lifetime: Some(ThreadLifetime {
            ms: 500,
            at_end: AtLifetimeEnd::KeepLatest,
        }),
        at: Timestamp(1_000),
        ..NewThread::default()
    };
    assert!(db.create(&thread, &new).await.unwrap());
    let path = db.path();
    drop(db.sqlite);
    let again = Sqlite::open(path).unwrap();
    let rows = again.threads(&ThreadQuery::default()).await.unwrap();
    assert_eq!(rows[0].lifetime, new.lifetime);
    assert!(
        again
            .expired(Timestamp(1_499), None, 10)
            .await
            .unwrap()
            .is_empty()
    );
    let expired = again.expired(Timestamp(1_500), None, 10).await.unwrap();
    assert_eq!(expired.len(), 1);
    assert_eq!(expired[0].thread, thread);
    assert_eq!(expired[0].at_end, AtLifetimeEnd::KeepLatest);
}

#[tokio::test]
async fn a_database_in_memory_keeps_the_same_rules() {
    let db = Sqlite::in_memory().unwrap();
    let mut owner = Owner::started(&db, "a").await.unwrap();
    owner.save_steps(&db, 5).await.unwrap();
    assert!(db.save(&Owner::new(&owner.thread).claim()).await.is_err());
    assert_eq!(
        db.load(&owner.thread).await.unwrap().unwrap().head,
        owner.head
    );
    assert!(db.integrity_check().await.unwrap().is_empty());
    assert!(db.bytes().await.unwrap() > 0);
}

const TO_THE_FIRST_SCHEMA: &str = "
    DROP VIEW head; DROP TABLE item; DROP TABLE cache; ALTER TABLE thread DROP COLUMN lease;
    DROP TABLE run; DROP TABLE assistant; DROP TABLE assistant_version; DROP TABLE cron;
    DROP TABLE delivery; DROP TABLE api_key; DROP TABLE request_key; DROP TABLE audit; DROP TABLE audit_head;
    DROP INDEX line_created; DROP INDEX line_ends;
    ALTER TABLE line DROP COLUMN lifetime_ms; ALTER TABLE line DROP COLUMN at_end;
    PRAGMA user_version = 1;";
