//! The owner of the queue: one at a time, until it is dropped or its process dies.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use superstep_sqlite::Sqlite;

use crate::kit::db;

#[test]
fn a_queue_has_one_owner_until_it_is_dropped() {
    let db = db();
    let other = Sqlite::open(db.path()).unwrap();
    let owner = db.try_own_queue().unwrap();
    assert!(owner.is_some());
    assert!(other.try_own_queue().unwrap().is_none());
    assert!(db.try_own_queue().unwrap().is_none());
    drop(owner);
    let owner = other.try_own_queue().unwrap();
    assert!(owner.is_some());
    assert!(db.try_own_queue().unwrap().is_none());
}

#[test]
fn a_queue_in_memory_has_one_owner_until_it_is_dropped() {
    let db = Sqlite::in_memory().unwrap();
    let other = db.clone();
    let owner = db.try_own_queue().unwrap();
    assert!(owner.is_some());
    assert!(other.try_own_queue().unwrap().is_none());
    drop(owner);
    assert!(other.try_own_queue().unwrap().is_some());
    let unrelated = Sqlite::in_memory().unwrap();
    assert!(unrelated.try_own_queue().unwrap().is_some());
}

#[test]
fn of_threads_that_race_for_a_queue_one_gets_it() {
    let db = db();
    let race = |_| {
        let db = db.sqlite.clone();
        std::thread::spawn(move || db.try_own_queue().unwrap())
    };
    let racers: Vec<_> = (0..4).map(race).collect();
    let owners: Vec<_> = racers
        .into_iter()
        .filter_map(|racer| racer.join().unwrap())
        .collect();
    assert_eq!(owners.len(), 1);
    assert!(db.try_own_queue().unwrap().is_none());
}

#[cfg(unix)]
#[test]
fn two_names_of_a_database_have_one_queue() {
    use std::os::unix::fs::PermissionsExt;

    let db = db();
    let link = db.dir.path().join("link.db");
    std::os::unix::fs::symlink(db.path(), &link).unwrap();
    let owner = db.try_own_queue().unwrap();
    assert!(owner.is_some());
    let linked = Sqlite::open(link).unwrap();
    assert!(linked.try_own_queue().unwrap().is_none());

    let file = db.dir.path().join("test.db-queue").metadata().unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    assert_eq!(file.len(), 0);
}

#[test]
fn a_process_that_dies_releases_the_queue() {
    let db = db();
    let mut owner = start_owner(&db.path());
    assert!(db.try_own_queue().unwrap().is_none());
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(db.try_own_queue().unwrap().is_some());
}

/// Starts a process that owns the queue, and returns once it does.
fn start_owner(path: &Path) -> Child {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "queue_owner::a_process_that_owns_a_queue",
            "--nocapture",
        ])
        .env(QUEUE_OF, path)
        // Open until this process ends, which ends the other one.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let owns = {
        let stderr = owner.stderr.as_mut().unwrap();
        let mut lines = BufReader::new(stderr).lines();
        lines.any(|line| line.unwrap().contains(OWNS))
    };
    assert!(owns, "the process ended before it owned the queue");
    owner
}

/// What the other process does: this test, started by the one above.
#[test]
fn a_process_that_owns_a_queue() {
    let Some(path) = std::env::var_os(QUEUE_OF) else {
        return;
    };
    let owner = Sqlite::open(path).unwrap().try_own_queue().unwrap();
    assert!(owner.is_some());
    eprintln!("{OWNS}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Environment variable with the database of the other process.
const QUEUE_OF: &str = "SUPERSTEP_TEST_QUEUE_OF";
const OWNS: &str = "owns the queue";
